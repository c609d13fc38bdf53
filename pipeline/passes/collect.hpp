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

// One of the traces that a filter is over.
struct FilteredTrace {
  const Trace *trace;
  std::uint32_t first_buffer = 0;    // where its buffers begin in the numbering of the filter's lifetimes
  const KeptBuffers *kept = nullptr; // as run_pass() takes it
};
// When the filter has its marks: of a selection by kind, whose names of code stay. Reads only where there may
// be any.
[[nodiscard]] Result<void> settle_names_of_code(std::span<const FilteredTrace> traces, filter::Filter &filter,
                                                const PassOptions &options);
// All that the filter has to know before it decides.
[[nodiscard]] Result<void> settle_filter(std::span<const FilteredTrace> traces, filter::Filter &filter,
                                         const PassOptions &options);

} // namespace etwrelog::pipeline
