// What is unpacked, in a temporary file: of some servers' PDBs several at once have no place in memory.
#pragma once

#include "base/mapping.hpp"

namespace etwrelog::symbols {

// Appended to first, then mapped.
class Spool {
public:
  static Result<Spool> create() {
    Result<base::File> file = base::File::create_spool();
    if (!file) return std::move(file).error();
    return Spool(std::move(*file));
  }
  [[nodiscard]] Result<void> append(Bytes bytes) {
    Result<void> written = file_.write_at(size_, bytes);
    if (written) size_ += bytes.size();
    return written;
  }
  [[nodiscard]] std::uint64_t size() const { return size_; }
  [[nodiscard]] Result<base::Mapping> map() const { return base::Mapping::of(file_); }

private:
  explicit Spool(base::File file) : file_(std::move(file)) {}

  base::File file_;
  std::uint64_t size_ = 0;
};

} // namespace etwrelog::symbols
