// A folder of files as an output. Like any it is there whole or not at all: it is made under another name
// beside its place, and what a process leaves there that was killed, the next one removes.
#pragma once

#include "base/platform.hpp"
#include "tables/names.hpp"

#include <cstdint>
#include <string>

namespace etwrelog::pipeline {

class NewFolder {
public:
  // `path`: nothing stands there. `ending` of the files' names, with its dot.
  static Result<NewFolder> make(const std::string &path, std::string ending);
  ~NewFolder(); // what was not committed is removed
  NewFolder(NewFolder &&other) noexcept;
  NewFolder &operator=(NewFolder &&) = delete;

  struct Place {
    std::string path;  // where to write it
    std::string shown; // where it will be
  };
  // Of a new file that is called after `table`, by a name that no other has.
  [[nodiscard]] Place file_for(std::string_view table);
  // Syncs all files and gives the folder its name; how many bytes they have.
  Result<std::uint64_t> commit();

private:
  NewFolder(std::string path, std::string ending) : path_(std::move(path)), ending_(std::move(ending)) {}

  std::string path_, temporary_, ending_;
  base::File lock_;             // tells others that temporary_ is in use
  tables::DistinctNames files_; // without their ending
};

} // namespace etwrelog::pipeline
