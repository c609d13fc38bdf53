#include "base/threads.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <memory>
#include <new>
#include <stdexcept>
#include <vector>

namespace etwrelog {
namespace {

// Work that can be copied so many times: then there is no memory for a further copy.
struct Scarce {
  std::shared_ptr<std::atomic<int>> left;
  std::latch *together;

  Scarce(int copies, std::latch &latch)
      : left(std::make_shared<std::atomic<int>>(copies)), together(&latch) {}
  Scarce(const Scarce &other) : left(other.left), together(other.together) {
    if ((*left)-- == 0) throw std::bad_alloc();
  }
  Scarce(Scarce &&) = default;
  void operator()() const { together->wait(); }
};

TEST(Threads, ThoseMadeBeforeMemoryRanOutGoOn) {
  std::latch together(1);
  const std::function<void()> work = Scarce(3, together);
  std::size_t made = 0;
  {
    const base::Threads threads = base::start_threads(8, work);
    together.count_down();
    made = threads.running.size();
    EXPECT_EQ(threads.refused, std::errc::not_enough_memory);
  }
  EXPECT_GT(made, 0u);
  EXPECT_LT(made, 8u);
}

TEST(Threads, AsManyAsAskedForWhenTheyCanBeHad) {
  std::atomic<int> called{0};
  {
    const base::Threads threads = base::start_threads(3, [&] { ++called; });
    EXPECT_EQ(threads.running.size(), 3u);
    EXPECT_FALSE(threads.refused);
  }
  EXPECT_EQ(called, 3);
  EXPECT_TRUE(base::start_threads(0, [&] { ++called; }).running.empty());
}

TEST(Threads, EachPartIsDoneOnce) {
  for (const std::size_t threads : {1u, 2u, 5u})
    for (const std::size_t count : {0u, 1u, 2u, 1'000u}) {
      std::vector<std::atomic<int>> done(count);
      base::parallel_for(threads, count, [&](std::size_t i) { ++done[i]; });
      for (const std::atomic<int> &times : done)
        EXPECT_EQ(times, 1);
    }
}

TEST(Threads, WhatAPartThrowsReachesTheCaller) {
  for (const std::size_t threads : {1u, 4u})
    EXPECT_THROW(base::parallel_for(threads, 100,
                                    [](std::size_t i) {
                                      if (i == 7) throw std::runtime_error("7");
                                    }),
                 std::runtime_error);
}

} // namespace
} // namespace etwrelog
