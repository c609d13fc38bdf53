#include "stages/encode/etlz_model.hpp"

#include <algorithm>

namespace etwrelog::etlz {

bool ModelDecoder::read_table(InStream &table) {
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
    const unsigned words = header == HeaderClass::event ? 5 : header == HeaderClass::classic ? 3 : 1;
    if (id.words != words) return false;
    for (unsigned i = 0; i < words; ++i) {
      const Bytes b = table.get(std::size_t{8});
      if (b.size() != 8) return false;
      id.word[i] = load<std::uint64_t>(b.data());
    }
    const std::uint64_t family = get_varint(table);
    if (family >= families_.size() || types_.size() == types) return false;
    static_cast<void>(add_type(id, header, static_cast<std::uint32_t>(family)));
  }
  return !table.overrun();
}

bool ModelDecoder::decode_events(MutableBytes events, std::size_t coded, std::uint16_t processor) {
  start_buffer(processor);
  std::size_t at = 0;
  std::uint8_t *const base = events.data();
  while (at < coded) {
    std::uint32_t index = 0;
    code_type(index);
    if (failed_) return false;
    Type &type = types_[index];
    Family &family = families_[type.family];
    const HeaderShape &shape = header_shape(type.header_class);
    if (events.size() - at < shape.size) return false;
    Pattern pattern;
    code_pattern_symbol(type, family, pattern);
    if (failed_) return false;
    const bool dirty = pattern.get();
    std::uint8_t *const header = base + at;
    store(header, type.identity.word[0]);
    if (shape.size > 8) std::memset(header + 8, 0, shape.size - 8u);
    for (unsigned i = 1; i < type.identity.words; ++i) store(header + 0x10 + 8 * i, type.identity.word[i]);
    code_header(type, pattern, header);
    code_fields(family, pattern);
    end_event(type, family);
    if (failed_) return false;
    // Lay the fields out.
    const std::vector<PlanField> &fields = family.plan.fields;
    std::size_t out = at + shape.size;
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const PlanField &f = fields[i];
      if (f.is_number()) {
        if (events.size() - out < f.width) return false;
        store_width(base + out, f.width, current_[i]);
        out += f.width;
        continue;
      }
      const Bytes content = content_[i];
      std::size_t front = 0, back = 0;
      if (f.kind == Kind::astr) back = 1;
      else if (f.kind == Kind::wstr) back = 2;
      else if (f.kind == Kind::counted_stack) front = 4;
      else if (f.kind == Kind::map) front = 2;
      if (events.size() - out < front + content.size() + back) return false;
      if (front == 4) store(base + out, static_cast<std::uint32_t>(content.size() / f.width));
      if (front == 2) store(base + out, static_cast<std::uint16_t>(content.size() / 8));
      out += front;
      if (!content.empty()) std::memcpy(base + out, content.data(), content.size());
      out += content.size();
      for (; back > 0; --back) base[out++] = 0;
    }
    const std::size_t size = out - at;
    if (size > format::kMaxEventSize) return false;
    store(header + shape.size_at, static_cast<std::uint16_t>(size));
    const std::size_t next = std::min<std::size_t>(align8(out), events.size());
    if (dirty) {
      const Bytes padding = streams_[kStreamPadding].get(next - out);
      if (padding.size() != next - out) return false;
      if (!padding.empty()) std::memcpy(base + out, padding.data(), padding.size());
    } else if (next > out) {
      std::memset(base + out, 0, next - out);
    }
    at = next;
  }
  end_buffer();
  return at == coded;
}

} // namespace etwrelog::etlz
