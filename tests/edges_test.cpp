// What the tool does at its edges: standard streams that are closed or full, targets that are something else,
// names that mean one file.
#include "tests/support/run_tool.hpp"

#include <gtest/gtest.h>

#include <sys/stat.h>

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

TEST_F(Edges, NoMessageIsWorthAnAbort) {
  const std::string missing = directory.file("missing.etl");
  for (const ToolOptions &silent : {ToolOptions{.error = "/dev/full"}, ToolOptions{.closed = {2}}}) {
    std::filesystem::remove(out);
    EXPECT_EQ(run_tool({"relog", in, "-o", out}, silent).status, 0);
    EXPECT_EQ(run_tool({"info", missing}, silent).status, 1);
    EXPECT_EQ(run_tool({"nonsense"}, silent).status, 2);
    EXPECT_EQ(run_tool({"stats", "--progress", in}, silent).status, 0);
    EXPECT_EQ(run_tool({"pack", "-f", in}, silent).status, 0);
  }
  const ToolRun full = run_tool({"info", in}, {.output = "/dev/full"});
  EXPECT_EQ(full.status, 1) << full.signal;
  EXPECT_NE(full.err.find("etwrelog: error: "), std::string::npos) << full.err;
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

} // namespace
} // namespace etwrelog
