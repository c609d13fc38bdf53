#pragma once

#include "base/cpu.hpp"
#include "etwrelog/bytes.hpp"

#include <bit>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace etwrelog::codec {

// How many of the 16 bytes at a and b are equal up to the first that is not; of the 32 bytes.
#ifdef __SSE2__
[[nodiscard]] ETWRELOG_ALWAYS_INLINE std::uint32_t equal_bits16(const std::uint8_t *a,
                                                                const std::uint8_t *b) {
  const __m128i equal = _mm_cmpeq_epi8(load<__m128i>(a), load<__m128i>(b));
  return static_cast<std::uint32_t>(_mm_movemask_epi8(equal));
}
[[nodiscard]] ETWRELOG_ALWAYS_INLINE std::uint32_t equal16(const std::uint8_t *a, const std::uint8_t *b) {
  return static_cast<std::uint32_t>(std::countr_zero(~equal_bits16(a, b) | 1u << 16));
}
[[nodiscard]] ETWRELOG_ALWAYS_INLINE std::uint32_t equal32(const std::uint8_t *a, const std::uint8_t *b) {
  const std::uint32_t equal = equal_bits16(a, b) | equal_bits16(a + 16, b + 16) << 16;
  return static_cast<std::uint32_t>(std::countr_zero(~std::uint64_t{equal} | std::uint64_t{1} << 32));
}
#else
[[nodiscard]] ETWRELOG_ALWAYS_INLINE std::uint32_t equal16(const std::uint8_t *a, const std::uint8_t *b) {
  const std::uint64_t low = load<std::uint64_t>(a) ^ load<std::uint64_t>(b);
  const std::uint64_t high = load<std::uint64_t>(a + 8) ^ load<std::uint64_t>(b + 8);
  const int bits = low != 0 ? std::countr_zero(low) : 64 + std::countr_zero(high);
  return static_cast<std::uint32_t>(bits) / 8;
}
[[nodiscard]] ETWRELOG_ALWAYS_INLINE std::uint32_t equal32(const std::uint8_t *a, const std::uint8_t *b) {
  const std::uint32_t first = equal16(a, b);
  return first < 16 ? first : 16 + equal16(a + 16, b + 16);
}
#endif

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
