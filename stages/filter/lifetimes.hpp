// Which processes and threads a trace knows, and when each id meant which of them. Ids are reused: a thread
// id belongs to a process, and a process id to one instance of it, for a time only.
#pragma once

#include "base/cpu.hpp"
#include "base/flat_map.hpp"
#include "etwrelog/clr_events.hpp"
#include "etwrelog/provider_events.hpp"
#include "etwrelog/statistics.hpp"
#include "filter/rules.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace etwrelog::filter {

using etwrelog::kBeginning;
using etwrelog::kForever;
using etwrelog::ProcessInstance;

inline constexpr std::uint32_t kIdleProcess = 0, kSystemProcess = 4;
// Opcodes of the events of processes and threads; 3 is the rundown at start.
inline constexpr std::uint8_t kStart = 1, kEnd = 2, kRundownEnd = 4;

// Whom a context switch takes off its processor and who runs then; nullopt if it is too short to tell.
struct SwitchedThreads {
  std::uint32_t old_thread, new_thread;
};
[[nodiscard]] inline std::optional<SwitchedThreads> switched_threads(const EventView &event,
                                                                     const HookRule &rule) {
  const FieldOffsets &at = rule.offsets(event.pointer_size());
  const Bytes payload = event.payload();
  const auto old_thread = FieldOffsets::u32(payload, at.old_thread),
             new_thread = FieldOffsets::u32(payload, at.new_thread);
  if (!old_thread || !new_thread) return std::nullopt;
  return SwitchedThreads{*old_thread, *new_thread};
}

// Whose image an image-identity event of KernelTraceControl is about: the process in the payload, or in the
// header where the payload has none; and whether it is the kernel's.
struct IdentifiedImage {
  std::uint32_t pid;
  bool in_kernel;
};
[[nodiscard]] inline IdentifiedImage identified_image(const EventView &event) {
  const Bytes payload = event.payload();
  const unsigned pointer_size = event.pointer_size();
  const FieldOffsets &at = image_id_offsets(event.opcode(), pointer_size);
  const std::uint32_t pid = FieldOffsets::u32(payload, at.process_id).value_or(event.process_id());
  const auto base = FieldOffsets::pointer(payload, at.image_base, pointer_size);
  return {pid, base ? format::is_kernel_address(*base, pointer_size) : pid == kIdleProcess};
}

// What an event of Microsoft-Windows-Kernel-Process tells of a process, a thread or an image, as the kernel
// logger's events of that scope do.
struct StateOfProvider {
  kernel::Scope scope;
  std::uint8_t opcode; // 1 start or load, 2 end or unload, 3 rundown at start
  std::uint32_t process;
  std::uint32_t thread = kUnknownId;
  std::uint64_t image_base = 0;
};
[[nodiscard]] std::optional<StateOfProvider> read_state_of_provider(const EventView &event);
// nullopt of others. Asked of every event without a hook.
[[nodiscard]] inline std::optional<StateOfProvider> state_of_provider(const EventView &event) {
  if (!event.is_event() || event.provider() != provider::kKernelProcess) return std::nullopt;
  return read_state_of_provider(event);
}

// Names of processes begin with the device there, where the kernel logger has the last part alone.
[[nodiscard]] std::string last_part(std::string path);

[[nodiscard]] std::optional<std::uint32_t> read_network_process(const EventView &event);
// The process that an event of Microsoft-Windows-Kernel-Network says it is of, as what comes from the network
// is logged by whoever is interrupted; nullopt of others.
[[nodiscard]] inline std::optional<std::uint32_t> network_process(const EventView &event) {
  if (!event.is_event() || event.provider() != provider::kKernelNetwork) return std::nullopt;
  return read_network_process(event);
}

// Of records of the same kind: those of the provider go where there are any of the kernel logger, which tells
// the same at other times. Whether there were none.
template <class Record> bool prefer_kernel_logger(std::vector<Record> &records) {
  const bool none = std::ranges::all_of(records, &Record::of_provider);
  if (!none) std::erase_if(records, [](const Record &record) { return record.of_provider; });
  return none;
}

