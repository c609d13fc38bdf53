#include "export_profile/formats.hpp"

#include <map>

namespace etwrelog::export_profile {
namespace {

// Runs of one program have different process ids: their trees meet under the program's name.
std::string without_id(const std::string &text) {
  const std::size_t at = text.rfind(" (");
  return at == std::string::npos ? text : text.substr(0, at);
}

class Merger {
public:
  explicit Merger(DiffTree &out) : out_(out), grow_(out.tree) {
    out_.tree.nodes.push_back({kNoIndex, name({"all", Style::root, kNoIndex}), 0, 0});
  }

  void add(const Profile &profile, bool after) {
    const CallTree tree = build_tree(profile, Group::process);
    std::vector<std::uint32_t> names, nodes(tree.nodes.size(), 0);
    names.reserve(tree.names.size());
    for (const Name &one : tree.names)
      names.push_back(
          name({one.style == Style::process ? without_id(one.text) : one.text, one.style, kNoIndex}));
    for (std::uint32_t i = 1; i < tree.nodes.size(); ++i)
      nodes[i] = grow_.child(nodes[tree.nodes[i].parent], names[tree.nodes[i].name]);
    out_.before_counts.resize(out_.tree.nodes.size());
    for (std::uint32_t i = 0; i < tree.nodes.size(); ++i) {
      if (after)
        out_.tree.nodes[nodes[i]].self += tree.nodes[i].self;
      else
        out_.before_counts[nodes[i]] += tree.nodes[i].self;
    }
  }

private:
  std::uint32_t name(const Name &one) {
    const auto [found, fresh] =
        names_.try_emplace({one.text, one.style}, static_cast<std::uint32_t>(out_.tree.names.size()));
    if (fresh) out_.tree.names.push_back(one);
    return found->second;
  }

  DiffTree &out_;
  std::map<std::pair<std::string, Style>, std::uint32_t> names_;
  Grower grow_;
};

} // namespace

DiffTree build_diff_tree(std::span<const Profile> before, std::span<const Profile> after) {
  DiffTree out;
  Merger merger(out);
  for (const Profile &profile : before)
    merger.add(profile, false);
  for (const Profile &profile : after)
    merger.add(profile, true);
  std::vector<TreeNode> &nodes = out.tree.nodes;
  out.before_counts.resize(nodes.size());
  std::vector<std::uint64_t> totals = out.before_counts;
  for (std::size_t i = nodes.size(); i-- > 0;) {
    nodes[i].total += nodes[i].self;
    if (i == 0) break;
    nodes[nodes[i].parent].total += nodes[i].total;
    totals[nodes[i].parent] += totals[i];
  }
  out.tree.total = nodes[0].total;
  const double scale =
      totals[0] == 0 ? 0 : static_cast<double>(out.tree.total) / static_cast<double>(totals[0]);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    out.before.push_back(static_cast<double>(totals[i]) * scale);
    out.before_self.push_back(static_cast<double>(out.before_counts[i]) * scale);
  }
  return out;
}

} // namespace etwrelog::export_profile
