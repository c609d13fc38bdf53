// TraceLogging: the schema travels with each event, as an extended item of its header.
//   u16 size, tag bytes (continued while bit 7 is set), event name and its zero, then fields until the end:
//   name and its zero, u8 in type, u8 out type if bit 7, tags if bit 7 of that, count or type information.
#include "schema/entry.hpp"

#include "etwrelog/text.hpp"

namespace etwrelog::schema {
namespace {

constexpr unsigned kTypeMask = 0x1F, kCountMask = 0x60, kConstantCount = 0x20, kCounted = 0x40,
                   kCustom = 0x60, kMore = 0x80, kStructure = 24;

class Metadata {
public:
  // `at`: behind the event's name.
  Metadata(Bytes bytes, std::size_t at, Entry &entry) : bytes_(bytes), entry_(entry), at_(at) {}

  [[nodiscard]] bool read() {
    while (at_ < bytes_.size())
      if (!field(0)) return false;
    return true;
  }

private:
  bool byte(unsigned &value) {
    if (at_ >= bytes_.size()) return false;
    value = bytes_[at_++];
    return true;
  }
  bool word(std::uint16_t &value) {
    unsigned low = 0, high = 0;
    if (!byte(low) || !byte(high)) return false;
    value = static_cast<std::uint16_t>(low | high << 8);
    return true;
  }
  bool tags() {
    unsigned value = 0;
    do
      if (!byte(value)) return false;
    while ((value & kMore) != 0);
    return true;
  }
  bool text(std::string &out) {
    if (at_ > bytes_.size()) return false;
    const Bytes rest = bytes_.subspan(at_);
    const auto end = static_cast<std::size_t>(std::find(rest.begin(), rest.end(), 0) - rest.begin());
    if (end == rest.size()) return false;   // cut off
    out = utf8_from_bytes(rest.first(end)); // they should be
    at_ += end + 1;
    return true;
  }

  bool field(unsigned depth) {
    std::string field_name;
    unsigned in = 0, out = 0;
    if (depth > kMaxDepth || !text(field_name) || !byte(in)) return false;
    if ((in & kMore) != 0) {
      if (!byte(out) || ((out & kMore) != 0 && !tags())) return false;
      out &= ~kMore;
    }
    Field f;
    if ((in & kCountMask) == kConstantCount) {
      f.repeat = Measure::constant;
      if (!word(f.count)) return false;
    } else if ((in & kCountMask) == kCounted) {
      f.repeat = Measure::prefix16;
    } else if ((in & kCountMask) == kCustom) { // serialized by a protocol of its own
      std::uint16_t information = 0;
      if (!word(information) || information > bytes_.size() - at_) return false;
      at_ += information;
      f.type = FieldType::binary, f.length = Measure::prefix16;
      return entry_.add(f, std::move(field_name)).has_value();
    }
    const unsigned type = in & kTypeMask;
    if (type != kStructure)
      return apply_trace_logging_type(f, type, out) && entry_.add(f, std::move(field_name)).has_value();
    f.type = FieldType::structure;
    const auto index = entry_.add(f, std::move(field_name));
    if (!index) return false;
    for (unsigned i = 0; i < out; ++i)
      if (at_ >= bytes_.size() || !field(depth + 1)) return false;
    entry_.fields[*index].members = static_cast<std::uint16_t>(entry_.fields.size() - *index - 1);
    return true;
  }

  Bytes bytes_;
  Entry &entry_;
  std::size_t at_;
};

} // namespace

std::optional<Bytes> trace_logging_name(Bytes metadata) {
  if (metadata.size() < 4) return std::nullopt;
  const std::size_t size = load<std::uint16_t>(metadata.data());
  if (size > metadata.size()) return std::nullopt;
  std::size_t at = 2;
  while (at < size && (metadata[at++] & kMore) != 0) {
  }
  const Bytes rest = metadata.first(std::max(size, at)).subspan(at);
  const auto end = static_cast<std::size_t>(std::find(rest.begin(), rest.end(), 0) - rest.begin());
  if (end == rest.size()) return std::nullopt;
  return rest.first(end);
}

EntryPtr read_trace_logging(Bytes metadata, std::string &problem) {
  if (metadata.size() < 4) {
    problem = "TraceLogging metadata of " + std::to_string(metadata.size()) + " bytes";
    return nullptr;
  }
  const auto name = trace_logging_name(metadata);
  if (!name) {
    problem = "TraceLogging metadata that is cut off";
    return nullptr;
  }
  auto entry = std::make_unique<Entry>();
  const auto behind_name = static_cast<std::size_t>(name->data() - metadata.data()) + name->size() + 1;
  Metadata reader(metadata.first(load<std::uint16_t>(metadata.data())), behind_name, *entry);
  if (!reader.read()) {
    problem = "TraceLogging metadata that contradicts itself";
    return nullptr;
  }
  std::string shown = utf8_from_bytes(*name); // they should be
  entry->schema.origin = Origin::trace_logging;
  entry->schema.name = entry->keep(shown.empty() ? "TraceLogging" : std::move(shown));
  entry->schema.task = entry->schema.name;
  entry->seal();
  return entry;
}

} // namespace etwrelog::schema
