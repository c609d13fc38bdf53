#include "etlz/container.hpp"

#include "base/cpu.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace etwrelog::etlz {
namespace {

#if ETWRELOG_X86_DISPATCH
// Bits 128 to 255 of the first eight vector registers, which all compilers take for lost behind a call.
std::array<std::uint64_t, 16> upper_halves() {
  std::array<std::uint64_t, 32> all; // not cleared: by what code would not be known
  asm volatile("vmovdqu %%ymm0, (%1)\n\t"
               "vmovdqu %%ymm1, 32(%1)\n\t"
               "vmovdqu %%ymm2, 64(%1)\n\t"
               "vmovdqu %%ymm3, 96(%1)\n\t"
               "vmovdqu %%ymm4, 128(%1)\n\t"
               "vmovdqu %%ymm5, 160(%1)\n\t"
               "vmovdqu %%ymm6, 192(%1)\n\t"
               "vmovdqu %%ymm7, 224(%1)"
               : "=m"(all)
               : "r"(all.data()));
  std::array<std::uint64_t, 16> upper{};
  for (std::size_t i = 0; i < 8; ++i)
    upper[2 * i] = all[4 * i + 2], upper[2 * i + 1] = all[4 * i + 3];
  return upper;
}

// Where they are in use, SSE code that follows is many times as slow on some processors.
TEST(Container, ChecksumLeavesNoUpperHalfOfVectorRegistersInUse) {
  if (!base::has_v3()) GTEST_SKIP() << "this processor has no AVX2";
  std::vector<std::uint8_t> bytes(64 * 1024);
  std::uint8_t next = 1;
  std::ranges::generate(bytes, [&next] { return next = static_cast<std::uint8_t>(next * 5 + 3); });
  for (const std::size_t size : {std::size_t{16}, std::size_t{240}, std::size_t{241}, bytes.size()}) {
    volatile std::uint64_t hash = hash64(Bytes(bytes).first(size));
    const std::array<std::uint64_t, 16> upper = upper_halves();
    EXPECT_TRUE(std::ranges::all_of(upper, [](std::uint64_t half) { return half == 0; }))
        << "behind the checksum of " << size << " bytes, " << hash;
  }
}
#endif

} // namespace
} // namespace etwrelog::etlz
