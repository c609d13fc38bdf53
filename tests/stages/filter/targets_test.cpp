#include "filter/targets.hpp"
#include "tests/support/pipeline_runs.hpp"

#include <gtest/gtest.h>

#include <set>
#include <tuple>

namespace etwrelog::filter {
namespace {

using testing::SyntheticTrace;

TEST(Wildcards, MatchAsUsersExpect) {
  struct Case {
    const char *pattern, *text;
    bool match;
  };
  for (const Case &c : {Case{"chrome.exe", "CHROME.EXE", true},
                        {"chrome.exe", "chrome.ex", false},
                        {"*", "", true},
                        {"*", "x", true},
                        {"", "", true},
                        {"", "x", false},
                        {"?", "", false},
                        {"?", "x", true},
                        {"c*e", "chrome", true},
                        {"c*e.exe", "chrome.exe", true},
                        {"*host*", "svchost.exe", true},
                        {"*host", "svchost.exe", false},
                        {"a**b", "ab", true},
                        {"a*b*c", "aXbXbXc", true},
                        {"a*b*c", "aXcXb", false},
                        {"*?x", "x", false},
                        {"[a]", "a", false},
                        {"*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaa", false}})
    EXPECT_EQ(matches_wildcard(c.pattern, c.text), c.match) << c.pattern << ' ' << c.text;
  // No exponential search.
  std::string pattern, text(100'000, 'a');
  for (int i = 0; i < 50; ++i)
    pattern += "*a";
  EXPECT_FALSE(matches_wildcard(pattern + "b", text));
}

TEST(Wildcards, AProcessIsKnownByItsNameBeforeExe) {
  for (const auto &[pattern, name, match] : {std::tuple("chrome", "chrome.exe", true),
                                             {"chrome", "Chrome.EXE", true},
                                             {"chrome", "chrome", true},
                                             {"chrome", "chrome.dll", false},
                                             {"chrome", "chromium.exe", false},
                                             {"chrome", "chrome.exe.exe", false},
                                             {"chrome.exe", "chrome.exe.exe", false},
                                             {"chrome.EXE", "chrome.exe.exe", false},
                                             {"chrome.x64", "chrome.x64.exe", true},
                                             {"c*e", "chrome.exe", true},
                                             {"c*m", "com.exe", false},
                                             {"", ".exe", true},
                                             {"", "x.exe", false},
                                             {"System", "System", true}})
    EXPECT_EQ(matches_process_name(pattern, name), match) << pattern << ' ' << name;
}

class TargetsTest : public ::testing::Test {
protected:
  TargetsTest() {
    t.process_rundown({1'000'100}, 4, 0, "System");
    t.process_rundown({1'000'101}, 100, 4, "explorer.exe", "C:\\explorer.exe");
    t.process_start({2'000'000}, 200, 100, "Build.exe", "Build.exe --all");
    t.process_start({2'000'100}, 300, 200, "cl.exe", "cl /c a.cpp");
    t.process_start({2'000'200}, 400, 300, "link.exe", "link b");
    t.process_end({2'000'300}, 300, "cl.exe");
    t.process_start({2'000'400}, 300, 100, "notepad.exe", "notepad"); // the id of cl.exe again
    t.process_start({2'000'500}, 500, 300, "child.exe", "of notepad");
    t.process_start({2'000'600}, 600, 999, "orphan.exe", "");
    trace.emplace(*testing::open_trace(t.bytes()));
    pipeline::PassResult result;
    lifetimes = std::move(*pipeline::collect_lifetimes(*trace, {}, result));
  }
  std::set<std::string> names(const Selection &selection) {
    const Result<Targets> targets = Targets::resolve(selection, lifetimes);
    std::set<std::string> all;
    if (!targets) return {"error: " + targets.error().message()};
    for (std::uint32_t i = 0; i < lifetimes.processes().size(); ++i)
      if (targets->is_target(i)) all.insert(lifetimes.processes()[i].image_name);
    return all;
  }
  ErrorKind error(const Selection &selection) {
    const Result<Targets> targets = Targets::resolve(selection, lifetimes);
    EXPECT_FALSE(targets);
    return targets ? ErrorKind::cancelled : targets.error().kind;
  }
  using Names = std::set<std::string>;
  SyntheticTrace t;
  std::optional<pipeline::Trace> trace;
  Lifetimes lifetimes;
};

TEST_F(TargetsTest, SelectByIdNameAndWildcard) {
  EXPECT_EQ(names({.processes = {"200"}}), (Names{"Build.exe"}));
  EXPECT_EQ(names({.processes = {"build.EXE"}}), (Names{"Build.exe"}));
  EXPECT_EQ(names({.processes = {"build"}}), (Names{"Build.exe"}));
  EXPECT_EQ(names({.processes = {"*l*.exe"}}),
            (Names{"Build.exe", "cl.exe", "explorer.exe", "link.exe", "child.exe"}));
  EXPECT_EQ(names({.processes = {"cl.exe", "200"}}), (Names{"Build.exe", "cl.exe"}));
  EXPECT_EQ(names({.processes = {"300"}}), (Names{"cl.exe", "notepad.exe"}))
      << "an id means all its instances";
  EXPECT_EQ(names({}).size(), 8u);
}

TEST_F(TargetsTest, ChildrenAreTransitiveAndFollowTheInstance) {
  EXPECT_EQ(names({.processes = {"build.exe"}, .children = true}), (Names{"Build.exe", "cl.exe", "link.exe"}))
      << "child.exe's parent 300 is notepad by then";
  EXPECT_EQ(names({.processes = {"notepad.exe"}, .children = true}), (Names{"notepad.exe", "child.exe"}));
  EXPECT_EQ(names({.processes = {"explorer.exe"}, .children = true}),
            (Names{"explorer.exe", "Build.exe", "cl.exe", "link.exe", "notepad.exe", "child.exe"}));
}

TEST_F(TargetsTest, CommandLinesNarrowAndExcludesWin) {
  EXPECT_EQ(names({.command_line = "--all|/c"}), (Names{"Build.exe", "cl.exe"}));
  EXPECT_EQ(names({.processes = {"cl.exe", "link.exe"}, .command_line = "a\\.cpp$"}), (Names{"cl.exe"}));
  EXPECT_EQ(names({.processes = {"explorer.exe"}, .children = true, .exclude = {"link.exe", "100"}}),
            (Names{"Build.exe", "cl.exe", "notepad.exe", "child.exe"}));
  EXPECT_EQ(names({.exclude = {"*.exe"}}), (Names{"System"}));
}

TEST_F(TargetsTest, RefuseWhatFitsNothing) {
  EXPECT_EQ(error({.processes = {"nothing.exe"}}), ErrorKind::no_match);
  EXPECT_EQ(error({.processes = {"200", "nothing.exe"}}), ErrorKind::no_match);
  EXPECT_EQ(error({.processes = {"77"}}), ErrorKind::no_match);
  EXPECT_EQ(error({.command_line = "nowhere"}), ErrorKind::no_match);
  EXPECT_EQ(error({.command_line = "("}), ErrorKind::usage);
  EXPECT_EQ(error({.exclude = {"nothing.exe"}}), ErrorKind::no_match);
}

TEST_F(TargetsTest, TellInstancesOfOneIdApartInTime) {
  const Result<Targets> targets = Targets::resolve({.processes = {"cl.exe"}}, lifetimes);
  ASSERT_TRUE(targets);
  EXPECT_TRUE(targets->contains(300, 2'000'150));
  EXPECT_TRUE(targets->contains(300, 2'000'350)) << "late samples of the first instance";
  EXPECT_FALSE(targets->contains(300, 2'000'400));
  EXPECT_FALSE(targets->contains(200, 2'000'150));
  EXPECT_FALSE(targets->contains(12345, 2'000'150));
  const Result<Targets> rest = Targets::resolve({.exclude = {"cl.exe"}}, lifetimes);
  ASSERT_TRUE(rest);
  EXPECT_TRUE(rest->contains(12345, 1)) << "what is not excluded stays, known or not";
  EXPECT_FALSE(rest->contains(300, 2'000'150));
  EXPECT_TRUE(rest->contains(300, 2'000'450));
}

TEST(Targets, TakeAnIdAtItsWordWhereTheTraceNamesNoProcesses) {
  const Lifetimes none;
  const Result<Targets> targets = Targets::resolve({.processes = {"77"}}, none);
  ASSERT_TRUE(targets);
  EXPECT_TRUE(targets->contains(77, 5));
  EXPECT_FALSE(targets->contains(78, 5));
  EXPECT_FALSE(Targets::resolve({.processes = {"a.exe"}}, none));
}

TEST(Selection, ParsesMomentsAndProviders) {
  auto seconds = [](const char *text) { return parse_moment(text).value().seconds; };
  EXPECT_DOUBLE_EQ(seconds("12.5s"), 12.5);
  EXPECT_DOUBLE_EQ(seconds("250ms"), 0.25);
  EXPECT_DOUBLE_EQ(seconds("10us"), 1e-5);
  EXPECT_DOUBLE_EQ(seconds("3m"), 180);
  EXPECT_DOUBLE_EQ(seconds("1h"), 3600);
  EXPECT_DOUBLE_EQ(seconds("7"), 7);
  EXPECT_FALSE(parse_moment("2020-07-29T08:27:00Z").value().relative);
  for (const char *bad : {"", "s", "abc", "1x", "1e400", "nan", "inf", "1 s"})
    EXPECT_FALSE(parse_moment(bad)) << bad;
  const auto full = parse_provider("{e13c0d23-ccbc-4e12-931b-d9cc2eee27e4}:0x10:4");
  ASSERT_TRUE(full);
  EXPECT_EQ(full->guid, format::kClrGuid);
  EXPECT_EQ(full->keywords, 0x10u);
  EXPECT_EQ(full->level, 4);
  EXPECT_EQ(parse_provider("e13c0d23-ccbc-4e12-931b-d9cc2eee27e4::5")->level, 5);
  EXPECT_TRUE(parse_provider("Windows Kernel")->kernel);
  for (const char *bad : {"", "no such provider", "e13c0d23-ccbc-4e12-931b-d9cc2eee27e4:x",
                          "e13c0d23-ccbc-4e12-931b-d9cc2eee27e4:1:256"})
    EXPECT_FALSE(parse_provider(bad)) << bad;
}

} // namespace
} // namespace etwrelog::filter
