// A regular file as bytes in memory, read when they are touched. (platform.cpp holds what it calls.)
#pragma once

#include "etwrelog/bytes.hpp"
#include "etwrelog/error.hpp"

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
  [[nodiscard]] Bytes bytes() const { return bytes_; }

private:
  Bytes bytes_;
};

} // namespace etwrelog::base
