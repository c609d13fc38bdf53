// Counts events and bytes by type.
#pragma once

#include "etwrelog/event_type.hpp"

#include <array>
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
    TypeCount &count = event.has_hook() ? of_hook(event.hook()) : at(type_of(event));
    ++count.events;
    count.bytes += event.size();
  }
  void merge(const TypeCounts &other);
  void clear();
  [[nodiscard]] const std::vector<TypeCount> &rows() const { return rows_; }

private:
  [[nodiscard]] static std::size_t hash(const EventType &type);
  void grow();

  // Most events are the kernel's, of a few kinds.
  TypeCount &of_hook(std::uint16_t hook) {
    Last &last = last_[hook * 0x9E37'79B1u >> 24]; // samples, switches and stacks apart
    if (last.row >= rows_.size() || last.hook != hook) {
      const TypeCount &count = at({Family::hook, 0, hook, {}});
      last = {hook, static_cast<std::uint32_t>(&count - rows_.data())};
    }
    return rows_[last.row];
  }
  struct Last {
    std::uint16_t hook = 0;
    std::uint32_t row = 0xFFFF'FFFF;
  };

  std::vector<TypeCount> rows_;
  std::vector<std::uint32_t> slots_; // index + 1 into rows_; 0 is free
  std::array<Last, 256> last_{};     // by the hook's hash
};

} // namespace etwrelog::schema
