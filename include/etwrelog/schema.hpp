// What events say: their names, fields and values. A schema comes from the trace itself (EventInfo records of
// a merge, EventSource manifests, TraceLogging metadata), from files that the user gives, or from the
// built-in table of kernel and .NET events; a SchemaCatalog finds the one for an event, a Decoder reads
// payloads by it.
//
// Everything here is made for hostile input: a payload that is too short gives the fields that it holds, a
// schema that contradicts itself is refused, and neither memory nor text grows beyond fixed limits.
//
// A Schema, its fields and names live as long as a SchemaCatalog that has it, or a copy of that. What is
// const may be called on any thread.
#pragma once

#include "etwrelog/error.hpp"
#include "etwrelog/event.hpp"
#include "etwrelog/roles.hpp"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace etwrelog {

enum class FieldType : std::uint8_t {
  u8,
  u16,
  u32,
  u64,
  i8,
  i16,
  i32,
  i64,
  f32,
  f64,
  boolean,    // Field::size bytes: 1, 2, 4 or 8
  pointer,    // 4 or 8 bytes: the event's pointer size; SizeT too
  raw_time,   // i64, session clock
  filetime,   // i64, 100 ns since 1601, UTC
  systemtime, // 16 bytes
  guid,
  sid,       // revision, count, authority, sub-authorities
  token_sid, // of kernel events: a TOKEN_USER image, then the SID; or a zero dword
  astr,      // 8-bit string, Windows-1252
  utf8,      // 8-bit string, UTF-8
  wstr,      // UTF-16 string
  binary,
  structure, // its members are the next Field::members entries
};

// How a value is to be shown, where its type alone does not say it.
enum class Format : std::uint8_t {
  plain,
  hex,
  address,    // code or data
  ip_address, // u32: IPv4, binary of 16 bytes: IPv6
  port,       // u16 in network order
  characters, // u8 or u16: a character; an array of them: a string
  process_id,
  thread_id,
  ntstatus,
  win32_error,
  hresult,
  xml,
  json,
  socket_address,
  lznt1_text, // binary: u32 size, then that much UTF-16 text compressed with LZNT1
};

// How many bytes (characters of a UTF-16 string) a value has, or how many elements an array.
enum class Measure : std::uint8_t {
  natural,    // length: the type says it, strings end with a zero; count: a single value, no array
  constant,   // Field::size / Field::count
  by_field,   // the value of an earlier field: Field::size_field / Field::count_field
  prefix16,   // a u16 in front of the data; of strings in bytes
  prefix16be, // the same in network order
  prefix32,   // a u32 in front of the data
  to_end,     // up to the end of the payload
};

// Names of values, or of bits.
class ValueMap {
public:
  struct Entry {
    std::uint64_t value; // a negative one sign-extended
    std::string name;
  };
  std::string name;
  bool bits = false;
  std::vector<Entry> entries; // sorted by value

  // The name of a value of so many bytes, or the names of its bits with "|" between; empty if the map does
  // not cover it all.
  [[nodiscard]] std::string text(std::uint64_t value, std::size_t bytes) const;
};

struct Field {
  std::string_view name; // unique in its structure: a repeated name has "#2", "#3" behind it
  FieldType type = FieldType::u8;
  Format format = Format::plain;
  Role role = Role::none;
  Measure length = Measure::natural, repeat = Measure::natural;
  bool optional = false;   // an event may end before it
  bool zero_ends = false;  // a string of constant length ends at its first zero: what follows is no text
  std::uint16_t size = 0;  // Measure::constant
  std::uint16_t count = 1; // Measure::constant
  std::int16_t size_field = -1, count_field = -1; // index in Schema::fields
  std::uint16_t members =
      0;                 // of a structure: entries that follow and belong to it, those of inner ones included
  std::int16_t map = -1; // index in Schema::maps

