#include "passes/statistics.hpp"

#include "base/errors.hpp"
#include "base/seed.hpp"
#include "base/sort_unique.hpp"
#include "etwrelog/clr_events.hpp"

#include <algorithm>
#include <limits>
#include <unordered_set>

#include <xxhash.h>

namespace etwrelog {

std::vector<NamedProcesses> by_name(std::span<const ProcessInstance> processes,
                                    std::span<const ProcessStatistics> counts) {
  std::map<std::string_view, NamedProcesses> names;
  for (std::size_t i = 0; i < processes.size() && i < counts.size(); ++i) {
    const std::string_view name =
        processes[i].image_name.empty() ? "?" : std::string_view(processes[i].image_name);
    NamedProcesses &of = names[name];
    ++of.instances;
    of.events += counts[i].events;
    of.samples += counts[i].samples;
  }
  std::vector<NamedProcesses> rows;
  for (auto &[name, of] : names) {
    of.name = name;
    rows.push_back(std::move(of));
  }
  return rows;
}

} // namespace etwrelog

namespace etwrelog::pipeline {

using namespace format;

namespace {

struct StackHash {
  std::uint64_t low = 0, high = 0;
  bool operator==(const StackHash &) const = default;
};

// Open addressing; zero is free, which no stack hashes to but by an accident of 128 bits.
class DistinctStacks {
public:
  void insert(const StackHash &hash) {
    if (size_ * 2 >= slots_.size()) grow();
    size_ += place(hash) ? 1 : 0;
  }
  [[nodiscard]] std::size_t size() const { return size_; }

private:
  bool place(const StackHash &hash) {
    std::size_t at = hash.low & (slots_.size() - 1);
    for (; slots_[at] != StackHash{}; at = (at + 1) & (slots_.size() - 1))
      if (slots_[at] == hash) return false;
    slots_[at] = hash;
    return true;
  }
  void grow() {
    std::vector<StackHash> old(std::max<std::size_t>(1024, slots_.size() * 2));
    std::swap(old, slots_);
    for (const StackHash &hash : old)
      if (hash != StackHash{}) place(hash);
  }
  std::vector<StackHash> slots_;
  std::size_t size_ = 0;
};

struct CountPart {
  schema::TypeCounts types;
  schema::EventNames names;
  std::uint64_t events = 0, bytes = 0, unattributed_samples = 0;
  filter::LifetimeRecords lifetimes;
  Shares shares;
  std::map<std::uint32_t, std::uint64_t> images_by_pid, events_by_header_pid;
  StackCounts stacks;
  std::vector<StackHash> stack_hashes;
  std::vector<StackHash> handed_on = std::vector<StackHash>(1u << 13);
  std::vector<std::uint64_t> defined, referenced;
  std::int64_t first_time = 0, last_time = 0;

  void clear(std::uint32_t first_buffer, std::uint32_t last_buffer) {
    types.clear();
    names = {};
    events = bytes = unattributed_samples = 0;
    lifetimes.clear();
    shares.clear(first_buffer, last_buffer);
    images_by_pid.clear();
    events_by_header_pid.clear();
    stacks = {};
    stack_hashes.clear();
    defined.clear();
    referenced.clear();
    first_time = std::numeric_limits<std::int64_t>::max();
    last_time = std::numeric_limits<std::int64_t>::min();
  }

  // Drops the stacks that were handed on before, in this batch or an earlier one: most come again soon. All
  // at once, so that memory can be fetched ahead.
  void drop_handed_on() {
    constexpr std::size_t kAhead = 16;
    const auto place = [this](const StackHash &stack) -> StackHash & {
      return handed_on[stack.high & (handed_on.size() - 1)];
    };
    std::size_t kept = 0;
    for (std::size_t i = 0; i < stack_hashes.size(); ++i) {
      if (i + kAhead < stack_hashes.size()) __builtin_prefetch(&place(stack_hashes[i + kAhead]));
      const StackHash stack = stack_hashes[i];
      StackHash &before = place(stack);
      if (before == stack) continue;
      before = stack_hashes[kept++] = stack;
    }
    stack_hashes.resize(kept);
  }
};

class Counter {
public:
  Counter(CountPart &work, Counted what) : work_(work), everything_(what == Counted::everything) {}

