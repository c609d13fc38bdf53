#include "filter/lifetimes.hpp"

#include "etwrelog/text.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace etwrelog::filter {

using kernel::Scope;

namespace {

std::optional<ProcessInstance> read_process(const EventView &event, std::span<const kernel::Field> fields) {
  kernel::FieldWalk walk(fields, event.payload(), event.pointer_size());
  const kernel::Field *field = nullptr;
  Bytes data;
  ProcessInstance process;
  bool has_id = false;
  while (walk.next(field, data)) {
    switch (field->role) {
    case kernel::Role::process_id:
      process.pid = load<std::uint32_t>(data.data());
      has_id = true;
      break;
    case kernel::Role::parent_id: process.parent = load<std::uint32_t>(data.data()); break;
    case kernel::Role::session_id: process.session = load<std::uint32_t>(data.data()); break;
    case kernel::Role::exit_status: process.exit_status = load<std::int32_t>(data.data()); break;
    case kernel::Role::image_name:
      process.image_name =
          field->type == kernel::FieldType::wstr ? utf8_from_utf16(data) : utf8_from_bytes(data);
      break;
    case kernel::Role::command_line: process.command_line = utf8_from_utf16(data); break;
    default: break;
    }
  }
  return has_id ? std::optional(std::move(process)) : std::nullopt;
}

// By the ids of Microsoft-Windows-Kernel-Process.
std::optional<StateOfProvider> state_by_id(std::uint16_t id) {
  constexpr std::uint8_t kRundownStart = 3;
  switch (id) {
  case 1: return StateOfProvider{Scope::process, kStart, kUnknownId};
  case 2: return StateOfProvider{Scope::process, kEnd, kUnknownId};
  case 3: return StateOfProvider{Scope::thread, kStart, kUnknownId};
  case 4: return StateOfProvider{Scope::thread, kEnd, kUnknownId};
  case 5: return StateOfProvider{Scope::image, kStart, kUnknownId};
  case 6: return StateOfProvider{Scope::image, kEnd, kUnknownId};
  case 15: return StateOfProvider{Scope::process, kRundownStart, kUnknownId};
  default: return std::nullopt;
  }
}

// As stacks are told apart (stacks/stack_events.hpp).
bool ends_in_kernel(const EventView &event, const FieldOffsets &at) {
  const unsigned size = event.pointer_size();
  const std::size_t bytes = event.payload().size();
  if (at.frames == FieldOffsets::kAbsent || bytes < at.frames + std::size_t{size}) return false;
  const std::size_t last = at.frames + ((bytes - at.frames) / size - 1) * size;
  return format::is_kernel_address(load_pointer(event.payload().data() + last, size), size);
}

} // namespace

std::optional<StateOfProvider> read_state_of_provider(const EventView &event) {
  std::optional<StateOfProvider> told = state_by_id(event.id());
  const provider::Layout *layout = told ? provider::find_kernel_layout(event) : nullptr;
  if (layout == nullptr) return std::nullopt;
  kernel::FieldWalk walk(layout->fields, event.payload(), event.pointer_size());
  const kernel::Field *field = nullptr;
  Bytes data;
  bool has_thread = false, has_process = false;
  while (walk.next(field, data)) {
    switch (field->role) {
    case kernel::Role::process_id:
      told->process = load<std::uint32_t>(data.data());
      has_process = true;
      break;
    case kernel::Role::thread_id:
      told->thread = load<std::uint32_t>(data.data());
      has_thread = true;
      break;
    case kernel::Role::image_base: told->image_base = kernel::field_value(data); break;
    default: break;
    }
  }
  return has_process && has_thread == (told->scope == Scope::thread) ? told : std::nullopt;
}

std::optional<std::uint32_t> read_network_process(const EventView &event) {
  const provider::Layout *layout = provider::find_kernel_layout(event);
  if (layout == nullptr || layout->fields.front().role != kernel::Role::process_id) return std::nullopt;
  const auto pid = FieldOffsets::u32(event.payload(), 0);
  return pid == kUnknownId ? std::nullopt : pid;
}

std::string last_part(std::string path) {
  path.erase(0, path.rfind('\\') + 1);
  return path;
}

