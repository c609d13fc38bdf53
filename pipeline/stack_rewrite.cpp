#include "pipeline/stack_rewrite.hpp"

#include "stages/dedup/stack_events.hpp"

#include <fmt/format.h>

namespace etwrelog::pipeline {

using namespace dedup;

namespace {

constexpr std::int64_t kNoTime = std::numeric_limits<std::int64_t>::min();

// What a stack is reckoned to need in the table. By depth alone, not measured: when the table starts over must not
// depend on how stacks happened to share memory.
std::uint64_t reckoned_bytes(std::size_t depth) { return 40 + 3 * depth; }

constexpr std::size_t kDefinitionsAtOnce = 2048; // so that a restart of the table does not need as much memory again

} // namespace

void StackRewriteCounts::add(const StackRewriteCounts &other) {
  walks_in += other.walks_in;
  references_in += other.references_in;
  definitions_in += other.definitions_in;
  walks_out += other.walks_out;
  references_out += other.references_out;
  definitions_out += other.definitions_out;
  unresolved += other.unresolved;
  restarts += other.restarts;
  event_bytes_in += other.event_bytes_in;
  event_bytes_out += other.event_bytes_out;
}

StackRewriter::StackRewriter(const StackOptions &options, StackInventory inventory, bool collected)
    : options_(options), inventory_(std::move(inventory)), collected_(collected), table_(std::make_shared<StackTable>()) {
  StackKeys::Options keys;
  keys.window = options.window;
  if (!inventory_.definitions.empty())
    keys.taken = [this](std::uint64_t key) { return inventory_.definitions.has_key(key); };
  keys_.emplace(std::move(keys), table_);
}

void StackRewriter::begin(Part &part, std::size_t buffers) const {
  {
    const std::lock_guard lock(switching_);
    part.table = table_;
  }
  part.buffers.resize(buffers);
  for (Buffer &buffer : part.buffers) {
    buffer.bytes.clear();
    buffer.runs.clear();
    buffer.uses.clear();
    buffer.changed = false;
  }
  part.moved.clear();
  part.counts = {};
  part.met_key = false;
  part.jit.clear();
}

void StackRewriter::rewrite(const DecodedBuffer &source, std::span<const write::Run> runs, Part &part,
                            std::size_t i) const {
  Buffer &buffer = part.buffers[i];
  if (runs.empty()) return;
  std::int64_t last_time = runs.front().last_time;
  bool first = true;
  for (const write::Run &run : runs) {
    const Bytes events = Bytes(source.events).subspan(run.begin, run.end - run.begin);
    std::size_t copied = 0; // events before this are in the output
    auto copy_up_to = [&](std::size_t end) {
      buffer.bytes.insert(buffer.bytes.end(), events.data() + copied, events.data() + end);
      copied = end;
    };
    for_each_event(events, [&](const EventView &event, std::int64_t time, std::uint32_t at) {
      if (first) buffer.first_time = time, first = false;
      const StackEventKind kind = stack_event_kind(event);
      if (kind == StackEventKind::none) {
        if (!collected_) part.jit.add(event, time);
        return;
      }
      StackFields fields;
      if (!parse_stack_event(event, kind, fields)) return;
      StackRewriteCounts &counts = part.counts;
      const std::size_t end = at + align8(event.size()), before = buffer.bytes.size() + (at - copied);
      auto replace = [&](auto &&append) { // keeps the event when the append fails
        copy_up_to(at);
        if (append()) copied = end;
      };
      switch (kind) {
      case StackEventKind::walk:
        ++counts.walks_in;
        if (options_.mode != StackMode::expand && fields.frames.size() > event.pointer_size()) {
          load_frames(fields.frames, event.pointer_size(), part.frames);
          replace([&] { return make_reference(event, time, is_kernel_stack(part.frames, event.pointer_size()), part, buffer); });
        }
        break;
      case StackEventKind::reference: {
        ++counts.references_in;
        part.met_key = true;
        const bool kernel = event.hook() == kHookReferenceKernel;
        const KeyDefinition *definition = inventory_.definitions.resolve(fields.key, kernel, place_of(time, source, run.begin + at));
        if (definition == nullptr) ++counts.unresolved;
        if (definition == nullptr || definition->stack == kNoStack) break;
        inventory_.table->read(definition->stack, part.frames);
        replace([&] {
          if (options_.mode == StackMode::expand) return append_walk(buffer.bytes, event, part.frames);
          return make_reference(event, time, kernel, part, buffer);
        });
        break;
      }
      case StackEventKind::definition: {
        ++counts.definitions_in;
        part.met_key = true;
        load_frames(fields.frames, event.pointer_size(), part.frames);
        const KeyDefinition *definition =
            inventory_.definitions.at(fields.key, is_kernel_stack(part.frames, event.pointer_size()), place_of(time, source, run.begin + at));
        if (definition != nullptr && !definition->needed && definition->stack != kNoStack) replace([] { return true; });
        break;
      }
      case StackEventKind::none: break;
      }
      const bool replaced = copied == end;
      buffer.changed |= replaced;
      counts.event_bytes_in += event.size();
      const std::size_t after = buffer.bytes.size();
      std::size_t size = event.size();
      std::uint16_t hook = event.hook();
      if (replaced && after == before) return;
      if (replaced) {
        for_each_event(Bytes(buffer.bytes).subspan(before), [&](const EventView &made, std::int64_t, std::uint32_t) {
          size = made.size();
          hook = made.hook();
        });
      }
      counts.event_bytes_out += size;
      if (hook == kHookStackWalk) ++counts.walks_out;
      else if (hook == kHookReferenceKernel || hook == kHookReferenceUser) ++counts.references_out;
      else ++counts.definitions_out;
    });
    copy_up_to(events.size());
    last_time = run.last_time;
  }
  if (!buffer.bytes.empty()) buffer.runs.push_back({0, static_cast<std::uint32_t>(buffer.bytes.size()), last_time});
}

// Of the stack in part.frames.
bool StackRewriter::make_reference(const EventView &event, std::int64_t time, bool kernel, Part &part,
                                   Buffer &buffer) const {
  const unsigned pointer_size = event.pointer_size();
  if (options_.mode == StackMode::cache_native) {
    for (const std::uint64_t frame : part.frames)
      if (inventory_.jit.contains(frame)) {
        // A reference of the input becomes the plain stack.
        return event.hook() != kHookStackWalk && append_walk(buffer.bytes, event, part.frames);
      }
  }
  const StackId stack = part.table->intern(part.frames, stack_scope(pointer_size));
  std::size_t key_at = 0;
  if (stack == kNoStack || !append_reference(buffer.bytes, event, kernel, 0, key_at)) return false;
  buffer.uses.push_back({static_cast<std::uint32_t>(key_at), stack, time, static_cast<std::uint8_t>(pointer_size)});
  return true;
}

void StackRewriter::order(std::uint16_t processor, Part &part, std::size_t i, std::vector<std::uint8_t> &definitions,
                          write::Run &run) {
  definitions.clear();
  Buffer &buffer = part.buffers[i];
  if (buffer.runs.empty()) return;
  if (processor >= last_time_.size()) last_time_.resize(processor + 1u, kNoTime);
  std::int64_t &last_time = last_time_[processor];
  if (keys_->any_due(buffer.first_time)) {
    due_.clear();
    keys_->take_due(last_time, buffer.first_time, kDefinitionsAtOnce, due_);
    append_definitions(kHookKeyDelete, definitions, run);
  }
  for (const Buffer::Use &use : buffer.uses) {
    StackId stack = use.stack;
    if (part.table != table_) { // read before the table started over
      if (stack >= part.moved.size()) part.moved.resize(std::size_t{stack} + 1, kNoStack);
      StackId &moved = part.moved[stack];
      if (moved == kNoStack) {
        const std::uint64_t scope = part.table->read(stack, frames_);
        moved = table_->intern(frames_, scope);
      }
      stack = moved;
    }
    if (stack >= seen_.size()) seen_.resize(std::size_t{stack} + stack / 2 + 64);
    if (!seen_[stack]) {
      seen_[stack] = true;
      seen_bytes_ += reckoned_bytes(table_->depth(stack));
    }
    store_key(buffer.bytes.data() + use.key_at, keys_->use(stack, use.time, use.pointer_size), use.pointer_size);
  }
  last_time = std::max(last_time, buffer.runs.back().last_time);
  if (last_time >= latest_) {
    latest_ = last_time;
    latest_processor_ = processor;
  }
}

void StackRewriter::end_batch(Part &part) {
  counts_.add(part.counts);
  if (!collected_) inventory_.jit.append(std::move(part.jit));
  part.table.reset();
  if (seen_bytes_ <= options_.memory) return;
  auto fresh = std::make_shared<StackTable>();
  keys_->start_over(fresh);
  seen_.clear();
  seen_bytes_ = 0;
  ++counts_.restarts;
  const std::lock_guard lock(switching_);
  table_ = std::move(fresh);
}

void StackRewriter::finish(std::vector<std::uint8_t> &definitions, write::Run &run, std::uint16_t &processor) {
  definitions.clear();
  due_.clear();
  keys_->take_left(latest_, kDefinitionsAtOnce, due_);
  append_definitions(kHookKeyRundown, definitions, run);
  processor = latest_processor_;
}

void StackRewriter::append_definitions(std::uint16_t hook, std::vector<std::uint8_t> &out, write::Run &run) {
  for (const StackKeys::Definition &definition : due_) {
    const std::uint64_t scope = definition.table->read(definition.stack, frames_);
    const unsigned pointer_size = static_cast<unsigned>(scope);
    // The frames were in an event with 16 bytes of other data; the key has 8.
    if (!append_definition(out, hook, pointer_size, definition.time, definition.key, frames_)) continue;
    ++counts_.definitions_out;
    counts_.event_bytes_out += definition_size(frames_.size(), pointer_size);
    run.last_time = definition.time;
  }
  run.begin = 0;
  run.end = static_cast<std::uint32_t>(out.size());
}

std::vector<std::string> StackRewriter::warnings() {
  std::vector<std::string> warnings;
  if (!collected_) inventory_.jit.finish();
  if (counts_.unresolved > 0)
    warnings.push_back(fmt::format("{} references to stack keys have no definition in the trace and stay as they are",
                                   counts_.unresolved));
  const JitCode &jit = inventory_.jit;
  if (options_.mode == StackMode::cache && (jit.unloads() > 0 || jit.reused() > 0))
    warnings.push_back(fmt::format("{} JIT-compiled methods were unloaded and {} loaded where another had been: tools that "
                                   "name a cached stack at its definition may take the wrong method; --stacks "
                                   "cache=native-only keeps the stacks of JIT-compiled code in full",
                                   jit.unloads(), jit.reused()));
  if (counts_.restarts > 0)
    warnings.push_back(fmt::format("the stack table was full {} times and started over; a larger --stack-memory gives a "
                                   "smaller trace",
                                   counts_.restarts));
  return warnings;
}

} // namespace etwrelog::pipeline
