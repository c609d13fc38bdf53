// Several traces as one, given as files or in a .zip or .diagsession: every reading command takes them, and
// what is counted of all is the sum of what is counted of each.
#include "etwrelog/etwrelog.hpp"
#include "etwrelog/profile.hpp"
#include "tests/support/pace.hpp"
#include "tests/support/pipeline_runs.hpp"
#include "tests/support/run_tool.hpp"
#include "tests/support/zip_files.hpp"

#include <filesystem>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace etwrelog::testing {
namespace {

using nlohmann::json;
using Buffer = std::vector<std::uint8_t>;

// What a kernel session says: processes, samples, stacks by key.
SyntheticTrace kernel_trace() {
  SyntheticTrace t({.buffer_size = 0x4000, .events_lost = 3});
  for (std::uint32_t pid : {100u, 200u}) {
    t.process_rundown({1'000'100 + pid}, pid, 4, pid == 100 ? "one.exe" : "two.exe");
    t.thread_rundown({1'000'101 + pid}, pid + 4, pid);
    t.image_rundown({1'000'102 + pid}, pid, 0x7FF6'0000'0000);
  }
  for (int i = 0; i < 600; ++i) {
    const std::uint32_t pid = i % 3 == 0 ? 100 : 200;
    const auto cpu = static_cast<std::uint16_t>(i % 3);
    const std::int64_t now = 1'100'000 + 100 * i;
    t.sample({now, cpu}, pid + 4, 0x7FF6'0000'1000 + static_cast<std::uint64_t>(i % 40));
    t.stack_walk({now + 1, cpu}, now, pid, pid + 4, {0x7FF6'0000'1000, 0x7FF6'0000'2000 + i % 10ull});
  }
  return t;
}

// What the sessions beside it say; `shift` makes them differ.
SyntheticTrace user_trace(std::int64_t shift = 0) {
  SyntheticTrace t({.buffer_size = 0x8000, .first_stamp = 1'050'000 + shift, .events_lost = 4});
  for (int i = 0; i < 400; ++i) {
    const std::uint32_t pid = i % 2 == 0 ? 100 : 200;
    const std::int64_t now = 1'100'007 + shift + 150 * i;
    t.trace_logging({now, static_cast<std::uint16_t>(i % 4)}, Guid{7, 9}, "Prov", i % 2 == 0 ? "Even" : "Odd",
                    pid + 4, pid);
    if (i % 50 == 0)
      t.stack_walk({now + 1}, now, pid, pid + 4, {0x7FF6'0000'1000, 0x7FF6'0000'2000 + i % 20ull});
  }
  return t;
}

class Several : public ::testing::Test {
protected:
  Several() {
    write_file(kernel, kernel_trace().bytes());
    write_file(user, user_trace().bytes());
    write_file(rundown, user_trace(33).bytes());
    write_file(zip, zip_of({{"PerfViewData.etl", read_file(kernel)},
                            {"PerfViewData.etl.NGENPDB/a.pdb", {1, 2, 3}},
                            {"PerfViewData.user.etl", read_file(user)},
                            {"PerfViewData.clrRundown.etl", read_file(rundown)},
                            {"LogFile.txt", {'h', 'i'}}}));
    const std::string metadata =
        "<?xml version=\"1.0\"?><Package><Content><Resource Type=\"DiagnosticsHub.Resource.EtlFile\" "
        "Name=\"sc.user_aux.etl\" ResourcePackageUriPrefix=\"B70\"/></Content></Package>";
    write_file(diagsession, zip_of({{"[Content_Types].xml", {'<', '>'}},
                                    {"metadata.xml", {metadata.begin(), metadata.end()}},
                                    {"B70/sc.user_aux.etl", read_file(kernel)},
                                    {"C11/capture", read_file(user)},
                                    {"D22/rundown.etl", read_file(rundown)}}));
  }

