// Numbers of JSON: those that fit are taken as they are, all others refused.
#include "base/json.hpp"

#include <gtest/gtest.h>

namespace etwrelog::base {
namespace {

using nlohmann::json;

template <class T> std::optional<T> taken(const char *text) {
  try {
    return whole_number<T>(json::parse(text));
  } catch (const std::out_of_range &) {
    return std::nullopt;
  }
}

TEST(JsonNumbers, ThoseThatFitAreTaken) {
  EXPECT_EQ(taken<std::uint8_t>("255"), 255u);
  EXPECT_EQ(taken<std::uint32_t>("4294967295"), 4294967295u);
  EXPECT_EQ(taken<std::uint64_t>("18446744073709551615"), 18446744073709551615u);
  EXPECT_EQ(taken<std::uint32_t>("5.0"), 5u);
  EXPECT_EQ(taken<std::uint64_t>("1e19"), 10'000'000'000'000'000'000u);
  EXPECT_EQ(whole_number(json{{"a", 7u}}, "a", 1u), 7u);
  EXPECT_EQ(whole_number(json{{"a", 7u}}, "b", 1u), 1u);
}

TEST(JsonNumbers, AllOthersAreRefused) {
  for (const char *text :
       {"256", "-1", "0.5", "1e300", "-1e300", "256.0", "18446744073709551616", "\"7\"", "null", "[7]"})
    EXPECT_FALSE(taken<std::uint8_t>(text)) << text;
  for (const char *text : {"18446744073709551616", "1e300", "-0.5"})
    EXPECT_FALSE(taken<std::uint64_t>(text)) << text;
  EXPECT_THROW((void)parse_whole_numbers(R"({"a":[1,{"b":1e300}]})"), std::out_of_range);
  EXPECT_EQ(parse_whole_numbers(R"({"a":[1,{"b":-3}]})")["a"][1]["b"], -3);
}

} // namespace
} // namespace etwrelog::base
