// Zip files for tests, made by libarchive.
#pragma once

#include "etwrelog/bytes.hpp"

#include <string>
#include <utility>
#include <vector>

namespace etwrelog::testing {

using ZipMember = std::pair<std::string, std::vector<std::uint8_t>>; // name and content

[[nodiscard]] std::vector<std::uint8_t> zip_of(const std::vector<ZipMember> &members);

} // namespace etwrelog::testing
