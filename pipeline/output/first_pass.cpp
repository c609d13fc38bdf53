#include "output/first_pass.hpp"

#include "base/errors.hpp"

#include <algorithm>

namespace etwrelog::pipeline {

using namespace format;

FirstPass::FirstPass(const Trace &trace, const Selection &selection, std::uint64_t memory)
    : trace_(trace), selection_(selection), memory_(memory), early_(selection, trace.clock()),
      processors_(trace.buffers().size()), cache_(trace.buffers().size()) {
  versions_.push_back(std::make_shared<filter::NonTargets>(selection));
}

bool FirstPass::one_stream() const {
  return (trace_.header().log_file_mode & kModeOneStream) != 0;
}

Result<filter::Lifetimes> FirstPass::run(const PassOptions &options, PassResult &result) {
  Pass<Part> pass;
  pass.name = "reading processes";
  pass.work = [this](Batch &batch, Part &part) { look(batch, part); };
  pass.merge = [this](Batch &batch, Part &part) { return merge(batch, part); };
  ETWRELOG_TRY_LET(done, run_pass(trace_, pass, options));
  result = std::move(done);
  if (selection_.by_process() && !looked_.empty()) threads_ = records_.threads;
  return filter::Lifetimes(std::move(records_), processors_, one_stream());
}

std::pair<std::shared_ptr<const filter::NonTargets>, std::uint32_t> FirstPass::known() const {
  const std::lock_guard lock(learning_);
  return {versions_.back(), static_cast<std::uint32_t>(versions_.size() - 1)};
}

// Parallel.
void FirstPass::look(Batch &batch, Part &part) const {
  part.records.clear();
  part.buffers.clear();
  part.bytes = 0;
  part.looked.resize(batch.buffers.size());
  const bool full = used_.load(std::memory_order_relaxed) >= memory_;
  const auto [non_targets, version] = known();
  for (std::size_t i = 0; i < batch.buffers.size(); ++i) {
    const DecodedBuffer &buffer = batch.buffers[i];
    if (full) {
      trace_.visit(batch, buffer, [&](const EventView &event, std::int64_t time, std::uint32_t) {
        part.records.add(event, time, buffer.index);
      });
      continue;
    }
    part.looked[i].version = version;
    look_at(batch, buffer, *non_targets, part, part.looked[i]);
  }
  if (!full) keep_candidates(batch, part);
}

void FirstPass::look_at(Batch &batch, const DecodedBuffer &buffer, const filter::NonTargets &known,
                        Part &part, Looked &looked) const {
  looked.used = {};
  looked.dropped.fill(0);
  looked.dropped_bytes = 0;
  looked.candidates.clear();
  filter::Position position{buffer.header.processor(), kUnknownId};
  // The last context switch, if it was dropped: it tells whose the candidates behind it are.
  struct Switch {
    std::uint32_t begin, end;
    std::uint32_t size = 0; // 0: none
    std::size_t reason;
  } last{};
  auto add = [&looked](std::uint32_t begin, std::uint32_t end) {
    if (!looked.candidates.empty() && looked.candidates.back().end == begin)
      looked.candidates.back().end = end;
    else
      looked.candidates.push_back({begin, end, 0});
  };
  trace_.visit(batch, buffer, [&](const EventView &event, std::int64_t time, std::uint32_t at) {
    part.records.add(event, time, buffer.index);
    const std::uint32_t switches = looked.used.switches;
    const std::optional<filter::Reason> dropped = early_.drops(event, time, position, known, looked.used);
    const auto end = static_cast<std::uint32_t>(at + align8(event.size()));
    if (!dropped) {
      if (last.size != 0 && event.has_hook()) {
        --looked.dropped[last.reason];
        looked.dropped_bytes -= last.size;
        add(last.begin, last.end);
        last.size = 0;
      }
      add(at, end);
      return;
    }
    const auto reason = static_cast<std::size_t>(*dropped);
    ++looked.dropped[reason];
    looked.dropped_bytes += event.size();
    if (looked.used.switches != switches) last = {at, end, event.size(), reason};
  });
}

// The candidates of the batch in memory of their own.
void FirstPass::keep_candidates(const Batch &batch, Part &part) const {
  for (const Looked &looked : part.looked)
    for (const write::Run &run : looked.candidates)
      part.bytes += run.end - run.begin;
  std::uint8_t *to = part.bytes != 0 ? memory_of_candidates_.take(part.bytes) : nullptr;
  for (std::size_t i = 0; i < batch.buffers.size(); ++i) {
    DecodedBuffer candidates = batch.buffers[i];
    std::uint8_t *const begin = to;
    for (const write::Run &run : part.looked[i].candidates) {
      // The padding of the last event may lie outside what was decoded.
      const std::size_t there = std::min<std::size_t>(run.end, candidates.events.size()) - run.begin;
      std::copy_n(candidates.events.data() + run.begin, there, to);
      std::fill_n(to + there, run.end - run.begin - there, std::uint8_t{0});
      to += run.end - run.begin;
    }
    const Looked &looked = part.looked[i];
    candidates.events = MutableBytes(begin, static_cast<std::size_t>(to - begin));
    candidates.left_out =
        candidates.left_out || std::ranges::any_of(looked.dropped, [](auto n) { return n != 0; });
    part.buffers.push_back(candidates);
  }
}

// Serial, in file order.
Result<void> FirstPass::merge(Batch &batch, Part &part) {
  for (const DecodedBuffer &buffer : batch.buffers)
    processors_[buffer.index] = buffer.header.processor();
  for (const filter::LifetimeRecords::Process &process : part.records.processes)
    something_new_ = something_new_ || !versions_.back()->knows_process(process.facts.pid);
  for (const filter::LifetimeRecords::Thread &thread : part.records.threads)
    something_new_ = something_new_ || !versions_.back()->knows_thread(thread.tid);
  records_.append(std::move(part.records));
  learn();
  if (part.buffers.empty()) return {};
  const std::uint64_t with_overhead =
      part.bytes + part.buffers.size() * (sizeof(Looked) + sizeof(DecodedBuffer));
  if (used_.load(std::memory_order_relaxed) + with_overhead > memory_) {
    used_.store(memory_, std::memory_order_relaxed); // what comes later might fit, but need not be tried
    return {};
  }
  used_.fetch_add(with_overhead, std::memory_order_relaxed);
  for (std::size_t i = 0; i < part.buffers.size(); ++i) {
    part.looked[i].candidates = {};
    looked_.emplace_back(part.buffers[i].index, std::move(part.looked[i]));
  }
  // The first buffer, with the header event, is read by hand.
  std::span<const DecodedBuffer> buffers = part.buffers;
  if (buffers.front().index == 0) {
    buffers = buffers.subspan(1);
    looked_.erase(looked_.end() - static_cast<std::ptrdiff_t>(part.buffers.size()));
  }
  cache_.add(buffers);
  return {};
}

// Looks the targets up anew, when enough has come to be known that was not. Serial.
void FirstPass::learn() {
  if (!something_new_ || !selection_.by_process() || memory_ == 0) return;
  const std::size_t records = records_.processes.size() + records_.threads.size();
  if (records < learnt_from_ + learnt_from_ / 4 || used_.load(std::memory_order_relaxed) >= memory_) return;
  something_new_ = false;
  learnt_from_ = records;
  filter::LifetimeRecords so_far;
  so_far.processes = records_.processes;
  so_far.threads = records_.threads;
  const filter::Lifetimes lifetimes(std::move(so_far), {}, one_stream());
  const Result<filter::Targets> targets = filter::Targets::resolve(selection_, lifetimes, true);
  if (!targets) return; // the filter will say what is wrong with the selection
  auto next = std::make_shared<const filter::NonTargets>(selection_, lifetimes, *targets, records_.threads);
  const std::lock_guard lock(learning_);
  versions_.push_back(std::move(next));
}

const BufferCache &FirstPass::settle(const filter::Lifetimes &lifetimes, const filter::Targets &targets,
                                     RelogReport &report) {
  const filter::NonTargets final(selection_, lifetimes, targets, threads_);
  std::vector<filter::NonTargets::Ids> wrong;
  for (const auto &version : versions_)
    wrong.push_back(version->wrong(final));
  for (const auto &[index, looked] : looked_) {
    if (looked.used.may_hold_any(wrong[looked.version])) {
      cache_.forget(index);
      continue;
    }
    for (std::size_t i = 0; i < filter::kReasons; ++i) {
      report.by_reason[i] += looked.dropped[i];
      report.events_in += looked.dropped[i];
    }
    report.event_bytes_in += looked.dropped_bytes;
  }
  looked_.clear();
  return cache_;
}

} // namespace etwrelog::pipeline
