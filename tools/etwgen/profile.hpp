// The profiles: what the simulated machine does how often, and the published figures that each has to meet.
#pragma once

#include "rng.hpp"

#include <optional>
#include <span>
#include <string_view>

namespace etwrelog::gen {

// One row of the study of three traces by which the generator is calibrated. Sizes are in 10^6 and 10^9
// bytes.
struct Published {
  double duration_s, size, stack_bytes;
  double stack_events, distinct_stacks;
  double lznt1_whole, lznt1_stacks, deflate, lzma; // compressed size over size
};

// Events beside samples, switches and their stacks, per second of CPU time that is not idle.
struct OtherRates {
  double dpc = 0, isr = 0, page_fault = 0, hard_fault = 0, file = 0, disk = 0, tcp = 0, virtual_memory = 0,
         trace_logging = 0, event_source = 0, manifest = 0, clr = 0, wpp = 0, registry = 0;
};

// How one kind of stacks varies. A stack is a base (a path through the call graph) and a leaf (the last few
// calls). A thread has a small set of bases that it returns to; the rest is drawn from the whole graph.
struct StackModel {
  double stay = 0.9;      // the base of the stack before
  double revisit = 0.9;   // of changes: to one of the thread's bases; else to any base
  double same_leaf = 0.6; // while the base stays
  double base_exponent = 1.2, leaf_exponent = 1.6;
  unsigned base_octaves = 36, leaf_octaves = 20; // 2^n - 1 bases of a graph, leaves of a base at most
  double depth = 12;                             // mean frames of a base
  double leaf_depth = 1.6;                       // mean frames of a leaf
};

struct Profile {
  std::string_view name;
  bool filtered = false; // holds one process and what a filter keeps around it
  std::uint32_t processes = 60, cpus = 8;
  double slice_s = 0.1;          // unit of work; about 1 MB of events
  double busy_burst_us = 300;    // mean time that a thread runs before it is switched out
  double idle_burst_us = 500;    // mean time of idle (filtered: of other processes) in between
  double idle_share = 0.4;       // of threads switched out that leave the processor idle (filtered: all)
  std::uint32_t hot_threads = 4; // threads that share a processor for the length of a slice
  double kernel_share = 0.3;     // of samples taken in kernel mode
  double user_part = 0.9;        // kernel stacks that get a user part later
  double switch_stacks = 1;      // context switches with stacks
  double ready = 0.8;            // switches announced by a ReadyThread event
  double wait_varies = 0.1;      // switches whose stack is not the thread's usual wait
  StackModel user{}, kernel{};
  OtherRates other{};
  double other_burst = 20; // other events come in rows of one kind, of this mean length
  double epoch_s = 1;      // how long a thread keeps one of its bases
  double starts_per_s = 1, thread_starts_per_s = 4;
  double sample_jitter = 24; // ticks around the nominal millisecond
  double walk_ticks = 60;    // mean time from an event to its stack, beyond the shortest possible
  std::optional<Published> published{};
};

[[nodiscard]] const Profile *find_profile(std::string_view name);
[[nodiscard]] std::span<const Profile> all_profiles();

inline constexpr std::int64_t kTicksPerSecond = 10'000'000; // QPC of current Windows versions

} // namespace etwrelog::gen
