// Traces for targets that follow what events say of each other: images, their identities, code that runtimes
// list, samples, stacks, requests, names of files and keys of the registry, of any content.
#pragma once

#include "etwrelog/clr_events.hpp"
#include "etwrelog/provider_events.hpp"
#include "tests/support/synthetic_trace.hpp"

#include <algorithm>
#include <iterator>
#include <limits>

namespace etwrelog::fuzz {

inline constexpr std::uint16_t kHooks[] = {
    0x0F2E, 0x1820, 0x1823, 0x1824, 0x1825, 0x1826,                         // samples, stacks
    0x0301, 0x0302, 0x0303, 0x0501, 0x0502, 0x0503, 0x0548,                 // processes, threads
    0x030A, 0x1402, 0x1403, 0x1404, 0x140A,                                 // images
    0x0524, 0x0532, 0x0F48, 0x0F49, 0x0F44,                                 // switches, intervals, interrupts
    0x010A, 0x010B, 0x010C, 0x010D, 0x010E, 0x010F, 0x0220, 0x0400, 0x0440, // disks, names of files
};
static_assert(std::size(kHooks) <= 32); // as many as the number of an event tells apart
inline constexpr std::uint16_t kMoreHooks[] = {0x090B, 0x090E, 0x0911, 0x0916, 0x0917, 0x0919, // the registry
                                               0x020B, 0x0262, 0x060B};                        // of who ran
inline constexpr std::uint16_t kProcess[] = {1, 2, 3, 15}, kFile[] = {10, 11, 12, 15},
                               kRegistry[] = {1, 2, 5, 13}; // of the kernel's providers
inline constexpr std::uint16_t kClr[] = {141, 142, 143, 144, 152, 190, 10, 82},
                               kRundown[] = {143, 144, 149, 150, 153, 154},
                               kScript[] = {5, 6, 9, 10, 39, 40, 41};

// A little later or earlier; or at times of which not all have a difference.
inline std::int64_t moved(std::int64_t time, std::uint8_t step) {
  using Limits = std::numeric_limits<std::int64_t>;
  constexpr std::int64_t kFar[] = {Limits::max(), Limits::min(), Limits::max() - 1, 0};
  if (step >= 0xF0) return kFar[step % std::size(kFar)];
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(time) + step % 16 - 2); // may wrap
}

// One event: what it is, its version, the time since the one before, the size of its payload; the payload.
inline void emit(testing::SyntheticTrace &trace, std::int64_t time, std::uint8_t what, std::uint8_t version,
                 Bytes payload) {
  const std::uint32_t pid = payload.empty() ? 8 : payload[0] % 3 * 4;
  if (what % 8 == 1 && (version & 0x40) != 0) { // with a stack of its own
    using format::ItemType;
    constexpr ItemType kStacks[] = {ItemType::stack_trace32, ItemType::stack_trace64, ItemType::stack_key32,
                                    ItemType::stack_key64};
    trace.manifest_event({time, static_cast<std::uint16_t>(what / 8 % 2)},
                         {.provider = format::kClrGuid, .id = 10}, 80, pid, {},
                         {{kStacks[version % 4], {payload.begin(), payload.end()}}});
    return;
  }
  trace.emit({time, static_cast<std::uint16_t>(what % 2)}, [&](write::EventBuilder &e) {
    const auto id_of = [&](auto &ids) { return ids[what / 8 % std::size(ids)]; };
    const bool more = (version & 0x80) != 0;
    const std::uint16_t hook = more ? id_of(kMoreHooks) : id_of(kHooks);
    const auto event = [&](const Guid &provider, std::uint16_t id) {
      write::EventFields fields;
      fields.provider = provider;
      fields.id = id;
      fields.version = version % 4;
      e.event(fields, 8, 80, pid, time);
    };
    switch (what % 8) {
    case 0: e.classic(format::kImageIdGuid, what / 8 % 2 == 0 ? 0 : 36, version % 4, 8, 80, pid, time); break;
    case 1: event(format::kClrGuid, id_of(kClr)); break;
    case 2: event(format::kClrRundownGuid, id_of(kRundown)); break;
    case 3: event(clr::kScriptGuid, id_of(kScript)); break;
    case 4: e.perfinfo(hook, version % 5, 8, time); break;
    case 5:
      if (!more)
        event(format::kKernelEventTracingGuid, 18); // a part of a stack that is written later
      else if (what / 128 != 0)
        event(provider::kKernelRegistry, id_of(kRegistry));
      else if (what / 64 != 0)
        event(provider::kKernelFile, id_of(kFile));
      else
        event(provider::kKernelProcess, id_of(kProcess));
      break;
    default: e.system(hook, version % 5, 8, 80, pid, time); break;
    }
    e.bytes(payload);
  });
}

// Of each event: what it is, its version, the time since the one before, the size of its payload; the
// payload.
inline std::vector<std::uint8_t> trace_of(Bytes rest) {
  testing::SyntheticTrace trace;
  trace.process_rundown({1'000'001}, 8, 4, "game.exe");
  trace.thread_rundown({1'000'002}, 80, 8);
  std::int64_t time = 2'000'000;
  while (rest.size() >= 4) {
    const std::size_t length = std::min<std::size_t>(rest[3], rest.size() - 4);
    time = moved(time, rest[2]);
    emit(trace, time, rest[0], rest[1], rest.subspan(4, length));
    rest = rest.subspan(4 + length);
  }
  return trace.bytes();
}

} // namespace etwrelog::fuzz
