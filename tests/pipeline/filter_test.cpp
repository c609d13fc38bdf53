// What a selection by process keeps: every row of the table of reasons, through the whole pipeline, against
// traces made here.
#include "tests/pipeline/filter_fixture.hpp"

namespace etwrelog {
namespace {

TEST_F(FilterTest, KeepsWhatDescribesTheTraceAlways) {
  std::vector<std::size_t> always;
  t.in_first_buffer(true);
  for (const std::uint16_t hook : {0x0005, 0x0042, 0x0050, 0x0052})
    always.push_back(t.system({1'000'001}, hook, 2, 1, kOther));
  t.in_first_buffer(false);
  for (const std::uint16_t hook :
       {0x0020, 0x0008, 0x0040, 0x0043, 0x0F48, 0x0F49, 0x0F4A, 0x0B0A, 0x0B0F, 0x0B13, 0x0B25, 0x1421})
    always.push_back(t.system({2'000'000}, hook, 3, 1, kOther));
  for (const std::uint8_t opcode : {32, 33, 34, 35, 36})
    always.push_back(t.classic({2'000'010}, format::kSysConfigGuid, opcode, 0, 0));
  always.push_back(t.classic({2'000'011}, format::kWinSatGuid, 33, 1, kOther));
  run();
  for (const std::size_t event : always)
    EXPECT_TRUE(kept(event)) << event;
}

TEST_F(FilterTest, KeepsProcessesAndThreadsOfTargetsAndOfIdleAndSystem) {
  const auto start = t.process_start({2'000'000}, 101, kOther, "TARGET.exe");
  const auto other_start = t.process_start({2'000'001}, 201, kTarget, "x.exe", "", kT1);
  const auto thread = t.thread_start({2'000'002}, 111, kTarget, kO1, kOther);
  const auto foreign = t.thread_start({2'000'003}, 211, kOther, kT1, kTarget);
  const auto ends = {t.thread_end({2'000'004}, kT2, kTarget), t.process_end({2'000'005}, 101, "TARGET.exe")};
  const auto system_thread = t.thread_start({2'000'006}, 12, 4);
  const auto rundown = t.process_rundown({9'000'000}, kTarget, 4, "target.exe", "", true);
  const auto other_rundown = t.process_rundown({9'000'001}, kOther, 4, "other.exe", "", true);
  run();
  for (const auto event : {idle_, system_, target_, start, thread, system_thread, rundown})
    EXPECT_TRUE(kept(event)) << event;
  for (const auto event : ends)
    EXPECT_TRUE(kept(event));
  for (const auto event : {other_, other_start, foreign, other_rundown})
    EXPECT_FALSE(kept(event)) << event;
}

TEST_F(FilterTest, KeepsImagesOfTargetsAndInKernelSpace) {
  const auto own = t.image_load({2'000'000}, kTarget, kUserBase);
  const auto own_rundown = t.image_rundown({9'000'000}, kTarget, kUserBase);
  const auto kernel = t.image_load({2'000'001}, 0, kKernelBase, 8);
  const auto kernel_rundown = t.image_rundown({9'000'001}, 0, kKernelBase, true);
  const auto odd = t.image_load({2'000'002}, kOther, kKernelBase + 0x10000); // session space drivers
  const auto foreign = t.image_load({2'000'003}, kOther, kUserBase);
  const auto unload = t.image_load({2'000'004}, kOther, kUserBase, kO1, true);
  const auto idle_user = t.image_rundown({2'000'005}, 0, kUserBase);
  run();
  for (const auto event : {own, own_rundown, kernel, kernel_rundown, odd})
    EXPECT_TRUE(kept(event)) << event;
  for (const auto event : {foreign, unload, idle_user})
    EXPECT_FALSE(kept(event)) << event;
}

TEST_F(FilterTest, KeepsIdentityOfKeptImages) {
  const auto own = {
      t.image_id({2'000'000}, kTarget, kUserBase),  t.image_pdb({2'000'000}, kTarget, kUserBase),
      t.image_file_version({2'000'000}, kTarget),   t.image_id({2'000'001}, 0, kKernelBase),
      t.image_pdb({2'000'001}, 0, kKernelBase),     t.image_file_version({2'000'001}, 0),
      t.image_pdb({2'000'002}, kOther, kKernelBase)};
  const auto foreign = {t.image_id({2'000'003}, kOther, kUserBase),
                        t.image_pdb({2'000'003}, kOther, kUserBase),
                        t.image_file_version({2'000'003}, kOther), t.image_id({2'000'004}, 0, kUserBase)};
  run();
  for (const auto event : own)
    EXPECT_TRUE(kept(event)) << event;
  for (const auto event : foreign)
    EXPECT_FALSE(kept(event)) << event;
}

TEST_F(FilterTest, KeepsSamplesByTheThreadsProcessAtThatTime) {
  const auto own = t.sample({2'000'000}, kT1);
  const auto foreign = t.sample({2'000'001}, kO1);
  const auto unknown = t.sample({2'000'002}, 9999);
  const auto idle = t.sample({2'000'003}, 0);
  t.thread_end({2'000'100}, kT1, kTarget);
  const auto after = t.sample({2'000'150}, kT1);
  t.thread_start({2'000'200}, kT1, kOther);
  const auto reused = t.sample({2'000'300, 2}, kT1);
  t.thread_end({2'000'400}, kT1, kOther);
  t.thread_start({2'000'500, 3}, kT1, kTarget);
  const auto back = t.sample({2'000'600, 1}, kT1);
  run();
  EXPECT_TRUE(kept(own));
  EXPECT_TRUE(kept(after)) << "the id has not been started anew";
  EXPECT_TRUE(kept(back));
  for (const auto event : {foreign, unknown, idle, reused})
    EXPECT_FALSE(kept(event)) << event;
}

TEST_F(FilterTest, KeepsContextSwitchesOfEitherThread) {
  const auto in = t.context_switch({2'000'000}, kT1, kO1), out = t.context_switch({2'000'001}, kO1, kT1);
  const auto within = t.context_switch({2'000'002, 1}, kT2, kT1);
  const auto foreign = t.context_switch({2'000'003, 1}, kO1, 0),
             idle = t.context_switch({2'000'004, 2}, 0, 8);
  run();
  for (const auto event : {in, out, within})
    EXPECT_TRUE(kept(event)) << event;
  for (const auto event : {foreign, idle})
    EXPECT_FALSE(kept(event)) << event;
}

TEST_F(FilterTest, KeepsReadyThreadByTheReadiedAndTheReadyingThread) {
  t.context_switch({2'000'000, 0}, kT1, 0);
  const auto by_target = t.ready_thread({2'000'001, 0}, kO1);
  t.end_buffer(0);
  const auto by_target_later = t.ready_thread({2'000'002, 0}, kO1); // the running thread carries over
  t.context_switch({2'000'003, 0}, kO1, kT1);
  const auto of_target = t.ready_thread({2'000'004, 0}, kT2);
  const auto foreign = t.ready_thread({2'000'005, 0}, 8);
  const auto elsewhere = t.ready_thread({2'000'006, 3}, kO1); // nothing is known of that processor
  run();
  for (const auto event : {by_target, by_target_later, of_target})
    EXPECT_TRUE(kept(event)) << event;
  for (const auto event : {foreign, elsewhere})
    EXPECT_FALSE(kept(event)) << event;
}

TEST_F(FilterTest, KeepsBatchedSwitchesWholeWithANote) {
  const auto batch = t.switch_batch({2'000'000}, {kO1, 8});
  run();
  EXPECT_TRUE(kept(batch));
  ASSERT_EQ(relogged.report.warnings.size(), 1u);
  EXPECT_NE(relogged.report.warnings[0].find("CompCS"), std::string::npos);
}

TEST_F(FilterTest, KeepsEventsOfTheRunningThread) {
  t.context_switch({2'000'000, 0}, kT1, 0);
  const auto fault = t.page_fault({2'000'001, 0}), call = t.syscall({2'000'002, 0});
  t.context_switch({2'000'003, 0}, kO1, kT1);
  const auto foreign = t.page_fault({2'000'004, 0}), foreign_call = t.syscall({2'000'005, 0});
  const auto unknown = t.page_fault({2'000'007, 3});
  const auto by_header = t.system({2'000'006, 0}, 0x020B, 2, kT1, kTarget); // a fault that says whose it is
  run();
  for (const auto event : {fault, call, by_header})
    EXPECT_TRUE(kept(event)) << event;
  for (const auto event : {foreign, foreign_call, unknown})
    EXPECT_FALSE(kept(event)) << event;
}

TEST_F(FilterTest, KeepsStackWalksOfTargetsWhoseEventIsKept) {
  const auto sample = t.sample({2'000'000, 0}, kT1), foreign_sample = t.sample({2'000'000, 1}, kO1);
  const auto own = t.stack_walk({2'000'010, 0}, 2'000'000, kTarget, kT1, {1, 2, 3});
  const auto foreign = t.stack_walk({2'000'010, 1}, 2'000'000, kOther, kO1, {1, 2, 3});
  // A start of a foreign thread, caused by the target: the event goes, and so must its stack.
  const auto start = t.thread_start({2'000'100}, 211, kOther, kT1, kTarget);
  const auto start_stack = t.stack_walk({2'000'110}, 2'000'100, kTarget, kT1, {1, 2});
  const auto own_start = t.thread_start({2'000'200}, 111, kTarget, kT1, kTarget);
  const auto own_start_stack = t.stack_walk({2'000'210}, 2'000'200, kTarget, kT1, {1, 2});
  const auto child = t.process_start({2'000'300}, 300, kTarget, "child.exe", "", kT1);
  const auto child_stack = t.stack_walk({2'000'310}, 2'000'300, kTarget, kT1, {1, 2});
  // A kernel image that the target loads is kept, and so is its stack.
  const auto driver = t.image_load({2'000'400}, 0, kKernelBase, kT1);
  const auto driver_stack = t.stack_walk({2'000'410}, 2'000'400, kTarget, kT1, {1, 2});
  // A sample behind the thread's end is still the thread's.
  t.thread_end({2'000'500}, kT2, kTarget);
  const auto late = t.sample({2'000'501}, kT2);
  const auto late_stack = t.stack_walk({2'000'510}, 2'000'501, kTarget, kT2, {1, 2});
  run();
  for (const auto event : {sample, own, own_start, own_start_stack, driver, driver_stack, late, late_stack})
    EXPECT_TRUE(kept(event)) << event;
  for (const auto event : {foreign_sample, foreign, start, start_stack, child, child_stack})
    EXPECT_FALSE(kept(event)) << event;
}

// Samples on all processors fall on the same tick; one that is dropped must not take another's stack along.
TEST_F(FilterTest, KeepsAStackWhoseTickSawADroppedEventElsewhere) {
  const auto own = t.sample({2'000'000, 0}, kT1);
  t.sample({2'000'000, 1}, 9999); // of no known thread
  t.dpc({2'000'000, 2});
  const auto walk = t.stack_walk({2'000'010, 0}, 2'000'000, kTarget, kT1, {1, 2});
  const auto key = t.stack_key({2'000'011, 0}, 2'000'000, kTarget, kT1, kKey);
  const auto definition = t.stack_definition({2'000'900, 3}, kKey, {5, 6});
  run();
  for (const auto event : {own, walk, key, definition})
    EXPECT_TRUE(kept(event)) << event;
}

// A fault of the thread that runs, on a processor where no switch has said which: the event goes, so do its
// stacks.
TEST_F(FilterTest, DropsStacksOfEventsWhoseThreadIsNotKnown) {
  const auto fault = t.page_fault({2'000'000, 0});
  const auto stack = t.stack_walk({2'000'010, 0}, 2'000'000, kTarget, kT1, {1, 2});
  const auto key = t.stack_key({2'000'011, 0}, 2'000'000, kTarget, kT1, kKey);
  const auto definition = t.stack_definition({2'000'900, 3}, kKey, {5, 6});
  run();
  for (const auto event : {fault, stack, key, definition})
    EXPECT_FALSE(kept(event)) << event;
}

// The header's thread walks; whose the event is stands in the payload.
TEST_F(FilterTest, DropsStacksOfEventsThatTheTargetCausedForOthers) {
  const auto allocation = t.virtual_alloc({2'000'000}, kOther, kT1, kTarget);
  const auto stack = t.stack_walk({2'000'010}, 2'000'000, kTarget, kT1, {1, 2});
  const auto write = t.disk_init({2'000'100}, kO1, kT1, kTarget);
  const auto write_stack = t.stack_walk({2'000'110}, 2'000'100, kTarget, kT1, {1, 2});
  const auto own_write = t.disk_init({2'000'200}, kT1, kT1, kTarget);
  const auto own_stack = t.stack_walk({2'000'210}, 2'000'200, kTarget, kT1, {1, 2});
  run();
  for (const auto event : {allocation, stack, write, write_stack})
    EXPECT_FALSE(kept(event)) << event;
  for (const auto event : {own_write, own_stack})
    EXPECT_TRUE(kept(event)) << event;
}

TEST_F(FilterTest, KeepsDefinitionsThatResolveAKeptReference) {
  t.sample({2'000'000, 0}, kT1);
  const auto user = t.stack_key({2'000'010, 0}, 2'000'000, kTarget, kT1, kKey);
  const auto kernel = t.stack_key({2'000'005, 0}, 2'000'000, kTarget, kT1, kKey + 8, false);
  t.sample({2'000'000, 1}, kO1);
  const auto foreign = t.stack_key({2'000'010, 1}, 2'000'000, kOther, kO1, kKey + 16);
  const auto needed = {t.stack_definition({2'000'500, 2}, kKey, {1, 2}),
                       t.stack_definition({2'000'501, 3}, kKey + 8, {3}, true)};
  const auto foreign_definition = t.stack_definition({2'000'502, 2}, kKey + 16, {4});
  const auto unreferenced = t.stack_definition({2'000'503, 2}, kKey + 24, {5});
  run();
  EXPECT_TRUE(kept(user));
  EXPECT_TRUE(kept(kernel));
  for (const auto event : needed)
    EXPECT_TRUE(kept(event));
  for (const auto event : {foreign, foreign_definition, unreferenced})
    EXPECT_FALSE(kept(event)) << event;
}

// One key: the other process's stack, then the target's, then the other's again, defined on any processor.
TEST_F(FilterTest, FollowsKeyReuseAcrossProcessesAndProcessors) {
  auto use = [&](std::int64_t at, std::uint16_t cpu, std::uint32_t pid, std::uint32_t tid) {
    t.sample({at, cpu}, tid);
    return t.stack_key({at + 10, cpu}, at, pid, tid, kKey);
  };
  use(2'000'000, 0, kOther, kO1);
  const auto first = t.stack_definition({2'001'000, 3}, kKey, {1});
  const auto mine = use(2'002'000, 1, kTarget, kT1);
  use(2'003'000, 2, kOther, kO1);
  const auto second = t.stack_definition({2'004'000, 0}, kKey, {2});
  use(2'005'000, 1, kOther, kO1);
  const auto third = t.stack_definition({2'006'000, 1}, kKey, {3}, true);
  run();
  EXPECT_TRUE(kept(mine));
  EXPECT_FALSE(kept(first));
  EXPECT_TRUE(kept(second));
  EXPECT_FALSE(kept(third));
}

// The buffers lie in flush order: a definition may stand in the file before the references that it resolves.
TEST_F(FilterTest, ResolvesAcrossBuffersInFlushOrder) {
  const auto definition = t.stack_definition({2'010'000, 3}, kKey, {1, 2});
  const auto earlier = t.stack_definition({2'000'500, 3}, kKey + 8, {1, 2});
  t.end_buffer(3);
  t.sample({2'000'000, 0}, kT1);
  const auto reference = t.stack_key({2'000'010, 0}, 2'000'000, kTarget, kT1, kKey);
  const auto too_late =
      t.stack_key({2'000'600, 0}, 2'000'000, kTarget, kT1, kKey + 8); // after the definition: another stack
  t.end_buffer(0);
  run();
  EXPECT_TRUE(kept(reference));
  EXPECT_TRUE(kept(too_late));
  EXPECT_TRUE(kept(definition));
  EXPECT_FALSE(kept(earlier));
}

TEST_F(FilterTest, ResolvesKeysInExtendedItems) {
  const auto event = t.manifest_event({2'000'000, 0}, {.provider = kProvider, .id = 1}, kT1, kTarget, {},
                                      {{ItemType::stack_key64, testing::stack_key_item(kKey)}});
  t.manifest_event({2'000'000, 1}, {.provider = kProvider, .id = 1}, kO1, kOther, {},
                   {{ItemType::stack_key64, testing::stack_key_item(kKey + 8)}});
  const auto needed = t.stack_definition({2'000'500, 2}, kKey, {1}),
             foreign = t.stack_definition({2'000'501, 2}, kKey + 8, {1});
  run();
  EXPECT_TRUE(kept(event));
  EXPECT_TRUE(kept(needed));
  EXPECT_FALSE(kept(foreign));
}

TEST_F(FilterTest, KeepsDiskFileAndNetworkEventsByThePayload) {
  const auto own = {
      t.disk_read({2'000'000, 1}, kT1, 0x1000),  t.file_read({2'000'001, 1}, kT2, 0x2000, 0x3000),
      t.hard_fault({2'000'002, 1}, kT1, 0x4000), t.tcp_send({2'000'003, 1}, kTarget),
      t.udp_receive({2'000'004, 1}, kTarget),    t.virtual_alloc({2'000'005}, kTarget, kO1, kOther)};
  const auto foreign = {
      t.disk_read({2'000'000, 2}, kO1, 0x1000),  t.file_read({2'000'001, 2}, kO1, 0x2000, 0x3000),
      t.hard_fault({2'000'002, 2}, kO1, 0x4000), t.tcp_send({2'000'003, 2}, kOther),
      t.udp_receive({2'000'004, 2}, kOther),     t.perfinfo({2'000'006}, 0x0611, 1)};
  run();
  for (const auto event : own)
    EXPECT_TRUE(kept(event)) << event;
  for (const auto event : foreign)
    EXPECT_FALSE(kept(event)) << event;
}

TEST_F(FilterTest, KeepsFileNamesThatKeptEventsReference) {
  t.disk_read({2'000'000}, kT1, 0x1000);
  t.file_read({2'000'001}, kT1, 0x2000, 0x3000);
  t.hard_fault({2'000'002}, kT1, 0x4000);
  t.disk_read({2'000'003}, kO1, 0x5000);
  std::vector<std::size_t> needed, rest;
  for (const std::uint16_t hook : {0x0400, 0x0420, 0x0423, 0x0424})
    for (const std::uint64_t object : {0x1000, 0x2000, 0x3000, 0x4000})
      needed.push_back(t.file_name({9'000'000, 2}, object, "\\Device\\a", hook));
  needed.push_back(t.file_name({1'000'200, 3}, 0x1000, "\\Device\\early"));
  for (const std::uint64_t object : {0x5000, 0x6000})
    rest.push_back(t.file_name({9'000'001, 2}, object, "\\Device\\b"));
  run();
  for (const auto event : needed)
    EXPECT_TRUE(kept(event)) << event;
  for (const auto event : rest)
    EXPECT_FALSE(kept(event)) << event;
}

TEST_F(FilterTest, KeepsEventsByTheHeadersProcess) {
  const auto own = {t.manifest_event({2'000'000}, {.provider = kProvider, .id = 1}, kT1, kTarget),
                    t.classic({2'000'001}, kProvider, 1, kO1, kTarget),
                    t.trace_logging({2'000'002}, kProvider, "P", "E", 77, kTarget),
                    t.clr_method_load({2'000'003}, kT1, kTarget),
                    t.clr_stack({2'000'004}, kT1, kTarget, {1}),
                    t.message({2'000'005}, kProvider, kT1, kTarget),
                    t.system({2'000'006}, 0x090B, 2, kT1, kTarget)};
  const auto foreign = {
      t.manifest_event({2'000'000, 1}, {.provider = kProvider, .id = 1}, kO1, kOther),
      t.classic({2'000'001, 1}, kProvider, 1, kT1, kOther),
      t.trace_logging({2'000'002, 1}, kProvider, "P", "E", kT1, kOther),
      t.clr_method_load({2'000'003, 1}, kO1, kOther),
      t.clr_stack({2'000'004, 1}, kO1, kOther, {1}),
      t.message({2'000'005, 1}, kProvider, kO1, kOther),
      t.system({2'000'006, 1}, 0x090B, 2, kO1, kOther),
      t.manifest_event({2'000'007, 1}, {.provider = kProvider, .id = 1}, kUnknownId, kUnknownId)};
  run();
  for (const auto event : own)
    EXPECT_TRUE(kept(event)) << event;
  for (const auto event : foreign)
    EXPECT_FALSE(kept(event)) << event;
}

TEST_F(FilterTest, KeepsManifestsOfEveryKeptProvider) {
  t.manifest_event({2'000'000}, {.provider = kProvider, .id = 1}, kT1, kTarget);
  t.manifest_event({2'000'001}, {.provider = kProvider2, .id = 1}, kO1, kOther);
  const auto needed = {t.manifest({2'000'002}, kProvider, kO1, kOther, "<a/>"),
                       t.manifest({9'000'000, 3}, kProvider, kT1, kTarget, "<a/>"),
                       t.metadata({1'000'200}, kProvider), t.metadata({1'000'201}, kProvider, 33)};
  const auto rest = {t.manifest({2'000'003}, kProvider2, kO1, kOther, "<b/>"),
                     t.metadata({1'000'202}, kProvider2)};
  run();
  for (const auto event : needed)
    EXPECT_TRUE(kept(event)) << event;
  for (const auto event : rest)
    EXPECT_FALSE(kept(event)) << event;
}

TEST_F(FilterTest, DropsInterruptsUnlessAskedFor) {
  const auto system = {
      t.dpc({2'000'000}), t.isr({2'000'001}), t.perfinfo({2'000'002}, 0x0F42, 2),
      t.perfinfo({2'000'003}, 0x0F45, 2),
      t.manifest_event({2'000'004}, {.provider = kProvider, .id = 1}, kUnknownId, kUnknownId)};
  const auto foreign = t.sample({2'000'005}, kO1);
  run();
  for (const auto event : system)
    EXPECT_FALSE(kept(event)) << event;
  run({.processes = {"target.exe"}, .keep_system = true});
  for (const auto event : system)
    EXPECT_TRUE(kept(event)) << event;
  EXPECT_FALSE(kept(foreign));
}

TEST_F(FilterTest, ExcludingKeepsWhatBelongsToNobody) {
  const auto dpc = t.dpc({2'000'000}), unknown = t.sample({2'000'001}, 9999),
             own = t.sample({2'000'002}, kT1), other = t.sample({2'000'003}, kO1);
  run({.exclude = {"other.exe"}});
  for (const auto event : {dpc, unknown, own})
    EXPECT_TRUE(kept(event)) << event;
  EXPECT_FALSE(kept(other));
  EXPECT_FALSE(kept(other_));
}

TEST_F(FilterTest, TellsInstancesOfAProcessIdApart) {
  t.process_end({3'000'000}, kTarget, "target.exe");
  const auto between = t.manifest_event({3'500'000}, {.provider = kProvider, .id = 1}, kT1, kTarget);
  const auto reuse = t.process_start({4'000'000}, kTarget, 4, "impostor.exe");
  const auto later = t.manifest_event({4'500'000}, {.provider = kProvider, .id = 1}, kT1, kTarget);
  const auto send = t.tcp_send({4'500'001}, kTarget);
  const auto before = t.tcp_send({2'500'000, 1}, kTarget);
  run();
  EXPECT_TRUE(kept(between));
  EXPECT_TRUE(kept(before));
  for (const auto event : {reuse, later, send})
    EXPECT_FALSE(kept(event)) << event;
}

TEST_F(FilterTest, CountsByTypeAndProcessAddUp) {
  for (int i = 0; i < 10; ++i)
    t.sample({2'000'000 + i}, i % 2 == 0 ? kT1 : kO1);
  run();
  std::uint64_t in = 0, out = 0, bytes_in = 0, bytes_out = 0;
  for (const schema::TypeCount &row : relogged.report.types.rows()) {
    in += row.events;
    out += row.kept_events;
    bytes_in += row.bytes;
    bytes_out += row.kept_bytes;
  }
  EXPECT_EQ(in, relogged.report.events_in);
  EXPECT_EQ(out, relogged.report.events_out);
  EXPECT_EQ(bytes_in, relogged.report.event_bytes_in);
  EXPECT_EQ(bytes_out, relogged.report.event_bytes_out);
  EXPECT_EQ(relogged.report.processes.at(kTarget).events_in,
            relogged.report.processes.at(kTarget).events_out);
  EXPECT_EQ(relogged.report.processes.at(kOther).events_out, 0u);
  ASSERT_EQ(relogged.report.targets.size(), 1u);
  EXPECT_EQ(relogged.report.targets[0].second, "target.exe");
}

// The same decisions for a 32-bit trace, and in one-buffer batches.
TEST(Filter32, KeepsSamplesStacksAndFilesOfTargets) {
  SyntheticTrace t({.pointer_size = 4});
  t.process_rundown({1'000'102}, kTarget, 4, "target.exe");
  t.process_rundown({1'000'103}, kOther, 4, "other.exe");
  t.thread_rundown({1'000'105}, kT1, kTarget);
  t.thread_rundown({1'000'107}, kO1, kOther);
  std::vector<std::size_t> yes, no;
  for (const auto &[tid, pid, list] : {std::tuple{kT1, kTarget, &yes}, std::tuple{kO1, kOther, &no}}) {
    const std::uint64_t key = 0x8000'1000u + pid;
    const auto cpu = static_cast<std::uint16_t>(pid / 100);
    list->push_back(t.sample({2'000'000, cpu}, tid));
    list->push_back(t.stack_key({2'000'010, cpu}, 2'000'000, pid, tid, key));
    list->push_back(t.stack_definition({2'000'020, 0}, key, {0x1000, 0x8000'0000}));
    list->push_back(t.disk_read({2'000'030, cpu}, tid, 0x5000 + pid));
    list->push_back(t.file_name({2'000'040, cpu}, 0x5000 + pid, "\\a"));
    list->push_back(t.image_load({2'000'050, cpu}, pid, 0x40'0000, tid));
  }
  yes.push_back(t.image_load({2'000'060}, kOther, 0x8100'0000, kO1));
  const Relogged r = relog_selection(t, {.processes = {"100"}});
  ASSERT_FALSE(r.error);
  for (const auto event : yes)
    EXPECT_EQ(r.contents.count(t.event(event)), 1u) << event;
  for (const auto event : no)
    EXPECT_EQ(r.contents.count(t.event(event)), 0u) << event;
}

} // namespace
} // namespace etwrelog
