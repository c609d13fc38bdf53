// Compressed files of symbol stores (ntdll.pd_): a Microsoft cabinet with one file.
#pragma once

#include "etwrelog/bytes.hpp"
#include "etwrelog/error.hpp"

#include <vector>

namespace etwrelog::symbols {

[[nodiscard]] bool cabinet_support();
[[nodiscard]] bool is_cabinet(Bytes file);
// The first file in it, at most `most` bytes.
[[nodiscard]] Result<std::vector<std::uint8_t>> open_cabinet(Bytes file, std::uint64_t most);

} // namespace etwrelog::symbols
