// The coder for little content (spec.md, section 4): every bit is predicted from what stood in similar places
// before, by many models whose guesses are mixed. Slow (about a megabyte a second, both ways) and small; what
// to do with a trace of some ten thousand bytes, for which tables would cost more than they save.
#pragma once

#include "etwrelog/bytes.hpp"

#include <vector>

namespace etwrelog::etlz {

inline constexpr std::size_t kMostSmallContent = 1u << 20; // that a reader takes

// Appends the code of `content` to `out`.
void encode_small(Bytes content, std::vector<std::uint8_t> &out);
// False if `coded` is not the code of so many bytes, as far as that shows.
[[nodiscard]] bool decode_small(Bytes coded, MutableBytes content);

} // namespace etwrelog::etlz
