// Small archives.
#include "etlz/segment_state.hpp"
#include "etlz/small/small.hpp"

namespace etwrelog::etlz {
namespace {

void append(std::vector<std::uint8_t> &to, Bytes bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

} // namespace

bool SegmentCoder::encode_small(Bytes bytes, std::span<const Part> parts, std::size_t most,
                                const std::function<bool(Bytes)> &worth, std::vector<std::uint8_t> &out) {
  std::vector<std::uint8_t> content, list, corrections, decoded;
  std::uint64_t largest = 0;
  state_->xpress.forget();
  for (const Part &part : parts) {
    if (content.size() > most) return false;
    const Bytes whole = bytes.subspan(part.at, part.size);
    if (!part.buffer) {
      list.push_back(0);
      put_varint(list, whole.size());
      append(content, whole.first(std::min(whole.size(), most + 1)));
      continue;
    }
    const BufferHeader h = format::load_buffer_header(whole.data());
    const Bytes body = whole.subspan(kBufferHeaderSize);
    append(content, whole.first(kBufferHeaderSize));
    Content kind = Content::events;
    const std::size_t corrected = corrections.size();
    if (h.compressed()) {
      if (claimed_size(h) > most) return false;
      decoded.resize(claimed_size(h));
      kind = state_->predict(body, decoded, corrections);
    }
    list.push_back(static_cast<std::uint8_t>(1 + static_cast<unsigned>(kind)));
    if (kind == Content::verbatim) {
      append(content, body);
    } else if (kind == Content::events) {
      const std::size_t valid = valid_content(h, body.size()), odd = odd_slack(body.subspan(valid));
      put_varint(list, odd);
      append(content, body.first(valid + odd));
    } else {
      put_varint(list, corrections.size() - corrected);
      append(content, decoded);
      largest = std::max<std::uint64_t>(largest, decoded.size());
    }
  }
  if (content.size() > most || !worth(content)) return false;
  put_varint(out, content.size());
  put_varint(out, list.size());
  put_varint(out, corrections.size());
  put_varint(out, largest);
  append(content, list);
  append(content, corrections);
  etlz::encode_small(content, out);
  return true;
}

bool SegmentCoder::decode_small(Bytes coded, MutableBytes bytes, std::uint64_t limit) {
  InStream in(coded);
  const std::uint64_t sizes[3] = {get_varint(in), get_varint(in), get_varint(in)}, largest = get_varint(in);
  std::uint64_t total = 0;
  for (const std::uint64_t size : sizes) {
    if (size > kMostSmallContent) return false;
    total += size;
  }
  if (in.overrun() || total + largest > limit) return false;
  std::vector<std::uint8_t> all(total), decoded;
  if (!etlz::decode_small(in.rest(), all)) return false;
  InStream content(Bytes(all).first(sizes[0])), list(Bytes(all).subspan(sizes[0], sizes[1])),
      corrections(Bytes(all).subspan(sizes[0] + sizes[1]));
  auto take = [&content](std::uint8_t *to, std::uint64_t n) {
    const Bytes b = content.get(n);
    if (n != 0 && b.size() == n) std::memcpy(to, b.data(), n);
    return b.size() == n;
  };
  std::size_t at = 0;
  while (at < bytes.size()) {
    const unsigned kind = list.get();
    const std::size_t left = bytes.size() - at;
    if (kind == 0) {
      const std::uint64_t n = get_varint(list);
      if (n == 0 || n > left || !take(bytes.data() + at, n)) return false;
      at += n;
      continue;
    }
    if (kind > static_cast<unsigned>(Content::count_) || left < kBufferHeaderSize ||
        !take(bytes.data() + at, kBufferHeaderSize))
      return false;
    const BufferHeader h = format::load_buffer_header(bytes.data() + at);
    if (h.buffer_size < kBufferHeaderSize || h.buffer_size > left) return false;
    const MutableBytes body = bytes.subspan(at + kBufferHeaderSize, h.buffer_size - kBufferHeaderSize);
    at += h.buffer_size;
    const auto how = static_cast<Content>(kind - 1);
    if (how == Content::verbatim) {
      if (!take(body.data(), body.size())) return false;
    } else if (how == Content::events) {
      const std::size_t valid = valid_content(h, body.size());
      const std::uint64_t odd = get_varint(list);
      if (odd > body.size() - valid || !take(body.data(), valid + odd)) return false;
      std::memset(body.data() + valid + odd, format::kFillByte, body.size() - valid - odd);
    } else {
      const std::size_t size = claimed_size(h);
      const std::uint64_t corrected = get_varint(list);
      if (size == 0 || size > largest) return false;
      decoded.resize(size);
      const Bytes corrected_by = corrections.get(corrected);
      if (!take(decoded.data(), size) || corrected_by.size() != corrected ||
          !state_->restore(how, decoded, corrected_by, body))
        return false;
    }
  }
  return content.at_end() && list.at_end() && corrections.at_end() && !list.overrun();
}

} // namespace etwrelog::etlz