  void count(const EventView &event, std::int64_t time, filter::Position &position, std::uint32_t buffer) {
    ++work_.events;
    work_.bytes += event.size();
    work_.first_time = std::min(work_.first_time, time);
    work_.last_time = std::max(work_.last_time, time);
    if (everything_) {
      work_.types.add(event);
      if (schema::EventNames::teaches(event)) work_.names.learn(event, time);
    }
    if (event.has_ids()) ++header_pid(event.process_id());
    const filter::HookRule *const found = filter::rule_of(event);
    if (found == nullptr) {
      if (const auto told = filter::state_of_provider(event)) work_.lifetimes.add_state(event, *told, time);
      const filter::Claim claim = filter::claim_of(event, position);
      if (claim.anyone()) work_.shares.of(claim, buffer).add(event, time);
      if (everything_ && event.is_event()) count_event_stacks(event);
      return;
    }
    const filter::HookRule &rule = *found;
    work_.lifetimes.add(event, rule, time, buffer);
    const filter::Claim claim = filter::claim_of(event, rule, position);
    if (claim.anyone())
      work_.shares.of(claim, buffer).add(event, time);
    else if (rule.hook == kernel::kHookSample)
      ++work_.unattributed_samples;
    if (rule.scope == kernel::Scope::image)
      count_image(event, rule);
    else if (everything_)
      count_stack(event, rule);
  }

private:
  std::uint64_t &header_pid(std::uint32_t pid) {
    if (!last_header_ || last_header_pid_ != pid) {
      last_header_pid_ = pid;
      last_header_ = &work_.events_by_header_pid[pid];
    }
    return *last_header_;
  }

  void count_image(const EventView &event, const filter::HookRule &rule) {
    const filter::FieldOffsets &at = rule.offsets(event.pointer_size());
    if (const auto pid = filter::FieldOffsets::u32(event.payload(), at.process_id))
      ++work_.images_by_pid[*pid];
  }

  void count_stack(const EventView &event, const filter::HookRule &rule) {
    const unsigned pointer_size = event.pointer_size();
    const filter::FieldOffsets &at = rule.offsets(pointer_size);
    switch (rule.scope) {
    case kernel::Scope::stack_walk:
      ++work_.stacks.walks;
      add_frames(event.payload(), at.frames, pointer_size);
      break;
    case kernel::Scope::stack_reference:
      ++(rule.hook == kernel::kHookStackKeyKernel ? work_.stacks.kernel_references
                                                  : work_.stacks.user_references);
      if (const auto key = filter::FieldOffsets::pointer(event.payload(), at.stack_key, pointer_size))
        work_.referenced.push_back(*key);
      break;
    case kernel::Scope::stack_definition:
      ++(rule.hook == kernel::kHookStackKeyDelete ? work_.stacks.key_deletes : work_.stacks.key_rundowns);
      if (const auto key = filter::FieldOffsets::pointer(event.payload(), at.stack_key, pointer_size))
        work_.defined.push_back(*key);
      add_frames(event.payload(), at.frames, pointer_size);
      break;
    default: break;
    }
  }

  void add_frames(Bytes payload, std::size_t at, unsigned pointer_size) {
    if (payload.size() < at) return;
    const std::size_t frames = (payload.size() - at) / pointer_size;
    work_.stacks.frames += frames;
    static const base::HashSecret secret = base::hash_secret();
    const XXH128_hash_t hash =
        XXH3_128bits_withSecret(payload.data() + at, frames * pointer_size, secret.data(), secret.size());
    const StackHash stack{hash.low64, hash.high64};
    work_.stack_hashes.push_back(stack);
  }

  void count_event_stacks(const EventView &event) {
    if (event.has_items()) {
      ExtendedItems items = event.items();
      ExtendedItem item;
      while (items.next(item)) {
        const auto stack = stack_in(item);
        if (!stack || stack->by_key) continue;
        ++work_.stacks.item_stacks;
        work_.stacks.item_frames += stack->data.size() / stack->pointer_size;
      }
    }
    if (event.id() != clr::kStackWalkId || !clr::is_runtime(event.provider())) return;
    ++work_.stacks.clr_stacks;
    const std::size_t bytes = event.payload().size();
    if (bytes >= clr::kStackFramesAt)
      work_.stacks.clr_frames += (bytes - clr::kStackFramesAt) / event.pointer_size();
  }

  CountPart &work_;
  const bool everything_;
  std::uint64_t *last_header_ = nullptr;
  std::uint32_t last_header_pid_ = 0;
};

void add_up(StackCounts &to, const StackCounts &part) {
  to.walks += part.walks;
  to.kernel_references += part.kernel_references;
  to.user_references += part.user_references;
  to.key_deletes += part.key_deletes;
  to.key_rundowns += part.key_rundowns;
  to.frames += part.frames;
  to.item_stacks += part.item_stacks;
  to.item_frames += part.item_frames;
  to.clr_stacks += part.clr_stacks;
  to.clr_frames += part.clr_frames;
}

void add_up(std::map<std::uint32_t, std::uint64_t> &to, const std::map<std::uint32_t, std::uint64_t> &part) {
  for (const auto &[key, count] : part)
    to[key] += count;
}

Error too_many(const Trace &trace, std::size_t most) {
  return base::unsupported("more different stacks than may be counted")
      .in(trace.input().name())
      .expected(std::to_string(most));
}

// The traces of one machine: who had which id when, and the events that are still to be attributed by that.
struct Machine {
  explicit Machine(std::size_t most_shares) : shares(most_shares) {}

