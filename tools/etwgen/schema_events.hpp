// Events whose schemas travel with them or beside them, with every type that there is and known values: what
// a decoder says of them can be compared with the truth, value by value. Nothing here uses etwrelog's own
// knowledge of these formats.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace etwrelog::gen {

struct SchemaEvents {
  struct One {
    std::vector<std::uint8_t> bytes; // a whole event
    std::int64_t time = 0;
  };
  std::vector<One> events; // the records of schemas among them
  // JSON: "events", a list in order of time with provider_id, event and fields as export shows them, and
  // "tmf", the text of the message format file for the WPP messages.
  std::string truth;
};

// TraceLogging (each in type with each out type, arrays of both kinds, structures and arrays of them),
// EventInfo and EventMapInfo records, EventSource manifests in chunks, and WPP, of 32 and 64-bit programs.
[[nodiscard]] SchemaEvents make_schema_events(std::uint64_t seed, std::int64_t time);

} // namespace etwrelog::gen
