// The coder of all streams of a segment: streams of every size come back, and what one makes of them does not
// depend on what it made before, which is why archives are the same whatever the number of threads.
#include "etlz/backend/backend.hpp"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

namespace {

using namespace etwrelog;
using Buffer = std::vector<std::uint8_t>;

Buffer of_values(std::size_t size, unsigned values) {
  std::mt19937 rng(static_cast<std::uint32_t>(size + values));
  Buffer b(size);
  for (std::uint8_t &byte : b)
    byte = static_cast<std::uint8_t>(rng() % values);
  return b;
}

Buffer of_words(std::size_t size) {
  const Buffer words = of_values(4096, 256);
  std::mt19937 rng(static_cast<std::uint32_t>(size));
  Buffer b;
  while (b.size() < size) {
    const auto word = words.begin() + 16 * (rng() % 256);
    b.insert(b.end(), word, word + 16);
  }
  b.resize(size);
  return b;
}

// Sizes on both sides of those from which on streams are treated in another way; of each a stream that cannot
// be compressed, two that can but in which nothing repeats (to more than half and to less than that), one of
// words that repeat, and one of zeros.
std::vector<Buffer> streams_of_every_kind() {
  std::vector<Buffer> streams;
  for (const std::size_t size :
       {0u, 1u, 383u, 384u, 16'384u, 16'385u, 65'535u, 65'536u, 65'537u, 131'072u, 131'073u, 300'000u}) {
    streams.push_back(of_values(size, 256));
    streams.push_back(of_values(size, 40));
    streams.push_back(of_values(size, 7));
    streams.push_back(of_words(size));
    streams.emplace_back(size);
  }
  return streams;
}

std::vector<std::uint8_t> packed(etlz::Backend &backend, const std::vector<Buffer> &streams, Level level) {
  std::vector<std::uint8_t> out;
  backend.pack(std::vector<Bytes>(streams.begin(), streams.end()), level, out);
  return out;
}

TEST(EtlzBackend, GivesBackStreamsOfEverySizeAndKind) {
  const std::vector<Buffer> streams = streams_of_every_kind();
  etlz::Backend backend;
  std::size_t size = 0;
  for (const Buffer &stream : streams)
    size += stream.size();
  for (const Level level : {Level::normal, Level::max}) {
    const std::vector<std::uint8_t> out = packed(backend, streams, level);
    EXPECT_LT(out.size(), size / 2);
    std::vector<Bytes> back;
    ASSERT_TRUE(backend.unpack(out, size, back));
    ASSERT_EQ(back.size(), streams.size());
    for (std::size_t i = 0; i < streams.size(); ++i)
      EXPECT_TRUE(std::ranges::equal(back[i], streams[i])) << "stream " << i << " of " << streams[i].size();
  }
}

TEST(EtlzBackend, WhatItMadeBeforeChangesNothing) {
  const std::vector<Buffer> streams = streams_of_every_kind();
  const std::vector<Buffer> others = {of_words(70'000), of_values(90'000, 200)};
  etlz::Backend fresh, used;
  (void)packed(used, others, Level::max);
  (void)packed(used, others, Level::normal);
  EXPECT_TRUE(packed(fresh, streams, Level::normal) == packed(used, streams, Level::normal));
}

} // namespace
