// Conditions on fields, and events that they are asked of. The input: a byte, a u16 length, that many bytes
// of a condition, and a payload: of an event of a kind of the kernel that the byte chooses, and of a
// TraceLogging event with fields of many types.
#include "etwrelog/kernel_events.hpp"
#include "where/condition.hpp"
#include "write/event_builder.hpp"

#include <cstdlib>

namespace {

using namespace etwrelog;

constexpr Guid kProvider = make_guid(0x11223344, 0x5566, 0x7788, 0x99aa, 0xbbccddeeff00);

class Nowhere final : public where::Surroundings {
public:
  [[nodiscard]] std::string_view process_name(const Event &) const override { return "a.exe"; }
  void names(const Event *, const Schema *schema, std::string &provider, std::string &name) const override {
    provider = "P";
    name = schema != nullptr ? std::string(schema->name) : "E";
  }
};

// E { n: u32, t: wstr, x: hex32, f: double, g: guid, w: filetime, s: { b: u8 }, a: u16[], z: sid }
constexpr std::uint8_t kMetadata[] = {0, 0,    0,   'E', 0,  'n', 0,   8,  't',  0,   1,  'x',
                                      0, 20,   'f', 0,   12, 'g', 0,   15, 'w',  0,   17, 's',
                                      0, 0x98, 1,   'b', 0,  4,   'a', 0,  0x46, 'z', 0,  19};

std::vector<std::uint8_t> events(std::uint8_t which, Bytes payload) {
  static const std::vector<std::pair<std::uint16_t, std::uint8_t>> hooks = [] {
    std::vector<std::pair<std::uint16_t, std::uint8_t>> all;
    for (const Schema *schema : SchemaCatalog::builtin().all())
      if (const auto hook = kernel::hook_of_class(schema->provider, schema->opcode); hook && schema->classic)
        all.emplace_back(*hook, static_cast<std::uint8_t>(schema->version));
    return all;
  }();
  std::vector<std::uint8_t> bytes;
  write::EventBuilder builder(bytes);
  const auto &[hook, version] = hooks[(which * 7u + payload.size()) % hooks.size()];
  builder.system(hook, version, which % 2 == 0 ? 8 : 4, 1, 2, 3).bytes(payload);
  (void)builder.finish();
  std::vector<std::uint8_t> metadata(std::begin(kMetadata), std::end(kMetadata));
  store(metadata.data(), static_cast<std::uint16_t>(metadata.size()));
  write::EventFields fields;
  fields.provider = kProvider;
  builder.event(fields, which % 2 == 0 ? 8 : 4, 1, 2, 3)
      .item(format::ItemType::schema_tl, metadata)
      .bytes(payload);
  (void)builder.finish();
  return bytes;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  if (size < 3) return 0;
  const std::size_t length = std::min<std::size_t>(load<std::uint16_t>(data + 1), size - 3);
  const std::string_view text(reinterpret_cast<const char *>(data + 3), length);
  const Bytes payload =
      Bytes(data, size).subspan(3 + length).first(std::min<std::size_t>(size - 3 - length, 8192));
  const std::vector<std::uint8_t> bytes = events(data[0], payload);
  SchemaCatalog catalog;
  (void)for_each_event(
      bytes, [&](const EventView &event, std::int64_t, std::uint32_t) { (void)catalog.learn(event); });
  const Nowhere nowhere;
  const Clock clock{};
  const Result<where::Condition> condition = where::Condition::make(text, catalog, clock, nowhere);
  // The same with "not" in front holds exactly where it does not.
  const Result<where::Condition> opposite =
      where::Condition::make("not (" + std::string(text) + ")", catalog, clock, nowhere);
  if (!condition) return 0;
  where::Condition::Scratch scratch;
  (void)for_each_event(bytes, [&](const EventView &view, std::int64_t, std::uint32_t) {
    const Event event(view, 3, {}, 0, 0);
    const bool holds = condition->holds(event, scratch);
    if (holds && condition->nothing()) std::abort();
    if (holds && !condition->kinds().empty() && !condition->kinds().contains(event)) std::abort();
    if (opposite && opposite->holds(event, scratch) == holds) std::abort();
  });
  return 0;
}