  static etwrelog::Trace opened(const std::vector<std::string> &paths) {
    Result<etwrelog::Trace> trace = etwrelog::Trace::open(std::vector<Input>(paths.begin(), paths.end()));
    EXPECT_TRUE(trace) << trace.error().message();
    return *std::move(trace);
  }
  static Statistics counted(const std::vector<std::string> &paths, const RunOptions &run = {}) {
    Result<Statistics> statistics = collect_statistics(opened(paths), run);
    EXPECT_TRUE(statistics) << statistics.error().message();
    return *std::move(statistics);
  }
  static json json_of(const std::vector<std::string> &words) {
    const ToolRun run = run_tool(words);
    EXPECT_EQ(run.status, 0) << words.front() << ": " << run.err;
    return json::parse(run.out, nullptr, false);
  }

  const TempDir directory;
  const std::string kernel = directory.file("kernel.etl"), user = directory.file("user.etl"),
                    rundown = directory.file("rundown.etl"), zip = directory.file("PerfViewData.etl.zip"),
                    diagsession = directory.file("x.diagsession");
  const std::vector<std::string> all = {kernel, user, rundown};
};

TEST_F(Several, AZipIsTheTracesInIt) {
  const etwrelog::Trace files = opened(all);
  for (const std::string &path : {zip, diagsession}) {
    const etwrelog::Trace trace = opened({path});
    ASSERT_EQ(trace.sources().size(), 3u);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(trace.sources()[i].name.find(path + ":"), 0u) << trace.sources()[i].name;
      EXPECT_EQ(trace.sources()[i].machine, 0u);
    }
    EventCursor expected = files.events({.order = Order::time}), got = trace.events({.order = Order::time});
    std::size_t events = 0;
    for (const Event *event = expected.next(); event != nullptr; event = expected.next(), ++events) {
      const Event *other = got.next();
      ASSERT_NE(other, nullptr);
      ASSERT_TRUE(std::ranges::equal(event->bytes(), other->bytes()));
      ASSERT_EQ(event->position(), other->position());
    }
    EXPECT_EQ(got.next(), nullptr);
    EXPECT_GT(events, 2000u);
  }
  // Beside a file they count on.
  EXPECT_EQ(opened({kernel, zip}).sources().size(), 4u);
}

