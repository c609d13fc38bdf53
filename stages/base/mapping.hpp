// A regular file as bytes in memory, read when they are touched. (platform.cpp holds what it calls.)
#pragma once

#include "base/platform.hpp"

#include <string>

namespace etwrelog::base {

// Who cuts the file short meanwhile ends this process: for files that are replaced as a whole, as everything
// in a cache is.
class Mapping {
public:
  Mapping() = default;
  ~Mapping();
  Mapping(Mapping &&other) noexcept;
  Mapping &operator=(Mapping &&other) noexcept;

  static Result<Mapping> open(const std::string &path);
  static Result<Mapping> of(const File &file); // lives on when that is closed
  [[nodiscard]] Bytes bytes() const { return bytes_; }

private:
  static Result<Mapping> map_all(int handle, const std::string &name);

  Bytes bytes_;
};

} // namespace etwrelog::base
