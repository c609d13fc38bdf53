#include "etlz/segment.hpp"

#include "etwrelog/format.hpp"

namespace etwrelog::etlz {

using format::BufferHeader;
using format::kBufferHeaderSize;

bool plausible(const std::uint8_t *at, std::size_t left) {
  if (left < kBufferHeaderSize) return false;
  const BufferHeader h = format::load_buffer_header(at);
  return h.buffer_size >= kBufferHeaderSize && h.buffer_size <= format::kMaxBufferSize &&
         h.state <= format::kMaxBufferState && h.type <= format::kMaxBufferType &&
         (h.compressed() ? h.valid_bytes() <= format::kMaxBufferSize : true);
}

bool believable(const BufferHeader &h) {
  // Real ones hold 1 to 18 times their size. What claims 64 MiB in 80 bytes would each have a segment of its
  // own, whether it held them or not.
  constexpr std::size_t kMostExpansion = 256;
  return h.valid_bytes() / kMostExpansion <= h.buffer_size;
}

std::size_t decoded_size(const Part &part, Bytes bytes) {
  if (!part.buffer) return part.size;
  const BufferHeader h = format::load_buffer_header(bytes.data() + part.at);
  return h.compressed() && believable(h) ? std::max<std::size_t>(part.size, h.valid_bytes()) : part.size;
}

namespace {

// Buffers that are no more than plausible are not searched for inside garbage: the first event must fit too.
bool convincing(const std::uint8_t *at, std::size_t left) {
  if (left < kBufferHeaderSize + 8) return false;
  if (const std::uint32_t size = load<std::uint32_t>(at); size < kBufferHeaderSize || size > left)
    return false;
  if (!plausible(at, left)) return false;
  const BufferHeader h = format::load_buffer_header(at);
  if (h.valid_bytes() < kBufferHeaderSize || h.reference_count != 0) return false;
  if (h.compressed()) return h.valid_bytes() >= h.buffer_size / 2;
  const std::uint32_t marker = load<std::uint32_t>(at + kBufferHeaderSize);
  return marker == format::kEndOfEvents || (marker >> 24) == format::kMarkerStructured ||
         (marker >> 24) == format::kMarkerMessage;
}

} // namespace

std::size_t part_weight(const Part &part, Bytes bytes) {
  if (!part.buffer) return part.size;
  const BufferHeader h = format::load_buffer_header(bytes.data() + part.at);
  if (h.compressed()) return decoded_size(part, bytes);
  const std::size_t size = part.size, valid = h.valid_bytes();
  return std::min(size, std::max(valid, size / 3));
}

std::size_t split_parts(Bytes bytes, bool final, std::size_t target, std::vector<Part> &parts) {
  parts.clear();
  std::size_t at = 0, decoded = 0;
  while (at < bytes.size() && decoded < target) {
    const std::size_t left = bytes.size() - at;
    const std::uint8_t *const p = bytes.data() + at;
    if (plausible(p, left)) {
      const BufferHeader h = format::load_buffer_header(p);
      if (h.buffer_size <= left) {
        parts.push_back({true, at, h.buffer_size});
        decoded += part_weight(parts.back(), bytes);
        at += h.buffer_size;
        continue;
      }
      if (!final) break;
    } else if (left < kBufferHeaderSize && !final) {
      break;
    }
    // Not a buffer: up to the next one, wherever damage has left it, or as much as a segment is to have.
    const std::size_t end = target - decoded < left ? at + (target - decoded) : bytes.size();
    std::size_t next = at + 1;
    while (next < end && !convincing(bytes.data() + next, bytes.size() - next))
      ++next;
    parts.push_back({false, at, next - at});
    decoded += next - at;
    at = next;
  }
  return at;
}

} // namespace etwrelog::etlz
