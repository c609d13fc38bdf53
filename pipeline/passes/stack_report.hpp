// `etwrelog stacks`: how often the stacks of a trace repeat, and what caching them saves.
#pragma once

#include "passes/pass.hpp"
#include "passes/stack_simulation.hpp"
#include "stacks/stack_database.hpp"

#include <map>

namespace etwrelog::pipeline {

struct StackGroup {
  std::uint64_t events = 0, frames = 0, distinct = 0;
};

struct StackReportOptions {
  std::size_t top = 10;
  std::vector<stacks::StackCacheSim::Options> simulate;
  stacks::StackDatabaseWriter *database = nullptr; // gets every reference and the table
  std::size_t memory = std::size_t{1} << 30; // for what grows with the trace; a report that needs more fails
};

struct StackReport {
  // Kernel stacks are those of StackWalk events and references; .NET's and extended items are counted apart.
  std::array<StackGroup, stacks::kStackKinds> kinds{};
  std::map<std::uint32_t, StackGroup> processes; // of all kinds
  std::map<std::uint16_t, StackGroup> processors;
  StackGroup kernel_stacks, all;
  std::uint64_t distinct_frames = 0;
  std::uint64_t definitions = 0, keys = 0, unresolved = 0;

  struct Repeats { // stacks that occur from `least` to 2 * least - 1 times
    std::uint64_t least = 0, stacks = 0, events = 0;
  };
  std::vector<Repeats> repeats;
  struct Depth {
    std::uint64_t events = 0, stacks = 0;
  };
  std::vector<Depth> depths; // by number of frames
  struct Top {
    std::uint64_t count = 0;
    std::vector<std::uint64_t> frames;
  };
  std::vector<Top> top;

  // Of the kernel stacks: event bytes as they stand in the buffers of the trace, all in full, with each stack
  // defined once and referred to, and as a table with references of 20 bytes (stack, time, process, thread).
  std::uint64_t bytes_now = 0, bytes_plain = 0, bytes_cached = 0, bytes_database = 0;
  std::uint64_t item_bytes = 0, clr_bytes = 0;
  std::uint64_t table_bytes = 0; // memory of the stack table

  std::vector<CacheSimulation> simulations;
  std::optional<RecordedCache> recorded;  // when simulating, of a trace that has stack keys
  std::optional<std::size_t> recommended; // in simulations: the smallest setting within 1% of the best
  std::vector<std::string> warnings;
  std::vector<read::Skipped> skipped;
};

[[nodiscard]] Result<StackReport> report_stacks(const Trace &trace, const StackReportOptions &options,
                                                const PassOptions &graph);

} // namespace etwrelog::pipeline
