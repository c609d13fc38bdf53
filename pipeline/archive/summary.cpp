#include "archive/summary.hpp"

#include "base/read_ahead.hpp"
#include "filter/filter.hpp"
#include "source/trace.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace etwrelog::pipeline {

using kernel::Scope;

namespace {

constexpr std::size_t kSeenSlots = 1u << 15; // some buffers' worth: stacks follow their events closely

} // namespace

std::optional<Bytes> events_of(Bytes buffer, Bytes decoded, std::vector<std::uint8_t> &room) {
  const format::BufferHeader header = format::load_buffer_header(buffer.data());
  const std::uint32_t size = read::decoded_size(header);
  const Bytes stored = buffer.subspan(format::kBufferHeaderSize);
  if (!header.compressed()) {
    if (size > stored.size()) return std::nullopt;
    return stored.first(size);
  }
  if (!decoded.empty()) return decoded;
  if (header.valid_bytes() > format::kMaxBufferSize) return std::nullopt;
  room.resize(size);
  if (!decode_events(Codec::none, stored, room)) return std::nullopt;
  return room;
}

Summarizer::SeenTime &Summarizer::seen(std::int64_t time) {
  return seen_[(static_cast<std::uint64_t>(time) * 0x9E37'79B9'7F4A'7C15u) >> 49];
}

void Summarizer::remember(std::int64_t time, bool state) {
  SeenTime &slot = seen(time);
  slot = {time, state || (slot.time == time && slot.state)};
}

SegmentSummary Summarizer::summarize(Bytes segment, std::span<const etlz::Part> parts,
                                     const etlz::SegmentCoder *coder, std::size_t budget,
                                     SegmentOwners *owners) {
  owners_ = owners;
  if (owners_ != nullptr)
    owners_->clear(static_cast<std::uint32_t>(std::ranges::count(parts, true, &etlz::Part::buffer)));
  summary_ = SegmentSummary{};
  summary_.first_time = kForever;
  summary_.last_time = kBeginning;
  seen_.assign(kSeenSlots, SeenTime{});
  switches_.clear();
  stack_ = unowned_ = batch_ = false;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const etlz::Part &part = parts[i];
    if (!part.buffer) continue;
    const Bytes buffer = segment.subspan(part.at, part.size);
    const Bytes decoded = coder != nullptr ? coder->events(i) : Bytes();
    if (!walk(buffer, decoded, static_cast<std::uint32_t>(part.at)) || summary_.bytes.size() > budget)
      return {};
  }
  for (const LastSwitch &last : switches_)
    keep(last.bytes, last.where);
  // Back into the order of the file; a context switch may be there twice.
  auto place = [](const SegmentSummary::Event &e) { return std::pair(e.buffer, e.at); };
  std::ranges::sort(summary_.state, {}, place);
  const auto twice = [place](const SegmentSummary::Event &a, const SegmentSummary::Event &b) {
    return place(a) == place(b);
  };
  summary_.state.erase(std::unique(summary_.state.begin(), summary_.state.end(), twice),
                       summary_.state.end());
  const std::vector<std::uint8_t> unordered = std::exchange(summary_.bytes, {});
  for (SegmentSummary::Event &event : summary_.state) {
    const auto source = unordered.begin() + event.from;
    event.from = static_cast<std::uint32_t>(summary_.bytes.size());
    summary_.bytes.insert(summary_.bytes.end(), source, source + event.size);
  }
  if (owners_ != nullptr) summary_.owners = owners_->told();
  summary_.complete = true;
  return std::move(summary_);
}

bool Summarizer::walk(Bytes buffer, Bytes decoded, std::uint32_t begin) {
  const format::BufferHeader header = format::load_buffer_header(buffer.data());
  const std::optional<Bytes> events = events_of(buffer, decoded, decoded_);
  if (!events) return false;
  last_switch_ = EventView();
  if (owners_ != nullptr) owners_->begin_buffer(header.processor());
  // What no event of the buffer tells the time of has that of the trace's header, which is not known here.
  constexpr std::int64_t kTimeless = std::numeric_limits<std::int64_t>::min();
  const WalkEnd end = for_each_event(
      *events,
      [&](const EventView &event, std::int64_t time, std::uint32_t at) {
        base::read_ahead(*events, at, at + event.size());
        visit(event, time, {begin, at, event.size(), 0});
      },
      kTimeless);
  if (!end || summary_.first_time == kTimeless) return false;
  if (last_switch_.size() == 0) return true;
  auto slot = std::ranges::find(switches_, header.processor(), &LastSwitch::processor);
  if (slot == switches_.end()) slot = switches_.insert(slot, LastSwitch{header.processor(), {}, {}});
  slot->where = last_switch_where_;
  slot->bytes.assign(last_switch_.bytes().begin(), last_switch_.bytes().end());
  return true;
}

void Summarizer::visit(const EventView &event, std::int64_t time, const SegmentSummary::Event &where) {
  if (owners_ != nullptr) owners_->count(event, time);
  ++summary_.events;
  summary_.event_bytes += event.size();
  summary_.first_time = std::min(summary_.first_time, time);
  summary_.last_time = std::max(summary_.last_time, time);
  const filter::HookRule *const found = filter::rule_of(event);
  if (found == nullptr) {
    const bool state = filter::is_state(event);
    remember(time, state);
    if (state) keep(event.bytes(), where);
    return;
  }
  const filter::HookRule &rule = *found;
  if (rule.scope == Scope::context_switch && filter::switched_threads(event, rule)) {
    last_switch_ = event;
    last_switch_where_ = where;
  }
  if (keeps(event, time, rule)) keep(event.bytes(), where);
}

bool Summarizer::keeps(const EventView &event, std::int64_t time, const filter::HookRule &rule) {
  // One of each kind whose presence alone counts (filter::LifetimeRecords).
  auto first = [](bool &there) { return !std::exchange(there, true); };
  switch (rule.scope) {
  case Scope::stack_walk:
  case Scope::stack_reference: {
    const bool first_stack = first(stack_);
    const auto of = filter::FieldOffsets::i64(event.payload(), rule.offsets(event.pointer_size()).event_time);
    if (!of) return true;
    // An event that was not met may lie in another segment, inside the time.
    const SeenTime &it = seen(*of);
    return first_stack || it.time != *of || it.state;
  }
  case Scope::context_switch_batch: remember(time, false); return first(batch_);
  case Scope::current_thread:
  case Scope::header: remember(time, false); return !filter::says_causer(event) && first(unowned_);
  default: {
    const bool state = filter::is_state(rule.scope);
    remember(time, state);
    return state;
  }
  }
}

void Summarizer::keep(Bytes event, SegmentSummary::Event where) {
  where.from = static_cast<std::uint32_t>(summary_.bytes.size());
  summary_.state.push_back(where);
  summary_.bytes.insert(summary_.bytes.end(), event.begin(), event.end());
}

} // namespace etwrelog::pipeline
