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

} // namespace
} // namespace etwrelog::base
