#include "profile/join.hpp"

#include "profile/halves.hpp"
#include "profile/join_within.hpp"
#include "profile/lending.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <numeric>
#include <tuple>
#include <utility>

namespace etwrelog::profile {
namespace {

constexpr std::size_t kPartitions = 256;

std::uint64_t spread(std::int64_t time) {
  return static_cast<std::uint64_t>(time) * 0x9E37'79B9'7F4A'7C15ull;
}
std::size_t partition_of(std::uint64_t spread_time) {
  return static_cast<std::size_t>(spread_time >> 56);
}

// The times that fragments name, as a set that may also say yes to a few others.
class WantedTimes {
public:
  explicit WantedTimes(std::size_t count)
      : bits_(std::clamp<std::size_t>(std::bit_ceil(count * 8 + 1), 1u << 12, std::size_t{1} << 30) / 64),
        mask_(bits_.size() * 64 - 1) {}
  void add(std::uint64_t spread_time) {
    const std::uint64_t bit = position(spread_time);
    std::atomic_ref(bits_[bit / 64]).fetch_or(1ull << bit % 64, std::memory_order_relaxed);
  }
  [[nodiscard]] bool has(std::uint64_t spread_time) const {
    const std::uint64_t bit = position(spread_time);
    return (bits_[bit / 64] >> bit % 64 & 1) != 0;
  }

private:
  // The top bits choose the partition, these the bit.
  [[nodiscard]] std::uint64_t position(std::uint64_t spread_time) const { return spread_time >> 20 & mask_; }

  std::vector<std::uint64_t> bits_;
  std::uint64_t mask_;
};

// The items of one chunk by partition, each partition in the order of the file.
template <class T> struct Partitioned {
  std::vector<T> items;
  std::array<std::uint32_t, kPartitions + 1> first{};

  [[nodiscard]] std::span<const T> of(std::size_t partition) const {
    return std::span(items).subspan(first[partition], first[partition + 1] - first[partition]);
  }
  // visit(take) calls take(partition, item) for each item, twice.
  template <class Visit> void fill(Visit &&visit) {
    visit([&](std::size_t partition, const T &) { ++first[partition + 1]; });
    for (std::size_t i = 0; i < kPartitions; ++i)
      first[i + 1] += first[i];
    items.resize(first[kPartitions]);
    std::array<std::uint32_t, kPartitions> next;
    std::copy_n(first.begin(), kPartitions, next.begin());
    visit([&](std::size_t partition, const T &item) { items[next[partition]++] = item; });
  }
};

// The events of one partition, sorted, so that any number of them may bear one time: clocks can be coarse.
class EventsByTime {
public:
  static constexpr std::uint32_t kNone = 0xFFFF'FFFF;

  struct Event {
    std::int64_t time;
    std::uint32_t thread, order, latest;
    std::uint32_t subject; // its number, if `kind` says that it is one
    std::uint16_t processor, kind;
    [[nodiscard]] auto key() const { return std::tuple(time, thread, processor, order); }
  };

  // In the order of the file.
  void add(const Mark &mark, std::uint32_t thread) {
    const auto order = static_cast<std::uint32_t>(events_.size());
    events_.push_back({mark.time, thread, order, order, mark.thread, processor_of(mark), mark.kind});
  }
  void reserve(std::size_t count) { events_.reserve(count); }
  void close() {
    std::ranges::sort(events_, {}, [](const Event &e) { return e.key(); });
    // All of one time and thread know which of them is the last in the file.
    for (std::size_t i = 0; i < events_.size();) {
      std::size_t end = i;
      std::uint32_t latest = kNone;
      for (; end < events_.size() && same_thread(events_[end], events_[i]); ++end)
        if (latest == kNone || events_[end].order > events_[latest].order)
          latest = static_cast<std::uint32_t>(end);
      for (; i < end; ++i)
        events_[i].latest = latest;
    }
  }

