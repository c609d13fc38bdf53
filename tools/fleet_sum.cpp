#include "tools/fleet_sum.hpp"

#include "etwrelog/archive.hpp"
#include "etwrelog/kernel_events.hpp"
#include "etwrelog/statistics.hpp"
#include "etwrelog/text.hpp"
#include "etwrelog/trace.hpp"
#include "tools/errors.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace etwrelog::cli {
namespace {

using nlohmann::json;

struct Type {
  std::string name;
  std::uint64_t events = 0, bytes = 0, traces = 0;
};
struct OfProcess {
  std::uint64_t traces = 0, instances = 0, events = 0, samples = 0;
};
struct OfKind {
  std::uint64_t traces = 0, original = 0, archived = 0, events_lost = 0;
  double seconds = 0;
};

struct All {
  std::uint64_t files = 0, archives = 0, original = 0, stored = 0; // bytes
  std::uint64_t events = 0, buffers = 0;
  std::uint64_t counted = 0, indexed = 0, plain = 0; // files: with counts, with an index alone, no trace
  std::uint64_t event_bytes = 0, samples = 0;        // of those counted
  std::uint64_t stacks = 0, frames = 0;
  std::map<EventType, Type> types;
  std::map<std::string, OfProcess> by_process;
  std::map<std::string, OfKind> by_kind;
  std::uint64_t events_of_counted = 0;
  std::vector<ContentHash> contents; // of each file's original
};

// Files whose original is another file's, too: an archive beside what it was made of, a copy, a file named
// twice.
std::uint64_t counted_again(std::vector<ContentHash> contents) {
  std::ranges::sort(contents);
  return static_cast<std::uint64_t>(contents.end() - std::unique(contents.begin(), contents.end()));
}

void add(All &all, const Statistics &s) {
  ++all.counted;
  all.events_of_counted += s.events;
  all.event_bytes += s.event_bytes;
  all.stacks += s.stacks.stack_events();
  all.frames += s.stacks.frames;
  for (const TypeStatistics &row : s.types) {
    Type &type = all.types[row.type];
    if (type.name.empty()) type.name = row.name;
    type.events += row.events;
    type.bytes += row.bytes;
    ++type.traces;
    if (row.type.family == Family::hook && row.type.id == kernel::kHookSample) all.samples += row.events;
  }
}

void add(All &all, const std::vector<NamedProcesses> &processes) {
  for (const NamedProcesses &row : processes) {
    OfProcess &sum = all.by_process[row.name];
    ++sum.traces;
    sum.instances += row.instances;
    sum.events += row.events;
    sum.samples += row.samples;
  }
}

void add(All &all, const std::optional<Session> &session, std::uint64_t original, std::uint64_t archived) {
  OfKind &kind = all.by_kind[session ? std::string(session_kind_name(session->kind)) : "not recorded"];
  ++kind.traces;
  kind.original += original;
  kind.archived += archived;
  if (!session) return;
  kind.seconds += session->seconds;
  kind.events_lost += session->events_lost;
}

json to_json(Sum what, const All &all, std::uint64_t again, std::size_t top) {
  json sum = {{"files", all.files},
              {"archives", all.archives},
              {"original_bytes", all.original},
              {"bytes", all.stored},
              {"events", all.events},
              {"buffers", all.buffers},
              {"no_trace", all.plain},
              {"same_content", again},
              {"counted",
               {{"files", all.counted}, {"events", all.events_of_counted}, {"event_bytes", all.event_bytes}}},
              {"not_counted", {{"index_only", all.indexed}}}};
  if (what == Sum::info) {
    json kinds = json::object(), processes = json::array();
    for (const auto &[name, kind] : all.by_kind)
      kinds[name] = {{"traces", kind.traces},
                     {"original_bytes", kind.original},
                     {"bytes", kind.archived},
                     {"seconds", kind.seconds},
                     {"events_lost", kind.events_lost}};
    for (const auto &[name, process] : all.by_process)
      processes.push_back({{"name", name},
                           {"traces", process.traces},
                           {"instances", process.instances},
                           {"events", process.events},
                           {"samples", process.samples}});
    sum["sessions"] = kinds, sum["processes"] = processes, sum["samples"] = all.samples;
    return sum;
  }
  json types = json::array();
  std::vector<const std::pair<const EventType, Type> *> rows;
  for (const auto &row : all.types)
    rows.push_back(&row);
  std::ranges::stable_sort(rows, std::greater(), [](const auto *row) { return row->second.bytes; });
  for (const auto *row : rows) {
    if (top != 0 && types.size() == top) break;
    types.push_back({{"key", type_key(row->first)},
                     {"name", row->second.name},
                     {"events", row->second.events},
                     {"bytes", row->second.bytes},
                     {"traces", row->second.traces}});
  }
  sum["by_type"] = types;
  sum["stacks"] = {{"events", all.stacks}, {"frames", all.frames}};
  return sum;
}

void print_common(const All &all) {
  auto row = [](std::string_view name, const std::string &value) { print_text("{:<16}{}\n", name, value); };
  row("Files", fmt::format("{}, {} of them archives", human_count(all.files), human_count(all.archives)));
  row("Originals", human_bytes(all.original));
  row("Stored", fmt::format("{}  ({})", human_bytes(all.stored),
                            percent(static_cast<double>(all.stored), static_cast<double>(all.original))));
  row("Events", fmt::format("{} in {} buffers", human_count(all.events), human_count(all.buffers)));
  if (all.plain != 0) row("No traces", human_count(all.plain));
  if (all.indexed != 0)
    row("Not counted",
        fmt::format("{} archives: {} (of them only events and buffers are known); --decode counts them",
                    human_count(all.indexed), "packed by an early version, or of a damaged trace"));
}

// What its index does not tell is decoded in some milliseconds.
bool at_once(const ArchiveSummary &summary) {
  return !summary.indexed || summary.original < (2u << 20) || summary.archived < (64u << 10);
}

void print_info(const All &all, std::size_t top) {
  print_text("\n{:<14} {:>9} {:>12} {:>12} {:>12} {:>14}\n", "Sessions", "Traces", "Originals", "Stored",
             "Time", "Events lost");
  for (const auto &[name, kind] : all.by_kind)
    print_text("{:<14} {:>9} {:>12} {:>12} {:>12} {:>14}\n", printable(name), human_count(kind.traces),
               human_bytes(kind.original), human_bytes(kind.archived), human_seconds(kind.seconds),
               human_count(kind.events_lost));
  if (all.by_process.empty()) return;
  std::vector<const std::pair<const std::string, OfProcess> *> rows;
  for (const auto &row : all.by_process)
    rows.push_back(&row);
  std::ranges::stable_sort(rows, [](const auto *a, const auto *b) {
    return a->second.samples != b->second.samples ? a->second.samples > b->second.samples
                                                  : a->second.events > b->second.events;
  });
  print_text("\n{:>9} {:>10} {:>12} {:>15}  {}\n", "Traces", "Instances", "Samples", "Events", "Process");
  const std::size_t most = top == 0 ? 30 : top;
  for (std::size_t i = 0; i < rows.size() && i < most; ++i)
    print_text("{:>9} {:>10} {:>12} {:>15}  {}\n", human_count(rows[i]->second.traces),
               human_count(rows[i]->second.instances), human_count(rows[i]->second.samples),
               human_count(rows[i]->second.events), printable(rows[i]->first));
  if (rows.size() > most) print_text("... and {} more\n", rows.size() - most);
}

void print_stats(const All &all, std::size_t top) {
  std::vector<const Type *> rows;
  for (const auto &[key, type] : all.types)
    rows.push_back(&type);
  std::ranges::stable_sort(rows, std::greater(), [](const Type *type) { return type->bytes; });
  const auto events = static_cast<double>(all.events_of_counted),
             bytes = static_cast<double>(all.event_bytes);
  print_text("\n{:>15} {:>7} {:>18} {:>7} {:>8}  {}\n", "Events", "", "Bytes", "", "Traces", "Type");
  for (std::size_t i = 0; i < rows.size() && (top == 0 || i < top); ++i)
    print_text("{:>15} {:>7} {:>18} {:>7} {:>8}  {}\n", human_count(rows[i]->events),
               percent(static_cast<double>(rows[i]->events), events), human_count(rows[i]->bytes),
               percent(static_cast<double>(rows[i]->bytes), bytes), human_count(rows[i]->traces),
               printable(rows[i]->name));
  print_text("{:>15} {:>7} {:>18} {:>7} {:>8}  in all, {} types\n", human_count(all.events_of_counted), "",
             human_count(all.event_bytes), "", human_count(all.counted), rows.size());
  print_text("\nStacks: {} events, {} frames\n", human_count(all.stacks), human_count(all.frames));
}

bool is_archive_file(const std::string &path) {
  std::uint8_t first[8] = {};
  const std::unique_ptr<std::FILE, int (*)(std::FILE *)> file(std::fopen(path.c_str(), "rb"), std::fclose);
  static constexpr std::uint8_t kMagic[8] = {0x89, 'E', 'T', 'L', 'Z', '\r', '\n', 0x1A};
  return file && std::fread(first, 1, sizeof first, file.get()) == sizeof first &&
         std::equal(std::begin(first), std::end(first), kMagic);
}

// What one file adds.
Result<void> take(Sum what, const Item &item, bool decode, Outcome &outcome, FileResult &result,
                  const RunOptions &run, All &all, std::mutex &mutex) {
  std::optional<ArchiveSummary> summary;
  std::shared_ptr<const Statistics> counts;
  std::optional<std::vector<NamedProcesses>> processes;
  std::optional<Session> session;
  ContentHash content{};
  if (is_archive_file(item.source)) {
    Result<ArchiveSummary> read = read_archive_summary(item.source, run);
    if (!read) return std::move(read).error();
    summary = *std::move(read);
    processes = std::move(summary->processes);
    counts = summary->counts ? summary->counts : summary->tally;
    if (what == Sum::info && !processes) counts.reset();
    session = summary->session;
    result.hash = to_string(summary->content);
    content = summary->content;
  }
  if (!summary || (!counts && summary->is_trace && (decode || at_once(*summary)))) {
    const Result<Trace> trace = Trace::open(item.source, {.file_order = true}, run);
    if (!trace) return trace.error();
    Result<Statistics> counted = collect_statistics(*trace, run);
    if (!counted) return std::move(counted).error();
    session = session_of(trace->sources().front().header);
    if (!counted->warnings.empty()) outcome.more().warnings = counted->warnings;
    processes = by_name(counted->processes, counted->by_instance);
    counts = std::make_shared<const Statistics>(*std::move(counted));
  }
  if (!summary) {
    const Result<ContentHash> hash = content_hash(item.source, run);
    if (!hash) return hash.error();
    result.hash = to_string(*hash);
    content = *hash;
  }
  if (session) result.session = session->name, result.kind = session_kind_name(session->kind);
  outcome.before = summary ? summary->original : item.size;
  outcome.after = summary ? summary->archived : 0;

  const std::lock_guard lock(mutex);
  ++all.files;
  all.contents.push_back(content);
  all.archives += summary ? 1 : 0;
  all.original += outcome.before;
  all.stored += summary ? summary->archived : item.size;
  if (summary && !summary->is_trace) {
    ++all.plain;
    return {};
  }
  add(all, session, outcome.before, summary ? summary->archived : item.size);
  if (counts) {
    add(all, *counts);
    if (processes) add(all, *processes);
    all.events += counts->events;
    if (summary && summary->indexed)
      all.buffers += summary->buffers;
    else
      for (const auto &[type, buffers] : counts->buffer_types)
        all.buffers += buffers;
  } else {
    ++all.indexed;
    all.events += summary->events;
    all.buffers += summary->buffers;
  }
  return {};
}

} // namespace

