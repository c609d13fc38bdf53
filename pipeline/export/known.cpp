#include "export/known.hpp"

#include "api/reading.hpp"
#include "base/cut_text.hpp"
#include "base/errors.hpp"
#include "etwrelog/clr_events.hpp"
#include "etwrelog/text.hpp"
#include "filter/clr_stacks.hpp"
#include "passes/event_keys.hpp"
#include "profile_pass/code_events.hpp"
#include "schema/io_requests.hpp"
#include "schema/value_text.hpp"
#include "stacks/stack_events.hpp"

#include <algorithm>
#include <deque>

namespace etwrelog::pipeline {

using filter::FieldOffsets;
using filter::HookRule;
using kernel::Scope;

namespace {

constexpr const char *kTooManyOpened =
    "more opened registry keys than memory has room for: some are not joined";

} // namespace

// What one batch shows.
struct Knowledge::Part {
  struct RawFragment {
    Fragment fragment;
    std::size_t begin, end; // in `frames`
  };
  struct RawDefinition {
    stacks::KeyDefinition definition;
    std::size_t begin, end;
  };
  struct RawLater {
    LaterPart part;
    std::size_t begin, end;
  };
  struct RawClr {
    ClrStack stack;
    std::size_t begin, end;
  };
  struct OfMachine {
    std::vector<ObjectName> files, keys;
    std::vector<OpenedKeys::Event> opened;
    StateRecords state;
    std::vector<std::pair<std::uint16_t, profile::WhoRan::Switch>> switches; // with their processors
    std::vector<RawFragment> fragments;
    std::vector<RawDefinition> definitions;
    std::vector<RawLater> later;
    std::vector<filter::EventKey> clr_events;
    std::vector<RawClr> clr_stacks;
    std::vector<std::uint64_t> frames;
    std::vector<stacks::Place> followed;
    std::vector<MaybeFollowed> maybe_followed;
    std::vector<RequestEdge> requests;
    std::uint64_t method_bytes = 0;
  };
  std::vector<OfMachine> machines;
  void clear() {
    machines.clear();
    last_.reset();
    now_.clear();
  }

