// Which nodes of a tree are the outermost of their label.
#include "base/outermost.hpp"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

namespace etwrelog {
namespace {

struct LabelledTree {
  std::vector<std::uint32_t> parents, labels;
  [[nodiscard]] std::vector<bool> outermost(std::uint32_t count) const {
    return base::outermost(
        static_cast<std::uint32_t>(parents.size()), count, [&](std::uint32_t node) { return parents[node]; },
        [&](std::uint32_t node) { return labels[node]; });
  }
};

TEST(Outermost, AreThoseWithoutAnAncestorOfTheirLabel) {
  std::mt19937 random(1);
  for (std::uint32_t round = 0; round < 200; ++round) {
    const std::uint32_t nodes = random() % 60, count = 1 + random() % 6;
    LabelledTree tree;
    for (std::uint32_t i = 0; i < nodes; ++i) {
      tree.parents.push_back(i == 0 ? 0 : random() % i);
      tree.labels.push_back(random() % (count + 1)); // `count` itself is none
    }
    const std::vector<bool> found = tree.outermost(count);
    ASSERT_EQ(found.size(), nodes);
    for (std::uint32_t i = 1; i < nodes; ++i) {
      bool above = false;
      for (std::uint32_t at = tree.parents[i]; at != 0; at = tree.parents[at])
        above = above || tree.labels[at] == tree.labels[i];
      EXPECT_EQ(found[i], tree.labels[i] < count && !above) << round << ": " << i;
    }
    if (nodes != 0) {
      EXPECT_FALSE(found[0]);
    }
  }
}

// Looking upwards from each node took seconds here.
TEST(Outermost, OfOneDeepStackAreFoundInOneWalk) {
  constexpr std::uint32_t kDepth = 2'000'000;
  LabelledTree tree;
  for (std::uint32_t i = 0; i < kDepth; ++i) {
    tree.parents.push_back(i == 0 ? 0 : i - 1);
    tree.labels.push_back(i);
  }
  const std::vector<bool> found = tree.outermost(kDepth);
  EXPECT_EQ(std::count(found.begin(), found.end(), true), kDepth - 1);
}

} // namespace
} // namespace etwrelog
