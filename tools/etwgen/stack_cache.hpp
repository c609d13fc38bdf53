// Turns the StackWalk events of a slice into what the kernel's stack cache logs instead: references, and
// definitions when a stack leaves the cache. The cache is one for all processors, so this runs serially, in
// order of time.
#pragma once

#include "emitter.hpp"

#include "stacks/stack_cache_sim.hpp"

namespace etwrelog::gen {

class StackCache {
public:
  explicit StackCache(const stacks::StackCacheSim::Options &options);

  // `streams` by processor; `tally` counted their StackWalk events, with owners, and is corrected.
  void rewrite(std::vector<Stream> &streams, Tally &tally);
  // The definitions of all that is left.
  void run_down(Stream &stream, Tally &tally, std::int64_t time);

private:
  struct Walk {
    std::int64_t time;
    std::uint32_t cpu, at, size, number; // number: of the stacks of the slice, by processor
    stacks::StackCacheSim::Kind kind;
    std::uint64_t key;
    std::uint64_t evicted_key;
    std::uint32_t evicted_at, evicted_count; // in definitions_
  };

  unsigned pointer_size_;
  stacks::StackCacheSim cache_;
  std::vector<Walk> walks_;
  std::vector<std::uint64_t> frames_, definitions_;
  Stream spare_;
};

} // namespace etwrelog::gen
