// Which stack is whose.
#include "export/known.hpp"

#include "etwrelog/clr_events.hpp"
#include "filter/clr_stacks.hpp"

#include <algorithm>

namespace etwrelog::pipeline {

void Knowledge::read_frames(Bytes data, unsigned pointer_size, std::vector<std::uint64_t> &frames) {
  for (std::size_t at = 0; at + pointer_size <= data.size(); at += pointer_size)
    frames.push_back(load_pointer(data.data() + at, pointer_size));
}

void Knowledge::add_stack(std::uint32_t stack, std::vector<std::uint64_t> &frames) const {
  frames.insert(frames.end(), frames_.begin() + static_cast<std::ptrdiff_t>(stack_begins_[stack]),
                frames_.begin() + static_cast<std::ptrdiff_t>(stack_begins_[stack + 1]));
}

std::uint32_t Knowledge::frames_of(const Event &event, std::vector<std::uint64_t> &frames) const {
  const Machine &machine = machines_[event.machine()];
  const auto add_either = [&](std::uint64_t key) {
    if (const auto *found = machine.definitions.resolve_any(key, place_of(event)))
      add_stack(found->stack, frames);
  };
  ExtendedItems items = event.items();
  ExtendedItem item{};
  std::uint64_t match = 0; // of what was written later
  while (items.next(item)) {
    const auto stack = stack_in(item);
    if (!stack) continue;
    match = stack->match;
    if (stack->by_key)
      add_either(stack->key());
    else
      read_frames(stack->data, stack->pointer_size, frames);
  }
  if (match != 0 && !is_later_stack(event)) add_later_part(machine, match, event, frames);
  // Of events of one thread and time the last has the stacks, as in a profile.
  if (frames.empty() && !machine.fragments.empty() && may_have_fragments(event) &&
      !std::ranges::binary_search(machine.followed, place_of(event)))
    add_fragments(machine, own_time(event), logger_of(event), frames);
  if (frames.empty() && !machine.clr_stacks.empty()) add_clr_stack(machine, event, frames);
  const Asked *const asked = frames.empty() ? told_of(event, asked_) : nullptr;
  if (asked == nullptr) return kUnknownId;
  add_fragments(machine, asked->time, asked->thread, frames);
  return asked->thread;
}

void Knowledge::find_asked(const Machine &machine, std::vector<RequestEdge> edges) {
  std::ranges::sort(edges, {}, &RequestEdge::place);
  OpenEdges<const RequestEdge *> open;
  for (const RequestEdge &edge : edges) {
    if (edge.edge.begins) {
      if (!open.begin(edge.edge, 0, &edge))
        problem("more requests than can be open at once: the ends of some have no stack");
      continue;
    }
    const RequestEdge *const begin = open.end(edge.edge, 0).value_or(nullptr);
    if (begin != nullptr && begin->thread != kUnknownId &&
        !std::ranges::binary_search(machine.followed, begin->place))
      asked_.push_back({edge.position, begin->place.time, begin->thread});
  }
}

void Knowledge::add_fragments(const Machine &machine, std::int64_t time, std::uint32_t thread,
                              std::vector<std::uint64_t> &frames) const {
  const auto of = [](const Fragment &f) { return std::pair(f.time, f.thread); };
  const std::pair key(time, thread);
  std::size_t kernel = 0; // frames of kernel halves, which stand in front whichever was written first
  for (auto at = std::ranges::lower_bound(machine.fragments, key, {}, of);
       at != machine.fragments.end() && of(*at) == key; ++at) {
    const auto begin = static_cast<std::ptrdiff_t>(frames.size());
    add_fragment(machine, *at, frames);
    if (frames.size() == static_cast<std::size_t>(begin) ||
        !format::is_kernel_address(frames.back(), at->pointer_size))
      continue;
    std::rotate(frames.begin() + static_cast<std::ptrdiff_t>(kernel), frames.begin() + begin, frames.end());
    kernel += frames.size() - static_cast<std::size_t>(begin);
  }
  if (kernel != 0 && kernel == frames.size()) add_user_half(machine, thread, time, frames);
}

void Knowledge::find_clr_events(Machine &machine) {
  filter::find_clr_events(
      machine.clr_events, machine.clr_stacks,
      [](const filter::EventKey &event) { return std::pair(event.tid, event.time); },
      [](const ClrStack &stack) { return std::pair(stack.thread, stack.written); },
      [](ClrStack &stack, const filter::EventKey &event) { stack.event = event.time; });
  machine.clr_events = {};
  std::erase_if(machine.clr_stacks, [](const ClrStack &stack) { return stack.event == kForever; });
  std::ranges::sort(machine.clr_stacks, {},
                    [](const ClrStack &stack) { return std::pair(stack.thread, stack.event); });
}

void Knowledge::add_clr_stack(const Machine &machine, const Event &event,
                              std::vector<std::uint64_t> &frames) const {
  if (!event.is_event() || !clr::is_runtime(event.provider()) || filter::is_stack_event(event)) return;
  const std::pair key(event.thread_id(), event.time());
  const auto of = [](const ClrStack &stack) { return std::pair(stack.thread, stack.event); };
  const auto at = std::ranges::lower_bound(machine.clr_stacks, key, {}, of);
  if (at != machine.clr_stacks.end() && of(*at) == key) add_stack(at->stack, frames);
}

void Knowledge::add_later_part(const Machine &machine, std::uint64_t match, const Event &event,
                               std::vector<std::uint64_t> &frames) const {
  const filter::LaterKey awaited(match, event.thread_id(), event.time());
  const auto part = filter::find_later_part(machine.later, awaited, LaterPart::key);
  if (part != machine.later.end()) add_stack(part->stack, frames);
}

void Knowledge::add_fragment(const Machine &machine, const Fragment &fragment,
                             std::vector<std::uint64_t> &frames) const {
  if (fragment.stack != kByKey)
    add_stack(fragment.stack, frames);
  else if (const auto *found = machine.definitions.resolve(fragment.key, fragment.kernel, fragment.written))
    add_stack(found->stack, frames);
}

void Knowledge::collect_user_halves(Machine &machine) const {
  std::vector<std::uint64_t> frames;
  for (std::size_t i = 0; i < machine.fragments.size(); ++i) {
    const Fragment &fragment = machine.fragments[i];
    frames.clear();
    add_fragment(machine, fragment, frames);
    if (frames.empty() || format::is_kernel_address(frames.front(), fragment.pointer_size)) continue;
    machine.user_halves.push_back(
        {fragment.thread, fragment.written.time, fragment.time, static_cast<std::uint32_t>(i)});
  }
  std::ranges::sort(machine.user_halves, {}, [&machine](const UserHalf &h) {
    return std::pair(h.thread, machine.fragments[h.fragment].written); // of one time in the order of the file
  });
}

// The half that was written next and names an event that is no later, as in a profile.
void Knowledge::add_user_half(const Machine &machine, std::uint32_t thread, std::int64_t time,
                              std::vector<std::uint64_t> &frames) const {
  constexpr int kMostTried = 256; // nearly always the first one fits
  const auto of = [](const UserHalf &h) { return std::pair(h.thread, h.written); };
  auto at = std::ranges::lower_bound(machine.user_halves, std::pair(thread, time), {}, of);
  for (int tried = 0; tried < kMostTried && at != machine.user_halves.end() && at->thread == thread;
       ++tried, ++at)
    if (at->since <= time) return add_fragment(machine, machine.fragments[at->fragment], frames);
}

} // namespace etwrelog::pipeline
