// What can be told of events while a trace is read for the first time and its processes and threads are still
// becoming known: of most that they will be dropped, and why. What remains are candidates; they are decided
// by Filter when all is known.
//
// What is dropped early rests on what was known at that point: NonTargets, and which of its ids were used.
// Whether it holds good is checked in the end (Mistakes); where it does not, the buffer is read again.
#pragma once

#include "filter/filter.hpp"

#include <algorithm>

namespace etwrelog::filter {

// Whether the event is of the selected providers, ids, opcodes, tasks, channels, activities and processors.
[[nodiscard]] bool of_selected_kind(const Selection &selection, const EventView &event,
                                    std::uint16_t processor);

// The processes and threads that are no targets, as far as some lifetimes tell.
class NonTargets {
public:
  NonTargets() = default; // nothing is known but what the selection says by itself
  explicit NonTargets(const Selection &selection);
  // `threads`: the records that the lifetimes were made of.
  NonTargets(const Selection &selection, const Lifetimes &lifetimes, const Targets &targets,
             std::span<const LifetimeRecords::Thread> threads);

  [[nodiscard]] bool has_process(std::uint32_t pid) const {
    const bool *known = processes_.find(pid);
    return known ? *known : others_;
  }
  [[nodiscard]] bool has_thread(std::uint32_t tid, std::int64_t time) const {
    const std::int64_t from = thread_from(tid);
    return from <= time && from != kForever;
  }
  // The time from which on has_thread() is true; kForever if it never is.
  [[nodiscard]] std::int64_t thread_from(std::uint32_t tid) const {
    if (const std::int64_t *const from = threads_.find(tid)) return *from;
    return tid == 0 && has_process(kIdleProcess) ? kBeginning : kForever;
  }
  [[nodiscard]] bool knows_process(std::uint32_t pid) const { return processes_.find(pid) != nullptr; }
  [[nodiscard]] bool knows_thread(std::uint32_t tid) const { return threads_.find(tid) != nullptr; }
  void prefetch_thread(std::uint32_t tid) const { threads_.prefetch(tid); }

  // The ids that this takes for non-targets and `later`, which knows more of the trace, does not.
  struct Ids {
    std::vector<std::uint32_t> processes;
    std::vector<std::pair<std::uint32_t, std::int64_t>> threads; // and from when on
  };
  [[nodiscard]] Ids wrong(const NonTargets &later) const;

private:
  // By id: whether no instance is a target; the time from which all processes of the thread are known and
  // none is a target.
  base::FlatMap<bool> processes_;
  base::FlatMap<std::int64_t> threads_;
  bool others_ = false; // ids that are not known are no targets either
};

// A set of ids in little memory; it may claim to hold more than it does.
class IdBits {
public:
  void add(std::uint32_t id) { bits_[word(id)] |= bit(id); }
  [[nodiscard]] bool may_hold(std::uint32_t id) const { return (bits_[word(id)] & bit(id)) != 0; }

private:
  static std::uint32_t hash(std::uint32_t id) { return id * 0x9E37'79B1u >> 23; }
  static std::size_t word(std::uint32_t id) { return hash(id) >> 6; }
  static std::uint64_t bit(std::uint32_t id) { return std::uint64_t{1} << (hash(id) & 63); }
  std::array<std::uint64_t, 8> bits_{};
};

// Of NonTargets, what the decisions over one buffer rest on.
struct UsedIds {
  IdBits processes, threads;
  std::int64_t from = kForever, to = kBeginning; // the times for which they were asked
};

// What one version of NonTargets after the other took for no target, and the next one did not.
class Mistakes {
public:
  // `version` is followed by `next`.
  void add(std::uint32_t version, const NonTargets &of_version, const NonTargets &next);
  // Whether what was decided with a version may rest on one of them.
  [[nodiscard]] bool may_touch(const UsedIds &used, std::uint32_t version) const;
  // Whether it holds good all the same: the ids meant no target at the time. `lifetimes` and `targets` know
  // all of the trace. False where it takes too long to tell.
  [[nodiscard]] bool spare(const UsedIds &used, std::uint32_t version, const Lifetimes &lifetimes,
                           const Targets &targets) const;

private:
  struct Id {
    std::uint32_t version, id;
    // Nothing that was decided up to this version rests on what the id meant before this time, unless an
    // earlier mistake about it says so.
    std::int64_t from;
  };
  // Those of this version and later ones.
  [[nodiscard]] static std::span<const Id> since(const std::vector<Id> &ids, std::uint32_t version);

