// Conditions: the language itself, what it means for events, and that it costs nothing where nothing fits.
#include "tests/support/generated.hpp"
#include "tests/support/pace.hpp"
#include "tests/support/run_tool.hpp"
#include "tests/support/trace_files.hpp"
#include "where/condition.hpp"
#include "where/syntax.hpp"

#include <functional>
#include <map>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace etwrelog {
namespace {

using nlohmann::json;
using testing::run_tool;
using testing::TempDir;
using testing::ToolRun;

std::string error_of(const std::string &text) {
  const Result<where::Syntax> parsed = where::parse(text);
  return parsed ? "" : parsed.error().message();
}

TEST(WhereSyntax, TakesWhatTheLanguageHas) {
  for (const char *text : {"a = 1", "a == 0x1F or b != -7", "a <> 1.5e-3 and not (b < 2 or c >= 3)",
                           "a in (1, 'x', true)", "a not in (\"x\")", "a ~ \"\\\\.dll$\"", "a !~ 'x'",
                           "`odd name` = 1", "fields.time = 1", "a.b.c = 'x'", "NOT a = 1 AND b = FALSE",
                           "a#2 = 1", "\xC3\xBC = 1", "((((a = 1))))", "not not a = 1"})
    EXPECT_EQ(error_of(text), "") << text;
}

TEST(WhereSyntax, SaysWhereItGoesWrong) {
  struct Case {
    const char *text, *at, *expected;
  };
  for (const Case &c :
       {Case{"", "character 1:", "a name"}, Case{"a", "character 2:", "\"in\""},
        Case{"a =", "character 4:", "a number"}, Case{"a = b", "character 5:", "found 'b'"},
        Case{"a = 1 b = 2", "character 7:", "\"and\""}, Case{"(a = 1", "character 7:", "\")\""},
        Case{"a ~ 5", "character 5:", "regular expression"},
        Case{"a = \"x", "character 5:", "no \" at its end"},
        Case{"a = 12x", "character 5:", "'12x' is no number"}, Case{"a in 1", "character 6:", "\"(\""},
        Case{"a in (1", "character 8:", "\")\""}, Case{"a = 1 and or", "character 11:", "a name"},
        Case{"a not b", "character 7:", "\"in\""}, Case{"\xC3\xBC = ", "character 5:", "a number"},
        Case{"a = 99999999999999999999x", "character 5:", "is no number"},
        Case{"a = -0x10000000000000000", "character 5:", "is no number"},
        Case{"a = 1)", "character 6:", "the end"}, Case{"a & 1", "character 3:", "=, !="}}) {
    const std::string message = error_of(c.text);
    EXPECT_NE(message.find(c.at), std::string::npos) << c.text << ": " << message;
    EXPECT_NE(message.find(c.expected), std::string::npos) << c.text << ": " << message;
  }
}

TEST(WhereSyntax, RefusesWhatNobodyWrites) {
  EXPECT_NE(error_of(std::string(100'000, '(') + "a = 1"), "");
  std::string many = "a = 1";
  for (int i = 0; i < 5000; ++i)
    many += " or a = 1";
  EXPECT_NE(error_of(many), "");
  std::string nots;
  for (int i = 0; i < 5000; ++i)
    nots += "not ";
  EXPECT_NE(error_of(nots + "a = 1"), "");
}

// What export says of the events that fulfil a condition.
using Judge = std::function<bool(const json &)>;

std::vector<json> matching(const std::string &trace, const std::string &where) {
  const ToolRun run = run_tool({"export", trace, "--where", where});
  EXPECT_EQ(run.status, 0) << where << ": " << run.err;
  std::vector<json> events;
  std::istringstream lines(run.out);
  for (std::string line; std::getline(lines, line);)
    events.push_back(json::parse(line));
  return events;
}

const json &field(const json &event, const char *name) {
  static const json none;
  const json &fields = event["fields"];
  return fields.is_object() && fields.contains(name) ? fields[name] : none;
}

TEST(Where, MeansWhatTheExportedEventsSay) {
  const auto trace = testing::trace_path("diaghub.kernel.1");
  if (!trace) GTEST_SKIP() << "the real traces are not here";
  const std::string whole = run_tool({"export", trace->string()}).out;
  std::vector<json> all;
  std::vector<std::string_view> texts; // of the same events
  for (std::size_t at = 0; at < whole.size();) {
    const std::size_t end = whole.find('\n', at) + 1;
    texts.push_back(std::string_view(whole).substr(at, end - at));
    all.push_back(json::parse(texts.back()));
    at = end;
  }
  ASSERT_GT(all.size(), 10'000u);
  auto ends_with_dll = [](const json &e) {
    const json &name = field(e, "FileName");
    return name.is_string() && name.get<std::string>().ends_with(".dll");
  };
  auto number = [](const json &value) {
    return value.is_string() ? std::stoull(value.get<std::string>(), nullptr, 0) : value.get<std::uint64_t>();
  };
  auto has = [](const json &e, const char *name) { return !field(e, name).is_null(); };
  const std::vector<std::pair<std::string, Judge>> cases = {
      {R"(FileName ~ "\\.dll$")", ends_with_dll},
      {R"(FileName ~ "\.dll$")", ends_with_dll},
      {R"(not FileName ~ '\.dll$')", [&](const json &e) { return !ends_with_dll(e); }},
      {R"(FileName !~ '\.dll$')", [&](const json &e) { return has(e, "FileName") && !ends_with_dll(e); }},
      {"ImageSize > 0x100000",
       [&](const json &e) { return has(e, "ImageSize") && number(field(e, "ImageSize")) > 0x100000; }},
      {"ImageSize > 65536 and FileName ~ '\\.dll$' and ProcessId in (4, 0)",
       [&](const json &e) {
         return ends_with_dll(e) && has(e, "ImageSize") && number(field(e, "ImageSize")) > 65536 &&
                (field(e, "ProcessId") == 4 || field(e, "ProcessId") == 0);
       }},
      {"cpu in (0x1, 'x', 2)", [](const json &e) { return e["cpu"] == 1 || e["cpu"] == 2; }},
      {"cpu not in (0x1, 'x')", [](const json &e) { return e["cpu"] != 1; }},
      {"event in ('Image/Load', 7)", [](const json &e) { return e["event"] == "Image/Load"; }},
      {"cpu = 0", [](const json &e) { return e["cpu"] == 0; }},
      {"cpu != 0 and opcode not in (10, 36)",
       [](const json &e) { return e["cpu"] != 0 && e["opcode"] != 10 && e["opcode"] != 36; }},
      {"event = 'Image/Load' or event = \"Process/Start\"",
       [](const json &e) { return e["event"] == "Image/Load" || e["event"] == "Process/Start"; }},
      {"event ~ '^Thread/'",
       [](const json &e) { return e["event"].get<std::string>().starts_with("Thread/"); }},
      {"not event ~ '^Thread/'",
       [](const json &e) { return !e["event"].get<std::string>().starts_with("Thread/"); }},
      {"provider = 'Windows Kernel' and not process ~ '.'",
       [](const json &e) { return e["provider"] == "Windows Kernel" && e["process"].is_null(); }},
      {"process ~ '(?i)^vs'",
       [](const json &e) {
         const std::string name = e["process"].is_string() ? e["process"].get<std::string>() : "";
         return name.size() > 1 && (name[0] | 32) == 'v' && (name[1] | 32) == 's';
       }},
      {"process_id = 4", [](const json &e) { return e["process_id"] == 4; }},
      {"timestamp >= 13770000000 and timestamp < 13789000000",
       [](const json &e) { return e["timestamp"] >= 13770000000 && e["timestamp"] < 13789000000; }},
      {"version > 2 and level = 0", [](const json &e) { return e["version"] > 2 && e["level"] == 0; }},
      {"keyword = 0", [](const json &) { return true; }},
      {"activity ~ '.'", [](const json &e) { return e.contains("activity"); }},
  };
  auto check = [&](const std::string &where, const Judge &judge) {
    std::string expected;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (judge(all[i])) expected += texts[i];
    const ToolRun run = run_tool({"export", trace->string(), "--where", where});
    EXPECT_EQ(run.status, 0) << where << ": " << run.err;
    EXPECT_TRUE(run.out == expected) << where << ": " << run.out.size() << " bytes, expected "
                                     << expected.size();
  };
  for (const auto &[text, judge] : testing::some(3, cases))
    check(text, judge);
  // Half of them each way, by the time as it is written.
  const std::string middle = all[all.size() / 2]["time"];
  check("time < '" + middle + "'", [&](const json &e) { return e["time"] < middle; });
  check("not (time < '" + middle + "')", [&](const json &e) { return e["time"] >= middle; });
  // Seconds since the beginning, also beyond what a time of day can be.
  check("time < '1e12h' and time > '-1e12h'", [](const json &) { return true; });
}

TEST(Where, ComparesFiletimesWithAllNumbers) {
  const auto trace = testing::trace_path("net.4.5.2.x64");
  if (!trace) GTEST_SKIP() << "the real traces are not here";
  const std::size_t all = matching(trace->string(), "CreateTime < 1000000000000000000").size();
  EXPECT_GT(all, 0u);
  EXPECT_EQ(matching(trace->string(), "CreateTime < 1e18").size(), all);
  EXPECT_EQ(matching(trace->string(), "CreateTime < 1.5e17").size(), all);
  EXPECT_EQ(matching(trace->string(), "CreateTime > 1e30").size(), 0u);
  EXPECT_EQ(matching(trace->string(), "CreateTime < '2200-01-01'").size(), all);
  const ToolRun run =
      run_tool({"export", trace->string(), "--where", "CreateTime in ('2020-01-01', 'soon')"});
  EXPECT_EQ(run.status, 2);
  EXPECT_NE(run.err.find("'soon' is no date and time"), std::string::npos) << run.err;
}

TEST(Where, TakesGuidsAsPeopleWriteThem) {
  const auto trace = testing::trace_path("net.4.5.2.x64");
  if (!trace) GTEST_SKIP() << "the real traces are not here";
  if (testing::kSanitized) GTEST_SKIP() << "too much for a sanitizer: other conditions take the same ways";
  const std::size_t all =
      matching(trace->string(), "provider_id = 'e13c0d23-ccbc-4e12-931b-d9cc2eee27e4'").size();
  EXPECT_GT(all, 0u);
  EXPECT_EQ(matching(trace->string(), "provider_id = '{E13C0D23-CCBC-4E12-931B-D9CC2EEE27E4}'").size(), all);
  EXPECT_EQ(
      matching(trace->string(), "provider_id in ('{E13C0D23-CCBC-4E12-931B-D9CC2EEE27E4}', 'x') and "
                                "activity != '{E13C0D23-CCBC-4E12-931B-D9CC2EEE27E4}'")
          .size(),
      matching(trace->string(), "provider_id = 'e13c0d23-ccbc-4e12-931b-d9cc2eee27e4' and activity != ''")
          .size());
}

TEST(Where, ReachesMembersAndElements) {
  const auto trace = testing::trace_path("SelfDescribingSingleEvent");
  if (!trace) GTEST_SKIP() << "the real traces are not here";
  EXPECT_EQ(matching(trace->string(), "a.b = 'Hello' and a.c ~ '^W'").size(), 1u);
  EXPECT_EQ(matching(trace->string(), "fields.a.b = 'World'").size(), 0u);
  EXPECT_EQ(matching(trace->string(), "event in ('TestEvent', 'x')").size(), 1u);
}

TEST(Where, NamesWhatNoEventHas) {
  const auto trace = testing::trace_path("SelfDescribingSingleEvent");
  if (!trace) GTEST_SKIP() << "the real traces are not here";
  const ToolRun unknown = run_tool({"export", trace->string(), "--where", "cpu = 1 and Filename = 'x'"});
  EXPECT_EQ(unknown.status, 1);
  EXPECT_NE(unknown.err.find("character 13"), std::string::npos) << unknown.err;
  EXPECT_NE(unknown.err.find("'FileName' is one"), std::string::npos) << unknown.err;
  const ToolRun pattern = run_tool({"export", trace->string(), "--where", "FileName ~ '('"});
  EXPECT_EQ(pattern.status, 2);
  EXPECT_NE(pattern.err.find("character 12"), std::string::npos) << pattern.err;
  const ToolRun moment = run_tool({"export", trace->string(), "--where", "time > 'soon'"});
  EXPECT_EQ(moment.status, 2) << moment.err;
}

TEST(Where, JoinedColumnsAreNoFields) {
  const TempDir directory;
  const std::string trace = directory.file("t.etl");
  testing::write_file(trace, testing::generated(1 << 20));
  for (const std::string column :
       {"file", "modules", "stack", "duration_ns", "command_line", "owner_process"}) {
    for (const char *command : {"export", "schema"}) {
      const ToolRun run = run_tool({command, trace, "--where", "cpu = 0 and " + column + " ~ 'x'"});
      EXPECT_EQ(run.status, 1) << command << column;
      EXPECT_NE(run.err.find("what --join adds cannot stand in a condition"), std::string::npos) << run.err;
    }
  }
  EXPECT_EQ(run_tool({"export", trace, "--where", "nobody ~ 'x'"}).err.find("--join"), std::string::npos);
}

TEST(Where, TheExampleOfTheHelpTakesEvents) {
  const TempDir directory;
  const std::string trace = directory.file("t.etl"), help = run_tool({"export", "--help"}).out;
  testing::write_file(trace, testing::generated(4 << 20));
  const std::size_t first = help.find('\'', help.find("fulfil a condition: ")) + 1;
  const std::string example = help.substr(first, help.find('\'', first) - first);
  ASSERT_NE(example.find("FileName"), std::string::npos) << example;
  EXPECT_GT(matching(trace, example).size(), 10u);
  if (const auto real = testing::trace_path("diaghub.kernel.1")) {
    EXPECT_GT(matching(real->string(), example).size(), 10u);
  }
}

TEST(Where, AppliesToTablesAndSchemasToo) {
  const auto trace = testing::trace_path("diaghub.kernel.1");
  if (!trace) GTEST_SKIP() << "the real traces are not here";
  const TempDir directory;
  const std::string csv = directory.file("x.csv");
  ASSERT_EQ(run_tool({"export", trace->string(), "--where", "event = 'Image/Load'", "-o", csv}).status, 0);
  const auto bytes = testing::read_file(csv);
  const auto rows = static_cast<std::size_t>(std::ranges::count(bytes, '\n')) - 1;
  const ToolRun told = run_tool({"schema", trace->string(), "--where", "event = 'Image/Load'", "--json"});
  ASSERT_EQ(told.status, 0) << told.err;
  const json report = json::parse(told.out);
  ASSERT_EQ(report["kinds"].size(), 1u) << report;
  EXPECT_EQ(report["kinds"][0]["events"], rows);
  EXPECT_GT(rows, 0u);
}

// `stats` names kinds as PerfView does, exports as Microsoft's documentation.
TEST(Where, KindsAnswerToTheNamesThatStatsHasForThem) {
  const TempDir directory;
  std::vector<std::string> traces = {directory.file("t.etl")};
  testing::write_file(traces[0], testing::generated(4 << 20));
  if (const auto real = testing::trace_path("net.4.5.2.x64"); real && !testing::kSanitized)
    traces.push_back(real->string());
  for (const std::string &trace : traces) {
    std::map<std::string, std::uint64_t> counts;
    const json stats = json::parse(run_tool({"stats", "--json", trace}).out);
    for (const json &type : stats.at("by_type"))
      counts[type.at("name").get<std::string>()] += type.at("events").get<std::uint64_t>();
    std::size_t checked = 0;
    for (const auto &[whole, count] : counts) {
      const bool kernel =
          whole.starts_with("Windows Kernel/") && !whole.starts_with("Windows Kernel/SysConfig");
      if (!kernel && !whole.starts_with("Microsoft-Windows-DotNETRuntime/")) continue;
      const std::size_t slash = whole.find('/');
      const std::string provider = whole.substr(0, slash), name = whole.substr(slash + 1),
                        with = "provider = '" + provider + "' and event = '" + name + "'",
                        without = "provider = '" + provider + "' and event not in ('" + name + "', 'x')";
      if (++checked % (testing::kSanitized ? 8 : 3) != 0) continue; // some will do
      EXPECT_EQ(matching(trace, with).size(), count) << whole;
      if (count > 1'000) continue;
      for (const json &event : matching(trace, without + " and " + with))
        ADD_FAILURE() << event;
    }
    EXPECT_GT(checked, 20u);
  }
}

TEST(Where, LooksAtNoEventOfKindsThatCannotFit) {
  const Result<where::Syntax> none = where::parse("FileName = 'x'");
  ASSERT_TRUE(none);
  class Nobody final : public where::Surroundings {
    [[nodiscard]] std::string_view process_name(const Event &) const override { return {}; }
    void names(const Event *, const Schema *schema, std::string &, std::string &name) const override {
      name = schema ? schema->name : "";
    }
  } const nobody;
  const SchemaCatalog &builtin = SchemaCatalog::builtin();
  const auto impossible =
      where::Condition::make("FileName = 'x' and IoSize = 1 and connid = 2", builtin, {}, nobody);
  ASSERT_TRUE(impossible) << impossible.error().message();
  EXPECT_TRUE(impossible->nothing());
  const auto some = where::Condition::make("IoSize > 1 and event = 'FileIo/Read'", builtin, {}, nobody);
  ASSERT_TRUE(some);
  EXPECT_FALSE(some->nothing());
  EXPECT_FALSE(some->kinds().empty());
  const auto all = where::Condition::make("IoSize > 1 or cpu = 0", builtin, {}, nobody);
  ASSERT_TRUE(all);
  EXPECT_TRUE(all->kinds().empty());
  EXPECT_FALSE(all->nothing());
}

} // namespace
} // namespace etwrelog
