// Events of the .NET runtime providers, and of script engines, that concern stacks and symbols. Constants and
// functions of them: no state, any thread; names live as long as the program. Offsets and sizes are in bytes,
// from the begin of the payload.
#pragma once

#include "etwrelog/format.hpp"

#include <string_view>

namespace etwrelog::clr {

// Microsoft-JScript: Chakra's manifest. V8's events share provider, ids and layouts.
inline constexpr Guid kScriptGuid = make_guid(0x57277741, 0x3638, 0x4a4b, 0xbdba, 0x0ac6e45da56c);

// .NET's own stack event: u16 ClrInstanceID, u8, u8, u32 frame count, pointers. It belongs to the CLR event
// before it on the same thread.
inline constexpr std::uint16_t kStackWalkId = 82;
inline constexpr std::size_t kStackFramesAt = 8;

// The two providers of the runtime behind whose events stand stacks.
[[nodiscard]] constexpr bool is_runtime(const Guid &provider) {
  return provider == format::kClrGuid || provider == format::kClrRundownGuid;
}
[[nodiscard]] constexpr bool is_stack(const Guid &provider, std::uint16_t id) {
  return id == kStackWalkId && is_runtime(provider);
}

// Whether the event says where code lies or what it is called: methods, modules, assemblies, domains, IL
// maps, the runtime itself; methods and sources of scripts. The same id means different things on the two
// providers of .NET; both ranges are covered whole.
[[nodiscard]] constexpr bool names_code(const Guid &provider, std::uint16_t id) {
  if (provider == format::kClrGuid)
    return (id >= 141 && id <= 144) || (id >= 151 && id <= 157) || id == 187 || id == 190;
  if (provider == kScriptGuid) return id == 5 || id == 6 || id == 9 || id == 10 || (id >= 39 && id <= 41);
  return provider == format::kClrRundownGuid && id != kStackWalkId;
}

// Methods that come and go while the trace runs: load and unload of the runtime provider, with or without
// names.
[[nodiscard]] constexpr bool is_method_load(const Guid &provider, std::uint16_t id) {
  return provider == format::kClrGuid && (id == 141 || id == 143);
}
[[nodiscard]] constexpr bool is_method_unload(const Guid &provider, std::uint16_t id) {
  return provider == format::kClrGuid && (id == 142 || id == 144);
}
// Methods listed by a rundown.
[[nodiscard]] constexpr bool is_method_rundown(const Guid &provider, std::uint16_t id) {
  return provider == format::kClrRundownGuid && id >= 141 && id <= 144;
}
// Their payloads begin alike: u64 MethodID, u64 ModuleID, u64 MethodStartAddress, u32 MethodSize, u32
// MethodToken, u32 MethodFlags.
inline constexpr std::size_t kMethodIdAt = 0, kMethodStartAt = 16, kMethodSizeAt = 24, kMethodFlagsAt = 32,
                             kMethodFixedSize = 36;
inline constexpr std::uint32_t kMethodJitted = 0x8;

// "Method/LoadVerbose" as PerfView shows it behind the provider's name; empty if not in the table.
[[nodiscard]] std::string_view event_name(const Guid &provider, std::uint16_t id);

} // namespace etwrelog::clr
