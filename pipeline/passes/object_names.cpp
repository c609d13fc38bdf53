#include "passes/object_names.hpp"

#include "etwrelog/provider_events.hpp"
#include "etwrelog/text.hpp"

#include <algorithm>

namespace etwrelog::pipeline {

using kernel::Role;

namespace {

std::optional<ObjectName> read(std::span<const kernel::Field> fields, const EventView &event,
                               std::int64_t time) {
  ObjectName told;
  told.time = time;
  bool has_object = false;
  kernel::FieldWalk walk(fields, event.payload(), event.pointer_size());
  const kernel::Field *field = nullptr;
  for (Bytes data; walk.next(field, data);) {
    if (field->role == Role::file_object || (field->role == Role::file_key && !has_object)) {
      told.number = kernel::field_value(data);
      has_object = true;
    }
    if (field->role == Role::file_name || std::string_view(field->name) == "OpenPath")
      told.name = utf8_from_utf16(data);
  }
  if (told.number == 0 || told.name.empty()) return std::nullopt;
  return told;
}

} // namespace

std::optional<ObjectName> file_name_of(const EventView &event, std::uint16_t hook, std::int64_t time) {
  constexpr std::uint16_t kCreate = 0x0440;
  if (hook >> 8 != 0x04) return std::nullopt;
  if (hook != kCreate && kernel::scope_of(hook) != kernel::Scope::file_name) return std::nullopt;
  const kernel::Layout *layout = kernel::find_layout(hook, event.version());
  return layout == nullptr ? std::nullopt : read(layout->fields, event, time);
}

std::optional<ObjectName> file_name_of_provider(const EventView &event, std::int64_t time) {
  constexpr std::uint16_t kNameCreate = 10, kNameDelete = 11, kCreate = 12, kCreateNewFile = 30;
  if (!event.is_event() || event.provider() != provider::kKernelFile) return std::nullopt;
  const std::uint16_t id = event.id();
  if (id != kNameCreate && id != kNameDelete && id != kCreate && id != kCreateNewFile) return std::nullopt;
  const provider::Layout *layout = provider::find_kernel_layout(event);
  return layout == nullptr ? std::nullopt : read(layout->fields, event, time);
}

std::string_view ObjectNames::add(std::uint64_t number, std::int64_t time, std::string_view name,
                                  ObjectName::Holds holds) {
  const std::size_t known = names_.all().size();
  const std::uint32_t kept = names_.number(name);
  if (kept == known) letters_ += name.size();
  told_.push_back({number, time, kept, holds});
  return names_[kept];
}

void ObjectNames::sort() {
  std::ranges::stable_sort(told_, {}, &Told::place);
}

std::string_view ObjectNames::find(std::uint64_t number, std::int64_t time) const {
  using Holds = ObjectName::Holds;
  const auto after = std::ranges::upper_bound(told_, std::pair(number, time), {}, &Told::place);
  if (after != told_.begin())
    if (const Told &before = *std::prev(after);
        before.number == number && (before.holds != Holds::until_here || before.time == time))
      return names_[before.name];
  if (after != told_.end() && after->number == number && after->holds != Holds::from_here)
    return names_[after->name];
  return {};
}

std::size_t ObjectNames::memory() const {
  constexpr std::size_t kName = 128; // the tables' share
  return told_.size() * sizeof(Told) + names_.all().size() * kName + letters_;
}

} // namespace etwrelog::pipeline
