// How a trace compresses, by the codecs of the published study. Needs libdeflate and liblzma, which the
// product does not link: a library of its own, for etwgen and the benchmarks.
#pragma once

#include "etwrelog/bytes.hpp"

#include <vector>

namespace etwrelog::gen {

struct Ratios { // compressed over whole
  double lznt1_whole = 0, lznt1_stacks = 0, deflate = 0, lzma = 0;
};

// `trace`: an uncompressed ETL file. LZNT1 runs per buffer, headers counted; stacks are taken out and cut
// into buffers of the same size. Its size is that of a greedy encoder with full search, so that the
// calibration does not move with the speed settings of our own. Deflate is libdeflate's level 6, close to
// what ZIP tools do by default; LZMA2 is liblzma with the settings of 7-Zip's default level.
[[nodiscard]] Ratios measure(Bytes trace);

[[nodiscard]] std::vector<std::uint8_t> stack_events(Bytes trace);
[[nodiscard]] std::size_t lznt1_size(Bytes data); // in chunks of 4 KB, of which none knows another
[[nodiscard]] std::size_t deflate_size(Bytes data, int level);
[[nodiscard]] std::size_t lzma_size(Bytes data, std::uint32_t preset, std::uint32_t dictionary);

} // namespace etwrelog::gen
