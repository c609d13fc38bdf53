#include "export/json_lines.hpp"

#include "base/cut_text.hpp"
#include "etwrelog/kernel_events.hpp"
#include "export/event_columns.hpp"
#include "export/message.hpp"
#include "schema/json_sink.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

namespace etwrelog::pipeline {

using schema::append_hex;
using schema::append_unsigned;

namespace {

void put_names(std::string &out, std::string_view provider, const Guid &guid, std::string_view event) {
  out += ",\"provider\":";
  if (provider.empty()) {
    out += '"', schema::append_guid(out, guid), out += '"';
  } else {
    schema::append_json_string(out, shown_name(provider));
  }
  out += ",\"provider_id\":\"";
  schema::append_guid(out, guid);
  out += "\",\"event\":";
  schema::append_json_string(out, shown_name(event));
}

void append_id(std::string &out, std::uint32_t id) {
  if (id == kUnknownId)
    out += "null";
  else
    append_unsigned(out, id);
}

void put_id(schema::TextPen &pen, std::uint32_t id) {
  if (id == kUnknownId)
    pen.put("null");
  else
    put_unsigned(pen, id);
}

// What otel() calls its own: what one object has twice, readers lose.
constexpr std::string_view kOtelNames[] = {"etw.provider.name",
                                           "etw.provider.id",
                                           "etw.event.id",
                                           "etw.version",
                                           "etw.opcode",
                                           "etw.level",
                                           "etw.keywords",
                                           "etw.process.id",
                                           "etw.thread.id",
                                           "etw.processor",
                                           "etw.activity.id",
                                           "etw.related_activity.id",
                                           "truncated",
                                           "tail",
                                           "raw"};

// As tables call what has the name of a column.
std::vector<std::pair<std::string, std::string>> renamed_fields(const Schema &schema,
                                                                std::span<const std::string> joined) {
  std::vector<std::pair<std::string, std::string>> renamed;
  std::set<std::string> taken;
  for_each_top_field(schema, [&](std::size_t i) { taken.emplace(schema.fields[i].name); });
  for_each_top_field(schema, [&](std::size_t i) {
    const std::string name(schema.fields[i].name);
    if (std::ranges::find(kOtelNames, name) == std::end(kOtelNames) &&
        std::ranges::find(joined, name) == joined.end())
      return;
    std::string other;
    for (int number = 2; !taken.insert(other = fmt::format("{}#{}", name, number)).second;)
      ++number;
    auto &[from, to] = renamed.emplace_back();
    schema::append_json_string(from, name);
    schema::append_json_string(to, other);
  });
  return renamed;
}

// Gives members of the object that the text ends with their other names; not those of objects in it.
void rename_members(std::string &out, std::size_t start,
                    const std::vector<std::pair<std::string, std::string>> &renamed) {
  const std::string object = out.substr(start);
  out.resize(start);
  int depth = 0;
  for (std::size_t i = 0; i < object.size();) {
    const std::size_t begin = i;
    const char sign = object[i++];
    if (sign == '{' || sign == '[') ++depth;
    if (sign == '}' || sign == ']') --depth;
    if (sign != '"') {
      out += sign;
      continue;
    }
    while (object[i] != '"')
      i += object[i] == '\\' ? 2 : 1;
    const auto text = std::string_view(object).substr(begin, ++i - begin);
    const auto other =
        depth != 1 || object[i] != ':'
            ? renamed.end()
            : std::ranges::find(renamed, text, [](const auto &of) { return std::string_view(of.first); });
    out += other == renamed.end() ? text : other->second;
  }
}

} // namespace

JsonLines::JsonLines(const ExportSurvey &survey, const Decoders &decoders, const Clock &clock,
                     const Options &options)
    : survey_(survey), decoders_(decoders), clock_(clock), options_(options) {
  for (const Schema *schema : survey_.schemas.all()) {
    const std::string_view known = schema->provider_name.empty()
                                       ? survey_.schemas.provider_name(schema->provider)
                                       : schema->provider_name;
    put_names(names_.emplace_back(), known, schema->provider, schema->name);
    if (options_.profile == ExportProfile::otel) renamed_.push_back(renamed_fields(*schema, options_.joined));
  }
  for (const filter::Lifetimes &of_machine : survey.lifetimes) {
    processes_.emplace_back();
    for (const filter::ProcessInstance &instance : of_machine.processes())
      schema::append_json_string(processes_.back().emplace_back(), shown_name(instance.image_name));
  }
}

std::string_view JsonLines::process(const EventView &event, const Context &context) const {
  const std::uint32_t found = survey_.process_of(event, context.time, context.machine);
  return found == ExportSurvey::kNone ? std::string_view("null") : processes_[context.machine][found];
}

std::string_view shown_name(std::string_view utf8) {
  constexpr std::size_t kMost = 1024;
  return base::at_most(utf8, kMost);
}

void names_of(const SchemaCatalog &catalog, const EventView *event, const Schema *schema,
              std::string &provider, std::string &name) {
  const Guid guid = schema != nullptr ? schema->provider : event->provider();
  if (schema != nullptr) {
    provider =
        schema->provider_name.empty() ? catalog.provider_name(schema->provider) : schema->provider_name;
    name = schema->name;
  } else {
    catalog.append_name(*event, name);
    provider = event->has_hook()     ? std::string("Windows Kernel")
               : event->is_message() ? std::string("WPP")
                                     : std::string(catalog.provider_name(guid));
  }
  if (provider.empty()) provider = to_string(guid);
  if (schema == nullptr && name.starts_with(provider) && name.size() > provider.size())
    name.erase(0, provider.size() + 1);
  provider.resize(shown_name(provider).size());
  name.resize(shown_name(name).size());
}

void JsonLines::append_names(const EventView &event, std::string &out) const {
  std::string provider, name;
  names_of(survey_.schemas, &event, nullptr, provider, name);
  put_names(out, provider, event.provider(), name);
}

void JsonLines::fields(const EventView &event, const Schema *schema, std::string &out,
                       Outcome &outcome) const {
  const Bytes payload = event.payload();
  const std::size_t start = out.size();
  auto raw = [&] {
    out += "null,\"raw\":\"";
    schema::append_hex_bytes(out, payload);
    out += '"';
    outcome = {};
  };
  if (schema == nullptr) return raw();
  const DecodedSize size = decoders_.of(event, *schema).append_json(payload, out, options_.json);
  if (size.given_up) { // more text than a real event has
    out.resize(start);
    return raw();
  }
  if (!renamed_.empty() && !renamed_[schema->ordinal].empty())
    rename_members(out, start, renamed_[schema->ordinal]);
  outcome = {schema, size.covered, size.truncated, out.size()};
  if (size.truncated) out += ",\"truncated\":true";
  if (size.covered < payload.size()) {
    out += ",\"tail\":\"";
    schema::append_hex_bytes(out, payload.subspan(size.covered));
    out += '"';
  }
}

void JsonLines::members(const EventView &event, const Schema *schema, std::string &out,
                        Outcome &outcome) const {
  const std::size_t start = out.size();
  fields(event, schema, out, outcome);
  if (schema == nullptr || outcome.schema == nullptr) {
    out.erase(start, std::string_view("null").size());
    return;
  }
  // {"a":1},"tail":".." -> ,"a":1,"tail":".."
  const std::size_t close = outcome.fields_end - 1;
  out.erase(close, 1);
  if (close == start + 1)
    out.erase(start, 1);
  else
    out[start] = ',';
}

std::string JsonLines::message(const EventView &event, const Schema &schema) const {
  const Decoder &decoder = decoders_.of(event, schema);
  std::vector<FieldValue> values(decoder.value_count());
  values.resize(decoder.decode(event.payload(), values).values);
  if (!schema.message.empty()) return message_text(schema.message, schema, values);
  std::string text;
  for (const FieldValue &value : values) {
    if (text.size() > kLongestMessage) break;
    if (!text.empty()) text += ", ";
    text += value.name();
    text += '=';
    value.append_text(text);
  }
  text.resize(base::at_most(text, kLongestMessage).size());
  return text;
}

void JsonLines::plain(const EventView &event, const Context &context, const Schema *schema, std::string &out,
                      Outcome &outcome) const {
  {
    schema::TextPen pen(out);
    pen.put("{\"time\":\"");
    const std::int64_t filetime = clock_.to_filetime(context.time);
    if (!schema::put_filetime(pen, filetime)) put_signed(pen, filetime);
    pen.put("\",\"timestamp\":"), put_signed(pen, context.time);
    pen.put(",\"cpu\":"), put_unsigned(pen, context.processor);
    pen.put(",\"process_id\":"), put_id(pen, event.process_id());
    pen.put(",\"thread_id\":"), put_id(pen, event.thread_id());
    pen.put(",\"process\":"), pen.put_long(process(event, context));
    if (schema != nullptr)
      pen.put_long(names_[schema->ordinal]);
    else
      pen.flush(), append_names(event, out);
    pen.put(",\"id\":"), put_unsigned(pen, event.has_hook() ? 0u : event.id());
    pen.put(",\"version\":"), put_unsigned(pen, event.version());
    pen.put(",\"opcode\":"), put_unsigned(pen, event.opcode());
    pen.put(",\"level\":"), put_unsigned(pen, level_of(event, schema));
    pen.put(",\"keyword\":"), put_quoted_hex(pen, event.keyword());
  }
  if (event.is_event()) {
    if (const Guid activity = event.activity(); activity != Guid{})
      out += ",\"activity\":\"", schema::append_guid(out, activity), out += '"';
    if (const Guid related = event.related_activity(); related != Guid{})
      out += ",\"related_activity\":\"", schema::append_guid(out, related), out += '"';
  }
  out += ",\"fields\":";
  fields(event, schema, out, outcome);
  if (options_.messages && schema != nullptr && !schema->message.empty()) {
    out += ",\"message\":";
    schema::append_json_string(out, message(event, *schema));
  }
  out += end();
}

// The log data model of OpenTelemetry and its names for what an ETW header holds.
void JsonLines::otel(const EventView &event, const Context &context, const Schema *schema, std::string &out,
                     Outcome &outcome) const {
  struct Severity {
    unsigned number;
    std::string_view text;
  };
  constexpr Severity kSeverities[] = {{0, "LOG_ALWAYS"}, {21, "CRITICAL"}, {17, "ERROR"},
                                      {13, "WARNING"},   {9, "INFO"},      {5, "VERBOSE"}};
  const unsigned level = level_of(event, schema);
  const Severity severity = kSeverities[level < std::size(kSeverities) ? level : 5];
  std::string provider, name;
  names_of(survey_.schemas, &event, schema, provider, name);
  out += "{\"Timestamp\":";
  schema::append_signed(out, unix_nanoseconds(clock_.to_filetime(context.time)));
  out += ",\"SeverityNumber\":";
  append_unsigned(out, severity.number);
  out += ",\"SeverityText\":";
  schema::append_json_string(out, severity.text);
  if (options_.messages && schema != nullptr && !schema->message.empty()) {
    out += ",\"Body\":";
    schema::append_json_string(out, message(event, *schema));
  }
  out += ",\"EventName\":";
  schema::append_json_string(out, name);
  out += ",\"Attributes\":{\"etw.provider.name\":";
  schema::append_json_string(out, provider);
  out += ",\"etw.provider.id\":\"";
  schema::append_guid(out, event.provider());
  out += "\",\"etw.event.id\":";
  append_unsigned(out, event.has_hook() ? 0u : event.id());
  out += ",\"etw.version\":";
  append_unsigned(out, event.version());
  out += ",\"etw.opcode\":";
  append_unsigned(out, event.opcode());
  out += ",\"etw.level\":";
  append_unsigned(out, level);
  out += ",\"etw.keywords\":\"";
  append_hex(out, event.keyword());
  out += "\",\"etw.process.id\":";
  append_id(out, event.process_id());
  out += ",\"etw.thread.id\":";
  append_id(out, event.thread_id());
  out += ",\"etw.processor\":";
  append_unsigned(out, context.processor);
  if (const Guid activity = event.activity(); activity != Guid{})
    out += ",\"etw.activity.id\":\"", schema::append_guid(out, activity), out += '"';
  if (const Guid related = event.related_activity(); related != Guid{})
    out += ",\"etw.related_activity.id\":\"", schema::append_guid(out, related), out += '"';
  members(event, schema, out, outcome);
  out += end();
}

// plaso's JSON lines, which Timesketch reads too.
void JsonLines::timeline(const EventView &event, const Context &context, const Schema *schema,
                         std::string &out, Outcome &outcome) const {
  const std::int64_t filetime = clock_.to_filetime(context.time);
  std::string provider, name;
  names_of(survey_.schemas, &event, schema, provider, name);
  out += "{\"__container_type__\":\"event\",\"__type__\":\"AttributeContainer\",\"data_type\":\"windows:etl:"
         "event\","
         "\"date_time\":{\"__class_name__\":\"Filetime\",\"__type__\":\"DateTimeValues\",\"timestamp\":";
  schema::append_signed(out, filetime);
  out += "},\"timestamp\":";
  schema::append_signed(out, unix_ticks(filetime) / 10);
  out += ",\"datetime\":\"";
  if (!schema::append_filetime(out, filetime)) schema::append_signed(out, filetime);
  out += "\",\"timestamp_desc\":\"Event Time\",\"parser\":\"etwrelog\",\"source_short\":\"ETL\","
         "\"source_long\":\"Windows event trace\",\"message\":";
  std::string text = "[" + provider + "] " + name;
  if (schema != nullptr)
    if (const std::string what = message(event, *schema); !what.empty()) text += ": " + what;
  schema::append_json_string(out, text);
  out += ",\"provider_name\":";
  schema::append_json_string(out, provider);
  out += ",\"provider_identifier\":\"";
  schema::append_guid(out, event.provider());
  out += "\",\"event_name\":";
  schema::append_json_string(out, name);
  out += ",\"event_identifier\":";
  append_unsigned(out, event.has_hook() ? 0u : event.id());
  out += ",\"event_level\":";
  append_unsigned(out, level_of(event, schema));
  out += ",\"process_identifier\":";
  append_id(out, event.process_id());
  out += ",\"thread_identifier\":";
  append_id(out, event.thread_id());
  out += ",\"process_name\":";
  out += process(event, context);
  out += ",\"fields\":";
  fields(event, schema, out, outcome);
  out += end();
}

void JsonLines::format(const EventView &event, const Context &context, std::string &out,
                       Outcome &outcome) const {
  const Schema *const schema = survey_.schemas.find(event);
  switch (options_.profile) {
  case ExportProfile::etwrelog: return plain(event, context, schema, out, outcome);
  case ExportProfile::otel: return otel(event, context, schema, out, outcome);
  case ExportProfile::timeline: return timeline(event, context, schema, out, outcome);
  }
}

} // namespace etwrelog::pipeline
