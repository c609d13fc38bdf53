// Completes kernel halves with user halves that name another event: the first one since the thread got into
// the kernel.
#pragma once

#include "profile/records.hpp"

namespace etwrelog::profile {

// Of the user halves of the thread that were written at the time of the kernel half's event or later, the
// first that names an event of that time or before. How many subjects were completed.
[[nodiscard]] std::uint64_t lend_user_halves(Records &records, const ParallelFor &parallel);

} // namespace etwrelog::profile
