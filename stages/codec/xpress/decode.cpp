// Plain XPRESS (MS-XCA 2.3/2.4): 32-bit flag words, most significant bit first, each governing 32 tokens: 0 a
// literal byte, 1 a u16 match (distance - 1 in the upper 13 bits, length code in the lower 3). A full length
// code continues in a nibble (two matches share a byte), a byte, a u16 and a u32.
//
// The fast loop takes a match and the run of literals after it per round, with one branch that depends on the
// data: whether the length is a long one. It leaves the last bytes of either side, and every token it finds
// wrong, to the careful one. Half of its time goes to mispredictions: of that branch, of the one for a new
// flag word, and of those for matches that take several copies. So there are few branches, and what the next
// one depends on comes before the copies.
#include "codec/codecs.hpp"
#include "codec/wild_copy.hpp"
#include "codec/xpress/format.hpp"

#include <bit>

namespace etwrelog::codec {
namespace {

constexpr std::size_t kMinMatch = kXpressMinMatch;
constexpr std::uint64_t kMark = std::uint64_t{1} << 63;
constexpr std::uint32_t kLongLengthMinimum = 7 + 15; // a u16 or u32 length states the whole code

struct XpressState {
  std::size_t in_pos = 0;
  std::size_t out_pos = 0;
  std::uint32_t flags = 0; // those not used yet, the next one on top
  unsigned flags_left = 0;
  std::uint32_t half_byte = 0; // the nibble that the next long length uses, plus 16; 0 = none
};

// Matches of up to kOneGo bytes are copied in one go, others in three, since the end of a loop is
// mispredicted; only for those of more than kThreeGoes bytes that is not enough. Those of more than kOneGo
// bytes check for themselves that there is room.
constexpr std::size_t kOneGo = 64;
constexpr std::size_t kThreeGoes = 3 * kOneGo;
// What a round may touch near the end: a token of up to 4 bytes, a few literals and the 8 bytes with the next
// token; or a match with what its copy writes past the end. (Runs of more literals are rare enough for the
// careful decoder.)
constexpr std::size_t kFewLiterals = 16;
constexpr std::size_t kRoundIn = 4 + kFewLiterals + 8;
constexpr std::size_t kRoundOut = 32 + kOneGo + kCopySlack;
static_assert(kThreeGoes <= kOneGo + 1 + kRoundOut);
// What the 32 tokens of a flag word may use up, and touch beyond.
constexpr std::size_t kWordIn = 4 + 32 * 4 + 32 + 8;
constexpr std::size_t kWordOut = 32 * kOneGo + kRoundOut;

// Stands at a match, or at a flag word.
struct Cursor {
  const std::uint8_t *in;
  std::uint8_t *out;
  std::uint64_t flags; // left for what follows, then a one that marks the end of the word; 0: at a word
  std::uint32_t token; // the 4 bytes at `in`
  std::uint32_t half;  // the nibble left by the last long length
};

struct Limits {
  const std::uint8_t *in_safe; // up to here (and out_safe) a word or a round fits
  const std::uint8_t *out_begin;
  const std::uint8_t *out_safe;
};

enum class Stop {
  long_length, // one is done: it took the nibble, or left one
  margin,      // there may be no room for another word or round
  token,       // the next token is for the careful decoder: a length in more than a u16, a bad distance
};

// Goes on to behind the `run` literals at `in`, before these and the match are copied: what comes next is
// then under way while a misprediction is waited out. (The compiler cannot put the load there by itself,
// since for all it knows the copies are to the input.)
ETWRELOG_ALWAYS_INLINE void go_on(Cursor &c, const std::uint8_t *in, std::size_t run) {
  c.in = in + run;
  c.token = load<std::uint32_t>(c.in);
  c.flags = c.flags << run << 1;
}

// Copies the `run` literals at `from`: kFewLiterals without a branch, and only once in hundreds of runs there
// are more.
template <bool kPerWord>
ETWRELOG_ALWAYS_INLINE void copy_literals(Cursor &c, const std::uint8_t *from, std::size_t run) {
  copy16(c.out, from);
  if (kPerWord && run > kFewLiterals) [[unlikely]] {
    copy16(c.out + kFewLiterals, from + kFewLiterals);
  }
  c.out += run;
}

// Rounds of a match and literals, up to and with the next long length. Each of these takes a nibble or leaves
// one, in turn: two copies of the loop know without asking which it is. Whether a length is long is
// mispredicted for every fourth match, more than all other branches together; but the reckoning without a
// branch takes longer than that.
template <bool kPerWord, bool kHasHalf>
ETWRELOG_ALWAYS_INLINE Stop until_long_length(Cursor &c, const Limits &limits) {
  for (;;) {
    if (!kPerWord && (c.in > limits.in_safe || c.out > limits.out_safe)) {
      return Stop::margin;
    }
    if (c.flags == 0) [[unlikely]] { // that was the mark
      if (kPerWord && (c.in > limits.in_safe || c.out > limits.out_safe)) {
        return Stop::margin;
      }
      const std::uint64_t flags = std::uint64_t{c.token} << 32 | kMark >> 32;
      const auto run = static_cast<std::size_t>(std::countl_zero(flags));
      if (!kPerWord && run > kFewLiterals) {
        return Stop::token;
      }
      c.flags = flags;
      const std::uint8_t *const in = c.in + 4;
      go_on(c, in, run);
      copy_literals<kPerWord>(c, in, run);
      continue;
    }
    const auto run = static_cast<std::size_t>(std::countl_zero(c.flags)); // of literals behind the match
    if (!kPerWord && run > kFewLiterals) {
      return Stop::token;
    }
    // The next token, should this be a short length, and the bytes behind, of which it is some should it be a
    // long one: loaded before that is known, they are there when it turns out to have been mispredicted.
    const std::uint8_t *const behind = c.in + 2;
    const auto next = load<std::uint64_t>(behind + run);
    const std::uint64_t flags = c.flags << run << 1;
    std::uint8_t *const out = c.out;
    const std::size_t less_one = static_cast<std::uint16_t>(c.token) >> 3; // the distance
    const std::uint8_t *const from = out - less_one - 1;
    if (from < limits.out_begin) [[unlikely]] {
      return Stop::token;
    }
    const std::size_t code = c.token & 7;
    if (code < 7) {
      const std::size_t length = code + kMinMatch;
      c.in = behind + run;
      c.token = static_cast<std::uint32_t>(next);
      c.flags = flags;
      c.out += length;
      if (less_one < code + (kMinMatch - 1)) [[unlikely]] {
        copy_overlapping(out, less_one + 1, length);
      } else {
        const auto first = load<std::uint64_t>(from); // both before the stores, as in copy_apart
        const auto last = load<std::uint16_t>(from + 8);
        store(out, first);
        store(out + 8, last);
      }
      copy_literals<kPerWord>(c, behind, run);
      continue;
    }
    // Half of the nibbles are full, in no order: no branch there.
    const std::uint32_t nibble = kHasHalf ? c.half : c.token >> 16 & 15u;
    const std::size_t has_byte = (nibble + 1) >> 4;
    const std::size_t byte = (c.token >> (kHasHalf ? 16 : 24) & 0xFF) & (0 - has_byte);
    const std::size_t more = (kHasHalf ? 0 : 1) + has_byte;
    const std::uint8_t *in = behind + more;
    auto token = static_cast<std::uint32_t>(next >> (8 * more));
    std::size_t length = 7 + kMinMatch + nibble + byte;
    if (length > kOneGo) {
      if (byte == 255) [[unlikely]] {
        if (in > limits.in_safe) { // a token of more bytes than the margin counts on
          return Stop::token;
        }
        length = load<std::uint16_t>(in) + kMinMatch;
        in += 2;
        token = load<std::uint32_t>(in + run);
        if (length < kLongLengthMinimum + kMinMatch) { // bad, or 0: stated by a u32
          return Stop::token;
        }
      }
      if (static_cast<std::ptrdiff_t>(length) > limits.out_safe - out) [[unlikely]] {
        return Stop::token;
      }
    }
    c.half = kHasHalf ? 0 : c.token >> 20 & 15u;
    c.in = in + run;
    c.token = token;
    c.flags = flags;
    c.out += length;
    if (less_one + 1 < length) [[unlikely]] {
      copy_overlapping(out, less_one + 1, length);
    } else {
      copy_apart<kOneGo>(out, from);
      if (length > kOneGo) [[unlikely]] {
        copy_apart<kOneGo>(out + kOneGo, from + kOneGo);
        copy_apart<kOneGo>(out + 2 * kOneGo, from + 2 * kOneGo);
        if (length > kThreeGoes) [[unlikely]] {
          copy_blocks(out + kThreeGoes, from + kThreeGoes, out + length);
        }
      }
    }
    copy_literals<kPerWord>(c, in, run);
    return Stop::long_length;
  }
}

// Rounds while both sides have room: for a whole flag word at a time, or (near the end) for a single round.
// True when the next token is for the careful decoder. (No call stands in the loops; it would cost registers
// that all tokens need.)
template <bool kPerWord> ETWRELOG_ALWAYS_INLINE bool fast_rounds(Bytes in, MutableBytes out, XpressState &s) {
  constexpr std::size_t kNeedIn = kPerWord ? kWordIn : kRoundIn;
  constexpr std::size_t kNeedOut = kPerWord ? kWordOut : kRoundOut;
  if (in.size() < kNeedIn || out.size() < kNeedOut || s.in_pos > in.size() - kNeedIn ||
      s.out_pos > out.size() - kNeedOut) {
    return false;
  }
  const Limits limits{in.data() + (in.size() - kNeedIn), out.data(), out.data() + (out.size() - kNeedOut)};
  const unsigned flags_used = 32 - s.flags_left;
  Cursor c{in.data() + s.in_pos, out.data() + s.out_pos,
           std::uint64_t{s.flags} << 32 | kMark >> 32 << flags_used, 0, s.half_byte & 15};
  const auto run = static_cast<std::size_t>(std::countl_zero(c.flags));
  if (!kPerWord && run > kFewLiterals) {
    return true;
  }
  const std::uint8_t *const literals = c.in;
  go_on(c, literals, run);
  copy_literals<kPerWord>(c, literals, run);
  bool has_half = s.half_byte != 0;
  Stop stop = has_half ? Stop::long_length : until_long_length<kPerWord, false>(c, limits);
  while (stop == Stop::long_length) {
    has_half = true;
    stop = until_long_length<kPerWord, true>(c, limits);
    if (stop == Stop::long_length) {
      has_half = false;
      stop = until_long_length<kPerWord, false>(c, limits);
    }
  }
  c.flags = c.flags >> 1 | kMark; // the match's own is still to come
  s.in_pos = static_cast<std::size_t>(c.in - in.data());
  s.out_pos = static_cast<std::size_t>(c.out - out.data());
  s.flags = static_cast<std::uint32_t>(c.flags >> 32);
  s.flags_left = 63u - static_cast<unsigned>(std::countr_zero(c.flags));
  s.half_byte = has_half ? c.half | 16 : 0;
  return stop == Stop::token;
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
  if (base::has_v3()) {
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
  if (s.flags_left == 0 && in.size() - s.in_pos == 4 &&
      load<std::uint32_t>(in.data() + s.in_pos) == 0xFFFF'FFFF) {
    s.in_pos = in.size();
  }
  return {s.in_pos == in.size() ? CodecStatus::ok : CodecStatus::trailing_input, s.in_pos, s.out_pos};
}

} // namespace etwrelog::codec
