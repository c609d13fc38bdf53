// Tables through DuckDB's C interface (https://duckdb.org/docs/stable/clients/c/api), whose library is looked
// for when it is wanted: $ETWRELOG_DUCKDB, or libduckdb.so where the loader finds it. Rows go in as data
// chunks, which are columns already.
#include "tables/table.hpp"

#include "base/errors.hpp"
#include "base/shared_library.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace etwrelog::tables {
namespace {

// The part of the interface that is used here. States: 0 is success. Numbers of types are those of its enum.
struct DuckDb {
  using Handle = void *;
  struct QueryResult { // its fields are deprecated; the size counts
    std::uint64_t columns, rows, changed;
    void *column_data;
    char *error;
    void *internal;
  };
  enum Type : int { boolean = 1, bigint = 5, ubigint = 9, real = 11, varchar = 17, timestamp_ns = 22 };

  int (*open)(const char *path, Handle *database);
  void (*close)(Handle *database);
  int (*connect)(Handle database, Handle *connection);
  void (*disconnect)(Handle *connection);
  int (*query)(Handle connection, const char *sql, QueryResult *result);
  void (*interrupt)(Handle connection); // from any thread
  const char *(*result_error)(QueryResult *result);
  void (*destroy_result)(QueryResult *result);
  Handle (*create_logical_type)(int type);
  Handle (*create_list_type)(Handle of);
  void (*destroy_logical_type)(Handle *type);
  Handle (*create_data_chunk)(Handle *types, std::uint64_t columns);
  void (*destroy_data_chunk)(Handle *chunk);
  void (*data_chunk_reset)(Handle chunk);
  void (*data_chunk_set_size)(Handle chunk, std::uint64_t size);
  Handle (*data_chunk_get_vector)(Handle chunk, std::uint64_t column);
  void *(*vector_get_data)(Handle vector);
  void (*vector_ensure_validity_writable)(Handle vector);
  std::uint64_t *(*vector_get_validity)(Handle vector);
  void (*vector_assign_string_element_len)(Handle vector, std::uint64_t row, const char *text,
                                           std::uint64_t size);
  struct ListEntry {
    std::uint64_t offset, size; // in the child's elements
  };
  Handle (*list_vector_get_child)(Handle vector);
  int (*list_vector_reserve)(Handle vector, std::uint64_t elements);
  int (*list_vector_set_size)(Handle vector, std::uint64_t elements);
  std::uint64_t (*vector_size)();
  int (*appender_create)(Handle connection, const char *schema, const char *table, Handle *appender);
  int (*append_data_chunk)(Handle appender, Handle chunk);
  int (*appender_flush)(Handle appender);
  const char *(*appender_error)(Handle appender);
  int (*appender_destroy)(Handle *appender);

