// One processor's events of several traces in the order of their times, in the memory of a few buffers: it
// works as long as buffers are given in the order of their first times.
#pragma once

#include "write/etl_output.hpp"

#include <list>
#include <span>

namespace etwrelog::pipeline {

// The kept events of one buffer. An event's time here is never before that of its predecessor on the same
// processor of the same trace: their order is kept, whatever their times say.
struct TimedEvents {
  struct Event {
    std::int64_t time;        // in the order of which it goes out
    std::int64_t own_time;    // its raw time
    std::uint32_t begin, end; // in `bytes`, padding included
  };
  write::Origin origin;
  std::vector<std::uint8_t> bytes;
  std::vector<Event> events;
  std::size_t next = 0; // the first that has not gone out
};

class TimeMerge {
public:
  TimeMerge(std::size_t traces, write::EtlOutput &output) : traces_(traces), output_(output) {}

  // `first`: no event given from now on for this processor is earlier. Of equal times a stack's
  // definition goes first, then the trace with the smaller number.
  [[nodiscard]] Result<void> add(std::size_t trace, std::int64_t first, TimedEvents &&events,
                                 write::Outgoing &out);
  // What is left, by processor.
  [[nodiscard]] Result<void> finish(write::Outgoing &out);

private:
  using Queue = std::list<TimedEvents>; // empty ones take no memory: there may be many processors
  struct Processor {
    std::vector<Queue> queues; // by trace
  };
  Result<void> emit(Processor &processor, std::int64_t before, bool all, write::Outgoing &out);

  std::size_t traces_;
  write::EtlOutput &output_;
  std::vector<Processor> processors_;
};

} // namespace etwrelog::pipeline
