#include "pipeline/relog.hpp"

#include "pipeline/sieve.hpp"
#include "stages/shared/platform.hpp"
#include "stages/write/etl_writer.hpp"

#include <algorithm>
#include <chrono>

namespace etwrelog::pipeline {

using namespace format;

namespace {

struct MarkWork final : Work {
  filter::Marks::Part part;
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

std::uint32_t nominal_size(const Trace &trace, const RelogOptions &options) {
  const std::uint32_t input = trace.header().buffer_size;
  if (!options.keep_grouping) return options.buffer_size != 0 ? options.buffer_size : std::max(input, kSmallestDefaultBufferSize);
  std::uint32_t largest = input;
  for (const read::BufferSpan &span : trace.buffers())
    largest = std::max(largest, static_cast<std::uint32_t>(kBufferHeaderSize + align8(span.decoded)));
  return largest;
}

Result<FirstBuffer> sift_first_buffer(const Trace &trace, const EventSieve &sieve, RelogReport &report) {
  Batch batch;
  batch.count = 1;
  trace.load(batch);
  if (batch.error) return *std::move(batch.error);
  if (batch.buffers.empty()) return FirstBuffer{};
  const DecodedBuffer &buffer = batch.buffers.front();
  std::vector<write::Run> runs;
  Counts counts;
  sieve.sift(trace, batch, buffer, runs, counts);
  if (batch.error) return *std::move(batch.error);
  counts.add_to(report);
  return split_first_buffer(buffer.events, trace.header().event_size, runs);
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
  if (Result<void> checked = check_nominal_size(nominal); !checked) return checked;
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
      std::move(*file), output_header(trace.header(), nominal, compressed), first->header_event, first->more_events, compressed);
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
    work.counts.add_to(report);
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