void SumFlags::add_to(CLI::App &command, bool lists_need_sum) {
  BulkFlags::add_to(command, ".etl and .etlz",
                    "Leave out what the results file says is done, and has its size");
  CLI::Option *all =
      command
          .add_flag("--sum", sum,
                    "All files added up; of archives only the index is read, if it tells what is asked")
          ->group("Fleet");
  command.add_flag("--decode", decode, "With --sum: decode archives whose index holds no counts")
      ->needs(all)
      ->group("Fleet");
  if (!lists_need_sum) return;
  for (const char *name : {"--recursive", "--files-from", "--shard", "--results", "--skip-existing"})
    command.get_option(name)->needs(all);
}

int run_sum(Sum what, const SumFlags &flags, const RunFlags &run, std::size_t top) {
  if (std::ranges::find(flags.inputs, "-") != flags.inputs.end())
    return report(usage_error("--sum is of files, not of standard input (-)"));
  All all;
  std::mutex mutex;
  BulkTask task;
  task.name = what == Sum::info ? "info" : "stats";
  task.phase = "adding up";
  task.memory_each = 64u << 20;
  task.large = 1u << 30; // most of them are archives, of which little is read
  task.takes = [](std::string_view name) { return has_ending(name, ".etl") || has_ending(name, ".etlz"); };
  task.run = [&](const Item &item, Outcome &outcome, FileResult &result, const RunOptions &options) {
    return take(what, item, flags.decode, outcome, result, options, all, mutex);
  };
  task.table = false;
  const int status = Bulk(std::move(task), flags, run).run();
  if (all.files == 0 && status != kDone) return status;
  const std::uint64_t again = counted_again(std::move(all.contents));
  if (again != 0)
    print_line(
        fmt::format("etwrelog: warning: {} of these files hold what another of them holds, too, such as an "
                    "archive beside its original: it is counted more than once",
                    human_count(again)));
  if (run.json) {
    print_text("{}\n", text_of(to_json(what, all, again, top)));
    return status;
  }
  print_common(all);
  if (what == Sum::info)
    print_info(all, top);
  else
    print_stats(all, top);
  return status;
}

} // namespace etwrelog::cli
