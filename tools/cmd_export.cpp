// etwrelog export: what events say, as JSON lines or tables.
#include "etwrelog/archive.hpp"
#include "etwrelog/export.hpp"
#include "tools/bulk.hpp"
#include "tools/cli.hpp"
#include "tools/commands.hpp"
#include "tools/errors.hpp"
#include "tools/pipes.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>

#include <fmt/format.h>

namespace etwrelog::cli {
namespace {

using nlohmann::json;

struct ExportFlags : RunFlags {
  std::vector<std::string> inputs, schemas;
  std::string output, format, profile = "etwrelog";
  SelectionFlags selection;
  JoinFlags joins;
  std::string where;
  BulkFlags many;
  bool salvage = false, force = false, maps = false, messages = false, report = false, by_kind = false,
       verify = false, numbers = false;
};

const std::map<std::string, ExportProfile> kProfiles = {{"etwrelog", ExportProfile::etwrelog},
                                                        {"otel", ExportProfile::otel},
                                                        {"timeline", ExportProfile::timeline}};

const std::map<std::string, TableFormat> kTables = {{"csv", TableFormat::csv},
                                                    {"tsv", TableFormat::tsv},
                                                    {"arrow", TableFormat::arrow},
                                                    {"feather", TableFormat::arrow},
                                                    {"arrows", TableFormat::arrow_stream},
                                                    {"sqlite", TableFormat::sqlite},
                                                    {"db", TableFormat::sqlite},
                                                    {"parquet", TableFormat::parquet},
                                                    {"duckdb", TableFormat::duckdb}};

// By --format, else by the output's ending; JSON lines where neither says anything. Empty for an ending that
// says something else.
std::string format_of(const ExportFlags &flags) {
  if (!flags.format.empty()) return flags.format;
  const std::size_t dot = flags.output.rfind('.');
  if (dot == std::string::npos || flags.output.find('/', dot) != std::string::npos) return "jsonl";
  const std::string ending = CLI::detail::to_lower(flags.output.substr(dot + 1));
  if (kTables.contains(ending)) return ending;
  for (const char *const lines : {"jsonl", "ndjson", "json", "txt", "log", "out"})
    if (ending == lines) return "jsonl";
  return {};
}

std::string_view source_of(const ExportKind &kind) {
  return kind.origin ? origin_name(*kind.origin) : "not described";
}

void print_report(const ExportReport &report, bool as_json) {
  if (as_json) {
    json kinds = json::array();
    for (const ExportKind &kind : report.kinds)
      kinds.push_back({{"name", kind.name},
                       {"provider_id", to_string(kind.provider)},
                       {"id", kind.id},
                       {"version", kind.version},
                       {"opcode", kind.opcode},
                       {"source", kind.origin ? json(origin_name(*kind.origin)) : json(nullptr)},
                       {"events", kind.events},
                       {"payload_bytes", kind.payload_bytes},
                       {"uncovered_bytes", kind.uncovered_bytes},
                       {"truncated", kind.truncated}});
    const json all = {{"events", report.events}, {"kinds", kinds}, {"problems", report.problems}};
    print_line(text_of(all));
    return;
  }
  std::string text = fmt::format("{:>12} {:>14} {:>12} {:>9}  {:<13} {}", "events", "payload", "uncovered",
                                 "cut", "schema", "kind");
  for (const ExportKind &kind : report.kinds)
    text += fmt::format("\n{:>12} {:>14} {:>12} {:>9}  {:<13} {}", human_count(kind.events),
                        human_bytes(kind.payload_bytes), human_bytes(kind.uncovered_bytes),
                        human_count(kind.truncated), source_of(kind), printable(kind.name));
  print_line(text);
}

json verified_json(const ExportKind &kind) {
  json left_out = json::object();
  for (const auto &[why, events] : kind.not_verified)
    left_out[why] = events;
  return {{"name", kind.name},
          {"provider_id", to_string(kind.provider)},
          {"id", kind.id},
          {"version", kind.version},
          {"opcode", kind.opcode},
          {"events", kind.events},
          {"verified", kind.verified},
          {"verified_bytes", kind.verified_bytes},
          {"not_verified", left_out}};
}

std::string verified_text(const ExportReport &report, bool as_json) {
  if (as_json) {
    json kinds = json::array();
    for (const ExportKind &kind : report.kinds)
      kinds.push_back(verified_json(kind));
    return text_of({{"events", report.events}, {"kinds", kinds}});
  }
  std::string text = fmt::format("{:>12} {:>12} {:>14}  {}", "events", "came back", "bytes", "kind");
  std::uint64_t verified = 0, bytes = 0;
  for (const ExportKind &kind : report.kinds) {
    text += fmt::format("\n{:>12} {:>12} {:>14}  {}", human_count(kind.events), human_count(kind.verified),
                        human_bytes(kind.verified_bytes), printable(kind.name));
    for (const auto &[why, events] : kind.not_verified)
      text += fmt::format("\n{:>12} {:>12} {:>14}    not: {}", human_count(events), "", "", why);
    verified += kind.verified, bytes += kind.verified_bytes;
  }
  return text + fmt::format("\n{:>12} {:>12} {:>14}  all", human_count(report.events), human_count(verified),
                            human_bytes(bytes));
}

// The exit status of an export that went well, and of one that whoever read it had seen enough of.
Result<int> export_one(const ExportFlags &flags, const RunOptions &given) {
  ExportOptions options;
  Result<ExportJoins> joins = flags.joins.joins(flags.inputs);
  if (!joins) return std::move(joins).error();
  options.joins = *joins;
  const std::unique_ptr<SymbolResolver> resolver = flags.joins.resolver(flags.inputs, given.threads);
  options.symbols = resolver.get();
  options.profile = kProfiles.at(flags.profile);
  options.maps = flags.maps, options.messages = flags.messages;
  options.numbers = flags.numbers;
  Result<Selection> selection = flags.selection.selection();
  if (!selection) return std::move(selection).error();
  options.selection = *std::move(selection);
  options.where = flags.where;
  for (const std::string &path : flags.schemas)
    if (Result<std::size_t> added = add_schema_files(options.schemas, path); !added)
      return std::move(added).error();
  RunReport told;
  RunOptions run = given;
  run.report = &told;
  Result<Trace> trace = open_trace(flags.inputs, {.salvage = flags.salvage}, run);
  if (!trace) return std::move(trace).error();
  if (Result<void> named = flags.selection.find_names(*trace, options.schemas, given, options.selection);
      !named)
    return std::move(named).error();
  if (flags.verify) {
    const Result<ExportReport> verified = verify_decoding(*trace, options, run);
    if (!verified) return about_condition(verified.error());
    const std::string text = verified_text(*verified, flags.json);
    if (flags.output == "-") // where the events go
      print_line(text);
    else
      print_text("{}\n", text);
    if (flags.output.empty()) return report_damage(source_names(*trace), told.warnings, told.skipped);
  }
  const auto standard_output = std::make_shared<StandardOutputSink>();
  const bool to_standard_output = flags.output.empty() || flags.output == "-";
  const Output output = to_standard_output
                            ? Output::sink("standard output", standard_output)
                            : Output(flags.output, flags.force ? Existing::replace : Existing::refuse);
  const std::string format = format_of(flags);
  const auto table = kTables.find(format);
  if (table != kTables.end() &&
      (flags.profile != "etwrelog" || flags.maps || flags.messages || flags.report)) {
    return usage_error("--profile, --maps, --messages and --report are for JSON lines, not for tables");
  }
  const Result<ExportReport> done =
      flags.by_kind            ? export_tables(*trace, flags.output, table->second, options, run)
      : table == kTables.end() ? export_json(*trace, output, options, run)
                               : export_table(*trace, output, table->second, options, run);
  const Result<void> flushed = done && to_standard_output ? standard_output->flush() : Result<void>();
  if (standard_output->reader_gone()) return kFailed;
  if (!done) return about_condition(done.error());
  if (!flushed) return flushed.error();
  for (const std::string &problem : done->problems)
    warn(flags.inputs.front(), problem);
  warn_of(resolver.get());
  warn_of_no_names(resolver.get(), flags.inputs.front());
  // Of a list, those that have something are asked for.
  const bool selects = !options.where.empty() || !options.selection.everything();
  if (done->events == 0 && selects && !flags.many.one_by_one())
    warn(flags.inputs.front(), "no event fits the selection");
  if (flags.report) print_report(*done, flags.json);
  return report_damage(source_names(*trace), told.warnings, told.skipped);
}

// Each trace of a list or folder into a file of its own.
int export_each(const ExportFlags &flags) {
  BulkFlags many = flags.many;
  many.inputs = flags.inputs;
  many.force = flags.force;
  if (many.out_dir.empty() || !flags.output.empty()) {
    return report(usage_error(
        "lists, folders, shares and results need --out-dir and take no --output: each trace gets a "
        "file of its own"));
  }
  if (flags.by_kind) {
    return report(usage_error(
        "--by-kind makes a folder of one trace: it does not go with lists, folders, shares and results"));
  }
  const std::string format = format_of(flags);
  BulkTask task;
  task.name = "export";
  task.phase = "exporting";
  task.takes = [](std::string_view name) { return has_ending(name, ".etl") || has_ending(name, ".etlz"); };
  task.target = [&](const std::string &source) { return exported_name(source, format); };
  task.finished = finished_after_source;
  task.run = [&](const Item &item, Outcome &outcome, FileResult &result,
                 const RunOptions &run) -> Result<void> {
    ExportFlags one = flags;
    one.inputs = {item.source};
    one.output = item.target;
    one.format = format;
    const Result<int> done = export_one(one, run);
    if (!done) return done.error();
    return note_written(item, *done == kDamageSkipped, outcome, result, run);
  };
  return Bulk(std::move(task), many, flags).run();
}

// What would mean nothing. `each`: many traces, which --json lists.
Result<void> check_flags(const ExportFlags &flags, bool each) {
  if (flags.json && !each && !flags.report && !flags.verify)
    return usage_error("--json is the form of what --report and --verify tell: one of them, too");
  if (flags.report && flags.verify && !each && flags.output.empty())
    return usage_error("--verify without --output only verifies: there is nothing to --report");
  if (flags.messages && flags.profile == "timeline")
    return usage_error("--messages is not for --profile timeline, whose lines have a message each");
  if (flags.force && !each && flags.output.empty())
    return usage_error("is not given, and --force is about it", Option::output);
  if (flags.by_kind && !each) {
    constexpr TableFormat kFolders[] = {TableFormat::csv, TableFormat::tsv, TableFormat::arrow,
                                        TableFormat::arrow_stream, TableFormat::parquet};
    const auto table = kTables.find(format_of(flags));
    if (flags.output.empty() || flags.output == "-" || table == kTables.end() ||
        std::ranges::find(kFolders, table->second) == std::end(kFolders))
      return usage_error("--by-kind makes a folder of tables: it needs --output and --format csv, tsv, "
                         "arrow, arrows or parquet");
  }
  return {};
}

int run_export(const ExportFlags &flags) {
  const BulkFlags &many = flags.many;
  const bool each = many.one_by_one();
  if (Result<void> sound = check_flags(flags, each); !sound) return report(sound.error());
  if (each) return export_each(flags);
  if (flags.inputs.empty()) return report(no_trace_given());
  if (format_of(flags).empty()) {
    return report(usage_error(fmt::format("\"{}\" has an ending that tells no format: give --format, or an "
                                          "output that ends in .jsonl, .csv, .tsv, "
                                          ".arrow, .arrows, .sqlite, .parquet or .duckdb",
                                          flags.output)));
  }
  Bar bar(flags.progress);
  const Result<int> done = export_one(flags, flags.run(bar));
  return done ? *done : report(done.error());
}

void add_export_command(CLI::App &app, int &exit_status) {
  auto flags = std::make_shared<ExportFlags>();
  CLI::App *command = app.add_subcommand(
      "export", "What events say, in order of time: JSON lines, CSV, Arrow, SQLite, Parquet, DuckDB");
  command->add_option("TRACE", flags->inputs,
                      "Traces: " + trace_files() + "; several are read as one; - for standard input");
  flags->many.add_to(*command, ".etl and .etlz",
                     "Leave alone what is there already and newer than its trace");
  command
      ->add_option("--out-dir", flags->many.out_dir, "Folder for a file of each trace, instead of one of all")
      ->group("Fleet");
  command->add_option("-o,--output", flags->output, "File to write; standard output if absent");
  command
      ->add_option("--format", flags->format,
                   "Instead of by the output's ending: jsonl, csv, tsv, arrow, arrows (stream), sqlite; "
                   "parquet and duckdb by "
                   "libduckdb.so, if that is on the machine ($ETWRELOG_DUCKDB)")
      ->check(CLI::IsMember({"jsonl", "csv", "tsv", "arrow", "arrows", "sqlite", "parquet", "duckdb"}));
  command->add_flag(
      "--by-kind", flags->by_kind,
      "A table for each kind of event with a column for each field, a file each, in the new folder "
      "that --output names; --format csv, tsv, arrow, arrows or parquet");
  command->add_flag("--numbers", flags->numbers,
                    "Addresses and hexadecimal numbers as numbers, 31 instead of \"0x1f\"; what Arrow and "
                    "Parquet have with --by-kind anyway");
  command->add_flag("-f,--force", flags->force, "Replace the output if it exists");
  command->add_option("--schemas", flags->schemas, "Folder (or file) of .man, .xml and .tmf schemas")
      ->allow_extra_args(false);
  flags->joins.add_to(*command);
  command->add_option("--profile", flags->profile, "Layout of a line: etwrelog, otel or timeline")
      ->check(CLI::IsMember({"etwrelog", "otel", "timeline"}));
  command->add_flag("--maps", flags->maps, "Names of values and bits in the place of numbers");
  command->add_flag("--messages", flags->messages,
                    "The text of each event that has one (with --profile otel: Body)");
  command->add_flag("--report", flags->report, "How each kind was decoded, on standard error");
  command->add_flag(
      "--verify", flags->verify,
      "Make each decoded event into bytes again and compare: what came back, by kind, and why what "
      "did not could not. One that differs is a failure. Without --output nothing else is done");
  command->add_flag("--salvage", flags->salvage, "Step over damage");
  command->add_option("--where", flags->where,
                      "Only events that fulfil a condition: 'FileName ~ \"\\\\.dll$\" and ImageSize > "
                      "1000000'; also or, not, in, "
                      "!=, <, <=, >=, !~, and the columns of all events (process, event, cpu, level, ...), "
                      "but none that --join adds");
  flags->selection.add_to(*command);
  flags->add_to(*command);
  flags->add_json_to(*command, "The report as JSON");
  command->callback([flags, &exit_status] { exit_status = run_export(*flags); });
}

const Command kExport(45, add_export_command);

} // namespace
} // namespace etwrelog::cli
