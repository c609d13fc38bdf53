#include "base/output_file.hpp"
#include "tests/support/pipeline_runs.hpp"

#include <gtest/gtest.h>

namespace etwrelog::base {
namespace {

using testing::TempDir;
const std::uint8_t kBytes[] = {1, 2, 3, 4};
using Names = std::vector<std::string>;

TEST(OutputFile, AppearsWholeOrNotAtAll) {
  const TempDir directory;
  {
    Result<OutputFile> file = OutputFile::create(directory.file("a"), false);
    ASSERT_TRUE(file);
    ASSERT_TRUE(file->append(kBytes));
    EXPECT_FALSE(std::filesystem::exists(directory.file("a")));
    EXPECT_EQ(directory.names().size(), 1u) << "the temporary stands beside the target";
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

TEST(OutputFile, RefusesAnExistingTargetEvenIfItComesLate) {
  const TempDir directory;
  testing::write_file(directory.file("a"), kBytes);
  const Result<OutputFile> refused = OutputFile::create(directory.file("a"), false);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message().find("--force"), std::string::npos);

  Result<OutputFile> late = OutputFile::create(directory.file("b"), false);
  ASSERT_TRUE(late);
  testing::write_file(directory.file("b"), kBytes);
  EXPECT_FALSE(late->commit());
  late = OutputFile();
  EXPECT_EQ(testing::read_file(directory.file("b")).size(), 4u);
  EXPECT_EQ(directory.names(), (Names{"a", "b"}));
}

TEST(OutputFile, ReplacesOnlyOnCommit) {
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

TEST(OutputFile, RefusesDirectoriesAndMissingOnes) {
  const TempDir directory;
  EXPECT_FALSE(OutputFile::create(directory.file("missing/a"), false));
  EXPECT_FALSE(OutputFile::create(directory.path().string(), false));
}

TEST(OutputFile, MovesWithItsTemporary) {
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
