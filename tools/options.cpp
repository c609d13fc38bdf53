#include "tools/options.hpp"

#include "etwrelog/export.hpp"
#include "tools/cli.hpp"
#include "tools/errors.hpp"
#include "tools/process.hpp"
#include "tools/work_list.hpp"

#include <algorithm>
#include <charconv>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace etwrelog::cli {
namespace {

constexpr const char *kSelection = "Selection";

Error bad_value(Option option, const std::string &text, std::string expected) {
  Error error;
  error.kind = ErrorKind::usage;
  error.option = option;
  error.expected = std::move(expected);
  error.found = fmt::format("\"{}\"", text);
  return error;
}

// Decimal, or hexadecimal behind 0x.
template <class T> std::optional<T> parse_id(std::string_view text) {
  const bool hexadecimal = text.starts_with("0x") || text.starts_with("0X");
  if (hexadecimal) text.remove_prefix(2);
  T value = 0;
  const auto [end, code] =
      std::from_chars(text.data(), text.data() + text.size(), value, hexadecimal ? 16 : 10);
  return code == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

template <class T, class Out>
Result<void> parse_ids(const std::vector<std::string> &texts, Option option, const char *what,
                       std::vector<Out> &out) {
  for (const std::string &text : texts) {
    const std::optional<T> id = parse_id<T>(text);
    if (!id)
      return bad_value(option, text, fmt::format("{} from 0 to {}", what, std::numeric_limits<T>::max()));
    out.push_back(*id);
  }
  return {};
}

constexpr std::string_view kTraces[] = {".etl", ".etlz", ".diagsession"},
                           kWrappings[] = {".zip", ".xz", ".zst", ".gz", ".bz2"};

} // namespace

std::string wrappings() {
  const std::span others(kWrappings, std::size(kWrappings) - 1);
  return fmt::format("{} or {}", fmt::join(others, ", "), *std::rbegin(kWrappings));
}

std::string trace_files() {
  return fmt::format("{}, or in a {}", fmt::join(kTraces, ", "), wrappings());
}

bool is_trace_file_name(std::string_view name) {
  const auto ends_so = [name](std::string_view ending) { return has_ending(name, ending); };
  return std::ranges::any_of(kTraces, ends_so) || std::ranges::any_of(kWrappings, ends_so);
}

std::optional<std::uint64_t> parse_size(std::string_view text) {
  unsigned shift = 0;
  if (!text.empty() && (text.back() == 'B' || text.back() == 'b')) text.remove_suffix(1);
  if (!text.empty() && text.back() == 'i') text.remove_suffix(1);
  if (!text.empty()) {
    switch (text.back()) {
    case 'k':
    case 'K': shift = 10; break;
    case 'm':
    case 'M': shift = 20; break;
    case 'g':
    case 'G': shift = 30; break;
    default: break;
    }
  }
  if (shift != 0) text.remove_suffix(1);
  if (text.empty() || text.size() > 12) return std::nullopt;
  std::uint64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + static_cast<std::uint64_t>(c - '0');
  }
  if (value > (UINT64_MAX >> shift)) return std::nullopt;
  return value << shift;
}

std::uint32_t buffer_size_of(std::string_view text) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(parse_size(text).value_or(0), UINT32_MAX));
}

CLI::Validator size_validator() {
  return CLI::Validator(
      [](std::string &text) {
        return parse_size(text) ? std::string()
                                : fmt::format("\"{}\" is not a size; give one such as 64K or 1M", text);
      },
      "SIZE");
}

Input input_of(const std::string &name) {
  return name == "-" ? Input::standard_input() : Input(name);
}

std::vector<Input> inputs_of(const std::vector<std::string> &names) {
  std::vector<Input> inputs;
  for (const std::string &name : names)
    inputs.push_back(input_of(name));
  return inputs;
}

Result<Trace> open_trace(const std::vector<std::string> &names, const OpenOptions &options,
                         const RunOptions &run) {
  std::vector<Input> inputs = inputs_of(names);
  if (Result<void> once = check_inputs(inputs); !once) return once.error();
  return Trace::open(std::move(inputs), options, run);
}

Output output_of(const std::string &name, bool force) {
  return Output(name, force ? Existing::replace : Existing::refuse);
}

