#include "passes/durations.hpp"

#include "filter/filter.hpp"
#include "schema/io_requests.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace etwrelog::pipeline {

using filter::FieldOffsets;

std::optional<EventEdge> kernel_edge_of(const EventView &event, std::uint16_t hook) {
  const unsigned group = hook >> 8, opcode = hook & 0xFF;
  EventEdge edge;
  edge.kind = group;
  edge.single = true;
  switch (group) {
  case 0x03: // Process/Start and End, by id
  case 0x05: // Thread/Start and End, by id
  {
    if (opcode != 1 && opcode != 2) return std::nullopt;
    const FieldOffsets &at = filter::rule_for(hook, event.version()).offsets(event.pointer_size());
    const auto id = FieldOffsets::u32(event.payload(), group == 3 ? at.process_id : at.thread_id);
    if (!id) return std::nullopt;
    edge.key = *id, edge.begins = opcode == 1;
    return edge;
  }
  case 0x01: { // DiskIo
    const auto begin = schema::disk_request_begin(hook);
    const auto request = begin ? schema::io_request(event, hook) : std::nullopt;
    if (!request) return std::nullopt;
    edge.key = *request, edge.begins = hook == *begin, edge.request = *begin;
    return edge;
  }
  case 0x04: { // FileIo: requests, and OperationEnd
    if (opcode < 64 || opcode > 77) return std::nullopt;
    const auto request = schema::io_request(event, hook);
    if (!request) return std::nullopt;
    edge.key = *request, edge.begins = hook != schema::kFileOperationEnd;
    return edge;
  }
  case 0x02:
  case 0x09:
  case 0x0F: { // PageFault/HardFault, what is done with keys of the registry, and interrupts: when they began
               // stands first, from these versions on
    constexpr std::uint16_t kHardFault = 0x0220,
                            kInterrupts[] = {0x0F32, 0x0F42, 0x0F43, 0x0F44, 0x0F45, 0x0F46, 0x0F5F};
    const bool interrupt = std::ranges::find(kInterrupts, hook) != std::end(kInterrupts);
    const bool registry =
        hook >= 0x090A && hook <= 0x091D && kernel::scope_of(hook) != kernel::Scope::key_name;
    if (!interrupt && !registry && hook != kHardFault) return std::nullopt;
    if (event.version() < (interrupt ? 1 : 2) || event.payload().size() < 8) return std::nullopt;
    const auto began = load<std::int64_t>(event.payload().data());
    if (began == 0) return std::nullopt;
    edge.took = ticks_between(began, event.header_time());
    return edge;
  }
  default: return std::nullopt;
  }
}

std::int64_t ticks_between(std::int64_t began, std::int64_t ended) {
  std::int64_t ticks = 0;
  return __builtin_sub_overflow(ended, began, &ticks) ? std::numeric_limits<std::int64_t>::max() : ticks;
}

std::int64_t duration_ns(const Clock &clock, std::int64_t ticks) {
  constexpr double kMost = 9e18; // 285 years
  return std::llround(std::clamp(clock.span_seconds(ticks) * 1e9, -kMost, kMost));
}

std::optional<EventEdge> edge_of(const EventView &event) {
  if (const auto hook = kernel::hook_of(event)) return kernel_edge_of(event, *hook);
  const unsigned opcode = event.opcode();
  if (opcode != 1 && opcode != 2) return std::nullopt;
  EventEdge edge;
  // Events of one activity wherever they run, else those of one thread.
  const Guid provider = event.provider(), activity = event.activity();
  const std::uint64_t parts[] = {provider.low, provider.high, event.task(), 0x5354'4152'54ull};
  edge.kind = hash_words(parts);
  if (activity != Guid{})
    edge.key = activity.low, edge.other = activity.high;
  else
    edge.key = event.thread_id(), edge.other = event.process_id();
  edge.begins = opcode == 1;
  return edge;
}

} // namespace etwrelog::pipeline
