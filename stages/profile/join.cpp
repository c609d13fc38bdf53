#include "profile/join.hpp"

#include "base/flat_map.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <limits>

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

// The events of one partition, found by time; those of one time are chained in the order of the file.
class EventsByTime {
public:
  static constexpr std::uint32_t kNone = 0xFFFF'FFFF;
  struct Entry {
    Mark mark;
    std::uint32_t next = kNone, last = kNone; // `last`: of the chain, kept at its first entry
    bool unknown_thread = false;              // kept at the first entry: of any in the chain
  };

  void clear(std::size_t count) {
    entries_.clear();
    entries_.reserve(count);
    slots_.assign(std::bit_ceil(count * 2 + 1), kNone);
  }
  void add(const Mark &mark, std::uint32_t thread) {
    const auto id = static_cast<std::uint32_t>(entries_.size());
    entries_.push_back({mark, kNone, id, thread == kUnknownId});
    std::uint32_t &slot = slot_of(mark.time);
    if (slot == kNone) {
      slot = id;
      return;
    }
    Entry &first = entries_[slot];
    entries_[first.last].next = id;
    first.last = id;
    first.unknown_thread = first.unknown_thread || thread == kUnknownId;
  }
  // The first of the chain.
  [[nodiscard]] std::uint32_t find(std::int64_t time) { return slot_of(time); }
  Entry &operator[](std::uint32_t id) { return entries_[id]; }

private:
  std::uint32_t &slot_of(std::int64_t time) {
    const std::size_t mask = slots_.size() - 1;
    for (std::size_t i = static_cast<std::size_t>(spread(time) >> 16) & mask;; i = (i + 1) & mask)
      if (slots_[i] == kNone || entries_[slots_[i]].mark.time == time) return slots_[i];
  }
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> slots_;
};

class Owners {
public:
  explicit Owners(Records &records) : records_(records) {}

