// The coder of large streams at the level max: what it writes it reads, anything else it survives, and its
// output is the same on every machine.
#include "etlz/backend/mixer.hpp"
#include "etlz/container.hpp"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

namespace {

using namespace etwrelog;
using etlz::MixerSetup;
using Buffer = std::vector<std::uint8_t>;

MixerSetup setup_of(unsigned longer, unsigned shorter, unsigned bits, unsigned slowest = 6) {
  MixerSetup s;
  s.long_context = static_cast<std::uint8_t>(longer);
  s.short_context = static_cast<std::uint8_t>(shorter);
  s.table_bits = static_cast<std::uint8_t>(bits);
  s.slowest = static_cast<std::uint8_t>(slowest);
  return s;
}

// Bytes that depend on their neighbours and on `beside`.
Buffer related(std::size_t size, std::uint32_t seed, const Buffer &beside = {}) {
  std::mt19937 rng(seed);
  Buffer b(size);
  for (std::size_t i = 0; i < size; ++i) {
    const unsigned before = i == 0 ? 0 : b[i - 1], other = beside.empty() ? 0 : beside[i];
    b[i] = static_cast<std::uint8_t>((rng() % 4 != 0 ? before * 5 + other * 3 + 1 : rng()) % 16);
  }
  return b;
}

struct Streams {
  Buffer first = related(20'000, 1), second = related(20'000, 2, first), third = related(20'000, 3, second);
  etlz::Siblings beside_third{second.data(), first.data(), nullptr};
};

TEST(EtlzMixer, GivesBackWhatItWasGiven) {
  const Streams s;
  etlz::Mixer mixer;
  for (const MixerSetup &setup : {setup_of(0, 0, 4), setup_of(1, 0, 6), setup_of(7, 3, 11),
                                  setup_of(9, 8, 10, 4), setup_of(27, 24, 11, 7)}) {
    Buffer coded, back(s.third.size());
    mixer.encode(s.third, setup, s.beside_third, coded);
    ASSERT_TRUE(mixer.decode(coded, setup, s.beside_third, back));
    EXPECT_TRUE(back == s.third);
  }
}

// From 16 KiB on a stream has four lanes, the last of them with what is left.
TEST(EtlzMixer, EveryLengthComesBack) {
  const Buffer beside = related(16'500, 8), all = related(16'500, 9, beside);
  etlz::Mixer mixer;
  for (const std::size_t size : {1, 2, 16'383, 16'384, 16'385, 16'386, 16'387, 16'388, 16'500}) {
    const Bytes content = Bytes(all).first(size);
    Buffer coded, back(size);
    mixer.encode(content, setup_of(11, 9, 6), {beside.data(), nullptr, nullptr}, coded);
    ASSERT_TRUE(mixer.decode(coded, setup_of(11, 9, 6), {beside.data(), nullptr, nullptr}, back)) << size;
    EXPECT_TRUE(std::ranges::equal(back, content)) << size;
  }
}

TEST(EtlzMixer, ContextsPay) {
  const Streams s;
  etlz::Mixer mixer;
  Buffer blind, own, both;
  mixer.encode(s.third, setup_of(0, 0, 4), s.beside_third, blind);
  mixer.encode(s.third, setup_of(1, 0, 10), s.beside_third, own);
  mixer.encode(s.third, setup_of(9, 1, 11), s.beside_third, both);
  EXPECT_LT(both.size() * 10, own.size() * 9);
  EXPECT_LE(own.size(), blind.size() + blind.size() / 50);
}

TEST(EtlzMixer, ExtremeContentComesBack) {
  etlz::Mixer mixer;
  Buffer ramp(70'000);
  for (std::size_t i = 0; i < ramp.size(); ++i)
    ramp[i] = static_cast<std::uint8_t>(i >> 3);
  for (const Buffer &content : {Buffer{}, Buffer{7}, Buffer(100'000, 0), Buffer(100'000, 255), ramp}) {
    const MixerSetup setup = setup_of(3, 1, MixerSetup::most_table_bits(content.size()), 7);
    Buffer coded, back(content.size());
    mixer.encode(content, setup, {}, coded);
    ASSERT_TRUE(mixer.decode(coded, setup, {}, back)) << content.size();
    EXPECT_TRUE(back == content);
  }
}

TEST(EtlzMixer, SurvivesDamage) {
  const Streams s;
  etlz::Mixer mixer;
  const MixerSetup setup = setup_of(9, 1, 11);
  Buffer coded, back(s.third.size());
  mixer.encode(s.third, setup, s.beside_third, coded);
  std::mt19937 rng(5);
  for (int i = 0; i < 60; ++i) {
    Buffer bad = coded;
    bad[rng() % bad.size()] ^= static_cast<std::uint8_t>(1u << rng() % 8);
    if (i % 3 == 0) bad.resize(rng() % bad.size());
    if (mixer.decode(bad, setup, s.beside_third, back)) {
      EXPECT_TRUE(back == s.third);
    }
  }
  EXPECT_FALSE(
      mixer.decode(coded, setup_of(9, 1, 15), s.beside_third, back)); // tables too large for the stream
  EXPECT_FALSE(mixer.decode(coded, setup_of(64, 1, 10), s.beside_third, back));
  EXPECT_FALSE(mixer.decode(coded, setup_of(9, 1, 10, 8), s.beside_third, back));
}

// The output is part of the format.
TEST(EtlzMixer, OutputIsTheSameEverywhere) {
  const Streams s;
  etlz::Mixer mixer;
  Buffer coded;
  mixer.encode(s.third, setup_of(27, 9, 11, 7), s.beside_third, coded);
  EXPECT_EQ(coded.size(), 5676u);
  EXPECT_EQ(etlz::hash64(coded), 17608828255247595910u);
  mixer.encode(Bytes(s.third).first(10'000), setup_of(27, 9, 9, 7), s.beside_third, coded);
  EXPECT_EQ(coded.size(), 3180u);
  EXPECT_EQ(etlz::hash64(coded), 3095517332882160649u);
}

} // namespace
