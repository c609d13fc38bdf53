// Plays the kernel's stack cache over a trace's stacks while they are counted. The kernel has one cache, so
// its order is that of time over all processors, while buffers hold one processor each: stacks wait until no
// later buffer can hold an earlier one.
#pragma once

#include "etwrelog/stacks.hpp"
#include "stacks/stack_cache_sim.hpp"
#include "stacks/stack_definitions.hpp"

#include <optional>
#include <queue>
#include <vector>

namespace etwrelog::pipeline {

using etwrelog::CacheSimulation;
using etwrelog::RecordedCache;

class StackTimeline {
public:
  // `recorded`: compare with what Windows logged.
  StackTimeline(const std::vector<stacks::StackCacheSim::Options> &settings, bool recorded,
                unsigned pointer_size);

  // In any order. `reference`: Windows logged the stack as one.
  void add(stacks::Place place, stacks::StackId stack, bool reference) {
    waiting_.push({place, stack, reference});
  }
  // Plays what is before this time: nothing earlier will be added.
  void play(std::int64_t before, const stacks::StackTable &table);
  void play_rest(const stacks::StackTable &table);

  [[nodiscard]] std::vector<CacheSimulation> results() const;
  [[nodiscard]] std::optional<RecordedCache> recorded() const; // definitions left to the caller
  [[nodiscard]] std::size_t memory() const;

private:
  struct Moment {
    stacks::Place place;
    stacks::StackId stack;
    bool reference;
    bool operator<(const Moment &other) const { return other.place < place; } // the earliest on top
  };
  struct Player {
    stacks::StackCacheSim cache;
    CacheSimulation so_far; // without the cache's own counts
    [[nodiscard]] CacheSimulation result() const;
  };
  static void play(Player &player, stacks::Frames frames, unsigned pointer_size);
  void play_next(const stacks::StackTable &table);

  std::vector<Player> players_;
  std::optional<Player> at_end_, at_front_;
  std::uint64_t references_ = 0;
  std::priority_queue<Moment> waiting_;
  std::vector<std::uint64_t> frames_;
};

} // namespace etwrelog::pipeline
