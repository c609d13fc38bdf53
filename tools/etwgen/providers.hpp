// The user-mode providers of the simulated machine: one of each kind that Windows knows.
#pragma once

#include "emitter.hpp"

namespace etwrelog::gen {

inline constexpr Guid kTraceLoggingProvider = make_guid(0x7c1a2f30, 0x51c4, 0x5d0e, 0x8a11, 0x3f90c6a2b7d4);
inline constexpr Guid kEventSourceProvider = make_guid(0x7094c77f, 0xc1bf, 0x559e, 0x96a1, 0xe70cbc0ef69d);
inline constexpr Guid kManifestProvider = make_guid(0x1c95126e, 0x7eea, 0x49a9, 0xa3fe, 0xa378b03ddb4d);
inline constexpr Guid kWppProvider = make_guid(0x93a1c0de, 0x0f21, 0x4b7c, 0x9d55, 0x00a1b2c3d4e5);
inline constexpr Guid kMarkClass = make_guid(0xce1dbfb4, 0x137e, 0x4da6, 0x87b0, 0x3f59aa102cbc);

// Where the values of an event come from: `same` starts anew with every event of a burst, so that they are
// about one thing, as a thread that emits many events in a row mostly is.
struct Draw {
  Rng same;
  Rng &fresh;
};

// Each writes one whole event of a thread.
void write_trace_logging(Emitter &out, Draw draw, const Thread &thread, std::int64_t time);
void write_event_source(Emitter &out, Draw draw, const Thread &thread, std::int64_t time);
void write_event_source_manifest(Emitter &out, const Thread &thread, std::int64_t time);
// With a stack as extended item when `frames` is not empty.
void write_manifest(Emitter &out, Draw draw, const Thread &thread, std::int64_t time,
                    std::span<const std::uint64_t> frames);
void write_clr_method(Emitter &out, const Thread &thread, const Method &method, std::int64_t time);
void write_clr_gc(Emitter &out, Draw draw, const Thread &thread, std::int64_t time);
void write_clr_stack(Emitter &out, const Thread &thread, std::int64_t time,
                     std::span<const std::uint64_t> frames);
void write_wpp(Emitter &out, Draw draw, const Thread &thread, std::int64_t time);
void write_clr_rundown(Emitter &out, const Process &process, std::uint32_t tid, std::int64_t time);

} // namespace etwrelog::gen
