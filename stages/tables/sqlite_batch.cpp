#include "tables/sqlite_batch.hpp"

#include <charconv>
#include <exception>

#include <fmt/format.h>

namespace etwrelog::tables {
namespace {

struct Table {
  sqlite3_vtab head; // SQLite knows this alone
  const SqliteBatch *batch;
};

struct Cursor {
  sqlite3_vtab_cursor head;
  std::size_t row;
};

const SqliteBatch &batch_of(sqlite3_vtab_cursor *cursor) {
  return *reinterpret_cast<Table *>(cursor->pVtab)->batch;
}

std::size_t &row_of(sqlite3_vtab_cursor *cursor) {
  return reinterpret_cast<Cursor *>(cursor)->row;
}

int connect(sqlite3 *database, void *batch, int, const char *const *, sqlite3_vtab **made, char **why) {
  try {
    auto table = std::make_unique<Table>(Table{{}, static_cast<const SqliteBatch *>(batch)});
    std::string sql = "CREATE TABLE rows(";
    for (std::size_t i = 0; i < table->batch->columns.size(); ++i)
      sql += fmt::format("{}c{}", i == 0 ? "" : ", ", i);
    const int declared = sqlite3_declare_vtab(database, (sql + ")").c_str());
    if (declared == SQLITE_OK)
      *made = &table.release()->head;
    else
      *why = sqlite3_mprintf("%s", sqlite3_errmsg(database));
    return declared;
  } catch (const std::exception &) {
    return SQLITE_NOMEM;
  }
}

int disconnect(sqlite3_vtab *table) {
  delete reinterpret_cast<Table *>(table);
  return SQLITE_OK;
}

int open(sqlite3_vtab *, sqlite3_vtab_cursor **cursor) {
  auto *const made = new (std::nothrow) Cursor{};
  if (made == nullptr) return SQLITE_NOMEM;
  *cursor = &made->head;
  return SQLITE_OK;
}

int close(sqlite3_vtab_cursor *cursor) {
  delete reinterpret_cast<Cursor *>(cursor);
  return SQLITE_OK;
}

// There is one way to read it: from the first row to the last.
int plan(sqlite3_vtab *, sqlite3_index_info *) {
  return SQLITE_OK;
}

int rewind(sqlite3_vtab_cursor *cursor, int, const char *, int, sqlite3_value **) {
  row_of(cursor) = 0;
  return SQLITE_OK;
}

int next(sqlite3_vtab_cursor *cursor) {
  ++row_of(cursor);
  return SQLITE_OK;
}

int at_end(sqlite3_vtab_cursor *cursor) {
  const Batch *const batch = batch_of(cursor).batch;
  return batch == nullptr || row_of(cursor) >= batch->rows ? 1 : 0;
}

int row_id(sqlite3_vtab_cursor *cursor, sqlite3_int64 *id) {
  *id = static_cast<sqlite3_int64>(row_of(cursor));
  return SQLITE_OK;
}

void put_text(sqlite3_context *to, std::string_view text, sqlite3_destructor_type memory) {
  sqlite3_result_text64(to, text.data(), text.size(), memory, SQLITE_UTF8);
}

int value(sqlite3_vtab_cursor *cursor, sqlite3_context *to, int place) {
  const SqliteBatch &of = batch_of(cursor);
  const auto [index, type] = of.columns[static_cast<std::size_t>(place)];
  const ColumnData &column = of.batch->columns[index];
  const std::size_t row = row_of(cursor);
  if (column.is_null(row)) return SQLITE_OK; // as is what nothing is said about
  switch (type) {
  case ColumnType::unsigned_integer:
    if (column.number(row) > static_cast<std::uint64_t>(INT64_MAX)) { // SQLite has no such integer
      char digits[20];
      const char *const end = std::to_chars(digits, digits + sizeof digits, column.number(row)).ptr;
      put_text(to, {digits, end}, SQLITE_TRANSIENT);
      break;
    }
    [[fallthrough]];
  case ColumnType::integer:
  case ColumnType::boolean:
  case ColumnType::timestamp: sqlite3_result_int64(to, static_cast<sqlite3_int64>(column.number(row))); break;
  case ColumnType::real: sqlite3_result_double(to, column.real(row)); break;
  case ColumnType::text: put_text(to, column.text(row), SQLITE_STATIC); break;
  case ColumnType::list: break; // SQLite has none
  }
  return SQLITE_OK;
}

// Without a way to create it, it is there for whoever knows its name.
constexpr sqlite3_module kModule = [] {
  sqlite3_module module{};
  module.xConnect = connect;
  module.xBestIndex = plan;
  module.xDisconnect = disconnect;
  module.xOpen = open;
  module.xClose = close;
  module.xFilter = rewind;
  module.xNext = next;
  module.xEof = at_end;
  module.xColumn = value;
  module.xRowid = row_id;
  return module;
}();

} // namespace

bool SqliteBatch::add_to(sqlite3 &database, const std::string &name) const {
  return sqlite3_create_module(&database, name.c_str(), &kModule, const_cast<SqliteBatch *>(this)) ==
         SQLITE_OK;
}

} // namespace etwrelog::tables
