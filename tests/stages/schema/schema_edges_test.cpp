// Where schemas and payloads end: what is cut off is said, and nothing is read as what it is not.
#include "etwrelog/schema.hpp"
#include "write/event_builder.hpp"

#include <functional>

#include <gtest/gtest.h>

namespace etwrelog {
namespace {

class SchemaEdges : public ::testing::Test {
protected:
  using Octets = std::vector<std::uint8_t>;
  static constexpr Guid kOwner = make_guid(0xaabbccdd, 0x5566, 0x7788, 0x99aa, 0xbbccddeeff00);

  // Gives the event to `use`.
  static void with_event(const write::EventFields &fields, const Octets &payload, const Octets &metadata,
                         const std::function<void(const EventView &)> &use) {
    Octets bytes;
    write::EventBuilder builder(bytes);
    builder.event(fields, 8, 8, 4, 1000);
    if (!metadata.empty()) builder.item(format::ItemType::schema_tl, metadata);
    builder.bytes(payload);
    (void)builder.finish();
    for_each_event(bytes, [&](const EventView &event, std::int64_t, std::uint32_t) { use(event); });
  }
  static std::string shown(const SchemaCatalog &catalog, const EventView &event) {
    const Schema *schema = catalog.find(event);
    if (schema == nullptr) return "raw";
    std::string out;
    const DecodedSize size = Decoder(*schema, 8).append_json(event.payload(), out);
    if (size.truncated) out += " truncated";
    if (size.given_up) out += " given up";
    if (size.covered < event.payload().size()) out += " tail";
    return out;
  }
  static std::string manifest_of(const std::string &fields, const std::string &value = "1") {
    return "<instrumentationManifest><provider name=\"Own\" guid=\"{aabbccdd-5566-7788-99aa-bbccddeeff00}\">"
           "<events><event value=\"" +
           value + "\" template=\"A\"/></events><templates><template tid=\"A\">" + fields +
           "</template></templates></provider></instrumentationManifest>";
  }
  // What an event shows by a manifest with these fields, and what the catalog says about that.
  std::string read(const std::string &fields, const Octets &payload, const std::string &value = "1") {
    SchemaCatalog catalog;
    const Result<void> added = catalog.add_manifest(manifest_of(fields, value));
    EXPECT_TRUE(added);
    said_.assign(catalog.problems().begin(), catalog.problems().end());
    std::string out;
    with_event({.provider = kOwner, .id = 1}, payload, {},
               [&](const EventView &event) { out = shown(catalog, event); });
    return out;
  }
  void expect_said(std::string_view what) const {
    ASSERT_EQ(said_.size(), 1u) << what;
    EXPECT_NE(said_[0].find("provider Own, event"), std::string::npos) << said_[0];
    EXPECT_NE(said_[0].find(what), std::string::npos) << said_[0];
  }
  std::vector<std::string> said_;
};

constexpr const char *kCount = "<data name=\"n\" inType=\"win:UInt8\"/>";

TEST_F(SchemaEdges, ElementsOfNoBytesAreThereAtTheEndOfAnEvent) {
  const std::string texts =
      std::string(kCount) + "<data name=\"a\" inType=\"win:UnicodeString\" count=\"2\" length=\"n\"/>";
  EXPECT_EQ(read(texts, {0}), R"({"n":0,"a":["",""]})");
  EXPECT_EQ(read(texts, {1, 'x', 0, 'y', 0}), R"({"n":1,"a":["x","y"]})");
  EXPECT_EQ(read(texts, {1}), R"({"n":1} truncated)");
  const std::string nested = std::string(kCount) + "<struct name=\"S\" count=\"2\"><data name=\"v\" "
                                                   "inType=\"win:UInt32\" count=\"n\"/></struct>";
  EXPECT_EQ(read(nested, {0}), R"({"n":0,"S":[{"v":[]},{"v":[]}]})");
  EXPECT_EQ(read(nested, {1, 5, 0, 0, 0}), R"({"n":1,"S":[{"v":[5]}]} truncated)");
}

TEST_F(SchemaEdges, ElementsOfNoBytesAreLimited) {
  const std::string count = "<data name=\"n\" inType=\"win:UInt32\"/>",
                    texts = "<data name=\"a\" inType=\"win:AnsiString\" count=\"n\" length=\"0\"/>",
                    last = "<data name=\"e\" inType=\"win:UInt8\"/>";
  std::string four_thousand = R"({"n":4000,"a":[)";
  for (int i = 0; i < 4000; ++i)
    four_thousand += i == 0 ? "\"\"" : ",\"\"";
  EXPECT_EQ(read(count + texts, {0xA0, 0x0F, 0, 0}), four_thousand + "]}");
  EXPECT_EQ(read(count + texts, {0xFF, 0xFF, 0xFF, 0xFF}), "{} truncated given up tail");
  EXPECT_EQ(read(count + texts + last, {0xFF, 0xFF, 0xFF, 0xFF, 1}), "{} truncated given up tail");
  const std::string nested = "<struct name=\"S\" count=\"n\"><struct name=\"T\" count=\"n\"><data name=\"b\" "
                             "inType=\"win:Binary\" length=\"0\"/></struct></struct>";
  EXPECT_EQ(read(count + nested, {0xFF, 0, 0, 0}), "{} truncated given up tail");
}

TEST_F(SchemaEdges, TextIsLimitedByTheSizeOfItsEvent) {
  const auto bytes_named = [](std::size_t name, const char *size) {
    return "<struct name=\"S\" count=\"2000\"><data name=\"" + std::string(name, 'n') +
           "\" inType=\"win:AnsiString\" length=\"" + size + "\"/></struct>";
  };
  const Octets payload(2000, 'x');
  EXPECT_GT(read(bytes_named(200, "1"), payload).size(), 2000u * 200);
  EXPECT_EQ(read(bytes_named(300, "1"), payload), "{} truncated given up tail");
  EXPECT_EQ(read(bytes_named(200, "0"), {1}), "{} truncated given up tail");
  const std::string structure =
      "<struct name=\"S\"><data name=\"" + std::string(20'000, 'n') + "\" inType=\"win:UInt8\"/></struct>";
  EXPECT_EQ(read(structure, {1}), "{} truncated given up tail");
}

TEST_F(SchemaEdges, HalfACharacterAtTheEndIsOfItsText) {
  const std::string fields =
      "<data name=\"s\" inType=\"win:UnicodeString\"/><data name=\"b\" inType=\"win:UInt8\"/>";
  EXPECT_EQ(read(fields, {'a', 0, 'b', 0, 'c'}), R"({"s":"ab"} truncated tail)");
  EXPECT_EQ(read(fields, {'a', 0, 'b', 0, 0, 0, 'c'}), R"({"s":"ab","b":99})");
  EXPECT_EQ(read(fields, {'a', 0, 'b', 0}), R"({"s":"ab"} truncated)");
  const Octets metadata = {15, 0, 0, 'E', 0, 's', 0, 1, 'b', 0, 4, 'c', 0, 0x40 | 4, 0};
  SchemaCatalog catalog;
  with_event({.provider = kOwner, .channel = 11}, {'a', 0, 'c'},
             Octets(metadata.begin(), metadata.begin() + 11), [&](const EventView &event) {
               Octets sized(event.bytes().begin(), event.bytes().end());
               catalog.learn(event);
               EXPECT_EQ(shown(catalog, event), "raw") << "its size word says more";
             });
  Octets sound(metadata.begin(), metadata.begin() + 11);
  sound[0] = 11;
  with_event({.provider = kOwner, .channel = 11}, {'a', 0, 'c'}, sound, [&](const EventView &event) {
    catalog.learn(event);
    EXPECT_EQ(shown(catalog, event), R"({"s":"a"} truncated tail)");
  });
}

TEST_F(SchemaEdges, ManyLengthsHaveEachTheirField) {
  for (const unsigned pairs : {64u, 65u, 255u, 256u}) {
    std::string fields, expected;
    Octets payload;
    for (unsigned i = 0; i < pairs; ++i) {
      const std::string n = std::to_string(i);
      fields.append("<data name=\"n").append(n).append("\" inType=\"win:UInt8\"/><data name=\"a");
      fields.append(n).append("\" inType=\"win:AnsiString\" length=\"n").append(n).append("\"/>");
      payload.insert(payload.end(), {1, 'x'});
      expected += (i == 0 ? "{\"n" : ",\"n") + n + "\":1,\"a" + n + "\":\"x\"";
    }
    const std::string all = read(fields, payload);
    if (pairs <= 255) {
      EXPECT_EQ(all, expected + "}");
      EXPECT_TRUE(said_.empty());
    } else {
      EXPECT_EQ(all, "raw");
      expect_said("more than 255 fields tell lengths and counts");
    }
  }
}

TEST_F(SchemaEdges, LengthsThatNoFieldInFrontTellsLeaveAnEventRaw) {
  const std::string behind = "<data name=\"a\" inType=\"win:UInt8\" count=\"n\"/>";
  EXPECT_EQ(read(behind + kCount, {1, 1}), "raw");
  expect_said("the count of field a is that of no field in front of it");
  EXPECT_EQ(read("<data name=\"a\" inType=\"win:UInt8\" count=\"a\"/>", {1, 1}), "raw");
  expect_said("no field in front of it");
  EXPECT_EQ(read("<data name=\"s\" inType=\"win:AnsiString\"/><data name=\"a\" inType=\"win:Binary\" "
                 "length=\"s\"/>",
                 {'1', 0, 1}),
            "raw");
  expect_said("which is no integer");
}

TEST_F(SchemaEdges, EventsThatAManifestLosesAreSaid) {
  EXPECT_EQ(read("<data name=\"x\" inType=\"win:Unheard\"/>", {1}), "raw");
  expect_said("field x has the unknown type 'win:Unheard'");
  std::string many;
  for (int i = 0; i < 4097; ++i)
    many += "<data name=\"x\" inType=\"win:UInt8\"/>";
  EXPECT_EQ(read(many, {1}), "raw");
  expect_said("more than 4096 fields");
  EXPECT_EQ(read(kCount, {1}, "65536"), "raw");
  expect_said("its value is no number up to 65535");
  EXPECT_EQ(
      read("<data name=\"n\" inType=\" win:UInt8 \"/><data name=\"a\" inType=\"win:UInt8\" count=\" n \"/>",
           {1, 7}, " 1 "),
      R"({"n":1,"a":[7]})");
  EXPECT_TRUE(said_.empty());
}

TEST_F(SchemaEdges, ManifestsMayBeUtf16WithoutAMark) {
  for (const bool big : {false, true}) {
    std::string wide;
    for (const char c : manifest_of(kCount)) {
      if (big) wide += '\0';
      wide += c;
      if (!big) wide += '\0';
    }
    for (const std::size_t zeros : {0u, 2u, 4u}) {
      SchemaCatalog catalog;
      const Result<void> added = catalog.add_manifest(wide + std::string(zeros, '\0'));
      ASSERT_TRUE(added) << big << zeros << added.error().message();
      EXPECT_EQ(catalog.all().back()->fields.size(), 1u);
    }
  }
}

TEST_F(SchemaEdges, ManifestsInWindows1252KeepTheirLetters) {
  const std::string event = "<data name=\"gr\xF6\xDF"
                            "e \x80\" inType=\"win:UInt8\"/>";
  SchemaCatalog catalog;
  const auto name_declared_as = [&](const std::string &encoding) {
    catalog = SchemaCatalog();
    EXPECT_TRUE(
        catalog.add_manifest("<?xml version='1.0' encoding='" + encoding + "'?>" + manifest_of(event)));
    return catalog.all().back()->fields[0].name;
  };
  EXPECT_EQ(name_declared_as("Windows-1252"), "gr\u00F6\u00DFe \u20AC");
  EXPECT_EQ(name_declared_as("iso-8859-1"), "gr\u00F6\u00DFe \u20AC");
  EXPECT_TRUE(catalog.problems().empty());
  name_declared_as("Shift_JIS");
  ASSERT_EQ(catalog.problems().size(), 1u);
  EXPECT_NE(catalog.problems()[0].find("in shift_jis: save it as UTF-8"), std::string::npos)
      << catalog.problems()[0];
}

TEST_F(SchemaEdges, MetadataThatIsCutOffIsDamage) {
  const Octets whole = {19, 0, 0, 'T', 'r', 'u', 'n', 'c', 0, 'v', 0, 8, 'w', 0, 0xC8, 3, 'x', 0, 4};
  ASSERT_EQ(whole.size(), 19u);
  for (std::size_t n = 1; n <= whole.size(); ++n)
    for (const bool own_size : {false, true}) { // the size word says what there is, or more
      SchemaCatalog catalog;
      Octets cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n));
      if (own_size) cut[0] = static_cast<std::uint8_t>(n);
      // Where it ends between two fields nothing tells that there were more.
      const bool sound = n == whole.size() || (own_size && (n == 9 || n == 12 || n == 16));
      with_event({.provider = kOwner, .channel = 11}, {1, 0, 0, 0}, cut, [&](const EventView &event) {
        catalog.learn(event);
        EXPECT_EQ(shown(catalog, event) == "raw", !sound) << n << own_size;
        EXPECT_EQ(catalog.problems().empty(), sound) << n << own_size;
      });
    }
}

} // namespace
} // namespace etwrelog
