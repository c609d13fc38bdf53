#include "codec/lznt1/predictor.hpp"

#include "etwrelog/codec.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace etwrelog::codec {
namespace {

using Buffer = std::vector<std::uint8_t>;

// Words drawn from a few; `noise` bytes in 256 are random, and the bytes from `random_from` on for a chunk
// are all.
Buffer text_like(std::size_t size, unsigned seed, unsigned noise = 2,
                 std::size_t random_from = ~std::size_t{0}) {
  std::mt19937 random(seed);
  const std::string words[] = {"Process",   "Thread", "ImageLoad", "\\Device\\HarddiskVolume2\\",
                               "StackWalk", "0000",   "ff80"};
  Buffer out;
  while (out.size() < size) {
    for (const char letter : words[random() % std::size(words)]) {
      out.push_back(
          static_cast<std::uint8_t>(random() % 256 < noise ? random() : static_cast<unsigned char>(letter)));
    }
  }
  out.resize(size);
  for (std::size_t at = random_from; at < std::min(size, random_from + 4096); ++at) {
    out[at] = static_cast<std::uint8_t>(random());
  }
  return out;
}

Buffer compress(const Buffer &decoded) {
  Compressor compressor(Codec::lznt1, Level::normal, decoded.size());
  Buffer out(decoded.size() * 2 + 64);
  const CodecResult result = compressor.compress(decoded, out);
  EXPECT_TRUE(result);
  out.resize(result.produced);
  return out;
}

// Greedy encoders of the plainest kind: with the longest match anywhere in the chunk, the latest of equals,
// or with the only candidate of a small hash table.
Buffer compress_greedily(const Buffer &decoded, bool exhaustively = true) {
  Buffer out;
  for (std::size_t start = 0; start < decoded.size(); start += 4096) {
    const std::size_t size = std::min<std::size_t>(4096, decoded.size() - start);
    const std::uint8_t *const chunk = decoded.data() + start;
    Buffer data;
    std::size_t group = 0;
    unsigned count = 8;
    std::vector<std::size_t> table(4096, 4096);
    for (std::size_t pos = 0; pos < size;) {
      if (count == 8) {
        group = data.size();
        data.push_back(0);
        count = 0;
      }
      unsigned bits = 4;
      while ((std::size_t{1} << bits) < pos) {
        ++bits;
      }
      const std::size_t limit = std::min(size - pos, (std::size_t{1} << (16 - bits)) + 2);
      std::size_t length = 0;
      std::size_t distance = 0;
      std::size_t first = 1;
      std::size_t last = pos;
      if (!exhaustively) {
        first = 1;
        last = 0;
        if (size - pos >= 4) {
          std::size_t &entry = table[load<std::uint32_t>(chunk + pos) * 2654435761u >> 20];
          if (entry < pos) {
            first = last = pos - entry;
          }
          entry = pos;
        }
      }
      for (std::size_t d = first; d <= last; ++d) {
        std::size_t n = 0;
        while (n < limit && chunk[pos - d + n] == chunk[pos + n]) {
          ++n;
        }
        if (n > length) {
          length = n;
          distance = d;
        }
      }
      if (length < 3) {
        data.push_back(chunk[pos++]);
      } else {
        const std::size_t word = (distance - 1) << (16 - bits) | (length - 3);
        data.push_back(static_cast<std::uint8_t>(word));
        data.push_back(static_cast<std::uint8_t>(word >> 8));
        data[group] = static_cast<std::uint8_t>(data[group] | 1u << count);
        pos += length;
      }
      ++count;
    }
    const bool stored = data.size() >= size;
    if (stored) {
      data.assign(chunk, chunk + size);
    }
    const std::size_t header = (stored ? 0x3000u : 0xB000u) | (data.size() - 1);
    out.push_back(static_cast<std::uint8_t>(header));
    out.push_back(static_cast<std::uint8_t>(header >> 8));
    out.insert(out.end(), data.begin(), data.end());
  }
  return out;
}

void expect_restored(Lznt1Predictor &predictor, const Buffer &stream, const Buffer &decoded,
                     std::size_t most) {
  Buffer corrections = {9};
  ASSERT_TRUE(predictor.encode(stream, decoded, corrections));
  EXPECT_LE(corrections.size() - 1, most) << "of " << stream.size();
  Buffer out(stream.size());
  ASSERT_TRUE(predictor.restore(decoded, Bytes(corrections).subspan(1), out));
  EXPECT_EQ(out, stream);
}

// Ours looks a position ahead, which neither rule does.
TEST(Lznt1Predictor, RestoresOurOwnEncodersStreams) {
  Lznt1Predictor predictor(1 << 17);
  for (const std::size_t size : {1, 2, 3, 4096, 4097, 8191, 65536, 100000}) {
    const Buffer decoded = text_like(size, static_cast<unsigned>(size));
    const Buffer stream = compress(decoded);
    expect_restored(predictor, stream, decoded, 3 + stream.size() / 4);
  }
}

TEST(Lznt1Predictor, NeedsNoCorrectionsWhereTheFirstRuleHolds) {
  Lznt1Predictor predictor(1 << 17);
  for (const std::size_t size : {1, 100, 4096, 65536}) {
    const Buffer decoded = text_like(size, static_cast<unsigned>(size));
    const Buffer stream = compress_greedily(decoded, false);
    Buffer again(size);
    ASSERT_TRUE(decompress(Codec::lznt1, stream, again));
    ASSERT_EQ(again, decoded);
    expect_restored(predictor, stream, decoded,
                    size == 1 ? 3 : 1); // one byte does not shrink: a stored chunk
  }
}

TEST(Lznt1Predictor, RestoresAnExhaustiveEncodersStreams) {
  Lznt1Predictor predictor(1 << 17);
  for (const std::size_t size : {5, 4096, 20000}) {
    const Buffer decoded = text_like(size, static_cast<unsigned>(size));
    const Buffer stream = compress_greedily(decoded);
    Buffer again(size);
    ASSERT_TRUE(decompress(Codec::lznt1, stream, again));
    ASSERT_EQ(again, decoded);
    expect_restored(predictor, stream, decoded, 3 + stream.size() / 4);
  }
}

TEST(Lznt1Predictor, KeepsStoredChunksAndTheZeroHeader) {
  Lznt1Predictor predictor(1 << 17);
  const Buffer decoded = text_like(30000, 4, 2, 8192);
  Buffer stream = compress_greedily(decoded);
  expect_restored(predictor, stream, decoded, 3 + stream.size() / 4);
  stream.insert(stream.end(), {0, 0});
  expect_restored(predictor, stream, decoded, 3 + stream.size() / 4);
}

TEST(Lznt1Predictor, RefusesWhatItCannotModel) {
  Lznt1Predictor predictor(1 << 17);
  const Buffer decoded = text_like(9000, 6);
  const Buffer stream = compress_greedily(decoded);
  Buffer corrections;
  for (std::size_t size = 0; size < stream.size(); ++size) {
    EXPECT_FALSE(predictor.encode(Bytes(stream).first(size), decoded, corrections)) << size;
  }
  Buffer other = stream;
  other.push_back(1);
  EXPECT_FALSE(predictor.encode(other, decoded, corrections));
  other = stream;
  other[1] ^= 0x40; // the signature
  EXPECT_FALSE(predictor.encode(other, decoded, corrections));
  EXPECT_FALSE(predictor.encode(stream, text_like((1 << 17) + 1, 1), corrections));
  EXPECT_TRUE(corrections.empty());
}

TEST(Lznt1Predictor, ReportsCorrectionsThatDoNotFit) {
  Lznt1Predictor predictor(1 << 17);
  const Buffer decoded = text_like(20000, 8, 10, 4096);
  const Buffer stream = compress_greedily(decoded);
  Buffer corrections;
  ASSERT_TRUE(predictor.encode(stream, decoded, corrections));
  Buffer out(stream.size());
  unsigned refused = 0;
  for (std::size_t size = 0; size < corrections.size(); ++size) {
    const Result<void> result = predictor.restore(decoded, Bytes(corrections).first(size), out);
    refused += result ? 0 : 1; // a cut between two corrections can give a stream of the same size
  }
  EXPECT_GT(refused, corrections.size() / 2);
  std::mt19937 random(2);
  for (int round = 0; round < 2000; ++round) {
    Buffer hostile = corrections;
    hostile.resize(random() % (hostile.size() + 1));
    for (int n = 0; n < 4 && !hostile.empty(); ++n) {
      hostile[random() % std::min<std::size_t>(hostile.size(), 40)] = static_cast<std::uint8_t>(random());
    }
    (void)static_cast<bool>(predictor.restore(Bytes(decoded).first(random() % decoded.size()), hostile, out));
  }
  EXPECT_TRUE(predictor.restore(decoded, corrections, out));
  EXPECT_EQ(out, stream);
}

} // namespace
} // namespace etwrelog::codec
