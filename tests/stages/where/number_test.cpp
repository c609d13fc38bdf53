// Numbers of conditions against values of events: no rounding makes two of them equal.
#include "where/number.hpp"

#include <limits>

#include <gtest/gtest.h>

namespace etwrelog::where {
namespace {

constexpr std::uint64_t kMostUnsigned = std::numeric_limits<std::uint64_t>::max();

struct NumberCase {
  const char *text;
  std::uint64_t value;
  int order;
};

TEST(Numbers, IntegersAreComparedWithoutRounding) {
  const NumberCase cases[] = {{"18446744073709551616", kMostUnsigned, -1},
                              {"18446744073709551615", kMostUnsigned, 0},
                              {"18446744073709551614.5", kMostUnsigned, 1},
                              {"1e300", kMostUnsigned, -1},
                              {"1e19", 10'000'000'000'000'000'000u, 0},
                              {"9007199254740992.0", 9'007'199'254'740'992, 0},
                              {"9007199254740992.0", 9'007'199'254'740'993, 1},
                              {"9007199254740992.5", 9'007'199'254'740'993, 1},
                              {"9007199254740992.5", 9'007'199'254'740'992, -1},
                              {"0.5", 0, -1},
                              {"5e-1", 0, -1},
                              {"0e5", 0, 0},
                              {"-0.0", 0, 0},
                              {"0.0015e4", 15, 0},
                              {"00017", 17, 0},
                              {"-9223372036854775809", 0, 1},
                              {"0x1F", 31, 0},
                              {"0xFFFFFFFFFFFFFFFF", kMostUnsigned, 0}};
  for (const NumberCase &c : cases) {
    const auto number = Number::parse(c.text);
    ASSERT_TRUE(number) << c.text;
    EXPECT_EQ(order(c.value, false, *number), c.order) << c.text;
  }
  const NumberCase negative[] = {{"-5", 5, 0},
                                 {"-5.5", 5, 1},
                                 {"-4.5", 5, -1},
                                 {"-0.5", 1, -1},
                                 {"5", 5, -1},
                                 {"-9223372036854775808", std::uint64_t{1} << 63, 0},
                                 {"-9223372036854775809", std::uint64_t{1} << 63, 1},
                                 {"-1e300", std::uint64_t{1} << 63, 1}};
  for (const NumberCase &c : negative) {
    const auto number = Number::parse(c.text);
    ASSERT_TRUE(number) << c.text;
    EXPECT_EQ(order(c.value, true, *number), c.order) << c.text << " and -" << c.value;
  }
}

TEST(Numbers, RealsEqualWhatTheyAreShownAs) {
  const auto of = [](const char *text) { return Number::parse(text).value_or(Number()); };
  EXPECT_EQ(order(0.1, of("0.1")), 0);
  EXPECT_EQ(order(0.1f, of("0.1")), 0);
  EXPECT_EQ(order(1e300, of("1e300")), 0);
  EXPECT_EQ(order(3e38f, of("3e+38")), 0);
  EXPECT_EQ(order(9007199254740992.0, of("9007199254740992")), 0);
  EXPECT_EQ(order(9007199254740992.0, of("9007199254740993")), -1);
  EXPECT_EQ(order(9007199254740992.0, of("9007199254740991")), 1);
  EXPECT_EQ(order(9007199254740992.0, of("9007199254740992.5")), -1);
  EXPECT_EQ(order(-9007199254740992.0, of("-9007199254740993")), 1);
  EXPECT_EQ(order(18446744073709551616.0, of("18446744073709551615")), 1);
  EXPECT_EQ(order(18446744073709551616.0, of("18446744073709551616")), 0);
  EXPECT_EQ(order(18446744073709551616.0, of("18446744073709551617")), -1);
  EXPECT_EQ(order(16777216.0f, of("16777217")), -1);
  EXPECT_EQ(order(16777216.0f, of("16777216.5")), -1);
  EXPECT_EQ(order(16777216.0f, of("16777216")), 0);
  EXPECT_EQ(order(3e38f, of("1e39")), -1);
  EXPECT_EQ(order(-3e38f, of("-1000000000000000000000000000000000000000")), 1);
}

TEST(Numbers, SomeTextsAreNone) {
  for (const char *text : {"", "-", "1x", "0x", "0x1FFFFFFFFFFFFFFFF", "1e999", "1.2.3", "--1", "1e"})
    EXPECT_FALSE(Number::parse(text)) << text;
  EXPECT_EQ(Number::parse("-9223372036854775808")->integer(), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(Number::parse("9223372036854775808")->integer(), std::nullopt);
  EXPECT_EQ(Number::parse("1.5")->integer(), std::nullopt);
  EXPECT_EQ(Number::parse("15e-1")->integer(), std::nullopt);
  EXPECT_EQ(Number::of(std::int64_t{-7}).integer(), -7);
}

} // namespace
} // namespace etwrelog::where
