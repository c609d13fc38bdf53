// etwrelog fleet list | report: what is to be done on many machines, and what came of it.
#include "etwrelog/text.hpp"
#include "tools/bulk.hpp"
#include "tools/commands.hpp"
#include "tools/errors.hpp"

#include <algorithm>
#include <filesystem>
#include <set>

#include <fmt/format.h>

namespace etwrelog::cli {
namespace {

using nlohmann::json;

struct FleetFlags : ListFlags {
  std::string action;
  std::size_t slowest = 10;
  bool json = false;
};

bool is_trace_name(std::string_view name) {
  return has_ending(name, ".etl") || has_ending(name, ".etlz");
}

// The files with their sizes: shares of it stay the same while files come and go.
int run_list(const FleetFlags &flags) {
  for (const std::string &name : flags.inputs)
    if (std::error_code failed; !std::filesystem::exists(name, failed))
      return report(io_error(name, "there is no such file or folder"));
  const Result<WorkList> files = flags.list(is_trace_name);
  if (!files) return report(files.error());
  std::set<std::string> listed; // a folder and another in it have files in common
  for (std::size_t i = 0; i < files->size(); ++i) {
    const std::string path = files->path(i);
    if (flags.inputs.size() > 1 && !listed.insert(path).second) continue;
    if (path.find('\n') != std::string::npos) {
      warn(path, "a name with a line feed does not fit into a list, and is left out");
      continue;
    }
    fmt::print("{}\t{}\n", files->bytes(i), path);
  }
  return kDone;
}

struct Group {
  std::uint64_t files = 0, before = 0, after = 0;
  double seconds = 0;
};

struct Report {
  std::map<std::pair<std::string, std::string>, FileResult> files; // by task and path: the last word on each
  std::uint64_t lines = 0, broken = 0, again = 0;                  // again: done although it was done before
};

// Of several lines on one file the last one counts, but "skipped" says that an earlier one holds.
void take(Report &report, std::string_view line) {
  ++report.lines;
  std::optional<FileResult> result = parse_result(line);
  if (!result) {
    ++report.broken;
    return;
  }
  const auto key = std::pair(result->task, result->path);
  const auto [at, fresh] = report.files.try_emplace(key, *result);
  if (fresh) return;
  FileResult &known = at->second;
  if (result->state == "done" && known.state == "done") ++report.again;
  // The later one counts, in whatever file it stands: a share may have moved to another machine. But for what
  // was skipped because it was done.
  const bool later = result->began >= known.began;
  const FileResult &newer = later ? *result : known, &older = later ? known : *result;
  const bool skipped = newer.state == "skipped" && older.state != "failed";
  if (later != skipped) known = *std::move(result);
}

json entry_of(const FileResult &r) {
  json entry = {{"task", r.task}, {"path", r.path}, {"bytes", r.bytes}, {"seconds", r.seconds}};
  if (!r.node.empty()) entry["node"] = r.node;
  if (!r.error.empty()) entry["error"] = r.error;
  return entry;
}

std::string ratio_text(std::uint64_t before, std::uint64_t after) {
  if (after == 0) return "-";
  return fmt::format("{:.2f}", static_cast<double>(before) / static_cast<double>(after));
}

int run_report(const FleetFlags &flags) {
  if (flags.inputs.empty()) {
    return report(usage_error("no results files are given"));
  }
  Report all;
  for (const std::string &file : flags.inputs)
    if (!for_each_line(file, [&](std::string_view line) { take(all, line); })) {
      return report(io_error(file, "the results cannot be read"));
    }

  std::map<std::string, std::uint64_t> states;
  std::map<std::string, Group> kinds, nodes;
  std::vector<const FileResult *> failures, slowest;
  std::uint64_t before = 0, after = 0, kept = 0, kept_before = 0, of_unknown_size = 0;
  double seconds = 0, first = 0, last = 0;
  for (const auto &[key, r] : all.files) {
    ++states[r.state];
    if (r.state == "failed") {
      failures.push_back(&r);
      continue;
    }
    before += r.bytes, after += r.result_bytes;
    if (r.state == "skipped") { // done by somebody whose results are not here: sizes count, work does not
      ++kept, kept_before += r.bytes;
      of_unknown_size += r.bytes == 0 ? 1 : 0;
      Group &apart = kinds["(there already)"];
      ++apart.files, apart.before += r.bytes, apart.after += r.result_bytes;
      continue;
    }
    seconds += r.seconds;
    if (r.began > 0) {
      first = first == 0 ? r.began : std::min(first, r.began);
      last = std::max(last, r.began + r.seconds);
    }
    for (Group *group :
         {&kinds[r.kind.empty() ? "not known" : r.kind], &nodes[r.node.empty() ? "not known" : r.node]}) {
      ++group->files;
      group->before += r.bytes, group->after += r.result_bytes, group->seconds += r.seconds;
    }
    slowest.push_back(&r);
  }
  std::ranges::stable_sort(slowest, std::greater(), [](const FileResult *r) { return r->seconds; });
  if (slowest.size() > flags.slowest) slowest.resize(flags.slowest);

  // What the list names and no result tells of.
  std::vector<std::string> missing;
  if (!flags.files_from.empty()) {
    ListFlags wanted;
    wanted.files_from = flags.files_from;
    const Result<WorkList> list = wanted.list({});
    if (!list) return report(list.error());
    std::unordered_map<std::string, bool> there;
    for (const auto &[key, r] : all.files)
      there.emplace(r.path, true);
    for (std::size_t i = 0; i < list->size(); ++i)
      if (!there.contains(list->path(i))) missing.push_back(list->path(i));
  }

  if (flags.json) {
    json out = {
        {"files", all.files.size()}, {"lines", all.lines},      {"broken_lines", all.broken},
        {"done_again", all.again},   {"states", states},        {"bytes", before},
        {"result_bytes", after},     {"seconds", seconds},      {"wall_seconds", std::max(0.0, last - first)},
        {"failures", json::array()}, {"slowest", json::array()}};
    out["there_already"] = {{"files", kept}, {"bytes", kept_before}, {"of_unknown_size", of_unknown_size}};
    for (const FileResult *r : failures)
      out["failures"].push_back(entry_of(*r));
    for (const FileResult *r : slowest)
      out["slowest"].push_back(entry_of(*r));
    auto groups = [](const std::map<std::string, Group> &from) {
      json object = json::object();
      for (const auto &[name, group] : from)
        object[name] = {{"files", group.files},
                        {"bytes", group.before},
                        {"result_bytes", group.after},
                        {"seconds", group.seconds}};
      return object;
    };
    out["kinds"] = groups(kinds), out["nodes"] = groups(nodes);
    if (!flags.files_from.empty()) out["missing"] = missing;
    fmt::print("{}\n", text_of(out));
  } else {
    std::string counts;
    for (const auto &[state, count] : states)
      counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", human_count(count), printable(state));
    fmt::print("{} files: {}\n", human_count(all.files.size()), counts.empty() ? "none" : counts);
    fmt::print("{} became {} (ratio {}), {} of work in {}\n", human_bytes(before), human_bytes(after),
               ratio_text(before, after), human_seconds(seconds), human_seconds(std::max(0.0, last - first)));
    if (kept != 0)
      fmt::print("{} files were there already: their sizes count, their work is not known\n",
                 human_count(kept));
    if (of_unknown_size != 0)
      fmt::print("{} of these have results that tell no size\n", human_count(of_unknown_size));
    if (all.broken != 0)
      fmt::print("{} lines are no results: of machines that went down while they wrote\n",
                 human_count(all.broken));
    if (all.again != 0) fmt::print("{} files were done more than once\n", human_count(all.again));
    auto table = [](std::string_view title, const std::map<std::string, Group> &groups) {
      if (groups.empty()) return;
      fmt::print("\n{:<16} {:>9} {:>12} {:>12} {:>8} {:>10} {:>8}\n", title, "Files", "Before", "After",
                 "Ratio", "Work", "MB/s");
      for (const auto &[name, g] : groups)
        fmt::print("{:<16} {:>9} {:>12} {:>12} {:>8} {:>10} {:>8}\n", printable(name), human_count(g.files),
                   human_bytes(g.before), human_bytes(g.after), ratio_text(g.before, g.after),
                   human_seconds(g.seconds),
                   g.seconds > 0 ? fmt::format("{:.0f}", static_cast<double>(g.before) / 1e6 / g.seconds)
                                 : "-");
    };
    table("Session kind", kinds);
    table("Node", nodes);
    if (!slowest.empty()) fmt::print("\n{:>10} {:>12}  Slowest\n", "Seconds", "Bytes");
    for (const FileResult *r : slowest)
      fmt::print("{:>10.3f} {:>12}  {}{}\n", r->seconds, human_bytes(r->bytes), printable(r->path),
                 r->node.empty() ? std::string() : fmt::format("  ({})", printable(r->node)));
    if (!failures.empty()) fmt::print("\nFailures\n");
    for (const FileResult *r : failures)
      fmt::print("{} {}\n", printable(r->task), printable(r->error.empty() ? r->path : r->error));
    if (!missing.empty()) fmt::print("\n{} files of the list have no result\n", human_count(missing.size()));
    for (std::size_t i = 0; i < std::min<std::size_t>(missing.size(), 20); ++i)
      fmt::print("{}\n", printable(missing[i]));
  }
  return failures.empty() && missing.empty() ? kDone : kFailed;
}

void add_fleet_command(CLI::App &app, int &exit_status) {
  auto flags = std::make_shared<FleetFlags>();
  CLI::App *c = app.add_subcommand("fleet", "Lists work for many machines, and reports what came of it");
  c->add_option("ACTION", flags->action,
                "list: traces with their sizes, for --files-from; report: results joined")
      ->required()
      ->check(CLI::IsMember({"list", "report"}));
  c->add_option("PATH", flags->inputs, "Of list: traces, and folders with -r; of report: results files");
  flags->add_to(*c, ".etl and .etlz");
  const CLI::Option *slowest =
      c->add_option("--slowest", flags->slowest, "Of report: show that many of the slowest files")
          ->check(no_less_than_zero())
          ->capture_default_str();
  c->add_flag("--json", flags->json, "Of report: print JSON");
  c->footer("Every night, on as many machines as there are, and again after any failure:\n"
            "  etwrelog fleet list traces -r > traces.list\n"
            "  etwrelog pack --files-from traces.list --out-dir archives --shard 3/8 --skip-existing "
            "--results results-3.jsonl\n"
            "  etwrelog fleet report results-*.jsonl --files-from traces.list\n"
            "The report ends with status 1 if a file failed, or has no result although the list names it.\n"
            "tools/slurm and tools/kubernetes hold the scripts for clusters.");
  c->callback([flags, slowest, &exit_status] {
    const bool lists = flags->action == "list";
    if (lists && (flags->json || slowest->count() != 0))
      exit_status = report(usage_error("--json and --slowest are for fleet report"));
    else if (!lists && !flags->shard.empty())
      exit_status = report(usage_error("--shard is for fleet list: a report is of all shares"));
    else
      exit_status = lists ? run_list(*flags) : run_report(*flags);
  });
}

const Command kFleet(55, add_fleet_command);

} // namespace
} // namespace etwrelog::cli
