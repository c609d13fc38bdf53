// What relogging in several passes and in one have in common: taking the kept events of a buffer, and
// counting.
#pragma once

#include "output/relog.hpp"
#include "write/buffers.hpp"

namespace etwrelog::pipeline {

// One batch's part of a report.
struct Counts {
  std::uint64_t events_in = 0, events_out = 0, bytes_in = 0, bytes_out = 0;
  std::array<std::uint64_t, filter::kReasons> by_reason{};
  bool any_fits = false; // stays, and is of the selected time and kinds itself
  schema::TypeCounts types;
  std::map<std::uint32_t, ProcessCount> processes;

  void clear();
  void add_to(RelogReport &report) const;
};

// A buffer on its way through the filter: what stays of it, and what was counted.
struct FilteredBuffer {
  MutableBytes events;
  std::vector<write::Run> &runs; // of kept events, in order
  Counts &counts;
  filter::Position position, owner_position; // of the filter, and of the counts by process
};

// Filters buffers one event after the other. Any thread, each with its own buffers.
class BufferFilter {
public:
  // `by_type_and_process`: count these too, which costs time. Filter and lifetimes must outlive this.
  BufferFilter(const filter::Filter &filter, const filter::Lifetimes &lifetimes, bool by_type_and_process)
      : filter_(filter), lifetimes_(lifetimes), by_type_and_process_(by_type_and_process) {}

  // `index`: of the buffer, in the order in which the lifetimes were collected.
  [[nodiscard]] FilteredBuffer begin(std::uint32_t index, std::uint16_t processor, MutableBytes events,
                                     std::vector<write::Run> &runs, Counts &counts) const;
  // The next event, at an offset of the buffer's events. If it stays it goes to the runs, and the padding
  // behind it, which in the input is whatever the memory held, is zeroed. Returns whether it stays.
  bool take(const EventView &event, std::int64_t time, std::uint32_t at, FilteredBuffer &buffer) const;

  // A whole buffer; returns whether every event stays. Damage goes to the batch.
  bool filter(const Trace &trace, Batch &batch, const DecodedBuffer &buffer, std::vector<write::Run> &runs,
              Counts &counts) const;

private:
  void count(const EventView &event, std::int64_t time, bool kept, FilteredBuffer &buffer) const;

  const filter::Filter &filter_;
  const filter::Lifetimes &lifetimes_;
  bool by_type_and_process_;
};

// The first buffer of the input, filtered: the header event, and the other kept events behind it.
struct FirstBuffer {
  std::vector<std::uint8_t> header_event, more_events;
  std::int64_t last_time = 0;
  std::uint16_t processor = 0, lost_flags = 0;
};
// `header_size`: of the header event, which has been read before: it is there, whole, and always kept.
[[nodiscard]] FirstBuffer split_first_buffer(const format::BufferHeader &header, Bytes events,
                                             std::uint32_t header_size, std::span<const write::Run> runs);

} // namespace etwrelog::pipeline
