// Buffers of a trace that have been read once and are wanted again: their events, or those of them that
// matter, in memory.
#pragma once

#include "passes/pass.hpp"

#include <memory>

namespace etwrelog::pipeline {

class BufferCache {
public:
  explicit BufferCache(std::size_t buffers) : places_(buffers, kNone) {}
  // `memory`: what the buffers' events stand in.
  void add(std::unique_ptr<std::uint8_t[]> memory, std::span<const DecodedBuffer> buffers);
  void forget(std::uint32_t buffer) { places_[buffer] = kNone; }
  // Null for a buffer that is to be read.
  [[nodiscard]] const DecodedBuffer *find(std::size_t buffer) const {
    return places_[buffer] != kNone ? &buffers_[places_[buffer]] : nullptr;
  }
  [[nodiscard]] std::uint64_t missing() const; // how many are to be read

private:
  static constexpr std::uint32_t kNone = 0xFFFF'FFFF;
  std::vector<std::uint32_t> places_; // in buffers_, by buffer
  std::vector<DecodedBuffer> buffers_;
  std::vector<std::unique_ptr<std::uint8_t[]>> memory_;
};

// Buffers for the batches of a pass, in order: each batch all out of the cache, or all read.
class CachedBatches {
public:
  // Without a cache, all are read.
  CachedBatches(const Trace &trace, const BufferCache *cache, std::uint64_t batch_bytes)
      : trace_(trace), cache_(cache), batch_bytes_(batch_bytes) {}
  [[nodiscard]] bool next(Batch &batch); // serial
  void load(Batch &batch) const;         // parallel

private:
  [[nodiscard]] const DecodedBuffer *find(std::size_t buffer) const {
    return cache_ ? cache_->find(buffer) : nullptr;
  }
  const Trace &trace_;
  const BufferCache *cache_;
  std::uint64_t batch_bytes_;
  std::size_t next_buffer_ = 0;
};

// As run_pass(), but what the cache has is not read.
template <class Part>
[[nodiscard]] Result<PassResult> run_cached_pass(const Trace &trace, const BufferCache *cache,
                                                 const Pass<Part> &pass, const PassOptions &options,
                                                 StepTimes *times) {
  struct Slot {
    Batch batch;
    Part part;
  };
  PassRun run(trace, pass.name, options, times);
  CachedBatches batches(trace, cache, options.batch_bytes);
  std::deque<Slot> slots(run.slots());
  if (pass.prepare)
    for (Slot &slot : slots)
      pass.prepare(slot.part);
  Steps<Slot> steps;
  steps.next = [&](Slot &slot) -> Result<bool> {
    return !(pass.enough && pass.enough()) && batches.next(slot.batch);
  };
  steps.work = [&](Slot &slot) -> Result<void> {
    {
      const Stopwatch watch(times != nullptr ? &times->load : nullptr);
      batches.load(slot.batch);
    }
    if (!slot.batch.error) {
      const Stopwatch watch(times != nullptr ? &times->work : nullptr);
      pass.work(slot.batch, slot.part);
    }
    return run.loaded(slot.batch);
  };
  steps.merge = [&](Slot &slot) -> Result<void> {
    const Stopwatch watch(times != nullptr ? &times->merge : nullptr);
    run.note(slot.batch);
    return pass.merge ? pass.merge(slot.batch, slot.part) : Result<void>();
  };
  if (pass.finish)
    steps.finish = [&](Slot &slot) {
      const Stopwatch watch(times != nullptr ? &times->finish : nullptr);
      return pass.finish(slot.part);
    };
  steps.emit = [&](Slot &slot) -> Result<void> {
    const Stopwatch watch(times != nullptr ? &times->emit : nullptr);
    Result<void> done = pass.emit ? pass.emit(slot.part) : Result<void>();
    if (done) run.advance(slot.batch);
    return done;
  };
  steps.locate = [&](const Slot &slot, Error error) { return run.locate(slot.batch, std::move(error)); };
  Result<void> done = run_steps(steps, slots, {options.threads, options.stop});
  if (!done) return std::move(done).error();
  return std::move(run).result();
}

} // namespace etwrelog::pipeline
