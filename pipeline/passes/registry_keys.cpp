#include "passes/registry_keys.hpp"

#include "etwrelog/text.hpp"

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

bool append_key_of(const EventView &event, std::uint16_t hook, std::int64_t time, const ObjectNames &keys,
                   std::string &out) {
  const std::optional<Told> told = read(event, hook);
  if (!told) return false;
  const bool whole = told->number == 0 || kernel::scope_of(hook) == kernel::Scope::key_name;
  std::string_view begin = whole ? std::string_view() : keys.find(told->number, time);
  const std::string_view rest = is_about_value(hook) ? std::string_view() : std::string_view(told->name);
  if ((whole ? rest : begin).empty()) return false;
  while (begin.ends_with('\\'))
    begin.remove_suffix(1);
  out += begin;
  if (!begin.empty() && !rest.empty() && !rest.starts_with('\\')) out += '\\';
  out += rest;
  return true;
}

} // namespace etwrelog::pipeline
