#include "output/buffer_filter.hpp"

#include "base/errors.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace etwrelog::pipeline {

using namespace format;

void Counts::clear() {
  events_in = events_out = bytes_in = bytes_out = 0;
  any_fits = false;
  by_reason.fill(0);
  types.clear();
  processes.clear();
}

void Counts::add_to(RelogReport &report) const {
  report.events_in += events_in;
  report.events_out += events_out;
  report.event_bytes_in += bytes_in;
  report.event_bytes_out += bytes_out;
  for (std::size_t i = 0; i < by_reason.size(); ++i)
    report.by_reason[i] += by_reason[i];
  report.any_fits = report.any_fits || any_fits;
  report.types.merge(types);
  for (const auto &[pid, count] : processes) {
    report.processes[pid].events_in += count.events_in;
    report.processes[pid].events_out += count.events_out;
  }
}

FilteredBuffer BufferFilter::begin(std::uint32_t index, std::uint16_t processor, MutableBytes events,
                                   std::vector<write::Run> &runs, Counts &counts) const {
  const filter::Position position = filter_.begin_buffer(index, processor);
  return {events, runs, counts, position, position};
}

bool BufferFilter::take(const EventView &event, std::int64_t time, std::uint32_t at,
                        FilteredBuffer &buffer) const {
  const filter::Reason reason = filter_.decide(event, time, buffer.position);
  const bool kept = filter::is_kept(reason);
  Counts &counts = buffer.counts;
  ++counts.events_in;
  counts.bytes_in += event.size();
  ++counts.by_reason[static_cast<std::size_t>(reason)];
  if (by_type_and_process_) count(event, time, kept, buffer);
  if (!kept) return false;
  ++counts.events_out;
  counts.any_fits = counts.any_fits || filter_.fits(event, time, buffer.position);
  counts.bytes_out += event.size();
  const auto end = static_cast<std::uint32_t>(at + align8(event.size()));
  std::fill(buffer.events.data() + at + event.size(), buffer.events.data() + end, std::uint8_t{0});
  std::vector<write::Run> &runs = buffer.runs;
  if (!runs.empty() && runs.back().end == at && at - runs.back().begin < write::kLongRun)
    runs.back().end = end;
  else
    runs.push_back({at, end, time});
  runs.back().last_time = time;
  return true;
}

bool BufferFilter::filter(const Trace &trace, Batch &batch, const DecodedBuffer &buffer,
                          std::vector<write::Run> &runs, Counts &counts) const {
  bool whole = !buffer.left_out;
  FilteredBuffer filtered = begin(buffer.index, buffer.header.processor(), buffer.events, runs, counts);
  filtered.position.of_others = buffer.from_index;
  trace.visit(batch, buffer, [&](const EventView &event, std::int64_t time, std::uint32_t at) {
    whole = take(event, time, at, filtered) && whole;
  });
  return whole;
}

void BufferFilter::count(const EventView &event, std::int64_t time, bool kept, FilteredBuffer &buffer) const {
  schema::TypeCount &type = buffer.counts.types.at(type_of(event));
  ++type.events;
  type.bytes += event.size();
  if (kept) {
    ++type.kept_events;
    type.kept_bytes += event.size();
  }
  const filter::Owner owner = filter::owner_of(event, time, buffer.owner_position, lifetimes_);
  if (owner.kind != filter::Owner::Kind::process) return;
  ProcessCount &process = buffer.counts.processes[owner.pid];
  ++process.events_in;
  process.events_out += kept ? 1 : 0;
}

FirstBuffer split_first_buffer(const format::BufferHeader &header, Bytes events, std::uint32_t header_size,
                               std::span<const write::Run> runs) {
  FirstBuffer first;
  first.processor = header.processor();
  first.lost_flags = write::lost_flags(header);
  first.header_event.assign(events.begin(), events.begin() + header_size);
  const auto header_end = static_cast<std::uint32_t>(align8(header_size));
  for (const write::Run &run : runs) {
    const std::uint32_t begin = std::max(run.begin, header_end);
    if (begin < run.end)
      first.more_events.insert(first.more_events.end(), events.data() + begin, events.data() + run.end);
    first.last_time = run.last_time;
  }
  return first;
}

} // namespace etwrelog::pipeline
