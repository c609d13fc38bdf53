// A folder with a file for each table.
#pragma once

#include "export/new_folder.hpp"
#include "tables/table.hpp"

#include <functional>
#include <memory>
#include <vector>

namespace etwrelog::pipeline {

class TableFolder final : public tables::TableWriter {
public:
  using MakeWriter = std::function<std::unique_ptr<tables::TableWriter>(tables::ByteTarget &target)>;

  // `make_writer` of one file; what is not finished is removed.
  TableFolder(NewFolder folder, MakeWriter make_writer);
  ~TableFolder() override;

  Result<void> add_table(const std::string &name, const std::vector<tables::Column> &columns) override;
  Result<void> write(std::size_t table, const tables::Batch &batch) override;
  // Gives the folder its name.
  Result<void> finish() override;
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; } // of all files, when it is finished

private:
  class File;
  struct Table;
  Result<void> write_pending();

  NewFolder folder_;
  MakeWriter make_writer_;
  std::vector<std::unique_ptr<Table>> tables_;
  std::size_t pending_ = 0; // bytes of rows that wait for more
  std::uint64_t bytes_ = 0;
  std::size_t most_of_file_ = 0; // bytes of it that wait to be written
};

} // namespace etwrelog::pipeline
