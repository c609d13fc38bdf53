#include "output/relog.hpp"

#include "base/errors.hpp"
#include "base/platform.hpp"
#include "output/buffer_filter.hpp"
#include "output/first_pass.hpp"
#include "passes/collect.hpp"
#include "write/etl_writer.hpp"

#include <algorithm>
#include <chrono>

namespace etwrelog::pipeline {

using namespace format;

namespace {

struct RelogPart {
  std::vector<std::vector<write::Run>> runs; // of each buffer of the batch
  std::vector<bool> whole;                   // every event of the buffer is kept
  StackRewriter::Part stacks;
  Counts counts;
  std::vector<write::OutputBuffer> closed;
  std::optional<Compressor> compressor;
  std::vector<std::uint8_t> scratch;
};

std::uint32_t nominal_size(const Trace &trace, const RelogOptions &options) {
  const std::uint32_t input = trace.header().buffer_size;
  if (!options.keep_grouping)
    return options.buffer_size != 0 ? options.buffer_size : std::max(input, kSmallestDefaultBufferSize);
  std::uint32_t largest = input;
  for (const read::BufferSpan &span : trace.buffers())
    largest = std::max(largest, static_cast<std::uint32_t>(kBufferHeaderSize + align8(span.decoded)));
  return largest;
}

Result<FirstBuffer> filter_first_buffer(const Trace &trace, const BufferFilter &events, RelogReport &report) {
  Batch batch;
  batch.count = 1;
  trace.load(batch);
  if (batch.error) return *std::move(batch.error);
  if (batch.buffers.empty()) { // salvaging keeps the first buffer in any case
    return base::corrupt("the first buffer, with the logfile header, cannot be read")
        .in(trace.input().name());
  }
  const DecodedBuffer &buffer = batch.buffers.front();
  std::vector<write::Run> runs;
  Counts counts;
  events.filter(trace, batch, buffer, runs, counts);
  if (batch.error) return *std::move(batch.error);
  counts.add_to(report);
  return split_first_buffer(buffer.events, trace.header().event_size, runs);
}

Error with_file(Error error, const std::string &file) {
  if (error.file.empty()) error.file = file;
  return error;
}

// One relog from input to committed output. The steps run in the order in which they stand here.
class Relogger {
public:
  // `collect_stack_keys`: read all stack definitions and references first, as most rewriting of stacks needs.
  Relogger(const Trace &trace, const RelogOptions &options, bool collect_stack_keys, RelogReport &report)
      : trace_(trace), options_(options), report_(report), collect_stack_keys_(collect_stack_keys),
        codec_(options.codec.value_or(trace.codec() == Codec::none ? Codec::none : Codec::xpress)),
        nominal_(nominal_size(trace, options)), stamper_(trace.clock()) {}

  // Met a stack key without having collected them: the run was in vain and has to be repeated with them.
  [[nodiscard]] bool needs_stack_keys() const { return needs_stack_keys_; }

  Result<void> run() {
    ETWRELOG_TRY(open_output());
    ETWRELOG_TRY(prepare_filter());
    ETWRELOG_TRY(prepare_stacks());
    ETWRELOG_TRY(write_first_buffer());
    if (Result<void> done = relog_buffers(); !done || needs_stack_keys_) return done;
    ETWRELOG_TRY(write_rest());
    ETWRELOG_TRY(writer_->finish(trace_.clock().to_filetime(last_time_)));
    complete_report();
    return {};
  }

private:
  [[nodiscard]] bool compressed() const { return codec_ != Codec::none; }

  Result<void> open_output() {
    const Trace *const one = &trace_;
    ETWRELOG_TRY(check_no_input({&one, 1}, options_.output));
    ETWRELOG_TRY(check_nominal_size(nominal_));
    Result<base::OutputFile> file = base::OutputFile::create(options_.output, options_.replace_output);
    if (!file) return std::move(file).error();
    file_ = std::move(*file);
    report_.input_bytes = trace_.input().size();
    report_.input_buffers = trace_.buffers().size();
    report_.warnings = trace_.scan().warnings;
    report_.skipped = trace_.scan().skipped;
    return {};
  }

