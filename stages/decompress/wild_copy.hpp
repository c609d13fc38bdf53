// Copies in steps of a fixed width that may write past their end: only for places where the caller has checked
// the margin. All of it is plain memcpy of a constant size, which compilers turn into single moves.
#pragma once

#include "etwrelog/bytes.hpp"
#include "stages/shared/cpu.hpp"

namespace etwrelog::codecs {

ETWRELOG_ALWAYS_INLINE void copy16(std::uint8_t *to, const std::uint8_t *from) {
  struct Block {
    std::uint64_t words[2];
  };
  store(to, load<Block>(from));
}

// Room that the copies below need behind the match's end.
inline constexpr std::size_t kCopySlack = 32;

// Copies from `from` to [to, end) and up to kCopySlack bytes past it; the two are at least 16 bytes apart, or do
// not overlap.
ETWRELOG_ALWAYS_INLINE void copy_blocks(std::uint8_t *to, const std::uint8_t *from, const std::uint8_t *end) {
  do {
    copy16(to, from);
    copy16(to + 16, from + 16);
    to += 32;
    from += 32;
  } while (to < end);
}

// For distances up to 8: what keeps the first `distance` bytes of a word, what repeats them over the word, and by how
// much the word may move on with the pattern unbroken.
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

// A match at a distance below 16, which may overlap itself. Writes less than 8 bytes past the end.
ETWRELOG_ALWAYS_INLINE void copy_overlapping(std::uint8_t *to, std::size_t distance, std::size_t length) {
  const std::uint8_t *const end = to + length;
  if (distance >= 8) {
    do {
      store(to, load<std::uint64_t>(to - distance));
      to += 8;
    } while (to < end);
  } else {
    const std::uint64_t pattern = repeat(load<std::uint64_t>(to - distance), distance);
    do {
      store(to, pattern);
      to += kPatternStep[distance];
    } while (to < end);
  }
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

} // namespace etwrelog::codecs
