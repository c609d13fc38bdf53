// The layouts that filter, statistics, profiles, archives and generator read, made of the built-in schemas
// once for the whole process: those of every class and provider (provider_events.hpp), and those of the
// kernel's hooks (kernel_events.hpp).
#include "etwrelog/provider_events.hpp"

#include "schema/entry.hpp"

#include <algorithm>
#include <array>
#include <deque>

namespace etwrelog {
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
    if (field.format == Format::ip_address) return {K::guid, ""}; // an IPv6 address: 16 bytes as one
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

std::vector<kernel::Field> fields_of(const Schema &schema) {
  std::vector<kernel::Field> fields;
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
    out.name = last.name.data(); // the notation's texts end in a zero
    out.role = last.role;
    fields.push_back(out);
    if (out.type == K::rest) break;
    i += taken;
  }
  return fields;
}

class Providers {
public:
  Providers() {
    for (const schema::BuiltinEntry &row : schema::builtin_entries()) {
      const Schema &schema = row.entry->schema;
      const std::vector<kernel::Field> &fields = fields_.emplace_back(fields_of(schema));
      rows_.push_back({schema.provider, schema.classic ? std::uint16_t{schema.opcode} : schema.id,
                       schema.version, fields, schema.name.data()});
    }
    std::ranges::stable_sort(rows_, {}, [](const provider::Layout &row) {
      return std::tuple(row.provider, row.id, row.min_version);
    });
  }

  [[nodiscard]] std::span<const provider::Layout> rows() const { return rows_; }
  [[nodiscard]] std::span<const provider::Layout> of(const Guid &provider, std::uint16_t id) const {
    const auto wanted = std::pair(provider, id);
    const auto key = [](const provider::Layout &row) { return std::pair(row.provider, row.id); };
    const auto begin = std::ranges::lower_bound(rows_, wanted, {}, key);
    return {begin, std::ranges::upper_bound(begin, rows_.end(), wanted, {}, key)};
  }
  // Of the versions that are known the last up to this one, or the first.
  [[nodiscard]] const provider::Layout *find(const Guid &provider, std::uint16_t id,
                                             std::uint16_t version) const {
    const provider::Layout *best = nullptr;
    for (const provider::Layout &row : of(provider, id))
      if (best == nullptr || row.min_version <= version) best = &row;
    return best;
  }

private:
  std::deque<std::vector<kernel::Field>> fields_;
  std::vector<provider::Layout> rows_;
};

const Providers &providers() {
  static const Providers built;
  return built;
}

// Where a field lies: behind so many bytes of fixed size (with pointers of 4 and of 8 bytes), and behind
// these fields of which each event has its own.
struct Place {
  std::size_t narrow = 0, wide = 0;
  std::vector<K> varying;

  bool operator==(const Place &) const = default;
};

Place place_of(std::span<const kernel::Field> fields, Role role) {
  Place place;
  for (const kernel::Field &field : fields) {
    if (field.role == role) return place;
    place.narrow += kernel::fixed_size(field.type, 4) * field.repeat;
    place.wide += kernel::fixed_size(field.type, 8) * field.repeat;
    if (kernel::fixed_size(field.type, 4) == 0) place.varying.push_back(field.type);
  }
  return {SIZE_MAX, SIZE_MAX, {}};
}

// The later version has everything that anybody looks for where the earlier one has it: its fields serve for
// both, as an earlier event merely ends before the last of them.
bool continues(std::span<const kernel::Field> earlier, std::span<const kernel::Field> later) {
  return std::ranges::all_of(earlier, [&](const kernel::Field &field) {
    return field.role == Role::none || place_of(earlier, field.role) == place_of(later, field.role);
  });
}

class Hooks {
public:
  Hooks() {
    for (const kernel::HookInfo &info : kernel::all_hooks()) {
      if (!info.has_layout) continue;
      first_[info.hook] = static_cast<std::uint16_t>(rows_.size());
      add(info.hook);
      count_[info.hook] = static_cast<std::uint8_t>(rows_.size() - first_[info.hook]);
    }
  }

  [[nodiscard]] std::span<const kernel::Layout> rows() const { return rows_; }
  [[nodiscard]] std::span<const kernel::Layout> of(std::uint16_t hook) const {
    return std::span(rows_).subspan(first_[hook], count_[hook]);
  }

private:
  void add(std::uint16_t hook) {
    // What versions before this one were like if they are no beginning of later ones, no Windows from 7 on
    // writes.
    constexpr std::uint16_t kOldestApart = 2;
    const auto versions = providers().of(kernel::class_guid(hook), hook & 0xFF);
    std::uint16_t since = 0;
    for (std::size_t i = 0; i < versions.size(); ++i) {
      if (i + 1 < versions.size()) {
        const provider::Layout &next = versions[i + 1];
        if (continues(versions[i].fields, next.fields)) continue;
        if (versions[i].min_version >= kOldestApart)
          rows_.push_back({hook, static_cast<std::uint8_t>(since), versions[i].fields});
        since = next.min_version;
      } else {
        rows_.push_back({hook, static_cast<std::uint8_t>(since), versions[i].fields});
      }
    }
  }

  std::vector<kernel::Layout> rows_; // by hook, then by version
  std::array<std::uint16_t, 0x10000> first_{};
  std::array<std::uint8_t, 0x10000> count_{};
};

const Hooks &hooks() {
  static const Hooks built;
  return built;
}

} // namespace

std::span<const provider::Layout> provider::all_layouts() {
  return providers().rows();
}

const provider::Layout *provider::find_layout(const Guid &provider, std::uint16_t id, std::uint16_t version) {
  return providers().find(provider, id, version);
}

const provider::Layout *provider::find_layout(const EventView &event) {
  const bool classic = event.is_classic();
  if (!classic && !event.is_event()) return nullptr;
  const Guid provider = event.provider();
  const bool known = classic ? provider == format::kImageIdGuid
                             : provider == format::kClrGuid || provider == format::kClrRundownGuid;
  if (!known) return nullptr;
  return providers().find(provider, classic ? event.opcode() : event.id(), event.version());
}

const provider::Layout *provider::find_kernel_layout(const EventView &event) {
  if (!event.is_event()) return nullptr;
  const Guid provider = event.provider();
  if (provider != kKernelProcess && provider != kKernelFile && provider != kKernelNetwork &&
      provider != kKernelRegistry)
    return nullptr;
  const Layout *found = providers().find(provider, event.id(), event.version());
  return found != nullptr && found->min_version == event.version() ? found : nullptr;
}

std::span<const kernel::Layout> kernel::all_layouts() {
  return hooks().rows();
}

const kernel::Layout *kernel::find_layout(std::uint16_t hook, std::uint16_t version) {
  const Layout *best = nullptr;
  for (const Layout &row : hooks().of(hook))
    if (row.min_version <= version) best = &row;
  return best;
}

} // namespace etwrelog
