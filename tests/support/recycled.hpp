// Traces as sessions write them: with few buffers, used over and over, so that the bytes between events are
// what stood there before.
#pragma once

#include "tests/support/synthetic_trace.hpp"

#include "etwrelog/event.hpp"

#include <algorithm>
#include <random>

namespace etwrelog::testing {

// Puts into the paddings of `buffers` what was there when `turns` buffers take turns. `fill`: behind its
// events, a buffer's memory is filled as in a file that holds it uncompressed.
inline void recycle_memory(std::vector<SyntheticBuffer> &buffers, std::size_t turns, bool fill) {
  constexpr std::size_t kMost = 1u << 20;
  std::vector<std::vector<std::uint8_t>> memory(turns, std::vector<std::uint8_t>(kMost, 0));
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    std::vector<std::uint8_t> &events = buffers[i].events, &old = memory[i % turns];
    for_each_event(events, [&](const EventView &event, std::int64_t, std::uint32_t at) {
      for (std::size_t p = at + event.size(); p < std::min(align8(at + event.size()), events.size()); ++p)
        events[p] = old[p];
    });
    if (fill) std::ranges::fill(old, format::kFillByte);
    std::ranges::copy(events, old.begin());
  }
}

// Events of all sizes, so that most have padding, in buffers whose memory was used by `turns` in turn; 0: all
// padding is zero.
inline std::vector<std::uint8_t> trace_in_recycled_memory(Codec codec, std::size_t buffers,
                                                          std::size_t turns) {
  SyntheticTrace trace({.buffer_size = 0x2000, .codec = codec});
  static constexpr const char *kFolders[] = {"\\Windows", "\\System32", "\\drivers", "\\en-US",
                                             "\\a.dll",   "\\Fonts",    "\\x",       "\\config"};
  std::mt19937 random(5);
  std::int64_t time = 2'000'000;
  for (std::size_t i = 0; i < buffers; ++i) {
    for (std::size_t used = 0; used < 0x1C00;) {
      std::string name = "\\Device\\HarddiskVolume3";
      for (unsigned n = 1 + random() % 4; n > 0; --n)
        name += kFolders[random() % std::size(kFolders)];
      used += align8(
          trace.event(trace.file_name({time += 100}, 0xFFFF'8000'0000'0000 + random() % 4096 * 64, name))
              .size());
    }
    trace.end_buffer(0);
  }
  if (turns != 0) recycle_memory(trace.closed_buffers(), turns, codec == Codec::none);
  return trace.bytes();
}

} // namespace etwrelog::testing
