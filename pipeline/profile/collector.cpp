#include "profile_pass/collector.hpp"

#include "base/cut_text.hpp"
#include "profile/join_within.hpp"
#include "profile_pass/code_events.hpp"
#include "schema/entry.hpp"
#include "schema/io_requests.hpp"

#include "etwrelog/clr_events.hpp"
#include "etwrelog/kernel_events.hpp"

namespace etwrelog::pipeline {

using namespace profile;
using stacks::StackEventKind;

namespace {

constexpr std::uint16_t kSwitch = 0x0524, kReady = 0x0532;
constexpr std::uint16_t kProcessors = 0x7FF; // what a fragment can tell apart

// Whether who runs while it is written caused it, which is not so of interrupts and of what a disk has done.
bool is_by_who_ran(std::uint16_t hook, const filter::HookRule &rule) {
  return rule.scope != kernel::Scope::system && !schema::ends_disk_request(hook);
}

// The thread that an event without ids in its header names; kUnknownId if it names none.
std::uint32_t payload_thread(const EventView &event, const filter::HookRule &rule) {
  const filter::FieldOffsets &at = rule.offsets(event.pointer_size());
  switch (rule.scope) {
  case kernel::Scope::payload_thread:
    return filter::FieldOffsets::u32(event.payload(), at.thread_id).value_or(kUnknownId);
  case kernel::Scope::context_switch:
    return filter::FieldOffsets::u32(event.payload(), at.new_thread).value_or(kUnknownId);
  default: return kUnknownId;
  }
}

std::uint16_t processor_of(const DecodedBuffer &buffer) {
  return buffer.header.processor() & kProcessors;
}

Fragment fragment_of(const EventView &event, Instant moment, std::int64_t event_time,
                     std::uint16_t processor) {
  Fragment fragment;
  fragment.event_time = event_time;
  fragment.time = moment.time;
  fragment.thread = event.thread_id();
  fragment.process = event.process_id();
  fragment.processor = processor & kProcessors;
  return fragment;
}

void mark_subject(CollectWork &work) {
  const Subject &last = work.subjects.back();
  const auto number = static_cast<std::uint32_t>(work.subjects.size() - 1);
  work.marks.push_back({last.time, number, last.processor, Mark::kSubject});
}

void add_subject(const Subject &subject, CollectWork &work) {
  work.subjects.push_back(subject);
  mark_subject(work);
}

void sample(const EventView &event, Instant moment, std::uint16_t processor, CollectWork &work) {
  const Bytes payload = event.payload();
  const unsigned p = event.pointer_size();
  if (payload.size() < p + 6u) {
    ++work.unreadable;
    return;
  }
  Subject made;
  made.time = moment.time;
  made.ip = load_pointer(payload.data(), p);
  made.thread = load<std::uint32_t>(payload.data() + p);
  made.processor = processor;
  made.pointer_size = static_cast<std::uint8_t>(p);
  if (payload.size() > p + 6u) made.flags = payload[p + 6u] & (Subject::kInDpc | Subject::kInIsr);
  add_subject(made, work);
}

// Also of what is not counted: such a part belongs to something else.
void await_later_part(const EventView &event, Instant moment, CollectWork &work) {
  ExtendedItems items = event.items();
  for (ExtendedItem item{}; items.next(item);)
    if (const auto stack = stack_in(item); stack && stack->match != 0)
      work.awaited.emplace_back(stack->match, event.thread_id(), moment.time);
}

// Both ends of a stack tell which part it is; they go into the table with it, for references by key.
std::uint32_t scope(stacks::Frames frames, unsigned pointer_size) {
  return pointer_size | (stacks::is_kernel_stack(frames, pointer_size) ? 16u : 0u) |
         (format::is_kernel_address(frames.front(), pointer_size) ? 0u : 32u);
}

void add_edge(EdgeRecord record, const EventView &event, bool selected, CollectWork &work) {
  if (event.has_ids()) record.process = event.process_id();
  if (selected && !record.edge.begins) record.subject = static_cast<std::uint32_t>(work.subjects.size() - 1);
  work.edges.push_back(record);
}

} // namespace

Collector::Collector(const CollectOptions &collect, stacks::StackTable &stacks)
    : collect_(collect), stacks_(stacks) {
  for (const Schema *const kind : collect.events.catalog().all()) {
    const auto hook = schema::hook_of(*kind);
    if (!hook || !collect.events.contains(*kind)) continue;
    ends_of_disks_ = ends_of_disks_ || schema::ends_disk_request(*hook);
    ends_of_files_ = ends_of_files_ || *hook == schema::kFileOperationEnd;
    asks_who_ran_ = asks_who_ran_ || is_by_who_ran(*hook, filter::rule_for(*hook, kind->version));
  }
}

void Collector::look_at(const Trace &trace, Batch &batch, std::uint32_t first, CollectWork &work) {
  for (const DecodedBuffer &buffer : batch.buffers) {
    const DecodedBuffer here = numbered(buffer, first);
    work.buffers.push_back({processor_of(here), {}});
    const std::size_t marks = work.marks.size(), fragments = work.fragments.size();
    trace.visit(batch, buffer, [&](const EventView &event, std::int64_t time, std::uint32_t at) {
      look_at(event, time, here, at, work);
    });
    end_buffer(marks, fragments, work);
  }
}

void Collector::look_at(const EventView &event, std::int64_t time, const DecodedBuffer &buffer,
                        std::uint32_t at, CollectWork &work) {
  const Instant moment{time, std::uint64_t{buffer.index} << 32 | at};
  const std::uint16_t processor = buffer.header.processor();
  if (event.has_hook()) {
    kernel_event(event, event.hook(), moment, processor, work);
  } else if (event.is_classic() && event.provider() == format::kImageIdGuid) {
    if (collect_.time.holds(moment.time)) work.counts.add(event);
    add_identity(event, moment, work.state);
  } else if (const auto hook = event.is_classic() ? kernel::hook_of_classic(event) : std::nullopt) {
    kernel_event(event, *hook, moment, processor, work);
  } else {
    other_event(event, moment, processor, work);
  }
}

void Collector::end_buffer(std::size_t marks_before, std::size_t fragments_before, CollectWork &work) {
  work.answers.resize(work.queries.size());
  stacks_.intern(work.queries, work.answers.data());
  for (std::size_t i = 0; i < work.asking.size(); ++i)
    work.fragments[work.asking[i]].stack = work.answers[i];
  work.queries.clear();
  work.asking.clear();
  const std::span<const Mark> marks = std::span(work.marks).subspan(marks_before);
  join_within(work.subjects, marks, work.fragments, fragments_before);
  work.buffers.back().times = times_of(marks);
}

void Collector::kernel_event(const EventView &event, std::uint16_t hook, Instant moment,
                             std::uint16_t processor, CollectWork &work) {
  if (const StackEventKind kind = stacks::stack_event_kind(hook); kind != StackEventKind::none) {
    stack_event(event, kind, moment, processor, work);
    return;
  }
  const bool in_time = collect_.time.holds(moment.time);
  if (in_time) work.counts.add(event);
  if (hook == kernel::kHookSample && collect_.kind == ProfileKind::cpu && in_time) {
    sample(event, moment, processor, work);
    return;
  }
  if (hook == kSwitch && asks_who_ran_)
    if (const auto threads = filter::switched_threads(event, filter::rule_for(hook, event.version())))
      work.who_ran.push_back({processor, {moment.time, threads->new_thread, threads->old_thread}});
  const bool switches = about_switches() || collect_.switches;
  if (hook == kSwitch && switches && in_time) {
    context_switch(event, moment, processor, work);
    if (about_switches()) return;
  }
  if (hook == kReady && switches && in_time)
    if (const Bytes payload = event.payload(); payload.size() >= 4)
      work.readies.push_back({moment.time, load<std::uint32_t>(payload.data()), processor});
  add_kernel_state(event, hook, moment, work.state);
  if (!collect_.files.empty())
    if (auto told = file_name_of(event, hook, moment.time)) work.file_names.push_back(*std::move(told));
  if (!in_time) return;
  const bool selected = is_selected(event);
  const filter::HookRule &rule = filter::rule_for(hook, event.version());
  const std::uint32_t thread = filter::says_causer(event) ? event.thread_id() : payload_thread(event, rule);
  const bool ends_request =
      schema::ends_disk_request(hook); // then what has its time and thread is another's stack
  if (selected) {
    selected_event(event, thread, moment, processor, work);
    Subject &subject = work.subjects.back();
    if (subject.ip == kUnknownId) {
      filter::Position nobody_ran;
      subject.ip = filter::claim_of(event, rule, nobody_ran).pid();
    }
    if (thread == kUnknownId && is_by_who_ran(hook, rule)) subject.flags |= Subject::kByWhoRan;
    if (!ends_request) mark_subject(work);
  }
  if (wants_edges(hook >> 8))
    if (const std::optional<EventEdge> edge = kernel_edge_of(event, hook))
      add_edge({.edge = *edge, .at = moment, .thread = thread, .hook = hook}, event, selected, work);
  if (selected || ends_request || !stacks::may_have_stack(hook)) return;
  const std::uint16_t kind =
      hook < Kinds::kFirstOther ? hook : kinds_.number({schema::Family::hook, 0, hook, {}});
  work.marks.push_back({moment.time, thread, processor, kind});
}

void Collector::other_event(const EventView &event, Instant moment, std::uint16_t processor,
                            CollectWork &work) {
  const schema::EventType type = schema::type_of(event);
  add_state_of_provider(event, moment, work.state);
  if (collect_.methods && event.is_event() && tells_of_code(type.guid)) add_code(event, moment, work.state);
  const bool in_time = collect_.time.holds(moment.time), events = collect_.kind == ProfileKind::events;
  if (in_time) work.counts.add(event);
  // Of the last event in time the stack comes later.
  if (event.is_event() && clr::is_runtime(type.guid)) {
    if (type.id == clr::kStackWalkId) {
      if (events) clr_stack(event, moment, processor, work);
      return;
    }
    if (events) work.clr_events.push_back({moment.time, event.thread_id()});
  }
  if (events && is_later_stack(event)) later_part(event, moment, processor, work);
  if (!in_time) return;
  if (events && event.has_items()) await_later_part(event, moment, work);
  const bool selected = is_selected(event);
  std::uint32_t thread = event.is_message() ? kUnknownId : event.thread_id();
  // Where its stack is, there ran who wrote it.
  const auto of_network = event.has_items() ? std::nullopt : filter::network_process(event);
  if (of_network && *of_network != event.process_id()) thread = kUnknownId;
  if (selected) {
    selected_event(event, thread, moment, processor, work);
    if (of_network) work.subjects.back().ip = *of_network;
    mark_subject(work);
    if (event.has_items()) stacks_in_items(event, moment, processor, work);
  }
  if (collect_.durations)
    if (const std::optional<EventEdge> edge = edge_of(event))
      add_edge({.edge = *edge, .at = moment, .thread = thread}, event, selected, work);
  if (selected) return;
  if (type != work.last_type || work.last_kind == Kinds::kTooMany) {
    work.last_type = type;
    work.last_kind = kinds_.number(type);
  }
  work.marks.push_back({moment.time, thread, processor, work.last_kind});
}

// Beginnings and ends: of requests for the stacks of their ends, of others for how long they took.
bool Collector::wants_edges(unsigned group) const {
  if (collect_.kind != ProfileKind::events) return false;
  return collect_.durations || (group == 0x01 && ends_of_disks_) || (group == 0x04 && ends_of_files_);
}

// Adds a subject without a mark.
void Collector::selected_event(const EventView &event, std::uint32_t thread, Instant moment,
                               std::uint16_t processor, CollectWork &work) {
  Subject made;
  made.time = moment.time;
  made.ip = event.has_ids() && event.thread_id() == thread ? event.process_id() : kUnknownId;
  made.thread = thread;
  made.processor = processor;
  made.pointer_size = static_cast<std::uint8_t>(event.pointer_size());
  work.subjects.push_back(made);
  if (!collect_.sum.empty()) {
    const std::optional<FieldValue> value = collect_.sum.of(event);
    const std::optional<std::uint64_t> weight = value ? weight_of(*value) : std::nullopt;
    work.weights.push_back(weight.value_or(0));
    if (!weight) ++work.weightless;
  }
  if (collect_.durations) work.weights.push_back(0); // until all edges are known
  if (collect_.leaf.is_code()) {
    const std::optional<FieldValue> value = collect_.leaf.of(event);
    work.code_leaves.push_back(value ? value->integer().value_or(0) : 0);
  } else if (!collect_.leaf.empty()) {
    work.text.clear();
    if (const std::optional<FieldValue> value = collect_.leaf.of(event)) value->append_text(work.text);
    work.leaves.push_back(work.leaf_texts.number(base::at_most(work.text, base::kLongestName)));
  }
  if (!collect_.files.empty()) {
    FileNumbers numbers{};
    for (std::size_t i = 0; i < collect_.files.size(); ++i)
      if (const std::optional<FieldValue> value = collect_.files[i].of(event))
        numbers[i] = value->integer().value_or(0);
    work.files.push_back(numbers);
  }
}

// A stack that the event itself holds, which is of nobody else.
void Collector::stacks_in_items(const EventView &event, Instant moment, std::uint16_t processor,
                                CollectWork &work) {
  ExtendedItems items = event.items();
  for (ExtendedItem item{}; items.next(item);) {
    const auto stack = stack_in(item);
    if (!stack || stack->data.size() < stack->pointer_size) continue;
    Fragment fragment = fragment_of(event, moment, moment.time, processor);
    if (stack->by_key) {
      fragment.flags = Fragment::kReference;
      work.references.push_back({static_cast<std::uint32_t>(work.fragments.size()),
                                 std::nullopt,
                                 stack->key(),
                                 {moment.time, moment.order}});
      work.fragments.push_back(fragment);
    } else {
      add_frames(fragment, stack->data, stack->pointer_size, work);
    }
  }
}

// Whose it is, is found out when all are known (find_clr_events); until then it is nobody's.
void Collector::clr_stack(const EventView &event, Instant moment, std::uint16_t processor,
                          CollectWork &work) {
  const Bytes payload = event.payload();
  const unsigned p = event.pointer_size();
  if (payload.size() < clr::kStackFramesAt + p) {
    ++work.unreadable;
    return;
  }
  work.clr_stacks.push_back(static_cast<std::uint32_t>(work.fragments.size()));
  add_frames(fragment_of(event, moment, kForever, processor), payload.subspan(clr::kStackFramesAt), p, work);
}

void Collector::later_part(const EventView &event, Instant moment, std::uint16_t processor,
                           CollectWork &work) {
  const std::optional<StackItem> stack = later_stack(event);
  if (!stack) {
    ++work.unreadable;
    return;
  }
  work.later_parts.push_back(
      {{stack->match, event.thread_id(), moment.time}, static_cast<std::uint32_t>(work.fragments.size())});
  add_frames(fragment_of(event, moment, kForever, processor), stack->data, stack->pointer_size, work);
}

void Collector::context_switch(const EventView &event, Instant moment, std::uint16_t processor,
                               CollectWork &work) {
  const Bytes payload = event.payload();
  constexpr std::size_t kReasonAt = 12, kStateAt = 14;
  if (payload.size() <= kStateAt) {
    ++work.unreadable;
    return;
  }
  SwitchRecord record;
  record.time = moment.time;
  record.new_thread = load<std::uint32_t>(payload.data());
  record.old_thread = load<std::uint32_t>(payload.data() + 4);
  record.subject = static_cast<std::uint32_t>(work.subjects.size());
  record.processor = processor;
  record.reason = payload[kReasonAt];
  record.state = payload[kStateAt];
  work.switches.push_back(record);
  if (!about_switches()) return;
  Subject made;
  made.time = moment.time;
  made.thread = record.new_thread;
  made.processor = processor;
  made.pointer_size = static_cast<std::uint8_t>(event.pointer_size());
  add_subject(made, work);
}

void Collector::stack_event(const EventView &event, StackEventKind kind, Instant moment,
                            std::uint16_t processor, CollectWork &work) {
  stacks::StackFields fields;
  if (!stacks::parse_stack_event(event, kind, fields)) {
    ++work.unreadable;
    return;
  }
  const unsigned p = event.pointer_size();
  if (kind == StackEventKind::definition) {
    const stacks::Frames frames = stacks::frames_in_place(fields.frames, p, work.frames);
    if (frames.empty()) return;
    stacks::KeyDefinition definition{
        fields.key, stacks::is_kernel_stack(frames, p), {moment.time, moment.order}};
    definition.stack = stacks_.intern(frames, scope(frames, p));
    work.definitions.push_back(definition);
    return;
  }
  // A user half that names an earlier event may still complete a kernel half of that time.
  if (!collect_.time.holds(fields.event_time) &&
      (fields.event_time > collect_.time.to || moment.time < collect_.time.from))
    return;
  Fragment fragment;
  fragment.event_time = fields.event_time;
  fragment.time = moment.time;
  fragment.thread = fields.thread_id;
  fragment.process = fields.process_id;
  fragment.processor = processor & kProcessors;
  if (kind == StackEventKind::reference) {
    fragment.flags = Fragment::kReference;
    work.references.push_back({static_cast<std::uint32_t>(work.fragments.size()),
                               stacks::refers_to_kernel(event),
                               fields.key,
                               {moment.time, moment.order}});
    work.fragments.push_back(fragment);
  } else {
    add_frames(fragment, fields.frames, p, work);
  }
}

void Collector::add_frames(Fragment fragment, Bytes from, unsigned pointer_size, CollectWork &work) {
  const stacks::Frames frames = stacks::frames_in_place(from, pointer_size, work.frames);
  if (!frames.empty()) {
    const std::uint32_t part = scope(frames, pointer_size);
    fragment.flags = flags_of(part);
    if (frames.data() == work.frames.data()) { // a copy, which the next stack replaces
      fragment.stack = stacks_.intern(frames, part);
    } else {
      work.queries.push_back({frames, part});
      work.asking.push_back(static_cast<std::uint32_t>(work.fragments.size()));
    }
  }
  work.fragments.push_back(fragment);
}

} // namespace etwrelog::pipeline
