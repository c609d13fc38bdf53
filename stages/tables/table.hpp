// Events as tables: columns of values that a format writes row by row or column by column. A batch is filled
// by any thread and written by one.
#pragma once

#include "etwrelog/bytes.hpp"
#include "etwrelog/error.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace etwrelog::base {
class OutputFile;
}

namespace etwrelog::tables {

enum class ColumnType : std::uint8_t {
  integer,          // i64
  unsigned_integer, // u64
  real,             // f64
  boolean,
  text,      // UTF-8
  timestamp, // i64: nanoseconds since 1970, UTC
  list,      // of u64; only Arrow, Parquet and DuckDB have it
};

struct Column {
  std::string name;
  ColumnType type = ColumnType::text;
  bool repeats = false; // texts of which most rows have one of a few: each is kept once, a row has its code
  std::optional<std::string> constant{}; // every row has this text
  bool any_case = false;                 // GUIDs: compared without regard to case, where SQL can
  bool single = false;                   // real numbers that are f32: text has no more digits than these need
};

// Gives names that an earlier column has already, but for upper and lower case, a number: "Version#2". SQL
// compares names like that, and data frames are easier to use with it.
void tell_apart(std::vector<Column> &columns);

// The statement that makes the view `events`: what every event has, of all these tables (their names quoted),
// and no rows where there are no tables.
[[nodiscard]] std::string view_of_events(std::span<const std::string> tables);

// Numbers that are appended one by one, millions of them: a vector whose push_back() is a comparison and a
// store.
template <class T> class Numbers {
public:
  Numbers() = default;
  Numbers(Numbers &&other) noexcept
      : values_(std::move(other.values_)), size_(std::exchange(other.size_, 0)),
        capacity_(std::exchange(other.capacity_, 0)) {}
  Numbers &operator=(Numbers &&other) noexcept {
    values_ = std::move(other.values_);
    size_ = std::exchange(other.size_, 0);
    capacity_ = std::exchange(other.capacity_, 0);
    return *this;
  }

  [[gnu::always_inline]] void push_back(T value) {
    if (size_ == capacity_) grow(size_ + 1);
    values_[size_++] = value;
  }
  void resize(std::size_t size, T value = {}) {
    if (size > capacity_) grow(size);
    if (size > size_) std::fill(values_.get() + size_, values_.get() + size, value);
    size_ = size;
  }
  // Room for so many more, to be filled by the caller.
  [[nodiscard]] T *extend(std::size_t more) {
    if (size_ + more > capacity_) grow(size_ + more);
    return values_.get() + std::exchange(size_, size_ + more);
  }
  void append(const Numbers &other) { std::copy_n(other.values_.get(), other.size_, extend(other.size_)); }
  void clear() { size_ = 0; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] T *data() { return values_.get(); }
  [[nodiscard]] const T *data() const { return values_.get(); }
  [[nodiscard]] const T *begin() const { return data(); }
  [[nodiscard]] const T *end() const { return data() + size_; }
  [[nodiscard]] T &operator[](std::size_t i) { return values_[i]; }
  [[nodiscard]] const T &operator[](std::size_t i) const { return values_[i]; }

private:
  [[gnu::noinline]] void grow(std::size_t needed) {
    const std::size_t capacity = std::max({needed, capacity_ * 2, std::size_t{64}});
    auto grown = std::make_unique_for_overwrite<T[]>(capacity);
    std::copy_n(values_.get(), size_, grown.get());
    values_ = std::move(grown);
    capacity_ = capacity;
  }
  std::unique_ptr<T[]> values_;
  std::size_t size_ = 0, capacity_ = 0;
};

// The values of one column, near to how Arrow lays them out: 8 bytes a number; texts behind each other, and
// where each ends; the elements of lists in the same way. Validity bits are there once a null is.
class ColumnData {
public:
  explicit ColumnData(ColumnType type, bool repeats = false) : type_(type), repeats_(repeats) {}

  void add_null() { ++rows_, ++nulls_, ++waiting_; }
  // Of the integer kinds; signed ones two's complement. Inlined whatever the compiler thinks: it is what
  // tables are made of.
  [[gnu::always_inline]] void add_number(std::uint64_t bits) {
    add_valid();
    numbers_.push_back(bits);
  }
  // The same of so many rows, whose numbers the caller fills in.
  [[nodiscard]] std::uint64_t *add_numbers(std::size_t rows) {
    if (nulls_ != 0) settle(), add_bits(rows, true);
    rows_ += rows;
    return numbers_.extend(rows);
  }
  void add_real(double value) { add_number(std::bit_cast<std::uint64_t>(value)); }
  void add_text(std::string_view text);
  // Text appended in place: what lies behind the text before when end_text() is called is the next value. Not
  // of a column that repeats.
  [[nodiscard]] std::string &begin_text() { return settle(), text_; }
  void end_text() {
    add_valid();
    ends_.push_back(static_cast<std::uint32_t>(text_.size()));
  }
  // Of a column that repeats: the code of a text, which is new or not; and a row that has it.
  [[nodiscard]] std::uint32_t code_of(std::string_view text);
  void add_code(std::uint32_t code) {
    add_valid();
    codes_.push_back(code);
  }
  // Of a column of lists: elements, and where the row's end.
  void add_element(std::uint64_t bits) {
    settle();
    numbers_.push_back(bits);
  }
  void add_elements(Bytes all, std::size_t size); // of `size` bytes each: 1, 2, 4 or 8
  void end_list() {
    add_valid();
    ends_.push_back(static_cast<std::uint32_t>(numbers_.size()));
  }
  void drop_elements(); // since the last end_list()
  // Back to so many rows, none or one less, without what was begun since.
  void keep_rows(std::size_t rows);
  // All rows of another column of the same kind.
  void append(const ColumnData &other);
  void clear(); // keeps the memory

