// Several traces of one machine and boot relogged into one: events kept byte for byte, in the order of time
// on each processor, and of one input and processor in the order in which they stand there.
#pragma once

#include "output/relog.hpp"

namespace etwrelog::pipeline {

// Whether the traces' times and ids mean the same: clock, its frequency, time of boot. The error names what
// differs.
[[nodiscard]] Result<void> check_one_boot(Traces traces);

// `traces`: two or more. Buffers are filled anew, as Windows' merge fills them (docs/architecture.md); stacks
// are rewritten, if that is asked for, once the traces are one. The header event is that of the trace that
// began first, with the names that Windows gives to merged traces.
[[nodiscard]] Result<void> relog_several(Traces traces, const RelogOptions &options, RelogReport &report);

} // namespace etwrelog::pipeline
