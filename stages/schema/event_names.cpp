#include "schema/event_names.hpp"

#include "base/cut_text.hpp"
#include "etwrelog/clr_events.hpp"
#include "etwrelog/kernel_events.hpp"
#include "etwrelog/provider_events.hpp"
#include "etwrelog/provider_names.hpp"
#include "etwrelog/text.hpp"
#include "schema/entry.hpp"
#include "schema/event_info_format.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <pugixml.hpp>

namespace etwrelog::schema {

using namespace format;

namespace {

constexpr std::string_view kKernel = "Windows Kernel/";
constexpr std::size_t kLearned = 64; // TraceLogging schemas remembered, each in the place of its hash
constexpr const char *kTraceLogging = "TraceLogging"; // several names under one id

std::string kernel_name(std::uint16_t hook) {
  if (const kernel::HookInfo *info = kernel::find_hook(hook)) {
    const std::string_view name = info->name;
    // What PerfView's kernel parser does not know it shows under the session's own provider name.
    return name.starts_with("MSNT_") ? std::string(name) : std::string(kKernel) + info->name;
  }
  const std::string_view group = kernel::group_name(static_cast<std::uint8_t>(hook >> 8));
  if (group.empty()) return fmt::format("{}Hook(0x{:04x})", kKernel, hook);
  return fmt::format("{}{}/Opcode({})", kKernel, group, hook & 0xFF);
}

std::string classic_name(const EventType &type) {
  if (type.guid == kImageIdGuid) {
    switch (type.id) {
    case 0: return "KernelTraceControl/ImageID";
    case 32: return "KernelTraceControl/ImageID/None";
    case 34: return "KernelTraceControl/ImageID/Dbg";
    case 36: return "KernelTraceControl/ImageID/DbgID_RSDS";
    case 37: return "KernelTraceControl/ImageID/DbgID_ILRSDS";
    case 38: return "KernelTraceControl/ImageID/DbgPPDB";
    case 40: return "KernelTraceControl/ImageID/DbgDetermID";
    case 64: return "KernelTraceControl/ImageID/FileVersion";
    default: return fmt::format("KernelTraceControl/ImageID/Opcode({})", type.id);
    }
  }
  if (type.guid == kMetaDataGuid) {
    if (type.id == 32) return "KernelTraceControl/MetaData/EventInfo";
    if (type.id == 33) return "KernelTraceControl/MetaData/EventMapInfo";
  }
  if (type.guid == kSysConfigGuid) {
    switch (type.id) {
    case 32: return "Windows Kernel/SysConfig/BuildInfo";
    case 33: return "Windows Kernel/SysConfig/SystemPaths";
    case 34: return "Windows Kernel/SysConfig/UnknownVolume";
    case 35: return "Windows Kernel/SysConfig/VolumeMapping";
    default: break;
    }
  }
  if (const auto hook = kernel::hook_of_class(type.guid, static_cast<std::uint8_t>(type.id)))
    return kernel_name(*hook);
  const std::string_view provider = provider_name(type.guid);
  return fmt::format("{}/Opcode({})", provider.empty() ? to_string(type.guid) : std::string(provider),
                     type.id);
}

// Rows of statistics have the provider's name each. Names are some dozen characters; a longer one than this
// is cut off, between two characters.
std::string shown(std::string name) {
  constexpr std::size_t kLongest = 1024;
  name.resize(base::at_most(name, kLongest).size());
  return name;
}

} // namespace

bool EventNames::teaches(const EventView &event) {
  if (event.is_classic()) return event.provider() == kMetaDataGuid && event.opcode() == 32;
  if (!event.is_event()) return false;
  return event.has_items() || (event.id() == kManifestEventId && event.opcode() == kManifestOpcode);
}

void EventNames::learn(const EventView &event, std::int64_t time) {
  if (event.is_classic())
    learn_event_info(event.payload());
  else if (event.id() == kManifestEventId && event.opcode() == kManifestOpcode)
    learn_manifest(event, time);
  else
    learn_schema(event);
}

void EventNames::learn_event_info(Bytes payload) {
  using namespace event_info;
  if (payload.size() < kOpcodeNameAt + 4) return;
  EventType type;
  type.family = Family::event;
  type.guid = load_guid(payload.data() + kProviderAt);
  type.id = load<std::uint16_t>(payload.data() + kIdAt);
  type.version = payload[kVersionAt];
  const auto text = [payload](std::size_t field) {
    return text_at(payload, load<std::uint32_t>(payload.data() + field));
  };
  std::string provider = text(kProviderNameAt), task = text(kTaskNameAt);
  if (!provider.empty()) providers_[type.guid] = shown(std::move(provider));
  const std::string opcode = text(kOpcodeNameAt);
  if (task.empty() && opcode.empty()) return;
  if (task.empty()) task = fmt::format("EventID({})", type.id);
  learned_.clear(); // a schema has the last word again
  take(type, Source::event_info, shown(task_and_opcode(task, opcode)));
}

void EventNames::take(const EventType &type, Source from, std::string name) {
  std::string &mine = names_[type][static_cast<std::size_t>(from)];
  if (mine.empty())
    mine = std::move(name);
  else if (from == Source::trace_logging && mine != name)
    mine = kTraceLogging; // events of one provider may all have id 0; a row of them has no one name
}

std::string_view EventNames::text_of(const Names &names) {
  const auto &[manifest, event_info, trace_logging] = names;
  const std::string &other = event_info.empty() ? manifest : event_info;
  if (trace_logging.empty()) return other;
  return other.empty() || other == trace_logging ? std::string_view(trace_logging) : kTraceLogging;
}

void EventNames::learn_manifest(const EventView &event, std::int64_t time) {
  if (pieces_.take(event, time)) return;
  if (const auto whole = ManifestPiece::of(event)) read_manifest(whole->provider, whole->text);
}

void EventNames::settle() {
  ManifestJoiner joiner;
  for (const ManifestPiece &piece : pieces_.in_order())
    if (const auto whole = joiner.add(piece)) read_manifest(piece.provider, *whole);
  pieces_.clear();
}

void EventNames::read_manifest(const Guid &guid, std::string_view text) {
  learned_.clear();
  pugi::xml_document document;
  if (!document.load_buffer(text.data(), text.size())) return;
  for (const pugi::xpath_node &found : document.select_nodes("//provider")) {
    const pugi::xml_node provider = found.node();
    if (const char *name = provider.attribute("name").value(); *name) providers_[guid] = shown(name);
    for (const pugi::xml_node item : provider.child("events").children("event")) {
      EventType type{Family::event, static_cast<std::uint16_t>(item.attribute("version").as_uint()),
                     item.attribute("value").as_uint(), guid};
      std::string task = item.attribute("task").value();
      if (task.empty()) task = item.attribute("symbol").value();
      if (!task.empty())
        take(type, Source::manifest, shown(task_and_opcode(task, item.attribute("opcode").value())));
    }
  }
  take({Family::event, 1, kManifestEventId, guid}, Source::manifest, "ManifestData");
}

// TraceLogging: provider name in the traits, event name behind the tag bytes of the schema.
void EventNames::learn_schema(const EventView &event) {
  const EventType of = type_of(event);
  const Bytes all =
      event.bytes().first(event.bytes().size() - event.payload().size()).subspan(event.layout().header_size);
  learned_.resize(kLearned);
  Learned &last = learned_[(of.guid.low ^ of.id ^ all.size() >> 3) % kLearned];
  if (last.type == of && std::ranges::equal(last.items, all)) return;
  last.type = of;
  last.items.assign(all.begin(), all.end());
  ExtendedItems items = event.items();
  ExtendedItem item;
  auto take_text = [](Bytes data, std::size_t at) {
    const auto begin = data.begin() + static_cast<std::ptrdiff_t>(std::min(at, data.size()));
    return utf8_from_bytes(Bytes(begin, std::find(begin, data.end(), std::uint8_t{0})));
  };
  while (items.next(item)) {
    if (item.type == ItemType::provider_traits && item.data.size() > 2) {
      if (std::string name = take_text(item.data, 2); !name.empty())
        providers_.try_emplace(event.provider(), shown(std::move(name)));
    } else if (item.type == ItemType::schema_tl) {
      const std::optional<Bytes> named = trace_logging_name(item.data);
      if (!named) continue; // cut off: its name may be another one
      take(of, Source::trace_logging, shown(utf8_from_bytes(*named)));
    }
  }
}

void EventNames::merge(const EventNames &other) {
  for (const auto &[guid, name] : other.providers_)
    providers_.try_emplace(guid, name);
  for (const auto &[type, names] : other.names_)
    for (std::size_t from = 0; from < names.size(); ++from)
      if (!names[from].empty()) take(type, static_cast<Source>(from), names[from]);
  pieces_.merge(other.pieces_);
}

std::string EventNames::name(const EventType &type) const {
  switch (type.family) {
  case Family::hook: return kernel_name(static_cast<std::uint16_t>(type.id));
  case Family::classic: return classic_name(type);
  case Family::message:
    return type.guid == Guid{} ? fmt::format("WPP/Message({})", type.id)
                               : fmt::format("WPP/{}/Message({})", to_string(type.guid), type.id);
  case Family::other: return fmt::format("HeaderType(0x{:02x})", type.id);
  case Family::event: break;
  }
  const auto learned_provider = providers_.find(type.guid);
  const std::string_view known = provider_name(type.guid);
  std::string provider = !known.empty()                         ? std::string(known)
                         : learned_provider != providers_.end() ? learned_provider->second
                                                                : to_string(type.guid);
  if (const auto clr = clr::event_name(type.guid, static_cast<std::uint16_t>(type.id)); !clr.empty())
    return fmt::format("{}/{}", provider, clr);
  if (const auto learned = names_.find(type); learned != names_.end())
    return fmt::format("{}/{}", provider, text_of(learned->second));
  if (const provider::Layout *known_event =
          provider::find_layout(type.guid, static_cast<std::uint16_t>(type.id), type.version))
    return fmt::format("{}/{}", provider, known_event->name);
  return fmt::format("{}/EventID({})", provider, type.id);
}

std::string_view other_field_name(std::string_view field) {
  if (field == "TransferSize") return "IoSize";
  if (field == "Irp") return "IrpPtr";
  return {};
}

EventType type_of(const Schema &kind) {
  return kind.classic ? EventType{Family::classic, kind.version, kind.opcode, kind.provider}
                      : EventType{Family::event, kind.version, kind.id, kind.provider};
}

std::string other_event_name(const Schema &kind) {
  static const EventNames built_in;
  std::string name = built_in.name(type_of(kind));
  if (name.ends_with(')')) return {}; // a number, which a schema says more than
  name.erase(0, name.find('/') + 1);
  return name == kind.name ? std::string() : name;
}

} // namespace etwrelog::schema

namespace etwrelog {

std::string type_key(const EventType &type) {
  switch (type.family) {
  case Family::hook: return fmt::format("hook:0x{:04x}", type.id);
  case Family::event: return fmt::format("event:{}/{}/{}", to_string(type.guid), type.id, type.version);
  case Family::classic: return fmt::format("classic:{}/{}/{}", to_string(type.guid), type.id, type.version);
  case Family::message:
    return type.guid == Guid{} ? fmt::format("wpp:-/{}", type.id)
                               : fmt::format("wpp:{}/{}", to_string(type.guid), type.id);
  case Family::other: break;
  }
  return fmt::format("other:0x{:02x}", type.id);
}

} // namespace etwrelog
