// What the names in manifests and trace message formats refer to.
#include "etwrelog/schema.hpp"
#include "schema/event_info_format.hpp"
#include "schema/event_info_writer.hpp"
#include "tests/support/built_event.hpp"

#include <gtest/gtest.h>

namespace etwrelog {
namespace {

constexpr Guid kNamedProvider = make_guid(0x11223344, 0x5566, 0x7788, 0x99aa, 0xbbccddeeff00);

using Raw = std::vector<std::uint8_t>;
using testing::Built;

// A manifest of one provider, with what stands in it.
std::string manifest(const std::string &inside, const std::string &strings = {}) {
  return "<instrumentationManifest><instrumentation><events><provider name='P' "
         "guid='{11223344-5566-7788-99aa-bbccddeeff00}'>" +
         inside + "</provider></events></instrumentation><localization><resources><stringTable>" + strings +
         "</stringTable></resources></localization></instrumentationManifest>";
}

Built event_of(std::uint16_t id, const Raw &payload) {
  return Built([&](write::EventBuilder &e) {
    write::EventFields fields;
    fields.provider = kNamedProvider, fields.id = id;
    e.event(fields, 8, 8, 4, 1000).bytes(payload);
  });
}

std::string json_of(const SchemaCatalog &catalog, const Built &event) {
  return testing::json_of(catalog, event.view(), {.maps = true});
}

TEST(ManifestNames, OfMembersMeanNothingOutsideTheirStructure) {
  SchemaCatalog catalog;
  ASSERT_TRUE(catalog.add_manifest(manifest(
      "<templates><template tid='T'><data name='Count' inType='win:UInt8'/><struct name='Head'><data "
      "name='Count' inType='win:UInt8'/><data name='Own' inType='win:UInt8' count='Count'/></struct><data "
      "name='Values' inType='win:UInt8' count='Count'/></template></templates><events><event value='1' "
      "template='T'/></events>")));
  EXPECT_EQ(json_of(catalog, event_of(1, {2, 1, 7, 10, 20})),
            R"({"Count":2,"Head":{"Count":1,"Own":[7]},"Values":[10,20]})");
}

TEST(ManifestNames, OfValuesAreThoseOfAllTheirBits) {
  SchemaCatalog catalog;
  ASSERT_TRUE(catalog.add_manifest(
      manifest("<maps><valueMap name='V'><map value='0x100000000' message='$(string.b)'/><map "
               "value='0xffffffffffffffff' message='$(string.m)'/></valueMap></maps><templates><template "
               "tid='T'><data name='a' inType='win:UInt64' map='V'/><data name='b' inType='win:Int32' "
               "map='V'/></template></templates><events><event value='1' template='T'/></events>",
               "<string id='b' value='Big'/><string id='m' value='MinusOne'/>")));
  EXPECT_EQ(json_of(catalog, event_of(1, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})), R"({"a":0,"b":0})");
  EXPECT_EQ(json_of(catalog, event_of(1, {0, 0, 0, 0, 1, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF})),
            R"({"a":"Big","b":"MinusOne"})");
  EXPECT_EQ(json_of(catalog, event_of(1, {0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0, 0xFE, 0xFF, 0xFF, 0xFF})),
            R"({"a":4294967295,"b":-2})");
}

TEST(ManifestNames, OfOpcodesAreTheirTasksFirst) {
  SchemaCatalog catalog;
  ASSERT_TRUE(catalog.add_manifest(
      manifest("<tasks><task name='A' value='1'><opcodes><opcode name='go' value='11' message='$(string.a)'/>"
               "</opcodes></task><task name='B' value='2'><opcodes><opcode name='go' value='12' "
               "message='$(string.b)'/></opcodes></task></tasks><events><event value='1' task='A' "
               "opcode='go'/><event value='2' task='B' opcode='go'/><event value='3' task='win:None' "
               "symbol='Three'/></events>",
               "<string id='a' value='GoA'/><string id='b' value='GoB'/>")));
  EXPECT_EQ(catalog.find(event_of(1, {}).view())->name, "A/GoA");
  EXPECT_EQ(catalog.find(event_of(2, {}).view())->name, "B/GoB");
  EXPECT_EQ(catalog.find(event_of(3, {}).view())->name, "Three");
}

TEST(ManifestNames, OfATemplateThatIsNotThereAreAProblem) {
  SchemaCatalog catalog;
  ASSERT_TRUE(catalog.add_manifest(manifest("<events><event value='1' template='T'/></events>")));
  EXPECT_EQ(catalog.find(event_of(1, {}).view()), nullptr);
  ASSERT_EQ(catalog.problems().size(), 1u);
  EXPECT_NE(catalog.problems()[0].find("its template is not there"), std::string::npos);
}

// Readers made after Microsoft's example go by the lengths of fixed types, too.
TEST(EventInfoRecords, SayTheLengthsThatWindowsOwnSay) {
  SchemaCatalog catalog;
  ASSERT_TRUE(catalog.add_manifest(manifest(
      "<templates><template tid='T'><data name='a' inType='win:UInt8'/><data name='b' inType='win:UInt16'/>"
      "<data name='c' inType='win:Pointer'/><data name='d' inType='win:GUID'/><data name='e' "
      "inType='win:FILETIME'/><data name='f' inType='win:UnicodeString'/><data name='g' "
      "inType='win:Double'/></template></templates><events><event value='1' template='T'/></events>")));
  const Schema *schema = catalog.find(event_of(1, {}).view());
  ASSERT_NE(schema, nullptr);
  const auto record = schema::write_event_info(*schema, {.provider = kNamedProvider, .id = 1});
  ASSERT_TRUE(record);
  std::vector<unsigned> lengths;
  for (std::size_t i = 0; i < schema->fields.size(); ++i)
    lengths.push_back(load<std::uint16_t>(record->data() + schema::event_info::kPropertiesAt +
                                          schema::event_info::Property::kSize * i + 18));
  EXPECT_EQ(lengths, (std::vector<unsigned>{1, 2, 4, 16, 8, 0, 8}));
}

constexpr std::string_view kNamedTmf = R"(11223344-5566-7788-99aa-bbccddeeff00 module // SRC=a.c
#typev a_c1 1 "%0[%!FUNC!] x %10!d!" //   LEVEL=INFO FUNC=Foo<int, bool>::Bar FLAGS=X
{
number, ItemLong -- 10
}
#typev a_c2 2 "%0y %10!d!" //
{
number, ItemNobodyKnows -- 10
}
)";

