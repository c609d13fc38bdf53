// Schemas as Windows' merge writes them into a trace: what event_info.cpp reads.
#pragma once

#include "schema/entry.hpp"

namespace etwrelog::schema {

// What of an event's header belongs to its schema.
struct EventInfoKey {
  Guid provider;
  std::uint16_t id = 0, task = 0;
  std::uint8_t version = 0, channel = 0, level = 0, opcode = 0;
  std::uint64_t keyword = 0;
};

// The payload of an EventInfo record (TRACE_EVENT_INFO); nothing if its types cannot say what the schema
// says, or if it is more than an event can hold. What is given reads back as the same fields.
[[nodiscard]] std::optional<std::vector<std::uint8_t>> write_event_info(const Schema &schema,
                                                                        const EventInfoKey &key);
// The payload of an EventMapInfo record: the provider and EVENT_MAP_INFO.
[[nodiscard]] std::optional<std::vector<std::uint8_t>> write_map_info(const ValueMap &map,
                                                                      const Guid &provider);

} // namespace etwrelog::schema
