// Every encoder's output decodes to the input, with our decoders and with libfwnt's. One byte of codec and
// level, one of how to blow the rest up.
#include "tests/support/fwnt.hpp"

#include <cstdlib>

using namespace etwrelog;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  if (size < 2) {
    return 0;
  }
  const Codec codec = data[0] % 3 == 0   ? Codec::lznt1
                      : data[0] % 3 == 1 ? Codec::xpress
                                         : Codec::xpress_huffman;
  const Level level = static_cast<Level>(data[0] / 3 % 3);
  // Small inputs miss what happens at 4096 and 65536 bytes: repeat them, with a change now and then.
  std::vector<std::uint8_t> input;
  const std::size_t copies = 1 + (data[1] % 8 == 7 ? 70000 / size : data[1] % 8);
  for (std::size_t i = 0; i < copies; ++i) {
    input.insert(input.end(), data + 2, data + size);
    if (!input.empty() && data[1] >= 128) {
      input[input.size() / 2] = static_cast<std::uint8_t>(input[input.size() / 2] + i);
    }
  }
  Compressor compressor(codec, level, input.size());
  std::vector<std::uint8_t> packed(2 * input.size() + 1024);
  const CodecResult r = compressor.compress(input, packed);
  if (!r) {
    std::abort();
  }
  packed.resize(r.produced);
  const testing::DecodedBothWays both = testing::decode_both_ways(codec, packed, input.size());
  if (!both.agree || !both.decoded.result || both.decoded.bytes != input) {
    std::abort();
  }
  if (!input.empty()) {
    const auto theirs = testing::fwnt_decompress(codec, packed, input.size());
    if (!theirs || *theirs != input) {
      std::abort();
    }
  }
  return 0;
}