  void add(const Event &event, const KnowledgeWanted &wanted) {
    if (wanted.stacks) note_moment(event, machines[event.machine()]);
    if (wanted.code && event.is_event() && tells_of_code(event.provider()))
      add_names_of_code(event, machines[event.machine()]);
    if (wanted.stacks && event.is_event()) {
      if (is_later_stack(event)) return add_later(event, machines[event.machine()]);
      if (clr::is_runtime(event.provider())) return add_clr(event, machines[event.machine()]);
    }
    if (wanted.identities && event.is_classic() && event.provider() == format::kImageIdGuid) {
      return add_identity(event, instant_of(event), machines[event.machine()].state);
    }
    const auto hook = kernel::hook_of(event);
    if (!hook) return add_names_of_provider(event, wanted, machines[event.machine()]);
    OfMachine &mine = machines[event.machine()];
    if (wanted.stacks && schema::is_of_requests(*hook))
      if (const auto edge = kernel_edge_of(event, *hook))
        mine.requests.push_back(
            {event.position(), place_of(event), told_logger(event).value_or(kUnknownId), *edge});
    const HookRule &rule = filter::rule_for(*hook, event.version());
    const Bytes payload = event.payload();
    const unsigned size = event.pointer_size();
    const FieldOffsets &at = rule.offsets(size);
    switch (rule.scope) {
    case Scope::context_switch:
      if (const auto threads = filter::switched_threads(event, rule); wanted.running && threads)
        mine.switches.push_back(
            {event.processor(), {event.time(), threads->new_thread, threads->old_thread}});
      return;
    case Scope::process:
    case Scope::thread:
    case Scope::image:
      if (wanted.images) add_kernel_state(event, *hook, instant_of(event), mine.state);
      return;
    case Scope::stack_walk:
    case Scope::stack_reference: {
      if (!wanted.stacks || at.event_time == FieldOffsets::kAbsent) return;
      const auto time = FieldOffsets::i64(payload, at.event_time);
      const auto thread = FieldOffsets::u32(payload, at.thread_id);
      if (!time || !thread) return;
      RawFragment raw{{*time, *thread, 0, 0, place_of(event), event.processor(),
                       static_cast<std::uint8_t>(size), *hook == kernel::kHookStackKeyKernel},
                      mine.frames.size(),
                      0};
      if (rule.scope == Scope::stack_reference) {
        const auto key = FieldOffsets::pointer(payload, at.stack_key, size);
        if (!key) return;
        raw.fragment.stack = kByKey, raw.fragment.key = *key;
      } else if (at.frames != FieldOffsets::kAbsent && payload.size() > at.frames) {
        read_frames(payload.subspan(at.frames), size, mine.frames);
      }
      raw.end = mine.frames.size();
      mine.fragments.push_back(raw);
      return;
    }
    case Scope::stack_definition: {
      const auto key = FieldOffsets::pointer(payload, at.stack_key, size);
      if (!wanted.stacks || !key || at.frames == FieldOffsets::kAbsent || payload.size() <= at.frames) return;
      RawDefinition raw{{*key, false, place_of(event)}, mine.frames.size(), 0};
      read_frames(payload.subspan(at.frames), size, mine.frames);
      raw.end = mine.frames.size();
      raw.definition.kernel = stacks::is_kernel_stack(std::span(mine.frames).subspan(raw.begin), size);
      mine.definitions.push_back(raw);
      return;
    }
    default: break;
    }
    if (wanted.files)
      if (auto told = file_name_of(event, *hook, event.time())) mine.files.push_back(*std::move(told));
    if (wanted.keys)
      if (auto told = key_name_of(event, *hook, event.time())) mine.keys.push_back(*std::move(told));
  }

private:
  struct AtOneTime {
    std::uint32_t thread;
    stacks::Place place;
  };
  // Which events are followed by another of their time and thread, in their buffer. Most times are of one
  // event alone, which is looked at when there comes another.
  void note_moment(const Event &event, OfMachine &mine) {
    const Position &position = event.position();
    if (last_ && own_time(event) == own_time(*last_) && position.buffer == last_->position().buffer &&
        position.source == last_->position().source) {
      if (now_.empty()) note_at_one_time(*last_, mine);
      note_at_one_time(event, mine);
    } else {
      now_.clear();
    }
    last_ = event;
  }

  // One that holds its own stack takes none from another.
  void note_at_one_time(const Event &event, OfMachine &mine) {
    constexpr std::size_t kMany = 64; // events of one time: a trap, not a trace
    constexpr std::uint32_t kWhoRan = kUnknownId - 1;
    if (event.has_items() || !may_have_fragments(event)) return;
    const std::uint32_t thread = told_logger(event).value_or(kWhoRan);
    if (thread == kUnknownId) return;
    const stacks::Place place = place_of(event);
    for (const AtOneTime &other : now_)
      if ((other.thread == kWhoRan) != (thread == kWhoRan))
        mine.maybe_followed.push_back(
            {other.place, event.time(), thread == kWhoRan ? other.thread : thread, event.processor()});
    const auto before = std::ranges::find(now_, thread, &AtOneTime::thread);
    if (before == now_.end()) {
      if (now_.size() < kMany) now_.push_back({thread, place});
      return;
    }
    mine.followed.push_back(before->place);
    before->place = place;
  }

  static profile::Instant instant_of(const Event &event) { return {event.time(), place_of(event).order}; }

  static void add_names_of_provider(const Event &event, const KnowledgeWanted &wanted, OfMachine &mine) {
    if (wanted.images) add_state_of_provider(event, instant_of(event), mine.state);
    if (wanted.files)
      if (auto told = file_name_of_provider(event, event.time())) mine.files.push_back(*std::move(told));
    if (wanted.keys)
      if (auto opened = OpenedKeys::read(event, event.time())) mine.opened.push_back(*std::move(opened));
  }

