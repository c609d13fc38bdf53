// Columns from which a row goes again: an event that its decoder gives up on has been begun.
#include "tables/table.hpp"

#include <gtest/gtest.h>

namespace etwrelog::tables {
namespace {

constexpr ColumnType kTypes[] = {ColumnType::text, ColumnType::unsigned_integer, ColumnType::list};

void add(ColumnData &column, std::uint64_t value) {
  switch (column.type()) {
  case ColumnType::text: column.add_text(std::to_string(value)); break;
  case ColumnType::list:
    column.add_element(value), column.add_element(value);
    column.end_list();
    break;
  default: column.add_number(value);
  }
}

void begin(ColumnData &column) {
  if (column.type() == ColumnType::text) column.begin_text() += "begun";
  if (column.type() == ColumnType::list) column.add_element(99);
}

// Rows by a pattern of values and nulls, one more of either kind, and back: as if it had never been there.
TEST(ColumnData, ARowThatGoesAgainLeavesNothing) {
  for (const ColumnType type : kTypes)
    for (unsigned pattern = 0; pattern < 1u << 10; ++pattern)
      for (const int last : {0, 1, 2}) { // a value, a null, one that was only begun
        ColumnData column(type), plain(type);
        for (unsigned i = 0; i < 9; ++i)
          for (ColumnData *to : {&column, &plain})
            (pattern >> i & 1) != 0 ? add(*to, i) : to->add_null();
        if (last == 0) add(column, 77);
        if (last == 1) column.add_null();
        if ((pattern >> 9 & 1) != 0 && last == 2) begin(column);
        column.keep_rows(9);
        for (ColumnData *to : {&column, &plain}) {
          add(*to, 5);
          to->add_null();
          add(*to, 6);
        }
        ASSERT_EQ(column.rows(), plain.rows());
        ASSERT_EQ(column.nulls(), plain.nulls());
        for (std::size_t row = 0; row < plain.rows(); ++row) {
          ASSERT_EQ(column.is_null(row), plain.is_null(row)) << pattern << " " << last << " " << row;
          if (plain.is_null(row) || type == ColumnType::list) continue;
          if (type == ColumnType::text)
            ASSERT_EQ(column.text(row), plain.text(row));
          else
            ASSERT_EQ(column.number(row), plain.number(row));
        }
        ASSERT_TRUE(std::ranges::equal(column.ends(), plain.ends()));
        ASSERT_TRUE(std::ranges::equal(column.numbers(), plain.numbers()));
        ASSERT_EQ(column.texts(), plain.texts());
        ASSERT_EQ(column.valid_bits(), plain.valid_bits());
      }
}

} // namespace
} // namespace etwrelog::tables
