// Which nodes of a tree are the outermost of their kind: recursion counts once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace etwrelog::base {

// Of nodes 0 to `nodes` - 1, each behind its parent, 0 the root: true for those without an ancestor of the
// same label. The root is nobody's. `label_of` gives numbers below `labels`; others stand for none, and none
// is never outermost. Takes time in proportion to the nodes, however deep they lie.
template <class ParentOf, class LabelOf>
std::vector<bool> outermost(std::uint32_t nodes, std::uint32_t labels, ParentOf &&parent_of,
                            LabelOf &&label_of) {
  std::vector<bool> out(nodes, false);
  if (nodes == 0) return out;
  std::vector<std::uint32_t> child(nodes, 0), sibling(nodes, 0), above(labels, 0); // 0: no more of them
  for (std::uint32_t node = nodes; node-- > 1;) {
    std::uint32_t &first = child[parent_of(node)];
    sibling[node] = first;
    first = node;
  }
  for (std::uint32_t node = child[0]; node != 0;) {
    if (const std::uint32_t label = label_of(node); label < labels) out[node] = above[label]++ == 0;
    if (child[node] != 0) {
      node = child[node];
      continue;
    }
    for (;;) {
      if (const std::uint32_t label = label_of(node); label < labels) --above[label];
      if (sibling[node] != 0) {
        node = sibling[node];
        break;
      }
      node = parent_of(node);
      if (node == 0) break;
    }
  }
  return out;
}

} // namespace etwrelog::base
