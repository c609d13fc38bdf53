// The profile of a trace: one pass, the joining of its stacks, the tables.
#pragma once

#include "etwrelog/profile.hpp"
#include "passes/pass.hpp"

namespace etwrelog::pipeline {

using etwrelog::ProfileOptions;
using etwrelog::ProfileResult;

// Several traces are of one machine and boot; the profile begins with the one that began first.
[[nodiscard]] Result<ProfileResult> make_profile(Traces traces, const ProfileOptions &options,
                                                 const PassOptions &graph);
[[nodiscard]] Result<ProfileResult> make_profile(const Trace &trace, const ProfileOptions &options,
                                                 const PassOptions &graph);

} // namespace etwrelog::pipeline
