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

void add(StackCounts &to, const StackCounts &part) {
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

void add(std::map<std::uint32_t, std::uint64_t> &to, const std::map<std::uint32_t, std::uint64_t> &part) {
  for (const auto &[key, count] : part)
    to[key] += count;
}

Error too_many(const Trace &trace, std::size_t most) {
  return base::unsupported("more different stacks than may be counted")
      .in(trace.input().name())
      .expected(std::to_string(most));
}

} // namespace

Result<Statistics> collect_statistics(const Trace &trace, const PassOptions &options,
                                      std::size_t most_stacks) {
  if (const Bytes facts = trace.facts(); !trace.salvage() && !facts.empty()) {
    if (std::optional<Statistics> known =
            read_statistics_record({reinterpret_cast<const char *>(facts.data()), facts.size()})) {
      known->warnings = trace.scan().warnings;
      return *std::move(known);
    }
  }
  Statistics all;
  PassResult first;
  const Result<filter::Lifetimes> lifetimes = collect_lifetimes(trace, options, first);
  if (!lifetimes) return lifetimes.error();
  all.processes.assign(lifetimes->processes().begin(), lifetimes->processes().end());
  all.by_instance.resize(all.processes.size());
  all.first_time = std::numeric_limits<std::int64_t>::max();
  all.last_time = std::numeric_limits<std::int64_t>::min();

  schema::TypeCounts types;
  schema::EventNames names;
  DistinctStacks distinct;
  std::unordered_set<std::uint64_t> defined, referenced;
  Pass<CountPart> pass;
  pass.name = "counting";
  pass.work = [&](Batch &batch, CountPart &work) {
    work.clear();
    Counter counter(*lifetimes, work);
    for (const DecodedBuffer &buffer : batch.buffers) {
      filter::Position position{buffer.header.processor(), lifetimes->thread_at_start(buffer.index)};
      trace.visit(batch, buffer, [&](const EventView &event, std::int64_t time, std::uint32_t) {
        counter.count(event, time, position);
      });
    }
    make_unique_list(work.defined);
    make_unique_list(work.referenced);
  };
  pass.merge = [&](Batch &batch, CountPart &work) -> Result<void> {
    for (const DecodedBuffer &buffer : batch.buffers) {
      ++all.buffer_flags[buffer.header.flags];
      ++all.buffer_types[buffer.header.type];
      ++all.codecs[static_cast<std::size_t>(buffer.codec)];
      all.claimed_bytes += buffer.header.valid_bytes();
    }
    types.merge(work.types);
    names.merge(work.names);
    all.events += work.events;
    all.event_bytes += work.bytes;
    all.unattributed_samples += work.unattributed_samples;
    for (const auto &[instance, part] : work.by_instance) {
      all.by_instance[instance].events += part.events;
      all.by_instance[instance].bytes += part.bytes;
      all.by_instance[instance].samples += part.samples;
    }
    add(all.samples_by_pid, work.samples_by_pid);
    add(all.images_by_pid, work.images_by_pid);
    add(all.events_by_header_pid, work.events_by_header_pid);
    add(all.stacks, work.stacks);
    for (const StackHash &stack : work.stack_hashes)
      distinct.insert(stack);
    defined.insert(work.defined.begin(), work.defined.end());
    referenced.insert(work.referenced.begin(), work.referenced.end());
    all.first_time = std::min(all.first_time, work.first_time);
    all.last_time = std::max(all.last_time, work.last_time);
    if (distinct.size() > most_stacks || defined.size() > most_stacks || referenced.size() > most_stacks)
      return too_many(trace, most_stacks);
    return {};
  };
  Result<PassResult> done = run_pass(trace, pass, options);
  if (!done) return std::move(done).error();
  if (all.first_time > all.last_time) all.first_time = all.last_time = trace.header().first_stamp;
  for (const schema::TypeCount &row : types.rows())
    all.types.push_back({row.type, names.name(row.type), row.events, row.bytes});
  all.stacks.distinct_stacks = distinct.size();
  all.stacks.distinct_keys_defined = defined.size();
  all.stacks.distinct_keys_referenced = referenced.size();
  for (const std::uint64_t key : referenced)
    all.stacks.keys_never_defined += defined.contains(key) ? 0 : 1;
  all.warnings = trace.scan().warnings;
  all.skipped = trace.scan().skipped;
  std::move(done->skipped.begin(), done->skipped.end(), std::back_inserter(all.skipped));
  std::move(done->warnings.begin(), done->warnings.end(), std::back_inserter(all.warnings));
  return all;
}

} // namespace etwrelog::pipeline
