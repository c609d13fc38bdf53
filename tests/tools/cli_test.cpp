// The command line: exit status, one-line messages, inputs of every wrapping, and what a signal or a full
// disk leaves.
#include "tests/support/run_tool.hpp"
#include "tests/support/synthetic_trace.hpp"

#include <gtest/gtest.h>

#include <archive.h>
#include <archive_entry.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <thread>

namespace etwrelog {
namespace {

using nlohmann::json;
using testing::run_tool;
using testing::TempDir;
using testing::ToolRun;
using Names = std::vector<std::string>;

class Cli : public ::testing::Test {
protected:
  Cli() {
    t.process_rundown({1'000'100}, 100, 4, "target.exe", "target -x");
    t.process_rundown({1'000'101}, 200, 4, "other.exe");
    t.thread_rundown({1'000'102}, 110, 100);
    t.thread_rundown({1'000'103}, 210, 200);
    for (int i = 0; i < 300; ++i)
      t.sample({2'000'000 + i, static_cast<std::uint16_t>(i % 2)}, i % 3 == 0 ? 110 : 210);
    testing::write_file(in, t.bytes());
  }
  static void expect_one_line(const ToolRun &run) {
    EXPECT_EQ(run.err.find("etwrelog: error: "), 0u) << run.err;
    EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
    EXPECT_EQ(run.out, "");
  }
  ToolRun relog(std::vector<std::string> more) {
    more.insert(more.begin(), {"relog", in, "-o", out});
    return run_tool(more);
  }
  testing::SyntheticTrace t;
  TempDir directory;
  std::string in = directory.file("in.etl"), out = directory.file("out.etl");
};

TEST_F(Cli, InfoTellsNoLocalTimeOfATimeThatIsNone) {
  constexpr std::int64_t kLast = std::numeric_limits<std::int64_t>::max();
  for (const std::int64_t start : {-kLast - 1, std::int64_t{-1}, std::int64_t{0}, std::int64_t{1}, kLast})
    for (const std::int32_t bias : {-60, 60}) {
      std::vector<std::uint8_t> bytes = testing::SyntheticTrace().bytes();
      std::uint8_t *header = &bytes[format::kBufferHeaderSize + format::kSystemHeaderSize];
      store(header + format::kLogfileHeader64.start_time, start);
      store(header + format::kLogfileHeader64.bias, bias);
      testing::write_file(in, bytes);
      const ToolRun run = run_tool({"info", in});
      EXPECT_EQ(run.status, 0) << run.err;
      EXPECT_EQ(run.out.find("1601-01-01 01:00:00 local, UTC+01:00") != std::string::npos,
                start == 1 && bias == -60)
          << run.out;
      EXPECT_EQ(run.out.find(" local") != std::string::npos, start == 1 && bias == -60) << run.out;
    }
}

TEST_F(Cli, PartsAreJoinedIntoAPipeAndSayWhatTheyAre) {
  const std::string one = directory.file("p1"), other = directory.file("p2"),
                    whole = directory.file("w.etlz");
  ASSERT_EQ(run_tool({"pack", in, "--part", "1/2", "-o", one, "-q"}).status, 0);
  ASSERT_EQ(run_tool({"pack", in, "--part", "2/2", "-o", other, "-q"}).status, 0);
  ASSERT_EQ(run_tool({"pack", in, "-o", whole, "-q"}).status, 0);
  const ToolRun joined = run_tool({"join", one, other, "-o", "-"}, {.directory = directory.path().string()});
  EXPECT_EQ(joined.status, 0);
  const auto expected = testing::read_file(whole);
  EXPECT_TRUE(joined.out == std::string(expected.begin(), expected.end()));
  EXPECT_FALSE(std::filesystem::exists(directory.file("-")));
  for (const std::vector<std::string> &line :
       {std::vector<std::string>{"info", one}, {"unpack", one, "-o", out}}) {
    const ToolRun run = run_tool(line);
    EXPECT_EQ(run.status, 1);
    EXPECT_NE((run.err + run.out).find("one part of an archive"), std::string::npos) << run.err << run.out;
  }
}

// As "$FROM" of a script in which nothing set it: all of the trace would be taken for what was asked for.
TEST_F(Cli, EmptyArgumentsAreRefused) {
  for (const std::vector<std::string> &line : {std::vector<std::string>{"export", in, "--from", ""},
                                               {"export", in, "--where="},
                                               {"export", in, "-o", ""},
                                               {"info", ""},
                                               {"relog", in, "-o", out, "-p", ""}}) {
    const ToolRun run = run_tool(line);
    EXPECT_EQ(run.status, 2) << line.back();
    EXPECT_EQ(run.out, "");
    EXPECT_NE(run.err.find("empty"), std::string::npos) << run.err;
  }
  EXPECT_FALSE(std::filesystem::exists(out));
}

TEST_F(Cli, OfSeveralTracesThoseThatFailStandInTheList) {
  for (const char *command : {"info", "stats", "stacks"}) {
    const ToolRun run = run_tool({command, in, directory.file("none.etl"), "--json"});
    EXPECT_EQ(run.status, 1) << command;
    const json list = json::parse(run.out);
    ASSERT_EQ(list.size(), 2u) << command;
    EXPECT_FALSE(list[0].contains("error"));
    EXPECT_EQ(list[1]["file"], directory.file("none.etl"));
    EXPECT_NE(list[1]["error"].get<std::string>().find("cannot open"), std::string::npos);
  }
}

// Each would be ignored otherwise.
TEST_F(Cli, OptionsThatMeanNothingTogetherAreRefused) {
  const std::string folder = directory.file("folder");
  for (const auto &[line, named] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"export", in, "--json"}, "--json"},
           {{"export", in, "--verify", "--report"}, "--verify"},
           {{"export", in, "--profile", "timeline", "--messages"}, "--messages"},
           {{"export", in, "--out-dir", folder, "--profile", "timeline", "--messages"}, "--messages"},
           {{"relog", in, "-o", out, "--keep-system"}, "--keep-system"},
           {{"pack", in, "-o", out, "--out-dir", folder}, "--out-dir"},
           {{"pack", in, "-o", "-", "--json"}, "--json"},
           {{"pack", in, "--part", "1/2", "-o", out, "--json"}, "--json"},
           {{"stacks", in, "-f"}, "--force"},
           {{"diff", in, "--", in, "-f"}, "--force"},
           {{"diff", in, "--", in, "-o", folder}, "no ending"},
           {{"symbols", in, "--apply", "--json"}, "--json"},
           {{"info", in, "--skip-existing"}, "--sum"},
           {{"info", "--sum", "-"}, "--sum"},
           {{"info", in, "-r"}, "--sum"},
           {{"stats", directory.path().string(), "-r", "--as-one"}, "--as-one"},
           {{"stats", in, "--results", folder, "--as-one"}, "--as-one"},
           {{"info", in, "--sum", "--as-one"}, "--as-one"},
           {{"profile", in, "--out-dir", folder, "--format", "svg", "--as-one"}, "--as-one"},
           {{"symbols", in, "--fetch", "--symbols", "none"}, "--symbols none"},
           {{"profile", in, "--symbols", "none", "--symbol-server"}, "--symbols none"},
           {{"diff", in, "--symbols", "none", "--symbol-server=http://localhost:1", "--", in},
            "--symbols none"},
           {{"symbols", in, "--symbols", "none", "--symbols", folder}, "--symbols none"},
           {{"relog", in, "-o", out, "--codec", "none", "--level", "max"}, "--level"},
           {{"merge", in, "-o", out, "--codec", "none", "--level", "max"}, "--level"},
           {{"export", in, "-f"}, "--force"},
           {{"export", in, "--by-kind", "--format", "sqlite", "-o", folder}, "--by-kind"},
           {{"export", in, "--by-kind", "--format", "duckdb", "-o", folder}, "--by-kind"},
           {{"stacks", in, "--simulate-cache", "--buckets", "255"}, "256 to 4096"},
           {{"stacks", in, "--simulate-cache", "--buckets", "1021,4097"}, "256 to 4096"},
           {{"stacks", in, "--simulate-cache", "--cache-size", "2M"}, "3M to 50M"},
           {{"stacks", in, "--simulate-cache", "--cache-size", "4M,51M"}, "3M to 50M"},
           {{"fleet", "list", in, "--json"}, "--json"},
           {{"fleet", "report", in, "--shard", "1/2"}, "--shard"}}) {
    const ToolRun run = run_tool(line);
    EXPECT_EQ(run.status, 2) << line[0] << " " << line.back() << ": " << run.err;
    EXPECT_EQ(run.out, "") << line[0];
    EXPECT_NE(run.err.find(named), std::string::npos) << run.err;
  }
  EXPECT_EQ(directory.names(), Names{"in.etl"});
}

