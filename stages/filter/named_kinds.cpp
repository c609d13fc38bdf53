// Kinds of events by name: looked up in a catalog once, a bit for each schema from then on.
#include "base/errors.hpp"
#include "etwrelog/clr_events.hpp"
#include "etwrelog/schema.hpp"
#include "etwrelog/select.hpp"
#include "filter/targets.hpp"
#include "schema/event_names.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace etwrelog {
namespace {

// The whole of a name, or what stands behind one of its slashes.
bool fits(std::string_view pattern, std::string_view name) {
  while (!filter::matches_wildcard(pattern, name)) {
    const std::size_t slash = name.find('/');
    if (slash == std::string_view::npos) return false;
    name.remove_prefix(slash + 1);
  }
  return true;
}

// What a kind is called: by its schema, and in statistics.
std::array<std::string, 2> names_of(const Schema &schema, const SchemaCatalog &catalog) {
  static const schema::EventNames built_in;
  const std::string_view known =
      schema.provider_name.empty() ? catalog.provider_name(schema.provider) : schema.provider_name;
  const EventType type = schema.classic
                             ? EventType{Family::classic, schema.version, schema.opcode, schema.provider}
                             : EventType{Family::event, schema.version, schema.id, schema.provider};
  return {fmt::format("{}/{}", known.empty() ? to_string(schema.provider) : std::string(known), schema.name),
          built_in.name(type)};
}

} // namespace

struct NamedKinds::Impl {
  Impl(std::span<const std::string> given, const SchemaCatalog &all)
      : names(given.begin(), given.end()), catalog(all), wanted(all.all().size()) {}

  std::vector<std::string> names;
  SchemaCatalog catalog;
  std::vector<bool> wanted; // by ordinal
  EventSet undescribed;     // of .NET, whose names are known where schemas are not
};

Result<NamedKinds> NamedKinds::find(std::span<const std::string> names, const SchemaCatalog &catalog) {
  NamedKinds found;
  if (names.empty()) return found;
  auto impl = std::make_shared<Impl>(names, catalog);
  std::vector<bool> met(names.size());
  for (const Schema *const schema : impl->catalog.all())
    for (const std::string &name : names_of(*schema, impl->catalog))
      for (std::size_t i = 0; i < names.size(); ++i)
        if (fits(names[i], name)) impl->wanted[schema->ordinal] = met[i] = true;
  // Some milliseconds, once.
  for (const Guid &provider : {format::kClrGuid, format::kClrPrivateGuid, format::kClrRundownGuid})
    for (unsigned id = 0; id <= 0xFFFF; ++id) {
      const auto number = static_cast<std::uint16_t>(id);
      const std::string_view event = clr::event_name(provider, number);
      if (event.empty()) continue;
      const std::string name = fmt::format("{}/{}", impl->catalog.provider_name(provider), event);
      for (std::size_t i = 0; i < names.size(); ++i)
        if (fits(names[i], name)) {
          impl->undescribed.add_event(provider, number);
          met[i] = true;
        }
    }
  if (const auto unmet = std::ranges::find(met, false); unmet != met.end())
    return base::no_match(fmt::format("no kind of event is called \"{}\"", names[unmet - met.begin()]))
        .about(Option::events);
  found.impl_ = std::move(impl);
  return found;
}

std::span<const std::string> NamedKinds::names() const {
  return impl_ == nullptr ? std::span<const std::string>() : impl_->names;
}

bool NamedKinds::contains(const EventView &event) const noexcept {
  if (impl_ == nullptr) return false;
  const Schema *const schema = impl_->catalog.find(event);
  if (schema != nullptr) return impl_->wanted[schema->ordinal];
  return event.is_event() && !impl_->undescribed.empty() && impl_->undescribed.contains(event);
}

} // namespace etwrelog
