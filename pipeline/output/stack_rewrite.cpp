#include "output/stack_rewrite.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace etwrelog::pipeline {

using namespace stacks;

namespace {

constexpr std::int64_t kNoTime = std::numeric_limits<std::int64_t>::min();

// What a stack is reckoned to need in the table. By depth alone, not measured: when the table starts over
// must not depend on how stacks happened to share memory.
std::uint64_t reckoned_bytes(std::size_t depth) {
  return 40 + 3 * depth;
}

// As much as a table can hold for certain.
constexpr std::size_t kMostMemory = std::size_t{8} << 30;

constexpr std::size_t kUsesAhead = 8; // what is known of their stacks is fetched

// So that a restart of the table does not need as much memory again.
constexpr std::size_t kDefinitionsAtOnce = 2048;

// The same as differ() of the event's type, which takes longer to make than to tell from the few that there
// are: hooks are larger than opcodes, and all of these are of one class.
void differ_by(const EventView &event, std::int64_t events, StackRewriteCounts &counts) {
  const bool hooked = event.has_hook();
  const std::uint32_t id = hooked ? event.hook() : event.opcode();
  const std::int64_t bytes = events * std::int64_t{event.size()};
  for (StackRewriteDifference &d : counts.differences) {
    if (d.type.id != id || (!hooked && d.type.version != event.version())) continue;
    d.events += events;
    d.bytes += bytes;
    return;
  }
  counts.differ(type_of(event), events, bytes);
}

bool refers(StackRewriter::Change::Kind kind) {
  return kind == StackRewriter::Change::Kind::reference_kernel ||
         kind == StackRewriter::Change::Kind::reference_user;
}

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
  for (const StackRewriteDifference &d : other.differences)
    differ(d.type, d.events, d.bytes);
}

void StackRewriteCounts::differ(const EventType &type, std::int64_t events, std::int64_t bytes) {
  auto found = std::ranges::find(differences, type, &StackRewriteDifference::type);
  if (found == differences.end()) found = differences.insert(found, {type});
  found->events += events;
  found->bytes += bytes;
}

StackRewriter::StackRewriter(const StackOptions &options, StackInventory inventory, bool collected)
    : options_(options), inventory_(std::move(inventory)), collected_(collected),
      table_(std::make_shared<StackTable>()) {
  StackKeys::Options keys;
  keys.window = options.window;
  if (collected_) keys.taken = [this](std::uint64_t key) { return inventory_.is_taken(key); };
  keys_.emplace(std::move(keys), table_);
}

