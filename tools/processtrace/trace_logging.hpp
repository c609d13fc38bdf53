// Records that say what TraceLogging events look like, for readers without TDH: KernelTraceControl's
// EventInfo event, as Windows' merge writes it for manifest events, before the first event of each kind.
#pragma once

#include "etwrelog/bytes.hpp"
#include "etwrelog/consumer.h"
#include "etwrelog/guid.hpp"

#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace etwrelog::consumer {

// TRACE_EVENT_INFO for a TraceLogging event, out of its metadata and its provider's traits (items 0x0B and
// 0x0C). Fields behind one of a type that has no counterpart are left out; empty if the metadata contradict
// themselves.
[[nodiscard]] std::vector<std::uint8_t> make_event_info(const EVENT_HEADER &header, std::uint16_t id,
                                                        Bytes metadata, Bytes traits);

class TraceLoggingDescriber {
public:
  // The record to deliver before this one; null if none is needed. Valid until the next call.
  [[nodiscard]] EVENT_RECORD *before(const EVENT_RECORD &record);

private:
  [[nodiscard]] std::uint16_t next_id(const Guid &provider);

  // What TraceEvent tells kinds apart by: provider, opcode and metadata, one behind the other. It numbers the
  // kinds of a provider downwards in order of appearance.
  std::unordered_set<std::string> met_;
  std::unordered_map<Guid, std::uint16_t> ids_;
  std::string key_;
  std::vector<std::uint8_t> info_;
  EVENT_RECORD record_{};
};

} // namespace etwrelog::consumer