void LifetimeRecords::add_state(const EventView &event, const StateOfProvider &told, std::int64_t time) {
  if (told.scope == Scope::thread) threads.push_back({time, told.thread, told.process, told.opcode, true});
  if (told.scope != Scope::process) return;
  std::optional<ProcessInstance> process = read_process(event, provider::find_kernel_layout(event)->fields);
  if (!process) return;
  process->image_name = last_part(std::move(process->image_name));
  processes.push_back({time, told.opcode, *std::move(process), true});
}

void LifetimeRecords::clear() {
  processes.clear();
  threads.clear();
  actors.clear();
  definitions.clear();
  switches.clear();
  has_stacks = has_switch_batches = has_unowned = has_stack_events = false;
  code_processes.clear();
}

void LifetimeRecords::add_hook(const EventView &event, std::int64_t time, const HookRule &rule) {
  const std::uint16_t hook = rule.hook;
  const FieldOffsets &at = rule.offsets(event.pointer_size());
  const auto opcode = static_cast<std::uint8_t>(hook);
  auto add_actor = [&](std::optional<std::uint32_t> subject, bool kernel_image,
                       bool subject_is_thread = false) {
    if (!says_causer(event) || !subject) return; // rundown: nobody caused it, and it has no stack
    actors.push_back({time, event.thread_id(), *subject, hook, kernel_image, subject_is_thread});
  };
  switch (rule.scope) {
  case Scope::process:
    if (const kernel::Layout *layout = kernel::find_layout(hook, event.version());
        layout != nullptr && opcode >= kStart && opcode <= kRundownEnd)
      if (std::optional<ProcessInstance> process = read_process(event, layout->fields)) {
        if (opcode == kStart || opcode == kEnd) add_actor(process->pid, false);
        processes.push_back({time, opcode, *std::move(process)});
      }
    break;
  case Scope::thread:
    if (opcode >= kStart && opcode <= kRundownEnd) {
      const Bytes payload = event.payload();
      const auto pid = FieldOffsets::u32(payload, at.process_id),
                 tid = FieldOffsets::u32(payload, at.thread_id);
      if (!pid || !tid) break;
      threads.push_back({time, *tid, *pid, opcode});
      if (opcode == kStart || opcode == kEnd) add_actor(pid, false);
    }
    break;
  case Scope::image: {
    const Bytes payload = event.payload();
    const auto base = FieldOffsets::pointer(payload, at.image_base, event.pointer_size());
    add_actor(FieldOffsets::u32(payload, at.process_id),
              base && format::is_kernel_address(*base, event.pointer_size()));
    break;
  }
  case Scope::payload_process:
    if (const auto pid = FieldOffsets::u32(event.payload(), at.process_id); pid && *pid != event.process_id())
      add_actor(pid, false);
    break;
  case Scope::payload_thread:
    if (const auto tid = FieldOffsets::u32(event.payload(), at.thread_id); tid && *tid != event.thread_id())
      add_actor(tid, false, true);
    break;
  case Scope::context_switch_batch: has_switch_batches = true; break;
  case Scope::stack_definition:
    if (const auto key = FieldOffsets::pointer(event.payload(), at.stack_key, event.pointer_size()))
      definitions.push_back({*key, time, ends_in_kernel(event, at)});
    break;
  default: break;
  }
}

void LifetimeRecords::append(LifetimeRecords &&later) {
  auto move_all = [](auto &to, auto &from) {
    // What is not used of that is never touched; to make room again and again is.
    if (to.size() + from.size() > to.capacity()) to.reserve(4 * (to.size() + from.size()));
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  };
  move_all(processes, later.processes);
  move_all(threads, later.threads);
  move_all(actors, later.actors);
  move_all(definitions, later.definitions);
  move_all(switches, later.switches);
  has_stacks = has_stacks || later.has_stacks;
  has_switch_batches = has_switch_batches || later.has_switch_batches;
  has_unowned = has_unowned || later.has_unowned;
  has_stack_events = has_stack_events || later.has_stack_events;
  code_processes.merge(later.code_processes);
}

