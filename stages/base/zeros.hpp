#pragma once

#include "etwrelog/bytes.hpp"

#include <algorithm>

namespace etwrelog::base {

// As space that was set aside and never written.
[[nodiscard]] inline bool all_zero(Bytes bytes) {
  return std::ranges::all_of(bytes, [](std::uint8_t byte) { return byte == 0; });
}

} // namespace etwrelog::base