  [[nodiscard]] bool is_array() const { return repeat != Measure::natural; }
  // Integers, booleans, pointers and times: FieldValue::integer() has a value if this is no array.
  [[nodiscard]] bool is_integer() const {
    return type <= FieldType::i64 || (type >= FieldType::boolean && type <= FieldType::filetime);
  }
  [[nodiscard]] bool is_signed() const {
    return (type >= FieldType::i8 && type <= FieldType::i64) || type == FieldType::raw_time ||
           type == FieldType::filetime;
  }
  // Shown as "0x1f": addresses, and integers of which it is said.
  [[nodiscard]] bool is_hexadecimal() const {
    return type == FieldType::pointer ||
           (type <= FieldType::i64 && (format == Format::hex || format == Format::address));
  }
  [[nodiscard]] bool is_string() const { return type >= FieldType::astr && type <= FieldType::wstr; }
};

enum class Origin : std::uint8_t { builtin, event_info, manifest, trace_logging, added };
[[nodiscard]] std::string_view origin_name(Origin origin); // "kernel", "event-info", "event-source", ...

// "u32", "wstr(16)", "pointer[Count]", "struct[]": the type of a field in words.
[[nodiscard]] std::string type_text(std::span<const Field> fields, std::size_t index);

struct Schema {
  Guid provider;        // or class GUID
  std::uint16_t id = 0; // 0 for classic and kernel events
  std::uint16_t version = 0;
  std::uint8_t opcode = 0;
  bool classic = false;           // found by class GUID, opcode and version
  std::string_view provider_name; // empty if not known
  std::string_view task, opcode_name;
  std::string_view name;    // "DiskIo/Read": task, opcode or symbol as far as known; never empty
  std::string_view message; // with %1, %2 for fields; may be empty
  Scope scope = Scope::header;
  Origin origin = Origin::builtin;
  std::span<const Field> fields; // stable while the catalog or a copy of it lives
  std::span<const std::shared_ptr<const ValueMap>> maps;
  std::uint32_t ordinal = 0; // dense: an index for the caller's own tables
  std::uint8_t level = 0;    // of a WPP message, whose header has none: what its format says; 0 if nothing
};

// The level of an event, of a WPP message that of its schema. `schema`: of the event, null if not known.
[[nodiscard]] inline std::uint8_t level_of(const EventView &event, const Schema *schema) {
  if (!event.is_message()) return event.level();
  return schema == nullptr ? std::uint8_t{0} : schema->level;
}

class Decoder;
struct Fit;      // for the library
struct Teaching; // too

struct JsonOptions {
  bool maps = false; // names of values and bits in the place of numbers, where a map has them
  // 31 in the place of "0x1f"; of up to 64 bits, which not every reader of JSON takes whole
  bool numbers = false;
};

// One top-level field of one event.
struct FieldValue {
  const Field *field = nullptr;
  Bytes data; // in the event: all elements; strings without terminator or prefix
  std::uint8_t pointer_size = 8;
  std::uint32_t count = 1; // of elements
  const Decoder *decoder = nullptr;
  Bytes payload;

  [[nodiscard]] std::string_view name() const { return field->name; }
  // Of a single integer, boolean, pointer or time; signed ones sign-extended, booleans 0 or 1.
  [[nodiscard]] std::optional<std::uint64_t> integer() const;
  [[nodiscard]] std::optional<double> real() const; // of f32, f64; none for NaN and infinities
  // The value as JSON: what `export` writes for it.
  void append_json(std::string &out, const JsonOptions &options = {}) const;
  // The same without quotes around a single string, for tables; arrays and structures stay JSON.
  void append_text(std::string &out, const JsonOptions &options = {}) const;
};

struct DecodedSize {
  std::size_t values = 0;  // stored in `out`
  std::size_t covered = 0; // bytes of the payload that fields cover
  bool truncated = false;  // the payload ends inside a field
  bool given_up = false;   // more than any real event says: then append_json() writes {} and covers nothing
};

// Compiled for one schema; any thread, no allocation in a call but for text. Needs the schema's catalog to
// live.
class Decoder {
public:
  explicit Decoder(const Schema &schema, unsigned pointer_size = 8);
  Decoder(Decoder &&) noexcept;
  Decoder &operator=(Decoder &&) noexcept;
  ~Decoder();