  void run(const ParallelFor &parallel) {
    WantedTimes wanted(records_.fragments.size());
    fragments_.resize(records_.fragments.chunks());
    parallel(fragments_.size(), [&](std::size_t i) {
      const std::span<const Fragment> chunk = std::as_const(records_.fragments).chunk(i);
      for (const Fragment &fragment : chunk)
        wanted.add(spread(fragment.event_time));
      fragments_[i].fill([&](auto take) {
        for (std::size_t k = 0; k < chunk.size(); ++k)
          take(partition_of(spread(chunk[k].event_time)),
               static_cast<std::uint32_t>((i << Sequence<Fragment>::kChunkBits) + k));
      });
    });
    marks_.resize(records_.marks.chunks());
    parallel(marks_.size(), [&](std::size_t i) {
      const std::span<const Mark> chunk = std::as_const(records_.marks).chunk(i);
      marks_[i].fill([&](auto take) {
        for (const Mark &mark : chunk)
          if (const std::uint64_t time = spread(mark.time); wanted.has(time)) take(partition_of(time), mark);
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
    events.clear(count);
    for (const auto &part : marks_)
      for (const Mark &mark : part.of(partition))
        events.add(mark, thread_of(mark));
    std::vector<std::uint32_t> undecided; // fragments of times at which an event does not tell its thread
    for (const auto &part : fragments_)
      for (const std::uint32_t number : part.of(partition)) {
        const std::uint32_t first = events.find(records_.fragments[number].event_time);
        if (first == EventsByTime::kNone) continue;
        if (events[first].unknown_thread)
          undecided.push_back(number);
        else
          own(number, pick(events, first, number));
      }
    match_undecided(events, undecided);
  }

  // An event that does not tell its thread gets that of the first fragment that it alone can answer; so these
  // fragments are taken in the order in which they were written.
  void match_undecided(EventsByTime &events, std::vector<std::uint32_t> &numbers) {
    std::ranges::sort(numbers, {}, [&](std::uint32_t number) {
      const Fragment &f = records_.fragments[number];
      return std::tuple(f.event_time, f.time, number);
    });
    for (const std::uint32_t number : numbers) {
      const std::uint32_t first = events.find(records_.fragments[number].event_time);
      Mark *owner = pick(events, first, number);
      if (owner == nullptr) {
        owner = pick(events, first, number, true);
        if (owner != nullptr && owner->kind != Mark::kSubject)
          owner->thread = records_.fragments[number].thread;
      }
      own(number, owner);
    }
  }

  // The last event of the fragment's thread, on its processor if there is one.
  Mark *pick(EventsByTime &events, std::uint32_t first, std::uint32_t number, bool unknown_thread = false) {
    const Fragment &fragment = records_.fragments[number];
    const std::uint32_t thread = unknown_thread ? kUnknownId : fragment.thread;
    Mark *here = nullptr, *any = nullptr;
    for (std::uint32_t id = first; id != EventsByTime::kNone; id = events[id].next) {
      Mark &mark = events[id].mark;
      if (thread_of(mark) != thread || (!unknown_thread && thread == kUnknownId)) continue;
      any = &mark;
      if ((mark.processor & 0x7FF) == fragment.processor) here = &mark;
    }
    return here != nullptr ? here : any;
  }

  void own(std::uint32_t number, const Mark *owner) {
    if (owner == nullptr) return;
    Fragment &fragment = records_.fragments[number];
    fragment.owner = owner->kind;
    if (owner->kind != Mark::kSubject) return;
    fragment.owner = Fragment::kOfSubject;
    if (fragment.is(Fragment::kHasFrames)) give(records_.subjects[owner->thread], fragment, number);
  }

  // Of several halves of a kind the last kernel part counts, the first user part, and a whole stack above
  // all.
  void give(Subject &subject, const Fragment &fragment, std::uint32_t number) const {
    const auto later = [&](std::uint32_t than) {
      const Fragment &other = records_.fragments[than];
      return std::tuple(fragment.time, number) > std::tuple(other.time, than);
    };
    if (fragment.is(Fragment::kKernel)) {
      if (subject.kernel == Subject::kNoFragment || later(subject.kernel)) subject.kernel = number;
      return;
    }
    const bool whole = !fragment.is(Fragment::kUserFirst), was_whole = (subject.flags & Subject::kWhole) != 0;
    const bool takes = subject.user == Subject::kNoFragment || (whole && !was_whole) ||
                       (whole == was_whole && later(subject.user) == whole);
    if (!takes) return;
    subject.user = number;
    if (whole) subject.flags |= Subject::kWhole;
  }

  Records &records_;
  std::vector<Partitioned<std::uint32_t>> fragments_;
  std::vector<Partitioned<Mark>> marks_;
};

// The first number at or behind a place that is at most a bound, in logarithmic time whatever the numbers.
class FirstAtMost {
public:
  explicit FirstAtMost(std::span<const std::int64_t> values)
      : leaves_(std::bit_ceil(std::max<std::size_t>(values.size(), 1))),
        least_(2 * leaves_, std::numeric_limits<std::int64_t>::max()) {
    std::ranges::copy(values, least_.begin() + static_cast<std::ptrdiff_t>(leaves_));
    for (std::size_t i = leaves_; i-- > 1;)
      least_[i] = std::min(least_[2 * i], least_[2 * i + 1]);
  }
  // `from` must be a place; the number of places or more if there is none.
  [[nodiscard]] std::size_t find(std::size_t from, std::int64_t bound) const {
    std::size_t node = from + leaves_;
    while (least_[node] > bound) {
      while (node % 2 == 1)
        node /= 2; // a right child: go up until there is something to the right
      if (node == 0) return leaves_;
      ++node;
    }
    while (node < leaves_)
      node = least_[2 * node] <= bound ? 2 * node : 2 * node + 1;
    return node - leaves_;
  }

private:
  std::size_t leaves_;
  std::vector<std::int64_t> least_;
};

// Completes kernel halves with user halves that name another event.
class Lending {
public:
  explicit Lending(Records &records) : records_(records) {}

  std::uint64_t run(const ParallelFor &parallel) {
    filter::FlatMap<std::uint8_t> threads;
    for (std::size_t i = 0; i < records_.subjects.size(); ++i) {
      const Subject &subject = records_.subjects[i];
      if (subject.kernel == Subject::kNoFragment || subject.user != Subject::kNoFragment) continue;
      const std::uint32_t thread = records_.fragments[subject.kernel].thread;
      threads[thread] = 1;
      parts_[part_of(thread)].waiting.push_back(static_cast<std::uint32_t>(i));
    }
    if (threads.size() == 0) return 0;
    for (std::size_t i = 0; i < records_.fragments.size(); ++i) {
      const Fragment &fragment = records_.fragments[i];
      if ((fragment.flags & (Fragment::kHasFrames | Fragment::kKernel | Fragment::kUserFirst)) !=
          (Fragment::kHasFrames | Fragment::kUserFirst))
        continue;
      if (threads.find(fragment.thread))
        parts_[part_of(fragment.thread)].users.push_back(static_cast<std::uint32_t>(i));
    }
    parallel(parts_.size(), [&](std::size_t i) { lend(parts_[i]); });
    std::uint64_t lent = 0;
    for (const Part &part : parts_)
      lent += part.lent;
    return lent;
  }

private:
  struct Part {
    std::vector<std::uint32_t> waiting, users;
    std::uint64_t lent = 0;
  };
  static std::size_t part_of(std::uint32_t thread) { return thread * 0x9E37'79B1u >> 26; }

  void lend(Part &part) {
    const Sequence<Fragment> &fragments = records_.fragments;
    std::ranges::sort(part.users, {},
                      [&](std::uint32_t i) { return std::tuple(fragments[i].thread, fragments[i].time, i); });
    std::ranges::sort(part.waiting, {}, [&](std::uint32_t i) {
      return std::tuple(fragments[records_.subjects[i].kernel].thread, i);
    });
    std::vector<std::int64_t> begins;
    auto user = part.users.begin();
    for (auto wait = part.waiting.begin(); wait != part.waiting.end();) {
      const std::uint32_t thread = fragments[records_.subjects[*wait].kernel].thread;
      while (user != part.users.end() && fragments[*user].thread < thread)
        ++user;
      auto end = user;
      begins.clear();
      for (; end != part.users.end() && fragments[*end].thread == thread; ++end)
        begins.push_back(fragments[*end].event_time);
      const FirstAtMost first(begins);
      for (; wait != part.waiting.end() && fragments[records_.subjects[*wait].kernel].thread == thread;
           ++wait) {
        Subject &subject = records_.subjects[*wait];
        const std::int64_t time = fragments[subject.kernel].event_time;
        const auto from = std::lower_bound(
            user, end, time, [&](std::uint32_t i, std::int64_t at) { return fragments[i].time < at; });
        if (from == end) continue;
        const std::size_t found = first.find(static_cast<std::size_t>(from - user), time);
        if (found >= begins.size()) continue;
        subject.user = *(user + static_cast<std::ptrdiff_t>(found));
        subject.flags |= Subject::kLent;
        ++part.lent;
      }
      user = end;
    }
  }

  Records &records_;
  std::array<Part, 64> parts_;
};

} // namespace

JoinCounts join(Records &records, const ParallelFor &parallel) {
  Owners(records).run(parallel);
  // A fragment that holds both parts needs no other.
  JoinCounts counts;
  for (std::size_t i = 0; i < records.subjects.size(); ++i)
    if (Subject &subject = records.subjects[i]; (subject.flags & Subject::kWhole) != 0)
      subject.kernel = Subject::kNoFragment;
  counts.lent = Lending(records).run(parallel);
  for (std::size_t i = 0; i < records.subjects.size(); ++i) {
    const Subject &subject = records.subjects[i];
    for (const std::uint32_t number : {subject.kernel, subject.user})
      if (number != Subject::kNoFragment) records.fragments[number].flags |= Fragment::kClaimed;
  }
  for (std::size_t i = 0; i < records.fragments.size(); ++i) {
    Fragment &fragment = records.fragments[i];
    const bool ours = fragment.is(Fragment::kClaimed) || fragment.owner == Fragment::kOfSubject;
    if (!fragment.is(Fragment::kHasFrames) || (!ours && fragment.owner == Fragment::kOrphaned))
      ++counts.orphaned;
    else if (ours)
      ++counts.of_subjects;
    else
      ++counts.of_others;
  }
  return counts;
}

} // namespace etwrelog::profile
