#include "base/threads.hpp"
#include "symbols/cabinet.hpp"
#include "symbols/fetch.hpp"
#include "symbols/finder.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <thread>

#include <fmt/format.h>

namespace etwrelog {

std::string_view symbol_state_name(SymbolState state) {
  switch (state) {
  case SymbolState::found: return "found";
  case SymbolState::no_identity: return "image without identity: the trace was not merged";
  case SymbolState::not_found: return "PDB not found";
  case SymbolState::other_identity: return "PDB of another build";
  case SymbolState::compressed_msfz: return "PDB compressed as MSFZ";
  case SymbolState::damaged: return "PDB damaged";
  case SymbolState::no_pdb_support: return "built without PDB support";
  }
  return "";
}

ModuleSymbols::ModuleSymbols(SymbolState state, std::string file, std::string reason,
                             std::vector<std::string> looked, std::shared_ptr<const Table> table)
    : state_(state), file_(std::move(file)), reason_(std::move(reason)), looked_(std::move(looked)),
      table_(std::move(table)) {}

bool ModuleSymbols::lookup(std::uint32_t rva, SymbolNames &names) const {
  names.frames.clear();
  return table_ != nullptr && table_->view.lookup(rva, names);
}

SymbolOptions SymbolOptions::from_environment() {
  const auto get = [](const char *name) {
    const char *value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  SymbolOptions options;
  options.path = get("_NT_SYMBOL_PATH");
  const std::string lowered = symbols::lower(options.path);
  options.network =
      lowered.find("http://") != std::string::npos || lowered.find("https://") != std::string::npos;
  const std::string cache = get("XDG_CACHE_HOME"), home = get("HOME");
  if (cache.starts_with('/'))
    options.cache = cache + "/etwrelog";
  else if (!home.empty())
    options.cache = home + "/.cache/etwrelog";
  return options;
}

struct SymbolResolver::State {
  explicit State(SymbolOptions given) : options(std::move(given)), finder(options) {}

  static std::string key(const ModuleIdentity &m) {
    return fmt::format("{} {} {} {}", m.pdb_name, to_string(m.pdb_guid), m.pdb_age,
                       m.pdb_name.empty() ? m.path : std::string());
  }

  std::shared_ptr<const ModuleSymbols> find(const ModuleIdentity &module) {
    if (module.pdb_name.empty() || module.pdb_guid == Guid{})
      return std::make_shared<ModuleSymbols>(
          SymbolState::no_identity, "",
          "the trace does not say which PDB belongs to it: it was not merged on the machine that "
          "recorded it",
          std::vector<std::string>(), nullptr);
    const auto name = symbols::pdb_file_name(module.pdb_name);
    if (!name)
      return std::make_shared<ModuleSymbols>(SymbolState::not_found, "",
                                             "the trace gives the PDB a name that no file can have",
                                             std::vector<std::string>(), nullptr);
    symbols::Found found = finder.find({*name, {module.pdb_guid, module.pdb_age}});
    return std::make_shared<ModuleSymbols>(found.state, std::move(found.file), std::move(found.why),
                                           std::move(found.looked), std::move(found.table));
  }

  SymbolOptions options;
  symbols::Finder finder;
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<const ModuleSymbols>> known;
};

SymbolResolver::SymbolResolver(SymbolOptions options) : state_(std::make_unique<State>(std::move(options))) {}
SymbolResolver::SymbolResolver(SymbolResolver &&) noexcept = default;
SymbolResolver &SymbolResolver::operator=(SymbolResolver &&) noexcept = default;
SymbolResolver::~SymbolResolver() = default;

std::shared_ptr<const ModuleSymbols> SymbolResolver::load(const ModuleIdentity &module) {
  const std::string key = State::key(module);
  {
    const std::lock_guard lock(state_->mutex);
    if (const auto found = state_->known.find(key); found != state_->known.end()) return found->second;
  }
  std::shared_ptr<const ModuleSymbols> made = state_->find(module);
  const std::lock_guard lock(state_->mutex);
  return state_->known.try_emplace(key, std::move(made)).first->second; // of two at once the first stays
}

void SymbolResolver::prepare(std::span<const ModuleIdentity> modules) {
  const SymbolOptions &options = state_->options;
  const unsigned machine = std::max(1u, std::thread::hardware_concurrency());
  // Waiting for servers costs no processor.
  constexpr unsigned kConnections = 8;
  const unsigned most = options.threads != 0 ? options.threads
                        : options.network    ? std::max(machine, kConnections)
                                             : machine;
  base::parallel_for(most, modules.size(), [&](std::size_t i) { (void)load(modules[i]); });
}

SymbolResolver::Found SymbolResolver::found() const {
  const std::lock_guard lock(state_->mutex);
  Found found{.modules = state_->known.size()};
  for (const auto &[key, symbols] : state_->known)
    found.with_symbols += symbols->state() == SymbolState::found ? 1 : 0;
  return found;
}

const SymbolOptions &SymbolResolver::options() const {
  return state_->options;
}
std::vector<std::string> SymbolResolver::warnings() const {
  return state_->finder.warnings();
}
bool SymbolResolver::reads_pdb() {
  return symbols::pdb_support();
}
bool SymbolResolver::has_network() {
  return symbols::network_support();
}
bool SymbolResolver::reads_cabinets() {
  return symbols::cabinet_support();
}

} // namespace etwrelog
