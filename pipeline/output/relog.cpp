#include "output/relog.hpp"

#include "base/errors.hpp"
#include "base/platform.hpp"
#include "output/buffer_filter.hpp"
#include "output/first_pass.hpp"
#include "output/narrow.hpp"
#include "output/trace_output.hpp"
#include "passes/collect.hpp"

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
  write::Outgoing out;
};

std::uint32_t nominal_size(const Trace &trace, const RelogOptions &options) {
  const std::uint32_t input = trace.header().buffer_size;
  if (!options.keep_grouping) return nominal_size(input, options);
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
  return split_first_buffer(buffer.header, buffer.events, trace.header().event_size, runs);
}

Error with_file(Error error, const std::string &file) {
  if (error.file.empty()) error.file = file;
  return error;
}

// How a run ended: with a finished output, or as soon as a stack key showed that the keys have to be
// collected first. The output is then given up.
enum class Ending : std::uint8_t { finished, needs_stack_keys };

// One relog from input to committed output. The steps run in the order in which they stand here.
class Relogger {
public:
  // `collect_stack_keys`: read all stack definitions and references first, as most rewriting of stacks needs.
  Relogger(const Trace &trace, const RelogOptions &options, bool collect_stack_keys, RelogReport &report)
      : trace_(trace), options_(options), report_(report), collect_stack_keys_(collect_stack_keys),
        nominal_(nominal_size(trace, options)), graph_(options.graph) {
    graph_.memory = &memory_;
  }

