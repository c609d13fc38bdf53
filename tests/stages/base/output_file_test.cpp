#include "base/output_file.hpp"
#include "tests/support/pipeline_runs.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace etwrelog::base {
namespace {

using testing::TempDir;
const std::uint8_t kBytes[] = {1, 2, 3, 4};
using Names = std::vector<std::string>;

// All on a file system that has unnamed files and as on one that has none.
class OutputFile_ : public ::testing::TestWithParam<bool> {
protected:
  OutputFile_() { use_unnamed_files(GetParam()); }
  ~OutputFile_() override { use_unnamed_files(true); }
};
INSTANTIATE_TEST_SUITE_P(, OutputFile_, ::testing::Bool(),
                         [](const auto &one) { return one.param ? "Unnamed" : "Named"; });

TEST_P(OutputFile_, AppearsWholeOrNotAtAll) {
  const TempDir directory;
  {
    Result<OutputFile> file = OutputFile::create(directory.file("a"), false);
    ASSERT_TRUE(file);
    ASSERT_TRUE(file->append(kBytes));
    EXPECT_FALSE(std::filesystem::exists(directory.file("a")));
    if (!GetParam()) {
      EXPECT_EQ(directory.names().size(), 1u) << "the temporary stands beside the target";
    }
  }
  EXPECT_TRUE(directory.names().empty()) << "not committed: gone";
  Result<OutputFile> file = OutputFile::create(directory.file("a"), false);
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->append(kBytes));
  ASSERT_TRUE(file->write_at(0, Bytes(kBytes).subspan(3)));
  EXPECT_EQ(file->size(), 4u);
  ASSERT_TRUE(file->commit());
  EXPECT_EQ(directory.names(), Names{"a"});
  EXPECT_EQ(testing::read_file(directory.file("a")), (std::vector<std::uint8_t>{4, 2, 3, 4}));
}

// The disk begins with what was appended long before commit().
TEST_P(OutputFile_, HoldsWhatWasWrittenHoweverMuchThatIs) {
  const TempDir directory;
  Result<OutputFile> file = OutputFile::create(directory.file("a"), false);
  ASSERT_TRUE(file);
  std::vector<std::uint8_t> expected(std::size_t{20} << 20);
  for (std::size_t i = 0; i < expected.size(); ++i)
    expected[i] = static_cast<std::uint8_t>(i >> 10);
  constexpr std::size_t kPiece = 300'001;
  for (std::size_t at = 0; at < expected.size(); at += kPiece)
    ASSERT_TRUE(file->append(Bytes(expected).subspan(at, std::min(kPiece, expected.size() - at))));
  ASSERT_TRUE(file->write_at(2, kBytes)) << "what the disk has begun with may still change";
  std::ranges::copy(kBytes, expected.begin() + 2);
  ASSERT_TRUE(file->commit());
  EXPECT_TRUE(testing::read_file(directory.file("a")) == expected);
}

TEST_P(OutputFile_, RefusesAnExistingTargetEvenIfItComesLate) {
  const TempDir directory;
  testing::write_file(directory.file("a"), kBytes);
  const Result<OutputFile> refused = OutputFile::create(directory.file("a"), false);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().advice, Advice::replace);

  Result<OutputFile> late = OutputFile::create(directory.file("b"), false);
  ASSERT_TRUE(late);
  testing::write_file(directory.file("b"), kBytes);
  EXPECT_FALSE(late->commit());
  late = OutputFile();
  EXPECT_EQ(testing::read_file(directory.file("b")).size(), 4u);
  EXPECT_EQ(directory.names(), (Names{"a", "b"}));
}

