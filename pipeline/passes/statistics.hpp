// Counts of a whole trace: what `info` and `stats` print.
#pragma once

#include "etwrelog/archive.hpp"
#include "etwrelog/statistics.hpp"
#include "filter/lifetimes.hpp"
#include "passes/pass.hpp"
#include "schema/event_names.hpp"

namespace etwrelog::pipeline {

using etwrelog::Statistics;

// Reads the trace twice; not at all if it is in an archive that holds them. Fails beyond `most_stacks`
// different stacks or stack keys, which are kept in memory.
[[nodiscard]] Result<Statistics> collect_statistics(const Trace &trace, const PassOptions &options,
                                                    std::size_t most_stacks = SIZE_MAX);

// One of several traces that are counted as one.
struct CountedTrace {
  const Trace *trace = nullptr;
  const filter::Lifetimes *lifetimes = nullptr; // of its machine
  std::uint32_t machine = 0;                    // counted from 0
  std::uint32_t first_buffer = 0;               // where its buffers begin in the numbering of the lifetimes
  std::uint32_t first_process = 0;              // of its machine, among `processes`
  std::function<std::int64_t(std::int64_t)> time{}; // from its clock to that of the first; empty: the same
};

// Reads each trace once. `processes`: of all machines, one machine behind the other.
[[nodiscard]] Result<Statistics> count_traces(std::span<const CountedTrace> traces,
                                              std::vector<ProcessInstance> processes,
                                              const PassOptions &options, std::size_t most_stacks = SIZE_MAX);

// For archives: JSON of all but warnings and skipped, and back; nullopt if it is none.
[[nodiscard]] std::string statistics_record(const Statistics &statistics,
                                            const std::optional<Session> &session = std::nullopt);
// What such a record says of the session, if it does.
[[nodiscard]] std::optional<Session> read_session_record(std::string_view record);
[[nodiscard]] std::optional<Statistics> read_statistics_record(std::string_view record);

} // namespace etwrelog::pipeline
