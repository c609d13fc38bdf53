// What relogging in several passes and in one have in common: taking the kept events of a buffer, counting,
// and the header of the output.
#pragma once

#include "output/relog.hpp"
#include "write/buffers.hpp"

namespace etwrelog::pipeline {

// One batch's part of a report.
struct Counts {
  std::uint64_t events_in = 0, events_out = 0, bytes_in = 0, bytes_out = 0;
  std::array<std::uint64_t, filter::kReasons> by_reason{};
  schema::TypeCounts types;
  std::map<std::uint32_t, ProcessCount> processes;

  void clear();
  void add_to(RelogReport &report) const;
};

// The part of a relog that one event at a time goes through.
class EventSieve {
public:
  // `by_type_and_process`: count these too, which costs time. Filter and lifetimes must outlive the sieve.
  EventSieve(const filter::Filter &filter, const filter::Lifetimes &lifetimes, bool by_type_and_process)
      : filter_(filter), lifetimes_(lifetimes), by_type_and_process_(by_type_and_process) {}

  // Takes one event of a buffer, in order: appends to `runs` if it is kept and zeroes the padding behind it,
  // which in the input is whatever the memory held. Returns whether it is kept.
  bool take(const EventView &event, std::int64_t time, std::uint32_t at, MutableBytes events,
            filter::Position &position, filter::Position &owner_position, std::vector<write::Run> &runs,
            Counts &counts) const;

  // A whole buffer; returns whether every event is kept. Damage goes to the batch.
  bool sift(const Trace &trace, Batch &batch, const DecodedBuffer &buffer, std::vector<write::Run> &runs,
            Counts &counts) const;

private:
  void count(const EventView &event, std::int64_t time, filter::Position &position, bool kept,
             Counts &counts) const;

  const filter::Filter &filter_;
  const filter::Lifetimes &lifetimes_;
  bool by_type_and_process_;
};

inline constexpr std::uint32_t kSmallestDefaultBufferSize = 64u << 10;
[[nodiscard]] Result<void> check_nominal_size(std::uint32_t nominal_size);

// What a relogger writes into the header event; the rest of it is copied.
[[nodiscard]] LogfileHeader output_header(LogfileHeader header, std::uint32_t nominal_size, bool compressed);

// The first buffer of the input, sifted: the header event, and the other kept events behind it.
struct FirstBuffer {
  std::vector<std::uint8_t> header_event, more_events;
  std::int64_t last_time = 0;
};
// `header_size`: of the header event, which has been read before: it is there, whole, and always kept.
[[nodiscard]] FirstBuffer split_first_buffer(Bytes events, std::uint32_t header_size,
                                             std::span<const write::Run> runs);

} // namespace etwrelog::pipeline
