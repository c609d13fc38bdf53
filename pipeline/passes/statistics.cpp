#include "passes/statistics.hpp"

#include "base/errors.hpp"
#include "etwrelog/clr_events.hpp"
#include "filter/filter.hpp"
#include "passes/collect.hpp"

#include <algorithm>
#include <limits>
#include <unordered_set>

#include <xxhash.h>

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
  std::map<std::uint32_t, ProcessStatistics> by_instance;
  std::map<std::uint32_t, std::uint64_t> samples_by_pid, images_by_pid, events_by_header_pid;
  StackCounts stacks;
  std::vector<StackHash> stack_hashes;
  // Which stacks were handed on, of this batch or an earlier one: most come again soon.
  std::vector<StackHash> handed_on = std::vector<StackHash>(1u << 13);
  std::vector<std::uint64_t> defined, referenced;
  std::int64_t first_time = 0, last_time = 0;

  void clear() {
    types.clear();
    names = {};
    events = bytes = unattributed_samples = 0;
    by_instance.clear();
    samples_by_pid.clear();
    images_by_pid.clear();
    events_by_header_pid.clear();
    stacks = {};
    stack_hashes.clear();
    defined.clear();
    referenced.clear();
    first_time = std::numeric_limits<std::int64_t>::max();
    last_time = std::numeric_limits<std::int64_t>::min();
  }
};

