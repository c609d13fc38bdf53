// Events and samples by process of a trace that becomes an archive, for its index. Counted by what events
// claim as segments pass (passes/attribution.hpp); whose they are is told when all have passed.
#pragma once

#include "archive/archive.hpp"
#include "etwrelog/statistics.hpp"
#include "passes/attribution.hpp"

#include <optional>

namespace etwrelog::pipeline {

// Of one segment. Buffers are counted from 0.
class SegmentOwners {
public:
  void clear(std::uint32_t buffers);
  void begin_buffer(std::uint16_t processor);
  void count(const EventView &event, std::int64_t time) {
    records_.add(event, time, buffer_);
    const filter::Claim claim = filter::claim_of(event, position_);
    if (claim.anyone()) shares_.of(claim, buffer_).add(event, time);
  }

private:
  friend class TraceOwners;
  filter::LifetimeRecords records_;
  Shares shares_;
  std::vector<std::uint16_t> processors_; // by buffer
  std::uint32_t buffer_ = 0;
  filter::Position position_;
};

// Of all segments, in their order.
class TraceOwners {
public:
  void append(const SegmentOwners &later);
  // Reads again the few buffers of the trace in which an id changes hands. nullopt where too much would have
  // to be kept, or read again.
  [[nodiscard]] Result<std::optional<std::vector<NamedProcesses>>>
  by_name(const read::Input &trace, bool one_stream, const RunOptions &run) const;

private:
  filter::LifetimeRecords records_;
  Attribution shares_{Attribution::kShares};
  std::vector<std::uint16_t> processors_;
  std::size_t text_ = 0; // of names
  bool given_up_ = false;
};

} // namespace etwrelog::pipeline
