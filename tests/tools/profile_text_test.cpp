// What profile tells people of what it counted: the rows of --by process add up, and so do its columns.
#include "tests/support/generated.hpp"
#include "tests/support/json_lines.hpp"
#include "tests/support/run_tool.hpp"
#include "tests/support/symbol_files.hpp"
#include "tests/support/synthetic_trace.hpp"
#include "tests/support/trace_files.hpp"

#include <algorithm>
#include <map>
#include <sstream>

#include <filesystem>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace etwrelog {
namespace {

using namespace test_support;
using Numbers = std::vector<std::uint64_t>;

// The rows below "Samples full ..." by process.
std::map<std::string, Numbers> accounting_of(const std::string &out) {
  std::istringstream text(out);
  std::map<std::string, Numbers> rows;
  bool inside = false;
  for (std::string line; std::getline(text, line);) {
    if (line.find("Fragments samples others orphans") != std::string::npos) {
      inside = true;
      continue;
    }
    if (!inside || line.empty()) {
      inside = false;
      continue;
    }
    std::erase(line, ',');
    std::istringstream fields(line);
    Numbers numbers(9);
    for (std::uint64_t &number : numbers)
      fields >> number;
    std::string name;
    std::getline(fields >> std::ws, name);
    EXPECT_TRUE(rows.emplace(name, numbers).second) << line;
  }
  return rows;
}

TEST(ProfileText, EventsAreCalledEvents) {
  testing::SyntheticTrace t;
  t.process_rundown({1'000'000}, 100, 4, "game.exe");
  t.thread_rundown({1'000'001}, 101, 100);
  t.disk_init({2'000'000}, 101, 101, 100);
  t.stack_walk({2'000'001}, 2'000'000, 100, 101, {0x7FF6'0000'1000});
  t.sample({2'500'000}, 101, 0x7FF6'0000'1000);
  const testing::TempDir directory;
  const std::string trace = directory.file("t.etl");
  testing::write_file(trace, t.bytes());
  const std::vector<std::string> events = {"profile", trace,     "--symbols",
                                           "none",    "--event", "DiskIO/WriteInit"};
  const auto with = [&events](std::vector<std::string> more) {
    more.insert(more.begin(), events.begin(), events.end());
    return testing::run_tool(more);
  };
  const testing::ToolRun table = with({});
  EXPECT_EQ(table.status, 0) << table.err;
  EXPECT_NE(table.out.find("1 events"), std::string::npos) << table.out;
  for (const char *word : {"amples", "±", "every", "switches"})
    EXPECT_EQ(table.out.find(word), std::string::npos) << word << "\n" << table.out;
  const auto all = nlohmann::json::parse(with({"--json"}).out);
  EXPECT_EQ(all.at("kind"), "events");
  EXPECT_EQ(all.at("unit"), "events");
  EXPECT_EQ(all.at("selected"), 1);
  EXPECT_EQ(all.at("events"), nlohmann::json({"DiskIO/WriteInit"}));
  for (const auto &[more, status, said] : std::vector<std::tuple<std::vector<std::string>, int, std::string>>{
           {{"--kind", "wait"}, 2, "--kind"},
           {{"--idle"}, 2, "--idle"},
           {{"-p", "nobody"}, 1, "no process with events"},
           {{"--from", "100s"}, 1, "no event fits"},
           {{"--event", "no such"}, 1, "no kind of event is called \"no such\""}}) {
    const testing::ToolRun run = with(more);
    EXPECT_EQ(run.status, status) << run.err;
    EXPECT_NE(run.err.find(said), std::string::npos) << run.err;
  }
}

TEST(ProfileText, WhatEventsSayAddsUpToWhatAnExportShows) {
  const testing::TempDir directory;
  const std::string trace = directory.file("t.etl");
  gen::Options options;
  options.profile = gen::find_profile("medium");
  options.size = 1 << 20;
  testing::write_file(trace, testing::generated(options));
  const testing::ToolRun exported = testing::run_tool({"export", trace, "--event", "FileIO/Read"});
  std::uint64_t bytes = 0, events = 0;
  std::istringstream lines(exported.out);
  for (std::string line; std::getline(lines, line); ++events)
    bytes += nlohmann::json::parse(line).at("fields").at("IoSize").get<std::uint64_t>();
  ASSERT_GT(events, 10u) << exported.err;
  std::vector<std::string> line = {"profile", trace,         "-p",    "*",      "--symbols", "none",
                                   "--event", "FileIO/Read", "--sum", "iosize", "--json"};
  const auto all = nlohmann::json::parse(testing::run_tool(line).out);
  EXPECT_EQ(all.at("selected"), bytes);
  EXPECT_EQ(all.at("unit"), "bytes");
  EXPECT_EQ(all.at("summed"), "IoSize");
  EXPECT_EQ(all.at("accounting").at("samples"), events);
  line.back() = "--tree";
  const testing::ToolRun text = testing::run_tool(line);
  EXPECT_NE(text.out.find("B of IoSize, "), std::string::npos) << text.out;
  const testing::ToolRun diff = testing::run_tool(
      {"diff", trace, trace, "-p", "*", "--symbols", "none", "--event", "FileIO/Read", "--sum", "IoSize"});
  EXPECT_EQ(diff.status, 0);
  EXPECT_NE(diff.out.find("IoSize a trace: "), std::string::npos) << diff.out << diff.err;
  EXPECT_NE(diff.out.find("B after, +0.0%"), std::string::npos) << diff.out;
  line = {"profile", trace,         "-p",     "*",      "--symbols", "none",
          "--event", "FileIO/Read", "--leaf", "Offset", "--top",     "0"};
  EXPECT_NE(testing::run_tool(line).out.find(" Offset: "), std::string::npos);
  // Other events of the same name have other fields.
  line = {"profile", trace, "-p", "*", "--event", "DiskIO/*", "--sum", "TransferSize"};
  EXPECT_NE(testing::run_tool(line).err.find(" events weigh nothing: they have no TransferSize"),
            std::string::npos);
  for (const auto &[more, status, said] : std::vector<std::tuple<std::vector<std::string>, int, std::string>>{
           {{"--sum", "IoSize"}, 2, "--sum requires --event"},
           {{"--event", "FileIO/Read", "--sum", "Size"}, 1, "--sum: none of these events has one number"}}) {
    line = {"profile", trace};
    line.insert(line.end(), more.begin(), more.end());
    const testing::ToolRun run = testing::run_tool(line);
    EXPECT_EQ(run.status, status) << run.err;
    EXPECT_NE(run.err.find(said), std::string::npos) << run.err;
  }
}

// Who asked for it is at the beginning of a request, how much and of which file at its end.
TEST(ProfileText, WhatADiskReadsIsWhatAnExportShowsAtTheStacksOfItsBeginnings) {
  const auto trace = testing::trace_path("net.4.5.2.x64");
  if (!trace) GTEST_SKIP() << "the real traces are not here";
  using Bytes = std::map<std::string, std::uint64_t>;
  const auto folded = [&trace](const std::vector<std::string> &more) {
    std::vector<std::string> line = {"profile",   trace->string(), "-p",       "*",      "-o",     "-",
                                     "--symbols", "none",          "--format", "folded", "--event"};
    line.insert(line.end(), more.begin(), more.end());
    std::istringstream lines(testing::run_tool(line).out);
    Bytes stacks;
    for (std::string text; std::getline(lines, text);)
      stacks[text.substr(0, text.rfind(' '))] += std::stoull(text.substr(text.rfind(' ') + 1));
    return stacks;
  };
  EXPECT_EQ(folded({"DiskIO/Read"}), folded({"DiskIO/ReadInit"}));
  Bytes expected, files;
  const testing::ToolRun exported =
      testing::run_tool({"export", trace->string(), "--event", "DiskIO/Read", "--join", "file"});
  for (const nlohmann::json &event : testing::json_lines(exported.out))
    expected[event.at("file")] += event.at("fields").at("TransferSize").get<std::uint64_t>();
  for (const auto &[stack, bytes] : folded({"DiskIO/Read", "--sum", "TransferSize", "--leaf", "file"})) {
    EXPECT_EQ(stack.find("[no stack]"), std::string::npos) << stack;
    files[stack.substr(stack.rfind(";file: ") + 7)] += bytes;
  }
  EXPECT_EQ(files, expected);
  EXPECT_EQ(files.size(), 31u);
}

TEST(ProfileText, HowLongThingsTookIsWhatAnExportShows) {
  const auto trace = testing::trace_path("net.4.5.2.x64");
  if (!trace) GTEST_SKIP() << "the real traces are not here";
  const std::vector<std::string> of = {"-p", "*", "--symbols", "none", "--sum", "duration"};
  for (const std::string event : {"DiskIO/*", "GC/Stop", "Process/End", "Thread/End", "Memory/HardFault"}) {
    const testing::ToolRun exported =
        testing::run_tool({"export", trace->string(), "--event", event, "--join", "duration"});
    std::uint64_t expected = 0, ended = 0, all = 0;
    for (const nlohmann::json &one : testing::json_lines(exported.out)) {
      const std::uint64_t took = one.value("duration_ns", std::uint64_t{0});
      if (event == "Memory/HardFault") { // which say it themselves, in ticks of 100 ns
        EXPECT_EQ(took, 100 * (one.at("timestamp").get<std::uint64_t>() -
                               one.at("fields").at("InitialTime").get<std::uint64_t>()));
      }
      expected += took;
      ended += one.contains("duration_ns") ? 1 : 0;
      ++all;
    }
    ASSERT_GT(ended, 0u) << event;
    std::vector<std::string> line = {"profile", trace->string(), "--event", event, "--json"};
    line.insert(line.end(), of.begin(), of.end());
    const testing::ToolRun run = testing::run_tool(line);
    const auto profile = nlohmann::json::parse(run.out);
    EXPECT_EQ(profile.at("selected"), expected) << event;
    EXPECT_EQ(profile.at("unit"), "nanoseconds");
    const bool warned = run.err.find("events weigh nothing: they have no duration") != std::string::npos;
    EXPECT_EQ(warned, ended != all) << event << run.err;
  }
  std::vector<std::string> line = {"diff", trace->string(), trace->string(), "--event", "DiskIO/Read"};
  line.insert(line.end(), of.begin(), of.end());
  const testing::ToolRun diff = testing::run_tool(line);
  EXPECT_NE(diff.out.find("duration a trace: 2.013 s before, 2.013 s after"), std::string::npos) << diff.out;
}

TEST(ProfileText, TheAccountingOfProcessesAddsUp) {
  testing::SyntheticTrace t;
  std::int64_t time = 2'000'000;
  for (std::uint32_t process = 100; process <= 500; process += 100) {
    t.process_rundown({1'000'000 + process}, process, 4, "p" + std::to_string(process) + ".exe");
    t.thread_rundown({1'100'000 + process}, process + 1, process);
  }
  for (std::uint32_t process = 100; process <= 500; process += 100) {
    t.context_switch({time += 1000}, process + 1, 0);
    for (std::uint32_t i = 0; i < process / 100; ++i) {
      time += 10'000;
      t.sample({time}, process + 1, 0x7FF6'0000'1000);
      if (i % 2 == 0)
        t.stack_walk({time + 1}, time, process, process + 1, {0x7FF6'0000'1000, 0x7FF6'0000'2000});
    }
    t.stack_walk({time + 5}, time + 3, process, process + 1, {0x7FF6'0000'1000}); // of nothing
  }
  const std::vector<std::uint8_t> bytes = t.bytes();
  const std::string trace = new_folder("accounting") + "/x.etl";
  write_file(trace, std::string(bytes.begin(), bytes.end()));
  for (const std::string top : {"0", "2"}) {
    const testing::ToolRun run = testing::run_tool({"profile", trace, "--by", "process", "--top", top});
    ASSERT_EQ(run.status, 0) << run.err;
    std::map<std::string, Numbers> rows = accounting_of(run.out);
    ASSERT_TRUE(rows.contains("all")) << run.out;
    const Numbers all = rows["all"];
    EXPECT_EQ(all, (Numbers{15, 9, 0, 0, 6, 14, 9, 0, 5})) << run.out;
    EXPECT_EQ(rows["p500.exe (500)"], (Numbers{5, 3, 0, 0, 2, 4, 3, 0, 1})) << run.out;
    rows.erase("all");
    EXPECT_EQ(rows.size(), top == "0" ? 5u : 3u) << run.out;
    Numbers sum(all.size());
    for (const auto &[name, row] : rows) {
      EXPECT_EQ(row[0], row[1] + row[2] + row[3] + row[4]) << name;
      EXPECT_EQ(row[5], row[6] + row[7] + row[8]) << name;
      for (std::size_t i = 0; i < sum.size(); ++i)
        sum[i] += row[i];
    }
    EXPECT_EQ(sum, all) << run.out;
  }
}

using Samples = std::map<std::string, unsigned>;

// A trace with that many samples of each process; an interval (100 ns) of 0 is not recorded.
std::string sampled(const std::string &name, const Samples &samples, std::uint32_t interval = 0) {
  testing::SyntheticTrace t;
  if (interval != 0)
    t.emit({1'000'000}, [&](write::EventBuilder &e) {
      e.perfinfo(0x0F49, 3, 8, 1'000'000).value(0).value(interval).value(interval);
    });
  std::uint32_t process = 0;
  std::int64_t time = 2'000'000;
  for (const auto &[image, count] : samples) {
    process += 100;
    t.process_rundown({1'000'000 + process}, process, 4, image);
    t.thread_rundown({1'100'000 + process}, process + 1, process);
  }
  process = 0;
  for (const auto &[image, count] : samples) {
    process += 100;
    t.context_switch({time += 1000}, process + 1, 0);
    for (unsigned i = 0; i < count; ++i) {
      time += 10'000;
      t.sample({time}, process + 1, 0x7FF6'0000'1000);
      t.stack_walk({time + 1}, time, process, process + 1, {0x7FF6'0000'1000, 0x7FF6'0000'2000});
    }
  }
  const std::vector<std::uint8_t> bytes = t.bytes();
  std::string trace = new_folder(name) + "/x.etl";
  write_file(trace, std::string(bytes.begin(), bytes.end()));
  return trace;
}

TEST(ProfileText, ByProcessHasThoseThatWereAskedFor) {
  const std::string trace = sampled("by_process", {{"game.exe", 20}, {"quiet.exe", 5}});
  const std::string all = testing::run_tool({"profile", trace, "--by", "process"}).out,
                    some = testing::run_tool({"profile", trace, "--by", "process", "-p", "quiet.exe"}).out;
  EXPECT_NE(all.find("game.exe"), std::string::npos) << all;
  EXPECT_EQ(some.find("game.exe"), std::string::npos) << some;
  EXPECT_NE(some.find("20.0%  quiet.exe"), std::string::npos) << some; // of all samples
  // What a program reads tells of the whole trace, whatever is selected.
  const testing::ToolRun run = testing::run_tool({"profile", trace, "-p", "quiet.exe", "--json"});
  EXPECT_EQ(nlohmann::json::parse(run.out)["processes"].size(), 2u) << run.out;
}

TEST(ProfileText, AStretchIsNotCalledTheWholeTrace) {
  const std::string trace = sampled("stretch", {{"game.exe", 400}});
  const std::vector<std::string> stretch = {"profile", trace, "--from", "100ms", "--to", "250ms", "-p", "*"};
  const auto with = [&stretch](std::vector<std::string> more) {
    more.insert(more.begin(), stretch.begin(), stretch.end());
    const testing::ToolRun run = testing::run_tool(more);
    EXPECT_EQ(run.status, 0) << run.err;
    return run.out;
  };
  EXPECT_NE(with({}).find("x.etl: 0.150 s from 0.100 s on"), std::string::npos) << with({});
  const nlohmann::json of = nlohmann::json::parse(with({"--json"}));
  EXPECT_DOUBLE_EQ(of["from_seconds"].get<double>(), 0.1);
  EXPECT_DOUBLE_EQ(of["to_seconds"].get<double>(), 0.25);
  const nlohmann::json whole = nlohmann::json::parse(testing::run_tool({"profile", trace, "--json"}).out);
  EXPECT_EQ(of["duration_seconds"], whole["duration_seconds"]);
  EXPECT_FALSE(whole.contains("from_seconds"));
  EXPECT_NE(with({"--format", "svg", "-o", "-"}).find("0.15 s from 0.1 s on"), std::string::npos);
}

TEST(ProfileText, HowMuchWasLostOfATraceThatWasNeverClosedIsNotKnown) {
  testing::SyntheticTrace t({.closed = false});
  t.process_rundown({1'000'100}, 100, 4, "game.exe");
  t.thread_rundown({1'000'101}, 101, 100);
  t.sample({2'000'000}, 101);
  const std::vector<std::uint8_t> bytes = t.bytes();
  const std::string trace = new_folder("unclosed") + "/x.etl";
  write_file(trace, std::string(bytes.begin(), bytes.end()));
  const std::string text = testing::run_tool({"profile", trace}).out;
  EXPECT_NE(text.find("lost is not known"), std::string::npos) << text;
  EXPECT_TRUE(
      nlohmann::json::parse(testing::run_tool({"profile", trace, "--json"}).out)["events_lost"].is_null());
  EXPECT_NE(testing::run_tool({"info", trace}).out.find("Lost            not known"), std::string::npos);
}

TEST(ProfileText, AFolderOfSymbolsThatIsNotThereIsTold) {
  const std::string trace = sampled("no_symbols", {{"game.exe", 20}});
  const testing::ToolRun run = testing::run_tool({"profile", trace, "--symbols", trace + ".nosuch"});
  EXPECT_EQ(run.status, 0);
  EXPECT_NE(run.err.find("no such folder"), std::string::npos) << run.err;
  EXPECT_EQ(testing::run_tool({"profile", trace, "--symbols", "none"}).err.find("no such"),
            std::string::npos);
}

TEST(ProfileText, WhatIsAboutAFileNeedsOne) {
  const std::string trace = sampled("no_file", {{"game.exe", 20}});
  for (const std::vector<std::string> &more :
       {std::vector<std::string>{"--format", "svg"}, {"--max-size", "1M"}, {"--icicle"}, {"-f"}}) {
    std::vector<std::string> line{"profile", trace};
    line.insert(line.end(), more.begin(), more.end());
    const testing::ToolRun run = testing::run_tool(line);
    EXPECT_EQ(run.status, 2) << more[0];
    EXPECT_EQ(run.out, "");
  }
}

TEST(ProfileText, AFormatIsAskedForByNameOrEnding) {
  const std::string trace = sampled("formats", {{"game.exe", 20}}), file = new_folder("formats_out") + "/x";
  const auto written = [&](const std::string &format) {
    const testing::ToolRun run =
        testing::run_tool({"profile", trace, "--symbols", "none", "--format", format, "-f", "-o", file});
    EXPECT_EQ(run.status, 0) << format << ": " << run.err;
    return read_file(file);
  };
  for (const auto &[name, ending] : std::vector<std::pair<std::string, std::string>>{
           {"pprof", "pb.gz"}, {"speedscope", ".speedscope.json"}, {"folded", "folded"}, {"svg", ".svg"}}) {
    const std::string by_name = written(name);
    EXPECT_FALSE(by_name.empty());
    EXPECT_TRUE(by_name == written(ending)) << ending;
  }
  const testing::ToolRun wrong =
      testing::run_tool({"profile", trace, "--format", "flame", "-o", file + ".svg"});
  EXPECT_EQ(wrong.status, 2);
  EXPECT_EQ(wrong.err.find("--output"), std::string::npos) << wrong.err;
  const std::string names = "{svg,html,folded,speedscope,firefox,pprof,chrome}";
  EXPECT_NE(wrong.err.find("--format: flame not in " + names), std::string::npos) << wrong.err;
  EXPECT_NE(testing::run_tool({"profile", "--help"}).out.find(names), std::string::npos);
}

TEST(ProfileText, ContextSwitchesAreDrawnWithoutSamples) {
  testing::SyntheticTrace t;
  t.process_rundown({1'000'001}, 100, 4, "game.exe");
  t.thread_rundown({1'000'002}, 101, 100);
  for (int i = 0; i < 10; ++i)
    t.context_switch({2'000'000 + 10'000 * i}, i % 2 == 0 ? 101 : 0, i % 2 == 0 ? 0 : 101);
  const std::vector<std::uint8_t> bytes = t.bytes();
  const std::string folder = new_folder("switches"), trace = folder + "/x.etl",
                    file = folder + "/x.trace.json";
  write_file(trace, std::string(bytes.begin(), bytes.end()));
  const testing::ToolRun run = testing::run_tool({"profile", trace, "-p", "game.exe", "-o", file});
  ASSERT_EQ(run.status, 0) << run.err;
  const nlohmann::json events = nlohmann::json::parse(read_file(file))["traceEvents"];
  EXPECT_GE(std::ranges::count_if(events, [](const auto &e) { return e["ph"] == "X"; }), 5);
  EXPECT_NE(testing::run_tool({"profile", trace}).err.find("holds no CPU samples"), std::string::npos);
  // And samples alone are no switches.
  const std::string samples = folder + "/y.etl";
  testing::SyntheticTrace only;
  only.sample({2'000'000}, 101);
  const std::vector<std::uint8_t> others = only.bytes();
  write_file(samples, std::string(others.begin(), others.end()));
  const testing::ToolRun none = testing::run_tool({"profile", samples, "--format", "chrome", "-o", "-"});
  EXPECT_EQ(none.status, 1);
  EXPECT_NE(none.err.find("holds no context switches: expected Thread/CSwitch"), std::string::npos)
      << none.err;
}

TEST(ProfileText, APictureIsOfTheBusiestProcessHoweverItsEndingIsWritten) {
  const std::string trace = sampled("picture", {{"game.exe", 20}, {"quiet.exe", 5}});
  for (const char *ending : {".svg", ".SVG"}) {
    const testing::ToolRun run = testing::run_tool({"profile", trace, "-o", trace + ending});
    EXPECT_EQ(run.status, 0) << run.err;
    EXPECT_NE(run.err.find("of game.exe (100), the busiest process"), std::string::npos) << run.err;
    EXPECT_EQ(read_file(trace + ending).find("quiet.exe"), std::string::npos) << ending;
  }
}

TEST(SymbolsText, AModuleIsOneHoweverManyProcessesLoadedIt) {
  testing::SyntheticTrace t;
  for (const std::uint32_t pid : {100u, 200u, 300u}) {
    const std::uint64_t base = 0x7FF6'0000'0000 + pid * 0x10'0000ull;
    t.process_rundown({1'000'000 + pid}, pid, 4, "game.exe");
    t.thread_rundown({1'100'000 + pid}, pid + 1, pid);
    t.image_rundown({1'200'000 + pid}, pid, base);
    t.sample({2'000'000 + pid}, pid + 1, base + 0x1000);
  }
  const std::vector<std::uint8_t> bytes = t.bytes();
  const std::string trace = new_folder("one_module") + "/x.etl";
  write_file(trace, std::string(bytes.begin(), bytes.end()));
  const testing::ToolRun run = testing::run_tool({"symbols", trace, "--json", "--symbols", "none"});
  ASSERT_EQ(run.status, 0) << run.err;
  const nlohmann::json modules = nlohmann::json::parse(run.out)["modules"];
  ASSERT_EQ(modules.size(), 1u) << run.out;
  EXPECT_EQ(modules[0]["module"], "a.dll");
  EXPECT_EQ(modules[0]["self"], 3);
}

TEST(ProfileText, ATraceThatIsNamedTwiceIsNoSecondRun) {
  const std::string one = sampled("once", {{"game.exe", 20}}), other = sampled("other", {{"game.exe", 20}});
  for (const std::vector<std::string> &line :
       {std::vector<std::string>{"profile", one, one}, {"diff", one, one, "--", other}}) {
    const testing::ToolRun run = testing::run_tool(line);
    EXPECT_EQ(run.status, 2);
    EXPECT_NE(run.err.find("is named twice"), std::string::npos) << run.err;
  }
  EXPECT_EQ(testing::run_tool({"diff", one, "--", one}).status, 0) << "against itself is fair";
}

TEST(ProfileText, ATraceWithoutSamplesAddsNothingToOthersAndSaysSo) {
  const std::string with = sampled("with_samples", {{"game.exe", 3}}),
                    without = sampled("without_samples", {{"game.exe", 0}});
  const auto profile = [](std::vector<std::string> traces) {
    traces.insert(traces.begin(), {"profile", "--symbols", "none", "--json"});
    return testing::run_tool(std::move(traces));
  };
  const testing::ToolRun alone = profile({with}), both = profile({without, with});
  ASSERT_EQ(alone.status, 0) << alone.err;
  ASSERT_EQ(both.status, 0) << both.err;
  EXPECT_EQ(nlohmann::json::parse(both.out)["accounting"]["total"],
            nlohmann::json::parse(alone.out)["accounting"]["total"]);
  EXPECT_NE(both.err.find(without + ": the trace holds no CPU samples: it adds nothing to the others"),
            std::string::npos)
      << both.err;
  const testing::ToolRun nothing = profile({without});
  EXPECT_EQ(nothing.status, 1);
  EXPECT_TRUE(nothing.out.empty()) << nothing.out;
}

TEST(ProfileText, WhoAsksForAnotherProcessLearnsWhichThereAre) {
  const std::string trace = sampled("another", {{"quiet.exe", 5}, {"game.exe", 20}});
  EXPECT_EQ(testing::run_tool({"profile", trace, "--symbols", "none", "-p", "game"}).out,
            testing::run_tool({"profile", trace, "--symbols", "none", "-p", "game.exe"}).out);
  const testing::ToolRun run = testing::run_tool({"profile", trace, "--symbols", "none", "-p", "gam"});
  EXPECT_EQ(run.status, 1);
  EXPECT_NE(run.err.find("called or numbered \"gam\": most samples are of game.exe, quiet.exe\n"),
            std::string::npos)
      << run.err;
}

// What cannot be written is no reason to read a large trace first: nothing else is said of it.
TEST(ProfileText, AnOutputThatIsThereIsFoundBeforeATraceIsRead) {
  const std::string no_trace = new_folder("no_trace") + "/x.etl", picture = no_trace + ".svg";
  write_file(no_trace, "this is none");
  write_file(picture, "mine");
  for (const std::vector<std::string> &line : {std::vector<std::string>{"profile", no_trace, "-o", picture},
                                               {"diff", no_trace, no_trace, "-o", picture}}) {
    const testing::ToolRun run = testing::run_tool(line);
    EXPECT_EQ(run.status, 1);
    EXPECT_NE(run.err.find(picture + ": exists already"), std::string::npos) << run.err;
    EXPECT_EQ(run.err.find("BufferSize"), std::string::npos) << run.err;
  }
  EXPECT_EQ(read_file(picture), "mine");
}

TEST(ProfileText, OfTwoTracesTheSecondIsTheNewOne) {
  const std::string one = sampled("old", {{"game.exe", 20}}), other = sampled("new", {{"game.exe", 30}});
  const auto diff = [](std::vector<std::string> traces) {
    traces.insert(traces.begin(), {"diff", "--symbols", "none", "--json"});
    return testing::run_tool(std::move(traces));
  };
  const testing::ToolRun run = diff({one, other}), said = diff({one, "--", other});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.out, said.out);
  EXPECT_LT(nlohmann::json::parse(run.out)["total"]["before"],
            nlohmann::json::parse(run.out)["total"]["after"]);
  EXPECT_EQ(diff({one}).status, 2);
  EXPECT_EQ(diff({one, other, one + "/../third.etl"}).status, 2) << "which are old is not said";
}

TEST(ProfileText, WhatIsAboutTablesIsRefusedWithAnOutput) {
  const std::string trace = sampled("with_output", {{"game.exe", 20}}), picture = trace + ".svg",
                    folder = trace + ".files";
  for (const auto &[more, named] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"-o", picture, "--json"}, "--json"},
           {{"-o", picture, "--tree"}, "--tree"},
           {{"-o", picture, "--top", "3"}, "--top"},
           {{"-o", trace + ".html", "--icicle"}, "--icicle"},
           {{"--out-dir", folder, "--format", "folded", "--tree"}, "--tree"},
           {{"--out-dir", folder, "--format", "folded", "--icicle"}, "--icicle"},
           {{"--out-dir", folder, "--format", "svg", "--kind", "wait", "--idle"}, "--idle"},
           {{"--min", "5"}, "--min"},
           {{"--tree", "--by", "module"}, "--tree"}}) {
    std::vector<std::string> line{"profile", trace};
    line.insert(line.end(), more.begin(), more.end());
    const testing::ToolRun run = testing::run_tool(line);
    EXPECT_EQ(run.status, 2) << more.back();
    EXPECT_NE(run.err.find(named), std::string::npos) << run.err;
    EXPECT_FALSE(std::filesystem::exists(picture) || std::filesystem::exists(folder));
  }
}

