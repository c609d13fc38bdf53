// What a selection by time, provider and kind keeps, through the whole pipeline.
#include "etwrelog/clr_events.hpp"
#include "tests/pipeline/filter_fixture.hpp"

namespace etwrelog {
namespace {

TEST_F(FilterTest, TimeRangesKeepStateOfTheRest) {
  const std::int64_t begin = 1'000'000 + 10'000'000, end = begin + 10'000'000; // 1 s .. 2 s
  std::vector<std::size_t> state, inside, outside;
  for (const std::int64_t at : {std::int64_t{1'500'000}, end + 500'000}) {
    const std::uint32_t pid = at < begin ? 300u : 400u;
    state.push_back(t.process_start({at}, pid, 4, "new.exe"));
    state.push_back(t.thread_start({at + 1}, pid + 1, pid));
    state.push_back(t.image_load({at + 2}, kTarget, kUserBase));
    state.push_back(t.image_id({at + 2}, kTarget, kUserBase));
    state.push_back(t.image_file_version({at + 2}, kTarget));
    state.push_back(t.clr_method_load({at + 3}, kT1, kTarget));
    state.push_back(t.system({at + 4}, 0x0B0A, 3, 1, 4));
    outside.push_back(t.sample({at + 5}, kT1));
    outside.push_back(t.stack_walk({at + 15}, at + 5, kTarget, kT1, {1}));
    outside.push_back(t.tcp_send({at + 6}, kTarget));
    outside.push_back(t.manifest_event({at + 7}, {.provider = kProvider, .id = 1}, kT1, kTarget));
    outside.push_back(t.context_switch({at + 8, 1}, kT1, kO1));
  }
  for (const std::int64_t at : {begin, begin + 5, end}) {
    inside.push_back(t.sample({at, 2}, kT1));
    inside.push_back(t.manifest_event({at, 2}, {.provider = kProvider, .id = 1}, kT1, kTarget));
  }
  inside.push_back(t.stack_key({end + 3, 2}, end, kTarget, kT1, kKey)); // written later than its event
  state.push_back(t.stack_definition({end + 1'000'000, 3}, kKey, {1, 2}));
  state.push_back(t.manifest({end + 1'000'001, 3}, kProvider, kT1, kTarget, "<a/>"));
  outside.push_back(t.sample({begin - 1, 3}, kT1));
  outside.push_back(t.sample({end + 1, 3}, kT1));
  for (const bool utc : {false, true}) {
    Selection selection;
    selection.from = utc ? Moment{false, 0, t.header().start_time + kFiletimePerSecond} : Moment{true, 1, 0};
    selection.to =
        utc ? Moment{false, 0, t.header().start_time + 2 * kFiletimePerSecond} : Moment{true, 2, 0};
    run(selection);
    for (const auto event : state)
      EXPECT_TRUE(kept(event)) << event;
    for (const auto event : inside)
      EXPECT_TRUE(kept(event)) << event;
    for (const auto event : outside)
      EXPECT_FALSE(kept(event)) << event;
  }
}

TEST_F(FilterTest, RefusesATimeRangeThatIsEmpty) {
  Selection selection;
  selection.from = Moment{true, 2, 0};
  selection.to = Moment{true, 1, 0};
  const Relogged r = relog_selection(t, selection);
  ASSERT_TRUE(r.error);
  EXPECT_EQ(r.error->kind, ErrorKind::usage);
}

TEST_F(FilterTest, ProvidersKeepTheirEventsByKeywordAndLevel) {
  const auto plain = t.manifest_event(
      {2'000'000}, {.provider = kProvider, .id = 1, .level = 4, .keyword = 0x10}, kT1, kTarget);
  const auto verbose = t.manifest_event(
      {2'000'001}, {.provider = kProvider, .id = 2, .level = 5, .keyword = 0x10}, kT1, kTarget);
  const auto keyword = t.manifest_event(
      {2'000'002}, {.provider = kProvider, .id = 3, .level = 2, .keyword = 0x20}, kO1, kOther);
  const auto none = t.manifest_event({2'000'003}, {.provider = kProvider, .id = 4, .level = 2}, kO1, kOther);
  const auto other = t.manifest_event(
      {2'000'004}, {.provider = kProvider2, .id = 1, .level = 1, .keyword = 0x10}, kT1, kTarget);
  const auto sample = t.sample({2'000'005}, kT1);
  const auto manifest = t.manifest({2'000'006}, kProvider, kT1, kTarget, "<a/>");
  Selection selection;
  selection.providers = {{false, kProvider, 0x10, 4}};
  run(selection);
  EXPECT_TRUE(kept(plain));
  EXPECT_TRUE(kept(none)) << "without keywords an event matches any mask";
  EXPECT_TRUE(kept(manifest));
  for (const auto event : {target_, other_, system_})
    EXPECT_TRUE(kept(event)) << "state stays";
  for (const auto event : {verbose, keyword, other, sample})
    EXPECT_FALSE(kept(event)) << event;
  selection.processes = {"target.exe"};
  selection.providers = {{false, kProvider, 0, 0}, {true, {}, 0, 0}};
  run(selection);
  for (const auto event : {plain, verbose, sample, manifest})
    EXPECT_TRUE(kept(event)) << event;
  for (const auto event : {keyword, none, other, other_})
    EXPECT_FALSE(kept(event)) << event;
}

TEST_F(FilterTest, SelectsByChannelTaskOpcodeAndActivity) {
  const Guid activity = make_guid(0xACACACAC, 1, 2, 3, 4);
  auto event = [&](std::int64_t time, write::EventFields fields) {
    fields.provider = kProvider;
    return t.manifest_event({time}, fields, kT1, kTarget);
  };
  const auto channel = event(2'000'000, {.provider = {}, .id = 1, .channel = 9}),
             task = event(2'000'001, {.provider = {}, .id = 1, .task = 300}),
             opcode = event(2'000'002, {.provider = {}, .id = 1, .opcode = 0x2E}),
             active = event(2'000'003, {.provider = {}, .id = 1, .activity = activity}),
             plain = event(2'000'004, {.provider = {}, .id = 1}), sample = t.sample({2'000'005}, kT1);
  const std::vector<std::size_t> all{channel, task, opcode, active, plain, sample};
  auto expect = [&](const Selection &selection, const std::vector<std::size_t> &yes) {
    run(selection);
    for (const auto number : all)
      EXPECT_EQ(kept(number), std::ranges::count(yes, number) == 1) << number;
  };
  Selection by_channel, by_task, by_opcode, by_activity, both;
  by_channel.channels = {9, 10};
  by_task.tasks = {300};
  by_opcode.opcodes = {0x2E}; // of samples the low byte of the hook
  by_activity.activities = {activity};
  both.channels = {0};
  both.tasks = {0};
  expect(by_channel, {channel});
  expect(by_task, {task});
  expect(by_opcode, {opcode, sample});
  expect(by_activity, {active});
  expect(both, {opcode, active, plain}); // a sample has no channel
}

TEST_F(FilterTest, SelectionsByKindKeepTheStacksOfWhatTheyKeep) {
  t.context_switch({1'999'000, 0}, kT1, 0);
  const auto sample = t.sample({2'000'000, 0}, kT1);
  const auto stack = t.stack_key({2'000'010, 1}, 2'000'000, kTarget, kT1,
                                 kKey); // the user part comes from another processor
  const auto fault = t.page_fault({2'000'100, 0});
  const auto fault_stack = t.stack_walk({2'000'110, 0}, 2'000'100, kTarget, kT1, {1});
  const auto switched = t.context_switch({2'000'200, 0}, kT2, kT1);
  const auto switch_stack = t.stack_walk({2'000'210, 0}, 2'000'200, kTarget, kT2, {1});
  const auto read = t.disk_init({2'000'300, 0}, kT1, kT1, kTarget);
  const auto read_stack = t.stack_walk({2'000'310, 0}, 2'000'300, kTarget, kT1, {1});
  const auto elsewhere = t.sample({2'000'400, 2}, kT1);
  const auto elsewhere_stack = t.stack_key({2'000'410, 2}, 2'000'400, kTarget, kT1, kKey + 8);
  const auto definition = t.stack_definition({2'000'900, 3}, kKey, {1}),
             other_definition = t.stack_definition({2'000'901, 3}, kKey + 8, {1});
  struct Case {
    std::uint32_t hook;
    std::vector<std::size_t> yes;
  };
  const std::vector<std::size_t> all{sample,    stack,           fault,      fault_stack,
                                     switched,  switch_stack,    read,       read_stack,
                                     elsewhere, elsewhere_stack, definition, other_definition};
  for (const Case &c :
       {Case{0x0F2E, {sample, stack, elsewhere, elsewhere_stack, definition, other_definition}},
        Case{0x020B, {fault, fault_stack}}, Case{0x0524, {switched, switch_stack}},
        Case{0x010D, {read, read_stack}}}) {
    Selection selection;
    selection.events = {c.hook};
    run(selection);
    for (const auto event : all)
      EXPECT_EQ(kept(event), std::ranges::count(c.yes, event) == 1) << std::hex << c.hook << ' ' << event;
  }
  Selection one_cpu;
  one_cpu.processors = {0};
  run(one_cpu);
  for (const auto event : all)
    EXPECT_EQ(kept(event), event != elsewhere && event != elsewhere_stack && event != other_definition)
        << event;
}

// Of several events in one stay in the kernel each has a half of its own there, and one the user's half of
// all.
TEST_F(FilterTest, SelectionsByKindKeepTheUsersHalfThatAnotherEventHas) {
  const auto call = t.syscall({2'000'000});
  const auto sample = t.sample({2'000'010}, kT1);
  const auto half = t.stack_walk({2'000'011}, 2'000'010, kTarget, kT1, {kKernelBase + 1}),
             call_half = t.stack_walk({2'000'012}, 2'000'000, kTarget, kT1, {kKernelBase}),
             users = t.stack_walk({2'000'020, 1}, 2'000'000, kTarget, kT1, {kUserBase}),
             by_key = t.stack_key({2'000'021, 1}, 2'000'000, kTarget, kT1, kKey),
             kernel_key = t.stack_key({2'000'022, 1}, 2'000'000, kTarget, kT1, kKey + 8, false),
             other_thread = t.stack_walk({2'000'023, 1}, 2'000'000, kTarget, kT2, {kUserBase + 1}),
             before = t.stack_walk({2'000'009, 2}, 2'000'001, kTarget, kT1, {kUserBase + 2}),
             after = t.stack_walk({2'000'040, 1}, 2'000'030, kTarget, kT1, {kUserBase + 3});
  const auto definition = t.stack_definition({2'000'900, 3}, kKey, {kUserBase}),
             kernel_definition = t.stack_definition({2'000'901, 3}, kKey + 8, {kKernelBase});
  run({.events = {0x0F2E}});
  for (const auto event : {sample, half, users, by_key, definition})
    EXPECT_TRUE(kept(event)) << event;
  for (const auto event : {call, call_half, kernel_key, other_thread, before, after, kernel_definition})
    EXPECT_FALSE(kept(event)) << event;
  run({.events = {0x0F2E}, .processors = {3}}); // where nothing was sampled
  for (const auto event : {half, users, by_key})
    EXPECT_FALSE(kept(event)) << event;
}

// The runtime's stacks are events of their own: each is of the event before it on its thread, wherever that
// is.
TEST_F(FilterTest, SelectionsByKindKeepTheStacksThatDotNetWritesBehindThem) {
  const auto clr = [&](testing::At at, std::uint16_t id, std::uint32_t tid, std::uint32_t pid) {
    return t.manifest_event(at, {.provider = format::kClrGuid, .id = id}, tid, pid);
  };
  const auto orphan = t.clr_stack({1'999'000}, kT1, kTarget, {1}), tick = clr({2'000'000}, 10, kT1, kTarget),
             foreign_tick = clr({2'000'001, 1}, 10, kO1, kOther),
             foreign_stack = t.clr_stack({2'000'002, 1}, kO1, kOther, {2}),
             stack = t.clr_stack({2'000'003, 2}, kT1, kTarget, {3}),
             second = t.clr_stack({2'000'004, 2}, kT1, kTarget, {4}),
             start = clr({2'000'010}, 1, kT1, kTarget),
             start_stack = t.clr_stack({2'000'011}, kT1, kTarget, {5}),
             other_thread = t.clr_stack({2'000'012}, kT2, kTarget, {6}),
             late_tick = clr({12'000'000}, 10, kT1, kTarget),
             late_stack = t.clr_stack({12'000'001}, kT1, kTarget, {7});
  const std::vector<std::size_t> all{orphan, tick,        foreign_tick, foreign_stack, stack,     second,
                                     start,  start_stack, other_thread, late_tick,     late_stack};
  const auto expect = [&](const char *what, const Selection &selection, const std::vector<std::size_t> &yes) {
    run(selection);
    for (const auto event : all)
      EXPECT_EQ(kept(event), std::ranges::count(yes, event) == 1) << what << ' ' << event;
  };
  expect("ticks", {.events = {10}}, {tick, stack, foreign_tick, foreign_stack, late_tick, late_stack});
  expect("ticks of a process", {.processes = {"target.exe"}, .events = {10}},
         {tick, stack, late_tick, late_stack});
  expect("ticks of a time", {.to = Moment{true, 1, 0}, .events = {10}},
         {tick, stack, foreign_tick, foreign_stack});
  expect("starts", {.events = {1}}, {start, start_stack});
  expect("of a processor", {.processors = {1}}, {foreign_tick, foreign_stack});
  expect("stacks", {.events = {82}},
         {orphan, foreign_stack, stack, second, start_stack, other_thread, late_stack});
  expect("other kinds", {.events = {0x0F2E}}, {});
}

TEST_F(FilterTest, SelectionsByKindKeepTheStacksThatAreWrittenLater) {
  const auto event = [&](std::int64_t time, std::uint16_t id, std::uint32_t tid, std::uint32_t pid,
                         std::uint64_t match) {
    return t.manifest_event({time}, {.provider = kProvider, .id = id}, tid, pid, {},
                            {{ItemType::stack_trace64, testing::stack_item({kKernelBase}, match)}});
  };
  const auto one = event(2'000'000, 1, kT1, kTarget, 7), two = event(2'000'001, 2, kT1, kTarget, 8),
             foreign = event(2'000'002, 1, kO1, kOther, 7),
             part = t.later_stack({2'000'010, 1}, kT1, kTarget, 7, {1}),
             part_of_two = t.later_stack({2'000'011}, kT1, kTarget, 8, {2}),
             foreign_part = t.later_stack({2'000'012}, kO1, kOther, 7, {3}),
             other_thread = t.later_stack({2'000'013}, kT2, kTarget, 7, {4});
  const auto expect = [&](const char *what, const Selection &selection, const std::vector<std::size_t> &yes) {
    run(selection);
    for (const auto number : {one, two, foreign, part, part_of_two, foreign_part, other_thread})
      EXPECT_EQ(kept(number), std::ranges::count(yes, number) == 1) << what << ' ' << number;
  };
  expect("one", {.events = {1}}, {one, part, foreign, foreign_part});
  expect("two", {.events = {2}}, {two, part_of_two});
  expect("of a process", {.processes = {"target.exe"}, .events = {1}}, {one, part});
  expect("the parts", {.events = {18}}, {part, part_of_two, foreign_part, other_thread});
}

// A stack without the names of its code is numbers; names without stacks are most of a trace for nothing.
TEST_F(FilterTest, NamesOfCodeStayForTheProcessesThatStacksAreKeptOf) {
  const auto own = t.clr_method_load({2'000'000}, kT1, kTarget),
             late = t.clr_method_load({12'000'000}, kT2, kTarget),
             script = t.manifest_event({2'000'001}, {.provider = clr::kScriptGuid, .id = 9}, kT1, kTarget),
             foreign = t.clr_method_load({2'000'002, 1}, kO1, kOther),
             described = t.manifest({2'000'003}, format::kClrGuid, kT1, kTarget, "<a/>");
  const std::vector<std::size_t> all{own, late, script, foreign, described};
  const auto sample = t.sample({3'000'000}, kT1), foreign_sample = t.sample({3'000'001, 1}, kO1);
  t.stack_walk({3'000'010}, 3'000'000, kTarget, kT1, {1});
  t.image_load({3'000'020}, kTarget, kUserBase, kT1); // stays whatever is asked for, with its stack
  t.stack_walk({3'000'030}, 3'000'020, kTarget, kT1, {1, 2});
  std::vector<std::uint8_t> frames(16, 1);
  t.manifest_event({4'000'000}, {.provider = kProvider, .id = 1}, kO1, kOther, {},
                   {{ItemType::stack_trace64, frames}});
  t.manifest_event({4'000'001}, {.provider = kProvider2, .id = 2}, kT1, kTarget);
  t.manifest_event({5'000'000}, {.provider = format::kClrGuid, .id = 10}, kT2, kTarget);
  t.clr_stack({5'000'001}, kT2, kTarget, {1});
  const auto expect = [&](const char *what, const Selection &selection, const std::vector<std::size_t> &yes) {
    run(selection);
    for (const auto event : all)
      EXPECT_EQ(kept(event), std::ranges::count(yes, event) == 1) << what << ' ' << event;
  };
  expect("samples", {.events = {0x0F2E}}, {own, late, script, described});
  EXPECT_TRUE(kept(sample) && kept(foreign_sample));
  expect("of a time", {.to = Moment{true, 1, 0}, .events = {0x0F2E}}, {own, late, script, described});
  expect("without a stack", {.processes = {"other.exe"}, .events = {0x0F2E}}, {});
  expect("in the event", {.events = {1}}, {foreign, described});
  expect("no stack of the kind", {.events = {2}}, {});
  expect("of .NET", {.events = {10}}, {own, late, script, described});
  expect("named themselves", {.events = {143}}, {own, late, foreign, described});
  expect("by process", {.processes = {"target.exe"}}, {own, late, script, described});
}

// What goes with the events that refer to it stays for itself where its own kind is named.
TEST_F(FilterTest, KindsThatAreNamedAreKeptThoughNothingRefersToThem) {
  const auto stack = t.stack_walk({2'000'010}, 1'999'999, kTarget, kT1, {1}),
             reference = t.stack_key({2'000'020}, 1'999'999, kOther, kO1, kKey),
             definition = t.stack_definition({2'000'030, 3}, kKey, {1}),
             alone = t.stack_definition({2'000'031, 3}, kKey + 8, {1}),
             rundown = t.file_name({2'000'040}, 0x5000, "a"),
             again = t.file_name({2'000'041, 1}, 0x5000, "b"),
             created = t.file_name({2'000'050}, 0x5000, "a", 0x0420),
             late = t.file_name({12'000'050}, 0x5000, "c", 0x0420),
             manifest = t.manifest({2'000'060}, kProvider, kT1, kTarget, "<a/>"),
             other = t.manifest({2'000'061}, kProvider2, kO1, kOther, "<b/>");
  const std::vector<std::size_t> all{stack, reference, definition, alone,    rundown,
                                     again, created,   late,       manifest, other};
  const auto expect = [&](const char *what, const Selection &selection, const std::vector<std::size_t> &yes) {
    run(selection);
    for (const auto event : all)
      EXPECT_EQ(kept(event), std::ranges::count(yes, event) == 1) << what << ' ' << event;
  };
  expect("walks", {.events = {0x1820}}, {stack});
  expect("references need what they refer to", {.events = {0x1826}}, {reference, definition});
  expect("definitions", {.events = {0x1823}}, {definition, alone});
  expect("rundown", {.events = {0x0424}}, {rundown, again});
  expect("created", {.events = {0x0420}}, {created, late});
  expect("of a time", {.to = Moment{true, 1, 0}, .events = {0x0420}}, {created});
  expect("of a processor", {.events = {0x0424}, .processors = {1}}, {again});
  expect("by opcode", {.opcodes = {0x24}}, {rundown, again});
  expect("manifests", {.events = {0xFFFE}}, {manifest, other});
  expect("of a provider", {.providers = {{false, kProvider2, 0, 0}}}, {other});
  expect("kernel", {.providers = {{true, {}, 0, 0}}},
         {stack, reference, definition, alone, rundown, again, created, late});
  expect("of a process", {.processes = {"other.exe"}, .events = {0x1820, 0x1826, 0xFFFE}},
         {reference, definition, other});
  expect("of nobody", {.processes = {"other.exe"}, .events = {0x0424}, .keep_system = true},
         {rundown, again});
}

// Names are for those who refer to them, but the creation of a file is something that happened.
TEST_F(FilterTest, FilesThatAreCreatedAndDeletedAreEventsOfTheirTime) {
  const auto created = t.file_name({2'000'050}, 0x5000, "a", 0x0420),
             deleted = t.file_name({2'000'060, 1}, 0x5000, "a", 0x0423),
             rundown = t.file_name({2'000'070}, 0x5000, "a"),
             late = t.file_name({12'000'050}, 0x6000, "c", 0x0420);
  const auto expect = [&](const char *what, const Selection &selection, const std::vector<std::size_t> &yes) {
    run(selection);
    for (const auto event : {created, deleted, rundown, late})
      EXPECT_EQ(kept(event), std::ranges::count(yes, event) == 1) << what << ' ' << event;
  };
  expect("time", {.to = Moment{true, 1, 0}}, {created, deleted});
  expect("processor", {.processors = {0}}, {created, late});
  expect("another kind", {.events = {0x0F2E}}, {});
  expect("all but one process", {.exclude = {"other.exe"}}, {created, deleted, late});
  expect("one process", {.processes = {"target.exe"}}, {});
  expect("and what is nobody's", {.processes = {"target.exe"}, .keep_system = true},
         {created, deleted, late});
}

TEST_F(FilterTest, SelectsSingleEventsByIdHookAndOpcode) {
  const auto event = t.manifest_event({2'000'000}, {.provider = kProvider, .id = 77}, kUnknownId, kUnknownId);
  const auto classic = t.classic({2'000'001}, kProvider, 77, kT1, kTarget);
  const auto other = t.manifest_event({2'000'002}, {.provider = kProvider, .id = 78}, kT1, kTarget);
  Selection selection;
  selection.events = {77};
  run(selection);
  EXPECT_TRUE(kept(event)) << "no process selected: ids need not be known";
  EXPECT_TRUE(kept(classic));
  EXPECT_FALSE(kept(other));
}

} // namespace
} // namespace etwrelog
