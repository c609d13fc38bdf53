#include "etwrelog/profile_report.hpp"

#include "base/errors.hpp"
#include "base/flat_map.hpp"
#include "base/outermost.hpp"
#include "filter/targets.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <unordered_map>

#include <fmt/format.h>

namespace etwrelog {
namespace {

std::string function_text(const Profile &profile, const ProfileFrame &frame) {
  if (frame.kind == FrameKind::annotation) return frame.function;
  const std::string module = frame.module == kNoIndex ? std::string() : profile.modules[frame.module].name;
  if (frame.function.empty()) return module.empty() ? "?" : module + "!?";
  return module.empty() ? frame.function : module + "!" + frame.function;
}

std::string module_text(const Profile &profile, const ProfileFrame &frame) {
  if (frame.kind == FrameKind::annotation) return frame.function;
  if (frame.module != kNoIndex) return profile.modules[frame.module].name;
  if (frame.kind == FrameKind::jit) return "(compiled at run time)";
  return frame.in_kernel ? "(unknown kernel code)" : "(unknown code)";
}

std::string line_text(const Profile &profile, const ProfileFrame &frame) {
  const std::string function = function_text(profile, frame);
  if (!frame.file.empty() && frame.column != 0)
    return fmt::format("{} ({}:{}:{})", function, frame.file, frame.line, frame.column);
  if (!frame.file.empty()) return fmt::format("{} ({}:{})", function, frame.file, frame.line);
  return frame.il_offset == kNoIndex ? function : fmt::format("{} (IL+0x{:x})", function, frame.il_offset);
}

// Names of frames as numbers, so that comparing two is cheap.
class Labels {
public:
  template <class Text> Labels(const Profile &profile, Text &&text) : of_frame_(profile.frames.size()) {
    std::unordered_map<std::string, std::uint32_t> known;
    for (std::size_t i = 0; i < profile.frames.size(); ++i) {
      std::string label = text(profile, profile.frames[i]);
      const auto [place, fresh] = known.try_emplace(label, static_cast<std::uint32_t>(rows_.size()));
      if (fresh) {
        rows_.push_back({std::move(label), profile.frames[i].kind, 0, 0, {}});
      }
      rows_[place->second].estimated |= profile.frames[i].estimated;
      of_frame_[i] = place->second;
    }
  }
  [[nodiscard]] std::uint32_t of(std::uint32_t frame) const { return of_frame_[frame]; }
  std::vector<ProfileRow> &rows() { return rows_; }

private:
  std::vector<std::uint32_t> of_frame_;
  std::vector<ProfileRow> rows_;
};

struct Weights {
  std::vector<std::uint64_t> self, total; // by node
};

Weights weights_of(const Profile &profile) {
  Weights weights{std::vector<std::uint64_t>(profile.nodes.size()), {}};
  for (const ProfileSample &sample : profile.samples)
    weights.self[sample.node] += sample.weight;
  weights.total = weights.self;
  for (std::size_t i = profile.nodes.size(); i-- > 1;)
    weights.total[profile.nodes[i].parent] += weights.total[i];
  return weights;
}

void sort_rows(std::vector<ProfileRow> &rows) {
  std::erase_if(rows, [](const ProfileRow &row) { return row.total == 0; });
  std::ranges::sort(rows, [](const ProfileRow &a, const ProfileRow &b) {
    if (a.self != b.self) return a.self > b.self;
    return a.total != b.total ? a.total > b.total : a.name < b.name;
  });
}

void add_tier(ProfileRow &row, const std::string &tier, std::uint64_t weight) {
  const auto known = std::ranges::find(row.tiers, tier, [](const auto &one) { return one.first; });
  if (known != row.tiers.end())
    known->second += weight;
  else
    row.tiers.emplace_back(tier, weight);
}

// Counts each label once a stack: where it stands outermost.
void count(const Profile &profile, Labels &labels) {
  const Weights weights = weights_of(profile);
  std::vector<ProfileRow> &rows = labels.rows();
  const auto label_of = [&](std::uint32_t node) { return labels.of(profile.nodes[node].frame); };
  const std::vector<bool> outermost = base::outermost(
      static_cast<std::uint32_t>(profile.nodes.size()), static_cast<std::uint32_t>(rows.size()),
      [&](std::uint32_t node) { return profile.nodes[node].parent; }, label_of);
  for (std::uint32_t i = 1; i < profile.nodes.size(); ++i) {
    if (weights.total[i] == 0) continue;
    const std::uint32_t label = label_of(i);
    rows[label].self += weights.self[i];
    if (!outermost[i]) continue;
    rows[label].total += weights.total[i];
    if (const std::string &tier = profile.frames[profile.nodes[i].frame].tier; !tier.empty())
      add_tier(rows[label], tier, weights.total[i]);
  }
  for (ProfileRow &row : rows)
    std::ranges::sort(row.tiers, [](const auto &a, const auto &b) {
      return a.second != b.second ? a.second > b.second : a.first < b.first;
    });
}

std::vector<ProfileRow> by_owner(const Profile &profile, bool threads) {
  std::unordered_map<std::string, ProfileRow> rows;
  std::vector<std::uint64_t> weight(threads ? profile.threads.size() : profile.processes.size());
  for (const ProfileSample &sample : profile.samples)
    weight[threads ? sample.thread : profile.threads[sample.thread].process] += sample.weight;
  for (std::size_t i = 0; i < weight.size(); ++i) {
    if (weight[i] == 0) continue;
    std::string name;
    if (threads) {
      const ProfileThread &thread = profile.threads[i];
      name = process_text(profile.processes[thread.process]) + " / " + std::to_string(thread.tid);
      if (!thread.name.empty()) name += " " + thread.name;
    } else {
      name = process_text(profile.processes[i]);
    }
    ProfileRow &row = rows[name];
    row.name = name;
    row.self += weight[i];
    row.total += weight[i];
  }
  std::vector<ProfileRow> sorted;
  for (auto &[name, row] : rows)
    sorted.push_back(std::move(row));
  sort_rows(sorted);
  return sorted;
}

std::string unresolved_key(const Profile &profile, const ProfileFrame &frame, bool modules) {
  if (frame.kind == FrameKind::annotation || frame.why == Unresolved::none) return {};
  const char why = static_cast<char>('A' + static_cast<int>(frame.why));
  if (!modules) return {why};
  return why + (frame.module == kNoIndex ? std::string("?") : profile.modules[frame.module].name);
}

std::vector<ProfileUnresolved> unresolved(const Profile &profile, bool modules) {
  Labels labels(profile, [&](const Profile &p, const ProfileFrame &frame) {
    return unresolved_key(p, frame, modules);
  });
  count(profile, labels);
  sort_rows(labels.rows());
  std::ranges::stable_sort(labels.rows(), std::greater<>(), &ProfileRow::total);
  std::vector<ProfileUnresolved> result;
  for (const ProfileRow &row : labels.rows())
    if (!row.name.empty())
      result.push_back({static_cast<Unresolved>(row.name[0] - 'A'), row.name.substr(1), row.self, row.total});
  return result;
}

} // namespace

std::uint64_t total_weight(const Profile &profile) {
  return std::accumulate(profile.samples.begin(), profile.samples.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const ProfileSample &sample) { return sum + sample.weight; });
}

