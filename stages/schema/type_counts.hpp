// Counts events and bytes by type.
#pragma once

#include "etwrelog/event_type.hpp"

#include <vector>

namespace etwrelog::schema {

using etwrelog::EventType;
using etwrelog::Family;
using etwrelog::type_of;

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
