// The quick half of the join: most fragments name an event of their own buffer, which stands a few events
// before them.
//
// Of the events of a fragment's time and thread the last on its processor is its owner. If one stands in the
// fragment's own buffer, and not at the buffer's end, then a later one can only come where the buffers of a
// processor overlap in time. That is rare, and seen when they are put together: what was joined at such times
// is taken back and joined with all the rest.
#pragma once

#include "profile/records.hpp"

namespace etwrelog::profile {

// Joins fragments[from..] of a batch with the marks of the buffer that they stand in. `subjects` and
// `fragments` are those of the batch, and so are the numbers that are kept in them.
void join_within(std::span<Subject> subjects, std::span<const Mark> marks, std::span<Fragment> fragments,
                 std::size_t from);

[[nodiscard]] TimeRange times_of(std::span<const Mark> marks);

// Finds the times at which the buffers of a processor overlap.
class Overlaps {
public:
  // The times of a buffer's marks; buffers in the order of the file.
  void add(std::uint16_t processor, TimeRange times);
  [[nodiscard]] std::vector<TimeRange> take() &&; // sorted, apart from each other

private:
  std::vector<std::int64_t> latest_; // by processor
  std::vector<TimeRange> found_;
};

// Takes back what was joined at these times.
void reopen(Records &records, std::span<const TimeRange> overlaps);

} // namespace etwrelog::profile
