#include "filter/early_filter.hpp"

#include "etwrelog/clr_events.hpp"

#include <algorithm>
#include <charconv>

namespace etwrelog::filter {

using kernel::Scope;

namespace {

// A selection of process ids alone: no other id can ever mean a target.
bool by_ids_alone(const Selection &selection) {
  const auto is_id = [](const std::string &text) {
    return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
  };
  return !selection.processes.empty() && !selection.children &&
         std::ranges::all_of(selection.processes, is_id);
}

} // namespace

NonTargets::NonTargets(const Selection &selection) : others_(by_ids_alone(selection)) {
  if (!others_) return;
  for (const std::string &text : selection.processes) {
    std::uint32_t pid = 0; // what does not fit an id matches none
    if (std::from_chars(text.data(), text.data() + text.size(), pid).ec == std::errc())
      processes_[pid] = false;
  }
}

NonTargets::NonTargets(const Selection &selection, const Lifetimes &lifetimes, const Targets &targets,
                       std::span<const LifetimeRecords::Thread> threads)
    : NonTargets(selection) {
  if (targets.all()) return;
  for (std::uint32_t i = 0; i < lifetimes.processes().size(); ++i) {
    const std::uint32_t pid = lifetimes.processes()[i].pid;
    const bool *none = i > 0 && lifetimes.processes()[i - 1].pid == pid ? processes_.find(pid) : nullptr;
    const bool before = none == nullptr || *none;
    processes_[pid] = before && !targets.is_target(i);
  }
  // The lifetimes of a thread begin with the earliest record if that is its start, else with the trace.
  for (const LifetimeRecords::Thread &thread : threads) {
    std::int64_t *from = threads_.find(thread.tid);
    const bool fresh = from == nullptr;
    if (fresh) from = &(threads_[thread.tid] = kBeginning);
    if (thread.pid == kUnknownId || !has_process(thread.pid)) *from = kForever;
    if (thread.tid == 0 && !has_process(kIdleProcess)) *from = kForever; // whose it is unless told otherwise
    if (!fresh || *from == kForever || lifetimes.pid_of_thread(thread.tid, kBeginning)) continue;
    *from = thread.time;
  }
  // Of several records the earliest counts.
  for (const LifetimeRecords::Thread &thread : threads) {
    std::int64_t *from = threads_.find(thread.tid);
    if (*from != kForever && *from != kBeginning) *from = std::min(*from, thread.time);
  }
}

NonTargets::Ids NonTargets::wrong(const NonTargets &final) const {
  Ids ids;
  processes_.for_each([&](std::uint32_t pid, bool none) {
    if (none && !final.has_process(pid)) ids.processes.push_back(pid);
  });
  threads_.for_each([&](std::uint32_t tid, std::int64_t from) {
    if (from != kForever && !final.has_thread(tid, from)) ids.threads.push_back(tid);
  });
  if (has_thread(0, kBeginning) && !final.has_thread(0, kBeginning)) ids.threads.push_back(0);
  return ids;
}

bool UsedIds::may_hold_any(const NonTargets::Ids &ids) const {
  return std::ranges::any_of(ids.processes, [this](std::uint32_t id) { return processes.may_hold(id); }) ||
         std::ranges::any_of(ids.threads, [this](std::uint32_t id) { return threads.may_hold(id); });
}

EarlyFilter::EarlyFilter(const Selection &selection, const Clock &clock)
    : selection_(selection), time_(selected_time(selection, clock)), by_process_(selection.by_process()),
      by_kind_(selection.by_kind()),
      keep_rest_(!by_process_ || (selection.processes.empty() && selection.command_line.empty())) {}

std::optional<Reason> EarlyFilter::drops(const EventView &event, std::int64_t time, Position &position,
                                         const NonTargets &known, UsedIds &used) const {
  const Asked asked{event, time, known, used};
  if (event.has_hook()) return drops_hook(asked, position);
  return event.is_classic() ? drops_classic(asked, position) : drops_rest(asked, position);
}

std::optional<Reason> EarlyFilter::of_unknown() const {
  return keep_rest_ ? std::nullopt : std::optional(Reason::dropped_unknown);
}

std::optional<Reason> EarlyFilter::of_nobody() const {
  return keep_rest_ || selection_.keep_system ? std::nullopt : std::optional(Reason::dropped_system);
}

std::optional<Reason> EarlyFilter::by_process(const Asked &asked, std::uint32_t pid) const {
  if (!by_process_ || !asked.known.has_process(pid)) return std::nullopt;
  asked.used.processes.add(pid);
  return Reason::dropped_process;
}

std::optional<Reason> EarlyFilter::by_thread(const Asked &asked, std::optional<std::uint32_t> tid) const {
  if (!tid || *tid == kUnknownId) return of_unknown();
  if (!by_process_ || !asked.known.has_thread(*tid, asked.time)) return std::nullopt;
  asked.used.threads.add(*tid);
  return Reason::dropped_process;
}

std::optional<Reason> EarlyFilter::by_header(const Asked &asked) const {
  const std::uint32_t pid = asked.event.process_id();
  return pid == kUnknownId ? of_nobody() : by_process(asked, pid);
}

// As owner_of() tells the owner.
std::optional<Reason> EarlyFilter::by_owner(const Asked &asked, const HookRule &rule,
                                            Position &position) const {
  const EventView &event = asked.event;
  const FieldOffsets &at = rule.offsets(event.pointer_size());
  const auto field = [&](std::uint16_t offset) { return FieldOffsets::u32(event.payload(), offset); };
  switch (rule.scope) {
  case Scope::process:
  case Scope::thread:
  case Scope::image:
  case Scope::payload_process:
  case Scope::stack_walk:
  case Scope::stack_reference: {
    const auto pid = field(at.process_id);
    if (pid && *pid != kUnknownId) return by_process(asked, *pid);
    return event.has_ids() ? by_header(asked) : of_unknown();
  }
  case Scope::payload_thread: {
    const auto tid = field(at.thread_id);
    if (tid && *tid != kUnknownId) return by_thread(asked, tid);
    return event.has_ids() ? by_header(asked) : of_unknown();
  }
  case Scope::context_switch: {
    const auto next = field(at.new_thread);
    if (next) position.current_thread = *next;
    asked.used.switches += next ? 1 : 0;
    return by_thread(asked, next);
  }
  case Scope::ready_thread: return by_thread(asked, field(at.thread_id));
  case Scope::current_thread:
    if (event.has_ids() && event.process_id() != kUnknownId) return by_header(asked);
    // Before the first context switch of a buffer, an earlier buffer tells who runs.
    if (position.current_thread == kUnknownId) return std::nullopt;
    return by_thread(asked, position.current_thread);
  case Scope::header: return by_header(asked);
  case Scope::always:
  case Scope::context_switch_batch:
  case Scope::stack_definition:
  case Scope::file_name:
  case Scope::system: break;
  }
  return of_nobody();
}

std::optional<Reason> EarlyFilter::drops_hook(const Asked &asked, Position &position) const {
  const EventView &event = asked.event;
  const HookRule &rule = rule_for(event.hook(), event.version());
  const FieldOffsets &at = rule.offsets(event.pointer_size());
  const std::uint32_t ran_before = position.current_thread;
  std::optional<Reason> reason;
  switch (rule.scope) {
  case Scope::always:
  case Scope::stack_definition:
  case Scope::file_name: return std::nullopt;
  case Scope::process:
  case Scope::thread: {
    reason = by_owner(asked, rule, position);
    const std::uint32_t pid = FieldOffsets::u32(event.payload(), at.process_id).value_or(event.process_id());
    if (pid == kIdleProcess || pid == kSystemProcess || pid == kUnknownId) return std::nullopt;
    break;
  }
  case Scope::image: {
    reason = by_owner(asked, rule, position);
    const auto base = FieldOffsets::pointer(event.payload(), at.image_base, event.pointer_size());
    if (base && format::is_kernel_address(*base, event.pointer_size())) return std::nullopt;
    break;
  }
  case Scope::stack_walk:
  case Scope::stack_reference: reason = by_owner(asked, rule, position); break;
  default:
    reason = by_owner(asked, rule, position); // follows the context switches also where the event itself goes
    if (!time_.contains(asked.time)) return Reason::dropped_time;
    if (by_kind_ && !of_selected_kind(selection_, event, position.processor)) return Reason::dropped_kind;
    if (rule.scope == Scope::context_switch_batch) return std::nullopt;
    if (!reason) return std::nullopt;
    if (rule.scope == Scope::context_switch) {
      const auto other = FieldOffsets::u32(event.payload(), at.old_thread);
      if (other && *other != kUnknownId && !by_thread(asked, other)) return std::nullopt;
    }
    if (rule.scope == Scope::ready_thread && (ran_before == kUnknownId || !by_thread(asked, ran_before)))
      return std::nullopt;
  }
  // Stacks ask for events whose owner is not known: Filter::mark notes them.
  if ((reason == Reason::dropped_unknown || reason == Reason::dropped_system) && rule.scope != Scope::system)
    return std::nullopt;
  return reason;
}

std::optional<Reason> EarlyFilter::drops_classic(const Asked &asked, Position &position) const {
  const EventView &event = asked.event;
  const Guid provider = event.provider();
  if (provider == format::kSysConfigGuid || provider == format::kWinSatGuid ||
      provider == format::kEventTraceGuid || provider == format::kMetaDataGuid)
    return std::nullopt;
  if (provider != format::kImageIdGuid) return drops_rest(asked, position);
  const FieldOffsets &at = image_id_offsets(event.opcode(), event.pointer_size());
  const auto base = FieldOffsets::pointer(event.payload(), at.image_base, event.pointer_size());
  const std::uint32_t pid = FieldOffsets::u32(event.payload(), at.process_id).value_or(event.process_id());
  const bool kernel = base ? format::is_kernel_address(*base, event.pointer_size()) : pid == kIdleProcess;
  return kernel ? std::nullopt : by_process(asked, pid);
}

std::optional<Reason> EarlyFilter::drops_rest(const Asked &asked, Position &position) const {
  const EventView &event = asked.event;
  const bool in_time = time_.contains(asked.time);
  if (event.is_event()) {
    if (event.id() == format::kManifestEventId && event.opcode() == format::kManifestOpcode)
      return std::nullopt;
    if (!in_time && clr::names_code(event.provider(), event.id()))
      return by_process(asked, event.process_id());
  }
  if (!in_time) return Reason::dropped_time;
  if (by_kind_ && !of_selected_kind(selection_, event, position.processor)) return Reason::dropped_kind;
  return by_header(asked);
}

} // namespace etwrelog::filter
