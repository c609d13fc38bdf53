// Files that are read at any offset, and where bytes wait that cannot be.
#pragma once

#include "base/platform.hpp"
#include "read/input.hpp"

namespace etwrelog::read {

// Collects bytes of unknown number into a nameless temporary file.
class Spool {
public:
  static Result<Spool> create();
  [[nodiscard]] Result<void> append(Bytes bytes);
  [[nodiscard]] std::uint64_t size() const { return size_; }
  [[nodiscard]] std::unique_ptr<Input> finish(InputName name) &&;

private:
  base::File file_;
  std::uint64_t size_ = 0;
};

} // namespace etwrelog::read
