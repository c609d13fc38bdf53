// Records of compiled methods out of the events of .NET and of script engines.
#pragma once

#include "profile_pass/event_records.hpp"

namespace etwrelog::pipeline {

// Whether events of the provider may tell of code.
[[nodiscard]] bool tells_of_code(const Guid &provider);
void add_code(const EventView &event, profile::Instant at, StateRecords &records);

} // namespace etwrelog::pipeline
