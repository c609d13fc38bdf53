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
  std::vector<std::uint64_t> frames;
  std::vector<std::pair<std::uint32_t, std::int64_t>> first_stack; // of each buffer that has one
};

void note_item_keys(const EventView &event, Place place, std::vector<FixedReference> &fixed) {
  ExtendedItems items = event.items();
  ExtendedItem item;
  while (items.next(item)) {
    const bool narrow = item.type == format::ItemType::stack_key32,
               wide = item.type == format::ItemType::stack_key64;
    if ((!narrow && !wide) || item.data.size() < format::kItemStackKeyAt + 8) continue;
    fixed.push_back({load_pointer(item.data.data() + format::kItemStackKeyAt, wide ? 8 : 4), place});
  }
}

} // namespace

Error too_little_stack_memory(const std::string &what, std::size_t limit) {
  return base::io_failure(what + " need too much memory")
      .expected(fmt::format("at most {} bytes", limit))
      .found("more")
      .advise(Advice::more_stack_memory);
}

Result<StackInventory> collect_stacks(const Trace &trace, const PassOptions &options, PassResult &result,
                                      std::size_t memory) {
  StackInventory all;
  std::vector<FixedReference> fixed;
  Pass<CollectPart> pass;
  pass.name = "reading stack keys";
  pass.work = [&](Batch &batch, CollectPart &work) {
    work.definitions.clear();
    work.fixed.clear();
    work.jit.clear();
    work.first_stack.clear();
    for (const DecodedBuffer &buffer : batch.buffers) {
      std::int64_t first_stack = StackInventory::kNoStackTime;
      trace.visit(batch, buffer, [&](const EventView &event, std::int64_t time, std::uint32_t at) {
        const StackEventKind kind = stack_event_kind(event);
        if (kind == StackEventKind::none) {
          if (event.has_items()) note_item_keys(event, place_of(time, buffer, at), work.fixed);
          work.jit.add(event, time);
          return;
        }
        StackFields fields;
        if (kind != StackEventKind::definition) first_stack = std::min(first_stack, time);
        if (kind == StackEventKind::walk || !parse_stack_event(event, kind, fields)) return;
        const Place place = place_of(time, buffer, at);
        if (kind == StackEventKind::reference) {
          if (buffer.index == 0) work.fixed.push_back({fields.key, place});
          return;
        }
        const unsigned pointer_size = event.pointer_size();
        load_frames(fields.frames, pointer_size, work.frames);
        KeyDefinition definition{fields.key, is_kernel_stack(work.frames, pointer_size), place};
        // One that would not fit a StackWalk event stays what it is, with its references.
        if (walk_size(work.frames.size(), pointer_size) <= format::kMaxEventSize)
          definition.stack = all.table->intern(work.frames, stack_scope(pointer_size));
        work.definitions.push_back(definition);
      });
      if (first_stack != StackInventory::kNoStackTime)
        work.first_stack.emplace_back(buffer.index, first_stack);
    }
  };
  pass.merge = [&](Batch &, CollectPart &work) -> Result<void> {
    for (const KeyDefinition &definition : work.definitions)
      all.definitions.add(definition);
    fixed.insert(fixed.end(), work.fixed.begin(), work.fixed.end());
    all.jit.append(std::move(work.jit));
    for (const auto &[buffer, time] : work.first_stack) {
      if (buffer >= all.first_stack.size()) all.first_stack.resize(buffer + 1u, StackInventory::kNoStackTime);
      all.first_stack[buffer] = time;
    }
    if (all.memory() + fixed.capacity() * sizeof(FixedReference) > memory)
      return too_little_stack_memory("the definitions of the trace's stack keys", memory);
    return {};
  };
  Result<PassResult> done = run_pass(trace, pass, options);
  if (!done) return std::move(done).error();
  result = std::move(*done);
  all.definitions.sort();
  for (const FixedReference &reference : fixed)
    if (KeyDefinition *definition = all.definitions.resolve_any(reference.key, reference.place))
      definition->needed = true;
  all.jit.finish();
  return all;
}

} // namespace etwrelog::pipeline
