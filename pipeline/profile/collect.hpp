// One pass over each trace that takes out of it what a profile needs.
#pragma once

#include "etwrelog/profile.hpp"
#include "passes/pass.hpp"
#include "profile/methods.hpp"
#include "profile/records.hpp"
#include "profile/timeline.hpp"
#include "profile_pass/event_field.hpp"
#include "stacks/stack_table.hpp"

#include <map>

namespace etwrelog::pipeline {

struct CollectOptions {
  ProfileKind kind = ProfileKind::cpu; // samples, context switches, or `events`
  NamedKinds events{};
  EventField sum{}, leaf{}; // of these: what they weigh, and what is the innermost frame of their stacks
  std::optional<Clock>
      durations{};                 // instead of `sum`: they weigh how long what they end took, in nanoseconds
  std::vector<EventField> files{}; // instead of `leaf`, two at most: these number a file, whose name it is
  bool methods = false;            // names of code that runtimes made
  bool switches = false;           // context switches too, for what threads did when
  profile::TimeRange time =
      profile::kAlways; // of samples, switches and other events that stacks belong to; raw
};

struct Collected {
  profile::Records records;
  std::shared_ptr<stacks::StackTable> stacks = std::make_shared<stacks::StackTable>(); // of Fragment::stack
  profile::Methods::Events code;
  std::map<std::string, std::uint64_t> events; // by kind: what the trace has, for who finds no samples in it
  std::uint64_t unreadable = 0;                // stack events and samples that are too short
  std::uint64_t weightless = 0;                // events without what is to be added up
  PassResult pass;
};

// Several traces are of one machine and boot, and taken one after the other.
[[nodiscard]] Result<Collected> collect_profile(Traces traces, const CollectOptions &collect,
                                                const PassOptions &options);

} // namespace etwrelog::pipeline
