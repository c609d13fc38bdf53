#include "tables/table.hpp"

#include "base/errors.hpp"
#include "tables/names.hpp"

#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace etwrelog::tables {

namespace {
constexpr std::string_view kNoName =
    "unnamed"; // TraceLogging takes a field without a name, DuckDB no such column
} // namespace

void tell_apart(std::vector<Column> &columns) {
  DistinctNames names;
  std::vector<Column *> others;
  for (Column &column : columns)
    if (column.name.empty() || !names.take(column.name)) others.push_back(&column);
  // Behind all that keep their names: what is called "Time#2" by itself is no other column's "Time#2".
  for (Column *column : others)
    column->name = names.give(column->name.empty() ? kNoName : std::string_view(column->name), "#");
}

namespace {

// The rows of all these SELECTs: in groups, as databases take no more than 500 terms, or nest no deeper than
// some 1,000.
std::string union_of(std::span<const std::string> selects) {
  constexpr std::size_t kMostTerms = 500;
  constexpr std::string_view kAnd = " UNION ALL ";
  if (selects.size() <= kMostTerms) return fmt::format("{}", fmt::join(selects, kAnd));
  std::vector<std::string> groups;
  for (; !selects.empty(); selects = selects.subspan(std::min(kMostTerms, selects.size())))
    groups.push_back(
        fmt::format("SELECT * FROM ({})", union_of(selects.first(std::min(kMostTerms, selects.size())))));
  return union_of(groups);
}

} // namespace

std::string view_of_events(std::span<const std::string> tables) {
  static constexpr std::array kColumns = {
      "time",  "timestamp", "cpu",     "process_id", "thread_id", "process", "provider", "provider_id",
      "event", "id",        "version", "opcode",     "level",     "keyword", "activity", "related_activity"};
  const std::string columns = fmt::format("{}", fmt::join(kColumns, ", "));
  if (tables.empty())
    return fmt::format("CREATE VIEW events AS SELECT NULL AS {} WHERE 1 = 0",
                       fmt::join(kColumns, ", NULL AS "));
  std::vector<std::string> selects;
  for (const std::string &table : tables)
    selects.push_back(fmt::format("SELECT {} FROM {}", columns, table));
  return "CREATE VIEW events AS " + union_of(selects);
}

void ColumnData::add_bits(std::size_t count, bool valid) const {
  for (; count != 0 && bits_ % 8 != 0; --count, ++bits_)
    if (valid) valid_.back() = static_cast<std::uint8_t>(valid_.back() | 1u << (bits_ % 8));
  valid_.resize(valid_.size() + (count + 7) / 8, valid ? 0xFF : 0);
  bits_ += count;
  // What is no row is no bit.
  if (count != 0 && valid && bits_ % 8 != 0)
    valid_.back() = static_cast<std::uint8_t>(valid_.back() & ((1u << (bits_ % 8)) - 1));
}

void ColumnData::add_valid_bit() {
  settle();
  if (bits_ % 8 != 0)
    valid_.back() = static_cast<std::uint8_t>(valid_.back() | 1u << (bits_ % 8));
  else
    valid_.push_back(1);
  ++bits_;
}

void ColumnData::put_nulls() const {
  const std::size_t count = std::exchange(waiting_, 0), before = rows_ - count;
  add_bits(before - bits_, true); // none, or all: there is no bit before the first null
  add_bits(count, false);
  if (type_ == ColumnType::list)
    ends_.resize(ends_.size() + count, static_cast<std::uint32_t>(numbers_.size()));
  else if (type_ != ColumnType::text)
    numbers_.resize(numbers_.size() + count, 0);
  else if (repeats_)
    codes_.resize(codes_.size() + count, 0);
  else
    ends_.resize(ends_.size() + count, static_cast<std::uint32_t>(text_.size()));
}

void ColumnData::add_elements(Bytes all, std::size_t size) {
  settle();
  const std::size_t at = numbers_.size();
  numbers_.resize(at + all.size() / size);
  if (size == 8) {
    if (!all.empty()) std::memcpy(numbers_.data() + at, all.data(), all.size() / 8 * 8);
    return;
  }
  for (std::size_t i = 0; at + i < numbers_.size(); ++i)
    std::memcpy(&numbers_[at + i], all.data() + i * size, size);
}

void ColumnData::drop_elements() {
  numbers_.resize(ends_.empty() ? 0 : ends_[ends_.size() - 1]);
}

