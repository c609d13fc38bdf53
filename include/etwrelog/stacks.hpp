// How often the call stacks of a trace repeat, and what caching them saves. Level 4.
//
//   Result<StackReport> report = report_stacks(*trace, {.simulate = {{1021, 4u << 20}}});
//   report->all.events, report->all.distinct, report->simulations[0].cached_bytes
//
// A stack is told apart by its frames and the size of its addresses. The stacks counted are those of the
// kernel (StackWalk events, and references to stacks that the kernel's cache defined), of extended items of
// user events, and of .NET's own stack events.
//
// Errors are those of reading a trace (trace.hpp), ErrorKind::limit where the distinct stacks take more than
// StackReportOptions::memory, and those of the output. Thread safety: a call uses nothing but what it is
// given. Cost: the trace is read twice; memory grows with its distinct stacks, and by 24 bytes for every
// stack that waits for its turn in the order of time when a cache is simulated.
#pragma once

#include "etwrelog/io.hpp"
#include "etwrelog/run.hpp"

#include <array>
#include <map>
#include <optional>
#include <vector>

namespace etwrelog {

class Trace;

// In what form a stack stands in a trace. Numbers are stable: databases of stacks hold them.
enum class StackKind : std::uint8_t {
  walk_kernel, // StackWalk, by whether the outermost frame is a kernel address
  walk_user,
  reference_kernel, // by key
  reference_user,
  item, // extended item of a user event
  clr,  // .NET's own stack event
  count_,
};
inline constexpr std::size_t kStackKinds = static_cast<std::size_t>(StackKind::count_);
[[nodiscard]] std::string_view stack_kind_name(StackKind kind); // "StackWalk, kernel"

// The kernel's stack cache (EVENT_TRACE_PROPERTIES_V2 with stack caching, from Windows 8), as a session sets
// it. Windows takes 256 to 4096 buckets and 3 to 50 MiB; what lies outside is moved to the nearest it takes.
struct StackCacheSettings {
  unsigned buckets = 256;
  std::uint64_t bytes = 3u << 20;
};

struct StackCacheCounts {
  std::uint64_t hits = 0;            // stacks found in the cache
  std::uint64_t fresh = 0;           // and put into it
  std::uint64_t plain = 0;           // and logged in full, as the pool had no room
  std::uint64_t evictions = 0;       // that made room for others
  std::uint64_t most_pool_bytes = 0; // in use at the most
};

// One setting, played over the stacks of a trace in order of time. How Windows hashes the frames is not
// documented; stages/stacks/stack_cache_sim.hpp says what is assumed and why.
struct CacheSimulation {
  StackCacheSettings settings;
  StackCacheCounts counts;
  std::uint64_t definitions = 0; // logged: every stack that gets in is defined when it leaves
  std::uint64_t plain_bytes = 0, cached_bytes = 0; // of the stack events without and with the cache
};

// What Windows itself logged with its cache, and the same stacks played over a cache of default size. They
// differ because it is not known which sum of the frames Windows divides by the number of buckets, nor what
// else went through its cache.
struct RecordedCache {
  std::uint64_t references = 0, definitions = 0; // in the trace
  CacheSimulation at_end, at_front;              // by where in its bucket a new stack begins
};

struct StackReportOptions {
  std::size_t top = 10;                       // StackReport::top has that many
  std::vector<StackCacheSettings> simulate{}; // none: no simulation
  std::optional<Output> database{};           // gets every use of a stack, and the stacks; stack_database.hpp
  std::uint64_t memory = 1u << 30;            // bytes, for what grows with the trace's distinct stacks
};

struct StackGroup {
  std::uint64_t events = 0, frames = 0;
  std::uint64_t distinct = 0; // stacks
};

struct StackReport {
  std::array<StackGroup, kStackKinds> kinds{};   // by StackKind
  std::map<std::uint32_t, StackGroup> processes; // by process id, of all kinds
  std::map<std::uint16_t, StackGroup> processors;
  StackGroup kernel_stacks, all; // kernel_stacks: of StackWalk events and references
  std::uint64_t distinct_frames = 0;
  std::uint64_t definitions = 0, keys = 0; // of stack keys; a key is used again for other stacks
  std::uint64_t unresolved = 0;            // references to keys that the trace does not define

  struct Repeats { // stacks that occur from `least` to 2 * least - 1 times
    std::uint64_t least = 0, stacks = 0, events = 0;
  };
  std::vector<Repeats> repeats;
  struct Depth {
    std::uint64_t events = 0, stacks = 0;
  };
  std::vector<Depth> depths; // by number of frames
  struct Top {
    std::uint64_t count = 0;
    std::vector<std::uint64_t> frames; // innermost first
  };
  std::vector<Top> top; // the most frequent first

  // Of the kernel stacks: event bytes as they stand in the buffers of the trace, all in full, with each stack
  // defined once and referred to, and as a table with references of 20 bytes (stack, time, process, thread).
  std::uint64_t bytes_now = 0, bytes_plain = 0, bytes_cached = 0, bytes_database = 0;
  std::uint64_t item_bytes = 0, clr_bytes = 0; // besides
  std::uint64_t table_bytes = 0;    // memory that the table of stacks took: of this run, not of the trace
  std::uint64_t exported_bytes = 0; // written to StackReportOptions::database

  std::vector<CacheSimulation> simulations; // as StackReportOptions::simulate
  std::optional<RecordedCache> recorded;    // when simulating, of a trace that has stack keys
  std::optional<std::size_t> recommended;   // in simulations: the smallest setting within 1% of the best
  std::vector<std::string> warnings;
  std::vector<Skipped> skipped;
};

// Several sources are counted as one trace if they are of one machine and boot, as relog() asks it of them:
// else unsupported, with what differs. They are read one after the other, so that a simulation holds the
// stacks of all but the last in memory.
[[nodiscard]] Result<StackReport> report_stacks(const Trace &trace, const StackReportOptions &options = {},
                                                const RunOptions &run = {});

} // namespace etwrelog
