#include "etwrelog/clock.hpp"

#include "base/filetime.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace etwrelog {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();

std::int64_t saturated(long double value) {
  // Both bounds are exact in the 64-bit mantissa; where long double is shorter they round outwards.
  if (!(value < static_cast<long double>(kMax))) return kMax; // nor is what is no number
  if (value <= static_cast<long double>(kMin)) return kMin;
  return static_cast<std::int64_t>(value);
}

std::int64_t add_saturated(std::int64_t a, std::int64_t b) {
  if (b > 0 && a > kMax - b) return kMax;
  if (b < 0 && a < kMin - b) return kMin;
  return a + b;
}

std::int64_t subtract_saturated(std::int64_t a, std::int64_t b) {
  if (b < 0 && a > kMax + b) return kMax;
  if (b > 0 && a < kMin + b) return kMin;
  return a - b;
}

// value * multiplier / divisor, rounded towards zero; exact while multiplier and divisor are below 2^31.
std::int64_t scale(std::int64_t value, std::int64_t multiplier, std::int64_t divisor) {
  if (divisor <= 0 || multiplier <= 0) return 0; // a header that says nothing of use
  if (divisor == multiplier) return value;       // Windows 10 counts in units of 100 ns
  if (divisor >= (std::int64_t{1} << 31) || multiplier >= (std::int64_t{1} << 31))
    return saturated(static_cast<long double>(value) * static_cast<long double>(multiplier) /
                     static_cast<long double>(divisor));
  const std::int64_t whole = value / divisor, rest = value % divisor;
  const std::int64_t part = rest * multiplier / divisor;
  if (whole > 0 && whole > (kMax - part) / multiplier) return kMax;
  if (whole < 0 && whole < (kMin - part) / multiplier) return kMin;
  return whole * multiplier + part;
}

// Enough for the rounding of both directions.
constexpr int kMaxSteps = 4;

struct Rate {
  std::int64_t filetime, ticks; // that many units of 100 ns per that many ticks
};

Rate rate(const Clock &clock) {
  switch (clock.type) {
  case format::ClockType::system_time: return {1, 1};
  case format::ClockType::cpu_cycles: return {10, clock.cpu_mhz};
  default: return {kFiletimePerSecond, clock.perf_freq};
  }
}

} // namespace

std::int64_t Clock::ticks_per_second() const {
  const Rate r = rate(*this);
  return scale(kFiletimePerSecond, r.ticks, r.filetime);
}

std::int64_t Clock::to_filetime(std::int64_t raw) const {
  if (type == format::ClockType::system_time) return raw;
  const Rate r = rate(*this);
  return add_saturated(start_time, scale(subtract_saturated(raw, first_stamp), r.filetime, r.ticks));
}

double Clock::to_seconds(std::int64_t raw) const {
  return span_seconds(subtract_saturated(raw, first_stamp));
}

double Clock::span_seconds(std::int64_t ticks) const {
  const Rate r = rate(*this);
  if (r.ticks <= 0) return 0;
  return static_cast<double>(ticks) / static_cast<double>(r.ticks) * static_cast<double>(r.filetime) /
         static_cast<double>(kFiletimePerSecond);
}

std::int64_t Clock::filetime_after(double seconds) const {
  const std::int64_t begin = type == format::ClockType::system_time ? first_stamp : start_time;
  const std::int64_t ticks = saturated(std::round(seconds * static_cast<double>(kFiletimePerSecond)));
  return ticks == kMin || ticks == kMax ? ticks : add_saturated(begin, ticks);
}

std::int64_t Clock::from_filetime(std::int64_t filetime) const {
  if (type == format::ClockType::system_time) return filetime;
  const Rate r = rate(*this);
  // scale() rounds towards zero, here and in to_filetime(): before the start the ticks of a moment begin
  // where those of the one before it end. Step to the first tick that is not before the moment. One or two do
  // it; where a sum has saturated none would.
  const std::int64_t since = subtract_saturated(filetime, start_time);
  std::int64_t raw = since > 0
                         ? add_saturated(first_stamp, scale(since, r.ticks, r.filetime))
                         : add_saturated(first_stamp, scale(add_saturated(since, -1), r.ticks, r.filetime));
  for (int step = 0; step < kMaxSteps && raw < kMax && to_filetime(raw) < filetime; ++step)
    ++raw;
  return raw;
}

std::string_view clock_name(format::ClockType type) {
  switch (type) {
  case format::ClockType::qpc: return "QPC";
  case format::ClockType::system_time: return "system time";
  case format::ClockType::cpu_cycles: return "CPU cycles";
  }
  return "unknown";
}

namespace {
constexpr std::int64_t kTicksPerDay = 86400 * kFiletimePerSecond;
} // namespace

std::string filetime_text(std::int64_t filetime) {
  if (filetime == 0) return "-";
  const std::int64_t days = filetime / kTicksPerDay, rest = filetime % kTicksPerDay;
  const std::chrono::sys_days day = base::kFiletimeEpoch + std::chrono::days(days);
  if (filetime < 0 || day >= base::kEndOfDates) return fmt::format("{}", filetime);
  const std::chrono::year_month_day date{day};
  const std::int64_t seconds = rest / kFiletimePerSecond;
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}.{:07}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), seconds / 3600,
                     seconds / 60 % 60, seconds % 60, rest % kFiletimePerSecond);
}

std::optional<std::int64_t> parse_filetime(std::string_view text) {
  if (!text.empty() && (text.back() == 'Z' || text.back() == 'z')) text.remove_suffix(1);
  std::string whole;
  if (text.size() == 10 || text.size() == 16) { // a day, a minute: their beginning
    whole = text;
    whole += text.size() == 10 ? " 00:00:00" : ":00";
    text = whole;
  }
  auto number = [&text](std::size_t at, std::size_t digits) -> int {
    int value = 0;
    for (std::size_t i = at; i < at + digits; ++i) {
      if (i >= text.size() || text[i] < '0' || text[i] > '9') return -1;
      value = value * 10 + (text[i] - '0');
    }
    return value;
  };
  if (text.size() < 19 || text[4] != '-' || text[7] != '-' || (text[10] != ' ' && text[10] != 'T') ||
      text[13] != ':' || text[16] != ':')
    return std::nullopt;
  const int year = number(0, 4), month = number(5, 2), day = number(8, 2), hour = number(11, 2),
            minute = number(14, 2), second = number(17, 2);
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (year < 1601 || month < 0 || day < 0 || !date.ok() || hour < 0 || hour > 23 || minute < 0 ||
      minute > 59 || second < 0 || second > 59)
    return std::nullopt;
  std::int64_t fraction = 0;
  if (text.size() > 19) {
    if (text[19] != '.' || text.size() > 27 || text.size() == 20) return std::nullopt;
    const int value = number(20, text.size() - 20);
    if (value < 0) return std::nullopt;
    fraction = value;
    for (std::size_t i = text.size(); i < 27; ++i)
      fraction *= 10;
  }
  const std::int64_t days = (std::chrono::sys_days(date) - base::kFiletimeEpoch).count();
  return days * kTicksPerDay + (hour * 3600 + minute * 60 + second) * kFiletimePerSecond + fraction;
}

} // namespace etwrelog
