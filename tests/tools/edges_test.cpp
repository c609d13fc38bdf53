// What the tool does at its edges: standard streams that are closed or full, targets that are something else,
// names that mean one file.
#include "read/input.hpp"
#include "tests/support/generated.hpp"
#include "tests/support/pace.hpp"
#include "tests/support/run_tool.hpp"
#include "tests/support/trace_files.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <limits>

#include <sys/stat.h>
#include <unistd.h>

namespace etwrelog {
namespace {

using testing::run_tool;
using testing::TempDir;
using testing::ToolOptions;
using testing::ToolRun;
using Names = std::vector<std::string>;
using BytesOf = std::vector<std::uint8_t>;

class Edges : public ::testing::Test {
protected:
  static BytesOf trace_bytes(int samples) {
    testing::SyntheticTrace t;
    t.process_rundown({1'000'100}, 100, 4, "target.exe");
    t.thread_rundown({1'000'101}, 110, 100);
    for (int i = 0; i < samples; ++i)
      t.sample({2'000'000 + i}, 110);
    return t.bytes();
  }
  Edges() { testing::write_file(in, trace); }

  const BytesOf trace = trace_bytes(300);
  TempDir directory;
  std::string in = directory.file("in.etl"), out = directory.file("out.etl");
};

TEST_F(Edges, ClosedStandardStreamsAreNeverTheOutput) {
  ASSERT_EQ(run_tool({"relog", in, "-o", out, "-q"}).status, 0);
  const BytesOf expected = testing::read_file(out);
  for (const std::vector<int> &closed : {std::vector<int>{0}, {1}, {2}, {0, 1}, {1, 2}, {0, 2}, {0, 1, 2}}) {
    if (testing::kSanitized && closed.size() == 2) continue;
    std::filesystem::remove(out);
    EXPECT_EQ(run_tool({"relog", in, "-o", out}, {.closed = closed}).status, 0);
    EXPECT_TRUE(testing::read_file(out) == expected);
    const std::string original = directory.file("d.etl"), packed = directory.file("d.etlz"),
                      back = directory.file("b");
    testing::write_file(original, trace);
    EXPECT_EQ(run_tool({"pack", "--delete-original", original}, {.closed = closed}).status, 0);
    EXPECT_FALSE(std::filesystem::exists(original));
    EXPECT_EQ(run_tool({"unpack", "-q", packed, "-o", back}).status, 0);
    EXPECT_TRUE(testing::read_file(back) == trace);
    std::filesystem::remove(packed);
    std::filesystem::remove(back);
  }
  std::filesystem::remove(out);
  EXPECT_EQ(run_tool({"relog", "-", "-o", out}, {.closed = {0}}).status, 1)
      << "nothing comes from a closed input";
  EXPECT_EQ(directory.names(), Names{"in.etl"});
}

// Names are whatever somebody chose, of files and of what is in traces.
TEST_F(Edges, NoNameSpeaksToTheTerminal) {
  testing::SyntheticTrace t;
  t.process_rundown({1'000'100}, 100, 4, "a\n\x1b[31m.exe", "c\x1b]0;x\x07");
  t.thread_rundown({1'000'101}, 110, 100);
  for (int i = 0; i < 100; ++i)
    t.sample({2'000'000 + i}, 110);
  const std::string name = directory.file("x\n\x1b[31m\xff.etl");
  testing::write_file(name, t.bytes());
  for (const Names &words :
       {Names{"info", name}, Names{"stats", name}, Names{"stacks", name}, Names{"schema", name},
        Names{"symbols", name}, Names{"profile", name}, Names{"profile", name, "--tree"},
        Names{"profile", name, "--by", "process"}, Names{"profile", name, "-f", "-o", name + ".svg"},
        Names{"diff", name, "--", in, "-p", "*"},
        Names{"export", name, "--report", "-f", "-o", out + ".jsonl"}}) {
    const ToolRun run = run_tool(words);
    EXPECT_NE(run.status, 2) << run.err;
    for (const std::string &text : {run.out, run.err})
      for (const char c : text)
        EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20) << words[0] << ": " << text;
    EXPECT_EQ(run.out.find("\n.exe"), std::string::npos);
  }
  for (const Names &words :
       {Names{"info", name}, Names{"stats", name}, Names{"stacks", name}, Names{"schema", name},
        Names{"symbols", name}, Names{"profile", name}, Names{"diff", name, "--", in, "-p", "*"}}) {
    Names as_json = words;
    as_json.insert(as_json.begin() + 1, "--json");
    const ToolRun run = run_tool(as_json);
    EXPECT_TRUE(nlohmann::json::accept(run.out)) << words[0] << ": " << run.out << run.err;
  }
}

TEST_F(Edges, NoMessageIsWorthAnAbort) {
  const std::string missing = directory.file("missing.etl");
  for (const ToolOptions &silent : {ToolOptions{.error = "/dev/full"}, ToolOptions{.closed = {2}}}) {
    std::filesystem::remove(out);
    EXPECT_EQ(run_tool({"relog", in, "-o", out}, silent).status, 0);
    EXPECT_EQ(run_tool({"info", missing}, silent).status, 1);
    EXPECT_EQ(run_tool({"nonsense"}, silent).status, 2);
    EXPECT_EQ(run_tool({"stats", "--progress", in}, silent).status, 0);
    EXPECT_EQ(run_tool({"pack", "-f", in}, silent).status, 0);
    const std::string folded = directory.file("x.folded"), lines = directory.file("x.jsonl");
    EXPECT_EQ(run_tool({"profile", in, "-f", "-o", folded, "--symbols", "none"}, silent).status, 0);
    EXPECT_TRUE(std::filesystem::exists(folded));
    EXPECT_EQ(run_tool({"export", in, "-f", "-o", lines, "--report"}, silent).status, 0);
    EXPECT_TRUE(std::filesystem::exists(lines));
    std::filesystem::remove(folded);
    std::filesystem::remove(lines);
  }
}

TEST_F(Edges, NoFileOfManyIsToBlameForAFullStandardOutput) {
  std::filesystem::create_directory(directory.file("many"));
  for (const char *name : {"a.etl", "b.etl", "c.etl"})
    testing::write_file(directory.file("many") + "/" + name, trace);
  const std::string results = directory.file("results.jsonl");
  const ToolRun full =
      run_tool({"stats", "-r", directory.file("many"), "--results", results}, {.output = "/dev/full"});
  EXPECT_EQ(full.status, 1);
  EXPECT_EQ(std::ranges::count(full.err, '\n'), 1) << full.err;
  EXPECT_NE(full.err.find("standard output"), std::string::npos) << full.err;
}

TEST_F(Edges, AFullDiskBehindStandardOutputIsOneLineThatSaysWhy) {
  for (const Names &command : {Names{"info", in},
                               {"stats", "--json", in},
                               {"export", in},
                               {"profile", in, "-o", "-", "--format", "folded", "--symbols", "none"},
                               {"query", in, "select * from events"}}) {
    const ToolRun full = run_tool(command, {.output = "/dev/full"});
    EXPECT_EQ(full.status, 1) << command[0] << full.signal;
    EXPECT_TRUE(full.err.starts_with("etwrelog: error: ")) << full.err;
    EXPECT_EQ(std::ranges::count(full.err, '\n'), 1) << full.err;
    EXPECT_NE(full.err.find("standard output"), std::string::npos) << full.err;
    EXPECT_NE(full.err.find("No space left on device"), std::string::npos) << command[0] << full.err;
  }
}

TEST_F(Edges, WhatNobodyCanReadIsNoSuccess) {
  const std::string archive = directory.file("in.etlz"), folded = directory.file("in.folded");
  for (const Names &command : {Names{"info", in},
                               {"stats", in},
                               {"stacks", in},
                               {"schema", in},
                               {"symbols", in},
                               {"profile", in},
                               {"query", in, "select * from events"},
                               {"export", in},
                               {"fleet", "list", in},
                               {"help", "info"},
                               {"info", "--help"},
                               {"pack", "--help"},
                               {"--version"}}) {
    const ToolRun run = run_tool(command, {.closed = {1}});
    EXPECT_EQ(run.status, 1) << command[0];
    EXPECT_NE(run.err.find("standard output"), std::string::npos) << command[0] << run.err;
    EXPECT_NE(run.err.find("is closed"), std::string::npos) << command[0] << run.err;
    EXPECT_EQ(std::ranges::count(run.err, '\n'), 1) << run.err;
  }
  for (const Names &command : {Names{"pack", in},
                               {"verify", archive},
                               {"profile", in, "-o", folded, "-p", "*"},
                               {"export", in, "-o", directory.file("in.jsonl")}})
    EXPECT_EQ(run_tool(command, {.closed = {1}}).status, 0) << command[0];
  EXPECT_EQ(run_tool({"info", out}, {.closed = {1}}).status, 1) << "of what failed no more is said";
}

// A script that tries again after a failure would meet the output.
TEST_F(Edges, OutputsThatAreWholeAreNoFailureWhereTheReportIsLost) {
  for (const ToolOptions &lost : {ToolOptions{.output = "/dev/full"}, ToolOptions{.closed = {1}}})
    for (const Names &command :
         {Names{"relog", in, "-o", out, "--json"}, Names{"pack", in, "-o", out, "--json"}}) {
      const ToolRun run = run_tool(command, lost);
      EXPECT_EQ(run.status, 4) << command[0] << run.err;
      EXPECT_NE(run.err.find("standard output"), std::string::npos) << run.err;
      EXPECT_TRUE(std::filesystem::remove(out));
    }
}

TEST_F(Edges, ForceReplacesRegularFilesOnly) {
  const std::string fifo = directory.file("fifo"), link = directory.file("link");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  std::filesystem::create_symlink(in, link);
  const std::string elsewhere = directory.file("elsewhere");
  std::filesystem::create_symlink(fifo, elsewhere);
  for (const std::string &target :
       {fifo, link, elsewhere, std::string("/dev/null"), directory.path().string()}) {
    for (const Names &command : {Names{"relog", in, "-f", "-o", target}, {"pack", in, "-f", "-o", target}}) {
      const ToolRun run = run_tool(command);
      EXPECT_NE(run.status, 0) << target;
      EXPECT_NE(run.err.find(target == link && command[0] == "pack" ? in : target), std::string::npos)
          << run.err;
    }
  }
  EXPECT_TRUE(std::filesystem::is_fifo(fifo));
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  EXPECT_EQ(directory.names(), (Names{"elsewhere", "fifo", "in.etl", "link"}));
}

TEST_F(Edges, AnOutputWithoutANameIsRefusedAtOnce) {
  const ToolRun run = run_tool({"relog", in, "-o", ""});
  EXPECT_EQ(run.status, 2);
  EXPECT_NE(run.err.find("empty"), std::string::npos) << run.err;
}

TEST_F(Edges, ANameThatIsNoFileIsRefusedBeforeTheWork) {
  const ToolRun run = run_tool({"relog", in, "-o", "-"}, {.directory = directory.path().string()});
  EXPECT_EQ(run.status, 2) << run.err;
  // An archive can go to standard output, which is no file either.
  EXPECT_EQ(run_tool({"pack", in, "-o", "-"}, {.directory = directory.path().string()}).status, 0);
  EXPECT_EQ(directory.names(), Names{"in.etl"});
}

TEST_F(Edges, TwoInputsNeverBecomeOneFile) {
  std::filesystem::create_directory(directory.file("d"));
  std::filesystem::create_directory_symlink(directory.file("d"), directory.file("l"));
  const std::string a = directory.file("d/x"), b = directory.file("d/./x.etl"), c = directory.file("l/x.etl");
  const BytesOf other = trace_bytes(200);
  testing::write_file(a, trace);
  testing::write_file(b, other);
  for (const Names &command : {Names{"pack", "-f", "--delete-original", a, b},
                               {"pack", "-f", "--delete-original", a, c},
                               {"pack", "-f", "--out-dir", directory.file("new/deep"), a, b}}) {
    const ToolRun run = run_tool(command);
    EXPECT_EQ(run.status, 2) << run.err;
    EXPECT_NE(run.err.find("both become"), std::string::npos) << run.err;
    EXPECT_TRUE(testing::read_file(a) == trace);
    EXPECT_TRUE(testing::read_file(b) == other);
  }
  EXPECT_FALSE(std::filesystem::exists(directory.file("d/x.etlz")));
  EXPECT_FALSE(std::filesystem::exists(directory.file("new")));
}

TEST_F(Edges, NoInputIsEverReplaced) {
  const std::string other = directory.file("in.etlz"), report = directory.file("r.json"),
                    link = directory.file("hard");
  testing::write_file(other, trace);
  std::filesystem::create_hard_link(in, link);
  const Names same = {"in.etl", "./in.etl", "hard"};
  for (const std::string &name : same) {
    const ToolOptions here{.directory = directory.path().string()};
    const ToolOptions piped{.input = in, .directory = directory.path().string()};
    EXPECT_EQ(run_tool({"relog", "in.etl", "-f", "-o", name}, here).status, 2) << name;
    EXPECT_EQ(run_tool({"relog", "-", "-f", "-o", name}, piped).status, 2) << name;
    EXPECT_EQ(run_tool({"relog", "in.etl", "-f", "-o", "out.etl", "--report", name}, here).status, 2) << name;
    EXPECT_EQ(run_tool({"stacks", "in.etl", "-f", "--export", name}, here).status, 2) << name;
    EXPECT_TRUE(testing::read_file(in) == trace) << name;
  }
  EXPECT_EQ(run_tool({"pack", "-f", in, other}).status, 2) << "the first one's archive is the second input";
  EXPECT_TRUE(testing::read_file(other) == trace);
  EXPECT_FALSE(std::filesystem::exists(out));
  // The report is a file like any other.
  EXPECT_EQ(run_tool({"relog", in, "-f", "-o", out, "--report", out}).status, 2);
  testing::write_file(report, trace);
  EXPECT_EQ(run_tool({"relog", in, "-o", out, "--report", report}).status, 1);
  EXPECT_TRUE(testing::read_file(report) == trace);
  EXPECT_FALSE(std::filesystem::exists(out)) << "known before the work";
  EXPECT_EQ(run_tool({"relog", in, "-f", "-o", out, "--report", report}).status, 0);
}

TEST_F(Edges, PackTakesTheVeryFile) {
  const std::string wrapped = directory.file("in.etl.gz"), packed = wrapped + ".etlz";
  ASSERT_EQ(std::system(("gzip -k '" + in + "'").c_str()), 0);
  const BytesOf bytes = testing::read_file(wrapped);
  const ToolRun run = run_tool({"pack", wrapped});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.err, "");
  EXPECT_EQ(run_tool({"stats", packed}).out, run_tool({"stats", wrapped}).out) << "read as the trace in it";
  std::filesystem::remove(wrapped);
  ASSERT_EQ(run_tool({"unpack", "-q", packed}).status, 0);
  EXPECT_TRUE(testing::read_file(wrapped) == bytes) << "under its own name";
  std::filesystem::remove(packed);
  EXPECT_EQ(run_tool({"pack", "-q", "--delete-original", wrapped}).status, 0);
  EXPECT_FALSE(std::filesystem::exists(wrapped));
}

