// Deflate streams come back from what they decode to: exactly, and where zlib or gzip made them, of nothing
// but their blocks.
#include "codec/deflate/predictor.hpp"
#include "tests/support/deflated.hpp"
#include "tests/support/pace.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

namespace etwrelog {
namespace {

using namespace codec::deflate;
using testing::deflated;
using testing::DeflateWay;
using Buffer = std::vector<std::uint8_t>;

Fetch fetch(const Buffer &bytes) {
  return [&bytes](std::uint64_t at, MutableBytes into) -> Result<std::size_t> {
    if (at >= bytes.size()) return std::size_t{0};
    const std::size_t count = std::min<std::size_t>(into.size(), bytes.size() - at);
    std::memcpy(into.data(), bytes.data() + at, count);
    return count;
  };
}

// Records of changing fields, as in a trace: matches of all lengths and distances.
Buffer records(std::size_t size) {
  std::mt19937 random(7);
  Buffer bytes;
  std::uint64_t time = 1;
  while (bytes.size() < size) {
    std::uint8_t record[64];
    for (std::size_t i = 0; i < sizeof record; ++i)
      record[i] = static_cast<std::uint8_t>(i);
    time += random() % 1000;
    std::memcpy(record + 8, &time, 8);
    const std::uint32_t kind = random() % 7, number = random() % 300;
    std::memcpy(record + 16, &kind, 4);
    std::memcpy(record + 40, &number, 4);
    bytes.insert(bytes.end(), record, record + 24 + 8 * kind % 40);
    if (random() % 500 == 0) bytes.insert(bytes.end(), random() % 3000, 0xFF);
  }
  bytes.resize(size);
  return bytes;
}

struct Taken {
  bool good = false;
  Corrections corrections;
  Parameters parameters;
  std::uint64_t tokens = 0, corrected = 0;
};

Taken take_apart(const Buffer &stream, const Buffer &content, Following &following) {
  Taken taken;
  const Stretch stretch{fetch(content), 0, content.size()};
  const std::optional<Measured> measured = measure(fetch(stream), 0, stretch);
  if (!measured || measured->end != stream.size() || measured->decoded != content.size()) return taken;
  taken.parameters = find_parameters(fetch(stream), 0, stretch, {}, following).parameters;
  Predictor predictor(fetch(stream), 0, stretch, taken.parameters, following);
  Step step = Step::more;
  while (step == Step::more)
    step = predictor.next(taken.corrections);
  taken.good = step == Step::end;
  taken.tokens = predictor.counts().tokens;
  taken.corrected = predictor.counts().corrected;
  return taken;
}

Taken take_apart(const Buffer &stream, const Buffer &content) {
  Following following;
  return take_apart(stream, content, following);
}

std::optional<Buffer> put_together(const Corrections &c, const Parameters &parameters, const Buffer &content,
                                   Following &following) {
  Restorer restorer({fetch(content), 0, content.size()}, parameters, following);
  CorrectionsView view{c.shape, c.heads, c.places, c.distances};
  Buffer out;
  Step step = Step::more;
  while (step == Step::more)
    step = restorer.next(view, out);
  if (step != Step::end || !view.empty()) return std::nullopt;
  return out;
}

std::optional<Buffer> put_together(const Corrections &c, const Parameters &parameters,
                                   const Buffer &content) {
  Following following;
  return put_together(c, parameters, content, following);
}

void expect_back(const Buffer &stream, const Buffer &content, const char *what) {
  const Taken taken = take_apart(stream, content);
  ASSERT_TRUE(taken.good) << what;
  const std::optional<Buffer> back = put_together(taken.corrections, taken.parameters, content);
  ASSERT_TRUE(back) << what;
  EXPECT_TRUE(*back == stream) << what;
}

std::uint64_t corrected(const Buffer &content, const DeflateWay &way) {
  const Buffer stream = deflated(content, way);
  expect_back(stream, content, "way");
  const Taken taken = take_apart(stream, content);
  return taken.corrected + taken.corrections.heads.size();
}

TEST(Deflate, NeedsNoCorrectionsForZlibAtAnyLevel) {
  const Buffer content = records(testing::kSanitized ? 100'000 : 300'000);
  for (int level = 0; level <= 9; ++level)
    EXPECT_EQ(corrected(content, {.level = level}), 0u) << level;
}

TEST(Deflate, NeedsNoneForOtherMemoryLevelsWindowsAndStrategies) {
  const Buffer content = records(testing::kSanitized ? 50'000 : 120'000);
  for (int memory = 1; memory <= 9; ++memory)
    EXPECT_EQ(corrected(content, {.memory_level = memory}), 0u) << memory;
  for (const int level : {1, 9})
    EXPECT_EQ(corrected(content, {.level = level, .memory_level = 9}), 0u) << level;
  for (int window = 9; window <= 14; ++window)
    EXPECT_EQ(corrected(content, {.window_bits = window}), 0u) << window;
  for (const int strategy : {Z_FILTERED, Z_HUFFMAN_ONLY, Z_RLE, Z_FIXED})
    EXPECT_EQ(corrected(content, {.strategy = strategy}), 0u) << strategy;
}

// As pigz and writers of logs do. At a flush an encoder may see less than the rules have it.
TEST(Deflate, NeedsHardlyAnyForStreamsThatWereFlushed) {
  const Buffer content = records(200'000);
  for (const int level : {1, 6, 9})
    for (const int flush : {Z_SYNC_FLUSH, Z_FULL_FLUSH})
      EXPECT_LE(corrected(content, {.level = level, .flush = flush, .every = 30'000}), 2u)
          << level << " " << flush;
}

TEST(Deflate, CorrectsWhatNoRuleExplains) {
  const Buffer content = records(200'000);
  // Two encoders in one stream; the parameters fit one of them.
  z_stream z{};
  ASSERT_EQ(deflateInit2(&z, 1, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY), Z_OK);
  Buffer stream(content.size());
  z.next_in = const_cast<std::uint8_t *>(content.data());
  z.avail_in = 100'000;
  z.next_out = stream.data();
  z.avail_out = static_cast<uInt>(stream.size());
  ASSERT_EQ(::deflate(&z, Z_BLOCK), Z_OK);
  ASSERT_EQ(deflateParams(&z, 9, Z_DEFAULT_STRATEGY), Z_OK);
  z.avail_in = static_cast<uInt>(content.size() - 100'000);
  ASSERT_EQ(::deflate(&z, Z_FINISH), Z_STREAM_END);
  stream.resize(stream.size() - z.avail_out);
  deflateEnd(&z);
  expect_back(stream, content, "two levels");
  const Taken taken = take_apart(stream, content);
  EXPECT_GT(taken.corrected, 0u);
  EXPECT_LT(taken.corrected, taken.tokens);
}

TEST(Deflate, GivesBackTheSmallest) {
  for (std::size_t size = 0; size < 12; ++size)
    for (int level = 0; level <= 9; level += 3) {
      const Buffer content(size, 'a');
      expect_back(deflated(content, {.level = level}), content, "small");
    }
}

// Whatever streams came before: members of one file are followed with the same tables.
TEST(Deflate, ManyStreamsAreFollowedAsEachAlone) {
  const Buffer content = records(60'000);
  Following following, restoring;
  const std::vector<DeflateWay> ways = {
      {.level = 9},        {.level = 1}, {.memory_level = 9}, {.window_bits = 10},
      {.strategy = Z_RLE}, {.level = 9}, {.level = 3},        {.strategy = Z_FILTERED}};
  for (std::size_t i = 0; i < ways.size(); ++i) {
    const Buffer piece(content.begin() + static_cast<std::ptrdiff_t>(1000 * i),
                       content.end() - static_cast<std::ptrdiff_t>(i % 3 * 20'000));
    const Buffer stream = deflated(piece, ways[i]);
    const Taken alone = take_apart(stream, piece), taken = take_apart(stream, piece, following);
    ASSERT_TRUE(alone.good && taken.good) << i;
    EXPECT_TRUE(taken.parameters == alone.parameters) << i;
    EXPECT_EQ(taken.corrected, alone.corrected) << i;
    EXPECT_TRUE(taken.corrections.shape == alone.corrections.shape) << i;
    if (i == 4) restoring.matcher.begin({}, UINT32_MAX); // so far that places would be counted from the start
    const std::optional<Buffer> back = put_together(taken.corrections, taken.parameters, piece, restoring);
    ASSERT_TRUE(back) << i;
    EXPECT_TRUE(*back == stream) << i;
  }
}

// Everything matches for three bytes and nothing for more: chains are followed to their ends.
Buffer with_long_chains(std::size_t size) {
  std::mt19937 random(5);
  Buffer content(size);
  for (std::size_t i = 0; i < size; ++i)
    content[i] = static_cast<std::uint8_t>(i % 5 >= 3 ? random() : 'a' + i % 5);
  return content;
}
constexpr std::uint64_t kOneToken = 2 * 4096; // candidates

TEST(Deflate, IsNotFollowedWhereThatTakesTooLong) {
  const Buffer content = with_long_chains(100'000), stream = deflated(content, {.level = 9});
  const Stretch stretch{fetch(content), 0, content.size()};
  Following following, another;
  following.most_of_stream = another.most_searched = 1u << 20;
  for (Following *of_file : {&following, &another})
    for (int i = 0; i < 3; ++i) { // of its members
      static_cast<void>(find_parameters(fetch(stream), 0, stretch, {}, *of_file));
      EXPECT_FALSE(of_file->may_search());
      EXPECT_LE(of_file->searched, (1u << 20) + 100 * kOneToken); // each attempt looks once
    }
  following.most_predicted = 1u << 20;
  const Parameters deepest{.level = 9};
  Predictor predictor(fetch(stream), 0, stretch, deepest, following);
  Corrections corrections;
  Step step = Step::more;
  while (step == Step::more)
    step = predictor.next(corrections);
  EXPECT_EQ(step, Step::foreign);
  EXPECT_LT(following.bytes, content.size());
  EXPECT_LE(following.walked(),
            following.most_predicted + Following::kPredictedPerByte * following.bytes + kOneToken);
}

TEST(Deflate, IsNotPutTogetherWhereThatTakesTooLong) {
  const Buffer content = with_long_chains(80'000), stream = deflated(content, {.level = 9});
  const Parameters deepest{.level = 9};
  Following following, restoring;
  Predictor predictor(fetch(stream), 0, {fetch(content), 0, content.size()}, deepest, following);
  Corrections corrections;
  Step step = Step::more;
  while (step == Step::more)
    step = predictor.next(corrections);
  ASSERT_EQ(step, Step::end);
  EXPECT_TRUE(put_together(corrections, deepest, content) == stream);
  restoring.most_restored = 1u << 20;
  EXPECT_FALSE(put_together(corrections, deepest, content, restoring));
  EXPECT_FALSE(restoring.may_restore());
  EXPECT_LE(restoring.walked(),
            restoring.most_restored + Following::kRestoredPerByte * restoring.bytes + kOneToken);
}

// A file may have a member for each byte.
TEST(Deflate, ReadsLittleOfWhatIsAroundAShortStream) {
  const Buffer content(4u << 20, 'a'), stream = deflated(Buffer(1, 'a'));
  Buffer compressed = stream;
  compressed.resize(1u << 20, 0x5A);
  std::uint64_t read = 0;
  auto counting = [&read](const Buffer &bytes) -> Fetch {
    return [&read, all = fetch(bytes)](std::uint64_t at, MutableBytes into) {
      read += into.size();
      return all(at, into);
    };
  };
  const Stretch stretch{counting(content), 0, content.size()};
  const std::optional<Measured> measured = measure(counting(compressed), 0, stretch);
  ASSERT_TRUE(measured);
  EXPECT_EQ(measured->end, stream.size());
  EXPECT_LE(read, 16u << 10);
}

// By hand: bits, the lowest of each byte first.
class Bits {
public:
  Bits &put(unsigned value, unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
      if (held_ % 8 == 0) bytes_.push_back(0);
      bytes_.back() |= static_cast<std::uint8_t>(((value >> i) & 1) << (held_++ % 8));
    }
    return *this;
  }
  Bits &code(unsigned value, unsigned count) { // a prefix code: its first bit first
    for (unsigned i = count; i-- > 0;)
      put(value >> i & 1, 1);
    return *this;
  }
  [[nodiscard]] const Buffer &bytes() const { return bytes_; }

private:
  Buffer bytes_;
  std::size_t held_ = 0;
};

TEST(Deflate, KeepsWhatEncodersHardlyEverWrite) {
  const Buffer content(260, 'a');
  // Empty fixed and stored blocks with odd filler, a literal, 258 in its two forms, odd bits at the end.
  Bits odd;
  odd.put(0, 1).put(1, 2).code(0, 7);                              // empty, fixed
  odd.put(0, 1).put(0, 2).put(5, 3).put(0, 16).put(0xFFFF, 16);    // empty, stored: 3 bits of filler
  odd.put(1, 1).put(1, 2).code(0x30 + 'a', 8).code(0x30 + 'a', 8); // two literals
  odd.code(0xC0 + 284 - 280, 8).put(31, 5).code(0, 5).code(0, 7);  // 258 as 284 and 31
  odd.put(0x7F, static_cast<unsigned>((8 - (3 + 8 + 8 + 8 + 5 + 5 + 7) % 8) % 8));
  expect_back(odd.bytes(), content, "odd");
}

TEST(Deflate, RefusesWhatDecodesToSomethingElse) {
  const Buffer content = records(50'000);
  Buffer stream = deflated(content);
  Buffer other = content;
  other[40'000] ^= 1;
  EXPECT_FALSE(take_apart(stream, other).good);
  other = content;
  other.pop_back();
  EXPECT_FALSE(take_apart(stream, other).good);
  for (std::size_t cut = 0; cut < stream.size(); cut += 97)
    EXPECT_FALSE(
        take_apart(Buffer(stream.begin(), stream.begin() + static_cast<std::ptrdiff_t>(cut)), content).good)
        << cut;
}

// Any flip: refused, or the flipped stream comes back.
TEST(Deflate, GivesBackOrRefusesAnyDamagedStream) {
  const Buffer content = records(3000);
  const Buffer stream = deflated(content);
  for (std::size_t bit = 0; bit < stream.size() * 8; bit += testing::kSanitized ? 7 : 1) {
    Buffer bad = stream;
    bad[bit / 8] ^= static_cast<std::uint8_t>(1u << bit % 8);
    const Taken taken = take_apart(bad, content);
    if (!taken.good) continue;
    const std::optional<Buffer> back = put_together(taken.corrections, taken.parameters, content);
    ASSERT_TRUE(back);
    EXPECT_TRUE(*back == bad) << bit;
  }
}

TEST(Deflate, EndsOnCorrectionsThatDoNotFit) {
  const Buffer content = records(20'000);
  const Taken taken =
      take_apart(deflated(content, {.level = 6, .flush = Z_PARTIAL_FLUSH, .every = 1000}), content);
  ASSERT_TRUE(taken.good);
  std::mt19937 random(3);
  for (int i = 0; i < (testing::kSanitized ? 300 : 2000); ++i) {
    Corrections bad = taken.corrections;
    for (Buffer *stream : {&bad.shape, &bad.heads, &bad.places, &bad.distances})
      if (!stream->empty() && random() % 2 == 0)
        (*stream)[random() % stream->size()] = static_cast<std::uint8_t>(random());
    if (random() % 4 == 0) bad.shape.resize(random() % bad.shape.size());
    static_cast<void>(put_together(bad, taken.parameters, content));
  }
}

} // namespace
} // namespace etwrelog
