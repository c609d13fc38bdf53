// Which event of .NET a stack belongs to that its runtime wrote: the one before it on its thread, whatever
// buffer and processor that is in. An event has one stack at most: of a trace that was cut down, others may
// be left of events that are not.
#pragma once

#include <algorithm>
#include <iterator>
#include <utility>

namespace etwrelog::filter {

// Calls found(stack, event) for each stack whose event is there. `of_event`, `of_stack`: the thread and the
// time of one, as a pair. Sorts both.
template <class Events, class Stacks, class OfEvent, class OfStack, class Found>
void find_clr_events(Events &events, Stacks &stacks, OfEvent &&of_event, OfStack &&of_stack, Found &&found) {
  std::ranges::sort(events, {}, of_event);
  std::ranges::sort(stacks, {}, [&](const auto &stack) { return std::pair(of_stack(stack), stack); });
  auto taken = events.end();
  for (auto &stack : stacks) {
    const auto written = of_stack(stack);
    const auto behind = std::ranges::upper_bound(events, written, {}, of_event);
    if (behind == events.begin()) continue;
    const auto event = std::prev(behind);
    if (event == taken || of_event(*event).first != written.first) continue;
    found(stack, *event);
    taken = event;
  }
}

} // namespace etwrelog::filter
