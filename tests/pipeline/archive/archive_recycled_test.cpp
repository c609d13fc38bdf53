// The bytes between events are what a buffer's memory held before: archives name the earlier buffer instead
// of keeping them.
#include "etlz/model/recycled.hpp"
#include "etlz/segment.hpp"
#include "tests/support/coded_segment.hpp"
#include "tests/support/recycled.hpp"

#include <gtest/gtest.h>

namespace etwrelog {
namespace {

using Buffer = std::vector<std::uint8_t>;

using Coded = testing::CodedSegment;

Coded coded(const Buffer &trace, etlz::SegmentCoder &coder, Level level = Level::normal) {
  return testing::coded_segment(trace, coder, level);
}

void expect_back(const Coded &c, const Buffer &trace, etlz::SegmentCoder &coder) {
  Buffer back(trace.size(), 0x55);
  ASSERT_TRUE(coder.decode(c.method, c.bytes, back, c.facts.stream_bytes, c.facts.scratch_bytes));
  EXPECT_TRUE(back == trace);
}

TEST(RecycledMemory, PaddingThatAnEarlierBufferExplainsTakesNoRoom) {
  constexpr std::size_t kBuffers = 60, kTurns = 7;
  const Buffer clean = testing::trace_in_recycled_memory(Codec::none, kBuffers, 0);
  const Buffer dirty = testing::trace_in_recycled_memory(Codec::none, kBuffers, kTurns);
  ASSERT_EQ(clean.size(), dirty.size());
  std::size_t different = 0;
  for (std::size_t i = 0; i < clean.size(); ++i)
    different += clean[i] != dirty[i] ? 1 : 0;
  ASSERT_GT(different, 5'000u);
  etlz::SegmentCoder coder;
  for (const Level level : {Level::normal, Level::max, Level::ultra}) {
    const Coded of_clean = coded(clean, coder, level), of_dirty = coded(dirty, coder, level);
    // Which buffer it was, and the patterns of the first buffers, whose paddings are zero.
    EXPECT_LT(of_dirty.bytes.size(), of_clean.bytes.size() + 3 * kBuffers);
    expect_back(of_dirty, dirty, coder);
    expect_back(of_clean, clean, coder);
  }
}

TEST(RecycledMemory, IsKnownOfCompressedBuffers) {
  for (const Codec codec : {Codec::xpress, Codec::lznt1}) {
    const Buffer dirty = testing::trace_in_recycled_memory(codec, 40, 5);
    etlz::SegmentCoder coder;
    const Coded c = coded(dirty, coder);
    EXPECT_GT(c.facts.scratch_bytes, 100'000u) << "all that was decompressed is kept";
    expect_back(c, dirty, coder);
    Buffer back(dirty.size());
    EXPECT_FALSE(coder.decode(c.method, c.bytes, back, c.facts.stream_bytes, c.facts.scratch_bytes / 2));
    const Buffer clean = testing::trace_in_recycled_memory(codec, 40, 0);
    const Coded of_clean = coded(clean, coder);
    EXPECT_LT(of_clean.facts.scratch_bytes, 0x2000u) << "one at a time where nothing was recycled";
    expect_back(of_clean, clean, coder);
  }
}

TEST(RecycledMemory, IsLookedForAsFarAsItReaches) {
  using etlz::RecycledMemory;
  etlz::SegmentCoder coder;
  // One turn more is not found: kept as it is, and given back.
  for (const std::size_t turns : {RecycledMemory::kReach, RecycledMemory::kReach + 1}) {
    const Buffer dirty = testing::trace_in_recycled_memory(Codec::none, turns + 40, turns);
    const Buffer clean = testing::trace_in_recycled_memory(Codec::none, turns + 40, 0);
    const Coded c = coded(dirty, coder);
    const std::size_t more = c.bytes.size() - coded(clean, coder).bytes.size();
    EXPECT_EQ(more < 1'000, turns == RecycledMemory::kReach) << more;
    expect_back(coded(dirty, coder), dirty, coder);
  }
}

TEST(RecycledMemory, PaddingOfNoEarlierBufferComesBack) {
  Buffer trace = testing::trace_in_recycled_memory(Codec::none, 30, 4);
  std::mt19937 random(9);
  etlz::SegmentCoder coder;
  const std::size_t before = coded(trace, coder).bytes.size();
  for (int n = 0; n < 3000; ++n) // events, paddings and headers alike
    trace[0x2000 + random() % (trace.size() - 0x2000)] ^= static_cast<std::uint8_t>(1 + random() % 255);
  const Coded c = coded(trace, coder);
  EXPECT_GT(c.bytes.size(), before);
  expect_back(c, trace, coder);
}

TEST(RecycledMemory, FindsTheBufferThatMostPaddingsAgreeOn) {
  using etlz::Padding;
  etlz::RecycledMemory memory;
  const Buffer a(64, 0xAA), b(64, 0xBB), c(16, 0xCC);
  memory.add(a), memory.add(b), memory.add(c);
  auto padding = [](std::uint32_t at, std::uint64_t byte) { return Padding{at, 0xFFull << 56, byte << 56}; };
  EXPECT_EQ(memory.find({}), 0u);
  const std::vector<Padding> mostly_a = {padding(8, 0xAA), padding(16, 0xAA), padding(24, 0xBB)},
                             only_c = {padding(8, 0xCC)}, behind_c = {padding(16, 0xCC)};
  EXPECT_EQ(memory.find(mostly_a), 3u);
  EXPECT_EQ(memory.find(only_c), 1u);
  EXPECT_EQ(memory.find(behind_c), 0u);
  EXPECT_EQ(memory.image(3).data(), a.data());
  EXPECT_TRUE(memory.image(0).empty());
  EXPECT_TRUE(memory.image(4).empty());
}

} // namespace
} // namespace etwrelog
