// LZNT1 (MS-XCA 2.5): independent chunks of up to 4096 bytes of output behind a 16-bit header. A compressed chunk
// is flag bytes, least significant bit first, each governing eight tokens: 0 a literal byte, 1 a u16 whose split
// between distance and length depends on how much of the chunk is already there.
#include "stages/decompress/codecs.hpp"

#include <algorithm>
#include <bit>

namespace etwrelog::codecs {
namespace {

constexpr std::size_t kChunkSize = 4096;
constexpr std::size_t kMinMatch = 3;

// Bits of a token that hold the distance after `done` bytes of the chunk: the fewest, from 4 on, that can express
// every distance.
constexpr unsigned distance_bits(std::size_t done) {
  return done <= 16 ? 4u : static_cast<unsigned>(std::bit_width(done - 1));
}

// Decodes the tokens in[pos, end) to out, which is what is left of the output but at most a chunk.
CodecResult decode_chunk_careful(Bytes in, std::size_t pos, std::size_t end, MutableBytes out) {
  std::size_t done = 0;
  while (pos < end) {
    unsigned flags = in[pos++];
    for (int i = 0; i < 8 && pos < end; ++i, flags >>= 1) {
      if ((flags & 1) == 0) {
        if (done == out.size()) {
          return {CodecStatus::output_overrun, pos, done};
        }
        out[done++] = in[pos++];
        continue;
      }
      if (end - pos < 2) {
        return {CodecStatus::input_truncated, pos, done};
      }
      const std::uint32_t token = load<std::uint16_t>(in.data() + pos);
      const unsigned length_bits = 16 - distance_bits(done);
      const std::size_t distance = (token >> length_bits) + 1;
      const std::size_t length = (token & ((1u << length_bits) - 1)) + kMinMatch;
      if (distance > done) {
        return {CodecStatus::bad_distance, pos, done};
      }
      if (length > out.size() - done) {
        return {CodecStatus::output_overrun, pos, done};
      }
      std::uint8_t *to = out.data() + done;
      for (std::size_t k = 0; k < length; ++k) {
        to[k] = to[k - distance];
      }
      done += length;
      pos += 2;
    }
  }
  return {CodecStatus::ok, pos, done};
}

} // namespace

CodecResult decode_lznt1(Bytes in, MutableBytes out) {
  std::size_t in_pos = 0;
  std::size_t out_pos = 0;
  const auto fail = [&](CodecStatus status) { return CodecResult{status, in_pos, out_pos}; };
  while (in_pos < in.size()) {
    if (in.size() - in_pos < 2) {
      return fail(CodecStatus::input_truncated);
    }
    const std::uint32_t header = load<std::uint16_t>(in.data() + in_pos);
    if (header == 0) { // the optional end mark
      in_pos += out_pos == out.size() ? 2 : 0;
      break;
    }
    const std::size_t begin = in_pos + 2;
    const std::size_t size = (header & 0xFFF) + 1;
    // Only the last chunk may hold less than 4096 bytes.
    if ((header & 0x7000) != 0x3000 || out_pos % kChunkSize != 0) {
      return fail(CodecStatus::bad_chunk);
    }
    if (out_pos == out.size()) {
      return fail(CodecStatus::trailing_input);
    }
    const bool truncated = in.size() - begin < size;
    const std::size_t end = truncated ? in.size() : begin + size;
    const MutableBytes to = out.subspan(out_pos, std::min(kChunkSize, out.size() - out_pos));
    if ((header & 0x8000) != 0) {
      const CodecResult r = decode_chunk_careful(in, begin, end, to);
      out_pos += r.produced;
      if (r.status != CodecStatus::ok || truncated) {
        return {r.status != CodecStatus::ok ? r.status : CodecStatus::input_truncated, r.consumed, out_pos};
      }
    } else {
      const std::size_t n = std::min(end - begin, to.size());
      std::copy_n(in.data() + begin, n, to.data());
      out_pos += n;
      if (n < size) {
        return {truncated ? CodecStatus::input_truncated : CodecStatus::output_overrun, begin + n, out_pos};
      }
    }
    in_pos = end;
  }
  if (out_pos < out.size()) {
    return fail(CodecStatus::output_short);
  }
  return fail(in_pos == in.size() ? CodecStatus::ok : CodecStatus::trailing_input);
}

} // namespace etwrelog::codecs