TEST_F(Edges, PackKeepsAsItIsWhatCannotBeMadeAgain) {
  const std::string wrapped = directory.file("in.etl.xz"), packed = wrapped + ".etlz",
                    back = directory.file("back");
  ASSERT_EQ(std::system(("xz -k '" + in + "'").c_str()), 0);
  const BytesOf bytes = testing::read_file(wrapped);
  const ToolRun run = run_tool({"pack", wrapped});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_NE(run.err.find("kept as it is"), std::string::npos) << run.err;
  ASSERT_EQ(run_tool({"unpack", "-q", packed, "-o", back}).status, 0);
  EXPECT_TRUE(testing::read_file(back) == bytes);
}

TEST_F(Edges, PackSaysThatATraceIsCutShort) {
  const BytesOf cut(trace.begin(), trace.end() - 0x8000);
  testing::write_file(in, cut);
  const std::string says = fmt::format(
      "32768 bytes, the first at 0x{:x}, are in no whole buffer: the trace is cut short or damaged; "
      "packed as they are. If there is a whole copy, pack that",
      cut.size() - 0x8000);
  const ToolRun run = run_tool({"pack", "--json", in});
  EXPECT_EQ(run.status, 0);
  EXPECT_EQ(run.err, fmt::format("etwrelog: warning: {}: {}\n", in, says));
  const nlohmann::json file = nlohmann::json::parse(run.out)["files"][0];
  EXPECT_EQ(file["state"], "done");
  EXPECT_EQ(file["warnings"], nlohmann::json::array({says}));
  ASSERT_EQ(run_tool({"unpack", "-q", in + "z", "-o", out}).status, 0);
  EXPECT_TRUE(testing::read_file(out) == cut);
}

