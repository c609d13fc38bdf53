// Tables for look-ups per sample and per frame: open addressing, one array each.
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
  struct Slot {
    Key key{};
    std::uint32_t value = kNoIndex;
  };
  // A slot. The highest bits of a product know all of its factors.
  [[nodiscard]] std::size_t hash(const Key &key) const {
    std::uint64_t hash = ((key[0] | std::uint64_t{key[1]} << 32) ^ seed_) * 0x9E37'79B9'7F4A'7C15ull;
    hash ^= hash >> 29;
    hash ^= key[2] | std::uint64_t{key[3]} << 32;
    hash *= 0xD6E8'FEB8'6659'FD93ull;
    return static_cast<std::size_t>(hash >> shift_);
  }
  [[nodiscard]] std::size_t position(const Key &key) const {
    const std::size_t mask = slots_.size() - 1;
    for (std::size_t i = hash(key);; i = (i + 1) & mask)
      if (slots_[i].value == kNoIndex || slots_[i].key == key) return i;
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

// The children of nodes: by far the most entries, and each is far from the one before it in memory. Where a
// child stands follows from the frames of its whole path, not from the number of its parent, so that all
// steps of a path can be fetched before the first one is known.
class Children {
public:
  // The hash of the path without a frame.
  [[nodiscard]] std::uint64_t root() const { return root_; }
  // For nodes whose children are never reached by a path.
  [[nodiscard]] std::uint64_t of_node(std::uint32_t node) const {
    return node == 0 ? root_ : root_ ^ node * 0xD6E8'FEB8'6659'FD93ull;
  }
  // Of a path by one frame more.
  static std::uint64_t hash(std::uint64_t path, std::uint32_t frame) {
    const std::uint64_t h = (path ^ frame) * 0x9E37'79B9'7F4A'7C15ull;
    return (h ^ h >> 31) * 0xD6E8'FEB8'6659'FD93ull;
  }
  void prefetch(std::uint64_t path) const {
    if (!slots_.empty()) __builtin_prefetch(&slots_[place(path) & (slots_.size() - 1)]);
  }
  // The child by that frame; kNoIndex, to be set, if it is new. `path`: the hash with the frame; always the
  // same for a parent and frame.
  std::uint32_t &at(std::uint64_t path, std::uint32_t parent, std::uint32_t frame) {
    if ((size_ + 1) * 4 > slots_.size() * 3) grow();
    for (std::size_t i = place(path) & (slots_.size() - 1);; i = (i + 1) & (slots_.size() - 1)) {
      Slot &slot = slots_[i];
      if (slot.value == kNoIndex) {
        ++size_;
        slot = {parent, frame, kNoIndex, place(path)};
        return slot.value;
      }
      if (slot.parent == parent && slot.frame == frame) return slot.value;
    }
  }

private:
  struct Slot {
    std::uint32_t parent = 0, frame = 0, value = kNoIndex, place = 0;
  };
  static std::uint32_t place(std::uint64_t path) { return static_cast<std::uint32_t>(path >> 32); }
  void grow() {
    std::vector<Slot> old = std::move(slots_);
    slots_.assign(old.empty() ? 1024 : old.size() * 2, Slot{});
    for (const Slot &slot : old) {
      if (slot.value == kNoIndex) continue;
      std::size_t i = slot.place & (slots_.size() - 1);
      while (slots_[i].value != kNoIndex)
        i = (i + 1) & (slots_.size() - 1);
      slots_[i] = slot;
    }
  }
  std::vector<Slot> slots_;
  std::size_t size_ = 0;
  std::uint64_t root_ = base::hash_seed();
};

} // namespace etwrelog::profile
