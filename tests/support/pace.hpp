// Under a sanitizer everything takes several times as long: tests that repeat themselves do so less often,
// and leave out the largest traces.
#pragma once

namespace etwrelog::testing {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
inline constexpr bool kSanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
inline constexpr bool kSanitized = false;
#endif

} // namespace etwrelog::testing
