// Names of event types: built-in for the kernel and .NET, learned from the trace for the rest (EventInfo
// records that a merge adds, EventSource manifests, TraceLogging schemas).
#pragma once

#include "etwrelog/schema.hpp"
#include "schema/type_counts.hpp"

#include <map>
#include <set>
#include <string>

namespace etwrelog::schema {

class EventNames {
public:
  // Whether learn() has anything to gain from the event. Cheap; asked of every event.
  [[nodiscard]] static bool teaches(const EventView &event);
  void learn(const EventView &event);
  void merge(const EventNames &other);

  // As PerfView shows it: "Windows Kernel/PerfInfo/Sample", "Provider/Task/Opcode"; the provider's GUID (or
  // its name where known) and "EventID(n)" where nothing is known.
  [[nodiscard]] std::string name(const EventType &type) const;

private:
  void learn_event_info(Bytes payload);
  void learn_manifest(const EventView &event);
  void learn_schema(const EventView &event);
  void add_chunk(const Guid &guid, unsigned chunks, unsigned chunk, std::string_view text);
  void read_manifest(const Guid &guid, std::string_view text);

  std::map<EventType, std::string> names_; // "Task/Opcode"
  std::map<Guid, std::string> providers_;
  std::set<EventType> from_schema_; // whose name a TraceLogging schema gave
  struct Manifest {
    std::map<unsigned, std::string> chunks;
    unsigned total = 0;
    std::size_t bytes = 0;
  };
  std::map<Guid, Manifest> manifests_; // those that come in several chunks, until they are whole
  std::size_t pending_bytes_ = 0;      // of all of them
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
// What PerfView, and with it `stats`, calls events of a kind of the kernel or .NET that Microsoft's
// documentation calls otherwise: "TcpIp/Recv" for "TcpIp/RecvIPV4"; empty for others. Conditions take both.
[[nodiscard]] std::string_view other_event_name(const Schema &kind);

} // namespace etwrelog::schema
