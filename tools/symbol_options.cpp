#include "tools/symbol_options.hpp"

#include "tools/cli.hpp"
#include "tools/process.hpp"

#include <filesystem>

namespace etwrelog::cli {

void SymbolFlags::add_to(CLI::App &command, const std::string &about_folders) {
  command.add_option("--symbols", folders, about_folders)->allow_extra_args(false)->group("Names");
  command
      .add_flag(
          "--symbol-server{" + std::string(kMicrosoftSymbolServer) + "}", server,
          "Ask this server for PDBs that are not found here (default: Microsoft's); without it, or a URL in "
          "_NT_SYMBOL_PATH, nothing leaves this machine")
      ->group("Names");
}

SymbolOptions SymbolFlags::options(const std::vector<std::string> &traces, unsigned threads,
                                   bool fetch) const {
  for (const std::string &folder : folders)
    if (std::error_code failed; !none() && !std::filesystem::exists(folder, failed))
      warn(folder, "there is no such folder: no symbols are looked for in it");
  SymbolOptions out = SymbolOptions::from_environment();
  out.folders = folders;
  out.traces = traces;
  out.threads = threads;
  out.stop = process::stop_token();
  out.server = server;
  if (fetch && out.server.empty() && !out.network) out.server = kMicrosoftSymbolServer;
  out.network = out.network || fetch || !out.server.empty();
  return out;
}

} // namespace etwrelog::cli
