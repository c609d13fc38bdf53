// Prints what the profiles measure beside what was published for them.
#pragma once

#include "generate.hpp"

namespace etwrelog::gen {

// Returns 0 when every row is within its tolerance, 1 otherwise, after printing all of them. `only`: one
// profile, or null for all. `size`: of the trace that ratios are measured on; counts are measured at
// published size always.
int check_calibration(const Profile *only, std::optional<std::uint64_t> size, std::uint64_t seed,
                      unsigned threads);

} // namespace etwrelog::gen
