#include "profile.hpp"

#include <algorithm>

namespace etwrelog::gen {
namespace {

constexpr double kMB = 1e6, kGB = 1e9;

// Found by measuring: change a number only with `etwgen --check-calibration` at hand.
const Profile kProfiles[] = {
    {.name = "smallf",
     .filtered = true,
     .processes = 2,
     .slice_s = 2.0,
     .busy_burst_us = 6000,
     .idle_burst_us = 150000,
     .hot_threads = 2,
     .kernel_share = 0.25,
     .user_part = 0.95,
     .ready = 0.3,
     .wait_varies = 0.05,
     .user = {.stay = 0.93, .revisit = 0.9, .same_leaf = 0.7, .base_exponent = 1.2, .leaf_exponent = 1.8, .depth = 18},
     .kernel = {.stay = 0.9, .revisit = 0.9, .same_leaf = 0.7, .base_exponent = 1.3, .leaf_exponent = 1.8, .depth = 9},
     .other = {.page_fault = 30, .hard_fault = 2, .file = 10, .disk = 4, .virtual_memory = 6, .trace_logging = 4},
     .epoch_s = 8,
     .starts_per_s = 0,
     .thread_starts_per_s = 0.2,
     .published = Published{378, 36.68 * kMB, 31.04 * kMB, 175'806, 6'487, 0.1783, 0.1569, 0.0622, 0.0569}},
    {.name = "medium",
     .slice_s = 0.1,
     .busy_burst_us = 300,
     .idle_burst_us = 350,
     .idle_share = 0.4,
     .kernel_share = 0.35,
     .ready = 0.9,
     .other = {.dpc = 1000, .isr = 600, .page_fault = 1500, .hard_fault = 20, .file = 500, .disk = 60, .tcp = 200,
               .virtual_memory = 300, .trace_logging = 300, .event_source = 300, .manifest = 200, .clr = 100, .wpp = 50},
     .published = Published{108, 1.63 * kGB, 1.16 * kGB, 7'872'190, 294'291, 0.1834, 0.1594, 0.1096, 0.0550}},
    {.name = "largef",
     .filtered = true,
     .processes = 2,
     .slice_s = 0.5,
     .busy_burst_us = 8000,
     .idle_burst_us = 2000,
     .hot_threads = 3,
     .kernel_share = 0.7,
     .user_part = 0.95,
     .ready = 0.3,
     .user = {.stay = 0.9, .revisit = 0.85, .same_leaf = 0.6, .base_exponent = 1.15, .leaf_exponent = 1.6, .depth = 12},
     .kernel = {.stay = 0.88, .revisit = 0.85, .same_leaf = 0.6, .base_exponent = 1.2, .leaf_exponent = 1.6, .depth = 9},
     .other = {.page_fault = 30, .hard_fault = 2, .file = 10, .disk = 4, .virtual_memory = 6, .trace_logging = 4},
     .starts_per_s = 0,
     .thread_starts_per_s = 1,
     .published = Published{1820, 4.04 * kGB, 3.46 * kGB, 24'094'783, 517'148, 0.1756, 0.1512, 0.1057, 0.0604}},
    {.name = "real",
     .slice_s = 0.1,
     .busy_burst_us = 350,
     .idle_burst_us = 900,
     .idle_share = 0.55,
     .kernel_share = 0.3,
     .ready = 0.7,
     .other = {.dpc = 900, .isr = 500, .page_fault = 1500, .hard_fault = 40, .file = 800, .disk = 120, .tcp = 300,
               .virtual_memory = 400, .trace_logging = 900, .event_source = 900, .manifest = 700, .clr = 900, .wpp = 100},
     .starts_per_s = 3,
     .thread_starts_per_s = 10,
     .published = std::nullopt},
};

} // namespace

std::span<const Profile> all_profiles() { return kProfiles; }

const Profile *find_profile(std::string_view name) {
  const auto found = std::ranges::find(kProfiles, name, &Profile::name);
  return found == std::end(kProfiles) ? nullptr : &*found;
}

} // namespace etwrelog::gen
