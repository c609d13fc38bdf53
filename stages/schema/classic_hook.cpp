// Which kernel event stands behind a classic header.
#include "etwrelog/kernel_events.hpp"

namespace etwrelog::kernel {
namespace {

// What there is of a payload by the fields of a layout.
struct Reading {
  bool whole = false; // it ends where a field does
  Bytes frames;       // of a stack

  Reading(const Layout &layout, Bytes payload, unsigned pointer_size) {
    FieldWalk walk(layout.fields, payload, pointer_size);
    const Field *field = nullptr;
    Bytes data;
    while (walk.next(field, data))
      if (field->role == Role::frames) frames = data;
    whole = walk.position() == payload.size();
  }
};

// Whether a payload behind a header of 32 bits is of 32 bits: if it ends where its fields do. An even number
// of frames ends there in either case; but the upper halves of addresses of 64 bits are no addresses.
bool is_narrow(const EventView &event, std::uint16_t hook) {
  const Layout *const layout = find_layout(hook, event.version());
  if (layout == nullptr) return true; // nothing of it is read
  const Reading narrow(*layout, event.payload(), 4);
  if (!narrow.whole) return false;
  if (narrow.frames.size() < 8) return true;
  const Reading wide(*layout, event.payload(), 8);
  if (!wide.whole || wide.frames.empty()) return true;
  const auto upper =
      load<std::uint32_t>(wide.frames.data() + 4); // of the innermost, which no walk gets wrong
  return upper >= 0x1'0000 && upper < 0xFFFF'0000;
}

} // namespace

std::optional<std::uint16_t> hook_of_classic(const EventView &event) {
  const Guid provider = event.provider();
  if (provider == format::kImageIdGuid) return std::nullopt; // most of the classic events that there are
  const auto hook = hook_of_class(provider, event.opcode());
  if (hook && event.pointer_size() == 4 && !is_narrow(event, *hook)) return std::nullopt;
  return hook;
}

} // namespace etwrelog::kernel
