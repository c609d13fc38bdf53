// One processor for the length of one slice: who runs, what is sampled, which stacks follow, what else
// happens.
#pragma once

#include "emitter.hpp"

namespace etwrelog::gen {

// The samplers of a profile, made once.
struct Dice {
  explicit Dice(const Profile &profile);

  struct Stacks {
    Chance leave, revisit, same_leaf;
    Zipf base, leaf;
    double depth, leaf_depth;
  };
  Stacks user, kernel;
  Chance idle_next, kernel_mode, user_part, switch_stacks, ready, wait_varies;
  std::int64_t busy_ticks, idle_ticks, other_ticks, epoch_ticks, jitter_ticks, walk_ticks;
  std::int64_t burst;       // mean number of other events in a row
  std::vector<Kind> others; // 256 slots by weight
};

class CpuSlice {
public:
  CpuSlice(const Machine &machine, const Dice &dice, const SlicePlan &plan, std::uint32_t cpu,
           BaseCache &cache, Emitter &out);
  void run();

private:
  struct Voice { // the stacks of one thread in one mode
    const CallGraph *graph = nullptr;
    const Dice::Stacks *dice = nullptr;
    std::uint64_t seed = 0, base = 0, leaf = 0;
  };
  struct Runner {
    const Thread *thread = nullptr;
    Voice user, kernel, wait;
    bool visible = false; // its events are in the trace
  };
  struct Stack { // what a draw came to; valid until the next one
    const Base *base = nullptr;
    std::uint64_t leaf[kMaxLeaf];
    unsigned leaves = 0;
    std::uint64_t hash = 0;
    [[nodiscard]] std::uint64_t top() const { return leaves != 0 ? leaf[0] : base->frames[0]; }
  };
  struct Pending { // a user part that waits for its thread to get back to user mode
    std::int64_t due, event_time;
  };
  struct Completion {
    std::int64_t due, started;
    std::uint64_t irp, file, offset;
    std::uint32_t size, tid;
    bool write;
    const Process *process;
  };

  Runner make_runner(const ThreadRef &thread);
  std::uint64_t member(const Voice &voice, unsigned slot) const;
  void draw(Voice &voice, Stack &stack);
  void draw_wait(Voice &voice, Stack &stack);
  void write_stack(const Thread &thread, std::int64_t event_time, std::int64_t time, const Stack &stack);
  void kernel_and_user(std::int64_t event_time, std::int64_t time, const Stack &kernel);
  void flush_pending(std::int64_t upto);
  void switch_to(Runner *next, std::int64_t time);
  Runner *choose_next();
  void take_sample(std::int64_t time);
  void other_event(std::int64_t time);
  void file_event(Rng &same, std::int64_t time);
  void registry_event(Rng &same, std::int64_t time);
  void drop_key(std::int64_t time);
  void finish_disk(std::int64_t time);
  void act(const Action &action);
  void start_process(const Action &action);

  const Machine &machine_;
  const Dice &dice_;
  const SlicePlan &plan_;
  std::uint32_t cpu_;
  BaseCache &cache_;
  Emitter &out_;
  Rng rng_;
  std::vector<Runner> runners_; // first: idle, or whoever is not in a filtered trace
  Runner *current_ = nullptr;
  std::vector<Pending> pending_;
  std::vector<Completion> disk_;
  std::string open_key_; // of the registry, by its whole name; empty: none
  Kind burst_kind_{};
  std::uint32_t burst_left_ = 0;
  std::uint64_t burst_seed_ = 0;
  std::uint64_t switch_leaf_[4];
};

} // namespace etwrelog::gen
