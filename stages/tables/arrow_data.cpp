#include "tables/arrow_data.hpp"

#include "base/errors.hpp"
#include "tables/dictionary.hpp"

#include <array>
#include <limits>
#include <memory>

namespace etwrelog::tables {
namespace {

const char *format_of(const Column &column) {
  switch (column.type) {
  case ColumnType::integer: return "l";
  case ColumnType::unsigned_integer: return "L";
  case ColumnType::real: return "g";
  case ColumnType::boolean: return "b";
  case ColumnType::timestamp: return "tsn:UTC";
  case ColumnType::text: break;
  }
  return column.repeats ? "i" : "u";
}

// The memory of a structure and of those right below it. Who takes one of them out sets its release to null.
template <class Structure> struct Owned {
  std::vector<Structure> members;
  std::vector<Structure *> children;
  Structure dictionary{};
  Owned() = default;
  Owned(const Owned &) = delete;
  Owned &operator=(const Owned &) = delete;
  ~Owned() {
    for (Structure &member : members)
      if (member.release != nullptr) member.release(&member);
    if (dictionary.release != nullptr) dictionary.release(&dictionary);
  }
};

struct OwnedSchema : Owned<ArrowSchema> {
  std::string name;
};

void release_schema(ArrowSchema *schema) {
  delete static_cast<OwnedSchema *>(schema->private_data);
  schema->release = nullptr;
}

void give(std::unique_ptr<OwnedSchema> owned, const char *format, ArrowSchema &out) {
  out = {};
  out.format = format;
  out.name = owned->name.c_str();
  out.flags = ARROW_FLAG_NULLABLE;
  for (ArrowSchema &member : owned->members)
    owned->children.push_back(&member);
  out.n_children = static_cast<std::int64_t>(owned->children.size());
  out.children = owned->children.data();
  if (owned->dictionary.release != nullptr) out.dictionary = &owned->dictionary;
  out.release = release_schema;
  out.private_data = owned.release();
}

struct OwnedArray : Owned<ArrowArray> {
  ColumnData data{ColumnType::text};
  std::vector<std::int32_t> numbers; // offsets of texts, or places in the dictionary
  std::vector<std::uint8_t> bits;    // of booleans; of what has a dictionary, which rows are valid
  std::array<const void *, 3> buffers{};
};

void release_array(ArrowArray *array) {
  delete static_cast<OwnedArray *>(array->private_data);
  array->release = nullptr;
}

void give(std::unique_ptr<OwnedArray> owned, std::size_t rows, std::size_t nulls, std::size_t buffers,
          ArrowArray &out) {
  out = {};
  out.length = static_cast<std::int64_t>(rows);
  out.null_count = static_cast<std::int64_t>(nulls);
  out.n_buffers = static_cast<std::int64_t>(buffers);
  out.buffers = owned->buffers.data();
  for (ArrowArray &member : owned->members)
    owned->children.push_back(&member);
  out.n_children = static_cast<std::int64_t>(owned->children.size());
  out.children = owned->children.data();
  if (owned->dictionary.release != nullptr) out.dictionary = &owned->dictionary;
  out.release = release_array;
  out.private_data = owned.release();
}

std::vector<std::uint8_t> bits_of(const ColumnData &column) {
  std::vector<std::uint8_t> bits((column.rows() + 7) / 8);
  for (std::size_t i = 0; i < column.rows(); ++i)
    if (column.number(i) != 0) bits[i / 8] = static_cast<std::uint8_t>(bits[i / 8] | 1u << (i % 8));
  return bits;
}

// Buffers of no length have an address, too: not every reader takes null for one.
constexpr std::int64_t kNothing = 0;
template <class T> const void *address(const T &buffer) {
  return buffer.empty() ? static_cast<const void *>(&kNothing) : buffer.data();
}

void give_texts(ColumnData data, ArrowArray &out) {
  auto owned = std::make_unique<OwnedArray>();
  owned->data = std::move(data);
  const ColumnData &texts = owned->data;
  const std::size_t rows = texts.rows(), nulls = texts.nulls();
  owned->numbers.reserve(rows + 1);
  owned->numbers.push_back(0);
  for (const std::uint32_t end : texts.ends())
    owned->numbers.push_back(static_cast<std::int32_t>(end));
  if (nulls != 0) owned->buffers[0] = texts.valid_bits().data();
  owned->buffers[1] = owned->numbers.data();
  owned->buffers[2] = address(texts.texts());
  give(std::move(owned), rows, nulls, 3, out);
}

void give_repeating(const ColumnData &data, ArrowArray &out) {
  auto owned = std::make_unique<OwnedArray>();
  Dictionary dictionary;
  dictionary.take(data);
  owned->numbers = dictionary.places();
  owned->bits = data.valid_bits();
  give_texts(dictionary.all(), owned->dictionary);
  if (data.nulls() != 0) owned->buffers[0] = owned->bits.data();
  owned->buffers[1] = address(owned->numbers);
  give(std::move(owned), data.rows(), data.nulls(), 2, out);
}

void give_numbers(ColumnData data, bool as_bits, ArrowArray &out) {
  auto owned = std::make_unique<OwnedArray>();
  owned->data = std::move(data);
  const ColumnData &numbers = owned->data;
  const std::size_t rows = numbers.rows(), nulls = numbers.nulls();
  if (as_bits) owned->bits = bits_of(numbers);
  if (nulls != 0) owned->buffers[0] = numbers.valid_bits().data();
  owned->buffers[1] = as_bits ? address(owned->bits) : address(numbers.numbers());
  give(std::move(owned), rows, nulls, 2, out);
}

void give_column(const Column &column, ColumnData data, ArrowArray &out) {
  if (column.type != ColumnType::text)
    give_numbers(std::move(data), column.type == ColumnType::boolean, out);
  else if (column.repeats)
    give_repeating(data, out);
  else
    give_texts(std::move(data), out);
}

} // namespace

void to_arrow(const std::vector<Column> &columns, ArrowSchema &out) {
  auto table = std::make_unique<OwnedSchema>();
  table->members.resize(columns.size());
  for (std::size_t i = 0; i < columns.size(); ++i) {
    auto owned = std::make_unique<OwnedSchema>();
    owned->name = columns[i].name;
    if (columns[i].repeats) give(std::make_unique<OwnedSchema>(), "u", owned->dictionary);
    give(std::move(owned), format_of(columns[i]), table->members[i]);
  }
  give(std::move(table), "+s", out);
  out.flags = 0; // a table has no rows that are null
}

Result<void> to_arrow(const std::vector<Column> &columns, Batch batch, ArrowArray &out) {
  for (std::size_t i = 0; i < columns.size(); ++i)
    if (batch.columns[i].texts().size() > std::size_t{std::numeric_limits<std::int32_t>::max()})
      return base::over_limit("the texts of column " + columns[i].name + " in a batch of " +
                              std::to_string(batch.rows) + " events")
          .expected(std::to_string(std::numeric_limits<std::int32_t>::max()) + " bytes or less")
          .found(std::to_string(batch.columns[i].texts().size()));
  auto table = std::make_unique<OwnedArray>();
  table->members.resize(columns.size());
  for (std::size_t i = 0; i < columns.size(); ++i)
    give_column(columns[i], std::move(batch.columns[i]), table->members[i]);
  give(std::move(table), batch.rows, 0, 1, out);
  return {};
}

} // namespace etwrelog::tables