void RunFlags::add_to(CLI::App &command) {
  command.add_option("-t,--threads", threads, "Threads to use (default: all)")->check(CLI::Range(1u, 1024u));
  command
      .add_option("--memory-limit", memory,
                  "Memory to stay within, such as 512M, where the work can be done with that")
      ->check(size_validator())
      ->capture_default_str();
  command.add_flag("--progress", progress, "Show progress even where stderr is not a terminal");
}

void RunFlags::add_quiet_to(CLI::App &command, const std::string &description) {
  command.add_flag("-q,--quiet", quiet, description);
}

void RunFlags::add_json_to(CLI::App &command, const std::string &description) {
  command.add_flag("--json", json, description);
}

RunOptions RunFlags::run(Bar &bar) const {
  RunOptions options;
  options.threads = threads;
  options.memory = parse_size(memory).value_or(options.memory);
  options.stop = process::stop_token();
  options.progress = [&bar](const Progress &now) { bar.show(now); };
  return options;
}

Result<std::optional<Moment>> moment_of(const std::string &text, Option option) {
  if (text.empty()) return std::optional<Moment>();
  const std::optional<Moment> moment = parse_moment(text);
  if (moment) return moment;
  return bad_value(option, text,
                   "seconds since the start such as 12.5s, or UTC such as 2026-01-31T12:00:00.5Z");
}

namespace {

// An error says where names stand.
Result<NamedKinds> kinds_called(const std::vector<std::string> &names, const SchemaCatalog &catalog) {
  Result<NamedKinds> kinds = NamedKinds::find(names, catalog);
  if (!kinds) kinds.error().what += "; \"etwrelog schema\" lists the kinds of a trace";
  return kinds;
}

} // namespace

std::array<CLI::Option *, 3> EventsFlags::add_to(CLI::App &command, const char *written) {
  CLI::Option *const names =
      command
          .add_option(
              "--event", events,
              fmt::format("Instead of samples, events of this name, such as GC/AllocationTick, with * "
                          "and ?{}; repeatable",
                          written))
          ->allow_extra_args(false);
  CLI::Option *const field = command
                                 .add_option("--sum", sum,
                                             "Of these events add up a field instead of counting them: "
                                             "IoSize, AllocationAmount64; duration: how "
                                             "long it took what they end")
                                 ->needs(names);
  CLI::Option *const innermost =
      command
          .add_option(
              "--leaf", leaf,
              "Of these events show what a field says as the innermost frame: TypeName, OpenPath; file: "
              "the path of the file that they are about")
          ->needs(names);
  return {names, field, innermost};
}

Result<void> EventsFlags::count(const Trace &trace, const RunOptions &run, ProfileOptions &options) const {
  if (events.empty()) return {};
  const Result<SchemaCatalog> catalog = collect_schemas(trace, {}, run);
  if (!catalog) return catalog.error();
  Result<NamedKinds> kinds = kinds_called(events, *catalog);
  if (!kinds) return std::move(kinds).error();
  options.kind = ProfileKind::events;
  options.events = *std::move(kinds);
  options.sum = sum;
  options.leaf = leaf;
  return {};
}

void EventsFlags::warn_of_weightless(const std::string &trace, const ProfileResult &result) const {
  if (result.weightless == 0) return;
  warn(trace, fmt::format("{} of {} events weigh nothing: they have no {}, or one below 0",
                          human_count(result.weightless),
                          human_count(result.profile.accounting.total.samples), sum));
}

namespace {

struct Join {
  const char *word;
  bool ExportJoins::*wanted;
  std::vector<std::string_view> columns;
};

const Join kJoins[] = {
    {"process", &ExportJoins::process, {"command_line"}},
    {"owner", &ExportJoins::owner, {"owner_process_id", "owner_thread_id", "owner_process"}},
    {"file", &ExportJoins::file, {"file"}},
    {"registry", &ExportJoins::registry, {"registry_key"}},
    {"module", &ExportJoins::module, {"modules"}},
    {"stack", &ExportJoins::stack, {"stack"}},
    {"duration", &ExportJoins::duration, {"duration_ns"}}};

} // namespace

std::string_view JoinFlags::adding(std::string_view column) {
  for (const Join &join : kJoins) {
    const bool said = column == join.word && join.wanted != &ExportJoins::process; // that is a column itself
    if (said || std::ranges::find(join.columns, column) != join.columns.end()) return join.word;
  }
  return {};
}

