// Records in which a trace describes its events: TRACE_EVENT_INFO and EVENT_MAP_INFO, as Windows' merge
// writes them.
#pragma once

#include "schema_values.hpp"

#include "etwrelog/guid.hpp"

namespace etwrelog::gen {

struct Property {
  std::string name;
  std::uint32_t flags = 0; // 1 structure, 2 length by a property, 4 count by a property, 0x20 constant count
  unsigned in = 0, out = 0, count = 1, length = 0;
  std::string map{};
};

inline std::uint32_t put_wide(Raw &out, std::string_view text) {
  const auto at = static_cast<std::uint32_t>(out.size());
  put_units(out, text);
  put(out, std::uint16_t{0});
  return at;
}

inline Raw event_info(const Guid &guid, std::string_view provider_name, std::uint16_t id,
                      const std::string &task, const std::vector<Property> &properties, std::size_t top) {
  Raw info(0x70 + 24 * properties.size());
  store_guid(info.data(), guid);
  store(info.data() + 0x20, id);
  const std::uint32_t provider = put_wide(info, provider_name), name = put_wide(info, task);
  store(info.data() + 0x34, provider);
  store(info.data() + 0x44, name);
  store(info.data() + 0x64, static_cast<std::uint32_t>(properties.size()));
  store(info.data() + 0x68, static_cast<std::uint32_t>(top));
  for (std::size_t i = 0; i < properties.size(); ++i) {
    const Property &p = properties[i];
    const std::uint32_t called = put_wide(info, p.name), map = p.map.empty() ? 0 : put_wide(info, p.map);
    std::uint8_t *const at = info.data() + 0x70 + 24 * i;
    store(at, p.flags), store(at + 4, called);
    store(at + 8, static_cast<std::uint16_t>(p.in)), store(at + 10, static_cast<std::uint16_t>(p.out));
    store(at + 12, map);
    store(at + 16, static_cast<std::uint16_t>(p.count)), store(at + 18, static_cast<std::uint16_t>(p.length));
  }
  return info;
}

// A map of single values, or of bits.
struct NumberMap {
  std::string name;
  bool bits = false;
  std::vector<std::pair<std::uint32_t, std::string>> names{};
};

inline const NumberMap kStates{
    "States", false, {{7, "Done"}, {0, "None"}, {3, "Waiting \"long\""}, {0xFFFF'FFFF, "\u00c4ltere"}}};
inline const NumberMap kFlags{
    "Flags", true, {{1, "Read"}, {2, "Write"}, {8, "Ex\\ecute"}, {0x8000'0000, "Last"}}};

// Behind the provider: what it is called, how many entries; each with its name and number; the texts.
inline Raw map_info(const Guid &provider, const NumberMap &map) {
  Raw info(16 + 8 * map.names.size());
  const std::uint32_t name = put_wide(info, map.name);
  store(info.data(), name);
  store(info.data() + 4, std::uint32_t{map.bits ? 2u : 1u});
  store(info.data() + 8, static_cast<std::uint32_t>(map.names.size()));
  for (std::size_t i = 0; i < map.names.size(); ++i) {
    const std::uint32_t text = put_wide(info, map.names[i].second);
    store(info.data() + 16 + 8 * i, text);
    store(info.data() + 20 + 8 * i, map.names[i].first);
  }
  Raw record(16);
  store_guid(record.data(), provider);
  record.insert(record.end(), info.begin(), info.end());
  return record;
}

// Numbers and what they are called; what has no name, or a bit without one, stays a number.
struct MappedValue {
  std::string field, map;
  std::uint32_t number = 0;
  std::string named{};
};
inline std::vector<MappedValue> mapped_values() {
  return {{"done", "States", 7, "Done"},
          {"none", "States", 0, "None"},
          {"waiting", "States", 3, "Waiting \"long\""},
          {"elder", "States", 0xFFFF'FFFF, "\u00c4ltere"},
          {"unknown", "States", 5},
          {"one", "Flags", 2, "Write"},
          {"some", "Flags", 0x8000'0009, "Read|Ex\\ecute|Last"},
          {"noBit", "Flags", 0},
          {"other", "Flags", 0x11},
          {"noMap", "Missing", 1},
          {"plain", "", 3}};
}

} // namespace etwrelog::gen
