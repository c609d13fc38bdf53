// etwrelog pack | unpack | verify: many files at once, each on its own.
#include "etwrelog/archive.hpp"
#include "etwrelog/experimental/jobs.hpp"
#include "etwrelog/text.hpp"
#include "tools/cli.hpp"
#include "tools/commands.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>

#include <fmt/format.h>

namespace etwrelog::cli {
namespace {

namespace fs = std::filesystem;
using Seconds = std::chrono::duration<double>;

enum class Task : std::uint8_t { pack, unpack, verify };

struct BulkOptions : RunFlags {
  std::vector<std::string> inputs;
  std::string output, out_dir;
  std::string level = "default";
  bool recursive = false, skip_existing = false, delete_original = false, explain = false, no_verify = false;
  bool salvage = false, force = false;
};

struct Item {
  std::string source, target;
  std::uint64_t size = 0;
};

struct Outcome {
  enum class State : std::uint8_t { pending, done, damaged, skipped, failed } state = State::pending;
  std::uint64_t before = 0, after = 0; // bytes of source and target
  std::uint64_t decoded = 0;
  double seconds = 0;
  bool trace = true, deleted = false;
  bool written = false; // although it failed: the result is there, whole; only what was to follow is not done
  std::vector<Skipped> missing;
  std::optional<Error> error;
};

bool has_extension(const fs::path &path, std::string_view wanted) {
  std::string extension = path.extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return extension == wanted;
}

Error usage_error(std::string what) {
  Error e;
  e.kind = ErrorKind::usage;
  e.what = std::move(what);
  return e;
}

Error io_error(const std::string &file, std::string what) {
  Error e;
  e.kind = ErrorKind::io;
  e.file = file;
  e.what = std::move(what);
  return e;
}

bool is_compressed(const std::string &name) {
  for (const char *extension : {".gz", ".xz", ".zst", ".bz2", ".zip", ".7z"})
    if (has_extension(name, extension)) return true;
  return false;
}

// x.etl <-> x.etlz; any other x <-> x.etlz with the name kept whole.
std::string target_name(Task task, const fs::path &source) {
  if (task == Task::pack)
    return has_extension(source, ".etl") ? source.string() + "z" : source.string() + ".etlz";
  if (!has_extension(source, ".etlz")) return source.string() + ".etl";
  const std::string name = source.string();
  if (const Result<ArchiveInfo> info = read_archive_info(name); info && !info->is_trace)
    return name.substr(0, name.size() - 5);
  return name.substr(0, name.size() - 1);
}

// One name for a place, however it is spelled: through links in its folder, "." and "..".
std::string place_of(const fs::path &path) {
  std::error_code failed;
  const fs::path folder = fs::weakly_canonical(path.has_parent_path() ? path.parent_path() : ".", failed);
  return failed ? path.string() : (folder / path.filename()).string();
}

// No two results may have one place, and none may be a source, its own or another's.
Result<void> check_targets(const std::vector<Item> &items) {
  std::map<std::string, std::string> targets, sources;
  for (const Item &item : items)
    sources.emplace(place_of(item.source), item.source);
  for (const Item &item : items) {
    if (item.target.empty()) continue;
    if (item.target == "-")
      return usage_error("standard output cannot be written to: a file of that name is ./-");
    const std::string place = place_of(item.target);
    const auto [same, fresh] = targets.emplace(place, item.source);
    if (!fresh)
      return usage_error(
          fmt::format("\"{}\" and \"{}\" would both become \"{}\"", same->second, item.source, item.target));
    std::error_code ignored;
    if (fs::equivalent(item.source, item.target, ignored))
      return usage_error(fmt::format("\"{}\" would replace itself", item.source));
    if (const auto other = sources.find(place); other != sources.end())
      return usage_error(
          fmt::format("the result of \"{}\" would replace \"{}\"", item.source, other->second));
  }
  return {};
}

Result<std::vector<Item>> collect(Task task, const BulkOptions &options) {
  std::vector<Item> items;
  const std::string_view wanted = task == Task::pack ? ".etl" : ".etlz";
  auto add = [&](const fs::path &file, const fs::path &under) {
    std::error_code failed;
    Item item;
    item.source = file.string();
    item.size = fs::file_size(file, failed);
    if (failed) item.size = 0;
    if (task != Task::verify) {
      fs::path target = target_name(task, file);
      if (!options.out_dir.empty()) {
        const fs::path relative = under.empty() ? target.filename() : fs::relative(target, under, failed);
        target = fs::path(options.out_dir) / (failed || relative.empty() ? target.filename() : relative);
      }
      item.target = options.output.empty() ? target.string() : options.output;
    }
    items.push_back(std::move(item));
  };
  for (const std::string &name : options.inputs) {
    std::error_code failed;
    if (!fs::is_directory(name, failed)) {
      add(name, {});
      continue;
    }
    if (!options.recursive)
      return usage_error(fmt::format("\"{}\" is a folder; give -r to take what is in it", name));
    std::vector<fs::path> found;
    for (fs::recursive_directory_iterator i(name, fs::directory_options::skip_permission_denied, failed), end;
         !failed && i != end; i.increment(failed))
      if (i->is_regular_file(failed) && has_extension(i->path(), wanted)) found.push_back(i->path());
    if (failed) return io_error(name, failed.message());
    std::sort(found.begin(), found.end());
    for (const fs::path &file : found)
      add(file, name);
  }
  if (!options.output.empty() && items.size() != 1)
    return usage_error("-o takes one input; use --out-dir for several");
  if (Result<void> sound = check_targets(items); !sound) return std::move(sound).error();
  return items;
}

class Bulk {
public:
  Bulk(Task task, const BulkOptions &options) : task_(task), options_(options), bar_(options.progress) {}

