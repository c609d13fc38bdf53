// Profiles of events instead of samples: each counts once, at the stack that was written for it.
#include "etwrelog/export.hpp"
#include "etwrelog/trace.hpp"
#include "tests/pipeline/profile/profile_runs.hpp"
#include "tests/support/generated.hpp"
#include "tests/support/trace_files.hpp"

#include <set>

namespace etwrelog {
namespace {

constexpr std::uint32_t kEventThread = 80, kEventProcess = 8;
constexpr Guid kEventMaker = make_guid(0x11112222, 0x3333, 0x4444, 0x5555, 0x666677778888);

NamedKinds kinds_called_so(const std::string &name, const SchemaCatalog &catalog = SchemaCatalog::builtin()) {
  const Result<NamedKinds> found = NamedKinds::find({&name, 1}, catalog);
  EXPECT_TRUE(found) << name;
  return found ? *found : NamedKinds();
}

class ProfileOfEvents : public Join {
protected:
  std::size_t allocation(At at, std::uint32_t thread = kEventThread) {
    return trace.manifest_event(at, {.provider = format::kClrGuid, .id = 10, .opcode = 11}, thread,
                                kEventProcess);
  }
  void tick(At at, std::uint64_t bytes, std::u16string_view type = u"") {
    // AllocationAmount, AllocationKind, ClrInstanceID, AllocationAmount64, TypeID, TypeName
    std::vector<std::uint8_t> payload(26 + 2 * type.size() + (type.empty() ? 0 : 2));
    store(payload.data() + 10, bytes);
    for (std::size_t i = 0; i < type.size(); ++i)
      store(payload.data() + 26 + 2 * i, static_cast<std::uint16_t>(type[i]));
    trace.manifest_event(at, {.provider = format::kClrGuid, .id = 10, .version = 2, .opcode = 11},
                         kEventThread, kEventProcess, payload);
  }
  Profile of(const std::string &name, std::optional<double> from = {}, std::optional<double> to = {}) {
    ProfileOptions options;
    options.kind = ProfileKind::events;
    options.events = kinds_called_so(name);
    if (from) options.from = Moment{true, *from, 0};
    if (to) options.to = Moment{true, *to, 0};
    const Profile profile = profile_of(trace, options).profile;
    expect_sums(profile);
    EXPECT_TRUE(profile.counts());
    EXPECT_FALSE(profile.counts_samples());
    EXPECT_EQ(profile.weight_ns(), 0u) << "an event stands for no time";
    return profile;
  }
  static std::string line(const std::string &frames) { return "game.exe (8)" + frames; }
};

TEST_F(ProfileOfEvents, StacksOfTheKernelAreThoseOfTheirEvents) {
  trace.disk_init({2'000'000}, kEventThread, kEventThread, kEventProcess);
  trace.stack_walk({2'000'010}, 2'000'000, kEventProcess, kEventThread, {kUser, kUser + 1});
  trace.sample({3'000'000}, kEventThread, kUser);
  trace.stack_walk({3'000'010}, 3'000'000, kEventProcess, kEventThread, {kUser + 5});
  const Profile profile = of("DiskIo/WriteInit");
  EXPECT_EQ(folded(profile), (Lines{{line(";0x7ff600001001;0x7ff600001000"), 1}}));
  EXPECT_EQ(profile.accounting.total.claimed, 1u);
  EXPECT_EQ(profile.accounting.total.other_event, 1u) << "that of the sample";
}

// Who takes memory is in no header, and the payload names the process that gets it.
TEST_F(ProfileOfEvents, ThatTellNoThreadAreOfTheThreadThatTheirStackIsOf) {
  for (const std::int64_t time : {2'000'000, 3'000'000})
    trace.emit({time}, [time](write::EventBuilder &e) {
      e.perfinfo(0x0262, 2, 8, time).put(std::uint64_t{0x10000}).put(std::uint64_t{0x1000});
      e.put(std::uint32_t{9}).put(std::uint32_t{0x3000});
    });
  trace.stack_walk({3'000'010}, 2'000'000, kEventProcess, kEventThread, {kUser, kUser + 1});
  const Lines expected{{line(";0x7ff600001001;0x7ff600001000"), 1}, {"? (9);[no stack]", 1}};
  EXPECT_EQ(folded(of("VirtualAlloc")), expected);
  trace.stack_walk({3'000'020}, 2'000'000, 12, 120, {kKernel}); // of something else at that time
  EXPECT_EQ(folded(of("VirtualAlloc")), expected);
}

TEST_F(ProfileOfEvents, ThatTellNoThreadAndHaveNoStackAreOfWhoRan) {
  trace.process_rundown({1'000'010}, 12, 4, "other.exe");
  trace.thread_rundown({1'000'011}, 120, 12);
  trace.page_fault({2'000'000}); // before the first switch, which tells who it is away from
  trace.context_switch({2'000'100}, kEventThread, 120);
  trace.page_fault({2'000'200});
  trace.udp_receive({2'000'210}, 9); // what comes from the network says whose it is
  trace.udp_receive({2'000'220}, kEventProcess);
  trace.dpc({2'000'230});
  trace.context_switch({2'000'300}, 0, kEventThread);
  trace.udp_receive({2'000'310}, kEventProcess);
  trace.page_fault({2'000'320}); // the next switch is away from another thread: some are missing
  trace.context_switch({2'000'400}, kEventThread, 120);
  trace.page_fault({2'000'500, 1}); // on a processor of which nothing is known

  const Lines faults{{"other.exe (12);[no stack]", 1}, {line(";[no stack]"), 1}, {"? (-1);[no stack]", 2}};
  EXPECT_EQ(folded(of("DemandZeroFault")), faults);
  const Profile received = of("UdpIp/Recv*");
  EXPECT_EQ(folded(received), (Lines{{"? (9);[no stack]", 1}, {line(";[no stack]"), 2}}));
  std::multiset<std::pair<std::uint32_t, std::uint32_t>> threads;
  for (const ProfileSample &sample : received.samples) {
    const ProfileThread &thread = received.threads[sample.thread];
    threads.emplace(received.processes[thread.process].pid, thread.tid);
  }
  EXPECT_EQ(threads, (std::multiset<std::pair<std::uint32_t, std::uint32_t>>{
                         {9, kUnknownId}, {kEventProcess, kEventThread}, {kEventProcess, kUnknownId}}));
  EXPECT_EQ(folded(of("PerfInfo/DPC")), (Lines{{"? (-1);[no stack]", 1}})) << "interrupts are of nobody";
}

// Each of the event before it on its thread.
TEST_F(ProfileOfEvents, StacksOfDotNetAreThoseOfTheEventBefore) {
  allocation({2'000'000});
  allocation({2'000'001}, 81); // in between, of another thread
  trace.clr_stack({2'000'002}, 81, kEventProcess, {kUser + 9});
  trace.clr_stack({2'000'003}, kEventThread, kEventProcess, {kUser, kUser + 1});
  // Of another kind.
  trace.manifest_event({3'000'000}, {.provider = format::kClrGuid, .id = 1, .opcode = 1}, kEventThread,
                       kEventProcess);
  trace.clr_stack({3'000'001}, kEventThread, kEventProcess, {kUser + 2});
  allocation({4'000'000}); // whose stack is missing
  allocation({4'000'001});
  trace.clr_stack({4'000'002}, kEventThread, kEventProcess, {kUser, kUser + 1});
  const Profile profile = of("GC/AllocationTick");
  EXPECT_EQ(folded(profile), (Lines{{line(";0x7ff600001001;0x7ff600001000"), 2},
                                    {line(";0x7ff600001009"), 1},
                                    {line(";[no stack]"), 1}}));
  EXPECT_EQ(profile.accounting.total.claimed, 3u);
  EXPECT_EQ(profile.accounting.total.other_event, 1u);
}

TEST_F(ProfileOfEvents, AStackOfDotNetMayStandInAnotherBuffer) {
  allocation({2'000'000, 0});
  trace.end_buffer(0);
  trace.clr_stack({2'000'001, 0}, kEventThread, kEventProcess, {kUser});
  // The thread has run here before, and comes back.
  allocation({2'500'000, 1});
  trace.clr_stack({2'500'001, 1}, kEventThread, kEventProcess, {kUser + 1});
  allocation({3'000'000, 0});
  trace.clr_stack({3'000'001, 1}, kEventThread, kEventProcess, {kUser + 2});
  EXPECT_EQ(
      folded(of("GC/AllocationTick")),
      (Lines{{line(";0x7ff600001000"), 1}, {line(";0x7ff600001001"), 1}, {line(";0x7ff600001002"), 1}}));
}

TEST_F(ProfileOfEvents, StacksOfDotNetFollowAThreadThatComesAndGoes) {
  allocation({2'000'000, 0});
  trace.clr_stack({2'000'001, 1}, kEventThread, kEventProcess, {kUser});
  allocation({2'000'002, 1});
  trace.clr_stack({2'000'003, 0}, kEventThread, kEventProcess, {kUser + 1});
  allocation({2'000'004, 0});
  trace.clr_stack({2'000'005, 0}, kEventThread, kEventProcess, {kUser + 2});
  const Profile profile = of("GC/AllocationTick");
  ASSERT_EQ(profile.samples.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_EQ(line_of(profile, profile.samples[i]), line(";0x7ff60000100" + std::to_string(i)));
}

// In a trace that was cut down, stacks of events that are not there are left.
TEST_F(ProfileOfEvents, AStackOfAnEventThatIsMissingIsNobodys) {
  trace.clr_stack({1'500'000}, kEventThread, kEventProcess, {kUser + 5});
  allocation({2'000'000, 0});
  trace.clr_stack({2'000'001, 1}, kEventThread, kEventProcess, {kUser});
  trace.clr_stack({2'500'000, 0}, kEventThread, kEventProcess, {kUser + 6});
  trace.clr_stack({2'500'001, 1}, kEventThread, kEventProcess, {kUser + 7});
  const Profile profile = of("GC/AllocationTick");
  EXPECT_EQ(folded(profile), (Lines{{line(";0x7ff600001000"), 1}}));
  EXPECT_EQ(profile.accounting.total.orphaned, 3u);
}

TEST_F(ProfileOfEvents, TheTimeIsThatOfTheEvent) {
  allocation({1'999'999});
  trace.clr_stack({2'000'000}, kEventThread, kEventProcess, {kUser});
  allocation({11'000'000}); // at 1 s
  trace.clr_stack({11'000'001}, kEventThread, kEventProcess, {kUser + 1});
  const Profile profile = of("GC/AllocationTick", 0.1, 1.0);
  EXPECT_EQ(folded(profile), (Lines{{line(";0x7ff600001001"), 1}}));
  EXPECT_EQ(profile.accounting.total.fragments, 1u);
}

TEST_F(ProfileOfEvents, StacksInEventsAreTheirOwn) {
  using format::ItemType;
  trace.manifest_event({2'000'000}, {.provider = format::kClrGuid, .id = 10, .opcode = 11}, kEventThread,
                       kEventProcess, {}, {{ItemType::stack_trace64, stack_item({kUser, kUser + 1})}});
  trace.manifest_event({2'000'000}, {.provider = format::kClrGuid, .id = 10, .opcode = 11}, 81, kEventProcess,
                       {}, {{ItemType::stack_trace64, stack_item({kUser + 3})}});
  trace.manifest_event({2'000'002}, {.provider = format::kClrGuid, .id = 10, .opcode = 11}, kEventThread,
                       kEventProcess, {}, {{ItemType::stack_key64, stack_key_item(0x1234)}});
  trace.stack_definition({3'000'000}, 0x1234, {kUser + 4});
  EXPECT_EQ(folded(of("GC/AllocationTick")), (Lines{{line(";0x7ff600001001;0x7ff600001000"), 1},
                                                    {line(";0x7ff600001003"), 1},
                                                    {line(";0x7ff600001004"), 1}}));
}

// The user's part of a stack is written when the thread leaves the kernel, once for all that awaits it.
TEST_F(ProfileOfEvents, PartsOfStacksInEventsMayBeWrittenLater) {
  using format::ItemType;
  const auto event = [&](At at, std::uint16_t id, std::uint32_t thread, std::uint64_t match,
                         const Frames &frames) {
    trace.manifest_event(at, {.provider = format::kClrGuid, .id = id, .opcode = 11}, thread, kEventProcess,
                         {}, {{ItemType::stack_trace64, stack_item(frames, match)}});
  };
  event({2'000'000}, 10, kEventThread, 7, {kKernel});
  event({2'000'001}, 10, 81, 7, {kKernel + 1}); // the same number on another thread
  event({2'000'002}, 10, kEventThread, 7, {kKernel});
  event({2'000'003}, 1, kEventThread, 8, {kKernel});
  trace.later_stack({2'000'010, 1}, kEventThread, kEventProcess, 7, {kUser});
  trace.later_stack({2'000'011}, kEventThread, kEventProcess, 8, {kUser + 8});
  trace.later_stack({2'000'012}, 81, kEventProcess, 7, {kUser + 1});
  event({3'000'000}, 10, kEventThread, 7, {kKernel + 2}); // whose part is missing: those before are none
  const Profile profile = of("GC/AllocationTick");
  EXPECT_EQ(folded(profile), (Lines{{line(";0x7ff600001000;0xfffff80000001000_[k]"), 2},
                                    {line(";0x7ff600001001;0xfffff80000001001_[k]"), 1},
                                    {line(";[user stack missing];0xfffff80000001002_[k]"), 1}}));
  EXPECT_EQ(profile.accounting.total.other_event, 1u);
  EXPECT_EQ(profile.accounting.total.orphaned, 0u);
}

// A session of one program has no events of processes and threads.
TEST(ProfileOfEventsAlone, TheirHeadersTellWhoseTheyAre) {
  SyntheticTrace trace;
  trace.trace_logging({2'000'000}, kEventMaker, "Maker", "Made", 500, 400);
  trace.trace_logging({2'000'001}, kEventMaker, "Maker", "Made", 600, 400);
  trace.trace_logging({2'000'002}, kEventMaker, "Maker", "Made", 500, 400);
  trace.trace_logging({4'000'000}, kEventMaker, "Maker", "Made", 500, 400);
  trace.trace_logging({3'000'000, 1}, kEventMaker, "Maker", "Made", 500, 800); // the id again, and given back
  const Result<etwrelog::Trace> opened = etwrelog::Trace::open(Input::memory("made.etl", trace.bytes()));
  ASSERT_TRUE(opened);
  const Result<SchemaCatalog> catalog = collect_schemas(*opened);
  ASSERT_TRUE(catalog);
  ProfileOptions options;
  options.kind = ProfileKind::events;
  options.events = kinds_called_so("Maker/Made", *catalog);
  for (const unsigned threads : {1u, 3u}) {
    const Result<ProfileResult> made = make_profile(*opened, options, {.threads = threads});
    ASSERT_TRUE(made);
    EXPECT_EQ(folded(made->profile), (Lines{{"? (400);[no stack]", 4}, {"? (800);[no stack]", 1}}));
  }
}

// Instead of 1 each weighs what it says.
TEST_F(ProfileOfEvents, WeighWhatAFieldOfTheirsSays) {
  tick({2'000'000}, 1000);
  trace.clr_stack({2'000'001}, kEventThread, kEventProcess, {kUser});
  tick({2'000'002, 1}, 24);
  trace.clr_stack({2'000'003}, kEventThread, kEventProcess, {kUser});
  tick({2'000'004}, 5);
  trace.clr_stack({2'000'005}, kEventThread, kEventProcess, {kUser + 1});
  tick({2'000'006}, ~std::uint64_t{0}); // which is no amount
  trace.clr_stack({2'000'007}, kEventThread, kEventProcess, {kUser + 1});
  ProfileOptions options;
  options.kind = ProfileKind::events;
  options.events = kinds_called_so("GC/AllocationTick");
  options.sum = "allocationamount64";
  const ProfileResult made = profile_of(trace, options);
  const Profile &profile = made.profile;
  EXPECT_EQ(folded(profile), (Lines{{line(";0x7ff600001000"), 1024}, {line(";0x7ff600001001"), 5}}));
  EXPECT_EQ(made.weightless, 1u);
  EXPECT_EQ(profile.accounting.total.samples, 4u);
  EXPECT_EQ(profile.summed, "AllocationAmount64");
  EXPECT_EQ(profile_unit(profile), "bytes");
  for (const ProfileFormat format :
       {ProfileFormat::speedscope, ProfileFormat::firefox, ProfileFormat::pprof, ProfileFormat::svg}) {
    const std::vector<std::uint8_t> file = file_of(profile, format);
    if (format == ProfileFormat::svg) {
      const std::string text(file.begin(), file.end());
      EXPECT_NE(text.find("AllocationAmount64 of GC/AllocationTick: "), std::string::npos);
      EXPECT_NE(text.find("1,029 bytes"), std::string::npos);
      continue;
    }
    const Result<ReadProfile> read = read_profile(file);
    ASSERT_TRUE(read) << read.error().message();
    EXPECT_EQ(read->profile.kind, ProfileKind::events) << profile_format_name(format);
    EXPECT_EQ(read->profile.summed, "AllocationAmount64") << profile_format_name(format);
    EXPECT_EQ(total_weight(read->profile), 1029u) << profile_format_name(format);
  }
  const Result<etwrelog::Trace> opened = etwrelog::Trace::open(Input::memory("made.etl", trace.bytes()));
  ASSERT_TRUE(opened);
  for (const auto &[field, why] :
       {std::pair("TypeName", "a text"), {"AllocationAmount32", "none"}, {"", "of samples"}}) {
    options.sum = field;
    if (*field == 0) options.sum = "AllocationAmount", options.events = {};
    const Result<ProfileResult> none = make_profile(*opened, options);
    ASSERT_FALSE(none) << why;
    EXPECT_EQ(none.error().kind, ErrorKind::no_match);
    EXPECT_EQ(none.error().option, Option::sum);
    if (*field == 0) continue;
    EXPECT_NE(none.error().what.find("AllocationAmount64"), std::string::npos) << none.error().what;
  }
}

// As PerfView shows what is allocated.
TEST_F(ProfileOfEvents, StacksMayEndInWhatAFieldSays) {
  tick({2'000'000}, 10, u"System.String");
  trace.clr_stack({2'000'001}, kEventThread, kEventProcess, {kUser});
  tick({2'000'002, 1}, 20, u"A;B");
  trace.clr_stack({2'000'003}, kEventThread, kEventProcess, {kUser});
  tick({2'000'004}, 40, u"System.String");
  tick({2'000'006}, 80); // cut off in front of it
  ProfileOptions options;
  options.kind = ProfileKind::events;
  options.events = kinds_called_so("GC/AllocationTick");
  options.sum = "AllocationAmount64";
  options.leaf = "typename";
  for (const unsigned threads : {1u, 3u}) {
    const Result<etwrelog::Trace> opened = etwrelog::Trace::open(Input::memory("made.etl", trace.bytes()));
    ASSERT_TRUE(opened);
    const Result<ProfileResult> made = make_profile(*opened, options, {.threads = threads});
    ASSERT_TRUE(made) << made.error().message();
    EXPECT_EQ(folded(made->profile), (Lines{{line(";0x7ff600001000;TypeName: System.String"), 10},
                                            {line(";0x7ff600001000;TypeName: A;B"), 20},
                                            {line(";[no stack];TypeName: System.String"), 40},
                                            {line(";[no stack]"), 80}}));
    EXPECT_EQ(made->weightless, 0u);
  }
  options.leaf = "NoSuch";
  const Result<etwrelog::Trace> opened = etwrelog::Trace::open(Input::memory("made.etl", trace.bytes()));
  const Result<ProfileResult> none = make_profile(*opened, options);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().option, Option::leaf);
  EXPECT_NE(none.error().what.find("TypeName"), std::string::npos) << none.error().what;
}

// As a file and back, in the formats that can be read again.
TEST_F(ProfileOfEvents, AreEventsInFiles) {
  allocation({2'000'000});
  trace.clr_stack({2'000'003}, kEventThread, kEventProcess, {kUser, kUser + 1});
  allocation({2'500'000});
  const Profile profile = of("GC/AllocationTick");
  for (const ProfileFormat format : {ProfileFormat::speedscope, ProfileFormat::firefox, ProfileFormat::pprof,
                                     ProfileFormat::svg, ProfileFormat::html}) {
    const std::vector<std::uint8_t> file = file_of(profile, format);
    if (format == ProfileFormat::svg || format == ProfileFormat::html) {
      const std::string text(file.begin(), file.end());
      EXPECT_NE(text.find("GC/AllocationTick: "), std::string::npos) << "its title";
      EXPECT_NE(text.find("2 events"), std::string::npos);
      EXPECT_EQ(text.find("2 samples"), std::string::npos);
      continue;
    }
    const Result<ReadProfile> read = read_profile(file);
    ASSERT_TRUE(read) << read.error().message();
    EXPECT_EQ(read->profile.kind, ProfileKind::events) << profile_format_name(format);
    EXPECT_EQ(total_weight(read->profile), 2u);
    EXPECT_EQ(read->profile.weight_ns(), 0u);
  }
}

std::optional<etwrelog::Trace> trace_of_allocations() {
  const auto path = trace_path("net.4.5.2.x64");
  if (!path) return std::nullopt;
  return opened_trace(Input(path->string()));
}

// A sample is an event, too: what two ways find is the same, but for those without a stack, which have the
// sample's address.
void expect_the_samples(const etwrelog::Trace &trace) {
  ProfileOptions options;
  options.idle = true;
  const Result<ProfileResult> samples = make_profile(trace, options);
  options.kind = ProfileKind::events;
  options.events = kinds_called_so("PerfInfo/Sample");
  const Result<ProfileResult> events = make_profile(trace, options);
  ASSERT_TRUE(samples && events);
  const auto lines = [](const Profile &profile) {
    std::multiset<std::string> all;
    for (const ProfileSample &sample : profile.samples)
      all.insert(std::to_string(sample.time) + " " + std::to_string(profile.threads[sample.thread].tid) +
                 " " +
                 (sample.sample_class == SampleClass::no_stack ? process_text(profile.process_of(sample))
                                                               : line_of(profile, sample)));
    return all;
  };
  EXPECT_GT(samples->profile.samples.size(), 1000u);
  EXPECT_EQ(lines(events->profile), lines(samples->profile));
  EXPECT_EQ(events->profile.accounting.total.claimed, samples->profile.accounting.total.claimed);
}

TEST(ProfileOfEventsAlone, OfSamplesIsThatOfTheProcessor) {
  gen::Options options;
  options.profile = gen::find_profile("medium");
  options.size = 1 << 20;
  const Result<etwrelog::Trace> trace = etwrelog::Trace::open(Input::memory("made.etl", generated(options)));
  ASSERT_TRUE(trace);
  expect_the_samples(*trace);
}

TEST(ProfileOfEventsAlone, OfSamplesIsThatOfTheProcessorInARealTrace) {
  const std::optional<etwrelog::Trace> trace = trace_of_allocations();
  if (!trace) GTEST_SKIP() << "the real traces are not here";
  expect_the_samples(*trace);
}

// As an independent walk over the same events says: of 14,983 stacks of .NET 10,382 follow an allocation on
// its thread, one of them on another processor.
TEST(ProfileOfEventsAlone, EveryAllocationOfARealTraceHasItsStack) {
  const std::optional<etwrelog::Trace> trace = trace_of_allocations();
  if (!trace) GTEST_SKIP() << "the real traces are not here";
  ProfileOptions options;
  options.kind = ProfileKind::events;
  options.events = kinds_called_so("GC/AllocationTick");
  const Result<ProfileResult> made = make_profile(*trace, options);
  ASSERT_TRUE(made);
  const ProfileCounts &counts = made->profile.accounting.total;
  EXPECT_EQ(counts.samples, 10'382u);
  EXPECT_EQ(counts.by_class[static_cast<std::size_t>(SampleClass::full)], 10'382u);
  EXPECT_EQ(counts.orphaned, 0u);
}

} // namespace
} // namespace etwrelog
