#include "run/graph.hpp"

#include "base/platform.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <new>

#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/info.h>
#include <oneapi/tbb/task_arena.h>

namespace etwrelog::pipeline {
namespace {

struct Slot {
  Batch batch;
  std::unique_ptr<Work> work;
  std::uint64_t bytes = 0; // of input
};

class Stopwatch {
public:
  explicit Stopwatch(std::atomic<std::uint64_t> *sum) : sum_(sum), began_(std::chrono::steady_clock::now()) {}
  ~Stopwatch() {
    if (sum_)
      sum_->fetch_add(static_cast<std::uint64_t>(
                          std::chrono::nanoseconds(std::chrono::steady_clock::now() - began_).count()),
                      std::memory_order_relaxed);
  }
  Stopwatch(const Stopwatch &) = delete;
  Stopwatch &operator=(const Stopwatch &) = delete;

private:
  std::atomic<std::uint64_t> *sum_;
  std::chrono::steady_clock::time_point began_;
};

// Runs a step; what it throws becomes an error value, because an exception that leaves a node cancels the
// graph and surfaces without any word of which buffer it was about.
template <class Step> std::optional<Error> guarded(const Trace &trace, const Batch &batch, Step &&step) {
  Error error;
  try {
    return step();
  } catch (const std::bad_alloc &) {
    error.what = "out of memory";
    error.advice = Advice::fewer_threads;
  } catch (const std::exception &thrown) {
    error.what = thrown.what();
  } catch (...) {
    error.what = "an unknown exception";
  }
  error.kind = ErrorKind::io;
  error.file = trace.input().name();
  if (batch.first < trace.buffers().size()) error.offset = trace.buffers()[batch.first].offset;
  return error;
}

std::optional<Error> error_of(Result<void> result) {
  return result ? std::nullopt : std::optional<Error>(std::move(result).error());
}

class Runner {
public:
  Runner(const Trace &trace, const Pass &pass, const GraphOptions &options, StepTimes *times)
      : trace_(trace), pass_(pass), options_(options), times_(times) {}

  Result<PassResult> run(unsigned threads) {
    namespace flow = oneapi::tbb::flow;
    if (options_.progress) options_.progress->begin(pass_.name, trace_.stored_bytes());
    const std::size_t in_flight = plan_slots(threads);

    flow::graph graph;
    flow::input_node<Slot *> batches(graph, [this](oneapi::tbb::flow_control &control) -> Slot * {
      Slot *slot = next_batch();
      if (!slot) control.stop();
      return slot;
    });
    flow::limiter_node<Slot *> limiter(graph, in_flight);
    flow::function_node<Slot *, Slot *> work(graph, flow::unlimited,
                                             [this](Slot *slot) { return do_work(slot); });
    auto ordinal = [](Slot *slot) -> std::size_t { return slot->batch.ordinal; };
    flow::sequencer_node<Slot *> sequence_work(graph, ordinal);
    flow::function_node<Slot *, Slot *> in_order(graph, flow::serial,
                                                 [this](Slot *slot) { return do_in_order(slot); });
    flow::function_node<Slot *, Slot *> finish(graph, flow::unlimited,
                                               [this](Slot *slot) { return do_finish(slot); });
    flow::sequencer_node<Slot *> sequence_finish(graph, ordinal);
    flow::function_node<Slot *, flow::continue_msg> last(graph, flow::serial,
                                                         [this](Slot *slot) { do_last(slot); });
    flow::make_edge(batches, limiter);
    flow::make_edge(limiter, work);
    flow::make_edge(work, sequence_work);
    flow::make_edge(sequence_work, in_order);
    flow::make_edge(in_order, finish);
    flow::make_edge(finish, sequence_finish);
    flow::make_edge(sequence_finish, last);
    flow::make_edge(last, limiter.decrementer());
    batches.activate();
    graph.wait_for_all();

    if (error_) return *std::move(error_);
    result_.batches = issued_;
    return std::move(result_);
  }

private:
  std::size_t plan_slots(unsigned threads) {
    std::uint64_t largest = options_.batch_bytes;
    for (const read::BufferSpan &span : trace_.buffers())
      largest = std::max<std::uint64_t>(largest, span.decoded);
    // Raw and decoded bytes both count where buffers are compressed.
    const std::uint64_t each = trace_.codec() == Codec::none ? largest : 2 * largest;
    const std::size_t wanted = std::size_t{threads} * 3 + 1;
    const std::size_t afforded =
        static_cast<std::size_t>(std::max<std::uint64_t>(2, options_.in_flight_bytes / each));
    const std::size_t count = std::min(wanted, afforded);
    // Slot i carries the batches i, i + slots, ... The last step runs in order, so with `count` batches let
    // through the limiter the one that used the slot before has come home when its turn is due; one slot
    // more, because the input node fills the next batch before the limiter takes it.
    for (std::size_t i = 0; i < count + 1; ++i) {
      slots_.push_back(std::make_unique<Slot>());
      slots_.back()->work = pass_.make_work ? pass_.make_work() : std::make_unique<Work>();
    }
    return count;
  }

