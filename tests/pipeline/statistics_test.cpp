// Counts and names of a whole trace, through the pipeline.
#include "passes/statistics.hpp"
#include "tests/support/pipeline_runs.hpp"

#include <gtest/gtest.h>

namespace etwrelog::pipeline {
namespace {

using testing::SyntheticTrace;
const Guid kProvider = make_guid(0xAAAA0001, 1, 2, 3, 4), kOther = make_guid(0xAAAA0002, 1, 2, 3, 4);

std::map<std::string, std::uint64_t> names_of(const SyntheticTrace &t, std::uint64_t batch_bytes) {
  const Result<Trace> trace = testing::open_trace(t.bytes());
  PassOptions options;
  options.batch_bytes = batch_bytes;
  options.threads = 2;
  const Result<Statistics> s = collect_statistics(*trace, options);
  EXPECT_TRUE(s);
  std::map<std::string, std::uint64_t> names;
  for (const TypeStatistics &row : s->types)
    names[row.name] += row.events;
  return names;
}

TEST(Statistics, NamesDoNotDependOnWhereBatchesEnd) {
  SyntheticTrace t;
  t.trace_logging({2'000'000}, kOther, "Maker", "First", 1, 2); // two names, both with id 0
  t.end_buffer(0);
  t.trace_logging({2'000'001}, kOther, "Maker", "Second", 1, 2);
  t.end_buffer(0);
  t.trace_logging({2'000'002}, kOther, "Maker", "First", 1, 2);
  const std::string xml =
      "<instrumentationManifest><instrumentation><events><provider name='Named' guid='{x}'><events>"
      "<event value='5' version='2' task='Work' opcode='win:Start'/><event value='6' version='0' "
      "symbol='Alone'/>"
      "</events></provider></events></instrumentation></instrumentationManifest>";
  for (std::uint16_t chunk = 0; chunk < 3; ++chunk) {
    const std::size_t third = xml.size() / 3 + 1;
    t.manifest({2'000'010 + chunk}, kProvider, 1, 2, std::string_view(xml).substr(chunk * third, third),
               chunk, 3);
    t.end_buffer(0);
  }
  t.manifest_event({2'000'020}, {.provider = kProvider, .id = 5, .version = 2}, 1, 2);
  t.manifest_event({2'000'021}, {.provider = kProvider, .id = 6}, 1, 2);
  t.manifest_event({2'000'022}, {.provider = kProvider, .id = 7}, 1, 2);
  const auto small = names_of(t, 1), large = names_of(t, 1 << 30);
  EXPECT_EQ(small, large);
  EXPECT_EQ(small.at("Maker/TraceLogging"), 3u);
  EXPECT_EQ(small.at("Named/Work/Start"), 1u);
  EXPECT_EQ(small.at("Named/Alone"), 1u);
  EXPECT_EQ(small.at("Named/EventID(7)"), 1u);
  EXPECT_EQ(small.at("Named/ManifestData"), 3u);
}

TEST(Statistics, SurviveManifestsMadeToHurt) {
  SyntheticTrace t({.buffer_size = 128u << 10});
  std::string deep;
  for (int i = 0; i < 20'000; ++i)
    deep += "<a>";
  for (std::uint16_t chunk = 0; chunk < 60; ++chunk)
    t.manifest({2'000'000 + chunk}, kProvider, 1, 2, deep, chunk, 60);
  t.manifest({3'000'000}, kOther, 1, 2,
             "<provider name='x'><events><event value='99999999999' version='-1'/></events></provider>");
  t.manifest({3'000'001}, kOther, 1, 2, std::string(1000, '\xFF'));
  t.manifest({3'000'002}, kOther, 1, 2, "", 5, 2);
  EXPECT_FALSE(names_of(t, 1).empty());
}

TEST(Statistics, CountStacksInEveryForm) {
  SyntheticTrace t;
  t.process_rundown({1'000'100}, 100, 4, "a.exe");
  t.thread_rundown({1'000'101}, 110, 100);
  t.sample({2'000'000}, 110);
  t.stack_walk({2'000'001}, 2'000'000, 100, 110, {1, 2, 3});
  t.stack_key({2'000'002}, 2'000'000, 100, 110, 0x1000, true);
  t.stack_key({2'000'003}, 2'000'000, 100, 110, 0x2000, false);
  t.stack_definition({2'000'004}, 0x1000, {1, 2, 3});
  t.stack_definition({2'000'005}, 0x3000, {4}, true);
  t.clr_stack({2'000'006}, 110, 100, {1, 2});
  t.manifest_event({2'000'007}, {.provider = kProvider, .id = 1}, 110, 100, {},
                   {{format::ItemType::stack_trace64, testing::stack_item({5, 6, 7, 8})}});
  const Result<Trace> trace = testing::open_trace(t.bytes());
  const Result<Statistics> s = collect_statistics(*trace, {});
  ASSERT_TRUE(s);
  EXPECT_FALSE(collect_statistics(*trace, {}, 1)) << "two stacks";
  EXPECT_TRUE(collect_statistics(*trace, {}, 2));
  EXPECT_EQ(s->stacks.walks, 1u);
  EXPECT_EQ(s->stacks.user_references, 1u);
  EXPECT_EQ(s->stacks.kernel_references, 1u);
  EXPECT_EQ(s->stacks.key_deletes, 1u);
  EXPECT_EQ(s->stacks.key_rundowns, 1u);
  EXPECT_EQ(s->stacks.frames, 7u);
  EXPECT_EQ(s->stacks.distinct_stacks, 2u) << "the walk and the first definition are the same frames";
  EXPECT_EQ(s->stacks.keys_never_defined, 1u);
  EXPECT_EQ(s->stacks.clr_frames, 2u);
  EXPECT_EQ(s->stacks.item_frames, 4u);
  EXPECT_EQ(s->samples_by_pid.at(100), 1u);
}

} // namespace
} // namespace etwrelog::pipeline
