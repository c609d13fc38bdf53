// Plain XPRESS (MS-XCA 2.3/2.4): 32-bit flag words, most significant bit first, each governing 32 tokens: 0 a
// literal byte, 1 a u16 match (distance - 1 in the upper 13 bits, length code in the lower 3). A full length code
// continues in a nibble (two matches share a byte), a byte, a u16 and a u32.
#include "stages/decompress/codecs.hpp"

namespace etwrelog::codecs {
namespace {

constexpr std::size_t kMinMatch = 3;
constexpr std::uint32_t kLongLengthMinimum = 7 + 15; // a u16 or u32 length states the whole code

struct XpressState {
  std::size_t in_pos = 0;
  std::size_t out_pos = 0;
  std::uint32_t flags = 0; // those not used yet, the next one on top
  unsigned flags_left = 0;
  std::size_t half_byte = 0; // offset of the byte whose upper nibble is still unused; 0 = none (never a nibble byte)
};

// One token at a time, everything checked.
CodecResult decode_careful(Bytes in, MutableBytes out, XpressState s) {
  while (s.out_pos < out.size()) {
    const auto fail = [&s](CodecStatus status) { return CodecResult{status, s.in_pos, s.out_pos}; };
    std::size_t at = s.in_pos;
    if (s.flags_left == 0) {
      if (in.size() - at < 4) {
        return fail(at == in.size() ? CodecStatus::output_short : CodecStatus::input_truncated);
      }
      s.flags = load<std::uint32_t>(in.data() + at);
      s.flags_left = 32;
      s.in_pos = at += 4;
    }
    if (at == in.size()) {
      return fail(CodecStatus::output_short);
    }
    const bool is_match = (s.flags >> 31) != 0;
    if (!is_match) {
      out[s.out_pos++] = in[at];
      s.in_pos = at + 1;
    } else {
      if (in.size() - at < 2) {
        return fail(CodecStatus::input_truncated);
      }
      const std::uint32_t token = load<std::uint16_t>(in.data() + at);
      at += 2;
      const std::size_t distance = (token >> 3) + 1;
      std::size_t length = token & 7;
      std::size_t half_byte = s.half_byte;
      if (length == 7) {
        std::uint32_t nibble = 0;
        if (half_byte != 0) {
          nibble = in[half_byte] >> 4;
          half_byte = 0;
        } else {
          if (at == in.size()) {
            return fail(CodecStatus::input_truncated);
          }
          half_byte = at;
          nibble = in[at++] & 15u;
        }
        length += nibble;
        if (nibble == 15) {
          if (at == in.size()) {
            return fail(CodecStatus::input_truncated);
          }
          const std::uint8_t byte = in[at++];
          length += byte;
          if (byte == 255) {
            if (in.size() - at < 2) {
              return fail(CodecStatus::input_truncated);
            }
            length = load<std::uint16_t>(in.data() + at);
            at += 2;
            if (length == 0) {
              if (in.size() - at < 4) {
                return fail(CodecStatus::input_truncated);
              }
              length = load<std::uint32_t>(in.data() + at);
              at += 4;
            }
            if (length < kLongLengthMinimum) {
              return fail(CodecStatus::bad_length);
            }
          }
        }
      }
      length += kMinMatch;
      if (distance > s.out_pos) {
        return fail(CodecStatus::bad_distance);
      }
      if (length > out.size() - s.out_pos) {
        return fail(CodecStatus::output_overrun);
      }
      std::uint8_t *to = out.data() + s.out_pos;
      for (std::size_t i = 0; i < length; ++i) {
        to[i] = to[i - distance];
      }
      s.out_pos += length;
      s.half_byte = half_byte;
      s.in_pos = at;
    }
    s.flags <<= 1;
    --s.flags_left;
  }
  // Windows writes one more flag word when the last one is used up.
  if (s.flags_left == 0 && in.size() - s.in_pos == 4 && load<std::uint32_t>(in.data() + s.in_pos) == 0xFFFF'FFFF) {
    s.in_pos = in.size();
  }
  return {s.in_pos == in.size() ? CodecStatus::ok : CodecStatus::trailing_input, s.in_pos, s.out_pos};
}

} // namespace

CodecResult decode_xpress(Bytes in, MutableBytes out) { return decode_careful(in, out, {}); }

} // namespace etwrelog::codecs
