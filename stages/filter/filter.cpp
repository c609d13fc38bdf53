#include "filter/early_filter.hpp"

#include "base/errors.hpp"
#include "base/sort_unique.hpp"
#include "etwrelog/clr_events.hpp"
#include "filter/clr_stacks.hpp"

#include <algorithm>
#include <cassert>

namespace etwrelog {

std::string_view reason_name(Reason reason) {
  switch (reason) {
  case Reason::kept_always: return "kept: describes the trace or the machine";
  case Reason::kept_process: return "kept: selected process";
  case Reason::kept_context: return "kept: idle and system process, kernel images";
  case Reason::kept_stack: return "kept: stack of a kept event";
  case Reason::kept_reference: return "kept: stack definition, file name or manifest that a kept event needs";
  case Reason::kept_system: return "kept: belongs to no process";
  case Reason::dropped_process: return "dropped: another process";
  case Reason::dropped_system: return "dropped: belongs to no process";
  case Reason::dropped_unknown: return "dropped: thread of no known process";
  case Reason::dropped_stack: return "dropped: stack of a dropped event";
  case Reason::dropped_unreferenced:
    return "dropped: stack definition, file name or manifest that no kept event needs";
  case Reason::dropped_kind: return "dropped: not of the selected providers, events or processors";
  case Reason::dropped_time: return "dropped: outside the selected time";
  case Reason::kept_state: return "kept: process, thread, image or code, outside the selected time and kinds";
  case Reason::count_: break;
  }
  return "";
}

namespace filter {

using kernel::Scope;

void Marks::Part::clear() {
  definitions.clear();
  named.clear();
  providers.clear();
  kept_events.clear();
  dropped_events.clear();
  references.clear();
  clr_events.clear();
  clr_stacks.clear();
  later_stacks.clear();
}

void Marks::Part::shrink() {
  base::sort_unique(definitions);
  base::sort_unique(named);
  base::sort_unique(providers);
}

namespace {

bool is_end_of_time(std::int64_t filetime) {
  return filetime == kForever || filetime == kBeginning;
}

// The first tick that is not before the moment.
std::int64_t first_tick(const Moment &moment, const Clock &clock) {
  const std::int64_t filetime = moment.of(clock);
  return is_end_of_time(filetime) ? filetime : clock.from_filetime(filetime);
}

// The last one that is not behind it: of a clock finer than FILETIMEs several are shown as that moment.
std::int64_t last_tick(const Moment &moment, const Clock &clock) {
  const std::int64_t filetime = moment.of(clock);
  if (is_end_of_time(filetime)) return filetime;
  const std::int64_t behind = clock.from_filetime(filetime + 1);
  return behind == kBeginning ? behind : behind - 1;
}

} // namespace

TimeRange selected_time(const Selection &selection, const Clock &clock) {
  TimeRange range;
  if (selection.from) range.from = first_tick(*selection.from, clock);
  if (selection.to) range.to = last_tick(*selection.to, clock);
  return range;
}

Result<void> check_range(const TimeRange &range) {
  // Between two ticks there is nothing, which is no mistake.
  if (range.from <= range.to || range.from - 1 == range.to) return {};
  return base::ErrorBuilder(ErrorKind::usage, "the range is empty: its beginning lies after its end")
      .about(Option::from, Option::to);
}

bool is_stack_event(const EventView &event) {
  return event.is_event() && (clr::is_stack(event.provider(), event.id()) || is_later_stack(event));
}

bool is_state(Scope scope) {
  switch (scope) {
  case Scope::always:
  case Scope::process:
  case Scope::thread:
  case Scope::image:
  case Scope::stack_definition:
  case Scope::file_name:
  case Scope::key_name:
  case Scope::stack_walk:
  case Scope::stack_reference: return true;
  default: return false;
  }
}

bool is_state(const EventView &event) {
  if (const HookRule *const rule = rule_of(event)) return is_state(rule->scope);
  const Guid provider = event.provider();
  if (event.is_classic())
    return describes_system(provider) || provider == format::kMetaDataGuid ||
           provider == format::kImageIdGuid;
  return event.is_event() &&
         (clr::names_code(provider, event.id()) || provider == clr::kScriptGuid || state_of_provider(event) ||
          (event.id() == format::kManifestEventId && event.opcode() == format::kManifestOpcode));
}

Result<Filter> Filter::make(const Selection &selection, const Lifetimes &lifetimes, const Clock &clock,
                            bool so_far) {
  ETWRELOG_TRY_LET(targets, Targets::resolve(selection, lifetimes, so_far));
  Filter filter;
  filter.selection_ = selection;
  filter.lifetimes_ = &lifetimes;
  filter.targets_ = std::move(targets);
  filter.everything_ = selection.everything();
  filter.by_kind_ = selection.by_kind();
  filter.names_kinds_ = selection.names_kinds();
  filter.so_far_ = so_far;
  filter.time_ = selected_time(selection, clock);
  ETWRELOG_TRY(check_range(filter.time_));
  for (const LifetimeRecords::Actor &actor : lifetimes.actors()) {
    const Scope scope = kernel::scope_of(actor.hook);
    const bool start_or_end = scope == Scope::process || scope == Scope::thread,
               image = scope == Scope::image;
    std::optional<std::uint32_t> subject = actor.subject;
    if (actor.subject_is_thread) subject = lifetimes.pid_of_thread(actor.subject, actor.time);
    if (!subject) continue; // then it goes by its header, as its stack does
    const bool kept = filter.targets_.contains(*subject, actor.time) || (image && actor.kernel_image) ||
                      (start_or_end && (*subject == kIdleProcess || *subject == kSystemProcess));
    filter.actors_.push_back(
        {{actor.time, actor.tid}, kept && (start_or_end || image || filter.in_time(actor.time))});
  }
  return filter;
}

Reason Filter::by_process(std::uint32_t pid, std::int64_t time) const {
  return targets_.contains(pid, time) ? Reason::kept_process : Reason::dropped_process;
}

Reason Filter::by_owner(const Owner &owner, std::int64_t time) const {
  const bool keep_rest = targets_.all() || targets_.only_excludes();
  switch (owner.kind) {
  case Owner::Kind::process: return by_process(owner.pid, time);
  case Owner::Kind::unknown: return keep_rest ? Reason::kept_process : Reason::dropped_unknown;
  case Owner::Kind::nobody: break;
  }
  return keep_rest || selection_.keep_system ? Reason::kept_system : Reason::dropped_system;
}

bool of_selected_kind(const Selection &selection, const EventView &event, std::uint16_t processor) {
  const auto contains = [](const auto &list, auto value) {
    return std::ranges::find(list, value) != list.end();
  };
  if (!selection.processors.empty() && !contains(selection.processors, processor)) return false;
  const std::uint32_t id = event.is_classic() ? event.opcode() : event.id();
  const bool by_id = !selection.events.empty(), by_name = !selection.kinds.empty();
  if ((by_id || by_name) && !(by_id && contains(selection.events, id)) &&
      !(by_name && selection.kinds.contains(event)))
    return false;
  const bool has_task = event.is_event(); // and channel and activity
  if (!selection.channels.empty() && !(has_task && contains(selection.channels, event.channel())))
    return false;
  if (!selection.tasks.empty() && !(has_task && contains(selection.tasks, event.task()))) return false;
  if (!selection.opcodes.empty() && !contains(selection.opcodes, event.opcode())) return false;
  if (!selection.activities.empty() && !(has_task && contains(selection.activities, event.activity())))
    return false;
  if (selection.providers.empty()) return true;
  const Guid provider = event.provider();
  return std::ranges::any_of(selection.providers, [&](const ProviderSelection &wanted) {
    if (wanted.kernel)
      return event.has_hook() ||
             (event.is_classic() && kernel::hook_of_class(provider, event.opcode()).has_value());
    if (wanted.guid != provider) return false;
    if (wanted.level != 0 && event.level() > wanted.level) return false;
    return wanted.keywords == 0 || event.keyword() == 0 || (event.keyword() & wanted.keywords) != 0;
  });
}

bool Filter::of_kind(const EventView &event, const Position &position) const {
  return of_selected_kind(selection_, event, position.processor);
}

bool Filter::is_named(const EventView &event, std::int64_t time, const Position &position) const {
  return names_kinds_ && in_time(time) && of_kind(event, position);
}

// Nobody asks for names of files and keys but to read what refers to them, unless the user names this kind,
// or the event says what happened to one at its time, as all but rundowns do.
bool Filter::selects_name(const EventView &event, const HookRule &rule, std::int64_t time,
                          const Position &position) const {
  if (kernel::is_name_rundown(rule.hook)) return is_named(event, time, position);
  return in_time(time) && (!by_kind_ || of_kind(event, position));
}

Filter::Verdict Filter::judge(const EventView &event, std::int64_t time, Position &position) const {
  if (const HookRule *const rule = rule_of(event)) return judge_kernel(event, *rule, time, position);
  // Kept whatever the time and kind: what gives stacks their names and events their meaning.
  const Verdict state =
      event.is_classic() ? judge_classic(event, time, position) : judge_event(event, time, position);
  if (state.reason != Reason::count_) return state;
  if (!in_time(time)) return {Reason::dropped_time};
  if (by_kind_ && !of_kind(event, position)) return {Reason::dropped_kind};
  return {by_owner(owner_of(event, time, position, *lifetimes_), time)};
}

Filter::Verdict Filter::judge_kernel(const EventView &event, const HookRule &rule, std::int64_t time,
                                     Position &position) const {
  const FieldOffsets &at = rule.offsets(event.pointer_size());
  const std::uint32_t ran_before = position.current_thread;
  switch (rule.scope) {
  case Scope::always: return {Reason::kept_always};
  case Scope::process:
  case Scope::thread: {
    const Owner owner = owner_of(event, time, position, *lifetimes_);
    const Reason reason = by_owner(owner, time);
    const bool context =
        owner.kind == Owner::Kind::process && (owner.pid == kIdleProcess || owner.pid == kSystemProcess);
    return {!is_kept(reason) && context ? Reason::kept_context : reason};
  }
  case Scope::image: {
    const Reason reason = by_owner(owner_of(event, time, position, *lifetimes_), time);
    if (is_kept(reason)) return {reason};
    const auto base = FieldOffsets::pointer(event.payload(), at.image_base, event.pointer_size());
    return {base && format::is_kernel_address(*base, event.pointer_size()) ? Reason::kept_context : reason};
  }
  case Scope::stack_definition:
    if (const Reason reason = by_owner({}, time); is_named(event, time, position) && is_kept(reason))
      return {reason};
    return {Reason::kept_reference, Need::definition};
  case Scope::file_name:
  case Scope::key_name: {
    const Reason reason = by_owner(owner_of(event, time, position, *lifetimes_), time);
    if (selects_name(event, rule, time, position) && is_kept(reason)) return {reason};
    return {Reason::kept_reference, Need::name};
  }
  case Scope::stack_walk:
  case Scope::stack_reference: {
    const std::int64_t event_time = FieldOffsets::i64(event.payload(), at.event_time).value_or(time);
    const Reason reason = by_owner(owner_of(event, time, position, *lifetimes_), event_time);
    if (!is_kept(reason) || is_named(event, time, position)) return {reason};
    return {Reason::kept_stack, Need::stack};
  }
  default: break;
  }

  // Follows the context switches also where the event itself goes.
  const Owner owner = owner_of(event, time, position, *lifetimes_);
  if (!in_time(time)) return {Reason::dropped_time};
  if (position.of_others) return {Reason::dropped_process};
  if (by_kind_ && !of_kind(event, position)) return {Reason::dropped_kind};
  if (rule.scope == Scope::context_switch_batch) return {Reason::kept_process};
  const Reason reason = by_owner(owner, time);
  if (is_kept(reason) || (rule.scope != Scope::context_switch && rule.scope != Scope::ready_thread))
    return {reason};
  const std::uint32_t other = rule.scope == Scope::context_switch
                                  ? FieldOffsets::u32(event.payload(), at.old_thread).value_or(kUnknownId)
                                  : ran_before;
  const auto other_pid = other == kUnknownId ? std::nullopt : lifetimes_->pid_of_thread(other, time);
  return {other_pid && targets_.contains(*other_pid, time) ? Reason::kept_process : reason};
}

Filter::Verdict Filter::judge_description(const EventView &event, std::int64_t time,
                                          Position &position) const {
  if (is_named(event, time, position))
    if (const Reason reason = by_owner(owner_of(event, time, position, *lifetimes_), time); is_kept(reason))
      return {reason};
  return {Reason::kept_reference, Need::provider};
}

Filter::Verdict Filter::judge_classic(const EventView &event, std::int64_t time, Position &position) const {
  const Guid provider = event.provider();
  if (describes_system(provider)) return {Reason::kept_always};
  if (provider == format::kMetaDataGuid) return judge_description(event, time, position);
  if (provider != format::kImageIdGuid) return {Reason::count_};
  // Identity of an image goes with the image.
  const IdentifiedImage image = identified_image(event);
  if (targets_.contains(image.pid, time)) return {Reason::kept_process};
  return {image.in_kernel ? Reason::kept_context : Reason::dropped_process};
}

Filter::Verdict Filter::judge_event(const EventView &event, std::int64_t time, Position &position) const {
  if (!event.is_event()) return {Reason::count_};
  if (event.id() == format::kManifestEventId && event.opcode() == format::kManifestOpcode) {
    // Of a selected process it stays for itself; of another while a kept process uses the provider.
    const bool own = !by_kind_ && targets_.contains(event.process_id(), time);
    return own ? Verdict{Reason::kept_process} : judge_description(event, time, position);
  }
  if (const auto told = state_of_provider(event)) return {judge_state(event, *told, time)};
  const bool here = in_time(time);
  if (here && !by_kind_) return {Reason::count_};
  const bool stack = here && is_stack_event(event);
  if (!stack && !clr::names_code(event.provider(), event.id())) return {Reason::count_};
  const bool selected = !by_kind_ || of_kind(event, position);
  if (here && selected) return {Reason::count_};
  const Reason reason = by_process(event.process_id(), time);
  if (selected || !is_kept(reason)) return {reason};
  // Methods and modules, also outside the time, name the frames of stacks inside it, whatever has these
  // stacks.
  return stack ? Verdict{Reason::kept_stack, Need::stack_event} : Verdict{Reason::kept_state, Need::code};
}

// As the kernel logger's of that scope, and also kept of who wrote it.
Reason Filter::judge_state(const EventView &event, const StateOfProvider &told, std::int64_t time) const {
  const Reason reason = by_process(told.process, time);
  if (is_kept(reason)) return reason;
  if (const Reason writer = by_process(event.process_id(), time); is_kept(writer)) return writer;
  const bool context = told.scope == Scope::image
                           ? format::is_kernel_address(told.image_base, event.pointer_size())
                           : told.process == kIdleProcess || told.process == kSystemProcess;
  return context ? Reason::kept_context : reason;
}

bool Filter::any_kept(const EventKey &event, bool only_fitting) const {
  auto kept = std::ranges::lower_bound(marks_.kept_events, event, {}, &Marks::Event::key);
  for (; kept != marks_.kept_events.end() && kept->key() == event; ++kept)
    if (kept->yes || !only_fitting) return true;
  return false;
}

bool Filter::completes_another(const EventKey &event, std::int64_t written) const {
  const auto next = std::ranges::lower_bound(kept_by_thread_, std::pair(event.tid, event.time));
  return next != kept_by_thread_.end() && next->first == event.tid && next->second <= written;
}

bool Filter::stack_kept(const EventKey &event) const {
  if (by_kind_ && so_far_) return in_time(event.time);
  if (by_kind_) return any_kept(event, false) || any_kept({event.time, kUnknownId}, false);
  auto actor = std::ranges::lower_bound(actors_, event, {}, &ActorVerdict::event);
  if (actor != actors_.end() && actor->event == event) {
    for (; actor != actors_.end() && actor->event == event; ++actor)
      if (actor->kept) return true;
    return false;
  }
  const auto dropped = [this](const EventKey &key) {
    return std::ranges::binary_search(marks_.dropped_events, key);
  };
  return in_time(event.time) && !dropped(event) && !dropped({event.time, kUnknownId});
}

// A definition answers the references since the key's previous definition: the next one in time is the one.
// One of the very time of the reference may stand before it in the trace or behind: a key is given up and
// used again at one moment. Then that one is meant or the next; both are kept. Where none of a key's kind
// follows, those of the other are, for tools that do not tell them apart.
template <class Each> void Filter::for_definitions(const KeyReference &to, Each &&each) const {
  const auto all = lifetimes_->definitions();
  const auto of_kind = [&](bool kernel) {
    const LifetimeRecords::Definition wanted{to.key, to.time, kernel};
    const auto first = std::ranges::lower_bound(all, wanted);
    auto last = std::upper_bound(first, all.end(), wanted);
    if (last != all.end() && last->key == to.key && last->kernel == kernel)
      last = std::upper_bound(last, all.end(), *last);
    for (auto i = first; i != last; ++i)
      each(static_cast<std::size_t>(i - all.begin()));
    return first != last;
  };
  const bool kernel_first = to.kind == KeyReference::Kind::kernel;
  if (!of_kind(kernel_first) || to.kind == KeyReference::Kind::either) of_kind(!kernel_first);
}

void Filter::mark_definitions(const KeyReference &to, Marks::Part &part) const {
  for_definitions(to, [&](std::size_t i) { part.definitions.push_back(static_cast<std::uint32_t>(i)); });
}

// Of the definition itself, which no two have of one key and time but by chance.
bool Filter::needs_definition(std::uint64_t key, std::int64_t time) const {
  const auto all = lifetimes_->definitions();
  for (const bool kernel : {false, true}) {
    const LifetimeRecords::Definition wanted{key, time, kernel};
    for (auto i = std::ranges::lower_bound(all, wanted); i != all.end() && *i == wanted; ++i)
      if (marks_.definitions[static_cast<std::size_t>(i - all.begin())]) return true;
  }
  return false;
}

void Filter::mark_reference(const Marks::Reference &reference, std::uint32_t pid, Marks::Part &part) const {
  // Where the stack's own thread is known to be of the stack's process, its event is decided the same way as
  // the stack; the rest waits until all events are decided.
  const bool settled = !by_kind_ && !lifetimes_->has_unowned() &&
                       lifetimes_->pid_of_thread(reference.event.tid, reference.event.time) == pid;
  if (!settled)
    part.references.push_back(reference);
  else if (stack_kept(reference.event))
    mark_definitions(reference.to, part);
}

std::optional<Guid> provider_needed(const EventView &event) {
  const bool manifest = event.is_event() && event.id() == format::kManifestEventId;
  if (manifest || (!event.is_event() && !event.is_classic())) return std::nullopt;
  return event.provider();
}

namespace {

KeyReference::Kind kind_of_key(const HookRule &rule) {
  if (rule.hook == kernel::kHookStackKeyKernel) return KeyReference::Kind::kernel;
  return rule.hook == kernel::kHookStackKeyUser ? KeyReference::Kind::user : KeyReference::Kind::either;
}

// Whether a stack has frames in user mode alone, as far as it tells; a reference by the kind of its key.
bool is_user_half(const EventView &event, const HookRule &rule) {
  if (rule.scope == Scope::stack_reference) return kind_of_key(rule) == KeyReference::Kind::user;
  const unsigned pointer_size = event.pointer_size();
  const auto innermost =
      FieldOffsets::pointer(event.payload(), rule.offsets(pointer_size).frames, pointer_size);
  return innermost && !format::is_kernel_address(*innermost, pointer_size);
}

// The thread whose stack belongs to the event: the one that caused it; of a switch the one switched in.
std::uint32_t walked_thread(const EventView &event, const HookRule &rule, const FieldOffsets &at,
                            const Position &position) {
  if (rule.scope == Scope::context_switch || rule.scope == Scope::ready_thread ||
      rule.scope == Scope::current_thread)
    return position.current_thread;
  if (says_causer(event)) return event.thread_id();
  return FieldOffsets::u32(event.payload(), at.thread_id).value_or(kUnknownId);
}

void add_provider(const EventView &event, Marks::Part &part) {
  const auto provider = provider_needed(event);
  if (provider && (part.providers.empty() || part.providers.back() != *provider))
    part.providers.push_back(*provider);
}

} // namespace

void Filter::mark(const EventView &event, std::int64_t time, Position &position, Marks::Part &part) const {
  const Verdict verdict = judge(event, time, position);
  const Bytes payload = event.payload();
  if (const HookRule *const found = rule_of(event)) {
    const HookRule &rule = *found;
    const FieldOffsets &at = rule.offsets(event.pointer_size());
    if (verdict.need == Need::stack) {
      const auto key = FieldOffsets::pointer(payload, at.stack_key, event.pointer_size());
      const auto event_time = FieldOffsets::i64(payload, at.event_time);
      const auto pid = FieldOffsets::u32(payload, at.process_id),
                 tid = FieldOffsets::u32(payload, at.thread_id);
      if (key && event_time && pid && tid)
        mark_reference({{*key, time, kind_of_key(rule)}, {*event_time, *tid}}, *pid, part);
      return;
    }
    if (verdict.need != Need::none || rule.scope == Scope::stack_definition) return;
    if (is_stack(rule.scope)) { // that is kept for itself, or goes
      const auto key = FieldOffsets::pointer(payload, at.stack_key, event.pointer_size());
      if (key && is_kept(verdict.reason)) mark_definitions({*key, time, kind_of_key(rule)}, part);
      return;
    }
    const bool kept = is_kept(verdict.reason);
    if (!kept) {
      const bool whose =
          verdict.reason == Reason::dropped_unknown || verdict.reason == Reason::dropped_system;
      if (whose && lifetimes_->has_stacks() && rule.scope != Scope::system)
        part.dropped_events.push_back({time, walked_thread(event, rule, at, position)});
      return;
    }
    if (rule.scope != Scope::file_name && rule.scope != Scope::key_name) // which need no other name
      for (const std::uint16_t offset : rule.named(event.pointer_size()))
        if (const auto number = FieldOffsets::pointer(payload, offset, event.pointer_size()))
          part.named.push_back(*number);
    if (by_kind_ && lifetimes_->has_stacks())
      part.kept_events.push_back(
          {time, walked_thread(event, rule, at, position), fits(event, time, position)});
    add_provider(event, part);
    return;
  }
  mark_other(event, time, verdict, position, part);
}

void Filter::mark_other(const EventView &event, std::int64_t time, const Verdict &verdict,
                        const Position &position, Marks::Part &part) const {
  const bool kept = verdict.need == Need::none && is_kept(verdict.reason);
  if (by_kind_ && lifetimes_->has_stack_events() && event.is_event() && in_time(time) &&
      clr::is_runtime(event.provider())) {
    if (clr::is_stack(event.provider(), event.id()))
      part.clr_stacks.push_back({time, event.thread_id()});
    else
      part.clr_events.push_back({time, event.thread_id(), kept});
  }
  if (!kept) return;
  if (by_kind_ && lifetimes_->has_stacks())
    part.kept_events.push_back({time, event.thread_id(), fits(event, time, position)});
  add_provider(event, part);
  if (!event.has_items()) return;
  ExtendedItems items = event.items();
  ExtendedItem item;
  while (items.next(item)) {
    const auto stack = stack_in(item);
    if (!stack) continue;
    if (stack->by_key) mark_definitions({stack->key(), time, KeyReference::Kind::either}, part);
    if (by_kind_ && stack->match != 0) part.later_stacks.push_back({stack->match, event.thread_id()});
  }
}

void Filter::merge(const Marks::Part &part, Marks &marks) const {
  if (marks.definitions.empty()) marks.definitions.resize(lifetimes_->definitions().size());
  for (const std::uint32_t index : part.definitions)
    marks.definitions[index] = true;
  marks.named.insert(part.named.begin(), part.named.end());
  marks.providers.insert(part.providers.begin(), part.providers.end());
  auto append = [](auto &to, const auto &from) { to.insert(to.end(), from.begin(), from.end()); };
  append(marks.kept_events, part.kept_events);
  append(marks.dropped_events, part.dropped_events);
  append(marks.references, part.references);
  append(marks.clr_events, part.clr_events);
  append(marks.clr_stacks, part.clr_stacks);
  append(marks.later_stacks, part.later_stacks);
}

void Filter::set_marks(Marks marks) {
  marks_ = std::move(marks);
  marks_.definitions.resize(lifetimes_->definitions().size());
  std::ranges::sort(marks_.kept_events, {}, &Marks::Event::key);
  std::ranges::sort(marks_.dropped_events);
  if (by_kind_)
    for (const Marks::Event &event : marks_.kept_events)
      kept_by_thread_.emplace_back(event.tid, event.time);
  std::ranges::sort(kept_by_thread_);
  for (const Marks::Reference &reference : marks_.references) {
    if (stack_kept(reference.event) || (reference.to.kind == KeyReference::Kind::user &&
                                        completes_another(reference.event, reference.to.time)))
      for_definitions(reference.to, [this](std::size_t i) { marks_.definitions[i] = true; });
  }
  marks_.references = {};
  std::vector<EventKey> stacks;
  find_clr_events(
      marks_.clr_events, marks_.clr_stacks,
      [](const Marks::Event &event) { return std::pair(event.tid, event.time); },
      [](const EventKey &stack) { return std::pair(stack.tid, stack.time); },
      [&](const EventKey &stack, const Marks::Event &of) {
        if (of.yes) stacks.push_back(stack);
      });
  std::ranges::sort(stacks);
  marks_.clr_stacks = std::move(stacks);
  marks_.clr_events = {};
  base::sort_unique(marks_.later_stacks);
}

bool Filter::stack_event_kept(const EventView &event, std::int64_t time) const {
  if (so_far_) return true;
  if (!is_later_stack(event))
    return std::ranges::binary_search(marks_.clr_stacks, EventKey{time, event.thread_id()});
  const std::optional<StackItem> stack = later_stack(event);
  return stack &&
         std::ranges::binary_search(marks_.later_stacks, Marks::Later{stack->match, event.thread_id()});
}

std::optional<std::uint32_t> Filter::process_of_stack(const EventView &event, std::int64_t time,
                                                      Position &position) const {
  const Reason reason = decide(event, time, position);
  if (!is_kept(reason)) return std::nullopt;
  if (const HookRule *const rule = rule_of(event)) {
    if (!is_stack(rule->scope)) return std::nullopt;
    const FieldOffsets &at = rule->offsets(event.pointer_size());
    const Bytes payload = event.payload();
    const auto of = FieldOffsets::i64(payload, at.event_time);
    const auto tid = FieldOffsets::u32(payload, at.thread_id);
    const bool of_fitting = reason != Reason::kept_stack ||
                            (of && tid && (any_kept({*of, *tid}, true) || any_kept({*of, kUnknownId}, true)));
    return of_fitting ? FieldOffsets::u32(payload, at.process_id) : std::nullopt;
  }
  if (!event.is_event()) return std::nullopt;
  if (is_stack_event(event)) return event.process_id();
  if (!event.has_items() || !fits(event, time, position)) return std::nullopt;
  ExtendedItems items = event.items();
  for (ExtendedItem item; items.next(item);)
    if (stack_in(item)) return event.process_id();
  return std::nullopt;
}

void Filter::set_code_processes(std::unordered_set<std::uint32_t> processes) {
  code_processes_ = std::move(processes);
  if (!code_processes_.empty()) // what names code may be described in the trace, too
    marks_.providers.insert({format::kClrGuid, format::kClrRundownGuid, clr::kScriptGuid});
}

Reason Filter::decide(const EventView &event, std::int64_t time, Position &position) const {
  if (everything_) return Reason::kept_process;
  const Verdict verdict = judge(event, time, position);
  assert(in_time(time) || verdict.reason == Reason::dropped_time || is_state(event));
  if (verdict.need == Need::none) {
    const bool for_itself = verdict.reason == Reason::kept_process || verdict.reason == Reason::kept_system;
    return for_itself && !fits(event, time, position) ? Reason::kept_state : verdict.reason;
  }
  const Bytes payload = event.payload();
  if (verdict.need == Need::code) {
    if (so_far_ || code_processes_.contains(event.process_id())) return Reason::kept_state;
    return in_time(time) ? Reason::dropped_kind : Reason::dropped_time;
  }
  if (verdict.need == Need::stack_event)
    return stack_event_kept(event, time) ? Reason::kept_stack : Reason::dropped_stack;
  if (so_far_ && verdict.need != Need::stack) return Reason::kept_reference;
  if (verdict.need == Need::provider) {
    const bool in_payload = event.is_classic();
    if (in_payload && payload.size() < sizeof(Guid)) return Reason::kept_reference;
    const Guid provider = in_payload ? load_guid(payload.data()) : event.provider();
    return marks_.providers.contains(provider) ? Reason::kept_reference : Reason::dropped_unreferenced;
  }
  const HookRule *const rule = rule_of(event); // what needs one of the rest is the kernel's
  if (rule == nullptr) return verdict.reason;
  const FieldOffsets &at = rule->offsets(event.pointer_size());
  if (verdict.need == Need::stack) {
    const auto event_time = FieldOffsets::i64(payload, at.event_time);
    const auto tid = FieldOffsets::u32(payload, at.thread_id);
    if (!event_time || !tid) return Reason::dropped_stack;
    const EventKey of = {*event_time, *tid};
    const bool kept = stack_kept(of) || (is_user_half(event, *rule) && completes_another(of, time));
    return kept ? Reason::kept_stack : Reason::dropped_stack;
  }
  if (verdict.need == Need::name) {
    for (const std::uint16_t offset : rule->named(event.pointer_size()))
      if (const auto number = FieldOffsets::pointer(payload, offset, event.pointer_size());
          number && marks_.named.contains(*number))
        return Reason::kept_reference;
    return Reason::dropped_unreferenced;
  }
  const auto key = FieldOffsets::pointer(payload, at.stack_key, event.pointer_size());
  if (key && needs_definition(*key, time)) return Reason::kept_reference;
  return Reason::dropped_unreferenced;
}

} // namespace filter
} // namespace etwrelog
