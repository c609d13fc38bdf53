#include "profile/methods.hpp"

#include "base/sort_unique.hpp"
#include "profile/images.hpp"
#include "profile/timeline.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace etwrelog::profile {
namespace {

// The tier that a method was compiled at stands in three bits of its flags, since .NET Core 3; older runtimes
// leave them 0 and tell by two other bits whether it was compiled here or before.
const char *tier_of(const MethodRecord &record) {
  if (record.script) return "";
  constexpr std::uint32_t kJitted = 0x8;
  switch (record.flags >> 7 & 7) {
  case 1: return "MinOptJitted";
  case 2: return "Optimized";
  case 3: return "QuickJitted";
  case 4: return "OptimizedTier1";
  case 5: return "OptimizedTier1OSR";
  case 6: return "InstrumentedTier";
  case 7: return "InstrumentedTierOptimized";
  default: return (record.flags & kJitted) != 0 ? "JIT" : "PreJIT";
  }
}

} // namespace

void Methods::build(Events events) {
  std::vector<MethodRecord> &records = events.methods;
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::string> module_names, urls;
  for (const ManagedModuleRecord &module : events.modules)
    module_names.try_emplace({module.pid, module.id}, last_part(module.path));
  for (ScriptSourceRecord &source : events.sources)
    urls.try_emplace({source.pid, source.id}, std::move(source.url));
  std::map<std::tuple<std::uint32_t, std::uint64_t, std::uint64_t>, std::uint32_t> map_numbers;
  for (IlMapRecord &map : events.maps) {
    const bool fresh =
        map_numbers.try_emplace({map.pid, map.id, map.version}, static_cast<std::uint32_t>(maps_.size()))
            .second;
    if (!fresh) continue;
    std::ranges::stable_sort(map.entries, {}, &IlMapRecord::Entry::native);
    maps_.push_back(std::move(map.entries));
  }
  std::ranges::sort(records, {}, &MethodRecord::at);
  using Key = std::pair<std::uint32_t, std::uint64_t>; // process and start
  std::map<Key, std::uint32_t> live;
  for (MethodRecord &record : records) {
    const Key key{record.pid, record.start};
    const auto here = live.find(key);
    if (record.what == MethodRecord::What::unload) {
      if (here == live.end()) continue;
      methods_[here->second].to = record.at.time;
      live.erase(here);
      continue;
    }
    if (record.size == 0 || record.start + record.size < record.start) continue;
    const bool rundown = record.what == MethodRecord::What::rundown;
    if (here != live.end() && methods_[here->second].id == record.id) continue; // known already
    Method method;
    method.pid = record.pid;
    method.start = record.start;
    method.end = record.start + record.size;
    method.id = record.id;
    method.from = rundown && here == live.end() ? kBeginning : record.at.time;
    method.to = kForever;
    method.name = std::move(record.name);
    method.tier = tier_of(record);
    method.script = record.script;
    if (const auto name = module_names.find({record.pid, record.module}); name != module_names.end())
      method.module = name->second;
    if (const auto url = urls.find({record.pid, record.source}); record.script && url != urls.end()) {
      method.file = url->second;
      method.line = record.line;
      method.column = record.column;
    }
    if (const auto map = map_numbers.find({record.pid, record.id, record.version});
        !record.script && map != map_numbers.end())
      method.map = map->second;
    live[key] = static_cast<std::uint32_t>(methods_.size());
    methods_.push_back(std::move(method));
  }
  order();
}

// Where methods overlap in space, each reaches up to the next in time; the first also covers the time before.
void Methods::order() {
  std::ranges::stable_sort(methods_, {}, [](const Method &m) { return std::tuple(m.pid, m.start, m.from); });
  reach_.resize(methods_.size());
  for (const Method &method : methods_)
    if (method.to != kForever) changes_[method.pid].push_back(method.to + 1);
  for (std::uint32_t i = 0; i < methods_.size(); ++i) {
    Range &range = ranges_[methods_[i].pid];
    if (range.count++ == 0) range.first = i;
    reach_[i] = range.count == 1 ? methods_[i].end : std::max(methods_[i].end, reach_[i - 1]);
    // Overlap with one before it in space: the two took turns.
    if (range.count > 1 && reach_[i - 1] > methods_[i].start) {
      std::vector<std::int64_t> &changes = changes_[methods_[i].pid];
      for (const std::uint32_t at : {i - 1, i})
        if (methods_[at].from != kBeginning) changes.push_back(methods_[at].from);
    }
  }
  // All that may overlap a method that took turns changes with it.
  for (auto &[pid, changes] : changes_) {
    const Range range = ranges_.at(pid);
    for (std::uint32_t i = range.first; i < range.first + range.count; ++i) {
      const bool behind = i > range.first && reach_[i - 1] > methods_[i].start,
                 before = i + 1 < range.first + range.count && methods_[i].end > methods_[i + 1].start;
      if ((behind || before) && methods_[i].from != kBeginning) changes.push_back(methods_[i].from);
    }
    base::sort_unique(changes);
  }
  for (const auto &[pid, range] : ranges_)
    if (overlap_much(reach_, range.first, range.count, [&](std::uint32_t i) { return methods_[i].start; }))
      order_overlapping(pid, range);
}

