// Relogging: from a trace to a smaller or better packed trace that Windows' own tools read, events kept byte
// for byte.
//
// Calls may run at once on any threads, of one trace too. Errors: those of reading a trace (trace.hpp);
// `no_match` and `usage` for a selection, as Filter::prepare() gives them; `unsupported` for sources that
// cannot become one trace; those of the output. Memory: within RunOptions::memory, whatever the size of the
// trace. Sizes are in bytes.
#pragma once

#include "etwrelog/codec.hpp"
#include "etwrelog/event_type.hpp"
#include "etwrelog/io.hpp"
#include "etwrelog/run.hpp"
#include "etwrelog/select.hpp"

#include <map>

namespace etwrelog {

class Trace;

// What becomes of kernel stacks. An event that takes the place of another has its kind of header, the
// kernel's or a classic one; definitions that are added have the kernel's.
enum class StackMode : std::uint8_t {
  keep,
  cache,        // StackWalk events become references and definitions: each stack is written once
  cache_native, // the same, but stacks with a frame in JIT-compiled code stay in full
  expand,       // references become StackWalk events, definitions vanish
};

struct RelogOptions {
  Selection selection{};
  std::optional<Codec> codec{}; // default: xpress if the input was compressed, else none
  Level level = Level::normal;
  std::uint32_t buffer_size = 0; // nominal, 1 KiB to 16 MiB, a multiple of 8; 0: the input's, at least 64 KiB
  // Every input buffer of which something is kept becomes one output buffer, in the order that the trace has
  // (OpenOptions::file_order); `buffer_size` means nothing then.
  bool keep_grouping = false;
  bool count = false; // fill in the report's counts by type and process; costs time
  StackMode stacks = StackMode::keep;
  std::uint64_t stack_window = 4'000'000;    // references that may wait for their definition
  std::uint64_t stack_memory = 512ull << 20; // for distinct stacks, and as much for definitions in the input
};

struct RelogTypeCount {
  EventType type;
  std::string name;
  std::uint64_t events_in = 0, events_out = 0, bytes_in = 0, bytes_out = 0;
};

struct RelogProcessCount {
  std::uint64_t events_in = 0, events_out = 0;
};

// Stack events, in and out; all 0 where they are kept as they are.
struct RelogStackCounts {
  std::uint64_t walks_in = 0, references_in = 0, definitions_in = 0;
  std::uint64_t walks_out = 0, references_out = 0, definitions_out = 0;
  std::uint64_t unresolved = 0; // references without a definition: left as they are
  std::uint64_t restarts = 0;   // of the stack table, for lack of memory
};

struct RelogReason {     // why events stayed or went
  std::string_view name; // "kept: selected process"
  std::uint64_t events = 0;
};

struct RelogReport {
  std::uint64_t input_bytes = 0, output_bytes = 0;
  std::uint64_t input_buffers = 0, output_buffers = 0;
  std::uint64_t buffers_left_out =
      0; // of the input: not read, as the archive's index says that they do not matter
  std::uint64_t buffers_read_again =
      0; // with a selection: whose events did not all fit the memory of the one reading
  std::uint64_t events_in = 0, events_out = 0, event_bytes_in = 0, event_bytes_out = 0;
  std::vector<RelogReason> reasons;                     // their events come to events_in
  std::vector<RelogTypeCount> types;                    // with `count`
  std::map<std::uint32_t, RelogProcessCount> processes; // by process id, with `count`
  RelogStackCounts stacks;
  std::vector<std::pair<std::uint32_t, std::string>> targets; // selected processes: id, image name
  std::vector<std::string> warnings;
  std::vector<Skipped> skipped; // with OpenOptions::salvage
  double seconds = 0;
};

// Writes the selected events of a trace, and what gives them their meaning: processes, threads, images,
// definitions of stacks, names of files, schemas. Reads the trace once, with a selection, too, where what may
// stay of it fits three eighths of RunOptions::memory; what does not is read three times. `output` is a file:
// it exists whole or not at all. The same bytes whatever the number of threads.
//
// Several sources become one trace if they are of one machine and boot (the error names what differs): the
// events of each processor in the order of their times, those of one source and processor in their own order.
// The header event is that of the source that began first, with what was lost added up. They are read twice,
// with a selection three times; for another StackMode than keep they become one in a temporary file first.
// With keep_grouping, buffers of several sources stay whole, in the order of their first events: those of
// which every event stays are copied as they are stored, unless `codec` is set. Such buffers overlap in time
// where sessions ran at once, so that events of one processor stand behind later ones; what reads events in
// order of time, here and on Windows, has to sort them, and larger files of several sessions cost it memory
// for that. Not with another StackMode than keep.
//
// A single-pass trace (OpenOptions::spool false) is filtered while it is read, with the processes and threads
// known so far; what kept events might refer to later is kept whole. Not with keep_grouping or another
// StackMode than keep. Of a file that is followed (OpenOptions::follow) the output is complete when the log
// is closed, with the header that its session left, or when OpenOptions::enough is set, with what had been
// appended until then.
[[nodiscard]] Result<RelogReport> relog(const Trace &trace, const Output &output,
                                        const RelogOptions &options = {}, const RunOptions &run = {});

} // namespace etwrelog