  static void add_names_of_code(const Event &event, OfMachine &mine) {
    profile::Methods::Events &code = mine.state.code;
    const std::size_t before = code.methods.size();
    add_code(event, instant_of(event), mine.state);
    code.maps.clear(); // lines have no part in names
    for (std::size_t i = before; i < code.methods.size(); ++i)
      mine.method_bytes += sizeof(profile::MethodRecord) + code.methods[i].name.size();
  }

  static void add_later(const Event &event, OfMachine &mine) {
    const std::optional<StackItem> stack = later_stack(event);
    if (!stack) return;
    RawLater raw{{stack->match, event.time(), event.thread_id(), 0}, mine.frames.size(), 0};
    read_frames(stack->data, stack->pointer_size, mine.frames);
    raw.end = mine.frames.size();
    mine.later.push_back(raw);
  }

  static void add_clr(const Event &event, OfMachine &mine) {
    if (!clr::is_stack(event.provider(), event.id())) {
      mine.clr_events.push_back({event.time(), event.thread_id()});
      return;
    }
    const Bytes payload = event.payload();
    if (payload.size() < clr::kStackFramesAt) return;
    RawClr raw{{event.thread_id(), 0, event.time(), kForever}, mine.frames.size(), 0};
    read_frames(payload.subspan(clr::kStackFramesAt), event.pointer_size(), mine.frames);
    raw.end = mine.frames.size();
    mine.clr_stacks.push_back(raw);
  }

