// etwrelog symbols: whose code the samples lie in, and where the names for it are; names for exported
// profiles.
#include "etwrelog/profile_export.hpp"
#include "etwrelog/profile_report.hpp"
#include "etwrelog/profile_symbols.hpp"

#include "tools/cli.hpp"
#include "tools/commands.hpp"
#include "tools/errors.hpp"
#include "tools/profile_text.hpp"
#include "tools/symbol_options.hpp"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <system_error>
#include <tuple>

#include <fmt/format.h>

namespace etwrelog::cli {
namespace {

using nlohmann::json;

struct SymbolsFlags : CommonOptions, SymbolFlags {
  static constexpr std::size_t kTop = 40;
  std::optional<std::size_t> top; // of a table kTop, of JSON all
  bool fetch = false, apply = false, force = false;
  std::string output;
};

std::string identity(const ProfileModule &module) {
  return module.pdb_name.empty() ? std::string("-")
                                 : fmt::format("{} {:x}", to_string(module.pdb_guid), module.pdb_age);
}

struct ModuleRow {
  const ProfileModule *module;
  ModuleUse use;
  std::shared_ptr<const ModuleSymbols> symbols;
};

// Modules of one identity count as one, however many processes loaded them.
std::vector<ModuleRow> rows_of(const Profile &profile, SymbolResolver &resolver) {
  std::vector<ModuleIdentity> identities;
  std::vector<ModuleRow> rows;
  std::map<std::tuple<std::string_view, Guid, std::uint32_t>, std::size_t> known;
  for (const ModuleUse &use : module_use(profile)) {
    const ProfileModule &module = profile.modules[use.module];
    const auto [same, fresh] = known.try_emplace(
        std::tuple(std::string_view(module.path), module.pdb_guid, module.pdb_age), rows.size());
    if (fresh) {
      rows.push_back({&module, use, nullptr});
      continue;
    }
    rows[same->second].use.self += use.self;
    rows[same->second].use.total += use.total;
  }
  std::ranges::stable_sort(rows,
                           [](const ModuleRow &a, const ModuleRow &b) { return a.use.self > b.use.self; });
  for (const ModuleRow &row : rows)
    identities.push_back(identity_of(*row.module));
  resolver.prepare(identities);
  for (ModuleRow &row : rows)
    row.symbols = resolver.load(identity_of(*row.module));
  return rows;
}

// That a PDB was not found says something only where it was looked for.
std::string state_text(const ModuleRow &row, bool looked_for) {
  const SymbolState state = row.symbols->state();
  return looked_for || state != SymbolState::not_found ? std::string(symbol_state_name(state))
                                                       : std::string("not looked for");
}

// `top`: that many, 0 for all.
json to_json(const std::string &input, std::span<const ModuleRow> rows, const Profile &profile,
             std::size_t top, bool looked_for) {
  json modules = json::array();
  for (const ModuleRow &row : rows.first(top == 0 ? rows.size() : std::min(top, rows.size())))
    modules.push_back({{"module", row.module->name},
                       {"path", row.module->path},
                       {"pdb", row.module->pdb_name},
                       {"guid", row.module->pdb_name.empty() ? "" : to_string(row.module->pdb_guid)},
                       {"age", row.module->pdb_age},
                       {"self", row.use.self},
                       {"total", row.use.total},
                       {"state", state_text(row, looked_for)},
                       {"file", row.symbols->file()},
                       {"reason", looked_for ? row.symbols->reason() : std::string()},
                       {"looked", row.symbols->looked()}});
  return {{"file", input},
          {"unit", profile_unit(profile)},
          {"samples", profile.samples.size()},
          {"modules", std::move(modules)}};
}

void print(const std::vector<ModuleRow> &rows, std::uint64_t whole, std::size_t top, bool looked_for) {
  print_row("{:>7} {:>7}  {:<24} {:<38} {}", "Self", "Total", "Module", "PDB: GUID and age", "Symbols");
  std::uint64_t named = 0;
  std::size_t shown = 0;
  for (const ModuleRow &row : rows) {
    const bool found = row.symbols->state() == SymbolState::found;
    if (found) named += row.use.self;
    if (top != 0 && shown++ >= top) continue;
    print_row("{:>7} {:>7}  {:<24} {:<38} {}",
              percent(static_cast<double>(row.use.self), static_cast<double>(whole)),
              percent(static_cast<double>(row.use.total), static_cast<double>(whole)), row.module->name,
              identity(*row.module), found ? row.symbols->file() : state_text(row, looked_for));
  }
  if (top != 0 && rows.size() > top)
    print_row("{:>15}  {} more modules; --top 0 shows all", "", rows.size() - top);
  print_text("\nSymbols are there for {} of the samples by their innermost frame.\n",
             percent(static_cast<double>(named), static_cast<double>(whole)));
  // Why the dearest ones are missing, in full.
  std::size_t explained = 0;
  for (const ModuleRow &row : rows)
    if (looked_for && row.symbols->state() != SymbolState::found &&
        row.symbols->state() != SymbolState::no_identity && explained++ < 3)
      print_row("{}: {}", row.module->name, row.symbols->reason());
  const bool unmerged = std::ranges::any_of(
      rows, [](const ModuleRow &row) { return row.symbols->state() == SymbolState::no_identity; });
  if (unmerged)
    print_text("Modules without a GUID: the trace was not merged on the machine that recorded it (xperf -d, "
               "wpr -stop).\n");
}

Result<void> run_one(const SymbolsFlags &options, const std::string &input, SymbolResolver &resolver,
                     int &status, json &all) {
  Bar bar(options.progress);
  const RunOptions run = options.run(bar);
  const Result<Trace> trace = Trace::open(input_of(input), options.opening(), run);
  if (!trace) return trace.error();
  const Result<ProfileResult> result = make_profile(*trace, {}, run);
  if (!result) return result.error();
  status = std::max(status, report_damage(source_names(*trace), result->warnings, result->skipped));
  const Profile &profile = result->profile;
  if (profile.samples.empty()) {
    Error error;
    error.kind = ErrorKind::no_match;
    error.file = input_of(input).name();
    error.what = "the trace holds no CPU samples, so no module has a share of them";
    return error;
  }
  const std::vector<ModuleRow> rows = rows_of(profile, resolver);
  if (Result<void> go_on = unless_stopped(); !go_on) return go_on;
  if (options.json) {
    all.push_back(to_json(input, rows, profile, options.top.value_or(0), !options.none()));
    return {};
  }
  if (options.inputs.size() > 1) {
    if (&input != &options.inputs.front()) print_text("\n");
    print_row("{}:", input);
  }
  print(rows, total_weight(profile), options.top.value_or(SymbolsFlags::kTop), !options.none());
  return {};
}

// --- Names for what was exported without, maybe on another machine.

Result<std::vector<std::uint8_t>> read_export(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return io_error(path, "cannot open: " + std::generic_category().message(errno));
  std::vector<std::uint8_t> bytes;
  constexpr std::size_t kPiece = 1u << 20, kMost = 1u << 30;
  for (std::size_t size = 0; file && size < kMost;) {
    bytes.resize(size + kPiece);
    file.read(reinterpret_cast<char *>(bytes.data() + size), static_cast<std::streamsize>(kPiece));
    size += static_cast<std::size_t>(file.gcount());
    bytes.resize(size);
  }
  if (file.eof()) return bytes;
  return io_error(path, bytes.empty() ? "cannot be read" : "is too large for an exported profile");
}

// "x.firefox.json.gz" becomes "x.named.firefox.json.gz".
std::string named_path(const std::string &path) {
  const std::size_t slash = path.find_last_of('/') + 1, dot = path.find('.', slash + 1);
  return path.substr(0, dot) + ".named" + (dot == std::string::npos ? "" : path.substr(dot));
}

Result<void> apply_one(const SymbolsFlags &options, const std::string &input, SymbolResolver &resolver) {
  if (!options.output.empty() && !profile_format_of_path(options.output))
    return no_profile_format(fmt::format("\"{}\" has no ending that tells a format", options.output));
  const Result<std::vector<std::uint8_t>> bytes = read_export(input);
  if (!bytes) return bytes.error();
  Result<ReadProfile> read = read_profile(*bytes);
  if (!read) {
    Error error = read.error();
    error.file = input;
    return error;
  }
  const auto without_name = [&] {
    std::uint64_t weight = 0;
    for (const ProfileUnresolved &row : profile_unresolved_reasons(read->profile))
      weight += row.self;
    return weight;
  };
  const std::uint64_t before = without_name(), whole = total_weight(read->profile);
  if (!options.none()) name_native_code(read->profile, resolver);
  if (Result<void> go_on = unless_stopped(); !go_on) return go_on;
  const std::string output = options.output.empty() ? named_path(input) : options.output;
  const ProfileFormat format = profile_format_of_path(output).value_or(read->format);
  Result<OutputStream> file = OutputStream::open(output_of(output, options.force), inputs_of({input}));
  if (!file) return std::move(file).error();
  ProfileExportOptions how;
  how.title = read->title;
  const Result<ProfileExportReport> report = write_profile(
      read->profile, format, how, [&](Bytes piece) { return write_unless_stopped(*file, piece); });
  if (!report) return report.error();
  if (Result<void> done = file->commit(); !done) return done;
  const auto share = [&](std::uint64_t part) {
    return percent(static_cast<double>(part), static_cast<double>(whole));
  };
  print_line(fmt::format("{}: {}, {}; innermost frames without a name: {}, before {}", printable(output),
                         profile_format_name(format), human_bytes(report->bytes), share(without_name()),
                         share(before)));
  for (const std::string &note : report->notes)
    print_line(printable(output) + ": " + printable(note));
  constexpr std::size_t kShown = 10; // the largest first
  std::size_t missing = 0;
  const auto is_of_pdb = [](Unresolved why) {
    return why == Unresolved::pdb_not_found || why == Unresolved::pdb_other_build ||
           why == Unresolved::pdb_compressed || why == Unresolved::pdb_damaged;
  };
  for (const ProfileUnresolved &row : profile_unresolved(read->profile))
    if (is_of_pdb(row.why) && ++missing <= kShown)
      print_line(
          fmt::format("  {}: {} in {}", printable(row.module), unresolved_text(row.why), share(row.total)));
  if (missing > kShown) print_line(fmt::format("  and {} modules more", missing - kShown));
  return {};
}

int run_apply(const SymbolsFlags &options) {
  if (options.json || options.top)
    return report(usage_error("--json and --top are about the modules of a trace, not for --apply"));
  if (!options.output.empty() && options.inputs.size() > 1) {
    return report(usage_error("names one file, but several are to be written", Option::output));
  }
  SymbolResolver resolver(options.SymbolFlags::options(options.inputs, options.threads, options.fetch));
  int status = kDone;
  for (const std::string &input : options.inputs)
    if (const Result<void> done = apply_one(options, input, resolver); !done)
      status = std::max<int>(report(done.error()), kFailed);
  warn_of(&resolver);
  return status;
}

int run_symbols(const SymbolsFlags &options) {
  if (Result<void> sound = options.SymbolFlags::check(options.inputs, options.fetch); !sound)
    return report(sound.error());
  if (options.fetch && !SymbolResolver::has_network()) {
    Error error;
    error.kind = ErrorKind::unsupported;
    error.what =
        "servers are asked by libcurl, which cannot be loaded here or which this etwrelog was built without: "
        "install libcurl4";
    return report(error);
  }
  if (options.apply) return run_apply(options);
  SymbolResolver resolver(options.SymbolFlags::options(options.inputs, options.threads, options.fetch));
  int status = kDone;
  json all = json::array();
  for (const std::string &input : options.inputs)
    if (const Result<void> done = run_one(options, input, resolver, status, all); !done) {
      status = std::max<int>(report(done.error()), kFailed);
      if (options.inputs.size() > 1) all.push_back(failure_json({input}, done.error()));
    }
  if (options.json && !all.empty()) print_text("{}\n", text_of(options.inputs.size() == 1 ? all[0] : all));
  warn_of(&resolver);
  warn_without_pdb_reader();
  return status;
}

void add_symbols_command(CLI::App &app, int &exit_status) {
  auto options = std::make_shared<SymbolsFlags>();
  CLI::App *c = app.add_subcommand(
      "symbols", "Modules by share of samples: GUID, age, where their PDBs are, or why not");
  c->add_option("TRACE", options->inputs, "Trace: " + trace_files() + "; with --apply an exported profile")
      ->required();
  CLI::Option *apply =
      c->add_flag(
           "--apply", options->apply,
           "Name the functions in exported profiles (.firefox.json.gz, .speedscope.json, .pb.gz), which "
           "keep GUID, age and RVA of what has no name: x.pb.gz becomes x.named.pb.gz")
          ->group("Names");
  c->add_option("-o,--output", options->output,
                "With --apply: the file to write, in any format of profile -o")
      ->needs(apply)
      ->group("Output");
  c->add_flag("-f,--force", options->force, "Replace an existing output")->needs(apply)->group("Output");
  c->add_flag("--fetch", options->fetch,
              "Get what is missing from the servers of the symbol path, else from Microsoft's")
      ->group("Names");
  options->SymbolFlags::add_to(
      *c, "Folder with PDBs, or a symbol store, looked at before _NT_SYMBOL_PATH; none: nothing is "
          "looked for anywhere");
  c->add_option("--top", options->top, "Show that many modules; 0: all (default: 40, of JSON all)")
      ->check(no_less_than_zero());
  options->CommonOptions::add_to(*c, true);
  c->callback([options, &exit_status] { exit_status = run_symbols(*options); });
}

const Command kSymbols(26, add_symbols_command);

} // namespace
} // namespace etwrelog::cli
