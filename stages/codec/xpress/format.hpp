// What of XPRESS, plain and with Huffman codes, both directions need.
#pragma once

#include <cstddef>

namespace etwrelog::codec {

inline constexpr std::size_t kXpressMinMatch = 3;

} // namespace etwrelog::codec
