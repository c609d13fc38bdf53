// One event by itself, and what a catalog's schema makes of it.
#pragma once

#include "etwrelog/schema.hpp"
#include "write/event_builder.hpp"

#include <string>
#include <vector>

namespace etwrelog::testing {

struct Built {
  std::vector<std::uint8_t> bytes;
  template <class Build> explicit Built(Build &&build) {
    write::EventBuilder builder(bytes);
    build(builder);
    (void)builder.finish();
  }
  [[nodiscard]] EventView view() const {
    EventView found;
    for_each_event(bytes, [&](const EventView &event, std::int64_t, std::uint32_t) { found = event; });
    return found;
  }
};

// "unknown" where there is no schema; with " truncated" or " tail" where payload and schema do not end
// together.
inline std::string json_of(const SchemaCatalog &catalog, const EventView &event,
                           const JsonOptions &options = {}) {
  const Schema *schema = catalog.find(event);
  if (schema == nullptr) return "unknown";
  std::string out;
  const DecodedSize size = Decoder(*schema, event.pointer_size()).append_json(event.payload(), out, options);
  if (size.truncated) out += " truncated";
  if (!size.truncated && size.covered < event.payload().size()) out += " tail";
  return out;
}

} // namespace etwrelog::testing
