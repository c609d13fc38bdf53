// PDB files for tests, made of tests/symbols/demo.cpp by clang and lld where they are installed.
#pragma once

#include "etwrelog/symbols.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace etwrelog::test_support {

struct DemoPdb {
  std::string folder, source; // holds demo.exe, demo.pdb; demo.cpp
  Guid guid{};
  std::uint32_t age = 0;
};
// Nothing where the compiler or the linker is missing. Made once a process. Without `debug` it has publics
// only.
[[nodiscard]] const std::optional<DemoPdb> &demo_pdb(bool debug = true);

struct Place { // one frame
  std::string function, file;
  std::uint32_t line = 0;
};
// What llvm-symbolizer says of each address of the program's code, by RVA: innermost frame first; none where
// it knows nothing, or no line: that is padding behind the functions. LLVM 14 gives some lines of inlined
// calls the line behind theirs, so only their functions count. Empty where there is no llvm-symbolizer.
[[nodiscard]] std::map<std::uint32_t, std::vector<Place>> symbolizer_answers(const DemoPdb &pdb);

[[nodiscard]] std::string read_file(const std::string &path);
void write_file(const std::string &path, const std::string &bytes); // and the folders it lies in
[[nodiscard]] std::string new_folder(const std::string &name); // empty, under the folder for temporary files

} // namespace etwrelog::test_support
