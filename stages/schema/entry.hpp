// One schema with everything that it refers to, and how the readers of schemas build it.
#pragma once

#include "schema/program.hpp"

#include <deque>

namespace etwrelog::schema {

// Names of providers are compared without regard to the case of ASCII letters.
[[nodiscard]] bool same_name(std::string_view a, std::string_view b);

struct Entry {
  Schema schema;
  std::vector<Field> fields;
  std::vector<std::shared_ptr<const ValueMap>> maps;
  std::deque<std::string> texts; // what the string_views point to

  Entry() = default;
  Entry(const Entry &) = delete;
  Entry &operator=(const Entry &) = delete;

  std::string_view keep(std::string text) { return texts.emplace_back(std::move(text)); }
  // Index of the new field, or nullopt if there are too many.
  std::optional<std::size_t> add(Field field, std::string name);
  std::int16_t add_map(std::shared_ptr<const ValueMap> map);
  // Why nobody can read an event by it: a length or count that no field in front of it tells, or too many of
  // them. Empty if there is nothing.
  [[nodiscard]] std::string flaw() const;
  // Names become unique in their structure; the schema gets its spans. Nothing is added afterwards.
  void seal();
  [[nodiscard]] std::size_t memory() const; // about
};

// Whether two fields read the same bytes and show them in the same way, under one name.
[[nodiscard]] bool same_shape(const Field &a, const Field &b);

// What the readers give back: entries, or why not.
using EntryPtr = std::unique_ptr<Entry>;

// What in and out types of TDH (tdh.h) and the kind of their container mean. False if nobody knows them.
[[nodiscard]] bool apply_tdh_type(Field &field, unsigned in_type, unsigned out_type);
// The same for TraceLogging: types as in the metadata, without flags.
[[nodiscard]] bool apply_trace_logging_type(Field &field, unsigned in_type, unsigned out_type);

// "Task/Opcode", as event names are shown: without "win:", "Info" and empty parts.
[[nodiscard]] std::string task_and_opcode(std::string_view task, std::string_view opcode);

// TRACE_EVENT_INFO and, of opcode 33, GUID + EVENT_MAP_INFO.
struct EventInfo {
  EntryPtr entry;
  std::uint32_t decoding_source = 0;
  Guid provider, event_class;
};
// What a record's reader asks of whoever keeps what it reads.
struct InfoKeeper {
  virtual ~InfoKeeper() = default;
  // The map of that name of the provider; made empty if it is not there yet.
  virtual std::shared_ptr<ValueMap> find(const Guid &provider, const std::string &name) = 0;
  virtual void took(std::size_t bytes) = 0; // of memory, by the entries of a map
  // Whether the record is to be read: not of a kind of event that is known already. Of the schema the key
  // alone is set.
  virtual bool wants(const Schema &key, std::uint32_t decoding_source) = 0;
};
[[nodiscard]] std::optional<EventInfo> read_event_info(Bytes payload, InfoKeeper &keeper,
                                                       std::string &problem);
[[nodiscard]] bool read_map_info(Bytes payload, InfoKeeper &keeper, std::string &problem);

// The schema item of one TraceLogging event.
[[nodiscard]] EntryPtr read_trace_logging(Bytes metadata, std::string &problem);
// The event's name in it, without its zero; none if the item ends before.
[[nodiscard]] std::optional<Bytes> trace_logging_name(Bytes metadata);

inline constexpr std::size_t kMaxProblems = 100; // texts about schemas; there may be a million reasons

// XML of EventSource and of instrumentation manifests.
struct ManifestProvider {
  Guid guid;
  std::string name;
  std::vector<EntryPtr> events;
};
// `problems`: which of its events cannot be read, and why; at most kMaxProblems.
[[nodiscard]] Result<std::vector<ManifestProvider>> read_manifest(std::string_view xml, Origin origin,
                                                                  std::vector<std::string> &problems);

// Message formats of WPP: each message by GUID and number.
struct TraceMessage {
  Guid guid;
  std::uint16_t number = 0;
  EntryPtr entry;
};
// `problems`: which of its messages cannot be read, and why; at most kMaxProblems.
[[nodiscard]] Result<std::vector<TraceMessage>> read_tmf(std::string_view text,
                                                         std::vector<std::string> &problems);

// The built-in schemas: what the tables in kernel_classes.cpp, kernel_providers.cpp and other_classes.cpp
// say, read once for the whole process.
struct BuiltinEntry {
  std::unique_ptr<Entry> entry;
  std::uint16_t last_version; // from schema.version on
};
[[nodiscard]] std::span<const BuiltinEntry> builtin_entries();
// The hook that events of this schema may have instead of class and opcode.
[[nodiscard]] std::optional<std::uint16_t> hook_of(const Schema &schema);

// The tables as text, and their notation, which notation.cpp describes.
[[nodiscard]] std::span<const std::string_view> builtin_tables();
[[nodiscard]] std::vector<BuiltinEntry> read_notation(std::string_view table);

} // namespace etwrelog::schema