// As damage may say it. What is wrong about a difference or a number of seconds that does not exist,
// sanitizers see.
TEST_F(Edges, TimesMayBeAny) {
  constexpr std::int64_t kLast = std::numeric_limits<std::int64_t>::max(),
                         kFirst = std::numeric_limits<std::int64_t>::min();
  testing::TraceOptions options;
  options.start_time = 1;
  testing::SyntheticTrace t(options);
  t.process_rundown({kFirst}, 100, 4, "target.exe");
  t.thread_rundown({kFirst}, 110, 100);
  for (const std::int64_t time : {kFirst, std::int64_t{-1}, std::int64_t{2'000'000}, kLast - 1, kLast}) {
    t.process_start({time}, 200, 100, "short.exe");
    t.thread_start({time}, 210, 200);
    t.disk_init({time}, 110, 110, 100);
    t.sample({time}, 110);
    t.stack_walk({time}, time, 100, 110, {0x7FF6'0000'1000, 0x7FF6'0000'2000});
    t.context_switch({time}, 110, 210);
    t.context_switch({time}, 210, 110);
  }
  t.disk_read({kLast}, 110, 1);
  t.thread_end({kLast}, 210, 200);
  t.process_end({kLast}, 200, "short.exe");
  testing::write_file(in, t.bytes());
  const Names commands[] = {{"info", "--json"},
                            {"stats", "--json"},
                            {"stacks"},
                            {"profile"},
                            {"profile", "--kind", "wait"},
                            {"schema"},
                            {"query", "select count(*), min(time), max(time) from events"},
                            {"export", "--join", "all"},
                            {"export", "--profile", "otel"},
                            {"export", "--profile", "timeline"},
                            {"export", "--format", "csv"}};
  for (Names command : commands) {
    command.insert(command.begin() + 1, in);
    const ToolRun run = run_tool(command);
    EXPECT_EQ(run.status, 0) << command[0] << ": " << run.err;
    EXPECT_FALSE(run.out.empty()) << command[0];
  }
  // The events at the very ends are where all later and earlier moments are.
  const std::string everything = run_tool({"export", in}).out;
  EXPECT_TRUE(run_tool({"export", in, "--from", "-1e12h", "--to", "1e12h"}).out == everything);
  EXPECT_TRUE(run_tool({"export", in, "--where", "time >= '-1e12h' and time <= '1e12h'"}).out == everything);
  const Names outputs[] = {{"relog", "-o"},
                           {"relog", "-p", "100", "-o"},
                           {"relog", "--stacks", "cache", "-o"},
                           {"merge", "-o"},
                           {"pack", "-o"},
                           {"profile", "-o"},
                           {"export", "--format", "sqlite", "-o"},
                           {"export", "--format", "arrow", "-o"}};
  for (Names command : outputs) {
    command.push_back(command[0] == "profile" ? out + ".firefox.json.gz" : out);
    command.insert(command.begin() + 1, {in, "-f"});
    const ToolRun run = run_tool(command);
    EXPECT_EQ(run.status, 0) << command[0] << ": " << run.err;
  }
}

