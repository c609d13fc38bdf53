#include "stack_cache.hpp"

#include "stacks/stack_events.hpp"

#include <algorithm>

namespace etwrelog::gen {

StackCache::StackCache(const stacks::StackCacheSim::Options &options)
    : pointer_size_(options.pointer_size), cache_(stacks::StackCacheSim::clamp(options)) {}

void StackCache::rewrite(std::vector<Stream> &streams, Tally &tally) {
  walks_.clear();
  definitions_.clear();
  std::uint32_t number = 0;
  for (std::uint32_t cpu = 0; cpu < streams.size(); ++cpu)
    for_each_event(streams[cpu].bytes, [&](const EventView &e, std::int64_t time, std::uint32_t at) {
      if (stacks::stack_event_kind(e) == stacks::StackEventKind::walk)
        walks_.push_back({time, cpu, at, e.size(), number++, {}, 0, 0, 0, 0});
    });
  std::ranges::sort(walks_, {}, [](const Walk &w) { return std::tuple(w.time, w.cpu, w.at); });
  for (Walk &w : walks_) {
    const EventView event(streams[w.cpu].bytes.data() + w.at, w.size,
                          pointer_size_ == 8 ? format::HeaderType::perfinfo64
                                             : format::HeaderType::perfinfo32);
    stacks::StackFields fields;
    if (!stacks::parse_stack_event(event, stacks::StackEventKind::walk, fields)) continue;
    stacks::load_frames(fields.frames, pointer_size_, frames_);
    const stacks::StackCacheSim::Outcome outcome = cache_.insert(frames_);
    w.kind = outcome.kind;
    w.key = outcome.key;
    w.evicted_at = static_cast<std::uint32_t>(definitions_.size());
    if (!outcome.evicted) continue;
    w.evicted_key = outcome.evicted_key;
    w.evicted_count = static_cast<std::uint32_t>(outcome.evicted_frames.size());
    definitions_.insert(definitions_.end(), outcome.evicted_frames.begin(), outcome.evicted_frames.end());
  }
  // Back into the order of the streams; the walks are counted anew as what became of them.
  std::ranges::sort(walks_, {}, &Walk::number);
  constexpr auto kWalk = static_cast<std::size_t>(Kind::stack_walk);
  tally.count[kWalk] = tally.bytes[kWalk] = tally.frames = 0;
  for (auto &[index, own] : tally.processes)
    own.count[kWalk] = 0;
  std::size_t next = 0;
  for (std::uint32_t cpu = 0; cpu < streams.size(); ++cpu) {
    Stream &from = streams[cpu];
    spare_.clear();
    Emitter out(spare_, tally, pointer_size_);
    for_each_event(from.bytes, [&](const EventView &e, std::int64_t time, std::uint32_t at) {
      (void)out.stamp(time);
      const bool walk = next < walks_.size() && walks_[next].cpu == cpu && walks_[next].at == at;
      if (!walk) return out.copy(e.bytes());
      const Walk &w = walks_[next++];
      const std::uint32_t owner = tally.stack_owners[w.number];
      stacks::StackFields fields;
      (void)stacks::parse_stack_event(e, stacks::StackEventKind::walk, fields);
      if (w.evicted_count != 0) {
        out.perfinfo(Kind::key_delete, 2, time)
            .value(w.evicted_key)
            .stack({definitions_.data() + w.evicted_at, w.evicted_count});
        out.done(Kind::key_delete, nullptr);
        tally.frames += w.evicted_count;
      }
      if (w.kind == stacks::StackCacheSim::Kind::plain) {
        out.copy(e.bytes());
        tally.add(Kind::stack_walk, e.size());
        tally.own(Kind::stack_walk, owner);
        tally.frames += fields.frames.size() / pointer_size_;
        return;
      }
      stacks::load_frames(fields.frames, pointer_size_, frames_);
      const Kind kind = stacks::is_kernel_stack(frames_, pointer_size_) ? Kind::key_kernel : Kind::key_user;
      out.perfinfo(kind, 2, time)
          .value(static_cast<std::uint64_t>(fields.event_time))
          .value(fields.process_id)
          .value(fields.thread_id);
      out.builder().value(w.key);
      out.done(kind, nullptr);
      tally.own(kind, owner);
    });
    out.close_run();
    std::swap(from, spare_);
  }
}

void StackCache::run_down(Stream &stream, Tally &tally, std::int64_t time) {
  Emitter out(stream, tally, pointer_size_);
  cache_.run_down([&](std::uint64_t key, std::span<const std::uint64_t> frames) {
    out.perfinfo(Kind::key_rundown, 2, ++time).value(key).stack(frames);
    out.done(Kind::key_rundown, nullptr);
    tally.frames += frames.size();
  });
  out.close_run();
}

} // namespace etwrelog::gen
