#include "profile_pass/collect.hpp"

#include "base/cut_text.hpp"
#include "base/errors.hpp"
#include "base/text_numbers.hpp"
#include "filter/clr_stacks.hpp"
#include "filter/filter.hpp"
#include "filter/later_stacks.hpp"
#include "passes/durations.hpp"
#include "passes/file_names.hpp"
#include "profile/join_within.hpp"
#include "profile_pass/code_events.hpp"
#include "profile_pass/event_records.hpp"
#include "schema/event_names.hpp"
#include "schema/io_requests.hpp"
#include "stacks/stack_definitions.hpp"
#include "stacks/stack_events.hpp"

#include "etwrelog/clr_events.hpp"
#include "etwrelog/kernel_events.hpp"

#include <algorithm>
#include <array>
#include <mutex>
#include <optional>
#include <string_view>
#include <tuple>

namespace etwrelog::pipeline {

using namespace profile;
using stacks::StackEventKind;

namespace {

constexpr std::uint16_t kSwitch = 0x0524, kReady = 0x0532;

// Numbers for the kinds of events that a stack may belong to. A hook stands for itself; all else is numbered
// as it comes, which depends on timing, and is known by its name.
class Kinds {
public:
  static constexpr std::uint16_t kFirstOther = 0xE000, kTooMany = Fragment::kOfSubject - 1;

  std::uint16_t number(const schema::EventType &type) {
    const std::scoped_lock lock(mutex_);
    const auto [place, fresh] = numbers_.try_emplace(type, kTooMany);
    if (fresh && kFirstOther + types_.size() < kTooMany) {
      place->second = static_cast<std::uint16_t>(kFirstOther + types_.size());
      types_.push_back(type);
    }
    return place->second;
  }
  [[nodiscard]] std::vector<std::string> names() const {
    const schema::EventNames known;
    std::vector<std::string> names(std::size_t{kTooMany} + 1, "other events");
    for (std::uint32_t hook = 0; hook < kFirstOther; ++hook)
      names[hook] = kernel::find_hook(static_cast<std::uint16_t>(hook)) != nullptr
                        ? known.name({schema::Family::hook, 0, hook, {}})
                        : type_key({schema::Family::hook, 0, hook, {}});
    for (std::size_t i = 0; i < types_.size(); ++i)
      names[kFirstOther + i] = known.name(types_[i]);
    return names;
  }

private:
  std::mutex mutex_;
  std::map<schema::EventType, std::uint16_t> numbers_;
  std::vector<schema::EventType> types_;
};

struct Reference { // a fragment whose frames a later event defines
  std::uint32_t fragment;
  std::optional<bool> kernel; // none: it may be to either part
  std::uint64_t key;
  stacks::Place place;
};

struct LaterPart { // of the stack of an event, or of several
  filter::LaterKey written;
  std::uint32_t fragment;
};

// An event that begins or ends something.
struct EdgeRecord {
  EventEdge edge;
  Instant at;
  std::uint32_t thread = kUnknownId, process = kUnknownId;
  std::uint32_t subject = kNoSubject; // of an end that the profile is about
  std::uint16_t hook = 0;             // of a kernel event
  static constexpr std::uint32_t kNoSubject = 0xFFFF'FFFF;
};

using FileNumbers = std::array<std::uint64_t, 2>; // by which an event calls its file; 0: none

struct BufferMarks { // of one buffer: what to know of its marks when it is put behind the others
  std::uint16_t processor = 0;
  TimeRange times;
};

struct CollectWork {
  std::vector<Subject> subjects;
  std::vector<Mark> marks;
  std::vector<Fragment> fragments;
  std::vector<ReadyRecord> readies;
  std::vector<SwitchRecord> switches;
  std::vector<Reference> references;
  std::vector<stacks::KeyDefinition> definitions;
  StateRecords state;
  schema::TypeCounts counts;
  std::uint64_t unreadable = 0, weightless = 0;
  std::vector<std::uint64_t> weights; // of subjects, where a field of theirs is added up
  std::vector<std::uint32_t> leaves;  // and where one is a frame of their stacks
  base::TextNumbers leaf_texts;
  std::string text;
  std::vector<FileNumbers> files; // of subjects, where the frame is the name of a file
  std::vector<FileName> file_names;

