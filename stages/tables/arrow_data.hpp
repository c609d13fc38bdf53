// Tables in memory as Arrow's C structures, which own what they point to.
#pragma once

#include "etwrelog/arrow_abi.h"
#include "tables/table.hpp"

namespace etwrelog::tables {

// The columns of a table, as a structure. Names as they are.
void to_arrow(const std::vector<Column> &columns, ArrowSchema &out);
// A batch of it; takes its memory. Fails, with `out` as it was, where a column has more text than Arrow's
// 32-bit offsets reach.
[[nodiscard]] Result<void> to_arrow(const std::vector<Column> &columns, Batch batch, ArrowArray &out);

} // namespace etwrelog::tables
