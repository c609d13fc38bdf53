#include "export/new_folder.hpp"

#include "base/errors.hpp"

#include <filesystem>
#include <system_error>
#include <utility>

namespace etwrelog::pipeline {
namespace {

// How large the file is, which is on the disk then.
Result<std::uint64_t> sync_file(const std::string &path) {
  ETWRELOG_TRY_LET(file, base::File::open_read(path));
  ETWRELOG_TRY(file.sync());
  return file.size();
}

// With the name that people know.
Error shown_as(const std::string &name, Error error) {
  error.file = name;
  return error;
}

} // namespace

Result<NewFolder> NewFolder::make(const std::string &path, std::string ending) {
  std::string name = path;
  while (name.size() > 1 && name.back() == '/')
    name.pop_back();
  if (name.empty()) return base::bad_option(Option::output, "the name of the folder is empty");
  if (base::exists(name))
    return base::io_failure("exists already; a folder is never replaced").in(name).about(Option::output);
  NewFolder folder(name, std::move(ending));
  ETWRELOG_TRY_LET(lock, base::File::create_folder_beside(name, folder.temporary_));
  folder.lock_ = std::move(lock);
  return folder;
}

NewFolder::NewFolder(NewFolder &&other) noexcept
    : path_(std::move(other.path_)), temporary_(std::exchange(other.temporary_, {})),
      ending_(std::move(other.ending_)), lock_(std::move(other.lock_)), files_(std::move(other.files_)) {}

NewFolder::~NewFolder() {
  if (temporary_.empty()) return;
  std::error_code ignored;
  std::filesystem::remove_all(temporary_, ignored);
}

NewFolder::Place NewFolder::file_for(std::string_view table) {
  constexpr std::size_t kLongest = 200; // file systems take some 255 bytes, with a number and the ending
  const std::string file = files_.give(table.substr(0, kLongest), "_") + ending_;
  return {temporary_ + "/" + file, path_ + "/" + file};
}

Result<std::uint64_t> NewFolder::commit() {
  std::uint64_t bytes = 0;
  std::error_code failed;
  std::filesystem::directory_iterator files(temporary_, failed);
  for (; !failed && files != std::filesystem::directory_iterator(); files.increment(failed)) {
    const Result<std::uint64_t> size = sync_file(files->path().string());
    if (!size) return shown_as(path_ + "/" + files->path().filename().string(), size.error());
    bytes += *size;
  }
  if (failed) return base::io_failure("cannot be listed: " + failed.message()).in(path_);
  if (const Result<void> done = base::sync_folder(temporary_); !done) return shown_as(path_, done.error());
  if (base::exists(path_)) return base::io_failure("exists already").in(path_).about(Option::output);
  std::filesystem::rename(temporary_, path_, failed);
  if (failed) return base::io_failure("cannot be given its name: " + failed.message()).in(path_);
  temporary_.clear();
  const std::string parent = std::filesystem::path(path_).parent_path().string();
  ETWRELOG_TRY(base::sync_folder(parent.empty() ? "." : parent));
  return bytes;
}

} // namespace etwrelog::pipeline
