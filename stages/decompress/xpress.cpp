// Plain XPRESS (MS-XCA 2.3/2.4): 32-bit flag words, most significant bit first, each governing 32 tokens: 0 a
// literal byte, 1 a u16 match (distance - 1 in the upper 13 bits, length code in the lower 3). A full length code
// continues in a nibble (two matches share a byte), a byte, a u16 and a u32.
//
// The fast loop takes a run of literals and the match after it per round, without a branch that depends on the
// data but for rare cases; it leaves the last bytes of either side, and every token it finds wrong, to the
// careful one.
#include "stages/decompress/codecs.hpp"
#include "stages/decompress/wild_copy.hpp"

#include <bit>

namespace etwrelog::codecs {
namespace {

constexpr std::size_t kMinMatch = 3;
constexpr std::uint32_t kLongLengthMinimum = 7 + 15; // a u16 or u32 length states the whole code

struct XpressState {
  std::size_t in_pos = 0;
  std::size_t out_pos = 0;
  std::uint32_t flags = 0; // those not used yet, the next one on top
  unsigned flags_left = 0;
  std::uint32_t half_byte = 0; // the nibble that the next long length uses, plus 16; 0 = none
};

// What a round of the fast loop may touch: 32 bytes of literals, then a token of up to 4 bytes; or the literals and
// the first copies of a match.
constexpr std::size_t kRoundIn = 40;
constexpr std::size_t kRoundOut = 32 + 64;
// What the 32 tokens of a flag word may use up, and touch beyond. Matches of more than 64 bytes apart.
constexpr std::size_t kWordIn = 4 + 32 * 4 + kRoundIn;
constexpr std::size_t kWordOut = 32 * 64 + kRoundOut;

// Rounds while both sides have room: for a whole flag word at a time, or (near the end) for a single round. Returns
// true when the next token is for the careful decoder: a length in more than a byte, a bad distance. (No call stands
// in the loop; it would cost registers that all tokens need.)
template <bool kPerWord>
ETWRELOG_ALWAYS_INLINE bool fast_rounds(Bytes in_span, MutableBytes out_span, XpressState &s) {
  constexpr std::size_t kNeedIn = kPerWord ? kWordIn : kRoundIn;
  constexpr std::size_t kNeedOut = kPerWord ? kWordOut : kRoundOut;
  if (in_span.size() < kNeedIn || out_span.size() < kNeedOut) {
    return false;
  }
  const std::uint8_t *in = in_span.data() + s.in_pos;
  const std::uint8_t *const in_safe = in_span.data() + in_span.size() - kNeedIn;
  std::uint8_t *const out_begin = out_span.data();
  std::uint8_t *const out_safe = out_begin + out_span.size() - kNeedOut;
  std::uint8_t *out = out_begin + s.out_pos;
  if (in > in_safe || out > out_safe) {
    return false;
  }
  // The flags left, then a one that marks the end of the word, then zeros.
  const unsigned mark = 63 - s.flags_left;
  std::uint64_t flags = (std::uint64_t{s.flags} << 32 >> mark | 1) << mark;
  std::uint32_t has_half = s.half_byte >> 4;
  std::uint32_t half = s.half_byte & 15; // 0 without has_half
  bool leave_token = false;
  for (;;) {
    if (!kPerWord && (in > in_safe || out > out_safe)) {
      break;
    }
    const auto run = static_cast<unsigned>(std::countl_zero(flags));
    copy16(out, in);
    if (run > 16) [[unlikely]] {
      copy16(out + 16, in + 16);
    }
    in += run;
    out += run;
    flags <<= run;
    const std::uint64_t flags_before = flags;
    flags <<= 1;
    if (flags == 0) [[unlikely]] { // that was the mark
      if (kPerWord && (in > in_safe || out > out_safe)) {
        flags = flags_before;
        break;
      }
      flags = std::uint64_t{load<std::uint32_t>(in)} << 32 | std::uint64_t{1} << 31;
      in += 4;
      continue;
    }
    const std::uint32_t token = load<std::uint16_t>(in);
    const std::size_t distance = (token >> 3) + 1;
    const std::uint8_t *const from = out - distance;
    std::size_t length = (token & 7) + kMinMatch;
    if (distance > static_cast<std::size_t>(out - out_begin)) [[unlikely]] {
      leave_token = true;
      break;
    }
    if (length < 7 + kMinMatch) {
      in += 2;
      if (distance < length) [[unlikely]] { // so it is 8 at most
        const std::uint64_t pattern = repeat(load<std::uint64_t>(from), distance);
        store(out, pattern);
        store(out + kPatternStep[distance], pattern);
      } else {
        const auto first = load<std::uint64_t>(from); // both before the stores: right for any distance >= length
        const auto last = load<std::uint16_t>(from + 8);
        store(out, first);
        store(out + 8, last);
      }
      out += length;
      continue;
    }
    // Measured on real traces: the branch above is predicted well, one on the nibble is not. Hence the arithmetic,
    // and 64 bytes copied before the length is looked at. `extra` is the nibble with the bytes after it.
    const std::uint32_t after = load<std::uint16_t>(in + 2);
    const std::uint32_t extra = after << (8 * has_half) | half;
    const std::uint32_t nibble = extra & 15;
    const std::uint32_t has_byte = (nibble + 1) >> 4;
    const std::uint32_t byte = extra >> 8 & 0xFF & (0 - has_byte);
    const std::uint8_t *const token_at = in;
    in += 3 - has_half + has_byte;
    length += nibble + byte;
    half = after >> 4 & 15 & (has_half - 1);
    has_half ^= 1;
    if (length > 64 && (byte == 255 || static_cast<std::ptrdiff_t>(length) > out_safe - out)) [[unlikely]] {
      leave_token = true;
      in = token_at;
      has_half ^= 1;
      half = has_half * 15; // no other nibble has a byte after it
      break;
    }
    if (distance < 16) [[unlikely]] {
      copy_overlapping(out, distance, length);
    } else {
      copy16(out, from);
      copy16(out + 16, from + 16);
      copy16(out + 32, from + 32);
      copy16(out + 48, from + 48);
      if (length > 64) [[unlikely]] {
        copy_blocks(out + 64, from + 64, out + length);
      }
    }
    out += length;
  }
  if (leave_token) {
    flags = flags >> 1 | std::uint64_t{1} << 63;
  }
  s.in_pos = static_cast<std::size_t>(in - in_span.data());
  s.out_pos = static_cast<std::size_t>(out - out_begin);
  s.flags = static_cast<std::uint32_t>(flags >> 32);
  s.flags_left = 63u - static_cast<unsigned>(std::countr_zero(flags));
  s.half_byte = has_half != 0 ? half | 16 : 0;
  return leave_token;
}

template <bool kPerWord> ETWRELOG_NOINLINE bool rounds_portable(Bytes in, MutableBytes out, XpressState &s) {
  return fast_rounds<kPerWord>(in, out, s);
}

#if ETWRELOG_X86_DISPATCH
template <bool kPerWord>
ETWRELOG_NOINLINE ETWRELOG_TARGET_V3 bool rounds_v3(Bytes in, MutableBytes out, XpressState &s) {
  return fast_rounds<kPerWord>(in, out, s);
}
#endif

// One token, everything checked. CodecStatus::ok: it is done.
CodecStatus decode_token(Bytes in, MutableBytes out, XpressState &s) {
  std::size_t at = s.in_pos;
  if (s.flags_left == 0) {
    if (in.size() - at < 4) {
      return at == in.size() ? CodecStatus::output_short : CodecStatus::input_truncated;
    }
    s.flags = load<std::uint32_t>(in.data() + at);
    s.flags_left = 32;
    s.in_pos = at += 4;
  }
  if (at == in.size()) {
    return CodecStatus::output_short;
  }
  if (s.flags >> 31 == 0) {
    out[s.out_pos++] = in[at++];
  } else {
    if (in.size() - at < 2) {
      return CodecStatus::input_truncated;
    }
    const std::uint32_t token = load<std::uint16_t>(in.data() + at);
    at += 2;
    const std::size_t distance = (token >> 3) + 1;
    std::size_t length = token & 7;
    std::uint32_t half_byte = s.half_byte;
    if (length == 7) {
      std::uint32_t nibble = half_byte & 15;
      if (half_byte != 0) {
        half_byte = 0;
      } else {
        if (at == in.size()) {
          return CodecStatus::input_truncated;
        }
        nibble = in[at] & 15u;
        half_byte = in[at++] >> 4 | 16u;
      }
      length += nibble;
      if (nibble == 15) {
        if (at == in.size()) {
          return CodecStatus::input_truncated;
        }
        const std::uint8_t byte = in[at++];
        length += byte;
        if (byte == 255) {
          if (in.size() - at < 2) {
            return CodecStatus::input_truncated;
          }
          length = load<std::uint16_t>(in.data() + at);
          at += 2;
          if (length == 0) {
            if (in.size() - at < 4) {
              return CodecStatus::input_truncated;
            }
            length = load<std::uint32_t>(in.data() + at);
            at += 4;
          }
          if (length < kLongLengthMinimum) {
            return CodecStatus::bad_length;
          }
        }
      }
    }
    length += kMinMatch;
    if (distance > s.out_pos) {
      return CodecStatus::bad_distance;
    }
    if (length > out.size() - s.out_pos) {
      return CodecStatus::output_overrun;
    }
    copy_any(out, s.out_pos, distance, length);
    s.out_pos += length;
    s.half_byte = half_byte;
  }
  s.in_pos = at;
  s.flags <<= 1;
  --s.flags_left;
  return CodecStatus::ok;
}

} // namespace

CodecResult decode_xpress(Bytes in, MutableBytes out) {
  XpressState s;
  bool (*words)(Bytes, MutableBytes, XpressState &) = rounds_portable<true>;
  bool (*rounds)(Bytes, MutableBytes, XpressState &) = rounds_portable<false>;
#if ETWRELOG_X86_DISPATCH
  if (cpu::has_v3()) {
    words = rounds_v3<true>;
    rounds = rounds_v3<false>;
  }
#endif
  while (s.out_pos < out.size()) {
    // Where a loop leaves a token, the careful decoder takes that one and no more.
    const bool one = words(in, out, s) || rounds(in, out, s);
    do {
      const CodecStatus status = decode_token(in, out, s);
      if (status != CodecStatus::ok) {
        return {status, s.in_pos, s.out_pos};
      }
    } while (!one && s.out_pos < out.size());
  }
  // Windows writes one more flag word when the last one is used up.
  if (s.flags_left == 0 && in.size() - s.in_pos == 4 && load<std::uint32_t>(in.data() + s.in_pos) == 0xFFFF'FFFF) {
    s.in_pos = in.size();
  }
  return {s.in_pos == in.size() ? CodecStatus::ok : CodecStatus::trailing_input, s.in_pos, s.out_pos};
}

} // namespace etwrelog::codecs