TEST_F(Edges, NamesMayBeAnyBytes) {
  const std::string odd = directory.file("\xff\xfe\x1b[31m\n.etl"), report = directory.file("r\xff.json");
  testing::write_file(odd, trace);
  for (const char *command : {"info", "stats", "stacks"}) {
    const ToolRun run = run_tool({command, "--json", odd});
    EXPECT_EQ(run.status, 0) << run.err;
    EXPECT_TRUE(nlohmann::json::accept(run.out)) << command;
  }
  const ToolRun relogged = run_tool({"relog", "--json", odd, "-o", out, "--report", report});
  EXPECT_EQ(relogged.status, 0) << relogged.err;
  EXPECT_TRUE(nlohmann::json::accept(relogged.out));
  EXPECT_TRUE(nlohmann::json::accept(testing::read_file(report)));
  const ToolRun packed = run_tool({"pack", "--json", odd});
  EXPECT_EQ(packed.status, 0) << packed.err;
  EXPECT_TRUE(nlohmann::json::accept(packed.out));
  const ToolRun shown = run_tool({"pack", "-f", odd});
  EXPECT_EQ(shown.out.find('\x1b'), std::string::npos);
  EXPECT_EQ(run_tool({"info", odd + "x"}).err.find('\x1b'), std::string::npos);
}