  [[nodiscard]] ColumnType type() const { return type_; }
  [[nodiscard]] bool repeats() const { return repeats_; }
  [[nodiscard]] std::size_t rows() const { return rows_; }
  [[nodiscard]] std::size_t nulls() const { return nulls_; }
  [[nodiscard]] bool is_null(std::size_t row) const {
    if (nulls_ == 0) return false;
    return row >= rows_ - waiting_ || (row < bits_ && (valid_[row / 8] >> (row % 8) & 1) == 0);
  }
  [[nodiscard]] std::uint64_t number(std::size_t row) const { return numbers_[row]; }
  [[nodiscard]] double real(std::size_t row) const { return std::bit_cast<double>(numbers_[row]); }
  [[nodiscard]] std::string_view text(std::size_t row) const {
    return distinct_text(repeats_ ? codes_[row] : row);
  }
  [[nodiscard]] std::size_t bytes() const {
    return numbers_.size() * 8 + (ends_.size() + codes_.size()) * 4 + text_.size();
  }

  // Only where there are nulls.
  [[nodiscard]] const std::vector<std::uint8_t> &valid_bits() const { return settle(), valid_; }
  [[nodiscard]] const Numbers<std::uint64_t> &numbers() const { // also elements of lists
    return settle(), numbers_;
  }
  [[nodiscard]] const Numbers<std::uint32_t> &ends() const { return settle(), ends_; }
  [[nodiscard]] const std::string &texts() const { return text_; }
  // Of a column that repeats: the texts that ends() and texts() hold, and the code of each row (0 for nulls).
  [[nodiscard]] std::size_t distinct() const { return ends_.size(); }
  [[nodiscard]] std::string_view distinct_text(std::size_t code) const {
    const std::size_t begin = code == 0 ? 0 : ends_[code - 1];
    return std::string_view(text_).substr(begin, ends_[code] - begin);
  }
  [[nodiscard]] const Numbers<std::uint32_t> &codes() const { return settle(), codes_; }

private:
  // Small, so that it stands where rows are made: every value goes through it.
  void add_valid() {
    if (nulls_ != 0) add_valid_bit();
    ++rows_;
  }
  void add_valid_bit();
  // Nulls at the end are put into their places when it matters: most columns that have some have nothing
  // else.
  void settle() const {
    if (waiting_ != 0) put_nulls();
  }
  void put_nulls() const;
  void add_bits(std::size_t count, bool valid) const; // of the rows behind those that have one

  ColumnType type_;
  bool repeats_;
  mutable std::vector<std::uint8_t> valid_;
  mutable Numbers<std::uint64_t> numbers_;
  mutable Numbers<std::uint32_t> ends_, codes_;
  mutable std::size_t bits_ = 0, waiting_ = 0; // rows in valid_; nulls that are not in their places
  std::string text_;
  std::size_t rows_ = 0, nulls_ = 0;
  std::unordered_map<std::string, std::uint32_t> code_by_text_;
};

// The different texts of a column that repeats, over all batches of a table: in the order in which they came.
class Dictionary {
public:
  // The place in all() of each row's text; 0 for nulls. Until the next call.
  std::span<const std::int32_t> take(const ColumnData &column);
  [[nodiscard]] const ColumnData &all() const { return all_; }

private:
  ColumnData all_{ColumnType::text, true};
  std::vector<std::int32_t> place_of_code_, places_;
};

struct Batch {
  std::vector<ColumnData> columns;
  std::size_t rows = 0;

  Batch() = default;
  explicit Batch(const std::vector<Column> &of) {
    for (const Column &column : of)
      columns.emplace_back(column.type, column.repeats);
  }
  void clear() { // keeps the memory
    rows = 0;
    for (ColumnData &column : columns)
      column.clear();
  }
  // Offsets in a column have 31 bits, here and in Arrow: the error for more, which only a hostile trace has.
  [[nodiscard]] Result<void> check_size() const;
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
// An SQLite database in `file`, which is empty and outlives it: a table for each, a view of all, indices at
// the end. `stop` is looked at for every table.
[[nodiscard]] Result<std::unique_ptr<TableWriter>> sqlite_writer(base::OutputFile &file,
                                                                 const std::stop_token &stop = {});

// The same for DuckDB at `path`, which must not exist; or, where there is `parquet`, what is asked for the
// file of each table: they end as Parquet, and the database is only on the way. `stop` ends what DuckDB is
// at, too. Unsupported where its library is not on the machine.
using ParquetFile = std::function<std::string(const std::string &table)>;
[[nodiscard]] Result<std::unique_ptr<TableWriter>>
duckdb_writer(const std::string &path, const std::stop_token &stop = {}, ParquetFile parquet = {});

} // namespace etwrelog::tables
