// The one way in which work is done in parallel and in order:
//
//   next (serial) -> work (parallel) -> merge (serial, in order) -> finish (parallel) -> emit (serial, in
//   order)
//
// What travels is a slot: one of a fixed number of places with the memory of a batch in it, so that memory is
// bounded. A slot travels the whole way, also when its batch failed, so that the order is kept and its memory
// comes back. The result does not depend on the number of threads, nor does the error: of several failures
// the one of the first batch wins, and every batch before it has been done in full.
//
// With one thread nothing is made and nothing is parallel: the steps run one after the other where they are
// called. With several it is a oneTBB flow graph in an arena of its own; runner.cpp is the only file that
// knows.
#pragma once

#include "etwrelog/run.hpp"

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>

namespace etwrelog::pipeline {

// The steps, on a slot by its number. What they throw becomes an error.
struct SlotSteps {
  std::function<Result<bool>(std::size_t)> next; // fills the slot with the next batch; false at the end
  std::function<Result<void>(std::size_t)> work, merge, finish, emit; // the last three may be empty
  std::function<Error(std::size_t, Error)> locate; // adds to an error where in the input it is; may be empty
};

struct RunSettings {
  unsigned threads = 0; // as in RunOptions
  std::stop_token stop{};
};

// How many threads a run uses: no more than the machine has, whatever was asked for.
[[nodiscard]] unsigned threads_of(unsigned asked);
// Whether the system gives that many. Asked once for as many as will be made: oneTBB ends the process when it
// is refused one, and here a refusal is an error like any other.
[[nodiscard]] Result<void> check_threads(unsigned threads);
// How many slots a run can keep busy.
[[nodiscard]] inline std::size_t slots_for(unsigned threads) {
  return std::size_t{threads_of(threads)} * 3 + 1;
}

// `slots`: at least 2; all but one are in flight at a time, as the next batch is read before its turn comes.
[[nodiscard]] Result<void> run_slots(const SlotSteps &steps, std::size_t slots, const RunSettings &settings);

// The same, with types.
template <class Slot> struct Steps {
  std::function<Result<bool>(Slot &)> next;
  std::function<Result<void>(Slot &)> work, merge, finish, emit;
  std::function<Error(const Slot &, Error)> locate;
};

template <class Slot>
[[nodiscard]] Result<void> run_steps(const Steps<Slot> &steps, std::deque<Slot> &slots,
                                     const RunSettings &settings) {
  auto on_slot = [&slots](const auto &step) -> std::function<Result<void>(std::size_t)> {
    if (!step) return {};
    return [&slots, &step](std::size_t i) { return step(slots[i]); };
  };
  SlotSteps untyped;
  untyped.next = [&](std::size_t i) { return steps.next(slots[i]); };
  untyped.work = on_slot(steps.work);
  untyped.merge = on_slot(steps.merge);
  untyped.finish = on_slot(steps.finish);
  untyped.emit = on_slot(steps.emit);
  if (steps.locate)
    untyped.locate = [&](std::size_t i, Error error) { return steps.locate(slots[i], std::move(error)); };
  return run_slots(untyped, slots.size(), settings);
}

// Adds the time that it lives to a sum, in nanoseconds.
class Stopwatch {
public:
  explicit Stopwatch(std::atomic<std::uint64_t> &sum) : sum_(sum), began_(std::chrono::steady_clock::now()) {}
  ~Stopwatch() {
    const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - began_;
    sum_.fetch_add(static_cast<std::uint64_t>(took.count()), std::memory_order_relaxed);
  }
  Stopwatch(const Stopwatch &) = delete;
  Stopwatch &operator=(const Stopwatch &) = delete;

private:
  std::atomic<std::uint64_t> &sum_;
  std::chrono::steady_clock::time_point began_;
};

} // namespace etwrelog::pipeline
