// What one processor holds up comes in windows of about the same size, complete and in order.
#include "api/time_order.hpp"

#include <algorithm>

#include <gtest/gtest.h>

namespace etwrelog::pipeline {
namespace {

constexpr std::uint32_t kEventBytes = 100;

// Events at first, first + step, ...
std::unique_ptr<Block> block(std::uint32_t stream, std::uint32_t number, std::int64_t first,
                             std::int64_t step, std::uint32_t count) {
  auto made = std::make_unique<Block>();
  made->stream = stream, made->number = number;
  for (std::uint32_t i = 0; i < count; ++i)
    made->refs.push({first + i * step, i * kEventBytes, 0});
  made->has_events = true;
  made->first = first, made->last = first + (count - 1) * step;
  made->event_bytes = kEventBytes;
  return made;
}

struct Taken {
  std::vector<std::size_t> sizes; // of windows
  std::vector<std::int64_t> times;
};

Taken take_all(TimeOrder &order, std::uint64_t most) {
  Taken taken;
  std::vector<detail::BufferView> buffers;
  RefList refs;
  OrderScratch scratch;
  Window window;
  for (bool more = true; more;) {
    more = order.take(window, most);
    order_window(window, buffers, refs, scratch);
    taken.sizes.push_back(refs.size());
    for (const detail::EventRef &ref : refs.all())
      taken.times.push_back(ref.time);
  }
  return taken;
}

TEST(TimeOrder, HandsOutWhatWasHeldUpInWindowsOfSomeSize) {
  constexpr std::uint32_t kBlocks = 50, kCount = 1000;
  const std::uint32_t counts[] = {kBlocks, 1};
  TimeOrder order(counts);
  for (std::uint32_t i = 0; i < kBlocks; ++i)
    order.add(block(0, i, i * 10'000, 10, kCount));
  EXPECT_EQ(take_all(order, 1u << 20).times.size(), 0u) << "the other processor may have something earlier";
  order.add(block(1, 0, 5, 5000, 100));
  const std::size_t most = 4000;
  const Taken taken = take_all(order, most * kEventBytes);
  EXPECT_EQ(taken.times.size(), kBlocks * kCount + 100);
  EXPECT_TRUE(std::ranges::is_sorted(taken.times));
  for (std::size_t i = 0; i < taken.sizes.size(); ++i) {
    EXPECT_LE(taken.sizes[i], most);
    if (i + 1 < taken.sizes.size()) {
      EXPECT_GE(taken.sizes[i], most / 2);
    }
  }
}

TEST(TimeOrder, EventsAtOneTimeStayTogetherHoweverManyTheyAre) {
  const std::uint32_t counts[] = {2, 1};
  TimeOrder order(counts);
  order.add(block(0, 0, 7, 0, 5000));
  order.add(block(0, 1, 7, 0, 5000));
  order.add(block(1, 0, 9, 1, 10));
  const Taken taken = take_all(order, 100 * kEventBytes);
  EXPECT_EQ(taken.times.size(), 10'010u);
  EXPECT_EQ(taken.sizes.front(), 10'000u);
  EXPECT_TRUE(std::ranges::is_sorted(taken.times));
}

} // namespace
} // namespace etwrelog::pipeline
