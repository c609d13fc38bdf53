// PDB files for tests, made of tests/symbols/demo.cpp by clang and lld where they are installed.
#pragma once

#include "etwrelog/symbols.hpp"

#include <optional>
#include <string>

namespace etwrelog::test_support {

struct DemoPdb {
  std::string folder, source; // holds demo.exe, demo.pdb; demo.cpp
  Guid guid{};
  std::uint32_t age = 0;
};
// Nothing where the compiler or the linker is missing. Made once a process. Without `debug` it has publics
// only.
[[nodiscard]] const std::optional<DemoPdb> &demo_pdb(bool debug = true);

[[nodiscard]] std::string read_file(const std::string &path);
void write_file(const std::string &path, const std::string &bytes); // and the folders it lies in
[[nodiscard]] std::string new_folder(const std::string &name); // empty, under the folder for temporary files

} // namespace etwrelog::test_support