TEST_F(Edges, FoldersAreMadeForResultsAlone) {
  const std::string folder = directory.file("a/b/c");
  EXPECT_EQ(run_tool({"pack", directory.file("missing.etl"), "--out-dir", folder}).status, 1);
  EXPECT_EQ(run_tool({"pack", in, "-o", folder + "/x"}).status, 1) << "as relog: -o makes no folder";
  EXPECT_EQ(directory.names(), Names{"in.etl"});
  EXPECT_EQ(run_tool({"pack", "-q", in, "--out-dir", folder}).status, 0);
  EXPECT_TRUE(std::filesystem::exists(folder + "/in.etlz"));
}

// Every bit of every wrapper: an error, or the very trace. Only zstd can do without a checksum; libarchive's,
// which is used here, has one.
TEST_F(Edges, NoDamageToAWrapperGoesUnnoticed) {
  const BytesOf small = trace_bytes(20);
  testing::write_file(in, small);
  for (const Names &tool : {Names{"gzip", ".gz"}, {"xz", ".xz"}, {"bzip2", ".bz2"}, {"zstd -q", ".zst"}}) {
    if (std::system((tool[0] + " -k '" + in + "' 2>/dev/null").c_str()) != 0) continue; // not there
    const BytesOf whole = testing::read_file(in + tool[1]);
    const std::string flipped = directory.file("flipped");
    auto content = [&](const BytesOf &bytes) -> std::optional<BytesOf> {
      testing::write_file(flipped, bytes);
      const auto input = read::open_input(flipped);
      if (!input) return std::nullopt;
      BytesOf all((*input)->size());
      EXPECT_TRUE((*input)->read_at(0, all));
      return all;
    };
    ASSERT_EQ(content(whole), small) << tool[1];
    std::size_t unnoticed = 0;
    const std::size_t bits = testing::kSanitized ? 11 : 3, bytes_cut = testing::kSanitized ? 29 : 7;
    // Of the signature: no wrapper any more.
    for (std::size_t bit = 8 * 6; bit < 8 * whole.size(); bit += bits) {
      BytesOf bytes = whole;
      bytes[bit / 8] ^= static_cast<std::uint8_t>(1u << bit % 8);
      const std::optional<BytesOf> got = content(bytes);
      if (got && *got != small) ++unnoticed;
    }
    EXPECT_EQ(unnoticed, 0u) << tool[1];
    for (std::size_t size = 6; size < whole.size(); size += bytes_cut)
      EXPECT_FALSE(content(BytesOf(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size))))
          << tool[1] << size;
    BytesOf more = whole;
    for (const char c : std::string("garbage"))
      more.push_back(static_cast<std::uint8_t>(c));
    EXPECT_FALSE(content(more)) << tool[1] << " with garbage behind it";
    BytesOf twice = whole, content_twice = small;
    twice.insert(twice.end(), whole.begin(), whole.end());
    content_twice.insert(content_twice.end(), small.begin(), small.end());
    EXPECT_EQ(content(twice), content_twice) << tool[1] << " of two members";
    std::filesystem::remove(in + tool[1]);
  }
}

