// Counts and names of a whole trace, through the pipeline.
#include "archive/archive.hpp"
#include "archive/tally.hpp"
#include "base/output_file.hpp"
#include "passes/statistics.hpp"
#include "read/input.hpp"
#include "source/archive_input.hpp"
#include "tests/support/classic_headers.hpp"
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
  EXPECT_FALSE(collect_statistics(*trace, {}, {.stacks = 1})) << "two stacks";
  EXPECT_TRUE(collect_statistics(*trace, {}, {.stacks = 2}));
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

// Threads and processes whose ids change hands in the midst of buffers, and one that is told of only at the
// end.
SyntheticTrace reusing() {
  SyntheticTrace t;
  t.context_switch({1'000'050, 1}, 210, 1);
  t.end_buffer(1);
  for (int round = 0; round < 40; ++round) {
    const std::int64_t at = 2'000'000 + round * 1'000;
    const std::uint32_t pid = 100 + 100 * static_cast<std::uint32_t>(round % 3);
    t.sample({at}, 110);                // the round before
    t.thread_start({at + 1}, 110, pid); // one id of two processes
    t.sample({at + 2}, 110);
    t.process_start({at + 3}, 500, 4, "again" + std::to_string(round) + ".exe");
    t.thread_start({at + 4}, 510, 500);
    t.sample({at + 5}, 510);
    t.sample({at + 6}, 210);
    t.page_fault({at + 7, 1}); // of 210, which the first buffer of that processor switched in
    t.sample({at + 8}, 999);   // of a thread that nobody knows
    t.process_end({at + 9}, 500, "again.exe");
    if (round % 4 == 3) t.end_buffer(0), t.end_buffer(1);
  }
  t.process_rundown({9'000'000}, 100, 4, "a.exe", "", true);
  t.process_rundown({9'000'000}, 200, 4, "b.exe", "", true);
  t.process_rundown({9'000'000}, 300, 4, "c.exe", "", true);
  t.thread_rundown({9'000'001}, 210, 200, true);
  return t;
}

TEST(Statistics, AttributeByWhoHadAnIdAtThatTime) {
  const SyntheticTrace t = reusing();
  const Result<Trace> trace = testing::open_trace(t.bytes());
  const auto count = [&](std::uint64_t batch_bytes, unsigned threads, std::size_t shares) {
    PassOptions options;
    options.batch_bytes = batch_bytes;
    options.threads = threads;
    RunReport report;
    options.report = &report;
    const Result<Statistics> s = collect_statistics(*trace, options, {.shares = shares});
    EXPECT_TRUE(s);
    EXPECT_EQ(report.phases.size(), 2u) << "ids that change hands within a batch are looked at again";
    return *s;
  };
  const Statistics s = count(1, 1, Attribution::kShares);
  ASSERT_EQ(s.processes.size(), 43u);
  std::uint64_t again = 0;
  for (std::size_t i = 0; i < s.processes.size(); ++i)
    if (s.processes[i].pid == 500) {
      ++again;
      EXPECT_EQ(s.by_instance[i].samples, 1u) << s.processes[i].image_name;
      EXPECT_EQ(s.by_instance[i].events, 5u - 1u)
          << "start and end of the process, start of the thread, sample";
    }
  EXPECT_EQ(again, 40u);
  // A thread id's first sample stands before anybody had it.
  EXPECT_EQ(s.unattributed_samples, 40u + 1u);
  EXPECT_EQ(s.samples_by_pid.at(500), 40u);
  EXPECT_EQ(s.samples_by_pid.at(200), 40u + 26u);
  EXPECT_EQ(s.samples_by_pid.at(100) + s.samples_by_pid.at(300), 79u - 26u);
  // The same wherever batches end, on any number of threads, and when there is no room for what is counted.
  for (const std::size_t shares : {Attribution::kShares, std::size_t{40}, std::size_t{8}, std::size_t{0}}) {
    EXPECT_EQ(statistics_record(count(1, 2, shares)), statistics_record(s)) << shares;
    EXPECT_EQ(statistics_record(count(1 << 30, 2, shares)), statistics_record(s)) << shares;
  }
}