  std::optional<Event> last_;
  std::vector<AtOneTime> now_; // of its time and buffer the last of each thread, if it is not alone
};

// Stacks that are equal are kept once.
class Knowledge::Stacks {
public:
  Stacks(Knowledge &into, std::uint64_t most) : into_(into), most_(most) { into_.stack_begins_.push_back(0); }
  // kByKey: no room.
  std::uint32_t number(std::span<const std::uint64_t> frames) {
    std::vector<std::uint32_t> &same = by_hash_[hash_words(frames)];
    for (const std::uint32_t number : same) {
      const std::size_t begin = into_.stack_begins_[number], end = into_.stack_begins_[number + 1];
      if (std::ranges::equal(frames, std::span(into_.frames_).subspan(begin, end - begin))) return number;
    }
    if ((into_.frames_.size() + frames.size()) * 8 + by_hash_.size() * 96 > most_) return kByKey;
    into_.frames_.insert(into_.frames_.end(), frames.begin(), frames.end());
    same.push_back(static_cast<std::uint32_t>(into_.stack_begins_.size() - 1));
    into_.stack_begins_.push_back(into_.frames_.size());
    return same.back();
  }

private:
  Knowledge &into_;
  std::uint64_t most_;
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> by_hash_;
};

void Knowledge::problem(std::string text) {
  if (std::ranges::find(problems_, text) == problems_.end()) problems_.push_back(std::move(text));
}

Result<Knowledge> Knowledge::collect(const etwrelog::Trace &trace, const ExportSurvey &survey,
                                     const KnowledgeWanted &wanted, const RunOptions &run,
                                     const Selection &selection) {
  Knowledge known;
  Query query;
  query.from = selection.from, query.to = selection.to;
  query.with_state = true;
  known.survey_ = &survey;
  const std::size_t machines = survey.lifetimes.size();
  known.machines_.resize(machines);
  std::vector<StateRecords> states(machines);
  std::vector<std::vector<RequestEdge>> requests(machines);
  std::vector<std::vector<MaybeFollowed>> maybe(machines);
  const std::uint64_t room = std::max<std::uint64_t>(run.memory / 8, 1u << 20); // of each table
  Stacks stacks(known, room);
  // Whose a stack is, all events tell together: without some of them none is joined.
  const auto merge_clr = [&](const Part::OfMachine &from, Machine &into) {
    if (into.clr_full) return;
    into.clr_events.insert(into.clr_events.end(), from.clr_events.begin(), from.clr_events.end());
    for (const Part::RawClr &raw : from.clr_stacks) {
      ClrStack stack = raw.stack;
      stack.stack = stacks.number(std::span(from.frames).subspan(raw.begin, raw.end - raw.begin));
      if (stack.stack == kByKey)
        known.problem("more different stacks than memory has room for: some are not joined");
      else
        into.clr_stacks.push_back(stack);
    }
    if (std::max(into.clr_events.size() * sizeof(filter::EventKey),
                 into.clr_stacks.size() * sizeof(ClrStack)) <= 2 * room)
      return;
    known.problem("more events of .NET than memory has room for: their stacks are not joined");
    into.clr_events = {};
    into.clr_stacks = {};
    into.clr_full = true;
  };
  auto merge_machine = [&](std::size_t number, Part::OfMachine &from) {
    Machine &into = known.machines_[number];
    into.method_bytes += from.method_bytes;
    states[number].append(std::move(from.state));
    // What lay where is told by all of them together: with some, code would have the names of other code.
    if (into.method_bytes > room) {
      known.problem("more names of code than memory has room for: frames have none");
      states[number].code = {};
    }
    const auto add_names = [&](const std::vector<ObjectName> &names, ObjectNames &to, const char *of) {
      for (const ObjectName &name : names) {
        if (to.memory() > room)
          return known.problem(std::string("more names of ") + of +
                               " than memory has room for: some are not joined");
        to.add(name);
      }
    };
    add_names(from.files, into.files, "files");
    add_names(from.keys, into.keys.control_blocks, "registry keys");
    for (OpenedKeys::Event &opened : from.opened) {
      if (into.opened.memory() > room) {
        known.problem(kTooManyOpened);
        break;
      }
      into.opened.add(std::move(opened));
    }
    for (const auto &[processor, to] : from.switches)
      into.ran.add(processor, to);
    const std::span<const std::uint64_t> frames = from.frames;
    for (const Part::RawFragment &raw : from.fragments) {
      if (into.fragments.size() * sizeof(Fragment) > 2 * room) {
        known.problem("more stacks than memory has room for: some are not joined");
        break;
      }
      Fragment fragment = raw.fragment;
      if (fragment.stack != kByKey) {
        fragment.stack = stacks.number(frames.subspan(raw.begin, raw.end - raw.begin));
        if (fragment.stack == kByKey) {
          known.problem("more different stacks than memory has room for: some are not joined");
          continue;
        }
      }
      into.fragments.push_back(fragment);
    }
    for (const Part::RawLater &raw : from.later) {
      LaterPart part = raw.part;
      part.stack = into.later.size() * sizeof(LaterPart) > room
                       ? kByKey
                       : stacks.number(frames.subspan(raw.begin, raw.end - raw.begin));
      if (part.stack == kByKey)
        known.problem("more user parts of stacks than memory has room for: some are not joined");
      else
        into.later.push_back(part);
    }
    merge_clr(from, into);
    if (into.followed.size() * sizeof(stacks::Place) + maybe[number].size() * sizeof(MaybeFollowed) <= room) {
      std::ranges::copy(from.followed, std::back_inserter(into.followed));
      std::ranges::copy(from.maybe_followed, std::back_inserter(maybe[number]));
    } else {
      known.problem("more events at one time than memory has room for: some have stacks of others, too");
    }
    if (requests[number].size() * sizeof(RequestEdge) <= 2 * room)
      std::ranges::copy(from.requests, std::back_inserter(requests[number]));
    else
      known.problem(
          "more requests to disks and files than memory has room for: the ends of some have no stack");
    for (const Part::RawDefinition &raw : from.definitions) {
      stacks::KeyDefinition definition = raw.definition;
      definition.stack = stacks.number(frames.subspan(raw.begin, raw.end - raw.begin));
      if (definition.stack == kByKey)
        known.problem("more different stacks than memory has room for: some are not joined");
      else
        into.definitions.add(definition);
    }
  };
  KnowledgeWanted once = wanted;
  once.durations = false;
  if (once.anything()) {
    Result<Part> done = read_fold<Part>(
        trace,
        [&](Part &part, EventBatch &batch) {
          part.machines.resize(machines);
          for (const Event &event : batch)
            part.add(event, wanted);
        },
        [&](Part &, Part &part) {
          for (std::size_t i = 0; i < part.machines.size(); ++i)
            merge_machine(i, part.machines[i]);
        },
        query, {.state_from_index = true}, run);
    if (!done) return std::move(done).error();
  }
  for (std::size_t i = 0; i < machines; ++i) {
    Machine &machine = known.machines_[i];
    machine.files.sort();
    machine.keys.control_blocks.sort();
    bool all_opened = true;
    machine.keys.opened = std::move(machine.opened).names(room, all_opened);
    if (!all_opened) known.problem(kTooManyOpened);
    machine.definitions.sort();
    std::ranges::sort(machine.fragments, {},
                      [](const Fragment &f) { return std::tuple(f.time, f.thread, f.written.order); });
    known.collect_user_halves(machine);
    machine.ran.sort();
    for (const MaybeFollowed &event : maybe[i])
      if (machine.ran.on(event.processor, event.time) == event.thread)
        machine.followed.push_back(event.place);
    std::ranges::sort(machine.followed);
    known.find_asked(machine, std::move(requests[i]));
    std::ranges::stable_sort(machine.later, {}, LaterPart::key);
    find_clr_events(machine);
    states[i].settle();
    machine.threads = spans_of(std::move(states[i].threads), std::move(states[i].thread_names));
    machine.identities = std::move(states[i].identities);
    machine.images.build(std::move(states[i].images), states[i].processes, machine.identities);
    machine.methods.build(std::move(states[i].code));
  }
  std::ranges::sort(known.asked_, {}, &Asked::position);
  if (wanted.durations) ETWRELOG_TRY(known.collect_durations(trace, run));
  return known;
}

std::vector<Knowledge::ThreadSpan> Knowledge::spans_of(std::vector<profile::ThreadRecord> records,
                                                       std::vector<profile::ThreadName> names) {
  constexpr std::uint8_t kStart = 1, kEnd = 2;
  std::ranges::stable_sort(records, {}, [](const auto &r) { return std::tuple(r.tid, r.at); });
  std::ranges::stable_sort(names, {}, [](const auto &n) { return std::tuple(n.tid, n.at); });
  std::vector<ThreadSpan> spans;
  bool ended = false;
  for (const profile::ThreadRecord &record : records) {
    ThreadSpan *last = spans.empty() || spans.back().thread != record.tid ? nullptr : &spans.back();
    if (last == nullptr || record.opcode == kStart || ended || last->process != record.pid) {
      // An id that is given again was free before.
      if (last != nullptr && last->end == kForever) last->end = record.at.time;
      last = &spans.emplace_back(ThreadSpan{record.tid, record.pid, kBeginning, kForever, {}});
      if (record.opcode == kStart) last->start = record.at.time;
    }
    ended = record.opcode == kEnd;
    if (ended) last->end = record.at.time;
  }
  for (ThreadSpan &span : spans) {
    const auto after = std::ranges::upper_bound(names, std::pair(span.thread, span.end), {},
                                                [](const auto &n) { return std::pair(n.tid, n.at.time); });
    if (after != names.begin() && std::prev(after)->tid == span.thread &&
        std::prev(after)->at.time >= span.start)
      span.name = std::prev(after)->name;
  }
  return spans;
}

std::uint32_t Knowledge::running_on(const Event &event) const {
  return machines_[event.machine()].ran.on(event.processor(), event.time());
}

std::optional<std::uint32_t> Knowledge::told_logger(const Event &event) {
  const HookRule *const found = event.thread_id() == kUnknownId ? filter::rule_of(event) : nullptr;
  if (found == nullptr) return event.thread_id();
  const HookRule &rule = *found;
  if (rule.scope == Scope::system) return kUnknownId;
  const FieldOffsets &at = rule.offsets(event.pointer_size());
  const auto own =
      FieldOffsets::u32(event.payload(), rule.scope == Scope::context_switch ? at.new_thread : at.thread_id);
  // Who readies a thread logs that; the payload has the thread that is readied. And of a payload that has
  // none, it was whoever ran there.
  const bool tells = own && rule.scope != Scope::current_thread && rule.scope != Scope::ready_thread;
  return tells ? own : std::nullopt;
}

std::uint32_t Knowledge::logger_of(const Event &event) const {
  const std::optional<std::uint32_t> told = told_logger(event);
  return told ? *told : running_on(event);
}

// What has the time and thread of the end of a disk request, or of what a merge of traces wrote of an image,
// is another's.
bool Knowledge::may_have_fragments(const Event &event) {
  if (const auto hook = kernel::hook_of(event))
    return stacks::may_have_stack(*hook) && !schema::ends_disk_request(*hook);
  return !filter::is_stack_event(event) && !(event.is_classic() && event.provider() == format::kImageIdGuid);
}

Knowledge::Owner Knowledge::owner_of(const Event &event) const {
  const filter::Lifetimes &lifetimes = survey_->lifetimes[event.machine()];
  Owner owner{event.process_id(), logger_of(event)};
  if (const HookRule *const kernel_rule = filter::rule_of(event)) {
    const HookRule &rule = *kernel_rule;
    filter::Position position{event.processor(), running_on(event)};
    if (rule.scope == Scope::ready_thread && owner.process == kUnknownId && owner.thread != kUnknownId)
      owner.process = lifetimes.pid_of_thread(owner.thread, event.time()).value_or(kUnknownId);
    if (owner.process == kUnknownId) {
      const filter::Owner found = filter::owner_of(event, event.time(), position, lifetimes);
      if (found.kind == filter::Owner::Kind::process) owner.process = found.pid;
    }
    // Whose payload names another process, as of what comes from the network, may be logged by any thread.
    if (owner.process != kUnknownId && event.thread_id() == kUnknownId && owner.thread != kUnknownId)
      if (const auto pid = lifetimes.pid_of_thread(owner.thread, event.time()); pid && *pid != owner.process)
        owner.thread = kUnknownId;
  }
  if (const auto pid = filter::network_process(event); pid && *pid != owner.process)
    return {*pid, kUnknownId};
  if (owner.process == kUnknownId && owner.thread != kUnknownId)
    if (const auto pid = lifetimes.pid_of_thread(owner.thread, event.time())) owner.process = *pid;
  return owner;
}

std::uint32_t Knowledge::process_of_stack(const Event &event, const Owner &owner, std::uint32_t asked) const {
  if (asked == kUnknownId && event.process_id() != kUnknownId) return event.process_id();
  const std::uint32_t thread = asked != kUnknownId ? asked : logger_of(event);
  const auto pid = thread != kUnknownId
                       ? survey_->lifetimes[event.machine()].pid_of_thread(thread, event.time())
                       : std::nullopt;
  return pid.value_or(owner.process);
}

std::uint32_t Knowledge::process_of_addresses(const Event &event, const Owner &owner) {
  if (const auto told = filter::state_of_provider(event)) return told->process;
  const HookRule *const rule = filter::rule_of(event);
  if (rule == nullptr) return owner.process;
  switch (rule->scope) {
  case Scope::process:
  case Scope::thread:
  case Scope::image:
  case Scope::payload_process: {
    filter::Position nobody_ran;
    const std::uint32_t pid = filter::claim_of(event, *rule, nobody_ran).pid();
    return pid != kUnknownId ? pid : owner.process;
  }
  default: return owner.process;
  }
}

const ProcessInstance *Knowledge::process_of(const Event &event) const {
  const filter::Lifetimes &lifetimes = survey_->lifetimes[event.machine()];
  return process(event.machine(), filter::named_process(event, event.time(), lifetimes), event.time());
}

const ProcessInstance *Knowledge::process(std::uint32_t machine, std::uint32_t pid, std::int64_t time) const {
  if (pid == kUnknownId || machine >= survey_->lifetimes.size()) return nullptr;
  const auto found = survey_->lifetimes[machine].process_at(pid, time);
  return found ? &survey_->lifetimes[machine].processes()[*found] : nullptr;
}

std::string_view Knowledge::file(std::uint32_t machine, std::uint64_t key, std::int64_t time) const {
  return machines_[machine].files.find(key, time);
}

bool Knowledge::append_registry_key(const Event &event, std::string &out) const {
  return append_key_of(event, event.time(), machines_[event.machine()].keys, out);
}

std::uint32_t Knowledge::image_at(std::uint32_t machine, std::uint32_t pid, std::int64_t time,
                                  std::uint64_t address) const {
  const profile::Images &images = machines_[machine].images;
  const std::uint32_t found = pid == kUnknownId ? profile::Images::kNone : images.find(pid, time, address);
  return found == profile::Images::kNone ? images.find_kernel(time, address) : found;
}

bool Knowledge::append_module(std::uint32_t machine, std::uint32_t pid, std::int64_t time,
                              std::uint64_t address, std::string &out) const {
  const profile::Images &images = machines_[machine].images;
  const std::uint32_t found = image_at(machine, pid, time, address);
  if (found == profile::Images::kNone) return false;
  out += profile::last_part(images[found].path);
  out += '+';
  schema::append_hex(out, address - images[found].base);
  return true;
}

Knowledge::Frame Knowledge::frame_at(std::uint32_t machine, std::uint32_t pid, std::int64_t time,
                                     std::uint64_t address, bool innermost) const {
  const std::uint64_t within = innermost || address == 0 ? address : address - 1;
  Frame frame{address, machine, innermost, image_at(machine, pid, time, within)};
  if (pid != kUnknownId) frame.method = machines_[machine].methods.find(pid, time, within);
  return frame;
}

void Knowledge::append_frame(const Frame &frame, const ModuleSymbols *symbols, SymbolNames &names,
                             std::string &out) const {
  const bool in_image = frame.image != profile::Images::kNone,
             in_method = frame.method != profile::Methods::kNone;
  if (!in_image && !in_method) return schema::append_hex(out, frame.address);
  std::uint64_t begin = 0;
  if (in_image) {
    out += profile::last_part(image_of(frame).path);
    begin = image_of(frame).base;
  }
  if (in_method) {
    const profile::Methods::Method &method = machines_[frame.machine].methods[frame.method];
    if (!in_image) out += method.module;
    if (in_image || !method.module.empty()) out += '!';
    out += base::at_most(method.name, base::kLongestName);
    begin = method.start;
  } else if (symbols != nullptr) {
    const std::uint64_t back = frame.innermost ? 0 : 1, at = frame.address - back - begin;
    if (at <= UINT32_MAX && symbols->lookup(static_cast<std::uint32_t>(at), names)) {
      out += '!';
      out += base::at_most(names.frames.front().function, base::kLongestName);
      begin += at - names.offset;
    }
  }
  out += '+';
  schema::append_hex(out, frame.address - begin);
}

std::int64_t Knowledge::own_time(const Event &event) {
  return event.has_time() ? event.header_time() : event.time();
}

stacks::Place Knowledge::place_of(const Event &event) {
  return {own_time(event), std::uint64_t{event.position().source} << 56 |
                               std::uint64_t{event.position().buffer} << kOffsetBits |
                               event.position().offset};
}

} // namespace etwrelog::pipeline
