// etwrelog fleet list | report: what is to be done on many machines, and what came of it.
#include "etwrelog/text.hpp"
#include "tools/bulk.hpp"
#include "tools/commands.hpp"
#include "tools/errors.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace etwrelog::cli {
namespace {

using nlohmann::json;

struct FleetFlags : ListFlags {
  std::string action;
  std::size_t slowest = 10;
  bool json = false, null = false;
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
  Places places;
  std::set<std::string> listed; // a folder and another in it have files in common
  bool left_out = false;
  for (std::size_t i = 0; i < files->size(); ++i) {
    const std::string path = files->path(i);
    if (flags.inputs.size() > 1 && !listed.insert(places.of(path)).second) continue;
    if (!flags.null && (path.find('\n') != std::string::npos || path.ends_with('\r'))) {
      warn(path, "a name with a line break does not fit into a list of lines, and is left out; -0 makes one "
                 "that takes any name");
      left_out = true;
      continue;
    }
    print_text("{}\t{}{}", files->bytes(i), path, flags.null ? '\0' : '\n');
  }
  return left_out ? kDamageSkipped : kDone;
}

struct Group {
  std::uint64_t files = 0, before = 0, after = 0;
  double seconds = 0;
};

using Results = std::map<std::pair<std::string, std::string>, FileResult>; // by task and path

struct Report {
  Results files; // the last word on each
  Results done;  // the last that is of work, where the last word is "skipped"
  std::uint64_t lines = 0, broken = 0, again = 0; // again: done although it was done before
  std::set<std::pair<std::string, std::string>> was_done;
};

// Puts it in the place of one that is no later. Which file of results stands first does not matter: a share
// may have moved to another machine.
void put(Results &into, const std::pair<std::string, std::string> &key, const FileResult &result) {
  const auto [at, fresh] = into.try_emplace(key, result);
  if (!fresh && result.began >= at->second.began) at->second = result;
}

void take(Report &report, std::string_view line) {
  ++report.lines;
  std::optional<FileResult> result = parse_result(line);
  if (!result) {
    ++report.broken;
    return;
  }
  const auto key = std::pair(result->task, result->path);
  if (result->state == "done" && !report.was_done.insert(key).second) ++report.again;
  put(report.files, key, *result);
  if (result->state != "skipped" && result->state != "failed") put(report.done, key, *result);
}

// What was skipped holds as it was done, whatever failed in between.
void settle(Report &report) {
  for (auto &[key, result] : report.files)
    if (const auto done = report.done.find(key); result.state == "skipped" && done != report.done.end())
      result = done->second;
  report.done.clear(), report.was_done.clear();
}

// Of what `pack --part` did, which has the name "x.etl#2/4": the file, and how many parts of it there are.
struct PartOf {
  std::string path;
  Shard part;
};

std::optional<PartOf> part_of(const FileResult &result) {
  const std::string &path = result.path;
  const std::size_t mark = path.rfind('#');
  if (result.task != "pack" || mark == std::string::npos) return std::nullopt;
  const std::string number = path.substr(mark + 1);
  if (number.find_first_not_of("0123456789/") != std::string::npos) return std::nullopt;
  const Result<Shard> part = parse_shard(number, [](const char *) -> const char * { return nullptr; });
  if (number.empty() || !part) return std::nullopt;
  return PartOf{path.substr(0, mark), *part};
}

// What became of whole files: one that was packed in parts is one file, done when all of its parts are.
struct Whole {
  std::string state = "done";
  double began = 0;
  std::uint32_t of = 0;               // parts; 0: it was taken as a whole
  std::vector<std::uint32_t> missing; // parts that have no result; the first of them
};
using Wholes = std::map<std::pair<std::string, std::string>, Whole>;
constexpr std::size_t kMostMissing = 10;

Wholes wholes_of(const Report &report) {
  Wholes wholes;
  std::map<std::tuple<std::string, std::string, std::uint32_t>, std::map<std::uint32_t, const FileResult *>>
      cut;
  for (const auto &[key, r] : report.files)
    if (const std::optional<PartOf> part = part_of(r); part)
      cut[{r.task, part->path, part->part.of}].emplace(part->part.number, &r);
    else
      wholes[key] = {r.state, r.began, 0, {}};
  for (const auto &[key, parts] : cut) {
    Whole whole;
    whole.of = std::get<2>(key);
    for (const auto &[number, r] : parts) {
      if (r->state == "failed" || whole.state == "done") whole.state = r->state;
      whole.began = std::max(whole.began, r->began);
    }
    for (std::uint32_t i = 1; i <= whole.of && whole.missing.size() < kMostMissing; ++i)
      if (!parts.contains(i)) whole.missing.push_back(i);
    if (!whole.missing.empty() && whole.state != "failed") whole.state = "not all parts";
    // In four parts first, then in eight, or as a whole: the later.
    const auto [at, fresh] = wholes.try_emplace({std::get<0>(key), std::get<1>(key)}, whole);
    if (!fresh && whole.began > at->second.began) at->second = whole;
  }
  return wholes;
}

// Whether its file was done in another way later.
bool is_superseded(const FileResult &r, const Wholes &wholes) {
  const std::optional<PartOf> part = part_of(r);
  const auto whole = wholes.find({r.task, part ? part->path : r.path});
  return whole != wholes.end() && whole->second.of != (part ? part->part.of : 0);
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
    if (Result<void> read = for_each_line(file, [&](std::string_view line) { take(all, line); }); !read)
      return report(read.error());
  settle(all);
  const Wholes wholes = wholes_of(all);

  std::map<std::string, std::uint64_t> states;
  std::map<std::string, Group> kinds, nodes;
  std::vector<const FileResult *> failures, slowest;
  std::uint64_t before = 0, after = 0, kept = 0, kept_before = 0, of_unknown_size = 0;
  double seconds = 0, first = 0, last = 0;
  std::size_t cut_up = 0; // files of which parts have no result
  for (const auto &[key, whole] : wholes) {
    ++states[whole.state];
    cut_up += whole.missing.empty() ? 0 : 1;
  }
  for (const auto &[key, r] : all.files) {
    if (is_superseded(r, wholes)) continue;
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

  // What the list names and no result tells of: of any task that something in the list has a result of.
  std::vector<std::string> missing;
  std::map<std::string, std::vector<std::string>> missing_of; // by task
  if (!flags.files_from.empty()) {
    ListFlags wanted;
    wanted.files_from = flags.files_from;
    const Result<WorkList> list = wanted.list({});
    if (!list) return report(list.error());
    if (list->size() == 0) return report(io_error(flags.files_from, "the list names no files"));
    std::set<std::string> tasks, ours;
    for (const auto &[key, whole] : wholes)
      tasks.insert(key.first);
    // Archives beside their originals: the one is not packed, the other is not unpacked or verified.
    auto is_asked_for = [&](const std::string &task, std::size_t i) {
      const bool archive = has_ending(list->path(i), ".etlz");
      return task == "pack" ? !archive : (task != "unpack" && task != "verify") || archive;
    };
    auto has_result = [&](const std::string &task, std::size_t i) {
      if (!is_asked_for(task, i)) return true;
      const auto at = wholes.find({task, list->path(i)});
      return at != wholes.end() && at->second.missing.empty();
    };
    for (const std::string &task : tasks)
      for (std::size_t i = 0; i < list->size() && !ours.contains(task); ++i)
        if (wholes.contains({task, list->path(i)})) ours.insert(task);
    for (std::size_t i = 0; i < list->size(); ++i) {
      bool everywhere = !ours.empty();
      for (const std::string &task : ours)
        if (!has_result(task, i)) everywhere = false, missing_of[task].push_back(list->path(i));
      if (!everywhere) missing.push_back(list->path(i));
    }
  }

  if (flags.json) {
    json out = {
        {"files", wholes.size()},    {"lines", all.lines},      {"broken_lines", all.broken},
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
    if (!flags.files_from.empty()) out["missing"] = missing, out["missing_by_task"] = missing_of;
    if (cut_up != 0) out["parts_missing"] = cut_up;
    print_text("{}\n", text_of(out));
  } else {
    std::string counts;
    for (const auto &[state, count] : states)
      counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", human_count(count), printable(state));
    print_text("{} files: {}\n", human_count(wholes.size()), counts.empty() ? "none" : counts);
    print_text("{} became {} (ratio {}), {} of work in {}\n", human_bytes(before), human_bytes(after),
               ratio_text(before, after), human_seconds(seconds), human_seconds(std::max(0.0, last - first)));
    if (kept != 0)
      print_text("{} files were there already: their sizes count, their work is not known\n",
                 human_count(kept));
    if (of_unknown_size != 0)
      print_text("{} of these have results that tell no size\n", human_count(of_unknown_size));
    if (all.broken != 0)
      print_text("{} lines are no results: of machines that went down while they wrote\n",
                 human_count(all.broken));
    if (all.again != 0) print_text("{} files were done more than once\n", human_count(all.again));
    auto table = [](std::string_view title, const std::map<std::string, Group> &groups) {
      if (groups.empty()) return;
      print_text("\n{:<16} {:>9} {:>12} {:>12} {:>8} {:>10} {:>8}\n", title, "Files", "Before", "After",
                 "Ratio", "Work", "MB/s");
      for (const auto &[name, g] : groups)
        print_text("{:<16} {:>9} {:>12} {:>12} {:>8} {:>10} {:>8}\n", printable(name), human_count(g.files),
                   human_bytes(g.before), human_bytes(g.after), ratio_text(g.before, g.after),
                   human_seconds(g.seconds),
                   g.seconds > 0 ? fmt::format("{:.0f}", static_cast<double>(g.before) / 1e6 / g.seconds)
                                 : "-");
    };
    table("Session kind", kinds);
    table("Node", nodes);
    if (!slowest.empty()) print_text("\n{:>10} {:>12}  Slowest\n", "Seconds", "Bytes");
    for (const FileResult *r : slowest)
      print_text("{:>10.3f} {:>12}  {}{}\n", r->seconds, human_bytes(r->bytes), printable(r->path),
                 r->node.empty() ? std::string() : fmt::format("  ({})", printable(r->node)));
    if (!failures.empty()) print_text("\nFailures\n");
    for (const FileResult *r : failures)
      print_text("{} {}\n", printable(r->task), printable(r->error.empty() ? r->path : r->error));
    if (cut_up != 0) print_text("\n{} files have parts without a result\n", human_count(cut_up));
    for (const auto &[key, whole] : wholes)
      if (!whole.missing.empty())
        print_text("{}: part {}{}\n", printable(key.second), fmt::join(whole.missing, ", "),
                   whole.missing.size() == kMostMissing ? ", ..." : "");
    if (missing_of.empty() && !missing.empty()) missing_of[""] = missing; // no results of any of them
    for (const auto &[task, files] : missing_of) {
      print_text("\n{} files of the list have no result{}\n", human_count(files.size()),
                 task.empty() ? std::string() : fmt::format(" of {}", printable(task)));
      for (std::size_t i = 0; i < std::min<std::size_t>(files.size(), 20); ++i)
        print_text("{}\n", printable(files[i]));
    }
  }
  return failures.empty() && missing.empty() && cut_up == 0 ? kDone : kFailed;
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
  c->add_flag("-0,--null", flags->null,
              "Of list: end names with a zero byte instead of a line feed, as --files-from reads, too; for "
              "names with line feeds");
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
    else if (!lists && flags->null)
      exit_status =
          report(usage_error("-0 is for fleet list; --files-from sees by itself how a list is written"));
    else if (!lists && !flags->shard.empty())
      exit_status = report(usage_error("--shard is for fleet list: a report is of all shares"));
    else
      exit_status = lists ? run_list(*flags) : run_report(*flags);
  });
}

const Command kFleet(55, add_fleet_command);

} // namespace
} // namespace etwrelog::cli
