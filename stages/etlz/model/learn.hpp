// Plans for events that no table knows, learnt from some of them.
#pragma once

#include "etlz/model/plan.hpp"

namespace etwrelog::etlz {

// The payload of an event, and the ids in its header (kUnknownId: it has none).
struct Sample {
  Bytes payload;
  std::uint64_t order = 0; // among all events
  std::uint32_t thread = 0, process = 0;
};

// A prefix of numbers, then strings, then the rest, of payloads from all over the segment.
[[nodiscard]] Plan learned_plan(std::span<const Bytes> payloads);

// How the numbers of such a plan hang together: by which of them earlier events are found again, and what
// predicts each. `samples`: events one after the other.
void learn_relations(Plan &plan, std::span<const Sample> samples);

} // namespace etwrelog::etlz
