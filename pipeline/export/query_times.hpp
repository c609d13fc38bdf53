// Times in SQL, and what time statements ask for before there is a table that it could be asked of.
#pragma once

#include "etwrelog/clock.hpp"
#include "etwrelog/select.hpp"
#include "filter/filter.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

namespace etwrelog::pipeline {

// FILETIMEs, both ends included, a little more than asked for.
struct AskedTimes {
  std::int64_t from = INT64_MIN, to = INT64_MAX;

  void not_before(std::int64_t filetime) {
    if (filetime != INT64_MIN) from = std::max(from, filetime - 1);
  }
  void not_after(std::int64_t filetime) {
    if (filetime != INT64_MAX) to = std::min(to, filetime + 1);
  }
};

// The times outside of which no row of a table of events matters to the statements: by the conditions on
// `time` and `timestamp` that SQLite finds to hold for each of the tables, whatever these are called. None
// where some of them is asked for all of its rows, or that cannot be told.
// Tables of processes, threads and images do not count: they are known whole whatever time is read.
[[nodiscard]] std::optional<AskedTimes> times_of(const std::string &sql, const Clock &clock);

// Selects the times that are asked for within those of the whole; false if there are none.
template <class Selected>
bool narrow(Selected &selected, AskedTimes times, const filter::TimeRange &whole, const Clock &clock) {
  if (whole.from != INT64_MIN) times.not_before(clock.to_filetime(whole.from));
  if (whole.to != INT64_MAX) times.not_after(clock.to_filetime(whole.to));
  if (times.from != INT64_MIN) selected.from = Moment{false, 0, times.from};
  if (times.to != INT64_MAX) selected.to = Moment{false, 0, times.to};
  return times.from <= times.to;
}

// The FILETIME of a value of `time` (nanoseconds since 1970), or of `timestamp` (`raw`); none before 1970,
// where all that are later are, too, or where the clock has none.
[[nodiscard]] std::optional<std::int64_t> filetime_asked(const Clock &clock, bool raw, std::int64_t value);

} // namespace etwrelog::pipeline