  bool stopped() const { return failed_.load(std::memory_order_acquire); }

  Slot *next_batch() {
    if (stopped() || next_buffer_ >= trace_.buffers().size()) return nullptr;
    Slot *slot = slots_[issued_ % slots_.size()].get();
    Batch &batch = slot->batch;
    batch.ordinal = issued_++;
    batch.first = next_buffer_;
    batch.count = 0;
    slot->bytes = 0;
    std::uint64_t decoded = 0;
    while (next_buffer_ < trace_.buffers().size()) {
      const read::BufferSpan &span = trace_.buffers()[next_buffer_];
      const std::uint64_t more = std::max(span.decoded, span.size);
      if (batch.count > 0 && decoded + more > options_.batch_bytes) break;
      decoded += more;
      slot->bytes += span.size;
      ++batch.count;
      ++next_buffer_;
    }
    return slot;
  }

  Slot *do_work(Slot *slot) {
    Batch &batch = slot->batch;
    batch.error.reset();
    batch.events = 0;
    if (stopped()) return slot;
    auto failure = guarded(trace_, batch, [&]() -> std::optional<Error> {
      {
        const Stopwatch watch(times_ ? &times_->load : nullptr);
        trace_.load(batch);
      }
      if (batch.error) return std::nullopt;
      const Stopwatch watch(times_ ? &times_->work : nullptr);
      pass_.work(batch, *slot->work);
      return std::nullopt;
    });
    if (failure && !batch.error) batch.error = std::move(failure);
    return slot;
  }

  Slot *do_in_order(Slot *slot) {
    if (stopped()) return slot;
    Batch &batch = slot->batch;
    if (base::stop_requested() || (options_.cancel && options_.cancel->load(std::memory_order_relaxed))) {
      Error error;
      error.kind = ErrorKind::cancelled;
      error.file = trace_.input().name();
      error.what = "interrupted";
      fail(std::move(error));
      return slot;
    }
    if (batch.error) {
      fail(*std::move(batch.error));
      return slot;
    }
    const Stopwatch watch(times_ ? &times_->in_order : nullptr);
    std::move(batch.skipped.begin(), batch.skipped.end(), std::back_inserter(result_.skipped));
    std::move(batch.warnings.begin(), batch.warnings.end(), std::back_inserter(result_.warnings));
    if (pass_.in_order)
      if (auto failure = guarded(trace_, batch, [&] { return error_of(pass_.in_order(batch, *slot->work)); }))
        fail(*std::move(failure));
    return slot;
  }

  Slot *do_finish(Slot *slot) {
    slot->batch.error.reset();
    if (stopped() || !pass_.finish) return slot;
    const Stopwatch watch(times_ ? &times_->finish : nullptr);
    slot->batch.error = guarded(trace_, slot->batch, [&] { return error_of(pass_.finish(*slot->work)); });
    return slot;
  }

  void do_last(Slot *slot) {
    if (slot->batch.error)
      fail(*std::move(slot->batch.error)); // of a batch before the one that failed, if any
    if (stopped()) return;
    const Stopwatch watch(times_ ? &times_->last : nullptr);
    if (pass_.last)
      if (auto failure = guarded(trace_, slot->batch, [&] { return error_of(pass_.last(*slot->work)); }))
        fail(*std::move(failure));
    if (options_.progress && !stopped()) options_.progress->advance(slot->bytes, slot->batch.events);
  }

  // Called by the two serial steps, which may run at the same time: the first failure in time wins between
  // them, the lowest batch within each.
  void fail(Error error) {
    bool expected = false;
    if (!claimed_.compare_exchange_strong(expected, true)) return;
    error_ = std::move(error);
    failed_.store(true, std::memory_order_release);
  }

  const Trace &trace_;
  const Pass &pass_;
  const GraphOptions &options_;
  StepTimes *times_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::size_t next_buffer_ = 0;
  std::uint64_t issued_ = 0;
  PassResult result_;
  std::optional<Error> error_;
  std::atomic<bool> claimed_{false}, failed_{false};
};

} // namespace

Result<PassResult> run_pass(const Trace &trace, const Pass &pass, const GraphOptions &options,
                            StepTimes *times) {
  const unsigned threads = options.threads == 0 ? default_threads() : options.threads;
  // Without this, oneTBB grants no more threads than there are processors, and says so on stderr.
  std::optional<oneapi::tbb::global_control> more;
  if (threads > default_threads())
    more.emplace(oneapi::tbb::global_control::max_allowed_parallelism, std::size_t{threads});
  oneapi::tbb::task_arena arena(static_cast<int>(threads));
  Runner runner(trace, pass, options, times);
  std::optional<Result<PassResult>> result;
  arena.execute([&] { result.emplace(runner.run(threads)); });
  return *std::move(result);
}

} // namespace etwrelog::pipeline

namespace etwrelog {

unsigned default_threads() {
  return static_cast<unsigned>(oneapi::tbb::info::default_concurrency());
}

} // namespace etwrelog
