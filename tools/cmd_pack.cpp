// etwrelog pack | unpack | verify | join: archives, many at once or one out of several parts.
#include "etwrelog/archive.hpp"
#include "etwrelog/text.hpp"
#include "tools/bulk.hpp"
#include "tools/cli.hpp"
#include "tools/commands.hpp"
#include "tools/errors.hpp"
#include "tools/pipes.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

namespace etwrelog::cli {
namespace {

namespace fs = std::filesystem;

enum class Task : std::uint8_t { pack, unpack, verify };

struct PackFlags : BulkFlags, RunFlags {
  std::string level = "default", part;
  bool delete_original = false, explain = false, no_verify = false, salvage = false, counts = false;
};

bool is_compressed(const std::string &name) {
  for (const char *ending : {".gz", ".xz", ".zst", ".bz2", ".zip", ".7z"})
    if (has_ending(name, ending)) return true;
  return false;
}

// x.etl <-> x.etlz; any other x <-> x.etlz with the name kept whole, x.etl.gz among them.
std::string target_name(Task task, const std::string &name) {
  if (task == Task::pack) return has_ending(name, ".etl") ? name + "z" : name + ".etlz";
  if (!has_ending(name, ".etlz")) return name + ".etl";
  if (const Result<ArchiveInfo> info = read_archive_info(name); info && !info->etl_name)
    return name.substr(0, name.size() - 5);
  return name.substr(0, name.size() - 1);
}

void note(FileResult &result, const Session &session) {
  result.session = session.name;
  result.kind = session_kind_name(session.kind);
}

class Archives {
public:
  Archives(Task task, const PackFlags &options) : task_(task), options_(options) {}

  int run() {
    const bool from_pipe = std::ranges::find(options_.inputs, "-") != options_.inputs.end();
    if (options_.explain && options_.json)
      return report(usage_error("--explain prints a table, and --json a list: one of them"));
    if (!options_.part.empty()) return run_part();
    if (options_.output == "-" || from_pipe) return run_pipe();
    static constexpr std::string_view kNames[] = {"pack", "unpack", "verify"};
    static constexpr std::string_view kPhases[] = {"packing", "unpacking", "verifying"};
    BulkTask task;
    task.name = kNames[static_cast<std::size_t>(task_)];
    task.phase = kPhases[static_cast<std::size_t>(task_)];
    const Level level = level_of(options_.level);
    task.memory_each = std::uint64_t{level == Level::ultra ? 384u : level == Level::max ? 256u : 128u} << 20;
    task.takes = [this](std::string_view name) {
      return has_ending(name, task_ == Task::pack ? ".etl" : ".etlz");
    };
    if (task_ != Task::verify) {
      task.target = [this](const std::string &source) { return target_name(task_, source); };
      task.finished = [this](const Item &item, const RunOptions &run) { return finished(item, run); };
    }
    task.run = [this](const Item &item, Outcome &outcome, Work &result, const RunOptions &run) {
      return process(item, outcome, result, run);
    };
    if (options_.delete_original) {
      // What an earlier run did not come to, and what it did.
      task.skipped = [this](const Item &item, Outcome &outcome, const RunOptions &run) {
        return delete_original(item, outcome, run);
      };
      task.gone = has_archive;
      task.is_result = [](std::string_view name) { return has_ending(name, ".etlz"); };
    }
    if (task_ == Task::pack) task.no_work = is_archive;
    if (task_ == Task::pack)
      task.warnings = [](const Item &item, const Outcome &) {
        warn(item.source,
             is_compressed(item.source)
                 ? "is compressed and kept as it is, for it holds no trace, is small, or what "
                   "compressed it cannot be repeated byte for byte; unpacked first, a trace packs "
                   "far better"
                 : "is no ETL trace: stored with plain zstd");
      };
    const int status = Bulk(std::move(task), options_, options_).run();
    if (options_.explain) print_explain();
    return status;
  }

private:
  PackOptions packing(std::vector<ColumnCost> *costs) {
    PackOptions how;
    how.level = level_of(options_.level);
    how.verify = !options_.no_verify;
    how.explain = costs;
    how.counts = options_.counts;
    how.workspace = &workspace_;
    return how;
  }
  UnpackOptions unpacking() { return {options_.salvage, &workspace_}; }

