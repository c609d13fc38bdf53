// The flow graph that all passes over a trace run on:
//   batches (serial) -> work (parallel) -> in order (serial) -> finish (parallel) -> last (serial, in order)
// A batch is some MiB of consecutive buffers and travels the whole way, also when it failed, so that order is
// kept and its memory comes back. The number of batches in flight is fixed; the order of the serial steps is
// the file's, whatever the number of threads.
#pragma once

#include "etwrelog/run.hpp"
#include "source/trace.hpp"

#include <atomic>
#include <functional>

namespace etwrelog::pipeline {

// What a pass keeps for each batch beside the buffers; it is reused from batch to batch.
struct Work {
  virtual ~Work() = default;
};

// Who wants to know how far things are. Called from one thread at a time, in file order.
class Progress {
public:
  virtual ~Progress() = default;
  // A pass begins: its number of input bytes.
  virtual void begin(std::string_view what, std::uint64_t bytes) = 0;
  virtual void advance(std::uint64_t bytes, std::uint64_t events) = 0;
};

// Busy time of each step, summed over threads, in nanoseconds.
struct StepTimes {
  std::atomic<std::uint64_t> load{0}, work{0}, in_order{0}, finish{0}, last{0};
};

struct Pass {
  std::string_view name;
  std::function<std::unique_ptr<Work>()> make_work;      // one for each batch in flight
  std::function<void(Batch &, Work &)> work;             // parallel; the batch is loaded
  std::function<Result<void>(Batch &, Work &)> in_order; // serial, in file order; may be empty
  std::function<Result<void>(Work &)> finish;            // parallel; may be empty
  std::function<Result<void>(Work &)> last;              // serial, in file order; may be empty
};

struct GraphOptions {
  unsigned threads = 0; // 0: all that the machine has
  std::uint64_t batch_bytes =
      1u << 20; // decoded; at least one buffer. What a core's cache holds between steps
  std::uint64_t in_flight_bytes = 192u << 20; // decoded, over all batches
  Progress *progress = nullptr;
  const std::atomic<bool> *cancel = nullptr; // set by another thread to stop early
};

struct PassResult {
  std::uint64_t batches = 0;
  std::vector<read::Skipped> skipped;
  std::vector<std::string> warnings;
};

// Runs one pass over all buffers of the trace. Returns the error of the lowest batch that failed, or of the
// step that failed on it; no exception of a step leaves the graph.
[[nodiscard]] Result<PassResult> run_pass(const Trace &trace, const Pass &pass, const GraphOptions &options,
                                          StepTimes *times = nullptr);

} // namespace etwrelog::pipeline