namespace {

constexpr std::size_t kAhead = 8; // records of threads may be many more than a cache holds

// Places in `records`, by id and then by time; at one time by the rank of what happened, else as they stand.
// Those of an id nearly always stand in that order already, so that counting them is most of the work.
template <class Records, class Id, class Rank>
std::vector<std::uint32_t> by_id_and_time(const Records &records, Id id, Rank rank) {
  base::FlatMap<std::uint32_t> next; // of each id: first how many, then where its next one goes
  const auto fetch_ahead = [&](std::size_t i) {
    if (i + kAhead < records.size()) next.prefetch(id(records[i + kAhead]));
  };
  for (std::size_t i = 0; i < records.size(); ++i) {
    fetch_ahead(i);
    ++next[id(records[i])];
  }
  std::vector<std::uint32_t> ids;
  ids.reserve(next.size());
  next.for_each([&](std::uint32_t of, std::uint32_t) { ids.push_back(of); });
  std::ranges::sort(ids);
  std::uint32_t begin = 0;
  for (const std::uint32_t of : ids)
    begin += std::exchange(next[of], begin);
  std::vector<std::uint32_t> order(records.size());
  for (std::uint32_t i = 0; i < records.size(); ++i) {
    fetch_ahead(i);
    order[next[id(records[i])]++] = i;
  }
  const auto before = [&](std::uint32_t a, std::uint32_t b) {
    if (records[a].time != records[b].time) return records[a].time < records[b].time;
    return rank(records[a].opcode) < rank(records[b].opcode);
  };
  begin = 0;
  for (const std::uint32_t of : ids) {
    const auto end = next[of];
    const std::span<std::uint32_t> group(order.data() + begin, end - begin);
    if (!std::ranges::is_sorted(group, before)) std::ranges::stable_sort(group, before);
    begin = end;
  }
  return order;
}

} // namespace

Lifetimes::Lifetimes(std::span<const LifetimeRecords::Thread> threads, LifetimeRecords &&records,
                     std::span<const std::uint16_t> processors, bool one_stream)
    : definitions_(std::move(records.definitions)), actors_(std::move(records.actors)),
      has_stacks_(records.has_stacks), has_switch_batches_(records.has_switch_batches),
      has_unowned_(records.has_unowned), has_stack_events_(records.has_stack_events),
      code_processes_(std::move(records.code_processes)) {
  build_processes(std::move(records.processes));
  const auto of_provider = std::ranges::count_if(threads, &LifetimeRecords::Thread::of_provider);
  if (of_provider == 0 || static_cast<std::size_t>(of_provider) == threads.size()) {
    build_threads(threads);
  } else {
    std::vector<LifetimeRecords::Thread> both(threads.begin(), threads.end());
    prefer_kernel_logger(both);
    build_threads(both);
  }
  std::ranges::sort(definitions_);
  std::ranges::stable_sort(actors_, [](const auto &a, const auto &b) {
    return a.time != b.time ? a.time < b.time : a.tid < b.tid;
  });

  // Compact batches hide switches from us: a carried-over thread would be wrong, and worse than none.
  if (one_stream || has_switch_batches_ || records.switches.empty()) return;
  thread_at_start_.assign(processors.size(), kUnknownId);
  std::unordered_map<std::uint16_t, std::uint32_t> running;
  std::size_t next = 0;
  for (std::uint32_t buffer = 0; buffer < processors.size(); ++buffer) {
    auto [current, fresh] = running.try_emplace(processors[buffer], kUnknownId);
    thread_at_start_[buffer] = current->second;
    if (next < records.switches.size() && records.switches[next].buffer == buffer) {
      thread_at_start_[buffer] = records.switches[next].first_old;
      current->second = records.switches[next].last_new;
      ++next;
    }
  }
}