TEST_P(OutputFile_, ReplacesOnlyOnCommit) {
  const TempDir directory;
  testing::write_file(directory.file("a"), kBytes);
  {
    Result<OutputFile> file = OutputFile::create(directory.file("a"), true);
    ASSERT_TRUE(file);
    ASSERT_TRUE(file->append(Bytes(kBytes).first(1)));
  }
  EXPECT_EQ(testing::read_file(directory.file("a")).size(), 4u);
  Result<OutputFile> file = OutputFile::create(directory.file("a"), true);
  ASSERT_TRUE(file->append(Bytes(kBytes).first(1)));
  ASSERT_TRUE(file->commit());
  EXPECT_EQ(testing::read_file(directory.file("a")).size(), 1u);
  EXPECT_EQ(directory.names(), Names{"a"});
}

TEST_P(OutputFile_, RefusesDirectoriesAndMissingOnes) {
  const TempDir directory;
  EXPECT_FALSE(OutputFile::create(directory.file("missing/a"), false));
  EXPECT_FALSE(OutputFile::create(directory.path().string(), false));
}

TEST_P(OutputFile_, MovesWithItsTemporary) {
  const TempDir directory;
  Result<OutputFile> first = OutputFile::create(directory.file("a"), false),
                     second = OutputFile::create(directory.file("a"), false);
  ASSERT_TRUE(first);
  ASSERT_TRUE(second) << "two writers of one target have temporaries of their own";
  OutputFile moved = std::move(*first);
  ASSERT_TRUE(moved.append(kBytes));
  ASSERT_TRUE(moved.commit());
  EXPECT_FALSE(second->commit()) << "the other came first";
}

TEST_P(OutputFile_, ReplacesRegularFilesOnly) {
  const TempDir directory;
  const std::string fifo = directory.file("fifo"), link = directory.file("link"),
                    dangling = directory.file("dangling"), plain = directory.file("plain"),
                    folder = directory.file("folder");
  testing::write_file(plain, kBytes);
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  std::filesystem::create_directory(folder);
  std::filesystem::create_symlink(plain, link);
  std::filesystem::create_symlink(directory.file("nowhere"), dangling);
  for (const std::string &name :
       {fifo, link, dangling, folder, folder + "/", std::string("/dev/null"), std::string()}) {
    EXPECT_FALSE(OutputFile::create(name, true)) << name;
    EXPECT_FALSE(OutputFile::create(name, false)) << name;
  }
  // And one that turns up while the output is written.
  Result<OutputFile> late = OutputFile::create(directory.file("late"), true);
  ASSERT_TRUE(late);
  std::filesystem::create_symlink(plain, directory.file("late"));
  EXPECT_FALSE(late->commit());
  EXPECT_TRUE(std::filesystem::is_symlink(directory.file("late")));
  EXPECT_EQ(testing::read_file(plain).size(), 4u);
}

TEST(OutputFile, LeavesNothingWithoutANameWhereTheFileSystemCan) {
  const TempDir directory;
  Result<OutputFile> file = OutputFile::create(directory.file("a"), false);
  ASSERT_TRUE(file);
  if (!directory.names().empty()) GTEST_SKIP() << "this file system has no unnamed files";
  ASSERT_TRUE(file->append(kBytes));
  ASSERT_TRUE(file->commit());
  EXPECT_EQ(directory.names(), Names{"a"});
}

TEST(OutputFile, CleansUpWhatDeadProcessesLeftAndNothingElse) {
  use_unnamed_files(false);
  const TempDir directory;
  const Names others = {".etwrelog-0123456789abcde.tmp", ".etwrelog-0123456789abcdeg.tmp", "a.tmp",
                        "x.1-0.tmp"};
  for (const std::string &name : others)
    testing::write_file(directory.file(name), kBytes);
  const std::string dead = directory.file(".etwrelog-0123456789abcdef.tmp");
  testing::write_file(dead, kBytes);
  std::filesystem::create_symlink("/dev/null", directory.file(".etwrelog-00000000000000ff.tmp"));
  const std::string alive = directory.file(".etwrelog-fedcba9876543210.tmp");
  testing::write_file(alive, kBytes);
  const int lock = ::open(alive.c_str(), O_RDWR);
  ASSERT_EQ(::flock(lock, LOCK_EX | LOCK_NB), 0);
  {
    Result<OutputFile> file = OutputFile::create(directory.file("b"), false);
    ASSERT_TRUE(file);
    EXPECT_FALSE(std::filesystem::exists(dead));
    EXPECT_TRUE(std::filesystem::exists(alive)) << "its owner lives";
  }
  ::close(lock);
  use_unnamed_files(true);
  EXPECT_EQ(directory.names().size(), others.size() + 2);
}

