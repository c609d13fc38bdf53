// Every reader of schemas, and payloads against the schemas that come out. The input: a byte that says what
// it is, a u16 length, that many bytes of a schema, and the payload.
#include "etwrelog/schema.hpp"
#include "schema/encode_sink.hpp"
#include "schema/fitting_decoder.hpp"
#include "write/event_builder.hpp"

#include <cstdlib>

namespace {

using namespace etwrelog;

constexpr Guid kProvider = make_guid(0x11223344, 0x5566, 0x7788, 0x99aa, 0xbbccddeeff00);

// What its fields are shown as gives back every payload, but for what is named.
void give_back(const Decoder &decoder, Bytes payload, unsigned pointer_size) {
  std::vector<std::uint8_t> made;
  std::string scratch;
  schema::EncodeSink sink(payload, pointer_size, made, scratch);
  schema::Run<schema::EncodeSink> run(schema::program_of(decoder), payload, pointer_size, sink);
  if (!run.all() || !sink.lost().empty()) return;
  if (!std::ranges::equal(made, payload.first(run.position()))) std::abort();
}

void decode(const SchemaCatalog &catalog, Bytes payload) {
  const auto all = catalog.all();
  const std::size_t learned = all.size() - SchemaCatalog::builtin().all().size();
  for (std::size_t i = all.size() - std::min<std::size_t>(learned, 4); i < all.size(); ++i)
    for (const unsigned pointer_size : {4u, 8u}) {
      const Decoder decoder(*all[i], pointer_size);
      std::string text;
      (void)decoder.append_json(payload, text, {.maps = true});
      give_back(decoder, payload, pointer_size);
      std::vector<FieldValue> values(decoder.value_count());
      values.resize(decoder.decode(payload, values).values);
      for (const FieldValue &value : values) {
        text.clear();
        value.append_text(text);
        (void)value.integer();
      }
      (void)decoder.field(payload, all[i]->fields.size() / 2);
    }
}

void learn(SchemaCatalog &catalog, const std::vector<std::uint8_t> &bytes) {
  (void)for_each_event(
      bytes, [&](const EventView &event, std::int64_t, std::uint32_t) { (void)catalog.learn(event); });
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  if (size < 3) return 0;
  const std::size_t length =
      std::min<std::size_t>(load<std::uint16_t>(data + 1), std::min<std::size_t>(size - 3, 60'000));
  const Bytes schema(data + 3, length), payload(data + 3 + length, size - 3 - length);
  const std::string_view text(reinterpret_cast<const char *>(schema.data()), schema.size());
  SchemaCatalog catalog;
  std::vector<std::uint8_t> bytes;
  write::EventBuilder builder(bytes);
  write::EventFields fields;
  fields.provider = kProvider;
  switch (data[0] % 6) {
  case 0:
    builder.event(fields, 8, 1, 2, 3).item(format::ItemType::schema_tl, schema);
    (void)builder.finish();
    learn(catalog, bytes);
    break;
  case 1:
  case 2:
    builder.classic(format::kMetaDataGuid, data[0] % 6 == 1 ? 32 : 33, 0, 8, 1, 2, 3).bytes(schema);
    (void)builder.finish();
    learn(catalog, bytes);
    break;
  case 3: (void)catalog.add_manifest(text); break;
  case 4: (void)catalog.add_tmf(text); break;
  default: { // a built-in schema, whichever
    const auto all = catalog.all();
    const Decoder decoder(*all[(length + data[0]) % all.size()], data[0] % 2 == 0 ? 4 : 8);
    std::string out;
    (void)decoder.append_json(payload, out);
    give_back(decoder, payload, data[0] % 2 == 0 ? 4 : 8);
    return 0;
  }
  }
  decode(catalog, payload);
  return 0;
}
