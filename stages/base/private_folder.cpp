#include "base/private_folder.hpp"

#include "base/platform.hpp"

#include <random>

#include <fmt/format.h>

namespace etwrelog::base {

PrivateFolder::PrivateFolder(const std::string &file) : file_(file) {
  std::random_device random;
  std::error_code failed;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(failed);
  for (int i = 0; i < 16 && !made_ && !failed; ++i) {
    path_ = folder / fmt::format("etwrelog-{:08x}{:08x}", random(), random());
    made_ = std::filesystem::create_directory(path_, failed) && !failed;
  }
  if (!made_) return;
  std::filesystem::permissions(path_, std::filesystem::perms::owner_all, failed);
  add_temporary(this->file());
  add_temporary(path_.string());
}

PrivateFolder::~PrivateFolder() {
  if (!made_) return;
  forget_temporary(file());
  forget_temporary(path_.string());
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

} // namespace etwrelog::base