  // The last event of the time and thread, on the processor if there is one.
  [[nodiscard]] std::uint32_t find(std::int64_t time, std::uint32_t thread, std::uint16_t processor) const {
    const std::size_t behind = end_of(time, thread, processor);
    if (behind > 0 && is(behind - 1, time, thread))
      return events_[behind - 1].processor == processor ? static_cast<std::uint32_t>(behind - 1)
                                                        : events_[behind - 1].latest;
    return behind < events_.size() && is(behind, time, thread) ? events_[behind].latest : kNone;
  }
  // Those of the time that do not tell their thread.
  [[nodiscard]] std::pair<std::uint32_t, std::uint32_t> unknown(std::int64_t time) const {
    return {static_cast<std::uint32_t>(end_of(time, kUnknownId - 1, 0xFFFF)),
            static_cast<std::uint32_t>(end_of(time, kUnknownId, 0xFFFF))};
  }

  const Event &operator[](std::uint32_t place) const { return events_[place]; }

private:
  static bool same_thread(const Event &a, const Event &b) { return a.time == b.time && a.thread == b.thread; }
  static std::uint16_t processor_of(const Mark &mark) { return mark.processor & 0x7FF; }
  [[nodiscard]] bool is(std::size_t place, std::int64_t time, std::uint32_t thread) const {
    return events_[place].time == time && events_[place].thread == thread;
  }
  [[nodiscard]] std::size_t end_of(std::int64_t time, std::uint32_t thread, std::uint16_t processor) const {
    return static_cast<std::size_t>(
        std::ranges::upper_bound(events_, std::tuple(time, thread, processor), {},
                                 [](const Event &e) { return std::tuple(e.time, e.thread, e.processor); }) -
        events_.begin());
  }
  std::vector<Event> events_;
};

// The events of one time that do not tell their thread, each given away once.
class UnknownThreads {
public:
  static constexpr std::uint32_t kNone = EventsByTime::kNone;

  explicit UnknownThreads(const EventsByTime &events) : events_(events) {}

  void begin(std::int64_t time) {
    processors_.clear();
    by_order_.clear();
    const auto [first, end] = events_.unknown(time);
    first_ = first;
    for (std::uint32_t place = first; place < end; ++place) {
      if (processors_.empty() || processors_.back().processor != events_[place].processor)
        processors_.push_back({events_[place].processor, place, place});
      processors_.back().behind = place + 1;
      by_order_.push_back(place);
    }
    gone_.assign(by_order_.size(), false);
    std::ranges::sort(by_order_, {}, [&](std::uint32_t place) { return events_[place].order; });
  }
  // The last that is left, on the processor if there is one.
  [[nodiscard]] std::uint32_t last(std::uint16_t processor) {
    const auto here = std::ranges::lower_bound(processors_, processor, {}, &Stretch::processor);
    if (here != processors_.end() && here->processor == processor) {
      while (here->behind > here->first && gone_[here->behind - 1 - first_])
        --here->behind;
      if (here->behind > here->first) return here->behind - 1;
    }
    while (!by_order_.empty() && gone_[by_order_.back() - first_])
      by_order_.pop_back();
    return by_order_.empty() ? kNone : by_order_.back();
  }
  void take(std::uint32_t place) { gone_[place - first_] = true; }

private:
  struct Stretch { // of the events of one processor
    std::uint16_t processor;
    std::uint32_t first, behind;
  };
  const EventsByTime &events_;
  std::uint32_t first_ = 0;
  std::vector<Stretch> processors_;
  std::vector<std::uint32_t> by_order_;
  std::vector<bool> gone_;
};

// Finds the owners of the fragments that have none yet.
class Owners {
public:
  explicit Owners(Records &records) : records_(records) {}

