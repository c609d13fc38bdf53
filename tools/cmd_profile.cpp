// etwrelog profile: where the time went.
#include "etwrelog/profile_export.hpp"
#include "etwrelog/profile_report.hpp"
#include "etwrelog/profile_symbols.hpp"

#include "tools/bulk.hpp"
#include "tools/cli.hpp"
#include "tools/commands.hpp"
#include "tools/errors.hpp"
#include "tools/pipes.hpp"
#include "tools/profile_text.hpp"
#include "tools/symbol_options.hpp"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace etwrelog::cli {
namespace {

struct ProfileFlags : CommonOptions, SymbolFlags, EventsFlags {
  std::vector<std::string> processes, threads_of, only_threads;
  std::string from, to, kind = "cpu", by = "function", output, format, max_size;
  BulkFlags many;
  double min_share = 1;
  std::size_t top = 30;
  bool tree = false, idle = false, force = false, icicle = false;
  CLI::Option *top_given = nullptr, *by_given = nullptr, *min_given = nullptr, *kind_given = nullptr;
};

ProfileKind kind_of(const std::string &name) {
  return name == "wait" ? ProfileKind::wait : name == "ready" ? ProfileKind::ready : ProfileKind::cpu;
}

ProfileBy by_of(const std::string &name) {
  if (name == "process") return ProfileBy::process;
  if (name == "thread") return ProfileBy::thread;
  if (name == "module") return ProfileBy::module;
  return name == "line" ? ProfileBy::line : ProfileBy::function;
}

// What the trace has instead of what was asked for. `slices`: what threads did, with stacks or without.
Error nothing_there(const std::string &file, ProfileKind kind, bool slices, bool all_of_it,
                    const ProfileResult &result) {
  if (kind == ProfileKind::events && !slices) {
    Error none = usage_error("no event fits the selection", Option::events);
    none.kind = ErrorKind::no_match;
    none.file = file;
    return none;
  }
  const bool samples = kind == ProfileKind::cpu && !slices;
  const char *const stacks = slices ? "" : " with stacks";
  Error error;
  error.kind = ErrorKind::no_match;
  error.file = file;
  error.what = samples ? "the trace holds no CPU samples"
                       : fmt::format("the trace holds no context switches{}", stacks);
  error.expected = samples ? "PerfInfo/Sample events (kernel keyword PROFILE)"
                           : fmt::format("Thread/CSwitch events (kernel keyword CSWITCH){}", stacks);
  if (slices && result.events.contains("Windows Kernel/Thread/CSwitch")) {
    error.what = "the trace holds no two context switches that belong together";
    error.expected = "one to a thread, and one away from it on the same processor or to it again";
  }
  if (!all_of_it) error.what += " in the time asked for";
  std::vector<std::pair<std::uint64_t, std::string>> rows;
  std::uint64_t events = 0;
  for (const auto &[name, count] : result.events) {
    rows.emplace_back(count, name);
    events += count;
  }
  std::ranges::sort(rows, std::greater<>());
  error.found = fmt::format("{} events of {} types", human_count(events), rows.size());
  for (std::size_t i = 0; i < rows.size() && i < 5; ++i)
    error.found += fmt::format("{} {} x {}", i == 0 ? ":" : ",", human_count(rows[i].first), rows[i].second);
  if (rows.size() > 5) error.found += ", ...";
  return error;
}

std::string interval_text(const Profile &profile) {
  if (profile.by_time) return "times that differ";
  return profile.interval_ns == 0 ? "an interval not recorded"
                                  : fmt::format("{} ms", static_cast<double>(profile.interval_ns) * 1e-6);
}

// Runs as one profile.
Profile added_up(std::vector<Profile> runs) {
  const std::string first = interval_text(runs.front());
  const auto other =
      std::ranges::find_if(runs, [&](const Profile &run) { return interval_text(run) != first; });
  const std::string name = other == runs.end() ? "" : other->trace,
                    of_other = other == runs.end() ? "" : interval_text(*other);
  std::vector<Profile *> all;
  for (Profile &run : runs)
    all.push_back(&run);
  make_comparable(all);
  if (other != runs.end() && runs.front().kind == ProfileKind::cpu)
    warn(name, fmt::format(
                   "a sample stands for {}, of {} for {}: {}", of_other, printable(runs.front().trace), first,
                   runs.front().by_time ? "samples are counted by the time that each stands for"
                                        : "one interval is not recorded, so that each counts as one sample"));
  Profile sum = std::move(runs.front());
  for (std::size_t i = 1; i < runs.size(); ++i)
    append(sum, std::exchange(runs[i], {}));
  return sum;
}

std::optional<ProfileFormat> format_of(const ProfileFlags &options) {
  return options.format.empty() ? profile_format_of_path(options.output)
                                : parse_profile_format(options.format);
}

// A file of what threads did when, whatever samples there are.
bool shows_slices_alone(const ProfileFlags &options) {
  return format_of(options) == ProfileFormat::chrome;
}

std::vector<std::string> format_names() {
  std::vector<std::string> names;
  for (const ProfileFormat format :
       {ProfileFormat::svg, ProfileFormat::html, ProfileFormat::folded, ProfileFormat::speedscope,
        ProfileFormat::firefox, ProfileFormat::pprof, ProfileFormat::chrome})
    names.emplace_back(profile_format_name(format));
  return names;
}

// An ending (".pb.gz", "pb.gz") is the name of its format; anything else is left to the list of names.
CLI::Validator ending_as_name() {
  return CLI::Validator(
      [](std::string &text) {
        const std::string file = (text.starts_with('.') ? "x" : "x.") + text;
        if (const std::optional<ProfileFormat> format = profile_format_of_path(file))
          text = profile_format_name(*format);
        return std::string();
      },
      "");
}

Result<Profile> read_profiles(const ProfileFlags &options, int &status) {
  const Result<std::optional<Moment>> from = moment_of(options.from, Option::from),
                                      to = moment_of(options.to, Option::to);
  if (!from) return from.error();
  if (!to) return to.error();
  if (Result<void> once = check_inputs(inputs_of(options.inputs)); !once) return once.error();
  std::vector<Profile> runs;
  std::vector<Error> without; // of those that have nothing to add
  for (const std::vector<std::string> &inputs : options.together()) {
    Bar bar(options.progress);
    const RunOptions run = options.run(bar);
    const Result<Trace> trace = open_trace(inputs, options.opening(), run);
    if (!trace) return trace.error();
    const std::string name = name_of(*trace, inputs);
    ProfileOptions profile_options;
    profile_options.kind = kind_of(options.kind);
    if (Result<void> counts = options.count(*trace, run, profile_options); !counts)
      return std::move(counts).error();
    profile_options.idle = options.idle;
    const std::optional<ProfileFormat> format = format_of(options);
    profile_options.slices = format == ProfileFormat::chrome || format == ProfileFormat::firefox;
    profile_options.names = !options.none();
    profile_options.from = *from;
    profile_options.to = *to;
    Result<ProfileResult> result = make_profile(*trace, profile_options, run);
    if (!result) return std::move(result).error();
    status = std::max(status, report_damage(source_names(*trace), result->warnings, result->skipped));
    if (result->unreadable != 0)
      warn(name, fmt::format("{} stack events or samples are too short to be read",
                             human_count(result->unreadable)));
    options.warn_of_weightless(name, *result);
    const bool of_slices = shows_slices_alone(options);
    if (of_slices ? result->profile.slices.empty() : result->profile.accounting.total.samples == 0)
      without.push_back(nothing_there(name, profile_options.kind, of_slices, !*from && !*to, *result));
    else
      runs.push_back(std::move(result->profile));
  }
  if (runs.empty()) return std::move(without.front());
  for (const Error &error : without)
    warn(error.file, error.what + ": it adds nothing to the others");
  return added_up(std::move(runs));
}

// Shows where the time went at the busiest process unless another was asked for.
Result<Profile> narrow(const ProfileFlags &options, Profile profile, bool all_processes,
                       std::string &chosen) {
  ProfileSelection selection;
  selection.processes = options.processes;
  selection.processes.insert(selection.processes.end(), options.threads_of.begin(), options.threads_of.end());
  selection.threads = options.only_threads;
  if (Result<void> done = select(profile, selection); !done) return std::move(done).error();
  if (selection.processes.empty() && !all_processes)
    if (const std::uint32_t busiest = busiest_process(profile); busiest != kNoIndex) {
      // In each run it has another id.
      const bool by_name = !profile.runs.empty();
      const std::string &name = profile.processes[busiest].name;
      chosen = by_name ? name : process_text(profile.processes[busiest]);
      const auto is_other = [&](std::uint32_t thread) {
        const std::uint32_t process = profile.threads[thread].process;
        return process != busiest && !(by_name && profile.processes[process].name == name);
      };
      std::erase_if(profile.samples, [&](const ProfileSample &sample) { return is_other(sample.thread); });
      std::erase_if(profile.slices, [&](const ProfileSlice &slice) { return is_other(slice.thread); });
    }
  return profile;
}

// Only for what is left after the selection: looking for symbols takes longer than all the rest.
void name_frames(const ProfileFlags &options, Profile &profile) {
  if (options.none()) return;
  SymbolResolver resolver(options.SymbolFlags::options(options.inputs, options.threads));
  name_native_code(profile, resolver);
  warn_of(&resolver);
}

Result<int> write_file(const ProfileFlags &options, const Profile &profile) {
  const ProfileFormat format = *format_of(options); // check_flags() has looked
  const bool to_standard_output = options.output == "-";
  const auto standard_output = std::make_shared<StandardOutputSink>();
  Result<OutputStream> file =
      OutputStream::open(to_standard_output ? Output::sink("standard output", standard_output)
                                            : output_of(options.output, options.force),
                         inputs_of(options.inputs));
  if (!file) return std::move(file).error();
  ProfileExportOptions how;
  how.icicle = options.icicle;
  if (!options.max_size.empty()) how.max_bytes = parse_size(options.max_size).value_or(0);
  const Result<ProfileExportReport> report =
      write_profile(profile, format, how, [&](Bytes bytes) { return write_unless_stopped(*file, bytes); });
  Result<void> done = report ? file->commit() : Result<void>(report.error());
  if (done && to_standard_output) done = standard_output->flush();
  if (standard_output->reader_gone()) return kFailed;
  if (!done) return std::move(done).error();
  const std::string name = to_standard_output ? "standard output" : printable(options.output);
  print_line(fmt::format("{}: {}, {}", name, profile_format_name(format), human_bytes(report->bytes)));
  for (const std::string &note : report->notes)
    print_line(name + ": " + printable(note));
  return kDone;
}

Result<int> profile_one(const ProfileFlags &options) {
  int status = kDone;
  const bool writes = !options.output.empty();
  // Reading a large trace and fetching symbols take long.
  if (writes && options.output != "-")
    if (Result<void> fits = check_outputs(options.inputs, {options.output}, options.force); !fits)
      return std::move(fits).error();
  Result<Profile> all = read_profiles(options, status);
  if (!all) return std::move(all).error();
  const bool picture = writes && format_of(options) == ProfileFormat::svg;
  // A picture of everything shows little; tables and exports of everything are what was asked for.
  const bool of_all =
      (writes && !picture) || options.by == "process" || (options.json && options.processes.empty());
  ProfileText text;
  text.by = by_of(options.threads_of.empty() || options.by_given->count() != 0 ? options.by : "thread");
  text.top = options.top;
  text.tree = options.tree;
  text.min_share = options.min_share / 100;
  text.all = profile_overview(*all);
  Result<Profile> profile = narrow(options, *std::move(all), of_all, text.chosen);
  if (!profile) return std::move(profile).error();
  text.of_some = !options.processes.empty() || !options.threads_of.empty() || !options.only_threads.empty();
  const bool of_slices = writes && shows_slices_alone(options);
  if (of_slices ? profile->slices.empty() : profile->samples.empty()) {
    Error error;
    error.kind = ErrorKind::no_match;
    error.what = fmt::format("nothing is left of the profile: no {} fits the selection",
                             of_slices                              ? "context switch"
                             : profile->kind == ProfileKind::events ? "event"
                                                                    : "sample");
    if (!of_slices && profile->accounting.idle_left_out != 0)
      error.what += "; of the Idle process there are some, for --idle";
    return error;
  }
  name_frames(options, *profile);
  if (Result<void> go_on = unless_stopped(); !go_on) return std::move(go_on).error();
  if (writes) {
    if (!text.chosen.empty())
      print_line(fmt::format("etwrelog: of {}, the busiest process; -p NAME takes another, -p '*' all",
                             printable(text.chosen)));
    Result<int> done = write_file(options, *profile);
    if (!done) return done;
    return std::max(status, *done);
  }
  if (options.json) {
    print_text("{}\n", text_of(profile_json(*profile, text)));
  } else {
    // With the table of processes above it, all is to fit on a screen.
    constexpr std::size_t kScreenRows = 14;
    if (!text.chosen.empty() && options.top_given->count() == 0) text.top = kScreenRows;
    print_profile(*profile, text);
  }
  return status;
}

// Each trace of a list or folder into a file of its own.
int profile_each(const ProfileFlags &options) {
  BulkFlags many = options.many;
  many.inputs = options.inputs;
  many.force = options.force;
  static const std::map<std::string, std::string> kEndings = {{"speedscope", "speedscope.json"},
                                                              {"firefox", "firefox.json.gz"},
                                                              {"pprof", "pb.gz"},
                                                              {"chrome", "trace.json"}};
  const auto ending = kEndings.find(options.format);
  BulkTask task;
  task.name = "profile";
  task.phase = "profiling";
  task.large = 0; // each on all threads: symbols are looked up once at a time
  task.takes = [](std::string_view name) { return has_ending(name, ".etl") || has_ending(name, ".etlz"); };
  task.target = [&](const std::string &source) {
    return exported_name(source, ending == kEndings.end() ? options.format : ending->second);
  };
  task.finished = finished_after_source;
  task.run = [&](const Item &item, Outcome &outcome, FileResult &result,
                 const RunOptions &run) -> Result<void> {
    ProfileFlags one = options;
    one.inputs = {item.source};
    one.output = item.target;
    const Result<int> done = profile_one(one);
    if (!done) return done.error();
    return note_written(item, *done == kDamageSkipped, outcome, result, run);
  };
  return Bulk(std::move(task), many, options).run();
}

// What would mean nothing. `into_files`: nothing is shown.
Result<void> check_flags(const ProfileFlags &options, bool into_files) {
  const bool tree_given = options.tree, by_given = options.by_given->count() != 0,
             top_given = options.top_given->count() != 0, min_given = options.min_given->count() != 0;
  if (!options.events.empty() && (options.kind_given->count() != 0 || options.idle))
    return usage_error("counts events, of which --kind and --idle say nothing", Option::events);
  if (options.idle && kind_of(options.kind) != ProfileKind::cpu)
    return usage_error("--idle is about samples (--kind cpu): the Idle process waits for nothing");
  const std::pair<bool, const char *> of_files[] = {{!options.format.empty(), "--format"},
                                                    {!options.max_size.empty(), "--max-size"},
                                                    {options.icicle, "--icicle"},
                                                    {options.force, "--force"}};
  const std::pair<bool, const char *> of_tables[] = {
      {tree_given, "--tree"}, {top_given, "--top"}, {by_given, "--by"}, {min_given, "--min"}};
  if (!into_files) {
    for (const auto &[given, name] : of_files)
      if (given) return usage_error(fmt::format("is not given, and {} is about it", name), Option::output);
  } else {
    for (const auto &[given, name] : of_tables)
      if (given) return usage_error(fmt::format("{} is about what is shown, not about files", name));
    const std::optional<ProfileFormat> format = format_of(options);
    if (!format)
      return no_profile_format(
          fmt::format("\"{}\" has no ending that tells a format; --format does, too", options.output));
    if (options.icicle && *format != ProfileFormat::svg) return usage_error("--icicle is for .svg");
  }
  if (min_given && !tree_given) return usage_error("--min is about the call tree: --tree, too");
  if (tree_given && (by_given || top_given))
    return usage_error("--tree is the call tree, without --by and --top; --min makes it shorter");
  return {};
}

int run_profile(const ProfileFlags &options) {
  const BulkFlags &many = options.many;
  if (Result<void> sound = many.check_as_one(options.as_one); !sound) return report(sound.error());
  if (Result<void> sound = options.SymbolFlags::check(options.inputs); !sound) return report(sound.error());
  if (many.one_by_one()) {
    if (many.out_dir.empty() || options.format.empty() || !options.output.empty())
      return report(usage_error(
          "lists, folders, shares and results need --out-dir and --format, such as folded, and take "
          "no --output"));
    if (Result<void> sound = check_flags(options, true); !sound) return report(sound.error());
    return profile_each(options);
  }
  if (options.inputs.empty()) return report(no_trace_given());
  if (Result<void> sound = check_flags(options, !options.output.empty()); !sound)
    return report(sound.error());
  if (options.json && !options.output.empty())
    return report(usage_error("--json is about what is shown, not about files"));
  const Result<int> done = profile_one(options);
  return done ? *done : report(done.error());
}

void add_profile_command(CLI::App &app, int &exit_status) {
  auto options = std::make_shared<ProfileFlags>();
  CLI::App *c =
      app.add_subcommand("profile", "Where the time went: busiest functions, call tree, flame graph");
  c->add_option("TRACE", options->inputs,
                "Traces: " + trace_files() + "; several are runs whose samples are added up");
  options->add_as_one_to(*c);
  options->many.add_to(*c, ".etl and .etlz", "Leave alone what is there already and newer than its trace");
  c->add_option("--out-dir", options->many.out_dir, "Folder for a file of each trace, instead of one of all")
      ->group("Fleet");
  c->add_option("-p,--process", options->processes, "Only these processes: names (* and ?) or ids")
      ->allow_extra_args(false)
      ->group("Selection");
  c->add_option("--threads-of", options->threads_of, "Only these processes, by thread")
      ->allow_extra_args(false)
      ->group("Selection");
  c->add_option("--thread", options->only_threads, "Only these threads: names (* and ?) or ids")
      ->allow_extra_args(false)
      ->group("Selection");
  c->add_option("--from", options->from, "From then on: 12.5s, 2m, or UTC time")->group("Selection");
  c->add_option("--to", options->to, "Up to then")->group("Selection");
  c->add_flag("--idle", options->idle, "Count the samples of the Idle process too")->group("Selection");
  options->kind_given =
      c->add_option("--kind", options->kind,
                    "cpu: samples; wait: time blocked, until ready again; ready: from then on, until it runs")
          ->check(CLI::IsMember({"cpu", "wait", "ready"}))
          ->group("View");
  for (CLI::Option *const option :
       options->EventsFlags::add_to(*c, ", and where in the program they were written"))
    option->group("View");
  options->by_given = c->add_option("--by", options->by, "What to list")
                          ->check(CLI::IsMember({"process", "thread", "module", "function", "line"}))
                          ->group("View");
  options->top_given =
      c->add_option("--top", options->top, "Rows to show; 0: all")->check(no_less_than_zero())->group("View");
  c->add_flag("--tree", options->tree, "The call tree")->group("View");
  options->min_given =
      c->add_option("--min", options->min_share, "Leave out of the tree what is below that many percent")
          ->transform(CLI::Validator(
              [](std::string &value) {
                if (!value.empty() && value.back() == '%') value.pop_back();
                return std::string();
              },
              "PERCENT", "percent"))
          ->check(CLI::Range(0.0, 100.0))
          ->group("View");
  options->SymbolFlags::add_to(
      *c, "Folder with PDBs, or a symbol store, looked at before _NT_SYMBOL_PATH; none: modules "
          "and offsets only, and nothing is looked for anywhere");
  c->add_option("-o,--output", options->output,
                "File to write (- with --format: standard output); its ending tells the format: .svg .html "
                ".folded .speedscope.json .firefox.json.gz "
                ".pb.gz .trace.json")
      ->group("Output");
  c->add_option("--format", options->format, "Its format, whatever the ending; endings are taken, too")
      ->transform(ending_as_name())
      ->check(CLI::IsMember(format_names()))
      ->group("Output");
  c->add_option("--max-size", options->max_size,
                "Keep the file below; what is least is summed up as \"other\"")
      ->check(size_validator())
      ->group("Output");
  c->add_flag("--icicle", options->icicle, "Flame graphs with the root on top")->group("Output");
  c->add_flag("-f,--force", options->force, "Replace an existing output")->group("Output");
  options->CommonOptions::add_to(*c, true);
  c->callback([options, &exit_status] { exit_status = run_profile(*options); });
}

const Command kProfile(25, add_profile_command);

} // namespace

} // namespace etwrelog::cli