// CLI11 takes a flag's value behind "=" alone, so that Microsoft's server would be asked.
TEST_F(Cli, AServerWithABlankBeforeItIsNoTrace) {
  const std::string url = "https://symbols.example/store";
  for (const Names &line :
       {Names{"profile", "--symbol-server", url, in}, Names{"symbols", "--symbol-server", url, in},
        Names{"diff", in, "--symbol-server", "--", in, url}}) {
    const ToolRun run = run_tool(line);
    EXPECT_EQ(run.status, 2) << line[0];
    expect_one_line(run);
    EXPECT_NE(run.err.find("--symbol-server=" + url), std::string::npos) << run.err;
  }
}

TEST_F(Cli, WhatIsMissingIsAskedForAsItIsWritten) {
  const std::string other = directory.file("other.etl");
  std::filesystem::copy_file(in, other);
  for (const auto &[line, said] : std::vector<std::pair<Names, std::string>>{
           {{"diff", in}, "diff BASE... -- NEW..."},
           {{"query", in, other}, "the last argument must be the SQL statement"},
           {{"query", in, directory.file("none.etlz")}, "the last argument must be the SQL statement"},
           {{"query", in, "select * from event"}, "did you mean \"events\"?"},
           {{"query", in, "select * from quite_another"}, ".tables in the place of the statement"},
           {{"query", in, "select FileNam from events"}, "\"etwrelog schema\" lists the fields"},
           {{in}, "did you mean \"info "},
           {{"pack", in, "--part", "auto"}, "--part auto"},
           {{"pack", in, "--shard", "auto"}, "--shard auto"}}) {
    const ToolRun run = run_tool(line);
    EXPECT_EQ(run.status, 2) << line[0];
    expect_one_line(run);
    EXPECT_NE(run.err.find(said), std::string::npos) << run.err;
  }
}

