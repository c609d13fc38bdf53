// A profile's promise: each sample has exactly the stack that belongs to it, every sample and every piece of
// a stack is accounted for, and a trace that was cut down, re-cached or packed gives the same profile of a
// process.
#include "etwrelog/profile_diff.hpp"
#include "etwrelog/profile_export.hpp"
#include "tests/pipeline/profile/profile_runs.hpp"
#include "tests/support/real_traces.hpp"
#include "tests/support/run_tool.hpp"
#include "tools/etwgen/generate.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>

namespace etwrelog {
namespace {

TEST_F(Join, AUserHalfServesOneStayInTheKernelAndNoLaterSample) {
  for (const std::int64_t time : {2'000'000, 2'000'100, 2'000'300}) {
    trace.sample({time}, 80, kKernel);
    trace.stack_walk({time + 1}, time, 8, 80, {kKernel});
    if (time == 2'000'100) trace.stack_walk({time + 50}, 2'000'000, 8, 80, {kUser, kUser + 0x100});
  }
  const Lines lines = folded(run());
  EXPECT_EQ(lines, (Lines{{"game.exe (8);0x7ff600001100;0x7ff600001000;0xfffff80000001000_[k]", 2},
                          {"game.exe (8);[user stack missing];0xfffff80000001000_[k]", 1}}));
}

TEST_F(Join, AUserHalfOfAnotherEventIsLent) {
  trace.hard_fault({2'000'000}, 80, 1);
  trace.sample({2'000'050}, 80, kKernel);
  trace.stack_walk({2'000'051}, 2'000'050, 8, 80, {kKernel});
  trace.stack_walk({2'000'090}, 2'000'000, 8, 80, {kUser});
  const Profile profile = run();
  EXPECT_EQ(folded(profile), (Lines{{"game.exe (8);0x7ff600001000;0xfffff80000001000_[k]", 1}}));
  EXPECT_EQ(profile.accounting.lent_user_halves, 1u);
  EXPECT_EQ(profile.accounting.total.claimed, 2u);
}

TEST_F(Join, ASampleInADpcIsNotGivenTheStackOfALaterEvent) {
  trace.sample({2'000'000}, 80, kKernel);
  trace.stack_walk({2'000'001}, 2'000'000, 8, 80, {kKernel});
  trace.sample({2'000'100}, 80, kUser);
  trace.stack_walk({2'000'101}, 2'000'100, 8, 80, {kUser});
  EXPECT_EQ(folded(run()), (Lines{{"game.exe (8);[user stack missing];0xfffff80000001000_[k]", 1},
                                  {"game.exe (8);0x7ff600001000", 1}}));
}

TEST_F(Join, OfEventsAtOneTimeTheThreadAndThenTheProcessorDecide) {
  trace.thread_rundown({1'000'003}, 84, 8);
  trace.sample({2'000'000, 0}, 80, kUser);
  trace.sample({2'000'000, 1}, 84, kUser);
  trace.sample({2'000'000, 2}, 80, kUser);
  trace.stack_walk({2'000'010, 1}, 2'000'000, 8, 84, {kUser + 1});
  trace.stack_walk({2'000'010, 0}, 2'000'000, 8, 80, {kUser + 2});
  trace.stack_walk({2'000'010, 3}, 2'000'000, 8, 80, {kUser + 3}); // elsewhere: the last in the file
  EXPECT_EQ(folded(run()), (Lines{{"game.exe (8);0x7ff600001001", 1},
                                  {"game.exe (8);0x7ff600001002", 1},
                                  {"game.exe (8);0x7ff600001003", 1}}));
}

TEST_F(Join, AnEventWithoutAThreadTakesTheFirstFragmentThatNothingElseAnswers) {
  trace.ready_thread({2'000'000}, 99);
  trace.stack_walk({2'000'010}, 2'000'000, 8, 80, {kUser});
  trace.stack_walk({2'000'020}, 2'000'000, 12, 120, {kUser}); // the event is the other thread's by now
  trace.sample({2'000'100}, 80, kUser);
  const Profile profile = run();
  EXPECT_EQ(profile.accounting.total.other_event, 1u);
  EXPECT_EQ(profile.accounting.total.orphaned, 1u);
  EXPECT_EQ(profile.accounting.other_events.at(0).first, "Windows Kernel/Dispatcher/ReadyThread");
}

// The buffers of a processor overlap in time: then an event of a later one may be the owner of a stack in an
// earlier one.
TEST_F(Join, OfEventsAtOneTimeTheLaterBufferDecides) {
  trace.sample({2'000'000}, 80, kKernel);
  trace.stack_walk({2'000'001}, 2'000'000, 8, 80, {kUser});
  trace.sample({2'000'500}, 80, kKernel + 1);
  trace.stack_walk({2'000'501}, 2'000'500, 8, 80, {kUser + 1});
  trace.sample({2'000'900}, 80, kKernel + 2);
  trace.end_buffer(0);
  trace.sample({2'000'000}, 80, kKernel + 3);
  const Lines lines = folded(run());
  EXPECT_EQ(lines, (Lines{{"game.exe (8);[no stack];0xfffff80000001000_[k]", 1},
                          {"game.exe (8);0x7ff600001001", 1},
                          {"game.exe (8);[no stack];0xfffff80000001002_[k]", 1},
                          {"game.exe (8);0x7ff600001000", 1}}));
}

TEST_F(Join, KeysAreDefinedLaterAndAKernelAndAUserKeyMayBeEqual) {
  trace.sample({2'000'000}, 80, kKernel);
  trace.stack_key({2'000'001}, 2'000'000, 8, 80, 0x77, false);
  trace.stack_key({2'000'002}, 2'000'000, 8, 80, 0x77, true);
  trace.stack_definition({2'000'500}, 0x77, {kUser});
  trace.stack_definition({2'000'501}, 0x77, {kKernel, kKernel + 8});
  trace.sample({2'001'000}, 80, kUser);
  trace.stack_key({2'001'001}, 2'001'000, 8, 80, 0x77, true);
  trace.stack_definition({2'001'500}, 0x77, {kUser + 0x20}, true);
  trace.sample({2'002'000}, 80, kUser);
  trace.stack_key({2'002'001}, 2'002'000, 8, 80, 0x99, true); // never defined
  const Profile profile = run();
  EXPECT_EQ(folded(profile),
            (Lines{{"game.exe (8);0x7ff600001000;0xfffff80000001008_[k];0xfffff80000001000_[k]", 1},
                   {"game.exe (8);0x7ff600001020", 1},
                   {"game.exe (8);[no stack];0x7ff600001000", 1}}));
  EXPECT_EQ(profile.accounting.undefined_keys, 1u);
}

TEST_F(Join, AnEndedThreadsIdIsItsOwnersUntilItIsReused) {
  trace.thread_end({2'000'000}, 80, 8);
  trace.sample({2'000'010}, 80, kUser);
  trace.process_start({2'100'000}, 12, 4, "other.exe");
  trace.thread_start({2'100'001}, 80, 12);
  trace.sample({2'100'010}, 80, kUser);
  trace.sample({2'100'020}, 4444, kUser);
  EXPECT_EQ(folded(run()), (Lines{{"game.exe (8);[no stack];0x7ff600001000", 1},
                                  {"other.exe (12);[no stack];0x7ff600001000", 1},
                                  {"? (-1);[no stack];0x7ff600001000", 1}}));
}

TEST_F(Join, ACallersAddressMayLieBehindItsImage) {
  trace.image_rundown({1'500'000}, 8, 0x10000);
  const Result<pipeline::Trace> opened = open_trace(trace.bytes());
  trace.sample({2'000'000}, 80, 0x10010);
  trace.stack_walk({2'000'001}, 2'000'000, 8, 80, {0x10010, 0x10020});
  const Profile profile = run();
  ASSERT_EQ(profile.modules.size(), 1u);
  const std::uint64_t end = profile.modules[0].base + profile.modules[0].size;
  trace.sample({3'000'000}, 80, end);
  trace.stack_walk({3'000'001}, 3'000'000, 8, 80, {end, end});
  const Profile more = run();
  const ProfileNode &leaf = more.nodes[more.samples.back().node];
  EXPECT_EQ(more.frames[leaf.frame].module, kNoIndex);
  EXPECT_EQ(more.frames[more.nodes[leaf.parent].frame].module, 0u);
  EXPECT_EQ(more.frames[more.nodes[leaf.parent].frame].rva, profile.modules[0].size);
}

TEST_F(Join, IdleIsLeftOutUnlessAskedFor) {
  trace.process_rundown({1'000'001}, 0, 0, "Idle");
  trace.sample({2'000'000}, 0, kKernel);
  trace.sample({2'000'010}, 80, kUser);
  EXPECT_EQ(run().samples.size(), 1u);
  EXPECT_EQ(run().accounting.idle_left_out, 1u);
  pipeline::ProfileOptions options;
  options.idle = true;
  EXPECT_EQ(profile_of(trace, options).profile.samples.size(), 2u);
}

// --- Time off the processor.

class Waits : public Join {
protected:
  Profile run_kind(ProfileKind kind) {
    pipeline::ProfileOptions options;
    options.kind = kind;
    return profile_of(trace, options).profile;
  }
};

TEST_F(Waits, LastFromTheSwitchAwayToTheWakeUpAndAreReadyFromThereToTheSwitchBack) {
  trace.thread_rundown({1'000'003}, 84, 8);
  trace.context_switch({2'000'000}, 84, 80); // ticks of 100 ns
  trace.ready_thread({2'300'000}, 80);
  trace.context_switch({2'350'000}, 80, 84);
  trace.stack_walk({2'350'001}, 2'350'000, 8, 80, {kKernel});
  trace.stack_walk({2'350'002}, 2'350'000, 8, 80, {kUser});
  const std::string stack = "game.exe (8);0x7ff600001000;0xfffff80000001000_[k];readied by game.exe (8)_[w]";
  EXPECT_EQ(folded(run_kind(ProfileKind::wait)), (Lines{{stack, 30'000'000}}));
  EXPECT_EQ(folded(run_kind(ProfileKind::ready)), (Lines{{stack, 5'000'000}}));
  EXPECT_EQ(run_kind(ProfileKind::wait).accounting.not_timed, 1u);
}

// Each of less than a microsecond, which folded stacks are in: rounding each would make of them what it
// liked.
TEST_F(Waits, ShortOnesAddUpToTheirTime) {
  trace.thread_rundown({1'000'003}, 84, 8);
  constexpr std::int64_t kWaits = 500, kTicks = 6, kApart = 137; // of 100 ns: 600 ns, at all phases
  for (std::int64_t i = 0; i < kWaits; ++i) {
    const std::int64_t at = 2'000'000 + i * kApart;
    trace.context_switch({at}, 84, 80);
    trace.ready_thread({at + 50}, 80);
    trace.context_switch({at + 50 + kTicks}, 80, 84);
  }
  const Profile profile = run_kind(ProfileKind::ready);
  EXPECT_EQ(total_weight(profile), kWaits * kTicks * 100);
  std::string text;
  ASSERT_TRUE(write_profile(profile, ProfileFormat::folded, {}, [&](Bytes bytes) -> Result<void> {
    text.append(reinterpret_cast<const char *>(bytes.data()), bytes.size());
    return {};
  }));
  std::istringstream lines(text);
  std::int64_t micros = 0;
  for (std::string line; std::getline(lines, line);)
    micros += std::stoll(line.substr(line.rfind(' ')));
  EXPECT_EQ(micros, kWaits * kTicks / 10);
}

// Its id was that of another thread, whose last switch away is not the beginning of anything of this one.
TEST_F(Waits, DoNotBeginBeforeTheirThreadDid) {
  trace.process_rundown({1'000'001}, 9, 4, "other.exe");
  trace.thread_rundown({1'000'003}, 90, 9);
  trace.context_switch({2'000'000}, 90, 0);
  trace.thread_end({2'000'500}, 90, 9);
  trace.context_switch({2'001'000}, 0, 90);
  trace.thread_start({3'000'000}, 90, 8, 80, 8);
  trace.context_switch({3'500'000}, 90, 0);
  trace.context_switch({3'600'000}, 0, 90);
  trace.context_switch({3'601'000}, 90, 0);
  EXPECT_EQ(folded(run_kind(ProfileKind::wait)), (Lines{{"game.exe (8);[no stack]", 100'000}}));
  pipeline::ProfileOptions options;
  options.slices = true;
  for (const ProfileSlice &slice : profile_of(trace, options).profile.slices)
    EXPECT_TRUE(slice.state == SliceState::running || slice.start >= 260'000'000) << slice.start;
}

// From the first event in it to the last; where nothing was switched, samples tell who ran.
TEST_F(Waits, OfAStretchItIsShownWhatRanThroughItAndAtItsEnds) {
  trace.thread_rundown({1'000'003}, 84, 8);
  trace.context_switch({2'000'000, 0}, 80, 0);
  trace.context_switch({2'000'000, 1}, 84, 0);
  trace.sample({2'500'000, 0}, 80);
  trace.sample({2'510'000, 1}, 84);
  trace.sample({2'520'000, 2}, 80); // two of them: switches are missing
  trace.sample({2'530'000, 2}, 84);
  trace.sample({2'540'000, 3}, 0);
  trace.context_switch({2'550'000, 0}, 0, 80);
  trace.context_switch({2'560'000, 0}, 80, 0);
  trace.sample({2'600'000, 0}, 80);
  trace.context_switch({2'700'000, 0}, 0, 80);
  trace.context_switch({2'700'000, 1}, 0, 84);
  pipeline::ProfileOptions options;
  options.slices = true;
  options.from = Moment{true, 0.15, 0};
  options.to = Moment{true, 0.16, 0};
  const Profile profile = profile_of(trace, options).profile;
  std::vector<std::string> running;
  for (const ProfileSlice &slice : profile.slices)
    if (slice.state == SliceState::running)
      running.push_back(std::to_string(profile.threads[slice.thread].tid) + " on " +
                        std::to_string(slice.processor) + " " + std::to_string(slice.start) + " to " +
                        std::to_string(slice.end));
  std::ranges::sort(running);
  EXPECT_EQ(running,
            (std::vector<std::string>{"80 on 0 150000000 to 155000000", "80 on 0 156000000 to 160000000",
                                      "84 on 1 150000000 to 160000000"}));
}

TEST_F(Waits, WhoReadiedAThreadIsToldOnlyWhereTheSwitchesBeforeAndBehindAgree) {
  trace.process_rundown({1'000'001}, 9, 4, "other.exe");
  trace.thread_rundown({1'000'003}, 84, 8);
  for (std::uint32_t tid = 90; tid < 94; ++tid)
    trace.thread_rundown({1'000'004}, tid, 9);
  for (int i = 0; i < 600; ++i) // of a whole trace nearly all switches are there
    trace.context_switch({1'100'000 + 1'000 * i, 2}, i % 2 == 0 ? 93 : 0, i % 2 == 0 ? 0 : 93);
  const std::string stack = "game.exe (8);0x7ff600001000;0xfffff80000001000_[k]",
                    told = stack + ";readied by other.exe (9)_[w]";
  const auto wait = [&](std::int64_t begin, std::uint32_t ran, std::uint32_t ran_at_last) {
    trace.context_switch({begin, 1}, ran, 0);
    trace.context_switch({begin + 1'000}, 0, 80);
    trace.ready_thread({begin + 11'000, 1}, 80);
    trace.context_switch({begin + 12'000}, 80, 0);
    trace.stack_walk({begin + 12'001}, begin + 12'000, 8, 80, {kKernel});
    trace.stack_walk({begin + 12'002}, begin + 12'000, 8, 80, {kUser});
    if (ran_at_last != kUnknownId) trace.context_switch({begin + 13'000, 1}, 0, ran_at_last);
  };
  const auto of_game = [&] {
    Lines lines = folded(run_kind(ProfileKind::wait));
    std::erase_if(lines, [](const auto &line) { return !line.first.starts_with("game.exe"); });
    return lines;
  };
  wait(2'000'000, 90, 90);
  EXPECT_EQ(of_game(), (Lines{{told, 1'000'000}}));
  wait(3'000'000, 91, 84);         // which nothing had switched to
  wait(4'000'000, 92, kUnknownId); // nothing follows there
  EXPECT_EQ(of_game(), (Lines{{stack, 2'000'000}, {told, 1'000'000}}));
}

// Between two switches of the process that a trace was cut down to, any other may have run.
TEST_F(Waits, OfATraceThatWasCutDownToOneProcessNoOtherIsSaidToHaveReadiedIt) {
  trace.process_rundown({1'000'001}, 0, 0, "Idle");
  trace.process_rundown({1'000'001}, 9, 4, "other.exe");
  trace.thread_rundown({1'000'003}, 84, 8);
  trace.thread_rundown({1'000'004}, 90, 9);
  trace.context_switch({2'000'000, 1}, 0, 84);
  trace.context_switch({2'001'000}, 0, 80);
  trace.ready_thread({2'011'000, 1}, 80);
  trace.context_switch({2'012'000}, 80, 0);
  trace.context_switch({2'013'000, 1}, 84, 0);
  const std::string of_80 = "game.exe (8);[no stack]";
  const Lines cut{{of_80, 1'000'000 + 1'300'000}}; // and 84's
  EXPECT_EQ(folded(run_kind(ProfileKind::wait)), cut);
  trace.context_switch({2'020'000, 2}, 90, 0); // now it is a whole one
  trace.context_switch({2'021'000, 2}, 0, 90);
  EXPECT_EQ(folded(run_kind(ProfileKind::wait)),
            (Lines{{of_80, 1'300'000}, {of_80 + ";readied by Idle (0)_[w]", 1'000'000}}));
}

TEST(ProfileReport, ARecursiveFunctionCountsOnceASample) {
  Profile profile;
  for (const char *name : {"main", "work"}) {
    ProfileFrame frame;
    frame.function = name;
    frame.why = Unresolved::none;
    profile.frames.push_back(frame);
  }
  profile.nodes = {{kNoIndex, kNoIndex}, {0, 0}, {1, 1}, {2, 1}};
  profile.processes.resize(1);
  profile.threads = {{1, 0, "", 0, 0}};
  profile.samples.resize(3);
  profile.samples[0].node = 3;
  profile.samples[1].node = 3;
  profile.samples[2].node = 1;
  const std::vector<ProfileRow> rows = profile_rows(profile, ProfileBy::function);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].name, "work");
  EXPECT_EQ(rows[0].self, 2u);
  EXPECT_EQ(rows[0].total, 2u);
  EXPECT_EQ(rows[1].self, 1u);
  EXPECT_EQ(rows[1].total, 3u);
  EXPECT_EQ(profile_tree(profile, 0).size(), 3u);
  EXPECT_EQ(profile_tree(profile, 0.9).size(), 1u);
}

Profile counted(std::uint64_t slow, std::uint64_t fast) {
  Profile profile;
  for (const char *name : {"slow", "fast"}) {
    ProfileFrame frame;
    frame.function = name;
    frame.why = Unresolved::none;
    profile.frames.push_back(frame);
  }
  profile.nodes = {{kNoIndex, kNoIndex}, {0, 0}, {0, 1}};
  profile.processes.resize(1);
  profile.threads = {{1, 0, "", 0, 0}};
  profile.samples.resize(2);
  profile.samples[0].node = 1;
  profile.samples[0].weight = slow;
  profile.samples[1].node = 2;
  profile.samples[1].weight = fast;
  return profile;
}

TEST(ProfileDiff, TellsAChangeFromNoise) {
  const Profile before[] = {counted(1'000, 9'000)}, noise[] = {counted(1'020, 8'980)},
                after[] = {counted(2'000, 9'000)};
  const ProfileCondition slower = *parse_condition("slow > +10%"), total = *parse_condition("total > +5%");
  EXPECT_TRUE(matching_changes(profile_diff(before, noise), slower).empty());
  EXPECT_TRUE(matching_changes(profile_diff(before, noise), total).empty());
  EXPECT_EQ(matching_changes(profile_diff(before, after), slower).size(), 1u);
  EXPECT_TRUE(names_any(profile_diff(before, noise), slower)) << "whether it changed or not";
  EXPECT_TRUE(names_any(profile_diff(before, noise), total));
  EXPECT_FALSE(names_any(profile_diff(before, after), {"nosuch.exe!f", true, 0}));
  for (const char *endless : {"total > +nan%", "total > +inf%"})
    EXPECT_FALSE(parse_condition(endless)) << endless;
  EXPECT_EQ(matching_changes(profile_diff(before, after), total).size(), 1u);
  const Profile gone[] = {counted(0, 9'000)};
  EXPECT_EQ(profile_diff(before, gone).changes[0].verdict, ProfileVerdict::vanished);
  EXPECT_FALSE(parse_condition("slow > 10"));
}

TEST(ProfileDiff, OfSeveralTracesASideTheSpreadOfTheTracesDecides) {
  const Profile spread[] = {counted(500, 9'000), counted(1'000, 9'000), counted(2'000, 9'000)},
                shifted[] = {counted(600, 9'000), counted(1'200, 9'000), counted(2'400, 9'000)};
  const ProfileDiff diff = profile_diff(spread, shifted);
  for (const ProfileChange &change : diff.changes)
    EXPECT_EQ(change.verdict, ProfileVerdict::same) << change.name;
}

// --- Real and generated traces, against an independent judge.

TEST(RealProfile, IsWhatTheIndependentProgramFound) {
  const auto path = trace_path("net.4.5.2.x64");
  if (!path) GTEST_SKIP() << "net.4.5.2.x64 is not there";
  const nlohmann::json facts = truth("net.4.5.2.x64.profile");
  ASSERT_FALSE(facts.is_null());
  const Profile profile = profile_of_file(path->string()).profile;
  expect_sums(profile);
  const ProfileAccounting &a = profile.accounting;
  EXPECT_EQ(a.total.samples, facts["totals"]["samples"]);
  EXPECT_EQ(a.total.by_class[0], facts["totals"]["full"]);
  EXPECT_EQ(a.total.by_class[1], facts["totals"]["kernel complete"]);
  EXPECT_EQ(a.total.by_class[2], facts["totals"]["user missing"]);
  EXPECT_EQ(a.total.by_class[3], facts["totals"]["no stack"]);
  EXPECT_EQ(a.total.fragments, facts["fragments"]);
  EXPECT_EQ(a.lent_user_halves, facts["joined"]["lent"]);
  std::uint64_t unclaimed = 0;
  for (const auto &[kind, count] : facts["orphaned_fragments"].items())
    unclaimed += count.get<std::uint64_t>();
  EXPECT_EQ(a.total.other_event + a.total.orphaned, unclaimed);
  std::map<std::string, std::uint64_t> by_process;
  for (std::size_t i = 0; i < profile.processes.size(); ++i)
    by_process[process_text(profile.processes[i])] += a.by_process[i].samples;
  for (const auto &[name, row] : facts["by_process"].items())
    EXPECT_EQ(by_process[name], row["samples"]) << name;
  EXPECT_EQ(profile.interval_ns, 1'000'000u);
}

TEST(RealProfile, OfATraceWithoutSamplesIsEmpty) {
  const auto path = trace_path("AMSITrace");
  if (!path) GTEST_SKIP() << "AMSITrace is not there";
  const pipeline::ProfileResult result = profile_of_file(path->string());
  EXPECT_EQ(result.profile.accounting.total.samples, 0u);
  EXPECT_FALSE(result.events.empty());
}

std::string generate_file(const TempDir &directory, const std::string &name, gen::Options options) {
  gen::MemorySink sink;
  const Result<gen::Generated> made = gen::generate(options, sink);
  EXPECT_TRUE(made);
  const std::string path = directory.file(name);
  write_file(path, sink.bytes);
  return path;
}

gen::Options small(std::string_view profile) {
  gen::Options options;
  options.profile = gen::find_profile(profile);
  options.size = 1u << 20;
  options.cpus = 4;
  options.processes = 12;
  return options;
}

struct Variant {
  std::string name;
  gen::Options options;
};
std::vector<Variant> variants() {
  std::vector<Variant> all{{"plain", small("medium")}};
  all.push_back({"cached", small("medium")});
  all.back().options.stack_cache = true;
  all.push_back({"narrow", small("real")});
  all.back().options.pointer_size = 4;
  all.push_back({"compressed", small("smallf")});
  all.back().options.codec = Codec::lznt1;
  all.push_back({"reused", small("medium")});
  all.back().options.size = 3u << 20;
  all.back().options.pid_reuse = true;
  all.push_back({"everything", small("real")});
  all.back().options.stack_cache = true;
  all.back().options.pointer_size = 4;
  all.back().options.codec = Codec::xpress;
  return all;
}

TEST(GeneratedProfile, AgreesWithTheIndependentProgram) {
  const auto shared = shared_dir();
  if (!shared || !std::filesystem::exists(*shared / "tools/etl_profile.py") ||
      std::system("python3 -c pass >/dev/null 2>&1") != 0)
    GTEST_SKIP() << "etl_profile.py or Python is not there";
  const TempDir directory;
  for (const Variant &variant : variants()) {
    const std::string path = generate_file(directory, variant.name + ".etl", variant.options);
    const Lines lines = folded(profile_of_file(path).profile);
    ASSERT_FALSE(lines.empty()) << variant.name;
    std::string text;
    for (const auto &[line, count] : lines)
      text += line + " " + std::to_string(count) + "\n";
    const std::string mine = directory.file(variant.name + ".folded");
    write_file(mine, {reinterpret_cast<const std::uint8_t *>(text.data()), text.size()});
    const std::string command = "python3 '" + (*shared / "tools/etl_profile.py").string() + "' --compare '" +
                                mine + "' '" + path + "' >" + directory.file("out") + " 2>&1";
    EXPECT_EQ(std::system(command.c_str()), 0)
        << variant.name << ": "
        << std::string_view(reinterpret_cast<const char *>(read_file(directory.file("out")).data()), 200);
  }
}

TEST(GeneratedProfile, IsTheSameForAnyNumberOfThreads) {
  const TempDir directory;
  const std::string path = generate_file(directory, "t.etl", small("medium"));
  const Profile one = profile_of_file(path, 1).profile, four = profile_of_file(path, 4).profile;
  ASSERT_EQ(one.samples.size(), four.samples.size());
  for (std::size_t i = 0; i < one.samples.size(); ++i) {
    ASSERT_EQ(one.samples[i].time, four.samples[i].time);
    ASSERT_EQ(one.samples[i].node, four.samples[i].node);
    ASSERT_EQ(one.samples[i].thread, four.samples[i].thread);
  }
  EXPECT_EQ(folded(one), folded(four));
}

// What a trace went through on its way to the reader must not show.
TEST(GeneratedProfile, OfAProcessIsTheSameWhateverWasDoneToTheTrace) {
  const TempDir directory;
  for (const Variant &variant : variants()) {
    if (variant.name != "plain" && variant.name != "cached") continue;
    const std::string path = generate_file(directory, variant.name + ".etl", variant.options);
    Profile whole = profile_of_file(path).profile;
    const std::uint32_t busiest = busiest_process(whole);
    ASSERT_NE(busiest, kNoIndex);
    const std::string pid = std::to_string(whole.processes[busiest].pid);
    ASSERT_TRUE(select(whole, {{pid}, {}, {}, {}}));
    const Lines expected = folded(whole);
    ASSERT_FALSE(expected.empty());
    const std::vector<std::vector<std::string>> ways{
        {"relog"},
        {"relog", "-p", pid},
        {"relog", "-p", pid, "--codec", "xpress"},
        {"relog", "-p", pid, "--stacks", "cache"},
        {"relog", "--stacks", "cache"},
        {"relog", "--stacks", "cache=native-only"},
        {"relog", "-p", pid, "--stacks", "expand"},
        {"pack"},
    };
    int number = 0;
    for (std::vector<std::string> way : ways) {
      std::string what = variant.name;
      for (const std::string &word : way)
        what += " " + word;
      const std::string out =
          directory.file(variant.name + std::to_string(++number) + (way[0] == "pack" ? ".etlz" : ".etl"));
      way.insert(way.end(), {path, "-o", out});
      const ToolRun run = run_tool(way);
      ASSERT_EQ(run.status, 0) << what << ": " << run.err;
      Profile again = profile_of_file(out).profile;
      ASSERT_TRUE(select(again, {{pid}, {}, {}, {}})) << what;
      EXPECT_TRUE(folded(again) == expected) << what;
    }
  }
}

// Of a damaged trace, or one that is made up. What is wrong about a difference that does not exist,
// sanitizers see.
TEST(Profile, AnyTwoTimesHaveADifference) {
  constexpr std::int64_t kLast = std::numeric_limits<std::int64_t>::max(),
                         kFirst = std::numeric_limits<std::int64_t>::min();
  SyntheticTrace trace;
  trace.process_rundown({1'000'001}, 8, 4, "game.exe");
  for (const std::uint32_t tid : {80u, 81u})
    trace.thread_rundown({1'000'002}, tid, 8);
  for (const std::int64_t time :
       {std::int64_t{2'000'000}, kFirst, kFirst + 1, kLast - 1, kLast, std::int64_t{0}}) {
    trace.sample({time}, 80);
    trace.context_switch({time}, 80, 81);
    trace.context_switch({time}, 81, 80);
    trace.stack_walk({time}, time, 8, 80, {kUser});
    trace.dpc({time});
    trace.isr({time});
  }
  for (const ProfileKind kind : {ProfileKind::cpu, ProfileKind::wait, ProfileKind::ready}) {
    pipeline::ProfileOptions options;
    options.kind = kind;
    options.slices = true;
    const Profile profile = profile_of(trace, options).profile;
    ASSERT_FALSE(profile.slices.empty());
    if (kind != ProfileKind::ready) { // nobody is readied
      EXPECT_FALSE(profile.samples.empty());
    }
    for (const ProfileSample &sample : profile.samples)
      EXPECT_TRUE(sample.time >= -kProfileTimeLimit && sample.time <= kProfileTimeLimit) << sample.time;
    for (const ProfileSlice &slice : profile.slices)
      EXPECT_TRUE(slice.start >= -kProfileTimeLimit && slice.end <= kProfileTimeLimit) << slice.start;
    for (std::size_t i = 0; i < static_cast<std::size_t>(ProfileFormat::count_); ++i)
      EXPECT_TRUE(
          write_profile(profile, static_cast<ProfileFormat>(i), {}, [](Bytes) { return Result<void>(); }));
  }
}

} // namespace
} // namespace etwrelog
