// An output that exists whole or not at all: written under a temporary name beside the target, synced,
// renamed.
#pragma once

#include "base/platform.hpp"

namespace etwrelog::base {

class OutputFile {
public:
  OutputFile() = default;
  ~OutputFile(); // removes the temporary unless committed
  OutputFile(OutputFile &&other) noexcept;
  OutputFile &operator=(OutputFile &&other) noexcept;

  // Refuses an existing target unless `replace`. The target is not touched before commit().
  static Result<OutputFile> create(const std::string &target, bool replace);

  [[nodiscard]] Result<void> write_at(std::uint64_t offset, Bytes from);
  [[nodiscard]] Result<void> append(Bytes from);
  [[nodiscard]] Result<void> read_at(std::uint64_t offset, MutableBytes into) const; // what was written
  [[nodiscard]] std::uint64_t size() const { return size_; }
  [[nodiscard]] const std::string &target() const { return target_; }

  // Syncs and renames. After success the object is done with the file.
  [[nodiscard]] Result<void> commit();

private:
  base::File file_;
  std::string target_, temporary_;
  std::uint64_t size_ = 0;
  bool replace_ = false;
};

// The error for a target that exists and may not be replaced; also used before any work is done.
[[nodiscard]] Error target_exists(const std::string &target);

} // namespace etwrelog::base
