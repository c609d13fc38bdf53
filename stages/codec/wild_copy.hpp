// Copies in steps of a fixed width that may write past their end: only for places where the caller has
// checked the margin. All of it is plain memcpy of a constant size, which compilers turn into single moves.
#pragma once

#include "base/cpu.hpp"
#include "etwrelog/bytes.hpp"

namespace etwrelog::codec {

struct Block16 {
  std::uint64_t words[2];
};

ETWRELOG_ALWAYS_INLINE void copy16(std::uint8_t *to, const std::uint8_t *from) {
  store(to, load<Block16>(from));
}

// Room that the copies below need behind the match's end.
inline constexpr std::size_t kCopySlack = 32;

// Copies from `from` to [to, end) and up to kCopySlack bytes past it; the two are at least 16 bytes apart, or
// do not overlap.
ETWRELOG_ALWAYS_INLINE void copy_blocks(std::uint8_t *to, const std::uint8_t *from, const std::uint8_t *end) {
  do {
    copy16(to, from);
    copy16(to + 16, from + 16);
    to += 32;
    from += 32;
  } while (to < end);
}

// For distances up to 8: what keeps the first `distance` bytes of a word, what repeats them over the word,
// and by how much the word may move on with the pattern unbroken.
inline constexpr std::uint64_t kPatternMask[9] = {0,
                                                  0xFF,
                                                  0xFFFF,
                                                  0xFF'FFFF,
                                                  0xFFFF'FFFF,
                                                  0xFF'FFFF'FFFF,
                                                  0xFFFF'FFFF'FFFF,
                                                  0xFF'FFFF'FFFF'FFFF,
                                                  0xFFFF'FFFF'FFFF'FFFF};
inline constexpr std::uint64_t kPatternFactor[9] = {0,
                                                    0x0101'0101'0101'0101,
                                                    0x0001'0001'0001'0001,
                                                    0x0001'0000'0100'0001,
                                                    0x0000'0001'0000'0001,
                                                    0x0000'0100'0000'0001,
                                                    0x0001'0000'0000'0001,
                                                    0x0100'0000'0000'0001,
                                                    1};
inline constexpr std::uint8_t kPatternStep[9] = {0, 8, 8, 6, 8, 5, 6, 7, 8};

ETWRELOG_ALWAYS_INLINE std::uint64_t repeat(std::uint64_t word, std::size_t distance) {
  return (word & kPatternMask[distance]) * kPatternFactor[distance];
}

// A match that may overlap itself; up to kCopySlack bytes may be written past its end. 32 bytes at once,
// since the number of rounds is hard to predict.
ETWRELOG_ALWAYS_INLINE void copy_overlapping(std::uint8_t *to, std::size_t distance, std::size_t length) {
  const std::uint8_t *const end = to + length;
  if (distance <= 8) {
    const std::uint64_t pattern = repeat(load<std::uint64_t>(to - distance), distance);
    const std::size_t step = kPatternStep[distance];
    do {
      store(to, pattern);
      store(to + step, pattern);
      store(to + 2 * step, pattern);
      store(to + 3 * step, pattern);
      to += 4 * step;
    } while (to < end);
  } else {
    const std::uint8_t *from = to - distance;
    do {
      store(to, load<std::uint64_t>(from));
      store(to + 8, load<std::uint64_t>(from + 8));
      store(to + 16, load<std::uint64_t>(from + 16));
      store(to + 24, load<std::uint64_t>(from + 24));
      to += 32;
      from += 32;
    } while (to < end);
  }
}

// Copies kSize bytes to a match's place, however many of them it has; they are at least as far apart as it is
// long. All loads stand before the stores: a load waits for stores of its bytes that are still on their way
// to memory, and the match's own are not among those it needs. Worth a quarter of the time where matches are
// near and short.
template <std::size_t kSize>
ETWRELOG_ALWAYS_INLINE void copy_apart(std::uint8_t *to, const std::uint8_t *from) {
  static_assert(kSize == 40 || kSize == 64);
  const auto a = load<Block16>(from);
  const auto b = load<Block16>(from + 16);
  if constexpr (kSize == 40) {
    const auto c = load<std::uint64_t>(from + 32);
    store(to + 32, c);
  } else {
    const auto c = load<Block16>(from + 32);
    const auto d = load<Block16>(from + 48);
    store(to + 32, c);
    store(to + 48, d);
  }
  store(to, a);
  store(to + 16, b);
}

// Any checked match, within `out`.
inline void copy_any(MutableBytes out, std::size_t pos, std::size_t distance, std::size_t length) {
  std::uint8_t *const to = out.data() + pos;
  if (out.size() - pos - length < kCopySlack) {
    for (std::size_t i = 0; i < length; ++i) {
      to[i] = *(to + i - distance);
    }
  } else if (distance < 16) {
    copy_overlapping(to, distance, length);
  } else {
    copy_blocks(to, to - distance, to + length);
  }
}

} // namespace etwrelog::codec
