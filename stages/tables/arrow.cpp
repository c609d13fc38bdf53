// The Arrow columnar format (https://arrow.apache.org/docs/format/Columnar.html): metadata in flatbuffers,
// whose tables are built here field by field, bodies as plain aligned buffers. Numbers of fields and unions
// are those of Arrow's Schema.fbs, Message.fbs and File.fbs.
#include "tables/arrow_data.hpp"

#include "etwrelog/bytes.hpp"

#include <deque>
#include <optional>
#include <string_view>

#include <flatbuffers/flatbuffers.h>

namespace etwrelog::tables {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;
using AnyTable = Offset<void>;

// The place of a flatbuffers table's n-th field in its vtable.
constexpr flatbuffers::voffset_t field(unsigned n) {
  return static_cast<flatbuffers::voffset_t>(4 + 2 * n);
}

constexpr std::int16_t kVersion5 = 4;
enum class Header : std::uint8_t { schema = 1, dictionary_batch = 2, record_batch = 3 };
enum class Type : std::uint8_t {
  integer = 2,
  floating_point = 3,
  utf8 = 5,
  boolean = 6,
  timestamp = 10,
  list = 12
};
constexpr std::int16_t kDouble = 2, kNanoseconds = 3;

struct FieldNode {
  std::int64_t length, null_count;
};
struct BufferPlace {
  std::int64_t offset, length;
};
struct Block {
  std::int64_t offset;
  std::int32_t metadata_length, padding;
  std::int64_t body_length;
};

AnyTable type_table(FlatBufferBuilder &b, ColumnType type, Type &number) {
  switch (type) {
  case ColumnType::integer:
  case ColumnType::unsigned_integer: {
    number = Type::integer;
    const auto start = b.StartTable();
    b.AddElement<std::int32_t>(field(0), 64, 0);
    b.AddElement<std::uint8_t>(field(1), type == ColumnType::integer, 0);
    return AnyTable(b.EndTable(start));
  }
  case ColumnType::real: {
    number = Type::floating_point;
    const auto start = b.StartTable();
    b.AddElement<std::int16_t>(field(0), kDouble, 0);
    return AnyTable(b.EndTable(start));
  }
  case ColumnType::timestamp: {
    number = Type::timestamp;
    const auto zone = b.CreateString("UTC");
    const auto start = b.StartTable();
    b.AddElement<std::int16_t>(field(0), kNanoseconds, 0);
    b.AddOffset(field(1), zone);
    return AnyTable(b.EndTable(start));
  }
  case ColumnType::boolean: number = Type::boolean; break;
  case ColumnType::text: number = Type::utf8; break;
  case ColumnType::list: number = Type::list; break;
  }
  const auto start = b.StartTable();
  return AnyTable(b.EndTable(start));
}

// The column's values are places in the dictionary of this number, as signed 32-bit integers.
AnyTable dictionary_encoding(FlatBufferBuilder &b, std::int64_t id) {
  const auto index = b.StartTable();
  b.AddElement<std::int32_t>(field(0), 32, 0);
  b.AddElement<std::uint8_t>(field(1), 1, 0);
  const AnyTable type(b.EndTable(index));
  const auto start = b.StartTable();
  b.AddElement<std::int64_t>(field(0), id, -1); // written also where it is the default
  b.AddOffset(field(1), type);
  return AnyTable(b.EndTable(start));
}

// `dictionary`: the number of its own.
AnyTable field_table(FlatBufferBuilder &b, const Column &column, std::int64_t dictionary) {
  Type number{};
  const AnyTable type = type_table(b, column.type, number);
  const AnyTable encoding = column.repeats ? dictionary_encoding(b, dictionary) : AnyTable();
  std::vector<AnyTable> members;
  if (column.type == ColumnType::list)
    members.push_back(field_table(b, {"item", ColumnType::unsigned_integer}, 0));
  const auto name = b.CreateString(column.name);
  const auto children = b.CreateVector(members);
  const auto start = b.StartTable();
  b.AddOffset(field(0), name);
  b.AddElement<std::uint8_t>(field(1), 1, 0); // nullable
  b.AddElement<std::uint8_t>(field(2), static_cast<std::uint8_t>(number), 0);
  b.AddOffset(field(3), type);
  if (column.repeats) b.AddOffset(field(4), encoding);
  b.AddOffset(field(5), children);
  return AnyTable(b.EndTable(start));
}

AnyTable schema_table(FlatBufferBuilder &b, const std::vector<Column> &columns) {
  std::vector<AnyTable> fields;
  for (std::size_t i = 0; i < columns.size(); ++i)
    fields.push_back(field_table(b, columns[i], static_cast<std::int64_t>(i)));
  const auto list = b.CreateVector(fields);
  const auto start = b.StartTable();
  b.AddElement<std::int16_t>(field(0), 0, 1); // little-endian, written although it is the default
  b.AddOffset(field(1), list);
  return AnyTable(b.EndTable(start));
}

void finish_message(FlatBufferBuilder &b, Header kind, AnyTable header, std::int64_t body) {
  const auto start = b.StartTable();
  b.AddElement<std::int16_t>(field(0), kVersion5, 0);
  b.AddElement<std::uint8_t>(field(1), static_cast<std::uint8_t>(kind), 0);
  b.AddOffset(field(2), header);
  b.AddElement<std::int64_t>(field(3), body, 0);
  b.Finish(AnyTable(b.EndTable(start)));
}

class ArrowWriter final : public TableWriter {
public:
  ArrowWriter(ByteTarget &target, bool file) : target_(target), file_(file) {}

