// Kernel events with classic headers, as consumers of a session get them and may write them again: what is
// told of processes and threads, and what a selection keeps, is what it is with the kernel's own headers.
#include "passes/collect.hpp"
#include "passes/statistics.hpp"
#include "tests/pipeline/filter_fixture.hpp"
#include "tests/support/classic_headers.hpp"

namespace etwrelog {
namespace {

filter::Lifetimes lifetimes_told_by(const SyntheticTrace &trace) {
  const auto opened = testing::open_trace(trace.bytes());
  EXPECT_TRUE(opened);
  pipeline::PassResult result;
  Result<filter::Lifetimes> lifetimes = pipeline::collect_lifetimes(*opened, {}, result);
  EXPECT_TRUE(lifetimes);
  return std::move(*lifetimes);
}

EventView view_of(const std::vector<std::uint8_t> &bytes) {
  return {bytes.data(), static_cast<std::uint32_t>(bytes.size()), static_cast<format::HeaderType>(bytes[2])};
}

class ClassicKernelEvents : public FilterTest {
protected:
  ClassicKernelEvents() {
    t.context_switch({2'000'000}, kT1, kO1);
    t.page_fault({2'000'010});
    t.ready_thread({2'000'020}, kO1);
    t.context_switch({2'000'030}, kO1, kT1);
    t.page_fault({2'000'040});
    t.sample({2'000'050}, kT1);
    t.stack_walk({2'000'051}, 2'000'050, kTarget, kT1, {kUserBase + 1});
    t.sample({2'000'060}, kO1);
    t.stack_walk({2'000'061}, 2'000'060, kOther, kO1, {kUserBase + 2});
    t.sample({2'000'070}, 9999);
    t.stack_key({2'000'080}, 2'000'070, kTarget, kT2, kKey);
    t.stack_definition({2'000'090}, kKey, {kUserBase + 3});
    t.stack_definition({2'000'091}, kKey + 8, {kUserBase + 4});
    t.file_read({2'000'100}, kT1, 0xF0, 0xF1);
    t.disk_init({2'000'110}, kT2, kO1, kOther);
    t.tcp_send({2'000'120}, kTarget);
    t.tcp_send({2'000'121}, kOther);
    t.virtual_alloc({2'000'130}, kTarget, kO1, kOther);
    t.dpc({2'000'140});
    t.image_load({2'000'150}, kTarget, kUserBase);
    t.image_load({2'000'160}, kOther, kUserBase);
    t.image_rundown({2'000'170}, 0, kKernelBase);
    t.process_start({3'000'000}, 101, kTarget, "child.exe");
    t.thread_start({3'000'010}, 130, 101, kT1, kTarget);
    t.sample({3'000'020}, 130);
    t.thread_end({3'000'030}, kT2, kTarget);
    t.thread_start({3'000'040}, kT2, kOther);
    t.sample({3'000'050}, kT2);
    t.file_name({9'000'000}, 0xF0, "a.txt");
    t.file_name({9'000'001}, 0xE0, "b.txt");
    t.process_rundown({9'000'010}, kTarget, 4, "target.exe", "", true);
    for (std::size_t i = 0; i < t.count(); ++i)
      add_classic(t.event(i));
  }

  void add_classic(const std::vector<std::uint8_t> &bytes) {
    const EventView event = view_of(bytes);
    ASSERT_TRUE(event.has_hook());
    classic.emit({event.header_time()},
                 [&](write::EventBuilder &e) { testing::add_with_classic_header(e, event); });
  }

  void expect_the_same(const Selection &selection) {
    run(selection);
    const Relogged other = relog_selection(classic, selection);
    ASSERT_FALSE(other.error) << other.error->message();
    for (std::size_t i = 0; i < t.count(); ++i)
      EXPECT_EQ(other.contents.count(classic.event(i)) == 1, kept(i)) << i;
    EXPECT_EQ(other.report.by_reason, relogged.report.by_reason);
  }

  SyntheticTrace classic;
};

TEST_F(ClassicKernelEvents, AreKeptAsThoseWithTheKernelsHeaders) {
  expect_the_same({.processes = {"target.exe"}});
  expect_the_same({.processes = {"target.exe"}, .children = true, .keep_system = true});
  expect_the_same({.processes = {"other.exe"}});
  expect_the_same({.exclude = {"target.exe"}});
  expect_the_same({.processes = {"target.exe"}, .from = Moment{true, 0.2, 0}});
  expect_the_same({.to = Moment{true, 0.15, 0}});
  expect_the_same({.providers = {{.kernel = true, .guid = {}}}, .processors = {0}});
}

TEST_F(ClassicKernelEvents, TellOfProcessesAndThreads) {
  const filter::Lifetimes told = lifetimes_told_by(classic), known = lifetimes_told_by(t);
  ASSERT_EQ(told.processes().size(), known.processes().size());
  for (std::size_t i = 0; i < known.processes().size(); ++i) {
    EXPECT_EQ(told.processes()[i].image_name, known.processes()[i].image_name);
    EXPECT_EQ(told.processes()[i].start, known.processes()[i].start);
  }
  EXPECT_EQ(told.pid_of_thread(kT2, 2'500'000), kTarget);
  EXPECT_EQ(told.pid_of_thread(kT2, 3'000'045), kOther);
}

TEST_F(ClassicKernelEvents, CountForTheirProcesses) {
  const auto counted = [](const SyntheticTrace &trace) {
    const auto opened = testing::open_trace(trace.bytes());
    const Result<Statistics> statistics = pipeline::collect_statistics(*opened, pipeline::PassOptions{});
    EXPECT_TRUE(statistics);
    return *statistics;
  };
  const Statistics told = counted(classic), known = counted(t);
  EXPECT_EQ(told.unattributed_samples, known.unattributed_samples);
  EXPECT_EQ(told.images_by_pid, known.images_by_pid);
  EXPECT_EQ(told.stacks.walks, known.stacks.walks);
  EXPECT_EQ(told.stacks.kernel_references, known.stacks.kernel_references);
  EXPECT_EQ(told.stacks.user_references, known.stacks.user_references);
  EXPECT_EQ(told.stacks.key_deletes, known.stacks.key_deletes);
  EXPECT_EQ(told.stacks.frames, known.stacks.frames);
  EXPECT_EQ(told.stacks.distinct_stacks, known.stacks.distinct_stacks);
  EXPECT_EQ(told.stacks.keys_never_defined, known.stacks.keys_never_defined);
  ASSERT_EQ(told.by_instance.size(), known.by_instance.size());
  for (std::size_t i = 0; i < known.by_instance.size(); ++i) {
    EXPECT_EQ(told.by_instance[i].samples, known.by_instance[i].samples);
    EXPECT_EQ(told.by_instance[i].events, known.by_instance[i].events);
  }
}

// What a 32-bit program wrote of a 64-bit kernel's event reads as something else: better nothing than that.
TEST_F(FilterTest, ClassicEventsThatDoNotReadAsTheirHeaderSaysTellNothing) {
  const EventView event = view_of(t.event(target_));
  SyntheticTrace narrow;
  narrow.emit({1'000'000}, [&](write::EventBuilder &e) {
    e.classic(kernel::class_guid(event.hook()), event.opcode(), event.version(), 4, 1, 7, 1'000'000);
    e.bytes(event.payload());
  });
  EXPECT_TRUE(lifetimes_told_by(narrow).processes().empty());
}

} // namespace
} // namespace etwrelog