TEST_F(Several, AMemberThatIsNoTraceIsNamed) {
  const std::string broken = directory.file("broken.zip");
  write_file(broken, zip_of({{"good.etl", read_file(kernel)}, {"bad.etl", Buffer(70'000, 'x')}}));
  const Result<etwrelog::Trace> trace = etwrelog::Trace::open(broken);
  ASSERT_FALSE(trace);
  EXPECT_EQ(trace.error().file, broken + ":bad.etl");
  const ToolRun run = run_tool({"info", broken});
  EXPECT_EQ(run.status, 1);
  EXPECT_NE(run.err.find("broken.zip:bad.etl"), std::string::npos) << run.err;
}

TEST_F(Several, CountsAreTheSumOfEach) {
  std::uint64_t events = 0, bytes = 0, walks = 0, frames = 0, buffers = 0;
  std::map<EventType, std::pair<std::uint64_t, std::uint64_t>> types;
  for (const std::string &path : all) {
    const Statistics s = counted({path});
    events += s.events;
    bytes += s.event_bytes;
    walks += s.stacks.walks;
    frames += s.stacks.frames;
    for (const auto &[type, count] : s.buffer_types)
      buffers += count;
    for (const TypeStatistics &row : s.types) {
      types[row.type].first += row.events;
      types[row.type].second += row.bytes;
    }
  }
  for (const std::vector<std::string> &paths : {all, {zip}, {diagsession}})
    for (const unsigned threads : {1u, 2u}) {
      const Statistics s = counted(paths, {.threads = threads});
      EXPECT_EQ(s.events, events);
      EXPECT_EQ(s.event_bytes, bytes);
      EXPECT_EQ(s.stacks.walks, walks);
      EXPECT_EQ(s.stacks.frames, frames);
      EXPECT_EQ(s.stacks.distinct_stacks, counted({kernel}).stacks.distinct_stacks + 1)
          << "told apart over all: of the two of the others the kernel session has one";
      std::uint64_t of_all = 0, of_types = 0;
      for (const auto &[type, count] : s.buffer_types)
        of_all += count;
      EXPECT_EQ(of_all, buffers);
      ASSERT_EQ(s.types.size(), types.size());
      for (const TypeStatistics &row : s.types) {
        EXPECT_EQ(std::pair(row.events, row.bytes), types[row.type]) << row.name;
        of_types += row.events;
      }
      EXPECT_EQ(of_types, events);
      // The kernel session names the processes of the others' events.
      ASSERT_EQ(s.processes.size(), 2u);
      EXPECT_EQ(s.processes[0].image_name, "one.exe");
      EXPECT_GE(s.by_instance[0].events, 200u + 2 * 200u);
      EXPECT_EQ(s.by_instance[0].samples, 200u);
    }
}

// Whether that was meant is for a program to ask.
TEST_F(Several, TheSameTraceTwiceIsTwiceAsMuch) {
  EXPECT_EQ(counted({kernel, kernel}).events, 2 * counted({kernel}).events);
  EXPECT_TRUE(check_inputs(std::vector<Input>{kernel, user}));
  const std::string link = directory.file("link.etl");
  std::filesystem::create_symlink(kernel, link);
  const Result<void> twice = check_inputs(std::vector<Input>{kernel, user, link});
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().file, link);
  EXPECT_FALSE(check_inputs(std::vector<Input>{Input::standard_input(), Input::standard_input()}));
  // One trace made of them would have each event twice.
  const Result<RelogReport> relogged = relog(opened({kernel, user, user}), Output(directory.file("out.etl")));
  ASSERT_FALSE(relogged);
  EXPECT_NE(relogged.error().message().find("is named twice"), std::string::npos)
      << relogged.error().message();
}

TEST_F(Several, TracesOfTwoMachinesAreCountedEachWithItsOwnProcesses) {
  SyntheticTrace other = user_trace();
  other.header().boot_time += 10'000'000;
  other.process_rundown({1'060'000}, 100, 4, "elsewhere.exe");
  write_file(user, other.bytes());
  const Statistics s = counted({kernel, user});
  EXPECT_EQ(s.events, counted({kernel}).events + counted({user}).events);
  ASSERT_EQ(s.processes.size(), 3u);
  EXPECT_EQ(s.processes[2].image_name, "elsewhere.exe");
  EXPECT_EQ(s.processes[2].machine, 1u);
  EXPECT_EQ(s.by_instance[0].events, counted({kernel}).by_instance[0].events);
  // What needs one boot says what differs.
  const Result<StackReport> stacks = report_stacks(opened({kernel, user}));
  ASSERT_FALSE(stacks);
  EXPECT_NE(stacks.error().message().find("time of boot"), std::string::npos) << stacks.error().message();
  EXPECT_FALSE(make_profile(opened({kernel, user})));
}

TEST_F(Several, StacksAndProfileAreThoseOfTheMergedTrace) {
  const std::string merged = directory.file("merged.etl");
  ASSERT_EQ(run_tool({"merge", kernel, user, rundown, "-o", merged}).status, 0);
  const std::vector<StackCacheSettings> simulate = {{256, 3u << 20}};
  const Result<StackReport> one = report_stacks(opened({merged}), {.simulate = simulate}),
                            several = report_stacks(opened({zip}), {.simulate = simulate});
  ASSERT_TRUE(one && several);
  EXPECT_EQ(several->all.events, one->all.events);
  EXPECT_EQ(several->all.distinct, one->all.distinct);
  EXPECT_EQ(several->distinct_frames, one->distinct_frames);
  EXPECT_EQ(several->bytes_now, one->bytes_now);
  EXPECT_EQ(several->simulations[0].counts.hits, one->simulations[0].counts.hits);
  const Result<ProfileResult> profile = make_profile(opened({zip})),
                              expected = make_profile(opened({merged}));
  ASSERT_TRUE(profile && expected);
  EXPECT_EQ(profile->profile.accounting.total.samples, 600u);
  EXPECT_EQ(profile->profile.samples.size(), expected->profile.samples.size());
  for (std::size_t i = 0; i < profile->profile.samples.size(); ++i)
    ASSERT_EQ(profile->profile.samples[i].time, expected->profile.samples[i].time);
  EXPECT_EQ(profile->profile.events_lost, 11u);
  EXPECT_GE(profile->profile.samples.front().time, 0);
}

TEST_F(Several, TimesCountFromTheEarliestWhicheverIsNamedFirst) {
  const auto lines = [](const std::vector<std::string> &traces) {
    std::vector<std::string> words = {"export"};
    words.insert(words.end(), traces.begin(), traces.end());
    words.insert(words.end(), {"--from", "12ms", "--to", "14ms"});
    const ToolRun run = run_tool(words);
    EXPECT_EQ(run.status, 0) << run.err;
    std::vector<std::string> out;
    for (std::size_t at = 0; at < run.out.size();) {
      const std::size_t end = run.out.find('\n', at);
      out.push_back(run.out.substr(at, end - at));
      at = end + 1;
    }
    std::ranges::sort(out); // of what happened at the same time the trace named first has the word
    return out;
  };
  const std::string merged = directory.file("merged.etl");
  ASSERT_EQ(run_tool({"merge", user, kernel, "-o", merged}).status, 0);
  const std::vector<std::string> expected = lines({merged});
  EXPECT_GT(expected.size(), 100u);
  EXPECT_EQ(lines({kernel, user}), expected);
  EXPECT_EQ(lines({user, kernel}), expected);
  const auto asked = [](const std::vector<std::string> &traces) {
    std::vector<std::string> words = {"query"};
    words.insert(words.end(), traces.begin(), traces.end());
    words.push_back("select count(*), min(timestamp), utc(min(time)) from events where time >= at('12ms')");
    return run_tool(words).out;
  };
  EXPECT_EQ(asked({user, kernel}), asked({merged}));
  const json info = json_of({"info", "--json", "--as-one", user, kernel});
  EXPECT_EQ(info["processes"], json_of({"info", "--json", merged})["processes"]);
}

// Of several machines, too: seconds count from when the first of them began, and its number is 0.
TEST_F(Several, TheMachineThatBeganFirstIsNumberNull) {
  const std::string early = directory.file("early.etl"), late = directory.file("late.etl");
  SyntheticTrace first, second({.start_time = 132'500'000'000'000'000 + 30 * kFiletimePerSecond});
  second.header().boot_time -= 777 * kFiletimePerSecond; // another machine
  for (int i = 0; i < 100; ++i) {
    first.sample({2'000'000 + i * 10'000}, 1);
    second.sample({2'000'000 + i * 10'000}, 1);
  }
  write_file(early, first.bytes());
  write_file(late, second.bytes());
  const auto asked = [](std::vector<std::string> traces) {
    traces.insert(traces.begin(), "query");
    traces.push_back(
        "select utc(at('0s')), machine, count(*), min(time), min(timestamp) from events group by 2");
    const ToolRun run = run_tool(traces);
    EXPECT_EQ(run.status, 0) << run.err;
    return run.out;
  };
  const std::string expected = asked({early, late});
  EXPECT_NE(expected.find("2020-11-16T11:33:20.0000000Z\t0\t"), std::string::npos) << expected;
  EXPECT_EQ(asked({late, early}), expected);
  const etwrelog::Trace both = opened({late, early});
  EXPECT_EQ(both.sources()[0].machine, 1u);
  EXPECT_EQ(both.sources()[1].machine, 0u);
  EXPECT_EQ(both.clock().start_time, both.sources()[1].clock.start_time);
}

// Clocks of different rates are brought together without moving an event in time or past another of its
// trace.
TEST_F(Several, EventsOfMachinesWithOtherClocksKeepTheirTimesAndOrder) {
  constexpr std::int64_t kOld = 2'143'536, kOther = 3'579'545, kUsual = 10'000'000, kFine = 24'000'000,
                         kCycles = 2'400'000'123;
  for (const auto &[early_rate, late_rate] :
       some<std::pair<std::int64_t, std::int64_t>>(3, {{kOld, kUsual},
                                                       {kUsual, kOld},
                                                       {kOld, kOther},
                                                       {kOther, kOld},
                                                       {kUsual, kFine},
                                                       {kCycles, kUsual},
                                                       {kOld, kOld}})) {
    std::vector<std::string> traces;
    for (const bool late : {false, true}) {
      const std::int64_t rate = late ? late_rate : early_rate, start = 132'500'000'000'000'000;
      SyntheticTrace t({.perf_freq = rate, .start_time = late ? start + 7'654'321 : start});
      if (late) t.header().boot_time -= 777 * kFiletimePerSecond;         // another machine
      const std::int64_t step = std::max<std::int64_t>(1, rate / kUsual); // a tick, or 100 ns
      const std::int64_t first =
          1'000'001 + (late ? rate * 2'345'679 / kUsual : rate); // of both at one moment
      for (int i = 0; i < 4000; ++i)
        t.sample({first + step * (i / 2), static_cast<std::uint16_t>(i % 3)}, 1,
                 0x7FF6'0000'0000 + static_cast<std::uint64_t>(i));
      traces.push_back(directory.file(late ? "late.etl" : "early.etl"));
      write_file(traces.back(), t.bytes());
    }
    const auto asked = [](const std::vector<std::string> &of, const std::string &machine) {
      std::vector<std::string> line{"query"};
      line.insert(line.end(), of.begin(), of.end());
      line.push_back("select time, cpu, InstructionPointer from PerfInfo_SampleProf where machine = " +
                     machine);
      const ToolRun run = run_tool(line);
      EXPECT_EQ(run.status, 0) << run.err;
      return run.out;
    };
    for (const std::size_t machine : {0u, 1u}) {
      const std::string alone = asked({traces[machine]}, "0");
      EXPECT_EQ(std::ranges::count(alone, '\n'), 4001);
      EXPECT_TRUE(asked(traces, std::to_string(machine)) == alone) << early_rate << " and " << late_rate;
    }
    const auto since = [&](const std::vector<std::string> &of) {
      std::vector<std::string> line{"query"};
      line.insert(line.end(), of.begin(), of.end());
      line.push_back("select min(time) - at('0s') from PerfInfo_SampleProf where machine = 0");
      return run_tool(line).out;
    };
    EXPECT_EQ(since(traces), since({traces[0]}));
  }
}

// Stack walks say when their event was in the clock of their own trace, which also counts how long things
// took.
TEST_F(Several, EventsOfMachinesWithOtherClocksKeepTheirStacksAndDurations) {
  for (const std::int64_t late_rate : {10'000'000, 2'143'536, 24'000'000}) {
    std::vector<std::string> traces;
    for (const bool late : {false, true}) {
      const std::int64_t start = 132'500'000'000'000'000;
      SyntheticTrace t(
          {.perf_freq = late ? late_rate : 10'000'000, .start_time = late ? start + 7'654'321 : start});
      if (late) t.header().boot_time -= 777 * kFiletimePerSecond; // another machine
      t.process_rundown({1'000'001}, 8, 4, "game.exe");
      t.thread_rundown({1'000'002}, 80, 8);
      for (int i = 0; i < 100; ++i) {
        const std::int64_t time = 3'000'000 + 1000 * i;
        const auto number = static_cast<std::uint64_t>(i);
        t.context_switch({time - 10}, 80, 0);
        t.sample({time}, 80, 0x7FF6'0000'0000 + number);
        t.stack_walk({time + 2}, time, 8, 80,
                     {0x7FF6'0000'0000 + number, 0x7FF6'0001'0000u + (late ? 1 : 0)});
      }
      t.process_start({3'200'000}, 12, 8, "short.exe");
      t.process_end({3'200'000 + 12'345}, 12, "short.exe");
      traces.push_back(directory.file(late ? "late.etl" : "early.etl"));
      write_file(traces.back(), t.bytes());
    }
    const auto asked = [](std::vector<std::string> line, std::size_t machine) {
      line.insert(line.begin(), {"query", "--join", "stack,duration"});
      line.push_back(fmt::format("select time, stack from PerfInfo_SampleProf where stack is not null and "
                                 "machine = {0}; select duration_ns from Process_End where machine = {0}",
                                 machine));
      const ToolRun run = run_tool(line);
      EXPECT_EQ(run.status, 0) << run.err;
      return run.out;
    };
    for (const std::size_t machine : {0u, 1u}) {
      const std::string alone = asked({traces[machine]}, 0);
      EXPECT_EQ(std::ranges::count(alone, '\n'), 103);
      EXPECT_EQ(asked(traces, machine), alone) << late_rate;
    }
  }
}

TEST_F(Several, EveryReadingCommandTakesThem) {
  const json info = json_of({"info", "--json", zip}), stats = json_of({"stats", "--json", diagsession});
  EXPECT_EQ(info["traces"].size(), 3u);
  EXPECT_EQ(info["file"], zip);
  std::uint64_t events = 0, buffers = 0;
  for (const std::string &path : all) {
    const json one = json_of({"info", "--json", path});
    events += one["events"]["count"].get<std::uint64_t>();
    buffers += one["buffers"]["count"].get<std::uint64_t>();
  }
  EXPECT_EQ(info["events"]["count"], events);
  EXPECT_EQ(info["buffers"]["count"], buffers);
  EXPECT_EQ(stats["events"]["count"], events);
  const json together = json_of({"stats", "--json", "--as-one", kernel, user, rundown});
  EXPECT_EQ(together["by_type"], stats["by_type"]);
  EXPECT_EQ(json_of({"stats", "--json", kernel, user, rundown}).size(), 3u) << "each by itself";
  const ToolRun text = run_tool({"info", zip});
  EXPECT_EQ(text.status, 0) << text.err;
  for (const char *part : {"PerfViewData.clrRundown.etl", "Together", "3 traces", "one.exe"})
    EXPECT_NE(text.out.find(part), std::string::npos) << part;

  EXPECT_EQ(json_of({"stacks", "--json", zip})["all"]["events"],
            json_of({"stacks", "--json", "--as-one", kernel, user, rundown})["all"]["events"]);
  for (const std::vector<std::string> &words : {std::vector<std::string>{"profile", zip, "--symbols", "none"},
                                                {"schema", diagsession},
                                                {"query", zip, "select count(*) from events"}}) {
    const ToolRun run = run_tool(words);
    EXPECT_EQ(run.status, 0) << words.front() << ": " << run.err;
  }
  const std::string merged = directory.file("merged.etl"), relogged = directory.file("relogged.etl");
  ASSERT_EQ(run_tool({"merge", kernel, user, rundown, "-o", merged}).status, 0);
  const ToolRun run = run_tool({"relog", zip, "-o", relogged});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_TRUE(read_file(relogged) == read_file(merged));
  EXPECT_NE(run_tool({"relog", zip, "-o", zip, "-f"}).status, 0) << "never its own input";
  RelogOptions options;
  const Result<RelogReport> onto = relog(opened({zip}), Output(zip, Existing::replace), options);
  ASSERT_FALSE(onto);
  EXPECT_EQ(onto.error().kind, ErrorKind::usage);
}

TEST_F(Several, PackTakesTheVeryFile) {
  const std::string packed = directory.file("x.etlz"), back = directory.file("back.diagsession");
  ASSERT_EQ(run_tool({"pack", diagsession, "-o", packed, "-q"}).status, 0);
  ASSERT_EQ(run_tool({"unpack", packed, "-o", back, "-q"}).status, 0);
  EXPECT_TRUE(read_file(back) == read_file(diagsession));
}

} // namespace
} // namespace etwrelog::testing
