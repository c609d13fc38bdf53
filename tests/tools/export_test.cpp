// export against the independent decoder, and what a user may rely on: order, sameness, nothing left out.
#include "tests/support/json_lines.hpp"
#include "tests/support/pace.hpp"
#include "tests/support/real_traces.hpp"
#include "tests/support/run_tool.hpp"
#include "tests/support/synthetic_trace.hpp"
#include "tests/support/trace_files.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>

#include <gtest/gtest.h>

namespace etwrelog::testing {
namespace {

using nlohmann::json;

std::string fresh_folder(const std::string &name) {
  const std::filesystem::path folder =
      std::filesystem::path(::testing::TempDir()) / ("etwrelog-export-" + name);
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder.string();
}

TEST(Export, AnEndingThatTellsAnotherFormatIsRefused) {
  const auto trace = testing::trace_path("AMSITrace");
  if (!trace) GTEST_SKIP() << "the real traces are not here";
  const TempDir directory;
  for (const char *name : {"x.csv.gz", "x.parquet.zst", "x.foo"}) {
    const ToolRun run = run_tool({"export", trace->string(), "-o", directory.file(name)});
    EXPECT_EQ(run.status, 2) << name;
    EXPECT_NE(run.err.find("tells no format"), std::string::npos) << run.err;
  }
  EXPECT_TRUE(directory.names().empty());
  ASSERT_EQ(run_tool({"export", trace->string(), "-o", directory.file("x.CSV")}).status, 0);
  EXPECT_EQ(testing::read_file(directory.file("x.CSV"))[0], 't') << "time, the first column";
}

// The name of a process stands in every line of its events: one of 40,000 letters, and as many small events
// as there may be, would be more than any memory.
TEST(Export, NamesOfAnyLengthAreShownAsFarAsWindowsHasThem) {
  const TempDir directory;
  TraceOptions options;
  options.buffer_size = 128 * 1024;
  SyntheticTrace trace(options);
  const std::string name(40'000, 'x');
  trace.process_start({1'000'000}, 400, 4, name);
  for (int i = 0; i < 50; ++i)
    trace.classic({1'000'010 + i}, *parse_guid("9b79ee91-b5fd-41c0-a243-4248e266e9d0"), 1, 410, 400);
  const std::string path = directory.file("x.etl");
  write_file(path, trace.bytes());
  const ToolRun run = run_tool({"export", path});
  ASSERT_EQ(run.status, 0) << run.err;
  int of_process = 0;
  for (const json &line : json_lines(run.out)) {
    if (line["event"] == "Process/Start") {
      EXPECT_EQ(line["fields"]["ImageFileName"], name);
    }
    if (line["process_id"] != 400) continue;
    EXPECT_EQ(line["process"], name.substr(0, 1024));
    ++of_process;
  }
  EXPECT_EQ(of_process, 50);
}

class ExportOfRealTraces : public ::testing::TestWithParam<const char *> {};

TEST_P(ExportOfRealTraces, EqualsTheIndependentDecoder) {
  const auto trace = trace_path(GetParam());
  if (!trace) GTEST_SKIP() << "the shared traces are not here";
  if (testing::kSanitized && std::filesystem::file_size(*trace) > 4u << 20)
    GTEST_SKIP() << "too much for a sanitizer: the smaller ones are decoded in the same way";
  const std::string folder = fresh_folder(GetParam()), out = folder + "/out.jsonl";
  const ToolRun run = run_tool({"export", trace->string(), "-o", out});
  ASSERT_EQ(run.status, 0) << run.err;
  const std::string judge = "python3 " + (*shared_dir() / "tools" / "etl_decode.py").string() +
                            " --compare " + out + " " + trace->string() + " > " + folder + "/judged.json";
  EXPECT_EQ(std::system(judge.c_str()), 0);
  std::ifstream file(folder + "/judged.json");
  const json judged = json::parse(file);
  EXPECT_EQ(judged["events_here"], judged["events_there"]);
  EXPECT_EQ(judged["equal"], judged["decoded_here"]);
  std::ifstream lines(out);
  std::int64_t last = std::numeric_limits<std::int64_t>::min();
  for (std::string line; std::getline(lines, line);) {
    const std::size_t at = line.find("\"timestamp\":") + 12;
    const std::int64_t time = std::strtoll(line.c_str() + at, nullptr, 10);
    ASSERT_LE(last, time);
    last = time;
  }
  std::filesystem::remove_all(folder);
}

INSTANTIATE_TEST_SUITE_P(All, ExportOfRealTraces,
                         ::testing::Values("AMSITrace", "HTTP_Server", "KernelNetwork", "Process",
                                           "SIH.20230422.034724.362.1", "SelfDescribingSingleEvent",
                                           "ShutdownPerfDiagLogger", "TraceLoggingTester",
                                           "WindowsUpdate.20251008.140245.443.8", "diaghub",
                                           "diaghub.kernel.1", "image_data_32_v0", "net.4.5.2.x64",
                                           "process_data_64_v3"),
                         [](const auto &trace) { return testing::test_name(trace.param); });

TEST(Export, WritesTheSameBytesForAnyNumberOfThreads) {
  const auto trace = trace_path("ShutdownPerfDiagLogger");
  if (!trace) GTEST_SKIP() << "the shared traces are not here";
  const ToolRun one = run_tool({"export", trace->string(), "-t", "1"});
  const ToolRun four = run_tool({"export", trace->string(), "-t", "4"});
  ASSERT_EQ(one.status, 0) << one.err;
  EXPECT_EQ(one.out, four.out);
  EXPECT_GT(one.out.size(), 1'000'000u);
}

TEST(Export, ReadsTheStructureOfASelfDescribingEvent) {
  const auto trace = trace_path("SelfDescribingSingleEvent");
  if (!trace) GTEST_SKIP() << "the shared traces are not here";
  const ToolRun run = run_tool({"export", trace->string()});
  ASSERT_EQ(run.status, 0) << run.err;
  std::size_t found = 0, winsat = 0;
  for (const json &line : json_lines(run.out)) {
    if (line["event"] == "TestEvent") {
      ++found;
      EXPECT_EQ(line["fields"]["a"], json({{"b", "Hello"}, {"c", "World!"}}));
    }
    if (line["provider"] == "WinSat") {
      ++winsat;
      EXPECT_TRUE(line["fields"]["Xml"].get<std::string>().starts_with("<")) << line;
    }
  }
  EXPECT_EQ(found, 1u);
  EXPECT_EQ(winsat, 3u);
}

TEST(Export, LeavesNothingOut) {
  const auto trace = trace_path("HTTP_Server");
  if (!trace) GTEST_SKIP() << "the shared traces are not here";
  const ToolRun raw = run_tool({"export", trace->string()});
  std::size_t in_hex = 0;
  for (const json &line : json_lines(raw.out))
    in_hex += line["fields"].is_null() && line["raw"].is_string() ? 1 : 0;
  EXPECT_EQ(in_hex, 2041u);
  const ToolRun told = run_tool(
      {"export", trace->string(), "--schemas", (*shared_dir() / "schemas").string(), "--report", "--json"});
  ASSERT_EQ(told.status, 0) << told.err;
  for (const json &line : json_lines(told.out))
    EXPECT_TRUE(line["fields"].is_object());
  std::uint64_t added = 0;
  const json report = json::parse(told.err);
  for (const json &kind : report["kinds"]) {
    EXPECT_EQ(kind["uncovered_bytes"], 0) << kind;
    EXPECT_EQ(kind["truncated"], 0) << kind;
    if (kind["source"] == "added") added += kind["events"].get<std::uint64_t>();
  }
  EXPECT_EQ(added, 2041u);
}

TEST(Export, ProfilesAreJsonWithTheNamesOfTheirReaders) {
  const auto trace = trace_path("WindowsUpdate.20251008.140245.443.8");
  if (!trace) GTEST_SKIP() << "the shared traces are not here";
  const ToolRun otel = run_tool({"export", trace->string(), "--profile", "otel"});
  ASSERT_EQ(otel.status, 0) << otel.err;
  for (const json &line : json_lines(otel.out)) {
    EXPECT_GT(line["Timestamp"].get<std::int64_t>(), 1'700'000'000'000'000'000);
    EXPECT_TRUE(line["Attributes"]["etw.provider.id"].is_string());
  }
  const ToolRun timeline = run_tool({"export", trace->string(), "--profile", "timeline"});
  ASSERT_EQ(timeline.status, 0) << timeline.err;
  for (const json &line : json_lines(timeline.out)) {
    EXPECT_EQ(line["__container_type__"], "event");
    EXPECT_GT(line["timestamp"].get<std::int64_t>(), 1'700'000'000'000'000);
    EXPECT_FALSE(line["message"].get<std::string>().empty());
  }
}

TEST(Export, TakesNoExistingFileAndLeavesNoneBehind) {
  const auto trace = trace_path("SIH.20230422.034724.362.1");
  if (!trace) GTEST_SKIP() << "the shared traces are not here";
  const std::string folder = fresh_folder("existing"), out = folder + "/out.jsonl";
  std::ofstream(out) << "mine";
  EXPECT_NE(run_tool({"export", trace->string(), "-o", out}).status, 0);
  std::string text;
  std::getline(std::ifstream(out), text);
  EXPECT_EQ(text, "mine");
  EXPECT_EQ(run_tool({"export", trace->string(), "-o", out, "-f"}).status, 0);
  EXPECT_NE(run_tool({"export", trace->string(), "-o", folder + "/other", "-p", "nobody.exe"}).status, 0);
  EXPECT_FALSE(std::filesystem::exists(folder + "/other"));
  std::filesystem::remove_all(folder);
}

TEST(SchemaCommand, ListsKindsFieldsAndSources) {
  const auto trace = trace_path("SelfDescribingSingleEvent");
  if (!trace) GTEST_SKIP() << "the shared traces are not here";
  const ToolRun run = run_tool({"schema", trace->string(), "--json"});
  ASSERT_EQ(run.status, 0) << run.err;
  bool found = false;
  const json listed = json::parse(run.out);
  for (const json &kind : listed["kinds"]) {
    if (kind["name"] != "MySource/TestEvent") continue;
    found = true;
    EXPECT_EQ(kind["source"], "tracelogging");
    EXPECT_EQ(kind["events"], 1);
    EXPECT_EQ(kind["fields"][0]["name"], "a");
    EXPECT_EQ(kind["fields"][0]["fields"][1]["name"], "c");
  }
  EXPECT_TRUE(found);
}

} // namespace
} // namespace etwrelog::testing
