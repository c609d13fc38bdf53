// Makes the summary of a stretch of trace that is about to be archived.
#pragma once

#include "archive/owners.hpp"
#include "base/segment_summary.hpp"
#include "etlz/segment.hpp"
#include "etwrelog/event.hpp"
#include "filter/rules.hpp"

#include <optional>

namespace etwrelog::pipeline {

// The events of a buffer as it is stored: `decoded` if they are there already, else, of a compressed one,
// decoded into `room`. nullopt if they cannot be had.
[[nodiscard]] std::optional<Bytes> events_of(Bytes buffer, Bytes decoded, std::vector<std::uint8_t> &room);

// Owns scratch memory: one a thread.
class Summarizer {
public:
  // The summary of a segment; `coder`: that has just encoded it, or null. It is not complete when its events
  // come to more than `budget` bytes, or a buffer holds damage: then there is no way around reading it.
  // `owners`: to tell with whose its events are; null if that is told elsewhere.
  [[nodiscard]] SegmentSummary summarize(Bytes segment, std::span<const etlz::Part> parts,
                                         const etlz::SegmentCoder *coder, std::size_t budget,
                                         SegmentOwners *owners);

private:
  // Times of events seen, each in the slot of its hash: events that stacks belong to.
  struct SeenTime {
    std::int64_t time = INT64_MIN;
    bool state = false; // matters whatever the time, and its stack with it
  };
  [[nodiscard]] SeenTime &seen(std::int64_t time);
  void remember(std::int64_t time, bool state);
  // `decoded`: the events of a compressed buffer, if they are there already.
  [[nodiscard]] bool walk(Bytes buffer, Bytes decoded, std::uint32_t begin);
  void visit(const EventView &event, std::int64_t time, const SegmentSummary::Event &where);
  [[nodiscard]] bool keeps(const EventView &event, std::int64_t time, const filter::HookRule &rule);
  void keep(Bytes event, SegmentSummary::Event where);

  struct LastSwitch { // of a processor, as far as the walk has got
    std::uint16_t processor = 0;
    SegmentSummary::Event where;
    std::vector<std::uint8_t> bytes;
  };

  SegmentSummary summary_;
  std::vector<SeenTime> seen_;
  std::vector<LastSwitch> switches_;
  EventView last_switch_; // of the buffer that is walked
  SegmentSummary::Event last_switch_where_;
  bool stack_ = false, unowned_ = false, batch_ = false; // one of the kind is there
  SegmentOwners *owners_ = nullptr;                      // while summarizing
  std::vector<std::uint8_t> decoded_;
};

} // namespace etwrelog::pipeline
