// The header of several traces that become one.
#pragma once

#include "passes/pass.hpp"

#include <vector>

namespace etwrelog::pipeline {

// As a merge on Windows leaves it: what was lost is added up, the machine is that of the trace with the most
// to say of it.
[[nodiscard]] LogfileHeader merged_header(Traces traces);

// The header event of the trace that began first, time zone and all, with the names of `header`.
[[nodiscard]] std::vector<std::uint8_t> merged_header_event(Bytes event, const LogfileHeader &header);

} // namespace etwrelog::pipeline
