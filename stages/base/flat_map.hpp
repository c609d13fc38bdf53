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
    const Slot &slot = slots_[place(key)];
    return slot.used ? &slot.value : nullptr;
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
    if (slots_.empty()) grow();
    Slot *slot = &slots_[place(key)];
    if (slot->used) return {slot->value, false};
    if (++size_ * 2 > slots_.size()) {
      grow();
      slot = &slots_[place(key)];
    }
    *slot = {key, true, std::move(value)};
    return {slot->value, true};
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

  // Where a key is, or would be; there is always a free slot.
  [[nodiscard]] std::size_t place(Key key) const {
    std::size_t i = hash(key) & mask_;
    while (slots_[i].used && slots_[i].key != key)
      i = (i + 1) & mask_;
    return i;
  }

  void grow() {
    std::vector<Slot> old = std::move(slots_);
    slots_.assign(old.empty() ? 64 : old.size() * 2, Slot{});
    mask_ = slots_.size() - 1;
    shift_ = 64 - std::bit_width(mask_);
    for (Slot &slot : old)
      if (slot.used) slots_[place(slot.key)] = std::move(slot);
  }

  std::vector<Slot> slots_;
  std::size_t mask_ = 0, size_ = 0;
  std::uint64_t factor_ = hash_seed() | 1;
  int shift_ = 0;
};

} // namespace etwrelog::base
