// By what events of a trace are found again.
#pragma once

#include <cstdint>
#include <span>

namespace etwrelog::pipeline {

[[nodiscard]] inline std::uint64_t hash_words(std::span<const std::uint64_t> words) {
  std::uint64_t h = words.size() * 0x9E37'79B9'7F4A'7C15ull;
  for (const std::uint64_t word : words)
    h = (h ^ word) * 0xD6E8'FEB8'6659'FD93ull, h ^= h >> 32;
  return h;
}

} // namespace etwrelog::pipeline
