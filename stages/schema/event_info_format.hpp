// TRACE_EVENT_INFO and EVENT_MAP_INFO (tdh.h), as a merge writes them into a trace: the schema of a kind of
// event, and the names of values. Offsets, also those that stand in the records, count from the start of the
// structure; a text there is UTF-16 with a zero behind, and 0 means none.
#pragma once

#include "etwrelog/bytes.hpp"

#include <string>

namespace etwrelog::schema::event_info {

inline constexpr std::size_t kProviderAt = 0, kEventGuidAt = 0x10, kIdAt = 0x20, kVersionAt = 0x22,
                             kChannelAt = 0x23, kLevelAt = 0x24, kOpcodeAt = 0x25, kTaskAt = 0x26,
                             kKeywordAt = 0x28, kSourceAt = 0x30, kProviderNameAt = 0x34, kTaskNameAt = 0x44,
                             kOpcodeNameAt = 0x48, kMessageAt = 0x4C,
                             kCountAt = 0x64, // of properties, those of structures included
    kTopLevelAt = 0x68,                       // how many of them, the first ones, are in no structure
    kPropertiesAt = 0x70;
inline constexpr std::uint32_t kSourceManifest = 0, kSourceClassic = 1;

enum PropertyFlag : std::uint32_t {
  kStruct = 0x01,
  kParamLength = 0x02, // the length is that of another property
  kParamCount = 0x04,
  kFixedLength = 0x10,
  kFixedCount = 0x20,
};

struct Property {
  static constexpr std::size_t kSize = 24;

  std::uint32_t flags = 0, name = 0;
  std::uint16_t in_or_start = 0, out_or_members = 0; // of a structure: its first member, and how many
  std::uint32_t map = 0;
  std::uint16_t count = 1, length = 0; // or the numbers of the properties that hold them

  [[nodiscard]] static Property load_from(const std::uint8_t *at) {
    return {load<std::uint32_t>(at),      load<std::uint32_t>(at + 4),  load<std::uint16_t>(at + 8),
            load<std::uint16_t>(at + 10), load<std::uint32_t>(at + 12), load<std::uint16_t>(at + 16),
            load<std::uint16_t>(at + 18)};
  }
  void store_to(std::uint8_t *at) const {
    store(at, flags);
    store(at + 4, name);
    store(at + 8, in_or_start);
    store(at + 10, out_or_members);
    store(at + 12, map);
    store(at + 16, count);
    store(at + 18, length);
    store(at + 20, std::uint32_t{0});
  }
};

// Behind the GUID of the provider: EVENT_MAP_INFO, then its entries of a text and a number.
inline constexpr std::size_t kMapNameAt = 0, kMapFlagsAt = 4, kMapCountAt = 8, kMapValueTypeAt = 12,
                             kMapHeader = 16, kMapEntry = 8;
inline constexpr std::uint32_t kManifestValues = 1, kManifestBits = 2, kPatternMap = 4, kWbemBits = 16;
inline constexpr std::uint32_t kNumberValues = 0, kTextValues = 1;

// The text at an offset that a record states, without white space around it: manifests put a blank behind
// names. Empty for none, and for one outside.
[[nodiscard]] std::string text_at(Bytes record, std::size_t at);

} // namespace etwrelog::schema::event_info
