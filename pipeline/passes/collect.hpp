// The pass that learns which processes and threads there were, and when.
#pragma once

#include "filter/filter.hpp"
#include "passes/pass.hpp"

namespace etwrelog::pipeline {

// Pass 1 of every command that attributes events: processes, threads, stack definitions.
[[nodiscard]] Result<filter::Lifetimes> collect_lifetimes(const Trace &trace, const PassOptions &options,
                                                          PassResult &result,
                                                          const char *name = "reading processes");

// What the events that the filter will keep refer to. `first_buffer`: where the trace's buffers begin in the
// numbering of the filter's lifetimes; `kept`: as run_pass() takes it.
[[nodiscard]] Result<void> collect_references(const Trace &trace, const filter::Filter &filter,
                                              std::uint32_t first_buffer, const PassOptions &options,
                                              filter::Marks &marks, const KeptBuffers *kept = nullptr);

// When the filter has its marks: adds the processes whose names of code stay, for Filter::set_code_processes.
// Reads only where there may be any.
[[nodiscard]] Result<void> collect_code_processes(const Trace &trace, const filter::Filter &filter,
                                                  std::uint32_t first_buffer, const PassOptions &options,
                                                  std::unordered_set<std::uint32_t> &processes,
                                                  const KeptBuffers *kept = nullptr);

} // namespace etwrelog::pipeline
