// Times of one source in the clock of another.
#pragma once

#include "etwrelog/clock.hpp"

namespace etwrelog::pipeline {

class ClockMap {
public:
  ClockMap() = default; // of the same clock
  // Different clocks are brought together through UTC, at the resolution of FILETIME (100 ns).
  ClockMap(const Clock &from, const Clock &to) : same_(false), from_(from), to_(to) {}

  [[nodiscard]] bool same() const { return same_; }
  [[nodiscard]] std::int64_t operator()(std::int64_t raw) const {
    return same_ ? raw : to_.from_filetime(from_.to_filetime(raw));
  }

private:
  bool same_ = true;
  Clock from_, to_;
};

} // namespace etwrelog::pipeline
