// The five kernel events that carry stacks: StackWalk with its frames, references to a key (kernel and user
// part), and the two definitions of a key; with the kernel's headers or, as programs that consume a session
// may write them again, with classic ones. Parsing, and building one from another.
#pragma once

#include "etwrelog/event.hpp"
#include "stacks/stack_table.hpp"

#include <bit>
#include <vector>

namespace etwrelog::stacks {

inline constexpr std::uint16_t kHookStackWalk = 0x1820, kHookKeyDelete = 0x1823, kHookKeyRundown = 0x1824,
                               kHookReferenceKernel = 0x1825, kHookReferenceUser = 0x1826;

enum class StackEventKind : std::uint8_t { none, walk, reference, definition };

[[nodiscard]] constexpr StackEventKind stack_event_kind(std::uint16_t hook) {
  switch (hook) {
  case kHookStackWalk: return StackEventKind::walk;
  case kHookReferenceKernel:
  case kHookReferenceUser: return StackEventKind::reference;
  case kHookKeyDelete:
  case kHookKeyRundown: return StackEventKind::definition;
  default: return StackEventKind::none;
  }
}
[[nodiscard]] StackEventKind classic_stack_event_kind(const EventView &event);

[[nodiscard]] inline StackEventKind stack_event_kind(const EventView &event) {
  if (event.has_hook()) return stack_event_kind(event.hook());
  return event.is_classic() ? classic_stack_event_kind(event) : StackEventKind::none;
}

// Rundowns of threads have no stack, nor do stacks.
[[nodiscard]] constexpr bool may_have_stack(std::uint16_t hook) {
  constexpr std::uint16_t kStackGroup = 0x18, kThreadRundown = 0x0503;
  return hook >> 8 != kStackGroup && hook != kThreadRundown;
}

// Of a reference: which part of a stack it is to.
[[nodiscard]] inline bool refers_to_kernel(const EventView &event) {
  return event.opcode() == (kHookReferenceKernel & 0xFF);
}

struct StackFields {
  std::int64_t event_time = 0; // walk and reference: of the event that the stack belongs to
  std::uint32_t process_id = kUnknownId, thread_id = kUnknownId; // walk and reference
  std::uint64_t key = 0;                                         // reference and definition
  Bytes frames;                                                  // walk and definition
};

// False when the payload is too short or its frames end inside an address: such an event is nobody's stack.
[[nodiscard]] bool parse_stack_event(const EventView &event, StackEventKind kind, StackFields &fields);

// Replaces `frames`.
void load_frames(Bytes from, unsigned pointer_size, std::vector<std::uint64_t> &frames);

// The frames where they stand if they can be read there, else in `copy`.
[[nodiscard]] inline Frames frames_in_place(Bytes from, unsigned pointer_size,
                                            std::vector<std::uint64_t> &copy) {
  if (pointer_size == 8 && std::endian::native == std::endian::little &&
      reinterpret_cast<std::uintptr_t>(from.data()) % alignof(std::uint64_t) == 0)
    return {reinterpret_cast<const std::uint64_t *>(from.data()), from.size() / 8};
  load_frames(from, pointer_size, copy);
  return copy;
}

// Stacks are told apart by whether their outermost frame is a kernel address: user stacks may hold a kernel
// address further in.
[[nodiscard]] inline bool is_kernel_stack(Frames frames, unsigned pointer_size) {
  return !frames.empty() && format::is_kernel_address(frames.back(), pointer_size);
}

// What a stack in the table is told apart by beside its frames.
[[nodiscard]] constexpr std::uint32_t stack_scope(unsigned pointer_size) {
  return pointer_size;
}

// The following write one event in the place of another, padded with zeros to 8 bytes, and return its size
// with the padding. The kind of header, its bytes, items between header and payload, time stamps and ids are
// those of `from`.
// `out` may be `from` itself or before it, even if the two overlap. `size` is as the functions behind give
// it, without padding.
//
// The key stands in the last bytes of a reference and is left open.
[[nodiscard]] std::size_t write_reference(std::uint8_t *out, const EventView &from, bool kernel,
                                          std::size_t size);
[[nodiscard]] std::size_t write_walk(std::uint8_t *out, const EventView &from, Frames frames,
                                     std::size_t size);
// `fields`: of `from`, a walk or reference. A walk that is larger than an event can be must not be written.
[[nodiscard]] inline std::size_t reference_event_size(const EventView &from, StackEventKind kind,
                                                      const StackFields &fields) {
  // Process and thread stand in front of the frames as they do in front of the key.
  return kind == StackEventKind::reference ? from.size()
                                           : from.size() - fields.frames.size() + from.pointer_size();
}
[[nodiscard]] inline std::size_t walk_event_size(const EventView &reference, std::size_t frames) {
  return reference.size() + (frames - 1) * reference.pointer_size();
}

// The following append one event, padded with zeros to 8 bytes, to `out`; false, and nothing appended, when
// it would not fit an event.
//
// A definition as the kernel writes it.
[[nodiscard]] bool append_definition(std::vector<std::uint8_t> &out, std::uint16_t hook,
                                     unsigned pointer_size, std::int64_t time, std::uint64_t key,
                                     Frames frames);

void store_key(std::uint8_t *at, std::uint64_t key, unsigned pointer_size);

// Bytes of the events in a buffer, padding included; with the kernel's header where `header` is not given.
[[nodiscard]] std::size_t walk_size(std::size_t frames, unsigned pointer_size);
[[nodiscard]] std::size_t walk_size(std::size_t frames, unsigned pointer_size, std::size_t header);
[[nodiscard]] std::size_t reference_size(unsigned pointer_size);
[[nodiscard]] std::size_t reference_size(unsigned pointer_size, std::size_t header);
[[nodiscard]] std::size_t definition_size(std::size_t frames, unsigned pointer_size);

} // namespace etwrelog::stacks
