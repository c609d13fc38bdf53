#include "archive/entry_check.hpp"

#include "source/segment_reader.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

namespace etwrelog::pipeline {
namespace {

using Event = SegmentSummary::Event;
using Owners = SegmentSummary::Owners;

struct Contradiction {
  std::string expected, found; // in the segment, in the index
};

std::optional<Contradiction> compare_times(const SegmentSummary &here, const etlz::SegmentFacts &told) {
  const std::int64_t first = here.events != 0 ? here.first_time : 0,
                     last = here.events != 0 ? here.last_time : 0;
  if (told.events == here.events && told.first_time == first && told.last_time == last) return {};
  return Contradiction{fmt::format("{} events from {} to {}", here.events, first, last),
                       fmt::format("{} from {} to {}", told.events, told.first_time, told.last_time)};
}

bool buffers_are_those_of(Bytes segment, const etlz::IndexEntry &entry) {
  std::vector<etlz::Part> parts, told = entry.parts;
  static_cast<void>(etlz::split_parts(segment, true, std::numeric_limits<std::size_t>::max(), parts));
  const auto is_other = [](const etlz::Part &part) { return !part.buffer; };
  std::erase_if(parts, is_other);
  std::erase_if(told, is_other);
  const auto same = [](const etlz::Part &a, const etlz::Part &b) { return a.at == b.at && a.size == b.size; };
  if (!std::ranges::equal(parts, told, same)) return false;
  const std::uint8_t *header = entry.buffer_headers.data();
  return std::ranges::all_of(parts, [&](const etlz::Part &part) {
    const bool equal = std::equal(header, header + format::kBufferHeaderSize, segment.data() + part.at);
    header += format::kBufferHeaderSize;
    return equal;
  });
}

std::optional<Contradiction> compare_owners(const Owners &here, const Owners &told) {
  if (!told.complete) return {};
  if (!here.complete) return Contradiction{"events that do not tell whose they are", "none"};
  if (here.of_nobody != told.of_nobody)
    return Contradiction{fmt::format("{} events of the system as a whole", here.of_nobody),
                         std::to_string(told.of_nobody)};
  if (here.carried && !told.carried)
    return Contradiction{"events that go by who ran when their buffer began", "none"};
  for (const std::uint32_t process : here.processes)
    if (!std::ranges::binary_search(told.processes, process))
      return Contradiction{fmt::format("events of process {}", process), "none"};
  for (const Owners::Thread &thread : here.threads) {
    const auto it = std::ranges::lower_bound(told.threads, thread.id, {}, &Owners::Thread::id);
    if (it == told.threads.end() || it->id != thread.id)
      return Contradiction{fmt::format("events of thread {}", thread.id), "none"};
    if (it->from > thread.from)
      return Contradiction{fmt::format("events of thread {} from {}", thread.id, thread.from),
                           fmt::format("from {}", it->from)};
  }
  return {};
}

std::string text_of(const Event &event) {
  return fmt::format("an event of {} bytes at 0x{:x} of the events of the buffer at 0x{:x}", event.size,
                     event.at, event.buffer);
}

Bytes bytes_of(const SegmentSummary &summary, const Event &event) {
  return Bytes(summary.bytes).subspan(event.from, event.size);
}

} // namespace

const Event *EntryCheck::find_invented(Bytes segment, const etlz::IndexEntry &entry,
                                       std::span<const Event> named) {
  auto next = named.begin();
  while (next != named.end()) {
    const std::uint32_t buffer = next->buffer;
    const auto part = std::ranges::lower_bound(entry.parts, buffer, {}, &etlz::Part::at);
    if (part == entry.parts.end() || part->at != buffer || !part->buffer) return &*next;
    const std::optional<Bytes> events = events_of(segment.subspan(part->at, part->size), {}, decoded_);
    if (!events) return &*next;
    static_cast<void>(for_each_event(*events, [&](const EventView &event, std::int64_t, std::uint32_t at) {
      if (next != named.end() && next->buffer == buffer && next->at == at &&
          std::ranges::equal(event.bytes(), bytes_of(entry.summary, *next)))
        ++next;
    }));
    if (next != named.end() && next->buffer == buffer) return &*next;
  }
  return nullptr;
}

Result<void> EntryCheck::check(Bytes segment, const etlz::IndexEntry &entry, const std::string &archive) {
  const auto contradicts = [&](const Contradiction &of) {
    Error error = damaged(archive, "segment: its index entry is of other events", entry.archive_at);
    error.expected = of.expected;
    error.found = of.found + "; what is in it is right: unpack it, and pack that";
    error.advice = Advice::none;
    return error;
  };
  if (!buffers_are_those_of(segment, entry)) return contradicts({"its buffers and their headers", "others"});
  // A segment whose summary is not complete, and the first, are read whatever their entries say.
  if (!entry.summary.complete || entry.header.original_at == 0) return {};
  const SegmentSummary &told = entry.summary;
  const SegmentSummary here =
      summarizer_.summarize(segment, entry.parts, nullptr, std::numeric_limits<std::size_t>::max(), &owners_);
  if (!here.complete)
    return contradicts({"damaged buffers, which have to be read", "all about their events"});
  if (const auto it = compare_times(here, entry.facts)) return contradicts(*it);
  if (here.event_bytes != told.event_bytes)
    return contradicts(
        {fmt::format("{} bytes of events", here.event_bytes), std::to_string(told.event_bytes)});
  if (const auto it = compare_owners(here.owners, told.owners)) return contradicts(*it);

  const auto place = [](const Event &event) { return std::pair(event.buffer, event.at); };
  auto needed = here.state.begin();
  std::vector<Event> more; // than a reader needs
  for (const Event &event : told.state) {
    if (needed != here.state.end() && place(*needed) < place(event)) break; // not named
    const bool same_place = needed != here.state.end() && place(*needed) == place(event);
    if (same_place && std::ranges::equal(bytes_of(here, *needed), bytes_of(told, event))) {
      ++needed;
      continue;
    }
    if (same_place) return contradicts({"others", text_of(event)});
    more.push_back(event);
  }
  if (needed != here.state.end()) return contradicts({text_of(*needed), "none there"});
  if (const Event *const invented = find_invented(segment, entry, more))
    return contradicts({"others", text_of(*invented)});
  return {};
}

} // namespace etwrelog::pipeline
