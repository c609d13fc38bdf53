// Relogging and counting as a program does it: through the public headers.
#include "etwrelog/etwrelog.hpp"
#include "etwrelog/export.hpp"
#include "tests/support/pipeline_runs.hpp"

#include <filesystem>

#include <gtest/gtest.h>

namespace etwrelog::testing {
namespace {

std::vector<std::uint8_t> one_and_two() {
  SyntheticTrace t({.buffer_size = 4096});
  t.process_rundown({1'000'100}, 10, 4, "one.exe");
  t.process_rundown({1'000'101}, 20, 4, "two.exe");
  t.thread_rundown({1'000'102}, 11, 10);
  t.thread_rundown({1'000'103}, 21, 20);
  for (int i = 0; i < 2000; ++i)
    t.sample({2'000'000 + i, static_cast<std::uint16_t>(i % 3)}, i % 4 == 0 ? 11 : 21);
  return t.bytes();
}

std::uint64_t samples_of(const etwrelog::Trace &trace, std::uint32_t pid) {
  const Result<Statistics> s = etwrelog::collect_statistics(trace);
  EXPECT_TRUE(s);
  const auto found = s->samples_by_pid.find(pid);
  return found == s->samples_by_pid.end() ? 0 : found->second;
}

TEST(RelogApi, WritesOneProcessIntoANewFile) {
  const TempDir directory;
  const std::string path = directory.file("one.etl");
  const etwrelog::Trace trace = opened_trace(Input::memory("two.etl", one_and_two()));
  EXPECT_EQ(samples_of(trace, 10), 500u);
  RunReport run;
  const Result<RelogReport> report =
      relog(trace, path, {.selection = {.processes = {"one.exe"}}, .count = true}, {.report = &run});
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_EQ(report->targets, (std::vector<std::pair<std::uint32_t, std::string>>{{10, "one.exe"}}));
  std::uint64_t sum = 0;
  for (const RelogReason &reason : report->reasons)
    sum += reason.events;
  EXPECT_EQ(sum, report->events_in);
  EXPECT_EQ(run.events, report->events_in);
  EXPECT_EQ(report->processes.at(20).events_out, 0u);
  const etwrelog::Trace one = opened_trace(path);
  EXPECT_EQ(samples_of(one, 10), 500u);
  EXPECT_EQ(samples_of(one, 20), 0u);
  EXPECT_EQ(relog(trace, path).error().advice, Advice::replace) << "nothing is replaced unasked";
  EXPECT_EQ(relog(one, Output(path, Existing::replace)).error().kind, ErrorKind::usage) << "never the input";
  EXPECT_EQ(directory.names().size(), 1u);
}

TEST(RelogApi, TheFileThatATraceWasOpenedFromIsNoOutput) {
  const TempDir directory;
  const std::string path = directory.file("in.etl"), moved = directory.file("moved.etl");
  const std::vector<std::uint8_t> bytes = one_and_two();
  write_file(path, bytes);
  const auto refuses = [](const auto &made) { return !made && made.error().option == Option::output; };
  for (const bool follow : {false, true}) {
    OpenOptions how;
    how.follow = follow;
    const Result<etwrelog::Trace> trace = etwrelog::Trace::open(path, how);
    ASSERT_TRUE(trace);
    std::filesystem::rename(path, moved); // the same file, whatever its name
    const Output onto(moved, Existing::replace);
    EXPECT_TRUE(refuses(etwrelog::relog(*trace, onto)));
    if (!follow) {
      EXPECT_TRUE(refuses(export_json(*trace, onto)));
      EXPECT_TRUE(refuses(export_table(*trace, onto, TableFormat::sqlite)));
      EXPECT_TRUE(refuses(embed_schemas(*trace, onto)));
      EXPECT_TRUE(refuses(etwrelog::report_stacks(*trace, {.database = onto})));
    }
    std::filesystem::rename(moved, path);
    EXPECT_EQ(read_file(path), bytes);
  }
}

TEST(RelogApi, TheFirstBufferKeepsItsProcessorAndWhatWasLost) {
  const TempDir directory;
  SyntheticTrace made;
  made.in_first_buffer(true);
  made.sample({1'000'100}, 104);
  made.in_first_buffer(false);
  made.sample({1'000'200}, 104);
  std::vector<std::uint8_t> bytes = made.bytes();
  format::BufferHeader first = format::load_buffer_header(bytes.data());
  first.client_context = 63;
  first.flags |= format::kFlagProcessorIndex | format::kFlagEventsLost;
  format::store_buffer_header(bytes.data(), first);
  const Result<etwrelog::Trace> trace = etwrelog::Trace::open(Input::memory("x.etl", bytes));
  ASSERT_TRUE(trace);
  const std::string out = directory.file("out.etl");
  ASSERT_TRUE(etwrelog::relog(*trace, out));
  const format::BufferHeader kept = format::load_buffer_header(read_file(out).data());
  EXPECT_EQ(kept.processor(), 63);
  EXPECT_NE(kept.flags & format::kFlagEventsLost, 0);
}

TEST(RelogApi, TheTraceStaysWholeWhateverWasSelectedFromIt) {
  const TempDir directory;
  const std::string plain = directory.file("two.etl"), archive = directory.file("two.etlz");
  write_file(plain, one_and_two());
  ASSERT_TRUE(pack(plain, archive));
  for (const std::string &path : {plain, archive}) {
    const etwrelog::Trace trace = opened_trace(path);
    RelogOptions none;
    none.selection.from = Moment{true, 5000, 0};
    none.selection.to = Moment{true, 6000, 0};
    const Result<RelogReport> cut = relog(trace, path + ".cut", none);
    ASSERT_TRUE(cut) << cut.error().message();
    EXPECT_EQ(cut->events_in, 2005u);
    EXPECT_EQ(samples_of(opened_trace(path + ".cut"), 10), 0u);
    ASSERT_TRUE(relog(trace, path + ".all"));
    EXPECT_EQ(samples_of(opened_trace(path + ".all"), 10), 500u) << path;
  }
  EXPECT_EQ(read_file(plain + ".cut"), read_file(archive + ".cut"));
  EXPECT_EQ(read_file(plain + ".all"), read_file(archive + ".all"));
}

std::vector<std::string> phases_of(const RunReport &run) {
  std::vector<std::string> names;
  for (const RunReport::Phase &phase : run.phases) {
    names.push_back(phase.name);
    double busy = 0;
    for (const RunReport::Phase::Step &step : phase.steps)
      busy += step.busy;
    EXPECT_DOUBLE_EQ(phase.busy, busy) << phase.name;
    EXPECT_GT(phase.wall, 0) << phase.name;
  }
  return names;
}

TEST(RunReports, EveryPassOverATraceIsAPhaseAlsoOfWhatFails) {
  const TempDir directory;
  std::vector<std::uint8_t> bytes = one_and_two();
  const RelogOptions one{.selection = {.processes = {"one.exe"}}};
  const std::vector<std::string> expected = {"reading processes", "following references", "relogging"};
  {
    RunReport run;
    ASSERT_TRUE(
        relog(opened_trace(Input::memory("two.etl", bytes)), directory.file("a.etl"), one, {.report = &run}));
    EXPECT_EQ(phases_of(run), expected);
  }
  {
    RunReport run;
    ASSERT_TRUE(collect_statistics(opened_trace(Input::memory("two.etl", bytes)), {.report = &run}));
    EXPECT_EQ(phases_of(run), std::vector<std::string>{"counting"});
  }
  bytes[4096 + format::kBufferHeaderSize + 3] = 0; // the marker of the second buffer's first event
  RunReport run;
  ASSERT_FALSE(
      relog(opened_trace(Input::memory("two.etl", bytes)), directory.file("b.etl"), one, {.report = &run}));
  EXPECT_EQ(phases_of(run).size(), 1u);
  EXPECT_GT(run.buffers, 0u);
}

TEST(RelogApi, StopsOnRequestAndLeavesNothing) {
  const TempDir directory;
  const etwrelog::Trace trace = opened_trace(Input::memory("two.etl", one_and_two()));
  std::stop_source stop;
  stop.request_stop();
  const Result<RelogReport> report = relog(trace, directory.file("out.etl"), {}, {.stop = stop.get_token()});
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().kind, ErrorKind::cancelled);
  EXPECT_TRUE(directory.names().empty());
}

TEST(ArchiveApi, GivesBackTheVeryBytesAndSaysWhatItIs) {
  const TempDir directory;
  const std::string plain = directory.file("two.etl"), archive = directory.file("two.etlz"),
                    back = directory.file("back.etl");
  write_file(plain, one_and_two());
  const Result<PackReport> packed = pack(plain, archive);
  ASSERT_TRUE(packed) << packed.error().message();
  EXPECT_TRUE(packed->is_trace);
  EXPECT_EQ(packed->original, read_file(plain).size());
  EXPECT_EQ(packed->archived, read_file(archive).size());
  const Result<ArchiveInfo> info = read_archive_info(archive);
  ASSERT_TRUE(info);
  EXPECT_EQ(info->original, packed->original);
  EXPECT_EQ(read_archive_info(plain).error().kind, ErrorKind::unsupported);
  ASSERT_TRUE(unpack(archive, back));
  EXPECT_EQ(read_file(back), read_file(plain));
  ASSERT_TRUE(verify(archive));
  ASSERT_TRUE(verify_against(archive, plain));
  std::vector<std::uint8_t> other = read_file(plain);
  other.back() ^= 1;
  write_file(back, other);
  EXPECT_EQ(verify_against(archive, back).error().kind, ErrorKind::corrupt);
  EXPECT_FALSE(pack(archive, directory.file("twice.etlz"))) << "an archive is not packed again";
  EXPECT_FALSE(pack(plain, archive)) << "nothing is replaced unasked";
  std::vector<std::uint8_t> memory;
  ASSERT_TRUE(pack(plain, Output::memory(memory)));
  EXPECT_EQ(memory, read_file(archive));
}

TEST(StatisticsApi, ToJsonNamesItsVersion) {
  const etwrelog::Trace trace = opened_trace(Input::memory("two.etl", one_and_two()));
  const Result<Statistics> statistics = etwrelog::collect_statistics(trace);
  ASSERT_TRUE(statistics);
  EXPECT_EQ(statistics->events, 2005u);
  const std::string json = to_json(*statistics);
  EXPECT_NE(json.find("\"record_version\":"), std::string::npos);
  EXPECT_NE(json.find("\"events\":2005"), std::string::npos);
}

template <class T> void expect_limit(const Result<T> &result, Option option, std::string_view expected) {
  ASSERT_FALSE(result);
  const Error &error = result.error();
  EXPECT_EQ(error.kind, ErrorKind::limit) << error.message();
  EXPECT_EQ(error.option, option) << error.message();
  EXPECT_NE(error.expected.find(expected), std::string::npos) << error.message();
}

TEST(ArchiveApi, TooLittleMemoryIsALimitThatSaysWhatWouldDo) {
  const TempDir directory;
  const std::string archive = directory.file("a.etlz");
  SyntheticTrace made;
  for (int i = 0; i < 20'000; ++i)
    made.sample({2'000'000 + i * 7, static_cast<std::uint16_t>(i % 3)}, 11 + static_cast<unsigned>(i) % 90);
  ASSERT_TRUE(pack(Input::memory("a.etl", made.bytes()), archive));
  for (const auto &[memory, expected] : {std::pair<std::uint64_t, const char *>{100, "more than "},
                                         {1000, "at least "},
                                         {std::uint64_t{1} << 20, " bytes of memory or more"}}) {
    RunOptions run;
    run.memory = memory;
    const Result<UnpackReport> verified = verify(archive, {}, run);
    expect_limit(verified, Option::memory, expected);
    EXPECT_EQ(verified.error().found, std::to_string(memory));
    EXPECT_EQ(verified.error().advice, Advice::raise_memory);
    expect_limit(etwrelog::Trace::open(archive, {}, run), Option::memory, expected);
    expect_limit(unpack(archive, directory.file("b.etl"), {}, run), Option::memory, expected);
    expect_limit(unpack(archive, directory.file("b.etl"), {.salvage = true}, run), Option::memory,
                 " bytes of memory or more");
  }
  RunOptions run;
  run.memory = 1u << 20;
  run.memory = std::stoull(verify(archive, {}, run).error().expected);
  EXPECT_TRUE(verify(archive, {}, run));
  EXPECT_TRUE(etwrelog::Trace::open(archive, {}, run));
}

TEST(StacksApi, TooLittleMemoryIsALimit) {
  SyntheticTrace made;
  for (std::uint64_t i = 0; i < 100; ++i)
    made.stack_definition({2'000'000 + static_cast<std::int64_t>(i)}, 0xFFFF'FA80'0000'0010 + i * 16,
                          {0xFFFF'F800'0000'1000 + i, 0xFFFF'F800'0000'2000});
  const etwrelog::Trace trace = opened_trace(Input::memory("a.etl", made.bytes()));
  const Result<StackReport> report = report_stacks(trace, {.memory = 1});
  expect_limit(report, Option::none, "more than 1 bytes");
  EXPECT_EQ(report.error().advice, Advice::more_stack_memory);
  EXPECT_EQ(report.error().message().find("RelogOptions"), std::string::npos) << report.error().message();
}

TEST(Options, ValuesThatNoEnumeratorHasAreUsageErrors) {
  const TempDir directory;
  const etwrelog::Trace trace = opened_trace(Input::memory("two.etl", one_and_two()));
  const std::string out = directory.file("out");
  for (const RelogOptions &options : {RelogOptions{.codec = Codec(77)}, RelogOptions{.level = Level(77)},
                                      RelogOptions{.stacks = StackMode(77)}}) {
    const Result<RelogReport> report = relog(trace, out, options);
    ASSERT_FALSE(report);
    EXPECT_EQ(report.error().kind, ErrorKind::usage) << report.error().message();
    EXPECT_NE(report.error().option, Option::none);
    EXPECT_EQ(report.error().found, "77");
  }
  const auto usage = [](const auto &result) { return !result && result.error().kind == ErrorKind::usage; };
  EXPECT_TRUE(usage(export_table(trace, out, TableFormat(99))));
  EXPECT_TRUE(usage(export_tables(trace, out, TableFormat(99))));
  EXPECT_TRUE(usage(export_json(trace, out, {.profile = ExportProfile(99)})));
  EXPECT_TRUE(usage(trace.events({.order = Order(99)}).status()));
  EXPECT_TRUE(directory.names().empty());
}

} // namespace
} // namespace etwrelog::testing