TEST_F(Edges, OnlyOneLayerIsTakenOff) {
  const std::string once = in + ".gz";
  ASSERT_EQ(std::system(("gzip -k '" + in + "' && gzip -c '" + once + "' >'" + once + ".gz'").c_str()), 0);
  EXPECT_EQ(run_tool({"info", once}).status, 0);
  const ToolRun twice = run_tool({"info", once + ".gz"});
  EXPECT_EQ(twice.status, 1);
  EXPECT_NE(twice.err.find("is compressed once more inside"), std::string::npos) << twice.err;
  const std::string tar = directory.file("in.tgz");
  ASSERT_EQ(std::system(("tar -C / -czf '" + tar + "' '" + in.substr(1) + "'").c_str()), 0);
  const ToolRun bundled = run_tool({"info", tar});
  EXPECT_EQ(bundled.status, 1);
  EXPECT_NE(bundled.err.find("holds a tar archive"), std::string::npos) << bundled.err;
  for (const std::string &odd : {once + ".gz", tar}) { // packed as any other file
    EXPECT_EQ(run_tool({"pack", odd, "-q"}).status, 0);
    EXPECT_EQ(run_tool({"unpack", odd + ".etlz", "-q", "-o", out, "--force"}).status, 0);
    EXPECT_EQ(testing::read_file(out), testing::read_file(odd));
  }
  const BytesOf seven = {'7', 'z', 0xBC, 0xAF, 0x27, 0x1C, 0, 4};
  testing::write_file(in, seven);
  const ToolRun run = run_tool({"info", in});
  EXPECT_EQ(run.status, 1);
  EXPECT_NE(run.err.find("zip, gzip, xz, zstd and bzip2"), std::string::npos) << run.err;
}

TEST_F(Edges, AnEmptyArchiveIsNoArchiveOfNothing) {
  testing::write_file(in, {});
  const std::string packed = directory.file("in.etlz"), cut = directory.file("cut.etlz");
  testing::write_file(cut, {});
  EXPECT_EQ(run_tool({"unpack", "--salvage", cut, "-o", out}).status, 1);
  EXPECT_FALSE(std::filesystem::exists(out));
}

// What comes of a whole archive does not depend on how many are done at once.
TEST_F(Edges, MemoryThatIsSharedIsEnoughForEachAlone) {
  testing::write_file(directory.file("a.etl"), testing::generated(20 << 20));
  const std::string folder = directory.file("packed");
  ASSERT_EQ(run_tool({"pack", "-q", directory.file("a.etl"), "--out-dir", folder}).status, 0);
  std::filesystem::copy_file(folder + "/a.etlz", folder + "/b.etlz");
  std::uint64_t needed = 32 << 20;
  const auto verify = [&folder](std::uint64_t memory, const Names &more) {
    Names line{"verify", "-r", folder, "--memory-limit", std::to_string(memory)};
    line.insert(line.end(), more.begin(), more.end());
    return run_tool(line);
  };
  while (verify(needed, {"-t", "1"}).status != 0)
    ASSERT_LT(needed *= 2, 1u << 30);
  const ToolRun together = verify(needed, {"-t", "2"});
  EXPECT_EQ(together.status, 0) << together.err;
  EXPECT_EQ(together.err.find("error"), std::string::npos) << together.err;
  const ToolRun little = verify(8 << 20, {"--salvage"});
  EXPECT_EQ(little.status, 1) << "memory that does not do is no damage";
  EXPECT_NE(little.err.find("--memory-limit"), std::string::npos) << little.err;
}

TEST_F(Edges, ResultsGoIntoFilesOfResultsAlone) {
  const std::string archive = directory.file("in.etlz"), link = directory.file("link");
  ASSERT_EQ(run_tool({"pack", "-q", in, "-o", archive}).status, 0);
  const BytesOf packed = testing::read_file(archive);
  std::filesystem::create_symlink(archive, link);
  const std::string list = directory.file("list");
  testing::write_file(list, BytesOf(in.begin(), in.end()));
  for (const Names &line :
       {Names{"verify", archive, "--results", link},
        {"verify", archive, "--results", in},
        {"pack", "--part", "1/2", in, "-o", out, "--results", in},
        {"pack", "--part", "1/2", in, "-o", out, "--results", out},
        {"pack", "--files-from", list, "--out-dir", directory.file("o"), "--results", list}}) {
    const ToolRun run = run_tool(line);
    EXPECT_EQ(run.status, 2) << line[0] << run.err;
    EXPECT_NE(run.err.find("the results would go into"), std::string::npos) << run.err;
  }
  EXPECT_TRUE(testing::read_file(archive) == packed);
  EXPECT_TRUE(testing::read_file(in) == trace);
  EXPECT_FALSE(std::filesystem::exists(out));
  const std::string results = directory.file("new/results");
  EXPECT_EQ(run_tool({"verify", "-q", archive, "--results", results}).status, 0);
  EXPECT_EQ(run_tool({"verify", "-q", archive, "--results", results}).status, 0);
  EXPECT_TRUE(std::filesystem::exists(results));
}