  [[nodiscard]] const Schema &schema() const;
  // Top-level values in order of the schema; what the payload lacks is absent. Needs room for
  // value_count() values, else the rest is left out.
  DecodedSize decode(Bytes payload, std::span<FieldValue> out) const;
  [[nodiscard]] std::size_t value_count() const;
  // One top-level field by its index in Schema::fields: O(1) behind fields of fixed size.
  [[nodiscard]] std::optional<FieldValue> field(Bytes payload, std::size_t index) const;
  // All fields as one JSON object, in one pass: {"Name":value,...}.
  DecodedSize append_json(Bytes payload, std::string &out, const JsonOptions &options = {}) const;

  struct Program;

private:
  friend struct FieldValue;
  friend struct Fit;
  std::unique_ptr<const Program> program_;
  unsigned pointer_size_;
};

// Which of two decoders of one schema fits the payload of an event: by the pointer size of its header; of a
// WPP message by what its options say; and of a classic event behind a 32-bit header by the layout that fits,
// as some tools write payloads of 64-bit systems there.
[[nodiscard]] const Decoder &fitting_decoder(const EventView &event, const Decoder &narrow,
                                             const Decoder &wide);

// What one event says: `for (const FieldValue &value : catalog.fields(event))`.
class FieldRange {
public:
  FieldRange() = default;
  [[nodiscard]] const FieldValue *begin() const { return values_.data(); }
  [[nodiscard]] const FieldValue *end() const { return values_.data() + values_.size(); }
  [[nodiscard]] bool empty() const { return values_.empty(); }

private:
  friend class SchemaCatalog;
  std::vector<FieldValue> values_;
  std::shared_ptr<const Decoder> decoder_;
};

// Schemas by event. Copies share until one of them changes; const calls: any thread.
class SchemaCatalog {
public:
  static const SchemaCatalog &builtin();

  // Reads an instrumentation manifest. It wins over the built-in table, not over the trace's own schemas.
  Result<void> add_manifest(std::string_view xml);
  // Reads a trace message format file: WPP messages by GUID and number.
  Result<void> add_tmf(std::string_view text);

  // Takes up the schema that the event carries or is; whether it was one. Schemas given out before stay
  // valid. EventSource manifests in several chunks are joined for each process and thread; their events come
  // in the order of time, which is not that of a file.
  bool learn(const EventView &event);
  // Whether learn() would look at the event: cheap, asked of every event of a pass.
  [[nodiscard]] static bool teaches(const EventView &event);
  // Whether learn() would find something new in the event.
  [[nodiscard]] bool learns(const EventView &event) const;
  // Schemas that contradicted themselves, were not whole or too many, as texts for a report.
  [[nodiscard]] std::span<const std::string> problems() const;

  [[nodiscard]] const Schema *find(const EventView &event) const noexcept; // O(1), no lock; null: not known
  [[nodiscard]] FieldRange fields(const EventView &event) const; // as long as the event; empty if not known
  // "Windows Kernel/PerfInfo/SampleProf", "Provider/Task/Opcode"; GUID and numbers where nothing is known.
  void append_name(const EventView &event, std::string &out) const;
  // Name of a provider or class, out of the trace or the built-in list; empty if not known.
  [[nodiscard]] std::string_view provider_name(const Guid &guid) const;
  // All that have this name, without regard to case; sorted. Programs may give theirs to several.
  [[nodiscard]] std::vector<Guid> providers_called(std::string_view name) const;

  [[nodiscard]] std::span<const Schema *const> all() const; // by ordinal

  SchemaCatalog();
  struct Impl;

private:
  friend struct Teaching;
  Impl &own();
  std::shared_ptr<Impl> impl_;
};

// One role over all event types, compiled; any thread, a few ns.
class RoleReader {
public:
  RoleReader(const SchemaCatalog &catalog, Role role);
  [[nodiscard]] std::optional<std::uint64_t> operator()(const EventView &event) const noexcept;
  // The bytes of the field: strings without terminator, arrays whole. Empty if the event has none.
  [[nodiscard]] Bytes bytes(const EventView &event) const noexcept;

private:
  struct Place {
    std::int32_t offset[2]; // for pointer sizes 4 and 8; -1: behind fields that vary; -2: no such field
    std::uint8_t size[2];
    std::int16_t field;
  };
  SchemaCatalog catalog_;
  std::vector<Place> places_;                            // by ordinal
  std::vector<std::shared_ptr<const Decoder>> decoders_; // by ordinal; only where fields vary
};

} // namespace etwrelog
