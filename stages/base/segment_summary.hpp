// What is known of some consecutive buffers without reading them: when they are, how much they hold, whose
// events they hold, and those of their events that a selection by time may keep, or learns from, wherever it
// lies.
#pragma once

#include "etwrelog/bytes.hpp"

#include <vector>

namespace etwrelog {

struct SegmentSummary {
  struct Event {
    std::uint32_t buffer = 0; // where its buffer begins, from the first one's begin
    std::uint32_t at = 0;     // in the decoded events of the buffer
    std::uint32_t size = 0;   // without padding
    std::uint32_t from = 0;   // where its bytes begin in `bytes`
  };
  // By what the events that are not in `state` tell whose they are: all ids that a selection by process asks
  // for when it decides about them.
  struct Owners {
    struct Thread {
      std::uint32_t id = 0;
      std::int64_t from = 0; // raw time: before, no event asks for it
    };
    bool complete = false;                // otherwise nothing else here says anything
    bool carried = false;                 // some events go by who ran when their buffer began
    std::uint64_t of_nobody = 0;          // events that belong to the system as a whole
    std::vector<std::uint32_t> processes; // sorted
    std::vector<Thread> threads;          // sorted by id
  };
  bool complete = false;         // otherwise nothing else here says anything
  std::uint64_t events = 0;      // of all
  std::uint64_t event_bytes = 0; // of all, without padding
  std::int64_t first_time = 0,
               last_time = -1;     // of all, raw; the first is after the last if there are no events
  std::vector<Event> state;        // in file order
  std::vector<std::uint8_t> bytes; // of these, one behind the other
  Owners owners;
};

} // namespace etwrelog
