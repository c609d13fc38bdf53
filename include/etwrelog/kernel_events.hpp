// Kernel events by their hooks: names, whose they are, and the layouts of their payloads, which filter,
// statistics, profiles, archives and the generator read. Layouts are made of the built-in schemas
// (schema.hpp), the one description of these events, when the first is asked for; what is looked up once
// serves for good.
//
// Sources of the schemas: MOF classes of the NT Kernel Logger, TraceEvent's kernel parser, Geoff Chappell's
// hook tables; layouts of events that occur in real Windows 7 to 11 traces were checked against them. Windows
// 7 is the oldest covered.
//
// Plain functions over tables that never change: any thread, the first call included. What they return lives
// as long as the program; what is made of a payload (FieldWalk) as long as the payload. There are no errors:
// what is not known is null, zero or empty, what a payload is too short for is absent, and nothing outside it
// is read, whatever it holds. Nothing is allocated once the tables are made. Look-ups by hook take a few
// steps, fixed_offset() and FieldWalk one for each field. Sizes and offsets are in bytes, offsets from the
// begin of the payload.
#pragma once

#include "etwrelog/event.hpp"
#include "etwrelog/roles.hpp"

#include <optional>
#include <span>
#include <string_view>

namespace etwrelog::kernel {

// Hooks that code outside the table has to name.
inline constexpr std::uint16_t kHookSample = 0x0F2E, kHookStackWalk = 0x1820, kHookStackKeyDelete = 0x1823,
                               kHookStackKeyRundown = 0x1824, kHookStackKeyKernel = 0x1825,
                               kHookStackKeyUser = 0x1826, kHookFileRundown = 0x0424,
                               kHookKeyRundownBegin = 0x0918, kHookKeyRundownEnd = 0x0919;
// Of files and registry keys that are there: what it names is told, not that anything happened to it.
[[nodiscard]] constexpr bool is_name_rundown(std::uint16_t hook) {
  return hook == kHookFileRundown || hook == kHookKeyRundownBegin || hook == kHookKeyRundownEnd;
}

enum class FieldType : std::uint8_t {
  u8,
  u16,
  u32,
  u64,
  pointer,          // 4 or 8 bytes: the event's pointer size
  time,             // i64, raw session clock
  filetime,         // i64, 100 ns since 1601, UTC
  guid,             // or another 16 bytes that are one: an IPv6 address
  sid,              // TOKEN_USER image + SID, or 4 zero bytes; see sid_size()
  astr,             // 8-bit string and its terminating zero
  wstr,             // UTF-16 string and its terminating zero
  pointers,         // array of pointers up to the end of the payload
  rest,             // bytes without a public layout, up to the end
  counted_pointers, // u32 count, that many pointers
  offset_map,       // u16 count n, i32[n], i32[n]: IL to native code offsets
};

using etwrelog::Role;
using etwrelog::Scope;

struct Field {
  FieldType type;
  const char *name; // as Microsoft names it
  Role role = Role::none;
  std::uint16_t repeat = 1; // that many in a row
};

// Versions that have all fields with a role at the same place share the layout of the last of them.
struct Layout {
  std::uint16_t hook;
  std::uint8_t min_version; // applies from this payload version on, until a later row of the hook takes over
  std::span<const Field> fields; // an event may end before its last fields: they are absent then
};

struct HookInfo {
  std::uint16_t hook;
  Scope scope;
  const char *name; // "Process/Start", as PerfView shows it behind "Windows Kernel/"
  // find_layout() has it. Fields of the others are known to the schemas alone: they tell nothing about whose
  // the event is, and archives learn them from the events.
  bool has_layout = true;
};

// Null where nothing is known of the hook or of that version.
[[nodiscard]] const HookInfo *find_hook(std::uint16_t hook);
[[nodiscard]] const Layout *find_layout(std::uint16_t hook, std::uint16_t version);
[[nodiscard]] std::span<const HookInfo> all_hooks();
[[nodiscard]] std::span<const Layout> all_layouts();

// The scope of any event with a hook, documented or not: group rules for the whole groups 0x00 and 0x0B, else
// `header`.
[[nodiscard]] Scope scope_of(std::uint16_t hook);

// Loading an image: a hook among those of processes, of the class of images.
inline constexpr std::uint16_t kHookImageLoad = 0x030A;

// Class GUID of a hook: that of its group, but for kHookImageLoad; zero if not documented.
[[nodiscard]] Guid class_guid(std::uint16_t hook);
// Class GUID and name ("DiskIO") of a hook group; zero / empty if not documented.
[[nodiscard]] Guid group_guid(std::uint8_t group);
[[nodiscard]] std::string_view group_name(std::uint8_t group);
// The hook that a classic event of this class and opcode corresponds to (user-mode loggers write FULL headers
// with the kernel's class GUIDs).
[[nodiscard]] std::optional<std::uint16_t> hook_of_class(const Guid &guid, std::uint8_t opcode);

// The same of an event that is_classic(), but none where its header says 32 bits and its payload does not
// read so: programs of 32 bits pass on what a kernel of 64 bits wrote, and nothing can be told of that.
[[nodiscard]] std::optional<std::uint16_t> hook_of_classic(const EventView &event);
// Which kernel event it is, whatever its header; none of what is no kernel event.
[[nodiscard]] inline std::optional<std::uint16_t> hook_of(const EventView &event) {
  if (event.has_hook()) return event.hook();
  return event.is_classic() ? hook_of_classic(event) : std::nullopt;
}

// Bytes of one field of fixed size; 0 for those that vary.
[[nodiscard]] constexpr std::size_t fixed_size(FieldType type, unsigned pointer_size) {
  switch (type) {
  case FieldType::u8: return 1;
  case FieldType::u16: return 2;
  case FieldType::u32: return 4;
  case FieldType::u64:
  case FieldType::time:
  case FieldType::filetime: return 8;
  case FieldType::pointer: return pointer_size;
  case FieldType::guid: return 16;
  default: return 0;
  }
}

// Offset in the payload of the first field with this role, if only fields of fixed size stand before it.
[[nodiscard]] std::optional<std::size_t> fixed_offset(std::span<const Field> fields, Role role,
                                                      unsigned pointer_size);

// Walks the fields of one payload. Variable fields are measured on the way; what does not fit is absent.
class FieldWalk {
public:
  FieldWalk(std::span<const Field> fields, Bytes payload, unsigned pointer_size)
      : fields_(fields), payload_(payload), pointer_size_(pointer_size) {}

  // False when no further field fits. `data` holds all `repeat` elements; strings come without their
  // terminator.
  [[nodiscard]] bool next(const Field *&field, Bytes &data);
  [[nodiscard]] std::size_t position() const { return at_; } // bytes walked so far

private:
  std::span<const Field> fields_;
  Bytes payload_;
  unsigned pointer_size_;
  std::size_t at_ = 0;
};

// Size of a SID blob at the start of `data`; nullopt if it does not fit.
[[nodiscard]] std::optional<std::size_t> sid_size(Bytes data, unsigned pointer_size);

// The integer value of a u8/u16/u32/u64/pointer/time field as walked: little-endian, of `data`'s size, which
// is 1, 2, 4 or 8; of another size 0.
[[nodiscard]] std::uint64_t field_value(Bytes data);

} // namespace etwrelog::kernel
