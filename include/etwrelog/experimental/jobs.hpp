// Many pieces of work, such as archives to pack, on one machine's threads and memory. Experimental: may
// change in any release.
#pragma once

#include "etwrelog/run.hpp"

namespace etwrelog::experimental {

struct Job {
  std::function<Result<void>(const RunOptions &)> run; // with its share of threads and memory
  std::uint64_t bytes = 0;                             // how large it is: what progress counts
};

struct JobOptions {
  std::string_view phase = "working";     // what progress says
  std::uint64_t large = 48u << 20;        // from here on a job keeps all threads busy alone
  std::uint64_t memory_each = 128u << 20; // what a small job needs
};

// Small jobs side by side, each on one thread; then the large ones, each on all, and with them once more the
// small ones whose share of the memory did not do (Advice::raise_memory). Results in the order of the jobs: a
// failed job stops no other, and one that a stop request came before is cancelled. What a job throws is its
// error.
[[nodiscard]] std::vector<Result<void>> run_jobs(const std::vector<Job> &jobs, const RunOptions &run,
                                                 const JobOptions &options = {});

// Whether a job that failed so with `share` of `all` the memory is run once more.
[[nodiscard]] inline bool is_run_again(const Error &error, std::uint64_t share, std::uint64_t all) {
  return error.advice == Advice::raise_memory && share < all;
}

// The same for any number of jobs, of which nothing is kept. The functions are called by any thread.
struct JobList {
  std::size_t count = 0;
  std::function<std::uint64_t(std::size_t)> bytes;
  std::function<Result<void>(std::size_t, const RunOptions &)> run;
  std::function<void(std::size_t, const Error &)> failed; // also where the job was cancelled
  // What of a job that went well waits for the disk rather than computes, if there is such a thing: done by a
  // few threads more, so that many files wait at once. Only with more than one thread; else run() is followed
  // by it.
  std::function<Result<void>(std::size_t)> finish;
};
void run_jobs(const JobList &jobs, const RunOptions &run, const JobOptions &options = {});

} // namespace etwrelog::experimental
