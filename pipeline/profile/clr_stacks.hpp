// Which event of .NET a stack belongs to that its runtime wrote: the one before it on its thread. That stands
// in another buffer where one was full in between, or the thread went to another processor.
#pragma once

#include "profile/records.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <vector>

namespace etwrelog::pipeline {

struct ClrEvent {
  std::uint32_t thread = 0;
  std::int64_t time = 0;
};

// Of one buffer, in its order: the last event of each thread as long as no stack of it has come.
class OpenClrEvents {
public:
  void add(std::uint32_t thread, std::int64_t time) {
    const auto found = std::ranges::find(events_, thread, &ClrEvent::thread);
    (found != events_.end() ? *found : events_.emplace_back()) = {thread, time};
  }
  // The time of the event that a stack belongs to; none: it is in another buffer.
  [[nodiscard]] std::optional<std::int64_t> take(std::uint32_t thread) {
    const auto found = std::ranges::find(events_, thread, &ClrEvent::thread);
    if (found == events_.end()) return std::nullopt;
    const std::int64_t time = found->time;
    *found = events_.back();
    events_.pop_back();
    return time;
  }
  [[nodiscard]] const std::vector<ClrEvent> &left() const { return events_; }

private:
  std::vector<ClrEvent> events_;
};

// Of all buffers, what stayed open in each: sets the times of the events that the fragments belong to.
inline void find_clr_events(std::vector<ClrEvent> &events, const std::vector<std::uint32_t> &stacks,
                            profile::Sequence<profile::Fragment> &fragments) {
  const auto place = [](const ClrEvent &event) { return std::pair(event.thread, event.time); };
  std::ranges::sort(events, {}, place);
  for (const std::uint32_t number : stacks) {
    profile::Fragment &stack = fragments[number];
    const auto behind = std::ranges::upper_bound(events, std::pair(stack.thread, stack.time), {}, place);
    if (behind != events.begin() && std::prev(behind)->thread == stack.thread)
      stack.event_time = std::prev(behind)->time;
  }
}

} // namespace etwrelog::pipeline
