// What a moment means in ticks of a clock: both ends are included as they are shown, whatever the clock's
// rate.
#include "filter/filter.hpp"

#include <gtest/gtest.h>

namespace etwrelog {
namespace {

Clock clock_of(std::int64_t frequency) {
  Clock clock;
  clock.type = format::ClockType::qpc;
  clock.perf_freq = frequency;
  clock.first_stamp = 5'000'000'000;
  clock.start_time = 132'500'000'000'000'000;
  return clock;
}

TEST(SelectedTime, HasAllTicksThatAreShownAsItsEndsAndNoOthers) {
  for (const std::int64_t frequency :
       {std::int64_t{2'343'750}, std::int64_t{3'579'545}, std::int64_t{10'000'000}, std::int64_t{24'000'000},
        std::int64_t{2'400'000'000}}) {
    const Clock clock = clock_of(frequency);
    for (std::int64_t tick = clock.first_stamp + 10'000; tick < clock.first_stamp + 10'200; ++tick) {
      const std::int64_t shown = clock.to_filetime(tick);
      Selection selection;
      selection.from = selection.to = Moment{false, 0, shown};
      const filter::TimeRange range = filter::selected_time(selection, clock);
      EXPECT_TRUE(range.contains(tick)) << frequency;
      EXPECT_EQ(clock.to_filetime(range.from), shown);
      EXPECT_EQ(clock.to_filetime(range.to), shown);
      EXPECT_LT(clock.to_filetime(range.from - 1), shown);
      EXPECT_GT(clock.to_filetime(range.to + 1), shown);
    }
  }
}

TEST(SelectedTime, BetweenTwoTicksThereIsNothingWhichIsNoMistake) {
  const Clock clock = clock_of(2'343'750);
  Selection selection;
  selection.from = selection.to = Moment{false, 0, clock.start_time + 2}; // ticks are at 0 and 4
  const filter::TimeRange range = filter::selected_time(selection, clock);
  EXPECT_GT(range.from, range.to);
  EXPECT_TRUE(filter::check_range(range));
  selection.to = Moment{false, 0, clock.start_time - 10};
  EXPECT_FALSE(filter::check_range(filter::selected_time(selection, clock)));
}

} // namespace
} // namespace etwrelog