void JoinFlags::add_to(CLI::App &command) {
  command
      .add_option(
          "--join", names,
          "What other events say about each: process (command line), owner (process and thread also of "
          "events without ids), file (path of a file object or key), registry (name of a key), module (image "
          "and offset of addresses), "
          "stack, "
          "duration (of what ends here); or all")
      ->delimiter(',')
      ->allow_extra_args(false);
  symbols.add_to(command, "Names of native functions in joined stacks, too, by the PDBs in this folder, or "
                          "symbol store, looked at before _NT_SYMBOL_PATH");
}

// "file,stack" or "all".
Result<ExportJoins> JoinFlags::joins(const std::vector<std::string> &traces) const {
  if (Result<void> sound = symbols.check(traces); !sound) return std::move(sound).error();
  ExportJoins joins;
  for (const std::string &name : names) {
    bool known = false;
    for (const Join &join : kJoins)
      if (name == join.word || name == "all") joins.*join.wanted = known = true;
    if (known) continue;
    Error error;
    error.kind = ErrorKind::usage;
    error.what = "--join";
    error.expected = "process, owner, file, registry, module, stack, duration or all";
    error.found = "'" + name + "'";
    return error;
  }
  if (wants_names() && !joins.stack)
    return usage_error("--symbols and --symbol-server name the frames of stacks: they need --join stack");
  return joins;
}

std::unique_ptr<SymbolResolver> JoinFlags::resolver(const std::vector<std::string> &traces,
                                                    unsigned threads) const {
  if (!wants_names() || symbols.none()) return nullptr;
  warn_without_pdb_reader();
  return std::make_unique<SymbolResolver>(symbols.options(traces, threads));
}

Error about_condition(Error error) {
  constexpr std::string_view kField = "has a field '";
  const std::size_t begin = error.what.find(kField);
  if (begin == std::string::npos) return error;
  const std::string_view name = std::string_view(error.what).substr(begin + kField.size());
  if (const std::string_view join = JoinFlags::adding(name.substr(0, name.find('\''))); !join.empty())
    error.what += fmt::format("; what --join adds cannot stand in a condition, but in SQL of \"etwrelog "
                              "query --join {}\"",
                              join);
  return error;
}

CLI::Validator no_less_than_zero() {
  return CLI::Validator(
      [](std::string &text) {
        const std::size_t at = text.find_first_not_of(" \t");
        return at != std::string::npos && text[at] == '-' ? fmt::format("\"{}\" is less than 0", text)
                                                          : std::string();
      },
      "");
}

CLI::Validator at_least_one() {
  return CLI::Validator(
      [](std::string &text) {
        const bool none = text.find_first_not_of("0-") == std::string::npos || text.starts_with('-');
        return none ? fmt::format("\"{}\" is less than 1", text) : std::string();
      },
      "");
}

void SelectionFlags::add_to(CLI::App &command) {
  // One value a flag: what follows may be the trace.
  auto add_repeatable = [&command](const char *name, auto &values, const char *description) {
    return command.add_option(name, values, description)->allow_extra_args(false)->group(kSelection);
  };
  add_repeatable("-p,--process", selection_.processes,
                 "Keep this process: id or name, * and ? match any; repeatable");
  command.add_flag("--children", selection_.children, "And its descendants")->group(kSelection);
  command
      .add_option("--cmdline", selection_.command_line,
                  "Keep processes whose command line matches this regular expression (RE2)")
      ->group(kSelection);
  add_repeatable("--exclude", selection_.exclude, "Drop this process; repeatable");
  command.add_option("--from", from_, "Keep events from then on: 12.5s, 2m, or UTC time")->group(kSelection);
  command.add_option("--to", to_, "Keep events up to then")->group(kSelection);
  add_repeatable("--provider", providers_, "Keep events of GUID|name[:keywords[:level]]; repeatable");
  add_repeatable(
      "--event", events_,
      "Keep events of this name, such as GC/AllocationTick or CSwitch, with * and ?, or with this id "
      "(kernel events: hook id); repeatable");
  add_repeatable("--opcode", opcodes_, "Keep events with this opcode; repeatable");
  add_repeatable("--task", tasks_, "Keep events of this task; repeatable");
  add_repeatable("--channel", channels_, "Keep events of this channel; repeatable");
  add_repeatable("--activity", activities_, "Keep events of this activity id, a GUID; repeatable");
  add_repeatable("--cpu", selection_.processors, "Keep events of this processor; repeatable")
      ->check(no_less_than_zero());
  command.add_flag("--keep-system", selection_.keep_system, "Keep events of no process: DPC, ISR and others")
      ->group(kSelection);
}

