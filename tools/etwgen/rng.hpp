// Random numbers of the generator: a counter-based stream per (seed, purpose), so that any slice of a trace
// can be made without the ones before it, and integer samplers, so that a seed means the same bytes on every
// machine.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace etwrelog::gen {

[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t x) { // the finaliser of splitmix64
  x = (x ^ (x >> 30)) * 0xBF58'476D'1CE4'E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D0'49BB'1331'11EBull;
  return x ^ (x >> 31);
}
[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  return mix(a * 0x9E37'79B9'7F4A'7C15ull + b + 0x632B'E59B'D9B4'E019ull);
}
[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  return mix(mix(a, b), c);
}

// A probability as a threshold for 32 random bits.
class Chance {
public:
  constexpr Chance() = default;
  constexpr explicit Chance(double p) : limit_(static_cast<std::uint64_t>(p * 4294967296.0)) {}
  [[nodiscard]] constexpr bool hit(std::uint32_t bits) const { return bits < limit_; }

private:
  std::uint64_t limit_ = 0;
};

class Rng {
public:
  explicit Rng(std::uint64_t seed) : state_(mix(seed)) {}

  std::uint64_t next() { return mix(state_ += 0x9E37'79B9'7F4A'7C15ull); }
  std::uint32_t bits() { return static_cast<std::uint32_t>(next() >> 32); }
  std::uint32_t below(std::uint32_t n) {
    return static_cast<std::uint32_t>((std::uint64_t{bits()} * n) >> 32);
  }
  std::uint32_t between(std::uint32_t low, std::uint32_t high) { return low + below(high - low + 1); }
  bool hit(const Chance &chance) { return chance.hit(bits()); }
  // Exponentially distributed with this mean, at least 1.
  std::int64_t gap(std::int64_t mean);

private:
  std::uint64_t state_;
};

namespace detail {
// -ln of 1024 equidistant points of (0, 1), in 1/1024.
inline const std::array<std::uint32_t, 1024> kExponential = [] {
  std::array<std::uint32_t, 1024> t{};
  for (std::size_t i = 0; i < t.size(); ++i)
    t[i] =
        static_cast<std::uint32_t>(std::lround(-std::log((static_cast<double>(i) + 0.5) / 1024.0) * 1024.0));
  return t;
}();
} // namespace detail

inline std::int64_t Rng::gap(std::int64_t mean) {
  const std::uint64_t r = next();
  const std::int64_t scaled = mean * detail::kExponential[r & 1023] / 1024;
  // The table is coarse at its short end; a little uniform noise keeps gaps from repeating.
  return 1 + scaled +
         static_cast<std::int64_t>(((r >> 32) * static_cast<std::uint64_t>(mean / 64 + 1)) >> 32);
}

// Zipf-like ranks 0, 1, 2, ...: weights of k^-s by octave, uniform inside one. The octave form makes draws
// cheap and exact in integers; what matters here, how fast new ranks keep coming, is that of Zipf's law.
class Zipf {
public:
  Zipf() = default;
  Zipf(double exponent, unsigned octaves) {
    double sum = 0;
    std::vector<double> weights;
    for (unsigned j = 0; j < octaves; ++j) {
      double w = 0;
      if (j < 10)
        for (std::uint32_t k = 1u << j; k < (2u << j); ++k)
          w += std::pow(k, -exponent);
      else
        w = weights.back() * std::pow(2.0, 1.0 - exponent);
      weights.push_back(w);
      sum += w;
    }
    double upto = 0;
    for (const double w : weights) {
      upto += w;
      cumulative_.push_back(static_cast<std::uint64_t>(upto / sum * 4294967296.0));
    }
    cumulative_.back() = std::uint64_t{1} << 32;
  }

  [[nodiscard]] std::uint64_t draw(std::uint64_t bits) const {
    const std::uint64_t high = bits >> 32;
    unsigned j = 0;
    while (high >= cumulative_[j])
      ++j;
    return (std::uint64_t{1} << j) - 1 + (mix(bits) & ((std::uint64_t{1} << j) - 1));
  }

private:
  std::vector<std::uint64_t> cumulative_;
};

} // namespace etwrelog::gen
