#include "output/several.hpp"

#include "base/errors.hpp"
#include "base/platform.hpp"
#include "base/progress_meter.hpp"
#include "etwrelog/io.hpp"
#include "etwrelog/text.hpp"
#include "output/buffer_filter.hpp"
#include "output/merged_header.hpp"
#include "output/time_merge.hpp"
#include "output/trace_output.hpp"
#include "passes/collect.hpp"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

namespace etwrelog::pipeline {

using namespace format;

namespace {

constexpr std::int64_t kBeforeAll = std::numeric_limits<std::int64_t>::min();

// When the events of a buffer were; none if the first is later than the last.
struct BufferTimes {
  std::uint32_t buffer = 0;
  std::uint16_t processor = 0;
  std::int64_t first = std::numeric_limits<std::int64_t>::max(), last = kBeforeAll;
};

// A buffer in the order in which those of all traces are read: that of their first events, as far as the
// order in each trace and on each processor allows.
struct Planned {
  std::int64_t first;  // no event on the processor is earlier, here and in what follows in the same trace
  std::int64_t before; // the latest event before it on the processor in the same trace
  std::uint32_t trace, buffer;
};

// What one batch of a trace says of lifetimes and times.
struct Survey {
  filter::LifetimeRecords records;
  std::vector<BufferTimes> times;
};

// Some neighbours in the order of reading, on their way.
struct Stretch {
  struct Load { // consecutive buffers of one trace
    Batch batch;
    std::size_t planned = 0; // the first of them
  };
  std::deque<Load> loads; // the first `used`; the others keep their memory for later
  std::size_t used = 0;
  std::uint64_t bytes = 0, events = 0;
  struct Kept {
    std::size_t planned;
    TimedEvents events;
    write::OutputBuffer grouped; // instead, where buffers are kept whole; empty if nothing stays
  };
  std::vector<Kept> kept;
  std::vector<write::Run> runs;
  Counts counts;
  write::Outgoing out;
};

// As one of the inputs is compressed.
Codec codec_of(Traces traces) {
  const bool any =
      std::ranges::any_of(traces, [](const Trace *trace) { return trace->codec() != Codec::none; });
  return any ? Codec::xpress : Codec::none;
}

std::uint32_t nominal_size_of(Traces traces, const RelogOptions &options) {
  std::uint32_t largest = 0;
  for (const Trace *trace : traces)
    largest = std::max(largest, trace->header().buffer_size);
  if (!options.keep_grouping) return nominal_size(largest, options);
  for (const Trace *trace : traces)
    for (const read::BufferSpan &span : trace->buffers())
      largest = std::max(
          {largest, span.size, static_cast<std::uint32_t>(kBufferHeaderSize + align8(span.decoded))});
  return largest;
}

Error not_together(const Trace &first, const Trace &other, const char *what, const std::string &expected,
                   const std::string &found) {
  return base::unsupported(fmt::format("cannot be one trace with {}: another {}", first.input().name(), what))
      .in(other.input().name())
      .expected(expected)
      .found(found);
}

// The steps run in the order in which they stand here.
class SeveralRelogger {
public:
  SeveralRelogger(Traces traces, const RelogOptions &options, RelogReport &report)
      : traces_(traces), options_(options), report_(report), header_(merged_header(traces)),
        clock_(traces[earliest(traces)]->clock()) {
    first_number_.push_back(0);
    for (const Trace *trace : traces)
      first_number_.push_back(first_number_.back() + static_cast<std::uint32_t>(trace->buffers().size()));
    nominal_ = nominal_size_of(traces, options);
  }

  Result<void> run() {
    ETWRELOG_TRY(open_output());
    ETWRELOG_TRY(survey());
    ETWRELOG_TRY(prepare_filter());
    ETWRELOG_TRY(write_header());
    ETWRELOG_TRY(relog_buffers());
    write::Outgoing out;
    ETWRELOG_TRY(merge_->finish(out));
    ETWRELOG_TRY(output_->buffers().put(out));
    std::uint64_t incomplete = report_.skipped.size();
    for (const Trace *trace : traces_)
      incomplete += trace->incomplete_buffers() - trace->scan().skipped.size();
    return output_->finish(report_, incomplete);
  }

private:
  Result<void> open_output() {
    ETWRELOG_TRY(check_nominal_size(nominal_, options_));
    ETWRELOG_TRY_LET(output, TraceOutput::create(options_));
    output_.emplace(std::move(output));
    for (const Trace *trace : traces_) {
      report_.input_bytes += trace->input().size();
      report_.input_buffers += trace->buffers().size();
      for (const std::string &warning : trace->scan().warnings)
        report_.warnings.push_back(trace->input().name() + ": " + warning);
      for (read::Skipped skipped : trace->scan().skipped) {
        skipped.source = number_of(trace);
        report_.skipped.push_back(std::move(skipped));
      }
    }
    return {};
  }

