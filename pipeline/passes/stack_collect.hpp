// What has to be known of a trace's stacks before its events can be looked at one by one: the definitions of
// stack keys, which stand behind the references to them.
#pragma once

#include "passes/pass.hpp"
#include "stacks/jit_code.hpp"
#include "stacks/stack_definitions.hpp"

#include <unordered_set>

namespace etwrelog::pipeline {

struct StackInventory {
  std::shared_ptr<stacks::StackTable> table =
      std::make_shared<stacks::StackTable>(); // of the definitions' frames
  stacks::StackDefinitions definitions;
  stacks::JitCode jit;
  // Where keys stand that are none of Windows, but of this program, which are odd: some may have lost their
  // definition. Only these can be given again.
  std::unordered_set<std::uint64_t> made_keys; // shifted by kKeyBlockBits
  static constexpr unsigned kKeyBlockBits = 16;
  [[nodiscard]] bool is_taken(std::uint64_t key) const { return made_keys.contains(key >> kKeyBlockBits); }
  // By number of a buffer, counted over all traces: the time of its earliest StackWalk event or reference;
  // kNoStackTime if it has none.
  std::vector<std::int64_t> first_stack;
  static constexpr std::int64_t kNoStackTime = std::numeric_limits<std::int64_t>::max();

  [[nodiscard]] std::size_t memory() const {
    return table->memory().total() + definitions.memory() + jit.memory() +
           made_keys.size() * 4 * sizeof(std::uint64_t) + first_stack.capacity() * sizeof(std::int64_t);
  }
};

// What comes of more than `limit` bytes for `what`: there is no result with less that would be exact.
[[nodiscard]] Error too_little_stack_memory(const std::string &what, std::size_t limit);

// The order of an event among those of equal time: one processor's events are in file order.
[[nodiscard]] inline stacks::Place place_of(std::int64_t time, const DecodedBuffer &buffer,
                                            std::uint32_t at) {
  return {time, std::uint64_t{buffer.index} << 32 | at};
}

// One pass over each trace; fails when it needs more than `memory` bytes. Definitions that references in user
// events or in a trace's first buffer need are marked.
[[nodiscard]] Result<StackInventory> collect_stacks(Traces traces, const PassOptions &options,
                                                    PassResult &result, std::size_t memory);

} // namespace etwrelog::pipeline