void StackRewriter::begin(Part &part, std::size_t buffers) const {
  {
    const std::lock_guard lock(switching_);
    part.table = table_;
  }
  part.buffers.resize(buffers);
  for (Buffer &buffer : part.buffers) {
    buffer.events = {};
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
  if (runs.empty()) return;
  Buffer &buffer = part.buffers[i];
  part.changes.clear();
  part.queries.clear();
  part.frames.clear();
  part.copied.clear();
  bool first = true;
  for (const write::Run &run : runs) {
    const Bytes events = write::bytes_of(run, source.events);
    for_each_event(events, [&](const EventView &event, std::int64_t time, std::uint32_t at) {
      if (first) buffer.first_time = time, first = false;
      const StackEventKind kind = stack_event_kind(event);
      if (kind != StackEventKind::none)
        plan(event, kind, time, place_of(time, source, run.begin + at), part);
      else if (!collected_)
        part.jit.add(event, time);
    });
  }
  look_up(part);
  apply(source, runs, part, buffer);
}

void StackRewriter::plan(const EventView &event, StackEventKind kind, std::int64_t time, Place place,
                         Part &part) const {
  StackFields fields;
  if (!parse_stack_event(event, kind, fields)) return;
  const unsigned pointer_size = event.pointer_size();
  StackRewriteCounts &counts = part.counts;
  counts.event_bytes_in += event.size();
  const std::size_t changes = part.changes.size();
  Change change{event, time, nullptr, 0, Change::Kind::drop};
  auto refer = [&](bool kernel, Frames frames) {
    change.size = static_cast<std::uint32_t>(reference_event_size(event, kind, fields));
    plan_reference(change, kernel, frames, part);
  };
  switch (kind) {
  case StackEventKind::walk: {
    ++counts.walks_in;
    // A reference is no smaller than a stack of one frame.
    if (options_.mode == StackMode::expand || fields.frames.size() <= pointer_size) break;
    const Frames frames = frames_in_place(fields.frames, pointer_size, part.stack);
    if (in_jit_code(frames)) break;
    refer(is_kernel_stack(frames, pointer_size), frames);
    break;
  }
  case StackEventKind::reference: {
    ++counts.references_in;
    part.met_key = true;
    const bool kernel = refers_to_kernel(event);
    change.definition = inventory_.definitions.resolve(fields.key, kernel, place);
    if (change.definition == nullptr) ++counts.unresolved;
    if (change.definition == nullptr || change.definition->stack == kNoStack) break;
    if (options_.mode == StackMode::expand) {
      plan_walk(change, part);
      break;
    }
    inventory_.table->read(change.definition->stack, part.stack);
    if (in_jit_code(part.stack))
      plan_walk(change, part);
    else
      refer(kernel, part.stack);
    break;
  }
  case StackEventKind::definition: {
    ++counts.definitions_in;
    part.met_key = true;
    const Frames frames = frames_in_place(fields.frames, pointer_size, part.stack);
    const KeyDefinition *definition =
        inventory_.definitions.at(fields.key, is_kernel_stack(frames, pointer_size), place);
    if (definition != nullptr && !definition->needed && definition->stack != kNoStack)
      part.changes.push_back(change);
    break;
  }
  case StackEventKind::none: break;
  }
  if (part.changes.size() != changes) return; // is counted when it is made
  counts.event_bytes_out += event.size();
  if (kind == StackEventKind::walk)
    ++counts.walks_out;
  else if (kind == StackEventKind::reference)
    ++counts.references_out;
  else
    ++counts.definitions_out;
}

void StackRewriter::plan_reference(Change &change, bool kernel, Frames frames, Part &part) const {
  change.kind = kernel ? Change::Kind::reference_kernel : Change::Kind::reference_user;
  part.changes.push_back(change);
  if (frames.data() == part.stack.data()) {
    part.copied.emplace_back(part.queries.size(), part.frames.size());
    part.frames.insert(part.frames.end(), frames.begin(), frames.end());
  }
  part.queries.push_back({frames, stack_scope(change.event.pointer_size())});
}

// Of the stack that change.definition has. An event that would become too large stays.
void StackRewriter::plan_walk(Change &change, Part &part) const {
  const std::size_t size = walk_event_size(change.event, inventory_.table->depth(change.definition->stack));
  if (size > format::kMaxEventSize) return;
  change.kind = Change::Kind::walk;
  change.size = static_cast<std::uint32_t>(size);
  part.changes.push_back(change);
}

bool StackRewriter::in_jit_code(Frames frames) const {
  return options_.mode == StackMode::cache_native &&
         std::ranges::any_of(frames, [this](std::uint64_t frame) { return inventory_.jit.contains(frame); });
}

void StackRewriter::look_up(Part &part) const {
  for (const auto &[query, at] : part.copied)
    part.queries[query].frames = Frames(part.frames).subspan(at, part.queries[query].frames.size());
  if (part.ids.size() < part.queries.size()) part.ids.resize(part.queries.size());
  part.table->intern(part.queries, part.ids.data());
}

// Makes the changes. Nothing but a StackWalk in the place of a reference grows; without one, the events move
// towards the front where they are.
void StackRewriter::apply(const DecodedBuffer &source, std::span<const write::Run> runs, Part &part,
                          Buffer &buffer) const {
  if (part.changes.empty()) {
    buffer.events = source.events;
    buffer.runs.assign(runs.begin(), runs.end());
    return;
  }
  buffer.changed = true;
  std::size_t most = 0;
  for (const write::Run &run : runs)
    most += run.end - run.begin;
  bool grows = false;
  for (const Change &change : part.changes) {
    grows = grows || change.kind == Change::Kind::walk;
    most += align8(change.size);
  }
  if (grows && buffer.grown.size() < most) buffer.grown.resize(most);
  std::uint8_t *const begin = grows ? buffer.grown.data() : source.events.data();
  std::uint8_t *out = begin;
  StackRewriteCounts &counts = part.counts;
  const StackId *id = part.ids.data();
  auto change = part.changes.begin();
  for (const write::Run &run : runs) {
    const std::uint8_t *from = source.events.data() + run.begin;
    const std::uint8_t *const end = source.events.data() + run.end;
    auto copy_up_to = [&](const std::uint8_t *to) {
      const auto size = static_cast<std::size_t>(to - from);
      if (out != from) std::memmove(out, from, size);
      out += size;
      from = to;
    };
    for (; change != part.changes.end() && change->event.bytes().data() < end; ++change) {
      const EventView &event = change->event;
      if (refers(change->kind) && *id == kNoStack) { // the table is full: stays
        ++id;
        counts.event_bytes_out += event.size();
        if (change->definition == nullptr)
          ++counts.walks_out;
        else
          ++counts.references_out;
        continue;
      }
      copy_up_to(event.bytes().data());
      from += align8(event.size());
      counts.event_bytes_out += change->size;
      differ_by(event, -1, counts);
      const EventView made(out, change->size, event.type());
      switch (change->kind) {
      case Change::Kind::drop: break;
      case Change::Kind::walk:
        inventory_.table->read(change->definition->stack, part.stack);
        out += write_walk(out, event, part.stack, change->size);
        differ_by(made, 1, counts);
        ++counts.walks_out;
        break;
      default: {
        const auto pointer_size = static_cast<std::uint8_t>(event.pointer_size());
        const auto key_at = static_cast<std::uint32_t>(out - begin) + change->size - pointer_size;
        buffer.uses.push_back({key_at, *id++, change->time, pointer_size});
        const bool kernel = change->kind == Change::Kind::reference_kernel;
        out += write_reference(out, event, kernel, change->size);
        differ_by(made, 1, counts);
        ++counts.references_out;
      }
      }
    }
    copy_up_to(end);
  }
  const auto size = static_cast<std::size_t>(out - begin);
  buffer.events = {begin, size};
  if (size != 0) buffer.runs.push_back({0, static_cast<std::uint32_t>(size), runs.back().last_time});
}

void StackRewriter::order(std::uint16_t processor, Part &part, std::size_t i,
                          std::vector<std::uint8_t> &definitions, write::Run &run) {
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
  const bool moved = part.table != table_;
  for (std::size_t u = 0; u < buffer.uses.size(); ++u) {
    const Buffer::Use &use = buffer.uses[u];
    if (!moved) keys_->fetch(buffer.uses[std::min(u + kUsesAhead, buffer.uses.size() - 1)].stack);
    StackId stack = use.stack;
    if (moved) { // read before the table started over
      if (stack >= part.moved.size()) part.moved.resize(std::size_t{stack} + 1, kNoStack);
      StackId &known = part.moved[stack];
      if (known == kNoStack) {
        const std::uint32_t scope = part.table->read(stack, frames_);
        known = table_->intern(frames_, scope);
      }
      stack = known;
    }
    if (stack >= seen_.size()) seen_.resize(std::size_t{stack} + stack / 2 + 64);
    if (!seen_[stack]) {
      seen_[stack] = true;
      seen_bytes_ += reckoned_bytes(table_->depth(stack));
    }
    store_key(buffer.events.data() + use.key_at, keys_->use(stack, use.time, use.pointer_size),
              use.pointer_size);
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
  if (seen_bytes_ <= std::min(options_.memory, kMostMemory)) return;
  auto fresh = std::make_shared<StackTable>();
  keys_->start_over(fresh);
  seen_.clear();
  seen_bytes_ = 0;
  ++counts_.restarts;
  const std::lock_guard lock(switching_);
  table_ = std::move(fresh);
}

void StackRewriter::finish(std::vector<std::uint8_t> &definitions, write::Run &run,
                           std::uint16_t &processor) {
  definitions.clear();
  due_.clear();
  keys_->take_left(latest_, kDefinitionsAtOnce, due_);
  append_definitions(kHookKeyRundown, definitions, run);
  processor = latest_processor_;
}

void StackRewriter::append_definitions(std::uint16_t hook, std::vector<std::uint8_t> &out, write::Run &run) {
  for (const StackKeys::Definition &definition : due_) {
    const unsigned pointer_size = definition.table->read(definition.stack, frames_);
    // The frames were in an event with 16 bytes of other data; the key has 8.
    if (!append_definition(out, hook, pointer_size, definition.time, definition.key, frames_)) continue;
    const std::size_t size = definition_size(frames_.size(), pointer_size);
    ++counts_.definitions_out;
    counts_.event_bytes_out += size;
    counts_.differ({Family::hook, 0, hook, {}}, 1, static_cast<std::int64_t>(size));
    run.last_time = definition.time;
  }
  run.begin = 0;
  run.end = static_cast<std::uint32_t>(out.size());
}

std::vector<std::string> StackRewriter::warnings() {
  std::vector<std::string> warnings;
  if (!collected_) inventory_.jit.finish();
  if (counts_.unresolved > 0)
    warnings.push_back(
        fmt::format("{} references to stack keys have no definition in the trace and stay as they are",
                    counts_.unresolved));
  const JitCode &jit = inventory_.jit;
  if (options_.mode == StackMode::cache && (jit.unloads() > 0 || jit.reused() > 0))
    warnings.push_back(
        fmt::format("{} JIT-compiled methods were unloaded and {} loaded where another had been: tools that "
                    "name a cached stack at its definition may take the wrong method; "
                    "cache=native-only keeps the stacks of JIT-compiled code in full",
                    jit.unloads(), jit.reused()));
  if (counts_.restarts > 0)
    warnings.push_back(
        fmt::format("the stack table was full {} times and started over; with more stack memory the trace "
                    "is smaller",
                    counts_.restarts));
  return warnings;
}

} // namespace etwrelog::pipeline
