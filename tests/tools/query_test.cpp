// SQL over a trace itself gives what the exported database gives.
#include "etwrelog/query.hpp"
#include "tests/support/generated.hpp"
#include "tests/support/pace.hpp"
#include "tests/support/run_tool.hpp"
#include "tests/support/synthetic_trace.hpp"
#include "tests/support/trace_files.hpp"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sqlite3.h>

namespace etwrelog {
namespace {

using testing::run_tool;
using testing::TempDir;
using testing::ToolRun;

std::string answer(const std::string &trace, const std::string &sql) {
  const ToolRun run = run_tool({"query", trace, sql});
  EXPECT_EQ(run.status, 0) << sql << run.err;
  return run.out;
}

std::string exported(const std::string &database, const std::string &sql) {
  sqlite3 *handle = nullptr;
  EXPECT_EQ(sqlite3_open(database.c_str(), &handle), SQLITE_OK);
  std::string out;
  auto add = [](void *text, int columns, char **values, char **names) {
    auto &all = *static_cast<std::string *>(text);
    auto line = [&](char **cells) {
      for (int i = 0; i < columns; ++i)
        all.append(i == 0 ? "" : "\t").append(cells[i] ? cells[i] : "");
      all += "\n";
    };
    if (all.empty()) line(names);
    line(values);
    return 0;
  };
  EXPECT_EQ(sqlite3_exec(handle, sql.c_str(), add, &out, nullptr), SQLITE_OK) << sqlite3_errmsg(handle);
  sqlite3_close(handle);
  return out;
}

TEST(Query, AnswersAsTheExportedDatabaseDoes) {
  const auto trace = testing::trace_path("diaghub.kernel.1");
  if (!trace) GTEST_SKIP() << "the real traces are not here";
  const TempDir directory;
  const std::string database = directory.file("x.sqlite");
  ASSERT_EQ(run_tool({"export", trace->string(), "-o", database}).status, 0);
  for (const std::string sql : {
           "select count(*), min(time), max(time), sum(timestamp) from events",
           "select event, count(*) from events group by 1 order by 2 desc, 1",
           "select count(*) from events where timestamp >= 13770000000 and timestamp < 13789000000",
           "select timestamp, cpu, ProcessId, hex(FileName) from Image_Load order by timestamp, cpu",
           "select a.timestamp from Image_Load a join Image_Load b on a.timestamp = b.timestamp and a.cpu = "
           "b.cpu",
       })
    EXPECT_EQ(run_tool({"query", trace->string(), sql}).out, exported(database, sql)) << sql;
}

// A plus sign in front of a column keeps a condition from being handed to the traversal.
TEST(Query, HandsConditionsDownWithoutLosingAnEvent) {
  const auto trace = testing::trace_path("diaghub.kernel.1");
  if (!trace) GTEST_SKIP() << "the real traces are not here";
  for (const std::string &condition : testing::some<std::string>(
           6, {"provider = 'Windows Kernel'",
               "provider = 'windows kernel'",
               "provider = 'windows kernel' collate nocase",
               "provider_id = '2cb15d1d-5fc1-11d2-abe1-00a0c911f518'",
               "event = 'Image/Load'",
               "event = 'Image/Lod'",
               "process_id = 4",
               "process_id = '4'",
               "process_id is null",
               "cpu = 1",
               "cpu = 1.5",
               "cpu = 70000",
               "time = 1.5e18",
               "time > null",
               "event = 'Image/Load' and process_id = 1112 and cpu = 0",
               "event in ('Image/Load', null, 'Image/Lod', 'Thread/Start')",
               "event in ('Image/Load', 5, x'41')",
               "provider in ('Windows Kernel', 'windows kernel')",
               "process_id in (4, '0', null)",
               "process_id in (4, 0.0)",
               "process_id in (4, -1, 'x')",
               "process_id in (select process_id from processes where name like '%e%')",
               "cpu in (1, 0) and process_id in (0, 4)",
               "cpu in (1, 70000)",
               "event in (null)",
               "cpu in (select cpu from events where +cpu > 9)",
               "event in ('Image/Load') or process_id in (0, 4) and cpu in (0)"})) {
    std::string apart = condition;
    for (const char *column : {"provider ", "provider_id ", "event ", "process_id ", "cpu ", "time "})
      for (std::size_t at = 0; (at = apart.find(column, at)) != std::string::npos;
           at += 2 + std::strlen(column))
        if (at == 0 || apart[at - 1] == ' ') apart.insert(at, "+");
    const ToolRun pushed = run_tool(
        {"query", trace->string(), "select count(*), sum(timestamp) from events where " + condition});
    const ToolRun held =
        run_tool({"query", trace->string(), "select count(*), sum(timestamp) from events where " + apart});
    EXPECT_EQ(pushed.status, 0) << pushed.err;
    EXPECT_EQ(pushed.out, held.out) << condition << " / " << apart;
  }
}

// SQLite scans once for each side of an "or", and tells an event that fulfils both by its number.
TEST(Query, AnOrFindsTheEventsThatFulfilEitherSide) {
  const TempDir directory;
  const std::string trace = directory.file("x.etl"), archive = directory.file("x.etlz"),
                    other = directory.file("y.etl");
  const auto put = [](const std::string &path, const std::vector<std::uint8_t> &bytes) {
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char *>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  };
  put(trace, testing::generated(1 << 20, 4));
  put(other, testing::generated(256 << 10, 5));
  ASSERT_EQ(run_tool({"pack", trace, "-o", archive}).status, 0);
  const auto counted = [](const std::vector<std::string> &traces, const std::string &sql) {
    std::vector<std::string> line{"query"};
    line.insert(line.end(), traces.begin(), traces.end());
    line.push_back(sql);
    const ToolRun run = run_tool(line);
    EXPECT_EQ(run.status, 0) << sql << run.err;
    return std::stoll(run.out.substr(run.out.find('\n')));
  };
  for (const std::vector<std::string> &traces : {std::vector{trace}, {archive}, {trace, other}}) {
    const long long all = counted(traces, "select count(*) from events");
    for (const std::string &condition : testing::some<std::string>(
             3, {"cpu = 1 or event = 'PerfInfo/SampleProf'", "cpu = 1 or cpu = 2",
                 "time < at('0.01s') or cpu = 1", "time < at('0.01s') or time > at('0.02s')",
                 "provider = 'Windows Kernel' or process_id = 4",
                 "time between at('0.01s') and at('0.02s') and cpu = 1 or cpu = 0"})) {
      const long long sum = counted(traces, "select sum(" + condition + ") from events");
      EXPECT_EQ(counted(traces, "select count(*) from events where " + condition), sum) << condition;
      EXPECT_GT(sum, 0) << condition;
      EXPECT_LE(sum, all) << condition;
    }
    EXPECT_EQ(counted(traces, "select count(distinct rowid) from events"), all);
  }
}

// SQLite would scan once for each of several values, and give the rows in the order of these.
TEST(Query, OneOfSeveralValuesTakesOneScanInOrderOfTime) {
  const TempDir directory;
  const std::string trace = directory.file("x.etl");
  testing::write_file(trace, testing::generated(1 << 20, 4));
  for (const std::string condition : {"event in ('Thread/CSwitch', 'PerfInfo/SampleProf')",
                                      "event = 'Thread/CSwitch' or event = 'PerfInfo/SampleProf'",
                                      "cpu in (1, 0)", "process_id in (select process_id from processes)"}) {
    const std::string sql = "select timestamp from events where " + condition;
    const ToolRun run = run_tool({"query", trace, sql});
    ASSERT_EQ(run.status, 0) << run.err;
    EXPECT_GT(std::ranges::count(run.out, '\n'), 100) << condition;
    EXPECT_EQ(run.out, run_tool({"query", trace, sql + " order by +timestamp"}).out) << condition;
  }
}

// SQLite would take it for a text, and find nothing.
TEST(Query, ANameThatNothingHasIsAnErrorInDoubleQuotesToo) {
  const TempDir directory;
  const std::string trace = directory.file("x.etl");
  testing::write_file(trace, testing::generated(256 << 10, 4));
  EXPECT_EQ(run_tool({"query", trace, "select count(\"event\") from events"}).status, 0);
  EXPECT_EQ(run_tool({"query", trace, "select count(*) from events where \"evnt\" = 'x'"}).status, 2);
  EXPECT_NE(run_tool({"query", trace, "alter table events rename to others"}).status, 0);
}

TEST(Query, RawIsThatOfAnExport) {
  const auto trace = testing::trace_path("HTTP_Server"), described = testing::trace_path("KernelNetwork");
  if (!trace || !described) GTEST_SKIP() << "the real traces are not here";
  const TempDir directory;
  const std::string database = directory.file("x.sqlite"), other = directory.file("y.sqlite");
  ASSERT_EQ(run_tool({"export", trace->string(), "-o", database}).status, 0);
  ASSERT_EQ(run_tool({"export", described->string(), "-o", other}).status, 0);
  const std::string raw = "select raw, count(*) from ";
  const std::string bytes =
      run_tool({"query", trace->string(), raw + "events where fields is null group by 1"}).out;
  EXPECT_GT(bytes.size(), 1000u);
  EXPECT_EQ(bytes, exported(database, raw + "undescribed group by 1"));
  const std::string all = "select * from EventTrace_Header";
  EXPECT_EQ(run_tool({"query", described->string(), all}).out, exported(other, all));
}

// To SQL every number comes before any text: all events would be before '1s'.
TEST(Query, TimesAreComparedWithMomentsAndNotWithText) {
  const auto trace = testing::trace_path("diaghub.kernel.1");
  if (!trace) GTEST_SKIP() << "the real traces are not here";
  auto ask = [&trace](const std::string &sql, std::vector<std::string> flags = {}) {
    std::vector<std::string> line{"query", trace->string(), sql};
    line.insert(line.end(), flags.begin(), flags.end());
    return run_tool(line);
  };
  const std::string count = "select count(*) as n, max(time) as last from events";
  const std::string before = ask(count, {"--to", "3s"}).out;
  EXPECT_NE(before, ask(count).out);
  EXPECT_EQ(ask(count + " where time <= at('3s')").out, before);
  EXPECT_EQ(ask(count + " where +time <= at('3000ms')").out, before);
  EXPECT_EQ(ask("select at('1970-01-01T00:00:01Z') as one, at(null) is null as none").out,
            "one\tnone\n1000000000\t1\n");
  for (const std::string &condition :
       testing::some<std::string>(2, {"time < '1s'", "time between '1s' and '2s'", "time = 'soon'",
                                      "timestamp > '1s'", "time < at('soon')"})) {
    for (const std::string table : {"events", "Image_Load"}) {
      const ToolRun run = ask("select * from " + table + " where " + condition);
      EXPECT_EQ(run.status, 2) << condition << " of " << table;
      EXPECT_NE(run.err.find("' is n"), std::string::npos) << run.err; // no number, none, neither
    }
  }
}

TEST(Query, TheTablesOfTheTraceStay) {
  testing::SyntheticTrace t;
  for (int i = 0; i < 10; ++i)
    t.sample({2'000'000 + i}, 110);
  const Result<Trace> trace = Trace::open(Input::memory("t.etl", t.bytes()));
  ASSERT_TRUE(trace);
  Result<TraceQuery> query = TraceQuery::open(*trace);
  ASSERT_TRUE(query) << query.error().message();
  const Result<void> dropped = query->run("drop table events", {});
  ASSERT_FALSE(dropped);
  EXPECT_EQ(dropped.error().kind, ErrorKind::usage);
  std::string count;
  const TraceQuery::Visitor visitor{{}, [&](TraceQuery::Row row) { count = row[0].text; }};
  const Result<void> asked =
      query->run("create temp table own as select 1; drop table own; select count(*) from events", visitor);
  ASSERT_TRUE(asked) << asked.error().message();
  EXPECT_EQ(count, "11");
}

TEST(Query, KnowsThreadsImagesAndSamples) {
  const auto trace = testing::trace_path("net.4.5.2.x64");
  if (!trace) GTEST_SKIP() << "the real traces are not here";
  auto ask = [&](const std::string &sql) { return run_tool({"query", trace->string(), sql}).out; };
  EXPECT_EQ(ask("select (select count(*) from samples) = (select count(*) from PerfInfo_SampleProf) as same"),
            "same\n1\n");
  // Every sample of a thread that the trace knows has its process.
  EXPECT_EQ(ask("select count(*) > 3000 as many, sum(process_id is null and thread_id in (select thread_id "
                "from threads)) "
                "as lost from samples"),
            "many\tlost\n1\t0\n");
  EXPECT_EQ(ask("select count(*) as n from samples where process = 'Idle' and thread_id <> 0"), "n\n0\n");
  EXPECT_EQ(
      ask("select max(n) as n from (select count(*) as n from threads group by machine, thread_id, start)"),
      "n\n1\n");
  EXPECT_EQ(ask("select count(*) > 0 as some from images where path regexp '(?i)ntoskrnl\\.exe$' and "
                "process_id in (0, 4)"),
            "some\n1\n");
  EXPECT_EQ(ask("select utc(0) as epoch, module(4, 0, 1) is null as none"),
            "epoch\tnone\n1970-01-01T00:00:00.0000000Z\t1\n");
  EXPECT_NE(run_tool({"query", trace->string(), "select 'a' regexp '('"}).err.find("RE2"), std::string::npos);
}

// As one types or pipes it in, line by line.
TEST(Query, AStatementAtThePromptEndsWithASemicolonThatIsNoPartOfAText) {
  const TempDir directory;
  testing::SyntheticTrace made;
  made.sample({1'100'000}, 104, 0x7FF6'0000'1000);
  const std::string trace = directory.file("x.etl"), typed = directory.file("typed");
  testing::write_file(trace, made.bytes());
  const std::string text = "select 'a;\nb' as t; -- done;\nselect\n2 as n;\n.tables\nselect 'c;' as last";
  testing::write_file(typed, std::vector<std::uint8_t>(text.begin(), text.end()));
  const ToolRun run = run_tool({"query", trace}, {.input = typed});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_TRUE(run.out.starts_with("t\na;\\nb\nn\n2\n")) << run.out;
  EXPECT_TRUE(run.out.ends_with("threads\nlast\nc;\n")) << run.out;
  const ToolRun listed = run_tool({"query", trace, ".tables"});
  EXPECT_EQ(listed.status, 0) << listed.err;
  EXPECT_EQ("t\na;\\nb\nn\n2\n" + listed.out + "last\nc;\n", run.out);
}

// A sample at the same address in a process of the same id, in two traces of different boots.
TEST(Query, EachMachineHasItsOwnProcesses) {
  const TempDir directory;
  std::vector<std::string> line{"query"};
  for (const char *name : {"one.exe", "two.exe"}) {
    testing::SyntheticTrace made;
    made.header().boot_time += 10'000'000 * static_cast<std::int64_t>(line.size());
    made.process_rundown({1'000'100}, 100, 4, name);
    made.thread_rundown({1'000'101}, 104, 100);
    made.sample({1'100'000}, 104, 0x7FF6'0000'1000);
    testing::write_file(directory.file(std::string(name) + ".etl"), made.bytes());
    line.push_back(directory.file(std::string(name) + ".etl"));
  }
  line.emplace_back();
  auto ask = [&line](const std::string &sql) {
    line.back() = sql;
    return run_tool(line).out;
  };
  const std::string expected = "machine\tprocess_id\tprocess\n0\t100\tone.exe\n1\t100\ttwo.exe\n";
  EXPECT_EQ(ask("select machine, process_id, process from samples order by 1"), expected);
  EXPECT_EQ(ask("select machine, process_of_thread(ThreadId, timestamp, machine) as process_id, "
                "process_name(100, timestamp, machine) as process from PerfInfo_SampleProf order by 1"),
            expected);
  EXPECT_EQ(ask("select machine, count(*) > 3 as some from events group by 1"),
            "machine\tsome\n0\t1\n1\t1\n");
  EXPECT_EQ(ask("select process_name(100, 1100000) as a, process_name(100, 1100000, 7) is null as b"),
            "a\tb\none.exe\t1\n");
}

TEST(Query, JsonHasNumbersAndEveryColumn) {
  const TempDir directory;
  const std::string trace = directory.file("t.etl");
  testing::write_file(trace, testing::SyntheticTrace().bytes());
  EXPECT_EQ(
      run_tool({"query", trace, "--json",
                "select 1 as n, 'x' as n, null as n, 9223372036854775807 as big, -0.5 as real, '7' as text, "
                "9e999 as endless"})
          .out,
      "{\"n\":1,\"n#2\":\"x\",\"n#3\":null,\"big\":9223372036854775807,\"real\":-0.5,\"text\":\"7\","
      "\"endless\":null}\n");
}

TEST(Query, WhatThePromptIsToldLastNeedsNoSemicolon) {
  const auto trace = testing::trace_path("AMSITrace");
  if (!trace) GTEST_SKIP() << "the real traces are not here";
  const TempDir directory;
  const std::string sql = "select 1 as one;\nselect count(*) > 0\nas some from events\n";
  testing::write_file(directory.file("sql"), std::vector<std::uint8_t>(sql.begin(), sql.end()));
  testing::ToolOptions standard;
  standard.input = directory.file("sql");
  EXPECT_EQ(run_tool({"query", trace->string()}, standard).out, "one\n1\nsome\n1\n");
}

TEST(Query, SidsThatAreNotThereAreNull) {
  const auto trace = testing::trace_path("net.4.5.2.x64");
  if (!trace) GTEST_SKIP() << "the real traces are not here";
  EXPECT_EQ(answer(trace->string(), "select count(*) from Process_DCStart where UserSID = 'null'"),
            "count(*)\n0\n");
}

TEST(Query, RefusesOtherFilesAndWrongSql) {
  const auto trace = testing::trace_path("AMSITrace");
  if (!trace) GTEST_SKIP() << "the real traces are not here";
  const TempDir directory;
  for (const std::string &sql : {"attach '" + directory.file("y.db") + "' as y", std::string("selec 1"),
                                 "vacuum into '" + directory.file("y.db") + "'"}) {
    const ToolRun run = run_tool({"query", trace->string(), sql});
    EXPECT_EQ(run.status, 2) << sql;
    EXPECT_NE(run.err.find("SQL"), std::string::npos) << run.err;
  }
  EXPECT_TRUE(directory.names().empty());
}

// Of a short time only the second version of the kind is seen, and it still has the name of the second.
TEST(Query, TablesOfAnArchiveAreCalledAsThoseOfItsTraceAreWhateverTimeIsAskedFor) {
  const auto trace = testing::trace_path("net.4.5.2.x64");
  if (!trace) GTEST_SKIP() << "the real traces are not here";
  const TempDir directory;
  const std::string archive = directory.file("x.etlz");
  ASSERT_EQ(run_tool({"pack", *trace, "-o", archive}).status, 0);
  for (const std::string name :
       {"GarbageCollection_Start", "garbagecollection_start_V2", "GC_Start", "gc_start_v2"}) {
    const std::string sql = "select count(*), min(version) from Microsoft_Windows_DotNETRuntime_" + name +
                            " where time between 1595981223852396000 and 1595981223852400000";
    EXPECT_EQ(answer(archive, sql), answer(*trace, sql)) << sql;
  }
}

// What xperf and WPA call the size of a request; all columns at once are those of the documentation.
TEST(Query, KnowsFieldsByTheNamesThatToolsHaveForThem) {
  const auto trace = testing::trace_path("net.4.5.2.x64");
  if (!trace) GTEST_SKIP() << "the real traces are not here";
  const auto ask = [&](const std::string &sql) { return answer(trace->string(), sql); };
  const std::string by_process = " from DiskIo_Read group by 1 order by 2 desc, 1 limit 10";
  const std::string sums = ask("select process, sum(IoSize) as sum" + by_process);
  EXPECT_EQ(sums, ask("select process, sum(TransferSize) as sum" + by_process));
  EXPECT_GT(std::count(sums.begin(), sums.end(), '\n'), 1);
  EXPECT_EQ(ask("select * from DiskIo_Read limit 0").find("IoSize"), std::string::npos);
  const auto lines = [&](const std::string &where) {
    const ToolRun run = run_tool({"export", trace->string(), "--where", where});
    EXPECT_EQ(run.status, 0) << run.err;
    return run.out;
  };
  const std::string large = lines("event = 'DiskIo/Read' and IoSize > 16384");
  EXPECT_FALSE(large.empty());
  EXPECT_EQ(large, lines("event = 'DiskIo/Read' and TransferSize > 16384"));
}

TEST(Query, KnowsTablesByTheNamesThatStatisticsShow) {
  testing::SyntheticTrace made;
  made.process_rundown({1'000'000}, 10, 4, "one.exe");
  made.thread_rundown({1'000'001}, 11, 10);
  for (int i = 0; i < 5; ++i)
    made.sample({2'000'000 + 1'000'000 * i}, 11);
  made.manifest_event({2'000'000}, {.provider = format::kClrGuid, .id = 10, .version = 2}, 11, 10,
                      std::vector<std::uint8_t>(26));
  const TempDir directory;
  const std::string trace = directory.file("t.etl");
  testing::write_file(trace, made.bytes());
  for (const std::string of : {"", " where time > at('0.25s')", " where ThreadId = 11 order by time"}) {
    const std::string columns = "select count(*), min(time), sum(Count) from ";
    EXPECT_EQ(answer(trace, columns + "PerfInfo_Sample" + of),
              answer(trace, columns + "PerfInfo_SampleProf" + of))
        << of;
  }
  EXPECT_EQ(answer(trace, "select count(*) from perfinfo_sample"), "count(*)\n5\n");
  EXPECT_EQ(answer(trace, "select count(*) from Microsoft_Windows_DotNETRuntime_GC_AllocationTick"),
            "count(*)\n1\n");
  EXPECT_EQ(answer(trace, ".tables").find("PerfInfo_Sample\n"), std::string::npos) << "each once";
  const ToolRun near = run_tool({"query", trace, "select * from gc_allocationtick"});
  EXPECT_EQ(near.status, 2);
  EXPECT_NE(near.err.find("did you mean \"Microsoft_Windows_DotNETRuntime_GC_AllocationTick\"?"),
            std::string::npos)
      << near.err;
}

// To SQLite such a text is 0, and equal to no number.
TEST(Query, NumbersInHexadecimalAreAddedUpAndNotComparedWithOthers) {
  testing::SyntheticTrace made;
  for (const std::uint64_t bytes : {std::uint64_t{1000}, std::uint64_t{24}, std::uint64_t{0x10}}) {
    std::vector<std::uint8_t> payload(26);
    store(payload.data() + 10, bytes);
    made.manifest_event({2'000'000 + static_cast<std::int64_t>(bytes)},
                        {.provider = format::kClrGuid, .id = 10, .version = 2}, 11, 10, payload);
  }
  const TempDir directory;
  const std::string trace = directory.file("t.etl");
  testing::write_file(trace, made.bytes());
  const std::string from = " from Microsoft_Windows_DotNETRuntime_GC_AllocationTick";
  const auto ask = [&](const std::string &what) {
    const std::string all = answer(trace, "select " + what);
    return all.substr(all.find('\n') + 1);
  };
  EXPECT_EQ(ask("sum(AllocationAmount64), total(AllocationAmount64), max(AllocationAmount64)" + from),
            "1040\t1040.0\t0x3e8\n");
  EXPECT_EQ(ask("round(avg(AllocationAmount64), 3), sum(distinct AllocationAmount64)" + from),
            "346.667\t1040\n");
  EXPECT_EQ(ask("sum(AllocationAmount64) over (order by time rows 1 preceding)" + from), "16\n40\n1024\n");
  EXPECT_EQ(ask("sum(AllocationAmount64), total(AllocationAmount64)" + from + " where id = 3"), "\t0.0\n");
  EXPECT_EQ(ask("number(AllocationAmount64) & 0x18" + from + " order by 1 desc limit 1"), "24\n");
  EXPECT_EQ(ask("count(*)" + from + " where number(AllocationAmount64) > 20"), "2\n");
  EXPECT_EQ(ask("count(*)" + from + " where AllocationAmount64 in ('0x18', '0x10')"), "2\n");
  EXPECT_EQ(ask("number('0xffffffffffffffff') > 1e19, number('12'), number(null), sum('abc'), sum(1.5)"),
            "1\t12\t\t0.0\t1.5\n");
  for (const std::string wrong : {" where AllocationAmount64 > 20", " where AllocationAmount64 = 0x18",
                                  " where AllocationAmount64 in (24, 16)", " where number('abc') = 0"}) {
    const ToolRun run = run_tool({"query", trace, "select count(*)" + from + wrong});
    EXPECT_EQ(run.status, 2) << wrong << run.out;
    EXPECT_NE(run.err.find("number"), std::string::npos) << run.err;
  }
  const ToolRun numbers =
      run_tool({"query", trace, "--numbers",
                "select max(AllocationAmount64), min(AllocationAmount64), sum(AllocationAmount64 > 20)" +
                    from + " where AllocationAmount64 in (24, 1000)"});
  EXPECT_EQ(numbers.out.substr(numbers.out.find('\n') + 1), "1000\t24\t2\n") << numbers.err;
  const ToolRun over =
      run_tool({"query", trace, "select sum(column1) from (values (9223372036854775807), (1))"});
  EXPECT_NE(over.status, 0) << over.out;
}

TEST(Query, ProvidersAreFoundByTheirIdInEitherCaseAsInTheExportedDatabase) {
  const TempDir directory;
  const std::string trace = directory.file("t.etl"), database = directory.file("t.sqlite");
  testing::SyntheticTrace made;
  const Guid provider = make_guid(0xABCDEF01, 0x2345, 0x6789, 0xABCD, 0xEF0123456789);
  for (std::uint16_t i = 0; i < 3; ++i)
    made.trace_logging({2'000'000 + i}, provider, "Prov", "Event", 5, 4);
  testing::write_file(trace, made.bytes());
  ASSERT_EQ(run_tool({"export", trace, "-o", database}).status, 0);
  std::string lower = to_string(provider), upper = lower;
  std::ranges::transform(upper, upper.begin(), [](unsigned char c) { return std::toupper(c); });
  for (const std::string &id : {lower, upper}) {
    const std::string sql = "select count(*), min(level) from events where provider_id = '" + id + "'";
    EXPECT_EQ(answer(trace, sql), exported(database, sql)) << id;
    EXPECT_EQ(answer(trace, sql).substr(0, 21), "count(*)\tmin(level)\n3") << id;
  }
}

// Its fields are null, and its bytes are in `raw`: nothing is lost.
TEST(Query, AnEventThatSaysMoreThanAnyRealOneIsAsInTheExportedDatabase) {
  const TempDir directory;
  const std::string trace = directory.file("t.etl"), database = directory.file("t.sqlite");
  testing::SyntheticTrace made;
  const Guid provider = make_guid(0x5a5a3344, 0x5566, 0x7788, 0x99aa, 0xbbccddeeff01);
  made.manifest({2'000'000}, provider, 7, 8,
                "<instrumentationManifest><provider name=\"Big\" guid=\"{" + to_string(provider) +
                    "}\"><events><event value=\"1\" symbol=\"E\" template=\"A\"/></events><templates>"
                    "<template tid=\"A\"><data name=\"first\" inType=\"win:UInt8\"/>"
                    "<data name=\"n\" inType=\"win:UInt8\"/><struct name=\"all\" count=\"n\"><data name=\"" +
                    std::string(3'000, 'x') +
                    "\" inType=\"win:UInt8\"/></struct></template></templates></provider>"
                    "</instrumentationManifest>");
  for (const std::uint8_t count : {2, 100, 3}) {
    std::vector<std::uint8_t> payload(2u + count, 9);
    payload[1] = count;
    made.manifest_event({2'000'010 + count}, {.provider = provider, .id = 1}, 7, 8, payload);
  }
  testing::write_file(trace, made.bytes());
  ASSERT_EQ(run_tool({"export", trace, "-o", database}).status, 0);
  const std::string sql =
      "select first, n, length(\"all\") as size, length(raw) as bytes, truncated from Big_E"
      " order by timestamp";
  EXPECT_EQ(answer(trace, sql), exported(database, sql));
  EXPECT_EQ(answer(trace, sql), "first\tn\tsize\tbytes\ttruncated\n9\t2\t6015\t\t\n9\t3\t9022\t\t\n"
                                "\t\t\t204\t\n");
  EXPECT_EQ(answer(trace, "select count(fields) as n, max(length(raw)) as m from events where id = 1"),
            "n\tm\n2\t204\n");
}

TEST(Query, ADatabaseWithoutEventsHasTheViewOfThemToo) {
  const TempDir directory;
  const std::string trace = directory.file("t.etl"), database = directory.file("t.sqlite");
  testing::write_file(trace, testing::generated(1 << 20));
  ASSERT_EQ(run_tool({"export", trace, "--from", "1000s", "-o", database}).status, 0);
  EXPECT_EQ(exported(database, "select count(*), min(level) from events"), "count(*)\tmin(level)\n0\t\n");
}

// In files, conditions and SQL, also where only the payload tells.
TEST(Query, TheProcessOfAnEventIsTheSameAsInExports) {
  const TempDir directory;
  const std::string trace = directory.file("t.etl"), database = directory.file("t.sqlite");
  testing::write_file(trace, testing::generated(testing::kSanitized ? 1 << 20 : 4 << 20));
  const auto of_game = [](const std::string &lines) {
    std::map<std::string, int> events;
    std::istringstream in(lines);
    for (std::string line; std::getline(in, line);)
      if (const auto event = nlohmann::json::parse(line); event.at("process") == "game.exe")
        ++events[event.at("event").get<std::string>()];
    return events;
  };
  const std::map<std::string, int> events = of_game(run_tool({"export", trace}).out);
  const std::string chosen = run_tool({"export", trace, "--where", "process = 'game.exe'"}).out;
  EXPECT_EQ(of_game(chosen), events);
  std::string expected = "event\tcount(*)\n";
  int sum = 0;
  for (const auto &[event, count] : events)
    expected += event + '\t' + std::to_string(count) + '\n', sum += count;
  EXPECT_EQ(std::count(chosen.begin(), chosen.end(), '\n'), sum);
  const std::string sql = "select event, count(*) from events where process = 'game.exe' group by 1";
  ASSERT_EQ(run_tool({"export", trace, "-o", database}).status, 0);
  EXPECT_EQ(answer(trace, sql), expected);
  EXPECT_EQ(exported(database, sql), expected);
  for (const char *kind : {"PerfInfo/SampleProf", "Thread/CSwitch", "StackWalk/Stack", "TcpIp/RecvIPV4"})
    EXPECT_TRUE(events.contains(kind)) << kind;
}

// Disk accesses name nobody in their headers, but the thread that they were done for in their payload.
TEST(Query, ProcessesOfEventsWithoutIdsAreThoseOfTheirPayload) {
  const auto trace = testing::trace_path("net.4.5.2.x64");
  if (!trace) GTEST_SKIP() << "the real traces are not here";
  const auto ask = [&](const std::string &process) {
    return answer(trace->string(), "select " + process +
                                       " as process, count(*), sum(IoSize) from DiskIo_Read "
                                       "where process_id is null group by 1 order by 3 desc, 1");
  };
  const std::string found = ask("process");
  EXPECT_EQ(found, ask("process_name(process_of_thread(IssuingThreadId, timestamp), timestamp)"));
  EXPECT_GT(std::count(found.begin(), found.end(), '\n'), 5) << found;
}

TEST(Query, OfOneProcessIsWhatTheWholeTraceSaysOfIt) {
  const auto trace = testing::trace_path("net.4.5.2.x64");
  if (!trace) GTEST_SKIP() << "the real traces are not here";
  const auto ask = [&](const std::string &sql) { return answer(trace->string(), sql); };
  const std::string all =
      ask("select process_id, count(*) from events where process_id is not null group by 1");
  std::istringstream rows(all);
  std::string row;
  std::getline(rows, row); // names
  int processes = 0;
  for (; std::getline(rows, row) && processes < 5; ++processes) {
    const std::string pid = row.substr(0, row.find('\t'));
    EXPECT_EQ(ask("select count(*) as n from events where process_id = " + pid),
              "n\n" + row.substr(row.find('\t') + 1) + "\n");
  }
  EXPECT_EQ(processes, 5);
}

TEST(Query, OfOneProcessorIsWhatTheWholeTraceSaysOfIt) {
  const auto trace = testing::trace_path("net.4.5.2.x64");
  if (!trace) GTEST_SKIP() << "the real traces are not here";
  const ToolRun all =
      run_tool({"query", trace->string(),
                "select cpu, count(*), sum(timestamp) from events group by 1 having cpu < 3 order by 1"});
  std::string each = "cpu\tcount(*)\tsum(timestamp)\n";
  for (const char *cpu : {"0", "1", "2"}) {
    const ToolRun one =
        run_tool({"query", trace->string(),
                  std::string("select cpu, count(*), sum(timestamp) from events where cpu = ") + cpu});
    if (one.out.find("\t0\t") == std::string::npos) each += one.out.substr(one.out.find('\n') + 1);
  }
  EXPECT_EQ(each, all.out);
}

} // namespace
} // namespace etwrelog
