#include "etwrelog/codec.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace etwrelog {
namespace {

using Buffer = std::vector<std::uint8_t>;

Buffer from_text(std::string_view text) { return {text.begin(), text.end()}; }

Buffer alphabet() { return from_text("abcdefghijklmnopqrstuvwxyz"); }

Buffer hundred_abc() {
  Buffer out;
  for (int i = 0; i < 100; ++i) {
    out.insert(out.end(), {'a', 'b', 'c'});
  }
  return out;
}

Buffer ode_to_joy() {
  Buffer out = from_text("F# F# G A A G F# E D D E F# F# E E F# F# G A A G F# E D D E F# E D D E E F# D E F# G F# D E "
                         "F# G F# E D E A F# F# G A A G F# E D D E F# E D D");
  out.push_back(0);
  return out;
}

// MS-XCA 3.1 to 3.3.
const Buffer kAlphabetXpress = {0x3f, 0,    0,    0,    0x61, 0x62, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0x69, 0x6a, 0x6b,
                                0x6c, 0x6d, 0x6e, 0x6f, 0x70, 0x71, 0x72, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78, 0x79, 0x7a};
const Buffer kAbcXpress = {0xff, 0xff, 0xff, 0x1f, 0x61, 0x62, 0x63, 0x17, 0x00, 0x0f, 0xff, 0x26, 0x01};
const Buffer kOdeLznt1 = {0x38, 0xb0, 0x88, 0x46, 0x23, 0x20, 0x00, 0x20, 0x47, 0x20, 0x41, 0x00, 0x10, 0xa2, 0x47,
                          0x01, 0xa0, 0x45, 0x20, 0x44, 0x00, 0x08, 0x45, 0x01, 0x50, 0x79, 0x00, 0xc0, 0x45, 0x20,
                          0x05, 0x24, 0x13, 0x88, 0x05, 0xb4, 0x02, 0x4a, 0x44, 0xef, 0x03, 0x58, 0x02, 0x8c, 0x09,
                          0x16, 0x01, 0x48, 0x45, 0x00, 0xbe, 0x00, 0x9e, 0x00, 0x04, 0x01, 0x18, 0x90, 0x00};

Buffer alphabet_huffman() {
  Buffer out(256, 0);
  const Buffer lengths = {0x50, 0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0x45, 0x44, 0x04};
  std::copy(lengths.begin(), lengths.end(), out.begin() + 'a' / 2);
  out[128] = 0x04;
  for (const int byte : {0xd8, 0x52, 0x3e, 0xd7, 0x94, 0x11, 0x5b, 0xe9, 0x19, 0x5f, 0xf9, 0xd6, 0x7c, 0xdf, 0x8d, 0x04,
                         0x00, 0x00, 0x00, 0x00}) {
    out.push_back(static_cast<std::uint8_t>(byte));
  }
  return out;
}

Buffer abc_huffman() {
  Buffer out(256, 0);
  out['a' / 2] = 0x30;
  out['b' / 2] = 0x23;
  out[128] = 0x02;
  out[143] = 0x20;
  for (const int byte : {0xa8, 0xdc, 0x00, 0x00, 0xff, 0x26, 0x01}) {
    out.push_back(static_cast<std::uint8_t>(byte));
  }
  return out;
}

// Exact-size heap copies, so that the address sanitizer sees a single byte too many.
CodecResult decode(Codec codec, const Buffer &in, Buffer &out) { return decompress(codec, in, out); }

void expect_decodes(Codec codec, const Buffer &in, const Buffer &expected) {
  Buffer out(expected.size(), 0xA5);
  const CodecResult r = decode(codec, in, out);
  EXPECT_EQ(r.status, CodecStatus::ok) << codec_name(codec) << ": " << codec_status_text(r.status);
  EXPECT_EQ(r.consumed, in.size());
  EXPECT_EQ(r.produced, expected.size());
  EXPECT_EQ(out, expected);
}

TEST(Codecs, DecodePublishedExamples) {
  expect_decodes(Codec::xpress, kAlphabetXpress, alphabet());
  expect_decodes(Codec::xpress, kAbcXpress, hundred_abc());
  expect_decodes(Codec::lznt1, kOdeLznt1, ode_to_joy());
  expect_decodes(Codec::xpress_huffman, alphabet_huffman(), alphabet());
  expect_decodes(Codec::xpress_huffman, abc_huffman(), hundred_abc());
}

std::vector<Buffer> round_trip_inputs() {
  std::vector<Buffer> inputs;
  std::mt19937 random(7);
  for (const std::size_t n : {0u, 1u, 2u, 3u, 31u, 32u, 33u, 64u, 4095u, 4096u, 4097u, 65535u, 65536u, 65537u, 200000u}) {
    Buffer noise(n), constant(n, 0x42), records(n), text(n);
    for (std::size_t i = 0; i < n; ++i) {
      noise[i] = static_cast<std::uint8_t>(random());
      text[i] = static_cast<std::uint8_t>("etaoin"[random() % 6]);
      records[i] = static_cast<std::uint8_t>(i % 24 < 20 ? i % 24 * 7 : random());
    }
    inputs.insert(inputs.end(), {noise, constant, records, text});
  }
  return inputs;
}

TEST(Codecs, RoundTrip) {
  for (const Codec codec : {Codec::none, Codec::lznt1, Codec::xpress, Codec::xpress_huffman}) {
    for (const Level level : {Level::fast, Level::normal, Level::max}) {
      Compressor compressor(codec, level, 200000);
      for (const Buffer &input : round_trip_inputs()) {
        Buffer packed(input.size() * 2 + 2048);
        const CodecResult r = compressor.compress(input, packed);
        ASSERT_EQ(r.status, CodecStatus::ok);
        EXPECT_EQ(r.consumed, input.size());
        packed.resize(r.produced);
        expect_decodes(codec, packed, input);
        // A span of just that size takes it, one byte less does not.
        Buffer exact(packed.size());
        EXPECT_EQ(compressor.compress(input, exact).status, CodecStatus::ok);
        EXPECT_EQ(exact, packed);
        if (!exact.empty()) {
          exact.pop_back();
          EXPECT_EQ(compressor.compress(input, exact).status, CodecStatus::output_too_small);
        }
      }
    }
  }
}

TEST(Codecs, EveryTruncationFailsWithAValidPrefix) {
  const struct {
    Codec codec;
    Buffer in, out;
  } cases[] = {{Codec::xpress, kAlphabetXpress, alphabet()},
               {Codec::xpress, kAbcXpress, hundred_abc()},
               {Codec::lznt1, kOdeLznt1, ode_to_joy()},
               {Codec::xpress_huffman, alphabet_huffman(), alphabet()},
               {Codec::xpress_huffman, abc_huffman(), hundred_abc()}};
  for (const auto &c : cases) {
    for (std::size_t n = 0; n < c.in.size(); ++n) {
      const Buffer cut(c.in.begin(), c.in.begin() + static_cast<std::ptrdiff_t>(n));
      Buffer out(c.out.size());
      const CodecResult r = decode(c.codec, cut, out);
      EXPECT_NE(r.status, CodecStatus::ok) << codec_name(c.codec) << " cut to " << n;
      EXPECT_LE(r.consumed, n);
      ASSERT_LE(r.produced, c.out.size());
      EXPECT_TRUE(std::equal(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(r.produced), c.out.begin()));
    }
  }
}

} // namespace
} // namespace etwrelog