void make_comparable(std::span<Profile *const> profiles, std::uint64_t assumed_ns) {
  const auto has_samples = [](const Profile *one) { return !one->samples.empty(); };
  const auto first = std::ranges::find_if(profiles, has_samples);
  if (first == profiles.end() || (*first)->kind != ProfileKind::cpu) return;
  bool alike = true, known = true;
  for (const Profile *const one : profiles) {
    if (!has_samples(one)) continue;
    alike = alike && one->counts_samples() && one->interval_ns == (*first)->interval_ns;
    known = known && (one->weight_ns() != 0 || assumed_ns != 0);
  }
  const std::uint64_t interval = (*first)->interval_ns;
  for (Profile *const one : profiles) {
    if (alike) { // and those without samples follow
      one->interval_ns = interval;
      continue;
    }
    const std::uint64_t unit = one->weight_ns() != 0 ? one->weight_ns() : assumed_ns;
    for (ProfileSample &sample : one->samples)
      if (known)
        sample.weight = std::min(sample.weight, std::numeric_limits<std::uint64_t>::max() / unit) * unit;
      else if (one->by_time)
        sample.weight = 1;
    one->by_time = known;
    if (!known) one->interval_ns = 0;
  }
}

std::vector<ProfileRow> profile_rows(const Profile &profile, ProfileBy by) {
  if (by == ProfileBy::process || by == ProfileBy::thread) return by_owner(profile, by == ProfileBy::thread);
  Labels labels(profile, by == ProfileBy::module     ? module_text
                         : by == ProfileBy::function ? function_text
                                                     : line_text);
  count(profile, labels);
  sort_rows(labels.rows());
  if (by == ProfileBy::module)
    for (ProfileRow &row : labels.rows())
      row.estimated = false;
  return std::move(labels.rows());
}

