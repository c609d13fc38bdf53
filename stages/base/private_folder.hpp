// Files for a while that hold what traces hold: nobody else is to read them.
#pragma once

#include <filesystem>
#include <string>

namespace etwrelog::base {

// A folder of our own among those for temporary files ($TMPDIR), which nobody else can look into. Gone when
// this is, with all that is in it; remove_unfinished_outputs() removes it, and `file` in it.
class PrivateFolder {
public:
  explicit PrivateFolder(const std::string &file);
  ~PrivateFolder();
  PrivateFolder(const PrivateFolder &) = delete;
  PrivateFolder &operator=(const PrivateFolder &) = delete;

  // False where no folder could be made: no file can be made in it then.
  [[nodiscard]] bool made() const { return made_; }
  [[nodiscard]] std::string file() const { return in(file_); }
  [[nodiscard]] std::string in(const std::string &name) const { return (path_ / name).string(); }

private:
  std::filesystem::path path_;
  std::string file_;
  bool made_ = false;
};

} // namespace etwrelog::base
