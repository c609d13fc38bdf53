#include "stacks/stack_cache_sim.hpp"
#include "tests/support/stack_samples.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>

namespace etwrelog::stacks {
namespace {

using test::Stack;
using test::StackSource;

// The documented cache with lists and no pool: only the number of pieces is kept.
class Model {
public:
  Model(unsigned buckets, std::size_t bytes) : buckets_(buckets), left_(bytes / 0x128) {}

  struct Step {
    char kind; // h, f or p
    Stack evicted;
  };
  Step insert(const Stack &stack) {
    std::deque<Stack> &bucket =
        buckets_[std::accumulate(stack.begin(), stack.end(), std::uint64_t{0}) % buckets_.size()];
    const auto known = std::find(bucket.begin(), bucket.end(), stack);
    if (known != bucket.end()) {
      bucket.erase(known);
      bucket.push_front(stack);
      return {'h', {}};
    }
    Step step{'f', {}};
    if (bucket.size() == 4) {
      step.evicted = bucket.back();
      left_ += (step.evicted.size() + 31) / 32;
      bucket.pop_back();
    }
    const std::size_t needed = (stack.size() + 31) / 32;
    if (needed > left_) {
      step.kind = 'p';
      return step;
    }
    left_ -= needed;
    bucket.push_back(stack);
    return step;
  }
  [[nodiscard]] std::size_t held() const {
    std::size_t sum = 0;
    for (const auto &bucket : buckets_)
      sum += bucket.size();
    return sum;
  }
  [[nodiscard]] std::size_t left() const { return left_; }

private:
  std::vector<std::deque<Stack>> buckets_;
  std::size_t left_;
};

struct Setting {
  unsigned buckets;
  std::size_t bytes;
};

class StackCache : public ::testing::TestWithParam<Setting> {};

// Also plays a reader: every reference must name, until its definition, the stack that was inserted.
TEST_P(StackCache, LogsWhatTheModelLogsAndResolves) {
  const auto [buckets, bytes] = GetParam();
  StackCacheSim::Options options;
  options.buckets = buckets;
  options.bytes = bytes;
  StackCacheSim cache(options);
  Model model(buckets, bytes);
  StackSource source(buckets + bytes);
  std::map<std::uint64_t, Stack> live;
  std::uint64_t kinds[3] = {}, evictions = 0;
  for (int i = 0; i < 20000; ++i) {
    const Stack stack = source.next(100, 12);
    const Model::Step expected = model.insert(stack);
    const StackCacheSim::Outcome got = cache.insert(stack);
    ASSERT_EQ(expected.kind, "hfp"[static_cast<int>(got.kind)]) << i;
    ASSERT_EQ(got.evicted, !expected.evicted.empty());
    ++kinds[static_cast<int>(got.kind)];
    if (got.evicted) {
      ++evictions;
      const auto defined = live.find(got.evicted_key);
      ASSERT_NE(defined, live.end());
      ASSERT_EQ(defined->second, Stack(got.evicted_frames.begin(), got.evicted_frames.end()));
      ASSERT_EQ(defined->second, expected.evicted);
      live.erase(defined);
    }
    if (got.kind == StackCacheSim::Kind::fresh) {
      ASSERT_TRUE(live.emplace(got.key, stack).second);
    }
    if (got.kind == StackCacheSim::Kind::hit) {
      ASSERT_EQ(live.at(got.key), stack);
    }
    ASSERT_EQ(cache.counts().pieces, bytes / 0x128 - model.left());
  }
  EXPECT_EQ(cache.counts().hits, kinds[0]);
  EXPECT_EQ(cache.counts().fresh, kinds[1]);
  EXPECT_EQ(cache.counts().plain, kinds[2]);
  EXPECT_EQ(cache.counts().evictions, evictions);
  EXPECT_EQ(live.size(), model.held());
  cache.run_down([&](std::uint64_t key, std::span<const std::uint64_t> frames) {
    EXPECT_EQ(live.at(key), Stack(frames.begin(), frames.end()));
    live.erase(key);
  });
  EXPECT_TRUE(live.empty());
  EXPECT_EQ(cache.counts().pieces, 0u);
}

INSTANTIATE_TEST_SUITE_P(Settings, StackCache,
                         ::testing::Values(Setting{256, 3u << 20}, Setting{1, 1u << 20},
                                           Setting{1021, 3u << 20}, Setting{256, 100 * 0x128},
                                           Setting{64, 7 * 0x128}, Setting{8, 0}));

TEST(StackCacheSim, LogsInFullWhatThePoolCannotHold) {
  StackCacheSim::Options options;
  options.bytes = 2 * StackCacheSim::kPieceBytes;
  StackCacheSim cache(options);
  EXPECT_EQ(cache.insert(Stack(32, 1)).kind, StackCacheSim::Kind::fresh);
  EXPECT_EQ(cache.insert(Stack(33, 1)).kind, StackCacheSim::Kind::plain);
  EXPECT_EQ(cache.insert(Stack(31, 1)).kind, StackCacheSim::Kind::fresh);
  EXPECT_EQ(cache.insert(Stack(1, 1)).kind, StackCacheSim::Kind::plain);
  EXPECT_EQ(cache.insert(Stack()).kind, StackCacheSim::Kind::plain);
  EXPECT_EQ(cache.counts().most_pieces, 2u);
}

TEST(StackCacheSim, ClampsAsWindowsDoes) {
  StackCacheSim::Options options;
  options.buckets = 1;
  options.bytes = 0;
  EXPECT_EQ(StackCacheSim::clamp(options).buckets, 256u);
  EXPECT_EQ(StackCacheSim::clamp(options).bytes, 3u << 20);
  options.buckets = 100'000;
  options.bytes = std::size_t{1} << 40;
  EXPECT_EQ(StackCacheSim::clamp(options).buckets, 4096u);
  EXPECT_EQ(StackCacheSim::clamp(options).bytes, 50u << 20);
}

} // namespace
} // namespace etwrelog::stacks
