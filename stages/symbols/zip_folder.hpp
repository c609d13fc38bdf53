// PDB files that PerfView puts beside the trace into a .etl.zip.
#pragma once

#include "etwrelog/bytes.hpp"

#include <optional>
#include <string>
#include <vector>

namespace etwrelog::symbols {

// The members of the archive whose last name is `name`, in any case; each at most `most` bytes.
[[nodiscard]] std::vector<std::pair<std::string, std::vector<std::uint8_t>>>
zip_members(const std::string &path, const std::string &name, std::uint64_t most);

} // namespace etwrelog::symbols
