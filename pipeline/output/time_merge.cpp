#include "output/time_merge.hpp"

#include "base/errors.hpp"
#include "etwrelog/event.hpp"
#include "stacks/stack_events.hpp"

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

namespace {

std::int64_t time_of(const TimedEvents &front) {
  return front.events[front.next].time;
}

// The definition of a stack goes before all else of its time. A part of a trace has copies of those that its
// references need; where the kernel gave a key up and used it again at one moment, a copy that came behind
// the new use would answer that.
bool goes_first(const TimedEvents &front) {
  const std::uint8_t *const at = front.bytes.data() + front.events[front.next].begin;
  if (at[3] != format::kMarkerStructured) return false;
  const EventView event(at, front.events[front.next].end - front.events[front.next].begin,
                        static_cast<format::HeaderType>(at[2]));
  return stacks::stack_event_kind(event) == stacks::StackEventKind::definition;
}

} // namespace

Result<void> TimeMerge::emit(Processor &processor, std::int64_t before, bool all, write::Outgoing &out) {
  for (;;) {
    Queue *best = nullptr;
    for (Queue &queue : processor.queues) {
      if (queue.empty()) continue;
      const std::int64_t time = time_of(queue.front());
      const std::int64_t best_time = best ? time_of(best->front()) : time;
      if (!best || time < best_time ||
          (time == best_time && goes_first(queue.front()) && !goes_first(best->front())))
        best = &queue;
    }
    if (!best || (!all && time_of(best->front()) >= before)) return {};
    TimedEvents &front = best->front();
    // What stops the run: the next in time of another trace. Of equal times those before it go first.
    std::int64_t limit = std::numeric_limits<std::int64_t>::max();
    bool limit_included = true;
    for (Queue &queue : processor.queues) {
      if (queue.empty() || &queue == best) continue;
      const std::int64_t time = time_of(queue.front());
      if (time > limit) continue;
      if (time < limit) limit_included = true;
      limit = time;
      limit_included = limit_included && &queue > best && !goes_first(queue.front());
    }
    if (!all && before <= limit) limit = before, limit_included = false;

    const auto begin = front.events.begin() + static_cast<std::ptrdiff_t>(front.next);
    auto end = limit_included ? std::upper_bound(begin, front.events.end(), limit,
                                                 [](std::int64_t t, const auto &e) { return t < e.time; })
                              : std::lower_bound(begin, front.events.end(), limit,
                                                 [](const auto &e, std::int64_t t) { return e.time < t; });
    if (end == begin) ++end; // it goes first of equal times, those behind it do not
    const write::Run run{begin->begin, (end - 1)->end, (end - 1)->own_time};
    ETWRELOG_TRY(output_.fill(front.origin, front.bytes, {&run, 1}, out));
    front.origin.lost_flags = 0; // said once
    front.next = static_cast<std::size_t>(end - front.events.begin());
    if (front.next == front.events.size()) best->pop_front();
  }
}

} // namespace etwrelog::pipeline
