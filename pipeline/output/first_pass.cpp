#include "output/first_pass.hpp"

#include "base/errors.hpp"
#include "passes/collect.hpp"

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace etwrelog::pipeline {

using namespace format;

FirstPass::FirstPass(const Trace &trace, const Selection &selection, std::uint64_t memory)
    : trace_(trace), selection_(selection), memory_(memory), early_(selection, trace.clock()),
      processors_(trace.buffers().size()), cache_(trace.buffers().size()) {
  known_ = std::make_shared<filter::NonTargets>(selection);
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
  threads_ = std::move(records_.threads);
  filter::Lifetimes lifetimes(threads_, std::move(records_), processors_, one_stream());
  if (!selection_.by_process() || looked_.empty()) threads_ = {};
  return lifetimes;
}

std::pair<std::shared_ptr<const filter::NonTargets>, std::uint32_t> FirstPass::known() const {
  const std::lock_guard lock(learning_);
  return {known_, version_};
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
  looked.dropped.fill(0);
  looked.dropped_bytes = 0;
  looked.candidates.clear();
  looked.providers.clear();
  looked.needs_more = false;
  filter::EarlyWalk walk(known, buffer.header.processor());
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
    const filter::HookRule *const rule = filter::rule_of(event);
    if (rule != nullptr)
      part.records.add(event, *rule, time, buffer.index);
    else
      part.records.add_other(event, time);
    const std::uint32_t switches = walk.switches;
    const std::optional<filter::Reason> dropped = early_.drops(event, rule, time, walk);
    const auto end = static_cast<std::uint32_t>(at + align8(event.size()));
    if (!dropped) {
      if (last.size != 0 && rule != nullptr) {
        --looked.dropped[last.reason];
        looked.dropped_bytes -= last.size;
        add(last.begin, last.end);
        last.size = 0;
      }
      add(at, end);
      note_need(event, rule, looked);
      return;
    }
    const auto reason = static_cast<std::size_t>(*dropped);
    ++looked.dropped[reason];
    looked.dropped_bytes += event.size();
    if (walk.switches != switches) last = {at, end, event.size(), reason};
  });
  looked.used = walk.used;
}

void FirstPass::note_need(const EventView &event, const filter::HookRule *rule, Looked &looked) {
  constexpr std::size_t kMost = 16; // providers
  if (looked.needs_more) return;
  if (rule != nullptr) looked.needs_more = rule->refers_to_names(event.pointer_size());
  if (looked.needs_more) return;
  const std::optional<Guid> provider = filter::provider_needed(event);
  if (!provider || std::ranges::find(looked.providers, *provider) != looked.providers.end()) return;
  looked.needs_more = looked.providers.size() == kMost;
  looked.providers.push_back(*provider);
}

// With what has come to be known since: now the batch is still at hand.
void FirstPass::look_again(Batch &batch, Part &part) {
  const std::uint64_t events = batch.events;              // of which none counts twice
  used_.fetch_add(part.bytes, std::memory_order_relaxed); // is not given back
  look(batch, part);
  batch.events = events;
}

// Where candidates are much in few places, and the file is at hand, they need no memory: reading them again
// takes no longer than making a copy, and where memory is short of pages that are ready to use much less.
bool FirstPass::leave_in_file(const DecodedBuffer &buffer, std::uint64_t bytes, Looked &looked) const {
  constexpr std::uint64_t kWorthACall = 16u << 10;
  looked.left_in_file.clear();
  if (buffer.codec != Codec::none || buffer.stored.empty() || !trace_.input().cheap_to_read_again())
    return false;
  if (bytes == 0 || bytes < looked.candidates.size() * kWorthACall) return false;
  for (const write::Run &run : looked.candidates)
    looked.left_in_file.push_back({run.begin, run.end});
  looked.candidates.clear();
  return true;
}

