#pragma once

#include <algorithm>
#include <vector>

namespace etwrelog::base {

// Each value once, in order.
template <class T> void sort_unique(std::vector<T> &list) {
  std::ranges::sort(list);
  list.erase(std::unique(list.begin(), list.end()), list.end()); // clang 14 lacks the range form
}

} // namespace etwrelog::base