  Result<void> add_table(const std::string &, const std::vector<Column> &columns) override {
    columns_ = columns;
    tell_apart(columns_);
    dictionaries_.resize(columns.size());
    written_texts_.resize(columns.size());
    if (file_)
      if (Result<void> put = append({"ARROW1\0\0", 8}); !put) return put;
    FlatBufferBuilder b;
    finish_message(b, Header::schema, schema_table(b, columns_), 0);
    return append_message(b).put;
  }

  Result<void> write(std::size_t, const Batch &batch) override {
    if (batch.rows == 0) return {};
    body_.clear();
    for (std::size_t i = 0; i < columns_.size(); ++i)
      add_column(batch.columns[i], dictionaries_[i]);
    // In a stream a reader must know what a batch refers to; a file has its dictionaries at the end.
    if (!file_) {
      Body rows = std::move(body_);
      if (Result<void> put = write_dictionaries(); !put) return put;
      body_ = std::move(rows);
    }
    FlatBufferBuilder b;
    return append_batch(b, Header::record_batch, batch_table(b, batch.rows), blocks_);
  }

  Result<void> finish() override {
    // Also of columns without a text, and of a stream without a batch.
    if (Result<void> put = write_dictionaries(); !put) return put;
    const std::string end("\xFF\xFF\xFF\xFF\0\0\0\0", 8);
    if (Result<void> put = append(end); !put) return put;
    if (!file_) return {};
    FlatBufferBuilder b;
    const AnyTable schema = schema_table(b, columns_);
    const auto batches = b.CreateVectorOfStructs(blocks_);
    const auto dictionaries = b.CreateVectorOfStructs(dictionary_blocks_);
    const auto start = b.StartTable();
    b.AddElement<std::int16_t>(field(0), kVersion5, 0);
    b.AddOffset(field(1), schema);
    b.AddOffset(field(2), dictionaries);
    b.AddOffset(field(3), batches);
    b.Finish(AnyTable(b.EndTable(start)));
    std::string footer(reinterpret_cast<const char *>(b.GetBufferPointer()), b.GetSize());
    std::uint8_t size[4];
    store(size, static_cast<std::uint32_t>(footer.size()));
    footer.append(reinterpret_cast<const char *>(size), 4);
    footer += "ARROW1";
    return append(footer);
  }

private:
  // What stands behind the metadata of a message: buffers that lie elsewhere, each filled up to 8 bytes.
  struct Body {
    std::vector<FieldNode> nodes;
    std::vector<BufferPlace> places;
    std::vector<std::string_view> buffers;
    std::deque<std::string> made; // buffers that do not lie elsewhere
    std::size_t size = 0;

    void clear() { *this = {}; }
    void node(std::size_t rows, std::size_t nulls) {
      nodes.push_back({static_cast<std::int64_t>(rows), static_cast<std::int64_t>(nulls)});
    }
    void add(const void *data, std::size_t bytes) {
      places.push_back({static_cast<std::int64_t>(size), static_cast<std::int64_t>(bytes)});
      buffers.emplace_back(static_cast<const char *>(data), bytes);
      size += align8(bytes);
    }
    template <class T> void add(std::span<const T> values) { add(values.data(), values.size_bytes()); }
    template <class T> void add_copy(std::span<const T> values) {
      const std::string &copy =
          made.emplace_back(reinterpret_cast<const char *>(values.data()), values.size_bytes());
      add(copy.data(), copy.size());
    }
    void add_offsets(const ColumnData &column) {
      add_copy(std::span<const std::int32_t>(offsets_of(column)));
    }
    void add_bits(const ColumnData &column) { add_copy(std::span<const std::uint8_t>(bits_of(column))); }
  };