// The candidates of the batch in memory of their own, if they are not left in the file.
void FirstPass::keep_candidates(const Batch &batch, Part &part) const {
  for (std::size_t i = 0; i < batch.buffers.size(); ++i) {
    Looked &looked = part.looked[i];
    std::uint64_t bytes = 0;
    for (const write::Run &run : looked.candidates)
      bytes += run.end - run.begin;
    if (!leave_in_file(batch.buffers[i], bytes, looked)) part.bytes += bytes;
  }
  std::uint8_t *to = part.bytes != 0 ? memory_of_candidates_.take(part.bytes) : nullptr;
  for (std::size_t i = 0; i < batch.buffers.size(); ++i) {
    DecodedBuffer candidates = batch.buffers[i];
    candidates.stored = {}; // which the batch soon uses for others
    std::uint8_t *const begin = to;
    const Looked &looked = part.looked[i];
    for (const write::Run &run : looked.candidates) {
      // The padding of the last event may lie outside what was decoded.
      const std::size_t there = std::min<std::size_t>(run.end, candidates.events.size()) - run.begin;
      std::copy_n(candidates.events.data() + run.begin, there, to);
      std::fill_n(to + there, run.end - run.begin - there, std::uint8_t{0});
      to += run.end - run.begin;
    }
    candidates.events = MutableBytes(begin, static_cast<std::size_t>(to - begin));
    candidates.left_out =
        candidates.left_out || std::ranges::any_of(looked.dropped, [](auto n) { return n != 0; });
    part.buffers.push_back(candidates);
  }
}

// Serial, in file order.
Result<void> FirstPass::merge(Batch &batch, Part &part) {
  for (const DecodedBuffer &buffer : batch.buffers) {
    processors_[buffer.index] = buffer.header.processor();
    read_ += buffer.stored.size();
  }
  note_news(part.records);
  records_.append(std::move(part.records));
  learn();
  if (!part.buffers.empty() && std::ranges::any_of(part.looked, [this](const Looked &looked) {
        return looked.version != version_ && mistakes_.may_touch(looked.used, looked.version);
      }))
    look_again(batch, part);
  if (part.buffers.empty()) return {};
  std::uint64_t with_overhead = part.bytes + part.buffers.size() * (sizeof(Looked) + sizeof(DecodedBuffer));
  for (const Looked &looked : part.looked)
    with_overhead += looked.left_in_file.size() * sizeof(Stretch) + looked.providers.size() * sizeof(Guid);
  if (used_.load(std::memory_order_relaxed) + with_overhead > memory_) {
    used_.store(memory_, std::memory_order_relaxed); // what comes later might fit, but need not be tried
    return {};
  }
  used_.fetch_add(with_overhead, std::memory_order_relaxed);
  for (std::size_t i = 0; i < part.buffers.size(); ++i) {
    const DecodedBuffer &buffer = part.buffers[i];
    if (buffer.index == 0) continue; // with the header event, which is read by hand
    Looked &looked = part.looked[i];
    cache_.add(buffer, std::exchange(looked.left_in_file, {}));
    looked.candidates = {};
    looked_.emplace_back(buffer.index, std::move(looked));
  }
  return {};
}

// What is known does not know it, or what it drops may be a target from now on.
void FirstPass::note_news(const filter::LifetimeRecords &records) {
  for (const filter::LifetimeRecords::Process &process : records.processes) {
    const bool known = known_->knows_process(process.facts.pid);
    something_new_ = something_new_ || !known;
    if (known && process.opcode == filter::kStart && known_->has_process(process.facts.pid))
      contradicted_ = contradicted_ || may_be_target(process);
  }
  constexpr std::size_t kAhead = 8;
  const std::span<const filter::LifetimeRecords::Thread> threads = records.threads;
  for (std::size_t i = 0; i < threads.size(); ++i) {
    if (i + kAhead < threads.size()) known_->prefetch_thread(threads[i + kAhead].tid);
    const filter::LifetimeRecords::Thread &thread = threads[i];
    something_new_ = something_new_ || !known_->knows_thread(thread.tid);
    contradicted_ = contradicted_ ||
                    (known_->thread_from(thread.tid) != filter::kForever && !known_->has_process(thread.pid));
  }
}

// What a process says of itself alone.
bool FirstPass::may_be_target(const filter::LifetimeRecords::Process &process) {
  constexpr std::size_t kAsMuchAs = 64; // records to look at
  if (!hurry(kAsMuchAs)) return false;
  if (selection_.children) return true;
  filter::LifetimeRecords alone;
  alone.processes.push_back(process);
  const filter::Lifetimes lifetimes(std::move(alone), {}, one_stream());
  const Result<filter::Targets> targets = filter::Targets::resolve(selection_, lifetimes, true);
  return targets && targets->is_target(0);
}

