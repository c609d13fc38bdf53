// Batches that are pulled. The runner pushes: it runs until all is done. A cursor is the other way round:
// its caller asks for the next batch, works on it for as long as it likes, and may stop at any time.
//
//   next (serial) -> work (parallel) -> in order (serial, in order) -> finish (parallel) -> the caller, in
//   order
//
// A fixed number of slots bounds what is under way. The caller's thread does whatever step is due while it
// waits, so that with one thread nothing else is needed and none is made. Steps are called once for each
// batch, and so is the lock.
#pragma once

#include "base/threads.hpp"

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace etwrelog::pipeline {

// Whether there is a further batch; `later`: that depends on the batches under way.
enum class Further : std::uint8_t { batch, later, none };

// Steps must not throw.
template <class Slot> struct PumpSteps {
  std::function<Further(Slot &)> next;
  std::function<void(Slot &)> work, in_order, finish;
};

template <class Slot> class Pump {
public:
  // `make` gives a slot. Threads: all, the caller's included; fewer where the system gives no more.
  Pump(PumpSteps<Slot> steps, unsigned threads, std::size_t slots,
       const std::function<std::unique_ptr<Slot>()> &make)
      : steps_(std::move(steps)) {
    for (std::size_t i = 0; i < slots; ++i)
      places_.push_back({make(), State::free});
    workers_ = base::start_threads(threads - 1, [this] { help(); }).running;
  }
  ~Pump() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    workers_.clear();
  }
  Pump(const Pump &) = delete;
  Pump &operator=(const Pump &) = delete;

  // The next batch, finished; null behind the last. The one before is free again. One thread at a time.
  Slot *take() {
    std::unique_lock lock(mutex_);
    if (taken_) {
      at(given_++).state = State::free;
      taken_ = false;
      changed_.notify_all();
    }
    for (;;) {
      if (given_ < planned_ && at(given_).state == State::finished) {
        taken_ = true;
        return at(given_).slot.get();
      }
      if (ended_ && given_ == planned_) return nullptr;
      if (!step(lock)) changed_.wait(lock);
    }
  }

private:
  enum class State : std::uint8_t { free, working, worked, ordering, ordered, finishing, finished };
  struct Place {
    std::unique_ptr<Slot> slot;
    State state;
  };

  Place &at(std::uint64_t ordinal) { return places_[ordinal % places_.size()]; }

  void help() {
    std::unique_lock lock(mutex_);
    while (!stopping_)
      if (!step(lock)) changed_.wait(lock);
  }

  // Does one step that is due, the farthest along first; false if there is none. The lock is held before and
  // after.
  bool step(std::unique_lock<std::mutex> &lock) {
    for (std::uint64_t i = given_; i < ordered_; ++i)
      if (at(i).state == State::ordered)
        return run(lock, at(i), State::finishing, steps_.finish, State::finished);
    if (ordered_ < planned_ && at(ordered_).state == State::worked) {
      run(lock, at(ordered_), State::ordering, steps_.in_order, State::ordered, &ordered_);
      return true;
    }
    // Planning is short: it is done under the lock.
    if (ended_ || planned_ - given_ >= places_.size()) return false;
    Place &place = at(planned_);
    switch (steps_.next(*place.slot)) {
    case Further::batch: break;
    case Further::later: return false;
    case Further::none:
      ended_ = true;
      changed_.notify_all();
      return true;
    }
    ++planned_;
    return run(lock, place, State::working, steps_.work, State::worked);
  }

  bool run(std::unique_lock<std::mutex> &lock, Place &place, State during,
           const std::function<void(Slot &)> &step, State after, std::uint64_t *count = nullptr) {
    place.state = during;
    lock.unlock();
    step(*place.slot);
    lock.lock();
    place.state = after;
    if (count != nullptr) ++*count;
    changed_.notify_all();
    return true;
  }

  PumpSteps<Slot> steps_;
  std::vector<Place> places_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // Batches planned, through the serial step, and handed back by the caller. A batch's place is its number
  // modulo places.
  std::uint64_t planned_ = 0, ordered_ = 0, given_ = 0;
  bool taken_ = false, ended_ = false, stopping_ = false;
  std::vector<std::jthread> workers_;
};

} // namespace etwrelog::pipeline
