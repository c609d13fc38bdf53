// Counts of a whole trace: events and bytes by type, by process, by processor's buffers; stacks. Values that
// own what they hold. Sizes are in bytes.
#pragma once

#include "etwrelog/codec.hpp"
#include "etwrelog/event_type.hpp"
#include "etwrelog/run.hpp"
#include "etwrelog/state.hpp"

#include <array>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace etwrelog {

class Trace;

struct StackCounts {
  std::uint64_t walks = 0, kernel_references = 0, user_references = 0, key_deletes = 0, key_rundowns = 0;
  std::uint64_t frames = 0;          // in StackWalk events and definitions
  std::uint64_t distinct_stacks = 0; // by frames
  std::uint64_t distinct_keys_defined = 0, distinct_keys_referenced = 0, keys_never_defined = 0;
  std::uint64_t item_stacks = 0, item_frames = 0; // extended items of EVENT_HEADER events
  std::uint64_t clr_stacks = 0, clr_frames = 0;   // .NET's own stack events

  [[nodiscard]] std::uint64_t stack_events() const { return walks + kernel_references + user_references; }
};

struct ProcessStatistics {
  std::uint64_t events = 0, bytes = 0, samples = 0; // attributed by owner
};

struct TypeStatistics {
  EventType type;
  std::string name; // "Windows Kernel/PerfInfo/Sample", "Provider/Task/Opcode"
  std::uint64_t events = 0, bytes = 0;
};

// How many buffers used which codec, by Codec.
using CodecCounts = std::array<std::uint64_t, 4>;

struct Statistics {
  std::vector<ProcessInstance> processes;
  std::vector<TypeStatistics> types; // in the order of their first events
  std::uint64_t events = 0, event_bytes = 0;
  std::vector<ProcessStatistics> by_instance; // in the order of `processes`
  std::uint64_t unattributed_samples = 0;
  // By process id, whatever the machine.
  std::map<std::uint32_t, std::uint64_t> samples_by_pid; // without the unattributed
  std::map<std::uint32_t, std::uint64_t> images_by_pid;  // image events by payload process id
  std::map<std::uint32_t, std::uint64_t> events_by_header_pid;
  std::map<std::uint32_t, std::uint64_t> buffer_flags, buffer_types;
  CodecCounts codecs{};
  std::uint64_t claimed_bytes = 0; // headers and events as the buffer headers state
  StackCounts stacks;
  std::int64_t first_time = 0, last_time = 0; // ticks of Trace::clock(), of any event
  std::vector<std::string> warnings;
  std::vector<Skipped> skipped;
};

// The processes of one name, "?" of those without one, taken together.
struct NamedProcesses {
  std::string name;
  std::uint64_t instances = 0, events = 0, samples = 0; // by owner, as by_instance has them
  bool operator==(const NamedProcesses &) const = default;
};
// In order of names.
[[nodiscard]] std::vector<NamedProcesses> by_name(std::span<const ProcessInstance> processes,
                                                  std::span<const ProcessStatistics> counts);

// `processes`: all but `types` and `stacks`, which are of no meaning then; faster.
enum class Counted : std::uint8_t { everything, processes };

// Reads the trace once, and again those few buffers in which an id changes hands; not at all where it is one
// archive that holds the counts. Of several sources the totals of all: events and bytes are the sums of each,
// stacks and processes are told apart over all of them, and an event's owner is what all sources of its
// machine say of it. Times are those of Trace::clock(); a warning begins with the name of its source. Damage
// that was stepped over stands in `skipped`. Any number of calls at once, on any threads; errors are those of
// reading a trace (trace.hpp).
[[nodiscard]] Result<Statistics> collect_statistics(const Trace &trace, const RunOptions &run = {},
                                                    Counted what = Counted::everything);

// All but warnings and what was skipped, as a JSON object with its version in "record_version". Archives hold
// the same; stages/etlz/spec.md lists its fields.
[[nodiscard]] std::string to_json(const Statistics &statistics);

} // namespace etwrelog