std::vector<ProfileTreeRow> profile_tree(const Profile &profile, double min_share) {
  Labels labels(profile, function_text);
  const Weights weights = weights_of(profile);
  // The tree again, with frames of one name as one.
  struct Node {
    std::uint32_t label = 0, depth = 0;
    std::uint64_t self = 0, total = 0;
    std::vector<std::uint32_t> children;
  };
  std::vector<Node> nodes(1);
  base::FlatMap<std::uint32_t, std::uint64_t> known; // by parent and label
  std::vector<std::uint32_t> merged(profile.nodes.size());
  for (std::size_t i = 1; i < profile.nodes.size(); ++i) {
    if (weights.total[i] == 0) continue;
    const std::uint32_t parent = merged[profile.nodes[i].parent], label = labels.of(profile.nodes[i].frame);
    const auto [place, fresh] =
        known.try_emplace(std::uint64_t{parent} << 32 | label, static_cast<std::uint32_t>(nodes.size()));
    if (fresh) {
      nodes.push_back({label, nodes[parent].depth + 1, 0, 0, {}});
      nodes[parent].children.push_back(place);
    }
    merged[i] = place;
    nodes[place].self += weights.self[i];
    nodes[place].total += weights.total[i];
  }
  const double least = min_share * static_cast<double>(total_weight(profile));
  std::vector<ProfileTreeRow> rows;
  std::vector<std::uint32_t> open{0};
  while (!open.empty()) {
    const std::uint32_t at = open.back();
    open.pop_back();
    Node &node = nodes[at];
    if (at != 0) {
      const ProfileRow &label = labels.rows()[node.label];
      rows.push_back({node.depth - 1, label.name, label.kind, node.self, node.total, label.estimated});
    }
    std::erase_if(node.children,
                  [&](std::uint32_t child) { return static_cast<double>(nodes[child].total) < least; });
    std::ranges::sort(node.children, [&](std::uint32_t a, std::uint32_t b) { // the last is taken first
      if (nodes[a].total != nodes[b].total) return nodes[a].total < nodes[b].total;
      return labels.rows()[nodes[a].label].name > labels.rows()[nodes[b].label].name;
    });
    open.insert(open.end(), node.children.begin(), node.children.end());
  }
  return rows;
}

double sampling_error(std::uint64_t part, std::uint64_t whole) {
  if (whole == 0) return 0;
  const double share = static_cast<double>(part) / static_cast<double>(whole);
  return 1.96 * std::sqrt(share * (1 - share) / static_cast<double>(whole));
}