  // What stands in the place of the result: that very result, or something else, which is an error.
  Result<bool> finished(const Item &item, const RunOptions &run) {
    const bool packing = task_ == Task::pack;
    const std::string &archive = packing ? item.target : item.source;
    const std::string &original = packing ? item.source : item.target;
    const Result<bool> same = is_archive_of(archive, original, run);
    if (!same) return same.error();
    if (*same) return true;
    Error e;
    e.kind = ErrorKind::io;
    e.file = item.target;
    e.what = packing ? "exists, and its record of its original does not fit the file to pack"
                     : "exists, and does not fit the archive's record of its original";
    e.advice = Advice::replace;
    return e;
  }

  static Result<void> check_deletable(const std::string &original) {
    std::error_code failed;
    const fs::file_status there = fs::symlink_status(original, failed);
    if (fs::is_symlink(there))
      return io_error(original, "is a link, and --delete-original would delete that alone");
    // It is read a second time, to be compared: of a pipe nothing would come.
    if (fs::exists(there) && !fs::is_regular_file(there))
      return io_error(original, "is no regular file, as --delete-original asks for");
    return {};
  }

  // Both files are held open from before they are compared: others may give their names away meanwhile.
  Result<void> delete_original(const Item &item, Outcome &outcome, const RunOptions &run) {
    auto because = [](Error e, std::string_view why, std::string_view end = {}) {
      e.what = fmt::format("{}{}{}", why, e.what, end);
      return e;
    };
    constexpr std::string_view kKept = "its original is kept: ";
    std::error_code failed;
    if (Result<void> file = check_deletable(item.source); !file) return file;
    Result<HeldFile> archive = HeldFile::open(item.target, true);
    if (!archive) return because(std::move(archive).error(), kKept);
    Result<HeldFile> original = HeldFile::open(item.source);
    if (!original && options_.skip_existing && outcome.written && !fs::exists(item.source, failed))
      return {}; // another run has compared what this one has packed, and deleted it
    if (!original) return std::move(original).error();
    if (Result<UnpackReport> same = verify_against(archive->input(), original->input(), run); !same)
      return because(std::move(same).error(), kKept);
    outcome.written = true; // whole, whatever becomes of the original
    if (Result<void> synced = archive->sync(); !synced) return because(std::move(synced).error(), kKept);
    if (Result<void> there = archive->check_unchanged(); !there)
      return because(std::move(there).error(), kKept);
    if (Result<void> removed = original->remove(); !removed)
      return because(std::move(removed).error(),
                     "cannot be deleted: ", "; its archive holds what was compared");
    outcome.deleted = true;
    return {};
  }

  // Of an original that is gone: whether what stands in the place of its archive is one, of that size if a
  // list tells it.
  static bool has_archive(const Item &item, Outcome &outcome) {
    std::error_code failed;
    if (!fs::is_regular_file(item.target, failed)) return false;
    const Result<ArchiveInfo> there = read_archive_info(item.target);
    if (!there || (item.size != 0 && item.size != there->original)) return false;
    outcome.before = there->original, outcome.after = there->archived;
    return true;
  }

  // By its first bytes, damaged or not. A name that ends otherwise is not looked at: lists are long.
  static bool is_archive(const std::string &name) {
    std::error_code failed;
    if (!has_ending(name, ".etlz") || !fs::is_regular_file(name, failed)) return false;
    const Result<ArchiveInfo> there = read_archive_info(name);
    return there || there.error().kind == ErrorKind::corrupt;
  }