void Methods::order_overlapping(std::uint32_t pid, const Range &range) {
  Overlapping made;
  for (std::uint32_t i = range.first; i < range.first + range.count; ++i) {
    made.addresses.push_back(methods_[i].start);
    made.addresses.push_back(methods_[i].end);
  }
  base::sort_unique(made.addresses);
  made.methods = Stretches<std::uint32_t>(made.addresses.size() + 1);
  for (std::uint32_t i = range.first; i < range.first + range.count; ++i)
    made.methods.add(stretch_at(made.addresses, methods_[i].start),
                     stretch_at(made.addresses, methods_[i].end) - 1, i);
  made.methods.for_each_node([&](std::vector<std::uint32_t> &node) {
    std::ranges::stable_sort(node, {}, [&](std::uint32_t i) { return methods_[i].from; });
  });
  overlapping_.emplace(pid, std::move(made));
}

// As find() without a tree: of several from the same time on the one that begins last in space.
std::uint32_t Methods::find_overlapping(const Overlapping &among, std::int64_t time,
                                        std::uint64_t address) const {
  std::uint32_t best = kNone, first = kNone;
  const auto from = [&](std::uint32_t i) { return methods_[i].from; };
  const auto take = [&](const std::vector<std::uint32_t> &node) {
    const auto last_until = [&](std::int64_t until) {
      return std::ranges::upper_bound(node, until, {}, from);
    };
    if (const auto behind = last_until(time); behind != node.begin()) {
      const std::uint32_t i = *std::prev(behind);
      if (best == kNone || std::pair(from(i), i) > std::pair(from(best), best)) best = i;
      return;
    }
    const std::uint32_t i = *std::prev(last_until(from(node.front())));
    if (first == kNone || from(i) < from(first) || (from(i) == from(first) && i > first)) first = i;
  };
  among.methods.visit(stretch_at(among.addresses, address), take);
  if (best == kNone) return first;
  return methods_[best].to < time ? kNone : best;
}

std::uint32_t Methods::find(std::uint32_t pid, std::int64_t time, std::uint64_t address) const {
  const auto range = ranges_.find(pid);
  if (range == ranges_.end()) return kNone;
  if (const auto overlapping = overlapping_.find(pid); overlapping != overlapping_.end())
    return find_overlapping(overlapping->second, time, address);
  const auto begin = methods_.begin() + range->second.first, end = begin + range->second.count;
  auto behind =
      std::upper_bound(begin, end, address, [](std::uint64_t at, const Method &m) { return at < m.start; });
  // The latest that had been loaded by then; if none had, the first to come: it was compiled a moment before
  // it was logged, and nothing else was ever seen there.
  std::uint32_t best = kNone, first = kNone;
  while (behind != begin) {
    --behind;
    const auto i = static_cast<std::uint32_t>(behind - methods_.begin());
    if (reach_[i] <= address) break;
    if (address >= behind->end) continue;
    if (behind->from <= time && (best == kNone || behind->from > methods_[best].from)) best = i;
    if (first == kNone || behind->from < methods_[first].from) first = i;
  }
  if (best == kNone) return first;
  return methods_[best].to < time ? kNone : best;
}

std::uint32_t Methods::il_offset(const Method &method, std::uint64_t address) const {
  if (method.map == kNone || address < method.start) return kNone;
  const std::vector<IlMapRecord::Entry> &map = maps_[method.map];
  const auto behind = std::ranges::upper_bound(map, address - method.start, {}, &IlMapRecord::Entry::native);
  constexpr std::uint32_t kEpilog = 0xFFFF'FFFD; // and behind it prolog and code of no instruction
  if (behind == map.begin() || std::prev(behind)->il >= kEpilog) return kNone;
  return std::prev(behind)->il;
}

std::uint32_t Methods::epoch(std::uint32_t pid, std::int64_t time, TimeRange &valid) const {
  const auto changes = changes_.find(pid);
  return changes == changes_.end() ? 0 : count_changes(changes->second, time, valid);
}

} // namespace etwrelog::profile