TEST_F(Cli, ACommandWithoutATraceAsksForOne) {
  for (const char *command :
       {"info", "stats", "profile", "symbols", "stacks", "export", "schema", "query", "pack", "unpack"}) {
    const ToolRun run = run_tool({command});
    EXPECT_EQ(run.status, 2) << command;
    expect_one_line(run);
  }
}

TEST_F(Cli, WithoutACommandItSaysWhatLists) {
  const ToolRun run = run_tool({});
  EXPECT_EQ(run.status, 2);
  expect_one_line(run);
  EXPECT_NE(run.err.find("no command is given; \"etwrelog --help\" lists commands"), std::string::npos)
      << run.err;
}

TEST_F(Cli, ALevelThatHasNothingToCompressIsTold) {
  const auto told = [this](const std::string &from, const Names &more) {
    Names line{"relog", from, "-q", "-f", "-o", out, "--level", "max"};
    line.insert(line.end(), more.begin(), more.end());
    const ToolRun run = run_tool(line);
    EXPECT_EQ(run.status, 0) << run.err;
    return run.err.find("--level does nothing") != std::string::npos;
  };
  EXPECT_TRUE(told(in, {}));
  EXPECT_FALSE(told(in, {"--codec", "xpress"}));
  std::filesystem::rename(out, directory.file("compressed.etl"));
  EXPECT_FALSE(told(directory.file("compressed.etl"), {}));
  const ToolRun piped = run_tool({"relog", "-", "--single-pass", "-q", "-f", "-o", out, "--level", "max"},
                                 {.input = directory.file("compressed.etl")});
  EXPECT_EQ(piped.err, "");
}

