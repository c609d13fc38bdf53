#include "tables/table.hpp"

#include "base/errors.hpp"
#include "tables/sqlite_base.hpp"
#include "tables/sqlite_batch.hpp"
#include "tables/sqlite_file.hpp"

#include <fmt/format.h>

namespace etwrelog::tables {
namespace {

std::string quoted_text(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') out += c;
    if (c != '\0') out += c;
  }
  return out + "'";
}

class SqliteWriter final : public TableWriter {
public:
  SqliteWriter(base::OutputFile &file, std::stop_token stop) : file_(file), stop_(std::move(stop)) {}

  // Nobody reads it before it is whole, and a failed one is thrown away: no journal, no waiting for the disk.
  Result<void> prepare() {
    sqlite3 *database = nullptr;
    const int opened =
        file_.vfs() == nullptr
            ? SQLITE_NOMEM
            : sqlite3_open_v2("events", &database,
                              SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, file_.vfs());
    database_.reset(database);
    if (opened != SQLITE_OK) return failure();
    constexpr int kSteps = 100'000; // between two looks at the token
    sqlite3_progress_handler(
        database, kSteps,
        [](void *stop) { return static_cast<std::stop_token *>(stop)->stop_requested() ? 1 : 0; }, &stop_);
    return run("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA locking_mode=EXCLUSIVE;"
               "PRAGMA page_size=16384; PRAGMA cache_size=-65536; PRAGMA temp_store=FILE;");
  }

  Result<void> add_table(const std::string &name, const std::vector<Column> &columns) override {
    Table table;
    table.rows = batches_.emplace_back(std::make_unique<SqliteBatch>()).get();
    table.name = name;
    table.columns = columns;
    std::string definitions, names;
    tell_apart(table.columns);
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const Column &column = table.columns[i];
      if (!definitions.empty()) definitions += ", ";
      definitions += quoted_name(column.name) + sql_type(column.type);
      if (column.any_case) definitions += " COLLATE NOCASE";
      if (column.constant) { // said once, not in every row
        definitions += fmt::format(" GENERATED ALWAYS AS ({}) VIRTUAL", quoted_text(*column.constant));
        continue;
      }
      names += fmt::format("{}{}", names.empty() ? "" : ", ", quoted_name(column.name));
      table.rows->columns.emplace_back(i, column.type);
    }
    ETWRELOG_TRY(begin());
    ETWRELOG_TRY(run(fmt::format("CREATE TABLE {} ({})", quoted_name(name), definitions)));
    const std::string rows = fmt::format("new rows of {}", name);
    if (!table.rows->add_to(*database_, rows)) return failure();
    const std::string insert =
        fmt::format("INSERT INTO {} ({}) SELECT * FROM {}", quoted_name(name), names, quoted_name(rows));
    sqlite3_stmt *statement = nullptr;
    if (sqlite3_prepare_v3(database_.get(), insert.c_str(), -1, SQLITE_PREPARE_PERSISTENT, &statement,
                           nullptr) != SQLITE_OK)
      return failure();
    table.insert.reset(statement);
    tables_.push_back(std::move(table));
    return {};
  }

  Result<void> write(std::size_t number, const Batch &batch) override {
    Table &table = tables_[number];
    ETWRELOG_TRY(begin());
    sqlite3_stmt *insert = table.insert.get();
    table.rows->batch = &batch;
    const int done = sqlite3_step(insert);
    table.rows->batch = nullptr;
    if (done != SQLITE_DONE) return failure();
    sqlite3_reset(insert);
    table.count += batch.rows;
    rows_ += batch.rows;
    return rows_ < kRowsOfTransaction ? Result<void>() : commit();
  }

  Result<void> finish() override {
    ETWRELOG_TRY(commit());
    for (Table &table : tables_) // every statement that is prepared makes every index wait
      table.insert.reset();
    ETWRELOG_TRY(begin());
    for (const Table &table : tables_) {
      if (table.count < kFewestOfIndex) continue;
      for (const std::string_view key : {"time", "process_id"}) {
        if (!has(table, key)) continue;
        const std::string name = table.name + "." + std::string(key);
        ETWRELOG_TRY(run(fmt::format("CREATE INDEX {} ON {} ({})", quoted_name(name), quoted_name(table.name),
                                     quoted_name(key))));
      }
    }
    ETWRELOG_TRY(add_view());
    ETWRELOG_TRY(commit());
    sqlite3 *database = database_.release();
    if (sqlite3_close(database) != SQLITE_OK) {
      database_.reset(database);
      return failure();
    }
    return {};
  }

private:
  struct Table {
    std::string name;
    std::vector<Column> columns;
    SqliteBatch *rows = nullptr; // what it takes, one of batches_
    SqliteStatement insert;
    std::uint64_t count = 0; // of its rows
  };
  static constexpr std::size_t kRowsOfTransaction = 100'000;
  // Fewer rows are read as fast without an index. Each takes a page of the file, and SQLite looks through all
  // that it has for each that it makes, which of thousands of kinds took more than a minute.
  static constexpr std::uint64_t kFewestOfIndex = 1'000;

  // One transaction for what follows on each other: a table that is made in one of its own is written twice.
  Result<void> begin() {
    if (open_) return {};
    ETWRELOG_TRY(run("BEGIN"));
    open_ = true;
    return {};
  }
  Result<void> commit() {
    if (!open_) return {};
    rows_ = 0;
    open_ = false;
    return run("COMMIT");
  }

  static const char *sql_type(ColumnType type) {
    switch (type) {
    case ColumnType::real: return " REAL";
    case ColumnType::text: return " TEXT";
    case ColumnType::unsigned_integer:
      return ""; // no affinity: what does not fit an integer stays text, exact
    default: return " INTEGER";
    }
  }

  static bool has(const Table &table, std::string_view name) {
    for (const Column &column : table.columns)
      if (column.name == name) return true;
    return false;
  }

  // What every table has, over all of them.
  Result<void> add_view() {
    std::vector<std::string> tables;
    for (const Table &table : tables_) {
      if (table.name == "events") return {};
      if (has(table, "timestamp")) tables.push_back(quoted_name(table.name));
    }
    return tables.empty() && !tables_.empty() ? Result<void>() : run(view_of_events(tables));
  }

  Result<void> run(const std::string &sql) {
    // Of thousands of kinds each table takes SQLite longer than the one before.
    if (stop_.stop_requested()) return base::cancelled().in(file_.target());
    return sqlite3_exec(database_.get(), sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK ? Result<void>()
                                                                                              : failure();
  }

  [[nodiscard]] Error failure() const {
    if (file_.failure()) return *file_.failure();
    if (stop_.stop_requested()) return base::cancelled().in(file_.target());
    const char *const why = database_ ? sqlite3_errmsg(database_.get()) : "out of memory";
    return base::io_failure(fmt::format("SQLite: {}", why)).in(file_.target());
  }

  SqliteFile file_;
  std::stop_token stop_;
  std::vector<std::unique_ptr<SqliteBatch>> batches_;
  SqliteDatabase database_; // behind what it knows, before the statements that it has
  std::vector<Table> tables_;
  std::size_t rows_ = 0;
  bool open_ = false;
};

} // namespace

Result<std::unique_ptr<TableWriter>> sqlite_writer(base::OutputFile &file, const std::stop_token &stop) {
  auto writer = std::make_unique<SqliteWriter>(file, stop);
  ETWRELOG_TRY(writer->prepare());
  return std::unique_ptr<TableWriter>(std::move(writer));
}

} // namespace etwrelog::tables
