#include "base/seed.hpp"

#include <chrono>
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

} // namespace etwrelog::base
