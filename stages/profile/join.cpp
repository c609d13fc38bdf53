#include "profile/join.hpp"

#include "profile/halves.hpp"
#include "profile/join_within.hpp"
#include "profile/lending.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
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
    if (fragment.is(Fragment::kHasFrames))
      give_stack(records_.subjects[owner->thread], records_.fragments, number);
  }

  Records &records_;
  std::vector<Partitioned<std::uint32_t>> fragments_;
  std::vector<Partitioned<Mark>> marks_;
};

} // namespace

std::uint64_t join(Records &records, const ParallelFor &parallel) {
  reopen(records, records.overlaps);
  Owners(records).run(parallel);
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
