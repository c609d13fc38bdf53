// Payload layouts of events that are no kernel events but make up much of real traces: the CLR's code and
// stack events and the image identities that KernelTraceControl adds when it merges; and all that the
// built-in schemas describe. Made of the built-in schemas (schema.hpp); the sibling of kernel_events.hpp.
//
// As there: any thread, results live as long as the program, null where nothing is known, no errors; a
// look-up hashes the GUID and id and allocates nothing once the tables are made.
#pragma once

#include "etwrelog/kernel_events.hpp"

namespace etwrelog::provider {

// The kernel's own manifest providers, which need no kernel logger.
inline constexpr Guid kKernelProcess =
    make_guid(0x22fb2cd6, 0x0e7b, 0x422b, 0xa0c7, 0x2fad1fd0e716); // Microsoft-Windows-Kernel-Process
inline constexpr Guid kKernelFile =
    make_guid(0xedd08927, 0x9cc4, 0x4e65, 0xb970, 0xc2560fb5c289); // Microsoft-Windows-Kernel-File
inline constexpr Guid kKernelNetwork =
    make_guid(0x7dd42a49, 0x5329, 0x4832, 0x8dfd, 0x43d979153a88); // Microsoft-Windows-Kernel-Network
inline constexpr Guid kKernelRegistry =
    make_guid(0x70eb4f03, 0xc1de, 0x4f73, 0xa051, 0x33d13d5413bd); // Microsoft-Windows-Kernel-Registry

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
// Of an event of one of the kernel's own providers, of exactly this version.
[[nodiscard]] const Layout *find_kernel_layout(const EventView &event);
[[nodiscard]] std::span<const Layout> all_layouts();

} // namespace etwrelog::provider
