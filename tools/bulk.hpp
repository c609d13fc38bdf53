// Many files at once, each on its own: what pack, unpack, verify, stats, export and profile share when they
// are given lists and folders. A failed file stops no other.
#pragma once

#include "tools/cli.hpp"
#include "tools/results.hpp"
#include "tools/work_list.hpp"

#include <exception>
#include <map>
#include <mutex>

namespace etwrelog::cli {

struct BulkFlags : ListFlags {
  std::string output, out_dir, results;
  bool skip_existing = false, force = false;

  // Whether each file is worked on by itself, however many there are.
  [[nodiscard]] bool one_by_one() const {
    return listed() || !out_dir.empty() || !results.empty() || skip_existing;
  }
  // --as-one is of traces that are named, and makes one result of them. `sum`: --sum is given.
  [[nodiscard]] Result<void> check_as_one(bool as_one, bool sum = false) const;
  // --results, and what goes with it; `skipping`: what --skip-existing says of itself.
  void add_to(CLI::App &command, const std::string &taken, const std::string &skipping);
};

struct Item {
  std::string source, target; // target: empty where nothing is written
  std::uint64_t size = 0;
  bool listed = false; // in a list or a folder, not named itself
};

// What is kept of each file.
struct Outcome {
  enum class State : std::uint8_t { pending, done, damaged, skipped, failed } state = State::pending;
  bool trace = true, deleted = false, damaged = false;
  bool gone = false;    // skipped: its original was deleted before
  bool no_work = false; // skipped: is none of those files that the task is for
  bool written = false; // although it failed: the result is there, whole; only what was to follow is not done
  float seconds = 0;
  std::uint64_t before = 0, after = 0; // bytes of source and target
  std::uint64_t decoded = 0;
  struct Trouble {
    std::vector<Skipped> missing;
    std::vector<std::string> warnings;
    std::optional<Error> error;
  };
  std::unique_ptr<Trouble> trouble;

  [[nodiscard]] Trouble &more() {
    if (!trouble) trouble = std::make_unique<Trouble>();
    return *trouble;
  }
};

// One file at work.
struct Work : FileResult {
  // What is left to do, and waits for the disk: other files are worked on meanwhile.
  std::function<Result<void>()> later;
};

struct BulkTask {
  std::string_view name;                                  // "pack"
  std::string_view phase;                                 // "packing"
  std::uint64_t memory_each = 128u << 20;                 // for a small file
  std::uint64_t large = 48u << 20;                        // from here on a file has all threads
  std::function<bool(std::string_view)> takes;            // of a folder, by name
  std::function<std::string(const std::string &)> target; // name of the result; empty function: none
  // Does one; fills in the outcome, and of the result what it knows: hash, session, kind.
  std::function<Result<void>(const Item &, Outcome &, Work &, const RunOptions &)> run;
  // Whether the result is there already; the error says why what is there is not it.
  std::function<Result<bool>(const Item &, const RunOptions &)> finished;
  // What is left to do where the result is there already; may be empty.
  std::function<Result<void>(const Item &, Outcome &, const RunOptions &)> skipped;
  // Whether a source that is gone has its result all the same, of a run that deleted it; notes the sizes. May
  // be empty. And whether a file is such a result, by name.
  std::function<bool(const Item &, Outcome &)> gone;
  std::function<bool(std::string_view)> is_result;
  // Whether what a list names is no work for this task, such as a result of it. May be empty.
  std::function<bool(const std::string &)> no_work;
  std::function<void(const Item &, const Outcome &)> warnings; // printed behind all work; may be empty
  bool table = true;
};

// For tasks that make something else of a trace: its name without .etl or .etlz, with another ending.
[[nodiscard]] std::string exported_name(const std::string &source, const std::string &ending);
// That a result is there and newer than its source: results exist whole or not at all.
[[nodiscard]] Result<bool> finished_after_source(const Item &item, const RunOptions &run);
// Size and hash of what was written.
[[nodiscard]] Result<void> note_written(const Item &item, bool damaged, Outcome &outcome, FileResult &result,
                                        const RunOptions &run);

class Bulk {
public:
  Bulk(BulkTask task, const BulkFlags &flags, const RunFlags &run)
      : task_(std::move(task)), flags_(flags), run_(run), bar_(run.progress) {}
  // The exit status. Prints table or JSON, warnings and errors.
  [[nodiscard]] int run();

private:
  [[nodiscard]] Item item(std::size_t i) const;
  [[nodiscard]] Result<void> check_targets() const;
  [[nodiscard]] Result<void> do_file(std::size_t index, const RunOptions &run);
  [[nodiscard]] bool unprinted();
  [[nodiscard]] Result<void> finish_file(std::size_t index, const RunOptions &run);
  Result<void> record(std::size_t index, const Item &item, Work &work, Result<void> done);
  [[nodiscard]] Result<void> or_there_already(const Item &item, Outcome &outcome, const RunOptions &run,
                                              Result<void> done) const;
  [[nodiscard]] bool is_gone(const Item &item, Outcome &outcome) const;
  [[nodiscard]] bool is_listed(std::size_t i) const { return !files_.root(i).empty(); }
  [[nodiscard]] bool is_no_work(const std::string &source, bool listed) const;
  [[nodiscard]] bool only_results_left() const;
  [[nodiscard]] Result<void> skip(const Item &item, Outcome &outcome, const RunOptions &run) const;
  [[nodiscard]] Result<void> process(const Item &item, Outcome &outcome, Work &work, const RunOptions &run);
  [[nodiscard]] Result<void> make_folder(const std::string &of);
  [[nodiscard]] int finish(double seconds);
  void print_table(std::uint64_t before, std::uint64_t after, std::uint64_t decoded, std::size_t done,
                   std::size_t skipped, std::size_t failed, double seconds) const;
  void print_json(double seconds) const;

  BulkTask task_;
  const BulkFlags &flags_;
  const RunFlags &run_;
  Bar bar_;
  WorkList files_;
  std::vector<Outcome> outcomes_;
  std::optional<ResultsFile> results_;
  std::unordered_map<std::string, std::uint64_t> known_; // done, by the results of an earlier run
  std::string node_;
  std::uint64_t memory_ = 0; // of the whole run
  std::mutex waiting_mutex_;
  std::exception_ptr unprinted_;        // of a standard output that takes no more: under this lock, too
  std::map<std::size_t, Work> waiting_; // with something left to do later
  std::mutex folders_mutex_;
  std::vector<std::string> made_; // folders, each behind those that it is in
};

} // namespace etwrelog::cli
