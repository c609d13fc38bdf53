// The pass that learns which processes and threads there were, and when.
#pragma once

#include "filter/lifetimes.hpp"
#include "passes/pass.hpp"

namespace etwrelog::pipeline {

// Pass 1 of every command that attributes events: processes, threads, stack definitions.
[[nodiscard]] Result<filter::Lifetimes> collect_lifetimes(const Trace &trace, const PassOptions &options,
                                                          PassResult &result, StepTimes *times = nullptr);

} // namespace etwrelog::pipeline
