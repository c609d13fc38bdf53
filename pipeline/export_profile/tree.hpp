// The samples of a profile as one tree of names: what flame graphs, folded lines and tables are drawn from.
#pragma once

#include "base/flat_map.hpp"
#include "etwrelog/profile.hpp"

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

namespace etwrelog::export_profile {

// What a name stands for; decides colours and suffixes.
enum class Style : std::uint8_t {
  root,
  process,
  thread,
  kernel,
  native,
  jit,
  inlined,
  unresolved,
  annotation,
  count_
};

struct Name {
  std::string text; // clean
  Style style = Style::root;
  std::uint32_t module = kNoIndex; // in Profile::modules
  bool estimated = false;          // that of the nearest public symbol, at times
};

// Which frames that read the same are told apart all the same: none; those without a function's name in
// different builds of a module, of which each is to get a name of its own later; all in different modules, as
// the two ntdll.dll of a 32-bit process, where modules are shown beside the names.
enum class Apart : std::uint8_t { none, builds, modules };

// The names of a profile's frames; frames that read the same share one.
struct FrameNames {
  explicit FrameNames(const Profile &profile, Apart apart = Apart::none);
  std::vector<Name> names;
  std::vector<std::uint32_t> of_frame; // by Profile::frames
};

struct TreeNode {
  std::uint32_t parent = kNoIndex;
  std::uint32_t name = 0; // in CallTree::names
  std::uint64_t self = 0, total = 0;
};

// Node 0 is the root; a child stands behind its parent.
struct CallTree {
  std::vector<Name> names;
  std::vector<TreeNode> nodes;
  std::uint64_t total = 0;

  // The children of each node: those of node n are order[first[n]] up to order[first[n + 1]].
  struct Children {
    std::vector<std::uint32_t> first, order;
  };
  [[nodiscard]] Children children() const; // in the order of nodes
  [[nodiscard]] Children children_by_name() const;
};

// Grows a CallTree that has its root: finds the child of a node by name.
class Grower {
public:
  explicit Grower(CallTree &tree) : tree_(tree) {}

  std::uint32_t child(std::uint32_t parent, std::uint32_t name) {
    const auto [child, fresh] = children_.try_emplace(std::uint64_t{parent} << 32 | name,
                                                      static_cast<std::uint32_t>(tree_.nodes.size()));
    if (fresh) tree_.nodes.push_back({parent, name, 0, 0});
    return child;
  }

private:
  CallTree &tree_;
  base::FlatMap<std::uint32_t, std::uint64_t> children_; // by parent and name
};

// Of each number below `count` its place in an order; the same for those of which neither is less.
template <class Less> std::vector<std::uint32_t> ranks_of(std::size_t count, Less &&less) {
  std::vector<std::uint32_t> order(count), ranks(count);
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::sort(order, less);
  for (std::size_t i = 1; i < count; ++i)
    ranks[order[i]] = ranks[order[i - 1]] + (less(order[i - 1], order[i]) ? 1 : 0);
  return ranks;
}

enum class Group : std::uint8_t { process, thread };

// What each group has at each node of a profile: by group, then by node. The profile must outlive it.
class GroupWeights {
public:
  struct Weight {
    std::uint64_t key; // group, node
    std::uint64_t weight;
    [[nodiscard]] std::uint32_t group() const { return static_cast<std::uint32_t>(key >> 32); }
    [[nodiscard]] std::uint32_t node() const { return static_cast<std::uint32_t>(key); }
  };

  GroupWeights(const Profile &profile, Group group);
  [[nodiscard]] const std::vector<Weight> &weights() const { return weights_; }
  // The number of the one that has the sample.
  [[nodiscard]] std::uint32_t of(const ProfileSample &sample) const { return *numbers_.find(key_of(sample)); }

private:
  [[nodiscard]] std::uint64_t key_of(const ProfileSample &sample) const {
    const std::uint32_t group =
        group_ == Group::thread ? sample.thread : profile_.threads[sample.thread].process;
    return std::uint64_t{group} << 32 | sample.node;
  }

  const Profile &profile_;
  const Group group_;
  std::vector<Weight> weights_;
  base::FlatMap<std::uint32_t, std::uint64_t> numbers_; // by key
};

// `node_of`, if wanted, gets the node of each sample.
[[nodiscard]] CallTree build_tree(const Profile &profile, Group group,
                                  std::vector<std::uint32_t> *node_of = nullptr, Apart apart = Apart::none);
[[nodiscard]] std::string thread_text(const ProfileThread &thread); // "Render (567)"
// GUID and age as symbol servers write them, "6434DC46...1"; empty where they are not known.
[[nodiscard]] std::string identity_text(const ProfileModule &module);
[[nodiscard]] std::uint32_t module_hash(std::string_view text);

} // namespace etwrelog::export_profile