  Result<void> prepare_filter() {
    const bool selective = !options_.selection.everything();
    if (selective || options_.count) {
      // Counts by type and process, and stacks looked up anew, ask for every event once more.
      const bool every_event = !selective || options_.count || options_.stacks.mode != StackMode::keep;
      first_pass_.emplace(trace_, options_.selection, every_event ? 0 : options_.candidate_memory);
      PassResult met;
      Result<filter::Lifetimes> collected = first_pass_->run(options_.graph, met);
      if (!collected) return std::move(collected).error();
      lifetimes_ = std::move(*collected);
      note(std::move(met));
    }
    Result<filter::Filter> filter = filter::Filter::make(options_.selection, lifetimes_, trace_.clock());
    if (!filter) return with_file(std::move(filter).error(), trace_.input().name());
    filter_.emplace(std::move(*filter));
    if (first_pass_) cache_ = &first_pass_->settle(lifetimes_, filter_->targets(), report_);
    if (selective) {
      filter::Marks marks;
      ETWRELOG_TRY(collect_references(trace_, *filter_, 0, options_.graph, marks, cache_));
      filter_->set_marks(std::move(marks));
      if (!filter_->targets().all())
        for (std::uint32_t i = 0; i < lifetimes_.processes().size(); ++i)
          if (filter_->targets().is_target(i))
            report_.targets.emplace_back(lifetimes_.processes()[i].pid, lifetimes_.processes()[i].image_name);
      if (lifetimes_.has_switch_batches())
        report_.warnings.push_back(
            "batched context switches (CompCS) hold several processes and are kept whole");
    }
    events_.emplace(*filter_, lifetimes_, options_.count);
    return {};
  }

  Result<void> prepare_stacks() {
    if (options_.stacks.mode == StackMode::keep) return {};
    StackInventory inventory;
    if (collect_stack_keys_) {
      PassResult ignored;
      const Trace *const one = &trace_;
      Result<StackInventory> collected =
          collect_stacks({&one, 1}, options_.graph, ignored, options_.stacks.for_definitions());
      if (!collected) return std::move(collected).error();
      inventory = std::move(*collected);
    }
    stacks_.emplace(options_.stacks, std::move(inventory), collect_stack_keys_);
    return {};
  }

  Result<void> write_first_buffer() {
    Result<FirstBuffer> first = filter_first_buffer(trace_, *events_, report_);
    if (!first) return std::move(first).error();
    last_time_ = first->last_time;
    Result<write::EtlWriter> writer =
        write::EtlWriter::create(std::move(file_), output_header(trace_.header(), nominal_, compressed()),
                                 first->header_event, first->more_events, compressed());
    if (!writer) return std::move(writer).error();
    writer_.emplace(std::move(*writer));
    rechunker_.emplace(nominal_, options_.keep_grouping);
    return {};
  }

  void prepare(RelogPart &part) const {
    if (compressed()) part.compressor.emplace(codec_, options_.level, nominal_);
  }

  Result<void> relog_buffers() {
    Pass<RelogPart> pass;
    pass.name = "relogging";
    pass.prepare = [this](RelogPart &part) { prepare(part); };
    pass.work = [this](Batch &batch, RelogPart &part) { filter_batch(batch, part); };
    pass.merge = [this](Batch &batch, RelogPart &part) { return rechunk(batch, part); };
    pass.finish = [this](RelogPart &part) -> Result<void> {
      seal(part);
      return {};
    };
    pass.emit = [this](RelogPart &part) { return append(part); };
    pass.enough = [this] { return needs_stack_keys_.load(std::memory_order_relaxed); };
    Result<PassResult> done = run_pass(trace_, pass, options_.graph, cache_);
    if (!done) return std::move(done).error();
    if (!first_pass_) note(std::move(*done)); // else the first pass has met the same
    return {};
  }