  filter::LifetimeRecords records;
  std::vector<std::uint16_t> processors; // of each buffer, told apart over all traces
  std::uint16_t next_processor = 0;
  Attribution shares;
  struct Source {
    const CountedTrace *counted;
    std::uint32_t first_buffer;
  };
  std::vector<Source> sources;
  std::unordered_set<std::uint64_t> defined, referenced; // stack keys; elsewhere a key means another stack

  [[nodiscard]] filter::Lifetimes lifetimes() const { return {records, processors, false}; }
};

// Adds up traces, one after the other.
class Counting {
public:
  explicit Counting(const CountLimits &limits) : limits_(limits) {
    all_.first_time = std::numeric_limits<std::int64_t>::max();
    all_.last_time = std::numeric_limits<std::int64_t>::min();
  }

  Result<void> add(const CountedTrace &counted, Traces traces, std::size_t number,
                   const PassOptions &options) {
    const Trace &trace = *counted.trace;
    while (machines_.size() <= counted.machine)
      machines_.emplace_back(limits_.shares);
    Machine &machine = machines_[counted.machine];
    const auto first_buffer = static_cast<std::uint32_t>(machine.processors.size());
    machine.processors.resize(first_buffer + trace.buffers().size());
    const bool one_stream = (trace.header().log_file_mode & format::kModeOneStream) != 0;
    machine.sources.push_back({&counted, first_buffer});
    // What runs on a processor is not carried over to another trace.
    std::map<std::uint16_t, std::uint16_t> processors;
    Pass<CountPart> pass;
    pass.name = "counting";
    pass.work = [&](Batch &batch, CountPart &work) {
      const auto first = static_cast<std::uint32_t>(first_buffer + batch.first);
      work.clear(first, first + static_cast<std::uint32_t>(batch.count) - 1);
      Counter counter(work, limits_.what);
      for (const DecodedBuffer &buffer : batch.buffers) {
        filter::Position position{.processor = buffer.header.processor()};
        trace.visit(batch, buffer, [&](const EventView &event, std::int64_t time, std::uint32_t) {
          counter.count(event, time, position, first_buffer + buffer.index);
        });
      }
      work.drop_handed_on();
      base::sort_unique(work.defined);
      base::sort_unique(work.referenced);
    };
    pass.merge = [&](Batch &batch, CountPart &work) -> Result<void> {
      for (const DecodedBuffer &buffer : batch.buffers) {
        ++all_.buffer_flags[buffer.header.flags];
        ++all_.buffer_types[buffer.header.type];
        ++all_.codecs[static_cast<std::size_t>(buffer.codec)];
        all_.claimed_bytes += buffer.header.valid_bytes();
        const auto [known, fresh] = processors.try_emplace(buffer.header.processor(), machine.next_processor);
        if (fresh) ++machine.next_processor;
        machine.processors[first_buffer + buffer.index] = known->second;
      }
      if (one_stream) work.lifetimes.switches.clear(); // its buffers do not tell where an event was
      return merge(work, counted, machine);
    };
    ETWRELOG_TRY_LET(done, run_pass(trace, pass, options));
    add_to(met_, {0, trace.scan().skipped, trace.scan().warnings}, traces, number);
    add_to(met_, std::move(done), traces, number);
    return {};
  }

