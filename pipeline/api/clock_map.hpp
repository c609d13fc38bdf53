// Times of one source in the clock of another, or of all.
#pragma once

#include "etwrelog/clock.hpp"

#include <algorithm>
#include <cmath>

namespace etwrelog::pipeline {

class ClockMap {
public:
  ClockMap() = default; // of the same clock
  // Different clocks are brought together through UTC. Where the other one is no coarser than FILETIME, a
  // time keeps its FILETIME; where it is no coarser than this one either, times stay in their order, and
  // apart, but for ticks that share a unit of FILETIME.
  ClockMap(const Clock &from, const Clock &to) : same_(false), from_(from), to_(to) {
    const auto to_ticks = static_cast<long double>(to.ticks_per_second());
    ratio_ = to_ticks / static_cast<long double>(std::max<std::int64_t>(1, from.ticks_per_second()));
    const auto apart = static_cast<long double>(from.to_filetime(from.first_stamp)) -
                       static_cast<long double>(to.to_filetime(to.first_stamp));
    first_ = apart * to_ticks / kFiletimePerSecond + static_cast<long double>(to.first_stamp);
  }

  [[nodiscard]] bool same() const { return same_; }
  [[nodiscard]] std::int64_t operator()(std::int64_t raw) const {
    if (same_) return raw;
    const std::int64_t filetime = from_.to_filetime(raw), least = to_.from_filetime(filetime);
    const long double ticks = std::floor(
        first_ + (static_cast<long double>(raw) - static_cast<long double>(from_.first_stamp)) * ratio_);
    constexpr long double kMost = 9e18L;
    if (!(ticks > static_cast<long double>(least)) || ticks > kMost) return least;
    const auto exact = static_cast<std::int64_t>(ticks);
    return to_.to_filetime(exact) == filetime ? exact : least;
  }

private:
  bool same_ = true;
  Clock from_, to_;
  long double ratio_ = 1, first_ = 0; // ticks of `to` a tick of `from`, and at its first stamp
};

} // namespace etwrelog::pipeline
