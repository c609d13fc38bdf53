// The join, against its rule written down plainly, and where clocks are coarse: any number of events and
// stacks may bear one time.
#include "profile/by_time.hpp"
#include "profile/join.hpp"
#include "tests/support/pace.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace etwrelog::profile {
namespace {

const ParallelFor kInOrder = [](std::size_t count, const std::function<void(std::size_t)> &body) {
  for (std::size_t i = 0; i < count; ++i)
    body(i);
};

void add_mark(Records &records, const Mark &mark) {
  records.marks.append({&mark, 1});
}

void add_sample(Records &records, std::int64_t time, std::uint32_t thread, std::uint16_t processor) {
  Subject subject;
  subject.time = time;
  subject.thread = thread;
  subject.processor = processor;
  add_mark(records, {time, static_cast<std::uint32_t>(records.subjects.size()), processor, Mark::kSubject});
  records.subjects.push_back(subject);
}

// Its number is also that of its stack.
void add_fragment(Records &records, std::int64_t event_time, std::int64_t time, std::uint32_t thread,
                  std::uint16_t processor, std::uint16_t part) {
  Fragment fragment;
  fragment.event_time = event_time;
  fragment.time = time;
  fragment.thread = thread;
  fragment.stack = static_cast<std::uint32_t>(records.fragments.size());
  fragment.processor = processor & 0x7FF;
  fragment.flags = static_cast<std::uint16_t>(Fragment::kHasFrames | part) & 0x1F;
  records.fragments.push_back(fragment);
}

// Who owns each fragment, by looking at every event for every fragment.
std::vector<std::uint16_t> owners_plainly(const Records &records) {
  struct Marked {
    Mark mark;
    std::uint32_t thread;
  };
  std::vector<Marked> marks;
  for (std::size_t i = 0; i < records.marks.chunks(); ++i)
    records.marks.visit(i, records.subjects, [&](const Mark &mark) {
      const bool subject = mark.kind == Mark::kSubject;
      marks.push_back({mark, subject ? records.subjects[mark.thread].thread : mark.thread});
    });
  std::vector<std::uint32_t> order(records.fragments.size());
  for (std::uint32_t i = 0; i < order.size(); ++i)
    order[i] = i;
  std::ranges::sort(order, {}, [&](std::uint32_t i) { return std::pair(records.fragments[i].time, i); });
  std::vector<std::uint16_t> owners(records.fragments.size(), Fragment::kOrphaned);
  for (const std::uint32_t number : order) {
    const Fragment &fragment = records.fragments[number];
    const auto last = [&](std::uint32_t thread) {
      Marked *here = nullptr, *any = nullptr;
      for (Marked &marked : marks)
        if (marked.mark.time == fragment.event_time && marked.thread == thread) {
          any = &marked;
          if (marked.mark.processor == fragment.processor) here = &marked;
        }
      return here != nullptr ? here : any;
    };
    Marked *owner = fragment.thread == kUnknownId ? nullptr : last(fragment.thread);
    if (owner == nullptr) {
      owner = last(kUnknownId);
      if (owner != nullptr) owner->thread = fragment.thread;
    }
    if (owner == nullptr) continue;
    owners[number] = owner->mark.kind == Mark::kSubject ? Fragment::kOfSubject : owner->mark.kind;
  }
  return owners;
}

TEST(Join, FindsTheOwnersThatLookingAtEveryEventFinds) {
  std::mt19937 random(14);
  const auto below = [&](unsigned bound) { return static_cast<unsigned>(random() % bound); };
  for (int round = 0; round < 300; ++round) {
    Records records;
    const unsigned threads = 1 + below(4), times = 1 + below(6), processors = 1 + below(4);
    const auto thread = [&] { return below(4) == 0 ? kUnknownId : below(threads); };
    for (unsigned i = below(60); i-- > 0;)
      if (below(2) == 0)
        add_sample(records, below(times), thread(), static_cast<std::uint16_t>(below(processors)));
      else // each a kind of its own: owners tell them apart
        add_mark(records, {below(times), thread(), static_cast<std::uint16_t>(below(processors)),
                           static_cast<std::uint16_t>(records.marks.size())});
    for (unsigned i = below(60); i-- > 0;)
      add_fragment(records, below(times), times + below(20), thread(),
                   static_cast<std::uint16_t>(below(processors)),
                   below(2) == 0 ? Fragment::kKernel : Fragment::kUserFirst);
    const std::vector<std::uint16_t> expected = owners_plainly(records);
    (void)join(records, kInOrder);
    for (std::size_t i = 0; i < expected.size(); ++i)
      ASSERT_EQ(records.fragments[i].owner, expected[i]) << "round " << round << ", fragment " << i;
  }
}

TEST(Marks, AreWhatWasAppendedWhateverTheirTimesAndOrder) {
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min(),
                         kMost = std::numeric_limits<std::int64_t>::max();
  Records records;
  std::vector<Mark> expected;
  const auto add = [&](const Mark &mark) {
    expected.push_back(mark);
    add_mark(records, mark);
  };
  for (const std::int64_t time : {std::int64_t{5}, std::int64_t{5}, std::int64_t{4}, kMost, kLeast,
                                  std::int64_t{0xFFFF'FFFF}, std::int64_t{1} << 32})
    for (const std::uint16_t processor : {0, 0, 2'000, 65'535})
      add({time, static_cast<std::uint32_t>(expected.size()), processor, 7});
  for (std::uint32_t i = 0; i < 5; ++i) {
    Subject subject;
    subject.time = i % 2 == 0 ? kMost : 17;
    records.subjects.push_back(subject);
  }
  for (const std::uint32_t number : {0u, 1u, 4u, 3u, 3u, 2u})
    add({records.subjects[number].time, number, 3, Mark::kSubject});
  for (std::uint32_t i = 0; i < 200'000; ++i)
    add({i, i, static_cast<std::uint16_t>(i / 1'000), 9});
  EXPECT_EQ(records.marks.size(), expected.size());
  std::size_t at = 0;
  for (std::size_t i = 0; i < records.marks.chunks(); ++i)
    records.marks.visit(i, records.subjects, [&](const Mark &mark) {
      const Mark &as = expected.at(at++);
      ASSERT_TRUE(mark.time == as.time && mark.thread == as.thread && mark.processor == as.processor &&
                  mark.kind == as.kind)
          << at;
    });
  EXPECT_EQ(at, expected.size());
}

TEST(ByTime, OrdersAnyTimesAndKeepsTheFilesOrderOfEqualOnes) {
  std::mt19937_64 random(1);
  for (const unsigned bits : {1u, 4u, 20u, 40u, 64u})
    for (const std::size_t count : {0u, 1u, 2u, 100u, 70'000u}) {
      Sequence<Subject> subjects;
      std::vector<std::uint32_t> expected;
      for (std::uint32_t i = 0; i < count; ++i) {
        Subject subject;
        subject.time = static_cast<std::int64_t>(random() >> (64 - bits));
        subjects.push_back(subject);
        expected.push_back(i);
      }
      std::ranges::stable_sort(expected, {}, [&](std::uint32_t i) { return subjects[i].time; });
      EXPECT_EQ(by_time(subjects), expected) << bits << " bits, " << count;
    }
}

// Were each stack compared with each event of its time, these would take hours.
constexpr std::uint32_t kMany = testing::kSanitized ? 200'000 : 1'000'000;

TEST(Join, OfAMillionSamplesAtOneTimeEachGetsItsStack) {
  Records records;
  for (std::uint32_t i = 0; i < kMany; ++i)
    add_sample(records, 5, i, i % 64);
  for (std::uint32_t i = 0; i < kMany; ++i)
    add_fragment(records, 5, 6, i, i % 64, Fragment::kUserFirst);
  (void)join(records, kInOrder);
  for (std::uint32_t i = 0; i < kMany; ++i)
    ASSERT_EQ(records.subjects[i].user, i);
}

TEST(Join, OfAMillionSamplesOfOneThreadAtOneTimeTheLastGetsAllStacks) {
  Records records;
  for (std::uint32_t i = 0; i < kMany; ++i)
    add_sample(records, 5, 7, i % 3);
  for (std::uint32_t i = 0; i < kMany; ++i)
    add_fragment(records, 5, 6, 7, 3, Fragment::kKernel);
  (void)join(records, kInOrder);
  EXPECT_EQ(records.subjects[kMany - 1].kernel, kMany - 1);
  EXPECT_EQ(records.subjects[kMany - 2].kernel, Subject::kNoFragment);
}

TEST(Join, OfAMillionEventsAtOneTimeThatDoNotTellTheirThreadEachIsGivenOnce) {
  Records records;
  for (std::uint32_t i = 0; i < kMany; ++i)
    add_mark(records, {5, kUnknownId, static_cast<std::uint16_t>(i % 64), 1});
  for (std::uint32_t i = 0; i < kMany + 1; ++i)
    for (const std::uint16_t part : {Fragment::kKernel, Fragment::kUserFirst})
      add_fragment(records, 5, 6, i, i % 128, part);
  (void)join(records, kInOrder);
  for (std::uint32_t i = 0; i < 2 * kMany; ++i)
    ASSERT_EQ(records.fragments[i].owner, 1);
  EXPECT_EQ(records.fragments[2 * kMany].owner, Fragment::kOrphaned);
  EXPECT_EQ(records.fragments[2 * kMany + 1].owner, Fragment::kOrphaned);
}

} // namespace
} // namespace etwrelog::profile
