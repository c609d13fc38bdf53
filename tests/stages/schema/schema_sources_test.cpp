// Schemas that travel in traces or come from files: every type with a known value, and what contradicts
// itself.
#include "etwrelog/schema.hpp"
#include "tests/support/built_event.hpp"

#include <gtest/gtest.h>

namespace etwrelog {
namespace {

using testing::Built;
using testing::json_of;

constexpr Guid kProvider = make_guid(0x11223344, 0x5566, 0x7788, 0x99aa, 0xbbccddeeff00);

using Raw = std::vector<std::uint8_t>;

void put_text(Raw &raw, std::string_view text) {
  raw.insert(raw.end(), text.begin(), text.end());
  raw.push_back(0);
}
template <class T> void put_value(Raw &raw, T value) {
  const std::size_t at = raw.size();
  raw.resize(at + sizeof value);
  store(raw.data() + at, value);
}
// The offset at which the text begins.
std::uint32_t put_wide(Raw &raw, std::string_view text) {
  const auto at = static_cast<std::uint32_t>(raw.size());
  for (const char c : text)
    put_value(raw, static_cast<char16_t>(c));
  put_value(raw, char16_t{0});
  return at;
}

// --- TraceLogging

struct Metadata {
  Raw raw = {0, 0, 0}; // size, one tag byte
  explicit Metadata(std::string_view name) { put_text(raw, name); }
  Metadata &field(std::string_view name, const Raw &types) {
    put_text(raw, name);
    raw.insert(raw.end(), types.begin(), types.end());
    store(raw.data(), static_cast<std::uint16_t>(raw.size()));
    return *this;
  }
};

Built traced(const Metadata &metadata, const Raw &payload, unsigned pointer_size = 8) {
  return Built([&](write::EventBuilder &e) {
    write::EventFields fields;
    fields.provider = kProvider, fields.channel = 11;
    e.event(fields, pointer_size, 8, 4, 1000).item(format::ItemType::schema_tl, metadata.raw).bytes(payload);
  });
}

std::string traced_json(const Metadata &metadata, const Raw &payload, unsigned pointer_size = 8) {
  const Built built = traced(metadata, payload, pointer_size);
  SchemaCatalog catalog;
  catalog.learn(built.view());
  return json_of(catalog, built.view());
}

struct TypeCase {
  const char *name;
  Raw types; // in type, and behind 0x80 the out type
  Raw payload;
  const char *json;
};

const Raw kEpoch = {0x00, 0x80, 0x3e, 0xd5, 0xde, 0xb1, 0x9d, 0x01}; // 1970-01-01 as FILETIME

TEST(TraceLoggingTypes, EveryTypeHasItsValue) {
  const TypeCase cases[] = {
      {"utf16", {1}, {'a', 0, 0x3d, 0xd8, 0x00, 0xde, 0, 0}, "\"a\xf0\x9f\x98\x80\""},
      {"utf16, half a pair", {1}, {0x3d, 0xd8, '-', 0, 0, 0}, "\"\xef\xbf\xbd-\""},
      {"8-bit", {2}, {'-', 0x80, 0}, "\"-\xe2\x82\xac\""},
      {"8-bit as UTF-8", {0x82, 35}, {0xc3, 0xa4, 0xff, 0}, "\"\xc3\xa4\xef\xbf\xbd\""},
      {"8-bit as JSON", {0x82, 12}, {'{', '}', 0}, "\"{}\""},
      {"i8", {3}, {0xff}, "-1"},
      {"u8", {4}, {0xff}, "255"},
      {"i16", {5}, {0xfe, 0xff}, "-2"},
      {"u16", {6}, {0xfe, 0xff}, "65534"},
      {"i32", {7}, {0xfd, 0xff, 0xff, 0xff}, "-3"},
      {"u32", {8}, {0xfd, 0xff, 0xff, 0xff}, "4294967293"},
      {"i64", {9}, {0xfc, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, "-4"},
      {"u64", {10}, {0xfc, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, "18446744073709551612"},
      {"float", {11}, {0xcd, 0xcc, 0xcc, 0x3d}, "0.1"},
      {"float, not a number", {11}, {0, 0, 0xc0, 0x7f}, "null"},
      {"double", {12}, {0, 0, 0, 0, 0, 0, 0xf8, 0xbf}, "-1.5"},
      {"bool", {13}, {2, 0, 0, 0}, "true"},
      {"binary", {14}, {2, 0, 0xab, 0x01}, "\"ab01\""},
      {"guid",
       {15},
       {0x44, 0x33, 0x22, 0x11, 0x66, 0x55, 0x88, 0x77, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff, 0},
       "\"11223344-5566-7788-99aa-bbccddeeff00\""},
      {"pointer", {16}, {1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff}, "\"0xffffffff00000001\""},
      {"filetime", {17}, kEpoch, "\"1970-01-01T00:00:00.0000000Z\""},
      {"systemtime",
       {18},
       {0xe4, 7, 7, 0, 3, 0, 29, 0, 0, 0, 7, 0, 5, 0, 123, 0},
       "\"2020-07-29T00:07:05.123Z\""},
      {"sid", {19}, {1, 2, 0, 0, 0, 0, 0, 5, 32, 0, 0, 0, 0x20, 2, 0, 0}, "\"S-1-5-32-544\""},
      {"hex32", {20}, {0x1f, 0, 0, 0}, "\"0x1f\""},
      {"hex64", {21}, {0x1f, 0, 0, 0, 0, 0, 0, 0x10}, "\"0x100000000000001f\""},
      {"counted utf16", {22}, {4, 0, 'h', 0, 'i', 0}, "\"hi\""},
      {"counted 8-bit", {23}, {2, 0, 'h', 'i'}, "\"hi\""},
      {"counted binary", {25}, {1, 0, 7}, "\"07\""},
      {"u16 as string", {0x86, 2}, {'x', 0}, "\"x\""},
      {"u8 as string", {0x84, 2}, {'x'}, "\"x\""},
      {"u8 as bool", {0x84, 3}, {1}, "true"},
      {"u32 in hex", {0x88, 4}, {0xff, 0, 0, 0}, "\"0xff\""},
      {"port", {0x86, 7}, {0x01, 0xbb}, "443"},
      {"IPv4", {0x88, 8}, {127, 0, 0, 1}, "\"127.0.0.1\""},
      {"IPv6", {0x8e, 9}, {16, 0, 0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, "\"2001:db8::1\""},
      {"i64 as time", {0x89, 38}, kEpoch, "\"1970-01-01T00:00:00.0000000Z\""},
      {"u32 as signed", {0x88, 17}, {0xff, 0xff, 0xff, 0xff}, "-1"},
      {"i32 as unsigned", {0x87, 18}, {0xff, 0xff, 0xff, 0xff}, "4294967295"},
      {"array, constant", {0x26, 3, 0}, {1, 0, 2, 0, 3, 0}, "[1,2,3]"},
      {"array, counted", {0x44}, {2, 0, 5, 6}, "[5,6]"},
      {"array, counted, empty", {0x48}, {0, 0}, "[]"},
      {"array of strings", {0x41}, {2, 0, 'a', 0, 0, 0, 0, 0}, "[\"a\",\"\"]"},
      {"array of characters", {0xc6, 2}, {2, 0, 'o', 0, 'k', 0}, "\"ok\""},
  };
  for (const TypeCase &c : cases)
    EXPECT_EQ(traced_json(Metadata("E").field("F", c.types), c.payload),
              std::string("{\"F\":").append(c.json).append("}"))
        << c.name;
}

TEST(TraceLoggingTypes, PointersOf32BitEventsHaveFourBytes) {
  EXPECT_EQ(traced_json(Metadata("E").field("P", {16}).field("Q", {4}), {1, 0, 0, 0, 9}, 4),
            R"({"P":"0x1","Q":9})");
}

TEST(TraceLoggingTypes, StructuresAndArraysOfThem) {
  EXPECT_EQ(
      traced_json(Metadata("E").field("S", {0x98, 2}).field("a", {4}).field("I", {0x98, 1}).field("b", {4}),
                  {1, 2}),
      R"({"S":{"a":1,"I":{"b":2}}})");
  EXPECT_EQ(traced_json(Metadata("E").field("S", {0xd8, 1}).field("a", {4}).field("z", {4}), {2, 0, 1, 2, 3}),
            R"({"S":[{"a":1},{"a":2}],"z":3})");
  EXPECT_EQ(traced_json(Metadata("E").field("S", {0xb8, 1, 2, 0}).field("a", {4}), {1, 2}),
            R"({"S":[{"a":1},{"a":2}]})");
}

TEST(TraceLoggingTypes, RepeatedNamesAreNumbered) {
  EXPECT_EQ(traced_json(Metadata("E").field("a", {4}).field("a", {4}).field("a", {4}), {1, 2, 3}),
            R"({"a":1,"a#2":2,"a#3":3})");
}

TEST(TraceLoggingTypes, AShortPayloadGivesTheFieldsThatItHolds) {
  EXPECT_EQ(traced_json(Metadata("E").field("a", {4}).field("b", {8}), {1, 2}), R"({"a":1} truncated)");
  EXPECT_EQ(traced_json(Metadata("E").field("a", {4}), {1, 2}), R"({"a":1} tail)");
}

TEST(TraceLoggingSchemas, AreKeptApartByTheirMetadataNotByTheirId) {
  const Built one = traced(Metadata("One").field("a", {4}), {1});
  const Built two = traced(Metadata("Two").field("b", {6}), {1, 0});
  SchemaCatalog catalog;
  catalog.learn(one.view());
  catalog.learn(two.view());
  EXPECT_EQ(catalog.find(one.view())->name, "One");
  EXPECT_EQ(catalog.find(two.view())->name, "Two");
  EXPECT_EQ(json_of(catalog, two.view()), R"({"b":1})");
}

TEST(TraceLoggingSchemas, WhatContradictsItselfIsRaw) {
  EXPECT_EQ(traced_json(Metadata("E").field("S", {0x98, 5}).field("a", {4}), {1}), "unknown"); // five members
  EXPECT_EQ(traced_json(Metadata("E").field("a", {26}), {1}), "unknown");                      // no such type
  Metadata deep("E");
  for (int i = 0; i < 40; ++i)
    deep.field("s", {0x98, 1});
  EXPECT_EQ(traced_json(deep.field("a", {4}), {1}), "unknown");
}

TEST(TraceLoggingSchemas, CountsOfNothingCostNothing) {
  // Arrays of structures in each other: a payload of some bytes that claims billions of elements.
  Metadata metadata("E");
  for (int i = 0; i < 6; ++i)
    metadata.field("s", {0xd8, 1});
  metadata.field("e", {0xb8, 0, 0xff, 0xff});
  EXPECT_LT(traced_json(metadata, Raw(30'000, 0xff)).size(), 40u << 20);
}

TEST(Catalog, CopiesDoNotSeeWhatIsLearnedLater) {
  const Built one = traced(Metadata("One").field("a", {4}), {1});
  SchemaCatalog catalog;
  const SchemaCatalog before = catalog;
  catalog.learn(one.view());
  EXPECT_EQ(before.find(one.view()), nullptr);
  EXPECT_NE(catalog.find(one.view()), nullptr);
  EXPECT_EQ(catalog.all().size(), before.all().size() + 1);
}

// --- EventInfo records

struct Property {
  std::string name;
  std::uint32_t flags = 0;
  std::uint16_t in = 0, out = 0, count = 1, length = 0; // of structures: first member, members
  std::string map{};
};

Raw event_info(std::uint16_t id, const std::vector<Property> &properties, std::size_t top) {
  Raw raw(0x70 + 24 * properties.size());
  store_guid(raw.data(), kProvider);
  store(raw.data() + 0x20, id);
  const std::uint32_t provider = put_wide(raw, "Provider "), task = put_wide(raw, "Task"),
                      opcode = put_wide(raw, "Start");
  store(raw.data() + 0x34, provider);
  store(raw.data() + 0x44, task);
  store(raw.data() + 0x48, opcode);
  store(raw.data() + 0x64, static_cast<std::uint32_t>(properties.size()));
  store(raw.data() + 0x68, static_cast<std::uint32_t>(top));
  for (std::size_t i = 0; i < properties.size(); ++i) {
    const Property &p = properties[i];
    const std::uint32_t name = put_wide(raw, p.name), map = p.map.empty() ? 0 : put_wide(raw, p.map);
    std::uint8_t *const at = raw.data() + 0x70 + 24 * i;
    store(at, p.flags), store(at + 4, name), store(at + 8, p.in), store(at + 10, p.out), store(at + 12, map);
    store(at + 16, p.count), store(at + 18, p.length);
  }
  return raw;
}

Built record(std::uint8_t opcode, const Raw &payload) {
  return Built([&](write::EventBuilder &e) {
    e.classic(format::kMetaDataGuid, opcode, 0, 8, 8, 4, 1000).bytes(payload);
  });
}

Built manifested(std::uint16_t id, const Raw &payload) {
  return Built([&](write::EventBuilder &e) {
    write::EventFields fields;
    fields.provider = kProvider, fields.id = id;
    e.event(fields, 8, 8, 4, 1000).bytes(payload);
  });
}

std::string info_json(const std::vector<Property> &properties, const Raw &payload, std::size_t top = 0) {
  SchemaCatalog catalog;
  catalog.learn(record(32, event_info(7, properties, top == 0 ? properties.size() : top)).view());
  return json_of(catalog, manifested(7, payload).view());
}

TEST(EventInfoRecords, TypesLengthsAndCounts) {
  EXPECT_EQ(info_json({{"s", 0, 1}, {"t", 0, 1, 0, 1, 2}}, {'a', 0, 0, 0, 'b', 0, 0, 0}),
            R"({"s":"a","t":"b"})");
  EXPECT_EQ(info_json({{"n", 0, 6}, {"d", 2, 14, 0, 1, 0}}, {2, 0, 0xca, 0xfe}), R"({"n":2,"d":"cafe"})");
  EXPECT_EQ(info_json({{"n", 0, 4}, {"v", 4, 6, 0, 0}}, {2, 1, 0, 2, 0}), R"({"n":2,"v":[1,2]})");
  EXPECT_EQ(info_json({{"b", 0, 13, 0, 1, 1}, {"c", 0, 13}}, {1, 0, 0, 0, 0}), R"({"b":true,"c":false})");
  EXPECT_EQ(info_json({{"c", 0, 300}, {"r", 0, 302}, {"e", 0, 304}}, {2, 0, 'x', 0, 0, 2, 'y', 0, 'z', 0}),
            R"({"c":"x","r":"y","e":"z"})");
  EXPECT_EQ(info_json({{"u", 0, 306}, {"a", 0, 307}, {"z", 0, 308}, {"h", 0, 309}},
                      {'x', 0, 'y', 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0xee}),
            R"({"u":"x","a":"y","z":"0x1","h":"ee"})");
  EXPECT_EQ(info_json({{"f", 0, 11}, {"d", 0, 12}, {"g", 0, 20}, {"h", 0, 8, 23}, {"p", 0, 6, 22}},
                      {0, 0, 0x80, 0x3f, 0, 0, 0, 0, 0, 0, 0, 0x40, 255, 0, 0, 0, 10, 0, 0, 1, 0, 80}),
            R"({"f":1,"d":2,"g":"0xff","h":"10.0.0.1","p":80})");
}

TEST(EventInfoRecords, StructuresStandBehindTheTopLevel) {
  EXPECT_EQ(info_json({{"n", 0, 4}, {"s", 1 | 4, 2, 2, 0}, {"a", 0, 4}, {"b", 0, 4}}, {2, 1, 2, 3, 4}, 2),
            R"({"n":2,"s":[{"a":1,"b":2},{"a":3,"b":4}]})");
}

TEST(EventInfoRecords, AStructureThatContainsItselfIsRefused) {
  EXPECT_EQ(info_json({{"s", 1, 0, 1}}, {1}), "unknown");
  EXPECT_EQ(info_json({{"s", 1, 5, 9}}, {1}), "unknown");
  EXPECT_EQ(info_json(std::vector<Property>(200, {"s", 1, 0, 200}), {1}), "unknown");
}

TEST(EventInfoRecords, CutAnywhereTheyDoNoHarm) {
  const Raw whole = event_info(7, {{"n", 0, 4}, {"s", 1 | 4, 2, 2, 0}, {"a", 0, 1}, {"b", 0, 4}}, 2);
  for (std::size_t n = 0; n < whole.size(); ++n) {
    SchemaCatalog catalog;
    catalog.learn(record(32, Raw(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n))).view());
    (void)json_of(catalog, manifested(7, {1, 'x', 0, 0, 0, 5}).view());
  }
}

Raw event_map(std::string_view name, std::uint32_t flag) {
  constexpr std::size_t kGuid = 16;
  Raw raw(kGuid + 16 + 2 * 8);
  store_guid(raw.data(), kProvider);
  auto text = [&raw](std::string_view words) {
    return static_cast<std::uint32_t>(put_wide(raw, words) - kGuid);
  };
  const std::uint32_t named = text(name), one = text("One"), two = text("Two ");
  std::uint8_t *const map = raw.data() + kGuid;
  store(map, named), store(map + 4, flag), store(map + 8, 2u);
  store(map + 16, one), store(map + 20, 1u), store(map + 24, two), store(map + 28, 2u);
  return raw;
}

TEST(EventMapRecords, NameValuesAndBits) {
  SchemaCatalog catalog;
  catalog.learn(record(32, event_info(7, {{"v", 0, 4, 0, 1, 0, "V"}, {"b", 0, 4, 0, 1, 0, "B"}}, 2)).view());
  catalog.learn(record(33, event_map("V", 1)).view());
  catalog.learn(record(33, event_map("B", 2)).view());
  const JsonOptions named{.maps = true};
  EXPECT_EQ(json_of(catalog, manifested(7, {2, 3}).view(), named), R"({"v":"Two","b":"One|Two"})");
  EXPECT_EQ(json_of(catalog, manifested(7, {3, 4}).view(), named), R"({"v":3,"b":4})");
  EXPECT_EQ(json_of(catalog, manifested(7, {2, 3}).view()), R"({"v":2,"b":3})");
}

// All entries name one text, as long as the record has room for: it is kept once for each of them.
TEST(EventMapRecords, ThousandsOfNamesOutOfOneTextAreRefused) {
  constexpr std::size_t kGuid = 16, kEntries = 5000;
  Raw raw(kGuid + 16 + kEntries * 8);
  store_guid(raw.data(), kProvider);
  const auto named = static_cast<std::uint32_t>(put_wide(raw, "V") - kGuid),
             text = static_cast<std::uint32_t>(put_wide(raw, std::string(8000, 'x')) - kGuid);
  std::uint8_t *const map = raw.data() + kGuid;
  store(map, named), store(map + 4, 1u), store(map + 8, static_cast<std::uint32_t>(kEntries));
  for (std::uint32_t i = 0; i < kEntries; ++i)
    store(map + 16 + 8 * i, text), store(map + 20 + 8 * i, i);
  SchemaCatalog catalog;
  catalog.learn(record(32, event_info(7, {{"v", 0, 4, 0, 1, 0, "V"}}, 1)).view());
  catalog.learn(record(33, raw).view());
  ASSERT_EQ(catalog.problems().size(), 1u);
  EXPECT_NE(catalog.problems()[0].find("map V"), std::string::npos) << catalog.problems()[0];
  EXPECT_EQ(json_of(catalog, manifested(7, {2}).view(), {.maps = true}), R"({"v":2})");
}

// --- Manifests

constexpr std::string_view kManifest =
    R"xml(<?xml version="1.0"?><instrumentationManifest><instrumentation><events>
<provider name="P" guid="{11223344-5566-7788-99aa-bbccddeeff00}" symbol="P"><tasks><task name="T" value="1"
message="$(string.t)"/></tasks><maps><valueMap name="M"><map value="1" message="$(string.m)"/></valueMap></maps>
<templates><template tid="A"><data name="Count" inType="win:UInt8"/><data name="Names" inType="win:UnicodeString"
count="Count"/><struct name="S" count="2"><data name="x" inType="win:UInt8" map="M"/></struct></template></templates>
<events><event value="7" version="0" task="T" opcode="win:Start" template="A" message="$(string.e)"/></events></provider>
</events></instrumentation><localization><resources><stringTable><string id="t" value="Task one"/><string id="m"
value="Me"/><string id="e" value="%1 names"/></stringTable></resources></localization></instrumentationManifest>)xml";

// As editors on Windows save them; the last byte is half a character, whatever follows.
TEST(Manifests, MayBeUtf16WithoutALineFeedAtTheirEnd) {
  for (const bool zeros : {false, true}) {
    std::string wide = "\xFF\xFE";
    for (const char c : kManifest.substr(kManifest.find("<instr")))
      wide += c, wide += '\0';
    if (zeros) wide.append(6, '\0');
    SchemaCatalog catalog;
    const Result<void> added = catalog.add_manifest(wide);
    ASSERT_TRUE(added) << added.error().message();
    EXPECT_NE(catalog.find(manifested(7, {0}).view()), nullptr);
  }
}

TEST(Manifests, GiveNamesTypesAndMaps) {
  SchemaCatalog catalog;
  ASSERT_TRUE(catalog.add_manifest(kManifest));
  const Built event = manifested(7, {1, 'a', 0, 0, 0, 1, 2});
  EXPECT_EQ(json_of(catalog, event.view(), {.maps = true}),
            R"({"Count":1,"Names":["a"],"S":[{"x":"Me"},{"x":2}]})");
  EXPECT_EQ(catalog.find(event.view())->name, "Task one/Start");
  EXPECT_EQ(catalog.find(event.view())->message, "%1 names");
}

TEST(Manifests, OfEventSourcesTravelInChunks) {
  SchemaCatalog catalog;
  const std::size_t half = kManifest.size() / 2;
  for (const unsigned number : {0u, 1u}) {
    const std::string_view text = number == 0 ? kManifest.substr(0, half) : kManifest.substr(half);
    Raw payload = {1, 1, 0, 0x5B, 2, 0, static_cast<std::uint8_t>(number), 0};
    payload.insert(payload.end(), text.begin(), text.end());
    const Built chunk([&](write::EventBuilder &e) {
      write::EventFields fields;
      fields.provider = kProvider, fields.id = 65534, fields.version = 1, fields.opcode = 0xFE;
      e.event(fields, 8, 8, 4, 1000).bytes(payload);
    });
    EXPECT_TRUE(catalog.learn(chunk.view()));
  }
  EXPECT_EQ(json_of(catalog, manifested(7, {0, 1, 2}).view()),
            R"({"Count":0,"Names":[],"S":[{"x":1},{"x":2}]})");
}

TEST(Manifests, TheTracesOwnSchemaWins) {
  SchemaCatalog catalog;
  ASSERT_TRUE(catalog.add_manifest(kManifest));
  catalog.learn(record(32, event_info(7, {{"own", 0, 4}}, 1)).view());
  EXPECT_EQ(json_of(catalog, manifested(7, {5}).view()), R"({"own":5})");
}

TEST(Manifests, BrokenOnesAreErrorsAndBombsStaySmall) {
  SchemaCatalog catalog;
  const Result<void> broken = catalog.add_manifest("<provider");
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().kind, ErrorKind::corrupt);
  std::string bomb = "<!DOCTYPE x [<!ENTITY a0 \"aaaaaaaaaaaaaaaa\">";
  for (int i = 1; i < 30; ++i) {
    const std::string before = std::to_string(i - 1);
    bomb.append("<!ENTITY a")
        .append(std::to_string(i))
        .append(" \"&a")
        .append(before)
        .append(";&a")
        .append(before);
    bomb.append(";\">");
  }
  bomb += "]><x><provider name=\"&a29;\" guid=\"{11223344-5566-7788-99aa-bbccddeeff00}\"/></x>";
  (void)catalog.add_manifest(bomb);
  EXPECT_LT(catalog.provider_name(kProvider).size(), 100u);
}

// What many events share is kept for each: a message, the provider's name, the names of fields.
TEST(Manifests, OneTextForThousandsOfEventsIsAnError) {
  const std::string head = "<x><provider name=\"P\" guid=\"{11223344-5566-7788-99aa-bbccddeeff00}\">";
  std::string of_message = head, of_field = head;
  of_field += "<template tid=\"A\">";
  for (int i = 0; i < 200; ++i)
    of_field += "<data name=\"" + std::string(3000, 'f') + "\" inType=\"win:UInt8\"/>";
  of_field += "</template>";
  for (int i = 0; i < 1000; ++i) {
    const std::string event = "<event value=\"" + std::to_string(i) + "\" ";
    of_message += event + "message=\"$(string.m)\"/>";
    of_field += event + "template=\"A\"/>";
  }
  of_message += "</provider><string id=\"m\" value=\"" + std::string(200'000, 'm') + "\"/></x>";
  of_field += "</provider></x>";
  std::string nested;
  for (int i = 0; i < 60; ++i)
    nested += "<provider name=\"P\" guid=\"{11223344-5566-7788-99aa-bbccddeeff00}\">";
  for (int i = 0; i < 60'000; ++i)
    nested += "<event value=\"" + std::to_string(i) + "\"/>";
  for (int i = 0; i < 60; ++i)
    nested += "</provider>";
  for (const std::string &xml : {of_message, of_field, nested}) {
    SchemaCatalog catalog;
    const Result<void> added = catalog.add_manifest(xml);
    ASSERT_FALSE(added);
    EXPECT_NE(added.error().message().find("64 MiB of events, names and messages"), std::string::npos);
  }
}

// --- WPP

constexpr std::string_view kTmf = R"(// PDB: x.pdb
11223344-5566-7788-99aa-bbccddeeff00 module // SRC=a.c MJ= MN=
#typev a_c10 10 "%0%!FUNC!: count %10!d! of %11!s!" //   LEVEL=INFO FLAGS=X FUNC=Main
{
Arg, ItemLong -- 10
Arg, ItemString -- 11
}
#typev a_c20 11 "%0status %10!x!" //   LEVEL=INFO FLAGS=X FUNC=Other
{
Arg, ItemNTSTATUS -- 10
}
)";

Built wpp(std::uint16_t number, const Raw &payload) {
  return Built([&](write::EventBuilder &e) { e.message(number, kProvider, 8, 8, 4, 1000).bytes(payload); });
}

TEST(TraceMessageFormats, SeveralMessagesOfOneGuid) {
  SchemaCatalog catalog;
  ASSERT_TRUE(catalog.add_tmf(kTmf));
  const Built first = wpp(10, {5, 0, 0, 0, 'a', 'b', 0}), second = wpp(11, {1, 0, 0, 0xC0});
  EXPECT_EQ(json_of(catalog, first.view()), R"({"Arg":5,"Arg#2":"ab"})");
  EXPECT_EQ(catalog.find(first.view())->message, "Main: count %1!d! of %2!s!");
  EXPECT_EQ(json_of(catalog, second.view()), R"({"Arg":3221225473})");
}

TEST(TraceMessageFormats, ExpressionsMayHoldCommasAndTextsSlashes) {
  SchemaCatalog catalog;
  ASSERT_TRUE(catalog.add_tmf(R"(11223344-5566-7788-99aa-bbccddeeff00 module // SRC=a.c
#typev a_c30 12 "%0%2!s! of %1!s!: http://x/%10!08X!" //   LEVEL=INFO
{
min(a, Item->b), ItemLong -- 10
}
#typev a_c40 13 "%0see http://x/%10!d!"
{
f(a, b), ItemListLong(off,on) -- 10
}
)"));
  const Built first = wpp(12, {5, 0, 0, 0}), second = wpp(13, {1, 0, 0, 0});
  EXPECT_EQ(catalog.find(first.view())->message, "a_c30 of module: http://x/%1!08X!");
  EXPECT_EQ(json_of(catalog, first.view()), "{\"min(a, Item->b)\":5}");
  EXPECT_EQ(catalog.find(second.view())->message, "see http://x/%1!d!");
}

TEST(TraceMessageFormats, BrokenOnesAreErrorsOrRaw) {
  SchemaCatalog catalog;
  EXPECT_FALSE(catalog.add_tmf("#typev a 10 \"x\"\n"));
  std::string bomb = "11223344-5566-7788-99aa-bbccddeeff00 m\n#typev a 10 \"";
  for (int i = 0; i < 1000; ++i)
    bomb += "%!FUNC!";
  bomb += "\" // FUNC=" + std::string(10'000, 'f') + "\n{\n}\n";
  std::string many = "11223344-5566-7788-99aa-bbccddeeff00 " + std::string(100'000, 'm') + "\n";
  for (int i = 0; i < 1000; ++i)
    many += "#typev a " + std::to_string(i) + " \"x\"\n{\n}\n";
  EXPECT_NE(catalog.add_tmf(many).error().message().find("at most 64 MiB"), std::string::npos);
  const Result<void> too_long = catalog.add_tmf(bomb);
  ASSERT_FALSE(too_long);
  EXPECT_NE(too_long.error().message().find("at most 64 KiB"), std::string::npos);
  ASSERT_TRUE(catalog.add_tmf(
      "11223344-5566-7788-99aa-bbccddeeff00 m\n#typev a 10 \"%10!d!\"\n{\nA, ItemUnheardOf -- 10\n}\n"));
  EXPECT_EQ(catalog.find(wpp(10, {1}).view()), nullptr);
  ASSERT_TRUE(catalog.add_tmf("11223344-5566-7788-99aa-bbccddeeff00 m\n#typev a 12 \"%10!d!\"\n{\nA, Other "
                              "-- 10\nB, ItemLong -- 11\n}\n"));
  EXPECT_EQ(catalog.find(wpp(12, {1}).view()), nullptr) << "what follows would be read as what it is not";
}

} // namespace
} // namespace etwrelog
