// Which event of .NET a stack belongs to that its runtime wrote: the one before it on its thread, whatever
// buffer and processor that is in. An event has one stack at most: of a trace that was cut down, others may
// be left of events that are not.
#pragma once

#include "profile/records.hpp"

#include <algorithm>
#include <iterator>
#include <vector>

namespace etwrelog::pipeline {

struct ClrEvent {
  std::uint32_t thread = 0;
  std::int64_t time = 0;
};

// Sets the times of the events that the fragments `stacks` belong to. Sorts both.
inline void find_clr_events(std::vector<ClrEvent> &events, std::vector<std::uint32_t> &stacks,
                            profile::Sequence<profile::Fragment> &fragments) {
  const auto place = [](const ClrEvent &event) { return std::pair(event.thread, event.time); };
  const auto written = [&fragments](std::uint32_t number) {
    return std::pair(fragments[number].thread, fragments[number].time);
  };
  std::ranges::sort(events, {}, place);
  std::ranges::sort(stacks, {}, [&](std::uint32_t number) { return std::pair(written(number), number); });
  auto taken = events.end();
  for (const std::uint32_t number : stacks) {
    const auto behind = std::ranges::upper_bound(events, written(number), {}, place);
    if (behind == events.begin()) continue;
    const auto event = std::prev(behind);
    if (event->thread != fragments[number].thread || event == taken) continue;
    fragments[number].event_time = event->time;
    taken = event;
  }
}

} // namespace etwrelog::pipeline
