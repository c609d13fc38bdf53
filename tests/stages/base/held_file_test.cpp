// Files that are held open until they are deleted, and outputs that stand for one file.
#include "base/output_file.hpp"
#include "etwrelog/io.hpp"
#include "read/input.hpp"
#include "tests/support/pipeline_runs.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include <gtest/gtest.h>

#include <sys/stat.h>

namespace etwrelog::base {
namespace {

using testing::TempDir;
namespace fs = std::filesystem;
const std::uint8_t kHeldBytes[] = {1, 2, 3, 4}, kOtherBytes[] = {9, 2, 3, 4};

struct stat facts_of(const std::string &path) {
  struct stat facts {};
  EXPECT_EQ(::stat(path.c_str(), &facts), 0) << path;
  return facts;
}

TEST(HeldFile_, IsDeletedIfItIsStillTheOneThatWasOpened) {
  const TempDir directory;
  const std::string name = directory.file("a");
  testing::write_file(name, kHeldBytes);
  Result<HeldFile> file = HeldFile::open(name);
  ASSERT_TRUE(file) << file.error().message();
  EXPECT_TRUE(file->check_unchanged());
  EXPECT_TRUE(file->sync());
  ASSERT_TRUE(file->remove());
  EXPECT_TRUE(directory.names().empty());
  EXPECT_TRUE(file->remove()) << "gone is as good as deleted";
  EXPECT_FALSE(file->check_unchanged());
}

// The first promise: what nobody has read is never deleted.
TEST(HeldFile_, IsKeptIfItIsAnotherOrWasWrittenTo) {
  const TempDir directory;
  const std::string name = directory.file("a"), other = directory.file("b");
  const std::function<void()> changes[] = {
      [&] { // another file of the same size and content under its name
        testing::write_file(other, kHeldBytes);
        fs::rename(other, name);
      },
      [&] { // the same size, written in place, and the time set back
        const fs::file_time_type before = fs::last_write_time(name);
        std::fstream(name, std::ios::in | std::ios::out | std::ios::binary).put('x');
        fs::last_write_time(name, before);
      },
      [&] { std::ofstream(name, std::ios::app | std::ios::binary).put('x'); },
      [&] { fs::resize_file(name, 1); },
      [&] { // a link to the very file
        fs::rename(name, other);
        fs::create_symlink(other, name);
      },
  };
  for (const auto &change : changes) {
    fs::remove(name), fs::remove(other);
    testing::write_file(name, kHeldBytes);
    Result<HeldFile> file = HeldFile::open(name);
    ASSERT_TRUE(file);
    change();
    EXPECT_FALSE(file->check_unchanged());
    const Result<void> removed = file->remove();
    ASSERT_FALSE(removed);
    EXPECT_EQ(removed.error().kind, ErrorKind::io);
    EXPECT_EQ(removed.error().file, name);
    EXPECT_TRUE(fs::exists(fs::symlink_status(name)));
  }
}

// Writes within one tick of the clock of the file system leave one time.
TEST(HeldFile_, AWriteJustAfterAnotherIsSeen) {
  const TempDir directory;
  const std::string name = directory.file("a");
  for (int i = 0; i < 20; ++i) {
    testing::write_file(name, kHeldBytes);
    Result<HeldFile> file = HeldFile::open(name);
    ASSERT_TRUE(file);
    std::fstream(name, std::ios::in | std::ios::out | std::ios::binary).put('x');
    EXPECT_FALSE(file->remove()) << i;
  }
}

TEST(HeldFile_, ReadsWhatWasOpenedWhateverItsNameLeadsTo) {
  const TempDir directory;
  const std::string name = directory.file("a");
  testing::write_file(name, kHeldBytes);
  const Result<HeldFile> file = HeldFile::open(name);
  ASSERT_TRUE(file);
  testing::write_file(directory.file("b"), kOtherBytes);
  fs::rename(directory.file("b"), name);
  EXPECT_EQ(file->input().name(), name);
  const Result<std::unique_ptr<read::Input>> input = read::open_plain(file->input());
  ASSERT_TRUE(input);
  std::vector<std::uint8_t> bytes(4);
  const Result<std::size_t> got = (*input)->read_at(0, bytes);
  ASSERT_TRUE(got);
  ASSERT_EQ(*got, 4u);
  EXPECT_TRUE(std::ranges::equal(bytes, kHeldBytes));
}

TEST(HeldFile_, LinksFoldersAndPipesAreNone) {
  const TempDir directory;
  testing::write_file(directory.file("a"), kHeldBytes);
  fs::create_symlink("a", directory.file("link"));
  fs::create_directory(directory.file("folder"));
  ASSERT_EQ(::mkfifo(directory.file("pipe").c_str(), 0666), 0);
  for (const char *name : {"link", "folder", "pipe", "none"})
    EXPECT_FALSE(HeldFile::open(directory.file(name))) << name;
}

class Like : public ::testing::TestWithParam<bool> {
protected:
  Like() { use_unnamed_files(GetParam()); }
  ~Like() override { use_unnamed_files(true); }
};
INSTANTIATE_TEST_SUITE_P(, Like, ::testing::Bool(),
                         [](const auto &one) { return one.param ? "Unnamed" : "Named"; });

TEST_P(Like, AnOutputHasThePermissionsAndTheTimeOfItsSource) {
  const TempDir directory;
  const std::string source = directory.file("source"), target = directory.file("target");
  testing::write_file(source, kHeldBytes);
  const fs::file_time_type then = fs::last_write_time(source) - std::chrono::hours(1000);
  for (const mode_t mode : {0600u, 0640u, 0400u, 0644u, 04755u}) {
    ASSERT_EQ(::chmod(source.c_str(), mode), 0);
    fs::last_write_time(source, then);
    Result<OutputStream> out = OutputStream::open(Output(target, Existing::replace).like(source));
    ASSERT_TRUE(out) << out.error().message();
    if (!GetParam())
      for (const std::string &name : directory.names())
        if (name.starts_with(".etwrelog-")) {
          EXPECT_EQ(facts_of(directory.file(name)).st_mode & 0777, mode & 0777) << "also while it is written";
        }
    ASSERT_TRUE(out->write(Bytes(kHeldBytes)));
    ASSERT_TRUE(out->commit());
    EXPECT_EQ(facts_of(target).st_mode & 07777, mode & 0777) << mode;
    EXPECT_EQ(fs::last_write_time(target), then);
  }
  const Output none = Output(directory.file("new")).like(directory.file("nosuch"));
  ASSERT_TRUE(OutputStream::open(none)->commit());
  EXPECT_NE(facts_of(directory.file("new")).st_mode & 0600, 0u);
}

} // namespace
} // namespace etwrelog::base
