// Which process a thread id means, and which instance a process id: ids are reused.
#include "tests/support/pipeline_runs.hpp"

#include <gtest/gtest.h>

namespace etwrelog::filter {
namespace {

using testing::SyntheticTrace;

Lifetimes lifetimes_of(const SyntheticTrace &t) {
  const Result<pipeline::Trace> trace = testing::open_trace(t.bytes());
  EXPECT_TRUE(trace);
  pipeline::PassResult result;
  pipeline::PassOptions options;
  options.threads = 2;
  options.batch_bytes = 1;
  Result<Lifetimes> lifetimes = pipeline::collect_lifetimes(*trace, options, result);
  EXPECT_TRUE(lifetimes);
  return std::move(*lifetimes);
}

constexpr std::nullopt_t kNobody = std::nullopt;

TEST(Lifetimes, GiveAThreadToItsProcessFromItsStartOn) {
  SyntheticTrace t;
  t.thread_start({2'000'000}, 50, 100);
  t.thread_end({2'000'900}, 50, 100);
  const Lifetimes l = lifetimes_of(t);
  EXPECT_EQ(l.pid_of_thread(50, 1'999'999), kNobody);
  EXPECT_EQ(l.pid_of_thread(50, 2'000'000), 100u);
  EXPECT_EQ(l.pid_of_thread(50, 2'000'900), 100u) << "the end itself is the process's";
  EXPECT_EQ(l.pid_of_thread(50, 2'000'901), 100u) << "the id has not been started anew";
  EXPECT_EQ(l.pid_of_thread(51, 2'000'500), kNobody);
  EXPECT_EQ(l.pid_of_thread(0, 2'000'500), kIdleProcess);
}

TEST(Lifetimes, FollowAThreadIdFromProcessToProcess) {
  SyntheticTrace t;
  t.thread_start({2'000'000}, 50, 100);
  t.thread_end({2'000'100}, 50, 100);
  t.thread_start({2'000'200, 1}, 50, 200);
  t.thread_end({2'000'300, 2}, 50, 200);
  t.thread_start({2'000'400, 3}, 50, 100);
  const Lifetimes l = lifetimes_of(t);
  EXPECT_EQ(l.pid_of_thread(50, 2'000'050), 100u);
  EXPECT_EQ(l.pid_of_thread(50, 2'000'150), 100u);
  EXPECT_EQ(l.pid_of_thread(50, 2'000'250), 200u);
  EXPECT_EQ(l.pid_of_thread(50, 2'000'350), 200u);
  EXPECT_EQ(l.pid_of_thread(50, 9'000'000), 100u);
}

TEST(Lifetimes, HandAThreadIdOverAtOneTick) {
  for (const bool start_first : {false, true}) { // on different processors: file order says nothing
    SyntheticTrace t;
    t.thread_start({2'000'000}, 50, 100);
    if (start_first) t.thread_start({2'000'100, 0}, 50, 200);
    t.thread_end({2'000'100, 1}, 50, 100);
    if (!start_first) t.thread_start({2'000'100, 2}, 50, 200);
    t.thread_end({2'000'200, 3}, 50, 200);
    const Lifetimes l = lifetimes_of(t);
    EXPECT_EQ(l.pid_of_thread(50, 2'000'099), 100u);
    EXPECT_EQ(l.pid_of_thread(50, 2'000'100), 200u);
    EXPECT_EQ(l.pid_of_thread(50, 2'000'150), 200u);
    EXPECT_EQ(l.pid_of_thread(50, 2'000'201), 200u);
  }
}

TEST(Lifetimes, EndAThreadWhoseEndWasLostAtTheNextStart) {
  SyntheticTrace t;
  t.thread_start({2'000'000}, 50, 100);
  t.thread_start({2'000'500}, 50, 200);
  const Lifetimes l = lifetimes_of(t);
  EXPECT_EQ(l.pid_of_thread(50, 2'000'400), 100u);
  EXPECT_EQ(l.pid_of_thread(50, 2'000'600), 200u);
}

TEST(Lifetimes, KnowAThreadFromRundownAlone) {
  for (const bool at_end : {false, true}) {
    SyntheticTrace t;
    t.thread_rundown({at_end ? 9'000'000 : 1'000'100}, 50, 100, at_end);
    const Lifetimes l = lifetimes_of(t);
    EXPECT_EQ(l.pid_of_thread(50, 1'000'001), 100u) << "it was there before the rundown";
    EXPECT_EQ(l.pid_of_thread(50, 5'000'000), 100u);
    EXPECT_EQ(l.pid_of_thread(50, 9'500'000), 100u);
  }
}

TEST(Lifetimes, KeepARundownAtEndBehindAnEarlierOwner) {
  SyntheticTrace t;
  t.thread_rundown({1'000'100}, 50, 100);
  t.thread_end({2'000'000}, 50, 100);
  t.thread_rundown({9'000'000}, 50, 200, true); // its start was lost
  const Lifetimes l = lifetimes_of(t);
  EXPECT_EQ(l.pid_of_thread(50, 1'500'000), 100u);
  EXPECT_EQ(l.pid_of_thread(50, 5'000'000), 200u);
}

TEST(Lifetimes, KnowAThreadFromItsEndAlone) {
  SyntheticTrace t;
  t.thread_end({2'000'000}, 50, 100);
  const Lifetimes l = lifetimes_of(t);
  EXPECT_EQ(l.pid_of_thread(50, 1'500'000), 100u);
  EXPECT_EQ(l.pid_of_thread(50, 2'500'000), 100u);
}

TEST(Lifetimes, TellProcessInstancesOfOneIdApart) {
  SyntheticTrace t;
  t.process_rundown({1'000'100}, 100, 4, "first.exe", "first -x");
  t.process_end({2'000'000}, 100, "first.exe");
  t.process_start({3'000'000, 1}, 100, 8, "second.exe", "second -y");
  t.process_end({4'000'000, 2}, 100, "second.exe");
  t.process_rundown({9'000'000, 3}, 100, 12, "third.exe", "", true);
  const Lifetimes l = lifetimes_of(t);
  ASSERT_EQ(l.processes().size(), 3u);
  EXPECT_EQ(l.processes()[0].image_name, "first.exe");
  EXPECT_EQ(l.processes()[0].command_line, "first -x");
  EXPECT_EQ(l.processes()[0].start, kBeginning);
  EXPECT_EQ(l.processes()[0].end, 2'000'000);
  EXPECT_EQ(l.processes()[1].parent, 8u);
  EXPECT_EQ(l.processes()[1].start, 3'000'000);
  EXPECT_EQ(l.processes()[1].end, 4'000'000);
  EXPECT_EQ(l.processes()[2].end, kForever);
  auto name_at = [&](std::int64_t time) { return l.processes()[l.process_at(100, time).value()].image_name; };
  EXPECT_EQ(name_at(1'500'000), "first.exe");
  EXPECT_EQ(name_at(2'500'000), "first.exe") << "late samples";
  EXPECT_EQ(name_at(3'000'000), "second.exe");
  EXPECT_EQ(name_at(8'000'000), "third.exe");
  EXPECT_FALSE(l.process_at(101, 0));
}

TEST(Lifetimes, TakeRundownOfALiveProcessAsTheSameOne) {
  SyntheticTrace t;
  t.process_start({1'500'000}, 100, 4, "a.exe", "a -x");
  t.process_rundown({1'600'000}, 100, 4, "a.exe");
  t.process_rundown({9'000'000}, 100, 4, "a.exe", "", true);
  const Lifetimes l = lifetimes_of(t);
  ASSERT_EQ(l.processes().size(), 1u);
  EXPECT_EQ(l.processes()[0].start, 1'500'000);
  EXPECT_EQ(l.processes()[0].command_line, "a -x");
}

TEST(Lifetimes, ReadNamesOfEveryPointerSizeAndStripNothing) {
  for (const unsigned size : {4u, 8u}) {
    SyntheticTrace t({.pointer_size = size});
    t.process_start({1'500'000}, 100, 4, "a b.exe", "\"C:\\a b.exe\" -q");
    const Lifetimes l = lifetimes_of(t);
    ASSERT_EQ(l.processes().size(), 1u);
    EXPECT_EQ(l.processes()[0].image_name, "a b.exe");
    EXPECT_EQ(l.processes()[0].command_line, "\"C:\\a b.exe\" -q");
  }
}

TEST(Lifetimes, CarryTheRunningThreadFromBufferToBuffer) {
  SyntheticTrace t;
  t.context_switch({2'000'000, 1}, 50, 40);
  t.end_buffer(1);
  t.sample({2'000'100, 1}, 50);
  t.end_buffer(1);
  t.context_switch({2'000'200, 2}, 60, 61);
  t.end_buffer(2);
  t.context_switch({2'000'300, 1}, 70, 50);
  t.end_buffer(1);
  const Lifetimes l = lifetimes_of(t);
  EXPECT_EQ(l.thread_at_start(0), kUnknownId);
  EXPECT_EQ(l.thread_at_start(1), 40u) << "the first switch says who ran before";
  EXPECT_EQ(l.thread_at_start(2), 50u);
  EXPECT_EQ(l.thread_at_start(3), 61u);
  EXPECT_EQ(l.thread_at_start(4), 50u);
  EXPECT_EQ(l.thread_at_start(99), kUnknownId);
}

TEST(Lifetimes, DoNotCarryThreadsInOneStreamOrWithBatches) {
  SyntheticTrace one({.processors = 1, .mode = format::kModeSequential | format::kModeOneStream});
  one.context_switch({2'000'000}, 50, 40);
  one.end_buffer(0);
  one.sample({2'000'100}, 50);
  EXPECT_EQ(lifetimes_of(one).thread_at_start(2), kUnknownId);
  SyntheticTrace batches;
  batches.context_switch({2'000'000}, 50, 40);
  batches.switch_batch({2'000'050}, {1, 2});
  batches.end_buffer(0);
  batches.sample({2'000'100}, 50);
  EXPECT_EQ(lifetimes_of(batches).thread_at_start(2), kUnknownId);
  EXPECT_TRUE(lifetimes_of(batches).has_switch_batches());
}

TEST(Lifetimes, SurviveEventsCutInThePayload) {
  SyntheticTrace t;
  t.process_start({2'000'000}, 100, 4, "a.exe", "a");
  t.thread_start({2'000'001}, 50, 100);
  t.context_switch({2'000'002}, 50, 40);
  t.image_load({2'000'003}, 100, 0x10000);
  t.stack_key({2'000'005}, 2'000'002, 100, 50, 0xFFFF'0000'0000'0001);
  t.stack_definition({2'000'006}, 0xFFFF'0000'0000'0001, {1, 2});
  for (std::size_t i = 0; i < t.count(); ++i) {
    const std::vector<std::uint8_t> &whole = t.event(i);
    const std::size_t header = format::kHeaderLayouts[whole[2]].header_size;
    for (std::size_t size = header; size < whole.size(); ++size) {
      SyntheticTrace cut;
      std::vector<std::uint8_t> event(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
      store(event.data() + format::kHeaderLayouts[whole[2]].size_at, static_cast<std::uint16_t>(size));
      cut.raw({2'000'000}, event, static_cast<std::uint32_t>(size));
      LifetimeRecords records;
      (void)for_each_event(
          event, [&](const EventView &e, std::int64_t time, std::uint32_t) { records.add(e, time, 0); });
      EXPECT_LE(records.processes.size() + records.threads.size() + records.definitions.size(), 1u);
    }
  }
}

} // namespace
} // namespace etwrelog::filter
