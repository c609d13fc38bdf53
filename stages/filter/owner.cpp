#include "filter/filter.hpp"

namespace etwrelog::filter {

using kernel::Scope;

namespace {

Claim by_process(std::uint32_t pid) {
  return {kUnknownId, pid, Claim::Rest::nobody};
}

Claim by_header(const EventView &event) {
  return by_process(event.process_id());
}

Claim by_thread(std::optional<std::uint32_t> tid) {
  return {tid.value_or(kUnknownId), kUnknownId, Claim::Rest::unknown};
}

} // namespace

Claim claim_of(const EventView &event, const HookRule &rule, Position &position) {
  const FieldOffsets &at = rule.offsets(event.pointer_size());
  switch (rule.scope) {
  case Scope::process:
  case Scope::thread:
  case Scope::image:
  case Scope::payload_process:
  case Scope::stack_walk:
  case Scope::stack_reference: {
    const auto pid = FieldOffsets::u32(event.payload(), at.process_id);
    if (pid && *pid != kUnknownId) return {kUnknownId, *pid, Claim::Rest::unknown};
    return says_causer(event) ? by_header(event) : by_thread(std::nullopt);
  }
  case Scope::payload_thread: {
    const auto tid = FieldOffsets::u32(event.payload(), at.thread_id);
    if (!says_causer(event)) return by_thread(tid);
    return {tid.value_or(kUnknownId), event.process_id(), Claim::Rest::nobody};
  }
  case Scope::context_switch: {
    const auto next = FieldOffsets::u32(event.payload(), at.new_thread);
    if (next) position.current_thread = *next, position.switched = true;
    return by_thread(next);
  }
  case Scope::ready_thread: return by_thread(FieldOffsets::u32(event.payload(), at.thread_id));
  case Scope::current_thread:
    if (says_causer(event) && event.process_id() != kUnknownId) return by_header(event);
    return {position.current_thread, kUnknownId,
            position.switched ? Claim::Rest::unknown : Claim::Rest::who_ran};
  case Scope::header:
  case Scope::key_name: return by_header(event);
  case Scope::always:
  case Scope::context_switch_batch:
  case Scope::stack_definition:
  case Scope::file_name:
  case Scope::system: break;
  }
  return {};
}

Claim claim_of(const EventView &event, Position &position) {
  const HookRule *const rule = rule_of(event);
  return rule ? claim_of(event, *rule, position)
              : by_process(network_process(event).value_or(event.process_id()));
}

Owner owner_of(const Claim &claim, std::int64_t time, const Lifetimes &lifetimes) {
  if (claim.tid() != kUnknownId)
    if (const auto pid = lifetimes.pid_of_thread(claim.tid(), time); pid && *pid != kUnknownId)
      return {Owner::Kind::process, *pid};
  if (claim.pid() != kUnknownId) return {Owner::Kind::process, claim.pid()};
  return {claim.rest() == Claim::Rest::nobody ? Owner::Kind::nobody : Owner::Kind::unknown, 0};
}

Owner owner_of(const EventView &event, std::int64_t time, Position &position, const Lifetimes &lifetimes) {
  return owner_of(claim_of(event, position), time, lifetimes);
}

std::uint32_t named_process(const EventView &event, std::int64_t time, const Lifetimes &lifetimes) {
  const std::uint32_t pid = event.process_id();
  if (pid != kUnknownId || rule_of(event) == nullptr) return pid;
  Position nobody_ran;
  const Owner owner = owner_of(event, time, nobody_ran, lifetimes);
  return owner.kind == Owner::Kind::process ? owner.pid : kUnknownId;
}

} // namespace etwrelog::filter
