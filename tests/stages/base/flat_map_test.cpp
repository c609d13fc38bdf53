#include "base/flat_map.hpp"

#include <map>

#include <gtest/gtest.h>

namespace etwrelog::base {
namespace {

TEST(FlatMap, HoldsWhatAMapHolds) {
  FlatMap<std::uint32_t> map;
  std::map<std::uint32_t, std::uint32_t> expected;
  EXPECT_EQ(map.find(0), nullptr);
  // As Windows gives ids; neighbours; and keys that are far apart, the ends included.
  for (std::uint32_t i = 0; i < 3000; ++i)
    for (const std::uint32_t key : {i * 4, 0x8000'0000u + i, i * 0x9E37'79B1u, ~i}) {
      ++map[key];
      ++expected[key];
    }
  EXPECT_EQ(map.size(), expected.size());
  for (const auto &[key, value] : expected) {
    ASSERT_NE(map.find(key), nullptr) << key;
    EXPECT_EQ(*map.find(key), value) << key;
  }
  EXPECT_EQ(map.find(3), nullptr);
  std::map<std::uint32_t, std::uint32_t> all;
  map.for_each([&](std::uint32_t key, std::uint32_t value) { all[key] = value; });
  EXPECT_EQ(all, expected);
}

TEST(FlatMap, TellsWhatIsNewUnderKeysOf64Bits) {
  FlatMap<std::uint32_t, std::uint64_t> map;
  std::map<std::uint64_t, std::uint32_t> expected;
  // Pairs of numbers: many with the same half; and all again.
  for (unsigned round = 0; round < 2; ++round)
    for (std::uint64_t high = 0; high < 60; ++high)
      for (std::uint64_t low = 0; low < 60; ++low)
        for (const std::uint64_t key : {high << 32 | low, ~(high << 32 | low), high << 58 | low}) {
          const std::uint32_t value = static_cast<std::uint32_t>(expected.size());
          const auto [found, fresh] = map.try_emplace(key, value);
          EXPECT_EQ(fresh, expected.try_emplace(key, value).second) << key;
          EXPECT_EQ(found, expected[key]) << key;
        }
  EXPECT_EQ(map.size(), expected.size());
  EXPECT_EQ(map.find(std::uint64_t{61} << 32), nullptr);
}

} // namespace
} // namespace etwrelog::base
