// Sets of kinds of events: a bit for each hook, a hash for each provider.
#include "etwrelog/kernel_events.hpp"
#include "etwrelog/select.hpp"

#include <algorithm>

namespace etwrelog {

EventSet &EventSet::add_kernel(std::uint16_t hook) {
  hooks_.resize(0x10000 / 64);
  hooks_[hook >> 6] |= std::uint64_t{1} << (hook & 63);
  return *this;
}

EventSet &EventSet::add_provider(const Guid &provider) {
  providers_[provider].clear();
  if (provider == Guid{}) return *this;
  const auto is_of_class = [&provider](unsigned hook) {
    return kernel::class_guid(static_cast<std::uint16_t>(hook)) == provider;
  };
  if (is_of_class(kernel::kHookImageLoad)) add_kernel(kernel::kHookImageLoad); // which is in another's group
  for (unsigned group = 0; group < 0x100; ++group)
    if (kernel::group_guid(static_cast<std::uint8_t>(group)) == provider)
      for (unsigned hook = group << 8; hook < (group + 1) << 8; ++hook)
        if (is_of_class(hook)) add_kernel(static_cast<std::uint16_t>(hook));
  return *this;
}

EventSet &EventSet::add_event(const Guid &provider, std::uint16_t id) {
  const auto [entry, fresh] = providers_.try_emplace(provider);
  std::vector<std::uint16_t> &ids = entry->second;
  if (!fresh && ids.empty()) return *this; // all of them already
  const auto at = std::ranges::lower_bound(ids, id);
  if (at == ids.end() || *at != id) ids.insert(at, id);
  return *this;
}

bool EventSet::contains_provider(const EventView &event) const {
  const auto found = providers_.find(event.provider());
  if (found == providers_.end()) return false;
  const std::vector<std::uint16_t> &ids = found->second;
  return ids.empty() || std::ranges::binary_search(ids, event.is_classic() ? event.opcode() : event.id());
}

} // namespace etwrelog
