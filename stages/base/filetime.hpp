// FILETIME for the standard library's calendar.
#pragma once

#include "etwrelog/clock.hpp"

#include <chrono>

namespace etwrelog::base {

using FiletimeTicks = std::chrono::duration<std::int64_t, std::ratio<1, kFiletimePerSecond>>;

inline constexpr std::chrono::sys_days kFiletimeEpoch = std::chrono::year{1601} / 1 / 1;
// Behind the last day whose year has four digits: no time is printed as a date from then on.
inline constexpr std::chrono::sys_days kEndOfDates = std::chrono::year{10000} / 1 / 1;

} // namespace etwrelog::base