// Of many lengths, ten million times their seconds are a little less than what the seconds were made of.
TEST(Statistics, RecordsKeepHowLongASessionLasted) {
  for (std::int64_t ticks = 1; ticks < 40'000'000'000'000; ticks = ticks * 9 / 8 + 1) {
    Session session;
    session.seconds = static_cast<double>(ticks) / 1e7;
    const std::optional<Session> back = read_session_record(statistics_record({}, session));
    ASSERT_TRUE(back);
    EXPECT_EQ(back->seconds, session.seconds) << ticks;
  }
}

// Who asks for processes alone is told the same of them, and of all but types and stacks.
TEST(Statistics, OfProcessesAloneAreTheSame) {
  const Result<Trace> trace = testing::open_trace(reusing().bytes());
  Result<Statistics> all = collect_statistics(*trace, {}),
                     some = collect_statistics(*trace, {}, {.what = Counted::processes});
  ASSERT_TRUE(all && some);
  EXPECT_FALSE(all->types.empty());
  EXPECT_TRUE(some->types.empty());
  all->types.clear();
  all->stacks = {};
  EXPECT_EQ(statistics_record(*some), statistics_record(*all));
}

// What an archive's index keeps.
std::optional<TallyRecord> tally_of(const std::vector<std::uint8_t> &trace, std::size_t segment) {
  std::vector<ColumnCost> explained; // then it becomes no small archive
  ArchiveOptions options;
  options.segment = segment, options.explain = &explained;
  const testing::TempDir directory;
  Result<base::OutputFile> archive = base::OutputFile::create(directory.file("a"), false);
  if (!archive || !pack_file(*read::memory_input("trace", trace), *archive, options) || !archive->commit())
    return std::nullopt;
  const auto index =
      read_archive_index(*read::memory_input("archive", testing::read_file(directory.file("a"))));
  if (!index) return std::nullopt;
  EXPECT_EQ(index->segments.size() > 1, segment < trace.size());
  return read_tally(index->facts);
}

// Into few and into many segments, of which an id changes hands in each.
TEST(Statistics, AnArchiveKeepsWhatCountingSaysOfProcesses) {
  const std::vector<std::uint8_t> bytes = reusing().bytes();
  const Result<Trace> trace = testing::open_trace(bytes);
  const Result<Statistics> counted = collect_statistics(*trace, {});
  ASSERT_TRUE(counted);
  for (const std::size_t segment : {std::size_t{1} << 10, std::size_t{1} << 24}) {
    const std::optional<TallyRecord> tally = tally_of(bytes, segment);
    ASSERT_TRUE(tally && tally->processes);
    EXPECT_EQ(*tally->processes, by_name(counted->processes, counted->by_instance));
  }
}

TEST(Statistics, AnArchiveKeepsWhatCountingSaysOfStacks) {
  SyntheticTrace t;
  constexpr std::uint64_t kKernel = 0xFFFF'F800'0000'1000, kUser = 0x7FF6'0000'1000;
  for (int i = 0; i < 2000; ++i) {
    t.stack_walk({2'000'000 + 10 * i}, 2'000'000, 8, 80, {kKernel, kKernel + static_cast<unsigned>(i) * 77});
    t.stack_key({2'000'001 + 10 * i}, 2'000'000, 8, 80, kKernel, i % 3 == 0);
  }
  t.stack_definition({3'000'000}, kKernel, {kUser, kUser + 1, kUser + 2});
  for (const bool classic : {false, true}) {
    const std::vector<std::uint8_t> bytes = classic ? testing::with_classic_headers(t.bytes()) : t.bytes();
    const Result<Trace> trace = testing::open_trace(bytes);
    const Result<Statistics> counted = collect_statistics(*trace, {});
    ASSERT_TRUE(counted);
    EXPECT_EQ(counted->stacks.walks, 2000u);
    EXPECT_EQ(counted->stacks.kernel_references, 1333u);
    EXPECT_EQ(counted->stacks.user_references, 667u);
    EXPECT_EQ(counted->stacks.frames, 4003u);
    const std::optional<TallyRecord> tally = tally_of(bytes, std::size_t{1} << 24);
    ASSERT_TRUE(tally);
    EXPECT_EQ(tally->statistics.stacks.walks, counted->stacks.walks);
    EXPECT_EQ(tally->statistics.stacks.kernel_references, counted->stacks.kernel_references);
    EXPECT_EQ(tally->statistics.stacks.user_references, counted->stacks.user_references);
    EXPECT_EQ(tally->statistics.stacks.frames, counted->stacks.frames);
  }
}

} // namespace
} // namespace etwrelog::pipeline
