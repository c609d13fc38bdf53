// Columns as Arrow lays them out in memory, and tables as its C structures, which own what they point to.
#pragma once

#include "etwrelog/arrow_abi.h"
#include "tables/table.hpp"

namespace etwrelog::tables {

// The columns of a table, as a structure. Names as they are.
void to_arrow(const std::vector<Column> &columns, ArrowSchema &out);
// A batch of it; takes its memory. Fails, with `out` as it was, where a column has more text, or more
// elements of lists, than Arrow's 32-bit offsets reach.
[[nodiscard]] Result<void> to_arrow(const std::vector<Column> &columns, Batch batch, ArrowArray &out);

// Of texts, different texts or lists: where each begins, and the last one ends.
[[nodiscard]] std::vector<std::int32_t> offsets_of(const ColumnData &column);
// Of booleans: a bit a row.
[[nodiscard]] std::vector<std::uint8_t> bits_of(const ColumnData &column);

} // namespace etwrelog::tables
