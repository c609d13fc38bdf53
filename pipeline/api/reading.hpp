// What other parts of the library ask of a traversal beyond its public Query.
#pragma once

#include "base/errors.hpp"
#include "etwrelog/trace.hpp"

#include <functional>
#include <optional>
#include <vector>

namespace etwrelog::pipeline {

// How to read, beside what a Query says of the events.
struct Reading {
  // Sorted: no events of other processors, and none whose header has another process.
  std::optional<std::vector<std::uint16_t>> processors{};
  std::optional<std::vector<std::uint32_t>> processes{};
  // What is wanted from outside the time comes out of an archive's index, where it has a time and an order
  // but no place.
  bool state_from_index = false;
  // What else must hold of an event, where kinds and time do not tell. Makes what is asked of the events of
  // one buffer, which may keep memory of its own; any thread.
  std::function<std::function<bool(const Event &)>()> chooser{};
};

// Trace::events and Trace::fold that read in this way.
[[nodiscard]] EventCursor read_events(const etwrelog::Trace &trace, const Query &query,
                                      const Reading &reading, const RunOptions &run);
[[nodiscard]] Result<void> run_fold(const etwrelog::Trace &trace, const detail::FoldSteps &steps,
                                    const Query &query, const Reading &reading, const RunOptions &run);
template <class Part, class Map, class Merge>
[[nodiscard]] Result<Part> read_fold(const etwrelog::Trace &trace, Map map, Merge merge, const Query &query,
                                     const Reading &reading, const RunOptions &run) {
  detail::Folding<Part, Map, Merge> folding{map, merge};
  ETWRELOG_TRY(run_fold(trace, folding.steps(), query, reading, run));
  return std::move(folding.total);
}

// The error for an output that is a file which the trace was opened from, whatever names it has by now, or
// that exists and is not to be replaced.
[[nodiscard]] Result<void> check_output(const etwrelog::Trace &trace, const Output &output);
// OutputStream::open for what is made of a trace.
[[nodiscard]] Result<OutputStream> open_output(const etwrelog::Trace &trace, const Output &output);

// Where an event lies in its file; of a compressed buffer, and of an archive, where its buffer lies.
[[nodiscard]] std::uint64_t file_offset(const etwrelog::Trace &trace, const Position &position);

} // namespace etwrelog::pipeline
