// Decides which events to keep. Three steps over a trace, each parallel over its buffers:
//   1. LifetimeRecords collects processes, threads and what stack keys are defined (lifetimes.hpp);
//   2. Marks collects what kept events refer to: stack definitions, file objects, providers; of a selection
//   by
//      kind also their stacks, and then whose code these need the names of;
//   3. Filter::decide says of every event whether it stays and why.
#pragma once

#include "etwrelog/clock.hpp"
#include "filter/targets.hpp"

#include <array>
#include <string_view>
#include <unordered_set>

namespace etwrelog::filter {

using etwrelog::is_kept;
using etwrelog::kReasons;
using etwrelog::Reason;
using etwrelog::reason_name;

// Where in a trace an event stands, and which thread runs on its processor as far as the walk has got. One
// for each buffer, made by Filter::begin_buffer.
struct Position {
  std::uint16_t processor = 0;
  std::uint32_t current_thread = kUnknownId;
  bool switched = false; // a context switch of this buffer has told; before, it is what the buffer began with
  bool of_others = false; // no selected process has any event of the buffer but for state events
};

// Whose an event is. `nobody`: it belongs to no process; `unknown`: to one that cannot be told.
struct Owner {
  enum class Kind : std::uint8_t { process, nobody, unknown } kind = Kind::nobody;
  std::uint32_t pid = 0;
};

// Whose an event is as far as the event itself and the context switches before it in its buffer tell, which
// is as much as a first walk over a trace can know: the process of a thread, if that is known at the time of
// the event, else a process by its id, else what `rest` says.
class Claim {
public:
  // `who_ran`: the thread is the one that ran when the buffer began (Lifetimes::thread_at_start), and the
  // owner unknown if that is.
  enum class Rest : std::uint32_t { nobody, unknown, who_ran };

  Claim() = default;
  Claim(std::uint32_t tid, std::uint32_t pid, Rest rest)
      : ids_(std::uint64_t{tid} << 32 | pid), rest_(rest) {}

  [[nodiscard]] std::uint32_t tid() const { return static_cast<std::uint32_t>(ids_ >> 32); } // or kUnknownId
  [[nodiscard]] std::uint32_t pid() const { return static_cast<std::uint32_t>(ids_); }       // or kUnknownId
  [[nodiscard]] std::uint64_t ids() const { return ids_; }
  [[nodiscard]] Rest rest() const { return rest_; }
  [[nodiscard]] bool carried() const { return rest_ == Rest::who_ran; }
  [[nodiscard]] bool anyone() const { return ids_ != kNoIds || carried(); }

private:
  static constexpr std::uint64_t kNoIds = ~std::uint64_t{0};
  std::uint64_t ids_ = kNoIds; // one word: a claim is made of every event, and is to travel in registers
  Rest rest_ = Rest::nobody;
};

// Follows context switches: call it for every event of a buffer, in order.
[[nodiscard]] Claim claim_of(const EventView &event, Position &position);
// Of a kernel event that the rule is of.
[[nodiscard]] Claim claim_of(const EventView &event, const HookRule &rule, Position &position);

// The process that an event belongs to: by payload, by thread and time, by header, by the processor's current
// thread, as the kernel event table says. Follows context switches: call it for every event of a buffer, in
// order. For a context switch the owner is the process switched in.
[[nodiscard]] Owner owner_of(const EventView &event, std::int64_t time, Position &position,
                             const Lifetimes &lifetimes);
[[nodiscard]] Owner owner_of(const Claim &claim, std::int64_t time, const Lifetimes &lifetimes);

// The process that an event names: in its header, else in its payload, by itself or by one of its threads.
// kUnknownId: none.
[[nodiscard]] std::uint32_t named_process(const EventView &event, std::int64_t time,
                                          const Lifetimes &lifetimes);

// Whether it has no hook and is nothing but a stack of another event: one that .NET's runtime wrote behind
// its own, or a part that Windows wrote later.
[[nodiscard]] bool is_stack_event(const EventView &event);

// Indexes of archives rest on these and on claim_of(): who changes what they say raises etlz::kIndexRules.
// State events: those that a filter keeps, or may keep, also outside the selected time. Of stacks it depends
// on the event that they belong to; they count as such.
[[nodiscard]] bool is_state(const EventView &event);
[[nodiscard]] bool is_state(kernel::Scope scope); // of kernel events

// The first and last raw time that a selection takes.
struct TimeRange {
  std::int64_t from = kBeginning, to = kForever;
  [[nodiscard]] bool contains(std::int64_t time) const { return from <= time && time <= to; }
};
[[nodiscard]] TimeRange selected_time(const Selection &selection, const Clock &clock);
// The error of a range that the user gave and that ends before it begins.
[[nodiscard]] Result<void> check_range(const TimeRange &range);

// An event by its time and thread, as stacks refer to it. Events without a known thread stand for themselves
// with the thread kUnknownId.
struct EventKey {
  std::int64_t time;
  std::uint32_t tid;
  auto operator<=>(const EventKey &) const = default;
};

// To a stack by its key. A kernel and a user key of the same value are two keys.
struct KeyReference {
  enum class Kind : std::uint8_t { user, kernel, either };
  std::uint64_t key;
  std::int64_t time; // of the reference itself
  Kind kind;
};

// What the events that will be kept refer to.
struct Marks {
  std::vector<bool> definitions;           // by index in Lifetimes::definitions()
  std::unordered_set<std::uint64_t> named; // files and registry keys, by number
  std::unordered_set<Guid> providers;
  struct Event { // by time and thread, and what is known of it
    std::int64_t time;
    std::uint32_t tid;
    bool yes;
    [[nodiscard]] EventKey key() const { return {time, tid}; }
  };
  // When stacks must be looked up, which is in selections by kind: whether it fits itself, or only says what
  // others mean.
  std::vector<Event> kept_events;
  std::vector<EventKey> dropped_events; // dropped because whose they are is not known

