// PDB files: edits of a good one, where one can be made here, else bytes behind the magic of a PDB. What
// comes of it is made into a table and asked.
#include "symbols/pdb.hpp"
#include "tests/support/symbol_files.hpp"

#include <algorithm>

namespace {

using namespace etwrelog;

const std::string &base() {
  static const std::string file = [] {
    const auto &pdb = test_support::demo_pdb();
    return pdb ? test_support::read_file(pdb->folder + "/demo.pdb")
               : std::string("Microsoft C/C++ MSF 7.00\r\n\x1a\x44S\0\0\0", 32);
  }();
  return file;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  std::vector<std::uint8_t> file(base().begin(), base().end());
  if (file.size() <= 32) file.insert(file.end(), data, data + size);
  // Four bytes an edit: where (blocks of structure are small and lie anywhere), and what.
  for (std::size_t at = 0; file.size() > 32 && at + 4 <= size; at += 4) {
    const std::size_t where =
        (std::size_t{data[at]} | std::size_t{data[at + 1]} << 8 | (std::size_t{data[at + 2]} & 1) << 16) %
        file.size();
    if ((data[at + 2] & 0x80) != 0 && where > 64)
      file.resize(where);
    else
      file[where] = data[at + 3];
  }
  Result<symbols::RawSymbols> raw = symbols::read_pdb(file, "fuzz.pdb");
  if (!raw) {
    (void)raw.error().message();
    return 0;
  }
  const std::vector<std::uint8_t> table = symbols::make_table(std::move(*raw));
  const Result<symbols::TableView> view = symbols::TableView::open(table);
  if (!view) __builtin_trap(); // what we wrote ourselves must open
  SymbolNames names;
  for (std::uint32_t rva = 0x1000; rva < 0x1180; rva += 5)
    (void)view->lookup(rva, names);
  return 0;
}
