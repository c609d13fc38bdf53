// SQL over a trace itself gives what the exported database gives.
#include "tests/support/run_tool.hpp"
#include "tests/support/trace_files.hpp"

#include <gtest/gtest.h>
#include <sqlite3.h>

namespace etwrelog {
namespace {

using testing::run_tool;
using testing::TempDir;
using testing::ToolRun;

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

TEST(Query, RefusesOtherFilesAndWrongSql) {
  const auto trace = testing::trace_path("AMSITrace");
  if (!trace) GTEST_SKIP() << "the real traces are not here";
  const TempDir directory;
  for (const std::string sql : {"attach '" + directory.file("y.db") + "' as y", std::string("selec 1"),
                                "vacuum into '" + directory.file("y.db") + "'"}) {
    const ToolRun run = run_tool({"query", trace->string(), sql});
    EXPECT_EQ(run.status, 2) << sql;
    EXPECT_NE(run.err.find("SQL"), std::string::npos) << run.err;
  }
  EXPECT_TRUE(directory.names().empty());
}

} // namespace
} // namespace etwrelog