  [[nodiscard]] std::uint32_t number_of(const Trace *trace) const {
    return static_cast<std::uint32_t>(std::ranges::find(traces_, trace) - traces_.begin());
  }

  // Processes and threads of all traces, and the order in which their buffers will be read.
  Result<void> survey() {
    filter::LifetimeRecords records;
    std::vector<std::uint16_t> streams(first_number_.back());
    std::map<std::pair<std::uint32_t, std::uint16_t>, std::uint16_t> stream_of; // by trace and processor
    for (std::uint32_t number = 0; number < traces_.size(); ++number) {
      const Trace &trace = *traces_[number];
      std::map<std::uint16_t, std::int64_t> latest; // by processor
      const bool one_stream = (trace.header().log_file_mode & kModeOneStream) != 0;
      Pass<Survey> pass;
      pass.name = "reading processes";
      pass.work = [&](Batch &batch, Survey &part) { survey_batch(number, batch, part); };
      pass.merge = [&](Batch &, Survey &part) -> Result<void> {
        if (one_stream) part.records.switches.clear(); // its buffers do not tell where an event was
        records.append(std::move(part.records));
        for (const BufferTimes &times : part.times) {
          // The first processors alone can be told apart, should there be more than 65536 in all.
          const auto next = static_cast<std::uint16_t>(stream_of.size());
          streams[first_number_[number] + times.buffer] =
              stream_of.try_emplace({number, times.processor}, next).first->second;
          if (times.first > times.last) continue;
          std::int64_t &before = latest.try_emplace(times.processor, kBeforeAll).first->second;
          plan_.push_back({std::max(before, times.first), before, number, times.buffer});
          before = std::max(before, times.last);
        }
        return {};
      };
      ETWRELOG_TRY_LET(done, run_pass(trace, pass, options_.graph));
      for (Skipped &skipped : done.skipped)
        skipped.source = number;
      std::ranges::move(done.skipped, std::back_inserter(report_.skipped));
      std::ranges::move(done.warnings, std::back_inserter(report_.warnings));
    }
    std::ranges::stable_sort(plan_, {}, &Planned::first);
    lifetimes_ = filter::Lifetimes(std::move(records), streams, false);
    return {};
  }

  // Parallel.
  void survey_batch(std::uint32_t number, Batch &batch, Survey &part) const {
    const Trace &trace = *traces_[number];
    part.records.clear();
    part.times.clear();
    for (const DecodedBuffer &buffer : batch.buffers) {
      BufferTimes times{buffer.index, buffer.header.processor()};
      trace.visit(batch, buffer, [&](const EventView &event, std::int64_t time, std::uint32_t) {
        if (times.last == kBeforeAll) times.first = time;
        times.last = std::max(times.last, time);
        part.records.add(event, time, first_number_[number] + buffer.index);
      });
      part.times.push_back(times);
    }
  }

  Result<void> prepare_filter() {
    Result<filter::Filter> filter = filter::Filter::make(options_.selection, lifetimes_, clock_);
    if (!filter) return base::in_file(std::move(filter).error(), traces_.front()->input().name());
    filter_.emplace(std::move(*filter));
    events_.emplace(*filter_, lifetimes_, options_.count);
    if (options_.selection.everything()) return {};
    std::vector<FilteredTrace> all;
    for (std::uint32_t number = 0; number < traces_.size(); ++number)
      all.push_back({traces_[number], first_number_[number]});
    ETWRELOG_TRY(settle_filter(all, *filter_, options_.graph));
    if (!filter_->targets().all())
      for (std::uint32_t i = 0; i < lifetimes_.processes().size(); ++i)
        if (filter_->targets().is_target(i))
          report_.targets.emplace_back(lifetimes_.processes()[i].pid, lifetimes_.processes()[i].image_name);
    return {};
  }