template <class T> void make_unique_list(std::vector<T> &list) {
  std::ranges::sort(list);
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

class Counter {
public:
  Counter(const filter::Lifetimes &lifetimes, CountPart &work) : lifetimes_(lifetimes), work_(work) {}

  void count(const EventView &event, std::int64_t time, filter::Position &position) {
    ++work_.events;
    work_.bytes += event.size();
    work_.types.add(event);
    if (time != 0) {
      work_.first_time = std::min(work_.first_time, time);
      work_.last_time = std::max(work_.last_time, time);
    }
    if (schema::EventNames::teaches(event)) work_.names.learn(event);
    if (event.has_ids()) ++header_pid(event.process_id());
    const filter::Owner owner = filter::owner_of(event, time, position, lifetimes_);
    if (owner.kind == filter::Owner::Kind::process) add_to_process(owner.pid, time, event);
    if (event.has_hook())
      count_hook(event, owner);
    else if (event.is_event())
      count_event_stacks(event);
  }

private:
  std::uint64_t &header_pid(std::uint32_t pid) {
    if (!last_header_ || last_header_pid_ != pid) {
      last_header_pid_ = pid;
      last_header_ = &work_.events_by_header_pid[pid];
    }
    return *last_header_;
  }

  void add_to_process(std::uint32_t pid, std::int64_t time, const EventView &event) {
    if (!last_process_ || last_pid_ != pid || !last_is_only_) {
      const auto instance = lifetimes_.process_at(pid, time);
      if (!instance) return;
      const auto processes = lifetimes_.processes(); // those of one id stand together
      auto other = [&](std::size_t i) { return i < processes.size() && processes[i].pid == pid; };
      if (!last_process_ || last_instance_ != *instance) last_process_ = &work_.by_instance[*instance];
      last_instance_ = *instance;
      last_pid_ = pid;
      last_is_only_ = !other(*instance + std::size_t{1}) && !other(*instance - std::size_t{1});
    }
    ++last_process_->events;
    last_process_->bytes += event.size();
    if (event.has_hook() && event.hook() == kernel::kHookSample) ++last_process_->samples;
  }

  void count_hook(const EventView &event, const filter::Owner &owner) {
    const std::uint16_t hook = event.hook();
    const unsigned pointer_size = event.pointer_size();
    const filter::HookRule &rule = filter::rule_for(hook, event.version());
    const filter::FieldOffsets &at = rule.offsets(pointer_size);
    if (hook == kernel::kHookSample) {
      if (owner.kind == filter::Owner::Kind::process)
        ++work_.samples_by_pid[owner.pid];
      else
        ++work_.unattributed_samples;
      return;
    }
    switch (rule.scope) {
    case kernel::Scope::image:
      if (const auto pid = filter::FieldOffsets::u32(event.payload(), at.process_id))
        ++work_.images_by_pid[*pid];
      break;
    case kernel::Scope::stack_walk:
      ++work_.stacks.walks;
      add_frames(event.payload(), at.frames, pointer_size);
      break;
    case kernel::Scope::stack_reference:
      ++(hook == kernel::kHookStackKeyKernel ? work_.stacks.kernel_references : work_.stacks.user_references);
      if (const auto key = filter::FieldOffsets::pointer(event.payload(), at.stack_key, pointer_size))
        work_.referenced.push_back(*key);
      break;
    case kernel::Scope::stack_definition:
      ++(hook == kernel::kHookStackKeyDelete ? work_.stacks.key_deletes : work_.stacks.key_rundowns);
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
    const XXH128_hash_t hash = XXH3_128bits(payload.data() + at, frames * pointer_size);
    const StackHash stack{hash.low64, hash.high64};
    StackHash &before = work_.handed_on[stack.high & (work_.handed_on.size() - 1)];
    if (before == stack) return;
    before = stack;
    work_.stack_hashes.push_back(stack);
  }

  void count_event_stacks(const EventView &event) {
    if (event.has_items()) {
      ExtendedItems items = event.items();
      ExtendedItem item;
      while (items.next(item)) {
        if (item.type != ItemType::stack_trace32 && item.type != ItemType::stack_trace64) continue;
        ++work_.stacks.item_stacks;
        const std::size_t width = item.type == ItemType::stack_trace64 ? 8 : 4;
        if (item.data.size() >= kItemStackFramesAt)
          work_.stacks.item_frames += (item.data.size() - kItemStackFramesAt) / width;
      }
    }
    if (event.id() != clr::kStackWalkId || event.provider() != kClrGuid) return;
    ++work_.stacks.clr_stacks;
    const std::size_t bytes = event.payload().size();
    if (bytes >= clr::kStackFramesAt)
      work_.stacks.clr_frames += (bytes - clr::kStackFramesAt) / event.pointer_size();
  }

  const filter::Lifetimes &lifetimes_;
  CountPart &work_;
  std::uint64_t *last_header_ = nullptr;
  std::uint32_t last_header_pid_ = 0, last_instance_ = 0, last_pid_ = 0;
  bool last_is_only_ = false; // process of this id
  ProcessStatistics *last_process_ = nullptr;
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

// Adds up traces, one after the other.
class Counting {
public:
  Counting(std::vector<ProcessInstance> processes, std::size_t most_stacks) : most_stacks_(most_stacks) {
    all_.processes = std::move(processes);
    all_.by_instance.resize(all_.processes.size());
    all_.first_time = std::numeric_limits<std::int64_t>::max();
    all_.last_time = std::numeric_limits<std::int64_t>::min();
  }

  Result<void> add(const CountedTrace &counted, Traces traces, std::size_t number,
                   const PassOptions &options) {
    const Trace &trace = *counted.trace;
    if (keys_.size() <= counted.machine) keys_.resize(counted.machine + 1u);
    Pass<CountPart> pass;
    pass.name = "counting";
    pass.work = [&](Batch &batch, CountPart &work) {
      work.clear();
      Counter counter(*counted.lifetimes, work);
      for (const DecodedBuffer &buffer : batch.buffers) {
        filter::Position position{buffer.header.processor(),
                                  counted.lifetimes->thread_at_start(counted.first_buffer + buffer.index)};
        trace.visit(batch, buffer, [&](const EventView &event, std::int64_t time, std::uint32_t) {
          counter.count(event, time, position);
        });
      }
      make_unique_list(work.defined);
      make_unique_list(work.referenced);
    };
    pass.merge = [&](Batch &batch, CountPart &work) -> Result<void> {
      for (const DecodedBuffer &buffer : batch.buffers) {
        ++all_.buffer_flags[buffer.header.flags];
        ++all_.buffer_types[buffer.header.type];
        ++all_.codecs[static_cast<std::size_t>(buffer.codec)];
        all_.claimed_bytes += buffer.header.valid_bytes();
      }
      return merge(work, counted);
    };
    ETWRELOG_TRY_LET(done, run_pass(trace, pass, options));
    add_to(met_, {0, trace.scan().skipped, trace.scan().warnings}, traces, number);
    add_to(met_, std::move(done), traces, number);
    return {};
  }

  // `first_stamp`: the time of a trace without any.
  Statistics finish(std::int64_t first_stamp) && {
    if (all_.first_time > all_.last_time) all_.first_time = all_.last_time = first_stamp;
    for (const schema::TypeCount &row : types_.rows())
      all_.types.push_back({row.type, names_.name(row.type), row.events, row.bytes});
    all_.stacks.distinct_stacks = distinct_.size();
    for (const Keys &keys : keys_) {
      all_.stacks.distinct_keys_defined += keys.defined.size();
      all_.stacks.distinct_keys_referenced += keys.referenced.size();
      for (const std::uint64_t key : keys.referenced)
        all_.stacks.keys_never_defined += keys.defined.contains(key) ? 0 : 1;
    }
    all_.warnings = std::move(met_.warnings);
    all_.skipped = std::move(met_.skipped);
    return std::move(all_);
  }

private:
  struct Keys { // of one machine
    std::unordered_set<std::uint64_t> defined, referenced;
  };

  Result<void> merge(const CountPart &work, const CountedTrace &counted) {
    types_.merge(work.types);
    names_.merge(work.names);
    all_.events += work.events;
    all_.event_bytes += work.bytes;
    all_.unattributed_samples += work.unattributed_samples;
    for (const auto &[instance, part] : work.by_instance) {
      ProcessStatistics &of = all_.by_instance[counted.first_process + instance];
      of.events += part.events;
      of.bytes += part.bytes;
      of.samples += part.samples;
    }
    add_up(all_.samples_by_pid, work.samples_by_pid);
    add_up(all_.images_by_pid, work.images_by_pid);
    add_up(all_.events_by_header_pid, work.events_by_header_pid);
    add_up(all_.stacks, work.stacks);
    for (const StackHash &stack : work.stack_hashes)
      distinct_.insert(stack);
    Keys &keys = keys_[counted.machine];
    keys.defined.insert(work.defined.begin(), work.defined.end());
    keys.referenced.insert(work.referenced.begin(), work.referenced.end());
    if (work.first_time <= work.last_time) {
      all_.first_time =
          std::min(all_.first_time, counted.time ? counted.time(work.first_time) : work.first_time);
      all_.last_time = std::max(all_.last_time, counted.time ? counted.time(work.last_time) : work.last_time);
    }
    if (distinct_.size() > most_stacks_ || keys.defined.size() > most_stacks_ ||
        keys.referenced.size() > most_stacks_)
      return too_many(*counted.trace, most_stacks_);
    return {};
  }

  const std::size_t most_stacks_;
  Statistics all_;
  PassResult met_;
  schema::TypeCounts types_;
  schema::EventNames names_;
  DistinctStacks distinct_;
  std::vector<Keys> keys_; // by machine: elsewhere a key means another stack
};

} // namespace

Result<Statistics> count_traces(std::span<const CountedTrace> traces, std::vector<ProcessInstance> processes,
                                const PassOptions &options, std::size_t most_stacks) {
  Counting counting(std::move(processes), most_stacks);
  std::vector<const Trace *> inputs;
  for (const CountedTrace &counted : traces)
    inputs.push_back(counted.trace);
  for (std::size_t i = 0; i < traces.size(); ++i)
    ETWRELOG_TRY(counting.add(traces[i], inputs, i, options));
  return std::move(counting).finish(traces.front().trace->header().first_stamp);
}

Result<Statistics> collect_statistics(const Trace &trace, const PassOptions &options,
                                      std::size_t most_stacks) {
  if (const Bytes facts = trace.facts(); !trace.salvage() && !facts.empty()) {
    if (std::optional<Statistics> known =
            read_statistics_record({reinterpret_cast<const char *>(facts.data()), facts.size()})) {
      known->warnings = trace.scan().warnings;
      return *std::move(known);
    }
  }
  PassResult first;
  ETWRELOG_TRY_LET(lifetimes, collect_lifetimes(trace, options, first));
  const CountedTrace counted{.trace = &trace, .lifetimes = &lifetimes};
  return count_traces({&counted, 1}, {lifetimes.processes().begin(), lifetimes.processes().end()}, options,
                      most_stacks);
}

} // namespace etwrelog::pipeline
