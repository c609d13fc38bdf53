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

NonTargets::Ids NonTargets::wrong(const NonTargets &later) const {
  Ids ids;
  processes_.for_each([&](std::uint32_t pid, bool none) {
    if (none && !later.has_process(pid)) ids.processes.push_back(pid);
  });
  threads_.for_each([&](std::uint32_t tid, std::int64_t from) {
    if (from != kForever && !later.has_thread(tid, from)) ids.threads.emplace_back(tid, from);
  });
  if (has_thread(0, kBeginning) && !later.has_thread(0, kBeginning)) ids.threads.emplace_back(0, kBeginning);
  return ids;
}

void Mistakes::add(std::uint32_t version, const NonTargets &of_version, const NonTargets &next) {
  const NonTargets::Ids wrong = of_version.wrong(next);
  for (const std::uint32_t id : wrong.processes)
    processes_.push_back({version, id, kBeginning});
  for (const auto &[id, from] : wrong.threads)
    threads_.push_back({version, id, from});
}

std::span<const Mistakes::Id> Mistakes::since(const std::vector<Id> &ids, std::uint32_t version) {
  return {std::ranges::lower_bound(ids, version, {}, &Id::version), ids.end()};
}

bool Mistakes::may_touch(const UsedIds &used, std::uint32_t version) const {
  return std::ranges::any_of(since(processes_, version),
                             [&](Id id) { return used.processes.may_hold(id.id); }) ||
         std::ranges::any_of(since(threads_, version),
                             [&](Id id) { return id.from <= used.to && used.threads.may_hold(id.id); });
}

bool Mistakes::spare(const UsedIds &used, std::uint32_t version, const Lifetimes &lifetimes,
                     const Targets &targets) const {
  constexpr std::size_t kMost = 4096; // ids to look at, for each buffer
  const std::span<const Id> processes = since(processes_, version), threads = since(threads_, version);
  if (processes.size() > kMost || threads.size() > kMost) return false;
  const auto no_target = [&](std::uint32_t pid) {
    const auto first = lifetimes.process_at(pid, used.from), last = lifetimes.process_at(pid, used.to);
    if (!first || !last) return false;
    for (std::uint32_t i = *first; i <= *last; ++i)
      if (targets.is_target(i)) return false;
    return true;
  };
  for (const Id id : processes)
    if (used.processes.may_hold(id.id) && !no_target(id.id)) return false;
  for (const Id id : threads) {
    if (id.from > used.to || !used.threads.may_hold(id.id)) continue;
    const auto spans = lifetimes.spans_of(id.id, std::max(used.from, id.from), used.to);
    if (spans.empty()) return false;
    for (const Lifetimes::Span &span : spans)
      if (!no_target(span.pid)) return false;
  }
  return true;
}

EarlyFilter::EarlyFilter(const Selection &selection, const Clock &clock)
    : selection_(selection), time_(selected_time(selection, clock)), by_process_(selection.by_process()),
      by_kind_(selection.by_kind()),
      keep_rest_(!by_process_ || (selection.processes.empty() && selection.command_line.empty())) {}

std::optional<Reason> EarlyFilter::of_unknown() const {
  return keep_rest_ ? std::nullopt : std::optional(Reason::dropped_unknown);
}

std::optional<Reason> EarlyFilter::of_nobody() const {
  return keep_rest_ || selection_.keep_system ? std::nullopt : std::optional(Reason::dropped_system);
}

std::optional<Reason> EarlyFilter::by_thread(EarlyWalk &walk, std::optional<std::uint32_t> tid,
                                             std::int64_t time) const {
  if (!tid || *tid == kUnknownId) return of_unknown();
  if (!by_process_ || !walk.drops_thread(*tid, time)) return std::nullopt;
  return Reason::dropped_process;
}

std::optional<Reason> EarlyFilter::by_header(const EventView &event, std::int64_t time,
                                             EarlyWalk &walk) const {
  const std::uint32_t pid = network_process(event).value_or(event.process_id());
  return pid == kUnknownId ? of_nobody() : by_process(walk, pid, time);
}

// As owner_of() tells the owner.
std::optional<Reason> EarlyFilter::by_owner(const EventView &event, const HookRule &rule, std::int64_t time,
                                            EarlyWalk &walk) const {
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
    if (pid && *pid != kUnknownId) return by_process(walk, *pid, time);
    return says_causer(event) ? by_header(event, time, walk) : of_unknown();
  }
  case Scope::payload_thread: {
    const auto tid = field(at.thread_id);
    if (tid && *tid != kUnknownId) return by_thread(walk, tid, time);
    return says_causer(event) ? by_header(event, time, walk) : of_unknown();
  }
  case Scope::context_switch: {
    const auto next = field(at.new_thread);
    if (next) walk.switch_to(*next);
    return by_thread(walk, next, time);
  }
  case Scope::ready_thread: return by_thread(walk, field(at.thread_id), time);
  case Scope::current_thread:
    if (says_causer(event) && event.process_id() != kUnknownId) return by_header(event, time, walk);
    // Before the first context switch of a buffer, an earlier buffer tells who runs.
    if (walk.position.current_thread == kUnknownId) return std::nullopt;
    return by_thread(walk, walk.position.current_thread, time);
  case Scope::header:
  case Scope::key_name: return by_header(event, time, walk);
  case Scope::always:
  case Scope::context_switch_batch:
  case Scope::stack_definition:
  case Scope::file_name:
  case Scope::system: break;
  }
  return of_nobody();
}

