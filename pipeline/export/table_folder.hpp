// A folder with a file for each table. Like any output it is there whole or not at all: it is made under
// another name beside its place, and what a process leaves there that was killed, the next one removes.
#pragma once

#include "base/platform.hpp"
#include "etwrelog/export.hpp"
#include "tables/names.hpp"
#include "tables/table.hpp"

#include <functional>

namespace etwrelog::pipeline {

class TableFolder final : public tables::TableWriter {
public:
  using MakeWriter = std::function<std::unique_ptr<tables::TableWriter>(tables::ByteTarget &target)>;

  // `path`: nothing stands there. `ending` of the files' names, with its dot.
  static Result<std::unique_ptr<TableFolder>> make(const std::string &path, std::string ending,
                                                   MakeWriter make_writer);
  ~TableFolder() override; // what was not finished is removed

  Result<void> add_table(const std::string &name, const std::vector<tables::Column> &columns) override;
  Result<void> write(std::size_t table, const tables::Batch &batch) override;
  // Gives the folder its name.
  Result<void> finish() override;
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; } // of all files

private:
  class File;
  struct Table;
  TableFolder(std::string path, std::string ending, MakeWriter make_writer);
  Result<void> write_pending();

  std::string path_, temporary_, ending_;
  base::File lock_; // tells others that temporary_ is in use
  MakeWriter make_writer_;
  std::vector<std::unique_ptr<Table>> tables_;
  tables::DistinctNames files_; // without their ending
  std::size_t pending_ = 0;     // bytes of rows that wait for more
  std::uint64_t bytes_ = 0;
  std::size_t most_of_file_ = 0; // bytes of it that wait to be written
};

} // namespace etwrelog::pipeline
