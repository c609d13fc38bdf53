// A pass over a trace: batches of some MiB of consecutive buffers, each loaded and worked on in parallel,
// merged in file order, as run/runner.hpp draws it.
#pragma once

#include "base/errors.hpp"
#include "base/pool.hpp"
#include "base/progress_meter.hpp"
#include "run/runner.hpp"
#include "source/trace.hpp"

#include <algorithm>

namespace etwrelog::pipeline {

// `Part`: the result of one batch; reused from batch to batch, so a pass clears what it finds.
template <class Part> struct Pass {
  std::string_view name;
  std::function<void(Part &)> prepare;                // once for each part; may be empty
  std::function<void(Batch &, Part &)> work;          // parallel; the batch is loaded
  std::function<Result<void>(Batch &, Part &)> merge; // serial, in file order; may be empty
  std::function<Result<void>(Part &)> finish;         // parallel; may be empty
  std::function<Result<void>(Part &)> emit;           // serial, in file order; may be empty
  std::function<bool()> enough;                       // serial: nothing more is wanted; may be empty
};

// What batches of one pass were read into, for those of the next: memory that was never touched takes longer
// than reading.
class BatchMemory {
public:
  void take(Batch &batch);
  void leave(Batch &batch);

private:
  base::BytePool raw_, decoded_;
};

struct PassOptions {
  unsigned threads = 0; // 0: all that the machine has
  // Decoded bytes of a batch, at least one buffer. What a core's cache holds between steps.
  std::uint64_t batch_bytes = 1u << 20;
  std::uint64_t in_flight_bytes = 192u << 20; // decoded, over all batches
  std::stop_token stop{};
  std::function<void(const Progress &)> progress{};
  RunReport *report = nullptr;   // gets the times of the pass, also of one that fails
  BatchMemory *memory = nullptr; // of passes that follow each other; may be null

  PassOptions() = default;
  PassOptions(const RunOptions &run)
      : threads(run.threads), in_flight_bytes(std::min<std::uint64_t>(192u << 20, run.memory / 4)),
        stop(run.stop), progress(run.progress), report(run.report) {}
};

struct PassResult {
  std::uint64_t batches = 0;
  std::vector<Skipped> skipped;
  std::vector<std::string> warnings;
};

// Traces of one machine that are read one after the other, as one.
using Traces = std::span<const Trace *const>;

// The number of the first to begin; of several the one that is named first.
[[nodiscard]] std::size_t earliest(Traces traces);

// What the pass over the trace with that number has met goes to what was met before. Of several traces a
// warning begins with the trace's name.
void add_to(PassResult &all, PassResult &&met, Traces traces, std::size_t number);

// The buffer, numbered through over all traces; `first`: the number of its trace's first.
[[nodiscard]] inline DecodedBuffer numbered(const DecodedBuffer &buffer, std::uint32_t first) {
  DecodedBuffer result = buffer;
  result.index += first;
  return result;
}

// Buffers of which an earlier pass has kept the events, or those of them that matter. Any thread.
class KeptBuffers {
public:
  // Null for a buffer that is to be read.
  [[nodiscard]] virtual const DecodedBuffer *find(std::size_t buffer) const = 0;
  // Where the events of a kept one that are not in memory stand in the file.
  [[nodiscard]] virtual Stretches left_in_file(std::size_t /*buffer*/) const { return {}; }

protected:
  ~KeptBuffers() = default;
};

// Those that are left out are kept, with nothing in them; others as `kept` says, if there is one.
class LeftOut final : public KeptBuffers {
public:
  explicit LeftOut(std::function<bool(std::size_t)> out, const KeptBuffers *kept = nullptr)
      : out_(std::move(out)), kept_(kept) {}
  [[nodiscard]] const DecodedBuffer *find(std::size_t buffer) const override {
    if (out_(buffer)) return &nothing_;
    return kept_ != nullptr ? kept_->find(buffer) : nullptr;
  }
  [[nodiscard]] Stretches left_in_file(std::size_t buffer) const override {
    return kept_ == nullptr || out_(buffer) ? Stretches() : kept_->left_in_file(buffer);
  }

private:
  const std::function<bool(std::size_t)> out_;
  const KeptBuffers *const kept_;
  const DecodedBuffer nothing_;
};

// What a pass does that does not depend on its part.
class PassRun {
public:
  PassRun(const Trace &trace, std::string_view name, const PassOptions &options, const KeptBuffers *kept);
  ~PassRun(); // reports the times
  PassRun(const PassRun &) = delete;
  PassRun &operator=(const PassRun &) = delete;

