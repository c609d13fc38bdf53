#include "filter/rules.hpp"

#include "etwrelog/provider_events.hpp"

#include <algorithm>

namespace etwrelog::filter {
namespace {

using kernel::Role;

FieldOffsets compile(std::span<const kernel::Field> fields, unsigned pointer_size) {
  auto at = [&](Role role) {
    const auto offset = kernel::fixed_offset(fields, role, pointer_size);
    return offset ? static_cast<std::uint16_t>(*offset) : FieldOffsets::kAbsent;
  };
  FieldOffsets offsets;
  offsets.process_id = at(Role::process_id);
  offsets.thread_id = at(Role::thread_id);
  offsets.new_thread = at(Role::new_thread_id);
  offsets.old_thread = at(Role::old_thread_id);
  offsets.event_time = at(Role::event_time);
  offsets.stack_key = at(Role::stack_key);
  offsets.file_object = at(Role::file_object);
  offsets.file_key = at(Role::file_key);
  offsets.registry_key = at(Role::registry_key);
  offsets.image_base = at(Role::image_base);
  offsets.frames = at(Role::frames);
  return offsets;
}

struct Table : HookRules {
  Table() {
    for (const kernel::Scope scope : {kernel::Scope::header, kernel::Scope::always}) {
      HookRule unknown;
      unknown.scope = scope;
      rows.push_back(unknown);
    }
    // What is not known goes by its group.
    for (unsigned group = 0; group < 0x10000; group += 0x100) {
      unsigned hook = group;
      while (hook < group + 0xFF && kernel::find_hook(static_cast<std::uint16_t>(hook)) != nullptr)
        ++hook;
      const bool always = kernel::scope_of(static_cast<std::uint16_t>(hook)) == kernel::Scope::always;
      std::fill_n(first.begin() + group, 0x100, static_cast<std::uint16_t>(always ? 1 : 0));
    }
    auto add = [this](std::uint16_t hook, const kernel::Layout *layout) {
      HookRule rule;
      rule.hook = hook;
      rule.scope = kernel::scope_of(hook);
      if (layout) {
        rule.has_layout = true;
        rule.min_version = layout->min_version;
        rule.narrow = compile(layout->fields, 4);
        rule.wide = compile(layout->fields, 8);
      }
      rows.push_back(rule);
    };
    const auto layouts = kernel::all_layouts();
    for (const kernel::HookInfo &info : kernel::all_hooks()) {
      first[info.hook] = static_cast<std::uint16_t>(rows.size());
      for (std::size_t i = layouts.size(); i-- > 0;)
        if (layouts[i].hook == info.hook) add(info.hook, &layouts[i]);
      add(info.hook, nullptr); // versions older than every layout
    }
  }
};

} // namespace

const HookRules &hook_rules() {
  static const Table table;
  return table;
}

const HookRule *rule_of_class(const EventView &event) {
  const auto hook = kernel::hook_of_classic(event);
  return hook ? &rule_for(*hook, event.version()) : nullptr;
}

const ImageIdRules &image_id_rules() {
  static const ImageIdRules table = [] {
    ImageIdRules all{};
    for (unsigned op = 0; op < 256; ++op)
      if (const provider::Layout *layout =
              provider::find_layout(format::kImageIdGuid, static_cast<std::uint16_t>(op), 0))
        for (const unsigned size : {4u, 8u})
          all[size / 8][op] = compile(layout->fields, size);
    return all;
  }();
  return table;
}

} // namespace etwrelog::filter
