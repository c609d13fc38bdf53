#include "base/private_folder.hpp"

#include "base/errors.hpp"

#include <filesystem>
#include <utility>

namespace etwrelog::base {

Result<PrivateFolder> PrivateFolder::make(const std::string &file) {
  std::string path;
  ETWRELOG_TRY_LET(lock, File::create_private_folder(path));
  return PrivateFolder(std::move(lock), std::move(path), file);
}

PrivateFolder::PrivateFolder(File lock, std::string path, const std::string &file)
    : lock_(std::move(lock)), path_(std::move(path)), file_(in(file)) {
  add_temporary(file_);
  add_temporary(path_);
}

PrivateFolder::PrivateFolder(PrivateFolder &&other) noexcept
    : lock_(std::move(other.lock_)), path_(std::exchange(other.path_, {})), file_(std::move(other.file_)) {}

PrivateFolder::~PrivateFolder() {
  if (path_.empty()) return;
  forget_temporary(file_);
  forget_temporary(path_);
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

} // namespace etwrelog::base
