// etwrelog stacks, and what relog --stacks says and leaves alone: stacks in extended items and of .NET, code
// that was compiled at an address where other code had been.
#include "etwrelog/clr_events.hpp"
#include "passes/stack_report.hpp"
#include "stacks/stack_events.hpp"
#include "tests/support/run_tool.hpp"
#include "tests/support/synthetic_trace.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <random>

namespace etwrelog {
namespace {

using nlohmann::json;
using testing::Frames;
using testing::run_tool;
using testing::SyntheticTrace;
using testing::ToolRun;

constexpr Guid kProviderOfStacks = make_guid(0x11223344, 0x5566, 0x7788, 0x0102, 0x030405060708);
const Frames kNative = {0x7FF6'0000'1000, 0x7FF6'0000'2000, 0x7FF6'0000'3000};
const Frames kKernel = {0xFFFF'F800'0000'1000, 0xFFFF'F800'0000'2000};

std::vector<std::uint8_t> narrow_item(std::initializer_list<std::uint32_t> frames) {
  std::vector<std::uint8_t> data(8 + 4 * frames.size());
  std::size_t at = 8;
  for (const std::uint32_t frame : frames)
    store(data.data() + at, frame), at += 4;
  return data;
}

class StacksCommand : public ::testing::Test {
protected:
  StacksCommand() {
    t.process_rundown({1'000'100}, 100, 4, "one.exe");
    t.process_rundown({1'000'101}, 200, 4, "two.exe");
    for (int i = 0; i < 40; ++i) {
      const std::int64_t time = 2'000'000 + 10 * i;
      const auto cpu = static_cast<std::uint16_t>(i % 2);
      t.sample({time, cpu}, 110);
      t.stack_walk({time + 1, cpu}, time, i % 4 == 0 ? 200 : 100, 110, i % 2 == 0 ? kNative : kKernel);
    }
    for (int i = 0; i < 5; ++i)
      t.stack_key({3'000'000 + i, 1}, 2'999'000 + i, 100, 110, 0xFFFF'FA80'0300'0000);
    t.stack_definition({3'000'100, 1}, 0xFFFF'FA80'0300'0000, kNative);
    write::EventFields fields;
    fields.provider = kProviderOfStacks;
    fields.id = 7;
    item_event = t.manifest_event({3'100'000}, fields, 110, 100, {},
                                  {{format::ItemType::stack_trace64, testing::stack_item(kNative)}});
    narrow_event = t.manifest_event({3'100'010}, fields, 110, 200, {},
                                    {{format::ItemType::stack_trace32, narrow_item({0x401000, 0x402000})}});
    clr_event = t.clr_stack({3'100'020}, 110, 100, {0x7FF6'0000'9000, 0x7FF6'0000'2000});
    write();
  }
  void write() { testing::write_file(in, t.bytes()); }
  json stacks(std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"stacks", "--json", in});
    const ToolRun run = run_tool(more);
    EXPECT_EQ(run.status, 0) << run.err;
    return json::parse(run.out);
  }
  ToolRun relog(const std::string &mode) {
    const ToolRun run = run_tool({"relog", in, "-o", out, "--force", "--quiet", "--stacks", mode});
    EXPECT_EQ(run.status, 0) << run.err;
    return run;
  }
  [[nodiscard]] bool output_has(std::size_t event) const {
    const auto bytes = testing::read_file(out);
    const auto &wanted = t.event(event);
    return std::search(bytes.begin(), bytes.end(), wanted.begin(), wanted.end()) != bytes.end();
  }
  // PID 100's method: id, start, size.
  void jit(std::int64_t time, std::uint64_t method, std::uint64_t start, bool unload = false) {
    std::vector<std::uint8_t> payload(clr::kMethodFixedSize);
    store(payload.data() + clr::kMethodIdAt, method);
    store(payload.data() + clr::kMethodStartAt, start);
    store(payload.data() + clr::kMethodSizeAt, std::uint32_t{0x100});
    store(payload.data() + clr::kMethodFlagsAt, clr::kMethodJitted);
    write::EventFields fields;
    fields.provider = format::kClrGuid;
    fields.id = unload ? 142 : 141;
    t.manifest_event({time}, fields, 110, 100, payload);
  }

