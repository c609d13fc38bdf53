// Compressed files of symbol stores, pointers to files, symbol paths, decorated names: text and bytes from
// elsewhere.
#include "symbols/cabinet.hpp"
#include "symbols/pdb.hpp"
#include "symbols/search.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  using namespace etwrelog;
  std::vector<std::uint8_t> file{'M', 'S', 'C', 'F', 0, 0, 0, 0};
  file.insert(file.end(), data, data + size);
  (void)static_cast<bool>(symbols::open_cabinet(file, 1u << 20));
  const std::string_view text(reinterpret_cast<const char *>(data), size);
  (void)symbols::parse_file_pointer(text);
  std::vector<std::string> warnings;
  (void)symbols::parse_symbol_path(text, "/down", warnings);
  (void)symbols::pdb_file_name(text);
  (void)symbols::undecorated("?" + std::string(text.substr(0, 200)), false);
  (void)symbols::undecorated(text.substr(0, 200), true);
  return 0;
}