  void note(PassResult &&met) {
    std::ranges::move(met.skipped, std::back_inserter(report_.skipped));
    std::ranges::move(met.warnings, std::back_inserter(report_.warnings));
  }

  // Parallel.
  void filter_batch(Batch &batch, RelogPart &work) const {
    work.counts.clear();
    work.runs.resize(batch.buffers.size());
    work.whole.assign(batch.buffers.size(), false);
    for (std::size_t i = 0; i < batch.buffers.size(); ++i) {
      work.runs[i].clear();
      if (batch.buffers[i].index == 0) continue; // has been written by hand
      work.whole[i] = events_->filter(trace_, batch, batch.buffers[i], work.runs[i], work.counts);
    }
    if (!stacks_) return;
    stacks_->begin(work.stacks, batch.buffers.size());
    for (std::size_t i = 0; i < batch.buffers.size(); ++i)
      stacks_->rewrite(batch.buffers[i], work.runs[i], work.stacks, i);
  }

  // Serial, in file order.
  Result<void> rechunk(Batch &batch, RelogPart &work) {
    work.closed.clear();
    if (stacks_ && !stacks_->collected() && work.stacks.met_key) needs_stack_keys_ = true;
    if (needs_stack_keys_) return {}; // all from here on is in vain
    work.counts.add_to(report_);
    for (std::size_t i = 0; i < batch.buffers.size(); ++i)
      if (Result<void> added = rechunk_buffer(batch.buffers[i], work, i); !added) {
        Error error = with_file(std::move(added).error(), trace_.input().name());
        error.offset = batch.buffers[i].file_offset;
        return error;
      }
    if (stacks_) stacks_->end_batch(work.stacks);
    stamp(work.closed);
    return {};
  }

  Result<void> rechunk_buffer(const DecodedBuffer &buffer, RelogPart &work, std::size_t i) {
    write::Origin origin;
    origin.processor = buffer.header.processor();
    origin.type = buffer.header.type;
    origin.lost_flags = buffer.header.flags & (kFlagEventsLost | kFlagBufferLost);
    origin.whole = work.whole[i];
    if (nominal_ == trace_.header().buffer_size)
      origin.failed_reservation = write::failed_reservation(buffer.header, nominal_);
    if (!stacks_) return rechunker_->add(origin, buffer.events, work.runs[i], work.closed);
    stacks_->order(origin.processor, work.stacks, i, definitions_, definitions_run_);
    const StackRewriter::Buffer &rewritten = work.stacks.buffers[i];
    origin.whole = origin.whole && !rewritten.changed && definitions_.empty();
    if (!definitions_.empty())
      if (Result<void> added = rechunker_->add(origin, definitions_, {&definitions_run_, 1}, work.closed);
          !added)
        return added;
    return rechunker_->add(origin, rewritten.events, rewritten.runs, work.closed);
  }

  // Serial, in output order.
  void stamp(std::vector<write::OutputBuffer> &closed) {
    for (write::OutputBuffer &buffer : closed) {
      stamper_.stamp(buffer);
      last_time_ = std::max(last_time_, buffer.last_time);
    }
  }

  // Parallel.
  void seal(RelogPart &work) const {
    for (write::OutputBuffer &buffer : work.closed)
      write::seal(buffer, nominal_, work.compressor ? &*work.compressor : nullptr, work.scratch);
  }

  // Serial, in output order.
  Result<void> append(const RelogPart &work) {
    for (const write::OutputBuffer &buffer : work.closed)
      ETWRELOG_TRY(writer_->append(buffer));
    return {};
  }

