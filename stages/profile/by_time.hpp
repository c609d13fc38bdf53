// Subjects in the order of time.
#pragma once

#include "profile/marks.hpp"

namespace etwrelog::profile {

// The numbers of the subjects in the order of time, ties in the order of the file.
[[nodiscard]] std::vector<std::uint32_t> by_time(const Sequence<Subject> &subjects);

} // namespace etwrelog::profile
