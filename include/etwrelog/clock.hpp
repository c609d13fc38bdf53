// Converts raw time stamps of a trace: three clock types, one origin. A value: copy it, use it on any thread;
// it refers to nothing. No conversion fails or overflows, whatever a file says.
#pragma once

#include "etwrelog/format.hpp"

#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace etwrelog {

inline constexpr std::int64_t kFiletimePerSecond = 10'000'000;      // FILETIME: 100 ns since 1601-01-01 UTC
inline constexpr std::int64_t kUnixEpoch = 116'444'736'000'000'000; // 1970-01-01 UTC, as FILETIME

// Units of 100 ns since 1970; the least there is for FILETIMEs that only damage can say.
[[nodiscard]] constexpr std::int64_t unix_ticks(std::int64_t filetime) {
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  return filetime < kLeast + kUnixEpoch ? kLeast : filetime - kUnixEpoch;
}
// Nanoseconds since 1970, as databases have times. Before 1677 and after 2262 there are none: those of then
// are the least and the most, -INT64_MAX and INT64_MAX.
[[nodiscard]] constexpr std::int64_t unix_nanoseconds(std::int64_t filetime) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const std::int64_t ticks = unix_ticks(filetime);
  return ticks < -kMost / 100 ? -kMost : ticks > kMost / 100 ? kMost : ticks * 100;
}

// A raw time stamp t is (t - first_stamp) ticks after start_time.
struct Clock {
  format::ClockType type = format::ClockType::qpc;
  std::int64_t perf_freq = 10'000'000; // QPC ticks per second
  std::uint32_t cpu_mhz = 0;           // for cpu_cycles
  std::int64_t first_stamp = 0;        // raw time of the logfile header event
  std::int64_t start_time = 0;         // FILETIME of the same moment

  // Of raw time; 0 where the header says nothing of use.
  [[nodiscard]] std::int64_t ticks_per_second() const;
  // Saturates instead of overflowing, whatever the fields say.
  [[nodiscard]] std::int64_t to_filetime(std::int64_t raw) const;
  [[nodiscard]] double to_seconds(std::int64_t raw) const;     // since the trace began
  [[nodiscard]] double span_seconds(std::int64_t ticks) const; // how long so many ticks of raw time are
  // FILETIME of the moment of which to_seconds() is that.
  [[nodiscard]] std::int64_t filetime_after(double seconds) const;
  // The first raw time stamp at or after this moment; the inverse of to_filetime up to the tick.
  [[nodiscard]] std::int64_t from_filetime(std::int64_t filetime) const;
};

[[nodiscard]] std::string_view clock_name(format::ClockType type);

// "2020-07-29 08:27:00.6236167Z"; "-" for 0 (never set). Years outside 1601..9999 are printed as the number.
[[nodiscard]] std::string filetime_text(std::int64_t filetime);
// Parses a time as filetime_text prints it, with 'T' or a blank in the middle, fraction and 'Z' optional; and
// a day or a minute, as the moment when it begins.
[[nodiscard]] std::optional<std::int64_t> parse_filetime(std::string_view text);

} // namespace etwrelog
