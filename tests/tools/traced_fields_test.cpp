// Fields that events describe themselves, of every way in which an export can be asked: the same values, and
// every byte of them.
#include "etwrelog/clock.hpp"
#include "tests/support/json_lines.hpp"
#include "tests/support/run_tool.hpp"
#include "tests/support/synthetic_trace.hpp"
#include "tests/support/trace_files.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sqlite3.h>

namespace etwrelog {
namespace {

using nlohmann::json;
using testing::run_tool;
using testing::ToolRun;
using Raw = std::vector<std::uint8_t>;

constexpr Guid kProvider = make_guid(0x11223344, 0x5566, 0x7788, 0x99aa, 0xbbccddeeff00);
// Of TraceLogging.
constexpr std::uint8_t kText = 1, kUInt8 = 4, kUInt32 = 8, kFloat = 11, kDouble = 12, kBool32 = 13,
                       kCounted = 0x40;
constexpr std::uint8_t kStructureOfOne = 24 | 0x80; // a byte behind it says of how many fields

class TracedFields : public ::testing::Test {
protected:
  void add(std::string_view name, const std::vector<std::pair<std::string, std::uint8_t>> &fields,
           Raw payload, std::string_view provider = {}) {
    Raw metadata = {0, 0, 0}; // size, tags
    const auto put = [](Raw &to, std::string_view text) {
      to.insert(to.end(), text.begin(), text.end());
      to.push_back(0);
    };
    put(metadata, name);
    for (const auto &[field, type] : fields) {
      put(metadata, field), metadata.push_back(type);
      if ((type & ~kCounted) == kStructureOfOne) metadata.push_back(1);
    }
    store(metadata.data(), static_cast<std::uint16_t>(metadata.size()));
    std::vector<testing::SyntheticTrace::Item> items = {{format::ItemType::schema_tl, metadata}};
    if (!provider.empty()) {
      Raw traits = {0, 0};
      put(traits, provider);
      store(traits.data(), static_cast<std::uint16_t>(traits.size()));
      items.emplace_back(format::ItemType::provider_traits, traits);
    }
    trace_.manifest_event({2'000'000 + 10 * static_cast<std::int64_t>(++events_)},
                          {.provider = provider_, .channel = 11}, 11, 10, payload, items);
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
  // What an exported database answers: cells with '|' between them, rows with line feeds; NULL for nulls.
  std::string in_database(const std::string &sql, std::vector<std::string> more = {}) {
    const std::string path = directory_.file("x.sqlite");
    more.insert(more.begin(), {"export", written(), "-f", "-o", path});
    const ToolRun run = run_tool(more);
    EXPECT_EQ(run.status, 0) << run.err;
    sqlite3 *database = nullptr;
    EXPECT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
    std::string rows;
    const auto add = [](void *to, int columns, char **values, char **) {
      auto &out = *static_cast<std::string *>(to);
      for (int i = 0; i < columns; ++i)
        out.append(i == 0 ? "" : "|").append(values[i] == nullptr ? "NULL" : values[i]);
      out += '\n';
      return 0;
    };
    EXPECT_EQ(sqlite3_exec(database, sql.c_str(), add, &rows, nullptr), SQLITE_OK)
        << sql << sqlite3_errmsg(database);
    sqlite3_close(database);
    return rows;
  }
  // The CSV file of a kind, as a folder of them has it.
  std::string in_folder(const std::string &table) {
    const std::string folder = directory_.file("kinds");
    if (!std::filesystem::exists(folder)) {
      const ToolRun run = run_tool({"export", written(), "--by-kind", "--format", "csv", "-o", folder});
      EXPECT_EQ(run.status, 0) << run.err;
    }
    const Raw bytes = testing::read_file(folder + "/" + table + ".csv");
    return {bytes.begin(), bytes.end()};
  }
  template <class T> static void put(Raw &raw, T value) {
    raw.resize(raw.size() + sizeof value);
    store(raw.data() + raw.size() - sizeof value, value);
  }

  static constexpr const char *kTable = "\"11223344_5566_7788_99aa_bbccddeeff00_E\"";
  Guid provider_ = kProvider;
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

// Where nothing is left behind whole fields, `raw` does not tell.
TEST_F(TracedFields, TablesTellWhichEventsEndInsideAField) {
  const std::vector<std::pair<std::string, std::uint8_t>> fields{{"n", kUInt8}, {"s", kText}};
  add("E", fields, {1, 'a', 0, 'b', 0}, "P");
  add("E", fields, {2, 'a', 0, 'b', 0, 'c'}, "P");
  add("E", fields, {3, 'a', 0, 0, 0}, "P");
  add("E", fields, {}, "P");
  const std::string rows = "select n, s, raw, truncated from P_E order by n";
  EXPECT_EQ(in_database(rows), "NULL|NULL|NULL|1\n1|ab|NULL|NULL\n2|ab|63|1\n3|a|NULL|NULL\n");
  EXPECT_EQ(asked(rows).out, "n\ts\traw\ttruncated\n\t\t\t1\n1\tab\t\t\n2\tab\t63\t1\n3\ta\t\t\n");
  EXPECT_EQ(asked("select count(*) as n from events where truncated").out, "n\n2\n");
  const std::string csv = in_folder("P_E");
  EXPECT_NE(csv.find(",raw,truncated\r\n"), std::string::npos) << csv;
  EXPECT_NE(csv.find(",2,ab,63,true\r\n"), std::string::npos) << csv;
  EXPECT_NE(csv.find(",3,a,,\r\n"), std::string::npos) << csv;
}

// Of structures with long names text grows faster than bytes.
TEST_F(TracedFields, OfAnEventOfTooMuchTextQueriesHaveItsBytes) {
  Raw payload;
  put(payload, std::uint16_t{200});
  payload.resize(payload.size() + 200, 1);
  payload.push_back(7);
  add("E", {{"S", kStructureOfOne | kCounted}, {std::string(400, 'm'), kUInt8}, {"n", kUInt8}}, payload, "P");
  const json line = exported()[0];
  EXPECT_TRUE(line["fields"].is_null());
  const std::string bytes = line["raw"];
  EXPECT_EQ(bytes.size(), 2 * payload.size());
  const std::string row = "select S, n, raw, truncated from P_E";
  EXPECT_EQ(in_database(row), "NULL|NULL|" + bytes + "|NULL\n");
  EXPECT_EQ(asked(row).out, "S\tn\traw\ttruncated\n\t\t" + bytes + "\t\n");
  const std::string of_all = "select fields, raw from events where event = 'E'";
  EXPECT_EQ(asked(of_all).out, "fields\traw\n\t" + bytes + "\n");
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
            "a\\x1b[31m\\nb\tc\n1\tx\\n\\x1b\\t\n");
  EXPECT_TRUE(json::accept(schema.out));
}

// SQLite takes no table whose name begins with "sqlite_", in any case.
TEST_F(TracedFields, ProvidersMayBeCalledAsTablesMustNotBe) {
  const auto add_event = [this](const char *provider, const char *name, std::uint8_t n) {
    ++provider_.low;
    add(name, {{"n", kUInt32}}, {n, 0, 0, 0}, provider);
  };
  add_event("SQLite.Interop", "E", 5), add_event("sqlite", "E", 6), add_event("SQLITE-x", "E", 7);
  add_event("NoSQLite", "E", 8), add_event("x", "sqlite_stat1", 9);
  const std::pair<const char *, const char *> expected[] = {{"_SQLite_Interop_E", "5"},
                                                            {"_sqlite_E", "6"},
                                                            {"_SQLITE_x_E", "7"},
                                                            {"NoSQLite_E", "8"},
                                                            {"x_sqlite_stat1", "9"}};
  for (const auto &[table, n] : expected) {
    const std::string sql = std::string("select n from ") + table;
    EXPECT_EQ(asked(sql).out, std::string("n\n") + n + "\n");
    EXPECT_EQ(in_database(sql), std::string(n) + "\n");
    EXPECT_NE(in_folder(table).find(std::string(",") + n + ","), std::string::npos)
        << table << in_folder(table);
  }
  EXPECT_EQ(in_database("select count(*) > 4 from events"), "1\n");
}

// File systems take names of some 255 bytes.
TEST_F(TracedFields, EveryKindHasAFileOfItsOwnHoweverLongItsName) {
  const std::string long_name(300, 'x'), table = "P_" + long_name;
  // Names that cutting others and a number give, too, here or with another length.
  add(long_name.substr(0, 198) + "_2", {{"n", kUInt32}}, {5, 0, 0, 0}, "P");
  add(long_name.substr(0, 188) + "_4", {{"n", kUInt32}}, {6, 0, 0, 0}, "P");
  for (const std::uint8_t n : {7, 8, 9}) {
    ++provider_.low;
    add(long_name + std::to_string(n), {{"n", kUInt32}}, {n, 0, 0, 0}, "P");
  }
  std::map<std::string, std::string> numbers;
  in_folder("");
  for (const auto &file : std::filesystem::directory_iterator(directory_.file("kinds"))) {
    const Raw bytes = testing::read_file(file.path().string());
    const std::string text(bytes.begin(), bytes.end());
    if (text.find(",P,") == std::string::npos) continue;
    EXPECT_EQ(std::ranges::count(text, '\n'), 2) << file << text; // a head and an event
    numbers[text.substr(text.size() - 5)] = file.path().stem().string();
  }
  EXPECT_EQ(numbers.size(), 5u);
  EXPECT_EQ(in_database("select n from \"" + table + "9\""), "9\n");
}

// Nanoseconds since 1970 go no further back than 1677.
TEST_F(TracedFields, ConditionsHaveAllDates) {
  trace_ = testing::SyntheticTrace({.start_time = *parse_filetime("1650-06-01")});
  add("E", {{"n", kUInt32}}, {1, 0, 0, 0}), add("E", {{"n", kUInt32}}, {2, 0, 0, 0});
  const std::vector<json> events = exported();
  ASSERT_EQ(events.size(), 2u);
  const std::string first = events[0]["time"], last = events[1]["time"];
  EXPECT_TRUE(first.starts_with("1650-06-01"));
  const auto count = [&](const std::string &condition) { return exported({"--where", condition}).size(); };
  EXPECT_EQ(count("time < '" + last + "'"), 1u);
  EXPECT_EQ(count("time = '" + first + "'"), 1u);
  EXPECT_EQ(count("time in ('" + first + "', 5)"), 1u);
  EXPECT_EQ(count("time > '1650-05-31'"), 2u);
  EXPECT_EQ(count("time >= '1650-06-02'"), 0u);
  EXPECT_EQ(count("time < 0"), 2u);
}

// SQLite takes 2,000 columns of a table. Other kinds do not pay for one that has more.
TEST_F(TracedFields, AKindWithMoreFieldsThanSqliteHasColumnsLosesNone) {
  const auto add_wide = [this](const char *name, std::size_t count) {
    std::vector<std::pair<std::string, std::uint8_t>> fields;
    Raw payload;
    for (std::size_t i = 0; i < count; ++i)
      fields.emplace_back("c" + std::to_string(i), kUInt8), payload.push_back(static_cast<std::uint8_t>(i));
    payload.push_back(0xA5); // which no field covers
    add(name, fields, payload, "P");
  };
  add_wide("Wide", 1'900), add_wide("Wider", 1'901), add_wide("Widest", 2'500);
  add("E", {{"n", kUInt32}}, {7, 0, 0, 0}, "P");
  const std::vector<json> events = exported();
  ASSERT_EQ(events.size(), 4u);
  const std::vector<std::string> all = {"--join", "all"};
  EXPECT_EQ(asked("select n from P_E").out, "n\n7\n");
  EXPECT_EQ(in_database("select n from P_E", all), "7\n");
  EXPECT_EQ(asked("select c0, c1899 from P_Wide").out, "c0\tc1899\n0\t107\n");
  EXPECT_EQ(in_database("select c0, c1899, raw from P_Wide", all), "0|107|a5\n");
  for (const auto &[table, event] : {std::pair("P_Wider", &events[1]), std::pair("P_Widest", &events[2])}) {
    const std::string sql = std::string("select event, json_extract(fields, '$.c1900') from ") + table;
    const std::string name = (*event)["event"].get<std::string>();
    EXPECT_TRUE(asked(sql).out.ends_with("\n" + name + "\t108\n")) << asked(sql).out;
    EXPECT_EQ(in_database(sql), name + "|108\n");
    EXPECT_EQ(json::parse(in_database(std::string("select fields from ") + table, all)), (*event)["fields"]);
    EXPECT_EQ(in_database(std::string("select raw from ") + table, all), "a5\n");
    // Files without such a limit have a column for each.
    const std::string csv = in_folder(table);
    const auto line = csv.substr(0, csv.find('\n'));
    EXPECT_EQ(static_cast<std::size_t>(std::ranges::count(line, ',')), 17 + (*event)["fields"].size());
  }
}

// Null would say that its fields cover the payload.
TEST_F(TracedFields, OfAnEventThatNothingDescribesNoBytesAreNoNull) {
  const Guid unknown = make_guid(0xFEED, 1, 2, 3, 4);
  for (const Raw &payload : {Raw{}, Raw{0x7A}})
    trace_.manifest_event({2'000'500 + static_cast<std::int64_t>(payload.size())},
                          {.provider = unknown, .id = 78}, 11, 10, payload);
  add("E", {{"n", kUInt32}}, {7, 0, 0, 0}, "P");
  const std::vector<json> lines =
      testing::json_lines(run_tool({"export", written(), "--where", "id = 78"}).out);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0]["raw"], "");
  EXPECT_EQ(lines[1]["raw"], "7a");
  EXPECT_EQ(in_database("select raw from undescribed where id = 78 order by time"), "\n7a\n");
  EXPECT_EQ(in_database("select raw from P_E"), "NULL\n");
}

TEST_F(TracedFields, TextsOfSingleRealNumbersHaveTheDigitsThatTheseNeed) {
  Raw payload;
  put(payload, 0.1F), put(payload, 0.1), put(payload, -2.5e-30F);
  add("E", {{"f", kFloat}, {"d", kDouble}, {"s", kFloat}}, payload, "P");
  EXPECT_EQ(exported()[0]["fields"].dump(), R"({"d":0.1,"f":0.1,"s":-2.5e-30})");
  EXPECT_NE(in_folder("P_E").find(",0.1,0.1,-2.5e-30,"), std::string::npos) << in_folder("P_E");
  // As numbers they are what the event has, in more digits.
  EXPECT_EQ(asked("select f = 0.1 as f, d = 0.1 as d from P_E").out, "f\td\n0\t1\n");
}

// Readers keep one of two members of the same name.
TEST_F(TracedFields, FieldsThatAreCalledLikeAttributesHaveAnotherNameBesideThem) {
  Raw payload;
  for (std::uint32_t i = 1; i <= 6; ++i)
    put(payload, i);
  payload.push_back(0xA5);
  add("E",
      {{"etw.event.id", kUInt32},
       {"etw.event.id#2", kUInt32},
       {"tail", kUInt32},
       {"s", kStructureOfOne},
       {"etw.event.id", kUInt32},
       {"t", kUInt32},
       {"etw.Level", kUInt32}},
      payload, "P");
  const ToolRun run =
      run_tool({"export", written(), "--profile", "otel", "--provider", to_string(kProvider)});
  EXPECT_EQ(run.status, 0) << run.err;
  const std::size_t fields = run.out.find(",\"etw.event.id#3\"");
  ASSERT_NE(fields, std::string::npos) << run.out;
  EXPECT_EQ(run.out.substr(fields), ",\"etw.event.id#3\":1,\"etw.event.id#2\":2,\"tail#2\":3,"
                                    "\"s\":{\"etw.event.id\":4},\"t\":5,\"etw.Level\":6,\"tail\":\"a5\"}}\n");
  // Lines have fields in an object of their own.
  EXPECT_EQ(exported()[0]["fields"]["etw.event.id"], 1);
}

// What no number is, is null; and so a comparison with it is false, as in SQL.
TEST_F(TracedFields, ConditionsCompareNumbersExactlyAndNothingWithWhatIsNone) {
  for (const std::uint64_t value :
       {std::uint64_t{0}, std::uint64_t{1} << 53, (std::uint64_t{1} << 53) + 1, ~std::uint64_t{0}}) {
    Raw payload;
    put(payload, value);
    add("U", {{"u", 10}}, payload);
  }
  for (const double value : {0.1, 9007199254740992.0, HUGE_VAL, -HUGE_VAL, std::nan("")}) {
    Raw payload;
    put(payload, value), put(payload, static_cast<float>(value));
    add("D", {{"d", kDouble}, {"f", kFloat}}, payload);
  }
  const std::string trace = written();
  const auto count = [&](const std::string &condition) {
    const ToolRun run = run_tool({"export", trace, "--where", condition});
    EXPECT_EQ(run.status, 0) << condition << run.err;
    return std::ranges::count(run.out, '\n');
  };
  const std::pair<const char *, int> cases[] = {{"u = 18446744073709551616", 0},
                                                {"u < 18446744073709551616", 4},
                                                {"u = 9007199254740992.0", 1},
                                                {"u > 9007199254740992.5", 2},
                                                {"u > -9223372036854775809", 4},
                                                {"u in (0.0, 9007199254740993)", 2},
                                                {"d = 9007199254740993", 0},
                                                {"d = 9007199254740992", 1},
                                                {"d = 0.1", 1},
                                                {"f = 0.1", 1},
                                                {"f = 9007199254740993", 0},
                                                {"d > 5", 1},
                                                {"d < 5", 1},
                                                {"d != 5", 2},
                                                {"f != 5", 2},
                                                {"f > 5", 1},
                                                {"f < 1e39", 2},
                                                {"d ~ 'i'", 0}};
  for (const auto &[condition, expected] : cases)
    EXPECT_EQ(count(condition), expected) << condition;
  const std::string table = "\"11223344_5566_7788_99aa_bbccddeeff00_D\"";
  EXPECT_NE(asked("select count(*) from " + table + " where d != 5", true).out.find(":2"), std::string::npos);
}

TEST_F(TracedFields, BytesThatNoFieldCoversAreNotProven) {
  add("Whole", {{"a", kUInt8}}, {1});
  add("Rest", {{"a", kUInt8}}, {1, 2});
  const ToolRun run = run_tool({"export", written(), "--verify", "--json"});
  ASSERT_EQ(run.status, 0) << run.err;
  const json report = json::parse(run.out);
  for (const json &kind : report["kinds"]) {
    const std::string name = kind["name"];
    if (name.ends_with("Whole")) {
      EXPECT_EQ(kind["verified"], 1);
    } else if (name.ends_with("Rest")) {
      EXPECT_EQ(kind["verified"], 0);
      EXPECT_EQ(kind["not_verified"]["bytes behind the last field"], 1);
    }
  }
}

} // namespace
} // namespace etwrelog
