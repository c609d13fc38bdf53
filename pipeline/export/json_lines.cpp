#include "export/json_lines.hpp"

#include "etwrelog/kernel_events.hpp"
#include "schema/json_sink.hpp"

namespace etwrelog::pipeline {

using schema::append_hex;
using schema::append_unsigned;

struct JsonLines::Kind {
  std::unique_ptr<const Decoder::Program> program;
  std::string name; // ,"provider":"..","provider_id":"..","event":".."
};

namespace {

void append_names(std::string &out, std::string_view provider, const Guid &guid, std::string_view event) {
  out += ",\"provider\":";
  if (provider.empty()) {
    out += '"', schema::append_guid(out, guid), out += '"';
  } else {
    schema::append_json_string(out, provider);
  }
  out += ",\"provider_id\":\"";
  schema::append_guid(out, guid);
  out += "\",\"event\":";
  schema::append_json_string(out, event);
}

void append_id(std::string &out, std::uint32_t id) {
  if (id == kUnknownId)
    out += "null";
  else
    append_unsigned(out, id);
}

Guid related_activity(const EventView &event) {
  ExtendedItems items = event.items();
  ExtendedItem item{};
  while (items.next(item))
    if (item.type == format::ItemType::related_activity && item.data.size() >= 16)
      return load_guid(item.data.data());
  return {};
}

// The text of a message: %1 is the first field; %n a line feed, %t a tab, %% a percent sign. What stands
// between ! signs behind a number is a format for printf and not needed.
void append_message(std::string &out, std::string_view message, const Schema &schema,
                    std::span<const FieldValue> values) {
  std::string text;
  for (std::size_t i = 0; i < message.size(); ++i) {
    if (message[i] != '%' || i + 1 == message.size()) {
      text += message[i];
      continue;
    }
    const char c = message[++i];
    if (c == 'n') text += '\n';
    if (c == 't') text += '\t';
    if (c == 'r') text += '\r';
    if (c == 'b') text += ' ';
    if (c < '0' || c > '9') {
      if (c == '%' || c == '.' || c == '!') text += c;
      continue;
    }
    std::size_t number = static_cast<std::size_t>(c - '0');
    if (i + 1 < message.size() && message[i + 1] >= '0' && message[i + 1] <= '9')
      number = number * 10 + static_cast<std::size_t>(message[++i] - '0');
    if (i + 1 < message.size() && message[i + 1] == '!')
      if (const std::size_t end = message.find('!', i + 2); end != std::string_view::npos) i = end;
    if (number == 0 || number > values.size()) continue;
    const FieldValue &value = values[number - 1];
    const auto integer = value.integer();
    const std::string name = integer && value.field->map >= 0
                                 ? schema.maps[static_cast<std::size_t>(value.field->map)]->text(*integer)
                                 : std::string();
    if (name.empty())
      value.append_text(text);
    else
      text += name;
  }
  out += ",\"message\":";
  schema::append_json_string(out, text);
}

} // namespace

JsonLines::JsonLines(const SchemaCatalog &catalog, const Clock &clock, const filter::Lifetimes &lifetimes,
                     const Options &options)
    : catalog_(catalog), clock_(clock), lifetimes_(lifetimes), options_(options) {
  kinds_.resize(catalog.all().size());
  for (const Schema *schema : catalog.all()) {
    Kind &kind = kinds_[schema->ordinal];
    kind.program = std::make_unique<const Decoder::Program>(*schema);
    const std::string_view known =
        schema->provider_name.empty() ? catalog.provider_name(schema->provider) : schema->provider_name;
    append_names(kind.name, known, schema->provider, schema->name);
  }
  for (const filter::ProcessInstance &process : lifetimes.processes())
    schema::append_json_string(processes_.emplace_back(), process.image_name);
}

JsonLines::~JsonLines() = default;

void JsonLines::head(const EventView &event, std::int64_t time, std::uint16_t processor,
                     std::string &out) const {
  out += "{\"time\":\"";
  const std::int64_t filetime = clock_.to_filetime(time);
  if (!schema::append_filetime(out, filetime)) schema::append_signed(out, filetime);
  out += "\",\"timestamp\":";
  schema::append_signed(out, time);
  out += ",\"cpu\":";
  append_unsigned(out, processor);
  const std::uint32_t pid = event.process_id();
  out += ",\"process_id\":";
  append_id(out, pid);
  out += ",\"thread_id\":";
  append_id(out, event.thread_id());
  out += ",\"process\":";
  const auto process = pid == kUnknownId ? std::nullopt : lifetimes_.process_at(pid, time);
  if (process && processes_[*process].size() > 2)
    out += processes_[*process];
  else
    out += "null";
}

void JsonLines::name(const EventView &event, const Schema *schema, std::string &out) const {
  if (schema != nullptr) {
    out += kinds_[schema->ordinal].name;
    return;
  }
  std::string whole;
  catalog_.append_name(event, whole);
  const Guid guid = event.provider();
  std::string provider(event.has_hook()     ? std::string_view("Windows Kernel")
                       : event.is_message() ? std::string_view("WPP")
                                            : catalog_.provider_name(guid));
  if (provider.empty()) provider = to_string(guid);
  std::string_view shown = whole;
  if (shown.starts_with(provider) && shown.size() > provider.size()) shown.remove_prefix(provider.size() + 1);
  append_names(out, provider, guid, shown);
}

void JsonLines::fields(const EventView &event, const Schema &schema, std::string &out,
                       Outcome &outcome) const {
  const Decoder::Program &program = *kinds_[schema.ordinal].program;
  const Bytes payload = event.payload();
  const std::size_t start = out.size();
  struct Try {
    bool whole, gave_up, odd;
    std::size_t at;
  };
  auto run = [&](unsigned pointer_size) {
    schema::JsonSink sink(out, program, pointer_size, options_.json);
    schema::Run<schema::JsonSink> loop(program, payload, pointer_size, sink);
    out += '{';
    const bool whole = loop.all();
    out += '}';
    return Try{whole, loop.gave_up(), sink.odd(), loop.position()};
  };
  Try done = run(event.pointer_size());
  // Some tools write payloads of 64-bit systems behind 32-bit headers: the layout that fits is the right one.
  if (event.type() == format::HeaderType::full32 && schema.origin == Origin::builtin &&
      (!done.whole || done.at < payload.size() || done.odd)) {
    const std::size_t end = out.size();
    const Try wide = run(8);
    const bool fits = wide.whole && wide.at == payload.size();
    if (fits && (!done.whole || done.at < payload.size() || !wide.odd)) {
      out.erase(start, end - start);
      done = wide;
    } else {
      out.resize(end);
    }
  }
  outcome = {&schema, done.at, !done.whole};
  if (done.gave_up) { // more text than a real event has
    out.resize(start);
    out += "null,\"raw\":\"";
    schema::append_hex_bytes(out, payload);
    out += '"';
    outcome = {nullptr, 0, false};
    return;
  }
  if (!done.whole) out += ",\"truncated\":true";
  if (done.whole && done.at < payload.size()) {
    out += ",\"tail\":\"";
    schema::append_hex_bytes(out, payload.subspan(done.at));
    out += '"';
  }
  if (options_.messages && !schema.message.empty()) {
    const Decoder decoder(schema, event.pointer_size());
    std::vector<FieldValue> values(decoder.value_count());
    values.resize(decoder.decode(payload, values).values);
    append_message(out, schema.message, schema, values);
  }
}

void JsonLines::format(const EventView &event, std::int64_t time, std::uint16_t processor, std::string &out,
                       Outcome &outcome) const {
  head(event, time, processor, out);
  const Schema *schema = catalog_.find(event);
  name(event, schema, out);
  out += ",\"id\":";
  append_unsigned(out, event.has_hook() ? 0u : event.id());
  out += ",\"version\":";
  append_unsigned(out, event.version());
  out += ",\"opcode\":";
  append_unsigned(out, event.opcode());
  out += ",\"level\":";
  append_unsigned(out, event.level());
  out += ",\"keyword\":\"";
  append_hex(out, event.keyword());
  out += '"';
  if (event.is_event()) {
    if (const Guid activity = event.activity(); activity != Guid{}) {
      out += ",\"activity\":\"", schema::append_guid(out, activity), out += '"';
    }
    if (event.has_items())
      if (const Guid related = related_activity(event); related != Guid{}) {
        out += ",\"related_activity\":\"", schema::append_guid(out, related), out += '"';
      }
  }
  out += ",\"fields\":";
  if (schema != nullptr) {
    fields(event, *schema, out, outcome);
  } else {
    outcome = {};
    out += "null,\"raw\":\"";
    schema::append_hex_bytes(out, event.payload());
    out += '"';
  }
  out += "}\n";
}

void JsonLines::format(const EventView &event, std::int64_t time, std::uint16_t processor,
                       std::string &out) const {
  Outcome outcome;
  format(event, time, processor, out, outcome);
}

} // namespace etwrelog::pipeline