// File systems give the number of a deleted folder to the next one; each is cleaned all the same.
TEST(OutputFile, CleansUpFoldersThatTookThePlaceOfOthers) {
  use_unnamed_files(false);
  for (int i = 0; i < 20; ++i) {
    const TempDir directory;
    const std::string dead = directory.file(".etwrelog-0123456789abcdef.tmp");
    testing::write_file(dead, kBytes);
    ASSERT_TRUE(OutputFile::create(directory.file("a"), false));
    EXPECT_FALSE(std::filesystem::exists(dead));
  }
  use_unnamed_files(true);
}

TEST(OutputFile, KnowsAPlaceUnderAllItsNames) {
  const TempDir directory;
  std::filesystem::create_directory(directory.file("d"));
  std::filesystem::create_directory_symlink(directory.file("d"), directory.file("l"));
  const std::optional<Place> place = place_of(directory.file("d/x"));
  ASSERT_TRUE(place);
  for (const char *same : {"d/./x", "l/x", "d//x", "l/../d/x"})
    EXPECT_EQ(place_of(directory.file(same)), place) << same;
  EXPECT_NE(place_of(directory.file("d/y")), place);
  EXPECT_NE(place_of(directory.file("x")), place);
  EXPECT_FALSE(place_of(directory.file("none/x")));
}

TEST(Relog, LeavesNothingBehindWhereverItFails) {
  testing::SyntheticTrace good;
  for (int i = 0; i < 4000; ++i)
    good.sample({2'000'000 + i, static_cast<std::uint16_t>(i % 2)}, 5);
  const auto attempt = [](const std::vector<std::uint8_t> &bytes, pipeline::RelogOptions options) {
    const TempDir directory;
    const Result<pipeline::Trace> trace = testing::open_trace(bytes);
    ASSERT_TRUE(trace);
    for (const bool existing : {false, true}) {
      options.output = directory.file("out.etl");
      options.replace_output = existing;
      if (existing) testing::write_file(options.output, kBytes);
      pipeline::RelogReport report;
      const Result<void> done = pipeline::relog(*trace, options, report);
      EXPECT_FALSE(done);
      EXPECT_EQ(directory.names(), existing ? Names{"out.etl"} : Names{});
      if (existing) {
        EXPECT_EQ(testing::read_file(options.output).size(), 4u) << "the target is as it was";
      }
    }
  };
  pipeline::RelogOptions options;
  options.buffer_size =
      1032; // a buffer of that size cannot hold the header event of long names; events larger neither
  testing::SyntheticTrace large;
  large.manifest_event({2'000'000}, {}, 1, 2, std::vector<std::uint8_t>(5000));
  attempt(large.bytes(), options); // an event that no buffer can hold
  options.buffer_size = 7;
  attempt(good.bytes(), options); // a size that is none
  options = {};
  options.selection.processes = {"nobody.exe"};
  attempt(good.bytes(), options); // fails when resolving targets
  std::vector<std::uint8_t> damaged = good.bytes();
  damaged[damaged.size() - 0x10000 + format::kBufferHeaderSize + 3] = 0;
  attempt(damaged, {}); // fails in the last buffer
  options = {};
  options.selection.to = Moment{true, 5, 0};
  attempt(damaged, options); // fails in the first of three passes
}

} // namespace
} // namespace etwrelog::base
