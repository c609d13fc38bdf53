#include "etwrelog/experimental/jobs.hpp"

#include "base/errors.hpp"
#include "run/runner.hpp"

#include <algorithm>
#include <mutex>

namespace etwrelog::experimental {
namespace {

// What several jobs tell of themselves, as the progress of one.
class CommonProgress {
public:
  CommonProgress(const RunOptions &run, std::string_view phase, std::uint64_t total) : meter_(run.progress) {
    meter_.begin(phase, total);
  }
  // `done`: of `job.bytes`, in all.
  void reach(const Job &job, std::uint64_t &before, double share) {
    const auto now = static_cast<std::uint64_t>(static_cast<double>(job.bytes) * std::clamp(share, 0.0, 1.0));
    if (now <= before) return;
    const std::lock_guard lock(mutex_);
    meter_.advance(now - before);
    before = now;
  }

private:
  std::mutex mutex_;
  pipeline::ProgressMeter meter_;
};

Result<void> run_job(const Job &job, const RunOptions &share, CommonProgress &common) {
  if (share.stop.stop_requested()) return base::cancelled();
  std::uint64_t told = 0;
  RunOptions own = share;
  own.report = nullptr;
  own.progress = [&](const Progress &now) {
    if (now.total != 0)
      common.reach(job, told, static_cast<double>(now.done) / static_cast<double>(now.total));
  };
  Result<void> result;
  try {
    result = job.run(own);
  } catch (const std::bad_alloc &) {
    result = base::io_failure("out of memory").advise(Advice::fewer_threads);
  } catch (const std::exception &thrown) {
    result = base::io_failure(thrown.what());
  }
  common.reach(job, told, 1);
  return result;
}

} // namespace

std::vector<Result<void>> run_jobs(const std::vector<Job> &jobs, const RunOptions &run,
                                   const JobOptions &options) {
  std::vector<Result<void>> results(jobs.size());
  std::vector<std::size_t> small, large;
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    (jobs[i].bytes >= options.large ? large : small).push_back(i);
    total += jobs[i].bytes;
  }
  CommonProgress common(run, options.phase, total);
  const unsigned threads = pipeline::threads_of(run.threads);
  const auto at_once = static_cast<std::size_t>(
      std::clamp<std::uint64_t>(run.memory / std::max<std::uint64_t>(options.memory_each, 1), 1, threads));
  if (small.size() == 1) large.insert(large.begin(), small.front()), small.clear();

  RunOptions share = run;
  share.threads = 1;
  share.memory = run.memory / at_once;
  std::size_t next = 0;
  pipeline::Steps<std::size_t> steps;
  steps.next = [&](std::size_t &job) -> Result<bool> {
    if (next == small.size()) return false;
    job = small[next++];
    return true;
  };
  steps.work = [&](std::size_t &job) -> Result<void> {
    results[job] = run_job(jobs[job], share, common);
    return {};
  };
  std::deque<std::size_t> slots(at_once + 1);
  // Each job looks at the stop token itself: those behind it are to be told apart from those that failed.
  if (Result<void> ran = pipeline::run_steps(steps, slots, {run.threads, {}}); !ran)
    for (const std::size_t job : small)
      if (results[job]) results[job] = ran.error();
  for (const std::size_t job : large)
    results[job] = run_job(jobs[job], run, common);
  return results;
}

} // namespace etwrelog::experimental