  static Result<DuckDb> load();
};

Result<DuckDb> DuckDb::load() {
  const std::string given = base::environment("ETWRELOG_DUCKDB");
  Result<base::SharedLibrary> library = base::SharedLibrary::open(given.empty() ? "libduckdb.so" : given);
  if (!library) {
    Error error;
    error.kind = ErrorKind::unsupported;
    error.what =
        "Parquet and DuckDB files are written by DuckDB's library, which cannot be loaded (" +
        library.error().what +
        "): install libduckdb.so or name it in $ETWRELOG_DUCKDB; or write .arrow and convert it elsewhere";
    return error;
  }
  DuckDb db{};
  std::string missing;
  auto take = [&](auto &function, const char *name) {
    if (!library->find(function, name)) missing = name;
  };
  take(db.open, "duckdb_open");
  take(db.close, "duckdb_close");
  take(db.connect, "duckdb_connect");
  take(db.disconnect, "duckdb_disconnect");
  take(db.query, "duckdb_query");
  take(db.interrupt, "duckdb_interrupt");
  take(db.result_error, "duckdb_result_error");
  take(db.destroy_result, "duckdb_destroy_result");
  take(db.create_logical_type, "duckdb_create_logical_type");
  take(db.create_list_type, "duckdb_create_list_type");
  take(db.destroy_logical_type, "duckdb_destroy_logical_type");
  take(db.create_data_chunk, "duckdb_create_data_chunk");
  take(db.destroy_data_chunk, "duckdb_destroy_data_chunk");
  take(db.data_chunk_reset, "duckdb_data_chunk_reset");
  take(db.data_chunk_set_size, "duckdb_data_chunk_set_size");
  take(db.data_chunk_get_vector, "duckdb_data_chunk_get_vector");
  take(db.vector_get_data, "duckdb_vector_get_data");
  take(db.vector_ensure_validity_writable, "duckdb_vector_ensure_validity_writable");
  take(db.vector_get_validity, "duckdb_vector_get_validity");
  take(db.vector_assign_string_element_len, "duckdb_vector_assign_string_element_len");
  take(db.list_vector_get_child, "duckdb_list_vector_get_child");
  take(db.list_vector_reserve, "duckdb_list_vector_reserve");
  take(db.list_vector_set_size, "duckdb_list_vector_set_size");
  take(db.vector_size, "duckdb_vector_size");
  take(db.appender_create, "duckdb_appender_create");
  take(db.append_data_chunk, "duckdb_append_data_chunk");
  take(db.appender_flush, "duckdb_appender_flush");
  take(db.appender_error, "duckdb_appender_error");
  take(db.appender_destroy, "duckdb_appender_destroy");
  if (missing.empty()) return db;
  Error error;
  error.kind = ErrorKind::unsupported;
  error.what = "this libduckdb.so has no " + missing + ": it is too old, or something else";
  return error;
}

std::string quoted(std::string_view text, char quote) {
  std::string out(1, quote);
  for (const char c : text) {
    if (c == quote) out += quote;
    if (c != '\0') out += c;
  }
  return out + quote;
}

class DuckDbWriter final : public TableWriter {
public:
  DuckDbWriter(const DuckDb &db, std::string path, std::stop_token stop, ParquetFile parquet)
      : db_(db), path_(std::move(path)), stop_(std::move(stop)), parquet_(std::move(parquet)) {}
  ~DuckDbWriter() override {
    for (Table &table : tables_)
      release(table);
    if (connection_ != nullptr) db_.disconnect(&connection_);
    if (database_ != nullptr) db_.close(&database_);
  }
  DuckDbWriter(const DuckDbWriter &) = delete;
  DuckDbWriter &operator=(const DuckDbWriter &) = delete;

  Result<void> open() {
    if (db_.open(path_.c_str(), &database_) != 0) return failure("cannot make a database");
    if (db_.connect(database_, &connection_) != 0) return failure("cannot be connected to");
    // One thread: the same bytes every time. Nobody reads the database before it is whole.
    return run(
        fmt::format("SET threads TO 1; SET memory_limit = '{}MiB'; SET preserve_insertion_order = true",
                    memory_limit_ >> 20));
  }

  Result<void> add_table(const std::string &name, const std::vector<Column> &columns) override {
    Table table;
    table.name = name;
    std::string definitions;
    std::vector<Column> named = columns;
    tell_apart(named);
    for (const Column &column : named) {
      if (!definitions.empty()) definitions += ", ";
      definitions += quoted(column.name, '"') + type_of(column.type).second;
      if (column.type == ColumnType::list) definitions += "[]";
      table.types.push_back(column.type);
    }
    if (Result<void> made = run(fmt::format("CREATE TABLE {} ({})", quoted(name, '"'), definitions)); !made)
      return made;
    tables_.push_back(std::move(table));
    return {};
  }

  Result<void> write(std::size_t number, const Batch &batch) override {
    ETWRELOG_TRY(make_room(batch));
    Table &table = tables_[number];
    ETWRELOG_TRY(open(table));
    const std::size_t most = db_.vector_size();
    for (std::size_t first = 0; first < batch.rows; first += most) {
      const std::size_t rows = std::min(most, batch.rows - first);
      db_.data_chunk_reset(table.chunk);
      for (std::size_t i = 0; i < table.types.size(); ++i)
        if (!fill(db_.data_chunk_get_vector(table.chunk, i), batch.columns[i], table.types[i], first, rows))
          return failure("out of memory");
      db_.data_chunk_set_size(table.chunk, rows);
      if (db_.append_data_chunk(table.appender, table.chunk) != 0) return appender_failure(table);
    }
    if (columns_held_ <= kMostColumnsHeld && long_rows_held_ <= kMostBytesHeld) return {};
    if (Result<void> done = flush(); !done) return done;
    return run("CHECKPOINT");
  }

