// The profile of a trace: one pass, the joining of its stacks, the tables.
#pragma once

#include "etwrelog/profile.hpp"
#include "passes/pass.hpp"

#include <map>
#include <string>

namespace etwrelog::pipeline {

struct ProfileOptions {
  ProfileKind kind = ProfileKind::cpu;
  bool idle = false;   // keep the samples of the Idle process
  bool slices = false; // what each thread did when, from context switches
  bool names = false;  // of code that runtimes made; for native code see the symbol engine
};

struct ProfileResult {
  Profile profile;
  std::map<std::string, std::uint64_t> events; // by kind: what the trace has
  std::uint64_t unreadable = 0;                // stack events and samples that are too short
  PassResult pass;
};

[[nodiscard]] Result<ProfileResult> make_profile(const Trace &trace, const ProfileOptions &options,
                                                 const PassOptions &graph, StepTimes *times = nullptr);

} // namespace etwrelog::pipeline
