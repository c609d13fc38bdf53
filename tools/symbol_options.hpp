// Where a command looks for the names of native code: --symbols, --symbol-server, the environment.
#pragma once

#include "etwrelog/error.hpp"
#include "etwrelog/symbols.hpp"

#include <CLI/CLI.hpp>

namespace etwrelog::cli {

struct SymbolFlags {
  std::vector<std::string> folders;
  std::string server;

  void add_to(CLI::App &command, const std::string &about_folders);
  // With `fetch`, a server is asked in any case: that of the path, else Microsoft's.
  [[nodiscard]] SymbolOptions options(const std::vector<std::string> &traces, unsigned threads,
                                      bool fetch = false) const;
  // What would mean nothing, before anything is looked for: servers for no names, and a URL among `traces`.
  [[nodiscard]] Result<void> check(const std::vector<std::string> &traces, bool fetch = false) const;
  // Names are looked for nowhere.
  [[nodiscard]] bool none() const { return folders.size() == 1 && folders[0] == "none"; }
};

// Parts of a path that cannot be used, servers that did not answer; of none nothing.
void warn_of(const SymbolResolver *resolver);
// That names were asked for and there are none.
void warn_of_no_names(const SymbolResolver *resolver, const std::string &trace);
// Where names were asked for, that this program can read none.
void warn_without_pdb_reader();

} // namespace etwrelog::cli