  SyntheticTrace t;
  std::size_t item_event = 0, narrow_event = 0, clr_event = 0;
  testing::TempDir directory;
  std::string in = directory.file("in.etl"), out = directory.file("out.etl");
};

TEST_F(StacksCommand, CountsEachKind) {
  const json r = stacks();
  const json &kinds = r["by_kind"];
  EXPECT_EQ(kinds["StackWalk, kernel"]["events"], 20);
  EXPECT_EQ(kinds["StackWalk, user"]["events"], 20);
  EXPECT_EQ(kinds["reference, user"]["events"], 5);
  EXPECT_EQ(kinds["reference, kernel"]["events"], 0);
  EXPECT_EQ(kinds["extended item"]["events"], 2);
  EXPECT_EQ(kinds["extended item"]["frames"], 5);
  EXPECT_EQ(kinds[".NET stack event"]["events"], 1);
  EXPECT_EQ(r["kernel_stacks"]["events"], 45);
  EXPECT_EQ(r["kernel_stacks"]["distinct"], 2);
  EXPECT_EQ(r["all"]["events"], 48);
  EXPECT_EQ(r["all"]["distinct"], 4); // the item's 64-bit stack is one that is known
  EXPECT_EQ(r["distinct_frames"], 3 + 2 + 2 + 1);
  EXPECT_EQ(r["definitions"], 1);
  EXPECT_EQ(r["unresolved"], 0);
  std::map<int, int> by_process;
  for (const json &row : r["by_process"])
    by_process[row["pid"]] = row["events"];
  EXPECT_EQ(by_process, (std::map<int, int>{{100, 30 + 5 + 2}, {200, 10 + 1}}));
  EXPECT_EQ(r["bytes"]["clr"], align8(t.event(clr_event).size()));
  EXPECT_GT(r["bytes"]["extended_items"], 0);
  EXPECT_EQ(r["top"][0]["events"], 20 + 5 + 1);
  EXPECT_EQ(r["top"][0]["frames"].size(), kNative.size());
}

TEST_F(StacksCommand, PrintsWhatItCounts) {
  const ToolRun run = run_tool({"stacks", in, "--top", "1"});
  EXPECT_EQ(run.status, 0);
  EXPECT_EQ(run.err, "");
  for (const char *part :
       {"StackWalk, kernel", "reference, user", "extended item", ".NET stack event", "process 100", "1 more",
        "0x7ff600001000", "with --stacks cache", "which no relog changes"})
    EXPECT_NE(run.out.find(part), std::string::npos) << part;
  EXPECT_EQ(run.out.find("stack cache on this trace"), std::string::npos);
}

TEST_F(StacksCommand, SimulatesTheCacheAndComparesItWithWhatWasLogged) {
  const json r = stacks({"--simulate-cache", "--buckets", "256,300", "--cache-size", "3M,4M"});
  const json &simulations = r["cache_simulations"];
  ASSERT_EQ(simulations.size(), 4u);
  EXPECT_EQ(simulations[0]["buckets"], 256);
  EXPECT_EQ(simulations[0]["cache_bytes"], 3 << 20);
  for (const json &s : simulations) {
    EXPECT_EQ(s["definitions"], 2);
    EXPECT_EQ(s["hits"], 43);
    EXPECT_EQ(s["plain"], 0);
  }
  EXPECT_EQ(r["recommended"]["buckets"], 256);
  EXPECT_EQ(r["recorded_cache"]["references"], 5);
  EXPECT_EQ(r["recorded_cache"]["definitions"], 1);
  EXPECT_EQ(r["recorded_cache"]["simulated_start_at_end"]["definitions"], 1);
  EXPECT_EQ(r["recorded_cache"]["simulated_start_at_front"]["hits"], 4);
  EXPECT_FALSE(stacks().contains("cache_simulations"));
  const ToolRun run = run_tool({"stacks", in, "--simulate-cache"});
  EXPECT_NE(run.out.find("For the next recording: BucketCount 256"), std::string::npos);
  EXPECT_NE(run.out.find("logged 1 definitions for 5 references"), std::string::npos);
}

TEST_F(StacksCommand, ExportsTheStackDatabase) {
  const std::string database = directory.file("stacks.zst");
  const json r = stacks({"--export", database});
  const auto bytes = testing::read_file(database);
  EXPECT_EQ(r["exported_bytes"], bytes.size());
  const Result<stacks::StackDatabase> back = stacks::read_stack_database(bytes);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->references.size(), 48u);
  EXPECT_EQ(back->stacks.size(), 4u);
  EXPECT_EQ(std::ranges::count(back->references, stacks::StackKind::item, &stacks::StackReference::kind), 2);
  EXPECT_NE(std::ranges::find(back->stacks, kKernel), back->stacks.end());

