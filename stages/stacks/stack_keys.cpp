#include "stacks/stack_keys.hpp"

#include <algorithm>
#include <limits>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace etwrelog::stacks {

namespace {

// Kernel addresses, as the keys of Windows are, but odd: no pool entry, and so no key of Windows, lies there.
constexpr std::uint64_t kFirstKey64 = 0xFFFF'FA80'0000'0001ull, kFirstKey32 = 0x9000'0001ull;
constexpr std::uint64_t kKeyStep = 0x10, kKeys64 = 1ull << 38, kKeys32 = 0x0600'0000; // below 0xF000'0000

} // namespace

StackKeys::StackKeys(Options options, std::shared_ptr<StackTable> table)
    : options_(std::move(options)), table_(std::move(table)) {
  options_.window = std::max<std::uint64_t>(1, options_.window);
}

// Where keys begin: two traces of one machine may be taken together later, and a key must not mean one stack
// in the one and another in the other. What is next to each other packs better than any other keys.
std::uint64_t StackKeys::first_number(StackId stack, std::int64_t time) const {
  std::vector<std::uint64_t> words;
  static_cast<void>(table_->read(stack, words));
  words.push_back(static_cast<std::uint64_t>(time));
  return XXH3_64bits(words.data(), words.size() * sizeof(std::uint64_t));
}

std::uint64_t StackKeys::make_key(unsigned pointer_size) {
  for (std::uint64_t tries = 0;; ++tries) {
    // Nothing is free, which takes a trace that is made for that.
    if (tries == kKeys32) options_.taken = nullptr;
    const std::uint64_t n = next_key_++;
    const std::uint64_t key =
        pointer_size == 8 ? kFirstKey64 + n % kKeys64 * kKeyStep : kFirstKey32 + n % kKeys32 * kKeyStep;
    if (options_.taken && options_.taken(key)) continue;
    ++made_;
    return key;
  }
}

std::uint64_t StackKeys::use(StackId stack, std::int64_t time, unsigned pointer_size) {
  ++uses_;
  while (!order_.empty() && live_[order_.front()].first_use + options_.window < uses_)
    retire_oldest();
  if (stack >= live_.size()) live_.resize(std::size_t{stack} + stack / 2 + 64);
  Live &live = live_[stack];
  if (live.key == 0) {
    if (made_ == 0) next_key_ = first_number(stack, time);
    live = {make_key(pointer_size), time, uses_};
    order_.push_back(stack);
  }
  live.latest = std::max(live.latest, time);
  return live.key;
}

void StackKeys::retire_oldest() {
  const StackId stack = order_.front();
  order_.pop_front();
  Live &live = live_[stack];
  due_.push({live.latest, live.key, table_, stack});
  live = {};
}

void StackKeys::take_due(std::int64_t previous, std::int64_t next, std::size_t limit,
                         std::vector<Definition> &out) {
  for (; limit > 0 && any_due(next); --limit) {
    const Due &due = due_.top();
    out.push_back({due.key, std::max(previous, due.latest + 1), due.table, due.stack});
    due_.pop();
  }
}

void StackKeys::take_left(std::int64_t latest, std::size_t limit, std::vector<Definition> &out) {
  while (!order_.empty() && due_.size() < limit)
    retire_oldest();
  for (; limit > 0 && !due_.empty(); --limit) {
    const Due &due = due_.top();
    const std::int64_t after = std::max(latest, due.latest);
    out.push_back({due.key, after == std::numeric_limits<std::int64_t>::max() ? after : after + 1, due.table,
                   due.stack});
    due_.pop();
  }
}

void StackKeys::start_over(std::shared_ptr<StackTable> table) {
  while (!order_.empty())
    retire_oldest();
  live_.clear();
  table_ = std::move(table);
}

} // namespace etwrelog::stacks
