// Providers that have a name of their own: those that matter for stacks and symbols, and the kernel's groups.
// A table that never changes: any thread, names live as long as the program. A look-up goes through all of
// it: not for every event.
#pragma once

#include "etwrelog/guid.hpp"

#include <optional>
#include <string_view>

namespace etwrelog {

// Empty if the provider is not in the table.
[[nodiscard]] std::string_view provider_name(const Guid &guid);
// Without regard to case.
[[nodiscard]] std::optional<Guid> provider_by_name(std::string_view name);

} // namespace etwrelog
