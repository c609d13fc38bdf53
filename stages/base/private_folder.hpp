// Files for a while that hold what traces hold: nobody else is to read them.
#pragma once

#include "base/platform.hpp"

#include <string>

namespace etwrelog::base {

// A folder of our own among those for temporary files ($TMPDIR), which nobody else can look into. Gone when
// this is, with all that is in it; remove_unfinished_outputs() removes it, and `file` in it. What a process
// leaves that is killed the next one removes that makes such a folder.
class PrivateFolder {
public:
  [[nodiscard]] static Result<PrivateFolder> make(const std::string &file);
  ~PrivateFolder();
  PrivateFolder(PrivateFolder &&other) noexcept;
  PrivateFolder &operator=(PrivateFolder &&) = delete;

  [[nodiscard]] const std::string &file() const { return file_; }
  [[nodiscard]] std::string in(const std::string &name) const { return path_ + "/" + name; }

private:
  PrivateFolder(File lock, std::string path, const std::string &file);

  File lock_; // says that this process lives
  std::string path_, file_;
};

} // namespace etwrelog::base
