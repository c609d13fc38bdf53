// The events of a program whose source is public (ETWAnalyzer, Samples/TraceLoggingTester), to the value:
// what it wrote is what an export says.
#include "tests/support/run_tool.hpp"
#include "tests/support/trace_files.hpp"

#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace etwrelog::testing {
namespace {

using nlohmann::json;

TEST(TraceLoggingValues, AreThoseThatTheProgramWrote) {
  const auto trace = trace_path("TraceLoggingTester");
  if (!trace) GTEST_SKIP() << "the shared traces are not here";
  const ToolRun run =
      run_tool({"export", trace->string(), "--where", "provider = 'CSharpTraceLoggingEventSource'"});
  ASSERT_EQ(run.status, 0) << run.err;
  std::istringstream lines(run.out);
  std::string line;
  auto expect = [&](const char *event, const json &fields) {
    ASSERT_TRUE(std::getline(lines, line)) << event;
    const json found = json::parse(line);
    EXPECT_EQ(found["event"], event);
    EXPECT_EQ(found["fields"], fields) << line;
    EXPECT_FALSE(found.contains("tail") || found.contains("truncated")) << line;
  };
  for (int i = 0; i < 10; ++i) {
    expect("MarkString", {{"input", "Hello, ETW!"}});
    expect("MarkStringInteger", {{"input", "Hello, ETW with number"}, {"number1", 42}});
    expect("MarkBoolByteCharDoubleInt16Int32Int64SByteUInt16UInt32UInt64", {{"boolean", true},
                                                                            {"b", i},
                                                                            {"c", "A"},
                                                                            {"d", 3.14},
                                                                            {"i16", -32768},
                                                                            {"i32", 2147483647},
                                                                            {"i64", 9223372036854775807},
                                                                            {"sb", -128},
                                                                            {"u16", 65535},
                                                                            {"u32", 4294967295},
                                                                            {"u64", 18446744073709551615u}});
    expect("WriteIntList", {{"numbers", {i, 2, 3, 4}}});
    expect("WriteDateTime", {{"dateTime", "2000-01-01T00:00:00.0000000Z"}});
    expect("WriteTimeSpan", {{"timeSpan", 420'000'000}}); // 42 s in units of 100 ns
    expect("WriteGuid", {{"guid", "00000000-0000-0000-0000-000000000001"}});
  }
  EXPECT_FALSE(std::getline(lines, line)) << line;
}

} // namespace
} // namespace etwrelog::testing
