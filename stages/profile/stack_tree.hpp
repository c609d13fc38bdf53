// The stacks of a profile as a tree: frames become nodes, numbered in the order in which stacks are added.
// One thread at a time.
#pragma once

#include "base/seed.hpp"
#include "profile/frames.hpp"

#include <bit>
#include <span>
#include <vector>

namespace etwrelog::profile {

// The children of nodes. Most nodes stand right behind their parent, as the frames of a stack are added one
// after the other: such a child is found there, beside it in memory. The table has the others.
class Children {
public:
  // The child of `parent` by that frame; it is added to `nodes`, all of which were added here, if it is new.
  std::uint32_t at(std::uint32_t parent, std::uint32_t frame, std::vector<ProfileNode> &nodes) {
    const auto count = static_cast<std::uint32_t>(nodes.size());
    const std::uint32_t behind = parent + 1;
    if (behind < count) {
      if (nodes[behind].parent == parent && nodes[behind].frame == frame) return behind;
      std::uint32_t &child = find(parent, frame);
      if (child != kNoIndex) return child;
      child = count;
    } // else the last one, which has no children yet
    nodes.push_back({parent, frame});
    return count;
  }

private:
  struct Slot {
    std::uint32_t parent = 0, frame = 0, child = kNoIndex;
  };
  [[nodiscard]] std::size_t place(std::uint32_t parent, std::uint32_t frame) const {
    std::uint64_t hash = ((parent | std::uint64_t{frame} << 32) ^ seed_) * 0x9E37'79B9'7F4A'7C15ull;
    hash = (hash ^ hash >> 32) * 0xD6E8'FEB8'6659'FD93ull;
    return static_cast<std::size_t>(hash >> shift_);
  }
  // kNoIndex, to be set, if it is new.
  std::uint32_t &find(std::uint32_t parent, std::uint32_t frame) {
    if ((size_ + 1) * 4 > slots_.size() * 3) grow();
    for (std::size_t i = place(parent, frame);; i = (i + 1) & (slots_.size() - 1)) {
      Slot &slot = slots_[i];
      if (slot.child == kNoIndex) {
        ++size_;
        slot = {parent, frame, kNoIndex};
        return slot.child;
      }
      if (slot.parent == parent && slot.frame == frame) return slot.child;
    }
  }
  void grow() {
    std::vector<Slot> old = std::move(slots_);
    slots_.assign(old.empty() ? 1024 : old.size() * 2, Slot{});
    shift_ = 64 - std::bit_width(slots_.size() - 1);
    for (const Slot &slot : old) {
      if (slot.child == kNoIndex) continue;
      std::size_t i = place(slot.parent, slot.frame);
      while (slots_[i].child != kNoIndex)
        i = (i + 1) & (slots_.size() - 1);
      slots_[i] = slot;
    }
  }
  std::vector<Slot> slots_;
  std::size_t size_ = 0;
  std::uint64_t seed_ = base::hash_seed();
  int shift_ = 0;
};

class StackTree {
public:
  // Fills the nodes of `profile`, which it refers to.
  explicit StackTree(Profile &profile) : nodes_(profile.nodes) {}

  // Appends the node of the innermost frame of each of the stacks. All that Frames has given go through here,
  // in its order.
  void add(const FramedStacks &stacks, std::vector<std::uint32_t> &innermost);

  std::uint32_t child(std::uint32_t parent, std::uint32_t frame) {
    return children_.at(parent, frame, nodes_);
  }

private:
  std::uint32_t below(std::uint32_t node, std::span<const std::uint32_t> frames) {
    for (const std::uint32_t frame : frames)
      node = child(node, frame);
    return node;
  }

  std::vector<ProfileNode> &nodes_;
  Children children_;
  std::vector<std::uint32_t> users_; // of each user part the node
};

} // namespace etwrelog::profile
