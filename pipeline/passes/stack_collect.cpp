#include "passes/stack_collect.hpp"

#include "base/errors.hpp"
#include "stacks/stack_events.hpp"

#include <fmt/format.h>

namespace etwrelog::pipeline {

using namespace stacks;

namespace {

struct FixedReference { // one that stays as it is
  std::uint64_t key;
  Place place;
};

struct CollectPart {
  std::vector<KeyDefinition> definitions;
  std::vector<FixedReference> fixed;
  JitCode jit;
  std::vector<std::uint64_t> made_keys; // blocks of them, each once in a row
  std::vector<std::uint64_t> frames;
  std::vector<std::pair<std::uint32_t, std::int64_t>> first_stack; // of each buffer that has one
};

void note_item_keys(const EventView &event, Place place, std::vector<FixedReference> &fixed) {
  ExtendedItems items = event.items();
  ExtendedItem item;
  while (items.next(item)) {
    const auto stack = stack_in(item);
    if (stack && stack->by_key) fixed.push_back({stack->key(), place});
  }
}

} // namespace

Error too_little_stack_memory(const std::string &what, std::size_t limit) {
  return base::over_limit(what + " need too much memory")
      .expected(fmt::format("more than {} bytes of memory", limit))
      .found(std::to_string(limit))
      .advise(Advice::more_stack_memory);
}

namespace {

class Collecting {
public:
  explicit Collecting(std::size_t memory) : memory_(memory) {}

  Result<PassResult> add(const Trace &trace, std::uint32_t first, const PassOptions &options) {
    Pass<CollectPart> pass;
    pass.name = "reading stack keys";
    pass.work = [&](Batch &batch, CollectPart &work) {
      work.definitions.clear();
      work.fixed.clear();
      work.jit.clear();
      work.made_keys.clear();
      work.first_stack.clear();
      for (const DecodedBuffer &buffer : batch.buffers)
        look_at(trace, batch, buffer, first, work);
    };
    pass.merge = [&](Batch &, CollectPart &work) -> Result<void> { return merge(work); };
    return run_pass(trace, pass, options);
  }

  StackInventory finish() && {
    all_.definitions.sort();
    for (const FixedReference &reference : fixed_)
      if (KeyDefinition *definition = all_.definitions.resolve_any(reference.key, reference.place))
        definition->needed = true;
    all_.jit.finish();
    return std::move(all_);
  }

private:
  void look_at(const Trace &trace, Batch &batch, const DecodedBuffer &buffer, std::uint32_t first,
               CollectPart &work) {
    const DecodedBuffer here = numbered(buffer, first);
    std::int64_t first_stack = StackInventory::kNoStackTime;
    trace.visit(batch, buffer, [&](const EventView &event, std::int64_t time, std::uint32_t at) {
      const StackEventKind kind = stack_event_kind(event);
      if (kind == StackEventKind::none) {
        if (event.has_items()) note_item_keys(event, place_of(time, here, at), work.fixed);
        work.jit.add(event, time);
        return;
      }
      StackFields fields;
      if (kind != StackEventKind::definition) first_stack = std::min(first_stack, time);
      if (kind == StackEventKind::walk || !parse_stack_event(event, kind, fields)) return;
      const Place place = place_of(time, here, at);
      const std::uint64_t block = fields.key >> StackInventory::kKeyBlockBits;
      if (fields.key % 2 != 0 && (work.made_keys.empty() || work.made_keys.back() != block))
        work.made_keys.push_back(block);
      if (kind == StackEventKind::reference) {
        if (buffer.index == 0) work.fixed.push_back({fields.key, place});
        return;
      }
      const unsigned pointer_size = event.pointer_size();
      load_frames(fields.frames, pointer_size, work.frames);
      KeyDefinition definition{fields.key, is_kernel_stack(work.frames, pointer_size), place};
      // One that would not fit a StackWalk event stays what it is, with its references.
      if (walk_size(work.frames.size(), pointer_size) <= format::kMaxEventSize)
        definition.stack = all_.table->intern(work.frames, stack_scope(pointer_size));
      work.definitions.push_back(definition);
    });
    if (first_stack != StackInventory::kNoStackTime) work.first_stack.emplace_back(here.index, first_stack);
  }

  Result<void> merge(CollectPart &work) {
    for (const KeyDefinition &definition : work.definitions)
      all_.definitions.add(definition);
    fixed_.insert(fixed_.end(), work.fixed.begin(), work.fixed.end());
    all_.jit.append(std::move(work.jit));
    all_.made_keys.insert(work.made_keys.begin(), work.made_keys.end());
    for (const auto &[buffer, time] : work.first_stack) {
      if (buffer >= all_.first_stack.size())
        all_.first_stack.resize(buffer + 1u, StackInventory::kNoStackTime);
      all_.first_stack[buffer] = time;
    }
    if (all_.memory() + fixed_.capacity() * sizeof(FixedReference) > memory_)
      return too_little_stack_memory("the definitions of the trace's stack keys", memory_);
    return {};
  }

  const std::size_t memory_;
  StackInventory all_;
  std::vector<FixedReference> fixed_;
};

} // namespace

Result<StackInventory> collect_stacks(Traces traces, const PassOptions &options, PassResult &result,
                                      std::size_t memory) {
  Collecting collecting(memory);
  ETWRELOG_TRY(run_over(traces, result, [&](const Trace &trace, std::uint32_t first) {
    return collecting.add(trace, first, options);
  }));
  return std::move(collecting).finish();
}

} // namespace etwrelog::pipeline
