// Archives of traces that `relog --codec xpress` wrote: their compressed bytes take no room, as Windows' take
// none.
#include "etlz/segment.hpp"
#include "etwrelog/codec.hpp"
#include "tests/support/coded_segment.hpp"
#include "tests/support/recycled.hpp"

#include <gtest/gtest.h>

namespace etwrelog {
namespace {

TEST(XpressOfOurs, TakesWhatTheDecodedTraceTakes) {
  constexpr std::size_t kBuffers = 60;
  const auto plain = testing::trace_in_recycled_memory(Codec::none, kBuffers, 0);
  const auto ours = testing::trace_in_recycled_memory(Codec::xpress, kBuffers, 0);
  ASSERT_LT(ours.size(), plain.size() / 2);
  const auto lznt1 = testing::trace_in_recycled_memory(Codec::lznt1, kBuffers, 0);
  etlz::SegmentCoder coder;
  for (const Level level : {Level::normal, Level::max, Level::ultra}) {
    const auto of_plain = testing::coded_segment(plain, coder, level);
    const auto of_ours = testing::coded_segment(ours, coder, level);
    // A number for each buffer, and its header, which says how large it is.
    EXPECT_LT(of_ours.bytes.size(), of_plain.bytes.size() + 12 * kBuffers);
    std::vector<std::uint8_t> back(ours.size(), 0x55);
    ASSERT_TRUE(coder.decode(of_ours.method, of_ours.bytes, back, of_ours.facts.stream_bytes,
                             of_ours.facts.scratch_bytes));
    EXPECT_TRUE(back == ours);
    // What was seen of other traces in between does not show.
    static_cast<void>(testing::coded_segment(lznt1, coder, level));
    EXPECT_TRUE(testing::coded_segment(ours, coder, level).bytes == of_ours.bytes);
    etlz::SegmentCoder fresh;
    EXPECT_TRUE(testing::coded_segment(ours, fresh, level).bytes == of_ours.bytes);
  }
}

} // namespace
} // namespace etwrelog
