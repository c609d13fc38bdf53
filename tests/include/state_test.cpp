// etwrelog/state.hpp: which process, thread and image an id or address meant at a time.
#include "etwrelog/etwrelog.hpp"
#include "etwrelog/profile.hpp"
#include "tests/support/synthetic_trace.hpp"
#include "tests/support/trace_files.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include <sys/stat.h>

#include "tests/support/pipeline_runs.hpp"

namespace etwrelog::testing {
namespace {

Lifetimes lifetimes_of(const SyntheticTrace &t) {
  Result<Lifetimes> lifetimes = Lifetimes::collect(opened_trace(Input::memory("made.etl", t.bytes())));
  EXPECT_TRUE(lifetimes) << lifetimes.error().message();
  return *std::move(lifetimes);
}

TEST(State, IdsMeanOneAfterTheOther) {
  SyntheticTrace t;
  t.process_rundown({1'000'100}, 10, 4, "old.exe");
  t.thread_rundown({1'000'101}, 11, 10);
  t.thread_end({2'000'000}, 11, 10);
  t.process_end({2'000'001}, 10, "old.exe");
  t.process_start({3'000'000}, 10, 4, "new.exe", "new -x");
  t.thread_start({3'000'001}, 11, 10);
  const Lifetimes lifetimes = lifetimes_of(t);
  ASSERT_EQ(lifetimes.processes().size(), 2u);
  EXPECT_EQ(lifetimes.process_at(0, 10, 1'500'000)->image_name, "old.exe");
  EXPECT_EQ(lifetimes.process_at(0, 10, 2'500'000)->image_name, "old.exe")
      << "it keeps its id until the next start";
  EXPECT_EQ(lifetimes.process_at(0, 10, 3'000'000)->image_name, "new.exe");
  EXPECT_EQ(lifetimes.process_at(0, 10, 1'500'000)->start, kBeginning);
  EXPECT_EQ(lifetimes.process_at(0, 10, 1'500'000)->end, 2'000'001);
  EXPECT_EQ(lifetimes.process_at(0, 10, 4'000'000)->end, kForever);
  EXPECT_EQ(lifetimes.process_at(0, 99, 4'000'000), nullptr);
  EXPECT_EQ(lifetimes.process_at(1, 10, 4'000'000), nullptr);
  const ThreadInstance *first = lifetimes.thread_at(0, 11, 2'000'005),
                       *second = lifetimes.thread_at(0, 11, 3'000'001);
  ASSERT_TRUE(first && second);
  EXPECT_NE(first, second);
  EXPECT_EQ(first->end, 2'000'000);
  EXPECT_EQ(lifetimes.processes()[first->process].image_name, "old.exe");
  EXPECT_EQ(lifetimes.processes()[second->process].image_name, "new.exe");
}

TEST(State, ImagesLeave) {
  constexpr std::uint64_t kBase = 0x7FF6'0000'0000;
  SyntheticTrace t;
  t.process_rundown({1'000'100}, 10, 4, "one.exe");
  t.image_load({1'500'000}, 10, kBase);
  t.image_load({2'000'000}, 10, kBase, 1, true);
  t.image_rundown({1'000'200}, 10, kBase + 0x1000'0000);
  const Lifetimes lifetimes = lifetimes_of(t);
  ASSERT_EQ(lifetimes.images().size(), 2u);
  const ImageInstance *image = lifetimes.image_at(0, 10, kBase + 0x10, 1'700'000);
  ASSERT_TRUE(image);
  EXPECT_EQ(image->load, 1'500'000);
  EXPECT_EQ(image->unload, 2'000'000);
  EXPECT_EQ(image->base, kBase);
  EXPECT_EQ(lifetimes.image_at(0, 10, kBase + 0x10, 1'400'000), nullptr);
  EXPECT_EQ(lifetimes.image_at(0, 10, kBase + 0x10, 2'100'000), nullptr);
  EXPECT_EQ(lifetimes.image_at(0, 20, kBase + 0x10, 1'700'000), nullptr) << "of another process";
  ASSERT_TRUE(lifetimes.image_at(0, 10, kBase + 0x1000'0010, 1'000'000));
  EXPECT_EQ(lifetimes.image_at(0, 10, kBase + 0x1000'0010, 1'000'000)->load, kBeginning);
}

TEST(State, ASurveyAgreesWithStatisticsAndProfile) {
  const auto path = trace_path("net.4.5.2.x64");
  if (!path) GTEST_SKIP() << "net.4.5.2.x64.etl is not there";
  const etwrelog::Trace trace = opened_trace(Input(path->string()));
  const Result<Survey> found = survey(trace);
  const Result<Statistics> statistics = collect_statistics(trace);
  const Result<ProfileResult> profile = make_profile(trace);
  ASSERT_TRUE(found && statistics && profile);
  const Lifetimes &lifetimes = found->lifetimes;
  ASSERT_EQ(lifetimes.processes().size(), statistics->processes.size());
  for (std::size_t i = 0; i < statistics->processes.size(); ++i) {
    EXPECT_EQ(lifetimes.processes()[i].image_name, statistics->processes[i].image_name);
    EXPECT_EQ(lifetimes.processes()[i].start, statistics->processes[i].start);
  }
  EXPECT_GT(lifetimes.threads().size(), 100u);
  std::size_t with_pdb = 0;
  for (const ImageInstance &image : lifetimes.images())
    with_pdb += image.pdb_guid != Guid{} ? 1 : 0;
  EXPECT_GT(with_pdb, 100u);
  // Every module that the profile found has an image with that base and PDB.
  for (const ProfileModule &module : profile->profile.modules) {
    if (module.size == 0) continue;
    EXPECT_TRUE(std::ranges::any_of(lifetimes.images(), [&](const ImageInstance &image) {
      return image.path == module.path && image.pdb_guid == module.pdb_guid;
    })) << module.path;
  }
  // The trace's own schemas: .NET providers describe themselves.
  EXPECT_GE(found->schemas.all().size(), SchemaCatalog::builtin().all().size());
}

TEST(State, AStopEndsTheWaitForAPipe) {
  const TempDir directory;
  const std::string pipe = directory.file("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::stop_source stop;
  const std::jthread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    stop.request_stop();
  });
  RunOptions run;
  run.stop = stop.get_token();
  const Result<etwrelog::Trace> trace = etwrelog::Trace::open(Input(pipe), {}, run);
  ASSERT_FALSE(trace);
  EXPECT_EQ(trace.error().kind, ErrorKind::cancelled);
  EXPECT_EQ(trace.error().file, pipe);
}

TEST(State, EveryCallSaysWhatItRead) {
  SyntheticTrace t;
  t.process_rundown({1'000'100}, 10, 4, "one.exe");
  for (int i = 0; i < 5000; ++i)
    t.sample({2'000'000 + i}, 11);
  const etwrelog::Trace trace = opened_trace(Input::memory("made.etl", t.bytes()));
  const SourceInfo &source = trace.sources()[0];
  const std::vector<std::function<bool(const RunOptions &)>> calls = {
      [&](const RunOptions &run) { return bool(collect_statistics(trace, run)); },
      [&](const RunOptions &run) { return bool(report_stacks(trace, {}, run)); },
      [&](const RunOptions &run) { return bool(make_profile(trace, {}, run)); },
      [&](const RunOptions &run) { return bool(Lifetimes::collect(trace, run)); },
      [&](const RunOptions &run) { return bool(survey(trace, run)); }};
  for (const auto &call : calls) {
    RunReport report;
    ASSERT_TRUE(call({.report = &report}));
    EXPECT_EQ(report.stored_bytes, source.stored_bytes);
    EXPECT_EQ(report.decoded_bytes, source.decoded_bytes);
    EXPECT_EQ(report.buffers, source.buffers);
  }
}

// A stream that is not spooled: its header is there, it is relogged once, and everything else says what would
// help.
TEST(State, AStreamIsReadOnce) {
  SyntheticTrace t;
  t.process_rundown({1'000'100}, 10, 4, "one.exe");
  t.thread_rundown({1'000'101}, 11, 10);
  for (int i = 0; i < 100; ++i)
    t.sample({2'000'000 + i}, 11);
  struct Slowly final : ByteStream {
    explicit Slowly(std::vector<std::uint8_t> b) : bytes(std::move(b)) {}
    Result<std::size_t> read(MutableBytes into) override {
      const std::size_t count = std::min<std::size_t>({into.size(), bytes.size() - at, 1000});
      std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), count, into.begin());
      at += count;
      return count;
    }
    std::vector<std::uint8_t> bytes;
    std::size_t at = 0;
  };
  const TempDir directory;
  const Result<etwrelog::Trace> trace =
      etwrelog::Trace::open(Input::stream("pipe", std::make_shared<Slowly>(t.bytes())), {.spool = false});
  ASSERT_TRUE(trace) << trace.error().message();
  EXPECT_TRUE(trace->single_pass());
  EXPECT_EQ(trace->sources()[0].access, Access::single_pass);
  EXPECT_EQ(trace->sources()[0].header.buffer_size, t.header().buffer_size);
  EXPECT_EQ(collect_statistics(*trace).error().advice, Advice::allow_spool);
  EXPECT_EQ(Lifetimes::collect(*trace).error().advice, Advice::allow_spool);
  const Result<RelogReport> done = relog(*trace, directory.file("out.etl"));
  ASSERT_TRUE(done) << done.error().message();
  EXPECT_EQ(done->events_out, 103u);
  EXPECT_EQ(relog(*trace, directory.file("again.etl")).error().advice, Advice::allow_spool);
  EXPECT_EQ(directory.names().size(), 1u);
}

// Two files of one session that are damaged at the same place.
TEST(State, DamageIsThatOfTheSourceItIsIn) {
  SyntheticTrace made;
  for (int i = 0; i < 300; ++i) {
    made.sample({2'000'000 + i}, 7);
    if (i % 100 == 99) made.end_buffer(0);
  }
  made.process_rundown({2'000'400}, 10, 4, "one.exe");
  made.closed_buffers()[1].events[160] ^= 0xFF; // the Size or marker of an event in the second buffer
  made.closed_buffers()[1].events[163] ^= 0xFF;
  const Result<etwrelog::Trace> trace = etwrelog::Trace::open(
      std::vector<Input>{Input::memory("a.etl", made.bytes()), Input::memory("b.etl", made.bytes())},
      {.salvage = true});
  ASSERT_TRUE(trace) << trace.error().message();
  const auto sources_of = [](const std::function<bool(const RunOptions &)> &call) {
    RunReport report;
    EXPECT_TRUE(call({.report = &report}));
    std::vector<std::uint32_t> sources;
    for (const Skipped &skipped : report.skipped)
      sources.push_back(skipped.source);
    return sources;
  };
  const std::vector<std::uint32_t> both{0, 1};
  EXPECT_EQ(sources_of([&](const RunOptions &run) { return bool(Lifetimes::collect(*trace, run)); }), both);
  EXPECT_EQ(sources_of([&](const RunOptions &run) { return bool(survey(*trace, run)); }), both);
  EXPECT_EQ(sources_of([&](const RunOptions &run) {
              return bool(Filter::prepare(*trace, {.processes = {"one.exe"}}, run));
            }),
            both);
}

} // namespace
} // namespace etwrelog::testing