namespace {

constexpr const char *kProviderForm =
    "a GUID, or a name that is known or that the trace tells (\"etwrelog schema\" lists them)";

// And not its id, nor what can only be meant as one.
bool is_event_name(std::string_view text) {
  return text.find_first_not_of("+-0123456789") != std::string_view::npos && !text.starts_with("0x") &&
         !text.starts_with("0X");
}

// "NAME", "NAME:keywords", "NAME:keywords:level" of providers that have this name in the catalog.
std::vector<ProviderSelection> providers_of(std::string_view text, const SchemaCatalog &catalog) {
  std::vector<ProviderSelection> found;
  for (std::size_t end = text.size(); found.empty() && end != std::string_view::npos && end != 0;
       end = text.rfind(':', end - 1)) {
    const std::string rest(text.substr(end));
    for (const Guid &guid : catalog.providers_called(text.substr(0, end)))
      if (const auto provider = parse_provider(to_string(guid) + rest)) found.push_back(*provider);
  }
  return found;
}

} // namespace

Result<void> SelectionFlags::find_names(const Trace &trace, const SchemaCatalog &known, const RunOptions &run,
                                        Selection &selection) const {
  std::vector<std::string> providers, events;
  std::ranges::copy_if(providers_, std::back_inserter(providers),
                       [](const std::string &text) { return !parse_provider(text); });
  std::ranges::copy_if(events_, std::back_inserter(events), is_event_name);
  if (providers.empty() && events.empty()) return {};
  if (trace.single_pass())
    return providers.empty() ? bad_value(Option::events, events[0],
                                         "an event id, where a trace is filtered while it is read")
                             : bad_value(Option::providers, providers[0], kProviderForm);
  const Result<SchemaCatalog> catalog = collect_schemas(trace, known, run);
  if (!catalog) return catalog.error();
  for (const std::string &text : providers) {
    const std::vector<ProviderSelection> found = providers_of(text, *catalog);
    if (found.empty()) return bad_value(Option::providers, text, kProviderForm);
    selection.providers.insert(selection.providers.end(), found.begin(), found.end());
  }
  Result<NamedKinds> kinds = kinds_called(events, *catalog);
  if (!kinds) return std::move(kinds).error();
  selection.kinds = *std::move(kinds);
  return {};
}

Result<Selection> SelectionFlags::selection() const {
  Selection selection = selection_;
  Result<std::optional<Moment>> from = moment_of(from_, Option::from), to = moment_of(to_, Option::to);
  if (!from) return std::move(from).error();
  if (!to) return std::move(to).error();
  selection.from = *from;
  selection.to = *to;
  for (const std::string &text : providers_) {
    if (text.empty()) return bad_value(Option::providers, text, kProviderForm);
    if (const std::optional<ProviderSelection> provider = parse_provider(text))
      selection.providers.push_back(*provider);
  }
  std::vector<std::string> ids;
  std::ranges::remove_copy_if(events_, std::back_inserter(ids), is_event_name);
  Result<void> ok = parse_ids<std::uint16_t>(ids, Option::events, "an event id", selection.events);
  if (ok) ok = parse_ids<std::uint8_t>(opcodes_, Option::opcodes, "an opcode", selection.opcodes);
  if (ok) ok = parse_ids<std::uint16_t>(tasks_, Option::tasks, "a task", selection.tasks);
  if (ok) ok = parse_ids<std::uint8_t>(channels_, Option::channels, "a channel", selection.channels);
  if (!ok) return std::move(ok).error();
  for (const std::string &text : activities_) {
    const std::optional<Guid> activity = parse_guid(text);
    if (!activity) return bad_value(Option::activities, text, "a GUID");
    selection.activities.push_back(*activity);
  }
  if (selection.processes.empty() && selection.command_line.empty()) {
    constexpr const char *kNeeds = "needs --process or --cmdline";
    if (selection.children) return usage_error(kNeeds, Option::children);
    if (selection.keep_system) return usage_error(kNeeds, Option::keep_system);
  }
  return selection;
}

} // namespace etwrelog::cli