  Result<void> write_header() {
    const Trace &base = *traces_[earliest(traces_)];
    Batch batch;
    batch.count = 1;
    base.load(batch);
    if (batch.error) return *std::move(batch.error);
    if (batch.buffers.empty())
      return base::corrupt("the first buffer, with the logfile header, cannot be read")
          .in(base.input().name());
    const Bytes event = Bytes(batch.buffers.front().events).first(base.header().event_size);
    FirstBuffer first;
    first.header_event = merged_header_event(event, header_);
    first.last_time = base.header().first_stamp;
    report_.event_bytes_out += first.header_event.size();
    report_.event_bytes_out -= event.size();
    ETWRELOG_TRY(output_->begin(header_, nominal_, codec_of(traces_), first));
    merge_.emplace(traces_.size(), output_->buffers());
    return {};
  }

  Result<void> relog_buffers() {
    Steps<Stretch> steps;
    steps.next = [this](Stretch &part) -> Result<bool> { return next(part); };
    steps.work = [this](Stretch &part) { return filter_stretch(part); };
    steps.merge = [this](Stretch &part) { return put_in_order(part); };
    steps.finish = [this](Stretch &part) -> Result<void> {
      output_->buffers().seal(part.out);
      return {};
    };
    steps.emit = [this](Stretch &part) -> Result<void> {
      ETWRELOG_TRY(output_->buffers().append(part.out));
      progress_.advance(part.bytes, part.events);
      return {};
    };
    std::uint64_t total = 0;
    for (const Trace *trace : traces_)
      total += trace->stored_bytes();
    progress_.begin("relogging", total);
    const std::uint64_t each = 2 * std::max<std::uint64_t>(options_.graph.batch_bytes, nominal_);
    const auto afforded =
        static_cast<std::size_t>(std::max<std::uint64_t>(2, options_.graph.in_flight_bytes / each));
    std::deque<Stretch> slots(std::min(slots_for(options_.graph.threads), afforded) + 1);
    return run_steps(steps, slots, {options_.graph.threads, options_.graph.stop});
  }

  // Serial.
  bool next(Stretch &part) {
    part.used = 0;
    part.bytes = part.events = 0;
    std::uint64_t decoded = 0;
    while (next_planned_ < plan_.size()) {
      const Planned &planned = plan_[next_planned_];
      const read::BufferSpan &span = traces_[planned.trace]->buffers()[planned.buffer];
      const std::uint64_t more = std::max(span.decoded, span.size);
      if (decoded != 0 && decoded + more > options_.graph.batch_bytes) break;
      decoded += more;
      part.bytes += span.size;
      Stretch::Load *last = part.used != 0 ? &part.loads[part.used - 1] : nullptr;
      const bool follows = last && plan_[last->planned].trace == planned.trace &&
                           last->batch.first + last->batch.count == planned.buffer;
      if (!follows) {
        if (part.loads.size() == part.used) part.loads.emplace_back();
        last = &part.loads[part.used++];
        last->batch.first = planned.buffer;
        last->batch.count = 0;
        last->planned = next_planned_;
      }
      ++last->batch.count;
      ++next_planned_;
    }
    return part.used != 0;
  }

  // Parallel.
  Result<void> filter_stretch(Stretch &part) const {
    part.kept.clear();
    part.counts.clear();
    for (std::size_t i = 0; i < part.used; ++i) {
      Stretch::Load &load = part.loads[i];
      const std::uint32_t number = plan_[load.planned].trace;
      const Trace &trace = *traces_[number];
      load.batch.events = 0;
      trace.load(load.batch);
      for (DecodedBuffer &buffer : load.batch.buffers) {
        const std::size_t planned = load.planned + (buffer.index - load.batch.first);
        part.kept.emplace_back().planned = planned;
        if (options_.keep_grouping)
          keep_grouped(trace, load.batch, buffer, part);
        else
          keep(trace, load.batch, buffer, plan_[planned], part);
      }
      part.events += load.batch.events;
      if (load.batch.error) return *std::move(load.batch.error);
    }
    return {};
  }

  // What stays of a buffer to `part.runs`; returns whether all of it does.
  bool filter(const Trace &trace, Batch &batch, const DecodedBuffer &buffer, Stretch &part) const {
    DecodedBuffer events = buffer;
    events.index += first_number_[number_of(&trace)];
    part.runs.clear();
    const bool whole = events_->filter(trace, batch, events, part.runs, part.counts);
    if (buffer.index != 0) return whole;
    leave_header_out(trace, buffer, part);
    return false;
  }

