#include "tables/table.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

namespace etwrelog::tables {
namespace {

void append_cell(std::string &out, std::string_view text, char separator) {
  const auto is_special = [separator](char c) {
    return c == separator || c == '"' || c == '\r' || c == '\n' || c == '\0';
  };
  if (std::ranges::none_of(text, is_special)) {
    out += text;
    return;
  }
  // Objects, which are most of a row, have a quote every few bytes: without a branch for each.
  const std::size_t begin = out.size();
  out.resize(begin + 2 * text.size() + 2);
  char *to = out.data() + begin;
  *to++ = '"';
  for (const char c : text) {
    *to++ = c;
    *to = '"'; // the next byte takes its place if this was none
    to += c == '"' ? 1 : 0;
  }
  *to++ = '"';
  out.resize(static_cast<std::size_t>(to - out.data()));
}

class CsvWriter final : public TableWriter {
public:
  CsvWriter(ByteTarget &target, char separator) : target_(target), separator_(separator) {}

  Result<void> add_table(const std::string &, const std::vector<Column> &columns) override {
    columns_ = columns;
    tell_apart(columns_);
    line_.clear();
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (i != 0) line_ += separator_;
      append_cell(line_, columns_[i].name, separator_);
    }
    line_ += "\r\n";
    return target_.append(line_);
  }

  Result<void> write(std::size_t, const Batch &batch) override {
    line_.clear();
    for (std::size_t row = 0; row < batch.rows; ++row) {
      for (std::size_t i = 0; i < columns_.size(); ++i) {
        if (i != 0) line_ += separator_;
        if (!batch.columns[i].is_null(row)) append_value(batch.columns[i], columns_[i], row);
      }
      line_ += "\r\n";
    }
    return target_.append(line_);
  }

  Result<void> finish() override { return {}; }

private:
  void append_value(const ColumnData &column, const Column &of, std::size_t row) {
    auto out = std::back_inserter(line_);
    switch (of.type) {
    case ColumnType::integer:
    case ColumnType::timestamp:
      fmt::format_to(out, "{}", static_cast<std::int64_t>(column.number(row)));
      break;
    case ColumnType::unsigned_integer: fmt::format_to(out, "{}", column.number(row)); break;
    case ColumnType::real:
      if (of.single)
        append_real(static_cast<float>(column.real(row)));
      else
        append_real(column.real(row));
      break;
    case ColumnType::boolean: line_ += column.number(row) != 0 ? "true" : "false"; break;
    case ColumnType::text: append_cell(line_, column.text(row), separator_); break;
    case ColumnType::list: break;
    }
  }

  // As JSON lines have it: fmt fills the digits of large numbers up with zeros, which is another number to
  // those who read it with more digits than an f32 has.
  template <class Real> void append_real(Real value) {
    char digits[32];
    line_.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
    if (value == 0 && std::signbit(value)) line_ += ".0"; // -0 would be read as an integer, which has no sign
  }

  ByteTarget &target_;
  char separator_;
  std::vector<Column> columns_;
  std::string line_;
};

} // namespace

std::unique_ptr<TableWriter> csv_writer(ByteTarget &target, char separator) {
  return std::make_unique<CsvWriter>(target, separator);
}

} // namespace etwrelog::tables