// The archive is whole each time: what is asked for and not done is the same.
TEST_F(Cli, AnOriginalThatStaysIsToldInEveryRun) {
  if (std::system(("chattr +i '" + in + "' 2>/dev/null").c_str()) != 0)
    GTEST_SKIP() << "no file can be made immutable here";
  const Names line{"pack", in, "-o", out, "--delete-original", "--skip-existing"};
  const ToolRun first = run_tool(line), second = run_tool(line);
  EXPECT_EQ(std::system(("chattr -i '" + in + "'").c_str()), 0);
  for (const ToolRun &run : {first, second}) {
    EXPECT_EQ(run.status, 4) << run.err;
    EXPECT_NE(run.err.find("cannot be deleted"), std::string::npos) << run.err;
  }
  const ToolRun third = run_tool(line);
  EXPECT_EQ(third.status, 0) << third.err;
  EXPECT_NE(third.out.find("original deleted"), std::string::npos) << third.out;
  EXPECT_FALSE(std::filesystem::exists(in));
}

TEST_F(Cli, PackTellsOfMissingBuffers) {
  testing::SyntheticTrace several;
  for (int i = 0; i < 3; ++i) {
    several.sample({2'000'000 + i}, 110);
    several.end_buffer(0);
  }
  std::vector<std::uint8_t> bytes = several.bytes();
  bytes.resize(bytes.size() - 0x10000);
  testing::write_file(in, bytes);
  const ToolRun run = run_tool({"pack", in, "-o", out});
  EXPECT_EQ(run.status, 0);
  EXPECT_NE(run.err.find("the trace was cut short"), std::string::npos) << run.err;
  const ToolRun back = run_tool({"unpack", out, "-o", directory.file("back")});
  EXPECT_EQ(back.status, 0);
  EXPECT_TRUE(testing::read_file(directory.file("back")) == bytes);
}

TEST_F(Cli, ExitsWithZeroWhenDone) {
  EXPECT_EQ(run_tool({"--version"}).status, 0);
  EXPECT_EQ(run_tool({"--help"}).status, 0);
  EXPECT_EQ(run_tool({"relog", "--help"}).status, 0);
  for (const char *command : {"info", "stats"}) {
    const ToolRun plain = run_tool({command, in}), as_json = run_tool({command, "--json", in});
    EXPECT_EQ(plain.status, 0) << plain.err;
    EXPECT_EQ(plain.err, "");
    EXPECT_FALSE(plain.out.empty());
    EXPECT_EQ(as_json.status, 0);
    EXPECT_EQ(json::parse(as_json.out)["events"]["count"], t.count() + 1);
  }
  EXPECT_EQ(relog({"-q"}).err, "");
  EXPECT_TRUE(std::filesystem::exists(out));
}

TEST_F(Cli, ReportsWhatTheFilterDid) {
  const std::string report = directory.file("report.json");
  const ToolRun run = relog({"-p", "target.exe", "--report", report, "--json"});
  ASSERT_EQ(run.status, 0) << run.err;
  const auto bytes = testing::read_file(report);
  const json r = json::parse(bytes.begin(), bytes.end());
  EXPECT_EQ(r["input"]["events"], t.count() + 1);
  EXPECT_EQ(r["output"]["events"], json::parse(run_tool({"info", "--json", out}).out)["events"]["count"]);
  EXPECT_EQ(r["targets"][0]["pid"], 100);
  EXPECT_EQ(r["output"]["bytes"], std::filesystem::file_size(out));
  EXPECT_EQ(json::parse(run.out)["by_reason"], r["by_reason"]);
  const ToolRun trace_last = run_tool({"relog", "-o", out, "--force", "-p", "target.exe", in});
  EXPECT_EQ(trace_last.status, 0) << trace_last.err;
}

