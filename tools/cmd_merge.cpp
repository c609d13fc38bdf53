// etwrelog merge: several traces of one machine and boot into one.
#include "etwrelog/relog.hpp"
#include "etwrelog/text.hpp"
#include "etwrelog/trace.hpp"
#include "tools/cli.hpp"
#include "tools/commands.hpp"
#include "tools/errors.hpp"

#include <memory>

#include <fmt/format.h>

namespace etwrelog::cli {
namespace {

using nlohmann::json;

struct MergeFlags : RunFlags {
  std::vector<std::string> inputs;
  std::string output, codec = "as-input", level = "default", buffer_size, stacks = "keep";
  SelectionFlags selection;
  const CLI::Option *level_given = nullptr;
  bool force = false, salvage = false, keep_buffers = false;
};

json merge_json(const Trace &trace, const MergeFlags &flags, const RelogReport &report) {
  json inputs = json::array();
  for (const SourceInfo &source : trace.sources())
    inputs.push_back({{"file", source.name},
                      {"bytes", source.stored_bytes},
                      {"buffers", source.buffers},
                      {"session", source.header.session_name},
                      {"events_lost", source.header.events_lost},
                      {"buffers_lost", source.header.buffers_lost}});
  return {{"inputs", std::move(inputs)},
          {"output",
           {{"file", flags.output},
            {"bytes", report.output_bytes},
            {"buffers", report.output_buffers},
            {"events", report.events_out},
            {"event_bytes", report.event_bytes_out}}},
          {"events_in", report.events_in},
          {"seconds", report.seconds},
          {"warnings", report.warnings},
          {"skipped", to_json(report.skipped, source_names(trace))}};
}

int run_merge(const MergeFlags &flags) {
  if (flags.keep_buffers && (flags.stacks != "keep" || !flags.buffer_size.empty()))
    return report(usage_error(std::string("--keep-buffers cannot be combined with ") +
                              (flags.stacks != "keep" ? "--stacks" : "--buffer-size")));
  if (Result<void> sound = check_level(*flags.level_given, flags.codec); !sound) return report(sound.error());
  Result<Selection> selection = flags.selection.selection();
  if (!selection) return report(selection.error());
  RelogOptions options;
  options.selection = *std::move(selection);
  if (flags.codec != "as-input")
    options.codec = flags.codec == "none"     ? Codec::none
                    : flags.codec == "xpress" ? Codec::xpress
                                              : Codec::lznt1;
  options.level = level_of(flags.level);
  if (!flags.buffer_size.empty()) options.buffer_size = buffer_size_of(flags.buffer_size);
  options.stacks = stack_mode_of(flags.stacks);
  options.keep_grouping = flags.keep_buffers;
  if (Result<void> fits = check_outputs(flags.inputs, {flags.output}, flags.force); !fits)
    return report(fits.error());
  Bar bar(flags.progress);
  const RunOptions run = flags.run(bar);
  const Result<Trace> trace = open_trace(flags.inputs, {.salvage = flags.salvage}, run);
  if (!trace) return report(trace.error());
  warn_of_level(*flags.level_given, flags.codec, *trace, flags.output);
  if (Result<void> named = flags.selection.find_names(*trace, {}, run, options.selection); !named)
    return report(named.error());
  const Result<RelogReport> merged =
      relog(*trace, Output(flags.output, flags.force ? Existing::replace : Existing::refuse), options, run);
  if (!merged) return report(merged.error());
  const int status = report_damage(source_names(*trace), merged->warnings, merged->skipped);
  if (flags.json)
    print_text("{}\n", text_of(merge_json(*trace, flags, *merged)));
  else if (!flags.quiet)
    print_line(fmt::format("{}: {} traces, {} -> {}, {} of {} events, {:.2f} s", printable(flags.output),
                           trace->sources().size(), human_bytes(merged->input_bytes),
                           human_bytes(merged->output_bytes), human_count(merged->events_out),
                           human_count(merged->events_in), merged->seconds));
  return status;
}

void add_merge_command(CLI::App &app, int &exit_status) {
  auto flags = std::make_shared<MergeFlags>();
  CLI::App *c = app.add_subcommand(
      "merge", "Several traces of one machine and boot into one, in the order of time on each processor");
  c->add_option("TRACE", flags->inputs, "Traces: " + trace_files())->required();
  c->add_option("-o,--output", flags->output, "The trace to write")->required();
  c->add_flag("-f,--force", flags->force, "Replace an existing output");
  flags->selection.add_to(*c);
  c->add_option("--codec", flags->codec,
                "Compression of the output: none, xpress, lznt1; as-input: xpress if an input was compressed")
      ->check(CLI::IsMember({"as-input", "none", "xpress", "lznt1"}))
      ->group("Output");
  flags->level_given =
      add_level(*c, flags->level, "Effort of the compression: fast, default, max")->group("Output");
  c->add_option("--buffer-size", flags->buffer_size,
                "Size of the output's buffers, 1K to 16M (default: the largest of the inputs', at least 64K)")
      ->check(size_validator())
      ->group("Output");
  c->add_flag(
       "--keep-buffers", flags->keep_buffers,
       "Copy buffers as they are stored, in the order of their first events, instead of filling them anew "
       "in the order of time as Windows does; with --codec, each is compressed anew by itself")
      ->group("Output");
  add_stacks(*c, flags->stacks)->group("Output");
  c->add_flag("--salvage", flags->salvage,
              "Skip what is damaged and report it (exit status 3) instead of failing");
  flags->add_to(*c);
  flags->add_json_to(*c);
  flags->add_quiet_to(*c, "No summary line");
  c->callback([flags, &exit_status] { exit_status = run_merge(*flags); });
}

const Command kMerge(31, add_merge_command);

} // namespace
} // namespace etwrelog::cli
