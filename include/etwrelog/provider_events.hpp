// Payload layouts of events that are no kernel events but make up much of real traces: the CLR's code and
// stack events and the image identities that KernelTraceControl adds when it merges. Made of the built-in
// schemas (schema.hpp); the sibling of kernel_events.hpp.
//
// As there: any thread, results live as long as the program, null where nothing is known, no errors; a
// look-up hashes the GUID and id and allocates nothing once the tables are made.
#pragma once

#include "etwrelog/kernel_events.hpp"

namespace etwrelog::provider {

struct Layout {
  Guid provider;                         // or class GUID
  std::uint16_t id;                      // of a classic event its opcode
  std::uint16_t min_version;             // applies from this version on, until a later row takes over
  std::span<const kernel::Field> fields; // an event may end before its last fields: they are absent then
  const char *name;
};

// Of an event of the CLR or an image identity; null where nothing is known. A version older than all that are
// known is taken for the oldest.
[[nodiscard]] const Layout *find_layout(const EventView &event);
// Of any provider, or class and opcode, among the built-in schemas.
[[nodiscard]] const Layout *find_layout(const Guid &provider, std::uint16_t id, std::uint16_t version);
[[nodiscard]] std::span<const Layout> all_layouts();

} // namespace etwrelog::provider