  Result<Ending> run() {
    ETWRELOG_TRY(open_output());
    ETWRELOG_TRY(prepare_filter());
    ETWRELOG_TRY(prepare_stacks());
    ETWRELOG_TRY(write_first_buffer());
    ETWRELOG_TRY(relog_buffers());
    if (needs_stack_keys_) return Ending::needs_stack_keys;
    ETWRELOG_TRY(write_last_definitions());
    const std::size_t found_damaged = report_.skipped.size() - trace_.scan().skipped.size();
    ETWRELOG_TRY(output_->finish(report_, trace_.incomplete_buffers() + found_damaged));
    complete_report();
    return Ending::finished;
  }

private:
  Result<void> open_output() {
    ETWRELOG_TRY(check_nominal_size(nominal_, options_));
    ETWRELOG_TRY_LET(output, TraceOutput::create(options_));
    output_.emplace(std::move(output));
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
      ETWRELOG_TRY_LET(collected, first_pass_->run(graph_, met));
      lifetimes_ = std::move(collected);
      note(std::move(met));
    }
    Result<filter::Filter> filter = filter::Filter::make(options_.selection, lifetimes_, trace_.clock());
    if (!filter) return with_file(std::move(filter).error(), trace_.input().name());
    filter_.emplace(std::move(*filter));
    if (first_pass_) cache_ = &first_pass_->settle(lifetimes_, filter_->targets(), report_);
    if (selective) {
      filter::Marks marks;
      ETWRELOG_TRY(first_pass_->follow_references(*filter_, lifetimes_, graph_, marks));
      filter_->set_marks(std::move(marks));
      const FilteredTrace one{&trace_, 0, cache_};
      ETWRELOG_TRY(settle_names_of_code({&one, 1}, *filter_, graph_));
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
      ETWRELOG_TRY_LET(collected,
                       collect_stacks({&one, 1}, graph_, ignored, options_.stacks.for_definitions()));
      inventory = std::move(collected);
    }
    stacks_.emplace(options_.stacks, std::move(inventory), collect_stack_keys_);
    return {};
  }

  Result<void> write_first_buffer() {
    ETWRELOG_TRY_LET(first, filter_first_buffer(trace_, *events_, report_));
    return output_->begin(trace_.header(), nominal_, trace_.codec(), first);
  }

  Result<void> relog_buffers() {
    Pass<RelogPart> pass;
    pass.name = "relogging";
    pass.work = [this](Batch &batch, RelogPart &part) { filter_batch(batch, part); };
    pass.merge = [this](Batch &batch, RelogPart &part) { return rechunk(batch, part); };
    pass.finish = [this](RelogPart &part) -> Result<void> {
      output_->buffers().seal(part.out);
      return {};
    };
    pass.emit = [this](RelogPart &part) { return output_->buffers().append(part.out); };
    pass.enough = [this] { return needs_stack_keys_.load(std::memory_order_relaxed); };
    ETWRELOG_TRY_LET(done, run_pass(trace_, pass, graph_, cache_));
    if (!first_pass_) note(std::move(done)); // else the first pass has met the same
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
    if (stacks_ && !stacks_->collected() && work.stacks.met_key) needs_stack_keys_ = true;
    if (needs_stack_keys_) return {}; // all from here on is in vain
    work.counts.add_to(report_);
    for (std::size_t i = 0; i < batch.buffers.size(); ++i)
      if (Result<void> added = rechunk_buffer(batch.buffers[i], work, i); !added) {
        Error error = with_file(std::move(added).error(), trace_.input().name());
        error.offset = batch.buffers[i].file_offset;
        return error;
      }
    if (first_pass_)
      for (const DecodedBuffer &buffer : batch.buffers)
        first_pass_->give_back(buffer);
    if (stacks_) stacks_->end_batch(work.stacks);
    output_->buffers().stamp(work.out);
    return {};
  }

  Result<void> rechunk_buffer(const DecodedBuffer &buffer, RelogPart &work, std::size_t i) {
    write::Origin origin = output_->origin_of(buffer.header, work.whole[i]);
    if (!stacks_) return output_->buffers().fill(origin, buffer.events, work.runs[i], work.out);
    stacks_->order(origin.processor, work.stacks, i, definitions_, definitions_run_);
    const StackRewriter::Buffer &rewritten = work.stacks.buffers[i];
    origin.whole = origin.whole && !rewritten.changed && definitions_.empty();
    ETWRELOG_TRY(fill_definitions(origin, work.out));
    return output_->buffers().fill(origin, rewritten.events, rewritten.runs, work.out);
  }

  Result<void> fill_definitions(const write::Origin &origin, write::Outgoing &out) {
    if (definitions_.empty()) return {};
    return output_->buffers().fill(origin, definitions_, {&definitions_run_, 1}, out);
  }

  // Stack definitions that are due when the input has ended.
  Result<void> write_last_definitions() {
    write::Outgoing out;
    while (stacks_) {
      write::Origin origin;
      stacks_->finish(definitions_, definitions_run_, origin.processor);
      if (definitions_.empty()) break;
      ETWRELOG_TRY(fill_definitions(origin, out));
      ETWRELOG_TRY(output_->buffers().put(out));
    }
    return {};
  }

  // By type what goes out in the place of what the filter kept.
  void count_rewritten(std::span<const StackRewriteDifference> differences) {
    for (const StackRewriteDifference &d : differences) {
      schema::TypeCount &type = report_.types.at(d.type);
      type.kept_events += static_cast<std::uint64_t>(d.events);
      type.kept_bytes += static_cast<std::uint64_t>(d.bytes);
    }
  }

  void complete_report() {
    if (stacks_) {
      report_.stacks = stacks_->counts();
      const StackRewriteCounts &s = report_.stacks;
      report_.events_out += s.walks_out + s.references_out + s.definitions_out;
      report_.events_out -= s.walks_in + s.references_in + s.definitions_in;
      report_.event_bytes_out += s.event_bytes_out;
      report_.event_bytes_out -= s.event_bytes_in;
      if (options_.count) count_rewritten(s.differences);
      std::ranges::copy(stacks_->warnings(), std::back_inserter(report_.warnings));
    }
    report_left_out(trace_, options_.selection, report_);
    report_.buffers_read_again = cache_ ? cache_->missing() : 0;
  }

  const Trace &trace_;
  const RelogOptions &options_;
  RelogReport &report_;
  const bool collect_stack_keys_;
  std::optional<FirstPass> first_pass_; // where the processes must be known
  const BufferCache *cache_ = nullptr;  // what it kept
  std::atomic<bool> needs_stack_keys_{false};
  const std::uint32_t nominal_;
  BatchMemory memory_;
  PassOptions graph_;

  std::optional<TraceOutput> output_;
  filter::Lifetimes lifetimes_;
  std::optional<filter::Filter> filter_;
  std::optional<BufferFilter> events_;
  std::optional<StackRewriter> stacks_;
  std::vector<std::uint8_t> definitions_; // that become due with a buffer
  write::Run definitions_run_;
};

} // namespace

Result<void> relog(const Trace &whole, const RelogOptions &options, RelogReport &report) {
  const auto began = std::chrono::steady_clock::now();
  ETWRELOG_TRY_LET(less, narrowed(whole, options));
  const Trace &trace = less ? *less : whole;
  // A trace without stack keys needs no pass to collect them, which shows only on the way. Only a cache that
  // does not look at JIT-compiled code can do without until then.
  const bool try_without = options.stacks.mode == StackMode::cache;
  Result<Ending> ended = Relogger(trace, options, !try_without, report).run();
  if (ended && *ended == Ending::needs_stack_keys) {
    report = RelogReport{};
    ended = Relogger(trace, options, true, report).run();
  }
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  if (!ended) return std::move(ended).error();
  return {};
}

} // namespace etwrelog::pipeline
