#include "passes/stack_simulation.hpp"

#include "stacks/stack_events.hpp"

namespace etwrelog::pipeline {

using namespace stacks;

StackTimeline::StackTimeline(const std::vector<StackCacheSim::Options> &settings, bool recorded,
                             unsigned pointer_size) {
  for (const StackCacheSim::Options &setting : settings)
    players_.push_back({StackCacheSim(setting), {{setting.buckets, setting.bytes}, {}}});
  if (!recorded) return;
  StackCacheSim::Options usual;
  usual.pointer_size = pointer_size;
  at_end_.emplace(Player{StackCacheSim(usual), {{usual.buckets, usual.bytes}, {}}});
  usual.start = StackCacheSim::Start::front;
  at_front_.emplace(Player{StackCacheSim(usual), {{usual.buckets, usual.bytes}, {}}});
}

void StackTimeline::play(std::int64_t before, const StackTable &table) {
  while (!waiting_.empty() && waiting_.top().place.time < before)
    play_next(table);
}

void StackTimeline::play_rest(const StackTable &table) {
  while (!waiting_.empty())
    play_next(table);
}

void StackTimeline::play_next(const StackTable &table) {
  const Moment moment = waiting_.top();
  waiting_.pop();
  const unsigned pointer_size = table.read(moment.stack, frames_);
  for (Player &player : players_)
    play(player, frames_, pointer_size);
  if (!at_end_ || !moment.reference) return;
  ++references_;
  play(*at_end_, frames_, pointer_size);
  play(*at_front_, frames_, pointer_size);
}

void StackTimeline::play(Player &player, Frames frames, unsigned pointer_size) {
  CacheSimulation &result = player.so_far;
  const StackCacheSim::Outcome outcome = player.cache.insert(frames);
  const std::uint64_t plain = walk_size(frames.size(), pointer_size);
  result.plain_bytes += plain;
  if (outcome.kind == StackCacheSim::Kind::plain) {
    result.cached_bytes += plain;
    return;
  }
  result.cached_bytes += reference_size(pointer_size);
  if (outcome.kind != StackCacheSim::Kind::fresh) return;
  ++result.definitions; // every stack that gets in is defined when it leaves
  result.cached_bytes += definition_size(frames.size(), pointer_size);
}

CacheSimulation StackTimeline::Player::result() const {
  CacheSimulation result = so_far;
  const StackCacheSim::Counts &counts = cache.counts();
  result.counts = {counts.hits, counts.fresh, counts.plain, counts.evictions,
                   counts.most_pieces * StackCacheSim::kPieceBytes};
  return result;
}

std::vector<CacheSimulation> StackTimeline::results() const {
  std::vector<CacheSimulation> results;
  for (const Player &player : players_)
    results.push_back(player.result());
  return results;
}

std::optional<RecordedCache> StackTimeline::recorded() const {
  if (!at_end_) return std::nullopt;
  RecordedCache recorded;
  recorded.references = references_;
  recorded.at_end = at_end_->result();
  recorded.at_front = at_front_->result();
  return recorded;
}

std::size_t StackTimeline::memory() const {
  std::size_t bytes = waiting_.size() * sizeof(Moment);
  for (const Player &player : players_)
    bytes += player.cache.memory();
  if (at_end_) bytes += at_end_->cache.memory() + at_front_->cache.memory();
  return bytes;
}

} // namespace etwrelog::pipeline
