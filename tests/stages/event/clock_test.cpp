#include "etwrelog/clock.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace etwrelog {
namespace {

using format::ClockType;
constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max(),
                       kMin = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kStart = 132'404'000'000'000'000;

TEST(Clock, CountsQpcTicksFromTheHeaderEvent) {
  const Clock clock{ClockType::qpc, 2'337'949, 0, 795'742'366'506, kStart};
  EXPECT_EQ(clock.to_filetime(clock.first_stamp), kStart);
  EXPECT_EQ(clock.to_filetime(clock.first_stamp + 2'337'949), kStart + kFiletimePerSecond);
  EXPECT_DOUBLE_EQ(clock.to_seconds(clock.first_stamp + 2'337'949 * 3), 3.0);
  EXPECT_DOUBLE_EQ(clock.to_seconds(clock.first_stamp - 2'337'949), -1.0);
  EXPECT_EQ(clock.ticks_per_second(), 2'337'949);
  for (const std::int64_t frequency : {std::int64_t{10'000'000}, std::int64_t{2'995'200'000}})
    EXPECT_EQ((Clock{ClockType::qpc, frequency, 0, 0, kStart}.ticks_per_second()), frequency);
}

TEST(Clock, TakesSystemTimeAsItIs) {
  const Clock clock{ClockType::system_time, 1, 0, kStart, kStart + 5};
  EXPECT_EQ(clock.to_filetime(kStart + 77), kStart + 77);
  EXPECT_EQ(clock.from_filetime(kStart + 77), kStart + 77);
  EXPECT_DOUBLE_EQ(clock.to_seconds(kStart + 15'000'000), 1.5);
  EXPECT_EQ(clock.ticks_per_second(), kFiletimePerSecond);
}

TEST(Clock, DividesCpuCyclesByTheCpuSpeed) {
  const Clock clock{ClockType::cpu_cycles, 10'000'000, 2400, 1000, kStart};
  EXPECT_EQ(clock.to_filetime(1000 + 2'400'000'000), kStart + kFiletimePerSecond);
  EXPECT_DOUBLE_EQ(clock.to_seconds(1000 + 1'200'000'000), 0.5);
  EXPECT_EQ(clock.ticks_per_second(), 2'400'000'000);
}

TEST(Clock, FindsTheFirstTickAtOrAfterAMoment) {
  for (const Clock &clock :
       {Clock{ClockType::qpc, 10'000'000, 0, 5000, kStart}, Clock{ClockType::qpc, 2'337'949, 0, -7, kStart},
        Clock{ClockType::qpc, 3'579'545, 0, 1ll << 50, kStart},
        Clock{ClockType::cpu_cycles, 1, 2394, 99, kStart},
        Clock{ClockType::system_time, 1, 0, kStart, kStart}}) {
    std::mt19937_64 random(7);
    for (int i = 0; i < 2000; ++i) {
      const std::int64_t apart = static_cast<std::int64_t>(random() % 1'000'000'000'000);
      const std::int64_t moment = i % 2 == 0 ? kStart + apart : kStart - apart; // before the start, too
      const std::int64_t raw = clock.from_filetime(moment);
      ASSERT_GE(clock.to_filetime(raw), moment) << clock.perf_freq;
      ASSERT_LT(clock.to_filetime(raw - 1), moment) << clock.perf_freq;
    }
  }
}

TEST(Clock, StaysExactOverYears) {
  const Clock clock{ClockType::qpc, 2'147'483'647, 0, 0, kStart};
  const std::int64_t seconds = 4'000'000'000; // 127 years
  EXPECT_EQ(clock.to_filetime(2'147'483'647ll * seconds), kStart + seconds * kFiletimePerSecond);
}

TEST(Clock, SaturatesWhateverTheFieldsSay) {
  const std::int64_t edges[] = {kMin,     kMin + 1, -5'000'000'000'000'000'000, -1, 0, 1, 1 << 30, kStart,
                                kMax - 1, kMax};
  for (const ClockType type :
       {ClockType::qpc, ClockType::system_time, ClockType::cpu_cycles, static_cast<ClockType>(77)})
    for (const std::int64_t frequency :
         {kMin, std::int64_t{-5}, std::int64_t{0}, std::int64_t{1}, std::int64_t{10'000'000}, kMax})
      for (const std::uint32_t mhz : {0u, 1u, 0xFFFF'FFFFu})
        for (const std::int64_t first : edges)
          for (const std::int64_t start : edges) {
            const Clock clock{type, frequency, mhz, first, start};
            EXPECT_GE(clock.ticks_per_second(), 0);
            for (const std::int64_t time : edges) {
              (void)clock.to_filetime(time);
              (void)clock.to_seconds(time);
              (void)clock.from_filetime(time); // neither overflows, divides by zero nor searches for ever
              (void)clock.span_seconds(time);
            }
            for (const double seconds : {-1e300, -1e12, 0.0, 1e12, 1e300, std::nan("")})
              (void)clock.filetime_after(seconds);
          }
}

TEST(Clock, SecondsAfterTheBeginningAreWhereToSecondsHasThem) {
  const std::int64_t first = 1'000'000;
  for (const ClockType type : {ClockType::qpc, ClockType::system_time, ClockType::cpu_cycles}) {
    // Of a system clock the stamps are times of day: its trace begins at the first, whatever else is said.
    const Clock clock{type, 3'000'000, 2'400, type == ClockType::system_time ? kStart + 77 : first, kStart};
    for (const double seconds : {0.0, 0.5, 12.25, -3.0}) {
      const std::int64_t raw = clock.from_filetime(clock.filetime_after(seconds));
      EXPECT_NEAR(clock.to_seconds(raw), seconds, 1e-6);
      EXPECT_NEAR(clock.span_seconds(raw - clock.first_stamp), seconds, 1e-6);
    }
    EXPECT_EQ(clock.filetime_after(1e300), kMax);
    EXPECT_EQ(clock.filetime_after(-1e300), kMin);
  }
}

TEST(Clock, TimesSince1970EndWhereTheirNumbersEnd) {
  EXPECT_EQ(unix_ticks(kUnixEpoch + 3), 3);
  EXPECT_EQ(unix_ticks(0), -kUnixEpoch);
  EXPECT_EQ(unix_ticks(kMin), kMin);
  EXPECT_EQ(unix_ticks(kMax), kMax - kUnixEpoch);
  EXPECT_EQ(unix_nanoseconds(kUnixEpoch - 1), -100);
  EXPECT_EQ(unix_nanoseconds(*parse_filetime("2262-04-11 23:47:16.8547758")), kMax - 7);
  EXPECT_EQ(unix_nanoseconds(*parse_filetime("2262-04-11 23:47:16.8547759")), kMax);
  EXPECT_EQ(unix_nanoseconds(*parse_filetime("1677-09-21 00:12:43.1452242")), -kMax + 7);
  EXPECT_EQ(unix_nanoseconds(*parse_filetime("1677-09-21 00:12:43.1452241")), -kMax);
  EXPECT_EQ(unix_nanoseconds(0), -kMax);
  EXPECT_EQ(unix_nanoseconds(kMin), -kMax);
  EXPECT_EQ(unix_nanoseconds(kMax), kMax);
}

TEST(Clock, PrintsAndParsesUtc) {
  EXPECT_EQ(filetime_text(0), "-");
  EXPECT_EQ(filetime_text(1), "1601-01-01 00:00:00.0000001Z");
  EXPECT_EQ(filetime_text(132'404'848'206'236'167), "2020-07-29 08:27:00.6236167Z");
  EXPECT_EQ(filetime_text(-5), "-5");
  EXPECT_EQ(filetime_text(kMax), std::to_string(kMax));
  for (const std::int64_t time :
       {1ll, 132'404'848'206'236'167ll, 116'444'736'000'000'000ll, 2'650'467'743'999'999'999ll})
    EXPECT_EQ(parse_filetime(filetime_text(time)), time) << filetime_text(time);
  EXPECT_EQ(parse_filetime("2020-07-29T08:27:00"), 132'404'848'200'000'000);
  EXPECT_EQ(parse_filetime("2020-07-29 08:27:00.5z"), 132'404'848'205'000'000);
  EXPECT_EQ(parse_filetime("2020-02-29 00:00:00"), 132'274'080'000'000'000);
  EXPECT_EQ(parse_filetime("2020-02-29"), 132'274'080'000'000'000);
  EXPECT_EQ(parse_filetime("2020-07-29 08:27"), 132'404'848'200'000'000);
  EXPECT_EQ(parse_filetime("2020-07-29T08:27Z"), 132'404'848'200'000'000);
  for (const char *bad : {"", "2020", "2020-07-2x", "2020-07-29 08.27", "2021-02-29", "2020-13-01 00:00:00",
                          "2021-02-29 00:00:00", "2020-01-01 24:00:00", "2020-01-01 00:60:00",
                          "2020-01-01 00:00:60", "2020-01-01 00:00:00.", "2020-01-01 00:00:00.12345678",
                          "2020-01-01x00:00:00", "1600-01-01 00:00:00", "2020-01-01 00:00:-1", "12.5s"})
    EXPECT_FALSE(parse_filetime(bad)) << bad;
}

} // namespace
} // namespace etwrelog
