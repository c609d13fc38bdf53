// Counts events and bytes by type.
#pragma once

#include "etwrelog/event.hpp"

#include <vector>

namespace etwrelog::schema {

enum class Family : std::uint8_t { hook, event, classic, message, other };

// What two events of the same type share.
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

struct TypeCount {
  EventType type;
  std::uint64_t events = 0, bytes = 0; // bytes without padding
  std::uint64_t kept_events = 0, kept_bytes = 0;
};

// Few types, many events: one probe of a small table each.
class TypeCounts {
public:
  TypeCount &at(const EventType &type);
  void add(const EventView &event) {
    TypeCount &count = at(type_of(event));
    ++count.events;
    count.bytes += event.size();
  }
  void merge(const TypeCounts &other);
  void clear();
  [[nodiscard]] const std::vector<TypeCount> &rows() const { return rows_; }

private:
  [[nodiscard]] static std::size_t hash(const EventType &type);
  void grow();

  std::vector<TypeCount> rows_;
  std::vector<std::uint32_t> slots_; // index + 1 into rows_; 0 is free
};

} // namespace etwrelog::schema
