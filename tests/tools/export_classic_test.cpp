// Exports of traces whose kernel events have classic headers: with the stacks that they have with the
// kernel's.
#include "tests/support/classic_headers.hpp"
#include "tests/support/generated.hpp"
#include "tests/support/json_lines.hpp"
#include "tests/support/run_tool.hpp"

#include <map>

#include <gtest/gtest.h>

namespace etwrelog {
namespace {

using nlohmann::json;
using testing::run_tool;
using testing::TempDir;
using testing::ToolRun;

// By time, processor and name, which no two events here have in common.
std::map<std::string, json> stacks_by_event(const std::string &trace) {
  const ToolRun run =
      run_tool({"export", trace, "--join", "stack", "--where", "event ~ '^(PerfInfo|Thread)/'"});
  EXPECT_EQ(run.status, 0) << run.err;
  std::map<std::string, json> stacks;
  for (const json &event : testing::json_lines(run.out))
    if (event.contains("stack"))
      stacks[event["timestamp"].dump() + event["cpu"].dump() + event["event"].dump()] = event["stack"];
  return stacks;
}

TEST(ExportOfClassicEvents, HasTheirStacks) {
  const TempDir folder;
  for (const bool cached : {false, true}) {
    gen::Options options;
    options.profile = gen::find_profile("medium");
    options.size = 1 << 20;
    options.cpus = 2;
    options.processes = 4;
    options.stack_cache = cached;
    const std::vector<std::uint8_t> bytes = testing::generated(options);
    testing::write_file(folder.file("known.etl"), bytes);
    testing::write_file(folder.file("classic.etl"), testing::with_classic_headers(bytes));
    const auto known = stacks_by_event(folder.file("known.etl"));
    EXPECT_GT(known.size(), 100u);
    EXPECT_EQ(stacks_by_event(folder.file("classic.etl")), known);
  }
}

} // namespace
} // namespace etwrelog