// Whether so many records may be looked at out of turn: that may take a twentieth of the time.
bool FirstPass::hurry(std::size_t records) {
  if (hurried_ + records > 50'000 + (read_ >> 13)) return false;
  hurried_ += records;
  return true;
}

// Looks the targets up anew, when enough has come to be known that was not, or something matters. Serial.
void FirstPass::learn() {
  if (!(something_new_ || contradicted_) || !selection_.by_process() || memory_ == 0) return;
  const std::size_t records = records_.processes.size() + records_.threads.size();
  if (used_.load(std::memory_order_relaxed) >= memory_) return;
  if (records < learnt_from_ + learnt_from_ / 4 && !(contradicted_ && hurry(records))) return;
  something_new_ = contradicted_ = false;
  learnt_from_ = records;
  filter::LifetimeRecords so_far;
  so_far.processes = records_.processes;
  const filter::Lifetimes lifetimes(records_.threads, std::move(so_far), {}, one_stream());
  const Result<filter::Targets> targets = filter::Targets::resolve(selection_, lifetimes, true);
  if (!targets) return; // the filter will say what is wrong with the selection
  auto next = std::make_shared<const filter::NonTargets>(selection_, lifetimes, *targets, records_.threads);
  mistakes_.add(version_, *known_, *next);
  const std::lock_guard lock(learning_);
  known_ = std::move(next);
  ++version_;
}

const BufferCache &FirstPass::settle(const filter::Lifetimes &lifetimes, const filter::Targets &targets,
                                     RelogReport &report) {
  const filter::NonTargets final(selection_, lifetimes, targets, threads_);
  mistakes_.add(version_, *known_, final);
  for (const auto &[index, looked] : looked_) {
    if (!mistakes_.spare(looked.used, looked.version, lifetimes, targets)) {
      cache_.forget(index);
      continue;
    }
    for (std::size_t i = 0; i < filter::kReasons; ++i) {
      report.by_reason[i] += looked.dropped[i];
      report.events_in += looked.dropped[i];
    }
    report.event_bytes_in += looked.dropped_bytes;
  }
  return cache_;
}

Result<void> FirstPass::follow_references(const filter::Filter &filter, const filter::Lifetimes &lifetimes,
                                          const PassOptions &options, filter::Marks &marks) {
  const auto buffers = std::exchange(looked_, {}); // is not needed from here on
  if (lifetimes.has_stacks_or_definitions() || lifetimes.has_stack_events())
    return collect_references(trace_, filter, 0, options, marks, &cache_);
  // One buffer speaks for others with the same providers. The last ones first: of them most was known, and
  // their candidates are likely to stay.
  std::vector<char> out(processors_.size());
  std::unordered_set<Guid> met;
  for (auto last = buffers.rbegin(); last != buffers.rend(); ++last) {
    const auto &[index, looked] = *last;
    if (looked.needs_more || cache_.find(index) == nullptr) continue;
    bool fresh = false;
    for (const Guid &provider : looked.providers)
      fresh = met.insert(provider).second || fresh;
    out[index] = fresh ? 0 : 1;
  }
  const auto is_out = [&out](std::size_t buffer) { return out[buffer] != 0; };
  const LeftOut some(is_out, &cache_);
  ETWRELOG_TRY(collect_references(trace_, filter, 0, options, marks, &some));
  // Where it did not, the others speak for themselves.
  std::vector<char> rest(out.size(), 1);
  for (const auto &[index, looked] : buffers) {
    const bool needs_known = std::ranges::all_of(
        looked.providers, [&](const Guid &provider) { return marks.providers.contains(provider); });
    if (out[index] != 0 && !needs_known) rest[index] = 0;
  }
  if (std::ranges::find(rest, 0) == rest.end()) return {};
  out = std::move(rest);
  return collect_references(trace_, filter, 0, options, marks, &some);
}

void FirstPass::give_back(const DecodedBuffer &buffer) {
  if (const DecodedBuffer *const kept = cache_.find(buffer.index))
    memory_of_candidates_.give_back(kept->events);
}

} // namespace etwrelog::pipeline
