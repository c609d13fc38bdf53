#include "profile_pass/event_records.hpp"

#include "etwrelog/provider_events.hpp"
#include "etwrelog/text.hpp"
#include "filter/lifetimes.hpp"

#include <iterator>

namespace etwrelog::pipeline {

using kernel::Role;
using namespace profile;

namespace {

// What one event says, by the roles of its fields.
struct Facts {
  std::optional<std::uint32_t> pid, tid, time_stamp, age;
  std::optional<std::uint64_t> base, size;
  Guid guid;
  std::string name, command_line, path, thread_name;
};

std::string text_of(const kernel::Field &field, Bytes data) {
  return field.type == kernel::FieldType::astr ? utf8_from_bytes(data) : utf8_from_utf16(data);
}

Facts read_facts(std::span<const kernel::Field> fields, Bytes payload, unsigned pointer_size) {
  Facts facts;
  kernel::FieldWalk walk(fields, payload, pointer_size);
  const kernel::Field *field = nullptr;
  Bytes data;
  while (walk.next(field, data)) {
    const auto number = [&] { return kernel::field_value(data); };
    switch (field->role) {
    case Role::process_id: facts.pid = static_cast<std::uint32_t>(number()); break;
    case Role::thread_id: facts.tid = static_cast<std::uint32_t>(number()); break;
    case Role::image_base: facts.base = number(); break;
    case Role::image_size: facts.size = number(); break;
    case Role::image_time: facts.time_stamp = static_cast<std::uint32_t>(number()); break;
    case Role::image_name: facts.name = text_of(*field, data); break;
    case Role::command_line: facts.command_line = utf8_from_utf16(data); break;
    case Role::thread_name: facts.thread_name = utf8_from_utf16(data); break;
    case Role::file_name: facts.path = text_of(*field, data); break;
    default:
      if (field->type == kernel::FieldType::guid && data.size() == 16) facts.guid = load_guid(data.data());
      if (field->type == kernel::FieldType::u32 && std::string_view(field->name) == "Age")
        facts.age = static_cast<std::uint32_t>(number());
      break;
    }
  }
  return facts;
}

Bytes up_to_zero(Bytes text, std::size_t unit) {
  for (std::size_t i = 0; i + unit <= text.size(); i += unit)
    if (text[i] == 0 && (unit == 1 || text[i + 1] == 0)) return text.first(i);
  return text;
}

// Payloads of systems before Windows 7, which the table of layouts does not cover.
std::optional<Facts> read_old_image(const EventView &event) {
  const Bytes payload = event.payload();
  const unsigned p = event.pointer_size();
  Facts facts;
  const std::size_t name_at = event.version() == 0 ? p + 4u : 2 * p + 4u;
  if (payload.size() < name_at) return std::nullopt;
  facts.base = load_pointer(payload.data(), p);
  facts.size =
      event.version() == 0 ? load<std::uint32_t>(payload.data() + p) : load_pointer(payload.data() + p, p);
  facts.pid = event.version() == 0 ? event.process_id() : load<std::uint32_t>(payload.data() + 2 * p);
  facts.path = utf8_from_utf16(up_to_zero(payload.subspan(name_at), 2));
  return facts;
}

std::optional<Facts> read_old_process(const EventView &event) {
  const Bytes payload = event.payload();
  const unsigned p = event.pointer_size();
  const std::size_t sid_at = event.version() == 0 ? 2u * p : p + 16u;
  if (payload.size() < sid_at) return std::nullopt;
  Facts facts;
  facts.pid = event.version() == 0 ? static_cast<std::uint32_t>(load_pointer(payload.data(), p))
                                   : load<std::uint32_t>(payload.data() + p);
  const std::optional<std::size_t> sid = kernel::sid_size(payload.subspan(sid_at), p);
  if (sid) facts.name = utf8_from_bytes(up_to_zero(payload.subspan(sid_at + *sid), 1));
  return facts;
}

std::optional<Facts> read_event(const EventView &event, std::uint16_t hook) {
  const kernel::Layout *layout = kernel::find_layout(hook, event.version());
  if (layout == nullptr) return std::nullopt;
  return read_facts(layout->fields, event.payload(), event.pointer_size());
}

constexpr std::uint16_t kImageLoad = kernel::kHookImageLoad, kImageLoadNew = 0x140A, kImageUnload = 0x1402,
                        kImageRundown = 0x1403, kImageRundownEnd = 0x1404, kThreadSetName = 0x0548,
                        kSetInterval = 0x0F48, kCollectionStart = 0x0F49, kCollectionEnd = 0x0F4A;

std::optional<ImageRecord> image_of(Facts facts, Instant at) {
  if (!facts.pid || !facts.base || !facts.size) return std::nullopt;
  ImageRecord record;
  record.at = at;
  record.pid = *facts.pid;
  record.time_stamp = facts.time_stamp.value_or(0);
  record.base = *facts.base;
  record.size = *facts.size;
  record.path = std::move(facts.path);
  return record;
}

void add_image(const EventView &event, std::uint16_t hook, Instant at, StateRecords &records) {
  std::optional<Facts> facts = event.version() < 2 ? read_old_image(event) : read_event(event, hook);
  std::optional<ImageRecord> record = facts ? image_of(*std::move(facts), at) : std::nullopt;
  if (!record) return;
  record->leaves = hook == kImageUnload || hook == kImageRundownEnd;
  record->rundown = hook == kImageRundown || hook == kImageRundownEnd;
  records.images.push_back(*std::move(record));
}

void add_thread(const EventView &event, std::uint16_t hook, Instant at, StateRecords &records) {
  const Bytes payload = event.payload();
  if (payload.size() < 8) return;
  std::uint32_t pid = load<std::uint32_t>(payload.data()), tid = load<std::uint32_t>(payload.data() + 4);
  if (event.version() == 0) std::swap(pid, tid);
  records.threads.push_back({at, static_cast<std::uint8_t>(hook), tid, pid});
  if (std::optional<Facts> facts = read_event(event, hook); facts && !facts->thread_name.empty())
    records.thread_names.push_back({at, tid, std::move(facts->thread_name)});
}

} // namespace

void StateRecords::clear() {
  *this = {};
}

void StateRecords::append(StateRecords &&later) {
  const auto move_all = [](auto &to, auto &from) {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
    from.clear();
  };
  move_all(processes, later.processes);
  move_all(threads, later.threads);
  move_all(thread_names, later.thread_names);
  move_all(images, later.images);
  move_all(identities, later.identities);
  move_all(intervals, later.intervals);
  move_all(code.methods, later.code.methods);
  move_all(code.modules, later.code.modules);
  move_all(code.maps, later.code.maps);
  move_all(code.sources, later.code.sources);
}

void add_kernel_state(const EventView &event, std::uint16_t hook, Instant at, StateRecords &records) {
  switch (hook) {
  case 0x0301:
  case 0x0302:
  case 0x0303:
  case 0x0304:
    if (std::optional<Facts> facts = event.version() < 2 ? read_old_process(event) : read_event(event, hook);
        facts && facts->pid)
      records.processes.push_back({at, static_cast<std::uint8_t>(hook), *facts->pid, std::move(facts->name),
                                   std::move(facts->command_line)});
    break;
  case 0x0501:
  case 0x0502:
  case 0x0503:
  case 0x0504: add_thread(event, hook, at, records); break;
  case kThreadSetName:
    if (std::optional<Facts> facts = read_event(event, hook); facts && facts->tid)
      records.thread_names.push_back({at, *facts->tid, std::move(facts->thread_name)});
    break;
  case kImageLoad:
  case kImageLoadNew:
  case kImageUnload:
  case kImageRundown:
  case kImageRundownEnd: add_image(event, hook, at, records); break;
  case kSetInterval:
  case kCollectionStart:
  case kCollectionEnd:
    if (const Bytes payload = event.payload(); payload.size() >= 8) {
      using Of = profile::IntervalRecord::Of;
      records.intervals.push_back({at.time, load<std::uint32_t>(payload.data()),
                                   load<std::uint32_t>(payload.data() + 4),
                                   payload.size() >= 12 ? load<std::uint32_t>(payload.data() + 8) : 0,
                                   hook == kCollectionStart ? Of::start
                                   : hook == kSetInterval   ? Of::change
                                                            : Of::end});
    }
    break;
  default: break;
  }
}

void add_state_of_provider(const EventView &event, Instant at, StateRecords &records) {
  const std::optional<filter::StateOfProvider> told = filter::state_of_provider(event);
  if (!told) return;
  if (told->scope == kernel::Scope::thread) {
    records.threads.push_back({at, told->opcode, told->thread, told->process, true});
    return;
  }
  Facts facts =
      read_facts(provider::find_kernel_layout(event)->fields, event.payload(), event.pointer_size());
  if (told->scope == kernel::Scope::process) {
    records.processes.push_back(
        {at, told->opcode, told->process, filter::last_part(std::move(facts.name)), {}, true});
  } else if (std::optional<ImageRecord> record = image_of(std::move(facts), at)) {
    record->leaves = told->opcode == filter::kEnd;
    record->of_provider = true;
    records.images.push_back(*std::move(record));
  }
}

void StateRecords::settle() {
  filter::prefer_kernel_logger(processes);
  filter::prefer_kernel_logger(threads);
  filter::prefer_kernel_logger(images);
}

void add_identity(const EventView &event, Instant at, StateRecords &records) {
  constexpr std::uint8_t kImageId = 0,
                         kRsds = 36; // 37 is the managed PDB of precompiled code: not the native one
  if (event.opcode() != kImageId && event.opcode() != kRsds) return;
  const provider::Layout *layout = provider::find_layout(event);
  if (layout == nullptr) return;
  Facts facts = read_facts(layout->fields, event.payload(), event.pointer_size());
  if (!facts.base || !facts.pid) return;
  IdentityRecord record;
  record.at = at;
  record.pid = *facts.pid;
  record.base = *facts.base;
  record.time_stamp = facts.time_stamp.value_or(0);
  record.age = facts.age.value_or(0);
  record.guid = facts.guid;
  if (event.opcode() == kRsds) record.pdb_name = std::move(facts.path);
  records.identities.push_back(std::move(record));
}

} // namespace etwrelog::pipeline