TEST(TraceMessageFormats, NamesOfFunctionsMayHaveBlanksAndUnknownArgumentsAreProblems) {
  std::string wide = "\xFF\xFE"; // as PowerShell writes it
  for (const char c : kNamedTmf)
    wide += c, wide += '\0';
  for (const std::string_view text : {kNamedTmf, std::string_view(wide)}) {
    SchemaCatalog catalog;
    ASSERT_TRUE(catalog.add_tmf(text));
    const Built message(
        [&](write::EventBuilder &e) { e.message(1, kNamedProvider, 8, 8, 4, 1000).put(std::uint32_t{5}); });
    ASSERT_NE(catalog.find(message.view()), nullptr);
    EXPECT_EQ(catalog.find(message.view())->message, "[Foo<int, bool>::Bar] x %1!d!");
    ASSERT_EQ(catalog.problems().size(), 1u);
    EXPECT_NE(catalog.problems()[0].find("'ItemNobodyKnows'"), std::string::npos) << catalog.problems()[0];
  }
}

TEST(TraceMessageFormats, SayLevelsAndKeepPercentSignsOfNames) {
  const std::pair<std::string, unsigned> levels[] = {{"TRACE_LEVEL_CRITICAL", 1},
                                                     {"TRACE_LEVEL_FATAL", 1},
                                                     {"TRACE_LEVEL_ERROR", 2},
                                                     {"TRACE_LEVEL_VERBOSE", 5},
                                                     {"4", 4},
                                                     {"TRACE_LEVEL_RESERVED9", 9},
                                                     {"TRACE_LEVEL_NOBODY", 0},
                                                     {"Noise", 0},
                                                     {"256", 0}};
  for (const auto &[name, level] : levels) {
    SchemaCatalog catalog;
    ASSERT_TRUE(catalog.add_tmf("11223344-5566-7788-99aa-bbccddeeff00 100%1.c // SRC=a.c\n"
                                "#typev a_c1 1 \"%0%1 %!FUNC! %%: %10!d!\" //   LEVEL=" +
                                name + " FLAGS=X FUNC=Num::operator%1\n{\nn, ItemLong -- 10\n}\n"));
    const Built message(
        [&](write::EventBuilder &e) { e.message(1, kNamedProvider, 8, 8, 4, 1000).put(std::uint32_t{5}); });
    const Schema *schema = catalog.find(message.view());
    ASSERT_NE(schema, nullptr);
    EXPECT_EQ(schema->level, level) << name;
    EXPECT_EQ(level_of(message.view(), schema), level) << name;
    EXPECT_EQ(level_of(message.view(), nullptr), 0);
    EXPECT_EQ(schema->message, "100%%1.c Num::operator%%1 %%: %1!d!");
  }
}

TEST(TraceMessageFormats, ListsAndSetsNameTheirValues) {
  SchemaCatalog catalog;
  ASSERT_TRUE(catalog.add_tmf(R"(11223344-5566-7788-99aa-bbccddeeff00 module // SRC=a.c
#typev a_c1 1 "%0x %10!s! %11!s!" //
{
list, ItemListLong(FALSE, TRUE) -- 10
set, ItemSetByte(a,b,c) -- 11
}
)"));
  const auto message = [](std::uint32_t list, std::uint8_t set) {
    return Built(
        [&](write::EventBuilder &e) { e.message(1, kNamedProvider, 8, 8, 4, 1000).put(list).put(set); });
  };
  EXPECT_EQ(json_of(catalog, message(1, 5)), R"({"list":"TRUE","set":"a|c"})");
  EXPECT_EQ(json_of(catalog, message(2, 8)), R"({"list":2,"set":"0x8"})");
}

} // namespace
} // namespace etwrelog
