// The Arrow columnar format (https://arrow.apache.org/docs/format/Columnar.html): metadata in flatbuffers,
// whose tables are built here field by field, bodies as plain aligned buffers. Numbers of fields and unions
// are those of Arrow's Schema.fbs, Message.fbs and File.fbs.
#include "tables/dictionary.hpp"
#include "tables/table.hpp"

#include "etwrelog/bytes.hpp"

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
enum class Type : std::uint8_t { integer = 2, floating_point = 3, utf8 = 5, boolean = 6, timestamp = 10 };
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

AnyTable schema_table(FlatBufferBuilder &b, const std::vector<Column> &columns) {
  std::vector<AnyTable> fields;
  for (const Column &column : columns) {
    Type number{};
    const AnyTable type = type_table(b, column.type, number);
    const AnyTable encoding =
        column.repeats ? dictionary_encoding(b, static_cast<std::int64_t>(&column - columns.data()))
                       : AnyTable();
    const auto name = b.CreateString(column.name);
    const auto children = b.CreateVector(std::vector<AnyTable>());
    const auto start = b.StartTable();
    b.AddOffset(field(0), name);
    b.AddElement<std::uint8_t>(field(1), 1, 0); // nullable
    b.AddElement<std::uint8_t>(field(2), static_cast<std::uint8_t>(number), 0);
    b.AddOffset(field(3), type);
    if (column.repeats) b.AddOffset(field(4), encoding);
    b.AddOffset(field(5), children);
    fields.push_back(AnyTable(b.EndTable(start)));
  }
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
    dictionaries_.resize(columns.size());
    if (file_)
      if (Result<void> put = append({"ARROW1\0\0", 8}); !put) return put;
    FlatBufferBuilder b;
    finish_message(b, Header::schema, schema_table(b, columns_), 0);
    return append_message(b).put;
  }

  Result<void> write(std::size_t, const Batch &batch) override {
    if (batch.rows == 0) return {};
    for (std::size_t i = 0; i < columns_.size(); ++i)
      if (columns_[i].repeats) dictionaries_[i].texts.take(batch.columns[i]);
    // In a stream a reader must know what a batch refers to; a file has its dictionaries at the end.
    if (!file_)
      if (Result<void> put = write_dictionaries(); !put) return put;
    std::vector<FieldNode> nodes;
    std::vector<BufferPlace> places;
    body_.clear();
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const ColumnData &column = batch.columns[i];
      nodes.push_back({static_cast<std::int64_t>(batch.rows), static_cast<std::int64_t>(column.nulls())});
      if (column.nulls() == 0)
        places.push_back({static_cast<std::int64_t>(body_.size()), 0});
      else
        add_buffer(places, column.valid_bits().data(), column.valid_bits().size());
      if (columns_[i].repeats)
        add_buffer(places, dictionaries_[i].texts.places().data(),
                   dictionaries_[i].texts.places().size() * 4);
      else if (columns_[i].type == ColumnType::text)
        add_texts(places, column);
      else if (columns_[i].type == ColumnType::boolean)
        add_bits(places, column);
      else
        add_buffer(places, column.numbers().data(), column.numbers().size() * 8);
    }
    FlatBufferBuilder b;
    const AnyTable header = batch_table(b, batch.rows, nodes, places);
    return append_batch(b, Header::record_batch, header, blocks_);
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
  struct WrittenDictionary {
    Dictionary texts;
    std::size_t rows_written = 0;
    bool written = false;
    // It has grown since it was written, or was never written.
    [[nodiscard]] bool due() const { return !written || texts.all().rows() != rows_written; }
    void done() { rows_written = texts.all().rows(), written = true; }
  };

  static AnyTable batch_table(FlatBufferBuilder &b, std::size_t rows, const std::vector<FieldNode> &nodes,
                              const std::vector<BufferPlace> &places) {
    const auto buffers = b.CreateVectorOfStructs(places);
    const auto lengths = b.CreateVectorOfStructs(nodes);
    const auto start = b.StartTable();
    b.AddElement<std::int64_t>(field(0), static_cast<std::int64_t>(rows), 0);
    b.AddOffset(field(1), lengths);
    b.AddOffset(field(2), buffers);
    return AnyTable(b.EndTable(start));
  }

  // A message whose body is body_.
  Result<void> append_batch(FlatBufferBuilder &b, Header kind, AnyTable header, std::vector<Block> &blocks) {
    finish_message(b, kind, header, static_cast<std::int64_t>(body_.size()));
    const std::int64_t at = static_cast<std::int64_t>(written_);
    Put put = append_message(b);
    if (!put.put) return std::move(put.put);
    blocks.push_back({at, put.metadata, 0, static_cast<std::int64_t>(body_.size())});
    return append(body_);
  }

  // Whole ones, which take the place of those before: not every reader knows deltas.
  Result<void> write_dictionaries() {
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (!columns_[i].repeats || !dictionaries_[i].due()) continue;
      const ColumnData &texts = dictionaries_[i].texts.all();
      body_.clear();
      std::vector<BufferPlace> places{{0, 0}}; // no nulls
      add_texts(places, texts);
      FlatBufferBuilder b;
      const AnyTable data =
          batch_table(b, texts.rows(), {{static_cast<std::int64_t>(texts.rows()), 0}}, places);
      const auto start = b.StartTable();
      b.AddElement<std::int64_t>(field(0), static_cast<std::int64_t>(i), -1);
      b.AddOffset(field(1), data);
      const AnyTable header(b.EndTable(start));
      if (Result<void> put = append_batch(b, Header::dictionary_batch, header, dictionary_blocks_); !put)
        return put;
      dictionaries_[i].done();
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

  void add_buffer(std::vector<BufferPlace> &places, const void *data, std::size_t size) {
    places.push_back({static_cast<std::int64_t>(body_.size()), static_cast<std::int64_t>(size)});
    body_.append(static_cast<const char *>(data), size);
    body_.append(align8(body_.size()) - body_.size(), '\0');
  }

  void add_texts(std::vector<BufferPlace> &places, const ColumnData &column) {
    std::vector<std::uint32_t> offsets{0};
    offsets.insert(offsets.end(), column.ends().begin(), column.ends().end());
    add_buffer(places, offsets.data(), offsets.size() * 4);
    add_buffer(places, column.texts().data(), column.texts().size());
  }

  void add_bits(std::vector<BufferPlace> &places, const ColumnData &column) {
    std::vector<std::uint8_t> bits((column.rows() + 7) / 8);
    for (std::size_t i = 0; i < column.rows(); ++i)
      if (column.number(i) != 0) bits[i / 8] = static_cast<std::uint8_t>(bits[i / 8] | 1u << (i % 8));
    add_buffer(places, bits.data(), bits.size());
  }

  ByteTarget &target_;
  bool file_;
  std::vector<Column> columns_;
  std::vector<WrittenDictionary> dictionaries_; // by column
  std::vector<Block> blocks_, dictionary_blocks_;
  std::string body_;
  std::uint64_t written_ = 0;
};

} // namespace

std::unique_ptr<TableWriter> arrow_writer(ByteTarget &target, bool file) {
  return std::make_unique<ArrowWriter>(target, file);
}

} // namespace etwrelog::tables
