// include/etwrelog/state.hpp: one pass that collects processes, threads, images and schemas.
#include "api/state.hpp"

#include "base/errors.hpp"
#include "passes/pass.hpp"
#include "profile_pass/event_records.hpp"
#include "schema/manifest_pieces.hpp"

#include <algorithm>
#include <map>

namespace etwrelog {
namespace pipeline {
namespace {

struct StatePart {
  filter::LifetimeRecords lifetimes;
  StateRecords state;
  // Events that say how others are laid out, one behind the other; `seen`: what this batch has shown already,
  // as most TraceLogging events repeat their metadata.
  struct Teacher {
    std::size_t at;
    std::uint32_t size;
    format::HeaderType type;
  };
  std::vector<std::uint8_t> bytes;
  std::vector<Teacher> teachers;
  SchemaCatalog seen;
  schema::ManifestPieces pieces;

  void clear() {
    lifetimes.clear();
    state.clear();
    bytes.clear();
    teachers.clear();
    seen = {};
    pieces.clear();
  }
};

void look_at_state(const EventView &event, profile::Instant at, StateRecords &state) {
  if (event.has_hook())
    add_kernel_state(event, event.hook(), at, state);
  else if (!event.is_classic())
    add_state_of_provider(event, at, state);
  else if (event.provider() == format::kImageIdGuid)
    add_identity(event, at, state);
  else if (const auto hook = kernel::hook_of_classic(event))
    add_kernel_state(event, *hook, at, state);
}

void look_at_schema(const EventView &event, std::int64_t time, std::uint32_t machine, const ClockMap &clock,
                    StatePart &part) {
  if (!SchemaCatalog::teaches(event)) return;
  if (part.pieces.take(event, clock(time), machine) || !part.seen.learns(event)) return;
  part.teachers.push_back({part.bytes.size(), event.size(), event.type()});
  part.bytes.insert(part.bytes.end(), event.bytes().begin(), event.bytes().end());
  part.bytes.resize(align8(part.bytes.size()));
  if (event.has_items()) part.seen.learn(event);
}

// The sources of one machine, one after the other. Their buffers are numbered through.
class MachineState {
public:
  // What teaches is learned, but for manifests in pieces, which are kept, at times of the first source's
  // clock.
  Result<PassResult> add(const Trace &trace, const RunOptions &run, SchemaCatalog *schemas,
                         schema::ManifestPieces &pieces, std::uint32_t machine, const ClockMap &clock) {
    const auto base = static_cast<std::uint32_t>(processors_.size());
    processors_.resize(base + trace.buffers().size());
    // Of each source by itself: what ran on a processor is then not known of its buffers, and of no others.
    const bool one_stream = (trace.header().log_file_mode & format::kModeOneStream) != 0;
    std::map<std::uint16_t, std::uint16_t>
        numbers; // what runs on a processor is not carried over to another source
    Pass<StatePart> pass;
    pass.name = "reading processes and images";
    pass.work = [&](Batch &batch, StatePart &part) {
      part.clear();
      for (const DecodedBuffer &buffer : batch.buffers)
        trace.visit(batch, buffer, [&](const EventView &event, std::int64_t time, std::uint32_t at) {
          part.lifetimes.add(event, time, base + buffer.index);
          look_at_state(event, {time, std::uint64_t{base + buffer.index} << 32 | at}, part.state);
          if (schemas != nullptr) look_at_schema(event, time, machine, clock, part);
        });
    };
    pass.merge = [&](Batch &batch, StatePart &part) -> Result<void> {
      for (const DecodedBuffer &buffer : batch.buffers) {
        const auto [number, fresh] = numbers.try_emplace(buffer.header.processor(), next_processor_);
        if (fresh) ++next_processor_;
        processors_[base + buffer.index] = number->second;
      }
      if (one_stream) part.lifetimes.switches.clear();
      lifetimes_.append(std::move(part.lifetimes));
      state_.append(std::move(part.state));
      for (const StatePart::Teacher &t : part.teachers)
        schemas->learn(EventView(part.bytes.data() + t.at, t.size, t.type));
      pieces.merge(part.pieces);
      return {};
    };
    return run_pass(trace, pass, run);
  }

