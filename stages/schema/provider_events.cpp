// The layouts of the built-in schemas' classes and providers, in the terms of kernel_events.hpp.
#include "etwrelog/provider_events.hpp"

#include "schema/entry.hpp"

#include <algorithm>
#include <deque>

namespace etwrelog::provider {
namespace {

using K = kernel::FieldType;

// Of `count` units of `type`.
kernel::Field units(K type, std::size_t count) {
  kernel::Field out{type, ""};
  out.repeat = static_cast<std::uint16_t>(std::min<std::size_t>(count, 0xFFFF));
  return out;
}

// A single value. `rest` for what has no counterpart: nothing behind it can be told.
kernel::Field single(const etwrelog::Field &field) {
  switch (field.type) {
  case FieldType::u8:
  case FieldType::i8: return {K::u8, ""};
  case FieldType::u16:
  case FieldType::i16: return {K::u16, ""};
  case FieldType::u32:
  case FieldType::i32:
  case FieldType::f32: return {K::u32, ""};
  case FieldType::u64:
  case FieldType::i64:
  case FieldType::f64: return {K::u64, ""};
  case FieldType::boolean: return field.size == 4 ? kernel::Field{K::u32, ""} : units(K::u8, field.size);
  case FieldType::pointer: return {K::pointer, ""};
  case FieldType::raw_time: return {K::time, ""};
  case FieldType::filetime: return {K::filetime, ""};
  case FieldType::systemtime: return units(K::u16, 8);
  case FieldType::guid: return {K::guid, ""};
  case FieldType::token_sid: return {K::sid, ""};
  case FieldType::astr:
  case FieldType::utf8:
    if (field.length == Measure::constant) return units(K::u8, field.size);
    return {field.length == Measure::natural ? K::astr : K::rest, ""};
  case FieldType::wstr:
    if (field.length == Measure::constant) return units(K::u16, field.size);
    return {field.length == Measure::natural ? K::wstr : K::rest, ""};
  case FieldType::binary:
    return field.length == Measure::constant ? units(K::u8, field.size) : kernel::Field{K::rest, ""};
  default: return {K::rest, ""};
  }
}

// Fields whose number stands before them are one: a count and pointers, or a count and two lists of offsets.
std::size_t counted(std::span<const etwrelog::Field> fields, std::size_t i, kernel::Field &out) {
  auto by_this = [&](std::size_t k, FieldType type) {
    return k < fields.size() && fields[k].repeat == Measure::by_field &&
           fields[k].count_field == static_cast<std::int16_t>(i) && fields[k].type == type;
  };
  if (fields[i].type == FieldType::u32 && by_this(i + 1, FieldType::pointer)) {
    out.type = K::counted_pointers;
    return 2;
  }
  if (fields[i].type == FieldType::u16 &&
      (by_this(i + 1, FieldType::u32) || by_this(i + 1, FieldType::i32)) &&
      (by_this(i + 2, FieldType::u32) || by_this(i + 2, FieldType::i32))) {
    out.type = K::offset_map;
    return 3;
  }
  return 0;
}

class Table {
public:
  Table() {
    for (const std::string_view text : schema::builtin_tables())
      for (const schema::BuiltinEntry &entry : schema::read_notation(text))
        add(entry.entry->schema);
    std::ranges::stable_sort(
        rows_, {}, [](const Layout &row) { return std::tuple(row.provider, row.id, row.min_version); });
  }

  [[nodiscard]] std::span<const Layout> rows() const { return rows_; }
  // Of the versions that are known the last up to this one, or the first.
  [[nodiscard]] const Layout *find(const Guid &provider, std::uint16_t id, std::uint16_t version) const {
    const Layout *best = nullptr;
    const auto same = std::ranges::lower_bound(rows_, std::pair(provider, id), {}, [](const Layout &row) {
      return std::pair(row.provider, row.id);
    });
    for (auto row = same; row != rows_.end() && row->provider == provider && row->id == id; ++row)
      if (best == nullptr || row->min_version <= version) best = &*row;
    return best;
  }

private:
  void add(const Schema &schema) {
    std::vector<kernel::Field> &fields = fields_.emplace_back();
    for (std::size_t i = 0; i < schema.fields.size();) {
      const etwrelog::Field &field = schema.fields[i];
      kernel::Field out = single(field);
      std::size_t taken = counted(schema.fields, i, out);
      const etwrelog::Field &last = schema.fields[i + std::max<std::size_t>(taken, 1) - 1];
      if (taken == 0) {
        taken = 1;
        if (field.repeat == Measure::constant && out.repeat == 1)
          out.repeat = field.count;
        else if (field.repeat != Measure::natural)
          out = {field.repeat == Measure::to_end && field.type == FieldType::pointer ? K::pointers : K::rest,
                 ""};
      }
      out.name = names_.emplace_back(last.name).c_str();
      out.role = last.role;
      fields.push_back(out);
      if (out.type == K::rest) break;
      i += taken;
    }
    rows_.push_back({schema.provider, schema.classic ? std::uint16_t{schema.opcode} : schema.id,
                     schema.version, fields, names_.emplace_back(schema.name).c_str()});
  }

  std::deque<std::vector<kernel::Field>> fields_;
  std::deque<std::string> names_;
  std::vector<Layout> rows_;
};

const Table &table() {
  static const Table built;
  return built;
}

} // namespace

std::span<const Layout> all_layouts() {
  return table().rows();
}

const Layout *find_layout(const Guid &provider, std::uint16_t id, std::uint16_t version) {
  return table().find(provider, id, version);
}

const Layout *find_layout(const EventView &event) {
  const bool classic = event.is_classic();
  if (!classic && !event.is_event()) return nullptr;
  const Guid provider = event.provider();
  const bool known = classic ? provider == format::kImageIdGuid
                             : provider == format::kClrGuid || provider == format::kClrRundownGuid;
  if (!known) return nullptr;
  return table().find(provider, classic ? event.opcode() : event.id(), event.version());
}

} // namespace etwrelog::provider
