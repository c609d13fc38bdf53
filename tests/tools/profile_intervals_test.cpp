// A sample stands for the sampling interval that held when it was taken: within a trace, from run to run, in
// every format and in comparisons.
#include "etwrelog/profile_export.hpp"
#include "etwrelog/profile_report.hpp"
#include "tests/support/run_tool.hpp"
#include "tests/support/symbol_files.hpp"
#include "tests/support/synthetic_trace.hpp"

#include <algorithm>
#include <functional>
#include <tuple>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace etwrelog {
namespace {

using namespace test_support;
using nlohmann::json;

constexpr std::uint16_t kSet = 0x0F48, kStart = 0x0F49, kEnd = 0x0F4A;
struct Told { // an event of the sampling interval
  std::uint16_t hook;
  int ms;
  std::uint32_t interval, before; // 100 ns
};
struct Taken { // samples, one each `every`
  int ms, count;
  std::int64_t every; // 100 ns
};
struct Recording {
  std::vector<Told> told;
  std::vector<Taken> taken;
  std::uint32_t process = 100;
};

std::string write_trace(const std::string &name, const Recording &run) {
  testing::SyntheticTrace t; // ticks of 100 ns; its time begins at 1,000,000
  const auto at = [](int ms) { return 1'000'000 + std::int64_t{ms} * 10'000; };
  std::vector<std::pair<std::int64_t, std::function<void()>>> events;
  for (const Told &told : run.told)
    events.emplace_back(at(told.ms), [&, time = at(told.ms)] {
      t.emit({time}, [&](write::EventBuilder &e) {
        e.perfinfo(told.hook, 3, 8, time).value(0).value(told.interval).value(told.before);
      });
    });
  for (const Taken &taken : run.taken)
    for (int i = 0; i < taken.count; ++i)
      events.emplace_back(at(taken.ms) + i * taken.every + 1, [&, time = at(taken.ms) + i * taken.every + 1] {
        t.sample({time}, run.process + 1);
      });
  std::ranges::stable_sort(events, {}, [](const auto &event) { return event.first; });
  t.process_rundown({1'000'000}, run.process, 4, "game.exe");
  t.thread_rundown({1'000'000}, run.process + 1, run.process);
  for (const auto &[time, emit] : events)
    emit();
  const std::vector<std::uint8_t> bytes = t.bytes();
  std::string trace = new_folder("intervals_" + name) + "/x.etl";
  write_file(trace, std::string(bytes.begin(), bytes.end()));
  return trace;
}

struct Answer {
  json out;
  std::string err;
};
Answer ask(std::vector<std::string> line) {
  const testing::ToolRun run = testing::run_tool(line);
  EXPECT_EQ(run.status, 0) << run.err;
  return {json::parse(run.out), run.err};
}
Answer profile_of(std::vector<std::string> traces, const std::vector<std::string> &more = {}) {
  traces.insert(traces.begin(), {"profile", "--json"});
  traces.insert(traces.end(), more.begin(), more.end());
  return ask(traces);
}
constexpr const char *kChanged = "the sampling interval changed: ";

// 100 samples of 1 ms, then 4,000 of 0.1 ms: 0.5 s.
const Recording kChange{{{kStart, 0, 10'000, 10'000}, {kSet, 100, 1'000, 10'000}},
                        {{0, 100, 10'000}, {100, 4000, 1'000}}};

TEST(ProfileIntervals, AChangeIsToldAndSamplesWeighTheirTimeHoweverTheyAreTold) {
  const std::string trace = write_trace("change", kChange);
  const auto [all, warning] = profile_of({trace});
  EXPECT_EQ(all["unit"], "nanoseconds");
  EXPECT_EQ(all["interval_ns"], 100'000);
  EXPECT_EQ(all["selected"], 500'000'000);
  EXPECT_EQ(all["accounting"]["samples"], 4100);
  EXPECT_NE(warning.find("100 of 4100 samples were not taken every 0.1 ms"), std::string::npos) << warning;
  const std::string text = testing::run_tool({"profile", trace}).out;
  EXPECT_NE(text.find("0.500 s of processor time"), std::string::npos) << text;
  for (const char *name : {"x.pb.gz", "x.speedscope.json", "x.firefox.json.gz"}) {
    const std::string file = new_folder("intervals_formats") + "/" + name;
    EXPECT_EQ(testing::run_tool({"profile", trace, "-o", file}).status, 0);
    const std::string exported = read_file(file);
    const auto read =
        read_profile({reinterpret_cast<const std::uint8_t *>(exported.data()), exported.size()});
    ASSERT_TRUE(read) << read.error().message();
    EXPECT_EQ(read->profile.kind, ProfileKind::cpu) << name;
    EXPECT_TRUE(read->profile.by_time) << name;
    EXPECT_EQ(total_weight(read->profile), 500'000'000u) << name;
  }
  const json modules = ask({"symbols", trace, "--json", "--symbols", "none"}).out;
  EXPECT_EQ(modules["unit"], "nanoseconds");
  EXPECT_EQ(modules["samples"], 4100);
}

TEST(ProfileIntervals, AStretchHasThoseOfItsSamples) {
  const std::string trace = write_trace("stretch", kChange);
  const auto asked = [&](const std::vector<std::string> &more) {
    const auto [all, warning] = profile_of({trace}, more);
    return std::tuple(all["unit"].get<std::string>(), all["interval_ns"].get<int>(),
                      all["selected"].get<int>(), warning.find(kChanged) != std::string::npos);
  };
  EXPECT_EQ(asked({"--to", "0.0905s"}), std::tuple("samples", 1'000'000, 91, false));
  EXPECT_EQ(asked({"--from", "0.20005s"}), std::tuple("samples", 100'000, 2999, false));
  EXPECT_EQ(asked({"--from", "0.08995s", "--to", "0.10005s"}),
            std::tuple("nanoseconds", 1'000'000, 10'100'000, true));
}

// Where nothing was sampled, an interval may have held as long as it likes, in one piece or in several.
TEST(ProfileIntervals, OfOneIntervalAreCounted) {
  const std::string pieces = write_trace(
      "pieces", {{{kStart, 0, 10'000, 0}, {kSet, 140, 5'000, 0}, {kSet, 300, 10'000, 0}, {kSet, 400, 0, 0}},
                 {{0, 140, 10'000}, {300, 90, 10'000}}});
  const auto [all, warning] = profile_of({pieces});
  EXPECT_EQ(all["unit"], "samples");
  EXPECT_EQ(all["interval_ns"], 1'000'000);
  EXPECT_EQ(all["selected"], 230);
  EXPECT_EQ(warning.find(kChanged), std::string::npos) << warning;
  const std::string copy = pieces + ".copy.etl";
  write_file(copy, read_file(pieces));
  EXPECT_DOUBLE_EQ(ask({"diff", "--json", pieces, "--", copy}).out["total"]["before"].get<double>(), 0.23);
}

// As of a circular log, whose beginning is overwritten.
TEST(ProfileIntervals, TheFirstThatIsToldAlsoTellsWhatHeldBefore) {
  const std::string set = write_trace("set",
                                      {{{kSet, 100, 1'250, 10'000}}, {{0, 100, 10'000}, {100, 800, 1'250}}}),
                    end = write_trace("end", {{{kEnd, 100, 1'250, 1'250}}, {{0, 800, 1'250}}}),
                    end_only_new = write_trace("end_new", {{{kEnd, 100, 1'250, 0}}, {{0, 800, 1'250}}});
  EXPECT_EQ(profile_of({set}).out["selected"], 200'000'000);
  for (const std::string &trace : {end, end_only_new}) {
    const json all = profile_of({trace}).out;
    EXPECT_EQ(all["interval_ns"], 125'000);
    EXPECT_EQ(all["selected"], 800);
  }
}

TEST(ProfileIntervals, RunsAddUpInAnyOrder) {
  // Sampling went on at 1 ms; that it was changed later concerns no sample.
  const Recording changed_late{{{kStart, 0, 10'000, 0}, {kSet, 500, 1'000, 0}}, {{0, 100, 10'000}}};
  const std::string late = write_trace("late", changed_late),
                    slow = write_trace("slow", {{{kStart, 0, 10'000, 0}}, {{600, 400, 10'000}}}),
                    fast = write_trace("fast", {{{kStart, 0, 1'250, 0}}, {{0, 800, 1'250}}}),
                    changed = write_trace("changed", kChange),
                    unknown = write_trace("unknown", {{}, {{0, 30, 10'000}}});
  const json alike = profile_of({late, slow}).out;
  EXPECT_EQ(alike["unit"], "samples");
  EXPECT_EQ(alike["interval_ns"], 1'000'000);
  EXPECT_EQ(alike["selected"], 500);
  EXPECT_EQ(profile_of({late, slow}).err, profile_of({slow, late}).err);
  const auto sums = [](std::vector<std::string> traces, const std::string &unit, int sum,
                       const char *warning) {
    std::ranges::sort(traces);
    do {
      const auto [all, told] = profile_of(traces);
      EXPECT_EQ(all["unit"], unit);
      EXPECT_EQ(all["interval_ns"], 0);
      EXPECT_EQ(all["selected"], sum);
      EXPECT_NE(told.find(warning), std::string::npos) << told;
    } while (std::ranges::next_permutation(traces).found);
  };
  constexpr const char *kByTime = ": samples are counted by the time that each stands for",
                       *kUnknown = ": one interval is not recorded, so that each counts as one sample";
  sums({late, slow, fast}, "nanoseconds", 600'000'000, kByTime);
  sums({late, fast, changed}, "nanoseconds", 700'000'000, kByTime);
  sums({slow, unknown, fast}, "samples", 1230, kUnknown);
  sums({fast, unknown, changed}, "samples", 4930, kUnknown);
}

TEST(ProfileIntervals, RunsThatDifferByLittleAreToldToo) {
  const std::string one = write_trace("one", {{{kStart, 0, 10'000, 0}}, {{0, 20, 10'000}}}),
                    other = write_trace("other", {{{kStart, 0, 10'004, 0}}, {{0, 20, 10'004}}});
  EXPECT_NE(profile_of({one, other}).err.find("a sample stands for 1.0004 ms, of "), std::string::npos);
}

TEST(ProfileIntervals, DiffComparesTimes) {
  const std::string slow = write_trace("diff_slow", {{{kStart, 0, 10'000, 0}}, {{0, 100, 10'000}}}),
                    fast = write_trace("diff_fast", {{{kStart, 0, 1'000, 0}}, {{0, 1000, 1'000}}}),
                    changed = write_trace("diff_changed", kChange);
  const json same = ask({"diff", "--json", slow, "--", fast}).out["total"];
  EXPECT_DOUBLE_EQ(same["before"].get<double>(), 0.1);
  EXPECT_DOUBLE_EQ(same["after"].get<double>(), 0.1);
  EXPECT_EQ(same["verdict"], "same");
  EXPECT_DOUBLE_EQ(ask({"diff", "--json", slow, "--", changed}).out["total"]["after"].get<double>(), 0.5);
}

// Each run has its own process of that name.
TEST(ProfileIntervals, TheBusiestProcessOfRunsIsThatOfAll) {
  const std::string one = write_trace("run1", {{{kStart, 0, 10'000, 0}}, {{0, 40, 10'000}}, 100}),
                    other = write_trace("run2", {{{kStart, 0, 10'000, 0}}, {{0, 30, 10'000}}, 200});
  const std::string text = testing::run_tool({"profile", one, other}).out;
  EXPECT_NE(text.find("The busiest: game.exe, 70 samples"), std::string::npos) << text;
}

} // namespace
} // namespace etwrelog
