// etwrelog stacks: how often stacks repeat, and what caching them saves.
#include "etwrelog/stacks.hpp"
#include "tools/cli.hpp"
#include "tools/commands.hpp"
#include "tools/errors.hpp"

#include <algorithm>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace etwrelog::cli {
namespace {

using nlohmann::json;

struct StacksOptions : CommonOptions {
  std::size_t top = 10;
  bool simulate = false, force = false;
  std::vector<unsigned> buckets = {256, 1021, 4093};
  std::vector<std::string> cache_sizes = {"3M", "4M", "16M"};
  std::string database, memory;
};

// What Windows takes; it replaces others by the nearest of these, and so would the simulation.
constexpr unsigned kLeastBuckets = 256, kMostBuckets = 4096;
constexpr std::uint64_t kLeastCache = 3u << 20, kMostCache = 50u << 20;

CLI::Validator cache_size_validator() {
  return CLI::Validator(
      [](std::string &text) {
        const std::uint64_t size = parse_size(text).value_or(0);
        return size >= kLeastCache && size <= kMostCache
                   ? std::string()
                   : fmt::format("\"{}\" is not in the range of 3M to 50M", text);
      },
      "");
}

double quotient(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

json group_json(const StackGroup &g) {
  return {{"events", g.events},
          {"frames", g.frames},
          {"distinct", g.distinct},
          {"average_repeats", quotient(g.events, g.distinct)}};
}

json simulation_json(const CacheSimulation &s) {
  const std::uint64_t stacks = s.counts.hits + s.counts.fresh + s.counts.plain;
  return {{"buckets", s.settings.buckets}, {"cache_bytes", s.settings.bytes},
          {"hits", s.counts.hits},         {"hit_rate", quotient(s.counts.hits, stacks)},
          {"definitions", s.definitions},  {"evictions", s.counts.evictions},
          {"plain", s.counts.plain},       {"most_pool_bytes", s.counts.most_pool_bytes},
          {"bytes_plain", s.plain_bytes},  {"bytes_cached", s.cached_bytes}};
}

json stacks_json(const std::string &name, const std::vector<std::string> &sources, const StackReport &r) {
  json kinds = json::object(), processes = json::array(), processors = json::array(), repeats = json::array(),
       depths = json::array(), top = json::array(), simulations = json::array();
  for (std::size_t i = 0; i < kStackKinds; ++i)
    kinds[std::string(stack_kind_name(static_cast<StackKind>(i)))] = group_json(r.kinds[i]);
  for (const auto &[pid, group] : r.processes) {
    processes.push_back(group_json(group));
    processes.back()["pid"] = pid;
  }
  for (const auto &[cpu, group] : r.processors) {
    processors.push_back(group_json(group));
    processors.back()["cpu"] = cpu;
  }
  for (const StackReport::Repeats &row : r.repeats)
    repeats.push_back({{"least", row.least}, {"stacks", row.stacks}, {"events", row.events}});
  for (std::size_t depth = 0; depth < r.depths.size(); ++depth)
    if (r.depths[depth].events != 0)
      depths.push_back(
          {{"frames", depth}, {"events", r.depths[depth].events}, {"stacks", r.depths[depth].stacks}});
  for (const StackReport::Top &row : r.top) {
    json frames = json::array();
    for (const std::uint64_t frame : row.frames)
      frames.push_back(fmt::format("0x{:x}", frame));
    top.push_back({{"events", row.count}, {"frames", std::move(frames)}});
  }
  for (const CacheSimulation &s : r.simulations)
    simulations.push_back(simulation_json(s));
  json out = {{"file", name},
              {"kernel_stacks", group_json(r.kernel_stacks)},
              {"all", group_json(r.all)},
              {"distinct_frames", r.distinct_frames},
              {"definitions", r.definitions},
              {"keys", r.keys},
              {"unresolved", r.unresolved},
              {"by_kind", std::move(kinds)},
              {"by_process", std::move(processes)},
              {"by_processor", std::move(processors)},
              {"repeats", std::move(repeats)},
              {"depths", std::move(depths)},
              {"top", std::move(top)},
              {"bytes",
               {{"now", r.bytes_now},
                {"plain", r.bytes_plain},
                {"cached", r.bytes_cached},
                {"database", r.bytes_database},
                {"extended_items", r.item_bytes},
                {"clr", r.clr_bytes}}},
              {"warnings", r.warnings},
              {"skipped", to_json(r.skipped, sources)}};
  if (!r.simulations.empty()) {
    out["cache_simulations"] = std::move(simulations);
    if (r.recorded)
      out["recorded_cache"] = {{"references", r.recorded->references},
                               {"definitions", r.recorded->definitions},
                               {"simulated_start_at_end", simulation_json(r.recorded->at_end)},
                               {"simulated_start_at_front", simulation_json(r.recorded->at_front)}};
    if (r.recommended) out["recommended"] = simulation_json(r.simulations[*r.recommended]);
  }
  if (r.exported_bytes != 0) out["exported_bytes"] = r.exported_bytes;
  return out;
}

void print_group(const std::string &name, const StackGroup &g) {
  if (g.events == 0) return;
  print_row("{:>12} {:>14} {:>10} {:>9.1f} {:>7.1f}  {}", human_count(g.events), human_count(g.frames),
            human_count(g.distinct), quotient(g.events, g.distinct), quotient(g.frames, g.events), name);
}

template <class Map> void print_largest(const char *label, const Map &groups, std::size_t shown) {
  std::vector<std::pair<typename Map::key_type, StackGroup>> rows(groups.begin(), groups.end());
  std::ranges::stable_sort(rows,
                           [](const auto &a, const auto &b) { return a.second.events > b.second.events; });
  for (std::size_t i = 0; i < rows.size() && i < shown; ++i)
    print_group(fmt::format("{} {}", label, rows[i].first), rows[i].second);
  if (rows.size() > shown) print_row("{:>12} {} more", "", rows.size() - shown);
}

void print_distributions(const StackReport &r) {
  print_text("\n{:>12} {:>10}  Stacks that occur\n", "Events", "Stacks");
  for (const StackReport::Repeats &row : r.repeats)
    if (row.stacks != 0)
      print_row("{:>12} {:>10}  {} times", human_count(row.events), human_count(row.stacks),
                row.least == 1 ? "1" : fmt::format("{} to {}", row.least, 2 * row.least - 1));
  print_text("\n{:>12} {:>10}  Frames in a stack\n", "Events", "Stacks");
  constexpr std::size_t kStep = 8;
  for (std::size_t first = 0; first < r.depths.size(); first += kStep) {
    StackReport::Depth sum;
    for (std::size_t i = first; i < std::min(first + kStep, r.depths.size()); ++i) {
      sum.events += r.depths[i].events;
      sum.stacks += r.depths[i].stacks;
    }
    if (sum.events != 0)
      print_row("{:>12} {:>10}  {} to {}", human_count(sum.events), human_count(sum.stacks), first,
                first + kStep - 1);
  }
}

void print_recorded(const RecordedCache &r) {
  auto difference = [&r](std::uint64_t definitions) {
    return 100 * (quotient(definitions, r.definitions) - 1);
  };
  print_text(
      "\nIn this trace the cache logged {} definitions for {} references. The same stacks in a cache of "
      "default size:\n"
      "{:>12}  {:+.1f}%  when a new stack starts at the end of its bucket, as assumed above\n"
      "{:>12}  {:+.1f}%  when it starts at the front\n"
      "The rest of the difference: how Windows adds up the frames that it divides by the number of buckets "
      "is not\n"
      "documented, the recording may have had another size, and its cache may have been in use before.\n",
      human_count(r.definitions), human_count(r.references), human_count(r.at_end.definitions),
      difference(r.at_end.definitions), human_count(r.at_front.definitions),
      difference(r.at_front.definitions));
}

void print_simulations(const StackReport &r) {
  if (r.simulations.empty()) return;
  print_text("\nThe kernel's stack cache on this trace:\n{:>8} {:>9} {:>9} {:>12} {:>11} {:>10} {:>10} "
             "{:>12} {:>7}\n",
             "Buckets", "Size", "Hit rate", "Definitions", "Evictions", "Plain", "Pool used", "Event bytes",
             "");
  for (const CacheSimulation &s : r.simulations)
    print_row("{:>8} {:>9} {:>9} {:>12} {:>11} {:>10} {:>10} {:>12} {:>7}", s.settings.buckets,
              human_bytes(s.settings.bytes),
              percent(static_cast<double>(s.counts.hits),
                      static_cast<double>(s.counts.hits + s.counts.fresh + s.counts.plain)),
              human_count(s.definitions), human_count(s.counts.evictions), human_count(s.counts.plain),
              human_bytes(s.counts.most_pool_bytes), human_bytes(s.cached_bytes),
              percent(static_cast<double>(s.cached_bytes), static_cast<double>(s.plain_bytes)));
  if (r.recommended) {
    const CacheSimulation &s = r.simulations[*r.recommended];
    print_text("For the next recording: BucketCount {}, CacheSize {} ({} bytes), the smallest of these "
               "within 1% of the best\n",
               s.settings.buckets, human_bytes(s.settings.bytes), s.settings.bytes);
  }
  if (r.recorded && r.recorded->references != 0) print_recorded(*r.recorded);
}

void print_stacks(const StackReport &r, std::size_t top) {
  if (r.all.events == 0) {
    print_text("No stacks\n");
    return;
  }
  print_row("{:>12} {:>14} {:>10} {:>9} {:>7}", "Events", "Frames", "Distinct", "Repeats", "Depth");
  for (std::size_t i = 0; i < kStackKinds; ++i)
    print_group(std::string(stack_kind_name(static_cast<StackKind>(i))), r.kinds[i]);
  print_group("all kernel stacks (StackWalk and references)", r.kernel_stacks);
  print_group("all", r.all);
  print_text("\n{} distinct frames; {} definitions of {} keys; {} references without a definition\n\n",
             human_count(r.distinct_frames), human_count(r.definitions), human_count(r.keys),
             human_count(r.unresolved));
  print_largest("process", r.processes, top);
  print_largest("processor", r.processors, top);
  print_distributions(r);
  if (!r.top.empty()) print_text("\nMost frequent:\n");
  for (const StackReport::Top &row : r.top) {
    print_text("{:>12} ", human_count(row.count));
    constexpr std::size_t kShown = 4;
    for (std::size_t i = 0; i < std::min(kShown, row.frames.size()); ++i)
      print_text(" 0x{:x}", row.frames[i]);
    print_row("{}", row.frames.size() > kShown ? fmt::format(" ... {} frames", row.frames.size()) : "");
  }
  const auto plain = static_cast<double>(r.bytes_plain);
  auto size = [&](const char *name, std::uint64_t bytes) {
    print_row("{:>12} {:>7}  {}", human_bytes(bytes), percent(static_cast<double>(bytes), plain), name);
  };
  print_text("\nBytes of kernel stack events:\n");
  size("in full, as StackWalk events", r.bytes_plain);
  size("now, in this trace", r.bytes_now);
  size("with --stacks cache, each stack defined once", r.bytes_cached);
  size("as a table of stacks, and 20 bytes for each use of one (not compressed)", r.bytes_database);
  if (r.item_bytes + r.clr_bytes != 0)
    print_row("Besides: {} in extended items, {} in .NET's stack events, which no relog changes",
              human_bytes(r.item_bytes), human_bytes(r.clr_bytes));
  print_simulations(r);
}

Result<void> run_one(const StacksOptions &options, const std::vector<std::string> &inputs, bool titled,
                     int &status, json &all) {
  Bar bar(options.progress);
  const RunOptions run = options.run(bar);
  const Result<Trace> trace = open_trace(inputs, options.opening(), run);
  if (!trace) return trace.error();
  StackReportOptions report_options;
  report_options.top = options.top;
  if (!options.memory.empty()) report_options.memory = parse_size(options.memory).value_or(0);
  if (options.simulate)
    for (const std::string &size : options.cache_sizes)
      for (const unsigned buckets : options.buckets)
        report_options.simulate.push_back({buckets, parse_size(size).value_or(0)});
  if (!options.database.empty()) report_options.database = output_of(options.database, options.force);
  const Result<StackReport> report = report_stacks(*trace, report_options, run);
  if (!report) return report.error();
  const int damage = report_damage(source_names(*trace), report->warnings, report->skipped);
  if (status == kDone) status = damage;
  if (options.json) {
    all.push_back(stacks_json(name_of(*trace, inputs), source_names(*trace), *report));
    return {};
  }
  if (titled) print_row("{}:", fmt::join(inputs, ", "));
  print_stacks(*report, options.top);
  if (!options.database.empty())
    print_text("\n{}: {}, {} of the stacks in full, .NET's and extended items included\n",
               printable(options.database), human_bytes(report->exported_bytes),
               percent(static_cast<double>(report->exported_bytes),
                       static_cast<double>(report->bytes_plain + report->item_bytes + report->clr_bytes)));
  return {};
}

int run_stacks(const StacksOptions &options) {
  const std::vector<std::vector<std::string>> traces = options.together();
  if (!options.database.empty() && traces.size() > 1) {
    return report(usage_error("--export takes one trace, or several with --as-one"));
  }
  if (!options.database.empty())
    if (Result<void> fits = check_outputs(options.inputs, {options.database}, options.force); !fits)
      return report(fits.error());
  int status = kDone;
  json all = json::array();
  for (const std::vector<std::string> &inputs : traces) {
    if (!options.json && &inputs != &traces.front()) print_text("\n");
    if (const Result<void> done = run_one(options, inputs, traces.size() > 1, status, all); !done) {
      status = std::max<int>(report(done.error()), kFailed);
      if (traces.size() > 1) all.push_back(failure_json(inputs, done.error()));
    }
  }
  if (options.json && !all.empty()) print_text("{}\n", text_of(traces.size() == 1 ? all[0] : all));
  return status;
}

void add_stacks_command(CLI::App &app, int &exit_status) {
  auto options = std::make_shared<StacksOptions>();
  CLI::App *c = app.add_subcommand("stacks", "How often stacks repeat, and what caching them saves");
  c->add_option("TRACE", options->inputs,
                "Trace: " + trace_files() + "; - for standard input. Each by itself")
      ->required();
  options->add_as_one_to(*c);
  c->add_option("--top", options->top,
                "Show that many processes, processors and stacks (default: 10; 0: none)")
      ->check(no_less_than_zero());
  CLI::Option *simulate =
      c->add_flag("--simulate-cache", options->simulate,
                  "Play the kernel's stack cache over the trace and recommend its settings");
  c->add_option("--buckets", options->buckets,
                "BucketCount values to simulate, as Windows takes them: 256 to 4096 (default: 256,1021,4093)")
      ->needs(simulate)
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(kLeastBuckets, kMostBuckets));
  c->add_option("--cache-size", options->cache_sizes,
                "CacheSize values to simulate, as Windows takes them: 3M to 50M (default: 3M,4M,16M)")
      ->needs(simulate)
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(size_validator())
      ->check(cache_size_validator());
  CLI::Option *database =
      c->add_option("--export", options->database,
                    "Write the stacks alone to this file; stages/stacks/stack_database.hpp has the format");
  c->add_option("--stack-memory", options->memory,
                "Memory for distinct stacks and what is counted of them; if that is too little there is no "
                "report (default: 1G)")
      ->check(size_validator());
  c->add_flag("-f,--force", options->force, "Replace an existing file")->needs(database);
  options->add_to(*c, true);
  c->callback([options, &exit_status] { exit_status = run_stacks(*options); });
}

const Command kStacks(40, add_stacks_command);

} // namespace
} // namespace etwrelog::cli
