// One traversal of a trace: the steps that a fold and a cursor have in common.
//   next: which buffers -> load: decode, refer to what is wanted -> in order of time: take a window, in order
//   -> sort it -> the batch's events are there
// A fold is pushed through them by the runner, a cursor is pulled by a pump.
#pragma once

#include "api/filter.hpp"
#include "api/internals.hpp"
#include "api/pump.hpp"
#include "api/reading.hpp"
#include "api/sources_in_time.hpp"
#include "api/time_order.hpp"
#include "base/progress_meter.hpp"
#include "run/runner.hpp"

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>

namespace etwrelog::pipeline {

// A batch on its way. Its memory is used again for later ones.
struct WalkSlot {
  std::uint64_t ordinal = 0;
  std::uint64_t stored_bytes = 0, decoded_bytes = 0;
  std::uint32_t source = 0;                   // file order: all buffers are of one source
  Batch batch;                                // file order
  std::size_t first_planned = 0, planned = 0; // time order: in the order of loading
  std::vector<std::unique_ptr<Block>> blocks; // time order
  Window window;                              // time order
  std::vector<detail::BufferView> buffers;
  RefList refs;
  OrderScratch scratch;
  std::unique_ptr<EventBatch> events = detail::Traversal::make_batch();
  std::optional<Error> error; // of a cursor's step; the runner knows a fold's
  std::vector<Skipped> skipped;
  std::vector<std::string> warnings;
  std::uint64_t late_events = 0; // up to this batch
  void *part = nullptr;          // what a user made of it
};

class Walk {
public:
  // Fails where the query cannot be answered.
  static Result<std::unique_ptr<Walk>> start(const etwrelog::Trace &trace, const Query &query,
                                             const Reading &reading, const RunOptions &run);

  using Handler = std::function<Result<void>(WalkSlot &)>;

  // To the end: `map` to each batch when its events are there, in parallel, `merge` in order.
  [[nodiscard]] Result<void> run(const Handler &map, const Handler &merge);

  // Or batch by batch, as `next` asks for them. `map`, done to each in parallel, may be empty.
  [[nodiscard]] Result<void> begin(Handler map);
  // Null at the end, and on failure: then `status` has the error. What was found wrong in the batch before is
  // looked at first.
  WalkSlot *next(Result<void> &status);

  // The report, whatever the outcome.
  void report();

private:
  Walk(const OpenedTrace &trace, const Query &query, const Reading &reading, const RunOptions &run);
  Result<void> plan();
  Result<void> plan_time_order();
  void leave_out_by_time();
  [[nodiscard]] std::size_t slots(unsigned threads) const;

  bool next_stored(WalkSlot &slot); // false when there are no more buffers
  // Maybe with nothing to load: then there is but a window to take.
  void next_in_time(WalkSlot &slot);
  [[nodiscard]] bool all_planned() const { return next_buffer_ == load_order_.size(); }
  Result<void> load_stored(WalkSlot &slot);
  Result<void> load_blocks(WalkSlot &slot);
  struct Planned;
  Result<std::unique_ptr<Block>> load_block(const Planned &planned, WalkSlot &slot);
  void add(std::unique_ptr<Block> block, WalkSlot &slot);
  Result<void> fetch_awaited(WalkSlot &slot);
  Result<void> open_window(WalkSlot &slot);
  Result<void> sort_window(WalkSlot &slot);
  // Does a step; an error, or what it throws, is one of this trace.
  Result<void> do_step(Result<void> (Walk::*step)(WalkSlot &), WalkSlot &slot);
  // The batch's events are there: `map`, if there is one, and what it has met.
  Result<void> hand_out(WalkSlot &slot, const Handler &map);
  // Turns damage that a walk over the batch has met into an error or a note.
  Result<void> settle(WalkSlot &slot) const;
  // A batch is done with, in order.
  void account(WalkSlot &slot);

  [[nodiscard]] bool selective() const {
    return kinds_ != nullptr || timed_ || filter_ != nullptr || reading_.processors || reading_.processes ||
           reading_.chooser;
  }
  // Whether a buffer of a source may hold an event that is wanted, as far as that is known without it.
  [[nodiscard]] bool may_hold(const Trace &source, const read::BufferSpan &buffer, bool one_stream) const;
  [[nodiscard]] detail::BufferView view_of(std::uint32_t source, const DecodedBuffer &buffer) const;
  // Appends references to the wanted events of a buffer, `number` of its batch.
  void refer(std::uint32_t source, Batch &batch, const DecodedBuffer &buffer, std::uint32_t number,
             const detail::BufferView &view, RefList &refs) const;
  // The same for a buffer by itself: sorted by time.
  void refer(std::uint32_t source, Block &block) const;
  // What tells of the events of one buffer which are wanted.
  struct Chooser {
    const detail::BufferView &view;
    BufferKeeper keeper;
    std::function<bool(const Event &)> chooses; // may be empty
  };
  [[nodiscard]] Chooser chooser_of(const detail::BufferView &view, const DecodedBuffer &buffer) const;
  // `raw`: the time in the source's own clock. Follows the buffer's context switches: for every event, in
  // order.
  [[nodiscard]] bool wanted(const EventView &event, std::int64_t time, std::int64_t raw, std::uint32_t at,
                            Chooser &chooser) const;
  std::unique_ptr<Block> take_block();
  void give_back(std::vector<std::unique_ptr<Block>> &blocks);

  const OpenedTrace &trace_;
  Order order_;
  RunOptions run_;
  EventSet kind_set_;
  const EventSet *kinds_ = nullptr;
  std::shared_ptr<const Filter::Impl> filter_; // null: all that is there
  bool timed_ = false, with_state_ = false;
  Reading reading_;
  std::int64_t from_ = kFirstTime, to_ = kLastTime;

  // The plan.
  SourcesInTime sources_; // what load() is asked of
  std::uint64_t total_bytes_ = 0;
  std::uint32_t next_source_ = 0;
  std::size_t next_buffer_ = 0;
  std::uint64_t issued_ = 0;
  struct Planned {
    std::uint32_t source, buffer, stream, number; // in the stream
  };
  std::vector<Planned> load_order_;
  std::vector<std::vector<std::uint32_t>> of_stream_; // indices in it
  std::vector<std::uint32_t> added_;                  // of each stream, so far
  std::unique_ptr<TimeOrder> windows_;
  std::uint64_t hold_limit_ = 0;
  std::atomic<std::uint64_t> block_bytes_{0}, peak_bytes_{0};
  std::atomic<std::uint64_t> opened_{0}; // windows
  std::atomic<bool> more_{false};        // is due than the last one took

  std::mutex spare_mutex_;
  std::vector<std::unique_ptr<Block>> spare_;

  RunReport sum_;
  std::chrono::steady_clock::time_point began_;
  base::ProgressMeter progress_;
  WalkSlot *current_ = nullptr;
  std::optional<Pump<WalkSlot>> pump_; // last: it ends first
};

} // namespace etwrelog::pipeline
