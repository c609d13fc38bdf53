// Decoding, for each way. Included by the files that instantiate it.
#pragma once

#include "etlz/model/code.hpp"

namespace etwrelog::etlz {

template <Way kWay> bool DecoderFor<kWay>::read_table(InStream &table) {
  const std::uint64_t families = get_varint(table), types = get_varint(table);
  if (families > kMaxTypes + 8 || types > kMaxTypes + 8) return false;
  while (families_.size() < families || types_.size() < types) {
    if (table.overrun()) return false;
    if (table.get() == 1) {
      Plan plan;
      if (families_.size() == families || !read_plan(table, plan)) return false;
      static_cast<void>(add_family(std::move(plan)));
      continue;
    }
    Identity id;
    const std::uint8_t c = table.get();
    id.words = table.get();
    if (c > static_cast<std::uint8_t>(HeaderClass::event)) return false;
    const auto header = static_cast<HeaderClass>(c);
    if (id.words != identity_words(header)) return false;
    for (unsigned i = 0; i < id.words; ++i) {
      const Bytes b = table.get(std::size_t{8});
      if (b.size() != 8) return false;
      id.word[i] = load<std::uint64_t>(b.data());
    }
    const std::uint64_t family = get_varint(table);
    const std::uint64_t period = get_varint(table);
    if (family >= families_.size() || types_.size() == types || period > kMaxPeriod) return false;
    static_cast<void>(add_type(id, header, static_cast<std::uint32_t>(family), period));
  }
  return !table.overrun();
}

template <Way kWay>
bool DecoderFor<kWay>::decode_events(MutableBytes events, std::size_t coded, std::uint16_t processor,
                                     Bytes before) {
  start_buffer(processor);
  std::size_t at = 0;
  std::uint8_t *const base = events.data();
  const std::size_t room = events.size();
  while (at < coded) {
    std::uint32_t index = 0;
    code_type(index);
    if (failed_) return false;
    Type &type = types_[index];
    Family &family = families_[type.family];
    const HeaderShape &shape = header_shape(type.header_class);
    if (room - at < shape.size) return false;
    Pattern pattern;
    code_pattern_symbol(type, family, pattern);
    if (failed_) return false;
    std::uint8_t *const header = base + at;
    store(header, type.identity.word[0]);
    if (shape.size > 8) {
      // What is cleared behind the header is written later: by fields, padding, the next event or the caller.
      if (room - at >= 0x50)
        std::memset(header + 8, 0, 0x48);
      else
        std::memset(header + 8, 0, shape.size - 8u);
      for (unsigned i = 1; i < type.identity.words; ++i)
        store(header + 0x10 + 8 * i, type.identity.word[i]);
    }
    code_header(type, pattern, header);
    start_record(family);
    const std::uint64_t *const values = current_;
    code_fields(family, pattern);
    end_event(type, family);
    if (failed_ || overrun()) return false;
    // Lay the fields out.
    std::size_t out = at + shape.size;
    const FieldPlace *const places = family.places.data();
    const std::size_t fields = family.places.size();
    unsigned i = 0;
    // Eight bytes whatever the width, where there is room: what follows overwrites the rest.
    if (room - out >= family.after_numbers + 8) {
      for (; i < family.numbers; ++i)
        store(base + out + places[i].at, values[i]);
      out += family.after_numbers;
    }
    for (; i < fields; ++i) {
      const FieldPlace &place = places[i];
      if (place.kind == Kind::number) {
        if (room - out >= 8) {
          store(base + out, values[i]);
        } else {
          if (room - out < place.width) return false;
          store_width(base + out, place.width, values[i]);
        }
        out += place.width;
        continue;
      }
      const Bytes content = object(place.object, values[i]);
      if (place.kind == Kind::fixed && content.size() != place.width) return false;
      const std::size_t front = place.kind == Kind::counted_stack ? 4 : place.kind == Kind::map ? 2 : 0;
      const std::size_t back = place.kind == Kind::astr ? 1 : place.kind == Kind::wstr ? 2 : 0;
      if (room - out < front + content.size() + back) return false;
      if (front == 4) store(base + out, static_cast<std::uint32_t>(content.size() / place.width));
      if (front == 2) store(base + out, static_cast<std::uint16_t>(content.size() / 8));
      out += front;
      if (!content.empty()) std::memcpy(base + out, content.data(), content.size());
      out += content.size();
      for (std::size_t n = back; n > 0; --n)
        base[out++] = 0;
    }
    const std::size_t size = out - at;
    if (size > format::kMaxEventSize) return false;
    store(header + shape.size_at, static_cast<std::uint16_t>(size));
    const std::size_t next = std::min<std::size_t>(align8(out), room);
    base::read_ahead(before, at, next);
    if (pattern.get(kBitPadding)) {
      hint_ = {};
      for (std::size_t n = out; n < next; ++n)
        base[n] = static_cast<std::uint8_t>(code_byte(kStreamPadding, 0));
    } else {
      const bool known = next <= before.size();
      for (std::size_t n = out; n < next; ++n)
        base[n] = known ? before[n] : 0;
    }
    at = next;
  }
  end_buffer();
  return at == coded;
}

} // namespace etwrelog::etlz
