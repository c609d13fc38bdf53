#include "profile/who_ran.hpp"

#include <gtest/gtest.h>

namespace etwrelog::profile {
namespace {

TEST(WhoRan, IsToldBySwitchesOnTheSameProcessor) {
  WhoRan ran;
  ran.add(0, {100, 7, 5});
  ran.add(2, {150, 9, 0});
  ran.add(0, {200, 0, 7});
  ran.sort();
  EXPECT_EQ(ran.on(0, 99), 5u) << "before the first one, what that is away from";
  EXPECT_EQ(ran.on(0, 100), 7u);
  EXPECT_EQ(ran.on(0, 199), 7u);
  EXPECT_EQ(ran.on(0, 200), 0u);
  EXPECT_EQ(ran.on(0, INT64_MAX), 0u);
  EXPECT_EQ(ran.on(2, INT64_MIN), 0u);
  EXPECT_EQ(ran.on(2, 150), 9u);
  EXPECT_EQ(ran.on(1, 150), kUnknownId) << "a processor without switches";
  EXPECT_EQ(ran.on(3, 150), kUnknownId);
}

TEST(WhoRan, IsNotKnownWhereSwitchesAreMissing) {
  WhoRan ran;
  ran.add(0, {100, 7, 5});
  ran.add(0, {200, 8, 6});
  ran.sort();
  EXPECT_EQ(ran.on(0, 150), kUnknownId);
  EXPECT_EQ(ran.on(0, 200), 8u);
}

// Buffers of one processor may stand in the file in any order; of one time the order of the file is kept.
TEST(WhoRan, IsToldInTheOrderOfTime) {
  WhoRan ran;
  ran.add(0, {200, 8, 7});
  ran.add(0, {100, 6, 5});
  ran.add(0, {100, 7, 6});
  ran.sort();
  EXPECT_EQ(ran.on(0, 50), 5u);
  EXPECT_EQ(ran.on(0, 100), 7u);
  EXPECT_EQ(ran.on(0, 200), 8u);
}

} // namespace
} // namespace etwrelog::profile