  const ToolRun again = run_tool({"stacks", in, "--export", database});
  EXPECT_NE(again.status, 0); // is there
  EXPECT_EQ(testing::read_file(database), bytes);
  EXPECT_EQ(run_tool({"stacks", in, "--export", database, "--force"}).status, 0);
}

TEST_F(StacksCommand, RefusesWhatMakesNoSense) {
  const std::string database = directory.file("stacks.zst");
  for (const std::vector<std::string> &arguments : {std::vector<std::string>{"stacks"},
                                                    {"stacks", in, "--buckets", "0"},
                                                    {"stacks", in, "--cache-size", "much"},
                                                    {"stacks", in, "--stack-memory", "x"},
                                                    {"stacks", in, in, "--export", database},
                                                    {"stacks", in + "x"}}) {
    const ToolRun run = run_tool(arguments);
    EXPECT_NE(run.status, 0);
    EXPECT_EQ(run.out, "");
    EXPECT_NE(run.err, "");
  }
  EXPECT_FALSE(std::filesystem::exists(database));
}

TEST_F(StacksCommand, FailsRatherThanCountWithoutMemory) {
  const std::string database = directory.file("stacks.zst");
  const ToolRun run =
      run_tool({"stacks", in, "--simulate-cache", "--stack-memory", "10k", "--export", database});
  EXPECT_EQ(run.out, "");
  EXPECT_NE(run.status, 0);
  EXPECT_NE(run.err.find("--stack-memory"), std::string::npos) << run.err;
  EXPECT_FALSE(std::filesystem::exists(database));
  EXPECT_EQ(run_tool({"stacks", in, "--simulate-cache", "--stack-memory", "2M"}).status, 0);
}

TEST_F(StacksCommand, RewritesNoStackOfUserEvents) {
  for (const char *mode : {"cache", "expand", "cache=native-only"}) {
    relog(mode);
    EXPECT_TRUE(output_has(item_event)) << mode;
    EXPECT_TRUE(output_has(narrow_event)) << mode;
    EXPECT_TRUE(output_has(clr_event)) << mode;
  }
}

TEST_F(StacksCommand, WarnsOfCodeThatWasUnloaded) {
  EXPECT_EQ(relog("cache").err, "");
  jit(4'000'000, 1, 0x7FF6'0000'0F80);
  write();
  EXPECT_EQ(relog("cache").err, "");
  jit(4'000'100, 1, 0x7FF6'0000'0F80, true);
  write();
  const ToolRun run = relog("cache");
  EXPECT_NE(run.err.find("1 JIT-compiled methods were unloaded and 0 loaded where another had been"),
            std::string::npos)
      << run.err;
  EXPECT_NE(run.err.find("cache=native-only"), std::string::npos);
  EXPECT_EQ(relog("cache=native-only").err, "");
  EXPECT_EQ(relog("expand").err, "");
  EXPECT_EQ(relog("keep").err, "");
}

TEST_F(StacksCommand, WarnsOfCodeInThePlaceOfOtherCode) {
  jit(4'000'000, 1, 0x1'0000);
  jit(4'000'100, 1, 0x1'0000); // the same once more
  jit(4'000'200, 2, 0x2'0000);
  write();
  EXPECT_EQ(relog("cache").err, "");
  jit(4'000'300, 3, 0x1'0080); // inside the first
  write();
  EXPECT_NE(
      relog("cache").err.find("0 JIT-compiled methods were unloaded and 1 loaded where another had been"),
      std::string::npos);
}

TEST_F(StacksCommand, KeepsStacksOfCompiledCodeInFull) {
  jit(4'000'000, 1, 0x7FF6'0000'1F80); // the second frame of kNative is in it
  write();
  relog("cache=native-only");
  const ToolRun run = run_tool({"stacks", "--json", out});
  const json kinds = json::parse(run.out)["by_kind"];
  EXPECT_EQ(kinds["StackWalk, user"]["events"], 25); // the references too
  EXPECT_EQ(kinds["reference, user"]["events"], 0);
  EXPECT_EQ(kinds["reference, kernel"]["events"], 20);
  EXPECT_EQ(kinds["StackWalk, kernel"]["events"], 0);
}

// Buffers come in any order; the simulation must see the stacks in that of time.
TEST(StackSimulation, TakesTheStacksInOrderOfTime) {
  std::mt19937_64 random(3);
  testing::TraceOptions trace_options;
  SyntheticTrace trace(trace_options);
  std::vector<Frames> in_order;
  for (int i = 0; i < 4000; ++i) {
    const auto cpu = static_cast<std::uint16_t>(random() % 4);
    const std::uint64_t which = random() % 40;
    in_order.push_back({0x1000 + which, 0x2000 + which, 0x3000});
    const std::int64_t time = 2'000'000 + i;
    trace.stack_walk({time, cpu}, time, 100, 110, in_order.back());
    if (random() % 150 == 0) trace.end_buffer(cpu); // the last processor's open buffers hold old stacks
  }
  stacks::StackCacheSim::Options setting;
  setting.buckets = 3;
  setting.bytes = 50 * stacks::StackCacheSim::kPieceBytes;
  stacks::StackCacheSim model(setting);
  for (const Frames &frames : in_order)
    (void)model.insert(frames);

  Result<pipeline::Trace> opened =
      pipeline::Trace::open(read::memory_input("test.etl", trace.bytes()), {false, true});
  ASSERT_TRUE(opened);
  pipeline::StackReportOptions options;
  options.simulate = {setting, stacks::StackCacheSim::Options{}};
  pipeline::PassOptions graph;
  graph.batch_bytes = 1;
  const Result<StackReport> report = pipeline::report_stacks(*opened, options, graph);
  ASSERT_TRUE(report);
  const StackCacheCounts &counts = report->simulations.at(0).counts;
  EXPECT_EQ(counts.hits, model.counts().hits);
  EXPECT_EQ(counts.fresh, model.counts().fresh);
  EXPECT_EQ(counts.evictions, model.counts().evictions);
  EXPECT_EQ(counts.most_pool_bytes, model.counts().most_pieces * stacks::StackCacheSim::kPieceBytes);
  EXPECT_GT(counts.evictions, 500u);
  EXPECT_EQ(report->simulations.at(1).counts.evictions, 0u);
  EXPECT_FALSE(report->recorded);
}

TEST(StackSimulation, PutsANewStackWhereItIsTold) {
  const Frames a = {1, 1}, b = {2, 2}, c = {3, 3}, d = {4, 4}, e = {5, 5};
  for (const auto start : {stacks::StackCacheSim::Start::end, stacks::StackCacheSim::Start::front}) {
    stacks::StackCacheSim::Options options;
    options.buckets = 1;
    options.start = start;
    stacks::StackCacheSim cache(options);
    for (const Frames &frames : {a, b, c, d})
      (void)cache.insert(frames);
    const auto outcome = cache.insert(e);
    ASSERT_TRUE(outcome.evicted);
    const Frames gone(outcome.evicted_frames.begin(), outcome.evicted_frames.end());
    EXPECT_EQ(gone, start == stacks::StackCacheSim::Start::end ? d : a);
  }
}

} // namespace
} // namespace etwrelog
