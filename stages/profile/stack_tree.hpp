// The stacks of a profile as a tree: frames become nodes, numbered in the order in which stacks are added.
// One thread at a time.
#pragma once

#include "base/flat_map.hpp"
#include "profile/frames.hpp"

#include <span>
#include <vector>

namespace etwrelog::profile {

class StackTree {
public:
  // Fills the nodes of `profile`, which it refers to.
  explicit StackTree(Profile &profile) : nodes_(profile.nodes) {}

  // Appends the node of the innermost frame of each of the stacks. All that Frames has given go through here,
  // in its order.
  void add(const FramedStacks &stacks, std::vector<std::uint32_t> &innermost);

  // Most nodes stand right behind their parent, as the frames of a stack are added one after the other: such
  // a child is found there, beside it in memory. The table has the others.
  std::uint32_t child(std::uint32_t parent, std::uint32_t frame) {
    const auto count = static_cast<std::uint32_t>(nodes_.size());
    const std::uint32_t behind = parent + 1;
    if (behind < count) {
      if (nodes_[behind].parent == parent && nodes_[behind].frame == frame) return behind;
      const auto [child, fresh] = children_.try_emplace(std::uint64_t{parent} << 32 | frame, count);
      if (!fresh) return child;
    } // else the last one, which has no children yet
    nodes_.push_back({parent, frame});
    return count;
  }

private:
  std::uint32_t below(std::uint32_t node, std::span<const std::uint32_t> frames) {
    for (const std::uint32_t frame : frames)
      node = child(node, frame);
    return node;
  }

  std::vector<ProfileNode> &nodes_;
  base::FlatMap<std::uint32_t, std::uint64_t> children_; // by parent and frame
  std::vector<std::uint32_t> users_;                     // of each user part the node
};

} // namespace etwrelog::profile
