// What other parts of the library ask of a traversal beyond its public Query.
#pragma once

#include "etwrelog/trace.hpp"

namespace etwrelog::pipeline {

// How to read, where the events themselves do not matter.
struct Reading {
  std::optional<std::uint16_t> processor{}; // no buffer of another one
  std::optional<std::uint32_t> process{};   // no event whose header has another one
  // What is wanted from outside the time comes out of an archive's index, where it has a time and an order
  // but no place.
  bool state_from_index = false;
};
// A filter that chooses events by that alone.
[[nodiscard]] Filter reading_filter(const etwrelog::Trace &trace, const Reading &reading);

// The files that a trace is read from, whatever its sources are called: what an output must not be.
[[nodiscard]] std::vector<Input> input_files(const etwrelog::Trace &trace);

// Where an event lies in its file; of a compressed buffer, and of an archive, where its buffer lies.
[[nodiscard]] std::uint64_t file_offset(const etwrelog::Trace &trace, const Position &position);

} // namespace etwrelog::pipeline
