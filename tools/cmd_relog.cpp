// etwrelog relog: filter, re-chunk and recompress into a valid trace.
#include "etwrelog/export.hpp"
#include "etwrelog/relog.hpp"
#include "etwrelog/text.hpp"
#include "tools/cli.hpp"
#include "tools/commands.hpp"
#include "tools/errors.hpp"
#include "tools/process.hpp"

#include <algorithm>
#include <memory>

#include <filesystem>
#include <random>

#include <fmt/format.h>

namespace etwrelog::cli {
namespace {

using nlohmann::json;

struct RelogFlags : CommonOptions {
  std::string output, report, codec = "as-input", level = "default", buffer_size;
  std::string stacks = "keep", stack_memory;
  bool embed = false;
  std::vector<std::string> schemas;
  std::optional<std::uint64_t> stack_window;
  const CLI::Option *level_given = nullptr;
  SelectionFlags selection;
  bool force = false, keep_order = false, single_pass = false, follow = false;
};

Error contradiction(Option option, Option conflict, std::string what) {
  Error error;
  error.kind = ErrorKind::usage;
  error.option = option;
  error.conflict = conflict;
  error.what = std::move(what);
  return error;
}

Result<void> check_single_pass(const RelogFlags &options) {
  if (!options.single_pass) return {};
  if (options.stacks != "keep")
    return contradiction(Option::single_pass, Option::stacks,
                         "cannot be combined: the definition of a stack stands behind its uses");
  if (options.inputs != std::vector<std::string>{"-"})
    return contradiction(Option::single_pass, Option::none,
                         "only standard input (-) is read in a single pass");
  if (options.salvage) return contradiction(Option::single_pass, Option::salvage, "cannot be combined");
  if (options.keep_order)
    return contradiction(Option::single_pass, Option::keep_grouping, "cannot be combined");
  return {};
}

Result<void> check_buffer_size(const RelogFlags &options) {
  if (!options.keep_order || options.buffer_size.empty()) return {};
  return contradiction(Option::keep_grouping, Option::buffer_size,
                       "cannot be combined: buffers stay as they are");
}

Result<void> check_follow(const RelogFlags &options) {
  if (!options.follow) return {};
  const char *with =
      options.inputs.size() != 1 || options.inputs.front() == "-" ? "takes one file"
      : options.salvage                                           ? "cannot be combined with --salvage"
      : options.keep_order                                        ? "cannot be combined with --keep-order"
      : options.stacks != "keep"
          ? "cannot be combined with --stacks: the definition of a stack stands behind its uses"
      : options.embed ? "cannot be combined with --embed-schemas, which looks at the whole trace"
                      : nullptr;
  if (with == nullptr) return {};
  return usage_error(std::string("--follow ") + with);
}

json times_json(const RunReport &report) {
  json passes = json::array();
  for (const RunReport::Phase &phase : report.phases) {
    json steps = json::object();
    for (const RunReport::Phase::Step &step : phase.steps)
      steps[std::string(step.name)] = step.busy;
    passes.push_back({{"pass", phase.name}, {"busy_seconds", std::move(steps)}, {"seconds", phase.wall}});
  }
  return passes;
}

json stacks_json(const RelogStackCounts &s) {
  return {{"walks_in", s.walks_in},
          {"walks_out", s.walks_out},
          {"references_in", s.references_in},
          {"references_out", s.references_out},
          {"definitions_in", s.definitions_in},
          {"definitions_out", s.definitions_out},
          {"unresolved", s.unresolved},
          {"table_restarts", s.restarts}};
}

json report_json(const std::vector<std::string> &inputs, const RelogFlags &options, const RelogReport &r,
                 const RunReport &run) {
  const bool counted = !options.report.empty();
  json types = json::array(), processes = json::array(), reasons = json::object(), targets = json::array();
  for (const RelogTypeCount &row : r.types)
    types.push_back({{"key", type_key(row.type)},
                     {"name", row.name},
                     {"events_in", row.events_in},
                     {"events_out", row.events_out},
                     {"bytes_in", row.bytes_in},
                     {"bytes_out", row.bytes_out}});
  for (const auto &[pid, count] : r.processes)
    processes.push_back({{"pid", pid}, {"events_in", count.events_in}, {"events_out", count.events_out}});
  for (const RelogReason &reason : r.reasons)
    reasons[std::string(reason.name)] = reason.events;
  for (const auto &[pid, name] : r.targets)
    targets.push_back({{"pid", pid}, {"name", name}});
  return {{"input",
           {{"file", inputs.size() == 1 ? json(inputs.front()) : json(inputs)},
            {"bytes", r.input_bytes},
            {"buffers", r.input_buffers},
            {"buffers_left_out", r.buffers_left_out},
            {"buffers_read_again", r.buffers_read_again},
            {"events", r.events_in},
            {"event_bytes", r.event_bytes_in}}},
          {"output",
           {{"file", options.output},
            {"bytes", r.output_bytes},
            {"buffers", r.output_buffers},
            {"events", r.events_out},
            {"event_bytes", r.event_bytes_out}}},
          {"targets", std::move(targets)},
          {"by_reason", std::move(reasons)},
          {"by_type", counted ? std::move(types) : json(nullptr)}, // not counted without --report
          {"by_process", counted ? std::move(processes) : json(nullptr)},
          {"stacks", options.stacks == "keep" ? json(nullptr) : stacks_json(r.stacks)}, // not looked at
          {"passes", times_json(run)},
          {"seconds", r.seconds},
          {"mb_per_second", r.seconds > 0 ? static_cast<double>(r.input_bytes) / r.seconds / 1e6 : 0},
          {"peak_memory_bytes", process::peak_memory_bytes()},
          {"warnings", r.warnings},
          {"skipped", to_json(r.skipped, inputs)}};
}

// From the relogged trace to the output.
Result<EmbedReport> add_schemas(const std::string &relogged, const RelogFlags &options,
                                const SchemaCatalog &known, const RunOptions &run) {
  Result<Trace> trace = Trace::open(relogged, {}, run);
  if (!trace) return std::move(trace).error();
  return embed_schemas(*trace, output_of(options.output, options.force), known, run);
}

// The records are events of the output, too. `by_type`: types are counted.
void count_embedded(const EmbedReport &embedded, bool by_type, RelogReport &report) {
  report.output_bytes = embedded.bytes;
  report.output_buffers += embedded.buffers;
  for (const RelogTypeCount &added : embedded.records) {
    report.events_out += added.events_out;
    report.event_bytes_out += added.bytes_out;
    if (!by_type) continue;
    const auto same = std::ranges::find(report.types, added.type, &RelogTypeCount::type);
    if (same == report.types.end()) {
      report.types.push_back(added);
      continue;
    }
    same->events_out += added.events_out;
    same->bytes_out += added.bytes_out;
  }
  std::ranges::sort(report.types, {}, &RelogTypeCount::type);
}

// What failed in the file between, by the name that was asked for.
Error in_output(Error error, const std::string &between, const RelogFlags &options) {
  if (error.file != between) return error;
  error.file = options.output;
  error.what += " (in a temporary file of it, $TMPDIR)";
  return error;
}

json embedded_json(const EmbedReport &embedded) {
  return {{"kinds", embedded.kinds}, {"events", embedded.events}, {"left_out", embedded.left_out}};
}

int write_report(const RelogFlags &options, const json &content) {
  auto write = [&]() -> Result<void> {
    Result<OutputStream> file = OutputStream::open(output_of(options.report, options.force));
    if (!file) return std::move(file).error();
    if (Result<void> written = file->write(text_of(content) + "\n"); !written) return written;
    return file->commit();
  };
  Result<void> written = write();
  if (written) return kDone;
  written.error().what += " (the report; the trace itself is complete)";
  static_cast<void>(report(written.error()));
  return kIncomplete;
}

int run_relog(const RelogFlags &options) {
  if (Result<void> ok = check_single_pass(options); !ok) return report(ok.error());
  if (Result<void> ok = check_follow(options); !ok) return report(ok.error());
  if (Result<void> ok = check_buffer_size(options); !ok) return report(ok.error());
  if (Result<void> ok = check_level(*options.level_given, options.codec); !ok) return report(ok.error());
  Result<Selection> selection = options.selection.selection();
  if (!selection) return report(selection.error());
  RelogOptions relog;
  relog.selection = *std::move(selection);
  if (options.codec != "as-input")
    relog.codec = options.codec == "none"     ? Codec::none
                  : options.codec == "xpress" ? Codec::xpress
                                              : Codec::lznt1;
  relog.level = level_of(options.level);
  if (!options.buffer_size.empty()) relog.buffer_size = buffer_size_of(options.buffer_size);
  relog.keep_grouping = options.keep_order;
  relog.stacks = stack_mode_of(options.stacks);
  const bool caches = relog.stacks == StackMode::cache || relog.stacks == StackMode::cache_native;
  if ((options.stack_window || !options.stack_memory.empty()) && !caches)
    return report(usage_error("is for --stacks cache",
                              options.stack_window ? Option::stack_window : Option::stack_memory));
  if (options.stack_window) relog.stack_window = *options.stack_window;
  if (!options.stack_memory.empty())
    relog.stack_memory = parse_size(options.stack_memory).value_or(relog.stack_memory);
  relog.count = !options.report.empty();
  std::vector<std::string> outputs = {options.output};
  if (!options.report.empty()) outputs.push_back(options.report);
  if (Result<void> fits = check_outputs(options.inputs, outputs, options.force); !fits)
    return report(fits.error());

  SchemaCatalog known;
  if ((options.single_pass || !options.embed) && (options.embed || !options.schemas.empty())) {
    return report(usage_error(options.embed ? "--embed-schemas looks at the whole trace, --single-pass cannot"
                                            : "--schemas is for --embed-schemas"));
  }
  for (const std::string &path : options.schemas)
    if (Result<std::size_t> added = add_schema_files(known, path); !added) return report(added.error());
  std::optional<TemporaryFile> between;
  if (options.embed) {
    Result<TemporaryFile> made = TemporaryFile::create();
    if (!made) return report(made.error());
    between.emplace(*std::move(made));
  }
  std::optional<EmbedReport> embedded;

  RunReport timing;
  std::vector<std::string> names;
  Result<RelogReport> relogged = [&]() -> Result<RelogReport> {
    Bar bar(options.progress);
    RunOptions run = options.run(bar);
    OpenOptions opening;
    opening.salvage = options.salvage;
    opening.spool = !options.single_pass;
    opening.follow = options.follow;
    if (options.follow) { // being stopped is how it ends
      opening.enough = run.stop;
      run.stop = {};
    }
    const Result<Trace> trace = open_trace(options.inputs, opening, run);
    if (!trace) return trace.error();
    warn_of_level(*options.level_given, options.codec, *trace, options.output);
    if (Result<void> named = options.selection.find_names(*trace, known, run, relog.selection); !named)
      return std::move(named).error();
    names = source_names(*trace);
    run.report = &timing;
    const Output output = between ? Output(between->name()) : output_of(options.output, options.force);
    Result<RelogReport> done = etwrelog::relog(*trace, output, relog, run);
    if (!between) return done;
    if (!done) return in_output(std::move(done).error(), between->name(), options);
    Result<EmbedReport> added = add_schemas(between->name(), options, known, options.run(bar));
    if (!added) return in_output(std::move(added).error(), between->name(), options);
    embedded = *std::move(added);
    count_embedded(*embedded, relog.count, *done);
    return done;
  }();
  if (!relogged) return report(relogged.error());
  const RelogReport &result = *relogged;
  for (std::size_t i = 0; embedded && i < embedded->left_out.size(); ++i)
    warn(options.output, "no schema record can describe " + embedded->left_out[i]);
  const int damage = report_damage(names, result.warnings, result.skipped);
  json content = report_json(names, options, result, timing);
  if (embedded) content["embedded_schemas"] = embedded_json(*embedded);
  if (!options.report.empty())
    if (const int status = write_report(options, content); status != kDone) return status;
  if (options.json) {
    print_text("{}\n", text_of(content));
  } else if (!options.quiet) {
    print_line(fmt::format(
        "{}: {} -> {} ({}), {} {} {} events, {:.2f} s", printable(options.output),
        human_bytes(result.input_bytes), human_bytes(result.output_bytes),
        percent(static_cast<double>(result.output_bytes), static_cast<double>(result.input_bytes)),
        human_count(result.events_out), result.events_out > result.events_in ? "for" : "of",
        human_count(result.events_in), result.seconds));
  }
  return damage;
}

void add_relog_command(CLI::App &app, int &exit_status) {
  auto options = std::make_shared<RelogFlags>();
  CLI::App *c = app.add_subcommand("relog", "Filter, re-chunk and recompress into a valid .etl");
  c->add_option("TRACE", options->inputs,
                "Trace: " + trace_files() +
                    "; - for standard input. Several, of one machine and boot, become one")
      ->required();
  c->add_option("-o,--output", options->output, "The trace to write")->required();
  c->add_flag("-f,--force", options->force, "Replace an existing output");
  options->selection.add_to(*c);
  c->add_option("--codec", options->codec, "Compression of the output: as-input, none, xpress, lznt1")
      ->check(CLI::IsMember({"as-input", "none", "xpress", "lznt1"}))
      ->group("Output");
  options->level_given =
      add_level(*c, options->level, "Effort of the compression: fast, default, max")->group("Output");
  c->add_option("--buffer-size", options->buffer_size,
                "Size of the output's buffers, 1K to 16M (default: the input's, at least 64K)")
      ->check(size_validator())
      ->group("Output");
  c->add_flag(
       "--keep-order", options->keep_order,
       "Keep the input's grouping of events into buffers, and its order; of several traces, buffers go in "
       "the order of their first events")
      ->group("Output");
  add_stacks(*c, options->stacks)->group("Output");
  c->add_option("--stack-window", options->stack_window,
                "With --stacks cache: so many references may wait for their stack, in a reader's memory "
                "(default: 4000000)")
      ->check(at_least_one())
      ->group("Output");
  c->add_option("--stack-memory", options->stack_memory,
                "With --stacks cache: memory for distinct stacks; and as much for definitions in the input "
                "(default: 512M)")
      ->check(size_validator())
      ->group("Output");
  c->add_option("--report", options->report,
                "Write a JSON report: by type, process, reason, time of each step")
      ->group("Output");
  c->add_flag("--embed-schemas", options->embed,
              "Write the schemas of events that the trace does not describe itself into it, so that other "
              "programs decode "
              "them: those of --schemas, and of .NET's events")
      ->group("Output");
  c->add_option("--schemas", options->schemas,
                "With --embed-schemas: folder (or file) of .man and .xml manifests")
      ->allow_extra_args(false)
      ->group("Output");
  c->add_flag(
       "--single-pass", options->single_pass,
       "Filter standard input while it is read, with the processes known so far, instead of spooling it")
      ->group("Output");
  c->add_flag("--follow", options->follow,
              "Read what a running session appends to the trace, with the processes known so far, until the "
              "session ends or this is interrupted: then the output is completed with what there was")
      ->group("Output");
  options->add_to(*c, true);
  options->add_quiet_to(*c, "No summary line");
  c->callback([options, &exit_status] { exit_status = run_relog(*options); });
}

const Command kRelog(30, add_relog_command);

} // namespace
} // namespace etwrelog::cli
