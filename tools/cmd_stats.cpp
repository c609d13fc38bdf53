// etwrelog stats: events and bytes by type, as WPA's Trace Statistics.
#include "etwrelog/archive.hpp"
#include "etwrelog/statistics.hpp"
#include "etwrelog/trace.hpp"
#include "tools/cli.hpp"
#include "tools/commands.hpp"
#include "tools/errors.hpp"
#include "tools/fleet_sum.hpp"

#include <algorithm>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace etwrelog::cli {
namespace {

using nlohmann::json;

double average_repeats(const StackCounts &s) {
  return s.distinct_stacks == 0
             ? 0
             : static_cast<double>(s.stack_events()) / static_cast<double>(s.distinct_stacks);
}

std::vector<TypeStatistics> sorted_rows(const Statistics &s) {
  std::vector<TypeStatistics> rows = s.types;
  std::ranges::sort(rows, [](const auto &a, const auto &b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.type < b.type;
  });
  return rows;
}

json stats_json(const std::string &name, const std::vector<std::string> &sources, const Statistics &s,
                std::size_t top) {
  json types = json::array();
  for (const TypeStatistics &row : sorted_rows(s)) {
    if (top != 0 && types.size() == top) break;
    types.push_back(
        {{"key", type_key(row.type)}, {"name", row.name}, {"events", row.events}, {"bytes", row.bytes}});
  }
  const StackCounts &k = s.stacks;
  return {{"file", name},
          {"events", {{"count", s.events}, {"bytes", s.event_bytes}}},
          {"by_type", std::move(types)},
          {"stacks",
           {{"walk", k.walks},
            {"ref_kernel", k.kernel_references},
            {"ref_user", k.user_references},
            {"key_delete", k.key_deletes},
            {"key_rundown", k.key_rundowns},
            {"frames", k.frames},
            {"unique", k.distinct_stacks},
            {"average_repeats", average_repeats(k)},
            {"keys_defined", k.distinct_keys_defined},
            {"keys_referenced", k.distinct_keys_referenced},
            {"keys_never_defined", k.keys_never_defined},
            {"item_stacks", k.item_stacks},
            {"item_frames", k.item_frames},
            {"clr_stacks", k.clr_stacks},
            {"clr_frames", k.clr_frames}}},
          {"warnings", s.warnings},
          {"skipped", to_json(s.skipped, sources)}};
}

void print_stats(const Statistics &s, std::size_t top) {
  const auto events = static_cast<double>(s.events), bytes = static_cast<double>(s.event_bytes);
  print_row("{:>12} {:>7} {:>15} {:>7}  {}", "Events", "", "Bytes", "", "Type");
  std::size_t shown = 0;
  std::uint64_t other_events = 0, other_bytes = 0;
  for (const TypeStatistics &row : sorted_rows(s)) {
    if (top != 0 && shown++ >= top) {
      other_events += row.events;
      other_bytes += row.bytes;
      continue;
    }
    std::string name = row.name;
    if (row.type.family == Family::event && row.type.version != 0)
      name += fmt::format("  v{}", row.type.version);
    print_row("{:>12} {:>7} {:>15} {:>7}  {}", human_count(row.events),
              percent(static_cast<double>(row.events), events), human_count(row.bytes),
              percent(static_cast<double>(row.bytes), bytes), name);
  }
  if (other_events != 0)
    print_row("{:>12} {:>7} {:>15} {:>7}  (all others)", human_count(other_events),
              percent(static_cast<double>(other_events), events), human_count(other_bytes),
              percent(static_cast<double>(other_bytes), bytes));
  print_row("{:>12} {:>7} {:>15} {:>7}  in all, {} types", human_count(s.events), "",
            human_count(s.event_bytes), "", s.types.size());
  const StackCounts &k = s.stacks;
  print_text("\nStacks: {} events ({} StackWalk, {} kernel and {} user references), {} definitions\n",
             human_count(k.stack_events()), human_count(k.walks), human_count(k.kernel_references),
             human_count(k.user_references), human_count(k.key_deletes + k.key_rundowns));
  print_row("        {} frames stored, {} distinct stacks, {:.1f} repeats on average", human_count(k.frames),
            human_count(k.distinct_stacks), average_repeats(k));
  if (k.item_stacks + k.clr_stacks != 0)
    print_row("        {} in extended items ({} frames), {} of .NET's own ({} frames)",
              human_count(k.item_stacks), human_count(k.item_frames), human_count(k.clr_stacks),
              human_count(k.clr_frames));
}

struct StatsOptions : CommonOptions {
  SumFlags many;
  std::size_t top = 0;
};

Result<int> one_stats(const StatsOptions &options, const std::vector<std::string> &inputs,
                      const RunOptions &run, json &all, bool titled) {
  const Result<Trace> trace = open_trace(inputs, options.opening(), run);
  if (!trace) return trace.error();
  const Result<Statistics> statistics = collect_statistics(*trace, run);
  if (!statistics) return statistics.error();
  const std::string name = name_of(*trace, inputs);
  const int damage = report_damage(source_names(*trace), statistics->warnings, statistics->skipped);
  if (options.json) {
    all.push_back(stats_json(name, source_names(*trace), *statistics, options.top));
  } else {
    if (titled) print_row("{}:", fmt::join(inputs, ", "));
    print_stats(*statistics, options.top);
  }
  return damage;
}

// Lists and shares of them: each file like any other, with a line in the results file.
int run_listed(const StatsOptions &options) {
  json all = json::array();
  BulkTask task;
  task.name = "stats";
  task.phase = "counting";
  task.large = 0; // one after the other, each on all threads
  task.takes = [](std::string_view name) { return has_ending(name, ".etl") || has_ending(name, ".etlz"); };
  task.run = [&](const Item &item, Outcome &outcome, FileResult &result,
                 const RunOptions &run) -> Result<void> {
    const Result<int> damage = one_stats(options, {item.source}, run, all, true);
    if (!damage && options.json && damage.error().kind != ErrorKind::cancelled)
      all.push_back(failure_json({item.source}, damage.error()));
    if (!damage) return damage.error();
    outcome.damaged = *damage == kDamageSkipped;
    const Result<ArchiveInfo> info = read_archive_info(item.source);
    const Result<ContentHash> hash =
        info ? Result<ContentHash>(info->content) : content_hash(item.source, run);
    if (hash) result.hash = to_string(*hash);
    if (!options.json) print_text("\n");
    return {};
  };
  task.table = false;
  const int status = Bulk(std::move(task), options.many, options).run();
  if (options.json) print_text("{}\n", text_of(all));
  return status;
}

int run_stats(StatsOptions &options) {
  options.many.inputs = options.inputs;
  if (Result<void> sound = options.many.check_as_one(options.as_one, options.many.sum); !sound)
    return report(sound.error());
  if (options.many.sum) return run_sum(Sum::stats, options.many, options, options.top);
  if (options.many.one_by_one()) return run_listed(options);
  if (options.inputs.empty()) return report(no_trace_given());
  int status = kDone;
  json all = json::array();
  const std::vector<std::vector<std::string>> traces = options.together();
  for (const std::vector<std::string> &inputs : traces) {
    Bar bar(options.progress);
    if (!options.json && &inputs != &traces.front()) print_text("\n");
    const Result<int> damage = one_stats(options, inputs, options.run(bar), all, traces.size() > 1);
    if (!damage) {
      status = std::max<int>(report(damage.error()), kFailed);
      if (traces.size() > 1) all.push_back(failure_json(inputs, damage.error()));
    } else if (status == kDone) {
      status = *damage;
    }
  }
  if (options.json && !all.empty()) print_text("{}\n", text_of(traces.size() == 1 ? all[0] : all));
  return status;
}

void add_stats_command(CLI::App &app, int &exit_status) {
  auto options = std::make_shared<StatsOptions>();
  CLI::App *command = app.add_subcommand("stats", "Events and bytes by type, and the stack summary");
  command->add_option("TRACE", options->inputs,
                      "Trace: " + trace_files() + "; - for standard input. Each by itself");
  options->many.add_to(*command, false);
  options->add_as_one_to(*command);
  command->add_option("--top", options->top, "Show only that many types; 0: all")->check(no_less_than_zero());
  options->add_to(*command, true);
  command->callback([options, &exit_status] { exit_status = run_stats(*options); });
}

const Command kStats(20, add_stats_command);

} // namespace
} // namespace etwrelog::cli
