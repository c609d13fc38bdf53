// What was seen while a segment was taken apart must never pass for a proof of anything else.
#include "etlz/proof.hpp"

#include "etlz/segment.hpp"
#include "etwrelog/codec.hpp"
#include "etwrelog/format.hpp"
#include "tests/support/xpress_streams.hpp"

#include <gtest/gtest.h>

namespace etwrelog::etlz {
namespace {

using testing::stream_by_our_encoder;
using testing::stream_by_the_rules;
using Buffer = std::vector<std::uint8_t>;

Buffer content_of_seed(unsigned seed) {
  Buffer out;
  for (std::uint32_t i = 0; i < 700; ++i)
    for (const std::uint32_t word : {0xC012'0018u, seed + i * 77, i % 5, 0xFFFF'F800u})
      for (unsigned byte = 0; byte < 4; ++byte)
        out.push_back(static_cast<std::uint8_t>(word >> (8 * byte)));
  return out;
}

class ProofOfStreams : public ::testing::Test {
protected:
  codec::XpressPredictor predictor_{1 << 16};
  Buffer first_ = content_of_seed(1), second_ = content_of_seed(2);
  Buffer first_stream_ = stream_by_the_rules(predictor_, first_),
         second_stream_ = stream_by_the_rules(predictor_, second_);
  Buffer odd_stream_ = stream_by_our_encoder(first_), corrections_; // those of the odd one
  StreamProofs proofs_;

