// etwrelog symbols: whose code the samples lie in, and where the names for it are.
#include "etwrelog/profile_symbols.hpp"

#include "tools/cli.hpp"
#include "tools/commands.hpp"
#include "tools/symbol_options.hpp"

#include <algorithm>
#include <memory>

#include <fmt/format.h>

namespace etwrelog::cli {
namespace {

using nlohmann::json;

struct Options : CommonOptions, SymbolFlags {
  std::size_t top = 40;
  bool fetch = false;
};

std::string identity(const ProfileModule &module) {
  return module.pdb_name.empty() ? std::string("-")
                                 : fmt::format("{} {:x}", to_string(module.pdb_guid), module.pdb_age);
}

struct Row {
  const ProfileModule *module;
  ModuleUse use;
  std::shared_ptr<const ModuleSymbols> symbols;
};

// Modules of one identity count as one, however many processes loaded them.
std::vector<Row> rows_of(const Profile &profile, SymbolResolver &resolver) {
  std::vector<ModuleIdentity> identities;
  std::vector<Row> rows;
  for (const ModuleUse &use : module_use(profile)) {
    const ProfileModule &module = profile.modules[use.module];
    const auto same = std::ranges::find_if(rows, [&](const Row &row) {
      return row.module->path == module.path && row.module->pdb_guid == module.pdb_guid &&
             row.module->pdb_age == module.pdb_age;
    });
    if (same != rows.end()) {
      same->use.self += use.self;
      same->use.total += use.total;
      continue;
    }
    rows.push_back({&module, use, nullptr});
  }
  std::ranges::stable_sort(rows, [](const Row &a, const Row &b) { return a.use.self > b.use.self; });
  for (const Row &row : rows)
    identities.push_back(identity_of(*row.module));
  resolver.prepare(identities);
  for (Row &row : rows)
    row.symbols = resolver.load(identity_of(*row.module));
  return rows;
}

json to_json(const std::string &input, const std::vector<Row> &rows, std::uint64_t samples) {
  json modules = json::array();
  for (const Row &row : rows)
    modules.push_back({{"module", row.module->name},
                       {"path", row.module->path},
                       {"pdb", row.module->pdb_name},
                       {"guid", row.module->pdb_name.empty() ? "" : to_string(row.module->pdb_guid)},
                       {"age", row.module->pdb_age},
                       {"self", row.use.self},
                       {"total", row.use.total},
                       {"state", symbol_state_name(row.symbols->state())},
                       {"file", row.symbols->file()},
                       {"reason", row.symbols->reason()},
                       {"looked", row.symbols->looked()}});
  return {{"file", input}, {"samples", samples}, {"modules", std::move(modules)}};
}

void print(const std::vector<Row> &rows, std::uint64_t samples, std::size_t top) {
  fmt::print("{:>7} {:>7}  {:<24} {:<38} {}\n", "Self", "Total", "Module", "PDB: GUID and age", "Symbols");
  std::uint64_t named = 0;
  std::size_t shown = 0;
  for (const Row &row : rows) {
    const bool found = row.symbols->state() == SymbolState::found;
    if (found) named += row.use.self;
    if (top != 0 && shown++ >= top) continue;
    fmt::print("{:>7} {:>7}  {:<24} {:<38} {}\n",
               percent(static_cast<double>(row.use.self), static_cast<double>(samples)),
               percent(static_cast<double>(row.use.total), static_cast<double>(samples)), row.module->name,
               identity(*row.module),
               found ? row.symbols->file() : std::string(symbol_state_name(row.symbols->state())));
  }
  if (top != 0 && rows.size() > top)
    fmt::print("{:>15}  {} more modules; --top 0 shows all\n", "", rows.size() - top);
  fmt::print("\nSymbols are there for {} of the samples by their innermost frame.\n",
             percent(static_cast<double>(named), static_cast<double>(samples)));
  // Why the dearest ones are missing, in full.
  std::size_t explained = 0;
  for (const Row &row : rows)
    if (row.symbols->state() != SymbolState::found && row.symbols->state() != SymbolState::no_identity &&
        explained++ < 3)
      fmt::print("{}: {}\n", row.module->name, row.symbols->reason());
  const bool unmerged = std::ranges::any_of(
      rows, [](const Row &row) { return row.symbols->state() == SymbolState::no_identity; });
  if (unmerged)
    fmt::print("Modules without a GUID: the trace was not merged on the machine that recorded it (xperf -d, "
               "wpr -stop).\n");
}

Result<void> run_one(const Options &options, const std::string &input, SymbolResolver &resolver, int &status,
                     json &all) {
  Bar bar(options.progress);
  const RunOptions run = options.run(bar);
  const Result<Trace> trace = Trace::open(input_of(input), options.opening(), run);
  if (!trace) return trace.error();
  const Result<ProfileResult> result = make_profile(*trace, {}, run);
  if (!result) return result.error();
  status = std::max(status, report_damage(source_names(*trace), result->warnings, result->skipped));
  const Profile &profile = result->profile;
  std::uint64_t samples = 0;
  for (const ProfileSample &sample : profile.samples)
    samples += sample.weight;
  if (samples == 0) {
    Error error;
    error.kind = ErrorKind::no_match;
    error.file = input;
    error.what = "the trace holds no CPU samples, so no module has a share of them";
    return error;
  }
  const std::vector<Row> rows = rows_of(profile, resolver);
  if (options.json) {
    all.push_back(to_json(input, rows, samples));
    return {};
  }
  if (options.inputs.size() > 1) fmt::print("{}{}:\n", &input == &options.inputs.front() ? "" : "\n", input);
  print(rows, samples, options.top);
  return {};
}

int run_symbols(const Options &options) {
  if (options.fetch && !SymbolResolver::has_network()) {
    Error error;
    error.kind = ErrorKind::unsupported;
    error.what = "this etwrelog was built without libcurl and asks no servers";
    return report(error);
  }
  SymbolResolver resolver(options.SymbolFlags::options(options.inputs, options.threads, options.fetch));
  int status = kDone;
  json all = json::array();
  for (const std::string &input : options.inputs)
    if (const Result<void> done = run_one(options, input, resolver, status, all); !done)
      status = std::max<int>(report(done.error()), kFailed);
  if (options.json && !all.empty()) fmt::print("{}\n", text_of(options.inputs.size() == 1 ? all[0] : all));
  for (const std::string &warning : resolver.warnings())
    warn("symbols", warning);
  if (!SymbolResolver::reads_pdb())
    warn("symbols", "this etwrelog was built without LLVM and reads no PDB files");
  return status;
}

void add_symbols_command(CLI::App &app, int &exit_status) {
  auto options = std::make_shared<Options>();
  CLI::App *c = app.add_subcommand(
      "symbols", "Modules by share of samples: GUID, age, where their PDBs are, or why not");
  c->add_option("TRACE", options->inputs, "Trace: .etl, .etlz, .diagsession, or in a .zip, .xz, .zst, .gz")
      ->required();
  c->add_flag("--fetch", options->fetch,
              "Get what is missing from the servers of the symbol path, else from Microsoft's")
      ->group("Names");
  options->SymbolFlags::add_to(*c, "Folder with PDBs, or a symbol store; looked at first");
  c->add_option("--top", options->top, "Show that many modules; 0: all (default: 40)");
  options->CommonOptions::add_to(*c, true);
  c->callback([options, &exit_status] { exit_status = run_symbols(*options); });
}

const Command kSymbols(26, add_symbols_command);

} // namespace
} // namespace etwrelog::cli
