// Kinds of events by name: looked up in a catalog once, a bit for each schema from then on.
#include "base/errors.hpp"
#include "etwrelog/clr_events.hpp"
#include "etwrelog/schema.hpp"
#include "etwrelog/select.hpp"
#include "filter/targets.hpp"
#include "schema/entry.hpp"
#include "schema/event_names.hpp"

#include <algorithm>
#include <array>
#include <atomic>

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

const schema::EventNames &built_in_names() {
  static const schema::EventNames names;
  return names;
}

// What a kind is called: by its schema, in statistics, and where nobody describes it.
std::array<std::string, 3> names_of(const Schema &schema, const SchemaCatalog &catalog) {
  std::string provider(schema.provider_name);
  if (provider.empty()) provider = catalog.provider_name(schema.provider);
  if (provider.empty()) provider = to_string(schema.provider);
  return {fmt::format("{}/{}", provider, schema.name), built_in_names().name(schema::type_of(schema)),
          schema.classic ? fmt::format("{}/Opcode({})", provider, schema.opcode)
                         : fmt::format("{}/EventID({})", provider, schema.id)};
}

// The same of an event that nobody describes.
std::array<std::string, 2> names_of(const EventView &event, const SchemaCatalog &catalog) {
  std::array<std::string, 2> names;
  catalog.append_name(event, names[0]);
  names[1] = built_in_names().name(type_of(event));
  return names;
}

// Whether a name may be of kinds that are not described, of which a catalog says nothing: a number behind a
// provider that is known, or all of such a provider; or of what describes others.
bool may_be_undescribed(std::string_view name, const SchemaCatalog &catalog) {
  const std::size_t slash = name.rfind('/');
  const std::string_view last = slash == std::string_view::npos ? name : name.substr(slash + 1);
  const bool numbered =
      std::ranges::any_of(std::array{"EventID(*)", "Opcode(*)", "Message(*)", "Hook(*)", "HeaderType(*)",
                                     "ManifestData", "EventInfo", "EventMapInfo"},
                          [last](const char *form) { return filter::matches_wildcard(form, last); });
  if (slash == std::string_view::npos) return numbered;
  if (!numbered && last != "*") return false;
  std::string_view provider = name.substr(0, slash);
  for (;;) {
    if (parse_guid(provider) || !catalog.providers_called(provider).empty()) return true;
    if (schema::same_name(provider, "WPP") || schema::same_name(provider, "Windows Kernel")) return true;
    if (provider.find_first_of("*?") != std::string_view::npos) return true;
    const std::size_t before = provider.find('/'); // the kernel's, in front of its classes
    if (before == std::string_view::npos) return false;
    provider.remove_prefix(before + 1);
  }
}

// Of .NET's kinds the names are known where schemas are not. Some milliseconds.
bool is_clr_name(std::string_view name, const SchemaCatalog &catalog) {
  for (const Guid &provider : {format::kClrGuid, format::kClrPrivateGuid, format::kClrRundownGuid})
    for (unsigned id = 0; id <= 0xFFFF; ++id) {
      const std::string_view event = clr::event_name(provider, static_cast<std::uint16_t>(id));
      if (!event.empty() && fits(name, fmt::format("{}/{}", catalog.provider_name(provider), event)))
        return true;
    }
  return false;
}

} // namespace

struct NamedKinds::Impl {
  Impl(std::span<const std::string> given, const SchemaCatalog &all)
      : names(given.begin(), given.end()), catalog(all), wanted(all.all().size()) {}

  [[nodiscard]] bool any_fits(const EventView &event) const {
    const auto its = names_of(event, catalog);
    return std::ranges::any_of(names, [&its](const std::string &name) {
      return std::ranges::any_of(its, [&name](const std::string &one) { return fits(name, one); });
    });
  }
  [[nodiscard]] bool wants_undescribed(const EventView &event) const;

  std::vector<std::string> names;
  SchemaCatalog catalog;
  std::vector<bool> wanted; // by ordinal
  const std::uint64_t number = next_number++;

  static inline std::atomic<std::uint64_t> next_number = 1;
};

// There is no list of such kinds before the trace is read. Each thread remembers what it has found out last:
// there are few, and a name takes as long to make as many events to read.
bool NamedKinds::Impl::wants_undescribed(const EventView &event) const {
  struct Known {
    std::uint64_t kinds = 0; // Impl::number
    EventType type;
    std::uint8_t opcode = 0;
    bool wanted = false;
  };
  constexpr std::size_t kKnown = 256;
  static thread_local std::array<Known, kKnown> known;
  const EventType type = type_of(event);
  const std::uint8_t opcode = event.opcode();
  Known &mine = known[(type.id * 31 + type.guid.low + opcode) % kKnown];
  if (mine.kinds != number || mine.type != type || mine.opcode != opcode)
    mine = {number, type, opcode, any_fits(event)};
  return mine.wanted;
}

Result<NamedKinds> NamedKinds::find(std::span<const std::string> names, const SchemaCatalog &catalog) {
  NamedKinds found;
  if (names.empty()) return found;
  auto impl = std::make_shared<Impl>(names, catalog);
  std::vector<bool> met(names.size());
  for (const Schema *const schema : impl->catalog.all())
    for (const std::string &name : names_of(*schema, impl->catalog))
      for (std::size_t i = 0; i < names.size(); ++i)
        if (fits(names[i], name)) impl->wanted[schema->ordinal] = met[i] = true;
  for (std::size_t i = 0; i < names.size(); ++i)
    if (!met[i] && !may_be_undescribed(names[i], impl->catalog) && !is_clr_name(names[i], impl->catalog))
      return base::no_match(fmt::format("no kind of event is called \"{}\"", names[i])).about(Option::events);
  found.impl_ = std::move(impl);
  return found;
}

std::span<const std::string> NamedKinds::names() const {
  return impl_ == nullptr ? std::span<const std::string>() : impl_->names;
}

SchemaCatalog NamedKinds::catalog() const {
  return impl_ == nullptr ? SchemaCatalog::builtin() : impl_->catalog;
}

bool NamedKinds::contains(const Schema &kind) const noexcept {
  return impl_ != nullptr && kind.ordinal < impl_->wanted.size() && impl_->wanted[kind.ordinal];
}

bool NamedKinds::contains(const EventView &event) const noexcept {
  if (impl_ == nullptr) return false;
  const Schema *const schema = impl_->catalog.find(event);
  return schema != nullptr ? impl_->wanted[schema->ordinal] : impl_->wants_undescribed(event);
}

} // namespace etwrelog