  // What stays of a buffer as one buffer: byte for byte as it is stored, if it is all of it and no other
  // codec is asked for.
  void keep_grouped(const Trace &trace, Batch &batch, const DecodedBuffer &buffer, Stretch &part) const {
    write::OutputBuffer &out = part.kept.back().grouped;
    const bool storable = !options_.codec && !buffer.cut && buffer.header.buffer_size == buffer.stored.size();
    out.bytes.clear();
    if (storable) out.bytes.append(buffer.stored); // filtering may zero paddings in place
    const bool whole = filter(trace, batch, buffer, part);
    if (part.runs.empty()) {
      out.bytes.clear();
      return;
    }
    out.processor = buffer.header.processor();
    out.type = buffer.index == 0 ? std::uint16_t{kTypeGeneric} : buffer.header.type;
    out.lost_flags = write::lost_flags(buffer.header);
    out.last_time = part.runs.back().last_time;
    out.as_stored = storable && whole;
    if (out.as_stored) return;
    out.bytes.clear();
    out.bytes.resize(kBufferHeaderSize, 0);
    for (const write::Run &run : part.runs)
      out.bytes.append(write::bytes_of(run, buffer.events));
  }

  // What stays of a buffer, in memory of its own and with the times by which it is put in order.
  void keep(const Trace &trace, Batch &batch, const DecodedBuffer &buffer, const Planned &planned,
            Stretch &part) const {
    filter(trace, batch, buffer, part);
    TimedEvents &kept = part.kept.back().events;
    kept.origin.processor = buffer.header.processor();
    kept.origin.lost_flags = write::lost_flags(buffer.header);
    std::int64_t latest = planned.before;
    for (const write::Run &run : part.runs) {
      const Bytes bytes =
          Bytes(buffer.events)
              .subspan(run.begin, std::min<std::size_t>(run.end, buffer.events.size()) - run.begin);
      const std::size_t shift = kept.bytes.size();
      kept.bytes.insert(kept.bytes.end(), bytes.begin(), bytes.end());
      kept.bytes.resize(shift + (run.end - run.begin));
      for_each_event(
          bytes,
          [&](const EventView &event, std::int64_t time, std::uint32_t at) {
            latest = std::max(latest, time);
            const auto begin = static_cast<std::uint32_t>(shift + at);
            kept.events.push_back(
                {latest, time, begin, static_cast<std::uint32_t>(begin + align8(event.size()))});
          },
          run.last_time);
    }
  }

  // The header event is written by hand; that of one trace counts for all.
  void leave_header_out(const Trace &trace, const DecodedBuffer &buffer, Stretch &part) const {
    const std::uint32_t size = trace.header().event_size;
    const auto end = static_cast<std::uint32_t>(align8(size));
    for (write::Run &run : part.runs)
      run.begin = std::max(run.begin, end);
    std::erase_if(part.runs, [](const write::Run &run) { return run.begin >= run.end; });
    if (&trace == traces_[earliest(traces_)]) return;
    --part.counts.events_in;
    --part.counts.events_out;
    part.counts.bytes_in -= size;
    part.counts.bytes_out -= size;
    // As Filter::decide counted it.
    const auto reason =
        options_.selection.everything() ? filter::Reason::kept_process : filter::Reason::kept_always;
    --part.counts.by_reason[static_cast<std::size_t>(reason)];
    if (!options_.count) return;
    const EventView event(buffer.events.data(), size, static_cast<HeaderType>(buffer.events[2]));
    schema::TypeCount &type = part.counts.types.at(type_of(event));
    --type.events;
    --type.kept_events;
    type.bytes -= size;
    type.kept_bytes -= size;
  }

  // Serial, in the order of the plan.
  Result<void> put_in_order(Stretch &part) {
    part.counts.add_to(report_);
    for (Stretch::Kept &kept : part.kept) {
      if (options_.keep_grouping) {
        if (!kept.grouped.empty()) part.out.closed.push_back(std::move(kept.grouped));
        continue;
      }
      const Planned &planned = plan_[kept.planned];
      if (Result<void> added = merge_->add(planned.trace, planned.first, std::move(kept.events), part.out);
          !added)
        return base::in_file(std::move(added).error(), traces_[planned.trace]->input().name());
    }
    output_->buffers().stamp(part.out);
    return {};
  }

