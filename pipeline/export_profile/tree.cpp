#include "export_profile/tree.hpp"

#include "export_profile/out.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <unordered_set>

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

} // namespace

FrameNames::FrameNames(const Profile &profile, Apart apart) {
  // A number for each build, as names are looked up by it later; 0 where it is not known.
  std::vector<std::uint32_t> builds(profile.modules.size(), 0);
  if (apart == Apart::builds) {
    std::map<std::string, std::uint32_t> numbers{{"", 0}};
    for (std::size_t i = 0; i < builds.size(); ++i)
      builds[i] =
          numbers.try_emplace(identity_text(profile.modules[i]), static_cast<std::uint32_t>(numbers.size()))
              .first->second;
  }
  // Texts stand in `names` alone: of hostile traces each is long, and there is one for each address.
  std::vector<std::uint64_t> kept_apart_by;
  const auto hash = [&](std::uint32_t i) {
    return std::hash<std::string_view>()(names[i].text) ^ kept_apart_by[i] * 0x9E37'79B9'7F4A'7C15ull;
  };
  const auto same = [&](std::uint32_t i, std::uint32_t k) {
    return kept_apart_by[i] == kept_apart_by[k] && names[i].style == names[k].style &&
           names[i].text == names[k].text;
  };
  std::unordered_set<std::uint32_t, decltype(hash), decltype(same)> known(0, hash, same);
  of_frame.reserve(profile.frames.size());
  for (const ProfileFrame &frame : profile.frames) {
    std::uint64_t by = 0;
    if (frame.module != kNoIndex) {
      // Of a caller names are looked up at the address before.
      if (apart == Apart::builds && frame.function.empty())
        by = std::uint64_t{builds[frame.module]} << 1 | (frame.caller ? 1 : 0);
      if (apart == Apart::modules) by = std::uint64_t{frame.module} + 1;
    }
    names.push_back({clean(frame_text(profile, frame)), style_of(frame), frame.module, false});
    kept_apart_by.push_back(by);
    const auto [found, fresh] = known.insert(static_cast<std::uint32_t>(names.size() - 1));
    if (!fresh) {
      names.pop_back();
      kept_apart_by.pop_back();
    }
    names[*found].estimated |= frame.estimated;
    of_frame.push_back(*found);
  }
}

GroupWeights::GroupWeights(const Profile &profile, Group group) : profile_(profile), group_(group) {
  for (const ProfileSample &sample : profile.samples) {
    const std::uint64_t key = key_of(sample);
    const auto [at, fresh] = numbers_.try_emplace(key, static_cast<std::uint32_t>(weights_.size()));
    if (fresh) weights_.push_back({key, 0});
    weights_[at].weight += sample.weight;
  }
  std::ranges::sort(weights_, {}, &Weight::key);
  for (std::uint32_t i = 0; i < weights_.size(); ++i)
    numbers_[weights_[i].key] = i;
}

CallTree build_tree(const Profile &profile, Group group, std::vector<std::uint32_t> *node_of, Apart apart) {
  CallTree tree;
  FrameNames frames(profile, apart);
  tree.names = std::move(frames.names);
  const auto name = [&](std::string text, Style style) {
    tree.names.push_back({std::move(text), style, kNoIndex, false});
    return static_cast<std::uint32_t>(tree.names.size() - 1);
  };
  tree.nodes.push_back({kNoIndex, name("all", Style::root), 0, 0});
  Grower grow(tree);

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
  std::vector<std::uint32_t> place(profile.nodes.size(), kNoIndex), walked, path;
  const auto put = [&](std::uint32_t node, std::uint32_t at) {
    place[node] = at;
    walked.push_back(node);
  };
  const GroupWeights all(profile, group);
  std::uint32_t current = kNoIndex;
  std::vector<std::uint32_t> placed; // as the weights
  placed.reserve(all.weights().size());
  for (const GroupWeights::Weight &weight : all.weights()) {
    const std::uint32_t of = weight.group();
    if (of != current || walked.empty()) {
      current = of;
      for (const std::uint32_t node : walked)
        place[node] = kNoIndex;
      walked.clear();
      std::uint32_t top = 0;
      if (group == Group::thread) {
        const ProfileThread &thread = profile.threads[of];
        top = grow.child(process_node(thread.process), name(clean(thread_text(thread)), Style::thread));
      } else {
        top = process_node(of);
      }
      put(0, top);
    }
    path.clear();
    std::uint32_t node = weight.node();
    for (; place[node] == kNoIndex; node = profile.nodes[node].parent)
      path.push_back(node);
    std::uint32_t at = place[node];
    for (; !path.empty(); path.pop_back()) {
      at = grow.child(at, frames.of_frame[profile.nodes[path.back()].frame]);
      put(path.back(), at);
    }
    tree.nodes[at].self += weight.weight;
    placed.push_back(at);
  }
  if (node_of != nullptr) {
    node_of->clear();
    node_of->reserve(profile.samples.size());
    for (const ProfileSample &sample : profile.samples)
      node_of->push_back(placed[all.of(sample)]);
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
  return out;
}

CallTree::Children CallTree::children_by_name() const {
  Children out = children();
  const std::vector<std::uint32_t> ranks = ranks_of(names.size(), [this](std::uint32_t a, std::uint32_t b) {
    return std::tie(names[a].text, names[a].style) < std::tie(names[b].text, names[b].style);
  });
  const auto before = [&](std::uint32_t a, std::uint32_t b) {
    return std::pair(ranks[nodes[a].name], a) < std::pair(ranks[nodes[b].name], b);
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

std::uint32_t module_hash(std::string_view text) {
  std::uint32_t hash = 2166136261u;
  for (const char c : text)
    hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return hash ^ (hash >> 15);
}

} // namespace etwrelog::export_profile