  std::vector<BufferMarks> buffers;
  std::vector<filter::EventKey> clr_events; // if the profile is of events
  std::vector<std::uint32_t> clr_stacks;    // as fragments
  std::vector<filter::LaterKey> awaited;    // of events
  std::vector<LaterPart> later_parts;
  std::vector<EdgeRecord> edges;

  // Stacks of the buffer at hand, by where they stand in it, and the fragments that wait for their numbers.
  std::vector<stacks::StackQuery> queries;
  std::vector<std::uint32_t> asking;
  std::vector<stacks::StackId> answers;
  std::vector<std::uint64_t> frames;
  schema::EventType last_type;
  std::uint16_t last_kind = Kinds::kTooMany;

  void clear() {
    subjects.clear();
    marks.clear();
    fragments.clear();
    readies.clear();
    switches.clear();
    references.clear();
    definitions.clear();
    state.clear();
    counts.clear();
    unreadable = weightless = 0;
    weights.clear();
    leaves.clear();
    leaf_texts.clear();
    files.clear();
    file_names.clear();
    buffers.clear();
    clr_events.clear();
    clr_stacks.clear();
    awaited.clear();
    later_parts.clear();
    edges.clear();
  }
};

// Rundowns of threads have no stack, nor do stacks.
bool may_have_stack(std::uint16_t hook) {
  return hook >> 8 != 0x18 && hook != 0x0503;
}

// The thread that an event without ids in its header names; kUnknownId if it names none.
std::uint32_t payload_thread(const EventView &event, std::uint16_t hook) {
  const filter::HookRule &rule = filter::rule_for(hook, event.version());
  const filter::FieldOffsets &at = rule.offsets(event.pointer_size());
  switch (rule.scope) {
  case kernel::Scope::payload_thread:
    return filter::FieldOffsets::u32(event.payload(), at.thread_id).value_or(kUnknownId);
  case kernel::Scope::context_switch:
    return filter::FieldOffsets::u32(event.payload(), at.new_thread).value_or(kUnknownId);
  default: return kUnknownId;
  }
}

class Collector {
public:
  Collector(const CollectOptions &collect, stacks::StackTable &stacks) : collect_(collect), stacks_(stacks) {
    for (const Schema *const kind : collect.events.catalog().all())
      if (kernel::hook_of_class(kind->provider, kind->opcode) == schema::kFileOperationEnd)
        ends_of_files_ = ends_of_files_ || collect.events.contains(*kind);
  }

  // All events of one buffer, one by one by look_at() between these two.
  struct Begin {
    std::size_t marks, fragments;
  };
  [[nodiscard]] static Begin begin(const DecodedBuffer &buffer, CollectWork &work) {
    work.buffers.push_back({processor_of(buffer), {}});
    return {work.marks.size(), work.fragments.size()};
  }
  void end(const Begin &begin, CollectWork &work) {
    work.answers.resize(work.queries.size());
    stacks_.intern(work.queries, work.answers.data());
    for (std::size_t i = 0; i < work.asking.size(); ++i)
      work.fragments[work.asking[i]].stack = work.answers[i];
    work.queries.clear();
    work.asking.clear();
    const std::span<const Mark> marks = std::span(work.marks).subspan(begin.marks);
    join_within(work.subjects, marks, work.fragments, begin.fragments);
    work.buffers.back().times = times_of(marks);
  }

