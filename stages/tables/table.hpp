// Events as tables: columns of values that a format writes row by row or column by column. A batch is filled
// by any thread and written by one.
#pragma once

#include "etwrelog/error.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace etwrelog::tables {

enum class ColumnType : std::uint8_t {
  integer,          // i64
  unsigned_integer, // u64
  real,             // f64
  boolean,
  text,      // UTF-8
  timestamp, // i64: nanoseconds since 1970, UTC
};

struct Column {
  std::string name;
  ColumnType type = ColumnType::text;
  bool repeats = false; // texts of which most rows have one of a few: formats that can, write each once
};

// Gives names that an earlier column has already, but for upper and lower case, a number: "Version#2". SQL
// compares names like that, and data frames are easier to use with it.
void tell_apart(std::vector<Column> &columns);

// The values of one column, as Arrow lays them out: a validity bit a row and 8 bytes a number, or the ends of
// texts.
class ColumnData {
public:
  explicit ColumnData(ColumnType type) : text_column_(type == ColumnType::text) {}
  void add_null();
  void add_number(std::uint64_t bits); // of the integer kinds; signed ones two's complement
  void add_real(double value);
  void add_text(std::string_view text);
  // Text appended in place: what lies behind text_begin() when end_text() is called is the next value.
  [[nodiscard]] std::string &begin_text() { return text_; }
  void end_text();
  void append(const ColumnData &more); // of the same type
  void clear();

  [[nodiscard]] std::size_t rows() const { return rows_; }
  [[nodiscard]] std::size_t nulls() const { return nulls_; }
  [[nodiscard]] bool is_null(std::size_t row) const { return (valid_[row / 8] >> (row % 8) & 1) == 0; }
  [[nodiscard]] std::uint64_t number(std::size_t row) const { return numbers_[row]; }
  [[nodiscard]] double real(std::size_t row) const;
  [[nodiscard]] std::string_view text(std::size_t row) const;
  [[nodiscard]] std::size_t bytes() const { return numbers_.size() * 8 + ends_.size() * 4 + text_.size(); }

  [[nodiscard]] const std::vector<std::uint8_t> &valid_bits() const { return valid_; }
  [[nodiscard]] const std::vector<std::uint64_t> &numbers() const { return numbers_; }
  [[nodiscard]] const std::vector<std::uint32_t> &ends() const { return ends_; }
  [[nodiscard]] const std::string &texts() const { return text_; }

private:
  void add_valid(bool valid);

  std::vector<std::uint8_t> valid_;
  std::vector<std::uint64_t> numbers_; // empty in a column of texts
  std::vector<std::uint32_t> ends_;    // empty in any other
  std::string text_;
  std::size_t rows_ = 0, nulls_ = 0;
  bool text_column_;
};

struct Batch {
  std::vector<ColumnData> columns;
  std::size_t rows = 0;
};

// Writes tables to one destination. One thread; tables are numbered from 0 in the order of add_table.
class TableWriter {
public:
  virtual ~TableWriter() = default;
  virtual Result<void> add_table(const std::string &name, const std::vector<Column> &columns) = 0;
  virtual Result<void> write(std::size_t table, const Batch &batch) = 0;
  // After the last batch; the destination is complete then.
  virtual Result<void> finish() = 0;
};

// Takes what a format writes, in order.
class ByteTarget {
public:
  virtual ~ByteTarget() = default;
  virtual Result<void> append(std::string_view bytes) = 0;
};

// RFC 4180 with a header line, CRLF line ends; nulls are empty. One table.
[[nodiscard]] std::unique_ptr<TableWriter> csv_writer(ByteTarget &target, char separator = ',');
// Arrow IPC; the file form (Feather 2) has a footer, the stream form not. One table.
[[nodiscard]] std::unique_ptr<TableWriter> arrow_writer(ByteTarget &target, bool file);
// A new SQLite database at `path`, which must not exist: a table for each, a view of all, indices at the end.
[[nodiscard]] Result<std::unique_ptr<TableWriter>> sqlite_writer(const std::string &path);

// The same for DuckDB at `path`; or, if `parquet` is not empty, one table that ends as a Parquet file of that
// name. Unsupported where DuckDB's library is not on the machine.
[[nodiscard]] Result<std::unique_ptr<TableWriter>> duckdb_writer(const std::string &path,
                                                                 const std::string &parquet);

} // namespace etwrelog::tables
