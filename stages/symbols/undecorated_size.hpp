// How long a decorated name of MSVC gets when it is undecorated.
#pragma once

#include <cstddef>
#include <string_view>

namespace etwrelog::symbols {

inline constexpr std::size_t kLongestUndecorated = 64u << 10;

// Whether what LLVM makes of it has at most kLongestUndecorated bytes, and so has what it makes on the way.
// A back reference of one character stands for a whole type, which may hold others: of 141 characters become
// a gigabyte, and LLVM ends the process when it runs out of memory.
[[nodiscard]] bool has_bounded_undecorated(std::string_view decorated);

} // namespace etwrelog::symbols
