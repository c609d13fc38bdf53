#include "archive/owners.hpp"

#include "archive/segments.hpp"
#include "base/sort_unique.hpp"
#include "source/trace.hpp"

#include <algorithm>

namespace etwrelog::pipeline {
namespace {

// What a trace may say of processes and threads; of real ones of 128 MiB a hundredth.
constexpr std::size_t kMostRecords = 1u << 20, kMostText = 32u << 20;

} // namespace

void SegmentOwners::clear(std::uint32_t buffers) {
  records_.clear();
  shares_.clear(0, buffers - 1);
  processors_.clear();
  other_processes_.clear();
  other_threads_.clear();
  running_.clear();
  carried_from_ = kForever;
  causer_ = {};
  of_nobody_ = 0;
  unclaimed_ = false;
}

void SegmentOwners::begin_buffer(std::uint16_t processor) {
  end_buffer();
  buffer_ = static_cast<std::uint32_t>(processors_.size());
  processors_.push_back(processor);
  position_ = {.processor = processor};
}

// Who ran when it began may have been told by a switch that has a later time than events that ask for it.
void SegmentOwners::end_buffer() {
  if (processors_.empty()) return;
  auto running = std::ranges::find(running_, position_.processor, &Running::processor);
  if (!position_.switched && carried_from_ != kForever && running != running_.end())
    other_threads_.push_back({running->thread, carried_from_});
  carried_from_ = kForever;
  if (!position_.switched) return;
  if (running == running_.end()) running = running_.insert(running, Running{position_.processor, kUnknownId});
  running->thread = position_.current_thread;
}

// Asks for who runs when the event is looked at.
void SegmentOwners::note_running(std::int64_t time) {
  if (!position_.switched)
    carried_from_ = std::min(carried_from_, time);
  else if (time < switched_at_)
    other_threads_.push_back({position_.current_thread, time});
}

void SegmentOwners::note_switched_out(const EventView &event, const filter::HookRule &rule,
                                      std::int64_t time) {
  const auto old = filter::FieldOffsets::u32(event.payload(), rule.offsets(event.pointer_size()).old_thread);
  const bool known = position_.switched && old == position_.current_thread && time >= switched_at_;
  switched_at_ = time;
  if (known) return;
  if (!old)
    unclaimed_ = true;
  else if (*old != kUnknownId)
    other_threads_.push_back({*old, std::min(time, carried_from_)});
  else
    unclaimed_ = unclaimed_ || !position_.switched; // who ran before is not told, and other buffers must not
}

// Whose stack the event may have: its own, although it is about another (filter::LifetimeRecords::Actor).
void SegmentOwners::note_causer(const EventView &event, std::int64_t time) {
  if (!filter::says_causer(event)) return;
  const Causer causer{event.process_id(), event.thread_id(), time};
  if (causer.pid == causer_.pid && causer.tid == causer_.tid && time >= causer_.since) return;
  causer_ = causer;
  if (causer.pid != kUnknownId) other_processes_.push_back(causer.pid);
  if (causer.tid != kUnknownId) other_threads_.push_back({causer.tid, time});
}

SegmentSummary::Owners SegmentOwners::told() {
  end_buffer();
  SegmentSummary::Owners owners;
  if (unclaimed_) return owners;
  owners.complete = true;
  owners.of_nobody = of_nobody_;
  owners.processes = other_processes_;
  owners.threads = other_threads_;
  for (const Share &share : shares_.all()) {
    owners.carried = owners.carried || share.carried;
    if (share.tid != kUnknownId) owners.threads.push_back({share.tid, share.from});
    if (share.pid != kUnknownId) owners.processes.push_back(share.pid);
  }
  base::sort_unique(owners.processes);
  using Thread = SegmentSummary::Owners::Thread;
  std::ranges::sort(owners.threads, {}, [](const Thread &t) { return std::pair(t.id, t.from); });
  const auto same_id = [](const Thread &a, const Thread &b) { return a.id == b.id; };
  std::vector<Thread> &threads = owners.threads;
  threads.erase(std::unique(threads.begin(), threads.end(), same_id), threads.end());
  return owners;
}

void TraceOwners::append(const SegmentOwners &later) {
  if (given_up_) return;
  const auto first = static_cast<std::uint32_t>(processors_.size());
  processors_.insert(processors_.end(), later.processors_.begin(), later.processors_.end());
  filter::LifetimeRecords records;
  records.processes = later.records_.processes;
  for (filter::LifetimeRecords::Process &process : records.processes) {
    process.facts.command_line.clear();
    text_ += process.facts.image_name.size();
  }
  records.threads = later.records_.threads;
  records.switches = later.records_.switches;
  for (filter::LifetimeRecords::Switches &of_buffer : records.switches)
    of_buffer.buffer += first;
  records_.append(std::move(records));
  std::vector<Share> shares(later.shares_.all().begin(), later.shares_.all().end());
  for (Share &share : shares)
    share.first_buffer += first, share.last_buffer += first;
  shares_.append(shares, [this] { return filter::Lifetimes(records_, processors_, false); });
  if (records_.processes.size() + records_.threads.size() <= kMostRecords && text_ <= kMostText) return;
  given_up_ = true;
  records_ = {};
}

Result<std::optional<std::vector<NamedProcesses>>>
TraceOwners::by_name(const read::Input &trace, bool one_stream, const RunOptions &run) const {
  using Rows = std::optional<std::vector<NamedProcesses>>;
  if (given_up_) return Rows();
  filter::LifetimeRecords records = records_;
  if (one_stream) records.switches.clear(); // its buffers do not tell where an event was
  const filter::Lifetimes lifetimes(std::move(records), processors_, false);
  std::vector<ProcessStatistics> counts(lifetimes.processes().size());
  const auto give = [&](const Share &share, std::uint32_t pid) {
    const auto process = pid == kUnknownId ? std::nullopt : lifetimes.process_at(pid, share.from);
    if (!process) return;
    counts[*process].events += share.events;
    counts[*process].samples += share.samples;
  };
  Attribution shares = shares_;
  shares.settle(lifetimes, give);
  if (shares.anything_left()) {
    const Result<Trace> again = open_again(trace);
    if (!again || again->buffers().size() != processors_.size()) return Rows();
    PassOptions options(run);
    options.progress = nullptr;
    if (Result<void> done = attribute_rest(*again, 0, shares, lifetimes, give, options); !done) {
      const ErrorKind kind = done.error().kind;
      if (kind == ErrorKind::cancelled || kind == ErrorKind::io) return std::move(done).error();
      return Rows();
    }
  }
  return Rows(etwrelog::by_name(lifetimes.processes(), counts));
}

} // namespace etwrelog::pipeline
