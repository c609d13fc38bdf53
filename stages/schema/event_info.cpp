#include "etwrelog/text.hpp"
#include "schema/entry.hpp"
#include "schema/event_info_format.hpp"

namespace etwrelog::schema {
namespace {

using namespace event_info;

constexpr std::size_t kMaxName = 8192; // characters of a name or message

// The texts of a record, which offsets name. Several may name the same one, such as the map of several
// fields; but a record of 64 KiB in which thousands do is one that was made to fill the memory.
class Texts {
public:
  explicit Texts(Bytes record) : record_(record), room_((64u << 10) + 4 * record.size()) {}

  [[nodiscard]] std::string at(std::size_t offset) {
    if (spent()) return {};
    std::string text = text_at(record_, offset);
    taken_ += text.size();
    return text;
  }
  [[nodiscard]] bool spent() const { return taken_ > room_; }
  [[nodiscard]] std::size_t taken() const { return taken_; }
  static constexpr const char *kSpent = "far more text than its bytes hold";

private:
  Bytes record_;
  std::size_t room_, taken_ = 0;
};

class Flattener {
public:
  Flattener(Bytes payload, std::size_t count, Entry &entry, Texts &texts, const Guid &provider,
            InfoKeeper &keeper)
      : payload_(payload), count_(count), entry_(entry), texts_(texts), provider_(provider), keeper_(keeper),
        place_(count, -1) {}

  [[nodiscard]] bool properties(std::size_t begin, std::size_t end, unsigned depth) {
    if (depth > kMaxDepth || end > count_) {
      problem = "a structure that contains itself or what is not there";
      return false;
    }
    for (std::size_t i = begin; i < end; ++i)
      if (!property(i, depth)) return false;
    return true;
  }

  std::string problem;

private:
  [[nodiscard]] Property at(std::size_t i) const {
    return Property::load_from(payload_.data() + kPropertiesAt + Property::kSize * i);
  }
  [[nodiscard]] std::int16_t place_of(std::uint16_t property) const {
    return property < place_.size() ? place_[property] : std::int16_t{-1};
  }

  bool property(std::size_t i, unsigned depth) {
    const Property p = at(i);
    Field field;
    if ((p.flags & kParamCount) != 0) {
      field.repeat = Measure::by_field, field.count_field = place_of(p.count);
    } else if ((p.flags & kFixedCount) != 0 || p.count > 1) {
      field.repeat = Measure::constant, field.count = p.count;
    }
    if ((p.flags & kStruct) == 0 && !scalar(p, field)) return false;
    if ((p.flags & kStruct) != 0) field.type = FieldType::structure;
    const auto index = entry_.add(field, texts_.at(p.name));
    if (texts_.spent()) {
      problem = Texts::kSpent;
      return false;
    }
    if (!index) {
      problem = "more than 4096 fields";
      return false;
    }
    place_[i] = static_cast<std::int16_t>(*index);
    if ((p.flags & kStruct) == 0) return true;
    if (!properties(p.in_or_start, std::size_t{p.in_or_start} + p.out_or_members, depth + 1)) return false;
    entry_.fields[*index].members = static_cast<std::uint16_t>(entry_.fields.size() - *index - 1);
    return true;
  }

  bool scalar(const Property &p, Field &field) {
    constexpr unsigned kUnicode = 1, kAnsi = 2, kBoolean = 13, kBinary = 14;
    if (!apply_tdh_type(field, p.in_or_start, p.out_or_members)) {
      problem = "in type " + std::to_string(p.in_or_start);
      return false;
    }
    const unsigned in = p.in_or_start;
    if (in == kBoolean && p.length == 1 && (p.flags & kParamLength) == 0) field.size = 1;
    if (in == kUnicode || in == kAnsi || in == kBinary) {
      if ((p.flags & kParamLength) != 0)
        field.length = Measure::by_field, field.size_field = place_of(p.length);
      else if (p.length != 0 || (p.flags & kFixedLength) != 0)
        field.length = Measure::constant, field.size = p.length;
      else if (in == kBinary && field.format == Format::ip_address)
        field.length = Measure::constant, field.size = 16;
    }
    if (const std::string map = texts_.at(p.map); !map.empty())
      field.map = entry_.add_map(keeper_.find(provider_, map));
    return true;
  }

