#include "passes/statistics.hpp"

#include "base/json.hpp"

#include <cmath>

// The statistics record of archives, a format of its own: stages/etlz/spec.md describes it. The names below
// are what stands in files, whatever the members are called. Whoever changes their set or meaning, or what
// names of events look like, raises kRecordVersion; a reader counts anew where it meets another version than
// its own.
namespace etwrelog::pipeline {
namespace {

constexpr unsigned kRecordVersion = 1;

// Each `fields` lists the fields of one type, for reading (`S` is the type) and writing (const).
template <class S, class T>
concept Either = std::same_as<std::remove_const_t<S>, T>;

template <Either<StackCounts> S, class Visit> void fields(S &s, Visit &&visit) {
  visit("walks", s.walks);
  visit("kernel_references", s.kernel_references);
  visit("user_references", s.user_references);
  visit("key_deletes", s.key_deletes);
  visit("key_rundowns", s.key_rundowns);
  visit("frames", s.frames);
  visit("distinct_stacks", s.distinct_stacks);
  visit("distinct_keys_defined", s.distinct_keys_defined);
  visit("distinct_keys_referenced", s.distinct_keys_referenced);
  visit("keys_never_defined", s.keys_never_defined);
  visit("item_stacks", s.item_stacks);
  visit("item_frames", s.item_frames);
  visit("clr_stacks", s.clr_stacks);
  visit("clr_frames", s.clr_frames);
}

template <Either<ProcessInstance> S, class Visit> void fields(S &s, Visit &&visit) {
  visit("pid", s.pid);
  visit("parent", s.parent);
  visit("session", s.session);
  visit("start", s.start);
  visit("end", s.end);
  visit("exit_status", s.exit_status);
  visit("image_name", s.image_name);
  visit("command_line", s.command_line);
}

template <Either<ProcessStatistics> S, class Visit> void fields(S &s, Visit &&visit) {
  visit("events", s.events);
  visit("bytes", s.bytes);
  visit("samples", s.samples);
}

template <Either<TypeStatistics> S, class Visit> void fields(S &s, Visit &&visit) {
  visit("family", s.type.family);
  visit("version", s.type.version);
  visit("id", s.type.id);
  visit("guid", s.type.guid);
  visit("name", s.name);
  visit("events", s.events);
  visit("bytes", s.bytes);
}

template <Either<Statistics> S, class Visit> void fields(S &s, Visit &&visit) {
  visit("events", s.events);
  visit("event_bytes", s.event_bytes);
  visit("claimed_bytes", s.claimed_bytes);
  visit("first_time", s.first_time);
  visit("last_time", s.last_time);
  visit("buffer_flags", s.buffer_flags);
  visit("buffer_types", s.buffer_types);
  visit("codecs", s.codecs);
  visit("processes", s.processes);
  visit("by_process", s.by_instance);
  visit("samples_by_pid", s.samples_by_pid);
  visit("unattributed_samples", s.unattributed_samples);
  visit("images_by_pid", s.images_by_pid);
  visit("events_by_header_pid", s.events_by_header_pid);
  visit("types", s.types);
  visit("stacks", s.stacks);
}

using nlohmann::json;

template <class T> json written(const T &value);
template <class T> void read(const json &from, T &value);

// Maps are arrays of pairs, the kinds of events their numbers, GUIDs text.
template <class T> json written(const std::vector<T> &list) {
  json all = json::array();
  for (const T &item : list)
    all.push_back(written(item));
  return all;
}
template <class T> json written(const T &value) {
  if constexpr (std::is_same_v<T, Guid>) {
    return to_string(value);
  } else if constexpr (std::is_enum_v<T>) {
    return static_cast<unsigned>(value);
  } else if constexpr (requires { fields(value, [](const char *, auto &) {}); }) {
    json object = json::object();
    fields(value, [&object](const char *name, const auto &field) { object[name] = written(field); });
    return object;
  } else {
    return value;
  }
}

template <class T> void read(const json &from, std::vector<T> &list) {
  for (const json &item : from)
    read(item, list.emplace_back());
}
template <class T> void read(const json &from, T &value) {
  if constexpr (std::is_same_v<T, Guid>) {
    const std::optional<Guid> guid = parse_guid(from.get<std::string>());
    if (!guid) throw std::invalid_argument("no GUID");
    value = *guid;
  } else if constexpr (std::is_same_v<T, Family>) {
    const auto number = from.get<unsigned>();
    if (number > static_cast<unsigned>(Family::other)) throw std::invalid_argument("no family");
    value = static_cast<T>(number);
  } else if constexpr (requires { fields(value, [](const char *, auto &) {}); }) {
    fields(value, [&from](const char *name, auto &field) { read(from.at(name), field); });
  } else {
    from.get_to(value);
  }
}

} // namespace

std::int64_t recorded_duration(const Session &session) {
  return std::llround(session.seconds * 1e7); // which seconds were made of: the nearest is that
}

double seconds_of_duration(std::int64_t duration) {
  return static_cast<double>(duration) / 1e7;
}

// Beside the counts, and not among what `fields` names: a record without it is whole.
std::string statistics_record(const Statistics &statistics, const std::optional<Session> &session) {
  json record = written(statistics);
  record["record_version"] = kRecordVersion;
  if (session)
    record["recorded_by"] = {{"kind", static_cast<unsigned>(session->kind)},
                             {"name", session->name},
                             {"duration", recorded_duration(*session)},
                             {"events_lost", session->events_lost},
                             {"buffers_lost", session->buffers_lost}};
  return record.dump();
}

std::optional<Session> read_session_record(std::string_view record) {
  try {
    const json object = base::parse_whole_numbers(record);
    const json &from = object.at("recorded_by");
    Session session;
    const auto kind = from.at("kind").get<unsigned>();
    if (kind <= static_cast<unsigned>(SessionKind::merged)) session.kind = static_cast<SessionKind>(kind);
    session.name = from.at("name").get<std::string>();
    session.seconds = seconds_of_duration(from.at("duration").get<std::int64_t>());
    session.events_lost = from.at("events_lost").get<std::uint64_t>();
    session.buffers_lost = from.at("buffers_lost").get<std::uint64_t>();
    return session;
  } catch (const std::exception &) { // there is none, or it was made by hand
    return std::nullopt;
  }
}

std::optional<Statistics> read_statistics_record(std::string_view record) {
  try {
    const json object = base::parse_whole_numbers(record);
    if (object.at("record_version").get<unsigned>() != kRecordVersion) return std::nullopt;
    Statistics s;
    read(object, s);
    if (s.by_instance.size() != s.processes.size()) return std::nullopt;
    return s;
  } catch (const std::exception &) { // of another version, or made by hand
    return std::nullopt;
  }
}

} // namespace etwrelog::pipeline
