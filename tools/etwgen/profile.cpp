#include "profile.hpp"

#include <algorithm>

namespace etwrelog::gen {
namespace {

constexpr double kMB = 1e6, kGB = 1e9;

// Found by measuring: change a number only with `etwgen --check-calibration` at hand.
//
// The published figures allow little. A stack event that repeats the one before it already costs LZNT1 some
// 13% (a match has at most 18 bytes in the second half of a 4 KB chunk, two time stamps break it), so nearly
// all stacks must repeat within a chunk, while LZMA's figure asks for some five unpredictable bytes an event.
// Hence: long runs of one base, instruction pointers that change within one function, walk times that vary.
const Profile kProfiles[] = {
    // One stack a sample, hardly anything else: other events have 32 bytes a stack, the size of a sample.
    {.name = "smallf",
     .filtered = true,
     .processes = 2,
     .slice_s = 2.0,
     .busy_burst_us = 100'000,
     .idle_burst_us = 1'600'000,
     .hot_threads = 1,
     .kernel_share = 0.03,
     .user_part = 0.5,
     .switch_stacks = 0,
     .ready = 0.3,
     .wait_varies = 0.05,
     .user = {.stay = 0.965,
              .revisit = 1,
              .same_leaf = 0.05,
              .base_exponent = 1.5,
              .leaf_exponent = 0.7,
              .leaf_octaves = 7,
              .depth = 15.5,
              .leaf_depth = 1},
     .kernel = {.stay = 0.9,
                .revisit = 0.9,
                .same_leaf = 0.7,
                .base_exponent = 1.3,
                .leaf_exponent = 1.8,
                .depth = 9},
     .other = {.page_fault = 3, .file = 2, .disk = 1, .virtual_memory = 1, .trace_logging = 1},
     .other_burst = 8,
     .epoch_s = 8,
     .starts_per_s = 0,
     .thread_starts_per_s = 0.2,
     .walk_ticks = 400,
     .published = Published{378, 36.68 * kMB, 31.04 * kMB, 175'806, 6'487, 0.1783, 0.1569, 0.0622, 0.0569}},
    // Samples and switches with stacks, user-mode providers in between. The 73,000 stacks a second of the
    // study need
    // many processors when each is sampled once a millisecond.
    {.name = "medium",
     .cpus = 40,
     .slice_s = 0.1,
     .busy_burst_us = 3000,
     .idle_burst_us = 400,
     .idle_share = 1,
     .hot_threads = 1,
     .kernel_share = 0.3,
     .ready = 0.15,
     .wait_varies = 0.01,
     .user = {.stay = 0.992,
              .revisit = 0.5,
              .same_leaf = 0.75,
              .base_exponent = 1.03,
              .leaf_exponent = 0.8,
              .leaf_octaves = 4,
              .depth = 12,
              .leaf_depth = 1},
     .kernel = {.stay = 0.992,
                .revisit = 0.5,
                .same_leaf = 0.75,
                .base_exponent = 1.03,
                .leaf_exponent = 0.8,
                .leaf_octaves = 4,
                .depth = 9.5,
                .leaf_depth = 1},
     .other = {.dpc = 10,
               .isr = 5,
               .page_fault = 20,
               .hard_fault = 1,
               .file = 10,
               .disk = 2,
               .tcp = 10,
               .virtual_memory = 10,
               .trace_logging = 50,
               .event_source = 20,
               .manifest = 20,
               .clr = 5,
               .wpp = 1},
     .other_burst = 30,
     .walk_ticks = 40,
     .published = Published{108, 1.63 * kGB, 1.16 * kGB, 7'872'190, 294'291, 0.1834, 0.1594, 0.1096, 0.0550}},
    // A process that keeps ten processors busy, a third of the time in the kernel: then a sample has two
    // stacks.
    {.name = "largef",
     .filtered = true,
     .processes = 2,
     .cpus = 12,
     .slice_s = 0.5,
     .busy_burst_us = 60'000,
     .idle_burst_us = 13'000,
     .hot_threads = 1,
     .kernel_share = 0.33,
     .user_part = 0.98,
     .switch_stacks = 0,
     .ready = 0.3,
     .user = {.stay = 0.985,
              .revisit = 0.95,
              .same_leaf = 0.3,
              .base_exponent = 1.05,
              .leaf_exponent = 0.8,
              .leaf_octaves = 4,
              .depth = 12,
              .leaf_depth = 1},
     .kernel = {.stay = 0.985,
                .revisit = 0.95,
                .same_leaf = 0.3,
                .base_exponent = 1.05,
                .leaf_exponent = 0.8,
                .leaf_octaves = 4,
                .depth = 8.2,
                .leaf_depth = 1},
     .other = {.page_fault = 3, .file = 2, .disk = 1, .virtual_memory = 6, .trace_logging = 1},
     .other_burst = 20,
     .epoch_s = 4,
     .starts_per_s = 0,
     .thread_starts_per_s = 1,
     .walk_ticks = 400,
     .published =
         Published{1820, 4.04 * kGB, 3.46 * kGB, 24'094'783, 517'148, 0.1756, 0.1512, 0.1057, 0.0604}},
    // Everything that a system-wide trace has, on a common desktop machine. Not published anywhere, so not
    // calibrated.
    {.name = "real",
     .slice_s = 0.1,
     .busy_burst_us = 350,
     .idle_burst_us = 900,
     .idle_share = 0.55,
     .kernel_share = 0.3,
     .ready = 0.7,
     .user = {.stay = 0.97,
              .revisit = 0.8,
              .same_leaf = 0.6,
              .base_exponent = 1.1,
              .leaf_exponent = 0.9,
              .leaf_octaves = 6,
              .depth = 13},
     .kernel = {.stay = 0.97,
                .revisit = 0.8,
                .same_leaf = 0.6,
                .base_exponent = 1.1,
                .leaf_exponent = 0.9,
                .leaf_octaves = 6,
                .depth = 9},
     .other = {.dpc = 900,
               .isr = 500,
               .page_fault = 1500,
               .hard_fault = 40,
               .file = 800,
               .disk = 120,
               .tcp = 300,
               .virtual_memory = 400,
               .trace_logging = 900,
               .event_source = 900,
               .manifest = 700,
               .clr = 900,
               .wpp = 100,
               .registry = 500},
     .starts_per_s = 3,
     .thread_starts_per_s = 10,
     .published = std::nullopt},
};

} // namespace

std::span<const Profile> all_profiles() {
  return kProfiles;
}

const Profile *find_profile(std::string_view name) {
  const auto found = std::ranges::find(kProfiles, name, &Profile::name);
  return found == std::end(kProfiles) ? nullptr : &*found;
}

} // namespace etwrelog::gen
