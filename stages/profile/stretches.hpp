// Which of many stretches of positions hold a position, however they overlap: each stands in a few nodes of a
// tree over the positions, and a position is below as many nodes as the tree is deep.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace etwrelog::profile {

template <class Item> class Stretches {
public:
  Stretches() = default;
  explicit Stretches(std::size_t positions)
      : positions_(std::max<std::size_t>(positions, 1)), nodes_(2 * positions_) {}

  // Of positions from `first` to `last`, which is not before it.
  void add(std::size_t first, std::size_t last, const Item &item) {
    for (first += positions_, last += positions_ + 1; first < last; first /= 2, last /= 2) {
      if (first % 2 != 0) nodes_[first++].push_back(item);
      if (last % 2 != 0) nodes_[--last].push_back(item);
    }
  }
  // Calls change(items) for each node that has some: these hold the same positions, and are in the order in
  // which they were added.
  template <class Change> void for_each_node(Change &&change) {
    for (std::vector<Item> &node : nodes_)
      if (!node.empty()) change(node);
  }
  // The nodes that hold the position.
  template <class Visit> void visit(std::size_t position, Visit &&visit) const {
    for (position += positions_; position != 0; position /= 2)
      if (!nodes_[position].empty()) visit(nodes_[position]);
  }
  [[nodiscard]] bool empty() const { return nodes_.empty(); }

private:
  std::size_t positions_ = 0;
  std::vector<std::vector<Item>> nodes_;
};

// `bounds`, in order, part all that there is into stretches: the number of the one that holds `at`, a bound
// being the first of the stretch behind it.
template <class T> [[nodiscard]] std::size_t stretch_at(const std::vector<T> &bounds, const T &at) {
  return static_cast<std::size_t>(std::ranges::upper_bound(bounds, at) - bounds.begin());
}

// How many stretches that lie in order of their beginnings a search has to look at before it knows that none
// of those before reaches so far; more than that, and it is worth a tree.
inline constexpr std::size_t kMostLookedAt = 64;

// `reach`: of each stretch the end of the farthest so far; `begin_of(i)`: where it begins.
template <class BeginOf>
[[nodiscard]] bool overlap_much(const std::vector<std::uint64_t> &reach, std::uint32_t first,
                                std::uint32_t count, BeginOf &&begin_of) {
  for (std::uint32_t i = first; i < first + count; ++i)
    if (i - first >= kMostLookedAt && reach[i - kMostLookedAt] > begin_of(i)) return true;
  return false;
}

} // namespace etwrelog::profile
