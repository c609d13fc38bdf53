// A stretch of time of an archive: what lies elsewhere is not even looked at, so that damage there does not
// matter.
#include "source/archive_input.hpp"
#include "tests/support/generated.hpp"
#include "tests/support/pace.hpp"
#include "tests/support/read_file.hpp"
#include "tests/support/run_tool.hpp"

#include <memory>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace etwrelog {
namespace {

using testing::run_tool;
using testing::TempDir;
using testing::ToolRun;
using Line = std::vector<std::string>;

const Line kStretch = {"--from", "0.1s", "--to", "0.2s"};

class ArchiveTime : public ::testing::Test {
protected:
  // Once for all of them, but as a part of a test: what fails in SetUpTestSuite only skips them.
  void SetUp() override {
    if (!ready) prepare();
    ASSERT_TRUE(ready);
  }
  static void prepare() {
    directory = std::make_unique<TempDir>();
    gen::Options options;
    options.profile = gen::find_profile("medium");
    options.size = testing::kSanitized ? 50'000'000 : 60'000'000;
    options.cpus = 4, options.processes = 16;
    trace = directory->file("x.etl"), archive = directory->file("x.etlz");
    damaged = directory->file("damaged.etlz");
    testing::write_file(trace, testing::generated(options));
    ASSERT_EQ(run_tool({"pack", trace, "-o", archive}).status, 0);
    std::vector<std::uint8_t> bytes = testing::read_file(archive);
    const auto index = pipeline::read_archive_index(*read::memory_input("archive", bytes));
    ASSERT_TRUE(index);
    std::size_t hit = 0;
    for (std::size_t i = 1; i < index->segments.size(); ++i) {
      if (!index->segments[i].summary.complete) continue; // such a one is always read
      bytes[index->segments[i].archive_at + 1000] ^= 0xFF;
      ++hit;
    }
    ASSERT_GT(hit, 0u);
    testing::write_file(damaged, bytes);
    ready = true;
  }
  static void TearDownTestSuite() { directory.reset(); }

  static ToolRun in_stretch(Line line, const Line &more) {
    line.insert(line.end(), kStretch.begin(), kStretch.end());
    line.insert(line.end(), more.begin(), more.end());
    return run_tool(line);
  }

  static inline std::unique_ptr<TempDir> directory;
  static inline std::string trace, archive, damaged;
  static inline bool ready = false;
};

TEST_F(ArchiveTime, IsAllThatAQueryReads) {
  for (const std::string &sql :
       testing::some<std::string>(2, {"select count(*), min(timestamp), max(timestamp) from events",
                                      "select process, count(*) from PerfInfo_SampleProf group by 1",
                                      "select count(*), max(start), max(name) from processes",
                                      "select event, count(*) from events where cpu = 2 group by 1"})) {
    const ToolRun expected = in_stretch({"query", trace}, {sql}),
                  found = in_stretch({"query", damaged}, {sql});
    ASSERT_EQ(expected.status, 0) << expected.err;
    ASSERT_EQ(found.status, 0) << found.err;
    EXPECT_EQ(found.out, expected.out) << sql;
  }
  EXPECT_NE(run_tool({"query", damaged, "select count(*) from events"}).status, 0);
}

TEST_F(ArchiveTime, IsAllThatSqlNeedsWhichSaysIt) {
  const ToolRun ends = in_stretch({"query", trace}, {"--json", "select min(time) as a, max(time) as b, "
                                                               "min(timestamp) as c, max(timestamp) as d "
                                                               "from events"});
  ASSERT_EQ(ends.status, 0) << ends.err;
  const nlohmann::json row = nlohmann::json::parse(ends.out);
  const auto number = [&](const char *name) { return row[name].dump(); };
  const std::string times = " time between " + number("a") + " and " + number("b"),
                    stamps = " timestamp >= " + number("c") + " and timestamp <= " + number("d");
  for (const std::string &sql : testing::some<std::string>(
           3,
           {"select count(*), min(timestamp), max(timestamp) from events where" + times,
            "select process, count(*) from PerfInfo_SampleProf where" + stamps + " group by 1",
            "select p.name, count(*) from PerfInfo_SampleProf s join processes p on p.process_id = "
            "process_of_thread(s.ThreadId, s.timestamp) where s." +
                times.substr(1) + " group by 1",
            "select process, module, count(*) from samples where" + times + " group by 1, 2",
            "with some as (select event, process_id from events where" + times +
                ") select event, count(*) from some where process_id in (select process_id from processes) "
                "group "
                "by 1",
            "select count(*) from events where" + stamps + "; select count(*) from events where" + times})) {
    const ToolRun expected = run_tool({"query", trace, sql}), found = run_tool({"query", damaged, sql});
    EXPECT_EQ(found.out, expected.out) << sql;
    EXPECT_EQ(found.status, expected.status) << sql << found.err;
  }
  // What reaches beyond it reads all, and meets the damage.
  for (const std::string &sql :
       {"select count(*) from events where" + times + " or cpu = 1",
        "select count(*) from events a, PerfInfo_SampleProf b where a." + times.substr(1),
        std::string("select count(*) from events where time > 0 + (select 1)")})
    EXPECT_NE(run_tool({"query", damaged, sql}).status, 0) << sql;
}

TEST_F(ArchiveTime, IsAllThatAnExportReads) {
  for (const Line &selection :
       testing::some<Line>(2, {{},
                               {"-p", "game.exe"},
                               {"--exclude", "game.exe", "--cpu", "1"},
                               {"--format", "csv", "--where", "process ~ '^game'"}})) {
    const ToolRun expected = in_stretch({"export", trace}, selection),
                  found = in_stretch({"export", damaged}, selection);
    ASSERT_EQ(expected.status, 0) << expected.err;
    EXPECT_GT(expected.out.size(), 10'000u);
    EXPECT_EQ(found.status, 0) << found.err;
    EXPECT_TRUE(found.out == expected.out) << ::testing::PrintToString(selection);
  }
  EXPECT_NE(run_tool({"export", damaged, "-p", "game.exe"}).status, 0);
}

} // namespace
} // namespace etwrelog
