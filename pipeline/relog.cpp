#include "pipeline/relog.hpp"

#include "stages/shared/platform.hpp"
#include "stages/write/etl_writer.hpp"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

namespace etwrelog::pipeline {

using namespace format;

namespace {

constexpr std::uint32_t kDefaultBufferSize = 64u << 10;

struct MarkWork final : Work {
  filter::Marks::Part part;
};

struct Counts {
  std::uint64_t events_in = 0, events_out = 0, bytes_in = 0, bytes_out = 0;
  std::array<std::uint64_t, filter::kReasons> by_reason{};
  decode::TypeCounts types;
  std::map<std::uint32_t, ProcessCount> processes;

  void clear() {
    events_in = events_out = bytes_in = bytes_out = 0;
    by_reason.fill(0);
    types.clear();
    processes.clear();
  }
};

struct RelogWork final : Work {
  std::vector<std::vector<write::Run>> runs; // of each buffer of the batch
  std::vector<bool> whole;                   // every event of the buffer is kept
  StackRewriter::Part stacks;
  Counts counts;
  std::vector<write::OutputBuffer> closed;
  std::optional<Compressor> compressor;
  std::vector<std::uint8_t> scratch;
};

// The part of a relog that one event at a time goes through.
class EventSieve {
public:
  EventSieve(const filter::Filter &filter, const filter::Lifetimes &lifetimes, bool count)
      : filter_(filter), lifetimes_(lifetimes), count_(count) {}

  // Appends the runs of kept events of one buffer and zeroes the padding behind them, which in the input is whatever
  // the memory held. Returns whether every event is kept.
  bool sift(const Trace &trace, Batch &batch, const DecodedBuffer &buffer, std::vector<write::Run> &runs,
            Counts &counts) const {
    bool whole = true;
    filter::Position position = filter_.begin_buffer(buffer.index, buffer.header.processor());
    filter::Position owner_position = position;
    trace.visit(batch, buffer, [&](const EventView &event, std::int64_t time, std::uint32_t at) {
      const filter::Reason reason = filter_.decide(event, time, position);
      const bool kept = filter::is_kept(reason);
      ++counts.events_in;
      counts.bytes_in += event.size();
      ++counts.by_reason[static_cast<std::size_t>(reason)];
      if (count_) count(event, time, owner_position, kept, counts);
      if (!kept) {
        whole = false;
        return;
      }
      ++counts.events_out;
      counts.bytes_out += event.size();
      const auto end = static_cast<std::uint32_t>(at + align8(event.size()));
      // Looked at first: a write to mapped memory copies a page.
      for (std::uint8_t *pad = buffer.events.data() + at + event.size(); pad < buffer.events.data() + end; ++pad)
        if (*pad != 0) *pad = 0;
      if (!runs.empty() && runs.back().end == at) runs.back().end = end;
      else runs.push_back({at, end, time});
      runs.back().last_time = time;
    });
    return whole;
  }

private:
  void count(const EventView &event, std::int64_t time, filter::Position &position, bool kept, Counts &counts) const {
    decode::TypeCount &type = counts.types.at(decode::type_of(event));
    ++type.events;
    type.bytes += event.size();
    if (kept) {
      ++type.kept_events;
      type.kept_bytes += event.size();
    }
    const filter::Owner owner = filter::owner_of(event, time, position, lifetimes_);
    if (owner.kind != filter::Owner::Kind::process) return;
    ProcessCount &process = counts.processes[owner.pid];
    ++process.events_in;
    process.events_out += kept ? 1 : 0;
  }

