#include "export/table_folder.hpp"

#include "base/errors.hpp"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <system_error>

namespace etwrelog::pipeline {
namespace {

constexpr std::size_t kMostPending = 32u << 20; // of rows of all tables
constexpr std::size_t kRowsOfBatch = 16'384;    // what is less waits, as long as there is room
constexpr std::size_t kMostBytes = 64u << 20, kBytesOfFile = 1u << 20; // of texts of all files, and of one

} // namespace

// Opened for each piece: there may be more kinds of events than a process may have files.
class TableFolder::File final : public tables::ByteTarget {
public:
  File(NewFolder::Place place, const std::size_t &most) : place_(std::move(place)), most_(most) {}
  Result<void> append(std::string_view bytes) override {
    if (text_.size() + bytes.size() > most_) return put(bytes);
    text_ += bytes;
    return {};
  }
  Result<void> put(std::string_view more) {
    errno = 0;
    std::ofstream file(place_.path, std::ios::binary | std::ios::app);
    file.write(text_.data(), static_cast<std::streamsize>(text_.size()));
    file.write(more.data(), static_cast<std::streamsize>(more.size())).flush();
    text_.clear();
    if (file) return {};
    const int reason = errno;
    return base::io_failure("cannot write" +
                            (reason == 0 ? std::string() : ": " + std::generic_category().message(reason)))
        .in(place_.shown);
  }

private:
  NewFolder::Place place_;
  std::string text_;
  const std::size_t &most_; // of text_
};

struct TableFolder::Table {
  Table(NewFolder::Place place, const std::vector<tables::Column> &columns, const TableFolder &folder)
      : file(std::move(place), folder.most_of_file_), pending(columns) {}
  File file;
  std::unique_ptr<tables::TableWriter> writer;
  tables::Batch pending;
};

TableFolder::TableFolder(NewFolder folder, MakeWriter make_writer)
    : folder_(std::move(folder)), make_writer_(std::move(make_writer)) {}

TableFolder::~TableFolder() = default;

Result<void> TableFolder::add_table(const std::string &name, const std::vector<tables::Column> &columns) {
  Table &table = *tables_.emplace_back(std::make_unique<Table>(folder_.file_for(name), columns, *this));
  most_of_file_ = std::min(kBytesOfFile, kMostBytes / tables_.size());
  table.writer = make_writer_(table.file);
  return table.writer->add_table(name, columns);
}

// Batches of some size read faster and take less room. Which rows go together depends on the trace alone.
Result<void> TableFolder::write(std::size_t number, const tables::Batch &batch) {
  Table &table = *tables_[number];
  if (table.pending.rows == 0 && batch.rows >= kRowsOfBatch / 4) return table.writer->write(0, batch);
  for (std::size_t i = 0; i < batch.columns.size(); ++i) {
    const std::size_t before = table.pending.columns[i].bytes();
    table.pending.columns[i].append(batch.columns[i]);
    pending_ += table.pending.columns[i].bytes() - before;
  }
  table.pending.rows += batch.rows;
  if (pending_ > kMostPending) return write_pending();
  if (table.pending.rows < kRowsOfBatch) return {};
  for (const tables::ColumnData &column : table.pending.columns)
    pending_ -= column.bytes();
  ETWRELOG_TRY(table.writer->write(0, table.pending));
  table.pending.clear();
  return {};
}

Result<void> TableFolder::write_pending() {
  for (const std::unique_ptr<Table> &table : tables_) {
    ETWRELOG_TRY(table->writer->write(0, table->pending));
    table->pending.clear();
  }
  pending_ = 0;
  return {};
}

Result<void> TableFolder::finish() {
  ETWRELOG_TRY(write_pending());
  for (const std::unique_ptr<Table> &table : tables_) {
    ETWRELOG_TRY(table->writer->finish());
    ETWRELOG_TRY(table->file.put({}));
  }
  ETWRELOG_TRY_LET(bytes, folder_.commit());
  bytes_ = bytes;
  return {};
}

} // namespace etwrelog::pipeline
