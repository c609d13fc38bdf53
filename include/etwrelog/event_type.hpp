// What two events of the same type share. Values; no state, any thread.
#pragma once

#include "etwrelog/event.hpp"

#include <compare>

namespace etwrelog {

enum class Family : std::uint8_t { hook, event, classic, message, other };

struct EventType {
  Family family = Family::other;
  std::uint16_t version = 0; // 0 for hooks: the same event whatever its payload version
  std::uint32_t id = 0;      // hook, event id, classic opcode, message number, header type
  Guid guid;                 // provider or class; zero for hooks

  auto operator<=>(const EventType &) const = default;
};

[[nodiscard]] inline EventType type_of(const EventView &event) {
  if (event.has_hook()) return {Family::hook, 0, event.hook(), {}};
  if (event.is_event()) return {Family::event, event.version(), event.id(), event.provider()};
  if (event.is_classic()) return {Family::classic, event.version(), event.opcode(), event.provider()};
  if (event.is_message()) return {Family::message, 0, event.id(), event.provider()};
  return {Family::other, 0, static_cast<std::uint32_t>(event.type()), {}};
}

// One word for a type, the same in every trace: "hook:0x0f2e", "event:GUID/id/version",
// "classic:GUID/opcode/version", "wpp:GUID/number".
[[nodiscard]] std::string type_key(const EventType &type);

} // namespace etwrelog