  // What is still open when the input has ended: stack definitions, then the buffers.
  Result<void> write_rest() {
    RelogPart part;
    prepare(part);
    auto write_closed = [&]() -> Result<void> {
      stamp(part.closed);
      seal(part);
      Result<void> written = append(part);
      part.closed.clear();
      return written;
    };
    while (stacks_) {
      write::Origin origin;
      stacks_->finish(definitions_, definitions_run_, origin.processor);
      if (definitions_.empty()) break;
      if (Result<void> added = rechunker_->add(origin, definitions_, {&definitions_run_, 1}, part.closed);
          !added)
        return added;
      ETWRELOG_TRY(write_closed());
    }
    rechunker_->flush(part.closed);
    return write_closed();
  }

  void complete_report() {
    if (stacks_) {
      report_.stacks = stacks_->counts();
      const StackRewriteCounts &s = report_.stacks;
      report_.events_out += s.walks_out + s.references_out + s.definitions_out;
      report_.events_out -= s.walks_in + s.references_in + s.definitions_in;
      report_.event_bytes_out += s.event_bytes_out;
      report_.event_bytes_out -= s.event_bytes_in;
      std::ranges::copy(stacks_->warnings(), std::back_inserter(report_.warnings));
    }
    const Trace::LeftOut &out = trace_.left_out();
    report_.buffers_left_out = out.buffers;
    report_.buffers_read_again = cache_ ? cache_->missing() : 0;
    report_.events_in += out.events;
    report_.event_bytes_in += out.event_bytes;
    report_.by_reason[static_cast<std::size_t>(filter::Reason::dropped_time)] += out.events;
    report_.output_bytes = writer_->size();
    report_.output_buffers = writer_->buffers();
  }

  const Trace &trace_;
  const RelogOptions &options_;
  RelogReport &report_;
  const bool collect_stack_keys_;
  std::optional<FirstPass> first_pass_; // where the processes must be known
  const BufferCache *cache_ = nullptr;  // what it kept
  std::atomic<bool> needs_stack_keys_{false};
  const Codec codec_;
  const std::uint32_t nominal_;

  base::OutputFile file_; // until the writer takes it
  filter::Lifetimes lifetimes_;
  std::optional<filter::Filter> filter_;
  std::optional<BufferFilter> events_;
  std::optional<StackRewriter> stacks_;
  std::vector<std::uint8_t> definitions_; // that become due with a buffer
  write::Run definitions_run_;
  std::optional<write::Rechunker> rechunker_;
  write::Stamper stamper_;
  std::optional<write::EtlWriter> writer_;
  std::int64_t last_time_ = 0;
};

} // namespace

Result<void> check_no_input(Traces traces, const std::string &output) {
  for (const Trace *trace : traces)
    if (base::same_file(trace->input().file(), output))
      return base::ErrorBuilder(ErrorKind::usage, "is the input itself")
          .in(output)
          .advise(Advice::other_output);
  return {};
}

namespace {

// Of an archive, no more is read than its index says can matter, unless the report or the stacks need all
// events.
std::optional<Trace> within_selected_time(const Trace &trace, const RelogOptions &options) {
  if (!options.selection.from && !options.selection.to) return std::nullopt;
  if (options.count || options.keep_grouping || options.stacks.mode != StackMode::keep) return std::nullopt;
  const filter::TimeRange time = filter::selected_time(options.selection, trace.clock());
  return trace.within(time.from, time.to);
}

} // namespace

Result<void> relog(const Trace &whole, const RelogOptions &options, RelogReport &report) {
  const auto began = std::chrono::steady_clock::now();
  const std::optional<Trace> narrowed = within_selected_time(whole, options);
  const Trace &trace = narrowed ? *narrowed : whole;
  // A trace without stack keys needs no pass to collect them, which shows only on the way. Only a cache that
  // does not look at JIT-compiled code can do without until then.
  const bool try_without = options.stacks.mode == StackMode::cache;
  Result<void> done;
  bool again = false;
  {
    Relogger relogger(trace, options, !try_without, report);
    done = relogger.run();
    again = relogger.needs_stack_keys();
  }
  if (again) {
    report = RelogReport{};
    done = Relogger(trace, options, true, report).run();
  }
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return done;
}

} // namespace etwrelog::pipeline
