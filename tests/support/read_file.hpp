#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

namespace etwrelog::testing {

// All of it; empty where it is not there.
[[nodiscard]] inline std::vector<std::uint8_t> read_file(const std::string &path) {
  std::vector<std::uint8_t> bytes;
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return bytes;
  bytes.resize(static_cast<std::size_t>(file.tellg()));
  file.seekg(0);
  file.read(reinterpret_cast<char *>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

} // namespace etwrelog::testing
