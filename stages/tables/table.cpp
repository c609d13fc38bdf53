#include "tables/table.hpp"

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

// The row that comes next, in a column that has nulls.
void ColumnData::add_bit(bool valid) {
  if (rows_ % 8 == 0) valid_.push_back(0);
  if (valid) valid_.back() = static_cast<std::uint8_t>(valid_.back() | 1u << (rows_ % 8));
}

void ColumnData::add_null() {
  if (nulls_++ == 0) { // all before it are valid
    valid_.assign(rows_ / 8, 0xFF);
    if (rows_ % 8 != 0) valid_.push_back(static_cast<std::uint8_t>((1u << (rows_ % 8)) - 1));
  }
  add_bit(false);
  ++rows_;
  if (type_ == ColumnType::list)
    ends_.push_back(static_cast<std::uint32_t>(numbers_.size()));
  else if (type_ != ColumnType::text)
    numbers_.push_back(0);
  else if (repeats_)
    codes_.push_back(0);
  else
    ends_.push_back(static_cast<std::uint32_t>(text_.size()));
}

void ColumnData::add_text(std::string_view text) {
  if (repeats_) return add_code(code_of(text));
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
  if (nulls_ != 0 || other.nulls_ != 0) {
    const std::size_t rows = rows_;
    if (nulls_ == 0) {
      valid_.assign(rows_ / 8, 0xFF);
      if (rows_ % 8 != 0) valid_.push_back(static_cast<std::uint8_t>((1u << (rows_ % 8)) - 1));
    }
    for (std::size_t i = 0; i < other.rows_; ++i, ++rows_)
      add_bit(!other.is_null(i));
    rows_ = rows;
  }
  const auto numbers = static_cast<std::uint32_t>(numbers_.size()),
             texts = static_cast<std::uint32_t>(text_.size());
  numbers_.insert(numbers_.end(), other.numbers_.begin(), other.numbers_.end());
  if (repeats_) {
    std::vector<std::uint32_t> code(other.distinct());
    for (std::size_t i = 0; i < code.size(); ++i)
      code[i] = code_of(other.distinct_text(i));
    for (std::size_t i = 0; i < other.rows_; ++i)
      codes_.push_back(other.is_null(i) ? 0 : code[other.codes_[i]]);
  } else {
    for (const std::uint32_t end : other.ends_)
      ends_.push_back(end + (type_ == ColumnType::list ? numbers : texts));
    text_ += other.text_;
  }
  rows_ += other.rows_;
  nulls_ += other.nulls_;
}

void ColumnData::clear() {
  valid_.clear();
  numbers_.clear();
  ends_.clear();
  codes_.clear();
  text_.clear();
  code_by_text_.clear();
  rows_ = nulls_ = 0;
}

std::span<const std::int32_t> Dictionary::take(const ColumnData &column) {
  place_of_code_.clear();
  for (std::size_t code = 0; code < column.distinct(); ++code)
    place_of_code_.push_back(static_cast<std::int32_t>(all_.code_of(column.distinct_text(code))));
  places_.clear();
  for (std::size_t row = 0; row < column.rows(); ++row)
    places_.push_back(column.is_null(row) ? 0 : place_of_code_[column.codes()[row]]);
  return places_;
}

} // namespace etwrelog::tables
