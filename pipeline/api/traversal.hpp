// One traversal of a trace: the steps that a fold and a cursor have in common.
//   next: which buffers -> work: load, decode, refer to what is wanted -> in order: the window -> finish:
//   sort it
#pragma once

#include "api/filter.hpp"
#include "api/internals.hpp"
#include "api/pump.hpp"
#include "api/time_order.hpp"

#include <atomic>
#include <chrono>
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
  std::optional<Error> error;
  std::vector<Skipped> skipped;
  std::vector<std::string> warnings;
  std::uint64_t late_events = 0; // up to this batch
  void *part = nullptr;          // a fold's
};

class Walk {
public:
  // Fails where the query cannot be answered.
  static Result<std::unique_ptr<Walk>> start(const etwrelog::Trace &trace, const Query &query,
                                             const RunOptions &run);

  // With `finish`: done to each batch when its events are there, in parallel.
  [[nodiscard]] Result<void> run_with(std::function<void(WalkSlot &)> finish);
  // The next batch; null at the end, and on failure: then `status` has the error. What was found wrong in the
  // batch before is looked at first.
  WalkSlot *next(Result<void> &status);
  // Turns damage that a walk over the batch has met into an error or a note.
  void settle(WalkSlot &slot) const;
  // The report, whatever the outcome.
  void report();

private:
  Walk(const OpenedTrace &trace, const Query &query, const RunOptions &run);
  Result<void> plan();
  Result<void> plan_time_order();
  void leave_out_by_time();
  // What load() is asked of: the source, or the same without what the time leaves out.
  [[nodiscard]] const Trace &loader(std::uint32_t source) const {
    return narrowed_.empty() || !narrowed_[source] ? *trace_.sources[source] : *narrowed_[source];
  }
  [[nodiscard]] std::size_t slots(unsigned threads) const;

  Further next_stored(WalkSlot &slot);
  Further next_in_time(WalkSlot &slot);
  void load_stored(WalkSlot &slot) const;
  void load_blocks(WalkSlot &slot);
  struct Planned;
  std::unique_ptr<Block> load_block(const Planned &planned, WalkSlot &slot);
  void add(std::unique_ptr<Block> block, WalkSlot &slot);
  void fetch_awaited(WalkSlot &slot);
  void open_window(WalkSlot &slot);
  void guarded(WalkSlot &slot, const std::function<void()> &step) const;

  [[nodiscard]] bool selective() const {
    return kinds_ != nullptr || timed_ || filter_ != nullptr || reading_.process;
  }
  // Whether a buffer of a source may hold an event that is wanted, as far as that is known without it.
  [[nodiscard]] bool may_hold(const Trace &source, const read::BufferSpan &buffer, bool one_stream) const;
  [[nodiscard]] detail::BufferView view_of(std::uint32_t source, const DecodedBuffer &buffer) const;
  // Appends references to the wanted events of a buffer, `number` of its batch.
  void refer(std::uint32_t source, Batch &batch, const DecodedBuffer &buffer, std::uint32_t number,
             const detail::BufferView &view, RefList &refs) const;
  // The same for a buffer by itself: sorted by time.
  void refer(std::uint32_t source, Block &block) const;
  // `raw`: the time in the source's own clock. Follows the buffer's context switches: for every event, in
  // order.
  [[nodiscard]] bool wanted(const EventView &event, std::int64_t time, std::int64_t raw,
                            BufferKeeper &keeper) const;
  [[nodiscard]] BufferKeeper keeper_of(std::uint32_t source, const DecodedBuffer &buffer) const;
  std::unique_ptr<Block> take_block();
  void give_back(std::vector<std::unique_ptr<Block>> &blocks);
  void progress(const WalkSlot &slot);

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
  std::vector<std::optional<Trace>> narrowed_; // by source
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
  std::chrono::steady_clock::time_point began_, told_;
  std::uint64_t done_bytes_ = 0;
  WalkSlot *current_ = nullptr;
  std::optional<Pump<WalkSlot>> pump_; // last: it ends first
};

} // namespace etwrelog::pipeline
