// Names of event types: built-in for the kernel and .NET, learned from the trace for the rest (EventInfo
// records that a merge adds, EventSource manifests, TraceLogging schemas), else those of the built-in
// schemas.
#pragma once

#include "etwrelog/schema.hpp"
#include "schema/manifest_pieces.hpp"
#include "schema/type_counts.hpp"

#include <array>
#include <map>
#include <string>

namespace etwrelog::schema {

class EventNames {
public:
  // Whether learn() has anything to gain from the event. Cheap; asked of every event.
  [[nodiscard]] static bool teaches(const EventView &event);
  // `time`: matters for manifests in pieces alone.
  void learn(const EventView &event, std::int64_t time);
  void merge(const EventNames &other);
  // When all is learned and merged: reads the manifests that came in pieces.
  void settle();

  // As PerfView shows it: "Windows Kernel/PerfInfo/Sample", "Provider/Task/Opcode"; the provider's GUID (or
  // its name where known) and "EventID(n)" where nothing is known.
  [[nodiscard]] std::string name(const EventType &type) const;

private:
  void learn_event_info(Bytes payload);
  void learn_manifest(const EventView &event, std::int64_t time);
  void learn_schema(const EventView &event);
  void read_manifest(const Guid &guid, std::string_view text);

  // Where a name is from; of two, what stands behind wins, and of one kind the first in the file. All are
  // kept, so that it does not matter how the file was divided.
  enum class Source : std::uint8_t { manifest, event_info, trace_logging, count_ };
  using Names = std::array<std::string, static_cast<std::size_t>(Source::count_)>; // "Task/Opcode"
  void take(const EventType &type, Source from, std::string name);
  [[nodiscard]] static std::string_view text_of(const Names &names);

  std::map<EventType, Names> names_;
  std::map<Guid, std::string> providers_;
  ManifestPieces pieces_;
  // Items of TraceLogging events learned last: most events of a type repeat theirs.
  struct Learned {
    EventType type;
    std::vector<std::uint8_t> items;
  };
  std::vector<Learned> learned_;
};

// Another name by which people know a field of kernel events: what xperf and WPA call what Microsoft's
// documentation calls `field`; empty for most. Conditions and SQL take both.
[[nodiscard]] std::string_view other_field_name(std::string_view field);
// The type under which events of a kind are counted, if they are not the kernel's own.
[[nodiscard]] EventType type_of(const Schema &kind);
// What PerfView, and with it `stats`, calls events of a kind that Microsoft's documentation calls otherwise:
// "TcpIp/Recv" for "TcpIp/RecvIPV4"; empty for others. Conditions take both.
[[nodiscard]] std::string other_event_name(const Schema &kind);

} // namespace etwrelog::schema
