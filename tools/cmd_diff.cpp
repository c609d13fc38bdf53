// etwrelog diff: what changed between traces, and whether that is more than noise.
#include "etwrelog/profile_diff.hpp"
#include "etwrelog/profile_export.hpp"
#include "etwrelog/profile_symbols.hpp"
#include "tools/cli.hpp"
#include "tools/commands.hpp"
#include "tools/errors.hpp"
#include "tools/process.hpp"
#include "tools/symbol_options.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>

#include <fmt/format.h>

namespace etwrelog::cli {
namespace {

using nlohmann::json;

struct DiffFlags : RunFlags, SymbolFlags, EventsFlags {
  std::vector<std::string> before, after, processes, conditions;
  std::string output;
  std::size_t top = 20;
  bool salvage = false, force = false;
};

// Of one name, however it is written: it is no pattern, though it may be "*".
bool select_named(Profile &profile, std::string_view name) {
  const auto is_other = [&](std::uint32_t thread) {
    return !same_in_any_case(profile.processes[profile.threads[thread].process].name, name);
  };
  std::erase_if(profile.samples, [&](const ProfileSample &sample) { return is_other(sample.thread); });
  return !profile.samples.empty();
}

// `busiest`: of the first trace, where nothing else was asked for; empty for that trace itself.
Result<Profile> read_one(const DiffFlags &options, const std::string &input, const std::string &busiest,
                         int &status) {
  Bar bar(options.progress);
  const RunOptions run = options.run(bar);
  const Result<Trace> trace =
      Trace::open(input_of(input), {.salvage = options.salvage, .file_order = true}, run);
  if (!trace) return trace.error();
  ProfileOptions what;
  what.names = !options.none();
  if (Result<void> counts = options.count(*trace, run, what); !counts) return std::move(counts).error();
  Result<ProfileResult> result = make_profile(*trace, what, run);
  if (!result) return std::move(result).error();
  status = std::max(status, report_damage(source_names(*trace), result->warnings, result->skipped));
  options.warn_of_weightless(input, *result);
  if (!result->profile.samples.empty() && result->profile.counts_samples() &&
      result->profile.weight_ns() == 0)
    warn(input, "the sampling interval is not recorded: processor time is that of one sample every 1 ms");
  Error error;
  error.kind = ErrorKind::no_match;
  error.file = input;
  if (result->profile.samples.empty()) {
    error.what =
        what.kind == ProfileKind::events ? "no event fits --event" : "the trace holds no CPU samples";
    return error;
  }
  if (!busiest.empty() && !select_named(result->profile, busiest)) {
    error.what = fmt::format("no process with {} is called \"{}\"",
                             what.kind == ProfileKind::events ? "such events" : "samples", busiest);
    return error;
  }
  if (Result<void> done = select(result->profile, {options.processes, {}, {}, {}}); !done) {
    done.error().file = input;
    return std::move(done).error();
  }
  return std::move(result->profile);
}

Result<std::vector<Profile>> read_side(const DiffFlags &options, const std::vector<std::string> &inputs,
                                       std::string &busiest, int &status) {
  if (Result<void> once = check_inputs(inputs_of(inputs)); !once) return once.error();
  std::vector<Profile> profiles;
  for (const std::string &input : inputs) {
    Result<Profile> profile = read_one(options, input, busiest, status);
    if (!profile) return std::move(profile).error();
    if (options.processes.empty() && busiest.empty())
      if (const std::uint32_t process = busiest_process(*profile); process != kNoIndex) {
        busiest = profile->processes[process].name;
        process::print_message(
            fmt::format("etwrelog: of {}, the busiest process of {}; -p NAME takes another, -p '*' all\n",
                        printable(busiest), printable(input)));
        select_named(*profile, busiest);
      }
    profiles.push_back(*std::move(profile));
  }
  return profiles;
}

// "+12.3%", "new", "gone".
std::string relative_text(double relative) {
  return std::isinf(relative) ? std::string("new") : fmt::format("{:+.1f}%", 100 * relative);
}

void print_change(const ProfileChange &change) {
  print_row("{:>6.2f}% {:>6.2f}% {:>+7.2f} [{:>+6.2f} {:>+6.2f}] {:>8}  {:<8}  {}", 100 * change.before,
            100 * change.after, 100 * (change.after - change.before), 100 * change.low, 100 * change.high,
            relative_text(change.relative()), verdict_text(change.verdict), change.name);
}

// `one`: of the profiles, which are all alike.
void print_diff(const ProfileDiff &diff, const Profile &one, std::size_t top) {
  const ProfileChange &total = diff.total;
  const bool of_bytes = profile_unit(one) == "bytes";
  const auto amount = [&](double of) {
    if (of_bytes) return human_bytes(static_cast<std::uint64_t>(of));
    const bool amounts = one.kind == ProfileKind::events && one.counts();
    return amounts ? fmt::format("{:.6g}", of) : fmt::format("{:.3f} s", of);
  };
  const std::string what = one.kind != ProfileKind::events ? "Processor time"
                           : one.summed.empty()            ? "Events"
                                                           : printable(one.summed);
  print_text("{} a trace: {} before, {} after, {} [{} {}]: {}\n\n", what, amount(total.before),
             amount(total.after), relative_text(total.relative()), relative_text(total.relative_low),
             relative_text(total.relative_high), verdict_text(total.verdict));
  print_row("{:>7} {:>7} {:>7} [{:^13}] {:>8}  {:<8}  Function and what it called, as shares of all",
            "Before", "After", "Change", "95%", "Relative", "Verdict");
  std::size_t shown = 0, noise = 0;
  for (const ProfileChange &change : diff.changes) {
    if (change.verdict == ProfileVerdict::same)
      ++noise;
    else if (top == 0 || shown < top)
      print_change(change), ++shown;
    else
      ++shown;
  }
  if (top != 0 && shown > top) print_row("({} more changes; --top 0 shows all)", shown - top);
  if (shown == 0) print_text("No function changed by more than the noise.\n");
  print_row("{} functions changed, {} did not beyond the noise", shown, noise);
}

json number(double value) {
  return std::isfinite(value) ? json(value) : json(nullptr); // null: nothing was there before
}

json change_json(const ProfileChange &change) {
  return {{"name", change.name},
          {"before", change.before},
          {"after", change.after},
          {"low", change.low},
          {"high", change.high},
          {"relative", number(change.relative())},
          {"relative_low", number(change.relative_low)},
          {"relative_high", number(change.relative_high)},
          {"verdict", verdict_text(change.verdict)}};
}

Result<ProfileFormat> picture_format(const DiffFlags &options) {
  const std::optional<ProfileFormat> format = profile_format_of_path(options.output);
  if (format && (*format == ProfileFormat::svg || *format == ProfileFormat::folded)) return *format;
  Error error;
  error.kind = ErrorKind::usage;
  error.option = Option::output;
  error.what = fmt::format("\"{}\" has no ending that tells a format for differences", options.output);
  error.expected = ".svg or .folded";
  return error;
}

Result<void> write_picture(const DiffFlags &options, ProfileFormat format, const std::vector<Profile> &before,
                           const std::vector<Profile> &after) {
  std::vector<Input> inputs = inputs_of(options.before);
  std::ranges::move(inputs_of(options.after), std::back_inserter(inputs));
  Result<OutputStream> file = OutputStream::open(output_of(options.output, options.force), inputs);
  if (!file) return std::move(file).error();
  const Result<ProfileExportReport> report = write_profile_diff(
      before, after, format, {}, [&](Bytes bytes) { return write_unless_stopped(*file, bytes); });
  if (!report) return report.error();
  return file->commit();
}

// Modules by whether their names were found.
struct ModuleNames {
  explicit ModuleNames(const std::vector<Profile> &side) {
    for (const Profile &profile : side)
      for (const ProfileFrame &frame : profile.frames)
        if (frame.module != kNoIndex) {
          const ProfileModule &module = profile.modules[frame.module];
          if (module.symbols != Unresolved::not_asked)
            (module.symbols == Unresolved::none ? found : missing).insert(module.name);
        }
  }
  std::set<std::string> found, missing;
};

// All functions of a module that has names on the `other` side alone seem to be new, or gone.
void warn_of_names_missing(const char *which, const ModuleNames &side, const ModuleNames &other) {
  for (const std::string &module : side.missing)
    if (!side.found.contains(module) && other.found.contains(module))
      warn("symbols", fmt::format("{} has no names on the {} side alone (see etwrelog symbols), so its "
                                  "functions cannot be compared; --symbols none compares modules",
                                  module, which));
}

// Only of what is left after the selection; of both sides by one resolver, as most modules are on both.
void name_frames(const DiffFlags &options, std::vector<Profile> &before, std::vector<Profile> &after) {
  if (options.none()) return;
  std::vector<std::string> traces = options.before;
  traces.insert(traces.end(), options.after.begin(), options.after.end());
  SymbolResolver resolver(options.SymbolFlags::options(traces, options.threads));
  for (std::vector<Profile> *side : {&before, &after})
    for (Profile &profile : *side)
      name_native_code(profile, resolver);
  warn_of(&resolver);
  const ModuleNames old_names(before), new_names(after);
  warn_of_names_missing("old", old_names, new_names);
  warn_of_names_missing("new", new_names, old_names);
}

int run_diff(DiffFlags options) {
  // Two traces are one from before and one from after, as for every other program of this name.
  if (options.after.empty() && options.before.size() == 2) {
    options.after.push_back(std::move(options.before.back()));
    options.before.pop_back();
  }
  if (options.after.empty())
    return report(usage_error("the traces from after are missing: diff OLD NEW, or of several diff BASE... "
                              "-- NEW..., with \"--\" between the two"));
  std::vector<std::string> traces = options.before;
  traces.insert(traces.end(), options.after.begin(), options.after.end());
  if (Result<void> sound = options.SymbolFlags::check(traces); !sound) return report(sound.error());
  std::vector<ProfileCondition> conditions;
  for (const std::string &text : options.conditions) {
    Result<ProfileCondition> condition = parse_condition(text);
    if (!condition) return report(condition.error());
    conditions.push_back(*std::move(condition));
  }
  std::optional<ProfileFormat> format;
  if (!options.output.empty()) {
    const Result<ProfileFormat> known = picture_format(options);
    if (!known) return report(known.error());
    format = *known;
    // Reading large traces and fetching symbols take long.
    if (Result<void> fits = check_outputs(traces, {options.output}, options.force); !fits)
      return report(fits.error());
  }
  int status = kDone;
  std::string busiest;
  Result<std::vector<Profile>> before = read_side(options, options.before, busiest, status);
  if (!before) return report(before.error());
  Result<std::vector<Profile>> after = read_side(options, options.after, busiest, status);
  if (!after) return report(after.error());
  name_frames(options, *before, *after);
  if (const Result<void> go_on = unless_stopped(); !go_on) return report(go_on.error());
  std::vector<Profile *> all;
  for (std::vector<Profile> *const side : {&*before, &*after})
    for (Profile &profile : *side)
      all.push_back(&profile);
  make_comparable(all, kUsualIntervalNs);
  const ProfileDiff diff = profile_diff(*before, *after);
  json failures = json::array();
  std::string messages;
  for (std::size_t i = 0; i < conditions.size(); ++i) {
    // Mistyped, or without symbols here: a gate that can never close says so.
    if (!names_any(diff, conditions[i])) {
      constexpr const char *kNobody = "no function of either side has that name, so that it cannot hold";
      failures.push_back({{"condition", options.conditions[i]}, {"error", kNobody}});
      messages += fmt::format("etwrelog: error: --fail-if \"{}\": {}; write it as diff --top 0 shows it\n",
                              printable(options.conditions[i]), kNobody);
    }
    for (const ProfileChange &change : matching_changes(diff, conditions[i])) {
      failures.push_back({{"condition", options.conditions[i]}, {"change", change_json(change)}});
      messages += fmt::format("etwrelog: failed: {}: {} {} [{} {}]\n", printable(options.conditions[i]),
                              printable(change.name), relative_text(change.relative()),
                              relative_text(change.relative_low), relative_text(change.relative_high));
    }
  }
  if (!options.output.empty())
    if (Result<void> done = write_picture(options, *format, *before, *after); !done)
      return report(done.error());
  if (options.json) {
    json changes = json::array();
    for (std::size_t i = 0; i < diff.changes.size() && (options.top == 0 || i < options.top); ++i)
      changes.push_back(change_json(diff.changes[i]));
    print_text("{}\n",
               text_of({{"total", change_json(diff.total)}, {"changes", changes}, {"failed", failures}}));
  } else {
    print_diff(diff, after->front(), options.top);
  }
  process::print_message(messages);
  return failures.empty() ? status : int{kFailed};
}

void add_diff_command(CLI::App &app, int &exit_status) {
  auto options = std::make_shared<DiffFlags>();
  CLI::App *c =
      app.add_subcommand("diff", "What changed between profiles: diff OLD NEW, or diff BASE... -- NEW...");
  c->add_option("BASE", options->before, "Traces from before; of two traces the second is the one from after")
      ->required();
  c->add_option("--new", options->after, "Traces from after; -- says the same");
  c->add_option("-p,--process", options->processes, "Only these processes: names (* and ?) or ids")
      ->allow_extra_args(false);
  options->EventsFlags::add_to(*c);
  c->add_option("--top", options->top, "Changes to show; 0: all")->check(no_less_than_zero());
  c->add_option(
       "--fail-if", options->conditions,
       "Exit with status 1 if it holds beyond the noise: 'total > +5%', 'game.exe!Render > +10%', * and ? "
       "match any; also if no function of either side has that name")
      ->allow_extra_args(false);
  CLI::Option *output = c->add_option("-o,--output", options->output,
                                      "Differential flame graph (.svg) or folded stacks (.folded)");
  c->add_flag("-f,--force", options->force, "Replace an existing output")->needs(output);
  c->add_flag("--salvage", options->salvage, "Step over damage");
  options->SymbolFlags::add_to(
      *c, "Folder with PDBs, or a symbol store, looked at before _NT_SYMBOL_PATH; none: modules only, and "
          "nothing is looked for anywhere");
  options->RunFlags::add_to(*c);
  options->add_json_to(*c);
  c->callback([options, &exit_status] { exit_status = run_diff(*options); });
}

const Command kDiff(26, add_diff_command);

} // namespace
} // namespace etwrelog::cli
