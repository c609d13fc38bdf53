// Zip files for tests, made by libarchive or byte by byte.
#pragma once

#include "etwrelog/bytes.hpp"

#include <string>
#include <utility>
#include <vector>

namespace etwrelog::testing {

using ZipMember = std::pair<std::string, std::vector<std::uint8_t>>; // name and content

[[nodiscard]] std::vector<std::uint8_t> zip_of(const std::vector<ZipMember> &members);

// Stored members, of which all that other programs may write can be said.
struct StoredZip {
  enum class Sizes : std::uint8_t { known, described, described_without_mark, large, described_large };

  std::vector<ZipMember> members;
  unsigned flags = 0, method = 0, made_on = 3;
  Sizes sizes = Sizes::known;
  bool large_end = false; // a zip64 end of central directory
  std::string comment = {};
  std::uint32_t attributes = 0;

  [[nodiscard]] std::vector<std::uint8_t> bytes() const;
};

} // namespace etwrelog::testing