  Result<void> process(const Item &item, Outcome &outcome, Work &result, const RunOptions &run) {
    const Input source = input_of(item.source);
    const Output named(item.target, options_.force ? Existing::replace : Existing::refuse);
    const Output target = named.like(source); // which may be gone before the archive gets its name
    if (options_.delete_original)
      if (Result<void> file = check_deletable(item.source); !file) return file;
    if (task_ == Task::pack) {
      std::vector<ColumnCost> costs;
      // Of a small file, the archive waits in memory for its turn on the disk.
      constexpr std::uint64_t kSmall = 4u << 20;
      std::error_code failed;
      const bool later = item.size <= kSmall && !options_.delete_original && !fs::exists(item.target, failed);
      const auto bytes = std::make_shared<std::vector<std::uint8_t>>();
      const Result<PackReport> packed = pack(source, later ? Output::memory(*bytes) : target,
                                             packing(options_.explain ? &costs : nullptr), run);
      if (!packed) return packed.error();
      outcome.before = packed->original;
      outcome.after = packed->archived;
      outcome.decoded = packed->decoded;
      outcome.trace = packed->is_trace;
      if (!packed->warnings.empty()) outcome.more().warnings = packed->warnings;
      result.hash = to_string(packed->content);
      note(result, packed->session);
      if (options_.explain) add_explain(costs);
      if (later)
        result.later = [source, target, bytes]() -> Result<void> {
          Result<OutputStream> out = OutputStream::open(target, {&source, 1});
          if (!out) return std::move(out).error();
          if (Result<void> written = out->write(*bytes); !written) return written;
          return out->commit();
        };
      if (!options_.delete_original) return {};
      outcome.written = true;
      return delete_original(item, outcome, run);
    }
    const Result<UnpackReport> unpacked =
        task_ == Task::unpack ? unpack(source, target, unpacking(), run) : verify(source, unpacking(), run);
    if (!unpacked) return unpacked.error();
    outcome.before = unpacked->archived;
    outcome.after = outcome.decoded = unpacked->original;
    if (!unpacked->missing.empty()) outcome.more().missing = unpacked->missing;
    if (unpacked->hash_checked) result.hash = to_string(unpacked->content);
    return {};
  }

  // One file through standard input, standard output or both. Nothing else goes to standard output.
  int run_pipe() {
    if (options_.inputs.size() != 1 || options_.listed() || !options_.out_dir.empty() ||
        options_.skip_existing || options_.delete_original || options_.explain || !options_.results.empty())
      return report(usage_error("- takes one input and -o, and nothing that is about several files"));
    if (options_.json)
      return report(usage_error("--json lists files, and is not for - (standard input and output)"));
    if (task_ != Task::verify && options_.output.empty())
      return report(usage_error(
          "of standard input, give the name of the result: -o FILE, or -o - for standard output"));
    if (process::standard_input_was_closed() && options_.inputs.front() == "-")
      return report(io_error("standard input", "is closed"));
    const bool to_pipe = task_ != Task::verify && options_.output == "-";
    const auto pipe = std::make_shared<StandardOutputSink>();
    const Input source = input_of(options_.inputs.front());
    const Output target =
        to_pipe ? Output::sink("standard output", pipe)
                : Output(options_.output, options_.force ? Existing::replace : Existing::refuse);
    Bar bar(options_.progress);
    const RunOptions run = options_.run(bar);
    std::uint64_t before = 0, after = 0;
    int status = kDone;
    std::optional<Error> error;
    if (task_ == Task::pack) {
      if (Result<PackReport> packed = pack(source, target, packing(nullptr), run); packed) {
        before = packed->original, after = packed->archived;
        status = report_damage(source.name(), packed->warnings, {});
      } else {
        error = std::move(packed).error();
      }
    } else {
      Result<UnpackReport> unpacked =
          task_ == Task::unpack ? unpack(source, target, unpacking(), run) : verify(source, unpacking(), run);
      if (unpacked) {
        before = unpacked->archived, after = unpacked->original;
        status = report_damage(source.name(), {}, unpacked->missing);
      } else {
        error = std::move(unpacked).error();
      }
    }
    if (!error && to_pipe)
      if (Result<void> flushed = pipe->flush(); !flushed) error = std::move(flushed).error();
    if (error && pipe->reader_gone()) return kFailed; // that is no failure to talk about
    if (error) return report(*error);
    if (!options_.quiet)
      print_line(fmt::format("etwrelog: {}: {} bytes, {} bytes {}", printable(source.name()),
                             human_count(before), human_count(after),
                             task_ == Task::verify ? "verified" : "written"));
    return status;
  }

