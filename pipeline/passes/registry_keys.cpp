#include "passes/registry_keys.hpp"

#include "etwrelog/provider_events.hpp"
#include "etwrelog/text.hpp"

#include <algorithm>
#include <unordered_map>

namespace etwrelog::pipeline {

using kernel::Role;

namespace {

constexpr std::uint16_t kGroup = 0x09;

// Of the operations on a value, KeyName is the name of that.
bool is_about_value(std::uint16_t hook) {
  switch (hook & 0xFF) {
  case 14:              // SetValue
  case 15:              // DeleteValue
  case 16:              // QueryValue
  case 18:              // EnumerateValueKey
  case 19: return true; // QueryMultipleValue
  default: return false;
  }
}

struct Told {
  std::uint64_t number = 0; // 0: the name begins at the root
  std::string name;
};

// Appends a name that begins at a key, or, if it is whole, at none; false if that is not known.
bool append_path(bool whole, std::string_view begin, std::string_view rest, std::string &out) {
  if ((whole ? rest : begin).empty()) return false;
  while (begin.ends_with('\\'))
    begin.remove_suffix(1);
  out += begin;
  if (!begin.empty() && !rest.empty() && !rest.starts_with('\\')) out += '\\';
  out += rest;
  return true;
}

std::optional<Told> read(const EventView &event, std::uint16_t hook) {
  if (hook >> 8 != kGroup) return std::nullopt;
  const kernel::Layout *layout = kernel::find_layout(hook, event.version());
  if (layout == nullptr) return std::nullopt;
  std::optional<Told> told;
  kernel::FieldWalk walk(layout->fields, event.payload(), event.pointer_size());
  const kernel::Field *field = nullptr;
  for (Bytes data; walk.next(field, data);) {
    if (field->role == Role::registry_key) told.emplace().number = kernel::field_value(data);
    if (told && std::string_view(field->name) == "KeyName") told->name = utf8_from_utf16(data);
  }
  return told;
}

} // namespace

std::optional<ObjectName> key_name_of(const EventView &event, std::uint16_t hook, std::int64_t time) {
  if (kernel::scope_of(hook) != kernel::Scope::key_name) return std::nullopt;
  std::optional<Told> told = read(event, hook);
  if (!told || told->number == 0 || told->name.empty()) return std::nullopt;
  using Holds = ObjectName::Holds;
  constexpr std::uint16_t kCreate = 0x0916, kDelete = 0x0917;
  const Holds holds = hook == kCreate ? Holds::from_here : hook == kDelete ? Holds::until_here : Holds::any;
  return ObjectName{told->number, time, std::move(told->name), holds};
}

namespace {

bool append_key_of_hook(const EventView &event, std::uint16_t hook, std::int64_t time,
                        const ObjectNames &keys, std::string &out) {
  const std::optional<Told> told = read(event, hook);
  if (!told) return false;
  const bool whole = told->number == 0 || kernel::scope_of(hook) == kernel::Scope::key_name;
  return append_path(whole, whole ? std::string_view() : keys.find(told->number, time),
                     is_about_value(hook) ? std::string_view() : std::string_view(told->name), out);
}

constexpr std::uint16_t kCreateKey = 1, kOpenKey = 2, kCloseKey = 13, kLastOfKey = 15;

// What the provider's event says; nullopt of others.
struct ProviderTold {
  std::uint64_t base = 0, key = 0;
  std::uint32_t status = 0;
  std::string name; // of an opened one behind `base`, of others nearly always empty
};
std::optional<ProviderTold> read_provider(const EventView &event) {
  if (!event.is_event() || event.provider() != provider::kKernelRegistry) return std::nullopt;
  if (event.id() == 0 || event.id() > kLastOfKey) return std::nullopt;
  const provider::Layout *layout = provider::find_kernel_layout(event);
  if (layout == nullptr) return std::nullopt;
  ProviderTold told;
  bool has_key = false;
  kernel::FieldWalk walk(layout->fields, event.payload(), event.pointer_size());
  const kernel::Field *field = nullptr;
  for (Bytes data; walk.next(field, data);) {
    const std::string_view name = field->name;
    if (name == "BaseObject") told.base = kernel::field_value(data);
    if (name == "KeyObject") told.key = kernel::field_value(data), has_key = true;
    if (name == "Status") told.status = static_cast<std::uint32_t>(kernel::field_value(data));
    if (name == "RelativeName" || name == "KeyName") told.name = utf8_from_utf16(data);
  }
  return has_key ? std::optional(std::move(told)) : std::nullopt;
}

bool opens(const EventView &event) {
  return event.id() == kCreateKey || event.id() == kOpenKey;
}
bool has_opened(const ProviderTold &told) {
  constexpr std::uint32_t kFailed = 0x8000'0000; // NTSTATUS of warnings and errors
  return told.key != 0 && told.status < kFailed;
}

} // namespace

std::optional<OpenedKeys::Event> OpenedKeys::read(const EventView &event, std::int64_t time) {
  std::optional<ProviderTold> told = read_provider(event);
  if (!told || told->key == 0) return std::nullopt;
  if (event.id() == kCloseKey) return Event{time, told->key, 0, {}, true};
  if (!opens(event) || !has_opened(*told)) return std::nullopt;
  return Event{time, told->key, told->base, std::move(told->name), false};
}

ObjectNames OpenedKeys::names(std::size_t memory, bool &all) && {
  constexpr std::size_t kLongest =
      0xFFFF; // Windows has fewer letters; a key that begins at itself has no end
  std::ranges::stable_sort(events_, {}, &Event::time);
  using Holds = ObjectName::Holds;
  ObjectNames names;
  std::unordered_map<std::uint64_t, std::string_view> open; // whole names; empty: not known
  std::string whole;
  for (const Event &event : events_) {
    all = names.memory() <= memory;
    if (!all) break;
    if (event.closes) {
      const auto closed = open.find(event.key);
      names.add(event.key, event.time, closed == open.end() ? std::string_view() : closed->second,
                Holds::until_here);
      if (closed != open.end()) open.erase(closed);
      continue;
    }
    const auto base = open.find(event.base);
    whole.clear();
    if (!append_path(event.base == 0, base == open.end() ? std::string_view() : base->second, event.name,
                     whole) ||
        whole.size() > kLongest)
      whole.clear();
    open[event.key] = names.add(event.key, event.time, whole, Holds::from_here);
  }
  events_ = {};
  names.sort();
  return names;
}

bool append_key_of(const EventView &event, std::int64_t time, const RegistryNames &keys, std::string &out) {
  if (const auto hook = kernel::hook_of(event))
    return append_key_of_hook(event, *hook, time, keys.control_blocks, out);
  const std::optional<ProviderTold> told = read_provider(event);
  if (!told) return false;
  if (opens(event) && !has_opened(*told)) // what was asked for
    return append_path(told->base == 0,
                       told->base == 0 ? std::string_view() : keys.opened.find(told->base, time), told->name,
                       out);
  const std::string_view known = told->key == 0 ? std::string_view() : keys.opened.find(told->key, time);
  if (!known.empty()) return append_path(false, known, {}, out);
  return !opens(event) && told->name.starts_with('\\') && append_path(true, {}, told->name, out);
}

} // namespace etwrelog::pipeline
