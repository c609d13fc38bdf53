#include "codec/xpress/streams.hpp"

#include "tests/support/xpress_streams.hpp"

#include <gtest/gtest.h>
#include <xxhash.h>

#include <random>
#include <vector>

namespace etwrelog::codec {
namespace {

using testing::stream_by_our_encoder;
using testing::stream_by_the_rules;

// Words that come back at every distance, runs, and bytes that nothing foretells.
std::vector<std::uint8_t> words(std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::uint8_t> out;
  while (out.size() < size) {
    const unsigned kind = random() % 16;
    if (kind == 0) {
      const std::size_t run = random() % 400;
      out.insert(out.end(), run, static_cast<std::uint8_t>(random()));
    } else if (kind < 4 || out.size() < 20'000) {
      for (unsigned i = random() % 12; i > 0; --i)
        out.push_back(static_cast<std::uint8_t>(random()));
    }
    if (out.size() > 100) {
      const std::size_t back = 1 + random() % std::min<std::size_t>(out.size() - 1, 20'000);
      const std::size_t from = out.size() - back, length = random() % 40;
      for (std::size_t i = 0; i < length; ++i)
        out.push_back(out[from + i]);
    }
  }
  out.resize(size);
  return out;
}

class Streams : public ::testing::Test {
protected:
  static constexpr std::size_t kMost = 1 << 17;
  XpressStreams streams_;
  std::vector<std::uint8_t> corrections_;

  void SetUp() override { streams_.make_room(kMost); }

  void expect_back(Bytes stream, Bytes content) {
    std::vector<std::uint8_t> back(stream.size(), 0x5A);
    ASSERT_TRUE(streams_.restore(content, corrections_, back));
    EXPECT_TRUE(std::ranges::equal(back, stream));
  }
};

// Archives name these encoders, and what they make is not kept anywhere. Who changes what comes out here must
// add an encoder instead, with a number of its own.
TEST_F(Streams, EncodersThatArchivesNameNeverChange) {
  std::vector<std::uint8_t> normal, fast;
  for (const std::size_t size : {1, 7, 8, 15, 16, 17, 300, 5'000, 65'464, 100'000}) {
    const auto content = words(size, static_cast<unsigned>(size));
    for (const std::uint8_t b : stream_by_our_encoder(content, Level::normal))
      normal.push_back(b);
    for (const std::uint8_t b : stream_by_our_encoder(content, Level::fast))
      fast.push_back(b);
  }
  EXPECT_EQ(XXH3_64bits(normal.data(), normal.size()), 5717289425440631358ull) << normal.size();
  EXPECT_EQ(XXH3_64bits(fast.data(), fast.size()), 11732304970832875333ull) << fast.size();
}

TEST_F(Streams, OneByteStandsForAnEncoderOfOurs) {
  for (const auto &[level, number] : {std::pair{Level::normal, 1}, {Level::fast, 2}})
    for (const std::size_t size : {3'000, 65'464, 120'000}) {
      const auto content = words(size, 5);
      const auto stream = stream_by_our_encoder(content, level);
      streams_.forget();
      for (int again = 0; again < 2; ++again) {
        corrections_.clear();
        ASSERT_TRUE(streams_.encode(stream, content, corrections_));
        ASSERT_EQ(corrections_, std::vector<std::uint8_t>{static_cast<std::uint8_t>(number)}) << size;
        expect_back(stream, content);
      }
    }
}

TEST_F(Streams, WhatWindowsWroteTakesItsOwnWayWhateverCameBefore) {
  XpressPredictor windows(kMost);
  const auto content = words(2'000, 9), ours = words(30'000, 10);
  const auto stream = stream_by_the_rules(windows, content);
  ASSERT_FALSE(stream.empty());
  corrections_.clear();
  ASSERT_TRUE(streams_.encode(stream_by_our_encoder(ours, Level::fast), ours, corrections_));
  corrections_.clear();
  ASSERT_TRUE(streams_.encode(stream, content, corrections_));
  EXPECT_TRUE(corrections_.empty());
  expect_back(stream, content);
}

// One byte changed, cut off, or of an encoder that is not known.
TEST_F(Streams, SaysOfNoStreamThatItComesBackWhereItDoesNot) {
  const auto content = words(9'000, 3);
  const auto stream = stream_by_our_encoder(content, Level::normal);
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    auto other = stream;
    if (i % 3 == 0) {
      other.resize(other.size() - 1 - random() % 100);
    } else {
      other[random() % other.size()] ^= static_cast<std::uint8_t>(1 + random() % 255);
    }
    streams_.forget();
    corrections_.clear();
    if (streams_.encode(other, content, corrections_)) {
      EXPECT_GT(corrections_.size(), 1u);
      expect_back(other, content);
    }
  }
  const auto by_max = stream_by_our_encoder(content, Level::max);
  streams_.forget();
  corrections_.clear();
  if (streams_.encode(by_max, content, corrections_)) {
    EXPECT_GT(corrections_.size(), 1u);
    expect_back(by_max, content);
  }
}

TEST_F(Streams, RefusesNumbersAndSizesThatAreNotSo) {
  const auto content = words(9'000, 3);
  const auto stream = stream_by_our_encoder(content, Level::normal);
  std::vector<std::uint8_t> back(stream.size());
  for (unsigned number = 0; number < 256; ++number) {
    const std::vector<std::uint8_t> one{static_cast<std::uint8_t>(number)};
    EXPECT_EQ(static_cast<bool>(streams_.restore(content, one, back)), number == 1) << number;
  }
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, stream.size() - 1, stream.size() + 1}) {
    back.assign(size, 0);
    EXPECT_FALSE(streams_.restore(content, std::vector<std::uint8_t>{1}, back)) << size;
  }
  const std::vector<std::uint8_t> larger(kMost + 1);
  EXPECT_FALSE(streams_.restore(larger, std::vector<std::uint8_t>{1}, back));
}

} // namespace
} // namespace etwrelog::codec
