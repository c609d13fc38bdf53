// The different texts of a column that repeats itself, each once.
#pragma once

#include "tables/table.hpp"

#include <deque>
#include <string_view>
#include <unordered_map>

namespace etwrelog::tables {

class Dictionary {
public:
  // Adds the texts of a column, in the order in which they come, and notes where its rows find theirs.
  void take(const ColumnData &column) {
    places_.clear();
    places_.reserve(column.rows());
    std::string_view last;
    std::int32_t place = -1;
    for (std::size_t row = 0; row < column.rows(); ++row) {
      if (column.is_null(row)) {
        places_.push_back(0);
        continue;
      }
      const std::string_view text = column.text(row);
      if (place < 0 || text != last) {
        last = text;
        const auto found = numbers_.find(text);
        place = found != numbers_.end() ? found->second : add(text);
      }
      places_.push_back(place);
    }
  }
  // Of the rows of the column that was taken last; 0 for nulls.
  [[nodiscard]] const std::vector<std::int32_t> &places() const { return places_; }
  [[nodiscard]] const ColumnData &all() const { return all_; }

private:
  std::int32_t add(std::string_view text) {
    const auto place = static_cast<std::int32_t>(numbers_.size());
    numbers_.emplace(texts_.emplace_back(text), place);
    all_.add_text(text);
    return place;
  }
  std::deque<std::string> texts_;
  std::unordered_map<std::string_view, std::int32_t> numbers_; // of texts_
  std::vector<std::int32_t> places_;
  ColumnData all_{ColumnType::text};
};

} // namespace etwrelog::tables
