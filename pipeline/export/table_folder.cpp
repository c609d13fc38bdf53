#include "export/table_folder.hpp"

#include "base/errors.hpp"
#include "base/platform.hpp"

#include <algorithm>
#include <cerrno>
#include <filesystem>
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
  // `shown`: where it will be when all is done.
  File(std::string name, std::string shown, std::uint64_t &bytes, const std::size_t &most)
      : name_(std::move(name)), shown_(std::move(shown)), bytes_(bytes), most_(most) {}
  Result<void> append(std::string_view bytes) override {
    bytes_ += bytes.size();
    if (text_.size() + bytes.size() > most_) return put(bytes);
    text_ += bytes;
    return {};
  }
  Result<void> put(std::string_view more) {
    errno = 0;
    std::ofstream file(name_, std::ios::binary | std::ios::app);
    file.write(text_.data(), static_cast<std::streamsize>(text_.size()));
    file.write(more.data(), static_cast<std::streamsize>(more.size())).flush();
    text_.clear();
    if (file) return {};
    const int reason = errno;
    return base::io_failure("cannot write" +
                            (reason == 0 ? std::string() : ": " + std::generic_category().message(reason)))
        .in(shown_);
  }
  // On the disk, not only written.
  Result<void> sync() {
    ETWRELOG_TRY(put({}));
    ETWRELOG_TRY_LET(file, base::File::open_read(name_));
    return file.sync();
  }

private:
  std::string name_, shown_, text_;
  std::uint64_t &bytes_;
  const std::size_t &most_; // of text_
};

struct TableFolder::Table {
  Table(const std::string &file_name, const std::vector<tables::Column> &columns, TableFolder &folder)
      : file(folder.temporary_ + "/" + file_name, folder.path_ + "/" + file_name, folder.bytes_,
             folder.most_of_file_),
        pending(columns) {}
  File file;
  std::unique_ptr<tables::TableWriter> writer;
  tables::Batch pending;
};

TableFolder::TableFolder(std::string path, std::string ending, MakeWriter make_writer)
    : path_(std::move(path)), ending_(std::move(ending)), make_writer_(std::move(make_writer)) {}

Result<std::unique_ptr<TableFolder>> TableFolder::make(const std::string &path, std::string ending,
                                                       MakeWriter make_writer) {
  std::string name = path;
  while (name.size() > 1 && name.back() == '/')
    name.pop_back();
  if (name.empty()) return base::bad_option(Option::output, "the name of the folder is empty");
  if (base::exists(name))
    return base::io_failure("exists already; a folder is never replaced").in(name).about(Option::output);
  std::unique_ptr<TableFolder> folder(new TableFolder(name, std::move(ending), std::move(make_writer)));
  ETWRELOG_TRY_LET(lock, base::File::create_folder_beside(name, folder->temporary_));
  folder->lock_ = std::move(lock);
  return folder;
}

TableFolder::~TableFolder() {
  if (temporary_.empty()) return;
  std::error_code ignored;
  std::filesystem::remove_all(temporary_, ignored);
}

Result<void> TableFolder::add_table(const std::string &name, const std::vector<tables::Column> &columns) {
  constexpr std::size_t kLongest = 200; // file systems take some 255 bytes, with a number and the ending
  const std::string file = files_.give(std::string_view(name).substr(0, kLongest), "_");
  Table &table = *tables_.emplace_back(std::make_unique<Table>(file + ending_, columns, *this));
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
    ETWRELOG_TRY(table->file.sync());
  }
  ETWRELOG_TRY(base::sync_folder(temporary_));
  if (base::exists(path_)) return base::io_failure("exists already").in(path_).about(Option::output);
  std::error_code failed;
  std::filesystem::rename(temporary_, path_, failed);
  if (failed) return base::io_failure("cannot be given its name: " + failed.message()).in(path_);
  temporary_.clear();
  const std::string parent = std::filesystem::path(path_).parent_path().string();
  return base::sync_folder(parent.empty() ? "." : parent);
}

} // namespace etwrelog::pipeline
