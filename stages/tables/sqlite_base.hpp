// What all code over SQLite shares.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <sqlite3.h>

namespace etwrelog::tables {

struct CloseSqlite {
  void operator()(sqlite3 *database) const { sqlite3_close(database); }
  void operator()(sqlite3_stmt *statement) const { sqlite3_finalize(statement); }
};
using SqliteDatabase = std::unique_ptr<sqlite3, CloseSqlite>;
using SqliteStatement = std::unique_ptr<sqlite3_stmt, CloseSqlite>;

// A name between double quotes, as SQL takes any.
[[nodiscard]] inline std::string quoted_name(std::string_view name) {
  std::string out = "\"";
  for (const char c : name) {
    if (c == '"') out += '"';
    if (c != '\0') out += c;
  }
  return out + "\"";
}

} // namespace etwrelog::tables