  int run() {
    Result<std::vector<Item>> items = collect(task_, options_);
    if (!items) return report(items.error());
    items_ = *std::move(items);
    if (items_.empty()) {
      print_line("etwrelog: error: no files");
      return kFailed;
    }
    outcomes_.resize(items_.size());
    static constexpr std::string_view kNames[] = {"packing", "unpacking", "verifying"};
    const auto began = std::chrono::steady_clock::now();
    std::vector<experimental::Job> jobs;
    for (std::size_t i = 0; i < items_.size(); ++i)
      jobs.push_back({[this, i](const RunOptions &run) { return do_file(i, run); }, items_[i].size});
    experimental::JobOptions bulk;
    bulk.phase = kNames[static_cast<std::size_t>(task_)];
    bulk.memory_each = std::uint64_t{level_of(options_.level) == Level::max ? 256u : 128u} << 20;
    const std::vector<Result<void>> results = experimental::run_jobs(jobs, options_.run(bar_), bulk);
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (results[i] || outcomes_[i].state == Outcome::State::failed) continue;
      if (results[i].error().kind == ErrorKind::cancelled) continue; // never begun
      outcomes_[i].state = Outcome::State::failed;
      outcomes_[i].error = results[i].error();
    }
    return finish(Seconds(std::chrono::steady_clock::now() - began).count());
  }

private:
  Result<void> do_file(std::size_t index, const RunOptions &run) {
    const Item &item = items_[index];
    Outcome &outcome = outcomes_[index];
    const auto began = std::chrono::steady_clock::now();
    outcome.before = item.size;
    outcome.error = process(item, outcome, run);
    outcome.seconds = Seconds(std::chrono::steady_clock::now() - began).count();
    if (!outcome.error) return {};
    outcome.state = Outcome::State::failed;
    return *outcome.error;
  }

  std::optional<Error> process(const Item &item, Outcome &outcome, const RunOptions &run) {
    std::error_code failed;
    if (!item.target.empty() && options_.skip_existing && fs::exists(item.target, failed)) {
      outcome.state = Outcome::State::skipped;
      return std::nullopt;
    }
    const Input source = input_of(item.source);
    const Output target(item.target, options_.force ? Existing::replace : Existing::refuse);
    if (!item.target.empty() && !options_.out_dir.empty()) make_folder(fs::path(item.target).parent_path());
    std::vector<ColumnCost> costs;
    if (task_ == Task::pack) {
      const PackOptions how{level_of(options_.level), !options_.no_verify,
                            options_.explain ? &costs : nullptr};
      const Result<PackReport> packed = pack(source, target, how, run);
      if (!packed) return packed.error();
      outcome.before = packed->original;
      outcome.after = packed->archived;
      outcome.decoded = packed->decoded;
      outcome.trace = packed->is_trace;
    } else {
      const UnpackOptions how{options_.salvage};
      const Result<UnpackReport> unpacked =
          task_ == Task::unpack ? unpack(source, target, how, run) : verify(source, how, run);
      if (!unpacked) return unpacked.error();
      outcome.before = unpacked->archived;
      outcome.after = outcome.decoded = unpacked->original;
      outcome.missing = unpacked->missing;
    }
    if (task_ == Task::pack && options_.delete_original) {
      outcome.written = true;
      if (const Result<UnpackReport> same = verify_against(item.target, source, run); !same)
        return same.error();
      outcome.deleted = fs::remove(item.source, failed);
      if (!outcome.deleted) return io_error(item.source, "cannot be deleted; its archive is good");
    }
    outcome.state = outcome.missing.empty() ? Outcome::State::done : Outcome::State::damaged;
    if (options_.explain) {
      const std::lock_guard lock(explain_mutex_);
      for (const ColumnCost &cost : costs) {
        ColumnCost &sum = explained_[cost.owner + "\t" + cost.column];
        sum.owner = cost.owner, sum.column = cost.column;
        sum.in += cost.in, sum.out += cost.out;
      }
    }
    return std::nullopt;
  }

