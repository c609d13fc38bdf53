#include "tables/arrow_data.hpp"

#include "base/errors.hpp"

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
  case ColumnType::list: return "+l";
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

void give_column(const Column &column, ArrowSchema &out) {
  auto owned = std::make_unique<OwnedSchema>();
  owned->name = column.name;
  if (column.repeats) give(std::make_unique<OwnedSchema>(), "u", owned->dictionary);
  if (column.type == ColumnType::list)
    give_column({"item", ColumnType::unsigned_integer}, owned->members.emplace_back());
  give(std::move(owned), format_of(column), out);
}

struct OwnedArray : Owned<ArrowArray> {
  std::shared_ptr<const ColumnData> data; // also of a dictionary and of elements, which may be moved out
  std::vector<std::int32_t> offsets;
  std::vector<std::uint8_t> bits;
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

using Shared = std::shared_ptr<const ColumnData>;

// Buffers of no length have an address, too: not every reader takes null for one.
constexpr std::int64_t kNothing = 0;
template <class T> const void *address(const T &buffer) {
  return buffer.empty() ? static_cast<const void *>(&kNothing) : buffer.data();
}

// Of the rows of a column, or of the different texts that they have.
void give_texts(std::unique_ptr<OwnedArray> owned, std::size_t rows, std::size_t nulls, ArrowArray &out) {
  owned->offsets = offsets_of(*owned->data);
  owned->buffers[1] = owned->offsets.data();
  owned->buffers[2] = address(owned->data->texts());
  give(std::move(owned), rows, nulls, 3, out);
}

// Of the rows of a column, or of the elements of its lists.
void give_numbers(std::unique_ptr<OwnedArray> owned, std::size_t rows, std::size_t nulls, ArrowArray &out) {
  owned->buffers[1] = address(owned->data->numbers());
  give(std::move(owned), rows, nulls, 2, out);
}

std::unique_ptr<OwnedArray> own(const Shared &data) {
  auto owned = std::make_unique<OwnedArray>();
  owned->data = data;
  return owned;
}

void give_column(ColumnData column, ArrowArray &out) {
  const auto data = std::make_shared<const ColumnData>(std::move(column));
  const std::size_t rows = data->rows(), nulls = data->nulls();
  std::unique_ptr<OwnedArray> owned = own(data);
  if (nulls != 0) owned->buffers[0] = data->valid_bits().data();
  if (data->repeats()) { // codes are below 2^31, as rows are
    owned->buffers[1] = address(data->codes());
    give_texts(own(data), data->distinct(), 0, owned->dictionary);
    return give(std::move(owned), rows, nulls, 2, out);
  }
  switch (data->type()) {
  case ColumnType::text: return give_texts(std::move(owned), rows, nulls, out);
  case ColumnType::list:
    owned->offsets = offsets_of(*data);
    owned->buffers[1] = owned->offsets.data();
    give_numbers(own(data), data->numbers().size(), 0, owned->members.emplace_back());
    return give(std::move(owned), rows, nulls, 2, out);
  case ColumnType::boolean:
    owned->bits = bits_of(*data);
    owned->buffers[1] = address(owned->bits);
    return give(std::move(owned), rows, nulls, 2, out);
  default: return give_numbers(std::move(owned), rows, nulls, out);
  }
}

} // namespace

std::vector<std::int32_t> offsets_of(const ColumnData &column) {
  std::vector<std::int32_t> offsets;
  offsets.reserve(column.ends().size() + 1);
  offsets.push_back(0);
  for (const std::uint32_t end : column.ends())
    offsets.push_back(static_cast<std::int32_t>(end));
  return offsets;
}

std::vector<std::uint8_t> bits_of(const ColumnData &column) {
  std::vector<std::uint8_t> bits((column.rows() + 7) / 8);
  for (std::size_t i = 0; i < column.rows(); ++i)
    if (column.number(i) != 0) bits[i / 8] = static_cast<std::uint8_t>(bits[i / 8] | 1u << (i % 8));
  return bits;
}

void to_arrow(const std::vector<Column> &columns, ArrowSchema &out) {
  auto table = std::make_unique<OwnedSchema>();
  table->members.resize(columns.size());
  for (std::size_t i = 0; i < columns.size(); ++i)
    give_column(columns[i], table->members[i]);
  give(std::move(table), "+s", out);
  out.flags = 0; // a table has no rows that are null
}

Result<void> to_arrow(const std::vector<Column> &columns, Batch batch, ArrowArray &out) {
  constexpr std::size_t kReach = std::numeric_limits<std::int32_t>::max();
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const bool lists = columns[i].type == ColumnType::list; // texts() is empty where there are none
    const std::size_t size = lists ? batch.columns[i].numbers().size() : batch.columns[i].texts().size();
    if (size > kReach)
      return base::over_limit((lists ? "the lists of column " : "the texts of column ") + columns[i].name +
                              " in a batch of " + std::to_string(batch.rows) + " events")
          .expected(std::to_string(kReach) + (lists ? " elements or less" : " bytes or less"))
          .found(std::to_string(size));
  }
  auto table = std::make_unique<OwnedArray>();
  table->members.resize(columns.size());
  for (std::size_t i = 0; i < columns.size(); ++i)
    give_column(std::move(batch.columns[i]), table->members[i]);
  give(std::move(table), batch.rows, 0, 1, out);
  return {};
}

} // namespace etwrelog::tables