// Whatever is damaged: less than all, or all with something to be said of it, is no success.
TEST_F(Edges, SalvageNeverIsSilent) {
  const std::string archive = directory.file("in.etlz"), other = directory.file("other.etlz");
  const BytesOf large = trace_bytes(30'000);
  testing::write_file(in, large);
  ASSERT_EQ(run_tool({"pack", "-q", in, "-o", archive}).status, 0);
  testing::write_file(directory.file("other.etl"), trace_bytes(20'000));
  ASSERT_EQ(run_tool({"pack", "-q", directory.file("other.etl"), "-o", other}).status, 0);
  const BytesOf whole = testing::read_file(archive), second = testing::read_file(other);
  const auto salvaged = [this](const BytesOf &bytes) {
    testing::write_file(directory.file("bad.etlz"), bytes);
    return run_tool({"unpack", "--salvage", "-f", directory.file("bad.etlz"), "-o", out});
  };
  for (const std::size_t at : {std::size_t{9}, std::size_t{17}, whole.size() / 2, whole.size() - 9}) {
    BytesOf bad = whole;
    bad[at] ^= 0x10;
    const ToolRun run = salvaged(bad);
    EXPECT_TRUE(run.status == 3 || run.status == 1) << at << run.err;
    EXPECT_NE(run.err.find("etwrelog: "), std::string::npos) << at;
  }
  BytesOf both = whole;
  both.insert(both.end(), second.begin(), second.end());
  const ToolRun run = salvaged(both);
  EXPECT_EQ(run.status, 3);
  EXPECT_NE(run.err.find("another archive begins"), std::string::npos) << run.err;
  EXPECT_TRUE(testing::read_file(out) == large) << "and nothing of the second";
}

// A link stands for a file that somebody else may need, and what is deleted would be the link.
TEST_F(Edges, TheOriginalBehindALinkIsNotDeleted) {
  const std::string link = directory.file("link.etl");
  std::filesystem::create_symlink(in, link);
  for (const Names &more : {Names{}, Names{"--skip-existing"}}) {
    Names line{"pack", "-q", link, "--delete-original"};
    line.insert(line.end(), more.begin(), more.end());
    const ToolRun run = run_tool(line);
    EXPECT_NE(run.status, 0);
    EXPECT_NE(run.err.find("is a link"), std::string::npos) << run.err;
    EXPECT_TRUE(std::filesystem::is_symlink(link));
    EXPECT_TRUE(testing::read_file(in) == trace);
    ASSERT_EQ(run_tool({"pack", "-q", "-f", link}).status, 0); // for the next round to find
  }
}

TEST_F(Edges, NoCountIsLessThanZero) {
  for (const Names &command : {Names{"profile", in, "--top", "-1"},
                               {"stats", in, "--top=-1"},
                               {"stacks", in, "--top=-5"},
                               {"symbols", in, "--top=-1"},
                               {"relog", in, "-o", out, "--cpu=-1"}}) {
    const ToolRun run = run_tool(command);
    EXPECT_EQ(run.status, 2) << command[0];
    EXPECT_NE(run.err.find("less than 0"), std::string::npos) << run.err;
  }
}

TEST_F(Edges, APipeHasNoOriginalToDelete) {
  const std::string pipe = directory.file("pipe.etl");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const ToolRun run = run_tool({"pack", pipe, "--delete-original"});
  EXPECT_EQ(run.status, 1);
  EXPECT_NE(run.err.find("no regular file"), std::string::npos) << run.err;
  EXPECT_FALSE(std::filesystem::exists(directory.file("pipe.etlz")));
}

// Systems make some files while they are read: their size is none.
TEST_F(Edges, AFileWithoutASizeIsReadToItsEnd) {
  const std::string source = "/proc/self/limits", archive = directory.file("x.etlz");
  if (!std::filesystem::exists(source) || std::filesystem::file_size(source) != 0)
    GTEST_SKIP() << "no such file here";
  ASSERT_EQ(run_tool({"pack", source, "-o", archive}).status, 0);
  ASSERT_EQ(run_tool({"unpack", archive, "-o", directory.file("back")}).status, 0);
  const std::vector<std::uint8_t> back = testing::read_file(directory.file("back"));
  EXPECT_GT(back.size(), 500u);
  EXPECT_EQ(std::string(back.begin(), back.begin() + 5), "Limit");
  // An empty file is still one.
  testing::write_file(directory.file("empty"), {});
  ASSERT_EQ(run_tool({"pack", directory.file("empty")}).status, 0);
  ASSERT_EQ(run_tool({"unpack", directory.file("empty.etlz"), "-o", directory.file("empty2")}).status, 0);
  EXPECT_EQ(std::filesystem::file_size(directory.file("empty2")), 0u);
  // And needs no room of its own to be looked at.
  testing::ToolOptions nowhere;
  nowhere.temporary = directory.file("none");
  const ToolRun run = run_tool({"info", directory.file("empty")}, nowhere);
  EXPECT_EQ(run.status, 1);
  EXPECT_NE(run.err.find("empty: at 0x0: the file is empty"), std::string::npos) << run.err;
}

TEST_F(Edges, NumbersAreDecimalAndWhatIsNoneIsSaid) {
  testing::SyntheticTrace t;
  for (int i = 0; i < 30; ++i)
    t.sample({2'000'000 + i, static_cast<std::uint16_t>(8 + i % 3)}, 110);
  testing::write_file(in, t.bytes());
  const auto of_processor = [&](const std::string &number) {
    const ToolRun run = run_tool({"relog", in, "-o", out, "-f", "-q", "--cpu", number});
    EXPECT_EQ(run.status, 0) << run.err;
    return testing::read_file(out);
  };
  EXPECT_TRUE(of_processor("010") == of_processor("10"));
  EXPECT_TRUE(of_processor("08") == of_processor("8"));
  EXPECT_FALSE(of_processor("8") == of_processor("10"));
  const std::pair<Names, const char *> wrong[] = {
      {{"relog", in, "-o", out, "--cpu", "99999999999"},
       "--cpu: expected a number that it can have, found \"99999999999\""},
      {{"relog", in, "-o", out, "--stacks", "cache", "--stack-window", "0"}, "\"0\" is less than 1"},
      {{"--bogus"}, "\"--bogus\" stands where a command should"}};
  for (const auto &[line, words] : wrong) {
    const ToolRun run = run_tool(line);
    EXPECT_EQ(run.status, 2);
    EXPECT_NE(run.err.find(words), std::string::npos) << run.err;
  }
}

TEST_F(Edges, OptionsThatWouldDoNothingAreRefused) {
  for (const Names &line :
       {Names{"relog", in, "-o", out, "--stack-window", "9"},
        Names{"relog", in, "-o", out, "--stacks", "expand", "--stack-memory", "9M"},
        Names{"stacks", in, "--buckets", "512"}, Names{"stacks", in, "--cache-size", "4M"},
        Names{"stats", in, "--decode"}, Names{"info", in, "--decode"}}) {
    const ToolRun run = run_tool(line);
    EXPECT_EQ(run.status, 2) << line[0] << " " << line.back();
    EXPECT_EQ(run.out, "");
  }
  EXPECT_FALSE(std::filesystem::exists(out));
}

TEST_F(Edges, WhatIsSkippedOfSeveralTracesNamesItsFile) {
  const std::string damaged = directory.file("damaged.etl");
  BytesOf bytes = trace_bytes(30'000);
  std::fill_n(bytes.begin() + 3 * 0x10000, 200, std::uint8_t{0xFF});
  testing::write_file(damaged, bytes);
  for (const Names &line :
       {Names{"info", "--as-one", in, damaged}, Names{"stats", "--as-one", in, damaged},
        Names{"stacks", "--as-one", in, damaged}, Names{"merge", in, damaged, "-f", "-o", out},
        Names{"relog", in, damaged, "-f", "-o", out}}) {
    Names all = line;
    all.insert(all.end(), {"--salvage", "--json"});
    const ToolRun run = run_tool(all);
    ASSERT_EQ(run.status, 3) << line[0] << run.err;
    const nlohmann::json skipped = nlohmann::json::parse(run.out)["skipped"];
    ASSERT_FALSE(skipped.empty()) << line[0];
    EXPECT_EQ(skipped[0]["file"], damaged) << line[0];
  }
}

TEST_F(Edges, ATableIsNotPrintedIntoJson) {
  const ToolRun run = run_tool({"pack", "--explain", "--json", in, "-o", out});
  EXPECT_EQ(run.status, 2);
  EXPECT_NE(run.err.find("--explain"), std::string::npos) << run.err;
  EXPECT_FALSE(std::filesystem::exists(out));
}

TEST_F(Edges, AFolderThatCannotBeReadIsAnError) {
  if (geteuid() == 0) GTEST_SKIP() << "root may read all folders";
  const std::string folder = directory.file("closed/no");
  std::filesystem::create_directories(folder);
  testing::write_file(folder + "/x.etl", trace);
  std::filesystem::permissions(folder, std::filesystem::perms::none);
  const ToolRun run = run_tool({"pack", "-r", directory.file("closed"), "--out-dir", directory.file("o")});
  std::filesystem::permissions(folder, std::filesystem::perms::owner_all);
  EXPECT_EQ(run.status, 1) << run.err;
}

} // namespace
} // namespace etwrelog
