// What of LZNT1 both directions need.
#pragma once

#include <bit>
#include <cstddef>

namespace etwrelog::codec {

inline constexpr std::size_t kLznt1Chunk = 4096;
inline constexpr std::size_t kLznt1MinMatch = 3;

// Bits of a token that hold the distance after `done` bytes of the chunk: the fewest, from 4 on, that can
// express every distance.
[[nodiscard]] constexpr unsigned lznt1_distance_bits(std::size_t done) {
  return done <= 16 ? 4u : static_cast<unsigned>(std::bit_width(done - 1));
}

// The longest match that a token can state there.
[[nodiscard]] constexpr std::size_t lznt1_max_match(std::size_t done) {
  return kLznt1MinMatch + (std::size_t{1} << (16 - lznt1_distance_bits(done))) - 1;
}

} // namespace etwrelog::codec