TEST(ProfileText, WaitsHaveNoIdleProcess) {
  const testing::ToolRun run =
      testing::run_tool({"profile", sampled("no_waits", {{"game.exe", 20}}), "--kind", "wait", "--idle"});
  EXPECT_EQ(run.status, 2);
  EXPECT_NE(run.err.find("--idle is about samples"), std::string::npos) << run.err;
}

TEST(ProfileText, AProfileGoesDownAPipe) {
  const std::string trace = sampled("pipe", {{"game.exe", 20}}), file = new_folder("pipe_out") + "/x.folded";
  ASSERT_EQ(testing::run_tool({"profile", trace, "-o", file}).status, 0);
  const testing::ToolRun piped = testing::run_tool({"profile", trace, "--format", "folded", "-o", "-"});
  EXPECT_EQ(piped.status, 0) << piped.err;
  EXPECT_EQ(piped.out, read_file(file));
  EXPECT_FALSE(piped.out.empty());
  EXPECT_EQ(testing::run_tool({"profile", trace, "-o", "-"}).status, 2) << "which format?";
}

// A gate with a mistyped name would let everything through.
TEST(DiffText, AConditionThatNamesNothingFails) {
  const std::string trace = sampled("gate", {{"game.exe", 20}});
  const auto gate = [&](const std::string &condition) {
    return testing::run_tool(
        {"diff", trace, "--", trace, "--symbols", "none", "--json", "--fail-if", condition});
  };
  const testing::ToolRun mistyped = gate("gmae.exe!* > +10%");
  EXPECT_EQ(mistyped.status, 1);
  EXPECT_NE(mistyped.err.find("no function of either side has that name"), std::string::npos) << mistyped.err;
  EXPECT_EQ(nlohmann::json::parse(mistyped.out)["failed"][0]["condition"], "gmae.exe!* > +10%");
  EXPECT_EQ(gate("* > +10%").status, 0);
  EXPECT_EQ(gate("total > +10%").status, 0);
}