  int run_part() {
    if (options_.inputs.size() != 1 || options_.listed() || !options_.out_dir.empty() ||
        options_.skip_existing || options_.delete_original || options_.explain || options_.output == "-")
      return report(usage_error("--part takes one trace, and -o FILE"));
    if (options_.json)
      return report(usage_error("--json is not for --part: --results FILE.jsonl tells what became of it"));
    const Result<Shard> part = parse_shard(
        options_.part, [](const char *name) { return std::getenv(name); }, "--part");
    if (!part) return report(part.error());
    const std::string &source = options_.inputs.front();
    const std::string target =
        !options_.output.empty()
            ? options_.output
            : fmt::format("{}.{}-of-{}", target_name(Task::pack, source), part->number, part->of);
    std::optional<ResultsFile> results; // opened first: what cannot be told is not worked for
    if (!options_.results.empty()) {
      std::error_code failed;
      if (fs::weakly_canonical(options_.results, failed) == fs::weakly_canonical(target, failed))
        return report(usage_error("the results would go into the part"));
      Result<ResultsFile> opened = ResultsFile::open(options_.results);
      if (!opened) return report(opened.error());
      results.emplace(*std::move(opened));
    }
    Bar bar(options_.progress);
    const auto began = std::chrono::steady_clock::now();
    const Result<PackReport> packed =
        pack_part(input_of(source), {part->number, part->of},
                  Output(target, options_.force ? Existing::replace : Existing::refuse), packing(nullptr),
                  options_.run(bar));
    FileResult result;
    result.task = "pack";
    result.path = fmt::format("{}#{}/{}", source, part->number, part->of);
    result.target = target;
    result.state = packed ? "done" : "failed";
    result.node = node_name();
    result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    result.began =
        std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count() -
        result.seconds;
    if (packed) {
      result.bytes = packed->original, result.result_bytes = packed->archived,
      result.decoded = packed->decoded;
      note(result, packed->session);
    } else {
      result.error = message(packed.error());
    }
    if (results) {
      results->add(result);
      if (results->failed()) return report(io_error(options_.results, "the result could not be written"));
    }
    if (!packed) return report(packed.error());
    const int status = report_damage(source, packed->warnings, {});
    if (!options_.quiet)
      print_text("{}: part {} of {}, {} of the original, {}\n", printable(target), part->number, part->of,
                 human_bytes(packed->original), human_bytes(packed->archived));
    return status;
  }

  void add_explain(const std::vector<ColumnCost> &costs) {
    const std::lock_guard lock(explain_mutex_);
    for (const ColumnCost &cost : costs) {
      ColumnCost &sum = explained_[cost.owner + "\t" + cost.column];
      sum.owner = cost.owner, sum.column = cost.column;
      sum.in += cost.in, sum.out += cost.out;
    }
  }

  void print_explain() const {
    std::vector<ColumnCost> rows;
    std::uint64_t in = 0, out = 0;
    for (const auto &[key, cost] : explained_)
      rows.push_back(cost), in += cost.in, out += cost.out;
    std::sort(rows.begin(), rows.end(), [](const auto &a, const auto &b) { return a.out > b.out; });
    print_text("\n{:>13} {:>13} {:>7}  {}\n", "column bytes", "stored", "share", "event type, column");
    for (const ColumnCost &row : rows) {
      if (row.in == 0) continue;
      print_text("{:>13} {:>13} {:>7}  {}, {}\n", human_count(row.in), human_count(row.out),
                 percent(static_cast<double>(row.out), static_cast<double>(out)), printable(row.owner),
                 row.column);
    }
    print_text("{:>13} {:>13} {:>7}  all columns\n", human_count(in), human_count(out), "");
  }