  Result<void> finish() override {
    if (Result<void> done = flush(); !done) return done;
    std::vector<std::string> tables;
    for (const Table &table : tables_)
      tables.push_back(quoted(table.name, '"'));
    if (parquet_) return write_parquet();
    if (Result<void> made = run(view_of_events(tables)); !made) return made;
    return run("CHECKPOINT");
  }

private:
  struct Table {
    std::string name;
    std::vector<ColumnType> types;
    DuckDb::Handle chunk = nullptr, appender = nullptr; // of those that hold rows in memory
  };
  // However few rows there are, each of their columns takes at least one vector of DuckDB's 256 MiB.
  static constexpr std::size_t kMostColumnsHeld = 4'000;
  // What it holds of long rows until a CHECKPOINT, and of a row group while it is written, it takes twice and
  // more.
  static constexpr std::size_t kLongRow = 512, kMostBytesHeld = std::size_t{24} << 20;
  static constexpr std::size_t kRowsOfGroup = 122'880, kRowsOfVector = 2048; // DuckDB's own

  Result<void> write_parquet() {
    for (const Table &table : tables_)
      ETWRELOG_TRY(
          run(fmt::format("COPY {} TO {} (FORMAT PARQUET, COMPRESSION ZSTD, ROW_GROUP_SIZE {})",
                          quoted(table.name, '"'), quoted(parquet_(table.name), '\''), rows_of_group())));
    return {};
  }

  // As many rows as a group has, or fewer of long ones.
  [[nodiscard]] std::size_t rows_of_group() const {
    const std::size_t fit = kMostBytesHeld / std::max<std::size_t>(longest_row_, 1);
    return std::clamp(fit / kRowsOfVector * kRowsOfVector, kRowsOfVector, kRowsOfGroup);
  }

  // Of an element, where it is a list.
  static std::pair<int, const char *> type_of(ColumnType type) {
    switch (type) {
    case ColumnType::integer: return {DuckDb::bigint, " BIGINT"};
    case ColumnType::list:
    case ColumnType::unsigned_integer: return {DuckDb::ubigint, " UBIGINT"};
    case ColumnType::real: return {DuckDb::real, " DOUBLE"};
    case ColumnType::boolean: return {DuckDb::boolean, " BOOLEAN"};
    case ColumnType::timestamp: return {DuckDb::timestamp_ns, " TIMESTAMP_NS"};
    case ColumnType::text: break;
    }
    return {DuckDb::varchar, " VARCHAR"};
  }
  [[nodiscard]] DuckDb::Handle make_type(ColumnType type) const {
    DuckDb::Handle made = db_.create_logical_type(type_of(type).first);
    if (type != ColumnType::list) return made;
    DuckDb::Handle list = db_.create_list_type(made);
    db_.destroy_logical_type(&made);
    return list;
  }

  // False if it has no memory.
  [[nodiscard]] bool fill(DuckDb::Handle vector, const ColumnData &column, ColumnType type, std::size_t first,
                          std::size_t rows) {
    if (column.nulls() != 0) {
      db_.vector_ensure_validity_writable(vector);
      std::uint64_t *const valid = db_.vector_get_validity(vector);
      for (std::size_t i = 0; i < rows; ++i) {
        const std::uint64_t bit = std::uint64_t{1} << (i % 64);
        if (column.is_null(first + i))
          valid[i / 64] &= ~bit;
        else
          valid[i / 64] |= bit;
      }
    }
    if (type == ColumnType::text) {
      for (std::size_t i = 0; i < rows; ++i) {
        if (column.is_null(first + i)) continue;
        const std::string_view text = column.text(first + i);
        db_.vector_assign_string_element_len(vector, i, text.data(), text.size());
      }
      return true;
    }
    if (type == ColumnType::list) return fill_lists(vector, column, first, rows);
    auto *const data = static_cast<std::uint8_t *>(db_.vector_get_data(vector));
    if (type == ColumnType::boolean) {
      for (std::size_t i = 0; i < rows; ++i)
        data[i] = column.number(first + i) != 0 ? 1 : 0;
      return true;
    }
    std::memcpy(data, column.numbers().data() + first, rows * 8);
    return true;
  }

  [[nodiscard]] bool fill_lists(DuckDb::Handle vector, const ColumnData &column, std::size_t first,
                                std::size_t rows) {
    const std::uint32_t *const ends = column.ends().data() + first;
    const std::uint32_t begin = first == 0 ? 0 : ends[-1];
    const std::size_t elements = ends[rows - 1] - begin;
    if (db_.list_vector_reserve(vector, elements) != 0 || db_.list_vector_set_size(vector, elements) != 0)
      return false;
    auto *const lists = static_cast<DuckDb::ListEntry *>(db_.vector_get_data(vector));
    for (std::size_t i = 0; i < rows; ++i) {
      const std::uint32_t at = i == 0 ? begin : ends[i - 1];
      lists[i] = {at - begin, ends[i] - at};
    }
    if (elements != 0)
      std::memcpy(db_.vector_get_data(db_.list_vector_get_child(vector)), column.numbers().data() + begin,
                  elements * 8);
    return true;
  }

