// What begins and what ends: processes and threads by id, requests to disks and files by number, and what
// providers call Start and Stop, by activity, else by thread. Of page faults that read from a disk, of DPCs
// and of ISRs there is an event at the end alone, which says itself when it began.
#pragma once

#include "passes/event_keys.hpp"

#include "etwrelog/clock.hpp"
#include "etwrelog/event.hpp"

#include <optional>
#include <unordered_map>
#include <vector>

namespace etwrelog::pipeline {

struct EventEdge {
  std::uint64_t kind = 0, key = 0, other = 0; // equal ones belong together
  // Of a request to a disk: the hook of its beginning, which is what the end must end.
  std::uint16_t request = 0;
  bool begins = false;
  bool single = false;                // such a thing is there once until it ends
  std::optional<std::int64_t> took{}; // of an end that says so itself: ticks of its own clock
};

// None: the event neither begins nor ends anything.
[[nodiscard]] std::optional<EventEdge> edge_of(const EventView &event);
// The same of a kernel event, whatever its header.
[[nodiscard]] std::optional<EventEdge> kernel_edge_of(const EventView &event, std::uint16_t hook);

// The most there are where the difference of what damage says does not exist.
[[nodiscard]] std::int64_t ticks_between(std::int64_t began, std::int64_t ended);
// At most 285 years, before or after.
[[nodiscard]] std::int64_t duration_ns(const Clock &clock, std::int64_t ticks);

// Beginnings that have not ended. Edges come in the order of time.
template <class Begin> class OpenEdges {
public:
  // False: there is no room for more of them.
  [[nodiscard]] bool begin(const EventEdge &edge, std::uint32_t machine, Begin begin) {
    constexpr std::size_t kMostOpen = 1'000'000, kMostNested = 10'000;
    if (open_count_ >= kMostOpen) return false;
    std::vector<Open> &mine = open_[key_of(edge, machine)];
    if (mine.size() >= kMostNested) return false;
    // What was open by that number has no end in the trace.
    if (edge.single) open_count_ -= mine.size(), mine.clear();
    mine.push_back({edge.request, std::move(begin)});
    ++open_count_;
    return true;
  }
  // What the edge ends; none: it is not there.
  [[nodiscard]] std::optional<Begin> end(const EventEdge &edge, std::uint32_t machine) {
    const auto found = open_.find(key_of(edge, machine));
    if (found == open_.end() || found->second.empty()) return std::nullopt;
    Open last = std::move(found->second.back());
    found->second.pop_back();
    if (found->second.empty()) open_.erase(found);
    --open_count_;
    return last.request == edge.request ? std::optional(std::move(last.begin)) : std::nullopt;
  }

private:
  struct Key {
    std::uint64_t kind, key, other;
    std::uint32_t machine;
    bool operator==(const Key &) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key &k) const {
      const std::uint64_t words[] = {k.kind, k.key, k.other, k.machine};
      return static_cast<std::size_t>(hash_words(words));
    }
  };
  struct Open {
    std::uint16_t request;
    Begin begin;
  };
  static Key key_of(const EventEdge &edge, std::uint32_t machine) {
    return {edge.kind, edge.key, edge.other, machine};
  }
  std::unordered_map<Key, std::vector<Open>, Hash> open_;
  std::size_t open_count_ = 0;
};

} // namespace etwrelog::pipeline
