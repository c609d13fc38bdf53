// Where PDB files can be: the syntax of _NT_SYMBOL_PATH, the layout of symbol stores.
#pragma once

#include "base/cut_text.hpp"
#include "symbols/table.hpp"

#include <optional>

namespace etwrelog::symbols {

using base::lower;

// One element of a symbol path. A store's places are asked in order; what a later one has is copied to those
// before.
struct PathElement {
  bool store = false;              // files lie in the layout NAME/ID/NAME; else a folder with files
  std::vector<std::string> places; // folders, and at the end maybe a URL
};
[[nodiscard]] bool is_url(std::string_view place);
// A URL without the name, password and query in it, which are for the server alone: what is shown and kept.
// Other text stays as it is.
[[nodiscard]] std::string without_secrets(std::string_view place);

// `downstream` is the store that "srv**URL" means. What cannot be used goes to `warnings`.
[[nodiscard]] std::vector<PathElement> parse_symbol_path(std::string_view path, const std::string &downstream,
                                                         std::vector<std::string> &warnings);

// The name of the PDB without its folder; none if it is no name of a file (it comes out of a trace).
[[nodiscard]] std::optional<std::string> pdb_file_name(std::string_view pdb_name);
[[nodiscard]] std::string identity_text(const Identity &identity); // "FF98FE65248A4F35130AD2BCEDC0BE371"
[[nodiscard]] bool is_file(const std::string &path);               // that is there, and can be looked at

// Files in the order in which they are tried, in a folder or a store on this machine.
[[nodiscard]] std::vector<std::string> files_in_folder(const std::string &folder, const std::string &name,
                                                       const Identity &id);
[[nodiscard]] std::vector<std::string> files_in_store(const std::string &store, const std::string &name,
                                                      const Identity &id);
// NAME/ID/, in the two tiers of a store that has index2.txt.
[[nodiscard]] std::string store_folder(const std::string &store, const std::string &name, const Identity &id);

// What file.ptr says: another file, or why there is none.
struct Pointer {
  std::string path, message;
};
[[nodiscard]] Pointer parse_file_pointer(std::string_view text);

} // namespace etwrelog::symbols
