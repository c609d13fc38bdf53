#pragma once

#include "etwrelog/run.hpp"

#include <chrono>
#include <functional>

namespace etwrelog::base {

// Tells a caller how far things are, at most ten times a second. For serial steps.
class ProgressMeter {
public:
  explicit ProgressMeter(const std::function<void(const Progress &)> &tell) : tell_(tell) {}

  void begin(std::string_view phase, std::uint64_t total) {
    now_ = {phase, 0, total, 0};
    told_ = {};
  }
  void advance(std::uint64_t bytes, std::uint64_t events = 0) {
    now_.done += bytes;
    now_.events += events;
    if (!tell_ || silent_) return;
    const auto time = Clock::now();
    const bool at_end = now_.total != 0 && now_.done >= now_.total;
    if (time - told_ < std::chrono::milliseconds(100) && !at_end) return;
    told_ = time;
    try {
      tell_(now_);
    } catch (...) { // of the caller's: the phase goes on without
      silent_ = true;
    }
  }

private:
  using Clock = std::chrono::steady_clock;
  const std::function<void(const Progress &)> &tell_;
  bool silent_ = false;
  Progress now_;
  Clock::time_point told_{};
};

} // namespace etwrelog::base
