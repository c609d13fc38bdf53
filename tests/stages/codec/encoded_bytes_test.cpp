// What an encoder writes is the same on every machine, whatever its vector instructions. The sums change only
// with an encoder that is meant to write something else.
#include "etwrelog/codec.hpp"

#include "etlz/container.hpp"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

namespace etwrelog {
namespace {

using Buffer = std::vector<std::uint8_t>;

// Records, strings and stretches without a pattern, of more than any window.
Buffer content() {
  std::uint64_t state = 1;
  auto random = [&state](std::uint64_t n) {
    state = state * 6'364'136'223'846'793'005 + 1'442'695'040'888'963'407;
    return (state >> 33) % n;
  };
  Buffer out;
  auto put = [&out](std::uint64_t value, unsigned bytes) {
    for (unsigned i = 0; i < bytes; ++i)
      out.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
  };
  std::uint64_t clock = 1;
  while (out.size() < 100'000) {
    put(0xC012'0018 + random(3), 4);
    put(clock += random(300), 8);
    put(4 * random(40), 4);
    put(0xFFFF'F800'0000'0000 + 16 * random(50), 8);
    const std::uint64_t first = random(8), letters = 4 + random(8);
    for (const char letter : std::string_view("SystemMethodRundown").substr(first, letters))
      put(static_cast<std::uint8_t>(letter), 2);
    if (random(40) == 0)
      for (std::uint64_t i = random(300); i > 0; --i)
        put(random(256), 1);
    if (random(60) == 0) out.insert(out.end(), random(700), 0);
  }
  return out;
}

TEST(EncodedBytes, AreTheSameOnEveryMachine) {
  const Buffer in = content();
  ASSERT_EQ(etlz::hash64(in), 16010257019865400442u);
  struct Case {
    Codec codec;
    Level level;
    std::uint64_t sum;
  };
  for (const Case &c : {Case{Codec::lznt1, Level::fast, 4663397646916812976u},
                        Case{Codec::lznt1, Level::normal, 15433110818485723806u},
                        Case{Codec::lznt1, Level::max, 1508913329130904838u},
                        Case{Codec::xpress, Level::fast, 1877445913792639519u},
                        Case{Codec::xpress, Level::normal, 5038031965719713042u},
                        Case{Codec::xpress, Level::max, 15122337700130255345u},
                        Case{Codec::xpress_huffman, Level::fast, 16303930122718290111u},
                        Case{Codec::xpress_huffman, Level::normal, 3970612276604569648u},
                        Case{Codec::xpress_huffman, Level::max, 6072965210088405309u}}) {
    Compressor compressor(c.codec, c.level, in.size());
    Buffer out(in.size());
    const CodecResult packed = compressor.compress(in, out);
    ASSERT_TRUE(packed);
    EXPECT_EQ(etlz::hash64(Bytes(out).first(packed.produced)), c.sum)
        << codec_name(c.codec) << " at level " << static_cast<int>(c.level);
  }
}

} // namespace
} // namespace etwrelog
