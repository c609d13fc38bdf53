#include "trace_logging.hpp"

#include "etwrelog/format.hpp"

#include <optional>
#include <string>

namespace etwrelog::consumer {
namespace {

constexpr std::uint8_t kOpcodeEventInfo = 32;
constexpr std::uint16_t kFirstTraceEventId = 0xFF00; // TraceEvent counts down from here
constexpr unsigned kMostDepth = 16;
constexpr std::size_t kMostFields = 2000; // of one event; 24 bytes each must fit into a record of 64 KiB

enum InType : std::uint8_t {
  kUint16 = 6,
  kBinary = 14,
  kStruct = 24,
  kCountedBinary = 25,
  kTypeMask = 0x1F,
  kConstantCount = 0x20,
  kVariableCount = 0x40,
  kCustom = 0x60,
  kMore = 0x80, // an OutType, or tags, follow
};

struct Field {
  std::string_view name;
  std::uint8_t type = 0, out = 0;
  std::uint8_t array = 0; // kConstantCount, kVariableCount or 0
  std::uint16_t count = 0;
  std::vector<Field> members;
};

class Metadata {
public:
  explicit Metadata(Bytes bytes) : rest_(bytes) {}

  [[nodiscard]] bool at_end() const { return rest_.empty(); }
  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] bool stopped() const { return stopped_; } // at a type that has no counterpart

  std::uint8_t byte() {
    if (rest_.empty()) return fail();
    const std::uint8_t value = rest_[0];
    rest_ = rest_.subspan(1);
    return value;
  }
  std::uint16_t word() {
    const std::uint8_t low = byte();
    return static_cast<std::uint16_t>(low | byte() << 8);
  }
  std::string_view name() {
    for (std::size_t i = 0; i < rest_.size(); ++i)
      if (rest_[i] == 0) {
        const std::string_view found(reinterpret_cast<const char *>(rest_.data()), i);
        rest_ = rest_.subspan(i + 1);
        return found;
      }
    fail();
    return {};
  }
  void tags() {
    while (ok_ && (byte() & kMore) != 0) {
    }
  }

  // `wanted` fields, or all up to the end.
  std::vector<Field> fields(std::optional<unsigned> wanted, unsigned depth) {
    std::vector<Field> found;
    while (ok_ && !stopped_ && (wanted ? found.size() < *wanted : !at_end())) {
      if (depth > kMostDepth || ++fields_ > kMostFields) {
        fail();
        break;
      }
      Field field = one(depth);
      if (ok_ && !stopped_) found.push_back(std::move(field));
    }
    return found;
  }

private:
  Field one(unsigned depth) {
    Field field;
    field.name = name();
    const std::uint8_t in = byte();
    field.type = in & kTypeMask;
    if ((in & kMore) != 0) {
      const std::uint8_t out = byte();
      field.out = out & 0x7F;
      if ((out & kMore) != 0) tags();
    }
    field.array = in & kCustom;
    if (field.array == kCustom || field.type == 0 || field.type > kCountedBinary) stopped_ = true;
    if (field.array == kConstantCount) field.count = word();
    if (ok_ && !stopped_ && field.type == kStruct) field.members = fields(field.out, depth + 1);
    return field;
  }
  std::uint8_t fail() {
    ok_ = false;
    rest_ = {};
    return 0;
  }