TEST_F(Cli, ExitsWithTwoOnWrongUsage) {
  const std::vector<Names> wrong = {{},
                                    {"nonsense"},
                                    {"info"},
                                    {"relog", in},
                                    {"info", "--nonsense", in},
                                    {"relog", in, "-o", out, "--codec", "zip"},
                                    {"relog", in, "-o", out, "--buffer-size", "huge"},
                                    {"relog", in, "-o", out, "--buffer-size", "512"},
                                    {"relog", in, "-o", out, "--buffer-size", "1G"},
                                    {"relog", in, "-o", out, "--from", "yesterday"},
                                    {"relog", in, "-o", out, "--from", "2s", "--to", "1s"},
                                    {"relog", in, "-o", out, "--event", "70000"},
                                    {"relog", in, "-o", out, "--event", "-1"},
                                    {"relog", in, "-o", out, "--provider", "nobody"},
                                    {"relog", in, "-o", out, "--cmdline", "("},
                                    {"relog", in, "-o", out, "--children"},
                                    {"relog", in, "-o", in, "-f"},
                                    {"relog", in, "-o", out, "--threads", "0"},
                                    {"relog", in, "-o", out, "--level", "best"},
                                    {"pack", in, "--level", "best"}};
  for (const Names &arguments : wrong) {
    const ToolRun run = run_tool(arguments);
    SCOPED_TRACE(arguments.empty() ? "" : arguments.back());
    EXPECT_EQ(run.status, 2);
    expect_one_line(run);
  }
  EXPECT_EQ(directory.names(), Names{"in.etl"});
  EXPECT_NE(run_tool({"pack", in, "--level", "best"}).err.find("best not in {fast,default,max,ultra}"),
            std::string::npos);
  EXPECT_NE(run_tool({"relog", in, "-o", out, "--level", "best"}).err.find("best not in {fast,default,max}"),
            std::string::npos);
}

TEST_F(Cli, BuffersThatStayAsTheyAreHaveTheirSize) {
  const ToolRun run =
      run_tool({"relog", in, "-o", directory.file("out.etl"), "--keep-order", "--buffer-size", "1M"});
  EXPECT_EQ(run.status, 2);
  EXPECT_NE(run.err.find("--buffer-size"), std::string::npos) << run.err;
}

