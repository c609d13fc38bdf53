// Rows on their way into SQLite.
#pragma once

#include "tables/table.hpp"

#include <string>
#include <utility>
#include <vector>

#include <sqlite3.h>

namespace etwrelog::tables {

// A batch as a table that SQLite reads (https://www.sqlite.org/vtab.html): one statement takes all its rows,
// and no value needs a call that binds it. Stays where it is, and outlives the connection that knows it.
struct SqliteBatch {
  std::vector<std::pair<std::size_t, ColumnType>> columns; // of the table: those of the batch
  const Batch *batch = nullptr;                            // none: no rows

  // Makes it known under this name. False: SQLite could not.
  [[nodiscard]] bool add_to(sqlite3 &database, const std::string &name) const;
};

} // namespace etwrelog::tables
