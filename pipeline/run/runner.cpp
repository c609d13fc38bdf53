#include "run/runner.hpp"

#include "base/threads.hpp"
#include "run/guarded.hpp"

#include <algorithm>
#include <latch>
#include <limits>
#include <mutex>
#include <string>

#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/info.h>
#include <oneapi/tbb/task_arena.h>

namespace etwrelog::pipeline {
namespace {

class Runner {
public:
  // One slot: nothing is in flight beside it.
  Runner(const SlotSteps &steps, std::size_t slots, const RunSettings &settings)
      : steps_(steps), slots_(slots), stop_(settings.stop) {}

  Result<void> run_here() {
    while (take(slot_of(issued_))) {
      const std::uint64_t ordinal = issued_ - 1;
      do_work(ordinal);
      do_merge(ordinal);
      do_finish(ordinal);
      do_emit(ordinal);
    }
    return result();
  }

  Result<void> run_graph() {
    namespace flow = oneapi::tbb::flow;
    using Ordinal = std::uint64_t;
    flow::graph graph;
    flow::input_node<Ordinal> next(graph, [this](oneapi::tbb::flow_control &control) -> Ordinal {
      if (!take(slot_of(issued_))) control.stop();
      return issued_ - 1;
    });
    flow::limiter_node<Ordinal> limiter(graph, slots_ - 1);
    // What is further on its way goes first: else the last, serial step may fall behind while all work on new
    // batches, and has to catch up alone at the end.
    constexpr flow::node_priority_t kMerge = 1, kFinish = 2, kEmit = 3;
    auto step = [this](void (Runner::*run)(Ordinal)) {
      return [this, run](Ordinal ordinal) { return (this->*run)(ordinal), ordinal; };
    };
    const auto itself = [](Ordinal ordinal) -> std::size_t { return ordinal; };
    flow::function_node<Ordinal, Ordinal> work(graph, flow::unlimited, step(&Runner::do_work));
    flow::sequencer_node<Ordinal> worked(graph, itself);
    flow::function_node<Ordinal, Ordinal> merge(graph, flow::serial, step(&Runner::do_merge), kMerge);
    flow::function_node<Ordinal, Ordinal> finish(graph, flow::unlimited, step(&Runner::do_finish), kFinish);
    flow::sequencer_node<Ordinal> finished(graph, itself);
    flow::function_node<Ordinal, flow::continue_msg> emit(
        graph, flow::serial, [this](Ordinal ordinal) { do_emit(ordinal); }, kEmit);
    flow::make_edge(next, limiter);
    flow::make_edge(limiter, work);
    flow::make_edge(work, worked);
    flow::make_edge(worked, merge);
    flow::make_edge(merge, finish);
    flow::make_edge(finish, finished);
    flow::make_edge(finished, emit);
    flow::make_edge(emit, limiter.decrementer());
    next.activate();
    graph.wait_for_all();
    return result();
  }

private:
  // Batch n travels in slot n % slots: with one slot more than the limiter lets through, the batch that used
  // it before has come home when it is filled again.
  [[nodiscard]] std::size_t slot_of(std::uint64_t ordinal) const {
    return static_cast<std::size_t>(ordinal % slots_);
  }
  [[nodiscard]] bool in_vain(std::uint64_t ordinal) const {
    return ordinal >= failed_at_.load(std::memory_order_acquire);
  }

  bool take(std::size_t slot) {
    if (in_vain(issued_)) return false;
    Result<bool> more = guarded([&] { return steps_.next(slot); });
    if (!more) {
      fail(issued_, slot, std::move(more).error());
      return false;
    }
    if (*more) ++issued_;
    return *more;
  }

  void do_step(const std::function<Result<void>(std::size_t)> &step, std::uint64_t ordinal) {
    if (!step || in_vain(ordinal)) return;
    const std::size_t slot = slot_of(ordinal);
    if (Result<void> done = guarded([&] { return step(slot); }); !done)
      fail(ordinal, slot, std::move(done).error());
  }
  void do_work(std::uint64_t ordinal) {
    if (!stop_.stop_requested()) do_step(steps_.work, ordinal); // else merge says so
  }
  void do_merge(std::uint64_t ordinal) {
    if (stop_.stop_requested() && !in_vain(ordinal))
      return fail(ordinal, slot_of(ordinal), base::cancelled());
    do_step(steps_.merge, ordinal);
  }
  void do_finish(std::uint64_t ordinal) { do_step(steps_.finish, ordinal); }
  void do_emit(std::uint64_t ordinal) { do_step(steps_.emit, ordinal); }

  // Batches behind a failure are dropped; those before it go on and may fail in their turn.
  void fail(std::uint64_t ordinal, std::size_t slot, Error error) {
    if (steps_.locate) error = steps_.locate(slot, std::move(error));
    const std::lock_guard lock(failing_);
    if (ordinal >= failed_at_.load(std::memory_order_relaxed)) return;
    error_ = std::move(error);
    failed_at_.store(ordinal, std::memory_order_release);
  }

  Result<void> result() {
    if (error_) return *std::move(error_);
    return {};
  }

  const SlotSteps &steps_;
  const std::size_t slots_;
  const std::stop_token stop_;
  std::uint64_t issued_ = 0;
  std::mutex failing_;
  std::optional<Error> error_;
  std::atomic<std::uint64_t> failed_at_{std::numeric_limits<std::uint64_t>::max()};
};

} // namespace

Result<void> check_threads(unsigned threads) {
  static std::atomic<unsigned> most{1};
  if (threads <= most.load(std::memory_order_relaxed)) return {};
  std::latch together(1);
  base::Threads made = base::start_threads(threads - 1, [&together] { together.wait(); });
  together.count_down();
  const std::size_t had = made.running.size();
  made.running.clear();
  if (made.refused)
    return base::io_failure("the system gives no more threads: " + made.refused.message())
        .expected(std::to_string(threads - 1))
        .found(std::to_string(had))
        .advise(Advice::fewer_threads);
  most.store(threads, std::memory_order_relaxed);
  return {};
}

unsigned threads_of(unsigned asked) {
  return asked == 0 ? default_threads() : std::min(asked, default_threads());
}

Result<void> run_slots(const SlotSteps &steps, std::size_t slots, const RunSettings &settings) {
  const unsigned threads = threads_of(settings.threads);
  if (threads == 1) return Runner(steps, 1, settings).run_here();
  ETWRELOG_TRY(check_threads(threads));
  oneapi::tbb::task_arena arena(static_cast<int>(threads));
  Runner runner(steps, slots, settings);
  Result<void> result;
  arena.execute([&] { result = runner.run_graph(); });
  return result;
}

} // namespace etwrelog::pipeline

namespace etwrelog {

unsigned default_threads() {
  return static_cast<unsigned>(oneapi::tbb::info::default_concurrency());
}

} // namespace etwrelog
