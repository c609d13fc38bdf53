// Events and samples by process of a trace that becomes an archive, for its index. Counted by what events
// claim as segments pass (passes/attribution.hpp); whose they are is told when all have passed.
#pragma once

#include "base/segment_summary.hpp"
#include "etwrelog/archive.hpp"
#include "etwrelog/statistics.hpp"
#include "passes/attribution.hpp"

#include <optional>

namespace etwrelog::pipeline {

// Of one segment. Buffers are counted from 0.
class SegmentOwners {
public:
  void clear(std::uint32_t buffers);
  void begin_buffer(std::uint16_t processor);
  void count(const EventView &event, std::int64_t time) {
    if (const filter::HookRule *const kernel = filter::rule_of(event)) {
      const filter::HookRule &rule = *kernel;
      records_.add(event, rule, time, buffer_);
      note_others(event, rule, time);
      const filter::Claim claim = filter::claim_of(event, rule, position_);
      if (claim.anyone())
        add(claim, event, time);
      else if (rule.scope == kernel::Scope::system)
        ++of_nobody_;
      else
        unclaimed_ = unclaimed_ || !filter::is_state(rule.scope) || filter::is_stack(rule.scope);
      return;
    }
    if (const auto told = filter::state_of_provider(event)) records_.add_state(event, *told, time);
    const filter::Claim claim = filter::claim_of(event, position_);
    if (claim.anyone())
      add(claim, event, time);
    else
      unclaimed_ = unclaimed_ || !filter::is_state(event);
  }
  // By what the events tell whose they are, for the summary of the segment. After the last of them.
  [[nodiscard]] SegmentSummary::Owners told();

private:
  friend class TraceOwners;
  void add(const filter::Claim &claim, const EventView &event, std::int64_t time) {
    shares_.of(claim, buffer_).add(event, time);
    if (claim.carried()) carried_from_ = std::min(carried_from_, time);
  }
  // Whom it takes a filter to decide about the event, but for whose it is. Before the position follows it.
  void note_others(const EventView &event, const filter::HookRule &rule, std::int64_t time) {
    switch (rule.scope) {
    case kernel::Scope::context_switch: note_switched_out(event, rule, time); break;
    case kernel::Scope::ready_thread: note_running(time); break;
    case kernel::Scope::payload_process:
    case kernel::Scope::payload_thread: note_causer(event, time); break;
    default: break;
    }
  }
  void note_switched_out(const EventView &event, const filter::HookRule &rule, std::int64_t time);
  void note_running(std::int64_t time);
  void end_buffer();
  void note_causer(const EventView &event, std::int64_t time);

  filter::LifetimeRecords records_;
  Shares shares_;
  std::vector<std::uint16_t> processors_; // by buffer
  std::uint32_t buffer_ = 0;
  filter::Position position_;
  std::int64_t carried_from_ = kForever; // of the buffer: since when events ask for who ran when it began
  std::int64_t switched_at_ = 0;         // of the buffer: when who runs now began to
  struct Running {
    std::uint16_t processor;
    std::uint32_t thread;
  };
  std::vector<Running> running_; // at the end of the buffers so far
  std::vector<std::uint32_t> other_processes_;
  std::vector<SegmentSummary::Owners::Thread> other_threads_;
  struct Causer {
    std::uint32_t pid = kUnknownId, tid = kUnknownId;
    std::int64_t since = kForever;
  } causer_;                    // the last one
  std::uint64_t of_nobody_ = 0; // events of the system as a whole
  bool unclaimed_ = false;      // others that claim nothing
};

// Of all segments, in their order.
class TraceOwners {
public:
  void append(const SegmentOwners &later);
  // Reads again the few buffers of the trace in which an id changes hands. nullopt where too much would have
  // to be kept, or read again.
  [[nodiscard]] Result<std::optional<std::vector<NamedProcesses>>>
  by_name(const read::Input &trace, bool one_stream, const RunOptions &run) const;

private:
  filter::LifetimeRecords records_;
  Attribution shares_{Attribution::kShares};
  std::vector<std::uint16_t> processors_;
  std::size_t text_ = 0; // of names
  bool given_up_ = false;
};

} // namespace etwrelog::pipeline
