// How long things took: events that begin and end something, paired.
#include "export/known.hpp"

#include "base/errors.hpp"
#include "export/event_keys.hpp"
#include "filter/filter.hpp"
#include "schema/io_requests.hpp"
#include "schema/value_text.hpp"

#include <algorithm>
#include <unordered_map>

namespace etwrelog::pipeline {

using filter::FieldOffsets;
using filter::HookRule;

namespace {

// What begins or ends something: equal keys belong together.
struct Edge {
  Position position;
  std::int64_t time = 0;
  std::uint64_t kind = 0, key = 0, other = 0;
  bool begins = false;
};

// Pairs that the kernel writes. Numbers are opcodes of their group.
bool kernel_edge(const Event &event, std::uint16_t hook, Edge &edge) {
  const unsigned opcode = hook & 0xFF;
  const Bytes payload = event.payload();
  switch (hook >> 8) {
  case 0x03: // Process/Start and End, by id
  case 0x05: // Thread/Start and End, by id
  {
    if (opcode != 1 && opcode != 2) return false;
    const HookRule &rule = filter::rule_for(hook, event.version());
    const FieldOffsets &at = rule.offsets(event.pointer_size());
    const auto id = FieldOffsets::u32(payload, hook >> 8 == 3 ? at.process_id : at.thread_id);
    if (!id) return false;
    edge.kind = hook >> 8, edge.key = *id, edge.begins = opcode == 1;
    return true;
  }
  case 0x01: { // DiskIo
    const auto begin = schema::disk_request_begin(hook);
    const auto request = begin ? schema::io_request(event, hook) : std::nullopt;
    if (!request) return false;
    edge.kind = 1, edge.key = *request, edge.begins = hook == *begin;
    return true;
  }
  case 0x04: { // FileIo: requests, and OperationEnd
    if (opcode < 64 || opcode > 77) return false;
    const auto request = schema::io_request(event, hook);
    if (!request) return false;
    edge.kind = 4, edge.key = *request, edge.begins = opcode != 76;
    return true;
  }
  default: return false;
  }
}

} // namespace

Result<void> Knowledge::collect_durations(const etwrelog::Trace &trace, const RunOptions &run) {
  constexpr std::size_t kMostOpen = 1'000'000, kMostNested = 10'000;
  struct Edges {
    std::vector<Edge> all;
    void clear() { all.clear(); }
  };
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
    std::int64_t time;
  };
  std::unordered_map<Key, std::vector<Open>, Hash> open;
  std::size_t still_open = 0;
  const std::uint64_t room = std::max<std::uint64_t>(run.memory / 8, 1u << 20);
  auto add = [](const Event &event, Edges &part) {
    Edge edge;
    edge.position = event.position(), edge.time = event.time();
    if (const auto hook = kernel::hook_of(event)) {
      if (kernel_edge(event, *hook, edge)) part.all.push_back(edge);
      return;
    }
    const unsigned opcode = event.opcode();
    if (opcode != 1 && opcode != 2) return;
    // Events of one activity wherever they run, else those of one thread.
    const Guid provider = event.provider(), activity = event.activity();
    const std::uint64_t parts[] = {provider.low, provider.high, event.task(), 0x5354'4152'54ull};
    edge.kind = hash_words(parts);
    if (activity != Guid{})
      edge.key = activity.low, edge.other = activity.high;
    else
      edge.key = event.thread_id(), edge.other = event.process_id();
    edge.begins = opcode == 1;
    part.all.push_back(edge);
  };
  // The machine is that of the source.
  const auto sources = trace.sources();
  Result<Edges> done = trace.fold<Edges>(
      [&](Edges &part, EventBatch &batch) {
        for (const Event &event : batch)
          add(event, part);
      },
      [&](Edges &, Edges &part) {
        for (const Edge &edge : part.all) {
          const Key key{edge.kind, edge.key, edge.other, sources[edge.position.source].machine};
          if (edge.begins) {
            std::vector<Open> &mine = open[key];
            if (still_open >= kMostOpen || mine.size() >= kMostNested) {
              problem("more beginnings without an end than memory has room for: some durations are missing");
              continue;
            }
            // A request is there once: what was open by that number has no end in the trace.
            if (edge.kind <= 5) still_open -= mine.size(), mine.clear();
            mine.push_back({edge.time});
            ++still_open;
          } else if (const auto found = open.find(key); found != open.end() && !found->second.empty()) {
            if (ended_.size() * sizeof(Ended) > room) {
              problem("more durations than memory has room for: some are missing");
              continue;
            }
            std::int64_t ticks = 0; // of times that damage says, the difference may not exist
            if (__builtin_sub_overflow(edge.time, found->second.back().time, &ticks)) ticks = kForever;
            ended_.push_back({edge.position, ticks});
            found->second.pop_back();
            if (found->second.empty()) open.erase(found);
            --still_open;
          }
        }
      },
      {.order = Order::time}, run);
  if (!done) return std::move(done).error();
  std::ranges::sort(ended_, {}, &Ended::position);
  return {};
}

std::optional<std::int64_t> Knowledge::duration_of(const Event &event) const {
  const auto found = std::ranges::lower_bound(ended_, event.position(), {}, &Ended::position);
  if (found == ended_.end() || found->position != event.position()) return std::nullopt;
  return found->ticks;
}

} // namespace etwrelog::pipeline
