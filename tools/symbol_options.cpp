#include "tools/symbol_options.hpp"

#include "etwrelog/text.hpp"
#include "tools/cli.hpp"
#include "tools/errors.hpp"
#include "tools/process.hpp"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

namespace etwrelog::cli {

void SymbolFlags::add_to(CLI::App &command, const std::string &about_folders) {
  command.add_option("--symbols", folders, about_folders)->allow_extra_args(false)->group("Names");
  command
      .add_flag(
          "--symbol-server{" + std::string(kMicrosoftSymbolServer) + "}", server,
          "Ask this server for PDBs that are not found here (default: Microsoft's); without it, or a URL in "
          "_NT_SYMBOL_PATH, nothing leaves this machine")
      ->type_name("URL")
      ->group("Names");
}

Result<void> SymbolFlags::check(const std::vector<std::string> &traces, bool fetch) const {
  if (folders.size() > 1 && std::ranges::find(folders, "none") != folders.end())
    return usage_error("--symbols none stands alone: it looks nowhere (a folder of that name is ./none)");
  if (none() && (fetch || !server.empty()))
    return usage_error(fmt::format("--symbols none looks nowhere, and {} asks a server: one of them",
                                   fetch ? "--fetch" : "--symbol-server"));
  // CLI11 takes a flag's value behind "=" alone, and Microsoft's server would be asked instead.
  for (const std::string &trace : traces)
    if (std::error_code failed; (trace.starts_with("http://") || trace.starts_with("https://")) &&
                                !std::filesystem::exists(trace, failed))
      return usage_error(fmt::format(
          "\"{0}\" is no file; a server is given as --symbol-server={0}, with \"=\"", printable(trace)));
  return {};
}

SymbolOptions SymbolFlags::options(const std::vector<std::string> &traces, unsigned threads,
                                   bool fetch) const {
  SymbolOptions out = none() ? SymbolOptions() : SymbolOptions::from_environment();
  out.threads = threads;
  out.stop = process::stop_token();
  if (none()) return out;
  for (const std::string &folder : folders)
    if (std::error_code failed; !std::filesystem::exists(folder, failed))
      warn(folder, "there is no such folder: no symbols are looked for in it");
  out.folders = folders;
  out.traces = traces;
  out.server = server;
  if (fetch && out.server.empty() && !out.network) out.server = kMicrosoftSymbolServer;
  out.network = out.network || fetch || !out.server.empty();
  return out;
}

void warn_without_pdb_reader() {
  if (!SymbolResolver::reads_pdb())
    warn("symbols", "this etwrelog was built without LLVM and reads no PDB files");
}

void warn_of(const SymbolResolver *resolver) {
  if (resolver == nullptr) return;
  for (const std::string &warning : resolver->warnings())
    warn("symbols", warning);
}

void warn_of_no_names(const SymbolResolver *resolver, const std::string &trace) {
  const SymbolResolver::Found found = resolver != nullptr ? resolver->found() : SymbolResolver::Found();
  if (found.modules > 0 && found.with_symbols == 0)
    warn(trace,
         fmt::format("no symbols were found for any module of the stacks (of {}): \"etwrelog symbols\" "
                     "says why",
                     found.modules));
}

} // namespace etwrelog::cli