  std::unique_ptr<Lifetimes::Impl::Machine> finish(std::vector<profile::ThreadName> &names) && {
    auto machine = std::make_unique<Lifetimes::Impl::Machine>();
    machine->lifetimes = std::make_shared<const filter::Lifetimes>(std::move(lifetimes_), processors_, false);
    state_.settle();
    machine->identities = std::move(state_.identities);
    machine->images.build(std::move(state_.images), state_.processes, machine->identities);
    names = std::move(state_.thread_names);
    std::ranges::sort(names, {}, [](const profile::ThreadName &n) { return std::tuple(n.tid, n.at); });
    return machine;
  }

  [[nodiscard]] std::uint32_t buffers() const { return static_cast<std::uint32_t>(processors_.size()); }

private:
  filter::LifetimeRecords lifetimes_;
  StateRecords state_;
  std::vector<std::uint16_t> processors_;
  std::uint16_t next_processor_ = 0;
};

std::int64_t converted(std::int64_t raw, const ClockMap &map) {
  return raw == kBeginning || raw == kForever ? raw : map(raw);
}

// The last name that a thread was given before its end.
std::string name_of(const std::vector<profile::ThreadName> &names, std::uint32_t tid, std::int64_t start,
                    std::int64_t end) {
  const auto behind =
      std::ranges::upper_bound(names, std::pair(tid, end), {},
                               [](const profile::ThreadName &n) { return std::pair(n.tid, n.at.time); });
  if (behind == names.begin()) return {};
  const profile::ThreadName &last = *std::prev(behind);
  return last.tid == tid && last.at.time >= start ? last.name : std::string();
}

void add_instances(Lifetimes::Impl &all, Lifetimes::Impl::Machine &machine, std::uint32_t number,
                   const std::vector<profile::ThreadName> &names, const ClockMap &map) {
  machine.first_process = static_cast<std::uint32_t>(all.processes.size());
  machine.first_image = static_cast<std::uint32_t>(all.images.size());
  const filter::Lifetimes &known = *machine.lifetimes;
  for (const ProcessInstance &process : known.processes()) {
    ProcessInstance &out = all.processes.emplace_back(process);
    out.machine = number;
    out.start = converted(out.start, map);
    out.end = converted(out.end, map);
  }
  const std::size_t first_thread = all.threads.size();
  known.for_each_thread([&](std::uint32_t tid, std::span<const filter::Lifetimes::Span> spans) {
    for (const filter::Lifetimes::Span &span : spans) {
      ThreadInstance &out = all.threads.emplace_back();
      out.tid = tid;
      out.pid = span.pid;
      out.machine = number;
      out.name = name_of(names, tid, span.start, span.end);
      const std::int64_t when = span.start != kBeginning ? span.start
                                : span.end != kForever   ? span.end
                                                         : kBeginning;
      if (const auto process = known.process_at(span.pid, when))
        out.process = machine.first_process + *process;
      out.start = converted(span.start, map);
      out.end = converted(span.end, map);
    }
  });
  std::stable_sort(all.threads.begin() + static_cast<std::ptrdiff_t>(first_thread), all.threads.end(),
                   [](const ThreadInstance &a, const ThreadInstance &b) {
                     return a.tid != b.tid ? a.tid < b.tid : a.start < b.start;
                   });
  for (std::uint32_t i = 0; i < machine.images.size(); ++i) {
    const profile::Images::Image &image = machine.images[i];
    ImageInstance &out = all.images.emplace_back();
    out.pid = image.pid;
    out.machine = number;
    out.time_stamp = image.time_stamp;
    out.base = image.base;
    out.size = image.size;
    out.load = converted(image.from, map);
    out.unload = converted(image.to, map);
    out.path = image.path;
    if (image.identity == nullptr) continue;
    out.pdb_guid = image.identity->guid;
    out.pdb_age = image.identity->age;
    out.pdb_name = image.identity->pdb_name;
    if (out.time_stamp == 0) out.time_stamp = image.identity->time_stamp;
  }
}

} // namespace

Result<Lifetimes> collect_state(const etwrelog::Trace &trace, const SourcesInTime &sources,
                                const RunOptions &run, SchemaCatalog *schemas) {
  const OpenedTrace &opened = detail::Traversal::of(trace);
  if (opened.stream) return detail::Traversal::needs_spool(trace);
  std::uint32_t machines = 0;
  for (const SourceInfo &info : opened.infos)
    machines = std::max(machines, info.machine + 1);
  std::vector<MachineState> states(machines);
  auto all = std::make_shared<Lifetimes::Impl>();
  std::vector<std::size_t> first_source(machines, sources.size());
  std::vector<const Trace *> traces;
  schema::ManifestPieces pieces;
  for (std::size_t s = 0; s < sources.size(); ++s)
    traces.push_back(&sources[s]);
  for (std::size_t s = 0; s < sources.size(); ++s) {
    const std::uint32_t machine = opened.infos[s].machine;
    first_source[machine] = std::min(first_source[machine], s);
    all->first_buffer.push_back(states[machine].buffers());
    detail::Traversal::add_input(run.report, sources[s]);
    ETWRELOG_TRY_LET(done, states[machine].add(sources[s], run, schemas, pieces, machine, opened.clocks[s]));
    PassResult met;
    add_to(met, std::move(done), traces, s);
    detail::Traversal::add_to(run.report, met.skipped, met.warnings);
  }
  if (schemas != nullptr) schema::learn_pieces(*schemas, pieces);
  for (std::uint32_t m = 0; m < machines; ++m) {
    std::vector<profile::ThreadName> names;
    std::unique_ptr<Lifetimes::Impl::Machine> machine = std::move(states[m]).finish(names);
    const ClockMap &map = opened.clocks[first_source[m]];
    machine->clock = m == 0 ? opened.first_clock : opened.infos[first_source[m]].clock;
    if (!map.same()) machine->to_raw = ClockMap(opened.clock, machine->clock);
    add_instances(*all, *machine, m, names, map);
    all->machines.push_back(std::move(machine));
  }
  return StateParts::make(std::move(all));
}

} // namespace pipeline

Lifetimes::Lifetimes() : impl_(std::make_shared<const Impl>()) {}

Result<Lifetimes> Lifetimes::collect(const Trace &trace, const RunOptions &run) {
  return pipeline::collect_state(trace, pipeline::SourcesInTime(detail::Traversal::of(trace)), run, nullptr);
}

Result<Survey> survey(const Trace &trace, const RunOptions &run) {
  Survey out;
  const pipeline::SourcesInTime whole(detail::Traversal::of(trace));
  ETWRELOG_TRY_LET(lifetimes, pipeline::collect_state(trace, whole, run, &out.schemas));
  out.lifetimes = std::move(lifetimes);
  return out;
}

std::span<const ProcessInstance> Lifetimes::processes() const {
  return impl_->processes;
}

std::span<const ThreadInstance> Lifetimes::threads() const {
  return impl_->threads;
}

std::span<const ImageInstance> Lifetimes::images() const {
  return impl_->images;
}

const ProcessInstance *Lifetimes::process_at(std::uint32_t machine, std::uint32_t pid,
                                             std::int64_t time) const {
  if (machine >= impl_->machines.size()) return nullptr;
  const Impl::Machine &of = *impl_->machines[machine];
  const auto index = of.lifetimes->process_at(pid, pipeline::converted(time, of.to_raw));
  return index ? &impl_->processes[of.first_process + *index] : nullptr;
}

const ThreadInstance *Lifetimes::thread_at(std::uint32_t machine, std::uint32_t tid,
                                           std::int64_t time) const {
  const auto key = [](const ThreadInstance &t) { return std::tuple(t.machine, t.tid, t.start); };
  const auto behind = std::ranges::upper_bound(impl_->threads, std::tuple(machine, tid, time), {}, key);
  if (behind == impl_->threads.begin()) return nullptr;
  const ThreadInstance &thread = *std::prev(behind);
  return thread.machine == machine && thread.tid == tid ? &thread : nullptr;
}

const ImageInstance *Lifetimes::image_at(std::uint32_t machine, std::uint32_t pid, std::uint64_t address,
                                         std::int64_t time) const {
  if (machine >= impl_->machines.size()) return nullptr;
  const Impl::Machine &of = *impl_->machines[machine];
  const std::int64_t raw = pipeline::converted(time, of.to_raw);
  std::uint32_t found = of.images.find(pid, raw, address);
  if (found == profile::Images::kNone) found = of.images.find_kernel(raw, address);
  return found == profile::Images::kNone ? nullptr : &impl_->images[of.first_image + found];
}

} // namespace etwrelog
