#include "archive/outline.hpp"

#include "filter/filter.hpp"
#include "source/trace.hpp"

#include <algorithm>
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

Outliner::SeenTime &Outliner::seen(std::int64_t time) {
  return seen_[(static_cast<std::uint64_t>(time) * 0x9E37'79B9'7F4A'7C15u) >> 49];
}

void Outliner::remember(std::int64_t time, bool outlives) {
  SeenTime &slot = seen(time);
  slot = {time, outlives || (slot.time == time && slot.outlives)};
}

Outline Outliner::outline(Bytes segment, std::span<const etlz::Part> parts, const etlz::SegmentCoder &coder,
                          std::size_t budget) {
  outline_ = Outline{};
  outline_.first_time = kForever;
  outline_.last_time = kBeginning;
  seen_.assign(kSeenSlots, SeenTime{});
  switches_.clear();
  stack_ = unowned_ = batch_ = false;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const etlz::Part &part = parts[i];
    if (!part.buffer) continue;
    const Bytes buffer = segment.subspan(part.at, part.size);
    if (!walk(buffer, coder.events(i), static_cast<std::uint32_t>(part.at)) || outline_.bytes.size() > budget)
      return {};
  }
  for (const LastSwitch &last : switches_)
    keep(last.bytes, last.where);
  // Back into the order of the file; a context switch may be there twice.
  auto place = [](const Outline::Event &e) { return std::pair(e.buffer, e.at); };
  std::ranges::sort(outline_.kept, {}, place);
  const auto twice = [place](const Outline::Event &a, const Outline::Event &b) {
    return place(a) == place(b);
  };
  outline_.kept.erase(std::unique(outline_.kept.begin(), outline_.kept.end(), twice), outline_.kept.end());
  const std::vector<std::uint8_t> unordered = std::exchange(outline_.bytes, {});
  for (Outline::Event &event : outline_.kept) {
    const auto source = unordered.begin() + event.from;
    event.from = static_cast<std::uint32_t>(outline_.bytes.size());
    outline_.bytes.insert(outline_.bytes.end(), source, source + event.size);
  }
  outline_.complete = true;
  return std::move(outline_);
}

bool Outliner::walk(Bytes buffer, Bytes decoded, std::uint32_t begin) {
  const format::BufferHeader header = format::load_buffer_header(buffer.data());
  const std::optional<Bytes> events = events_of(buffer, decoded, decoded_);
  if (!events) return false;
  last_switch_ = EventView();
  const WalkEnd end =
      for_each_event(*events, [&](const EventView &event, std::int64_t time, std::uint32_t at) {
        visit(event, time, {begin, at, event.size(), 0});
      });
  if (!end) return false;
  if (last_switch_.size() == 0) return true;
  auto slot = std::ranges::find(switches_, header.processor(), &LastSwitch::processor);
  if (slot == switches_.end()) slot = switches_.insert(slot, LastSwitch{header.processor(), {}, {}});
  slot->where = last_switch_where_;
  slot->bytes.assign(last_switch_.bytes().begin(), last_switch_.bytes().end());
  return true;
}

void Outliner::visit(const EventView &event, std::int64_t time, const Outline::Event &where) {
  ++outline_.events;
  outline_.event_bytes += event.size();
  outline_.first_time = std::min(outline_.first_time, time);
  outline_.last_time = std::max(outline_.last_time, time);
  if (!event.has_hook()) {
    const bool outlives = filter::outlives_time(event);
    remember(time, outlives);
    if (outlives) keep(event.bytes(), where);
    return;
  }
  const filter::HookRule &rule = filter::rule_for(event.hook(), event.version());
  if (rule.scope == Scope::context_switch) {
    last_switch_ = event;
    last_switch_where_ = where;
  }
  if (keeps(event, time, rule)) keep(event.bytes(), where);
}

bool Outliner::keeps(const EventView &event, std::int64_t time, const filter::HookRule &rule) {
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
    return first_stack || it.time != *of || it.outlives;
  }
  case Scope::context_switch_batch: remember(time, false); return first(batch_);
  case Scope::current_thread:
  case Scope::header: remember(time, false); return !event.has_ids() && first(unowned_);
  default: {
    const bool outlives = filter::outlives_time(rule.scope);
    remember(time, outlives);
    return outlives;
  }
  }
}

void Outliner::keep(Bytes event, Outline::Event where) {
  where.from = static_cast<std::uint32_t>(outline_.bytes.size());
  outline_.kept.push_back(where);
  outline_.bytes.insert(outline_.bytes.end(), event.begin(), event.end());
}

} // namespace etwrelog::pipeline
