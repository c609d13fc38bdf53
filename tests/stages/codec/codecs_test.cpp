#include "etwrelog/codec.hpp"

#include "tests/support/fwnt.hpp"
#include "tests/support/pace.hpp"
#include "tests/support/trace_files.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace etwrelog {
namespace {

using Buffer = std::vector<std::uint8_t>;

Buffer from_text(std::string_view text) {
  return {text.begin(), text.end()};
}

Buffer alphabet() {
  return from_text("abcdefghijklmnopqrstuvwxyz");
}

Buffer hundred_abc() {
  Buffer out;
  for (int i = 0; i < 100; ++i) {
    out.insert(out.end(), {'a', 'b', 'c'});
  }
  return out;
}

Buffer ode_to_joy() {
  Buffer out =
      from_text("F# F# G A A G F# E D D E F# F# E E F# F# G A A G F# E D D E F# E D D E E F# D E F# G F# D E "
                "F# G F# E D E A F# F# G A A G F# E D D E F# E D D");
  out.push_back(0);
  return out;
}

// MS-XCA 3.1 to 3.3.
const Buffer kAlphabetXpress = {0x3f, 0,    0,    0,    0x61, 0x62, 0x63, 0x64, 0x65, 0x66,
                                0x67, 0x68, 0x69, 0x6a, 0x6b, 0x6c, 0x6d, 0x6e, 0x6f, 0x70,
                                0x71, 0x72, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78, 0x79, 0x7a};
const Buffer kAbcXpress = {0xff, 0xff, 0xff, 0x1f, 0x61, 0x62, 0x63, 0x17, 0x00, 0x0f, 0xff, 0x26, 0x01};
const Buffer kOdeLznt1 = {0x38, 0xb0, 0x88, 0x46, 0x23, 0x20, 0x00, 0x20, 0x47, 0x20, 0x41, 0x00,
                          0x10, 0xa2, 0x47, 0x01, 0xa0, 0x45, 0x20, 0x44, 0x00, 0x08, 0x45, 0x01,
                          0x50, 0x79, 0x00, 0xc0, 0x45, 0x20, 0x05, 0x24, 0x13, 0x88, 0x05, 0xb4,
                          0x02, 0x4a, 0x44, 0xef, 0x03, 0x58, 0x02, 0x8c, 0x09, 0x16, 0x01, 0x48,
                          0x45, 0x00, 0xbe, 0x00, 0x9e, 0x00, 0x04, 0x01, 0x18, 0x90, 0x00};

Buffer alphabet_huffman() {
  Buffer out(256, 0);
  const Buffer lengths = {0x50, 0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0x45, 0x44, 0x04};
  std::copy(lengths.begin(), lengths.end(), out.begin() + 'a' / 2);
  out[128] = 0x04;
  for (const int byte : {0xd8, 0x52, 0x3e, 0xd7, 0x94, 0x11, 0x5b, 0xe9, 0x19, 0x5f,
                         0xf9, 0xd6, 0x7c, 0xdf, 0x8d, 0x04, 0x00, 0x00, 0x00, 0x00}) {
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

// With both builds of the decoder, on copies of exactly the sizes: the address sanitizer sees a byte too
// many.
testing::Decoded decode(Codec codec, const Buffer &in, std::size_t size) {
  const testing::DecodedBothWays both = testing::decode_both_ways(codec, in, size);
  EXPECT_TRUE(both.agree) << codec_name(codec) << ": the portable build gives something else";
  return both.decoded;
}

void expect_decodes(Codec codec, const Buffer &in, const Buffer &expected) {
  const testing::Decoded d = decode(codec, in, expected.size());
  EXPECT_EQ(d.result.status, CodecStatus::ok)
      << codec_name(codec) << ": " << codec_status_text(d.result.status);
  EXPECT_EQ(d.result.consumed, in.size());
  EXPECT_EQ(d.result.produced, expected.size());
  EXPECT_TRUE(d.bytes == expected) << codec_name(codec) << ": wrong bytes";
}

void expect_status(Codec codec, const Buffer &in, std::size_t size, CodecStatus status, std::size_t consumed,
                   std::size_t produced) {
  const testing::Decoded d = decode(codec, in, size);
  EXPECT_EQ(codec_status_text(d.result.status), codec_status_text(status));
  EXPECT_EQ(d.result.consumed, consumed);
  EXPECT_EQ(d.result.produced, produced);
}

TEST(Codecs, DecodePublishedExamples) {
  expect_decodes(Codec::xpress, kAlphabetXpress, alphabet());
  expect_decodes(Codec::xpress, kAbcXpress, hundred_abc());
  expect_decodes(Codec::lznt1, kOdeLznt1, ode_to_joy());
  expect_decodes(Codec::xpress_huffman, alphabet_huffman(), alphabet());
  expect_decodes(Codec::xpress_huffman, abc_huffman(), hundred_abc());
}

constexpr Codec kCodecs[] = {Codec::lznt1, Codec::xpress, Codec::xpress_huffman};
constexpr Level kLevels[] = {Level::fast, Level::normal, Level::max};

enum class Kind { noise, constant, records, text, pairs, period };

Buffer make_input(Kind kind, std::size_t size) {
  Buffer out(size);
  std::mt19937 random(static_cast<std::uint32_t>(7 + size));
  for (std::size_t i = 0; i < size; ++i) {
    switch (kind) {
    case Kind::noise: out[i] = static_cast<std::uint8_t>(random()); break;
    case Kind::constant: out[i] = 0x42; break;
    case Kind::records: out[i] = static_cast<std::uint8_t>(i % 24 < 20 ? i % 24 * 7 : random()); break;
    case Kind::text: out[i] = static_cast<std::uint8_t>("etaoin"[random() % 6]); break;
    case Kind::pairs: // short periods, each for a while: matches that overlap themselves
      out[i] = static_cast<std::uint8_t>(i % (2 + i / 257 % 17));
      break;
    case Kind::period: // one match for all the rest: lengths at their limit (found by fuzzing)
      out[i] = static_cast<std::uint8_t>(i % 1113 * (i % 1113) >> 3);
      break;
    }
  }
  return out;
}

constexpr Kind kKinds[] = {Kind::noise, Kind::constant, Kind::records, Kind::text, Kind::pairs, Kind::period};

Buffer pack(Compressor &compressor, const Buffer &input) {
  Buffer out(input.size() * 2 + 2048);
  const CodecResult r = compressor.compress(input, out);
  EXPECT_EQ(r.status, CodecStatus::ok);
  EXPECT_EQ(r.consumed, input.size());
  out.resize(r.produced);
  return out;
}

TEST(Codecs, RoundTrip) {
  constexpr std::size_t sizes[] = {0,    1,    2,    3,    31,    32,    33,    64,
                                   1000, 4095, 4096, 4097, 65535, 65536, 65537, 200000};
  for (const Codec codec : {Codec::none, Codec::lznt1, Codec::xpress, Codec::xpress_huffman}) {
    for (const Level level : kLevels) {
      Compressor compressor(codec, level, 200000);
      for (const Kind kind : kKinds) {
        for (const std::size_t size : sizes) {
          if (size > 100000 && level == Level::max && kind != Kind::period) {
            continue; // slow, and 65537 bytes have shown it all
          }
          SCOPED_TRACE(std::string(codec_name(codec)) + " level " + std::to_string(static_cast<int>(level)) +
                       " kind " + std::to_string(static_cast<int>(kind)) + " size " + std::to_string(size));
          const Buffer input = make_input(kind, size);
          const Buffer packed = pack(compressor, input);
          expect_decodes(codec, packed, input);
          if (codec != Codec::none && size != 0) {
            const auto theirs = testing::fwnt_decompress(codec, packed, size);
            EXPECT_TRUE(theirs && *theirs == input) << "libfwnt reads something else";
          }
          if (size > 5000) {
            continue;
          }
          // A span of just that size takes it, with the same bytes; one byte less does not.
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
}

// Wild copies are widest where literals and a short period meet; the output's end comes anywhere after them.
TEST(Codecs, ShortPeriodsUpToTheVeryEnd) {
  std::mt19937 random(23);
  for (const Codec codec : kCodecs) {
    Compressor compressor(codec, Level::fast, 20000);
    for (int i = 0; i < 1500; ++i) {
      Buffer input;
      const std::size_t blocks = 1 + random() % (i % 4 == 0 ? 120 : 6);
      for (std::size_t b = 0; b < blocks; ++b) {
        for (std::size_t n = random() % 33; n != 0; --n) {
          input.push_back(static_cast<std::uint8_t>(random()));
        }
        const std::size_t period = 1 + random() % 20;
        for (std::size_t n = period + random() % 70; n != 0; --n) {
          input.push_back(input.size() < period ? std::uint8_t{7} : input[input.size() - period]);
        }
      }
      const Buffer packed = pack(compressor, input);
      expect_decodes(codec, packed, input);
      const auto theirs = input.empty() ? input : testing::fwnt_decompress(codec, packed, input.size());
      EXPECT_TRUE(theirs && *theirs == input) << codec_name(codec) << ": libfwnt reads something else";
    }
  }
}

// The same at its widest: 31 literals and a match that is laid down in steps of less than eight bytes.
TEST(Codecs, LiteralsAndPeriodAtTheVeryEnd) {
  std::mt19937 random(29);
  Compressor compressor(Codec::xpress, Level::fast, 200);
  for (const std::size_t period : {3, 5, 6, 7}) {
    for (std::size_t literals = 28; literals <= 31; ++literals) {
      for (std::size_t length = 56; length <= 64; ++length) {
        for (std::size_t tail = 0; tail < 24; ++tail) {
          Buffer input(literals + length + tail);
          for (std::size_t i = 0; i < input.size(); ++i) {
            const bool repeats = i >= literals && i < literals + length;
            input[i] = repeats ? input[i - period] : static_cast<std::uint8_t>(random());
          }
          expect_decodes(Codec::xpress, pack(compressor, input), input);
        }
      }
    }
  }
}

TEST(Codecs, RoundTripOfTheLargestBuffers) {
  constexpr std::size_t kSize = testing::kSanitized ? 2u << 20 : 16u << 20;
  const Buffer records = make_input(Kind::records, kSize);
  const Buffer constant = make_input(Kind::constant, kSize);
  for (const Codec codec : kCodecs) {
    Compressor fast(codec, Level::fast, kSize);
    expect_decodes(codec, pack(fast, records), records);
    Compressor normal(codec, Level::normal, kSize);
    expect_decodes(codec, pack(normal, make_input(Kind::period, kSize)), make_input(Kind::period, kSize));
    Compressor max(codec, Level::max, kSize);
    expect_decodes(codec, pack(max, constant), constant);
  }
}

// What an earlier input left in the tables must not show.
TEST(Codecs, CompressorForgetsEarlierInputs) {
  const Buffer input = make_input(Kind::records, 30000);
  for (const Codec codec : kCodecs) {
    for (const Level level : kLevels) {
      Compressor fresh(codec, level, 70000);
      const Buffer expected = pack(fresh, input);
      Compressor used(codec, level, 70000);
      (void)pack(used, make_input(Kind::text, 70000));
      (void)pack(used, make_input(Kind::records, 69000));
      EXPECT_EQ(pack(used, input), expected) << codec_name(codec);
      Compressor larger(codec, level, 1u << 20);
      EXPECT_EQ(pack(larger, input), expected) << codec_name(codec) << ": depends on max_input";
    }
  }
}

TEST(Codecs, HigherLevelsPackBetter) {
  for (const Codec codec : kCodecs) {
    const Buffer input = make_input(Kind::records, 65464);
    std::size_t before = input.size();
    for (const Level level : kLevels) {
      Compressor compressor(codec, level, input.size());
      const std::size_t size = pack(compressor, input).size();
      EXPECT_LE(size, before) << codec_name(codec);
      before = size;
    }
    EXPECT_LT(before, input.size() / 2);
  }
}

// Every token of a plain XPRESS stream, read by the letter of the format.
struct XpressShape {
  std::size_t tokens = 0;
  std::size_t longest_distance = 0;
  bool fills_with_ones = true;
  bool ends_with_extra_word = false;
};

XpressShape shape_of(const Buffer &in, std::size_t size) {
  XpressShape shape;
  std::size_t at = 0;
  std::size_t half = 0;
  std::size_t done = 0;
  std::uint32_t flags = 0;
  unsigned left = 0;
  while (done < size) {
    if (left == 0) {
      flags = load<std::uint32_t>(in.data() + at);
      at += 4;
      left = 32;
    }
    const bool is_match = (flags >> --left & 1) != 0;
    ++shape.tokens;
    if (!is_match) {
      ++at;
      ++done;
      continue;
    }
    const std::uint32_t token = load<std::uint16_t>(in.data() + at);
    at += 2;
    shape.longest_distance = std::max<std::size_t>(shape.longest_distance, (token >> 3) + 1);
    std::size_t length = token & 7;
    if (length == 7) {
      std::uint32_t nibble = 0;
      if (half != 0) {
        nibble = in[half] >> 4;
        half = 0;
      } else {
        half = at++;
        nibble = in[half] & 15;
      }
      length += nibble;
      if (nibble == 15) {
        length += in[at];
        if (in[at++] == 255) {
          length = load<std::uint16_t>(in.data() + at);
          at += 2;
          EXPECT_TRUE(length == 0 || length >= 7 + 15 + 255) << "an escape where a shorter form would do";
          if (length == 0) {
            length = load<std::uint32_t>(in.data() + at);
            at += 4;
            EXPECT_GT(length, 0xFFFFu);
          }
        }
      }
    }
    done += length + 3;
  }
  if (left != 0) {
    shape.fills_with_ones = (flags & ((1u << left) - 1)) == (1u << left) - 1;
  } else if (in.size() - at == 4) {
    shape.ends_with_extra_word = load<std::uint32_t>(in.data() + at) == 0xFFFF'FFFF;
    at += 4;
  }
  EXPECT_EQ(at, in.size());
  return shape;
}

TEST(Codecs, XpressEncodersWriteWhatWindowsWrites) {
  for (const Level level : kLevels) {
    Compressor compressor(Codec::xpress, level, 200000);
    for (const Kind kind : kKinds) {
      for (const std::size_t size :
           {std::size_t{0}, std::size_t{31}, std::size_t{32}, std::size_t{33}, std::size_t{64},
            std::size_t{9000}, std::size_t{70000}, std::size_t{200000}}) {
        const Buffer packed = pack(compressor, make_input(kind, size));
        const XpressShape shape = shape_of(packed, size);
        EXPECT_LE(shape.longest_distance, 8191u);
        EXPECT_TRUE(shape.fills_with_ones);
        EXPECT_EQ(shape.ends_with_extra_word, shape.tokens % 32 == 0);
      }
    }
  }
}

TEST(Codecs, EncodersGiveThePublishedXpressExamples) {
  for (const Level level : kLevels) {
    Compressor compressor(Codec::xpress, level, 300);
    EXPECT_EQ(pack(compressor, alphabet()), kAlphabetXpress);
    EXPECT_EQ(pack(compressor, hundred_abc()), kAbcXpress);
  }
}

TEST(Codecs, Lznt1StoresChunksThatDoNotShrink) {
  Compressor compressor(Codec::lznt1, Level::normal, 5000);
  const Buffer input = make_input(Kind::noise, 5000);
  const Buffer packed = pack(compressor, input);
  ASSERT_EQ(packed.size(), 2 + 4096 + 2 + 904u);
  EXPECT_EQ(load<std::uint16_t>(packed.data()), 0x3FFF);
  EXPECT_EQ(load<std::uint16_t>(packed.data() + 2 + 4096), 0x3000 + 903);
}

TEST(Codecs, FailuresNameTheTokenAndKeepWhatIsValid) {
  using S = CodecStatus;
  // Flag word, 'a', 'b', then a match: distance 3 of 2 bytes.
  expect_status(Codec::xpress, {0xff, 0xff, 0xff, 0x3f, 'a', 'b', 0x10, 0x00}, 5, S::bad_distance, 6, 2);
  expect_status(Codec::xpress, {0xff, 0xff, 0xff, 0x3f, 'a', 'b', 0x08, 0x00}, 5, S::ok, 8, 5);
  expect_status(Codec::xpress, {0xff, 0xff, 0xff, 0x3f, 'a', 'b', 0x08, 0x00}, 4, S::output_overrun, 6, 2);
  expect_status(Codec::xpress, {0xff, 0xff, 0xff, 0x3f, 'a', 'b', 0x08, 0x00}, 6, S::output_short, 8, 5);
  expect_status(Codec::xpress, {0xff, 0xff, 0xff, 0x3f, 'a', 'b', 0x08, 0x00, 0}, 5, S::trailing_input, 8, 5);
  expect_status(Codec::xpress, {0xff, 0xff, 0xff, 0x3f, 'a', 'b', 0x08}, 5, S::input_truncated, 6, 2);
  expect_status(Codec::xpress, {0xff, 0xff}, 5, S::input_truncated, 0, 0);
  // A u16 length of 21 below its minimum of 22, and a u32 length.
  expect_status(Codec::xpress, {0xff, 0xff, 0xff, 0x7f, 'a', 0x07, 0x00, 0x0f, 0xff, 21, 0}, 25,
                S::bad_length, 5, 1);
  expect_status(Codec::xpress, {0xff, 0xff, 0xff, 0x7f, 'a', 0x07, 0x00, 0x0f, 0xff, 22, 0}, 26, S::ok, 11,
                26);
  expect_status(Codec::xpress, {0xff, 0xff, 0xff, 0x7f, 'a', 0x07, 0x00, 0x0f, 0xff, 0, 0, 22, 0, 0, 0}, 26,
                S::ok, 15, 26);
  expect_status(Codec::xpress,
                {0xff, 0xff, 0xff, 0x7f, 'a', 0x07, 0x00, 0x0f, 0xff, 0, 0, 0xff, 0xff, 0xff, 0xff}, 26,
                S::output_overrun, 5, 1);
  // Nothing at all; the flag word that Windows writes for it; any other.
  expect_status(Codec::xpress, {}, 0, S::ok, 0, 0);
  expect_status(Codec::xpress, {0xff, 0xff, 0xff, 0xff}, 0, S::ok, 4, 0);
  expect_status(Codec::xpress, {0xff, 0xff, 0xff, 0x7f}, 0, S::trailing_input, 0, 0);

  expect_status(Codec::lznt1, {0x02, 0xb0, 0x02, 'a', 0x00, 0x00}, 4, S::input_truncated, 4, 1);
  expect_status(Codec::lznt1, {0x03, 0xb0, 0x02, 'a', 0x00, 0x00}, 4, S::ok, 6, 4);
  expect_status(Codec::lznt1, {0x03, 0xb0, 0x02, 'a', 0x00, 0x00, 0, 0}, 4, S::ok, 8, 4);
  expect_status(Codec::lznt1, {0x03, 0xb0, 0x02, 'a', 0x00, 0x00, 1, 0}, 4, S::bad_chunk, 6, 4);
  expect_status(Codec::lznt1, {0x03, 0xb0, 0x02, 'a', 0x00, 0x10}, 4, S::bad_distance, 4, 1);
  expect_status(Codec::lznt1, {0x03, 0xb0, 0x02, 'a', 0x01, 0x00}, 4, S::output_overrun, 4, 1);
  expect_status(Codec::lznt1, {0x03, 0x90, 0x02, 'a', 0x00, 0x00}, 4, S::bad_chunk, 0, 0);
  expect_status(Codec::lznt1, {0x01, 0x30, 'a', 'b'}, 2, S::ok, 4, 2);
  expect_status(Codec::lznt1, {0x01, 0x30, 'a', 'b'}, 3, S::output_short, 4, 2);
  expect_status(Codec::lznt1, {0x01, 0x30, 'a'}, 2, S::input_truncated, 3, 1);
  // Only the last chunk may be short.
  expect_status(Codec::lznt1, {0x00, 0x30, 'a', 0x00, 0x30, 'b'}, 2, S::bad_chunk, 3, 1);

  Buffer huffman = alphabet_huffman();
  expect_status(Codec::xpress_huffman, huffman, 25, S::trailing_input, 274, 25);
  huffman.push_back(0);
  expect_status(Codec::xpress_huffman, huffman, 26, S::trailing_input, 276, 26);
  huffman[128] = 0x05; // the code is not complete any more
  expect_status(Codec::xpress_huffman, huffman, 26, S::bad_table, 0, 0);
}

TEST(Codecs, EveryTruncationOfALargerStreamFails) {
  for (const Codec codec : kCodecs) {
    Compressor compressor(codec, Level::normal, 3000);
    const Buffer input = make_input(Kind::records, 3000);
    const Buffer packed = pack(compressor, input);
    for (std::size_t n = 0; n < packed.size(); ++n) {
      const Buffer cut(packed.begin(), packed.begin() + static_cast<std::ptrdiff_t>(n));
      const testing::Decoded d = decode(codec, cut, input.size());
      EXPECT_NE(d.result.status, CodecStatus::ok) << codec_name(codec) << " cut to " << n;
      EXPECT_LE(d.result.consumed, n);
      ASSERT_LE(d.bytes.size(), input.size());
      EXPECT_TRUE(std::equal(d.bytes.begin(), d.bytes.end(), input.begin()))
          << codec_name(codec) << " cut to " << n;
    }
  }
}

// Streams with a few bytes changed: no access outside the spans (address sanitizer), both builds alike, and
// what is accepted is what libfwnt reads.
TEST(Codecs, DamagedStreamsAgreeWithLibfwnt) {
  std::mt19937 random(11);
  for (const Codec codec : kCodecs) {
    Compressor compressor(codec, Level::normal, 9000);
    for (const Kind kind : {Kind::records, Kind::text, Kind::pairs}) {
      const Buffer input = make_input(kind, 9000);
      const Buffer packed = pack(compressor, input);
      for (int i = 0; i < 300; ++i) {
        Buffer damaged = packed;
        for (unsigned k = 0; k <= random() % 3; ++k) {
          damaged[random() % damaged.size()] = static_cast<std::uint8_t>(random());
        }
        const testing::Decoded d = decode(codec, damaged, input.size());
        if (d.result.status == CodecStatus::ok) {
          const auto theirs = testing::fwnt_decompress(codec, damaged, input.size());
          EXPECT_TRUE(theirs && *theirs == d.bytes) << codec_name(codec);
        }
      }
    }
  }
}

// Where libfwnt is content and we are not. Each is a stream that no encoder writes; accepting them would make
// trial decoding, which is how a file's codec is found, less certain.
TEST(Codecs, StricterThanLibfwnt) {
  const auto theirs = [](Codec codec, const Buffer &in, std::size_t size) {
    return testing::fwnt_decompress(codec, in, size).has_value();
  };
  const struct {
    const char *why;
    Codec codec;
    Buffer in;
    std::size_t size;
  } cases[] = {
      {"XPRESS: the output may stay short", Codec::xpress, kAlphabetXpress, 40},
      {"LZNT1: the output may stay short", Codec::lznt1, kOdeLznt1, 200},
      {"LZNT1: the signature is not looked at", Codec::lznt1, {0x01, 0x20, 'a', 'b'}, 2},
      {"LZNT1: chunks in the middle may be short", Codec::lznt1, {0x00, 0x30, 'a', 0x00, 0x30, 'b'}, 2},
  };
  for (const auto &c : cases) {
    EXPECT_TRUE(theirs(c.codec, c.in, c.size)) << c.why << ": not any more, drop the case";
    EXPECT_NE(decode(c.codec, c.in, c.size).result.status, CodecStatus::ok) << c.why;
  }
}

// Where libfwnt refuses and we are content: it reads a token behind each flag byte before it looks whether
// the chunk is at its end. MS-XCA's decoder looks first, and so do we: a writer that starts a flag byte once
// eight tokens are there, as Windows does with XPRESS, ends a chunk like that.
TEST(Codecs, LooserThanLibfwnt) {
  const Buffer in = {0x09, 0xb0, 0x00, 1, 2, 3, 4, 5, 6, 7, 8, 0x00};
  EXPECT_FALSE(testing::fwnt_decompress(Codec::lznt1, in, 8)) << "not any more, drop the case";
  expect_decodes(Codec::lznt1, in, {1, 2, 3, 4, 5, 6, 7, 8});
}

TEST(Codecs, RealBuffersDecodeToTheirDeclaredSize) {
  std::size_t buffers = 0;
  for (const std::string &name : testing::trace_names()) {
    const testing::Trace trace = testing::trace_buffers(name);
    for (const testing::TraceBuffer &b : trace.buffers) {
      if (!b.header.compressed()) {
        continue;
      }
      ++buffers;
      const Buffer in(b.payload().begin(), b.payload().end());
      const testing::Decoded d = decode(Codec::xpress, in, b.decoded_size());
      ASSERT_EQ(d.result.status, CodecStatus::ok) << name << " buffer " << b.header.sequence_number;
      const auto theirs = testing::fwnt_decompress(Codec::xpress, in, b.decoded_size());
      EXPECT_TRUE(theirs && *theirs == d.bytes) << name << " buffer " << b.header.sequence_number;
      // The other codecs must not take it for theirs.
      EXPECT_NE(decode(Codec::lznt1, in, b.decoded_size()).result.status, CodecStatus::ok);
      EXPECT_NE(decode(Codec::xpress_huffman, in, b.decoded_size()).result.status, CodecStatus::ok);
    }
  }
  if (buffers == 0) {
    GTEST_SKIP() << "no traces beside the project";
  }
}

TEST(Codecs, RealPayloadsRoundTrip) {
  std::size_t payloads = 0;
  for (const std::string &name : testing::trace_names()) {
    const auto raw = testing::decoded_payloads(testing::trace_buffers(name));
    for (const Codec codec : kCodecs) {
      for (const Level level : kLevels) {
        // A few of each trace: the levels that search for long would take minutes on all.
        const std::size_t wanted = level == Level::max || testing::kSanitized ? 2 : 12;
        for (std::size_t i = 0; i < raw.size(); i += std::max<std::size_t>(1, raw.size() / wanted)) {
          const Buffer &input = raw[i];
          if (input.empty()) {
            continue;
          }
          Compressor compressor(codec, level, input.size());
          const Buffer packed = pack(compressor, input);
          expect_decodes(codec, packed, input);
          const auto theirs = testing::fwnt_decompress(codec, packed, input.size());
          EXPECT_TRUE(theirs && *theirs == input)
              << name << ": libfwnt reads something else, " << codec_name(codec);
          ++payloads;
        }
      }
    }
  }
  if (payloads == 0) {
    GTEST_SKIP() << "no traces beside the project";
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
      const testing::Decoded d = decode(c.codec, cut, c.out.size());
      EXPECT_NE(d.result.status, CodecStatus::ok) << codec_name(c.codec) << " cut to " << n;
      EXPECT_LE(d.result.consumed, n);
      EXPECT_TRUE(std::equal(d.bytes.begin(), d.bytes.end(), c.out.begin()))
          << codec_name(c.codec) << " cut to " << n;
    }
  }
}

} // namespace
} // namespace etwrelog
