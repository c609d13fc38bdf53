// What is selected, by the tool: in one step or in two, of files that may be named in any way.
#include "tests/support/generated.hpp"
#include "tests/support/pace.hpp"
#include "tests/support/run_tool.hpp"
#include "tests/support/synthetic_trace.hpp"
#include "tests/support/trace_files.hpp"

#include <map>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace etwrelog {
namespace {

using nlohmann::json;
using testing::run_tool;
using testing::TempDir;
using testing::ToolRun;
using Line = std::vector<std::string>;

class Selected : public ::testing::Test {
protected:
  std::string write(const std::vector<std::uint8_t> &bytes) {
    const std::string name = directory.file("generated.etl");
    testing::write_file(name, bytes);
    return name;
  }
  // The report of a relog to this file.
  json relog(const std::string &in, const std::string &out, Line selection) {
    Line line{"relog", "-q", "-f", in, "-o", directory.file(out), "--report", directory.file("report.json")};
    line.insert(line.end(), selection.begin(), selection.end());
    const ToolRun run = run_tool(line);
    EXPECT_EQ(run.status, 0) << run.err;
    const auto text = testing::read_file(directory.file("report.json"));
    return json::parse(text.begin(), text.end());
  }
  json stats(const std::string &name) {
    return json::parse(run_tool({"stats", "--json", directory.file(name)}).out);
  }
  TempDir directory;
};

// A switch of a thread whose process nobody knows says nothing of what happened elsewhere at the same moment.
TEST_F(Selected, StacksStayWithTheirEventsWhateverElseHasTheSameTime) {
  gen::Options many; // processors, so that some of their events have the same time
  many.profile = gen::find_profile("medium");
  many.size = 2 << 20, many.cpus = 32, many.seed = 7;
  const std::string in = write(testing::generated(many));
  relog(in, "x.etl", {"--exclude", "chrome*", "--exclude", "svchost*", "--exclude", "devenv*"});
  relog(directory.file("x.etl"), "two.etl", {"-p", "game.exe", "--keep-order", "--codec", "none"});
  relog(in, "one.etl", {"-p", "game.exe", "--keep-order", "--codec", "none"});
  EXPECT_EQ(stats("two.etl").at("by_type"), stats("one.etl").at("by_type"));
}

TEST_F(Selected, ATimeAddsNoKindsToASelectionOfKinds) {
  const auto trace = testing::trace_path("net.4.5.2.x64");
  if (!trace) GTEST_SKIP() << "the real traces are not here";
  const Line provider = {"--provider", "Microsoft-Windows-DotNETRuntime:0x10:4"};
  Line timed = provider;
  timed.insert(timed.end(), {"--from", "3.1s", "--to", "4.2s"});
  relog(trace->string(), "kinds.etl", provider);
  relog(trace->string(), "timed.etl", timed);
  EXPECT_LE(stats("timed.etl").at("by_type").size(), stats("kinds.etl").at("by_type").size());
  EXPECT_LE(stats("timed.etl").at("events").at("count"), stats("kinds.etl").at("events").at("count"));
}

// A key that is given up and used again at one moment names two stacks.
TEST_F(Selected, StacksOfCachedTracesAreThoseOfPlainOnes) {
  gen::Options options;
  options.profile = gen::find_profile("medium");
  options.duration_s = 1.3, options.seed = 11;
  const std::string plain = write(testing::generated(options));
  const std::string cached = directory.file("cached.etl");
  options.stack_cache = true;
  testing::write_file(cached, testing::generated(options));
  const auto stacks = [&](const std::string &trace) {
    const ToolRun run = run_tool({"profile", trace, "-p", "game.exe", "--symbols", "none", "--to", "1s",
                                  "--format", "folded", "-o", "-"});
    EXPECT_EQ(run.status, 0) << run.err;
    Line lines;
    std::istringstream in(run.out);
    for (std::string line; std::getline(in, line);)
      lines.push_back(line);
    std::ranges::sort(lines);
    return lines;
  };
  const Line expected = stacks(plain);
  EXPECT_GT(expected.size(), 500u);
  EXPECT_EQ(stacks(cached), expected);
  for (const Line &selection : {Line{"-p", "game.exe"}, Line{"--event", "0x0f2e"}, Line{"--to", "1100ms"},
                                Line{"--exclude", "svchost.exe"}}) {
    if (testing::kSanitized && selection[0] != "-p") continue;
    relog(cached, "cut.etl", selection);
    relog(plain, "plain.etl", selection);
    EXPECT_TRUE(stacks(directory.file("cut.etl")) == stacks(directory.file("plain.etl"))) << selection[0];
  }
  if (testing::kSanitized) return;
  // Joined to events, too.
  const auto times_and_stacks = [&](const std::string &trace) {
    std::multimap<std::int64_t, std::string> all;
    std::istringstream in(run_tool({"export", trace, "--from", "900ms", "--where",
                                    "event = 'PerfInfo/SampleProf'", "--join", "stack"})
                              .out);
    for (std::string line; std::getline(in, line);) {
      const json event = json::parse(line);
      all.emplace(event.at("timestamp").get<std::int64_t>(), event.value("stack", json()).dump());
    }
    return all;
  };
  const auto wanted = times_and_stacks(plain), found = times_and_stacks(cached);
  EXPECT_GT(wanted.size(), 1000u);
  EXPECT_TRUE(found == wanted);
}

// Of each kind as much; the events themselves are compared where a Filter is tested.
TEST_F(Selected, AnExportOfAProcessIsWhatItsRelogHas) {
  std::vector<std::pair<std::string, std::string>> traces = {
      {write(testing::generated(testing::kSanitized ? 1 << 20 : 8 << 20)), "game.exe"}};
  if (const auto real = testing::trace_path("net.4.5.2.x64"); real && !testing::kSanitized)
    traces.emplace_back(real->string(), "Test.x64.exe");
  for (const auto &[trace, process] : traces)
    for (const Line &selection : testing::some<Line>(2, {{"-p", process},
                                                         {"--from", "100ms", "--to", "5s", "-p", process},
                                                         {"-p", process, "--keep-system"},
                                                         {"--exclude", process},
                                                         {"--event", "0x0424", "--exclude", process},
                                                         {"--event", "0x1823", "-p", process}})) {
      relog(trace, "one.etl", selection);
      const auto counts = [&](Line line) {
        std::map<std::string, int> kinds;
        const ToolRun run = run_tool(line);
        EXPECT_EQ(run.status, 0) << run.err;
        std::istringstream lines(run.out);
        for (std::string text; std::getline(lines, text);)
          ++kinds[json::parse(text).at("event").get<std::string>()];
        return kinds;
      };
      Line exported = {"export", trace}, of_relog = {"export", directory.file("one.etl")};
      exported.insert(exported.end(), selection.begin(), selection.end());
      // Without what else must be known.
      if (selection[0] == "--event")
        of_relog.insert(of_relog.end(), selection.begin(), selection.begin() + 2);
      if (selection[0] == "--from") of_relog.insert(of_relog.end(), selection.begin(), selection.begin() + 4);
      const std::map<std::string, int> kinds = counts(exported);
      EXPECT_EQ(kinds, counts(of_relog)) << trace << selection[0] << selection[1];
      EXPECT_TRUE(selection[0] == "--event" || kinds.size() > 10u);
    }
}

// Names that nobody knows beforehand stand in the trace, as that of a program of one's own.
TEST_F(Selected, ProvidersAnswerToTheNamesThatTheTraceHasForThem) {
  const Guid one = make_guid(0x11223344, 0x5566, 0x7788, 0x99aa, 0xbbccddeeff01),
             two = make_guid(0x11223344, 0x5566, 0x7788, 0x99aa, 0xbbccddeeff02),
             third = make_guid(0x11223344, 0x5566, 0x7788, 0x99aa, 0xbbccddeeff03);
  testing::SyntheticTrace t;
  for (int i = 0; i < 5; ++i) {
    const std::int64_t time = 2'000'000 + 10 * i;
    t.trace_logging({time}, one, "Contoso.Shop", "Order", 11, 10);
    t.trace_logging({time + 1}, two, "contoso.shop", "Order", 11, 10); // the same name, of another build
    t.trace_logging({time + 2}, third, "Contoso.Other", "Order", 11, 10);
    t.sample({time + 3}, 11);
  }
  const std::string in = write(t.bytes());
  const auto lines = [&in](const std::string &provider) {
    const ToolRun run = run_tool({"export", in, "--provider", provider});
    EXPECT_EQ(run.status, 0) << run.err;
    return std::count(run.out.begin(), run.out.end(), '\n');
  };
  EXPECT_EQ(lines("contoso.SHOP"), 10);
  EXPECT_EQ(lines("Contoso.Other:0:255"), 5);
  EXPECT_EQ(lines(to_string(one)), 5);
  relog(in, "named.etl", {"--provider", "Contoso.Other"});
  relog(in, "by_guid.etl", {"--provider", to_string(third)});
  EXPECT_TRUE(testing::read_file(directory.file("named.etl")) ==
              testing::read_file(directory.file("by_guid.etl")));
  ASSERT_EQ(run_tool({"merge", in, "-o", directory.file("m.etl"), "--provider", "Contoso.Other"}).status, 0);
  EXPECT_EQ(stats("m.etl").at("by_type"), stats("named.etl").at("by_type"));
  for (const char *unknown : {"Contoso", "Contoso.Shop:x", "", ":0"}) {
    const ToolRun run = run_tool({"export", in, "--provider", unknown});
    EXPECT_EQ(run.status, 2) << unknown;
    EXPECT_EQ(run.out, "");
    EXPECT_NE(run.err.find("--provider"), std::string::npos) << run.err;
  }
}

TEST_F(Selected, ATimeThatEndsBeforeItBeginsIsTheSameMistakeEverywhere) {
  const std::string in = write(testing::generated(1 << 20)), out = directory.file("o.etl");
  for (const Line &line :
       {Line{"relog", in, "-o", out}, Line{"export", in}, Line{"export", in, "-p", "game.exe"},
        Line{"profile", in, "--symbols", "none"}, Line{"query", in, "select 1"}}) {
    Line words = line;
    words.insert(words.end(), {"--from", "2s", "--to", "1s"});
    const ToolRun run = run_tool(words);
    EXPECT_EQ(run.status, 2) << line[0] << run.err;
    EXPECT_NE(run.err.find("--from and --to: the range is empty"), std::string::npos) << line[0] << run.err;
  }
}

TEST_F(Selected, AFileIsNamedOnce) {
  const std::string in = write(testing::generated(1 << 20)), link = directory.file("link.etl"),
                    out = directory.file("o.etl");
  std::filesystem::create_symlink(in, link);
  testing::ToolOptions standard;
  standard.input = in;
  for (const Line &line : {Line{"relog", "-", "-", "-o", out}, Line{"relog", "-", in, "-o", out},
                           Line{"merge", in, link, "-o", out}, Line{"stats", in, link, "--as-one"},
                           Line{"info", in, in, "--as-one"}, Line{"export", in, "-"}}) {
    const ToolRun run = run_tool(line, standard);
    EXPECT_EQ(run.status, 2) << line[0] << run.err;
    EXPECT_NE(run.err.find("is named twice"), std::string::npos) << run.err;
  }
  EXPECT_FALSE(std::filesystem::exists(out));
  EXPECT_EQ(run_tool({"stats", in, link}).status, 0) << "each by itself";
}

TEST_F(Selected, FilesOfOneRecordingAreOfOneBoot) {
  const auto one = testing::trace_path("Process"), other = testing::trace_path("AMSITrace");
  if (!one || !other) GTEST_SKIP() << "the real traces are not here";
  for (const char *command : {"info", "stats", "stacks"}) {
    const ToolRun run = run_tool({command, one->string(), other->string(), "--as-one"});
    EXPECT_EQ(run.status, 1) << command;
    EXPECT_NE(run.err.find("cannot be one trace with"), std::string::npos) << run.err;
  }
}

TEST_F(Selected, BuffersAreAsLargeAsWindowsTakes) {
  const std::string in = write(testing::generated(1 << 20)), out = directory.file("o.etl");
  for (const auto &[size, said] : {std::pair("17M", "17825792"), {"1G", "1073741824"}, {"1000", "1000"}}) {
    const ToolRun run = run_tool({"relog", in, "-o", out, "--buffer-size", size});
    EXPECT_EQ(run.status, 2) << size;
    EXPECT_NE(run.err.find(std::string("a buffer size of ") + said + " bytes"), std::string::npos) << run.err;
    EXPECT_NE(run.err.find("from 1024 to 16777216"), std::string::npos) << run.err;
  }
  EXPECT_EQ(run_tool({"relog", "-q", in, "-o", out, "--buffer-size", "2M"}).status, 0);
}

// Processes, threads and images are kept for what others mean: they are neither selected nor a reason to be
// silent.
TEST_F(Selected, ASelectionThatFitsNothingIsTold) {
  const std::string in = write(testing::generated(1 << 20)),
                    name = "kept: process, thread, image or code, outside the selected time and kinds";
  const auto told = [&](const Line &selection) {
    const json report = relog(in, "o.etl", selection);
    std::uint64_t sum = 0;
    for (const auto &[reason, count] : report.at("by_reason").items())
      sum += count.get<std::uint64_t>();
    EXPECT_EQ(sum, report.at("input").at("events"));
    const json &warnings = report.at("warnings");
    const bool nothing = std::ranges::any_of(warnings, [](const json &warning) {
      return warning.get<std::string>().starts_with("no event fits the selection");
    });
    if (nothing) {
      EXPECT_EQ(report.at("by_reason").at("kept: selected process"), 0);
      EXPECT_GT(report.at("by_reason").at(name), 0);
    }
    return nothing;
  };
  EXPECT_TRUE(told({"--event", "60000"}));
  EXPECT_TRUE(told({"--from", "1000000s"}));
  EXPECT_TRUE(told({"-p", "game.exe", "--from", "1000000s"}));
  EXPECT_FALSE(told({"--to", "1000000s"}));
  EXPECT_FALSE(told({"--cpu", "0"}));
  EXPECT_FALSE(told({"-p", "game.exe"}));
  EXPECT_FALSE(told({}));
  for (const Line &selection : {Line{"--from", "1000000s"}, Line{"--where", "cpu = 4711"}}) {
    Line line{"export", in};
    line.insert(line.end(), selection.begin(), selection.end());
    const ToolRun run = run_tool(line);
    EXPECT_EQ(run.status, 0);
    EXPECT_TRUE(run.out.empty());
    EXPECT_NE(run.err.find("warning: " + in + ": no event fits the selection"), std::string::npos) << run.err;
  }
}

TEST_F(Selected, EventsAreNamedAsTheyAreShown) {
  const std::string in = write(testing::generated(1 << 20));
  const json by_id = relog(in, "id.etl", {"--event", "0x0f2e", "--event", "0x0524"});
  for (const Line &names : {Line{"--event", "PerfInfo/Sample", "--event", "Thread/CSwitch"},
                            Line{"--event", "sampleprof", "--event", "0x0524"}}) {
    EXPECT_EQ(relog(in, "name.etl", names).at("by_reason"), by_id.at("by_reason"));
    EXPECT_EQ(testing::read_file(directory.file("name.etl")), testing::read_file(directory.file("id.etl")));
  }
  const auto lines = [&](const Line &selection) {
    Line line{"export", in, "--format", "csv"};
    line.insert(line.end(), selection.begin(), selection.end());
    const ToolRun run = run_tool(line);
    EXPECT_EQ(run.status, 0) << run.err;
    return run.out;
  };
  const json kinds = json::parse(run_tool({"schema", in, "--json", "--event", "CSwitch"}).out).at("kinds");
  ASSERT_EQ(kinds.size(), 1u);
  EXPECT_EQ(kinds[0].at("name"), "Windows Kernel/Thread/CSwitch");
  EXPECT_EQ(lines({"--event", "CSwitch"}), lines({"--where", "event = \"Thread/CSwitch\""}));
  for (const auto &[name, said] : {std::pair("no such", "no kind of event is called \"no such\""),
                                   {"0x10000", "expected an event id from 0 to 65535, found \"0x10000\""},
                                   {"-1", "expected an event id from 0 to 65535, found \"-1\""}}) {
    const ToolRun run = run_tool({"relog", in, "-o", directory.file("none.etl"), "--event", name});
    EXPECT_NE(run.status, 0) << name;
    EXPECT_NE(run.err.find(said), std::string::npos) << run.err;
  }
  testing::ToolOptions piped;
  piped.input = in;
  const ToolRun once = run_tool(
      {"relog", "-", "--single-pass", "-o", directory.file("none.etl"), "--event", "CSwitch"}, piped);
  EXPECT_EQ(once.status, 2);
  EXPECT_NE(once.err.find("--event"), std::string::npos) << once.err;
  EXPECT_FALSE(std::filesystem::exists(directory.file("none.etl")));
}

TEST_F(Selected, ReasonsOfSeveralTracesAreCounts) {
  const auto one = testing::trace_path("diaghub"), other = testing::trace_path("diaghub.kernel.1");
  if (!one || !other) GTEST_SKIP() << "the real traces are not here";
  for (const Line &how : {Line{}, Line{"--keep-order"}, Line{"--cpu", "0"}}) {
    Line line = how;
    line.insert(line.begin(), other->string());
    const json report = relog(one->string(), "o.etl", line);
    std::uint64_t sum = 0;
    for (const auto &[reason, count] : report.at("by_reason").items()) {
      EXPECT_LE(count.get<std::uint64_t>(), 1'000'000u) << reason;
      sum += count.get<std::uint64_t>();
    }
    EXPECT_EQ(sum, report.at("input").at("events").get<std::uint64_t>());
  }
}

} // namespace
} // namespace etwrelog
