// Compressed files of symbol stores (ntdll.pd_): a Microsoft cabinet with one file.
#pragma once

#include "base/mapping.hpp"

namespace etwrelog::symbols {

[[nodiscard]] bool cabinet_support();
[[nodiscard]] bool is_cabinet(Bytes file);
// The first file in it, at most `most` bytes: a temporary one.
[[nodiscard]] Result<base::Mapping> open_cabinet(Bytes file, std::uint64_t most);

} // namespace etwrelog::symbols
