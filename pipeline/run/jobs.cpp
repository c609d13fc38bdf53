#include "etwrelog/experimental/jobs.hpp"

#include "base/errors.hpp"
#include "base/progress_meter.hpp"
#include "base/threads.hpp"
#include "run/guarded.hpp"
#include "run/runner.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>

namespace etwrelog::experimental {
namespace {

// What several jobs tell of themselves, as the progress of one.
class CommonProgress {
public:
  CommonProgress(const RunOptions &run, std::string_view phase, std::uint64_t total) : meter_(run.progress) {
    meter_.begin(phase, total);
  }
  // `share`: done of a job of that many bytes; `before`: what was told of it.
  void reach(std::uint64_t bytes, std::uint64_t &before, double share) {
    const auto now = static_cast<std::uint64_t>(static_cast<double>(bytes) * std::clamp(share, 0.0, 1.0));
    if (now <= before) return;
    const std::lock_guard lock(mutex_);
    meter_.advance(now - before);
    before = now;
  }

private:
  std::mutex mutex_;
  base::ProgressMeter meter_;
};

// `told`: bytes of it of which the progress was told before.
Result<void> run_job(const JobList &jobs, std::size_t number, const RunOptions &share, CommonProgress &common,
                     std::uint64_t told = 0) {
  if (share.stop.stop_requested()) return base::cancelled();
  const std::uint64_t bytes = jobs.bytes(number);
  RunOptions own = share;
  own.report = nullptr;
  own.progress = [&](const Progress &now) {
    if (now.total != 0)
      common.reach(bytes, told, static_cast<double>(now.done) / static_cast<double>(now.total));
  };
  Result<void> result = pipeline::guarded([&] { return jobs.run(number, own); });
  common.reach(bytes, told, 1);
  return result;
}

// Jobs that are done but for waiting.
class Finishers {
public:
  // If there are none, add() does it.
  Finishers(const JobList &jobs, unsigned threads)
      : jobs_(jobs), threads_(base::start_threads(threads, [this] { work(); }).running) {}
  ~Finishers() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    arrived_.notify_all();
    threads_.clear();
  }
  Finishers(const Finishers &) = delete;
  Finishers &operator=(const Finishers &) = delete;

  void add(std::size_t job) {
    if (!jobs_.finish) return;
    if (threads_.empty()) return finish(job);
    std::unique_lock lock(mutex_);
    left_.wait(lock, [this] { return waiting_.size() < 2 * threads_.size(); });
    waiting_.push_back(job);
    lock.unlock();
    arrived_.notify_one();
  }

private:
  void work() {
    for (;;) {
      std::unique_lock lock(mutex_);
      arrived_.wait(lock, [this] { return ended_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      const std::size_t job = waiting_.front();
      waiting_.pop_front();
      lock.unlock();
      left_.notify_one();
      finish(job);
    }
  }
  void finish(std::size_t job) {
    const Result<void> done = pipeline::guarded([&] { return jobs_.finish(job); });
    if (!done) jobs_.failed(job, done.error());
  }

  const JobList &jobs_;
  std::mutex mutex_;
  std::condition_variable arrived_, left_; // a job; one, for others to be added
  std::deque<std::size_t> waiting_;
  bool ended_ = false;
  std::vector<std::jthread> threads_; // the last: they use all the others
};

constexpr unsigned kFinishers = 16;

} // namespace

void run_jobs(const JobList &jobs, const RunOptions &run, const JobOptions &options) {
  std::size_t small = 0, large = 0;
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < jobs.count; ++i) {
    ++(jobs.bytes(i) >= options.large ? large : small);
    total += jobs.bytes(i);
  }
  // One small job alone has the whole machine, too.
  auto is_small = [&, alone = small == 1](std::size_t i) { return !alone && jobs.bytes(i) < options.large; };
  CommonProgress common(run, options.phase, total);
  const unsigned threads = pipeline::threads_of(run.threads);
  const auto at_once = static_cast<std::size_t>(
      std::clamp<std::uint64_t>(run.memory / std::max<std::uint64_t>(options.memory_each, 1), 1, threads));

  RunOptions share = run;
  share.threads = 1;
  share.memory = run.memory / at_once;
  std::size_t next = 0;
  pipeline::Steps<std::size_t> steps;
  steps.next = [&](std::size_t &job) -> Result<bool> {
    while (next < jobs.count && !is_small(next))
      ++next;
    if (next == jobs.count) return false;
    job = next++;
    return true;
  };
  Finishers finishers(jobs, jobs.finish && small > 1 && threads > 1 ? kFinishers : 0);
  // What does not fit into its share is done once more, alone and with all there is: the result must not
  // depend on how many threads there are.
  std::mutex guard;
  std::vector<std::size_t> alone;
  steps.work = [&](std::size_t &job) -> Result<void> {
    if (Result<void> done = run_job(jobs, job, share, common); done) {
      finishers.add(job);
    } else if (is_run_again(done.error(), share.memory, run.memory)) {
      const std::lock_guard lock(guard);
      alone.push_back(job);
    } else {
      jobs.failed(job, done.error());
    }
    return {};
  };
  if (small > 1) {
    std::deque<std::size_t> slots(at_once + 1);
    // Each job looks at the stop token itself: those behind it are to be told apart from those that failed.
    if (Result<void> ran = pipeline::run_steps(steps, slots, {run.threads, {}}); !ran)
      for (; next < jobs.count; ++next) // no thread could be made
        if (is_small(next)) jobs.failed(next, ran.error());
  }
  for (std::size_t i = 0; i < jobs.count; ++i)
    if (!is_small(i)) alone.push_back(i);
  std::ranges::sort(alone);
  for (const std::size_t job : alone) {
    const std::uint64_t told = is_small(job) ? jobs.bytes(job) : 0;
    if (Result<void> done = run_job(jobs, job, run, common, told); !done)
      jobs.failed(job, done.error());
    else
      finishers.add(job);
  }
}

std::vector<Result<void>> run_jobs(const std::vector<Job> &jobs, const RunOptions &run,
                                   const JobOptions &options) {
  std::vector<Result<void>> results(jobs.size());
  JobList list;
  list.count = jobs.size();
  list.bytes = [&](std::size_t i) { return jobs[i].bytes; };
  list.run = [&](std::size_t i, const RunOptions &own) { return jobs[i].run(own); };
  list.failed = [&](std::size_t i, const Error &error) { results[i] = error; };
  run_jobs(list, run, options);
  return results;
}

} // namespace etwrelog::experimental
