#include "profile/lending.hpp"

#include "base/flat_map.hpp"

#include <algorithm>
#include <bit>
#include <tuple>

namespace etwrelog::profile {
namespace {

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

// A kernel half without its user half.
struct Waiting {
  std::uint32_t thread = 0, subject = 0;
  std::int64_t time = 0; // of the event that the kernel half names
};

// A user half that at least one kernel half of its thread falls into.
struct Lender {
  std::uint32_t thread = 0, fragment = 0;
  std::int64_t begin = 0, time = 0; // of the event that it names; when it was written
};

struct Stretch { // of Waiting
  std::uint32_t first = 0, count = 0;
};

class Lending {
public:
  explicit Lending(Records &records) : records_(records) {}

  std::uint64_t run(const ParallelFor &parallel) {
    find_waiting();
    if (waiting_.empty()) return 0;
    find_lenders(parallel);
    std::vector<std::pair<std::size_t, std::size_t>> threads; // of both: where a thread's lenders stand
    for (std::size_t i = 0; i < lenders_.size();) {
      std::size_t end = i;
      while (end < lenders_.size() && lenders_[end].thread == lenders_[i].thread)
        ++end;
      threads.emplace_back(i, end);
      i = end;
    }
    std::vector<std::uint64_t> lent(threads.size());
    parallel(threads.size(), [&](std::size_t i) {
      lent[i] = lend(std::span(lenders_).subspan(threads[i].first, threads[i].second - threads[i].first));
    });
    std::uint64_t sum = 0;
    for (const std::uint64_t one : lent)
      sum += one;
    return sum;
  }

private:
  void find_waiting() {
    for (std::size_t i = 0; i < records_.subjects.size(); ++i) {
      const Subject &subject = records_.subjects[i];
      if (subject.kernel == Subject::kNoFragment || subject.user != Subject::kNoFragment) continue;
      const Fragment &kernel = records_.fragments[subject.kernel];
      waiting_.push_back({kernel.thread, static_cast<std::uint32_t>(i), kernel.event_time});
    }
    std::ranges::sort(waiting_, {}, [](const Waiting &w) { return std::tuple(w.thread, w.time, w.subject); });
    for (std::size_t i = 0; i < waiting_.size(); ++i) {
      Stretch &stretch = threads_[waiting_[i].thread];
      if (stretch.count++ == 0) stretch.first = static_cast<std::uint32_t>(i);
    }
  }

  [[nodiscard]] std::span<const Waiting> waiting_of(std::uint32_t thread) const {
    const Stretch *stretch = threads_.find(thread);
    return stretch == nullptr ? std::span<const Waiting>()
                              : std::span(waiting_).subspan(stretch->first, stretch->count);
  }

  // Most user halves name the event that they complete, and nothing waits for them.
  void find_lenders(const ParallelFor &parallel) {
    const Sequence<Fragment> &fragments = records_.fragments;
    std::vector<std::vector<Lender>> found(fragments.chunks());
    parallel(found.size(), [&](std::size_t i) {
      const std::span<const Fragment> chunk = fragments.chunk(i);
      for (std::size_t k = 0; k < chunk.size(); ++k) {
        const Fragment &fragment = chunk[k];
        if ((fragment.flags & (Fragment::kHasFrames | Fragment::kKernel | Fragment::kUserFirst)) !=
            (Fragment::kHasFrames | Fragment::kUserFirst))
          continue;
        const std::span<const Waiting> waiting = waiting_of(fragment.thread);
        const auto next = std::ranges::lower_bound(waiting, fragment.event_time, {}, &Waiting::time);
        if (next == waiting.end() || next->time > fragment.time) continue;
        found[i].push_back({fragment.thread,
                            static_cast<std::uint32_t>((i << Sequence<Fragment>::kChunkBits) + k),
                            fragment.event_time, fragment.time});
      }
    });
    for (const std::vector<Lender> &some : found)
      lenders_.insert(lenders_.end(), some.begin(), some.end());
    std::ranges::sort(lenders_, {}, [](const Lender &l) { return std::tuple(l.thread, l.time, l.fragment); });
  }

  // `lenders`: all of one thread.
  std::uint64_t lend(std::span<const Lender> lenders) {
    std::vector<std::int64_t> begins;
    begins.reserve(lenders.size());
    for (const Lender &lender : lenders)
      begins.push_back(lender.begin);
    const FirstAtMost first(begins);
    std::uint64_t lent = 0;
    for (const Waiting &waiting : waiting_of(lenders.front().thread)) {
      const auto from = std::ranges::lower_bound(lenders, waiting.time, {}, &Lender::time);
      if (from == lenders.end()) break; // those behind are later
      const std::size_t found = first.find(static_cast<std::size_t>(from - lenders.begin()), waiting.time);
      if (found >= lenders.size()) continue;
      Subject &subject = records_.subjects[waiting.subject];
      subject.user = lenders[found].fragment;
      subject.flags |= Subject::kLent;
      ++lent;
    }
    return lent;
  }

  Records &records_;
  std::vector<Waiting> waiting_; // by thread, then by time
  base::FlatMap<Stretch> threads_;
  std::vector<Lender> lenders_; // by thread, then by when they were written
};

} // namespace

std::uint64_t lend_user_halves(Records &records, const ParallelFor &parallel) {
  return Lending(records).run(parallel);
}

} // namespace etwrelog::profile
