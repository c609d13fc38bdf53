#include "profile/join_within.hpp"

#include "profile/halves.hpp"

#include <algorithm>

namespace etwrelog::profile {
namespace {

// Walks over marks in the order of time. Fragments name events near each other, so the next place is looked
// for near the last one.
class Cursor {
public:
  explicit Cursor(std::span<const Mark> marks) : marks_(marks) {}

  // The first mark at that time or later.
  std::size_t seek(std::int64_t time) {
    constexpr int kNear = 16;
    int steps = kNear;
    while (at_ > 0 && marks_[at_ - 1].time >= time && --steps > 0)
      --at_;
    while (at_ < marks_.size() && marks_[at_].time < time && --steps > 0)
      ++at_;
    if (steps == 0)
      at_ =
          static_cast<std::size_t>(std::ranges::lower_bound(marks_, time, {}, &Mark::time) - marks_.begin());
    return at_;
  }

private:
  std::span<const Mark> marks_;
  std::size_t at_ = 0;
};

} // namespace

void join_within(std::span<Subject> subjects, std::span<const Mark> marks, std::span<Fragment> fragments,
                 std::size_t from) {
  if (marks.empty() || from == fragments.size() || !std::ranges::is_sorted(marks, {}, &Mark::time)) return;
  const std::int64_t end = marks.back().time;
  Cursor cursor(marks);
  for (std::size_t number = from; number < fragments.size(); ++number) {
    Fragment &fragment = fragments[number];
    if (fragment.event_time >= end || fragment.thread == kUnknownId || fragment.is(Fragment::kReference))
      continue;
    constexpr std::size_t kMany = 64; // events of one time: a trap, not a trace
    const std::size_t first = cursor.seek(fragment.event_time);
    std::size_t i = first;
    const Mark *owner = nullptr;
    for (; marks[i].time == fragment.event_time && i - first < kMany; ++i) { // the last has another time
      const Mark &mark = marks[i];
      const bool is_subject = mark.kind == Mark::kSubject;
      if ((is_subject ? subjects[mark.thread].thread : mark.thread) == fragment.thread) owner = &mark;
    }
    if (owner == nullptr || i - first == kMany) continue;
    if (owner->kind != Mark::kSubject) {
      fragment.owner = owner->kind;
      continue;
    }
    fragment.owner = Fragment::kOfSubject;
    if (fragment.is(Fragment::kHasFrames))
      give_stack(subjects[owner->thread], fragments, static_cast<std::uint32_t>(number));
  }
}

TimeRange times_of(std::span<const Mark> marks) {
  TimeRange times;
  for (const Mark &mark : marks) {
    times.from = std::min(times.from, mark.time);
    times.to = std::max(times.to, mark.time);
  }
  return times;
}

void Overlaps::add(std::uint16_t processor, TimeRange times) {
  if (times.empty()) return;
  if (processor >= latest_.size())
    latest_.resize(std::size_t{processor} + 1, std::numeric_limits<std::int64_t>::min());
  std::int64_t &latest = latest_[processor];
  if (times.from < latest) found_.push_back({times.from, latest});
  latest = std::max(latest, times.to);
}

std::vector<TimeRange> Overlaps::take() && {
  std::ranges::sort(found_, {}, &TimeRange::from);
  std::vector<TimeRange> apart;
  for (const TimeRange &range : found_)
    if (!apart.empty() && range.from <= apart.back().to)
      apart.back().to = std::max(apart.back().to, range.to);
    else
      apart.push_back(range);
  return apart;
}

void reopen(Records &records, std::span<const TimeRange> overlaps) {
  if (overlaps.empty()) return;
  const auto inside = [&](std::int64_t time) {
    const auto behind = std::ranges::upper_bound(overlaps, time, {}, &TimeRange::from);
    return behind != overlaps.begin() && time <= std::prev(behind)->to;
  };
  for (std::size_t i = 0; i < records.fragments.size(); ++i)
    if (Fragment &fragment = records.fragments[i]; inside(fragment.event_time))
      fragment.owner = Fragment::kOrphaned;
  for (std::size_t i = 0; i < records.subjects.size(); ++i)
    if (Subject &subject = records.subjects[i]; inside(subject.time)) {
      subject.kernel = subject.user = Subject::kNoFragment;
      subject.flags &= Subject::kInDpc | Subject::kInIsr;
    }
}

} // namespace etwrelog::profile
