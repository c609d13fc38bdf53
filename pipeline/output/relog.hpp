// Relogging end to end.
#pragma once

#include "etwrelog/select.hpp"
#include "filter/filter.hpp"
#include "output/stack_rewrite.hpp"
#include "passes/collect.hpp"
#include "passes/pass.hpp"
#include "read/follow.hpp"
#include "schema/type_counts.hpp"

#include <deque>
#include <map>

namespace etwrelog::pipeline {

struct RelogOptions {
  std::string output;
  bool replace_output = false;
  Selection selection;
  std::optional<Codec> codec; // default: xpress if the input was compressed, else none
  Level level = Level::normal;
  std::uint32_t buffer_size = 0; // nominal; 0: the input's, at least 64 KiB
  bool keep_grouping = false;    // every input buffer becomes one output buffer, in file order; of several
                                 // traces, in the order of their first events
  bool count = false;            // fill in the report's counts by type and process
  StackOptions stacks;
  // With a selection: bytes for the events of the first pass that may be kept. What does not fit is read
  // again; the output is the same.
  std::uint64_t candidate_memory = std::uint64_t{384} << 20;
  PassOptions graph;
};

struct ProcessCount {
  std::uint64_t events_in = 0, events_out = 0;
};

struct RelogReport {
  std::uint64_t input_bytes = 0, output_bytes = 0;
  std::uint64_t input_buffers = 0, output_buffers = 0;
  std::uint64_t buffers_left_out =
      0; // of the input: not read, as the archive's index says that they do not matter
  std::uint64_t buffers_read_again = 0; // after the first pass, with a selection
  std::uint64_t events_in = 0, events_out = 0, event_bytes_in = 0, event_bytes_out = 0;
  bool any_fits = false; // an event stays that is of the selected time and kinds itself
  std::array<std::uint64_t, filter::kReasons> by_reason{};    // events, by filter::Reason
  schema::TypeCounts types;                                   // with `count`
  StackRewriteCounts stacks;                                  // unless they are kept as they are
  std::map<std::uint32_t, ProcessCount> processes;            // by process id, with `count`
  std::vector<std::pair<std::uint32_t, std::string>> targets; // selected processes
  std::vector<std::string> warnings;
  std::vector<read::Skipped> skipped;
  double seconds = 0;
};

[[nodiscard]] Result<void> relog(const Trace &trace, const RelogOptions &options, RelogReport &report);

// A stream filtered while it is read, with the processes and threads known so far; single-threaded.
// What kept events might refer to later (stack definitions, file names, manifests) is kept whole.
// options.keep_grouping, the threads and the stacks are not looked at; `salvage` is not supported.
// `followed`: what the stream is if it is a file that grows, else null: the header event is then that which
// the session has left at the end.
[[nodiscard]] Result<void> relog_stream(ByteStream &input, const std::string &name,
                                        const read::FollowedFile *followed, const RelogOptions &options,
                                        RelogReport &report);

} // namespace etwrelog::pipeline
