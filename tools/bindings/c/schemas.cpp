#include "handles.hpp"

#include "etwrelog/export.hpp"
#include "etwrelog/schema.hpp"

#include <algorithm>

namespace etwrelog::c {
namespace {

// What a decoder needs for events of one kind, made at the first of them.
struct Kind {
  explicit Kind(const Schema &of)
      : narrow(of, 4), wide(of, 8), provider(of.provider_name), name(of.name), task(of.task),
        opcode(of.opcode_name), message(of.message), values(wide.value_count()) {
    for (const Field &field : of.fields)
      names.emplace_back(field.name);
  }

  Decoder narrow, wide;
  std::string provider, name, task, opcode, message; // ended by a zero, as views are not
  std::vector<std::string> names;                    // by index in Schema::fields
  std::vector<FieldValue> values;
};

int origin_of(Origin origin) {
  switch (origin) {
  case Origin::event_info: return ETWR_ORIGIN_EVENT_INFO;
  case Origin::manifest: return ETWR_ORIGIN_MANIFEST;
  case Origin::trace_logging: return ETWR_ORIGIN_TRACE_LOGGING;
  case Origin::added: return ETWR_ORIGIN_ADDED;
  case Origin::builtin: break;
  }
  return ETWR_ORIGIN_BUILTIN;
}

} // namespace
} // namespace etwrelog::c

struct etwr_decoder {
  explicit etwr_decoder(const etwrelog::SchemaCatalog &known) : catalog(known) {}

  etwrelog::SchemaCatalog catalog;                       // shares
  std::vector<std::unique_ptr<etwrelog::c::Kind>> kinds; // by ordinal
  etwrelog::c::Kind *current = nullptr;
  const etwrelog::Decoder *layout = nullptr; // of the current event
  etwrelog::Bytes payload;
  etwr_decoded decoded{};
  std::vector<etwr_field> fields; // of the current event, made when asked for, as are these
  std::vector<std::string> texts;
  std::vector<bool> has_text;
  std::string json;
};

namespace etwrelog::c {
namespace {

Kind &kind_of(etwr_decoder &decoder, const Schema &schema) {
  if (schema.ordinal >= decoder.kinds.size()) decoder.kinds.resize(schema.ordinal + 1);
  std::unique_ptr<Kind> &kind = decoder.kinds[schema.ordinal];
  if (!kind) kind = std::make_unique<Kind>(schema);
  return *kind;
}

void decode(etwr_decoder &decoder, const EventView &event, const Schema &schema) {
  Kind &kind = kind_of(decoder, schema);
  decoder.payload = event.payload();
  decoder.layout = &fitting_decoder(event, kind.narrow, kind.wide);
  const DecodedSize size = decoder.layout->decode(decoder.payload, kind.values);
  decoder.current = &kind;
  decoder.has_text.assign(size.values, false);
  if (decoder.texts.size() < size.values)
    decoder.texts.resize(size.values), decoder.fields.resize(size.values);
  etwr_decoded &out = decoder.decoded;
  out.struct_size = sizeof out;
  out.provider = kind.provider.c_str();
  out.name = kind.name.c_str();
  out.task = kind.task.c_str();
  out.opcode = kind.opcode.c_str();
  out.message = kind.message.c_str();
  out.origin = origin_of(schema.origin);
  out.field_count = size.values;
  out.covered = size.covered;
  out.truncated = size.truncated ? 1 : 0;
}

void fill(etwr_decoder &decoder, std::size_t index) {
  const Kind &kind = *decoder.current;
  const FieldValue &value = kind.values[index];
  const Schema &schema = kind.wide.schema();
  std::string &text = decoder.texts[index];
  if (!decoder.has_text[index]) {
    text.clear();
    value.append_text(text);
    decoder.has_text[index] = true;
  }
  etwr_field &field = decoder.fields[index];
  field = {};
  field.struct_size = sizeof field;
  field.name = kind.names[static_cast<std::size_t>(value.field - schema.fields.data())].c_str();
  field.text = text.c_str();
  field.is_signed = value.field->is_signed() ? 1 : 0;
  if (const std::optional<std::uint64_t> integer = value.integer()) {
    field.value = ETWR_VALUE_INTEGER;
    field.integer = *integer;
  } else if (const std::optional<double> real = value.real()) {
    field.value = ETWR_VALUE_REAL;
    field.real = *real;
  }
  field.count = value.count;
  field.data = value.data.data();
  field.size = value.data.size();
}

} // namespace
} // namespace etwrelog::c

