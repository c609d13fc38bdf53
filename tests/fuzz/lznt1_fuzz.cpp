#include "tests/fuzz/codec_fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  etwrelog::testing::fuzz_decoder(etwrelog::Codec::lznt1, {data, size});
  return 0;
}