  struct Reference { // of a stack to its definition
    KeyReference to;
    EventKey event; // that the stack belongs to
  };
  std::vector<Reference> references; // decided when all kept events are known

  std::vector<Event> clr_events;    // of .NET's runtime, likewise: whether it is kept
  std::vector<EventKey> clr_stacks; // behind them; when all are known, those of kept events
  struct Later {                    // the part of a stack that was written later
    std::uint64_t match;
    std::uint32_t tid;
    auto operator<=>(const Later &) const = default;
  };
  std::vector<Later> later_stacks; // of kept events, likewise

  // One batch's part, cheap to make in parallel.
  struct Part {
    std::vector<std::uint32_t> definitions;
    std::vector<std::uint64_t> named;
    std::vector<Guid> providers;
    std::vector<Event> kept_events;
    std::vector<EventKey> dropped_events;
    std::vector<Reference> references;
    std::vector<Event> clr_events;
    std::vector<EventKey> clr_stacks;
    std::vector<Later> later_stacks;
    void clear();
    void shrink(); // drops what stands in the part twice
  };
};

// The provider whose descriptions (manifest, metadata) an event without hook needs, if it is kept. Such an
// event refers to nothing else where there are no stacks; one with a hook may refer to files.
[[nodiscard]] std::optional<Guid> provider_needed(const EventView &event);

class Filter {
public:
  // `lifetimes` must outlive the filter.
  // `so_far`: as for Targets::resolve; without marks, everything that a kept event might refer to is kept.
  static Result<Filter> make(const Selection &selection, const Lifetimes &lifetimes, const Clock &clock,
                             bool so_far = false);

  [[nodiscard]] const Targets &targets() const { return targets_; }
  [[nodiscard]] Position begin_buffer(std::uint32_t buffer, std::uint16_t processor) const {
    return {processor, lifetimes_->thread_at_start(buffer)};
  }

  // Step 2. Notes what the event refers to if it will be kept.
  void mark(const EventView &event, std::int64_t time, Position &position, Marks::Part &part) const;
  // Serial.
  void merge(const Marks::Part &part, Marks &marks) const;
  // When all parts are merged; step 3 may begin.
  void set_marks(Marks marks);

  // Then, of a selection by kind: names of code stay for the processes that stacks are kept of. Whether that
  // has to be found out, by looking at the events once more; the process of a stack that is kept of an event
  // that fits, be it in the event itself; and what was found. Without it none of them stays.
  [[nodiscard]] bool asks_for_code_processes() const {
    return by_kind_ && !so_far_ && !lifetimes_->code_processes().empty();
  }
  [[nodiscard]] std::optional<std::uint32_t> process_of_stack(const EventView &event, std::int64_t time,
                                                              Position &position) const;
  void set_code_processes(std::unordered_set<std::uint32_t> processes);
  // Of which processes there are such names at all.
  [[nodiscard]] const std::unordered_set<std::uint32_t> &code_processes() const {
    return lifetimes_->code_processes();
  }

