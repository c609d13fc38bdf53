#include "tables/table.hpp"

#include <bit>
#include <map>

namespace etwrelog::tables {

void tell_apart(std::vector<Column> &columns) {
  std::map<std::string, int> taken; // and the number that the next one of that name gets
  for (Column &column : columns) {
    const std::string name = column.name;
    int *again = nullptr;
    for (;;) {
      std::string folded = column.name;
      for (char &c : folded)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
      const auto [place, free] = taken.try_emplace(std::move(folded), 2);
      if (free) break;
      if (again == nullptr) again = &place->second;
      column.name = name + "#" + std::to_string((*again)++);
    }
  }
}

void ColumnData::add_valid(bool valid) {
  if (rows_ % 8 == 0) valid_.push_back(0);
  if (valid)
    valid_.back() = static_cast<std::uint8_t>(valid_.back() | 1u << (rows_ % 8));
  else
    ++nulls_;
  ++rows_;
}

void ColumnData::add_null() {
  add_valid(false);
  if (text_column_)
    ends_.push_back(static_cast<std::uint32_t>(text_.size()));
  else
    numbers_.push_back(0);
}

void ColumnData::add_number(std::uint64_t bits) {
  add_valid(true);
  numbers_.push_back(bits);
}

void ColumnData::add_real(double value) {
  add_number(std::bit_cast<std::uint64_t>(value));
}

void ColumnData::add_text(std::string_view text) {
  text_.append(text);
  end_text();
}

void ColumnData::end_text() {
  add_valid(true);
  ends_.push_back(static_cast<std::uint32_t>(text_.size()));
}

void ColumnData::append(const ColumnData &more) {
  for (std::size_t row = 0; row < more.rows(); ++row)
    if (more.is_null(row))
      add_null();
    else if (text_column_)
      add_text(more.text(row));
    else
      add_number(more.number(row));
}

void ColumnData::clear() {
  valid_.clear();
  numbers_.clear();
  ends_.clear();
  text_.clear();
  rows_ = nulls_ = 0;
}

double ColumnData::real(std::size_t row) const {
  return std::bit_cast<double>(numbers_[row]);
}

std::string_view ColumnData::text(std::size_t row) const {
  const std::size_t begin = row == 0 ? 0 : ends_[row - 1];
  return std::string_view(text_).substr(begin, ends_[row] - begin);
}

} // namespace etwrelog::tables