  void run(const ParallelFor &parallel) {
    fragments_.resize(records_.fragments.chunks());
    parallel(fragments_.size(), [&](std::size_t i) {
      const std::span<const Fragment> chunk = std::as_const(records_.fragments).chunk(i);
      fragments_[i].fill([&](auto take) {
        for (std::size_t k = 0; k < chunk.size(); ++k)
          if (chunk[k].owner == Fragment::kOrphaned)
            take(partition_of(spread(chunk[k].event_time)),
                 static_cast<std::uint32_t>((i << Sequence<Fragment>::kChunkBits) + k));
      });
    });
    std::size_t open = 0;
    for (const auto &part : fragments_)
      open += part.items.size();
    WantedTimes wanted(open);
    parallel(fragments_.size(), [&](std::size_t i) {
      for (const std::uint32_t number : fragments_[i].items)
        wanted.add(spread(records_.fragments[number].event_time));
    });
    marks_.resize(records_.marks.chunks());
    parallel(marks_.size(), [&](std::size_t i) {
      marks_[i].fill([&](auto take) {
        records_.marks.visit(i, records_.subjects, [&](const Mark &mark) {
          if (const std::uint64_t time = spread(mark.time); wanted.has(time)) take(partition_of(time), mark);
        });
      });
      records_.marks.release_chunk(i);
    });
    records_.marks.clear();
    parallel(kPartitions, [&](std::size_t partition) { match(partition); });
  }

private:
  [[nodiscard]] std::uint32_t thread_of(const Mark &mark) const {
    return mark.kind == Mark::kSubject ? records_.subjects[mark.thread].thread : mark.thread;
  }

  void match(std::size_t partition) {
    std::size_t count = 0;
    for (const auto &part : marks_)
      count += part.of(partition).size();
    EventsByTime events;
    events.reserve(count);
    bool unknown = false;
    for (const auto &part : marks_)
      for (const Mark &mark : part.of(partition)) {
        const std::uint32_t thread = thread_of(mark);
        unknown = unknown || thread == kUnknownId;
        events.add(mark, thread);
      }
    events.close();
    std::vector<std::uint32_t> undecided;
    for (const auto &part : fragments_)
      for (const std::uint32_t number : part.of(partition)) {
        const Fragment &fragment = records_.fragments[number];
        const std::uint32_t found =
            fragment.thread == kUnknownId
                ? EventsByTime::kNone
                : events.find(fragment.event_time, fragment.thread, fragment.processor);
        if (found != EventsByTime::kNone)
          own(number, events[found]);
        else if (unknown)
          undecided.push_back(number);
      }
    match_undecided(events, undecided);
  }

  // An event that does not tell its thread gets that of the first fragment that it alone can answer; so these
  // fragments are taken in the order in which they were written.
  void match_undecided(const EventsByTime &events, std::vector<std::uint32_t> &numbers) {
    std::ranges::sort(numbers, {}, [&](std::uint32_t number) {
      const Fragment &f = records_.fragments[number];
      return std::tuple(f.event_time, f.time, number);
    });
    UnknownThreads unknown(events);
    Threads threads;
    for (std::size_t i = 0, end = 0; i < numbers.size(); i = end) {
      const std::int64_t time = records_.fragments[numbers[i]].event_time;
      while (end < numbers.size() && records_.fragments[numbers[end]].event_time == time)
        ++end;
      group_by_thread(std::span(numbers).subspan(i, end - i), threads);
      unknown.begin(time);
      for (std::size_t k = i; k < end; ++k) {
        const Fragment &fragment = records_.fragments[numbers[k]];
        OfThread &of_thread = threads.fragments[threads.fragments[k - i].first];
        if (of_thread.event != EventsByTime::kNone) {
          own(numbers[k], events[of_thread.event]);
          continue;
        }
        const std::uint32_t found = unknown.last(fragment.processor);
        if (found == EventsByTime::kNone) continue;
        own(numbers[k], events[found]);
        if (fragment.thread == kUnknownId) continue;
        of_thread.event = found;
        unknown.take(found);
      }
    }
  }

