#include "output/narrow.hpp"

#include "passes/collect.hpp"

#include <algorithm>
#include <set>
#include <unordered_set>

namespace etwrelog::pipeline {
namespace {

bool outside(const SummarizedSegment &segment, const filter::TimeRange &time) {
  return segment.summary->first_time > time.to || segment.summary->last_time < time.from;
}

bool inside(const SummarizedSegment &segment, const filter::TimeRange &time) {
  return time.contains(segment.summary->first_time) && time.contains(segment.summary->last_time);
}

// Whether it is processes alone that keep an event: then all that belongs to none of them goes, and for no
// other reason.
bool by_process_alone(const Selection &selection) {
  return (!selection.processes.empty() || !selection.command_line.empty()) && !selection.by_kind() &&
         !selection.keep_system;
}

// Of segments that tell whose their events are: whether any of them is of the targets, or cannot be told.
class Owned {
public:
  Owned(const filter::Lifetimes &lifetimes, const filter::Targets &targets)
      : lifetimes_(lifetimes), targets_(targets) {}

  [[nodiscard]] bool by_none(const SegmentSummary &summary) const {
    const SegmentSummary::Owners &owners = summary.owners;
    return std::ranges::all_of(owners.processes,
                               [&](std::uint32_t pid) { return no_target(pid, summary); }) &&
           std::ranges::all_of(owners.threads, [&](const auto &t) { return no_target(t, summary); });
  }
  // `ran`: the thread that ran on a processor before the segment's first buffer of it.
  [[nodiscard]] bool not_by(std::uint32_t ran, const SegmentSummary &summary) const {
    if (ran == kUnknownId) return !summary.owners.carried;
    return no_target({ran, summary.first_time}, summary);
  }

private:
  [[nodiscard]] bool no_target(std::uint32_t pid, const SegmentSummary &summary) const {
    return !targets_.contains_any(pid, summary.first_time, summary.last_time);
  }
  [[nodiscard]] bool no_target(const SegmentSummary::Owners::Thread &thread,
                               const SegmentSummary &summary) const {
    if (thread.from > summary.last_time) return false; // which the index had wrong
    const auto spans = lifetimes_.spans_of(thread.id, thread.from, summary.last_time);
    if (spans.empty()) return thread.id == 0 && no_target(filter::kIdleProcess, summary);
    return std::ranges::all_of(spans, [&](const filter::Lifetimes::Span &span) {
      return span.pid != kUnknownId && no_target(span.pid, summary);
    });
  }

  const filter::Lifetimes &lifetimes_;
  const filter::Targets &targets_;
};

// Where the segments begin that hold nothing of the selected processes. Reads the rest of the trace once.
Result<std::unordered_set<std::uint64_t>>
segments_of_others(const Trace &whole, const filter::TimeRange &time, const RelogOptions &options) {
  std::unordered_set<std::uint64_t> of_others;
  const Trace survey = whole.without([&](const SummarizedSegment &segment) {
    return outside(segment, time) || segment.summary->owners.complete;
  });
  const std::span<const SummarizedSegment> segments = survey.left_out();
  std::uint64_t known = 0;
  for (const SummarizedSegment &segment : segments)
    known += segment.end - segment.begin;
  if (known < whole.input().size() / 2) return of_others; // the rest would be read twice for little
  PassResult ignored;                                     // the relog itself will meet the same
  ETWRELOG_TRY_LET(lifetimes, collect_lifetimes(survey, options.graph, ignored, "asking the index"));
  const Result<filter::Targets> targets = filter::Targets::resolve(options.selection, lifetimes);
  if (!targets) return of_others; // the filter will say what is wrong with the selection
  const Owned owned(lifetimes, *targets);
  for (const SummarizedSegment &segment : segments) {
    const SegmentSummary &summary = *segment.summary;
    if (summary.owners.complete && inside(segment, time) && owned.by_none(summary))
      of_others.insert(segment.begin);
  }
  // Who runs later on in a segment is among its threads; who ran before is told by the segments before it.
  std::set<std::pair<std::uint64_t, std::uint16_t>> begun; // segments, by where they begin, and processors
  for (std::uint32_t i = 0; i < whole.buffers().size() && !of_others.empty(); ++i) {
    const read::BufferSpan &buffer = whole.buffers()[i];
    const auto after = std::ranges::upper_bound(segments, buffer.offset, {}, &SummarizedSegment::begin);
    if (after == segments.begin() || buffer.offset >= (after - 1)->end) continue;
    const SummarizedSegment &segment = *(after - 1);
    if (begun.emplace(segment.begin, buffer.processor).second &&
        !owned.not_by(lifetimes.thread_at_start(i), *segment.summary))
      of_others.erase(segment.begin);
  }
  return of_others;
}

} // namespace

Result<std::optional<Trace>> narrowed(const Trace &whole, const RelogOptions &options) {
  if (!whole.has_index() || options.count || options.keep_grouping || options.stacks.mode != StackMode::keep)
    return std::optional<Trace>();
  const filter::TimeRange time = filter::selected_time(options.selection, whole.clock());
  std::unordered_set<std::uint64_t> of_others;
  // What ran before a segment is what ran at the end of those before it in the file.
  const bool in_order = (whole.header().log_file_mode & format::kModeOneStream) == 0 && !whole.scan().wrapped;
  if (by_process_alone(options.selection) && in_order) {
    ETWRELOG_TRY_LET(found, segments_of_others(whole, time, options));
    of_others = std::move(found);
  }
  Trace without = whole.without([&](const SummarizedSegment &segment) {
    return outside(segment, time) || of_others.contains(segment.begin);
  });
  if (without.left_out().empty()) return std::optional<Trace>();
  return std::optional<Trace>(std::move(without));
}

void report_left_out(const Trace &narrowed, const Selection &selection, RelogReport &report) {
  const auto count = [&](filter::Reason reason, std::uint64_t events) {
    report.by_reason[static_cast<std::size_t>(reason)] += events;
  };
  const filter::TimeRange time = filter::selected_time(selection, narrowed.clock());
  for (const SummarizedSegment &segment : narrowed.left_out()) {
    const std::uint64_t events = segment.other_events();
    report.events_in += events;
    report.event_bytes_in += segment.other_bytes();
    if (outside(segment, time)) {
      count(filter::Reason::dropped_time, events);
      continue;
    }
    const std::uint64_t of_nobody = std::min(events, segment.summary->owners.of_nobody);
    count(filter::Reason::dropped_system, of_nobody);
    count(filter::Reason::dropped_process, events - of_nobody);
  }
  report.buffers_left_out = narrowed.buffers_left_out();
}

} // namespace etwrelog::pipeline