// With all that it calls in one function, each call knows the scope: a tenth of the first pass.
[[gnu::flatten]] std::optional<Reason> EarlyFilter::drops_hook(const EventView &event, const HookRule &rule,
                                                               std::int64_t time, EarlyWalk &walk) const {
  const FieldOffsets &at = rule.offsets(event.pointer_size());
  const std::uint32_t ran_before = walk.position.current_thread;
  std::optional<Reason> reason;
  switch (rule.scope) {
  case Scope::always:
  case Scope::stack_definition:
  case Scope::file_name:
  case Scope::key_name: return std::nullopt;
  case Scope::process:
  case Scope::thread: {
    reason = by_owner(event, rule, time, walk);
    const std::uint32_t pid = FieldOffsets::u32(event.payload(), at.process_id).value_or(event.process_id());
    if (pid == kIdleProcess || pid == kSystemProcess || pid == kUnknownId) return std::nullopt;
    break;
  }
  case Scope::image: {
    reason = by_owner(event, rule, time, walk);
    const auto base = FieldOffsets::pointer(event.payload(), at.image_base, event.pointer_size());
    if (base && format::is_kernel_address(*base, event.pointer_size())) return std::nullopt;
    break;
  }
  case Scope::stack_walk:
  case Scope::stack_reference: reason = by_owner(event, rule, time, walk); break;
  default:
    reason =
        by_owner(event, rule, time, walk); // follows the context switches also where the event itself goes
    if (!time_.contains(time)) return Reason::dropped_time;
    if (by_kind_ && !of_selected_kind(selection_, event, walk.position.processor))
      return Reason::dropped_kind;
    if (rule.scope == Scope::context_switch_batch) return std::nullopt;
    if (!reason) return std::nullopt;
    if (rule.scope == Scope::context_switch) {
      const auto other = FieldOffsets::u32(event.payload(), at.old_thread);
      if (other && *other != kUnknownId && !by_thread(walk, other, time)) return std::nullopt;
    }
    if (rule.scope == Scope::ready_thread && (ran_before == kUnknownId || !by_thread(walk, ran_before, time)))
      return std::nullopt;
  }
  // Stacks ask for events whose owner is not known: Filter::mark notes them.
  if ((reason == Reason::dropped_unknown || reason == Reason::dropped_system) && rule.scope != Scope::system)
    return std::nullopt;
  return reason;
}

std::optional<Reason> EarlyFilter::drops_other(const EventView &event, std::int64_t time,
                                               EarlyWalk &walk) const {
  if (!event.is_classic()) return drops_rest(event, time, walk);
  const Guid provider = event.provider();
  if (provider != format::kImageIdGuid) {
    if (describes_system(provider) || provider == format::kMetaDataGuid) return std::nullopt;
    return drops_rest(event, time, walk);
  }
  const IdentifiedImage image = identified_image(event);
  return image.in_kernel ? std::nullopt : by_process(walk, image.pid, time);
}

std::optional<Reason> EarlyFilter::drops_rest(const EventView &event, std::int64_t time,
                                              EarlyWalk &walk) const {
  const bool in_time = time_.contains(time);
  const bool of_kind = !by_kind_ || of_selected_kind(selection_, event, walk.position.processor);
  if (event.is_event()) {
    if (event.id() == format::kManifestEventId && event.opcode() == format::kManifestOpcode)
      return std::nullopt;
    if (state_of_provider(event)) return std::nullopt; // some are of two processes, or context
    if (of_kind && in_time) return by_header(event, time, walk);
    const Guid provider = event.provider();
    if (clr::names_code(provider, event.id()))
      return by_process(walk, event.process_id(), time); // as stacks do
    if (in_time && (clr::is_runtime(provider) || is_later_stack(event))) {
      const std::optional<Reason> reason = by_process(walk, event.process_id(), time);
      if (!reason) return std::nullopt; // also of those that go, stacks are told whose they are not
      return is_stack_event(event) ? *reason : Reason::dropped_kind;
    }
  }
  if (!in_time) return Reason::dropped_time;
  if (!of_kind) return Reason::dropped_kind;
  return by_header(event, time, walk);
}

} // namespace etwrelog::filter