  // And those above it that are missing.
  void make_folder(const fs::path &folder) {
    const std::lock_guard lock(folders_mutex_);
    std::vector<fs::path> missing;
    std::error_code failed;
    for (fs::path at = folder; !at.empty() && !fs::exists(at, failed); at = at.parent_path())
      missing.push_back(at);
    for (auto at = missing.rbegin(); at != missing.rend(); ++at)
      if (fs::create_directory(*at, failed)) made_.push_back(*at);
  }

  int finish(double seconds) {
    std::uint64_t before = 0, after = 0, decoded = 0;
    std::size_t done = 0, failed = 0, incomplete = 0, skipped = 0, damaged = 0, left = 0;
    for (const Outcome &o : outcomes_) {
      switch (o.state) {
      case Outcome::State::done: ++done; break;
      case Outcome::State::damaged: ++damaged; break;
      case Outcome::State::skipped: ++skipped; continue;
      case Outcome::State::failed: ++(o.written ? incomplete : failed); continue;
      case Outcome::State::pending: ++left; continue;
      }
      before += o.before, after += o.after, decoded += o.decoded;
    }
    for (std::size_t i = 0; i < items_.size(); ++i) {
      const Outcome &o = outcomes_[i];
      if (o.error) {
        Error e = *o.error;
        if (e.file.empty()) e.file = items_[i].source;
        static_cast<void>(report(e));
      }
      if (task_ == Task::pack && o.state == Outcome::State::done && !o.trace)
        warn(items_[i].source,
             is_compressed(items_[i].source)
                 ? "is compressed already and kept as it is: unpacked first, a trace in it packs far better"
                 : "is no ETL trace: stored with plain zstd");
      for (const Skipped &m : o.missing)
        warn(items_[i].source,
             fmt::format("{} bytes of the original from 0x{:x} are missing", m.bytes, m.offset));
    }
    if (options_.json)
      print_json(seconds);
    else if (!options_.quiet)
      print_table(before, after, decoded, done + damaged, skipped, failed, seconds);
    if (options_.explain) print_explain();
    for (auto folder = made_.rbegin(); folder != made_.rend(); ++folder) {
      std::error_code in_use; // what was made for results that did not come
      fs::remove(*folder, in_use);
    }
    if (left > 0 || (failed > 0 && stop_token().stop_requested())) {
      print_line(
          fmt::format("etwrelog: stopped on request; {} of {} files not done", left + failed, items_.size()));
      return kFailed;
    }
    return failed > 0 ? kFailed : incomplete > 0 ? kIncomplete : damaged > 0 ? kDamageSkipped : kDone;
  }

  static std::string_view state_name(const Outcome &o) {
    switch (o.state) {
    case Outcome::State::done: return o.deleted ? "done, original deleted" : "done";
    case Outcome::State::damaged: return "damaged";
    case Outcome::State::skipped: return "exists, skipped";
    case Outcome::State::failed: return o.written ? "written, NOT FINISHED" : "FAILED";
    default: return "not done";
    }
  }

  static std::string rate(std::uint64_t bytes, double seconds) {
    return seconds > 0 ? fmt::format("{:.0f}", static_cast<double>(bytes) / 1e6 / seconds) : std::string("-");
  }
  // The rate counts decoded bytes: of a compressed trace those that the model worked on.
  static std::string ratio(std::uint64_t before, std::uint64_t after) {
    const std::uint64_t small = std::min(before, after), big = std::max(before, after);
    return small > 0 ? fmt::format("{:.2f}", static_cast<double>(big) / static_cast<double>(small))
                     : std::string("-");
  }

  void print_table(std::uint64_t before, std::uint64_t after, std::uint64_t decoded, std::size_t done,
                   std::size_t skipped, std::size_t failed, double seconds) const {
    constexpr std::size_t kMostLines = 200;
    fmt::print("{:>15} {:>15} {:>7} {:>7}  {}\n", "before", "after", "ratio", "MB/s", "file");
    std::size_t lines = 0;
    for (std::size_t i = 0; i < items_.size() && lines < kMostLines; ++i) {
      const Outcome &o = outcomes_[i];
      const bool plain = o.state == Outcome::State::done;
      ++lines;
      fmt::print("{:>15} {:>15} {:>7} {:>7}  {}{}\n", human_count(o.before),
                 o.after > 0 ? human_count(o.after) : "-", ratio(o.before, o.after),
                 rate(o.decoded, o.seconds), printable(items_[i].source),
                 plain && !o.deleted ? std::string() : fmt::format("  ({})", state_name(o)));
    }
    if (lines < items_.size()) fmt::print("... and {} more\n", items_.size() - lines);
    fmt::print("{:>15} {:>15} {:>7} {:>7}  {} files, {} skipped, {} failed, {}\n", human_count(before),
               human_count(after), ratio(before, after), rate(decoded, seconds), done, skipped, failed,
               human_seconds(seconds));
  }

