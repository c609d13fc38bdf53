#include "schema/type_counts.hpp"

namespace etwrelog::schema {

std::size_t TypeCounts::hash(const EventType &type) {
  std::uint64_t h = type.guid.low ^ (type.guid.high * 0x9E37'79B9'7F4A'7C15ull);
  h ^= (std::uint64_t{type.id} << 20) | (std::uint64_t{type.version} << 4) |
       static_cast<std::uint64_t>(type.family);
  return static_cast<std::size_t>((h * 0xD6E8'FEB8'6659'FD93ull) >> 32);
}

TypeCount &TypeCounts::at(const EventType &type) {
  if (slots_.empty()) grow();
  for (std::size_t i = hash(type);; ++i) {
    std::uint32_t &slot = slots_[i & (slots_.size() - 1)];
    if (slot != 0 && rows_[slot - 1].type == type) return rows_[slot - 1];
    if (slot != 0) continue;
    if ((rows_.size() + 1) * 2 > slots_.size()) {
      grow();
      return at(type);
    }
    rows_.push_back({type});
    slot = static_cast<std::uint32_t>(rows_.size());
    return rows_.back();
  }
}

void TypeCounts::merge(const TypeCounts &other) {
  for (const TypeCount &row : other.rows_) {
    TypeCount &mine = at(row.type);
    mine.events += row.events;
    mine.bytes += row.bytes;
    mine.kept_events += row.kept_events;
    mine.kept_bytes += row.kept_bytes;
  }
}

void TypeCounts::clear() {
  rows_.clear();
  last_.fill({});
  slots_.assign(slots_.size(), 0);
}

void TypeCounts::grow() {
  slots_.assign(slots_.empty() ? 256 : slots_.size() * 2, 0);
  for (std::uint32_t row = 0; row < rows_.size(); ++row) {
    std::size_t i = hash(rows_[row].type);
    while (slots_[i & (slots_.size() - 1)] != 0)
      ++i;
    slots_[i & (slots_.size() - 1)] = row + 1;
  }
}

} // namespace etwrelog::schema
