#include "export_profile/formats.hpp"

#include <algorithm>

namespace etwrelog::export_profile {
namespace {

std::string_view suffix(Style style) {
  switch (style) {
  case Style::kernel: return "_[k]";
  case Style::jit: return "_[j]";
  case Style::inlined: return "_[i]";
  default: return {};
  }
}

// A line is split at ';' by who reads it.
std::vector<std::string> line_names(const CallTree &tree) {
  std::vector<std::string> out;
  out.reserve(tree.names.size());
  for (const Name &name : tree.names) {
    std::string text = name.text;
    std::ranges::replace(text, ';', ':');
    out.push_back(std::move(text.append(suffix(name.style))));
  }
  return out;
}

struct Line {
  std::string stack;
  std::uint64_t count, before;
};

std::vector<Line> lines_of(const CallTree &tree, const std::vector<std::uint64_t> &before) {
  const std::vector<std::string> names = line_names(tree);
  std::vector<Line> lines;
  std::vector<std::uint32_t> path;
  for (std::uint32_t i = 1; i < tree.nodes.size(); ++i) {
    const std::uint64_t old = before.empty() ? 0 : before[i];
    if (tree.nodes[i].self == 0 && old == 0) continue;
    path.clear();
    for (std::uint32_t at = i; at != 0; at = tree.nodes[at].parent)
      path.push_back(at);
    std::string stack;
    for (; !path.empty(); path.pop_back())
      stack.append(stack.empty() ? "" : ";").append(names[tree.nodes[path.back()].name]);
    lines.push_back({std::move(stack), tree.nodes[i].self, old});
  }
  std::ranges::sort(lines, {}, &Line::stack);
  std::size_t kept = 0;
  for (Line &line : lines) { // a process id can have been two processes of one name
    if (kept != 0 && lines[kept - 1].stack == line.stack) {
      lines[kept - 1].count += line.count;
      lines[kept - 1].before += line.before;
    } else {
      if (&lines[kept] != &line) lines[kept] = std::move(line);
      ++kept;
    }
  }
  lines.resize(kept);
  return lines;
}

} // namespace

Result<void> write_folded(const Job &job, Out &out) {
  const CallTree tree = build_tree(job.profile, job.options.threads ? Group::thread : Group::process);
  for (const Line &line : lines_of(tree, {}))
    out.text(line.stack).text(" ").unsigned_number(line.count).text("\n");
  return {};
}

void write_diff_folded(const DiffTree &diff, Out &out) {
  for (const Line &line : lines_of(diff.tree, diff.before_counts))
    out.text(line.stack)
        .text(" ")
        .unsigned_number(line.before)
        .text(" ")
        .unsigned_number(line.count)
        .text("\n");
}

} // namespace etwrelog::export_profile