  void print_json(double seconds) const {
    nlohmann::json list = nlohmann::json::array();
    for (std::size_t i = 0; i < items_.size(); ++i) {
      const Outcome &o = outcomes_[i];
      nlohmann::json entry = {{"source", items_[i].source}, {"before", o.before},   {"after", o.after},
                              {"decoded", o.decoded},       {"seconds", o.seconds}, {"state", state_name(o)}};
      if (!items_[i].target.empty()) entry["target"] = items_[i].target;
      if (!o.trace) entry["plain"] = true;
      if (o.error) entry["error"] = message(*o.error);
      for (const Skipped &m : o.missing)
        entry["missing"].push_back({{"offset", m.offset}, {"bytes", m.bytes}});
      list.push_back(std::move(entry));
    }
    fmt::print("{}\n", text_of({{"files", list}, {"seconds", seconds}}));
  }

  void print_explain() const {
    std::vector<ColumnCost> rows;
    std::uint64_t in = 0, out = 0;
    for (const auto &[key, cost] : explained_)
      rows.push_back(cost), in += cost.in, out += cost.out;
    std::sort(rows.begin(), rows.end(), [](const auto &a, const auto &b) { return a.out > b.out; });
    fmt::print("\n{:>13} {:>13} {:>7}  {}\n", "column bytes", "stored", "share", "event type, column");
    for (const ColumnCost &row : rows) {
      if (row.in == 0) continue;
      fmt::print("{:>13} {:>13} {:>7}  {}, {}\n", human_count(row.in), human_count(row.out),
                 percent(static_cast<double>(row.out), static_cast<double>(out)), row.owner, row.column);
    }
    fmt::print("{:>13} {:>13} {:>7}  all columns\n", human_count(in), human_count(out), "");
  }

  Task task_;
  const BulkOptions &options_;
  Bar bar_;
  std::vector<Item> items_;
  std::vector<Outcome> outcomes_;
  std::mutex explain_mutex_, folders_mutex_;
  std::vector<fs::path> made_; // folders, each behind those that it is in
  std::map<std::string, ColumnCost> explained_;
};

void add_command(CLI::App &app, int &exit_status, Task task, const char *name, const char *description) {
  CLI::App *command = app.add_subcommand(name, description);
  auto options = std::make_shared<BulkOptions>();
  command->add_option("input", options->inputs, "Files, or folders with -r")->required();
  if (task != Task::verify) {
    command->add_option("-o,--output", options->output, "Name of the result, for one input");
    command->add_option("--out-dir", options->out_dir,
                        "Folder for the results; the place below a folder given is kept");
    command->add_flag("--skip-existing", options->skip_existing, "Leave alone what has its result already");
    command->add_flag("-f,--force", options->force, "Replace existing results");
  }
  command->add_flag("-r,--recursive", options->recursive,
                    task == Task::pack ? "Take all .etl files below the folders"
                                       : "Take all .etlz files below the folders");
  options->add_to(*command);
  options->add_json_to(*command, "Results as JSON");
  options->add_quiet_to(*command, "No table; only errors and warnings");
  if (task == Task::pack) {
    add_level(*command, options->level,
              "default, or max: smaller, takes longer (fast, of old, means default)");
    command->add_flag("--no-verify", options->no_verify,
                      "Do not decode every segment again before it is written");
    command->add_flag("--delete-original", options->delete_original,
                      "Delete each original once its archive was read back and compared");
    command->add_flag("--explain", options->explain, "Show what each column of each event type takes");
  } else {
    command->add_flag("--salvage", options->salvage, "Of a damaged archive take every whole segment");
  }
  command->callback([options, task, &exit_status] { exit_status = Bulk(task, *options).run(); });
}

void add_pack_commands(CLI::App &app, int &exit_status) {
  add_command(app, exit_status, Task::pack, "pack",
              "Packs traces into .etlz archives that give back the very same bytes");
  add_command(app, exit_status, Task::unpack, "unpack", "Gives back the originals of .etlz archives");
  add_command(app, exit_status, Task::verify, "verify", "Checks .etlz archives without writing anything");
}

const Command kPack(50, add_pack_commands);

} // namespace

} // namespace etwrelog::cli