  Bytes payload_;
  std::size_t count_;
  Entry &entry_;
  Texts &texts_;
  Guid provider_;
  InfoKeeper &keeper_;
  std::vector<std::int16_t> place_; // property -> field, the latest
};

} // namespace

std::string event_info::text_at(Bytes record, std::size_t at) {
  if (at == 0 || at >= record.size()) return {};
  std::size_t end = at;
  while (end + 2 <= record.size() && end - at < 2 * kMaxName && load<std::uint16_t>(record.data() + end) != 0)
    end += 2;
  std::string text = utf8_from_utf16(record.subspan(at, end - at));
  while (!text.empty() &&
         (text.back() == ' ' || text.back() == '\n' || text.back() == '\r' || text.back() == '\0'))
    text.pop_back();
  const std::size_t begin = text.find_first_not_of(" \r\n");
  return begin == std::string::npos || begin == 0 ? text : text.substr(begin);
}

std::optional<EventInfo> read_event_info(Bytes payload, InfoKeeper &keeper, std::string &problem) {
  if (payload.size() < kPropertiesAt) {
    problem = "EventInfo record of " + std::to_string(payload.size()) + " bytes";
    return std::nullopt;
  }
  auto u32 = [payload](std::size_t at) { return load<std::uint32_t>(payload.data() + at); };
  EventInfo info;
  info.provider = load_guid(payload.data() + kProviderAt);
  info.event_class = load_guid(payload.data() + kEventGuidAt);
  info.decoding_source = u32(kSourceAt);
  info.entry = std::make_unique<Entry>();
  Entry &entry = *info.entry;
  const std::size_t count = u32(kCountAt), top = u32(kTopLevelAt);
  Schema &s = entry.schema;
  s.classic = info.decoding_source == kSourceClassic;
  s.provider = s.classic ? info.event_class : info.provider;
  s.id = s.classic ? std::uint16_t{0} : load<std::uint16_t>(payload.data() + kIdAt);
  s.version = payload[kVersionAt];
  s.opcode = payload[kOpcodeAt];
  s.origin = Origin::event_info;
  if (!keeper.wants(s, info.decoding_source)) return std::nullopt;
  const std::string name =
      "EventInfo record of " + to_string(s.provider) + " id " + std::to_string(s.id) + ": ";
  if (count > (payload.size() - kPropertiesAt) / Property::kSize || top > count) {
    problem = name + "more fields than its bytes hold";
    return std::nullopt;
  }
  Texts texts(payload);
  s.provider_name = entry.keep(texts.at(u32(kProviderNameAt)));
  s.task = entry.keep(texts.at(u32(kTaskNameAt)));
  s.opcode_name = entry.keep(texts.at(u32(kOpcodeNameAt)));
  s.message = entry.keep(texts.at(u32(kMessageAt)));
  std::string shown =
      task_and_opcode(s.task.empty() && !s.opcode_name.empty() ? "EventID(" + std::to_string(s.id) + ")"
                                                               : std::string(s.task),
                      s.opcode_name);
  if (shown.empty()) shown = "EventID(" + std::to_string(s.id) + ")";
  s.name = entry.keep(std::move(shown));
  Flattener flattener(payload, count, entry, texts, s.provider, keeper);
  if (!flattener.properties(0, top, 0)) {
    problem = name + flattener.problem;
    return std::nullopt;
  }
  if (const std::string flaw = entry.flaw(); !flaw.empty()) {
    problem = name + flaw;
    return std::nullopt;
  }
  entry.seal();
  return info;
}

bool read_map_info(Bytes payload, InfoKeeper &keeper, std::string &problem) {
  if (payload.size() < sizeof(Guid) + kMapHeader) {
    problem = "EventMapInfo record of " + std::to_string(payload.size()) + " bytes";
    return false;
  }
  const Guid provider = load_guid(payload.data());
  const Bytes info = payload.subspan(sizeof(Guid));
  auto u32 = [info](std::size_t at) { return load<std::uint32_t>(info.data() + at); };
  const std::uint32_t flags = u32(kMapFlagsAt), count = u32(kMapCountAt), value_type = u32(kMapValueTypeAt);
  const std::string name = text_at(info, u32(kMapNameAt));
  if (name.empty() || (flags & kPatternMap) != 0 || (flags > kPatternMap && value_type == kTextValues))
    return false; // maps from texts to texts: nothing for numbers
  if (count > (info.size() - kMapHeader) / kMapEntry) {
    problem = "map " + name + ": more entries than its bytes hold";
    return false;
  }
  const std::shared_ptr<ValueMap> map = keeper.find(provider, name);
  if (!map || !map->entries.empty()) return false;
  Texts texts(info);
  std::vector<ValueMap::Entry> entries;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::size_t at = kMapHeader + kMapEntry * std::size_t{i};
    entries.push_back({u32(at + 4), texts.at(u32(at))});
  }
  if (texts.spent()) {
    problem = "map " + name + ": " + Texts::kSpent;
    return false;
  }
  std::stable_sort(entries.begin(), entries.end(),
                   [](const auto &a, const auto &b) { return a.value < b.value; });
  keeper.took(entries.capacity() * sizeof entries[0] + texts.taken());
  map->bits = (flags & (kManifestBits | kWbemBits)) != 0;
  map->entries = std::move(entries);
  return true;
}

} // namespace etwrelog::schema