  // Busy, summed over threads, in nanoseconds.
  struct Times {
    std::atomic<std::uint64_t> load{0}, work{0}, merge{0}, finish{0}, emit{0};
  } times;

  [[nodiscard]] std::size_t slots() const;
  [[nodiscard]] bool next(Batch &batch); // serial
  void load(Batch &batch);
  [[nodiscard]] Result<void> loaded(Batch &batch) const; // what load or the work on it found
  void note(Batch &batch);                               // serial: skipped, warnings
  void advance(const Batch &batch);                      // serial: progress
  [[nodiscard]] Error locate(const Batch &batch, Error error) const;
  [[nodiscard]] PassResult result() &&;

private:
  [[nodiscard]] const DecodedBuffer *kept(std::size_t buffer) const {
    return kept_ != nullptr ? kept_->find(buffer) : nullptr;
  }

  const Trace &trace_;
  const PassOptions &options_;
  const KeptBuffers *kept_;
  const std::string_view name_;
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  base::ProgressMeter progress_;
  std::size_t next_buffer_ = 0;
  PassResult result_;
};

// Fails with the error of the first batch that failed; no exception leaves it. What is `kept` is not read
// again: each batch is all kept, or all read.
template <class Part>
[[nodiscard]] Result<PassResult> run_pass(const Trace &trace, const Pass<Part> &pass,
                                          const PassOptions &options, const KeptBuffers *kept = nullptr) {
  struct Slot {
    Batch batch;
    Part part;
  };
  PassRun run(trace, pass.name, options, kept);
  std::deque<Slot> slots(run.slots());
  for (Slot &slot : slots) {
    if (options.memory != nullptr) options.memory->take(slot.batch);
    if (pass.prepare) pass.prepare(slot.part);
  }
  Steps<Slot> steps;
  steps.next = [&](Slot &slot) -> Result<bool> {
    return !(pass.enough && pass.enough()) && run.next(slot.batch);
  };
  steps.work = [&](Slot &slot) -> Result<void> {
    run.load(slot.batch);
    if (!slot.batch.error) {
      const Stopwatch watch(run.times.work);
      pass.work(slot.batch, slot.part);
    }
    return run.loaded(slot.batch);
  };
  steps.merge = [&](Slot &slot) -> Result<void> {
    const Stopwatch watch(run.times.merge);
    run.note(slot.batch);
    return pass.merge ? pass.merge(slot.batch, slot.part) : Result<void>();
  };
  if (pass.finish)
    steps.finish = [&](Slot &slot) {
      const Stopwatch watch(run.times.finish);
      return pass.finish(slot.part);
    };
  steps.emit = [&](Slot &slot) -> Result<void> {
    const Stopwatch watch(run.times.emit);
    Result<void> done = pass.emit ? pass.emit(slot.part) : Result<void>();
    if (done) run.advance(slot.batch);
    return done;
  };
  steps.locate = [&](const Slot &slot, Error error) { return run.locate(slot.batch, std::move(error)); };
  ETWRELOG_TRY(run_steps(steps, slots, {options.threads, options.stop}));
  if (options.memory != nullptr)
    for (Slot &slot : slots)
      options.memory->leave(slot.batch);
  return std::move(run).result();
}

// Calls one(trace, first), which runs a pass, for each of the traces in turn; `first` is the number of the
// trace's first buffer, counted over all. What they meet is added to `met`.
template <class One> [[nodiscard]] Result<void> run_over(Traces traces, PassResult &met, One &&one) {
  std::uint32_t first = 0;
  for (std::size_t i = 0; i < traces.size(); ++i) {
    ETWRELOG_TRY_LET(done, one(*traces[i], first));
    add_to(met, std::move(done), traces, i);
    first += static_cast<std::uint32_t>(traces[i]->buffers().size());
  }
  return {};
}

} // namespace etwrelog::pipeline