  Bytes rest_;
  std::size_t fields_ = 0;
  bool ok_ = true, stopped_ = false;
};

// TraceLogging's output types as TDH's, by number.
std::uint16_t tdh_out_type(const Field &field) {
  constexpr std::uint16_t kTdh[] = {0, 0, 1, 13, 0, 19, 20, 21, 22, 23, 24, 27, 34, 29, 30, 31};
  return field.out < std::size(kTdh) ? kTdh[field.out] : std::uint16_t{0};
}

// EVENT_PROPERTY_INFO
struct Property {
  std::uint32_t flags = 0;
  std::string name;
  std::uint16_t in = 0, out = 0;       // of a structure: index of its first member, number of members
  std::uint16_t count = 1, length = 0; // or the index of the field that says it
};
constexpr std::uint32_t kFlagStruct = 1, kFlagParamLength = 2, kFlagParamCount = 4, kFlagFixedCount = 0x20;

Property size_property(const Field &field, const char *suffix) {
  Property property;
  property.name = std::string(field.name) + suffix;
  property.in = kUint16;
  return property;
}

// Of the fields themselves, with their counts and lengths: what is inside them stands behind.
std::size_t level_size(const std::vector<Field> &fields) {
  std::size_t size = 0;
  for (const Field &field : fields)
    size += 1u + (field.array == kVariableCount ? 1 : 0) +
            (field.type == kBinary || field.type == kCountedBinary ? 1 : 0);
  return size;
}

// The members of a structure stand together, behind those of the structure that they are in. A count or a
// length that is stored in front of the data is a field of its own here.
void add_level(const std::vector<Field> &fields, std::vector<Property> &properties) {
  std::vector<std::pair<const Field *, std::size_t>> structures;
  for (const Field &field : fields) {
    Property property;
    property.name = field.name;
    property.in = field.type;
    property.out = tdh_out_type(field);
    if (field.array == kVariableCount) {
      properties.push_back(size_property(field, ".Count"));
      property.flags |= kFlagParamCount;
      property.count = static_cast<std::uint16_t>(properties.size() - 1);
    } else if (field.array == kConstantCount) {
      property.flags |= kFlagFixedCount;
      property.count = field.count;
    }
    if (field.type == kBinary || field.type == kCountedBinary) {
      properties.push_back(size_property(field, ".Length"));
      property.flags |= kFlagParamLength;
      property.in = kBinary;
      property.length = static_cast<std::uint16_t>(properties.size() - 1);
    } else if (field.type == kStruct) {
      property.flags |= kFlagStruct;
      structures.emplace_back(&field, properties.size());
    }
    properties.push_back(std::move(property));
  }
  for (const auto &[field, at] : structures) {
    const std::size_t first = properties.size();
    add_level(field->members, properties);
    properties[at].in = static_cast<std::uint16_t>(first);
    properties[at].out = static_cast<std::uint16_t>(level_size(field->members));
  }
}

std::string_view opcode_text(std::uint8_t opcode) {
  constexpr std::string_view kNames[] = {"",          "Start", "Stop",   "DC_Start", "DC_Stop",
                                         "Extension", "Reply", "Resume", "Suspend",  "Send"};
  return opcode < std::size(kNames) ? kNames[opcode] : std::string_view();
}

// Offsets in TRACE_EVENT_INFO.
constexpr std::size_t kInfoEventGuidAt = 0x10, kInfoDescriptorAt = 0x20, kInfoDecodingSourceAt = 0x30,
                      kInfoProviderNameAt = 0x34, kInfoTaskNameAt = 0x44, kInfoOpcodeNameAt = 0x48,
                      kInfoEventNameAt = 0x5C, kInfoPropertyCountAt = 0x64, kInfoTopLevelCountAt = 0x68,
                      kInfoPropertiesAt = 0x70, kPropertySize = 24;
constexpr std::uint32_t kDecodedByTraceLogging = 3;

// Appends UTF-8 as UTF-16 with its terminator. Ill-formed bytes are taken for Latin-1.
std::uint32_t put_text(std::vector<std::uint8_t> &out, std::string_view text) {
  const auto at = static_cast<std::uint32_t>(out.size());
  const auto put = [&out](std::uint32_t unit) {
    out.push_back(static_cast<std::uint8_t>(unit));
    out.push_back(static_cast<std::uint8_t>(unit >> 8));
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto lead = static_cast<std::uint8_t>(text[i]);
    const std::size_t more = lead < 0xC0 ? 0 : lead < 0xE0 ? 1 : lead < 0xF0 ? 2 : 3;
    std::uint32_t c = more == 0 ? lead : lead & (0x3Fu >> more);
    bool good = i + more < text.size();
    for (std::size_t k = 1; good && k <= more; ++k) {
      const auto next = static_cast<std::uint8_t>(text[i + k]);
      good = (next & 0xC0) == 0x80;
      c = c << 6 | (next & 0x3F);
    }
    if (!good)
      c = lead;
    else
      i += more;
    if (c >= 0x10000) {
      put(0xD800 + ((c - 0x10000) >> 10 & 0x3FF));
      put(0xDC00 + (c & 0x3FF));
    } else {
      put(c);
    }
  }
  put(0);
  return at;
}

// u16 size, then the provider's name.
std::string_view provider_name(Bytes traits) {
  if (traits.size() < 3) return {};
  const std::string_view text(reinterpret_cast<const char *>(traits.data()) + 2, traits.size() - 2);
  return text.substr(0, text.find('\0'));
}

const EVENT_HEADER_EXTENDED_DATA_ITEM *find_item(const EVENT_RECORD &record, std::uint16_t type) {
  for (std::uint16_t i = 0; i < record.ExtendedDataCount; ++i)
    if (record.ExtendedData[i].ExtType == type) return &record.ExtendedData[i];
  return nullptr;
}

Bytes data_of(const EVENT_HEADER_EXTENDED_DATA_ITEM *item) {
  if (item == nullptr) return {};
  return {reinterpret_cast<const std::uint8_t *>(static_cast<std::uintptr_t>(item->DataPtr)), item->DataSize};
}

} // namespace