  std::vector<Id> processes_, threads_; // by version
};

// A walk over one buffer: where it stands, what is known, and what of that its decisions rest on. What was
// asked last is remembered: events that follow each other are mostly of the same process and thread.
class EarlyWalk {
public:
  EarlyWalk(const NonTargets &known, std::uint16_t processor) : position{processor}, known_(known) {}

  Position position;
  UsedIds used;
  std::uint32_t switches = 0; // context switches met

  // Whether the id is known to mean no target; then it is noted as used.
  [[nodiscard]] bool drops_process(std::uint32_t pid, std::int64_t time) {
    if (pid != process_ || !asked_) {
      process_ = pid;
      asked_ = true;
      drops_process_ = known_.has_process(pid);
      if (drops_process_) used.processes.add(pid);
    }
    if (drops_process_) note_time(time);
    return drops_process_;
  }
  [[nodiscard]] bool drops_thread(std::uint32_t tid, std::int64_t time) {
    const std::int64_t from = tid == now_.tid ? now_.from : tid == other_.tid ? other_.from : look_up(tid);
    if (from > time || from == kForever) return false;
    used.threads.add(tid);
    note_time(time);
    return true;
  }
  // A context switch: this thread runs from now on.
  void switch_to(std::uint32_t tid) {
    ++switches;
    position.current_thread = tid;
    if (tid == now_.tid) return;
    if (tid != other_.tid) static_cast<void>(look_up(tid));
    std::swap(now_, other_); // the one before is asked for next
  }

private:
  struct Thread {
    std::uint32_t tid = kUnknownId;
    std::int64_t from = kForever;
  };
  void note_time(std::int64_t time) {
    used.from = std::min(used.from, time);
    used.to = std::max(used.to, time);
  }
  [[nodiscard]] std::int64_t look_up(std::uint32_t tid) {
    other_ = {tid, known_.thread_from(tid)};
    return other_.from;
  }

  const NonTargets &known_;
  std::uint32_t process_ = 0;
  bool asked_ = false, drops_process_ = false;
  Thread now_, other_;
};

class EarlyFilter {
public:
  EarlyFilter(const Selection &selection, const Clock &clock);

  // Why Filter::decide will drop the event; nullopt where that is not known yet. What it drops leaves no mark
  // (Filter::mark) either. For every event of a buffer, in order. `rule`: of its hook; null if it has none.
  [[nodiscard]] std::optional<Reason> drops(const EventView &event, const HookRule *rule, std::int64_t time,
                                            EarlyWalk &walk) const {
    if (rule == nullptr) return drops_other(event, time, walk);
    // Half of the events of a trace with stacks are stacks.
    if (is_stack(rule->scope)) {
      const FieldOffsets &at = rule->offsets(event.pointer_size());
      const auto pid = FieldOffsets::u32(event.payload(), at.process_id);
      time = FieldOffsets::i64(event.payload(), at.event_time).value_or(time); // of the event that it is of
      if (pid && *pid != kUnknownId) return by_process(walk, *pid, time);
    }
    return drops_hook(event, *rule, time, walk);
  }

private:
  [[nodiscard]] std::optional<Reason> drops_hook(const EventView &event, const HookRule &rule,
                                                 std::int64_t time, EarlyWalk &walk) const;
  [[nodiscard]] std::optional<Reason> drops_other(const EventView &event, std::int64_t time,
                                                  EarlyWalk &walk) const;
  [[nodiscard]] std::optional<Reason> drops_rest(const EventView &event, std::int64_t time,
                                                 EarlyWalk &walk) const;
  [[nodiscard]] std::optional<Reason> by_owner(const EventView &event, const HookRule &rule,
                                               std::int64_t time, EarlyWalk &walk) const;
  [[nodiscard]] std::optional<Reason> by_header(const EventView &event, std::int64_t time,
                                                EarlyWalk &walk) const;
  [[nodiscard]] std::optional<Reason> by_process(EarlyWalk &walk, std::uint32_t pid,
                                                 std::int64_t time) const {
    if (!by_process_ || !walk.drops_process(pid, time)) return std::nullopt;
    return Reason::dropped_process;
  }
  [[nodiscard]] std::optional<Reason> by_thread(EarlyWalk &walk, std::optional<std::uint32_t> tid,
                                                std::int64_t time) const;
  [[nodiscard]] std::optional<Reason> of_unknown() const;
  [[nodiscard]] std::optional<Reason> of_nobody() const;

  Selection selection_;
  TimeRange time_;
  bool by_process_, by_kind_, keep_rest_;
};

} // namespace etwrelog::filter
