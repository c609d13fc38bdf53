#include "base/blocks.hpp"

#include "base/raw_memory.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <thread>
#include <utility>

namespace etwrelog::base {
namespace {

TEST(Blocks, HaveWhatTheySay) {
  std::size_t before = 0;
  for (std::size_t bytes = 1; bytes < (9u << 20); bytes += 1 + bytes / 3) {
    const std::size_t size = block_bytes(bytes);
    EXPECT_GE(size, bytes);
    EXPECT_GE(size, before) << bytes;
    EXPECT_EQ(block_bytes(size), size) << bytes;
    before = size;
    void *const block = take_block(bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % 16, 0u);
    std::memset(block, 0x5A, size);
    give_block(block, size);
  }
  give_block(nullptr, 1u << 16);
  EXPECT_EQ(block_bytes(SIZE_MAX), SIZE_MAX);
  EXPECT_THROW(static_cast<void>(take_block(SIZE_MAX)), std::bad_alloc);
  EXPECT_THROW(static_cast<void>(BlockAllocator<std::uint64_t>().allocate(SIZE_MAX / 4)),
               std::bad_array_new_length);
}

// Takes and gives back at random; what was written to a block stays there until it is given back.
void take_and_give(unsigned seed) {
  std::mt19937 random(seed);
  struct Held {
    std::uint8_t *at;
    std::size_t bytes;
    std::uint8_t mark;
  };
  std::vector<Held> held;
  const auto give = [&held](std::size_t i) {
    const Held h = held[i];
    for (std::size_t byte = 0; byte < h.bytes; byte += 1000)
      ASSERT_EQ(h.at[byte], h.mark);
    ASSERT_EQ(h.at[h.bytes - 1], h.mark);
    give_block(h.at, h.bytes);
    held[i] = held.back();
    held.pop_back();
  };
  for (unsigned i = 0; i < 1000; ++i) {
    if (held.size() > 40 || (!held.empty() && random() % 3 == 0)) {
      give(random() % held.size());
      continue;
    }
    const std::size_t bytes = (std::size_t{1} << (12 + random() % 10)) + random() % 5000;
    const auto mark = static_cast<std::uint8_t>(random());
    auto *const at = static_cast<std::uint8_t *>(take_block(bytes));
    std::memset(at, mark, bytes);
    held.push_back({at, bytes, mark});
  }
  while (!held.empty())
    give(held.size() - 1);
}

TEST(Blocks, AreNobodyElsesUntilTheyAreGivenBack) {
  for (unsigned round = 0; round < 2; ++round) { // the second one begins where all was given back
    std::vector<std::jthread> threads;
    for (unsigned i = 0; i < 4; ++i)
      threads.emplace_back(take_and_give, 10 * round + i);
  }
}

TEST(Blocks, HoldVectors) {
  BlockVector<std::uint32_t> numbers;
  for (std::uint32_t i = 0; i < 1u << 20; ++i)
    numbers.push_back(i * 7);
  const BlockVector<std::uint32_t> copy = numbers;
  numbers = {};
  const BlockVector<std::uint32_t> others(1u << 20, 1);
  for (std::uint32_t i = 0; i < 1u << 20; ++i)
    ASSERT_EQ(copy[i], i * 7);
}

TEST(RawMemory, MovesWithItsRoom) {
  RawMemory one;
  EXPECT_EQ(one.capacity(), 0u);
  std::memcpy(one.room(100'000), "abc", 3);
  EXPECT_GE(one.capacity(), 100'000u);
  EXPECT_EQ(std::memcmp(one.room(50'000), "abc", 3), 0) << "it did not grow";
  RawMemory other = std::move(one);
  EXPECT_EQ(std::memcmp(other.room(3), "abc", 3), 0);
  EXPECT_EQ(one.capacity(), 0u); // NOLINT(bugprone-use-after-move)
  std::memset(one.room(70'000), 1, 70'000);
  EXPECT_EQ(std::memcmp(other.room(3), "abc", 3), 0);
  one = std::move(other);
  EXPECT_EQ(std::memcmp(one.room(3), "abc", 3), 0);
}

} // namespace
} // namespace etwrelog::base