  void look_at(const EventView &event, std::int64_t time, const DecodedBuffer &buffer, std::uint32_t at,
               CollectWork &work) {
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

  [[nodiscard]] std::vector<std::string> kind_names() const { return kinds_.names(); }

private:
  void kernel_event(const EventView &event, std::uint16_t hook, Instant moment, std::uint16_t processor,
                    CollectWork &work) {
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
    const std::uint32_t thread = filter::says_causer(event) ? event.thread_id() : payload_thread(event, hook);
    const std::optional<std::uint16_t> begin = schema::disk_request_begin(hook);
    const bool ends_request = begin && *begin != hook; // then what has its time and thread is another's stack
    if (selected) {
      selected_event(event, thread, moment, processor, work);
      if (!ends_request) mark_subject(work);
    }
    if (wants_edges(hook >> 8))
      if (const std::optional<EventEdge> edge = kernel_edge_of(event, hook))
        add_edge({.edge = *edge, .at = moment, .thread = thread, .hook = hook}, event, selected, work);
    if (selected || ends_request || !may_have_stack(hook)) return;
    const std::uint16_t kind =
        hook < Kinds::kFirstOther ? hook : kinds_.number({schema::Family::hook, 0, hook, {}});
    work.marks.push_back({moment.time, thread, processor, kind});
  }

  void other_event(const EventView &event, Instant moment, std::uint16_t processor, CollectWork &work) {
    const schema::EventType type = schema::type_of(event);
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
    const std::uint32_t thread = event.is_message() ? kUnknownId : event.thread_id();
    if (selected) {
      selected_event(event, thread, moment, processor, work);
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

  [[nodiscard]] bool about_switches() const {
    return collect_.kind == ProfileKind::wait || collect_.kind == ProfileKind::ready;
  }
  [[nodiscard]] bool is_selected(const EventView &event) const {
    return collect_.kind == ProfileKind::events && collect_.events.contains(event);
  }

  // Beginnings and ends: of requests for their stacks, of others for how long they took.
  [[nodiscard]] bool wants_edges(unsigned group) const {
    if (collect_.kind != ProfileKind::events) return false;
    return collect_.durations || group == 0x01 || (group == 0x04 && ends_of_files_);
  }
  static void add_edge(EdgeRecord record, const EventView &event, bool selected, CollectWork &work) {
    if (event.has_ids()) record.process = event.process_id();
    if (selected && !record.edge.begins)
      record.subject = static_cast<std::uint32_t>(work.subjects.size() - 1);
    work.edges.push_back(record);
  }

  // Adds a subject without a mark.
  void selected_event(const EventView &event, std::uint32_t thread, Instant moment, std::uint16_t processor,
                      CollectWork &work) {
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
    if (!collect_.leaf.empty()) {
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
  void stacks_in_items(const EventView &event, Instant moment, std::uint16_t processor, CollectWork &work) {
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
  void clr_stack(const EventView &event, Instant moment, std::uint16_t processor, CollectWork &work) {
    const Bytes payload = event.payload();
    const unsigned p = event.pointer_size();
    if (payload.size() < clr::kStackFramesAt + p) {
      ++work.unreadable;
      return;
    }
    work.clr_stacks.push_back(static_cast<std::uint32_t>(work.fragments.size()));
    add_frames(fragment_of(event, moment, kForever, processor), payload.subspan(clr::kStackFramesAt), p,
               work);
  }

  // Also of what is not counted: such a part belongs to something else.
  static void await_later_part(const EventView &event, Instant moment, CollectWork &work) {
    ExtendedItems items = event.items();
    for (ExtendedItem item{}; items.next(item);)
      if (const auto stack = stack_in(item); stack && stack->match != 0)
        work.awaited.emplace_back(stack->match, event.thread_id(), moment.time);
  }

  void later_part(const EventView &event, Instant moment, std::uint16_t processor, CollectWork &work) {
    const std::optional<StackItem> stack = later_stack(event);
    if (!stack) {
      ++work.unreadable;
      return;
    }
    work.later_parts.push_back(
        {{stack->match, event.thread_id(), moment.time}, static_cast<std::uint32_t>(work.fragments.size())});
    add_frames(fragment_of(event, moment, kForever, processor), stack->data, stack->pointer_size, work);
  }

  static Fragment fragment_of(const EventView &event, Instant moment, std::int64_t event_time,
                              std::uint16_t processor) {
    Fragment fragment;
    fragment.event_time = event_time;
    fragment.time = moment.time;
    fragment.thread = event.thread_id();
    fragment.process = event.process_id();
    fragment.processor = processor & kProcessors;
    return fragment;
  }

  static void subject(const Subject &subject, CollectWork &work) {
    work.subjects.push_back(subject);
    mark_subject(work);
  }
  static void mark_subject(CollectWork &work) {
    const Subject &last = work.subjects.back();
    const auto number = static_cast<std::uint32_t>(work.subjects.size() - 1);
    work.marks.push_back({last.time, number, last.processor, Mark::kSubject});
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
    subject(made, work);
  }

  void context_switch(const EventView &event, Instant moment, std::uint16_t processor, CollectWork &work) {
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
    subject(made, work);
  }

  void stack_event(const EventView &event, StackEventKind kind, Instant moment, std::uint16_t processor,
                   CollectWork &work) {
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

  void add_frames(Fragment fragment, Bytes from, unsigned pointer_size, CollectWork &work) {
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

  // Both ends of a stack tell which part it is; they go into the table with it, for references by key.
  static std::uint32_t scope(stacks::Frames frames, unsigned pointer_size) {
    return pointer_size | (stacks::is_kernel_stack(frames, pointer_size) ? 16u : 0u) |
           (format::is_kernel_address(frames.front(), pointer_size) ? 0u : 32u);
  }

  static constexpr std::uint16_t kProcessors = 0x7FF; // what a fragment can tell apart
  static std::uint16_t processor_of(const DecodedBuffer &buffer) {
    return buffer.header.processor() & kProcessors;
  }

public:
  static std::uint8_t flags_of(std::uint32_t scope) {
    return static_cast<std::uint8_t>(Fragment::kHasFrames | ((scope & 16) != 0 ? Fragment::kKernel : 0) |
                                     ((scope & 32) != 0 ? Fragment::kUserFirst : 0));
  }

private:
  const CollectOptions &collect_;
  stacks::StackTable &stacks_;
  Kinds kinds_;
  bool ends_of_files_ = false; // are among the events
};

void resolve(Collected &all, std::vector<Reference> &references, stacks::StackDefinitions &definitions) {
  definitions.sort();
  std::vector<std::uint64_t> frames;
  for (const Reference &reference : references) {
    const stacks::KeyDefinition *found =
        reference.kernel ? definitions.resolve(reference.key, *reference.kernel, reference.place)
                         : definitions.resolve_any(reference.key, reference.place);
    if (found == nullptr || found->stack == stacks::kNoStack) continue;
    Fragment &fragment = all.records.fragments[reference.fragment];
    fragment.stack = found->stack;
    fragment.flags = static_cast<std::uint8_t>(Fragment::kReference |
                                               Collector::flags_of(all.stacks->read(found->stack, frames)));
  }
}

} // namespace

namespace {

// What the traces say, one after the other.
class Gathering {
public:
  explicit Gathering(const CollectOptions &collect)
      : durations_(collect.durations), collector_(collect, *all_.stacks) {}

  Result<PassResult> add(const Trace &trace, std::uint32_t first, const PassOptions &options) {
    Pass<CollectWork> pass;
    pass.name = "reading samples";
    pass.work = [&](Batch &batch, CollectWork &work) {
      work.clear();
      for (const DecodedBuffer &buffer : batch.buffers) {
        const DecodedBuffer here = numbered(buffer, first);
        const Collector::Begin begin = Collector::begin(here, work);
        trace.visit(batch, buffer, [&](const EventView &event, std::int64_t time, std::uint32_t at) {
          collector_.look_at(event, time, here, at, work);
        });
        collector_.end(begin, work);
      }
    };
    pass.merge = [&](Batch &, CollectWork &work) -> Result<void> {
      merge(work);
      return {};
    };
    return run_pass(trace, pass, options);
  }

  Collected finish(PassResult &&met) && {
    all_.pass = std::move(met);
    resolve(all_, references_, definitions_);
    Records &records = all_.records;
    filter::find_clr_events(
        clr_events_, clr_stacks_,
        [](const filter::EventKey &event) { return std::pair(event.tid, event.time); },
        [&records](std::uint32_t stack) {
          return std::pair(records.fragments[stack].thread, records.fragments[stack].time);
        },
        [&records](std::uint32_t stack, const filter::EventKey &event) {
          records.fragments[stack].event_time = event.time;
        });
    give_later_parts();
    pair_edges();
    name_files();
    records.overlaps = std::move(overlaps_).take();
    records.kinds = collector_.kind_names();
    records.leaf_texts.assign(leaf_texts_.all().begin(), leaf_texts_.all().end());
    records.processes = std::move(state_.processes);
    records.threads = std::move(state_.threads);
    records.thread_names = std::move(state_.thread_names);
    records.images = std::move(state_.images);
    records.identities = std::move(state_.identities);
    records.intervals = std::move(state_.intervals);
    std::ranges::stable_sort(records.intervals, {}, &IntervalRecord::time);
    all_.code = std::move(state_.code);
    const schema::EventNames names;
    for (const schema::TypeCount &row : counts_.rows())
      all_.events[names.name(row.type)] += row.events;
    return std::move(all_);
  }

private:
  // A part belongs to every event that awaits it; each has a fragment of its own.
  void give_later_parts() {
    std::ranges::sort(later_parts_, {}, &LaterPart::written);
    profile::Sequence<Fragment> &fragments = all_.records.fragments;
    for (const filter::LaterKey &event : awaited_) {
      const auto part = filter::find_later_part(later_parts_, event, &LaterPart::written);
      if (part == later_parts_.end()) continue;
      const bool first = fragments[part->fragment].event_time == kForever;
      if (!first) fragments.push_back(Fragment(fragments[part->fragment]));
      fragments[first ? part->fragment : fragments.size() - 1].event_time = std::get<2>(event);
    }
  }

  void name_files() {
    file_names_.sort();
    for (std::size_t i = 0; i < files_.size(); ++i) {
      std::string_view name;
      for (const std::uint64_t number : files_[i])
        if (name.empty() && number != 0) name = file_names_.find(number, all_.records.subjects[i].time);
      all_.records.leaves.push_back(leaf_texts_.number(base::at_most(name, base::kLongestName)));
    }
  }

  void pair_edges() {
    std::ranges::sort(edges_, {}, &EdgeRecord::at);
    OpenEdges<const EdgeRecord *> open;
    bool all_have_room = true;
    std::size_t timed = 0;
    for (const EdgeRecord &record : edges_) {
      if (record.edge.begins) {
        all_have_room = open.begin(record.edge, 0, &record) && all_have_room;
        continue;
      }
      const auto begin = open.end(record.edge, 0);
      if (!begin || record.subject == EdgeRecord::kNoSubject) continue;
      give_beginning(**begin, record);
      if (!durations_) continue;
      const std::int64_t ns = duration_ns(*durations_, (*begin)->at.time, record.at.time);
      if (ns < 0 || static_cast<std::uint64_t>(ns) > kMostWeight) continue;
      all_.records.weights[record.subject] = static_cast<std::uint64_t>(ns);
      ++timed;
    }
    if (durations_) all_.weightless = all_.records.subjects.size() - timed;
    if (!all_have_room)
      all_.pass.warnings.emplace_back(
          "more beginnings without an end than memory has room for: some ends have "
          "no beginning");
    edges_ = {};
    std::ranges::sort(all_.records.begun, {}, [](const profile::Begun &begun) {
      return std::tuple(begun.time, begun.thread, ~begun.subject);
    });
  }

  // What was done for a request is what the thread caused that asked for it. Who ends one of a disk is
  // whoever ran when it was done.
  void give_beginning(const EdgeRecord &begin, const EdgeRecord &end) {
    const bool of_disk = end.hook >> 8 == 0x01, of_file = end.hook >> 8 == 0x04;
    if ((!of_disk && !of_file) || begin.thread == kUnknownId) return;
    Subject &subject = all_.records.subjects[end.subject];
    if (of_disk || subject.thread == kUnknownId) {
      subject.thread = begin.thread;
      subject.ip = begin.process;
    }
    all_.records.begun.push_back({begin.at.time, begin.thread, end.subject, begin.hook});
  }

  void merge(CollectWork &work) {
    Records &records = all_.records;
    const auto subjects = static_cast<std::uint32_t>(records.subjects.size()),
               fragments = static_cast<std::uint32_t>(records.fragments.size());
    for (Mark &mark : work.marks)
      if (mark.kind == Mark::kSubject) mark.thread += subjects;
    for (Reference &reference : work.references)
      reference.fragment += fragments;
    for (Subject &subject : work.subjects)
      for (std::uint32_t *number : {&subject.kernel, &subject.user})
        if (*number != Subject::kNoFragment) *number += fragments;
    for (const BufferMarks &buffer : work.buffers)
      overlaps_.add(buffer.processor, buffer.times);
    clr_events_.insert(clr_events_.end(), work.clr_events.begin(), work.clr_events.end());
    for (const std::uint32_t number : work.clr_stacks)
      clr_stacks_.push_back(number + fragments);
    awaited_.insert(awaited_.end(), work.awaited.begin(), work.awaited.end());
    for (const LaterPart &part : work.later_parts)
      later_parts_.push_back({part.written, part.fragment + fragments});
    for (EdgeRecord &edge : work.edges)
      if (edge.subject != EdgeRecord::kNoSubject) edge.subject += subjects;
    edges_.insert(edges_.end(), work.edges.begin(), work.edges.end());
    records.subjects.append(work.subjects);
    records.weights.append(work.weights);
    std::vector<std::uint32_t> numbers;
    for (const std::string &text : work.leaf_texts.all())
      numbers.push_back(leaf_texts_.number(text));
    for (std::uint32_t &leaf : work.leaves)
      leaf = numbers[leaf];
    records.leaves.append(work.leaves);
    files_.append(work.files);
    for (const FileName &told : work.file_names)
      file_names_.add(told);
    records.marks.append(work.marks);
    records.fragments.append(work.fragments);
    records.readies.append(work.readies);
    for (SwitchRecord &record : work.switches)
      record.subject += subjects;
    records.switches.append(work.switches);
    references_.insert(references_.end(), work.references.begin(), work.references.end());
    for (const stacks::KeyDefinition &definition : work.definitions)
      definitions_.add(definition);
    state_.append(std::move(work.state));
    counts_.merge(work.counts);
    all_.unreadable += work.unreadable;
    all_.weightless += work.weightless;
  }

  Collected all_;
  std::optional<Clock> durations_;
  Collector collector_;
  std::vector<filter::EventKey> clr_events_;
  std::vector<std::uint32_t> clr_stacks_; // as fragments
  base::TextNumbers leaf_texts_;
  profile::Sequence<FileNumbers> files_;
  FileNames file_names_;
  std::vector<filter::LaterKey> awaited_;
  std::vector<LaterPart> later_parts_;
  std::vector<EdgeRecord> edges_;
  std::vector<Reference> references_;
  stacks::StackDefinitions definitions_;
  StateRecords state_;
  schema::TypeCounts counts_;
  Overlaps overlaps_;
};

} // namespace

Result<Collected> collect_profile(Traces traces, const CollectOptions &collect, const PassOptions &options) {
  Gathering gathering(collect);
  PassResult met;
  ETWRELOG_TRY(run_over(traces, met, [&](const Trace &trace, std::uint32_t first) {
    return gathering.add(trace, first, options);
  }));
  return std::move(gathering).finish(std::move(met));
}

} // namespace etwrelog::pipeline