  void add_column(const ColumnData &column, Dictionary &dictionary) {
    body_.node(column.rows(), column.nulls());
    if (column.nulls() == 0)
      body_.add(nullptr, 0);
    else
      body_.add(std::span(column.valid_bits()));
    if (column.repeats()) return body_.add(dictionary.take(column));
    switch (column.type()) {
    case ColumnType::text: body_.add_offsets(column); return body_.add(std::span(column.texts()));
    case ColumnType::list:
      body_.add_offsets(column);
      body_.node(column.numbers().size(), 0);
      body_.add(nullptr, 0);
      return body_.add(std::span(column.numbers()));
    case ColumnType::boolean: return body_.add_bits(column);
    default: return body_.add(std::span(column.numbers()));
    }
  }

  // Of what body_ holds.
  AnyTable batch_table(FlatBufferBuilder &b, std::size_t rows) const {
    const auto buffers = b.CreateVectorOfStructs(body_.places);
    const auto lengths = b.CreateVectorOfStructs(body_.nodes);
    const auto start = b.StartTable();
    b.AddElement<std::int64_t>(field(0), static_cast<std::int64_t>(rows), 0);
    b.AddOffset(field(1), lengths);
    b.AddOffset(field(2), buffers);
    return AnyTable(b.EndTable(start));
  }

  // A message whose body is body_.
  Result<void> append_batch(FlatBufferBuilder &b, Header kind, AnyTable header, std::vector<Block> &blocks) {
    finish_message(b, kind, header, static_cast<std::int64_t>(body_.size));
    const std::int64_t at = static_cast<std::int64_t>(written_);
    Put put = append_message(b);
    if (!put.put) return std::move(put.put);
    blocks.push_back({at, put.metadata, 0, static_cast<std::int64_t>(body_.size)});
    for (const std::string_view buffer : body_.buffers) {
      if (Result<void> done = append(buffer); !done) return done;
      if (Result<void> done =
              append(std::string_view("\0\0\0\0\0\0\0", align8(buffer.size()) - buffer.size()));
          !done)
        return done;
    }
    return {};
  }

  // Whole ones, which take the place of those before: not every reader knows deltas.
  Result<void> write_dictionaries() {
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const ColumnData &texts = dictionaries_[i].all();
      if (!columns_[i].repeats || written_texts_[i] == texts.distinct()) continue;
      body_.clear();
      body_.node(texts.distinct(), 0);
      body_.add(nullptr, 0);
      body_.add_offsets(texts);
      body_.add(std::span(texts.texts()));
      FlatBufferBuilder b;
      const AnyTable data = batch_table(b, texts.distinct());
      const auto start = b.StartTable();
      b.AddElement<std::int64_t>(field(0), static_cast<std::int64_t>(i), -1);
      b.AddOffset(field(1), data);
      const AnyTable header(b.EndTable(start));
      if (Result<void> put = append_batch(b, Header::dictionary_batch, header, dictionary_blocks_); !put)
        return put;
      written_texts_[i] = texts.distinct();
    }
    return {};
  }

  struct Put {
    Result<void> put;
    std::int32_t metadata = 0; // bytes of the message with its prefix and padding
  };

  Put append_message(const FlatBufferBuilder &b) {
    std::string message("\xFF\xFF\xFF\xFF", 4);
    const std::size_t padded = align8(b.GetSize());
    std::uint8_t size[4];
    store(size, static_cast<std::uint32_t>(padded));
    message.append(reinterpret_cast<const char *>(size), 4);
    message.append(reinterpret_cast<const char *>(b.GetBufferPointer()), b.GetSize());
    message.append(padded - b.GetSize(), '\0');
    return {append(message), static_cast<std::int32_t>(message.size())};
  }

  Result<void> append(std::string_view bytes) {
    written_ += bytes.size();
    return target_.append(bytes);
  }

  ByteTarget &target_;
  bool file_;
  std::vector<Column> columns_;
  std::vector<Dictionary> dictionaries_;                  // by column
  std::vector<std::optional<std::size_t>> written_texts_; // by column: of its dictionary, so far
  std::vector<Block> blocks_, dictionary_blocks_;
  Body body_;
  std::uint64_t written_ = 0;
};

} // namespace

std::unique_ptr<TableWriter> arrow_writer(ByteTarget &target, bool file) {
  return std::make_unique<ArrowWriter>(target, file);
}

} // namespace etwrelog::tables
