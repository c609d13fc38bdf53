#include "etwrelog/schema.hpp"
#include "schema/entry.hpp"

namespace etwrelog {

RoleReader::RoleReader(const SchemaCatalog &catalog, Role role) : catalog_(catalog) {
  const auto all = catalog_.all();
  places_.resize(all.size(), Place{{-2, -2}, {0, 0}, -1});
  decoders_.resize(2 * all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::span<const Field> fields = all[i]->fields;
    for (std::size_t f = 0; f < fields.size() && places_[i].field < 0; f += 1u + fields[f].members) {
      if (fields[f].role != role) continue;
      Place &place = places_[i];
      place.field = static_cast<std::int16_t>(f);
      for (unsigned wide = 0; wide < 2; ++wide) {
        const unsigned pointer_size = wide != 0 ? 8 : 4;
        std::int32_t offset = 0;
        for (std::size_t k = 0; k < f && offset >= 0; ++k) {
          const std::size_t size = schema::fixed_size(fields[k].type, fields[k].size, pointer_size);
          offset = size == 0 || fields[k].is_array() ? -1 : offset + static_cast<std::int32_t>(size);
        }
        const std::size_t size = schema::fixed_size(fields[f].type, fields[f].size, pointer_size);
        place.offset[wide] = size == 0 || fields[f].is_array() ? -1 : offset;
        place.size[wide] = static_cast<std::uint8_t>(size);
        if (place.offset[wide] < 0)
          decoders_[2 * i + wide] = std::make_shared<const Decoder>(*all[i], pointer_size);
      }
    }
  }
}

Bytes RoleReader::bytes(const EventView &event) const noexcept {
  const Schema *found = catalog_.find(event);
  if (found == nullptr || found->ordinal >= places_.size()) return {};
  const Place &place = places_[found->ordinal];
  if (place.field < 0) return {};
  const unsigned wide = event.pointer_size() == 8 ? 1 : 0;
  const Bytes payload = event.payload();
  if (place.offset[wide] >= 0) {
    const auto offset = static_cast<std::size_t>(place.offset[wide]);
    return offset + place.size[wide] <= payload.size() ? payload.subspan(offset, place.size[wide]) : Bytes();
  }
  const auto value =
      decoders_[2 * found->ordinal + wide]->field(payload, static_cast<std::size_t>(place.field));
  return value ? value->data : Bytes();
}

std::optional<std::uint64_t> RoleReader::operator()(const EventView &event) const noexcept {
  const Bytes data = bytes(event);
  if (data.size() != 1 && data.size() != 2 && data.size() != 4 && data.size() != 8) return std::nullopt;
  return schema::load_unsigned(data);
}

} // namespace etwrelog
