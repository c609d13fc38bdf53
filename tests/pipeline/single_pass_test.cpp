// `relog - --single-pass`: what comes out of the pipe is what the normal way makes of the file.
#include "tests/support/pipeline_runs.hpp"
#include "tests/support/run_tool.hpp"
#include "tests/support/trace_files.hpp"

#include <gtest/gtest.h>

namespace etwrelog {
namespace {

using testing::SyntheticTrace;
using Buffer = std::vector<std::uint8_t>;

struct Ran {
  testing::ToolRun run;
  Buffer bytes;
};

// As the tool does it, once from a pipe's standard input and once from the file.
Ran relogged(const testing::TempDir &directory, const std::string &input, std::vector<std::string> options,
             bool single_pass) {
  Ran ran;
  const std::string out = directory.file(single_pass ? "single.etl" : "normal.etl");
  std::vector<std::string> words{"relog", single_pass ? "-" : input, "-o", out, "--force", "--quiet"};
  if (single_pass) words.push_back("--single-pass");
  words.insert(words.end(), options.begin(), options.end());
  testing::ToolOptions tool;
  if (single_pass) tool.input = input;
  ran.run = testing::run_tool(words, tool);
  if (ran.run.status == 0) ran.bytes = testing::read_file(out);
  return ran;
}

void expect_same(const std::string &input, const std::vector<std::string> &options) {
  const testing::TempDir directory;
  const Ran normal = relogged(directory, input, options, false);
  const Ran single = relogged(directory, input, options, true);
  ASSERT_EQ(normal.run.status, 0) << normal.run.err;
  ASSERT_EQ(single.run.status, 0) << single.run.err;
  EXPECT_FALSE(normal.bytes.empty());
  EXPECT_TRUE(single.bytes == normal.bytes)
      << input << ": " << single.bytes.size() << " and " << normal.bytes.size();
}

// Two processes that are known from the start, on two processors; buffers of every kind that a header can
// tell.
SyntheticTrace two_processes(Codec codec) {
  SyntheticTrace t({.buffer_size = 0x4000, .codec = codec});
  for (std::uint32_t pid : {100u, 200u}) {
    t.process_rundown({1'000'100}, pid, 4, pid == 100 ? "one.exe" : "two.exe", "x");
    t.thread_rundown({1'000'101}, pid + 4, pid);
    t.image_rundown({1'000'102}, pid, 0x7FF6'0000'0000);
  }
  t.end_buffer(0);
  for (int i = 0; i < 1500; ++i) {
    const auto cpu = static_cast<std::uint16_t>(i % 2);
    const std::uint32_t pid = i % 3 == 0 ? 100 : 200;
    const std::int64_t now = 2'000'000 + 100 * i;
    t.context_switch({now, cpu}, pid + 4, 0);
    t.sample({now + 10, cpu}, pid + 4, 0x7FF6'0000'1000 + static_cast<std::uint64_t>(i % 100));
    t.stack_walk({now + 11, cpu}, now + 10, pid, pid + 4, {1, 2, static_cast<std::uint64_t>(i % 20)});
    if (i % 400 == 399) t.end_buffer(cpu).type = i % 800 == 399 ? 1 : 2;
    if (i == 700) t.end_buffer(0).tweak = [](format::BufferHeader &h) { h.flags |= format::kFlagEventsLost; };
  }
  return t;
}

TEST(SinglePass, GivesTheSameBytesWithoutAFilter) {
  for (const Codec codec : {Codec::none, Codec::xpress}) {
    const testing::TempDir directory;
    const std::string input = directory.file("in.etl");
    testing::write_file(input, two_processes(codec).bytes());
    expect_same(input, {});
    expect_same(input, {"--codec", "xpress"});
    expect_same(input, {"--codec", "none", "--buffer-size", "256K"});
  }
}

TEST(SinglePass, SaysAsAFileDoesThatAnotherLogBegins) {
  const testing::TempDir directory;
  const std::string input = directory.file("in.etl");
  Buffer twice = two_processes(Codec::none).bytes();
  const Buffer one = twice;
  twice.insert(twice.end(), one.begin(), one.end());
  testing::write_file(input, twice);
  for (const bool single_pass : {false, true}) {
    const Ran ran = relogged(directory, input, {}, single_pass);
    ASSERT_EQ(ran.run.status, 0) << ran.run.err;
    EXPECT_NE(ran.run.err.find("another log begins"), std::string::npos) << ran.run.err;
  }
}

// All it needs to know of processes and threads stands before their events here.
TEST(SinglePass, KeepsTheSameEventsOfAProcess) {
  const testing::TempDir directory;
  const std::string input = directory.file("in.etl");
  testing::write_file(input, two_processes(Codec::none).bytes());
  for (const std::vector<std::string> &options : {std::vector<std::string>{"-p", "one.exe"},
                                                  {"-p", "200"},
                                                  {"--exclude", "one*"},
                                                  {"--from", "0.01s"}}) {
    const Ran normal = relogged(directory, input, options, false);
    const Ran single = relogged(directory, input, options, true);
    ASSERT_EQ(normal.run.status, 0) << normal.run.err;
    ASSERT_EQ(single.run.status, 0) << single.run.err;
    const testing::Contents a = testing::contents_of(normal.bytes), b = testing::contents_of(single.bytes);
    EXPECT_EQ(a.error + b.error, "");
    EXPECT_GT(a.events.size(), 100u);
    EXPECT_EQ(a.by_cpu, b.by_cpu) << options[0] << " " << options[1];
  }
}

TEST(SinglePass, MissingBuffersAreTold) {
  const testing::TempDir directory;
  const std::string input = directory.file("in.etl");
  std::vector<std::uint8_t> bytes = two_processes(Codec::none).bytes();
  bytes.resize(bytes.size() - 0x4000);
  testing::write_file(input, bytes);
  for (const bool single : {false, true}) {
    const Ran ran = relogged(directory, input, {}, single);
    EXPECT_EQ(ran.run.status, 0);
    EXPECT_NE(ran.run.err.find("the file was cut short"), std::string::npos) << ran.run.err;
  }
}

TEST(SinglePass, LeavesNoOutputBehindWhenItFails) {
  const testing::TempDir directory;
  const std::string input = directory.file("in.etl");
  Buffer trace = two_processes(Codec::none).bytes();
  store(trace.data() + 0x8000, 16u); // BufferSize of the third buffer: less than its header
  testing::write_file(input, trace);
  const Ran damaged = relogged(directory, input, {}, true);
  EXPECT_EQ(damaged.run.status, 1);
  EXPECT_NE(damaged.run.err.find("standard input"), std::string::npos) << damaged.run.err;
  const Ran nobody = relogged(directory, input, {"-p", "nobody.exe"}, true);
  EXPECT_EQ(nobody.run.status, 1) << nobody.run.err;
  EXPECT_EQ(directory.names(), std::vector<std::string>{"in.etl"});
}

TEST(SinglePass, GivesTheSameBytesForRealTraces) {
  const std::vector<std::string> traces = testing::trace_names();
  if (traces.empty()) GTEST_SKIP() << "no real traces";
  for (const std::string &name : traces)
    expect_same(testing::trace_path(name)->string(), {});
}

TEST(SinglePass, AHoleIsDamageAndNotTheEnd) {
  const testing::TempDir directory;
  Buffer holed = two_processes(Codec::none).bytes();
  ASSERT_GT(holed.size(), 5u * 0x4000);
  std::fill_n(holed.begin() + 2 * 0x4000, 0x4000, std::uint8_t{0});
  const std::string input = directory.file("in.etl");
  testing::write_file(input, holed);
  const Ran normal = relogged(directory, input, {}, false), single = relogged(directory, input, {}, true);
  EXPECT_EQ(normal.run.status, 1);
  EXPECT_EQ(single.run.status, 1);
  const std::string says = "at 0x8000: buffer 2: BufferSize";
  EXPECT_NE(normal.run.err.find(says), std::string::npos) << normal.run.err;
  EXPECT_NE(single.run.err.find(says), std::string::npos) << single.run.err;
  // What was never written is none.
  std::fill(holed.begin() + 2 * 0x4000, holed.end(), std::uint8_t{0});
  testing::write_file(input, holed);
  EXPECT_EQ(relogged(directory, input, {}, true).run.status, 0);
}

// Its oldest buffer stands somewhere behind: what is read first is no beginning.
TEST(SinglePass, ACircularLogThatRanOverItsSizeIsRefused) {
  for (const bool wrapped : {false, true}) {
    const testing::TempDir directory;
    SyntheticTrace t({.buffer_size = 0x4000, .mode = format::kModeCircular});
    for (const std::int64_t i : {1, 2, 3}) {
      t.sample({2'000'000 + i}, 104);
      t.end_buffer(0).sequence = wrapped && i == 3 ? 1 : i + 1;
    }
    const std::string input = directory.file("in.etl");
    testing::write_file(input, t.bytes());
    const Ran single = relogged(directory, input, {}, true);
    EXPECT_EQ(single.run.status, wrapped ? 1 : 0) << single.run.err;
    EXPECT_EQ(single.run.err.find("save the input to a file") != std::string::npos, wrapped)
        << single.run.err;
    EXPECT_EQ(relogged(directory, input, {}, false).run.status, 0);
  }
}

// A length that overruns the end is a cut only where the header is plausible; else it hides what follows.
TEST(SinglePass, ALengthThatIsWrongIsNoCut) {
  const testing::TempDir directory;
  std::vector<std::uint8_t> bytes = two_processes(Codec::none).bytes();
  store(&bytes[0x4000], std::uint32_t{0x340000}); // more than there is
  const std::string input = directory.file("in.etl");
  testing::write_file(input, bytes);
  for (const bool single_pass : {false, true}) {
    const Ran ran = relogged(directory, input, {}, single_pass);
    EXPECT_EQ(ran.run.status, 1) << ran.run.err;
    EXPECT_NE(ran.run.err.find("buffer 1: BufferSize"), std::string::npos) << ran.run.err;
  }
}

} // namespace
} // namespace etwrelog
