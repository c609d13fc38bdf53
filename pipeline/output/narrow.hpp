// What a relog of an archive need not read: segments of which the index says that nothing in them is kept but
// what the index has itself.
#pragma once

#include "output/relog.hpp"
#include "source/trace.hpp"

namespace etwrelog::pipeline {

// The trace without what lies outside the selected time or, where it is worth asking, holds nothing of the
// selected processes. nullopt where nothing can be left out, also because the report or the stacks need every
// event.
[[nodiscard]] Result<std::optional<Trace>> narrowed(const Trace &whole, const RelogOptions &options);

// Counts what was left out, as reading it would have; but all that lies outside the selected time as such,
// also stacks, which reading it would tell from events.
void report_left_out(const Trace &narrowed, const Selection &selection, RelogReport &report);

} // namespace etwrelog::pipeline