void Lifetimes::build_processes(std::vector<LifetimeRecords::Process> records) {
  lacks_processes_ = prefer_kernel_logger(records);
  // At the same time an end comes before a start of the same id: it is another process's.
  auto rank = [](std::uint8_t opcode) { return opcode == kEnd ? 0 : opcode == kStart ? 1 : opcode; };
  const std::vector<std::uint32_t> order = by_id_and_time(
      records, [](const auto &record) { return record.facts.pid; }, rank);
  for (const std::uint32_t at : order) {
    LifetimeRecords::Process &record = records[at];
    const bool same = !processes_.empty() && processes_.back().pid == record.facts.pid;
    const bool open = same && processes_.back().end == kForever;
    // A rundown of an open instance says nothing new. A start after a start, or after a rundown at start, is
    // a new process whose predecessor's end was lost.
    const bool joins = open && record.opcode != kStart;
    if (!joins) {
      ProcessInstance fresh = std::move(record.facts);
      if (record.opcode == kStart) {
        fresh.start = record.time;
        if (open) processes_.back().end = record.time;
      } else if (same) {
        fresh.start = processes_.back().end; // its start was lost; it cannot lie before its predecessor's end
      }
      if (record.opcode == kEnd) fresh.end = record.time;
      processes_.push_back(std::move(fresh));
      continue;
    }
    ProcessInstance &instance = processes_.back();
    if (record.opcode == kEnd) {
      instance.end = record.time;
      instance.exit_status = record.facts.exit_status;
    }
    if (instance.image_name.empty()) instance.image_name = std::move(record.facts.image_name);
    if (instance.command_line.empty()) instance.command_line = std::move(record.facts.command_line);
  }
  for (std::uint32_t i = 0; i < processes_.size(); ++i) {
    Range &range = instances_[processes_[i].pid];
    if (range.count++ == 0) range.first = i;
  }
}

void Lifetimes::build_threads(std::span<const LifetimeRecords::Thread> records) {
  const std::vector<std::uint32_t> order = by_id_and_time(
      records, [](const auto &record) { return record.tid; },
      [](std::uint8_t opcode) { return opcode == kEnd ? 0 : opcode; });
  std::uint32_t current = 0;
  Range *range = nullptr; // of the current thread
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i + kAhead < order.size()) __builtin_prefetch(&records[order[i + kAhead]]);
    const LifetimeRecords::Thread &record = records[order[i]];
    const bool same = range != nullptr && current == record.tid;
    if (!same) {
      current = record.tid;
      range = &(threads_[current] = {static_cast<std::uint32_t>(spans_.size()), 0});
    }
    const bool open = same && spans_.back().end == kForever;
    const bool joins = open && spans_.back().pid == record.pid && record.opcode != kStart;
    if (joins) {
      if (record.opcode == kEnd) spans_.back().end = record.time;
      continue;
    }
    Span fresh{kBeginning, kForever, record.pid};
    if (record.opcode == kStart)
      fresh.start = record.time;
    else if (same)
      fresh.start = spans_.back().end == kForever ? record.time : spans_.back().end;
    if (open) spans_.back().end = record.opcode == kStart ? record.time : fresh.start; // its own end was lost
    if (record.opcode == kEnd) fresh.end = record.time;
    spans_.push_back(fresh);
    ++range->count;
  }
}

std::optional<std::uint32_t> Lifetimes::process_at(std::uint32_t pid, std::int64_t time) const {
  const Range *range = instances_.find(pid);
  if (!range) return std::nullopt;
  const std::span later(processes_.data() + range->first + 1, range->count - 1);
  const auto behind = std::ranges::upper_bound(later, time, {}, &ProcessInstance::start);
  return range->first + static_cast<std::uint32_t>(behind - later.begin());
}

const Lifetimes::Span *Lifetimes::span_of(std::uint32_t tid, std::int64_t time) const {
  const Range *range = threads_.find(tid);
  if (!range) return nullptr;
  const std::span all(spans_.data() + range->first, range->count);
  const auto behind = std::ranges::upper_bound(all, time, {}, &Span::start);
  return behind == all.begin() ? nullptr : &*std::prev(behind);
}

std::optional<std::uint32_t> Lifetimes::pid_of_thread(std::uint32_t tid, std::int64_t time) const {
  // What a thread's end event is followed by under its id (the rest of its way out of the kernel is still
  // sampled) is its own, until the id is started anew.
  if (const Span *span = span_of(tid, time)) return span->pid;
  if (tid == 0) return kIdleProcess;
  return std::nullopt;
}

} // namespace etwrelog::filter
