// Fields that events describe themselves, of every way in which an export can be asked: the same values, and
// every byte of them.
#include "tests/support/json_lines.hpp"
#include "tests/support/run_tool.hpp"
#include "tests/support/synthetic_trace.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace etwrelog {
namespace {

using nlohmann::json;
using testing::run_tool;
using testing::ToolRun;
using Raw = std::vector<std::uint8_t>;

constexpr Guid kProvider = make_guid(0x11223344, 0x5566, 0x7788, 0x99aa, 0xbbccddeeff00);
constexpr std::uint8_t kUInt32 = 8, kDouble = 12, kBool32 = 13, kCounted = 0x40; // of TraceLogging

class TracedFields : public ::testing::Test {
protected:
  void add(std::string_view name, const std::vector<std::pair<std::string, std::uint8_t>> &fields,
           Raw payload) {
    Raw metadata = {0, 0, 0}; // size, tags
    const auto put = [&metadata](std::string_view text) {
      metadata.insert(metadata.end(), text.begin(), text.end());
      metadata.push_back(0);
    };
    put(name);
    for (const auto &[field, type] : fields)
      put(field), metadata.push_back(type);
    store(metadata.data(), static_cast<std::uint16_t>(metadata.size()));
    trace_.manifest_event({2'000'000 + 10 * static_cast<std::int64_t>(++events_)},
                          {.provider = kProvider, .channel = 11}, 11, 10, payload,
                          {{format::ItemType::schema_tl, metadata}});
  }
  std::string written() {
    const std::string name = directory_.file("x.etl");
    testing::write_file(name, trace_.bytes());
    return name;
  }
  std::vector<json> exported(std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"export", written(), "--provider", to_string(kProvider)});
    const ToolRun run = run_tool(more);
    EXPECT_EQ(run.status, 0) << run.err;
    return testing::json_lines(run.out);
  }
  ToolRun asked(const std::string &sql, bool as_json = false) {
    std::vector<std::string> words = {"query", written(), sql};
    if (as_json) words.push_back("--json");
    const ToolRun run = run_tool(words);
    EXPECT_EQ(run.status, 0) << run.err;
    return run;
  }
  template <class T> static void put(Raw &raw, T value) {
    raw.resize(raw.size() + sizeof value);
    store(raw.data() + raw.size() - sizeof value, value);
  }

  static constexpr const char *kTable = "\"11223344_5566_7788_99aa_bbccddeeff00_E\"";
  testing::SyntheticTrace trace_;
  testing::TempDir directory_;
  int events_ = 0;
};

TEST_F(TracedFields, BooleansAndRealNumbersAreTheSameEverywhere) {
  Raw payload;
  put(payload, std::uint32_t{2}), put(payload, 0.1 + 0.2);
  add("E", {{"b", kBool32}, {"d", kDouble}}, payload);
  const std::vector<json> events = exported();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0]["fields"]["b"], true);
  EXPECT_EQ(events[0]["fields"]["d"].get<double>(), 0.1 + 0.2);
  EXPECT_EQ(exported({"--where", "b = 1 and d = 0.30000000000000004"}).size(), 1u);
  const std::string table = kTable;
  EXPECT_EQ(asked("select b, d from " + table + " where b = 1").out, "b\td\n1\t0.30000000000000004\n");
  const json row = json::parse(asked("select d, 3.0 as e, 1e999 as f from " + table, true).out);
  EXPECT_EQ(row["d"].get<double>(), 0.1 + 0.2);
  EXPECT_EQ(row["e"].get<double>(), 3.0);
  EXPECT_TRUE(row["f"].is_null());
}

// An array that says it is longer than its event is not there; its bytes are.
TEST_F(TracedFields, OfAnEventThatIsCutNoByteIsLeftOutAndNothingIsFound) {
  Raw payload;
  put(payload, std::uint32_t{7}), put(payload, std::uint16_t{100}), put(payload, std::uint32_t{9});
  add("E", {{"n", kUInt32}, {"a", kUInt32 | kCounted}}, payload);
  const std::vector<json> events = exported();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0]["fields"], json({{"n", 7}}));
  EXPECT_EQ(events[0]["truncated"], true) << events[0];
  EXPECT_TRUE(events[0]["tail"].get<std::string>().ends_with("09000000")) << events[0];
  EXPECT_EQ(exported({"--where", "n = 7"}).size(), 1u);
  EXPECT_EQ(exported({"--where", "a = 9"}).size(), 0u);
  EXPECT_EQ(exported({"--profile", "otel"})[0]["Attributes"]["tail"], events[0]["tail"]);
}

TEST_F(TracedFields, TimesThatExcludeEachOtherFitNoEvent) {
  add("E", {{"n", kUInt32}}, {1, 0, 0, 0});
  EXPECT_EQ(exported({"--where", "time < '1s' and time > '2s'"}).size(), 0u);
  EXPECT_EQ(run_tool({"schema", written(), "--where", "time < '1s' and time > '2s'"}).status, 0);
}

// They should be UTF-8.
TEST_F(TracedFields, NamesInAnOlderCharacterSetAreReadAsThat) {
  add("ev\xFF", {{"f\xE9", kUInt32}, {"", kUInt32}}, {1, 0, 0, 0, 2, 0, 0, 0});
  const std::vector<json> events = exported();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0]["event"], "ev\u00FF");
  EXPECT_EQ(events[0]["fields"]["f\u00E9"], 1);
  EXPECT_NE(run_tool({"stats", written()}).out.find("ev\u00FF"), std::string::npos);
  const ToolRun schema = run_tool({"schema", written(), "--json"});
  EXPECT_EQ(schema.status, 0) << schema.err;
  EXPECT_EQ(asked("select 1 as \"a\x1b[31m\nb\", 'x' || char(10, 27, 9) as c").out,
            "a[31m\\nb\tc\n1\tx\\n\\t\n");
  EXPECT_TRUE(json::accept(schema.out));
}

} // namespace
} // namespace etwrelog