// A process may have a name that is a pattern, or the id of another one.
TEST(DiffText, TheBusiestProcessIsTakenByItsName) {
  for (const std::string name : {"*", "?", "0", "o*"}) {
    const std::string trace = sampled("busiest", {{name, 20}, {"other.exe", 10}, {"o", 5}}, 10'000);
    const testing::ToolRun run =
        testing::run_tool({"diff", trace, "--", trace, "--symbols", "none", "--json"});
    EXPECT_EQ(run.status, 0) << run.err;
    EXPECT_DOUBLE_EQ(nlohmann::json::parse(run.out)["total"]["before"].get<double>(), 0.020) << name;
  }
}

TEST(DiffText, EventsAreCounted) {
  const std::string few = sampled("few", {{"game.exe", 20}}), many = sampled("many", {{"game.exe", 60}});
  const std::vector<std::string> line = {"diff",           few, many, "--symbols", "none", "--event",
                                         "PerfInfo/Sample"};
  const testing::ToolRun text = testing::run_tool(line);
  EXPECT_EQ(text.status, 0);
  EXPECT_NE(text.out.find("Events a trace: 20 before, 60 after, +200.0%"), std::string::npos) << text.out;
  EXPECT_EQ(text.err.find("interval"), std::string::npos) << text.err;
  std::vector<std::string> gate = line;
  gate.insert(gate.end(), {"--json", "--fail-if", "total > +5%"});
  const testing::ToolRun closed = testing::run_tool(gate);
  EXPECT_EQ(closed.status, 1);
  EXPECT_EQ(nlohmann::json::parse(closed.out)["total"]["after"], 60);
  std::vector<std::string> none = line;
  none.back() = "DiskIO/Read";
  const testing::ToolRun empty = testing::run_tool(none);
  EXPECT_EQ(empty.status, 1);
  EXPECT_NE(empty.err.find("no event fits --event"), std::string::npos) << empty.err;
}

TEST(DiffText, AnIntervalThatIsNotRecordedIsTold) {
  const auto said = [](const std::string &trace) {
    const testing::ToolRun run = testing::run_tool({"diff", trace, "--new", trace});
    EXPECT_EQ(run.status, 0) << run.err;
    return run.err.find("the sampling interval is not recorded") != std::string::npos;
  };
  EXPECT_TRUE(said(sampled("unknown", {{"game.exe", 20}})));
  EXPECT_FALSE(said(sampled("known", {{"game.exe", 20}}, 10'000)));
}

} // namespace
} // namespace etwrelog
