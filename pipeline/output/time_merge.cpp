#include "output/time_merge.hpp"

#include "base/errors.hpp"

#include <algorithm>
#include <limits>

namespace etwrelog::pipeline {

Result<void> TimeMerge::add(std::size_t trace, std::int64_t first, TimedEvents &&events,
                            write::Outgoing &out) {
  const std::size_t number = events.origin.processor;
  if (processors_.size() <= number) processors_.resize(number + 1);
  Processor &processor = processors_[number];
  processor.queues.resize(traces_);
  ETWRELOG_TRY(emit(processor, first, false, out));
  if (!events.events.empty()) processor.queues[trace].push_back(std::move(events));
  return {};
}

Result<void> TimeMerge::finish(write::Outgoing &out) {
  for (Processor &processor : processors_)
    ETWRELOG_TRY(emit(processor, 0, true, out));
  return {};
}

Result<void> TimeMerge::emit(Processor &processor, std::int64_t before, bool all, write::Outgoing &out) {
  const auto time_of = [](const Queue &queue) {
    const TimedEvents &front = queue.front();
    return front.events[front.next].time;
  };
  for (;;) {
    Queue *best = nullptr;
    std::int64_t best_time = 0;
    // What stops the run: the next in time of another trace; those behind it win a tie, those before it lose
    // it.
    std::int64_t limit = std::numeric_limits<std::int64_t>::max();
    bool limit_included = true;
    for (Queue &queue : processor.queues) {
      if (queue.empty()) continue;
      const std::int64_t time = time_of(queue);
      if (!best || time < best_time) {
        if (best && best_time <= limit) limit = best_time, limit_included = false;
        best = &queue, best_time = time;
      } else if (time < limit) {
        limit = time, limit_included = true;
      }
    }
    if (!best || (!all && best_time >= before)) return {};
    if (!all && before <= limit) limit = before, limit_included = false;

    TimedEvents &front = best->front();
    const auto begin = front.events.begin() + static_cast<std::ptrdiff_t>(front.next);
    const auto end = limit_included
                         ? std::upper_bound(begin, front.events.end(), limit,
                                            [](std::int64_t t, const auto &e) { return t < e.time; })
                         : std::lower_bound(begin, front.events.end(), limit,
                                            [](const auto &e, std::int64_t t) { return e.time < t; });
    const write::Run run{begin->begin, (end - 1)->end, (end - 1)->own_time};
    ETWRELOG_TRY(output_.fill(front.origin, front.bytes, {&run, 1}, out));
    front.origin.lost_flags = 0; // said once
    front.next = static_cast<std::size_t>(end - front.events.begin());
    if (front.next == front.events.size()) best->pop_front();
  }
}

} // namespace etwrelog::pipeline
