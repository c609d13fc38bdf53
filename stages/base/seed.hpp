// What tables by keys out of a file are mixed with, so that nobody can choose keys that all meet in one
// place.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace etwrelog::base {

// Random, one for the process. Nothing that is written or shown may depend on it.
[[nodiscard]] std::uint64_t hash_seed();
// Of the same, for XXH3: without one anybody can tell what meets, and with a seed instead it makes a secret
// of it for every input above 240 bytes.
using HashSecret = std::array<std::uint8_t, 192>;
[[nodiscard]] HashSecret hash_secret();

// For maps of the standard library, whose own hash of a number is that number.
struct SeededHash {
  std::size_t operator()(std::uint64_t key) const noexcept {
    std::uint64_t h = (key ^ seed) * 0x9E37'79B9'7F4A'7C15ull;
    h = (h ^ h >> 32) * 0xD6E8'FEB8'6659'FD93ull;
    return static_cast<std::size_t>(h ^ h >> 32);
  }
  std::uint64_t seed = hash_seed();
};

} // namespace etwrelog::base