  void SetUp() override {
    ASSERT_FALSE(first_stream_.empty());
    ASSERT_TRUE(proofs_.see(predictor_, 100, first_stream_, first_, corrections_));
    ASSERT_TRUE(proofs_.see(predictor_, 900, second_stream_, second_, corrections_));
    ASSERT_TRUE(corrections_.empty());
    ASSERT_TRUE(proofs_.see(predictor_, 950, odd_stream_, first_, corrections_));
    ASSERT_FALSE(corrections_.empty());
  }
};

TEST_F(ProofOfStreams, HoldsForWhatWasSeen) {
  for (int again = 0; again < 2; ++again) {
    proofs_.rewind();
    const Buffer decoded = first_;
    EXPECT_TRUE(proofs_.hold(100, first_stream_, decoded, {}));
    EXPECT_FALSE(proofs_.hold(500, first_stream_, first_, {}));
    EXPECT_TRUE(proofs_.hold(900, second_stream_, second_, {}));
    EXPECT_TRUE(proofs_.hold(950, odd_stream_, first_, corrections_));
    EXPECT_FALSE(proofs_.hold(2000, second_stream_, second_, {}));
  }
  proofs_.clear();
  EXPECT_FALSE(proofs_.hold(100, first_stream_, first_, {}));
}

TEST_F(ProofOfStreams, HoldsForNothingElse) {
  EXPECT_FALSE(proofs_.hold(100, second_stream_, first_, {}));
  EXPECT_FALSE(proofs_.hold(100, first_stream_, second_, {}));
  EXPECT_FALSE(proofs_.hold(100, first_stream_, Bytes(first_).first(first_.size() - 1), {}));
  EXPECT_FALSE(proofs_.hold(100, Bytes(first_stream_).first(first_stream_.size() - 1), first_, {}));
  EXPECT_FALSE(proofs_.hold(100, first_stream_, first_, Buffer{0}));
  for (Buffer *const bytes : {&first_stream_, &first_}) {
    Buffer other = *bytes;
    other[other.size() / 2] ^= 4;
    EXPECT_FALSE(
        proofs_.hold(100, bytes == &first_ ? first_stream_ : other, bytes == &first_ ? other : first_, {}));
  }
}

TEST_F(ProofOfStreams, DoesNotHoldWithOtherCorrections) {
  EXPECT_FALSE(proofs_.hold(950, odd_stream_, first_, {}));
  EXPECT_FALSE(proofs_.hold(950, odd_stream_, first_, Bytes(corrections_).first(corrections_.size() - 1)));
  Buffer other = corrections_;
  other.front() ^= 1;
  EXPECT_FALSE(proofs_.hold(950, odd_stream_, first_, other));
  EXPECT_TRUE(proofs_.hold(950, odd_stream_, first_, corrections_));
}

// Then the model coded what they became, and that is what is decoded.
TEST_F(ProofOfStreams, DoesNotHoldOnceTheBytesThatItRanOnWereTouched) {
  first_[30] ^= 1;
  EXPECT_FALSE(proofs_.hold(100, first_stream_, Buffer(first_), {}));
}

// What is decoded next may then take the place of what was decoded.
TEST_F(ProofOfStreams, SaysWhereTheSameBytesStay) {
  const Buffer decoded = first_;
  ASSERT_TRUE(proofs_.hold(100, first_stream_, decoded, {}));
  EXPECT_EQ(proofs_.staying(100, decoded).data(), first_.data());
  EXPECT_EQ(proofs_.staying(900, decoded).data(), decoded.data()) << "another part";
  EXPECT_EQ(proofs_.staying(100, second_).data(), second_.data()) << "other bytes";
  const Bytes less = Bytes(decoded).first(decoded.size() - 1);
  EXPECT_EQ(proofs_.staying(100, less).data(), less.data());
  first_[30] ^= 1;
  EXPECT_EQ(proofs_.staying(100, decoded).data(), decoded.data()) << "they are no longer the same";
  EXPECT_FALSE(proofs_.hold(2000, first_stream_, decoded, {}));
  EXPECT_EQ(proofs_.staying(2000, decoded).data(), decoded.data()) << "a part that was not seen";
}

TEST_F(ProofOfStreams, DoesNotHoldForAStreamThatCannotBePredicted) {
  Buffer stream = first_stream_;
  stream.push_back(0);
  EXPECT_FALSE(proofs_.see(predictor_, 1000, stream, first_, corrections_));
  EXPECT_FALSE(proofs_.hold(1000, stream, first_, {}));
  EXPECT_TRUE(proofs_.see(predictor_, 2000, first_stream_, first_, corrections_));
  EXPECT_FALSE(proofs_.hold(1000, stream, first_, {}));
  EXPECT_TRUE(proofs_.hold(2000, first_stream_, first_, {}));
}

// A segment of buffers of which some follow from the rules, and some do not.
TEST(ProofOfSegments, FindsEveryBitThatIsAnother) {
  codec::XpressPredictor predictor(1 << 16);
  Buffer trace;
  for (unsigned seed = 1; seed <= 6; ++seed) {
    const Buffer plain = content_of_seed(seed);
    const Buffer stream =
        seed % 3 == 0 ? stream_by_our_encoder(plain) : stream_by_the_rules(predictor, plain);
    format::BufferHeader header;
    header.buffer_size = static_cast<std::uint32_t>(format::kBufferHeaderSize + stream.size());
    header.saved_offset = header.current_offset = header.filled_bytes =
        static_cast<std::uint32_t>(format::kBufferHeaderSize + plain.size());
    header.sequence_number = seed;
    header.flags = format::kFlagCompressed;
    const std::size_t at = trace.size();
    trace.resize(at + format::kBufferHeaderSize);
    format::store_buffer_header(trace.data() + at, header);
    trace.insert(trace.end(), stream.begin(), stream.end());
  }
  std::vector<Part> parts;
  ASSERT_EQ(split_parts(trace, true, SIZE_MAX, parts), trace.size());
  ASSERT_EQ(parts.size(), 6u);
  SegmentCoder coder;
  for (const Level level : {Level::normal, Level::max, Level::ultra}) {
    Buffer coded;
    SegmentFacts facts;
    const SegmentMethod method = coder.encode(trace, parts, level, coded, &facts);
    auto gives = [&](Bytes bytes) {
      return coder.gives(method, coded, bytes, facts.stream_bytes, facts.scratch_bytes);
    };
    EXPECT_TRUE(gives(trace));
    for (std::size_t i = 0; i < trace.size(); i += 37) {
      Buffer other = trace;
      other[i] ^= static_cast<std::uint8_t>(1u << (i % 8));
      EXPECT_FALSE(gives(other)) << i;
    }
    EXPECT_TRUE(gives(trace));
    Buffer back(trace.size());
    ASSERT_TRUE(coder.decode(method, coded, back, facts.stream_bytes, facts.scratch_bytes));
    EXPECT_TRUE(back == trace);
  }
}

} // namespace
} // namespace etwrelog::etlz