  struct OfThread {                            // of a fragment among those of one time
    std::uint32_t first = 0;                   // of its thread's
    std::uint32_t event = EventsByTime::kNone; // of a first one: what its thread was given
  };
  struct Threads {
    std::vector<OfThread> fragments;
    std::vector<std::uint32_t> order;
  };
  void group_by_thread(std::span<const std::uint32_t> numbers, Threads &threads) {
    const auto thread = [&](std::uint32_t at) { return records_.fragments[numbers[at]].thread; };
    threads.fragments.assign(numbers.size(), {});
    threads.order.resize(numbers.size());
    std::iota(threads.order.begin(), threads.order.end(), 0u);
    std::ranges::sort(threads.order, {}, [&](std::uint32_t at) { return std::pair(thread(at), at); });
    std::uint32_t first = threads.order.front();
    for (const std::uint32_t at : threads.order) {
      if (thread(at) != thread(first)) first = at;
      threads.fragments[at].first = first;
    }
  }

  void own(std::uint32_t number, const EventsByTime::Event &owner) {
    Fragment &fragment = records_.fragments[number];
    fragment.owner = owner.kind;
    if (owner.kind != Mark::kSubject) return;
    fragment.owner = Fragment::kOfSubject;
    Subject &subject = records_.subjects[owner.subject];
    if (subject.thread == kUnknownId) subject.thread = fragment.thread;
    if (fragment.is(Fragment::kHasFrames)) give_stack(subject, records_.fragments, number);
  }

  Records &records_;
  std::vector<Partitioned<std::uint32_t>> fragments_;
  std::vector<Partitioned<Mark>> marks_;
};

// Gives the fragments that name a beginning to what ended it.
void give_to_ends(Records &records, const ParallelFor &parallel) {
  std::erase_if(records.begun, [&](const Begun &begun) { // one of their own goes before
    const Subject &subject = records.subjects[begun.subject];
    return subject.kernel != Subject::kNoFragment || subject.user != Subject::kNoFragment;
  });
  if (records.begun.empty()) return;
  const auto place = [](const Begun &begun) { return std::pair(begun.time, begun.thread); };
  struct Given {
    std::uint32_t subject, fragment;
  };
  std::vector<std::vector<Given>> found(records.fragments.chunks());
  parallel(found.size(), [&](std::size_t i) {
    const std::span<Fragment> chunk = records.fragments.chunk(i);
    for (std::size_t k = 0; k < chunk.size(); ++k) {
      Fragment &fragment = chunk[k];
      const std::pair named(fragment.event_time, fragment.thread);
      const auto begun = std::ranges::lower_bound(records.begun, named, {}, place);
      if (begun == records.begun.end() || place(*begun) != named) continue;
      if (fragment.owner != begun->kind && fragment.owner != Fragment::kOfSubject) continue;
      fragment.owner = Fragment::kOfSubject;
      if (fragment.is(Fragment::kHasFrames))
        found[i].push_back(
            {begun->subject, static_cast<std::uint32_t>((i << Sequence<Fragment>::kChunkBits) + k)});
    }
  });
  for (const std::vector<Given> &some : found)
    for (const Given &given : some)
      give_stack(records.subjects[given.subject], records.fragments, given.fragment);
}

} // namespace

std::uint64_t join(Records &records, const ParallelFor &parallel) {
  reopen(records, records.overlaps);
  Owners(records).run(parallel);
  give_to_ends(records, parallel);
  // A fragment that holds both parts needs no other.
  for (std::size_t i = 0; i < records.subjects.size(); ++i)
    if (Subject &subject = records.subjects[i]; (subject.flags & Subject::kWhole) != 0)
      subject.kernel = Subject::kNoFragment;
  const std::uint64_t lent = lend_user_halves(records, parallel);
  for (std::size_t i = 0; i < records.subjects.size(); ++i) {
    Subject &subject = records.subjects[i];
    for (std::uint32_t *number : {&subject.kernel, &subject.user}) {
      if (*number == Subject::kNoFragment) continue;
      Fragment &fragment = records.fragments[*number];
      fragment.flags |= Fragment::kClaimed;
      *number = fragment.stack;
    }
  }
  return lent;
}

} // namespace etwrelog::profile
