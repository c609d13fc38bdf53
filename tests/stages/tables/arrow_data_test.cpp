// Columns as Arrow's structures: codes, lists and nulls where Arrow has them, in memory that outlives the
// batch.
#include "tables/arrow_data.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace etwrelog::tables {
namespace {

const std::vector<Column> kColumns = {{"kind", ColumnType::text, true},
                                      {"list", ColumnType::list},
                                      {"text", ColumnType::text},
                                      {"yes", ColumnType::boolean}};

// "null" is one.
Batch batch_of(const std::vector<std::string> &kinds) {
  Batch batch(kColumns);
  for (const std::string &kind : kinds) {
    std::size_t i = 0;
    if (kind == "null") {
      for (ColumnData &column : batch.columns)
        column.add_null();
    } else {
      batch.columns[i++].add_text(kind);
      for (const char c : kind)
        batch.columns[i].add_element(static_cast<std::uint8_t>(c));
      batch.columns[i++].end_list();
      batch.columns[i++].add_text(kind);
      batch.columns[i].add_number(kind.size() % 2);
    }
    ++batch.rows;
  }
  return batch;
}

template <class T> std::vector<T> values(const ArrowArray &array, int buffer, std::int64_t count) {
  const auto *first = static_cast<const T *>(array.buffers[buffer]);
  return {first, first + count};
}

bool bit(const ArrowArray &array, int buffer, std::int64_t row) {
  return (static_cast<const std::uint8_t *>(array.buffers[buffer])[row / 8] >> (row % 8) & 1) != 0;
}

using Places = std::vector<std::int32_t>;

TEST(ArrowData, SchemasSayDictionariesAndItems) {
  ArrowSchema schema;
  to_arrow(kColumns, schema);
  ASSERT_EQ(schema.n_children, 4);
  EXPECT_STREQ(schema.format, "+s");
  EXPECT_STREQ(schema.children[0]->format, "i");
  ASSERT_NE(schema.children[0]->dictionary, nullptr);
  EXPECT_STREQ(schema.children[0]->dictionary->format, "u");
  EXPECT_STREQ(schema.children[1]->format, "+l");
  ASSERT_EQ(schema.children[1]->n_children, 1);
  EXPECT_STREQ(schema.children[1]->children[0]->format, "L");
  EXPECT_STREQ(schema.children[1]->children[0]->name, "item");
  EXPECT_STREQ(schema.children[2]->format, "u");
  EXPECT_STREQ(schema.children[3]->format, "b");
  schema.release(&schema);
  EXPECT_EQ(schema.release, nullptr);
}

// Codes of one batch are not those of the next; together they are one column.
TEST(ArrowData, BatchesPutTogetherAreOneColumn) {
  Batch batch = batch_of({"a", "bcd", "a"});
  const Batch more = batch_of({"bcd", "null", "", "bcd"});
  for (std::size_t i = 0; i < batch.columns.size(); ++i)
    batch.columns[i].append(more.columns[i]);
  batch.rows += more.rows;
  ArrowArray array;
  ASSERT_TRUE(to_arrow(kColumns, std::move(batch), array));
  EXPECT_EQ(array.length, 7);
  ASSERT_EQ(array.n_children, 4);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(array.children[i]->length, 7);
    EXPECT_EQ(array.children[i]->null_count, 1);
    for (int row = 0; row < 7; ++row)
      EXPECT_EQ(bit(*array.children[i], 0, row), row != 4);
  }
  const ArrowArray &kinds = *array.children[0];
  EXPECT_EQ(values<std::int32_t>(kinds, 1, 7), (Places{0, 1, 0, 1, 0, 2, 1}));
  ASSERT_NE(kinds.dictionary, nullptr);
  EXPECT_EQ(kinds.dictionary->length, 3);
  EXPECT_EQ(kinds.dictionary->null_count, 0);
  EXPECT_EQ(values<std::int32_t>(*kinds.dictionary, 1, 4), (Places{0, 1, 4, 4}));
  const ArrowArray &lists = *array.children[1];
  EXPECT_EQ(values<std::int32_t>(lists, 1, 8), (Places{0, 1, 4, 5, 8, 8, 8, 11}));
  ASSERT_EQ(lists.n_children, 1);
  EXPECT_EQ(lists.children[0]->length, 11);
  EXPECT_EQ(values<std::uint64_t>(*lists.children[0], 1, 5),
            (std::vector<std::uint64_t>{'a', 'b', 'c', 'd', 'a'}));
  EXPECT_EQ(values<std::int32_t>(*array.children[2], 1, 8), (Places{0, 1, 4, 5, 8, 8, 8, 11}));
  EXPECT_EQ(std::string(static_cast<const char *>(array.children[2]->buffers[2]), 11), "abcdabcdbcd");
  EXPECT_TRUE(bit(*array.children[3], 1, 3));
  EXPECT_FALSE(bit(*array.children[3], 1, 5));
  // What is moved out of it stays when the rest goes.
  ArrowArray dictionary = *kinds.dictionary, elements = *lists.children[0];
  kinds.dictionary->release = lists.children[0]->release = nullptr;
  array.release(&array);
  EXPECT_EQ(array.release, nullptr);
  EXPECT_EQ(std::string(static_cast<const char *>(dictionary.buffers[2]), 4), "abcd");
  EXPECT_EQ(values<std::uint64_t>(elements, 1, 11).back(), std::uint64_t{'d'});
  dictionary.release(&dictionary);
  elements.release(&elements);
}

TEST(ArrowData, EmptyColumnsHaveBuffers) {
  ArrowArray array;
  ASSERT_TRUE(to_arrow(kColumns, batch_of({"null"}), array));
  EXPECT_EQ(values<std::int32_t>(*array.children[0], 1, 1), Places{0});
  EXPECT_EQ(array.children[0]->dictionary->length, 0);
  EXPECT_NE(array.children[0]->dictionary->buffers[2], nullptr);
  EXPECT_EQ(array.children[1]->children[0]->length, 0);
  EXPECT_NE(array.children[1]->children[0]->buffers[1], nullptr);
  array.release(&array);
}

} // namespace
} // namespace etwrelog::tables
