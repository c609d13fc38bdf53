// The fields that the library knows of an event without a trace's own schemas.
#pragma once

#include "etwrelog/provider_events.hpp"

namespace etwrelog::testing {

// Empty where nothing is known.
inline std::span<const kernel::Field> known_fields(const EventView &event) {
  if (event.has_hook()) {
    const kernel::Layout *layout = kernel::find_layout(event.hook(), event.version());
    return layout != nullptr ? layout->fields : std::span<const kernel::Field>();
  }
  const provider::Layout *layout = provider::find_layout(event);
  return layout != nullptr ? layout->fields : std::span<const kernel::Field>();
}

} // namespace etwrelog::testing
