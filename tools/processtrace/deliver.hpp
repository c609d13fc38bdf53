// Events of the sessions of one ProcessTrace call to their callbacks.
#pragma once

#include "record.hpp"
#include "session.hpp"
#include "trace_logging.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace etwrelog::consumer {

class Delivery {
public:
  // The sources of `trace`, which outlives this, belong to the sessions, in the same order. `ending`: one of
  // the handles was closed.
  Delivery(std::span<const std::shared_ptr<Session>> sessions, const Trace &trace, std::stop_token ending);

  // False when the consumer wants no more: a buffer callback said so, or a handle was closed.
  [[nodiscard]] bool deliver(const Event &event);
  // Tells of the buffers that were under way. False when a callback wanted no more.
  [[nodiscard]] bool finish();
  [[nodiscard]] bool cancelled() const { return cancelled_; } // by a buffer callback

private:
  // The buffer that a processor's events are in: its callback comes when the next one begins.
  struct Open {
    std::uint32_t buffer = 0, filled = 0;
    std::int64_t last_time = 0; // in the source's clock
    bool any = false;
  };
  struct Stream {
    Session *session = nullptr;
    const SourceInfo *source = nullptr;
    TraceLoggingDescriber *describer = nullptr;
    std::vector<Open> buffers; // by processor
  };
  [[nodiscard]] bool end_buffer(Stream &stream, Open &open);
  void call(Stream &stream, EVENT_RECORD &record, const EventView &event);

  Clock clock_; // of the trace
  std::vector<Stream> streams_;
  std::stop_token ending_;
  RecordMaker maker_;
  // One for each reader, a callback and its context: it numbers over all of its files.
  std::map<std::pair<std::uintptr_t, void *>, TraceLoggingDescriber> describers_;
  EVENT_RECORD record_{};
  bool cancelled_ = false;
};

} // namespace etwrelog::consumer
