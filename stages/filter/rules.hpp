// The kernel event table compiled for speed: one look-up by hook gives the scope and the offsets of the
// fields that a filter looks at.
#pragma once

#include "etwrelog/kernel_events.hpp"

#include <array>
#include <vector>

namespace etwrelog::filter {

// Offsets of identity fields in a payload of one layout and pointer size; kAbsent where there is none.
struct FieldOffsets {
  static constexpr std::uint16_t kAbsent = 0xFFFF;
  std::uint16_t process_id = kAbsent, thread_id = kAbsent, new_thread = kAbsent, old_thread = kAbsent;
  std::uint16_t event_time = kAbsent, stack_key = kAbsent, file_object = kAbsent, file_key = kAbsent;
  std::uint16_t registry_key = kAbsent;
  std::uint16_t image_base = kAbsent, frames = kAbsent;

  // Reads one, if the payload reaches that far.
  [[nodiscard]] static std::optional<std::uint32_t> u32(Bytes payload, std::uint16_t at) {
    if (at == kAbsent || payload.size() < at + std::size_t{4}) return std::nullopt;
    return load<std::uint32_t>(payload.data() + at);
  }
  [[nodiscard]] static std::optional<std::int64_t> i64(Bytes payload, std::uint16_t at) {
    if (at == kAbsent || payload.size() < at + std::size_t{8}) return std::nullopt;
    return load<std::int64_t>(payload.data() + at);
  }
  [[nodiscard]] static std::optional<std::uint64_t> pointer(Bytes payload, std::uint16_t at,
                                                            unsigned pointer_size) {
    if (at == kAbsent || payload.size() < at + std::size_t{pointer_size}) return std::nullopt;
    return load_pointer(payload.data() + at, pointer_size);
  }
};

struct HookRule {
  std::uint16_t hook = 0; // 0 of one that the table does not name
  kernel::Scope scope = kernel::Scope::header;
  std::uint8_t min_version = 0;
  bool has_layout = false;
  FieldOffsets narrow, wide; // for pointer size 4 and 8

  [[nodiscard]] const FieldOffsets &offsets(unsigned pointer_size) const {
    return pointer_size == 8 ? wide : narrow;
  }
  // Where an event has numbers of what others name: of files and registry keys.
  [[nodiscard]] std::array<std::uint16_t, 3> named(unsigned pointer_size) const {
    const FieldOffsets &at = offsets(pointer_size);
    return {at.file_object, at.file_key, at.registry_key};
  }
  [[nodiscard]] bool refers_to_names(unsigned pointer_size) const {
    for (const std::uint16_t at : named(pointer_size))
      if (at != FieldOffsets::kAbsent) return true;
    return false;
  }
};

[[nodiscard]] constexpr bool is_stack(kernel::Scope scope) {
  return scope == kernel::Scope::stack_walk || scope == kernel::Scope::stack_reference;
}

// All rows, the newest version of a hook first; `first` maps a hook to its first row. Rows 0 and 1 are for
// hooks that the table does not name.
struct HookRules {
  std::vector<HookRule> rows;
  std::array<std::uint16_t, 0x10000> first{};
};
[[nodiscard]] const HookRules &hook_rules();

// The rule for a hook event's payload version. Inline: asked some times of every event.
[[nodiscard]] inline const HookRule &rule_for(std::uint16_t hook, std::uint16_t version) {
  static const HookRules &rules = hook_rules();
  const HookRule *rule = rules.rows.data() + rules.first[hook];
  while (rule->has_layout && rule->min_version > version)
    ++rule;
  return *rule;
}

// Of kernel events with a classic header, as consumers get them and may pass them on
// (kernel::hook_of_classic); null of other classic events.
[[nodiscard]] const HookRule *rule_of_class(const EventView &event);

// Of kernel events, whatever their header is; null of others.
[[nodiscard]] inline const HookRule *rule_of(const EventView &event) {
  if (event.has_hook()) return &rule_for(event.hook(), event.version());
  return event.is_classic() ? rule_of_class(event) : nullptr;
}

// Whether the header of a kernel event says who caused it. A classic one has room for that in any case.
[[nodiscard]] inline bool says_causer(const EventView &event) {
  return event.has_ids() &&
         (event.has_hook() || event.thread_id() != kUnknownId || event.process_id() != kUnknownId);
}

[[nodiscard]] inline bool is_sample(const EventView &event) {
  if (event.has_hook()) return event.hook() == kernel::kHookSample;
  if (!event.is_classic()) return false;
  const HookRule *const rule = rule_of_class(event);
  return rule != nullptr && rule->hook == kernel::kHookSample;
}

// Of the image-identity events of KernelTraceControl, for pointer size 4 and 8, by opcode; all offsets are
// absent where the opcode is not known.
using ImageIdRules = std::array<std::array<FieldOffsets, 256>, 2>;
[[nodiscard]] const ImageIdRules &image_id_rules();

[[nodiscard]] inline const FieldOffsets &image_id_offsets(std::uint8_t opcode, unsigned pointer_size) {
  static const ImageIdRules &rules = image_id_rules();
  return rules[pointer_size / 8][opcode];
}

// Of classic events: whether they say what machine and session it was.
[[nodiscard]] inline bool describes_system(const Guid &provider) {
  return provider == format::kSysConfigGuid || provider == format::kWinSatGuid ||
         provider == format::kEventTraceGuid;
}

} // namespace etwrelog::filter
