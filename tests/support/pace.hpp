// Under a sanitizer everything takes several times as long: tests that repeat themselves do so less often,
// and leave out the largest traces.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace etwrelog::testing {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
inline constexpr bool kSanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
inline constexpr bool kSanitized = false;
#endif

// Of cases that take the same ways: all of them, under a sanitizer the first of every `of` ones.
template <typename Case> std::vector<Case> some(std::size_t of, std::vector<Case> cases) {
  if constexpr (kSanitized)
    for (std::size_t kept = 1; kept < cases.size(); ++kept)
      cases.erase(cases.begin() + static_cast<std::ptrdiff_t>(kept),
                  cases.begin() + static_cast<std::ptrdiff_t>(std::min(kept + of - 1, cases.size())));
  return cases;
}

} // namespace etwrelog::testing
