// A hash map from numbers to small values for look-ups per event: open addressing, one array, built once.
#pragma once

#include "base/seed.hpp"

#include <bit>
#include <concepts>
#include <cstdint>
#include <utility>
#include <vector>

namespace etwrelog::base {

template <class Value, std::unsigned_integral Key = std::uint32_t> class FlatMap {
public:
  // Null if absent. The pointer is valid until the next insertion.
  [[nodiscard]] const Value *find(Key key) const {
    if (slots_.empty()) return nullptr;
    for (std::size_t i = hash(key);; ++i) {
      const Slot &slot = slots_[i & mask_];
      if (!slot.used) return nullptr;
      if (slot.key == key) return &slot.value;
    }
  }
  [[nodiscard]] Value *find(Key key) { return const_cast<Value *>(std::as_const(*this).find(key)); }

  // The value of the key, made if absent.
  Value &operator[](Key key) { return try_emplace(key, Value{}).first; }
  // Fetches the place of a key that is soon asked for, where so many are that no cache holds the map.
  void prefetch(Key key) const {
    if (!slots_.empty()) __builtin_prefetch(&slots_[hash(key) & mask_]);
  }
  [[nodiscard]] std::size_t size() const { return size_; }

  // The value of the key, made as `value` if absent, and whether that was so.
  std::pair<Value &, bool> try_emplace(Key key, Value value) {
    if (Value *known = find(key)) return {*known, false};
    if ((size_ + 1) * 2 > slots_.size()) grow();
    ++size_;
    return {insert(key, std::move(value)), true};
  }
  // In another order in each run of the program.
  template <class Visit> void for_each(Visit &&visit) const {
    for (const Slot &slot : slots_)
      if (slot.used) visit(slot.key, slot.value);
  }

private:
  struct Slot {
    Key key = 0;
    bool used = false;
    Value value{};
  };

  // The highest bits of a product with a random odd number: two keys, whatever they are, rarely meet.
  [[nodiscard]] std::size_t hash(Key key) const { return static_cast<std::size_t>(key * factor_ >> shift_); }

  Value &insert(Key key, Value value) {
    std::size_t i = hash(key);
    while (slots_[i & mask_].used)
      ++i;
    slots_[i & mask_] = {key, true, std::move(value)};
    return slots_[i & mask_].value;
  }

  void grow() {
    std::vector<Slot> old = std::move(slots_);
    slots_.assign(old.empty() ? 64 : old.size() * 2, Slot{});
    mask_ = slots_.size() - 1;
    shift_ = 64 - std::bit_width(mask_);
    for (Slot &slot : old)
      if (slot.used) insert(slot.key, std::move(slot.value));
  }

  std::vector<Slot> slots_;
  std::size_t mask_ = 0, size_ = 0;
  std::uint64_t factor_ = hash_seed() | 1;
  int shift_ = 0;
};

} // namespace etwrelog::base