// What one batch of buffers contributes. Kept small: a record for each event about a process or thread, each
// stack definition and each buffer with context switches.
struct LifetimeRecords {
  struct Process {
    std::int64_t time;
    std::uint8_t opcode; // 1 start, 2 end, 3 rundown at start, 4 rundown at end
    ProcessInstance facts;
    bool of_provider = false; // Microsoft-Windows-Kernel-Process tells it, not the kernel logger
  };
  struct Thread {
    std::int64_t time;
    std::uint32_t tid, pid;
    std::uint8_t opcode;
    bool of_provider = false;
  };
  // An event that says something of another process than the one that caused it, or that is kept for its
  // meaning: whether a stack of it is kept is not to be seen from the stack.
  struct Actor {
    std::int64_t time;
    std::uint32_t tid;     // who caused it
    std::uint32_t subject; // process that it is about
    std::uint16_t hook;
    bool kernel_image;
    bool subject_is_thread; // then `subject` is a thread: the one in the payload where the header has another
  };
  struct Definition {
    std::uint64_t key;
    std::int64_t time;
    bool kernel; // by the outermost frame: a kernel and a user key of the same value are two keys
    auto operator<=>(const Definition &other) const {
      return std::tuple(key, kernel, time) <=> std::tuple(other.key, other.kernel, other.time);
    }
    bool operator==(const Definition &) const = default;
  };
  struct Switches { // of one buffer that has context switches
    std::uint32_t buffer;
    std::uint32_t first_old, last_new;
  };
  std::vector<Process> processes;
  std::vector<Thread> threads;
  std::vector<Actor> actors;
  std::vector<Definition> definitions;
  std::vector<Switches> switches;
  bool has_stacks = false;
  bool has_switch_batches = false;
  bool has_unowned = false;      // events that say neither process nor thread but belong to one
  bool has_stack_events = false; // without a hook, of other events: .NET's, and parts that were written later
  std::unordered_set<std::uint32_t> code_processes; // that say what their code is called

  void clear();
  // Looks at one event of the buffer with this index.
  void add(const EventView &event, std::int64_t time, std::uint32_t buffer) {
    if (const HookRule *const rule = rule_of(event))
      add(event, *rule, time, buffer);
    else
      add_other(event, time);
  }
  // Of no hook.
  void add_other(const EventView &event, std::int64_t time) {
    if (!event.is_event()) return;
    const Guid provider = event.provider();
    if (clr::is_stack(provider, event.id()) || is_later_stack(event))
      has_stack_events = true;
    else if (clr::names_code(provider, event.id()))
      code_processes.insert(event.process_id());
    else if (const auto told = state_of_provider(event))
      add_state(event, *told, time);
  }
  ETWRELOG_ALWAYS_INLINE void add(const EventView &event, const HookRule &rule, std::int64_t time,
                                  std::uint32_t buffer) {
    if (is_stack(rule.scope)) { // half of the events of a trace with stacks
      has_stacks = true;
      return;
    }
    switch (rule.scope) { // most of the other half is told here, without a call
    case kernel::Scope::current_thread:
    case kernel::Scope::header: has_unowned = has_unowned || !says_causer(event); break;
    case kernel::Scope::context_switch: add_switch(event, rule, buffer); break;
    case kernel::Scope::payload_process:
    case kernel::Scope::payload_thread:
      if (says_causer(event)) add_hook(event, time, rule);
      break;
    default: add_hook(event, time, rule);
    }
  }
  void add_state(const EventView &event, const StateOfProvider &told, std::int64_t time);
  // Appends what a later batch found.
  void append(LifetimeRecords &&later);

private:
  void add_switch(const EventView &event, const HookRule &rule, std::uint32_t buffer) {
    const std::optional<SwitchedThreads> switched = switched_threads(event, rule);
    if (!switched) return;
    if (switches.empty() || switches.back().buffer != buffer)
      switches.push_back({buffer, switched->old_thread, switched->new_thread});
    else
      switches.back().last_new = switched->new_thread;
  }
  void add_hook(const EventView &event, std::int64_t time, const HookRule &rule);
};

class Lifetimes {
public:
  Lifetimes() = default;
  // `processors`: of each buffer in reading order. `one_stream`: buffers do not tell the processor of an
  // event.
  Lifetimes(LifetimeRecords records, std::span<const std::uint16_t> processors, bool one_stream)
      : Lifetimes(std::exchange(records.threads, {}), std::move(records), processors, one_stream) {}
  // With these threads, which are looked at only, instead of those of the records.
  Lifetimes(std::span<const LifetimeRecords::Thread> threads, LifetimeRecords &&records,
            std::span<const std::uint16_t> processors, bool one_stream);

