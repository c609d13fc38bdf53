// `etwrelog stacks`: how often the stacks of a trace repeat, and what caching them saves.
#pragma once

#include "etwrelog/stacks.hpp"
#include "passes/pass.hpp"
#include "passes/stack_simulation.hpp"
#include "stacks/stack_database.hpp"

namespace etwrelog::pipeline {

using etwrelog::StackGroup;
using etwrelog::StackReport;

struct StackReportOptions {
  std::size_t top = 10;
  std::vector<stacks::StackCacheSim::Options> simulate;
  stacks::StackDatabaseWriter *database = nullptr; // gets every reference and the table
  std::size_t memory = std::size_t{1} << 30; // for what grows with the trace; a report that needs more fails
};

// Each trace is read twice. Several are of one machine and boot: a key means one stack in all of them.
[[nodiscard]] Result<StackReport> report_stacks(Traces traces, const StackReportOptions &options,
                                                const PassOptions &graph);
[[nodiscard]] Result<StackReport> report_stacks(const Trace &trace, const StackReportOptions &options,
                                                const PassOptions &graph);

} // namespace etwrelog::pipeline
