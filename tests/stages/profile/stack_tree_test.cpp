#include "profile/stack_tree.hpp"

#include <map>
#include <random>
#include <utility>

#include <gtest/gtest.h>

namespace etwrelog::profile {
namespace {

// The same in the plainest way.
class PlainTree {
public:
  std::uint32_t below(std::uint32_t node, const std::vector<std::uint32_t> &frames) {
    for (const std::uint32_t frame : frames) {
      const auto [child, fresh] =
          children_.try_emplace({node, frame}, static_cast<std::uint32_t>(nodes_.size()));
      if (fresh) nodes_.push_back({node, frame});
      node = child->second;
    }
    return node;
  }
  [[nodiscard]] const std::vector<ProfileNode> &nodes() const { return nodes_; }

private:
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> children_;
  std::vector<ProfileNode> nodes_{ProfileNode{}};
};

TEST(StackTree, HasOneNodeForAPathNumberedWhenItFirstComes) {
  std::mt19937 random(7);
  const auto below = [&random](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  // Few frames, so that stacks part and meet again wherever they can; or many, so that most are new.
  for (const std::uint32_t kinds : {1u, 2u, 5u, 1000u}) {
    Profile profile;
    StackTree tree(profile);
    PlainTree plain;
    const auto some_frames = [&](std::uint32_t most) {
      std::vector<std::uint32_t> frames(below(most));
      for (std::uint32_t &frame : frames)
        frame = below(kinds);
      return frames;
    };
    std::vector<std::uint32_t> user_nodes, found, expected;
    for (int round = 0; round < 50; ++round) {
      FramedStacks stacks;
      for (std::uint32_t count = below(40); count > 0; --count) {
        FramedStacks::Stack stack;
        std::uint32_t node = 0;
        const auto append = [&stacks](const std::vector<std::uint32_t> &frames) {
          stacks.frames.insert(stacks.frames.end(), frames.begin(), frames.end());
          return static_cast<std::uint32_t>(frames.size());
        };
        if (below(8) == 0) {
          stack.note = below(kinds);
          node = plain.below(0, {stack.note});
        } else if (below(8) != 0) {
          stack.user = below(static_cast<std::uint32_t>(user_nodes.size()) + 1);
          if (stack.user == user_nodes.size()) {
            const std::vector<std::uint32_t> user = some_frames(20);
            stack.user_frames = append(user);
            user_nodes.push_back(plain.below(0, user));
          }
          node = user_nodes[stack.user];
        }
        const std::vector<std::uint32_t> others = some_frames(6);
        stack.other_frames = append(others);
        expected.push_back(plain.below(node, others));
        stacks.stacks.push_back(stack);
      }
      tree.add(stacks, found);
    }
    EXPECT_EQ(found, expected);
    ASSERT_EQ(profile.nodes.size(), plain.nodes().size());
    for (std::size_t i = 0; i < profile.nodes.size(); ++i) {
      EXPECT_EQ(profile.nodes[i].parent, plain.nodes()[i].parent) << i;
      EXPECT_EQ(profile.nodes[i].frame, plain.nodes()[i].frame) << i;
    }
  }
}

} // namespace
} // namespace etwrelog::profile
