// Keys for stacks, in the order of a trace: what makes references and definitions out of plain stacks.
//
// A stack gets a key at its first use and keeps it for a window of references; then its definition is due,
// and the next use gets a new key. No key value is ever used twice, nor in another trace but by rare chance,
// so a definition only has to come later in time than the last of its references. A reader has to hold about
// a window of references that wait for their definition. Serial; the results depend on the order of calls
// alone.
#pragma once

#include "stacks/stack_table.hpp"

#include <deque>
#include <functional>
#include <memory>
#include <queue>
#include <vector>

namespace etwrelog::stacks {

class StackKeys {
public:
  struct Options {
    std::uint64_t window = 4'000'000; // references between a stack's first use and its definition
    std::function<bool(std::uint64_t)>
        taken; // key values that mean something else in the trace; may be empty
  };
  struct Definition {
    std::uint64_t key = 0;
    std::int64_t time = 0;
    std::shared_ptr<StackTable> table; // where to read the stack
    StackId stack = kNoStack;
  };

  StackKeys(Options options, std::shared_ptr<StackTable> table);

  // The key for a reference to the stack, at this time on any processor. `pointer_size`: of the key.
  [[nodiscard]] std::uint64_t use(StackId stack, std::int64_t time, unsigned pointer_size);

  // Ahead of use(), so that it need not wait for memory.
  void fetch(StackId stack) const {
    if (stack < live_.size()) __builtin_prefetch(&live_[stack]);
  }

  // Moves the definitions that can stand in one processor's stream between two events to `out`, in order of
  // time: later than all their references, not before the event at `previous` nor after the one at `next`. At
  // most `limit`: the rest stays due.
  void take_due(std::int64_t previous, std::int64_t next, std::size_t limit, std::vector<Definition> &out);
  [[nodiscard]] bool any_due(std::int64_t next) const { return !due_.empty() && due_.top().latest < next; }

  // At the end: up to `limit` of those that are left, each behind `latest` and its last reference. None when
  // done.
  void take_left(std::int64_t latest, std::size_t limit, std::vector<Definition> &out);

  // All definitions become due, and stacks are in another table from now on.
  void start_over(std::shared_ptr<StackTable> table);

  [[nodiscard]] std::uint64_t keys() const { return made_; }
  [[nodiscard]] std::size_t live() const { return order_.size(); }

private:
  struct Live {
    std::uint64_t key = 0; // 0: none
    std::int64_t latest = 0;
    std::uint64_t first_use = 0;
  };
  struct Due {
    std::int64_t latest;
    std::uint64_t key;
    std::shared_ptr<StackTable> table;
    StackId stack;
  };
  struct Later {
    bool operator()(const Due &a, const Due &b) const {
      return a.latest != b.latest ? a.latest > b.latest : a.key > b.key;
    }
  };
  void retire_oldest();
  [[nodiscard]] std::uint64_t first_number(StackId stack, std::int64_t time) const;
  [[nodiscard]] std::uint64_t make_key(unsigned pointer_size);

  Options options_;
  std::shared_ptr<StackTable> table_;
  std::vector<Live> live_;    // by stack
  std::deque<StackId> order_; // by first use
  std::priority_queue<Due, std::vector<Due>, Later> due_;
  std::uint64_t uses_ = 0, made_ = 0, next_key_ = 0;
};

} // namespace etwrelog::stacks