  Result<void> make_room(const Batch &batch) {
    std::size_t bytes = 0;
    for (const ColumnData &column : batch.columns)
      bytes += column.bytes();
    const std::size_t each = bytes / std::max<std::size_t>(batch.rows, 1);
    if (each > kLongRow) long_rows_held_ += bytes;
    if (each <= longest_row_) return {};
    longest_row_ = each;
    // It takes a vector of rows at a time, however long they are, and holds some.
    const std::size_t needed = (parquet_ ? 6 : 3) * kRowsOfVector * longest_row_;
    if (needed <= memory_limit_) return {};
    memory_limit_ = needed;
    return run(fmt::format("SET memory_limit = '{}MiB'", (memory_limit_ >> 20) + 1));
  }

  Result<void> open(Table &table) {
    if (table.appender != nullptr) return {};
    if (db_.appender_create(connection_, nullptr, table.name.c_str(), &table.appender) != 0)
      return appender_failure(table);
    std::vector<DuckDb::Handle> types;
    for (const ColumnType type : table.types)
      types.push_back(make_type(type));
    table.chunk = db_.create_data_chunk(types.data(), types.size());
    for (DuckDb::Handle &type : types)
      db_.destroy_logical_type(&type);
    columns_held_ += table.types.size();
    return {};
  }

  // What is appended becomes part of the tables; a CHECKPOINT writes it to the disk.
  Result<void> flush() {
    for (Table &table : tables_) {
      if (table.appender == nullptr) continue;
      if (db_.appender_flush(table.appender) != 0) return appender_failure(table);
      release(table);
    }
    columns_held_ = long_rows_held_ = 0;
    return {};
  }

  void release(Table &table) {
    if (table.appender != nullptr) db_.appender_destroy(&table.appender);
    if (table.chunk != nullptr) db_.destroy_data_chunk(&table.chunk);
    table.appender = table.chunk = nullptr;
  }

  Result<void> run(const std::string &sql) {
    if (stop_.stop_requested()) return base::cancelled();
    const std::stop_callback interrupt(stop_, [this] { db_.interrupt(connection_); }); // a copy takes long
    DuckDb::QueryResult result{};
    const int state = db_.query(connection_, sql.c_str(), &result);
    const char *const said = state != 0 ? db_.result_error(&result) : nullptr;
    const std::string why = said != nullptr ? said : "failed";
    db_.destroy_result(&result);
    if (state == 0) return {};
    if (stop_.stop_requested()) return base::cancelled();
    return failure(why);
  }

  Error appender_failure(const Table &table) const {
    const char *const said = table.appender != nullptr ? db_.appender_error(table.appender) : nullptr;
    return failure(said != nullptr ? said : "cannot be appended to");
  }
  [[nodiscard]] Error failure(const std::string &why) const {
    Error error;
    error.kind = ErrorKind::io;
    error.what = "DuckDB: " + why.substr(0, why.find('\n')); // its advice is for those who talk to it
    return error;
  }

  DuckDb db_;
  std::string path_;
  std::stop_token stop_;
  ParquetFile parquet_; // none: the database is what is wanted
  DuckDb::Handle database_ = nullptr, connection_ = nullptr;
  std::vector<Table> tables_;
  std::size_t memory_limit_ = std::size_t{256} << 20;
  std::size_t columns_held_ = 0;                     // of tables that hold rows
  std::size_t long_rows_held_ = 0, longest_row_ = 0; // in bytes; the latter of a batch's rows, on average
};

} // namespace

Result<std::unique_ptr<TableWriter>> duckdb_writer(const std::string &path, const std::stop_token &stop,
                                                   ParquetFile parquet) {
  const Result<DuckDb> db = DuckDb::load();
  if (!db) return db.error();
  auto writer = std::make_unique<DuckDbWriter>(*db, path, stop, std::move(parquet));
  if (Result<void> opened = writer->open(); !opened) return std::move(opened).error();
  return std::unique_ptr<TableWriter>(std::move(writer));
}

} // namespace etwrelog::tables
