#include "etwrelog/trace.hpp"

#include "api/traversal.hpp"
#include "archive/tally.hpp"
#include "base/called.hpp"
#include "base/errors.hpp"
#include "base/io.hpp"
#include "output/several.hpp"
#include "run/runner.hpp"

#include <algorithm>
#include <exception>
#include <numeric>
#include <set>
#include <tuple>

#include <fmt/format.h>

namespace etwrelog {
namespace {

using pipeline::Walk;
using pipeline::WalkSlot;

// One boot of one machine: time stamps of both can be compared as they are, and ids mean the same.
bool same_machine(const LogfileHeader &a, const LogfileHeader &b) {
  return a.boot_time != 0 && a.boot_time == b.boot_time && a.clock_type == b.clock_type &&
         a.perf_freq == b.perf_freq;
}

SourceInfo info_of(const pipeline::Trace &source, bool archive) {
  SourceInfo info;
  info.name = source.input().name();
  info.header = source.header();
  info.clock = source.clock();
  info.access = archive ? Access::archive : Access::random;
  info.codec = source.codec();
  info.stored_bytes = source.stored_bytes();
  info.decoded_bytes = source.decoded_bytes();
  info.buffers = source.buffers().size();
  info.size = source.input().size();
  info.missing_buffers = info.header.missing_buffers(info.buffers);
  info.trailing_bytes = source.scan().trailing_bytes;
  info.unwritten_bytes = source.scan().unwritten_bytes;
  info.wrapped = source.scan().wrapped;
  return info;
}

SourceInfo info_of(const pipeline::StreamSource &stream) {
  SourceInfo info;
  info.name = stream.name();
  info.header = stream.header();
  info.clock = info.header.clock();
  info.access = Access::single_pass;
  return info;
}

// Numbers count up in order of the sources.
std::uint32_t machine_of(const LogfileHeader &header, std::span<const SourceInfo> others) {
  std::uint32_t machines = 0;
  for (const SourceInfo &other : others) {
    if (same_machine(other.header, header)) return other.machine;
    machines = std::max(machines, other.machine + 1);
  }
  return machines;
}

// What the look at their headers has found.
void report_opening(std::span<const std::unique_ptr<const pipeline::Trace>> sources, RunReport *report) {
  for (std::size_t i = 0; i < sources.size(); ++i) {
    std::vector<Skipped> skipped = sources[i]->scan().skipped;
    for (Skipped &one : skipped)
      one.source = static_cast<std::uint32_t>(i);
    std::vector<std::string> warnings = sources[i]->scan().warnings;
    if (sources.size() > 1)
      for (std::string &warning : warnings)
        warning = fmt::format("{}: {}", sources[i]->input().name(), warning);
    detail::Traversal::add_to(report, skipped, warnings);
  }
}

Result<void> add_source(pipeline::OpenedTrace &trace, pipeline::OpenedInput opened,
                        const OpenOptions &options, const RunOptions &run) {
  read::ScanOptions scan;
  if (!opened.archive) scan.threads = pipeline::threads_of(run.threads); // an archive has them in its index
  scan.stop = run.stop;
  scan.progress = run.progress;
  scan.salvage = options.salvage;
  scan.file_order = options.file_order;
  ETWRELOG_TRY_LET(source, pipeline::Trace::open(std::move(opened.input), scan));
  if (pipeline::is_outdated(source.index_rules(), source.facts())) source.distrust_index();
  SourceInfo info = info_of(source, opened.archive);
  info.machine = machine_of(info.header, trace.infos);
  trace.infos.push_back(std::move(info));
  trace.sources.push_back(std::make_unique<const pipeline::Trace>(std::move(source)));
  return {};
}

// The machine whose recording began first is number 0, whatever was named first.
void order_machines(pipeline::OpenedTrace &trace) {
  std::vector<std::int64_t> began; // by machine
  for (const SourceInfo &info : trace.infos) {
    if (info.machine == began.size()) began.push_back(info.header.start_time);
    began[info.machine] = std::min(began[info.machine], info.header.start_time);
  }
  std::vector<std::uint32_t> order(began.size()), numbers(began.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::stable_sort(order, {}, [&began](std::uint32_t machine) { return began[machine]; });
  for (std::uint32_t i = 0; i < order.size(); ++i)
    numbers[order[i]] = i;
  for (SourceInfo &info : trace.infos)
    info.machine = numbers[info.machine];
}

// A clock in which events of several machines keep their times and their order: as fine as the finest, and no
// coarser than FILETIME. Nothing where `first` is that.
std::optional<Clock> finer_clock(std::span<const SourceInfo> infos, const Clock &first) {
  constexpr std::int64_t kFastest = 10'000'000'000; // beyond, a header is wrong
  std::int64_t finest = kFiletimePerSecond;
  bool several = false;
  for (const SourceInfo &info : infos) {
    several = several || info.machine != 0;
    if (const std::int64_t ticks = info.clock.ticks_per_second(); ticks <= kFastest)
      finest = std::max(finest, ticks);
  }
  if (!several || first.ticks_per_second() >= finest) return std::nullopt;
  Clock clock;
  clock.perf_freq = finest;
  clock.start_time = first.to_filetime(first.first_stamp);
  return clock;
}

// Sources of one machine share their time stamps, but each counts from when its own session began: a relog of
// them all begins with the earliest, and so does the trace.
void choose_clock(pipeline::OpenedTrace &trace) {
  const SourceInfo *first = &*std::ranges::find(trace.infos, 0u, &SourceInfo::machine);
  for (const SourceInfo &info : trace.infos)
    if (info.machine == 0 && info.header.first_stamp < first->header.first_stamp) first = &info;
  trace.first_clock = trace.clock = first->clock;
  const std::optional<Clock> finer = finer_clock(trace.infos, first->clock);
  if (finer) trace.clock = *finer;
  for (const SourceInfo &info : trace.infos) {
    const Clock &its = info.machine == 0 ? trace.first_clock : info.clock;
    trace.clocks.push_back(info.machine == 0 && !finer ? pipeline::ClockMap()
                                                       : pipeline::ClockMap(its, trace.clock));
  }
}

} // namespace

Trace::Trace(std::unique_ptr<const Impl> impl) : impl_(std::move(impl)) {}
Trace::Trace(Trace &&) noexcept = default;
Trace &Trace::operator=(Trace &&) noexcept = default;
Trace::~Trace() = default;

Result<Trace> Trace::open(Input input, const OpenOptions &options, const RunOptions &run) {
  std::vector<Input> inputs;
  inputs.push_back(std::move(input));
  return open(std::move(inputs), options, run);
}

Result<Trace> Trace::open(std::vector<Input> inputs, const OpenOptions &options, const RunOptions &run) {
  if (inputs.empty()) return base::bad_option(Option::input, "no input is given");
  auto impl = std::make_unique<Impl>();
  for (const Input &input : inputs) {
    const bool streamed = input.kind() == Input::Kind::stream || input.kind() == Input::Kind::standard_input;
    if (run.stop.stop_requested()) return base::cancelled().in(input.name());
    if (options.follow || (streamed && !options.spool)) {
      if (inputs.size() != 1 || options.salvage)
        return base::unsupported(
                   "reading a stream beside others, or stepping over its damage, without spooling it")
            .in(input.name())
            .advise(Advice::allow_spool);
      if (options.follow && input.kind() != Input::Kind::path)
        return base::unsupported("only a file can be followed").in(input.name());
      ETWRELOG_TRY_LET(stream, options.follow
                                   ? pipeline::StreamSource::follow(input, options.enough, run.stop)
                                   : pipeline::StreamSource::open(input, run));
      impl->infos.push_back(info_of(*stream));
      impl->stream = std::move(stream);
      break;
    }
    ETWRELOG_TRY_LET(sources, pipeline::open_sources(input, run));
    for (pipeline::OpenedInput &opened : sources)
      ETWRELOG_TRY(add_source(*impl, std::move(opened), options, run));
  }
  impl->files = base::file_ids(inputs);
  if (options.one_recording && !impl->sources.empty()) {
    std::vector<const pipeline::Trace *> sources;
    for (const auto &source : impl->sources)
      sources.push_back(source.get());
    ETWRELOG_TRY(pipeline::check_one_boot(sources));
  }
  order_machines(*impl);
  choose_clock(*impl);
  report_opening(impl->sources, run.report);
  return Trace(std::move(impl));
}

Result<Trace> Trace::together(std::span<const Trace *const> traces) {
  if (traces.empty()) return base::bad_option(Option::input, "no input is given");
  auto impl = std::make_unique<Impl>();
  for (const Trace *const trace : traces) {
    if (trace->single_pass()) return detail::Traversal::needs_spool(*trace);
    std::ranges::copy(trace->impl_->files, std::back_inserter(impl->files));
    for (const auto &source : trace->impl_->sources)
      impl->sources.push_back(std::make_unique<const pipeline::Trace>(source->again()));
    for (const SourceInfo &info : trace->impl_->infos) {
      SourceInfo copy = info;
      copy.machine = machine_of(info.header, impl->infos);
      impl->infos.push_back(std::move(copy));
    }
  }
  order_machines(*impl);
  choose_clock(*impl);
  return Trace(std::move(impl));
}

std::span<const SourceInfo> Trace::sources() const {
  return impl_->infos;
}

const Clock &Trace::clock() const {
  return impl_->clock;
}

bool Trace::single_pass() const {
  return impl_->stream != nullptr;
}

Error detail::Traversal::needs_spool(const Trace &trace) {
  return base::unsupported("reading a stream more than once, or in another way than as it comes")
      .in(of(trace).infos.front().name)
      .advise(Advice::allow_spool);
}

Result<std::vector<const pipeline::Trace *>> detail::Traversal::all_sources(const Trace &trace) {
  const pipeline::OpenedTrace &opened = of(trace);
  if (opened.stream) return needs_spool(trace);
  std::vector<const pipeline::Trace *> sources;
  for (const auto &source : opened.sources)
    sources.push_back(source.get());
  return sources;
}

void detail::Traversal::add_input(RunReport *report, const pipeline::Trace &source) {
  if (report == nullptr) return;
  report->stored_bytes += source.stored_bytes();
  report->decoded_bytes += source.decoded_bytes();
  report->buffers += source.buffers().size();
}

void detail::Traversal::add_to(RunReport *report, const std::vector<Skipped> &skipped,
                               const std::vector<std::string> &warnings) {
  if (report == nullptr) return;
  // What is read several times says the same each time.
  const auto place = [](const Skipped &s) { return std::tuple(s.source, s.offset, s.bytes); };
  std::set<std::tuple<std::uint32_t, std::uint64_t, std::uint64_t>> known;
  for (const Skipped &one : report->skipped)
    known.insert(place(one));
  for (const Skipped &one : skipped)
    if (known.insert(place(one)).second) report->skipped.push_back(one);
  for (const std::string &warning : warnings)
    if (std::ranges::find(report->warnings, warning) == report->warnings.end())
      report->warnings.push_back(warning);
}

void EventBatch::note_damage(std::size_t buffer, WalkEnd::Reason reason, const std::uint8_t *at,
                             std::uint32_t found) {
  // A batch may be walked more than once.
  for (const detail::Damage &known : damage_)
    if (known.buffer == buffer) return;
  damage_.push_back({static_cast<std::uint32_t>(buffer),
                     {reason, static_cast<std::uint32_t>(at - buffers_[buffer].events), found}});
}

struct EventCursor::Impl {
  std::unique_ptr<Walk> walk;
  Result<void> status;
};

EventCursor::EventCursor(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
EventCursor::EventCursor(EventCursor &&) noexcept = default;
EventCursor &EventCursor::operator=(EventCursor &&) noexcept = default;
EventCursor::~EventCursor() = default;

const Result<void> &EventCursor::status() const {
  return impl_->status;
}

bool EventCursor::next_batch() {
  while (impl_->walk) {
    WalkSlot *slot = impl_->walk->next(impl_->status);
    if (slot == nullptr) {
      impl_->walk->report();
      impl_->walk.reset();
      break;
    }
    at_ = slot->events->begin();
    if (at_ != std::default_sentinel) return true;
  }
  return false;
}

EventCursor detail::Traversal::cursor(Result<std::unique_ptr<Walk>> walk) {
  auto impl = std::make_unique<EventCursor::Impl>();
  impl->status = walk ? (*walk)->begin({}) : std::move(walk).error();
  if (impl->status) impl->walk = *std::move(walk);
  return EventCursor(std::move(impl));
}

EventCursor Trace::events(const Query &query, const RunOptions &run) const & {
  return pipeline::read_events(*this, query, {}, run);
}

EventCursor pipeline::read_events(const etwrelog::Trace &trace, const Query &query, const Reading &reading,
                                  const RunOptions &run) {
  return detail::Traversal::cursor(Walk::start(trace, query, reading, run));
}

namespace {

// Parts are given to batches and come back when they are merged.
class Parts {
public:
  explicit Parts(const detail::FoldSteps &steps) : steps_(steps) {}
  ~Parts() {
    for (void *part : all_)
      steps_.destroy(steps_.context, part);
  }
  Parts(const Parts &) = delete;
  Parts &operator=(const Parts &) = delete;

  void *take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) {
      all_.reserve(all_.size() + 1);
      free_.reserve(all_.size() + 1);
      all_.push_back(steps_.make(steps_.context));
      return all_.back();
    }
    void *part = free_.back();
    free_.pop_back();
    return part;
  }
  void give(void *part) {
    const std::lock_guard lock(mutex_);
    free_.push_back(part);
  }

private:
  const detail::FoldSteps &steps_;
  std::mutex mutex_;
  std::vector<void *> all_, free_;
};

} // namespace

Result<void> Trace::run_fold(const detail::FoldSteps &steps, const Query &query,
                             const RunOptions &run) const {
  return pipeline::run_fold(*this, steps, query, {}, run);
}

Result<void> pipeline::run_fold(const etwrelog::Trace &trace, const detail::FoldSteps &steps,
                                const Query &query, const Reading &reading, const RunOptions &run) {
  Parts parts(steps);
  ETWRELOG_TRY_LET(walk, Walk::start(trace, query, reading, run));
  const auto map = [&](WalkSlot &slot) {
    return base::called("the map of a fold", [&] {
      slot.part = parts.take();
      steps.map(steps.context, slot.part, *slot.events);
    });
  };
  const auto merge = [&](WalkSlot &slot) {
    Result<void> merged =
        base::called("the merge of a fold", [&] { return steps.merge(steps.context, slot.part); });
    parts.give(slot.part);
    return merged;
  };
  const Result<void> status = walk->run(map, merge);
  walk->report();
  return status;
}

} // namespace etwrelog
