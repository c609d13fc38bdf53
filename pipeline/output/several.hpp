// Several traces of one machine and boot relogged into one: events kept byte for byte, in the order of time
// on each processor, and of one input and processor in the order in which they stand there.
#pragma once

#include "output/relog.hpp"

namespace etwrelog::pipeline {

// Whether the traces' times and ids mean the same: clock, its frequency, time of boot. The error names what
// differs.
[[nodiscard]] Result<void> check_one_boot(Traces traces);

// `traces`: two or more. Buffers are filled anew, as Windows' merge fills them (docs/architecture.md); with
// keep_grouping they stay whole, in the order of their first events, and as they are stored where all of
// their events stay and no codec is asked for. Stacks are rewritten, if that is asked for, once the traces
// are one; not with keep_grouping. The header event is that of the trace that began first, with the names
// that Windows gives to merged traces.
[[nodiscard]] Result<void> relog_several(Traces traces, const RelogOptions &options, RelogReport &report);

} // namespace etwrelog::pipeline
