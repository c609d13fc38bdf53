// Where threads were off the processor, from context switches and readied threads.
#pragma once

#include "etwrelog/profile.hpp"
#include "profile/records.hpp"

#include <map>

namespace etwrelog::profile {

// From one switch away from a thread to the next one to it.
struct Wait {
  std::uint32_t subject = 0; // the switch that ended it, whose stack tells where the thread stood
  std::uint32_t thread = 0;
  std::int64_t out = 0, ready = 0, in = 0; // it waited from `out` to `ready` and was ready until `in`
  std::uint32_t waker = kUnknownId;        // thread that readied it; kUnknownId if switches do not tell
  std::uint16_t processor = 0;             // where it ran before
  std::uint8_t reason = 0;
};

struct Waits {
  std::vector<Wait> waits; // in the order of `in`
  bool whole = true; // nearly all switches are there; else a processor may have run others than they tell
};
// A thread's first switch in the trace ends a wait that began before and is left out.
[[nodiscard]] Waits find_waits(const Records &records);

struct Running { // a stretch that a thread ran
  std::uint32_t thread = 0;
  std::int64_t from = 0, to = 0;
  std::uint16_t processor = 0;
  bool cut_off = false; // at an end of the time that was asked for
};
// The one thread that samples met on a processor; kUnknownId where there were several.
using SampledThreads = std::map<std::uint16_t, std::uint32_t>;
[[nodiscard]] SampledThreads find_sampled(const Records &records);

// From switch to switch. Also what ran on a processor before its first switch and behind its last, cut off at
// the ends of `cut`, unless these are kBeginning and kForever; between two such ends, on a processor without
// any switch, the one of `sampled`.
[[nodiscard]] std::vector<Running> find_running(const Records &records, const SampledThreads &sampled,
                                                TimeRange cut);

} // namespace etwrelog::profile
