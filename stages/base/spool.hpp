// Where bytes wait that cannot be read at any offset, or have no place in memory.
#pragma once

#include "base/input.hpp"
#include "base/mapping.hpp"

namespace etwrelog::base {

// Collects bytes of unknown number into a nameless temporary file.
class Spool {
public:
  // `advice`: of the error where there is no more room; none leaves the one that it has.
  static Result<Spool> create(Advice advice = Advice::temporary_folder);
  [[nodiscard]] Result<void> append(Bytes bytes);
  [[nodiscard]] std::uint64_t size() const { return size_; }
  [[nodiscard]] Result<Mapping> map() const { return Mapping::of(file_); }
  [[nodiscard]] std::unique_ptr<InputBytes> finish(InputName name) &&;

private:
  Spool(File file, Advice advice) : file_(std::move(file)), advice_(advice) {}

  File file_;
  Advice advice_;
  std::uint64_t size_ = 0;
};

} // namespace etwrelog::base
