// `relog --stacks cache|expand`: turns the stack events of a relog into references and definitions, or back.
//
// In parallel, each buffer's stacks are looked up and its stack events replaced, in place unless the events
// grow; references get their keys in file order, where also the definitions find their place: in front of a
// buffer whose processor has got past the last reference, or at the very end.
#pragma once

#include "etwrelog/event_type.hpp"
#include "passes/stack_collect.hpp"
#include "stacks/stack_events.hpp"
#include "stacks/stack_keys.hpp"
#include "write/buffers.hpp"

#include <mutex>

namespace etwrelog::pipeline {

enum class StackMode : std::uint8_t {
  keep,
  cache,        // StackWalk events become references and definitions
  cache_native, // the same, but stacks with a frame in JIT-compiled code stay in full
  expand,       // references become StackWalk events, definitions vanish
};

struct StackOptions {
  StackMode mode = StackMode::keep;
  std::uint64_t window = 4'000'000; // references that may wait for their definition
  std::size_t memory = std::size_t{512}
                       << 20; // for distinct stacks; beyond it all keys are defined and forgotten
  // As much again for the input's definitions. These have to be known before their references are met, so
  // there is no going on without; but a bound that is only meant to make the table start over shall not
  // forbid a few.
  [[nodiscard]] std::size_t for_definitions() const { return std::max(memory, std::size_t{64} << 20); }
};

// How many more events of a kind go out than came in, and their bytes without padding.
struct StackRewriteDifference {
  EventType type;
  std::int64_t events = 0, bytes = 0;
};

struct StackRewriteCounts { // events, in and out
  std::uint64_t walks_in = 0, references_in = 0, definitions_in = 0;
  std::uint64_t walks_out = 0, references_out = 0, definitions_out = 0;
  std::uint64_t unresolved = 0;                          // references without a definition: left as they are
  std::uint64_t restarts = 0;                            // of the stack table, for lack of memory
  std::uint64_t event_bytes_out = 0, event_bytes_in = 0; // of the events passed through, padding excluded
  std::vector<StackRewriteDifference> differences;       // each kind once
  void differ(const EventType &type, std::int64_t events, std::int64_t bytes);
  void add(const StackRewriteCounts &other);
};

class StackRewriter {
public:
  // `collected`: the inventory is the trace's; without, there must be no stack keys in it (Part::met_key
  // tells).
  StackRewriter(const StackOptions &options, StackInventory inventory, bool collected);
  StackRewriter(const StackRewriter &) = delete;
  StackRewriter &operator=(const StackRewriter &) = delete;

  // A rewritten buffer.
  struct Buffer {
    struct Use { // a reference that waits for its key
      std::uint32_t key_at;
      stacks::StackId stack;
      std::int64_t time;
      std::uint8_t pointer_size;
    };
    MutableBytes events;          // in the memory of the buffer that was rewritten, or in `grown`
    std::vector<write::Run> runs; // all of `events`, or none
    std::vector<Use> uses;
    std::vector<std::uint8_t> grown;
    std::int64_t first_time = 0;
    bool changed = false;
  };
  // What becomes of a stack event.
  struct Change {
    enum class Kind : std::uint8_t { reference_kernel, reference_user, walk, drop };
    EventView event;
    std::int64_t time;
    const stacks::KeyDefinition *definition; // of a reference in the input
    std::uint32_t size;                      // of what replaces the event, padding excluded
    Kind kind;
  };
  // One batch's scratch, reused.
  struct Part {
    std::shared_ptr<stacks::StackTable> table;
    std::vector<Buffer> buffers;
    std::vector<stacks::StackId> moved; // stacks of `table` in the current table, once they differ
    // Of one buffer:
    std::vector<Change> changes;
    std::vector<stacks::StackQuery> queries;
    std::vector<stacks::StackId> ids;
    std::vector<std::uint64_t> frames,
        stack; // of stacks that cannot be looked up where they stand; one of them
    std::vector<std::pair<std::size_t, std::size_t>> copied; // query -> where in `frames` its stack begins
    StackRewriteCounts counts;
    bool met_key = false; // a reference or definition
    stacks::JitCode jit;
  };

  // Any thread. `source` is overwritten; Part's buffer `i` refers to its memory.
  void begin(Part &part, std::size_t buffers) const;
  void rewrite(const DecodedBuffer &source, std::span<const write::Run> runs, Part &part,
               std::size_t i) const;

  // Serial, buffers in file order. Fills in the keys; `definitions` gets the events to write in front of the
  // buffer.
  void order(std::uint16_t processor, Part &part, std::size_t i, std::vector<std::uint8_t> &definitions,
             write::Run &run);
  // After each batch.
  void end_batch(Part &part);
  // Some of the definitions left over, behind everything, for the processor that `processor` is set to; none
  // at last.
  void finish(std::vector<std::uint8_t> &definitions, write::Run &run, std::uint16_t &processor);

  [[nodiscard]] bool collected() const { return collected_; }
  [[nodiscard]] const StackRewriteCounts &counts() const { return counts_; }
  // When all is finished: what the user should know.
  [[nodiscard]] std::vector<std::string> warnings();

private:
  // What to do with one stack event: appends to part.changes, unless it stays.
  void plan(const EventView &event, stacks::StackEventKind kind, std::int64_t time, stacks::Place place,
            Part &part) const;
  void plan_reference(Change &change, bool kernel, stacks::Frames frames, Part &part) const;
  void plan_walk(Change &change, Part &part) const;
  [[nodiscard]] bool in_jit_code(stacks::Frames frames) const;
  void look_up(Part &part) const;
  void apply(const DecodedBuffer &source, std::span<const write::Run> runs, Part &part, Buffer &buffer) const;
  void append_definitions(std::uint16_t hook, std::vector<std::uint8_t> &out, write::Run &run);

  const StackOptions options_;
  StackInventory inventory_;
  const bool collected_;
  mutable std::mutex switching_; // guards table_
  std::shared_ptr<stacks::StackTable> table_;
  std::optional<stacks::StackKeys> keys_;
  std::vector<bool> seen_;              // by stack of table_, since the last restart
  std::uint64_t seen_bytes_ = 0;        // what they are reckoned to need
  std::vector<std::int64_t> last_time_; // by processor
  std::int64_t latest_ = std::numeric_limits<std::int64_t>::min();
  std::uint16_t latest_processor_ = 0;
  std::vector<stacks::StackKeys::Definition> due_;
  std::vector<std::uint64_t> frames_;
  StackRewriteCounts counts_;
};

} // namespace etwrelog::pipeline
