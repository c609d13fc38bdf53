#include "tools/bulk.hpp"
#include "tools/errors.hpp"

#include "etwrelog/archive.hpp"
#include "etwrelog/experimental/jobs.hpp"
#include "etwrelog/text.hpp"
#include "tools/process.hpp"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <system_error>
#include <unordered_set>

#include <fmt/format.h>

namespace etwrelog::cli {
namespace {

namespace fs = std::filesystem;
using Seconds = std::chrono::duration<double>;

double now() {
  return Seconds(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string_view state_name(const Outcome &o) {
  switch (o.state) {
  case Outcome::State::done: return o.deleted ? "done, original deleted" : "done";
  case Outcome::State::damaged: return "damaged";
  case Outcome::State::skipped:
    return o.no_work   ? "is a result itself, skipped"
           : o.gone    ? "exists, original deleted before"
           : o.deleted ? "exists, skipped, original deleted"
                       : "exists, skipped";
  case Outcome::State::failed: return o.written ? "written, NOT FINISHED" : "FAILED";
  default: return "not done";
  }
}

// In a results file.
std::string_view plain_state_name(const Outcome &o) {
  switch (o.state) {
  case Outcome::State::done: return "done";
  case Outcome::State::damaged: return "damaged";
  case Outcome::State::skipped: return "skipped";
  default: return "failed";
  }
}

std::string rate(std::uint64_t bytes, double seconds) {
  return seconds > 0 ? fmt::format("{:.0f}", static_cast<double>(bytes) / 1e6 / seconds) : std::string("-");
}
// The rate counts decoded bytes: of a compressed trace those that the model worked on.
std::string ratio(std::uint64_t before, std::uint64_t after) {
  const std::uint64_t small = std::min(before, after), big = std::max(before, after);
  return small > 0 ? fmt::format("{:.2f}", static_cast<double>(big) / static_cast<double>(small))
                   : std::string("-");
}

} // namespace

Result<void> BulkFlags::check_as_one(bool as_one, bool sum) const {
  const std::pair<bool, const char *> each[] = {
      {recursive, "--recursive"},        {!files_from.empty(), "--files-from"}, {!shard.empty(), "--shard"},
      {!out_dir.empty(), "--out-dir"},   {!results.empty(), "--results"},       {sum, "--sum"},
      {skip_existing, "--skip-existing"}};
  for (const auto &[given, name] : each)
    if (as_one && given)
      return usage_error(fmt::format(
          "--as-one is of the traces that are named, and {} takes each file by itself: one of them", name));
  return {};
}

void BulkFlags::add_to(CLI::App &command, const std::string &taken, const std::string &skipping) {
  ListFlags::add_to(command, taken);
  command
      .add_option(
          "--results", results,
          "Add a line of JSON for each file: path, bytes, seconds, hash, error; \"etwrelog fleet report\" "
          "joins them")
      ->group("Fleet");
  command.add_flag("--skip-existing", skip_existing, skipping)->group("Fleet");
}

std::string exported_name(const std::string &source, const std::string &ending) {
  std::string name = source;
  for (const std::string_view known : {".etlz", ".etl"})
    if (has_ending(name, known)) {
      name.resize(name.size() - known.size());
      break;
    }
  return name + "." + ending;
}

Result<bool> finished_after_source(const Item &item, const RunOptions & /*run*/) {
  // A trace that was unpacked or packed anew has the time of its original: it is new all the same.
  const std::optional<FileTimes> source = file_times(item.source), target = file_times(item.target);
  if (source && target && std::max(source->written, source->changed) <= target->written) return true;
  Error e;
  e.kind = ErrorKind::io;
  e.file = item.target;
  e.what = "exists, and is older than its trace";
  e.advice = Advice::replace;
  return e;
}

Result<void> note_written(const Item &item, bool damaged, Outcome &outcome, FileResult &result,
                          const RunOptions &run) {
  const Result<ContentHash> hash = content_hash(item.target, run);
  if (!hash) return hash.error();
  result.hash = to_string(*hash);
  std::error_code failed;
  outcome.after = fs::file_size(item.target, failed);
  outcome.decoded = item.size;
  if (damaged) outcome.damaged = true;
  return {};
}

Item Bulk::item(std::size_t i) const {
  Item item;
  item.source = files_.path(i);
  item.size = files_.bytes(i);
  item.listed = is_listed(i);
  if (!task_.target) return item;
  if (!flags_.output.empty()) {
    item.target = flags_.output;
    return item;
  }
  item.target = task_.target(item.source);
  if (flags_.out_dir.empty()) return item;
  const std::string root = files_.root(i);
  fs::path place = fs::path(item.target).filename();
  if (!root.empty())
    if (const fs::path below = fs::path(item.target).lexically_relative(root);
        !below.empty() && *below.begin() != "..")
      place = below;
  item.target = (fs::path(flags_.out_dir) / place).string();
  return item;
}

// No two results may have one place, and none may be a source, its own or another's.
Result<void> Bulk::check_targets() const {
  if (!task_.target) return {};
  Places places;
  std::unordered_set<std::size_t> sources, targets; // hashes: names are looked at again where one comes twice
  const std::hash<std::string> hash;
  std::vector<bool> no_work(files_.size());
  for (std::size_t i = 0; i < files_.size(); ++i) {
    no_work[i] = is_no_work(files_.path(i), is_listed(i));
    if (!no_work[i]) sources.insert(hash(places.of(files_.path(i))));
  }
  for (std::size_t i = 0; i < files_.size(); ++i) {
    if (no_work[i]) continue;
    const Item one = item(i);
    if (one.target == "-") return usage_error("standard output takes one input, and -o - for it");
    std::error_code ignored;
    if (fs::equivalent(one.source, one.target, ignored))
      return usage_error(fmt::format("\"{}\" would replace itself", one.source));
    const std::string place = places.of(one.target);
    if (!targets.insert(hash(place)).second)
      for (std::size_t j = 0; j < i; ++j)
        if (const Item other = item(j); !no_work[j] && places.of(other.target) == place)
          return usage_error(fmt::format("\"{}\" and \"{}\" would both become \"{}\"", other.source,
                                         one.source, one.target));
    if (sources.contains(hash(place)))
      for (std::size_t j = 0; j < files_.size(); ++j)
        if (!no_work[j] && places.of(files_.path(j)) == place)
          return usage_error(
              fmt::format("the result of \"{}\" would replace \"{}\"", one.source, files_.path(j)));
  }
  return {};
}

int Bulk::run() {
  if (!flags_.output.empty() && (flags_.listed() || flags_.inputs.size() != 1))
    return report(usage_error("-o takes one input; use --out-dir for several"));
  if (!flags_.output.empty() && !flags_.out_dir.empty())
    return report(usage_error("-o and --out-dir both say where the result goes: one of them"));
  if (flags_.results == "-")
    return report(usage_error("--results is a file: one line for each trace, behind those of earlier runs"));
  for (const std::string &input : flags_.inputs)
    if (input == "-" && !flags_.out_dir.empty())
      return report(
          usage_error("standard input has no name for a result in --out-dir; -o FILE gives it one"));
  if (flags_.files_from == "-" && process::standard_input_was_closed())
    return report(io_error("standard input", "is closed, and was to have the list of files"));
  const Result<Shard> share = flags_.share();
  if (!share) return report(share.error());
  Result<WorkList> files = flags_.of_all_shares(task_.takes);
  if (!files) return report(files.error());
  files_ = *std::move(files);
  if (files_.size() == 0 && !only_results_left()) {
    print_line("etwrelog: error: no files");
    return kFailed;
  }
  // Of all shares: two machines must not write one result, of which each would delete an original.
  if (Result<void> sound = check_targets(); !sound) return report(sound.error());
  files_.keep(*share); // of few files, a share may be empty
  if (!flags_.results.empty()) {
    Places places;
    const std::string place = places.of(flags_.results);
    for (std::size_t i = 0; i < files_.size(); ++i)
      if (places.of(files_.path(i)) == place || (task_.target && places.of(item(i).target) == place))
        return report(
            usage_error(fmt::format("the results would go into \"{}\", which is worked on", flags_.results)));
    if (flags_.skip_existing && !task_.finished) known_ = done_of(flags_.results, task_.name);
    Result<ResultsFile> results = ResultsFile::open(flags_.results);
    if (!results) return report(results.error());
    results_.emplace(*std::move(results));
    node_ = node_name();
  } else if (flags_.skip_existing && !task_.finished) {
    return report(usage_error("--skip-existing leaves out what a results file says is done: give --results"));
  }
  outcomes_.resize(files_.size());
  const auto began = std::chrono::steady_clock::now();
  experimental::JobList jobs;
  jobs.count = files_.size();
  jobs.bytes = [this](std::size_t i) { return files_.bytes(i); };
  jobs.run = [this](std::size_t i, const RunOptions &run) { return do_file(i, run); };
  jobs.failed = [this](std::size_t i, const Error &error) {
    if (outcomes_[i].state == Outcome::State::failed) return;
    if (error.kind == ErrorKind::cancelled) return; // never begun
    outcomes_[i].state = Outcome::State::failed;
    outcomes_[i].more().error = error;
  };
  const RunOptions all = run_.run(bar_);
  memory_ = all.memory;
  jobs.finish = [&](std::size_t i) { return finish_file(i, all); };
  experimental::JobOptions bulk;
  bulk.phase = task_.phase;
  bulk.memory_each = task_.memory_each;
  bulk.large = task_.large;
  experimental::run_jobs(jobs, all, bulk);
  if (unprinted_) std::rethrow_exception(unprinted_);
  return finish(Seconds(std::chrono::steady_clock::now() - began).count());
}

bool Bulk::unprinted() {
  const std::lock_guard lock(waiting_mutex_);
  return unprinted_ != nullptr;
}

Result<void> Bulk::do_file(std::size_t index, const RunOptions &run) {
  if (unprinted()) return stopped();
  const Item one = item(index);
  Outcome &outcome = outcomes_[index];
  outcome = {};
  Work work;
  work.began = now();
  outcome.before = one.size;
  Result<void> done;
  try {
    done = process(one, outcome, work, run);
  } catch (const std::bad_alloc &) {
    Error e;
    e.kind = ErrorKind::io, e.what = "out of memory", e.advice = Advice::fewer_threads;
    done = e;
  } catch (const std::system_error &) { // of what is printed: no file is to blame
    if (std::ferror(stdout) == 0) throw;
    const std::lock_guard lock(waiting_mutex_);
    if (!unprinted_) unprinted_ = std::current_exception();
  }
  if (unprinted()) return stopped();
  if (!done && is_gone(one, outcome)) done = {}; // meanwhile
  if (!done && experimental::is_run_again(done.error(), run.memory, memory_)) return done;
  if (!done || !work.later) return record(index, one, work, std::move(done));
  const std::lock_guard lock(waiting_mutex_);
  waiting_.emplace(index, std::move(work));
  return {};
}

Result<void> Bulk::finish_file(std::size_t index, const RunOptions &run) {
  std::unique_lock lock(waiting_mutex_);
  auto waiting = waiting_.extract(index);
  lock.unlock();
  if (waiting.empty()) return {}; // nothing was left to do
  const Item one = item(index);
  Work &work = waiting.mapped();
  Result<void> done = or_there_already(one, outcomes_[index], run, work.later());
  return record(index, one, work, std::move(done));
}

// The last that happens to a file, whatever became of it.
Result<void> Bulk::record(std::size_t index, const Item &one, Work &work, Result<void> done) {
  Outcome &outcome = outcomes_[index];
  work.seconds = now() - work.began;
  outcome.seconds = static_cast<float>(work.seconds);
  if (!done) {
    outcome.state = Outcome::State::failed;
    outcome.more().error = done.error();
  }
  if (!results_ || (!done && done.error().kind == ErrorKind::cancelled)) return done;
  work.task = task_.name;
  work.path = one.source;
  work.target = one.target;
  work.state = plain_state_name(outcome);
  if (!done) work.error = message(done.error());
  work.node = node_;
  work.bytes = outcome.before, work.result_bytes = outcome.after, work.decoded = outcome.decoded;
  if (outcome.state == Outcome::State::skipped) { // what there is tells how large it became
    std::error_code none;
    work.bytes = outcome.gone ? outcome.before : one.size;
    if (outcome.gone) work.note = "its original was deleted before";
    if (outcome.no_work) work.note = "is a result itself", work.target = one.source;
    const std::uintmax_t there = work.target.empty() ? 0 : fs::file_size(work.target, none);
    work.result_bytes = none ? 0 : there;
  }
  results_->add(work);
  return done;
}

// Another run, of a machine that was given up for dead, may have come first: then all is well.
Result<void> Bulk::or_there_already(const Item &one, Outcome &outcome, const RunOptions &run,
                                    Result<void> done) const {
  std::error_code failed;
  if (done || !flags_.skip_existing || flags_.force || !task_.finished || !fs::exists(one.target, failed))
    return done;
  const Result<bool> finished = task_.finished(one, run);
  if (!finished && finished.error().kind == ErrorKind::cancelled)
    return finished.error(); // nobody has looked
  if (!finished || !*finished) return done;
  return skip(one, outcome, run);
}

Result<void> Bulk::skip(const Item &one, Outcome &outcome, const RunOptions &run) const {
  outcome.state = Outcome::State::skipped;
  return task_.skipped ? task_.skipped(one, outcome, run) : Result<void>();
}

// Whether an earlier run, or another one by now, has done it and deleted its source.
bool Bulk::is_gone(const Item &one, Outcome &outcome) const {
  std::error_code failed;
  // A name that somebody typed is another matter: it may be wrong.
  if (!flags_.skip_existing || !task_.gone || !one.listed ||
      fs::symlink_status(one.source, failed).type() != fs::file_type::not_found || !task_.gone(one, outcome))
    return false;
  outcome.state = Outcome::State::skipped;
  outcome.gone = true;
  return true;
}

bool Bulk::is_no_work(const std::string &source, bool listed) const {
  return listed && task_.no_work && task_.no_work(source);
}

// A folder whose sources are all done and deleted is no empty one. Where results are elsewhere, nothing tells
// it from one that is not mounted.
bool Bulk::only_results_left() const {
  if (!flags_.skip_existing || !flags_.recursive || !flags_.out_dir.empty() || !task_.is_result) return false;
  ListFlags there;
  there.recursive = true;
  std::error_code failed;
  for (const std::string &name : flags_.inputs)
    if (fs::is_directory(name, failed)) there.inputs.push_back(name);
  if (there.inputs.empty()) return false;
  const Result<WorkList> results = there.of_all_shares(task_.is_result);
  return results && results->size() != 0;
}

Result<void> Bulk::process(const Item &one, Outcome &outcome, Work &work, const RunOptions &run) {
  if (is_no_work(one.source, one.listed)) {
    outcome.state = Outcome::State::skipped;
    outcome.no_work = true;
    return {};
  }
  if (is_gone(one, outcome)) return {};
  if (flags_.skip_existing) {
    bool there = false;
    if (!task_.finished) {
      const auto known = known_.find(one.source);
      there = known != known_.end() && known->second == one.size;
    } else if (std::error_code failed; fs::exists(one.target, failed)) {
      Result<bool> finished = task_.finished(one, run);
      if (!finished && !flags_.force) return std::move(finished).error();
      there = finished && *finished;
    }
    if (there) return skip(one, outcome, run);
  }
  if (!one.target.empty() && !flags_.out_dir.empty())
    if (Result<void> made = make_folder(one.target); !made) return made;
  Result<void> done = or_there_already(one, outcome, run, task_.run(one, outcome, work, run));
  if (!done || outcome.state == Outcome::State::skipped) return done;
  const bool damaged = outcome.damaged || (outcome.trouble && !outcome.trouble->missing.empty());
  outcome.state = damaged ? Outcome::State::damaged : Outcome::State::done;
  return {};
}

// That of a file, and those above it that are missing.
Result<void> Bulk::make_folder(const std::string &of) {
  const fs::path folder = fs::path(of).parent_path();
  std::error_code failed;
  if (fs::exists(folder, failed)) return {};
  const std::lock_guard lock(folders_mutex_);
  std::vector<fs::path> missing;
  for (fs::path at = folder; !at.empty() && !fs::exists(at, failed); at = at.parent_path())
    missing.push_back(at);
  for (auto at = missing.rbegin(); at != missing.rend(); ++at)
    if (fs::create_directory(*at, failed))
      made_.push_back(at->string());
    else if (failed)
      return io_error(at->string(), "the folder cannot be made: " + failed.message());
  return {};
}

int Bulk::finish(double seconds) {
  std::uint64_t before = 0, after = 0, decoded = 0;
  std::size_t done = 0, failed = 0, incomplete = 0, skipped = 0, damaged = 0, left = 0, no_work = 0;
  for (const Outcome &o : outcomes_) {
    no_work += o.no_work ? 1 : 0;
    switch (o.state) {
    case Outcome::State::done: ++done; break;
    case Outcome::State::damaged: ++damaged; break;
    case Outcome::State::skipped: ++skipped; continue;
    case Outcome::State::failed: ++(o.written ? incomplete : failed); continue;
    case Outcome::State::pending: ++left; continue;
    }
    before += o.before, after += o.after, decoded += o.decoded;
  }
  constexpr std::size_t kMostWarned = 100; // files
  std::size_t warned = 0;
  for (std::size_t i = 0; i < outcomes_.size(); ++i) {
    const Outcome &o = outcomes_[i];
    if (task_.warnings && o.state == Outcome::State::done && !o.trace) task_.warnings(item(i), o);
    if (!o.trouble) continue;
    if (o.trouble->error) {
      Error e = *o.trouble->error;
      if (e.file.empty()) e.file = files_.path(i);
      static_cast<void>(report(e));
    }
    if (!o.trouble->warnings.empty() && ++warned <= kMostWarned)
      for (const std::string &warning : o.trouble->warnings)
        warn(files_.path(i), warning);
    for (const Skipped &m : o.trouble->missing)
      warn(files_.path(i),
           m.bytes == 0 ? m.why
                        : fmt::format("{} bytes of the original from 0x{:x} are missing", m.bytes, m.offset));
  }
  if (warned > kMostWarned)
    print_line(fmt::format(
        "etwrelog: warning: there is something to be said of {} more files; ask for one at a time",
        warned - kMostWarned));
  if (no_work > 0)
    print_line(
        fmt::format("etwrelog: warning: {} of the files listed are results of {} already, and are left alone",
                    no_work, task_.name));
  if (run_.json && task_.table)
    print_json(seconds);
  else if (!run_.quiet && task_.table)
    print_table(before, after, decoded, done + damaged, skipped, failed, seconds);
  for (auto folder = made_.rbegin(); folder != made_.rend(); ++folder) {
    std::error_code in_use; // what was made for results that did not come
    fs::remove(*folder, in_use);
  }
  const bool results_lost = results_ && results_->failed();
  if (results_lost)
    print_line(
        fmt::format("etwrelog: error: {}: not all results could be written", printable(flags_.results)));
  if (left > 0 || (failed > 0 && process::stop_token().stop_requested())) {
    print_line(
        fmt::format("etwrelog: stopped on request; {} of {} files not done", left + failed, files_.size()));
    return kFailed;
  }
  if (failed > 0) return kFailed;
  return incomplete > 0 || results_lost ? kIncomplete : damaged > 0 ? kDamageSkipped : kDone;
}

void Bulk::print_table(std::uint64_t before, std::uint64_t after, std::uint64_t decoded, std::size_t done,
                       std::size_t skipped, std::size_t failed, double seconds) const {
  constexpr std::size_t kMostLines = 200;
  print_text("{:>15} {:>15} {:>7} {:>7}  {}\n", "before", "after", "ratio", "MB/s", "file");
  std::size_t lines = 0;
  for (std::size_t i = 0; i < outcomes_.size() && lines < kMostLines; ++i) {
    const Outcome &o = outcomes_[i];
    const bool plain = o.state == Outcome::State::done;
    ++lines;
    print_text("{:>15} {:>15} {:>7} {:>7}  {}{}\n", human_count(o.before),
               o.after > 0 ? human_count(o.after) : "-", ratio(o.before, o.after), rate(o.decoded, o.seconds),
               printable(files_.path(i)),
               plain && !o.deleted ? std::string() : fmt::format("  ({})", state_name(o)));
  }
  if (lines < outcomes_.size()) print_text("... and {} more\n", outcomes_.size() - lines);
  if (outcomes_.size() == 1) return; // its line says all
  print_text("{:>15} {:>15} {:>7} {:>7}  {} files, {} skipped, {} failed, {}\n", human_count(before),
             human_count(after), ratio(before, after), rate(decoded, seconds), done, skipped, failed,
             human_seconds(seconds));
}

void Bulk::print_json(double seconds) const {
  nlohmann::json list = nlohmann::json::array();
  for (std::size_t i = 0; i < outcomes_.size(); ++i) {
    const Outcome &o = outcomes_[i];
    const Item one = item(i);
    nlohmann::json entry = {{"source", one.source}, {"before", o.before},   {"after", o.after},
                            {"decoded", o.decoded}, {"seconds", o.seconds}, {"state", state_name(o)}};
    if (!one.target.empty()) entry["target"] = one.target;
    if (!o.trace) entry["plain"] = true;
    if (o.trouble) {
      if (o.trouble->error) entry["error"] = message(*o.trouble->error);
      if (!o.trouble->warnings.empty()) entry["warnings"] = o.trouble->warnings;
      for (const Skipped &m : o.trouble->missing)
        entry["missing"].push_back({{"offset", m.offset}, {"bytes", m.bytes}, {"why", m.why}});
    }
    list.push_back(std::move(entry));
  }
  print_text("{}\n", text_of({{"files", list}, {"seconds", seconds}}));
}

} // namespace etwrelog::cli
