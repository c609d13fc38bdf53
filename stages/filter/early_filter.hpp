// What can be told of events while a trace is read for the first time and its processes and threads are still
// becoming known: of most that they will be dropped, and why. What remains are candidates; they are decided
// by Filter when all is known.
//
// What is dropped early rests on what was known at that point: NonTargets, and which of its ids were used.
// Whether it holds good is checked in the end (NonTargets::wrong); where it does not, the buffer is read
// again.
#pragma once

#include "filter/filter.hpp"

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
    const std::int64_t *from = threads_.find(tid);
    if (!from) return tid == 0 && has_process(kIdleProcess);
    return *from <= time && *from != kForever;
  }
  [[nodiscard]] bool knows_process(std::uint32_t pid) const { return processes_.find(pid) != nullptr; }
  [[nodiscard]] bool knows_thread(std::uint32_t tid) const { return threads_.find(tid) != nullptr; }

  // The ids that this takes for non-targets and `final`, which knows all of the trace, does not.
  struct Ids {
    std::vector<std::uint32_t> processes, threads;
    [[nodiscard]] bool empty() const { return processes.empty() && threads.empty(); }
  };
  [[nodiscard]] Ids wrong(const NonTargets &final) const;

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
  std::uint32_t switches = 0; // context switches met
  [[nodiscard]] bool may_hold_any(const NonTargets::Ids &ids) const;
};

class EarlyFilter {
public:
  EarlyFilter(const Selection &selection, const Clock &clock);

  // Why Filter::decide will drop the event; nullopt where that is not known yet. What it drops leaves no mark
  // (Filter::mark) either. For every event of a buffer, in order; `position` begins without a thread.
  [[nodiscard]] std::optional<Reason> drops(const EventView &event, std::int64_t time, Position &position,
                                            const NonTargets &known, UsedIds &used) const;

private:
  struct Asked { // one event, and what is known
    const EventView &event;
    std::int64_t time;
    const NonTargets &known;
    UsedIds &used;
  };
  [[nodiscard]] std::optional<Reason> drops_hook(const Asked &asked, Position &position) const;
  [[nodiscard]] std::optional<Reason> drops_classic(const Asked &asked, Position &position) const;
  [[nodiscard]] std::optional<Reason> drops_rest(const Asked &asked, Position &position) const;
  [[nodiscard]] std::optional<Reason> by_owner(const Asked &asked, const HookRule &rule,
                                               Position &position) const;
  [[nodiscard]] std::optional<Reason> by_header(const Asked &asked) const;
  [[nodiscard]] std::optional<Reason> by_process(const Asked &asked, std::uint32_t pid) const;
  [[nodiscard]] std::optional<Reason> by_thread(const Asked &asked, std::optional<std::uint32_t> tid) const;
  [[nodiscard]] std::optional<Reason> of_unknown() const;
  [[nodiscard]] std::optional<Reason> of_nobody() const;

  Selection selection_;
  TimeRange time_;
  bool by_process_, by_kind_, keep_rest_;
};

} // namespace etwrelog::filter