void ColumnData::keep_rows(std::size_t rows) {
  settle();
  if (rows < rows_) {
    if (is_null(rows)) --nulls_;
    if (bits_ > rows) {
      bits_ = rows;
      valid_.resize((rows + 7) / 8);
      if (rows % 8 != 0) valid_.back() = static_cast<std::uint8_t>(valid_.back() & ((1u << rows % 8) - 1));
    }
    if (repeats_)
      codes_.resize(rows);
    else if (type_ == ColumnType::text || type_ == ColumnType::list)
      ends_.resize(rows);
    else
      numbers_.resize(rows);
    rows_ = rows;
  }
  if (type_ == ColumnType::list) drop_elements();
  if (type_ == ColumnType::text && !repeats_) text_.resize(ends_.empty() ? 0 : ends_[ends_.size() - 1]);
}

void ColumnData::add_text(std::string_view text) {
  if (repeats_) return add_code(code_of(text));
  settle();
  text_.append(text);
  end_text();
}

std::uint32_t ColumnData::code_of(std::string_view text) {
  const auto [at, fresh] =
      code_by_text_.try_emplace(std::string(text), static_cast<std::uint32_t>(ends_.size()));
  if (fresh) {
    text_.append(text);
    ends_.push_back(static_cast<std::uint32_t>(text_.size()));
  }
  return at->second;
}

void ColumnData::append(const ColumnData &other) {
  if (other.rows_ == 0) return;
  if (other.nulls_ == other.rows_) {
    rows_ += other.rows_, nulls_ += other.rows_, waiting_ += other.rows_;
    return;
  }
  settle(), other.settle();
  if (nulls_ != 0 || other.nulls_ != 0) {
    add_bits(rows_ - bits_, true);
    if (other.nulls_ == 0) add_bits(other.rows_, true);
    for (std::size_t i = 0; other.nulls_ != 0 && i < other.rows_;) {
      const std::size_t begin = i;
      const bool null = other.is_null(i);
      do
        ++i;
      while (i < other.rows_ && other.is_null(i) == null);
      add_bits(i - begin, !null);
    }
  }
  const auto numbers = static_cast<std::uint32_t>(numbers_.size()),
             texts = static_cast<std::uint32_t>(text_.size());
  numbers_.append(other.numbers_);
  if (repeats_) {
    std::vector<std::uint32_t> code(other.distinct());
    for (std::size_t i = 0; i < code.size(); ++i)
      code[i] = code_of(other.distinct_text(i));
    for (const std::uint32_t of_other : other.codes_)
      codes_.push_back(code[of_other]);
    for (std::size_t i = 0; other.nulls_ != 0 && i < other.rows_; ++i)
      if (other.is_null(i)) codes_[codes_.size() - other.rows_ + i] = 0;
  } else {
    const std::uint32_t before = type_ == ColumnType::list ? numbers : texts;
    for (const std::uint32_t end : other.ends_)
      ends_.push_back(end + before);
    text_ += other.text_;
  }
  rows_ += other.rows_;
  nulls_ += other.nulls_;
}

Result<void> Batch::check_size() const {
  constexpr std::size_t kMost = 0x7FFF'FFFF;
  for (const ColumnData &column : columns)
    if (column.texts().size() > kMost || column.numbers().size() > kMost)
      return base::over_limit(std::to_string(rows) + " events that follow each other")
          .expected("at most 2 GiB of text in a column")
          .found(std::to_string(column.texts().size()) + " bytes");
  return {};
}

void ColumnData::clear() {
  valid_.clear();
  numbers_.clear();
  ends_.clear();
  codes_.clear();
  text_.clear();
  code_by_text_.clear();
  rows_ = nulls_ = bits_ = waiting_ = 0;
}

std::span<const std::int32_t> Dictionary::take(const ColumnData &column) {
  place_of_code_.clear();
  for (std::size_t code = 0; code < column.distinct(); ++code)
    place_of_code_.push_back(static_cast<std::int32_t>(all_.code_of(column.distinct_text(code))));
  // Rows that are null have code 0, which there may be no text for.
  if (place_of_code_.empty()) place_of_code_.push_back(0);
  const Numbers<std::uint32_t> &codes = column.codes();
  places_.resize(codes.size());
  // Codes are of this column: checks of the library's that each is below their number are left out.
  std::ranges::transform(codes, places_.begin(),
                         [of = place_of_code_.data()](std::uint32_t code) { return of[code]; });
  for (std::size_t row = 0; column.nulls() != 0 && row < codes.size(); ++row)
    if (column.is_null(row)) places_[row] = 0;
  return places_;
}

} // namespace etwrelog::tables
