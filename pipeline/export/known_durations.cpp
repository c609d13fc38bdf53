// How long things took: events that begin and end something, paired.
#include "export/known.hpp"

#include "base/errors.hpp"
#include "passes/durations.hpp"

#include <algorithm>

namespace etwrelog::pipeline {

Result<void> Knowledge::collect_durations(const etwrelog::Trace &trace, const RunOptions &run) {
  struct Seen {
    Position position;
    std::int64_t time; // own_time(): what begins and ends is of one machine, and so of one clock
    EventEdge edge;
  };
  struct Edges {
    std::vector<Seen> all;
    void clear() { all.clear(); }
  };
  OpenEdges<std::int64_t> open; // since when
  const std::uint64_t room = std::max<std::uint64_t>(run.memory / 8, 1u << 20);
  const auto keep = [&](const Position &position, std::int64_t ns) {
    if (ended_.size() * sizeof(Ended) > room)
      return problem("more durations than memory has room for: some are missing");
    ended_.push_back({position, ns});
  };
  // The machine is that of the source.
  const auto sources = trace.sources();
  const auto pair = [&](const Seen &seen) {
    const SourceInfo &source = sources[seen.position.source];
    if (seen.edge.took) return keep(seen.position, duration_ns(source.clock, *seen.edge.took));
    const std::uint32_t machine = source.machine;
    if (seen.edge.begins) {
      if (!open.begin(seen.edge, machine, seen.time))
        problem("more beginnings without an end than memory has room for: some durations are missing");
      return;
    }
    const std::optional<std::int64_t> began = open.end(seen.edge, machine);
    if (began) keep(seen.position, duration_ns(source.clock, ticks_between(*began, seen.time)));
  };
  Result<Edges> done = trace.fold<Edges>(
      [](Edges &part, EventBatch &batch) {
        for (const Event &event : batch)
          if (const std::optional<EventEdge> edge = edge_of(event))
            part.all.push_back({event.position(), own_time(event), *edge});
      },
      [&](Edges &, Edges &part) { std::ranges::for_each(part.all, pair); }, {.order = Order::time}, run);
  if (!done) return std::move(done).error();
  std::ranges::sort(ended_, {}, &Ended::position);
  return {};
}

std::optional<std::int64_t> Knowledge::duration_of(const Event &event) const {
  const Ended *const ended = told_of(event, ended_);
  return ended != nullptr ? std::optional(ended->ns) : std::nullopt;
}

} // namespace etwrelog::pipeline
