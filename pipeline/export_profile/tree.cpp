#include "export_profile/tree.hpp"

#include "export_profile/out.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <unordered_map>

#include <fmt/format.h>

namespace etwrelog::export_profile {
namespace {

Style style_of(const ProfileFrame &frame) {
  switch (frame.kind) {
  case FrameKind::annotation: return Style::annotation;
  case FrameKind::inlined: return Style::inlined;
  case FrameKind::jit: return Style::jit;
  default: break;
  }
  if (frame.in_kernel || frame.kind == FrameKind::kernel) return Style::kernel;
  return frame.kind == FrameKind::native ? Style::native : Style::unresolved;
}

constexpr std::uint64_t pair(std::uint32_t high, std::uint32_t low) {
  return (std::uint64_t{high} << 32) | low;
}

// Grows a CallTree; finds the child of a node by name.
class Grower {
public:
  explicit Grower(CallTree &tree) : tree_(tree) { tree_.nodes.emplace_back(); }

  std::uint32_t child(std::uint32_t parent, std::uint32_t name) {
    const auto [found, fresh] =
        children_.try_emplace(pair(parent, name), static_cast<std::uint32_t>(tree_.nodes.size()));
    if (fresh) tree_.nodes.push_back({parent, name, 0, 0});
    return found->second;
  }

private:
  CallTree &tree_;
  std::unordered_map<std::uint64_t, std::uint32_t> children_;
};

struct Weight {
  std::uint64_t key; // group, node of the profile
  std::uint64_t weight;
};

std::uint64_t key_of(const Profile &profile, const ProfileSample &sample, Group group) {
  return pair(group == Group::thread ? sample.thread : profile.threads[sample.thread].process, sample.node);
}

std::vector<Weight> weights_by_node(const Profile &profile, Group group) {
  std::vector<Weight> all;
  all.reserve(profile.samples.size());
  for (const ProfileSample &sample : profile.samples)
    all.push_back({key_of(profile, sample, group), sample.weight});
  std::ranges::sort(all, {}, &Weight::key);
  std::size_t kept = 0;
  for (const Weight &next : all) {
    if (kept != 0 && all[kept - 1].key == next.key)
      all[kept - 1].weight += next.weight;
    else
      all[kept++] = next;
  }
  all.resize(kept);
  return all;
}

} // namespace

FrameNames::FrameNames(const Profile &profile) {
  std::unordered_map<std::string, std::uint32_t> known;
  of_frame.reserve(profile.frames.size());
  for (const ProfileFrame &frame : profile.frames) {
    const Style style = style_of(frame);
    std::string text = clean(frame_text(profile, frame));
    const auto [found, fresh] =
        known.try_emplace(text + static_cast<char>(style), static_cast<std::uint32_t>(names.size()));
    if (fresh) names.push_back({std::move(text), style, frame.module});
    of_frame.push_back(found->second);
  }
}

CallTree build_tree(const Profile &profile, Group group, std::vector<std::uint32_t> *node_of) {
  CallTree tree;
  FrameNames frames(profile);
  tree.names = std::move(frames.names);
  const auto name = [&](std::string text, Style style) {
    tree.names.push_back({std::move(text), style, kNoIndex});
    return static_cast<std::uint32_t>(tree.names.size() - 1);
  };
  Grower grow(tree);
  tree.nodes[0].name = name("all", Style::root);

  std::vector<std::uint32_t> top_of_process(profile.processes.size() + 1, kNoIndex);
  const auto process_node = [&](std::uint32_t process) {
    std::uint32_t &at = top_of_process[std::min<std::size_t>(process, profile.processes.size())];
    if (at == kNoIndex)
      at = grow.child(0, name(process < profile.processes.size()
                                  ? clean(process_text(profile.processes[process]))
                                  : "? (-1)",
                              Style::process));
    return at;
  };

  // A group's part of the profile's tree is walked once: `place` knows where its nodes went.
  std::unordered_map<std::uint32_t, std::uint32_t> place;
  std::uint32_t current = kNoIndex;
  std::vector<std::uint32_t> path;
  const std::vector<Weight> weights = weights_by_node(profile, group);
  std::vector<std::uint32_t> placed; // as `weights`
  placed.reserve(weights.size());
  for (const Weight &weight : weights) {
    const auto of = static_cast<std::uint32_t>(weight.key >> 32);
    if (of != current || place.empty()) {
      current = of;
      place.clear();
      std::uint32_t top = 0;
      if (group == Group::thread) {
        const ProfileThread &thread = profile.threads[of];
        top = grow.child(process_node(thread.process), name(clean(thread_text(thread)), Style::thread));
      } else {
        top = process_node(of);
      }
      place.emplace(0, top);
    }
    path.clear();
    std::uint32_t node = static_cast<std::uint32_t>(weight.key);
    auto known = place.find(node);
    while (known == place.end()) {
      path.push_back(node);
      node = profile.nodes[node].parent;
      known = place.find(node);
    }
    std::uint32_t at = known->second;
    for (; !path.empty(); path.pop_back()) {
      at = grow.child(at, frames.of_frame[profile.nodes[path.back()].frame]);
      place.emplace(path.back(), at);
    }
    tree.nodes[at].self += weight.weight;
    placed.push_back(at);
  }
  if (node_of != nullptr) {
    node_of->clear();
    for (const ProfileSample &sample : profile.samples) {
      const auto found = std::ranges::lower_bound(weights, key_of(profile, sample, group), {}, &Weight::key);
      node_of->push_back(placed[static_cast<std::size_t>(found - weights.begin())]);
    }
  }
  for (std::size_t i = tree.nodes.size(); i-- > 0;) {
    TreeNode &node = tree.nodes[i];
    node.total += node.self;
    if (node.parent != kNoIndex) tree.nodes[node.parent].total += node.total;
  }
  tree.total = tree.nodes[0].total;
  return tree;
}

CallTree::Children CallTree::children() const {
  Children out;
  out.first.assign(nodes.size() + 1, 0);
  for (const TreeNode &node : nodes)
    if (node.parent != kNoIndex) ++out.first[node.parent + 1];
  std::partial_sum(out.first.begin(), out.first.end(), out.first.begin());
  out.order.resize(nodes.empty() ? 0 : nodes.size() - 1);
  std::vector<std::uint32_t> next(out.first.begin(), out.first.end());
  for (std::uint32_t i = 1; i < nodes.size(); ++i)
    out.order[next[nodes[i].parent]++] = i;
  const auto before = [&](std::uint32_t a, std::uint32_t b) {
    const Name &x = names[nodes[a].name], &y = names[nodes[b].name];
    return std::tie(x.text, x.style, a) < std::tie(y.text, y.style, b);
  };
  for (std::size_t i = 0; i < nodes.size(); ++i)
    std::sort(out.order.begin() + out.first[i], out.order.begin() + out.first[i + 1], before);
  return out;
}

std::string thread_text(const ProfileThread &thread) {
  return fmt::format("{} ({})", thread.name.empty() ? "thread" : thread.name, thread.tid);
}

std::string identity_text(const ProfileModule &module) {
  if (module.pdb_guid == Guid{}) return {};
  std::string id = to_string(module.pdb_guid);
  std::erase(id, '-');
  std::ranges::transform(id, id.begin(), [](char c) { return c >= 'a' ? static_cast<char>(c - 32) : c; });
  return id + fmt::format("{:X}", module.pdb_age);
}

std::string_view unit_of(const Profile &profile) {
  return profile.kind == ProfileKind::cpu ? "samples" : "µs";
}

std::uint32_t module_hash(std::string_view text) {
  std::uint32_t hash = 2166136261u;
  for (const char c : text)
    hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return hash ^ (hash >> 15);
}

} // namespace etwrelog::export_profile