  const Traces traces_;
  const RelogOptions &options_;
  RelogReport &report_;
  const LogfileHeader header_;
  const Clock clock_;
  std::uint32_t nominal_ = 0;
  std::vector<std::uint32_t> first_number_; // of each trace's buffers, among those of all

  std::optional<TraceOutput> output_;
  filter::Lifetimes lifetimes_;
  std::vector<Planned> plan_;
  std::size_t next_planned_ = 0;
  std::optional<filter::Filter> filter_;
  std::optional<BufferFilter> events_;
  std::optional<TimeMerge> merge_;
  base::ProgressMeter progress_{options_.graph.progress};
};

} // namespace

Result<void> check_one_boot(Traces traces) {
  const Trace &first = *traces.front();
  const LogfileHeader &a = first.header();
  for (std::size_t i = 1; i < traces.size(); ++i) {
    const Trace *const trace = traces[i];
    const LogfileHeader &b = trace->header();
    const auto differ = [&](const char *what, const std::string &expected, const std::string &found) {
      return not_together(first, *trace, what, expected, found);
    };
    const auto same = [trace](const Trace *other) {
      return other->input().member() == trace->input().member() &&
             base::same_file(other->input().file(), trace->input().file());
    };
    if (std::ranges::any_of(traces.first(i), same))
      return base::bad_option(Option::input, "is named twice").in(trace->input().name());
    if (a.clock_type != b.clock_type)
      return differ("kind of clock", std::to_string(a.clock_type), std::to_string(b.clock_type));
    if (a.perf_freq != b.perf_freq)
      return differ("clock frequency", fmt::format("{} Hz", a.perf_freq), fmt::format("{} Hz", b.perf_freq));
    if (static_cast<ClockType>(a.clock_type) == ClockType::cpu_cycles && a.cpu_mhz != b.cpu_mhz)
      return differ("clock frequency", fmt::format("{} MHz", a.cpu_mhz), fmt::format("{} MHz", b.cpu_mhz));
    if (a.boot_time != b.boot_time)
      return differ("time of boot", filetime_text(a.boot_time), filetime_text(b.boot_time));
  }
  return {};
}

namespace {

// Stacks are rewritten as one trace has them: several become one first, in a temporary file.
Result<void> relog_with_stacks(Traces traces, const RelogOptions &options, RelogReport &report) {
  ETWRELOG_TRY(base::check_target(options.output, options.replace_output));
  ETWRELOG_TRY_LET(between, TemporaryFile::create());
  RelogOptions merging = options;
  merging.output = between.name();
  merging.codec = Codec::none; // read once, at once
  merging.stacks.mode = StackMode::keep;
  RelogReport merged;
  ETWRELOG_TRY(SeveralRelogger(traces, merging, merged).run());

  RelogOptions rewriting = options;
  rewriting.selection = {};
  rewriting.count = false;
  rewriting.codec = options.codec.value_or(codec_of(traces));
  ETWRELOG_TRY_LET(one, Trace::open(between.name(), {}));
  ETWRELOG_TRY(relog(one, rewriting, report));
  report.input_bytes = merged.input_bytes;
  report.input_buffers = merged.input_buffers;
  report.events_in = merged.events_in;
  report.event_bytes_in = merged.event_bytes_in;
  report.any_fits = merged.any_fits;
  report.by_reason = merged.by_reason;
  report.types = std::move(merged.types);
  report.processes = std::move(merged.processes);
  report.targets = std::move(merged.targets);
  report.skipped = std::move(merged.skipped);
  report.warnings.insert(report.warnings.begin(), merged.warnings.begin(), merged.warnings.end());
  return {};
}

} // namespace

Result<void> relog_several(Traces traces, const RelogOptions &options, RelogReport &report) {
  const auto began = std::chrono::steady_clock::now();
  if (options.keep_grouping && options.stacks.mode != StackMode::keep)
    return base::bad_option(
               Option::stacks,
               "cannot be combined: in buffers that overlap in time, a stack's definition has no "
               "place behind all its uses")
        .about(Option::stacks, Option::keep_grouping);
  ETWRELOG_TRY(check_one_boot(traces));
  ETWRELOG_TRY(options.stacks.mode == StackMode::keep ? SeveralRelogger(traces, options, report).run()
                                                      : relog_with_stacks(traces, options, report));
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return {};
}

} // namespace etwrelog::pipeline
