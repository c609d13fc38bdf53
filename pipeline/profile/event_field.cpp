#include "profile_pass/event_field.hpp"

#include "base/errors.hpp"
#include "schema/entry.hpp"
#include "schema/event_names.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace etwrelog::pipeline {
namespace {

bool is_number(const Field &field) {
  const bool real = field.type == FieldType::f32 || field.type == FieldType::f64;
  return !field.is_array() && (real || field.is_integer());
}

template <class Visit> void each_field(const Schema &kind, EventField::Of what, Visit &&visit) {
  for (std::size_t i = 0; i < kind.fields.size(); i += 1u + kind.fields[i].members)
    if (what == EventField::Of::anything || is_number(kind.fields[i])) visit(i, kind.fields[i].name);
}

std::optional<std::size_t> find_field(const Schema &kind, EventField::Of what, std::string_view called) {
  std::optional<std::size_t> found, other;
  each_field(kind, what, [&](std::size_t index, std::string_view name) {
    if (!found && schema::same_name(name, called)) found = index;
    if (!other && schema::same_name(schema::other_field_name(name), called)) other = index;
  });
  return found ? found : other;
}

} // namespace

Result<EventField> EventField::make(const NamedKinds &kinds, const std::string &name, Of what,
                                    Option option) {
  EventField field;
  if (kinds.empty() || name.empty())
    return base::no_match("there are no fields but of named events").about(option);
  field.catalog_ = kinds.catalog();
  field.places_.resize(field.catalog_.all().size());
  constexpr std::size_t kMost = 20;
  std::vector<std::string> others; // that there are instead
  for (const Schema *const kind : field.catalog_.all()) {
    if (!kinds.contains(*kind)) continue;
    if (const auto index = find_field(*kind, what, name)) {
      const Field &found = kind->fields[*index];
      const bool first = field.name_.empty();
      if (first) field.name_ = found.name;
      field.is_code_ = (first || field.is_code_) && found.format == Format::address && !found.is_array();
      field.places_[kind->ordinal].emplace(Place{*index, Decoder(*kind, 4), Decoder(*kind, 8)});
      continue;
    }
    each_field(*kind, what, [&others](std::size_t, std::string_view other) {
      if (std::ranges::find(others, other) == others.end() && others.size() < kMost)
        others.emplace_back(other);
    });
  }
  if (!field.name_.empty()) return field;
  Error error = base::no_match(fmt::format("none of these events has {} called \"{}\"",
                                           what == Of::numbers ? "one number" : "a field", name))
                    .about(option);
  if (!others.empty()) error.what += fmt::format("; there are {}", fmt::join(others, ", "));
  return error;
}

std::optional<FieldValue> EventField::of(const EventView &event) const {
  const Schema *const kind = catalog_.find(event);
  if (kind == nullptr || !places_[kind->ordinal]) return std::nullopt;
  const Place &place = *places_[kind->ordinal];
  return fitting_decoder(event, place.narrow, place.wide).field(event.payload(), place.index);
}

std::optional<std::uint64_t> weight_of(const FieldValue &value) {
  std::optional<std::uint64_t> weight = value.integer(); // one below 0 is a very large one
  if (const std::optional<double> real = value.real(); real && *real >= 0 && *real <= kMostWeight)
    weight = static_cast<std::uint64_t>(std::llround(*real));
  return weight && *weight <= kMostWeight ? weight : std::nullopt;
}

} // namespace etwrelog::pipeline