std::vector<ProfileUnresolved> profile_unresolved(const Profile &profile) {
  return unresolved(profile, true);
}
std::vector<ProfileUnresolved> profile_unresolved_reasons(const Profile &profile) {
  return unresolved(profile, false);
}

std::uint64_t estimated_weight(const Profile &profile) {
  std::uint64_t weight = 0;
  for (const ProfileSample &sample : profile.samples)
    if (const std::uint32_t frame = profile.nodes[sample.node].frame;
        frame != kNoIndex && profile.frames[frame].estimated)
      weight += sample.weight;
  return weight;
}

std::uint32_t busiest_process(const Profile &profile) {
  std::vector<std::uint64_t> weight(profile.processes.size());
  for (const ProfileSample &sample : profile.samples)
    weight[profile.threads[sample.thread].process] += sample.weight;
  std::uint32_t best = kNoIndex;
  for (std::uint32_t i = 0; i < weight.size(); ++i)
    if (profile.processes[i].pid != 0 && weight[i] != 0 && (best == kNoIndex || weight[i] > weight[best]))
      best = i;
  return best;
}

namespace {

// For whoever asked for another: "game.exe, render.exe and 12 others".
std::string busiest_names(const Profile &profile, bool of_threads) {
  constexpr std::size_t kShown = 5;
  std::map<std::string, std::uint64_t> weights;
  for (const ProfileSample &sample : profile.samples) {
    const ProfileThread &thread = profile.threads[sample.thread];
    const ProfileProcess &process = profile.processes[thread.process];
    const std::string &name = of_threads ? thread.name : process.name;
    weights[name.empty() ? std::to_string(of_threads ? thread.tid : process.pid) : name] += sample.weight;
  }
  std::vector<std::pair<std::uint64_t, std::string>> rows;
  for (const auto &[name, weight] : weights)
    rows.emplace_back(weight, name);
  std::ranges::sort(rows, [](const auto &a, const auto &b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  std::string text;
  for (std::size_t i = 0; i < std::min(rows.size(), kShown); ++i)
    text += (i == 0 ? "" : ", ") + rows[i].second;
  return rows.size() > kShown ? text + fmt::format(" and {} others", rows.size() - kShown) : text;
}

} // namespace

Result<void> select(Profile &profile, const ProfileSelection &selection) {
  const auto missing = [&profile](bool of_threads, const std::string &pattern) {
    const char *const what = profile.kind == ProfileKind::events ? "events" : "samples";
    return base::no_match(fmt::format("no {0} with {1} is called or numbered \"{2}\": most {1} are of {3}",
                                      of_threads ? "thread" : "process", what, pattern,
                                      busiest_names(profile, of_threads)));
  };
  std::vector<char> process(profile.processes.size(), selection.processes.empty()),
      thread(profile.threads.size(), selection.threads.empty());
  for (const std::string &pattern : selection.processes) {
    bool found = false;
    for (std::size_t i = 0; i < process.size(); ++i)
      if (pattern == std::to_string(profile.processes[i].pid) ||
          filter::matches_process_name(pattern, profile.processes[i].name))
        process[i] = 1, found = true;
    if (!found) return missing(false, pattern);
  }
  for (const std::string &pattern : selection.threads) {
    bool found = false;
    for (std::size_t i = 0; i < thread.size(); ++i)
      if (pattern == std::to_string(profile.threads[i].tid) ||
          filter::matches_wildcard(pattern, profile.threads[i].name))
        thread[i] = 1, found = true;
    if (!found) return missing(true, pattern);
  }
  std::erase_if(profile.samples, [&](const ProfileSample &sample) {
    return thread[sample.thread] == 0 || process[profile.threads[sample.thread].process] == 0 ||
           (selection.from && sample.time < *selection.from) || (selection.to && sample.time > *selection.to);
  });
  std::erase_if(profile.slices, [&](const ProfileSlice &slice) {
    return thread[slice.thread] == 0 || process[profile.threads[slice.thread].process] == 0;
  });
  return {};
}

namespace {
void add(ProfileCounts &to, const ProfileCounts &from) {
  to.samples += from.samples;
  for (std::size_t i = 0; i < std::size(to.by_class); ++i)
    to.by_class[i] += from.by_class[i];
  to.fragments += from.fragments;
  to.claimed += from.claimed;
  to.other_event += from.other_event;
  to.orphaned += from.orphaned;
}
} // namespace

void append(Profile &profile, Profile &&other) {
  const auto modules = static_cast<std::uint32_t>(profile.modules.size()),
             frames = static_cast<std::uint32_t>(profile.frames.size()),
             nodes = static_cast<std::uint32_t>(profile.nodes.size() - 1), // both roots are one
      processes = static_cast<std::uint32_t>(profile.processes.size()),
             threads = static_cast<std::uint32_t>(profile.threads.size());
  Profile *const both[] = {&profile, &other};
  make_comparable(both);
  if (profile.interval_ns != other.interval_ns) profile.interval_ns = 0;
  profile.intervals.clear(); // each had its own times
  std::ranges::move(other.modules, std::back_inserter(profile.modules));
  for (ProfileFrame &frame : other.frames) {
    if (frame.module != kNoIndex) frame.module += modules;
    profile.frames.push_back(std::move(frame));
  }
  for (std::size_t i = 1; i < other.nodes.size(); ++i) {
    const ProfileNode &node = other.nodes[i];
    profile.nodes.push_back({node.parent == 0 ? 0 : node.parent + nodes, node.frame + frames});
  }
  std::ranges::move(other.processes, std::back_inserter(profile.processes));
  for (Profile *one : {&profile, &other})
    if (one->runs.empty()) one->runs.push_back(one->trace);
  const auto runs = static_cast<std::uint32_t>(profile.runs.size());
  std::ranges::move(other.runs, std::back_inserter(profile.runs));
  for (ProfileThread &thread : other.threads) {
    thread.process += processes;
    thread.run += runs;
    profile.threads.push_back(std::move(thread));
  }
  for (ProfileSample &sample : other.samples) {
    sample.thread += threads;
    if (sample.node != 0) sample.node += nodes;
  }
  const auto middle = static_cast<std::ptrdiff_t>(profile.samples.size());
  profile.samples.insert(profile.samples.end(), other.samples.begin(), other.samples.end());
  std::ranges::inplace_merge(profile.samples, profile.samples.begin() + middle, {}, &ProfileSample::time);
  for (ProfileSlice &slice : other.slices) {
    slice.thread += threads;
    profile.slices.push_back(slice);
  }
  profile.trace += " + " + other.trace;
  if (profile.stretch && other.stretch)
    profile.stretch = {std::min(profile.stretch->from, other.stretch->from),
                       std::max(profile.stretch->to, other.stretch->to)};
  profile.duration = std::max(profile.duration, other.duration);
  profile.processors = std::max(profile.processors, other.processors);
  profile.events_lost += other.events_lost;
  profile.buffers_lost += other.buffers_lost;
  profile.lost_known = profile.lost_known && other.lost_known;
  ProfileAccounting &to = profile.accounting;
  add(to.total, other.accounting.total);
  std::ranges::move(other.accounting.by_process, std::back_inserter(to.by_process));
  for (const auto &[name, count] : other.accounting.other_events) {
    const auto same = std::ranges::find(to.other_events, name, [](const auto &row) { return row.first; });
    if (same != to.other_events.end())
      same->second += count;
    else
      to.other_events.emplace_back(name, count);
  }
  to.undefined_keys += other.accounting.undefined_keys;
  to.lent_user_halves += other.accounting.lent_user_halves;
  to.idle_left_out += other.accounting.idle_left_out;
  to.not_timed += other.accounting.not_timed;
  to.in_dpc_or_isr += other.accounting.in_dpc_or_isr;
}

} // namespace etwrelog