using namespace etwrelog;

etwr_error *etwr_schemas_collect(const etwr_trace *trace, const etwr_run *run, etwr_schemas **schemas) {
  return c::guarded([&]() -> etwr_error * {
    if (schemas == nullptr) return c::usage("etwr_schemas_collect: no result");
    const c::Run in_run(run);
    if (in_run.stopped()) return c::make_error(ETWR_ERROR_CANCELLED, "stopped on request");
    auto made = std::make_unique<etwr_schemas>(etwr_schemas{SchemaCatalog::builtin()});
    if (trace != nullptr) {
      Result<SchemaCatalog> collected = collect_schemas(trace->trace, made->catalog, in_run.options());
      if (!collected) return c::make_error(std::move(collected).error());
      made->catalog = *std::move(collected);
      in_run.tell_warnings(&trace->trace);
    }
    *schemas = made.release();
    return nullptr;
  });
}

etwr_error *etwr_schemas_add(etwr_schemas *schemas, const char *path) {
  return c::guarded([&]() -> etwr_error * {
    if (schemas == nullptr || path == nullptr) return c::usage("etwr_schemas_add: no schemas or no path");
    SchemaCatalog changed = schemas->catalog; // a failure leaves the old one
    Result<std::size_t> added = add_schema_files(changed, path);
    if (!added) return c::make_error(std::move(added).error());
    schemas->catalog = std::move(changed);
    return nullptr;
  });
}

void etwr_schemas_free(etwr_schemas *schemas) {
  delete schemas;
}

std::size_t etwr_event_name(const etwr_schemas *schemas, const etwr_event *event, char *text,
                            std::size_t size) {
  std::size_t length = 0;
  etwr_error_free(c::guarded([&]() -> etwr_error * {
    std::string name;
    schemas->catalog.append_name(c::view_of(*event), name);
    length = name.size();
    if (size == 0) return nullptr;
    const std::size_t fits = std::min(length, size - 1);
    std::memcpy(text, name.data(), fits);
    text[fits] = 0;
    return nullptr;
  }));
  return length;
}

etwr_error *etwr_decoder_new(const etwr_schemas *schemas, etwr_decoder **decoder) {
  return c::guarded([&]() -> etwr_error * {
    if (schemas == nullptr || decoder == nullptr)
      return c::usage("etwr_decoder_new: no schemas or no result");
    *decoder = new etwr_decoder(schemas->catalog);
    return nullptr;
  });
}

void etwr_decoder_free(etwr_decoder *decoder) {
  delete decoder;
}

int etwr_decode(etwr_decoder *decoder, const etwr_event *event, const etwr_decoded **decoded,
                etwr_error **error) {
  decoder->current = nullptr;
  etwr_error *failed = c::guarded([&]() -> etwr_error * {
    const EventView view = c::view_of(*event);
    const Schema *schema = decoder->catalog.find(view);
    if (schema != nullptr) c::decode(*decoder, view, *schema);
    return nullptr;
  });
  if (failed != nullptr) decoder->current = nullptr;
  if (error != nullptr)
    *error = failed;
  else
    etwr_error_free(failed);
  if (decoder->current == nullptr) return 0;
  if (decoded != nullptr) *decoded = &decoder->decoded;
  return 1;
}

const etwr_field *etwr_field_at(etwr_decoder *decoder, std::size_t index) {
  if (decoder->current == nullptr || index >= decoder->decoded.field_count) return nullptr;
  etwr_error *failed = c::guarded([&]() -> etwr_error * {
    c::fill(*decoder, index);
    return nullptr;
  });
  if (failed == nullptr) return &decoder->fields[index];
  etwr_error_free(failed);
  return nullptr;
}

const char *etwr_decoded_json(etwr_decoder *decoder) {
  etwr_error *failed = c::guarded([&]() -> etwr_error * {
    decoder->json.clear();
    if (decoder->current != nullptr)
      decoder->layout->append_json(decoder->payload, decoder->json);
    else
      decoder->json = "{}";
    return nullptr;
  });
  if (failed == nullptr) return decoder->json.c_str();
  etwr_error_free(failed);
  return nullptr;
}
