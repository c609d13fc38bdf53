// Joined records become the tables of a Profile: whose each sample is, and its stack as a path in a tree.
#pragma once

#include "etwrelog/clock.hpp"
#include "etwrelog/profile.hpp"
#include "profile/methods.hpp"
#include "profile/records.hpp"
#include "profile/timeline.hpp"

#include <stop_token>

namespace etwrelog::profile {

struct BuildOptions {
  bool idle = false;   // keep the samples of the Idle process
  bool slices = false; // what each thread did when
  ProfileKind kind = ProfileKind::cpu;
  TimeRange time = kAlways;         // of what the records tell; raw
  TimeRange cut = kAlways;          // where slices are cut off; the extremes where the trace itself ends
  std::string leaf;                 // what stands in front of Records::leaf_texts
  const Methods *methods = nullptr; // of runtimes; null: names are not asked for
  std::stop_token stop{};           // what is in the profile by then is of no use
};

// The frames of Fragment::stack, innermost first.
using ReadFrames = std::function<void(std::uint32_t stack, std::vector<std::uint64_t> &frames)>;

// Three threads of `parallel` are made use of; read_frames is called by one at a time. Fills everything but
// what the header of the trace tells (Profile::trace, start_time, duration, processors, losses) and
// ProfileAccounting::lent_user_halves. Takes the records, which must be joined, apart.
void build(Records &records, const Clock &clock, const ReadFrames &read_frames, const BuildOptions &options,
           const ParallelFor &parallel, Profile &profile);

} // namespace etwrelog::profile
