#include "codec/xpress/predictor.hpp"

#include "codec/xpress/writer.hpp"
#include "etwrelog/codec.hpp"
#include "tests/support/trace_files.hpp"
#include "tests/support/xpress_streams.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <vector>

namespace etwrelog::codec {
namespace {

using testing::stream_by_our_encoder;
using testing::stream_by_the_rules;
using testing::tokens_of;
using Buffer = std::vector<std::uint8_t>;

// Records of repeating shape, with strings and counters: the kind of content in which Windows' rules matter.
Buffer event_like(std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  const auto pick = [&](unsigned n) { return static_cast<std::uint32_t>(random() % n); };
  Buffer out;
  std::uint32_t clock = 1;
  while (out.size() < size) {
    clock += pick(300);
    const std::uint32_t fields[] = {0xC0120018 + pick(3), clock, 4 * pick(40), 0, 0xFFFFF800, pick(7)};
    for (const std::uint32_t field : fields) {
      const std::size_t at = out.size();
      out.resize(at + 4);
      store(out.data() + at, field);
    }
    for (const char letter : std::string_view("SystemMethodRundown").substr(pick(8), 4 + pick(8))) {
      out.push_back(static_cast<std::uint8_t>(letter));
      out.push_back(0);
    }
  }
  out.resize(size);
  return out;
}

TEST(XpressPredictor, RulesMakeAStreamThatDecodesToTheContent) {
  XpressPredictor predictor(1 << 16);
  for (const std::size_t size : {0, 1, 31, 32, 40, 100, 3000, 9000}) {
    const Buffer decoded = event_like(size, 7);
    const Buffer stream = stream_by_the_rules(predictor, decoded);
    Buffer again(size);
    EXPECT_TRUE(decompress(Codec::xpress, stream, again)) << size;
    EXPECT_EQ(again, decoded);
    Buffer corrections;
    ASSERT_TRUE(predictor.encode(stream, decoded, corrections)) << size;
    EXPECT_TRUE(corrections.empty());
  }
}

// encode() stands for the proof that restore() would give: it must never say more.
void expect_proof(XpressPredictor &predictor, const Buffer &stream, const Buffer &decoded) {
  Buffer corrections;
  if (!predictor.encode(stream, decoded, corrections)) {
    return;
  }
  Buffer out(stream.size());
  ASSERT_TRUE(predictor.restore(decoded, corrections, out));
  ASSERT_EQ(out, stream);
}

TEST(XpressPredictor, SaysOfNoStreamThatItComesBackWhereItDoesNot) {
  XpressPredictor predictor(1 << 16);
  for (const std::size_t size : {0, 1, 31, 32, 40, 100, 3000, 9000}) {
    const Buffer decoded = event_like(size, 7);
    for (const Buffer &stream : {stream_by_the_rules(predictor, decoded), stream_by_our_encoder(decoded)}) {
      for (std::size_t i = 0; i < stream.size(); i += 1 + stream.size() / 300) {
        for (unsigned bit = 0; bit < 8; ++bit) {
          Buffer other = stream;
          other[i] ^= static_cast<std::uint8_t>(1u << bit);
          expect_proof(predictor, other, decoded);
        }
        Buffer other = stream;
        other.insert(other.begin() + static_cast<std::ptrdiff_t>(i), other[i]);
        expect_proof(predictor, other, decoded);
        expect_proof(predictor, Buffer(stream.begin(), stream.begin() + static_cast<std::ptrdiff_t>(i)),
                     decoded);
        if (Buffer touched = decoded; size != 0) {
          touched[i % size] ^= 0x40;
          expect_proof(predictor, stream, touched);
        }
      }
    }
  }
}

// All of these decode to the content; what is not as Windows writes it is refused.
TEST(XpressPredictor, RefusesWhatIsWrittenInAnotherForm) {
  XpressPredictor predictor(1 << 18);
  struct Case {
    bool regular;
    std::size_t length; // of a match with the byte before
    Buffer rest;        // of its code
  };
  const Case cases[] = {{true, 3 + 7 + 2, {2}},
                        {true, 3 + 22 + 9, {15, 9}},
                        {true, 3 + 277, {15, 255, 277 % 256, 1}},
                        {true, 3 + 0x10000, {15, 255, 0, 0, 0, 0, 1, 0}},
                        {false, 3 + 7 + 2, {2 + 16}},          // half a byte that no length uses
                        {false, 3 + 22 + 9, {15, 255, 31, 0}}, // two bytes for what one can say
                        {false, 3 + 277, {15, 255, 0, 0, 277 % 256, 1, 0, 0}},
                        {false, 3 + 22, {15, 255, 0, 0, 22, 0, 0, 0}}};
  for (const Case &c : cases) {
    Buffer stream = {0xFF, 0xFF, 0xFF, 0x7F, 'a', 7, 0};
    stream.insert(stream.end(), c.rest.begin(), c.rest.end());
    const Buffer decoded(1 + c.length, 'a');
    Buffer again(decoded.size()), corrections;
    ASSERT_TRUE(decompress(Codec::xpress, stream, again)) << c.length;
    ASSERT_TRUE(again == decoded);
    EXPECT_EQ(predictor.encode(stream, decoded, corrections), c.regular) << c.length;
    EXPECT_TRUE(c.regular || corrections.empty());
    expect_proof(predictor, stream, decoded);
  }
}

// The first literal is another byte, and all the rest would fit without it.
TEST(XpressPredictor, RefusesALiteralOfAnotherByte) {
  XpressPredictor predictor(1 << 16);
  const Buffer decoded(40, 'a');
  Buffer stream = stream_by_the_rules(predictor, decoded), corrections;
  ASSERT_TRUE(predictor.encode(stream, decoded, corrections));
  stream[4] = 'b';
  EXPECT_FALSE(predictor.encode(stream, decoded, corrections));
  Buffer longer(codec::XpressWriter::bound(41));
  codec::XpressWriter writer(longer.data());
  writer.literal('b');
  for (unsigned i = 0; i < 40; ++i)
    writer.literal('a');
  longer.resize(writer.finish());
  EXPECT_FALSE(predictor.encode(longer, decoded, corrections));
  EXPECT_TRUE(corrections.empty());
}

TEST(XpressPredictor, TakesTheLongerMatchOfTheSecondTable) {
  // "abcdefgh" is hidden behind "abcX": the first table knows only the latter.
  const std::string_view text =
      "abcdefghijkl-abcX-------abcdefghijkl________________________________________";
  const Buffer decoded(text.begin(), text.end());
  XpressPredictor predictor(1 << 16);
  const Buffer stream = stream_by_the_rules(predictor, decoded);
  std::size_t pos = 0;
  for (const XpressToken &token : tokens_of(stream, decoded.size())) {
    if (pos == 24) {
      EXPECT_EQ(token, (XpressToken{24, 12}));
      return;
    }
    pos += token.length;
  }
  FAIL() << "no token begins there";
}

TEST(XpressPredictor, RestoresStreamsOfAnotherEncoder) {
  XpressPredictor predictor(1 << 16);
  for (const std::size_t size : {1, 33, 500, 20000, 65536}) {
    const Buffer decoded = event_like(size, 3);
    const Buffer stream = stream_by_our_encoder(decoded);
    Buffer corrections = {1, 2, 3};
    if (!predictor.encode(stream, decoded, corrections)) {
      EXPECT_EQ(corrections, (Buffer{1, 2, 3}));
      continue;
    }
    Buffer out(stream.size());
    ASSERT_TRUE(predictor.restore(decoded, Bytes(corrections).subspan(3), out));
    EXPECT_EQ(out, stream);
  }
}

// The rules' stream with one match in `oddity` written in another way: as literals, or shorter.
Buffer odd_stream(XpressPredictor &predictor, const Buffer &decoded, unsigned seed, unsigned oddity) {
  std::mt19937 random(seed);
  Buffer out(codec::XpressWriter::bound(decoded.size()));
  codec::XpressWriter writer(out.data());
  std::size_t pos = 0;
  for (const XpressToken &token : tokens_of(stream_by_the_rules(predictor, decoded), decoded.size())) {
    const std::size_t next = pos + token.length;
    if (token.distance != 0 && random() % oddity != 0) {
      writer.match(token.distance, token.length);
      pos = next;
    } else if (token.length > 4 && random() % 2 != 0) {
      writer.match(token.distance, token.length - 1);
      pos = next - 1;
    }
    for (; pos < next; ++pos) {
      writer.literal(decoded[pos]);
    }
  }
  out.resize(writer.finish());
  return out;
}

TEST(XpressPredictor, RestoresAnyTokensWrittenInWindowsForm) {
  XpressPredictor predictor(1 << 16);
  unsigned restored = 0;
  for (unsigned seed = 0; seed < 40; ++seed) {
    const Buffer decoded = event_like(200 + 97 * seed, seed);
    const Buffer stream = odd_stream(predictor, decoded, seed, 2 + seed * 5);
    Buffer corrections;
    if (predictor.encode(stream, decoded, corrections)) { // with half of the matches odd it need not pay
      ++restored;
      Buffer out(stream.size());
      ASSERT_TRUE(predictor.restore(decoded, corrections, out));
      ASSERT_EQ(out, stream);
    }
  }
  EXPECT_GE(restored, 35u);
}

// Windows writes neither, but the format has them, and a decoder takes them.
TEST(XpressPredictor, RestoresDistancesAndLengthsThatWindowsNeverWrites) {
  XpressPredictor predictor(1 << 18);
  auto check = [&predictor](const Buffer &decoded, std::size_t literals, std::size_t distance) {
    Buffer stream(codec::XpressWriter::bound(decoded.size()));
    XpressWriter writer(stream.data());
    for (std::size_t i = 0; i < literals; ++i)
      writer.literal(decoded[i]);
    writer.match(distance, decoded.size() - literals);
    stream.resize(writer.finish());
    Buffer again(decoded.size());
    ASSERT_TRUE(decompress(Codec::xpress, stream, again));
    ASSERT_TRUE(again == decoded);
    Buffer corrections;
    ASSERT_TRUE(predictor.encode(stream, decoded, corrections));
    Buffer out(stream.size());
    ASSERT_TRUE(predictor.restore(decoded, corrections, out));
    EXPECT_TRUE(out == stream);
  };
  std::mt19937 random(1);
  Buffer far(8192 + 100);
  for (std::size_t i = 0; i < far.size(); ++i)
    far[i] = i < 8192 ? static_cast<std::uint8_t>(random()) : far[i - 8192];
  check(far, 8192, 8192);
  for (const std::size_t length : {32768u, 32769u, 65538u, 65539u, 200'000u})
    check(Buffer(1 + length, 7), 1, 1);
}

TEST(XpressPredictor, RefusesWhatItCannotModel) {
  XpressPredictor predictor(1 << 16);
  const Buffer decoded = event_like(5000, 1);
  const Buffer stream = stream_by_the_rules(predictor, decoded);
  Buffer corrections;
  Buffer longer = stream;
  longer.push_back(0);
  EXPECT_FALSE(predictor.encode(longer, decoded, corrections));
  for (std::size_t size = 0; size < stream.size(); size += 7) {
    EXPECT_FALSE(predictor.encode(Bytes(stream).first(size), decoded, corrections)) << size;
  }
  EXPECT_FALSE(predictor.encode(stream, event_like((1 << 16) + 1, 1), corrections)); // larger than announced
  // Spare flags that are not all ones.
  const Buffer few = event_like(5, 1);
  Buffer other = stream_by_the_rules(predictor, few);
  other[0] ^= 1;
  EXPECT_FALSE(predictor.encode(other, few, corrections));
  EXPECT_TRUE(corrections.empty());
}

TEST(XpressPredictor, ReportsCorrectionsThatDoNotFit) {
  XpressPredictor predictor(1 << 16);
  const Buffer decoded = event_like(2000, 5);
  const Buffer stream = odd_stream(predictor, decoded, 5, 10);
  Buffer corrections;
  ASSERT_TRUE(predictor.encode(stream, decoded, corrections));
  ASSERT_GT(corrections.size(), 20u);
  XpressPredictor other(1 << 16);
  Buffer out(stream.size());
  unsigned refused = 0;
  for (std::size_t size = 0; size < corrections.size(); ++size) {
    const Result<void> result = other.restore(decoded, Bytes(corrections).first(size), out);
    refused += result ? 0 : 1; // a cut between two corrections can give a stream of the same size
  }
  EXPECT_GT(refused, corrections.size() / 2);
  Buffer more = corrections;
  more.push_back(0x7F);
  more.push_back(0);
  more.push_back(0x7F);
  EXPECT_FALSE(other.restore(decoded, more, out));             // one cut off or never reached
  EXPECT_FALSE(other.restore(decoded, Buffer(12, 0xFF), out)); // a number without an end
  EXPECT_FALSE(other.restore(decoded, Buffer{0, 1}, out));     // the first candidate, where there is none
  EXPECT_FALSE(other.restore(decoded, Buffer{0, 2}, out));     // before the start
  EXPECT_FALSE(other.restore(event_like((1 << 16) + 1, 1), {}, out));
  EXPECT_TRUE(other.restore(decoded, corrections, out)); // and it still works after all that
}

TEST(XpressPredictor, SurvivesRandomCorrections) {
  XpressPredictor predictor(1 << 14);
  std::mt19937 random(11);
  for (int round = 0; round < 4000; ++round) {
    const Buffer decoded = event_like(random() % 600, random() % 5);
    Buffer corrections(random() % 24);
    for (std::uint8_t &byte : corrections) {
      byte = static_cast<std::uint8_t>(random() % (round % 2 ? 256 : 8));
    }
    Buffer out(random() % 300);
    (void)static_cast<bool>(predictor.restore(decoded, corrections, out));
  }
}

// The bound is 100 KB for this trace; the rules known today leave far less.
TEST(XpressPredictor, RestoresEveryBufferOfARealTrace) {
  const testing::Trace trace = testing::trace_buffers("net.4.5.2.x64");
  if (trace.buffers.empty()) {
    GTEST_SKIP() << "net.4.5.2.x64.etl is not there";
  }
  const std::vector<Buffer> decoded = testing::decoded_payloads(trace, true);
  std::vector<Bytes> stored;
  for (const testing::TraceBuffer &buffer : trace.buffers) {
    if (buffer.header.compressed()) {
      stored.push_back(buffer.payload());
    }
  }
  ASSERT_EQ(stored.size(), decoded.size());
  ASSERT_EQ(stored.size(), 359u);
  XpressPredictor predictor(1 << 16);
  std::vector<Buffer> corrections(stored.size());
  std::size_t bytes = 0;
  std::size_t cost = 0;
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  for (std::size_t i = 0; i < stored.size(); ++i) {
    ASSERT_TRUE(predictor.encode(stored[i], decoded[i], corrections[i])) << i;
    bytes += decoded[i].size();
    cost += corrections[i].size();
  }
  const auto encoded = Clock::now();
  XpressPredictor fresh(1 << 16);
  Buffer out;
  std::chrono::duration<double> restoring{};
  for (std::size_t i = 0; i < stored.size(); ++i) {
    out.assign(stored[i].size(), 0);
    const auto from = Clock::now();
    ASSERT_TRUE(fresh.restore(decoded[i], corrections[i], out)) << i;
    restoring += Clock::now() - from;
    ASSERT_TRUE(std::ranges::equal(out, stored[i])) << i;
  }
  const double megabytes = static_cast<double>(bytes) / 1e6;
  std::printf("%zu bytes of corrections for %zu buffers; %llu of %llu tokens corrected; encode %.0f MB/s, "
              "restore %.0f "
              "MB/s of content\n",
              cost, stored.size(), static_cast<unsigned long long>(predictor.counts().corrected),
              static_cast<unsigned long long>(predictor.counts().tokens),
              megabytes / std::chrono::duration<double>(encoded - start).count(),
              megabytes / restoring.count());
  EXPECT_LE(cost, 2000u);
}

} // namespace
} // namespace etwrelog::codec
