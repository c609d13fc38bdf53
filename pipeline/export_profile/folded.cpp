#include "export_profile/fit.hpp"

#include "base/errors.hpp"

#include <algorithm>
#include <span>

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

// The lines in their order, one at a time: all of them together can be larger than the profile.
class Lines {
public:
  // `before`: by node, a second count; or empty.
  Lines(const CallTree &tree, const std::vector<std::uint64_t> &before)
      : tree_(tree), before_(before), children_(tree.children()), names_(line_names(tree)),
        ranks_(ranks_of(2 * names_.size(), [this](std::uint32_t a, std::uint32_t b) { return less(a, b); })) {
  }

  // emit(stack, count, before)
  template <class Emit> void each(Emit &&emit) {
    std::string line;
    open(0, {});
    std::vector<Item> group;
    while (!levels_.empty()) {
      Level &level = levels_.back();
      line.resize(level.prefix);
      if (level.at == items_.size()) {
        items_.resize(level.begin);
        levels_.pop_back();
        continue;
      }
      // A process id can have been two processes of one name: what reads the same is one line.
      group.clear();
      for (const std::uint32_t rank = items_[level.at].rank;
           level.at < items_.size() && items_[level.at].rank == rank; ++level.at)
        group.push_back(items_[level.at]);
      if (!line.empty()) line += ';';
      line += names_[tree_.nodes[group.front().node].name];
      if (group.front().goes_on) {
        open(line.size(), group);
        continue;
      }
      std::uint64_t count = 0, old = 0;
      for (const Item &item : group) {
        count += tree_.nodes[item.node].self;
        old += before_of(item.node);
      }
      emit(std::string_view(line), count, old);
    }
  }

private:
  struct Item { // a node's own line, or all below it
    std::uint32_t rank, node;
    bool goes_on;
  };
  struct Level { // of items_, up to its end
    std::size_t begin, at, prefix;
  };

  // Twice the number of a name; one more where a stack goes on behind it. As the lines compare: there ';'
  // follows the name, and decides between "a.b" and "a;b".
  [[nodiscard]] bool less(std::uint32_t a, std::uint32_t b) const {
    const std::string_view x = names_[a / 2], y = names_[b / 2];
    const std::size_t same = std::min(x.size(), y.size());
    if (const int difference = x.substr(0, same).compare(y.substr(0, same)); difference != 0)
      return difference < 0;
    const auto next = [same](std::string_view name, bool goes_on) {
      return name.size() > same ? static_cast<unsigned char>(name[same]) : goes_on ? int{';'} : -1;
    };
    return next(x, a % 2 != 0) < next(y, b % 2 != 0);
  }
  [[nodiscard]] std::uint64_t before_of(std::uint32_t node) const {
    return before_.empty() ? 0 : before_[node];
  }
  // What stands below these; below the root without any.
  void open(std::size_t prefix, std::span<const Item> parents) {
    const std::size_t begin = items_.size();
    if (parents.empty()) add_children(0);
    for (const Item &parent : parents)
      add_children(parent.node);
    std::sort(
        items_.begin() + static_cast<std::ptrdiff_t>(begin), items_.end(),
        [](const Item &a, const Item &b) { return std::pair(a.rank, a.node) < std::pair(b.rank, b.node); });
    levels_.push_back({begin, begin, prefix});
  }
  void add_children(std::uint32_t parent) {
    for (std::uint32_t i = children_.first[parent]; i < children_.first[parent + 1]; ++i) {
      const std::uint32_t node = children_.order[i], name = tree_.nodes[node].name;
      if (tree_.nodes[node].self != 0 || before_of(node) != 0)
        items_.push_back({ranks_[2 * name], node, false});
      if (children_.first[node] != children_.first[node + 1])
        items_.push_back({ranks_[2 * name + 1], node, true});
    }
  }

  const CallTree &tree_;
  const std::vector<std::uint64_t> &before_;
  CallTree::Children children_;
  std::vector<std::string> names_;
  std::vector<std::uint32_t> ranks_; // by name: that of its own line, that of what is below it
  std::vector<Item> items_;
  std::vector<Level> levels_;
};

// Lines have whole units, as all readers take them: what is rounded is the sum up to a line, so that the sum
// of all lines is right.
class WholeUnits {
public:
  explicit WholeUnits(const Unit &unit) : unit_(unit.weight) {}
  [[nodiscard]] std::uint64_t operator()(std::uint64_t weight) {
    sum_ += weight;
    const std::uint64_t before = told_;
    told_ = (sum_ + unit_ / 2) / unit_;
    return told_ - before;
  }

private:
  std::uint64_t unit_, sum_ = 0, told_ = 0;
};

} // namespace

Result<void> write_folded(const Job &job, Out &out) {
  const auto render = [&job](const Profile &profile, const ShownSlices &, Out &to) {
    const CallTree tree = build_tree(profile, job.options.threads ? Group::thread : Group::process);
    const std::vector<std::uint64_t> none;
    WholeUnits units(unit_of(profile));
    Lines(tree, none).each([&](std::string_view stack, std::uint64_t weight, std::uint64_t) {
      if (const std::uint64_t count = units(weight); count != 0)
        to.text(stack).text(" ").unsigned_number(count).text("\n");
    });
  };
  if (job.options.max_bytes != 0) return write_fitting(job, {.timed = false}, render, out);
  render(job.profile, {}, out); // scripts read it, whatever its size
  return {};
}

void write_diff_folded(const DiffTree &diff, const Unit &unit, Out &out) {
  WholeUnits units(unit), units_before(unit);
  Lines(diff.tree, diff.before_counts)
      .each([&](std::string_view stack, std::uint64_t weight, std::uint64_t weight_before) {
        const std::uint64_t count = units(weight), before = units_before(weight_before);
        if (count != 0 || before != 0)
          out.text(stack).text(" ").unsigned_number(before).text(" ").unsigned_number(count).text("\n");
      });
}

} // namespace etwrelog::export_profile
