#pragma once

#include "etwrelog/bytes.hpp"

#include <bit>

namespace etwrelog::codec {

// How many bytes from a and b on are equal, b not going past `end` (a is before b, so neither does a).
[[nodiscard]] inline std::size_t match_length(const std::uint8_t *a, const std::uint8_t *b,
                                              const std::uint8_t *end) {
  const std::uint8_t *const start = b;
  while (end - b >= 8) {
    const std::uint64_t difference = load<std::uint64_t>(a) ^ load<std::uint64_t>(b);
    if (difference != 0) {
      return static_cast<std::size_t>(b - start) + static_cast<std::size_t>(std::countr_zero(difference)) / 8;
    }
    a += 8;
    b += 8;
  }
  while (b < end && *a == *b) {
    ++a;
    ++b;
  }
  return static_cast<std::size_t>(b - start);
}

} // namespace etwrelog::codec
