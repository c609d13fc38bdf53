// Where a command looks for the names of native code: --symbols, --symbol-server, the environment.
#pragma once

#include "etwrelog/symbols.hpp"

#include <CLI/CLI.hpp>

namespace etwrelog::cli {

struct SymbolFlags {
  std::vector<std::string> folders;
  std::string server;

  void add_to(CLI::App &command, const std::string &about_folders);
  // With `fetch` a server is asked in any case: that of the path, else Microsoft's.
  [[nodiscard]] SymbolOptions options(const std::vector<std::string> &traces, unsigned threads,
                                      bool fetch = false) const;
  [[nodiscard]] bool none() const { return folders.size() == 1 && folders[0] == "none"; }
};

} // namespace etwrelog::cli