  const filter::Filter &filter_;
  const filter::Lifetimes &lifetimes_;
  bool count_;
};

void add_counts(const Counts &part, RelogReport &report) {
  report.events_in += part.events_in;
  report.events_out += part.events_out;
  report.event_bytes_in += part.bytes_in;
  report.event_bytes_out += part.bytes_out;
  for (std::size_t i = 0; i < part.by_reason.size(); ++i) report.by_reason[i] += part.by_reason[i];
  report.types.merge(part.types);
  for (const auto &[pid, count] : part.processes) {
    report.processes[pid].events_in += count.events_in;
    report.processes[pid].events_out += count.events_out;
  }
}

Result<filter::Marks> collect_marks(const Trace &trace, const filter::Filter &filter, const GraphOptions &options,
                                    StepTimes *times) {
  filter::Marks marks;
  Pass pass;
  pass.name = "following references";
  pass.make_work = [] { return std::make_unique<MarkWork>(); };
  pass.work = [&](Batch &batch, Work &base) {
    filter::Marks::Part &part = static_cast<MarkWork &>(base).part;
    part.clear();
    for (const DecodedBuffer &buffer : batch.buffers) {
      filter::Position position = filter.begin_buffer(buffer.index, buffer.header.processor());
      trace.visit(batch, buffer, [&](const EventView &event, std::int64_t time, std::uint32_t) {
        filter.mark(event, time, position, part);
      });
    }
    part.shrink();
  };
  pass.in_order = [&](Batch &, Work &base) -> Result<void> {
    filter.merge(static_cast<MarkWork &>(base).part, marks);
    return {};
  };
  if (Result<PassResult> done = run_pass(trace, pass, options, times); !done) return std::move(done).error();
  return marks;
}

// What a relogger writes into the header event; the rest of it is copied.
LogfileHeader output_header(const Trace &trace, std::uint32_t nominal_size, bool compressed) {
  LogfileHeader header = trace.header();
  header.buffer_size = nominal_size;
  // KILOBYTES gives MaximumFileSize its unit and ONE_STREAM says that processor indexes mean nothing: both stay true.
  header.log_file_mode = kModeSequential | kModeRelog | (header.log_file_mode & (kModeKilobytes | kModeOneStream)) |
                         (compressed ? std::uint32_t{kModeCompressed} : 0u);
  set_log_version(header, compressed);
  return header;
}

std::uint32_t nominal_size(const Trace &trace, const RelogOptions &options) {
  const std::uint32_t input = trace.header().buffer_size;
  if (!options.keep_grouping) return options.buffer_size != 0 ? options.buffer_size : std::max(input, kDefaultBufferSize);
  std::uint32_t largest = input;
  for (const read::BufferSpan &span : trace.buffers())
    largest = std::max(largest, static_cast<std::uint32_t>(kBufferHeaderSize + align8(span.decoded)));
  return largest;
}

// The first buffer: the header event, and the other kept events behind it.
struct FirstBuffer {
  std::vector<std::uint8_t> header_event, more_events;
  std::int64_t last_time = 0;
};

Result<FirstBuffer> sift_first_buffer(const Trace &trace, const EventSieve &sieve, RelogReport &report) {
  Batch batch;
  batch.count = 1;
  trace.load(batch);
  if (batch.error) return *std::move(batch.error);
  FirstBuffer first;
  if (batch.buffers.empty()) return first;
  const DecodedBuffer &buffer = batch.buffers.front();
  std::vector<write::Run> runs;
  Counts counts;
  sieve.sift(trace, batch, buffer, runs, counts);
  if (batch.error) return *std::move(batch.error);
  add_counts(counts, report);
  // The scan has read the header event: it is there, whole, and always kept.
  const std::uint32_t header_size = load<std::uint16_t>(buffer.events.data() + 4);
  first.header_event.assign(buffer.events.begin(), buffer.events.begin() + header_size);
  const auto header_end = static_cast<std::uint32_t>(align8(header_size));
  for (const write::Run &run : runs) {
    const std::uint32_t begin = std::max(run.begin, header_end);
    if (begin < run.end)
      first.more_events.insert(first.more_events.end(), buffer.events.data() + begin, buffer.events.data() + run.end);
    first.last_time = run.last_time;
  }
  return first;
}

Error with_file(Error error, const std::string &file) {
  if (error.file.empty()) error.file = file;
  return error;
}

// A trace without stack keys needs no pass to collect them, which shows only when it has been read.
enum class StackKeysRead : std::uint8_t { no, met, yes };

Result<void> relog_once(const Trace &trace, const RelogOptions &options, StackKeysRead &keys_read, RelogReport &report) {
  const auto began = std::chrono::steady_clock::now();
  if (platform::same_file(trace.input().name(), options.output)) {
    Error error;
    error.kind = ErrorKind::usage;
    error.file = options.output;
    error.what = "is the input itself";
    error.advice = "choose another name for the output";
    return error;
  }
  const Codec codec = options.codec.value_or(trace.codec() == Codec::none ? Codec::none : Codec::xpress);
  const bool compressed = codec != Codec::none;
  const std::uint32_t nominal = nominal_size(trace, options);
  if (nominal > kMaxBufferSize || nominal < 1024 || nominal % 8 != 0) {
    Error error;
    error.kind = ErrorKind::usage;
    error.what = fmt::format("a buffer size of {} bytes", nominal);
    error.expected = fmt::format("a multiple of 8 from 1024 to {}", kMaxBufferSize);
    return error;
  }
  Result<write::OutputFile> file = write::OutputFile::create(options.output, options.replace_output);
  if (!file) return std::move(file).error();

  report.input_bytes = trace.input().size();
  report.input_buffers = trace.buffers().size();
  report.warnings = trace.scan().warnings;
  report.skipped = trace.scan().skipped;

  filter::Lifetimes lifetimes;
  const bool selective = !options.selection.everything();
  PassResult first_pass;
  if (selective || options.count) {
    StepTimes &times = report.passes.emplace_back().second;
    report.passes.back().first = "collect";
    Result<filter::Lifetimes> collected = collect_lifetimes(trace, options.graph, first_pass, &times);
    if (!collected) return std::move(collected).error();
    lifetimes = std::move(*collected);
  }
  Result<filter::Filter> filter = filter::Filter::make(options.selection, lifetimes, trace.clock());
  if (!filter) return with_file(std::move(filter).error(), trace.input().name());
  if (selective) {
    StepTimes &times = report.passes.emplace_back().second;
    report.passes.back().first = "mark";
    Result<filter::Marks> marks = collect_marks(trace, *filter, options.graph, &times);
    if (!marks) return std::move(marks).error();
    filter->set_marks(std::move(*marks));
    if (!filter->targets().all())
      for (std::uint32_t i = 0; i < lifetimes.processes().size(); ++i)
        if (filter->targets().is_target(i))
          report.targets.emplace_back(lifetimes.processes()[i].pid, lifetimes.processes()[i].image_name);
    if (lifetimes.has_switch_batches())
      report.warnings.push_back("batched context switches (CompCS) hold several processes and are kept whole");
  }

  std::optional<StackRewriter> stacks;
  if (options.stacks.mode != StackMode::keep) {
    StackInventory inventory;
    const bool collect = keys_read == StackKeysRead::yes;
    if (collect) {
      StepTimes &times = report.passes.emplace_back().second;
      report.passes.back().first = "stack keys";
      PassResult collecting;
      Result<StackInventory> collected = collect_stacks(trace, options.graph, collecting, &times);
      if (!collected) return std::move(collected).error();
      inventory = std::move(*collected);
    }
    stacks.emplace(options.stacks, std::move(inventory), collect);
  }

  const EventSieve sieve(*filter, lifetimes, options.count);
  Result<FirstBuffer> first = sift_first_buffer(trace, sieve, report);
  if (!first) return std::move(first).error();
  Result<write::EtlWriter> writer = write::EtlWriter::create(
      std::move(*file), output_header(trace, nominal, compressed), first->header_event, first->more_events, compressed);
  if (!writer) return std::move(writer).error();

  write::Rechunker rechunker(nominal, options.keep_grouping);
  write::Stamper stamper(trace.clock());
  std::int64_t last_time = first->last_time;
  auto stamp = [&](std::vector<write::OutputBuffer> &closed) {
    for (write::OutputBuffer &buffer : closed) {
      stamper.stamp(buffer);
      last_time = std::max(last_time, buffer.last_time);
    }
  };

  Pass pass;
  pass.name = "relogging";
  pass.changes_buffers = filter->keeps_everything(); // padding is zeroed in place
  pass.make_work = [&] {
    auto work = std::make_unique<RelogWork>();
    if (compressed) work->compressor.emplace(codec, options.level, nominal);
    return work;
  };
  pass.work = [&](Batch &batch, Work &base) {
    auto &work = static_cast<RelogWork &>(base);
    work.counts.clear();
    work.runs.resize(batch.buffers.size());
    work.whole.assign(batch.buffers.size(), false);
    for (std::size_t i = 0; i < batch.buffers.size(); ++i) {
      work.runs[i].clear();
      if (batch.buffers[i].index == 0) continue; // written by the writer's own hand
      work.whole[i] = sieve.sift(trace, batch, batch.buffers[i], work.runs[i], work.counts);
    }
    if (!stacks) return;
    stacks->begin(work.stacks, batch.buffers.size());
    for (std::size_t i = 0; i < batch.buffers.size(); ++i) stacks->rewrite(batch.buffers[i], work.runs[i], work.stacks, i);
  };
  std::vector<std::uint8_t> definitions;
  write::Run definitions_run;
  pass.in_order = [&](Batch &batch, Work &base) -> Result<void> {
    auto &work = static_cast<RelogWork &>(base);
    work.closed.clear();
    if (stacks && !stacks->collected() && work.stacks.met_key) {
      keys_read = StackKeysRead::met;
      Error error;
      error.kind = ErrorKind::cancelled;
      error.what = "stack keys must be collected first";
      return error;
    }
    add_counts(work.counts, report);
    for (std::size_t i = 0; i < batch.buffers.size(); ++i) {
      const BufferHeader &header = batch.buffers[i].header;
      write::Origin origin;
      origin.processor = header.processor();
      origin.type = header.type;
      origin.lost_flags = header.flags & (kFlagEventsLost | kFlagBufferLost);
      origin.whole = work.whole[i];
      origin.failed_reservation =
          nominal == trace.header().buffer_size ? write::failed_reservation(header, nominal) : 0;
      Bytes events = batch.buffers[i].events;
      std::span<const write::Run> runs = work.runs[i];
      Result<void> added;
      if (stacks) {
        stacks->order(origin.processor, work.stacks, i, definitions, definitions_run);
        const StackRewriter::Buffer &rewritten = work.stacks.buffers[i];
        events = rewritten.bytes;
        runs = rewritten.runs;
        origin.whole = origin.whole && !rewritten.changed && definitions.empty();
        if (!definitions.empty()) added = rechunker.add(origin, definitions, {&definitions_run, 1}, work.closed);
      }
      if (added) added = rechunker.add(origin, events, runs, work.closed);
      if (!added) {
        Error error = with_file(std::move(added).error(), trace.input().name());
        error.offset = batch.buffers[i].file_offset;
        return error;
      }
    }
    if (stacks) stacks->end_batch(work.stacks);
    stamp(work.closed);
    return {};
  };
  pass.finish = [&](Work &base) -> Result<void> {
    auto &work = static_cast<RelogWork &>(base);
    for (write::OutputBuffer &buffer : work.closed)
      write::seal(buffer, nominal, work.compressor ? &*work.compressor : nullptr, work.scratch);
    return {};
  };
  pass.last = [&](Work &base) -> Result<void> {
    for (const write::OutputBuffer &buffer : static_cast<RelogWork &>(base).closed)
      if (Result<void> written = writer->append(buffer); !written) return written;
    return {};
  };
  StepTimes &times = report.passes.emplace_back().second;
  report.passes.back().first = "relog";
  Result<PassResult> done = run_pass(trace, pass, options.graph, &times);
  if (!done) return std::move(done).error();

  RelogWork rest;
  if (compressed) rest.compressor.emplace(codec, options.level, nominal);
  auto write_rest = [&]() -> Result<void> {
    stamp(rest.closed);
    if (Result<void> sealed = pass.finish(rest); !sealed) return sealed;
    if (Result<void> written = pass.last(rest); !written) return written;
    rest.closed.clear();
    return {};
  };
  while (stacks) {
    write::Origin origin;
    stacks->finish(definitions, definitions_run, origin.processor);
    if (definitions.empty()) break;
    if (Result<void> added = rechunker.add(origin, definitions, {&definitions_run, 1}, rest.closed); !added) return added;
    if (Result<void> written = write_rest(); !written) return written;
  }
  rechunker.flush(rest.closed);
  if (Result<void> written = write_rest(); !written) return written;
  if (Result<void> finished = writer->finish(trace.clock().to_filetime(last_time)); !finished) return finished;

  // Every pass meets the same damage; the last one's list is the whole of it.
  std::move(done->skipped.begin(), done->skipped.end(), std::back_inserter(report.skipped));
  std::move(done->warnings.begin(), done->warnings.end(), std::back_inserter(report.warnings));
  if (stacks) {
    report.stacks = stacks->counts();
    report.events_out = report.events_out + report.stacks.walks_out + report.stacks.references_out +
                        report.stacks.definitions_out - report.stacks.walks_in - report.stacks.references_in -
                        report.stacks.definitions_in;
    report.event_bytes_out = report.event_bytes_out + report.stacks.event_bytes_out - report.stacks.event_bytes_in;
    std::ranges::copy(stacks->warnings(), std::back_inserter(report.warnings));
  }
  report.output_bytes = writer->size();
  report.output_buffers = writer->buffers();
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return {};
}

} // namespace

Result<void> relog(const Trace &trace, const RelogOptions &options, RelogReport &report) {
  // Only a cache without a look at JIT-compiled code can do with what it meets on the way.
  StackKeysRead keys_read = options.stacks.mode == StackMode::cache ? StackKeysRead::no : StackKeysRead::yes;
  Result<void> done = relog_once(trace, options, keys_read, report);
  if (keys_read != StackKeysRead::met) return done;
  report = RelogReport{};
  keys_read = StackKeysRead::yes;
  return relog_once(trace, options, keys_read, report);
}

} // namespace etwrelog::pipeline
