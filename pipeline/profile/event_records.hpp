// Records of processes, threads, images and code out of the events that tell of them. These are few.
#pragma once

#include "profile/methods.hpp"
#include "profile/records.hpp"

namespace etwrelog::pipeline {

struct StateRecords {
  std::vector<profile::ProcessRecord> processes;
  std::vector<profile::ThreadRecord> threads;
  std::vector<profile::ThreadName> thread_names;
  std::vector<profile::ImageRecord> images;
  std::vector<profile::IdentityRecord> identities;
  std::vector<profile::IntervalRecord> intervals;
  profile::Methods::Events code;

  void clear();
  void append(StateRecords &&later);
  // When all are there: what a provider tells goes where the kernel logger tells it, too.
  void settle();
};

// `hook`: of the event, also of a classic one that stands for a hook.
void add_kernel_state(const EventView &event, std::uint16_t hook, profile::Instant at, StateRecords &records);
// Of an event without a hook, if it tells of any.
void add_state_of_provider(const EventView &event, profile::Instant at, StateRecords &records);
void add_identity(const EventView &event, profile::Instant at,
                  StateRecords &records); // of format::kImageIdGuid

} // namespace etwrelog::pipeline
