#include "passes/statistics.hpp"

#include <nlohmann/json.hpp>

// Names of members are those in the record: part of the format of archives.
namespace etwrelog {

inline void to_json(nlohmann::json &j, const Guid &g) {
  j = to_string(g);
}
inline void from_json(const nlohmann::json &j, Guid &g) {
  const std::optional<Guid> guid = parse_guid(j.get<std::string>());
  if (!guid) throw std::invalid_argument("no GUID");
  g = *guid;
}

namespace schema {
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(EventType, family, version, id, guid)
}
namespace filter {
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ProcessInstance, pid, parent, session, start, end, exit_status, image_name,
                                   command_line)
}

namespace pipeline {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(StackCounts, walks, kernel_references, user_references, key_deletes,
                                   key_rundowns, frames, distinct_stacks, distinct_keys_defined,
                                   distinct_keys_referenced, keys_never_defined, item_stacks, item_frames,
                                   clr_stacks, clr_frames)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ProcessStatistics, events, bytes, samples)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TypeStatistics, type, name, events, bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Statistics, processes, types, events, event_bytes, by_instance,
                                   unattributed_samples, samples_by_pid, images_by_pid, events_by_header_pid,
                                   buffer_flags, buffer_types, codecs, claimed_bytes, stacks, first_time,
                                   last_time)

std::string statistics_record(const Statistics &statistics) {
  return nlohmann::json(statistics).dump();
}

std::optional<Statistics> read_statistics_record(std::string_view record) {
  using nlohmann::json;
  // Turned into an integer, a number that is none may be out of range.
  auto integers_only = [](int, json::parse_event_t, const json &value) {
    if (value.is_number_float()) throw std::invalid_argument("a number that is no integer");
    return true;
  };
  try {
    Statistics s = json::parse(record, integers_only).get<Statistics>();
    if (s.by_instance.size() != s.processes.size()) return std::nullopt;
    return s;
  } catch (const std::exception &) { // of another version, or made by hand
    return std::nullopt;
  }
}

} // namespace pipeline
} // namespace etwrelog