  Task task_;
  const PackFlags &options_;
  ArchiveWorkspace workspace_;
  std::mutex explain_mutex_;
  std::map<std::string, ColumnCost> explained_;
};

void add_command(CLI::App &app, int &exit_status, Task task, const char *name, const char *description) {
  CLI::App *command = app.add_subcommand(name, description);
  auto options = std::make_shared<PackFlags>();
  command->add_option("input", options->inputs, "Files, or folders with -r; - for standard input");
  options->BulkFlags::add_to(
      *command, task == Task::pack ? ".etl" : ".etlz",
      task == Task::verify ? "Leave out what the results file says is good, and has the size that it had"
      : task == Task::pack
          ? "Leave alone what has its archive already: one whose record of its original, size and "
            "hash, fits"
          : "Leave alone what is there already and fits the archive's record of it, size and hash");
  if (task != Task::verify) {
    command->add_option("-o,--output", options->output,
                        "Name of the result, for one input; - for standard output");
    command->add_option("--out-dir", options->out_dir,
                        "Folder for the results; the place below a folder given is kept");
    command->add_flag("-f,--force", options->force, "Replace existing results");
  }
  options->RunFlags::add_to(*command);
  options->add_json_to(*command, "Results as JSON");
  options->add_quiet_to(*command, "No table; only errors and warnings");
  if (task == Task::pack) {
    add_level(
        *command, options->level,
        "default; max: smaller, takes longer; ultra: the smallest, and slow to unpack as well (fast, of old, "
        "means default)",
        true);
    command->footer(
        "Any file can be packed. Of a gzip or zip file with traces in it these are packed, and what "
        "makes the very\nsame file again: x.etl.gz becomes x.etl.gz.etlz, which all commands read "
        "as the trace, and unpack gives\nx.etl.gz. Where that is not certain, and of other "
        "compressed files, the file is kept as it is.");
    command->add_flag("--no-verify", options->no_verify,
                      "Do not decode every segment again before it is written");
    command->add_flag("--delete-original", options->delete_original,
                      "Delete each original once its archive was read back and compared");
    command->add_flag("--explain", options->explain, "Show what each column of each event type takes");
    command->add_flag(
        "--counts", options->counts,
        "Keep all that info and stats count in the index, of small traces, too: they then decode nothing, as "
        "with --sum anyway. Some kB an archive");
    command
        ->add_option("--part", options->part,
                     "Pack one of N parts of one trace, for \"etwrelog join\"; auto as for --shard")
        ->type_name("I/N")
        ->group("Fleet");
  } else {
    command->add_flag("--salvage", options->salvage, "Of a damaged archive take every whole segment");
  }
  command->callback([options, task, &exit_status] { exit_status = Archives(task, *options).run(); });
}

struct JoinOptions : RunFlags {
  std::vector<std::string> inputs;
  std::string output;
  bool force = false;
};

int run_join(const JoinOptions &options) {
  const bool to_pipe = options.output == "-";
  const auto pipe = std::make_shared<StandardOutputSink>();
  const Output target =
      to_pipe ? Output::sink("standard output", pipe) : output_of(options.output, options.force);
  const std::vector<Input> parts(options.inputs.begin(), options.inputs.end());
  Bar bar(options.progress);
  const Result<PackReport> joined = join_parts(parts, target, options.run(bar));
  const Result<void> flushed = joined && to_pipe ? pipe->flush() : Result<void>();
  if (pipe->reader_gone()) return kFailed; // that is no failure to talk about
  if (!joined) return report(joined.error());
  if (!flushed) return report(flushed.error());
  if (options.quiet) return kDone;
  const std::string done =
      fmt::format("{}: {} parts, {} of {}", to_pipe ? "etwrelog: -" : printable(options.output), parts.size(),
                  human_bytes(joined->archived), human_bytes(joined->original));
  if (to_pipe)
    print_line(done);
  else
    print_text("{}\n", done);
  return kDone;
}

void add_join_command(CLI::App &app, int &exit_status) {
  auto options = std::make_shared<JoinOptions>();
  CLI::App *command = app.add_subcommand("join", "Makes one archive of the parts that pack --part made");
  command->add_option("PART", options->inputs, "All parts, in any order")->required();
  command->add_option("-o,--output", options->output, "The archive; - for standard output")->required();
  command->add_flag("-f,--force", options->force, "Replace the output if it exists");
  options->add_to(*command);
  options->add_quiet_to(*command, "Say nothing of success");
  command->footer(
      "The archive is, byte for byte, what pack makes of the whole trace at the same level. Nothing is "
      "decoded;\nevery segment is compared with its checksum.");
  command->callback([options, &exit_status] { exit_status = run_join(*options); });
}

void add_pack_commands(CLI::App &app, int &exit_status) {
  add_command(app, exit_status, Task::pack, "pack",
              "Packs traces into .etlz archives that give back the very same bytes");
  add_command(app, exit_status, Task::unpack, "unpack", "Gives back the originals of .etlz archives");
  add_command(app, exit_status, Task::verify, "verify", "Checks .etlz archives without writing anything");
  add_join_command(app, exit_status);
}

const Command kPack(50, add_pack_commands);

} // namespace

} // namespace etwrelog::cli
