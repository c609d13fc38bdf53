// The trace between two steps of one command (relog, then its schema records): where it stands, and for how
// long.
#include "tests/support/generated.hpp"
#include "tests/support/pace.hpp"
#include "tests/support/run_tool.hpp"
#include "tests/support/trace_files.hpp"

#include <gtest/gtest.h>

#include <csignal>

#include <unistd.h>

namespace etwrelog {
namespace {

using testing::run_tool;
using testing::TempDir;
using testing::ToolOptions;
using testing::ToolRun;

class FileBetween : public ::testing::Test {
protected:
  using Names = std::vector<std::string>;

  FileBetween() {
    testing::SyntheticTrace t;
    t.sample({2'000'000}, 110);
    testing::write_file(in, t.bytes());
  }

  TempDir directory;
  std::string in = directory.file("in.etl"), out = directory.file("out.etl");
};

TEST_F(FileBetween, NeedsAFolderForTemporaryFilesAndStandsInNoOther) {
  const Names line{"relog", in, "-o", out, "--embed-schemas", "-q"};
  ToolOptions nowhere{.directory = directory.path().string()};
  nowhere.temporary = directory.file("none");
  const ToolRun run = run_tool(line, nowhere);
  EXPECT_EQ(run.status, 1);
  EXPECT_NE(run.err.find(nowhere.temporary + ": cannot create a temporary folder"), std::string::npos)
      << run.err;
  EXPECT_EQ(directory.names(), Names{"in.etl"});
}

TEST_F(FileBetween, OfARunThatWasKilledIsRemovedByTheNext) {
  const TempDir temporary;
  const std::string large = directory.file("large.etl");
  testing::write_file(large, testing::generated(testing::kSanitized ? 20'000'000 : 100'000'000));
  ToolOptions killed;
  killed.temporary = temporary.path().string();
  killed.while_running = [&](pid_t tool) {
    for (int i = 0; i < 10'000 && temporary.names().empty(); ++i)
      ::usleep(1000);
    ::kill(tool, SIGKILL);
  };
  EXPECT_EQ(run_tool({"relog", large, "-o", out, "--embed-schemas", "-q"}, killed).signal, SIGKILL);
  ASSERT_EQ(temporary.names().size(), 1u);
  ToolOptions next;
  next.temporary = killed.temporary;
  EXPECT_EQ(run_tool({"relog", in, "-o", out, "--embed-schemas", "-q"}, next).status, 0);
  EXPECT_TRUE(temporary.names().empty());
}

} // namespace
} // namespace etwrelog
