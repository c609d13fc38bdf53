#include "base/seed.hpp"

#include <chrono>
#include <cstring>
#include <exception>
#include <random>

namespace etwrelog::base {

std::uint64_t hash_seed() {
  static const std::uint64_t seed = [] {
    try {
      std::random_device random;
      return std::uint64_t{random()} << 32 | random();
    } catch (const std::exception &) { // a system that has none: hard to guess all the same
      return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
    }
  }();
  return seed;
}

HashSecret hash_secret() {
  HashSecret secret;
  const SeededHash word;
  for (std::size_t i = 0; i < secret.size(); i += sizeof(std::uint64_t)) {
    const std::uint64_t bytes = word(i);
    std::memcpy(secret.data() + i, &bytes, sizeof bytes);
  }
  return secret;
}

} // namespace etwrelog::base
