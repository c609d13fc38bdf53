#include "schema/event_info_writer.hpp"

#include "etwrelog/text.hpp"
#include "schema/event_info_format.hpp"

#include <algorithm>
#include <deque>

namespace etwrelog::schema {
namespace {

using namespace event_info;

constexpr std::size_t kMostBytes = 65'000; // an event holds 65,535 with its header

// UTF-16 with its zero, appended; its place. 0 for an empty text.
std::uint32_t add_text(std::vector<std::uint8_t> &out, std::string_view utf8) {
  if (utf8.empty()) return 0;
  const auto at = static_cast<std::uint32_t>(out.size());
  const std::u16string units = utf16_from_utf8(utf8);
  out.resize(at + 2 * (units.size() + 1));
  for (std::size_t i = 0; i < units.size(); ++i)
    store(out.data() + at + 2 * i, static_cast<std::uint16_t>(units[i]));
  return at;
}

struct Types {
  std::uint16_t in, out;
};

// Types that read as the field does; what properties say of lengths comes on top.
std::optional<Types> types_of(const Field &field) {
  const bool by_property = field.length == Measure::by_field || field.length == Measure::constant;
  const unsigned last_common = 25;
  for (const unsigned first : {1u, 300u})
    for (unsigned in = first; in <= (first == 1 ? last_common : 310u); ++in)
      for (unsigned out = 0; out <= 38; ++out) {
        Field made;
        if (!apply_tdh_type(made, in, out)) continue;
        if (made.type != field.type || made.format != field.format || made.zero_ends != field.zero_ends)
          continue;
        const bool takes_length = in == 1 || in == 2 || in == 14;
        if (by_property ? !takes_length : made.length != field.length) continue;
        // A byte that is true or false says so by its length.
        if (field.type == FieldType::boolean && made.size != field.size && !(in == 13 && field.size == 1))
          continue;
        return Types{static_cast<std::uint16_t>(in), static_cast<std::uint16_t>(out)};
      }
  return std::nullopt;
}

// What Windows' own records say of types that have one length, that of a pointer in every trace as here; many
// readers go by it. By in type.
std::uint16_t length_of(unsigned in) {
  constexpr std::uint16_t kLengths[] = {0, 0, 0, 1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 4, 0, 16, 4, 8, 16, 0, 4, 8};
  return in < std::size(kLengths) ? kLengths[in] : std::uint16_t{0};
}

class Writer {
public:
  Writer(const Schema &schema, std::vector<std::uint8_t> &out) : schema_(schema), out_(out) {}

  // Top-level fields first; members of structures in stretches behind them.
  bool write() {
    const std::size_t count = schema_.fields.size();
    std::vector<std::uint16_t> place(count);
    std::vector<std::size_t> order;
    std::deque<std::pair<std::size_t, std::size_t>> stretches{{0, count}};
    std::vector<std::uint16_t> start(count), members(count);
    while (!stretches.empty()) {
      const auto [begin, end] = stretches.front();
      stretches.pop_front();
      const std::size_t first = order.size();
      for (std::size_t i = begin; i < end; i += 1u + schema_.fields[i].members) {
        place[i] = static_cast<std::uint16_t>(order.size());
        order.push_back(i);
        if (schema_.fields[i].type == FieldType::structure)
          stretches.push_back({i + 1, i + 1 + schema_.fields[i].members});
      }
      if (begin == 0)
        top_level = order.size();
      else {
        start[begin - 1] = static_cast<std::uint16_t>(first);
        members[begin - 1] = static_cast<std::uint16_t>(order.size() - first);
      }
    }
    out_.resize(kPropertiesAt + Property::kSize * count);
    for (std::size_t n = 0; n < order.size(); ++n) {
      const Field &field = schema_.fields[order[n]];
      Property made;
      if (field.type == FieldType::structure) {
        made.flags |= kStruct, made.in_or_start = start[order[n]], made.out_or_members = members[order[n]];
      } else {
        const auto types = types_of(field);
        if (!types) return false;
        made.in_or_start = types->in, made.out_or_members = types->out;
        if (field.length == Measure::by_field) {
          if (field.size_field < 0) return false;
          made.flags |= kParamLength, made.length = place[static_cast<std::size_t>(field.size_field)];
        } else if (field.length == Measure::constant) {
          made.flags |= kFixedLength, made.length = field.size;
        } else {
          made.length =
              field.type == FieldType::boolean && field.size == 1 ? std::uint16_t{1} : length_of(types->in);
        }
        if (field.map >= 0)
          made.map = add_text(out_, schema_.maps[static_cast<std::size_t>(field.map)]->name);
      }
      if (field.repeat == Measure::by_field) {
        if (field.count_field < 0) return false;
        made.flags |= kParamCount, made.count = place[static_cast<std::size_t>(field.count_field)];
      } else if (field.repeat == Measure::constant) {
        made.flags |= kFixedCount, made.count = field.count;
      } else if (field.repeat != Measure::natural) {
        return false;
      }
      made.name = add_text(out_, field.name);
      made.store_to(out_.data() + kPropertiesAt + Property::kSize * n);
    }
    return true;
  }