  // Step 3. Any thread, each with its own position.
  [[nodiscard]] Reason decide(const EventView &event, std::int64_t time, Position &position) const;
  // Of what decide() keeps, whether it is of the selected time and kinds itself, and not kept for what others
  // mean.
  [[nodiscard]] bool fits(const EventView &event, std::int64_t time, const Position &position) const {
    return in_time(time) && (!by_kind_ || of_kind(event, position));
  }

private:
  Filter() = default;
  // The decision as far as it can be made without marks, and what it depends on otherwise.
  enum class Need : std::uint8_t { none, definition, name, provider, stack, stack_event, code };
  struct Verdict {
    Reason reason;
    Need need = Need::none;
  };
  [[nodiscard]] Verdict judge(const EventView &event, std::int64_t time, Position &position) const;
  [[nodiscard]] Verdict judge_kernel(const EventView &event, const HookRule &rule, std::int64_t time,
                                     Position &position) const;
  // Reason::count_ where no special rule applies.
  [[nodiscard]] Verdict judge_classic(const EventView &event, std::int64_t time, Position &position) const;
  [[nodiscard]] Verdict judge_event(const EventView &event, std::int64_t time, Position &position) const;
  [[nodiscard]] Reason judge_state(const EventView &event, const StateOfProvider &told,
                                   std::int64_t time) const;
  // Of a manifest or metadata.
  [[nodiscard]] Verdict judge_description(const EventView &event, std::int64_t time,
                                          Position &position) const;
  // Of what otherwise goes with the events that refer to it: whether it is asked for by its own kind.
  [[nodiscard]] bool is_named(const EventView &event, std::int64_t time, const Position &position) const;
  [[nodiscard]] bool selects_name(const EventView &event, const HookRule &rule, std::int64_t time,
                                  const Position &position) const;
  [[nodiscard]] Reason by_owner(const Owner &owner, std::int64_t time) const;
  [[nodiscard]] Reason by_process(std::uint32_t pid, std::int64_t time) const;
  [[nodiscard]] bool stack_event_kept(const EventView &event,
                                      std::int64_t time) const; // of one without a hook
  void mark_other(const EventView &event, std::int64_t time, const Verdict &verdict, const Position &position,
                  Marks::Part &part) const;
  void mark_reference(const Marks::Reference &reference, std::uint32_t pid, Marks::Part &part) const;
  // Calls each(index) for the definitions that a reference may mean.
  template <class Each> void for_definitions(const KeyReference &to, Each &&each) const;
  void mark_definitions(const KeyReference &to, Marks::Part &part) const;
  [[nodiscard]] bool needs_definition(std::uint64_t key, std::int64_t time) const;
  [[nodiscard]] bool in_time(std::int64_t time) const { return time_.contains(time); }
  [[nodiscard]] bool of_kind(const EventView &event, const Position &position) const;
  [[nodiscard]] bool stack_kept(const EventKey &event) const;
  [[nodiscard]] bool any_kept(const EventKey &event, bool only_fitting) const; // of Marks::kept_events
  // Of a user's half whose own event goes: whether its thread did something that stays before it was written,
  // in the same stay in the kernel, whose half it completes.
  [[nodiscard]] bool completes_another(const EventKey &event, std::int64_t written) const;

  Selection selection_;
  const Lifetimes *lifetimes_ = nullptr;
  Targets targets_;
  bool everything_ = true;
  bool by_kind_ = false;
  bool names_kinds_ = false;
  bool so_far_ = false;
  TimeRange time_;
  struct ActorVerdict {
    EventKey event;
    bool kept;
  };
  std::vector<ActorVerdict> actors_; // sorted
  Marks marks_;
  std::vector<std::pair<std::uint32_t, std::int64_t>> kept_by_thread_; // of Marks::kept_events, sorted
  std::unordered_set<std::uint32_t> code_processes_;                   // whose names of code stay
};

} // namespace etwrelog::filter