  // `first_stamp`: the time of a trace without any.
  Result<Statistics> finish(std::int64_t first_stamp, const PassOptions &options) && {
    for (std::size_t i = 0; i < machines_.size(); ++i)
      ETWRELOG_TRY(attribute(machines_[i], static_cast<std::uint32_t>(i), options));
    if (all_.first_time > all_.last_time) all_.first_time = all_.last_time = first_stamp;
    names_.settle();
    for (const schema::TypeCount &row : types_.rows())
      all_.types.push_back({row.type, names_.name(row.type), row.events, row.bytes});
    all_.stacks.distinct_stacks = distinct_.size();
    for (const Machine &machine : machines_) {
      all_.stacks.distinct_keys_defined += machine.defined.size();
      all_.stacks.distinct_keys_referenced += machine.referenced.size();
      for (const std::uint64_t key : machine.referenced)
        all_.stacks.keys_never_defined += machine.defined.contains(key) ? 0 : 1;
    }
    all_.warnings = std::move(met_.warnings);
    all_.skipped = std::move(met_.skipped);
    return std::move(all_);
  }

private:
  Result<void> merge(CountPart &work, const CountedTrace &counted, Machine &machine) {
    types_.merge(work.types);
    names_.merge(work.names);
    all_.events += work.events;
    all_.event_bytes += work.bytes;
    all_.unattributed_samples += work.unattributed_samples;
    work.lifetimes.actors.clear(); // these two are for filters
    work.lifetimes.definitions.clear();
    machine.records.append(std::move(work.lifetimes));
    machine.shares.append(work.shares.all(), [&machine] { return machine.lifetimes(); });
    add_up(all_.images_by_pid, work.images_by_pid);
    add_up(all_.events_by_header_pid, work.events_by_header_pid);
    add_up(all_.stacks, work.stacks);
    for (const StackHash &stack : work.stack_hashes)
      distinct_.insert(stack);
    machine.defined.insert(work.defined.begin(), work.defined.end());
    machine.referenced.insert(work.referenced.begin(), work.referenced.end());
    if (work.first_time <= work.last_time) {
      all_.first_time =
          std::min(all_.first_time, counted.time ? counted.time(work.first_time) : work.first_time);
      all_.last_time = std::max(all_.last_time, counted.time ? counted.time(work.last_time) : work.last_time);
    }
    if (distinct_.size() > limits_.stacks || machine.defined.size() > limits_.stacks ||
        machine.referenced.size() > limits_.stacks)
      return too_many(*counted.trace, limits_.stacks);
    return {};
  }

  // Names the machine's processes, behind those of the machines before it, and gives them their events.
  Result<void> attribute(Machine &machine, std::uint32_t number, const PassOptions &options) {
    if (machine.sources.empty()) return {};
    const filter::Lifetimes lifetimes(std::move(machine.records), machine.processors, false);
    const std::size_t first_process = all_.processes.size();
    const CountedTrace &clock = *machine.sources.front().counted;
    for (const ProcessInstance &process : lifetimes.processes()) {
      ProcessInstance &out = all_.processes.emplace_back(process);
      out.machine = number;
      if (clock.time && out.start != kBeginning) out.start = clock.time(out.start);
      if (clock.time && out.end != kForever) out.end = clock.time(out.end);
    }
    all_.by_instance.resize(all_.processes.size());
    const auto give = [&](const Share &share, std::uint32_t pid) {
      if (pid == kUnknownId) {
        all_.unattributed_samples += share.samples;
        return;
      }
      if (share.samples != 0) all_.samples_by_pid[pid] += share.samples;
      if (const auto instance = lifetimes.process_at(pid, share.from)) {
        ProcessStatistics &of = all_.by_instance[first_process + *instance];
        of.events += share.events;
        of.bytes += share.bytes;
        of.samples += share.samples;
      }
    };
    machine.shares.settle(lifetimes, give);
    if (!machine.shares.anything_left()) return {};
    for (const Machine::Source &source : machine.sources)
      ETWRELOG_TRY(attribute_rest(*source.counted->trace, source.first_buffer, machine.shares, lifetimes,
                                  give, options));
    return {};
  }

  const CountLimits limits_;
  Statistics all_;
  PassResult met_;
  schema::TypeCounts types_;
  schema::EventNames names_;
  DistinctStacks distinct_;
  std::deque<Machine> machines_;
};

} // namespace

Result<Statistics> count_traces(std::span<const CountedTrace> traces, const PassOptions &options,
                                const CountLimits &limits) {
  Counting counting(limits);
  std::vector<const Trace *> inputs;
  for (const CountedTrace &counted : traces)
    inputs.push_back(counted.trace);
  for (std::size_t i = 0; i < traces.size(); ++i)
    ETWRELOG_TRY(counting.add(traces[i], inputs, i, options));
  return std::move(counting).finish(traces.front().trace->header().first_stamp, options);
}

Result<Statistics> collect_statistics(const Trace &trace, const PassOptions &options,
                                      const CountLimits &limits) {
  if (const Bytes facts = trace.facts(); !trace.salvage() && !facts.empty()) {
    if (std::optional<Statistics> known =
            read_statistics_record({reinterpret_cast<const char *>(facts.data()), facts.size()})) {
      known->warnings = trace.scan().warnings;
      return *std::move(known);
    }
  }
  const CountedTrace counted{.trace = &trace};
  return count_traces({&counted, 1}, options, limits);
}

} // namespace etwrelog::pipeline
