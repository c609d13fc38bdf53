#include "stacks/stack_events.hpp"

#include "etwrelog/kernel_events.hpp"

#include <cassert>

namespace etwrelog::stacks {

namespace {

using kernel::Role;

// Where the fields are, from the layouts of their payloads.
struct Offsets {
  std::size_t event_time, process_id, thread_id, walk_frames;
  std::size_t reference_key, reference_end;
  std::size_t definition_key, definition_frames;
};

Offsets offsets_of(unsigned pointer_size) {
  auto at = [pointer_size](std::uint16_t hook, Role role) {
    return kernel::fixed_offset(kernel::find_layout(hook, 2)->fields, role, pointer_size).value();
  };
  Offsets o{};
  o.event_time = at(kHookStackWalk, Role::event_time);
  o.process_id = at(kHookStackWalk, Role::process_id);
  o.thread_id = at(kHookStackWalk, Role::thread_id);
  o.walk_frames = at(kHookStackWalk, Role::frames);
  o.reference_key = at(kHookReferenceUser, Role::stack_key);
  o.reference_end = o.reference_key + pointer_size;
  assert(o.reference_key == o.walk_frames); // what makes one of the other is the same up to there
  o.definition_key = at(kHookKeyDelete, Role::stack_key);
  o.definition_frames = at(kHookKeyDelete, Role::frames);
  return o;
}

const Offsets &offsets(unsigned pointer_size) {
  static const Offsets narrow = offsets_of(4), wide = offsets_of(8);
  return pointer_size == 8 ? wide : narrow;
}

std::size_t perfinfo_header(unsigned pointer_size) {
  const auto type = pointer_size == 8 ? format::HeaderType::perfinfo64 : format::HeaderType::perfinfo32;
  return format::kHeaderLayouts[static_cast<std::size_t>(type)].header_size;
}

// Room for an event of `size` bytes; null if there is no such event.
std::uint8_t *grow(std::vector<std::uint8_t> &out, std::size_t size) {
  if (size > format::kMaxEventSize) return nullptr;
  const std::size_t at = out.size();
  out.resize(at + align8(size)); // zeroes the padding
  return out.data() + at;
}

void store_frames(std::uint8_t *at, Frames frames, unsigned pointer_size) {
  if (pointer_size == 8) {
    if (!frames.empty()) std::memcpy(at, frames.data(), frames.size_bytes());
    return;
  }
  for (std::size_t i = 0; i < frames.size(); ++i)
    store(at + 4 * i, static_cast<std::uint32_t>(frames[i]));
}

// The event's first `kept` bytes, with another size and hook, or of a classic header the opcode for that.
void write_like(std::uint8_t *out, const EventView &from, std::uint16_t hook, std::size_t kept,
                std::size_t size) {
  if (out != from.bytes().data()) std::memmove(out, from.bytes().data(), kept);
  store(out + from.layout().size_at, static_cast<std::uint16_t>(size));
  if (from.has_hook())
    store(out + format::kHookAt, hook);
  else
    out[format::kClassicOpcodeAt] = static_cast<std::uint8_t>(hook);
  if (size % 8 != 0) std::memset(out + size, 0, align8(size) - size);
}

} // namespace

StackEventKind classic_stack_event_kind(const EventView &event) {
  static const Guid stacks = kernel::class_guid(kHookStackWalk);
  if (event.provider() != stacks) return StackEventKind::none;
  const auto hook = kernel::hook_of_classic(event);
  return hook ? stack_event_kind(*hook) : StackEventKind::none;
}

bool parse_stack_event(const EventView &event, StackEventKind kind, StackFields &fields) {
  const unsigned pointer_size = event.pointer_size();
  const Offsets &at = offsets(pointer_size);
  const Bytes payload = event.payload();
  std::size_t frames_at = 0;
  switch (kind) {
  case StackEventKind::none: return false;
  case StackEventKind::definition:
    if (payload.size() < at.definition_frames) return false;
    fields.key = load_pointer(payload.data() + at.definition_key, pointer_size);
    frames_at = at.definition_frames;
    break;
  case StackEventKind::reference:
    if (payload.size() != at.reference_end) return false;
    fields.key = load_pointer(payload.data() + at.reference_key, pointer_size);
    frames_at = payload.size();
    break;
  case StackEventKind::walk:
    if (payload.size() < at.walk_frames) return false;
    frames_at = at.walk_frames;
    break;
  }
  if (kind != StackEventKind::definition) {
    fields.event_time = load<std::int64_t>(payload.data() + at.event_time);
    fields.process_id = load<std::uint32_t>(payload.data() + at.process_id);
    fields.thread_id = load<std::uint32_t>(payload.data() + at.thread_id);
  }
  fields.frames = payload.subspan(frames_at);
  return fields.frames.size() % pointer_size == 0;
}

void load_frames(Bytes from, unsigned pointer_size, std::vector<std::uint64_t> &frames) {
  frames.resize(from.size() / pointer_size);
  if (pointer_size == 8) {
    if (!frames.empty()) std::memcpy(frames.data(), from.data(), frames.size() * 8);
    return;
  }
  for (std::size_t i = 0; i < frames.size(); ++i)
    frames[i] = load<std::uint32_t>(from.data() + 4 * i);
}

std::size_t write_reference(std::uint8_t *out, const EventView &from, bool kernel, std::size_t size) {
  write_like(out, from, kernel ? kHookReferenceKernel : kHookReferenceUser, size - from.pointer_size(), size);
  return align8(size);
}

std::size_t write_walk(std::uint8_t *out, const EventView &from, Frames frames, std::size_t size) {
  const unsigned pointer_size = from.pointer_size();
  const std::size_t frames_at = size - frames.size() * pointer_size;
  write_like(out, from, kHookStackWalk, frames_at, size);
  store_frames(out + frames_at, frames, pointer_size);
  return align8(size);
}

bool append_definition(std::vector<std::uint8_t> &out, std::uint16_t hook, unsigned pointer_size,
                       std::int64_t time, std::uint64_t key, Frames frames) {
  const Offsets &at = offsets(pointer_size);
  const auto type = pointer_size == 8 ? format::HeaderType::perfinfo64 : format::HeaderType::perfinfo32;
  const format::HeaderLayout &layout = format::kHeaderLayouts[static_cast<std::size_t>(type)];
  const std::size_t size = layout.header_size + at.definition_frames + frames.size() * pointer_size;
  std::uint8_t *event = grow(out, size);
  if (event == nullptr) return false;
  // Payload version 2, no PMC items: all that Windows 7 to 11 write.
  store(event, std::uint32_t{format::kMarkerStructured} << 24 | static_cast<std::uint32_t>(type) << 16 | 2u);
  store(event + layout.size_at, static_cast<std::uint16_t>(size));
  store(event + format::kHookAt, hook);
  store(event + layout.time_at, time);
  store_key(event + layout.header_size + at.definition_key, key, pointer_size);
  store_frames(event + layout.header_size + at.definition_frames, frames, pointer_size);
  return true;
}

void store_key(std::uint8_t *at, std::uint64_t key, unsigned pointer_size) {
  if (pointer_size == 8)
    store(at, key);
  else
    store(at, static_cast<std::uint32_t>(key));
}

std::size_t walk_size(std::size_t frames, unsigned pointer_size) {
  return walk_size(frames, pointer_size, perfinfo_header(pointer_size));
}
std::size_t walk_size(std::size_t frames, unsigned pointer_size, std::size_t header) {
  return align8(header + offsets(pointer_size).walk_frames + frames * pointer_size);
}
std::size_t reference_size(unsigned pointer_size) {
  return reference_size(pointer_size, perfinfo_header(pointer_size));
}
std::size_t reference_size(unsigned pointer_size, std::size_t header) {
  return align8(header + offsets(pointer_size).reference_end);
}
std::size_t definition_size(std::size_t frames, unsigned pointer_size) {
  return align8(perfinfo_header(pointer_size) + offsets(pointer_size).definition_frames +
                frames * pointer_size);
}

} // namespace etwrelog::stacks
