#include "profile_pass/field_sum.hpp"

#include "base/errors.hpp"
#include "schema/entry.hpp"
#include "schema/event_names.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace etwrelog::pipeline {
namespace {

bool is_number(const Field &field) {
  const bool real = field.type == FieldType::f32 || field.type == FieldType::f64;
  return !field.is_array() && (real || field.is_integer());
}

template <class Visit> void each_number(const Schema &kind, Visit &&visit) {
  for (std::size_t i = 0; i < kind.fields.size(); i += 1u + kind.fields[i].members)
    if (is_number(kind.fields[i])) visit(i, kind.fields[i].name);
}

std::optional<std::size_t> find_number(const Schema &kind, std::string_view field) {
  std::optional<std::size_t> found, other;
  each_number(kind, [&](std::size_t index, std::string_view name) {
    if (!found && schema::same_name(name, field)) found = index;
    if (!other && schema::same_name(schema::other_field_name(name), field)) other = index;
  });
  return found ? found : other;
}

} // namespace

Result<FieldSum> FieldSum::make(const NamedKinds &kinds, const std::string &field) {
  FieldSum sum;
  if (kinds.empty() || field.empty())
    return base::no_match("there is no number to add up but of named events").about(Option::sum);
  sum.catalog_ = kinds.catalog();
  sum.places_.resize(sum.catalog_.all().size());
  constexpr std::size_t kMost = 20;
  std::vector<std::string> numbers; // that there are instead
  for (const Schema *const kind : sum.catalog_.all()) {
    if (!kinds.contains(*kind)) continue;
    if (const auto index = find_number(*kind, field)) {
      if (sum.field_.empty()) sum.field_ = kind->fields[*index].name;
      sum.places_[kind->ordinal].emplace(Place{*index, Decoder(*kind, 4), Decoder(*kind, 8)});
    } else {
      each_number(*kind, [&numbers](std::size_t, std::string_view name) {
        if (std::ranges::find(numbers, name) == numbers.end() && numbers.size() < kMost)
          numbers.emplace_back(name);
      });
    }
  }
  if (!sum.field_.empty()) return sum;
  Error error = base::no_match(fmt::format("none of these events has one number called \"{}\"", field))
                    .about(Option::sum);
  if (!numbers.empty()) error.what += fmt::format("; there are {}", fmt::join(numbers, ", "));
  return error;
}

std::optional<std::uint64_t> FieldSum::of(const EventView &event) const {
  constexpr std::uint64_t kMost = 1'000'000'000'000'000; // so that sums of them keep within 64 bits
  const Schema *const kind = catalog_.find(event);
  if (kind == nullptr || !places_[kind->ordinal]) return std::nullopt;
  const Place &place = *places_[kind->ordinal];
  const Decoder &decoder = fitting_decoder(event, place.narrow, place.wide);
  const std::optional<FieldValue> value = decoder.field(event.payload(), place.index);
  if (!value) return std::nullopt;
  std::optional<std::uint64_t> weight = value->integer(); // one below 0 is a very large one
  if (const std::optional<double> real = value->real(); real && *real >= 0 && *real <= kMost)
    weight = static_cast<std::uint64_t>(std::llround(*real));
  return weight && *weight <= kMost ? weight : std::nullopt;
}

} // namespace etwrelog::pipeline
