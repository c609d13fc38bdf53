#include "base/cpu.hpp"

#include <atomic>

#if ETWRELOG_X86_DISPATCH
#include <immintrin.h>
#endif

namespace etwrelog::base {
namespace {

bool detect_v3() {
#if ETWRELOG_X86_DISPATCH
  // LZCNT and BMI1 came with AVX2 on every processor that has BMI2.
  return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("bmi") != 0 &&
         __builtin_cpu_supports("bmi2") != 0;
#else
  return false;
#endif
}

#if ETWRELOG_X86_DISPATCH
__attribute__((target("avx"))) void zero_upper() {
  _mm256_zeroupper();
}
#endif

const bool kHasV3 = detect_v3();
std::atomic<bool> portable_only{false};

} // namespace

bool has_v3() {
  return kHasV3 && !portable_only.load(std::memory_order_relaxed);
}
void clear_upper_halves() {
#if ETWRELOG_X86_DISPATCH
  if (__builtin_cpu_supports("avx") != 0) zero_upper();
#endif
}
void set_portable_only(bool on) {
  portable_only.store(on, std::memory_order_relaxed);
}

} // namespace etwrelog::base