  [[nodiscard]] std::span<const ProcessInstance> processes() const { return processes_; }
  // Others ran, too: a provider tells of those that start or end, where no rundown tells of all.
  [[nodiscard]] bool lacks_processes() const { return lacks_processes_; }

  // Index in processes() of the instance that the id meant at that time: the latest that had started, or the
  // first if none had (a process is in use before and after its own start and end events).
  [[nodiscard]] std::optional<std::uint32_t> process_at(std::uint32_t pid, std::int64_t time) const;
  // The process that the thread belonged to at that time, or had belonged to when it ended if its id has not
  // been started anew; the idle thread is the idle process's.
  [[nodiscard]] std::optional<std::uint32_t> pid_of_thread(std::uint32_t tid, std::int64_t time) const;
  // Whether the answers of pid_of_thread(), of process_at() are the same throughout these times.
  [[nodiscard]] bool same_thread(std::uint32_t tid, std::int64_t from, std::int64_t to) const {
    return span_of(tid, from) == span_of(tid, to);
  }
  [[nodiscard]] bool same_process(std::uint32_t pid, std::int64_t from, std::int64_t to) const {
    return process_at(pid, from) == process_at(pid, to);
  }

  struct Span {
    std::int64_t start, end;
    std::uint32_t pid;
  };
  // What pid_of_thread() knows of the thread in these times; none if at their beginning it knows nothing.
  [[nodiscard]] std::span<const Span> spans_of(std::uint32_t tid, std::int64_t from, std::int64_t to) const {
    const Span *const first = span_of(tid, from);
    return first ? std::span(first, span_of(tid, to) + 1) : std::span<const Span>();
  }
  // Each thread id with the processes that it belonged to, one after the other: visit(tid, spans). Threads
  // are in no order.
  template <class Visit> void for_each_thread(Visit &&visit) const {
    threads_.for_each([&](std::uint32_t tid, const Range &range) {
      visit(tid, std::span<const Span>(spans_).subspan(range.first, range.count));
    });
  }

  // The thread that runs on the processor when the buffer begins; kUnknownId if context switches do not tell.
  [[nodiscard]] std::uint32_t thread_at_start(std::uint32_t buffer) const {
    return buffer < thread_at_start_.size() ? thread_at_start_[buffer] : kUnknownId;
  }

  // Sorted by key, kind and time.
  [[nodiscard]] std::span<const LifetimeRecords::Definition> definitions() const { return definitions_; }
  [[nodiscard]] std::span<const LifetimeRecords::Actor> actors() const {
    return actors_;
  } // sorted by time and thread
  [[nodiscard]] bool has_stacks() const { return has_stacks_; }
  [[nodiscard]] bool has_stacks_or_definitions() const { return has_stacks_ || !definitions_.empty(); }
  [[nodiscard]] bool has_switch_batches() const { return has_switch_batches_; }
  [[nodiscard]] bool has_unowned() const { return has_unowned_; }
  [[nodiscard]] bool has_stack_events() const { return has_stack_events_; }
  // Those that say what their code is called, as .NET does.
  [[nodiscard]] const std::unordered_set<std::uint32_t> &code_processes() const { return code_processes_; }

private:
  void build_processes(std::vector<LifetimeRecords::Process> records);
  void build_threads(std::span<const LifetimeRecords::Thread> records);

  // The latest that had started; null before the first start. Spans and instances are in order of their
  // starts: what is asked for later is the same or a later one.
  [[nodiscard]] const Span *span_of(std::uint32_t tid, std::int64_t time) const;

  struct Range {
    std::uint32_t first = 0, count = 0;
  };

  std::vector<ProcessInstance> processes_; // by id, then by time
  base::FlatMap<Range> instances_;         // by process id
  std::vector<Span> spans_;
  base::FlatMap<Range> threads_; // by thread id
  std::vector<std::uint32_t> thread_at_start_;
  std::vector<LifetimeRecords::Definition> definitions_;
  std::vector<LifetimeRecords::Actor> actors_;
  bool lacks_processes_ = true;
  bool has_stacks_ = false, has_switch_batches_ = false, has_unowned_ = false, has_stack_events_ = false;
  std::unordered_set<std::uint32_t> code_processes_;
};

} // namespace etwrelog::filter
