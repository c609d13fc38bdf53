// Run-time choice between builds of one function. The body is an always-inlined template, so that every build
// has the same source; on other machines or compilers only the portable one exists.
#pragma once

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define ETWRELOG_X86_DISPATCH 1
#define ETWRELOG_TARGET_V3 __attribute__((target("avx2,bmi,bmi2,lzcnt,popcnt")))
#else
#define ETWRELOG_X86_DISPATCH 0
#endif

#if defined(__GNUC__) || defined(__clang__)
#define ETWRELOG_ALWAYS_INLINE inline __attribute__((always_inline))
#define ETWRELOG_NOINLINE __attribute__((noinline))
#else
#define ETWRELOG_ALWAYS_INLINE inline
#define ETWRELOG_NOINLINE
#endif

namespace etwrelog::base {

// AVX2, BMI1, BMI2 and LZCNT (x86-64-v3), and not switched off by set_portable_only().
[[nodiscard]] bool has_v3();

// To be called behind a library that may have used vectors of 256 or 512 bits and left their upper halves
// set. While these are set, every change between code for AVX, such as the C library's memcpy, and code for
// SSE, such as the compiler's own, can cost 90 ns (measured on an Intel Xeon, family 6 model 207).
void clear_upper_halves();

// For the tests, which run every codec both ways. Not for use while other threads are in a codec.
void set_portable_only(bool on);

} // namespace etwrelog::base
