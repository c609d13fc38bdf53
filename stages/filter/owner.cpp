#include "filter/filter.hpp"

namespace etwrelog::filter {

using kernel::Scope;

namespace {

Owner of_process(std::optional<std::uint32_t> pid) {
  if (!pid || *pid == kUnknownId) return {Owner::Kind::unknown, 0};
  return {Owner::Kind::process, *pid};
}

Owner of_thread(std::optional<std::uint32_t> tid, std::int64_t time, const Lifetimes &lifetimes) {
  if (!tid || *tid == kUnknownId) return {Owner::Kind::unknown, 0};
  return of_process(lifetimes.pid_of_thread(*tid, time));
}

Owner of_header(const EventView &event) {
  const std::uint32_t pid = event.process_id();
  return pid == kUnknownId ? Owner{Owner::Kind::nobody, 0} : Owner{Owner::Kind::process, pid};
}

Owner of_hook(const EventView &event, std::int64_t time, Position &position, const Lifetimes &lifetimes) {
  const HookRule &rule = rule_for(event.hook(), event.version());
  const FieldOffsets &at = rule.offsets(event.pointer_size());
  switch (rule.scope) {
  case Scope::process:
  case Scope::thread:
  case Scope::image:
  case Scope::payload_process:
  case Scope::stack_walk:
  case Scope::stack_reference: {
    const Owner owner = of_process(FieldOffsets::u32(event.payload(), at.process_id));
    return owner.kind == Owner::Kind::unknown && event.has_ids() ? of_header(event) : owner;
  }
  case Scope::payload_thread: {
    const Owner owner = of_thread(FieldOffsets::u32(event.payload(), at.thread_id), time, lifetimes);
    return owner.kind == Owner::Kind::unknown && event.has_ids() ? of_header(event) : owner;
  }
  case Scope::context_switch: {
    const auto next = FieldOffsets::u32(event.payload(), at.new_thread);
    if (next) position.current_thread = *next;
    return of_thread(next, time, lifetimes);
  }
  case Scope::ready_thread:
    return of_thread(FieldOffsets::u32(event.payload(), at.thread_id), time, lifetimes);
  case Scope::current_thread:
    if (event.has_ids() && event.process_id() != kUnknownId) return of_header(event);
    return of_thread(position.current_thread, time, lifetimes);
  case Scope::header: return of_header(event);
  case Scope::always:
  case Scope::context_switch_batch:
  case Scope::stack_definition:
  case Scope::file_name:
  case Scope::system: break;
  }
  return {};
}

} // namespace

Owner owner_of(const EventView &event, std::int64_t time, Position &position, const Lifetimes &lifetimes) {
  return event.has_hook() ? of_hook(event, time, position, lifetimes) : of_header(event);
}

} // namespace etwrelog::filter
