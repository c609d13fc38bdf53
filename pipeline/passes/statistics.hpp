// Counts of a whole trace: what `info` and `stats` print.
#pragma once

#include "etwrelog/archive.hpp"
#include "etwrelog/statistics.hpp"
#include "passes/attribution.hpp"
#include "schema/event_names.hpp"

namespace etwrelog::pipeline {

using etwrelog::Statistics;

// What is counted, and what is kept in memory for it.
struct CountLimits {
  Counted what = Counted::everything;
  std::size_t stacks = SIZE_MAX;             // different ones, and stack keys; beyond that it fails
  std::size_t shares = Attribution::kShares; // beyond that more is read again
};

// Reads the trace once, and some buffers again where ids change hands in the midst of them (attribution.hpp);
// not at all if it is in an archive that holds them.
[[nodiscard]] Result<Statistics> collect_statistics(const Trace &trace, const PassOptions &options,
                                                    const CountLimits &limits = {});

// One of several traces that are counted as one.
struct CountedTrace {
  const Trace *trace = nullptr;
  std::uint32_t machine = 0;                        // counted from 0
  std::function<std::int64_t(std::int64_t)> time{}; // from its clock to that of the first; empty: the same
};

// Who owns an event is told by all traces of its machine.
[[nodiscard]] Result<Statistics> count_traces(std::span<const CountedTrace> traces,
                                              const PassOptions &options, const CountLimits &limits = {});

// Of a session's length, how records have it: units of 100 ns.
[[nodiscard]] std::int64_t recorded_duration(const Session &session);
[[nodiscard]] double seconds_of_duration(std::int64_t duration);

// For archives: JSON of all but warnings and skipped, and back; nullopt if it is none.
[[nodiscard]] std::string statistics_record(const Statistics &statistics,
                                            const std::optional<Session> &session = std::nullopt);
// What such a record says of the session, if it does.
[[nodiscard]] std::optional<Session> read_session_record(std::string_view record);
[[nodiscard]] std::optional<Statistics> read_statistics_record(std::string_view record);

} // namespace etwrelog::pipeline
