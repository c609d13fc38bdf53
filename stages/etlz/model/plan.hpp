// How the payload of one kind of event is split into fields and how each field is predicted. A plan is stored
// in the segment, so that a decoder needs no knowledge of any event: the tables this one was built from may
// change freely.
#pragma once

#include "etlz/model/streams.hpp"
#include "etwrelog/event.hpp"
#include "etwrelog/kernel_events.hpp"

#include <array>
#include <string>

namespace etwrelog::etlz {

enum class Kind : std::uint8_t {
  number,        // 1, 2, 4 or 8 bytes
  guid,          // object of 16 bytes
  fixed,         // object of `width` bytes
  astr,          // object and a zero byte
  wstr,          // object and a zero unit
  rest,          // object up to the end of the payload
  sid,           // object of the size that its bytes tell
  stack,         // addresses of `width` bytes up to the end of the payload
  counted_stack, // u32 count, addresses of `width` bytes
  map,           // u16 count, i32[count], i32[count]
  items,         // extended data items: object; always the first field
  count_
};

// Objects are stored once and then named by number. The class tells how the content of a new one is coded.
enum class ObjectClass : std::uint8_t { none, guid, bytes, astr, wstr, stack64, stack32, map, items, count_ };

enum class Predictor : std::uint8_t {
  none,
  zero,
  previous, // the same field of the family's previous record
  match,    // of the record that the run of lead values suggests
  lookup,   // of the last record with the same lead value (the matching one while the match holds)
  step,     // previous + (lookup - the record before lookup): equal distances at other addresses
  field,    // field `arg` of this record, plus the difference they had in the previous record
  slot,     // the last value that any event put into slot `arg`
  thread,   // member `arg` of the entry of the thread that the event is about
  chain,    // previous + field `arg` of the previous record: address after start + size
  event,    // of a stack: the object that last went with an event like the one that the stack belongs to
  owner,    // of a stack: the one that last went with this kind of event of the same thread
  now,      // the event's own time
  count_
};

enum class Residual : std::uint8_t {
  planes,       // the value, byte by byte
  signed_token, // difference to `base`
  unsigned_token,
  address,      // 64 KiB page by number, offset in it byte by byte
  recent_event, // time of an event on the same processor, by how many events ago it was
  difference,   // to `base`, byte by byte (format version 4)
  count_
};

// Values that one event hands to the next of any kind.
enum class Slot : std::uint8_t {
  none,
  thread_id,
  process_id,
  image_base,
  image_size,
  image_time,
  method_id,
  module_id,
  file_object,
  stack_key,
  address, // of code that the event is about
  file_name,
  running, // thread on this processor
  readied, // thread that was made ready last
  count_
};

enum class ThreadMember : std::uint8_t {
  process_id,
  kernel_time,
  user_time,
  last_time,
  address,
  priority,
  count_
};

// On PlanField::slot: the value selects the thread entry; the number is a ThreadMember to fill instead of a
// slot.
inline constexpr std::uint8_t kThreadIs = 0x80, kMemberIs = 0x40, kSlotMask = 0x3F;

struct PlanField {
  Kind kind = Kind::number;
  std::uint16_t width = 0;
  Predictor first = Predictor::none; // none: the value is always written
  std::uint8_t first_arg = 0;
  Predictor second = Predictor::none; // tried when the first fails
  std::uint8_t second_arg = 0;
  Residual residual = Residual::planes; // of numbers that were not predicted
  Predictor base = Predictor::zero;     // what the difference is taken to
  std::uint8_t base_arg = 0;
  std::uint8_t slot = 0; // Slot to fill
  std::uint8_t text = 0; // stream group of new content
  // Not stored: for --explain.
  const char *name = "";

  [[nodiscard]] bool is_number() const { return kind == Kind::number; }
  [[nodiscard]] ObjectClass object_class() const {
    switch (kind) {
    case Kind::guid: return ObjectClass::guid;
    case Kind::fixed:
    case Kind::rest:
    case Kind::sid: return ObjectClass::bytes;
    case Kind::astr: return ObjectClass::astr;
    case Kind::wstr: return ObjectClass::wstr;
    case Kind::stack:
    case Kind::counted_stack: return width == 4 ? ObjectClass::stack32 : ObjectClass::stack64;
    case Kind::map: return ObjectClass::map;
    case Kind::items: return ObjectClass::items;
    default: return ObjectClass::none;
    }
  }
};

inline constexpr unsigned kMaxFields = 120;
inline constexpr unsigned kTextGroups = 8;
enum TextGroup : std::uint8_t {
  kTextOther,
  kTextPath,
  kTextType,
  kTextMethod,
  kTextSignature,
  kTextBytes,
  kTextItems
};

struct Plan {
  std::vector<PlanField> fields;   // in the order of the payload
  std::vector<std::uint8_t> order; // of coding; a permutation
  std::uint8_t lead = 0xFF;        // index of the lead field, or 0xFF
  std::string name;                // not stored

  // Sets the order: lead first, then threads, then the rest.
  void finish();
};

// The places of a payload's fields, filled by split_payload.
struct Split {
  std::uint16_t at[kMaxFields + 1];
  std::uint16_t length[kMaxFields + 1]; // of an object without count or terminator
  unsigned fields = 0;                  // how many fit
  unsigned started = 0;                 // how many of them SplitStart has
  std::uint16_t end = 0;                // bytes that they cover
};
// The leading fields of a plan whose size is fixed: found in one step where the payload holds them all.
struct SplitStart {
  std::array<std::uint16_t, kMaxFields> at{};
  unsigned fields = 0;
  std::uint16_t end = 0;
  bool all = false; // no field follows
};
[[nodiscard]] SplitStart split_start(const std::vector<PlanField> &fields);
// Of the fields that `start` covers, `at` and `length` are left unset: they are those of `start`.
void split_payload(const std::vector<PlanField> &fields, const SplitStart &start, Bytes payload,
                   Split &split);

// The plan of an event kind from the tables of known layouts; false where they have none.
[[nodiscard]] bool known_plan(const EventView &event, Plan &plan);

// A field as most are predicted.
[[nodiscard]] PlanField field_of(Kind kind, unsigned width, const char *name);

// Puts a field before all others.
void put_first(Plan &plan, const PlanField &field);

// The first `fields` fields of `full`, and one for the bytes behind them if `tail`.
[[nodiscard]] Plan cut_plan(const Plan &full, unsigned fields, bool tail);

void write_plan(std::vector<std::uint8_t> &out, const Plan &plan);
[[nodiscard]] bool read_plan(InStream &in, Plan &plan); // false on anything that the model could not run

} // namespace etwrelog::etlz