  std::size_t top_level = 0;

private:
  const Schema &schema_;
  std::vector<std::uint8_t> &out_;
};

class NoMaps final : public InfoKeeper {
public:
  std::shared_ptr<ValueMap> find(const Guid &, const std::string &name) override {
    auto map = std::make_shared<ValueMap>();
    map->name = name;
    return map;
  }
  void took(std::size_t) override {}
  bool wants(const Schema &, std::uint32_t) override { return true; }
};

} // namespace

std::optional<std::vector<std::uint8_t>> write_event_info(const Schema &schema, const EventInfoKey &key) {
  std::vector<std::uint8_t> out(kPropertiesAt);
  Writer writer(schema, out);
  if (schema.classic || !writer.write()) return std::nullopt;
  const std::uint32_t provider = add_text(out, schema.provider_name), task = add_text(out, schema.task),
                      opcode = add_text(out, schema.opcode_name), message = add_text(out, schema.message);
  if (out.size() > kMostBytes) return std::nullopt;
  std::uint8_t *const at = out.data();
  store_guid(at + kProviderAt, key.provider);
  store(at + kIdAt, key.id);
  at[kVersionAt] = key.version;
  at[kChannelAt] = key.channel;
  at[kLevelAt] = key.level;
  at[kOpcodeAt] = key.opcode;
  store(at + kTaskAt, key.task);
  store(at + kKeywordAt, key.keyword);
  store(at + kSourceAt, kSourceManifest);
  store(at + kProviderNameAt, provider);
  store(at + kTaskNameAt, task);
  store(at + kOpcodeNameAt, opcode);
  store(at + kMessageAt, message);
  store(at + kCountAt, static_cast<std::uint32_t>(schema.fields.size()));
  store(at + kTopLevelAt, static_cast<std::uint32_t>(writer.top_level));
  // Only what reads back as it was.
  NoMaps maps;
  std::string problem;
  const auto read = read_event_info(out, maps, problem);
  if (!read || read->entry->fields.size() != schema.fields.size()) return std::nullopt;
  for (std::size_t i = 0; i < schema.fields.size(); ++i)
    if (!same_shape(schema.fields[i], read->entry->fields[i])) return std::nullopt;
  return out;
}

std::optional<std::vector<std::uint8_t>> write_map_info(const ValueMap &map, const Guid &provider) {
  std::vector<std::uint8_t> info(kMapHeader + kMapEntry * map.entries.size());
  const std::uint32_t name = add_text(info, map.name);
  std::vector<std::uint32_t> texts;
  for (const ValueMap::Entry &entry : map.entries)
    texts.push_back(add_text(info, entry.name));
  if (info.size() > kMostBytes || name == 0) return std::nullopt;
  // Records have 32 bits for a value.
  constexpr std::uint64_t kNegative = 0xFFFF'FFFF'8000'0000;
  const auto is_wide = [](const ValueMap::Entry &entry) {
    return entry.value > 0xFFFF'FFFF && entry.value < kNegative;
  };
  if (std::ranges::any_of(map.entries, is_wide)) return std::nullopt;
  store(info.data() + kMapNameAt, name);
  store(info.data() + kMapFlagsAt, map.bits ? kManifestBits : kManifestValues);
  store(info.data() + kMapCountAt, static_cast<std::uint32_t>(map.entries.size()));
  store(info.data() + kMapValueTypeAt, kNumberValues);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    std::uint8_t *const entry = info.data() + kMapHeader + kMapEntry * i;
    store(entry, texts[i]);
    store(entry + 4, static_cast<std::uint32_t>(map.entries[i].value));
  }
  std::vector<std::uint8_t> out(sizeof(Guid));
  store_guid(out.data(), provider);
  out.insert(out.end(), info.begin(), info.end());
  return out;
}

} // namespace etwrelog::schema