std::vector<std::uint8_t> make_event_info(const EVENT_HEADER &header, std::uint16_t id, Bytes metadata,
                                          Bytes traits) {
  Metadata reader(metadata);
  const std::uint16_t size = reader.word();
  if (!reader.ok() || size != metadata.size()) return {};
  reader.tags();
  const std::string_view event_name = reader.name();
  const std::vector<Field> fields = reader.fields(std::nullopt, 0);
  if (!reader.ok()) return {};
  std::vector<Property> properties;
  add_level(fields, properties);

  std::vector<std::uint8_t> info(kInfoPropertiesAt + properties.size() * kPropertySize);
  std::memcpy(info.data(), &header.ProviderId, sizeof header.ProviderId);
  std::memcpy(info.data() + kInfoEventGuidAt, &header.ProviderId, sizeof header.ProviderId);
  EVENT_DESCRIPTOR descriptor = header.EventDescriptor;
  descriptor.Id = id;
  std::memcpy(info.data() + kInfoDescriptorAt, &descriptor, sizeof descriptor);
  store<std::uint32_t>(info.data() + kInfoDecodingSourceAt, kDecodedByTraceLogging);
  store(info.data() + kInfoPropertyCountAt, static_cast<std::uint32_t>(properties.size()));
  store(info.data() + kInfoTopLevelCountAt, static_cast<std::uint32_t>(level_size(fields)));
  const auto put_name = [&info](std::size_t at, std::string_view text) {
    if (text.empty()) return;
    const std::uint32_t where = put_text(info, text);
    store(info.data() + at, where);
  };
  put_name(kInfoProviderNameAt, provider_name(traits));
  put_name(kInfoTaskNameAt, event_name);
  put_name(kInfoEventNameAt, event_name);
  put_name(kInfoOpcodeNameAt, opcode_text(descriptor.Opcode));
  for (std::size_t i = 0; i < properties.size(); ++i) {
    const std::size_t at = kInfoPropertiesAt + i * kPropertySize;
    store(info.data() + at, properties[i].flags);
    store(info.data() + at + 8, properties[i].in);
    store(info.data() + at + 10, properties[i].out);
    store(info.data() + at + 16, properties[i].count);
    store(info.data() + at + 18, properties[i].length);
    const std::uint32_t name = put_text(info, properties[i].name);
    store(info.data() + at + 4, name);
  }
  return info.size() <= format::kMaxEventSize ? info : std::vector<std::uint8_t>{};
}

std::uint16_t TraceLoggingDescriber::next_id(const Guid &provider) {
  return --ids_.try_emplace(provider, kFirstTraceEventId).first->second;
}

EVENT_RECORD *TraceLoggingDescriber::before(const EVENT_RECORD &record) {
  const EVENT_HEADER_EXTENDED_DATA_ITEM *const metadata =
      find_item(record, EVENT_HEADER_EXT_TYPE_EVENT_SCHEMA_TL);
  if (metadata == nullptr) return nullptr;
  const Bytes bytes = data_of(metadata);
  key_.assign(reinterpret_cast<const char *>(&record.EventHeader.ProviderId), sizeof(ETWR_GUID));
  key_.push_back(static_cast<char>(record.EventHeader.EventDescriptor.Opcode));
  key_.append(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  if (!met_.insert(key_).second) return nullptr;

  const Guid provider = load_guid(reinterpret_cast<const std::uint8_t *>(&record.EventHeader.ProviderId));
  info_ = make_event_info(record.EventHeader, next_id(provider), bytes,
                          data_of(find_item(record, EVENT_HEADER_EXT_TYPE_PROV_TRAITS)));
  if (info_.empty()) return nullptr;
  record_ = EVENT_RECORD{};
  EVENT_HEADER &header = record_.EventHeader;
  header.Size = static_cast<std::uint16_t>(sizeof header);
  header.Flags =
      EVENT_HEADER_FLAG_CLASSIC_HEADER |
      (record.EventHeader.Flags & (EVENT_HEADER_FLAG_32_BIT_HEADER | EVENT_HEADER_FLAG_64_BIT_HEADER));
  header.ThreadId = record.EventHeader.ThreadId;
  header.ProcessId = record.EventHeader.ProcessId;
  header.TimeStamp = record.EventHeader.TimeStamp;
  std::memcpy(&header.ProviderId, &format::kMetaDataGuid, sizeof header.ProviderId);
  header.EventDescriptor.Opcode = kOpcodeEventInfo;
  record_.BufferContext = record.BufferContext;
  record_.UserData = info_.data();
  record_.UserDataLength = static_cast<std::uint16_t>(info_.size());
  record_.UserContext = record.UserContext;
  return &record_;
}

} // namespace etwrelog::consumer
