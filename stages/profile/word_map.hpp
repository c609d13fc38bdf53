// A table for look-ups per sample and per frame: open addressing, in one array.
#pragma once

#include "base/seed.hpp"
#include "etwrelog/profile.hpp"

#include <array>
#include <bit>

namespace etwrelog::profile {

// A map from four numbers to one.
class WordMap {
public:
  using Key = std::array<std::uint32_t, 4>;

  // The value of the key; `fresh` tells that it is new and to be set.
  std::uint32_t &at(const Key &key, bool &fresh) {
    if ((size_ + 1) * 4 > slots_.size() * 3) grow();
    Slot &slot = slots_[position(key)];
    fresh = slot.value == kNoIndex;
    if (fresh) {
      ++size_;
      slot.key = key;
    }
    return slot.value;
  }
  // Fetches what at() will look at first.
  void prefetch(const Key &key) const {
    if (!slots_.empty()) __builtin_prefetch(&slots_[hash(key)]);
  }

private:
  using Words = std::array<std::uint64_t, 2>; // a key
  struct Slot {
    Key key{};
    std::uint32_t value = kNoIndex;
  };
  // A slot. The highest bits of a product know all of its factors.
  [[nodiscard]] std::size_t hash(const Key &key) const {
    const Words words = std::bit_cast<Words>(key);
    std::uint64_t hash = (words[0] ^ seed_) * 0x9E37'79B9'7F4A'7C15ull;
    hash ^= hash >> 29;
    hash ^= words[1];
    hash *= 0xD6E8'FEB8'6659'FD93ull;
    return static_cast<std::size_t>(hash >> shift_);
  }
  [[nodiscard]] std::size_t position(const Key &key) const {
    const std::size_t mask = slots_.size() - 1;
    for (std::size_t i = hash(key);; i = (i + 1) & mask)
      if (slots_[i].value == kNoIndex || equal(slots_[i].key, key)) return i;
  }
  // In registers: arrays are compared by a call.
  [[nodiscard]] static bool equal(const Key &a, const Key &b) {
    const Words x = std::bit_cast<Words>(a), y = std::bit_cast<Words>(b);
    return x[0] == y[0] && x[1] == y[1];
  }
  void grow() {
    std::vector<Slot> old = std::move(slots_);
    slots_.assign(old.empty() ? 1024 : old.size() * 2, Slot{});
    shift_ = 64 - std::bit_width(slots_.size() - 1);
    for (const Slot &slot : old)
      if (slot.value != kNoIndex) slots_[position(slot.key)] = slot;
  }
  std::vector<Slot> slots_;
  std::size_t size_ = 0;
  std::uint64_t seed_ = base::hash_seed();
  int shift_ = 0;
};

} // namespace etwrelog::profile