TEST_F(Cli, TakesLevelsInAnyCase) {
  // Of a trace that holds little every level makes the same small archive.
  testing::SyntheticTrace large({.buffer_size = 64u << 10});
  std::uint32_t random = 1;
  for (int i = 0; i < 20'000; ++i) {
    std::vector<std::uint8_t> payload(24);
    for (std::uint8_t &byte : payload)
      byte = static_cast<std::uint8_t>((random = random * 1'664'525u + 1'013'904'223u) >> 28);
    large.manifest_event({2'000'000 + i * 3}, {}, 1, 2, payload);
  }
  testing::write_file(directory.file("in.etl"), large.bytes());
  for (const char *level : {"max", "MAX", "default"})
    EXPECT_EQ(run_tool({"pack", in, "-q", "--level", level, "-o", directory.file(level)}).status, 0);
  EXPECT_TRUE(testing::read_file(directory.file("max")) == testing::read_file(directory.file("MAX")));
  EXPECT_FALSE(testing::read_file(directory.file("max")) == testing::read_file(directory.file("default")));
}

TEST_F(Cli, ExitsWithOneWhenItCannot) {
  const std::string empty = directory.file("empty.etl"), garbage = directory.file("garbage.etl"),
                    zeros = directory.file("zeros.etl");
  testing::write_file(empty, {});
  testing::write_file(garbage, std::vector<std::uint8_t>(100'000, 'x'));
  testing::write_file(zeros, std::vector<std::uint8_t>(100'000));
  for (const std::string &file :
       {directory.file("missing.etl"), empty, garbage, zeros, directory.path().string()}) {
    for (const char *command : {"info", "stats"}) {
      const ToolRun run = run_tool({command, file});
      EXPECT_EQ(run.status, 1) << file;
      expect_one_line(run);
      EXPECT_NE(run.err.find(file), std::string::npos) << "says which file";
    }
    const ToolRun run = run_tool({"relog", file, "-o", out});
    EXPECT_EQ(run.status, 1) << file;
    expect_one_line(run);
    EXPECT_FALSE(std::filesystem::exists(out));
  }
  const ToolRun nobody = relog({"-p", "nobody.exe"});
  EXPECT_EQ(nobody.status, 1);
  expect_one_line(nobody);
  EXPECT_EQ(run_tool({"relog", in, "-o", directory.file("no/such/dir.etl")}).status, 1);
}

TEST_F(Cli, ReadsEveryTraceOfALineEvenIfOneFails) {
  const ToolRun run = run_tool({"info", directory.file("missing.etl"), in});
  EXPECT_EQ(run.status, 1);
  EXPECT_NE(run.out.find("in.etl"), std::string::npos);
}

TEST_F(Cli, RefusesToReplaceWithoutForce) {
  testing::write_file(out, {});
  const ToolRun refused = relog({});
  EXPECT_EQ(refused.status, 1);
  expect_one_line(refused);
  EXPECT_EQ(std::filesystem::file_size(out), 0u);
  EXPECT_EQ(relog({"-f"}).status, 0);
  EXPECT_GT(std::filesystem::file_size(out), 0u);
}

// Every command that only reads, with what it needs beside the trace.
std::vector<std::vector<std::string>> reading_commands(const std::string &in) {
  return {{"info", in},
          {"stats", in},
          {"profile", in},
          {"stacks", in},
          {"symbols", in},
          {"diff", in, "--", in},
          {"schema", in},
          {"export", in},
          {"export", "--verify", in},
          {"query", in, "select count(*) from events"}};
}

TEST_F(Cli, WarnsOfACutTailAndGoesOn) {
  std::vector<std::uint8_t> bytes = t.bytes();
  bytes.resize(bytes.size() - 0x8000);
  testing::write_file(in, bytes);
  for (const std::vector<std::string> &command : reading_commands(in)) {
    const ToolRun run = run_tool(command);
    EXPECT_EQ(run.err.find("etwrelog: warning: " + in + ": the last buffer"), 0u)
        << command.front() << ": " << run.err;
  }
  const ToolRun run = run_tool({"info", in});
  EXPECT_EQ(run.status, 0);
  EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
}

TEST_F(Cli, SalvageSkipsDamageAndExitsWithThree) {
  std::vector<std::uint8_t> bytes = t.bytes();
  bytes[0x10000 + format::kBufferHeaderSize + 3] = 0; // the first event of the second buffer
  testing::write_file(in, bytes);
  for (std::vector<std::string> command : reading_commands(in)) {
    const ToolRun strict = run_tool(command);
    command.insert(command.begin() + 1, "--salvage");
    const ToolRun lenient = run_tool(command);
    EXPECT_EQ(strict.status, 1) << command.front();
    expect_one_line(strict);
    EXPECT_NE(strict.err.find("0x10048"), std::string::npos) << strict.err;
    EXPECT_EQ(lenient.status, 3) << command.front() << ": " << lenient.err;
    const std::size_t told = lenient.err.find("skipped");
    EXPECT_NE(told, std::string::npos) << command.front();
    if (command.front() != "diff") { // it reads the file twice
      EXPECT_EQ(lenient.err.find("skipped", told + 1), std::string::npos)
          << command.front() << ": " << lenient.err;
    }
  }
  EXPECT_EQ(relog({}).status, 1);
  EXPECT_FALSE(std::filesystem::exists(out));
  EXPECT_EQ(relog({"--salvage"}).status, 3);
  EXPECT_EQ(run_tool({"info", out}).status, 0) << "what was salvaged is sound";
}

std::vector<std::uint8_t> wrap(const std::vector<std::uint8_t> &bytes, const std::string &kind,
                               const std::string &path) {
  archive *writer = archive_write_new();
  if (kind == "zip")
    archive_write_set_format_zip(writer);
  else if (kind == "7z")
    archive_write_set_format_7zip(writer);
  else
    archive_write_set_format_raw(writer);
  if (kind == "xz") archive_write_add_filter_xz(writer);
  if (kind == "zst") archive_write_add_filter_zstd(writer);
  if (kind == "gz") archive_write_add_filter_gzip(writer);
  if (kind == "bz2") archive_write_add_filter_bzip2(writer);
  archive_write_open_filename(writer, path.c_str());
  const bool container = kind == "zip" || kind == "7z";
  auto add = [writer](const char *name, const void *data, std::size_t size) {
    archive_entry *entry = archive_entry_new();
    archive_entry_set_pathname(entry, name);
    archive_entry_set_size(entry, static_cast<la_int64_t>(size));
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    archive_write_header(writer, entry);
    archive_write_data(writer, data, size);
    archive_entry_free(entry);
  };
  if (container) add("symbols/a.pdb", "pdb", 3);
  add(container ? "PerfViewData.ETL" : "data", bytes.data(), bytes.size());
  archive_write_close(writer);
  archive_write_free(writer);
  return testing::read_file(path);
}

TEST_F(Cli, ReadsWrappedTracesAndStandardInput) {
  const json expected = json::parse(run_tool({"stats", "--json", in}).out)["by_type"];
  for (const std::string kind : {"zip", "xz", "zst", "gz", "bz2"}) {
    const std::string wrapped = directory.file("wrapped." + kind);
    const std::vector<std::uint8_t> bytes = wrap(t.bytes(), kind, wrapped);
    ASSERT_FALSE(bytes.empty());
    const ToolRun run = run_tool({"stats", "--json", wrapped});
    ASSERT_EQ(run.status, 0) << kind << ' ' << run.err;
    EXPECT_EQ(json::parse(run.out)["by_type"], expected) << kind;
    const ToolRun piped =
        run_tool({"stats", "--json", "-"}, {.input = wrapped, .directory = {}, .while_running = {}});
    ASSERT_EQ(piped.status, 0) << kind << ' ' << piped.err;
    EXPECT_EQ(json::parse(piped.out)["by_type"], expected) << kind;
    // Cut anywhere it is an error in one line, never a shorter trace without a word.
    for (const std::size_t part : {3u, 2u}) {
      testing::write_file(wrapped, Bytes(bytes).first(bytes.size() / part));
      const ToolRun cut = run_tool({"stats", "--json", wrapped});
      EXPECT_EQ(cut.status, 1) << kind;
      expect_one_line(cut);
    }
  }
  const ToolRun piped =
      run_tool({"stats", "--json", "-"}, {.input = in, .directory = {}, .while_running = {}});
  ASSERT_EQ(piped.status, 0) << piped.err;
  EXPECT_EQ(json::parse(piped.out)["by_type"], expected);
  const ToolRun relogged =
      run_tool({"relog", "-", "-o", out, "-p", "100"}, {.input = in, .directory = {}, .while_running = {}});
  ASSERT_EQ(relogged.status, 0) << relogged.err;
  const ToolRun nothing = run_tool({"stats", "-"});
  EXPECT_EQ(nothing.status, 1);
  expect_one_line(nothing);
}

TEST_F(Cli, AFileAsStandardInputIsNotCopied) {
  const testing::ToolOptions redirected{.input = in, .temporary = directory.file("missing")};
  for (const std::vector<std::string> &arguments :
       {std::vector<std::string>{"info", "--json", "-"}, {"stats", "-"}, {"export", "-"}, {"schema", "-"}}) {
    const ToolRun run = run_tool(arguments, redirected);
    EXPECT_EQ(run.status, 0) << arguments[0] << ": " << run.err;
    std::vector<std::string> by_name = arguments;
    by_name.back() = in;
    if (arguments[0] != "info") {
      EXPECT_EQ(run.out, run_tool(by_name).out) << arguments[0];
    }
  }
}

TEST_F(Cli, AnArchiveWithoutATraceSaysSo) {
  const std::string path = directory.file("a.zip");
  archive *writer = archive_write_new();
  archive_write_set_format_zip(writer);
  archive_write_open_filename(writer, path.c_str());
  archive_entry *entry = archive_entry_new();
  archive_entry_set_pathname(entry, "readme.txt");
  archive_entry_set_size(entry, 2);
  archive_entry_set_filetype(entry, AE_IFREG);
  archive_write_header(writer, entry);
  archive_write_data(writer, "hi", 2);
  archive_entry_free(entry);
  archive_write_free(writer);
  const ToolRun run = run_tool({"info", path});
  EXPECT_EQ(run.status, 1);
  expect_one_line(run);
  EXPECT_NE(run.err.find("holds no .etl"), std::string::npos) << run.err;
}

TEST_F(Cli, AFullDiskLeavesNothing) {
  for (const rlim_t limit : {rlim_t{100}, rlim_t{0x10000}, rlim_t{0x12000}}) {
    const ToolRun run = run_tool({"relog", in, "-o", out, "--codec", "none"},
                                 {.input = {}, .directory = {}, .largest_file = limit, .while_running = {}});
    EXPECT_EQ(run.status, 1) << run.err << ' ' << run.signal;
    EXPECT_EQ(run.err.find("etwrelog: error: " + out), 0u) << run.err;
    EXPECT_EQ(directory.names(), Names{"in.etl"});
  }
}

TEST_F(Cli, ASignalLeavesNothing) {
  testing::SyntheticTrace large({.buffer_size = 1u << 20});
  std::mt19937 random(1);
  for (int i = 0; i < 400'000; ++i)
    large.sample({2'000'000 + i, 0}, random() % 50, random() % 5000);
  testing::write_file(in, large.bytes());
  for (const int signal : {SIGINT, SIGTERM}) {
    bool in_time = false;
    const ToolRun run = run_tool(
        {"relog", in, "-o", out, "--codec", "xpress", "--level", "max", "--threads", "1", "--to", "1000s"},
        {.input = {}, .directory = {}, .while_running = [&](pid_t child) {
           // The file that it writes shows that it has begun.
           auto begun = [&] {
             std::error_code gone;
             for (const auto &entry :
                  std::filesystem::directory_iterator("/proc/" + std::to_string(child) + "/fd", gone)) {
               const std::string file = std::filesystem::read_symlink(entry.path(), gone).string();
               if (file.starts_with(directory.path().string()) && file != in) return true;
             }
             return false;
           };
           for (int i = 0; i < 5000 && !in_time; ++i) {
             in_time = begun();
             std::this_thread::sleep_for(std::chrono::milliseconds(1));
           }
           in_time = in_time && !std::filesystem::exists(out);
           ::kill(child, signal);
         }});
    if (!in_time || run.status == 0) GTEST_SKIP() << "the relog was over before the signal";
    EXPECT_EQ(run.status, 1) << run.signal;
    expect_one_line(run);
    EXPECT_EQ(directory.names(), Names{"in.etl"});
  }
}

TEST_F(Cli, ASignalEndsTheWaitForStandardInput) {
  int pipe_ends[2];
  ASSERT_EQ(::pipe(pipe_ends), 0);
  const std::string input = "/proc/self/fd/" + std::to_string(pipe_ends[0]);
  const ToolRun run =
      run_tool({"relog", "-", "-o", out}, {.input = input, .directory = {}, .while_running = [](pid_t child) {
                                             std::this_thread::sleep_for(std::chrono::milliseconds(300));
                                             ::kill(child, SIGINT);
                                           }});
  ::close(pipe_ends[0]);
  ::close(pipe_ends[1]);
  EXPECT_EQ(run.status, 1) << run.signal << run.err;
  EXPECT_EQ(directory.names(), Names{"in.etl"});
}

TEST_F(Cli, ABrokenPipeIsNoCrash) {
  const std::string command = testing::tool_path() + " stats '" + in + "' | head -c 1 >/dev/null";
  EXPECT_EQ(std::system(command.c_str()), 0);
}

} // namespace
} // namespace etwrelog
