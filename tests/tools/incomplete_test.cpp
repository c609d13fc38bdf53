// A trace that lacks buffers stays one that says so, whatever is made of it: an output is numbered anew and
// counts as whole what it has, so that its count of lost buffers is all that tells of the rest.
#include "tests/support/pipeline_runs.hpp"
#include "tests/support/run_tool.hpp"
#include "tests/support/trace_files.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace etwrelog {
namespace {

using testing::SyntheticTrace;
using Buffer = std::vector<std::uint8_t>;

constexpr std::size_t kBufferSize = 0x4000;

// Whole uncompressed buffers and a last one that is half full.
SyntheticTrace samples_trace(Codec codec = Codec::none) {
  SyntheticTrace t({.buffer_size = kBufferSize, .codec = codec});
  t.process_rundown({1'000'100}, 100, 4, "one.exe", "x");
  t.thread_rundown({1'000'101}, 104, 100);
  for (int i = 0; i < 2000; ++i)
    t.sample({2'000'000 + 100 * i}, 104, 0x1000);
  return t;
}

struct LossTold {
  std::uint64_t lost = 0;
  bool cleanly = false;
};

LossTold loss_told(const std::string &trace) {
  const testing::ToolRun info = testing::run_tool({"info", "--json", trace});
  EXPECT_EQ(info.status, 0) << info.err;
  if (info.status != 0) return {};
  const nlohmann::json source = nlohmann::json::parse(info.out);
  return {source.at("header").at("buffers_lost").get<std::uint64_t>(),
          source.at("closed_cleanly").get<bool>()};
}

class Incomplete : public ::testing::Test {
protected:
  std::string input(const Buffer &bytes, const std::string &name = "in.etl") const {
    testing::write_file(directory_.file(name), bytes);
    return directory_.file(name);
  }
  // What the relogged trace says of itself.
  LossTold relogged(std::vector<std::string> words, int status = 0, const std::string &from = {}) const {
    words.insert(words.begin(), "relog");
    words.insert(words.end(), {"-o", directory_.file("out.etl"), "--force"});
    testing::ToolOptions tool;
    tool.input = from;
    const testing::ToolRun run = testing::run_tool(words, tool);
    EXPECT_EQ(run.status, status) << run.err;
    return loss_told(directory_.file("out.etl"));
  }

  testing::TempDir directory_;
};

TEST_F(Incomplete, ARelogCountsTheBuffersThatItsInputLacksAsLost) {
  Buffer bytes = samples_trace().bytes();
  ASSERT_EQ(relogged({input(bytes)}).lost, 0u);
  bytes.erase(bytes.end() - 2 * kBufferSize, bytes.end() - kBufferSize); // one from within
  const std::string without_one = input(bytes);
  EXPECT_FALSE(loss_told(without_one).cleanly);
  for (const LossTold &output : {relogged({without_one}), relogged({without_one, "-p", "one.exe"}),
                                 relogged({"-", "--single-pass"}, 0, without_one)}) {
    EXPECT_EQ(output.lost, 1u);
    EXPECT_TRUE(output.cleanly);
  }
}

TEST_F(Incomplete, ABufferThatIsCutIsLostWhereTheCutTookEvents) {
  const Buffer bytes = samples_trace().bytes();
  const std::uint32_t used =
      format::load_buffer_header(bytes.data() + bytes.size() - kBufferSize).valid_bytes();
  ASSERT_LT(used, kBufferSize - 16);
  const std::size_t last = bytes.size() - kBufferSize;
  for (const std::size_t kept : {last + used, last + used - 1, last + 0x100}) {
    const std::string cut = input({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(kept)});
    const std::uint64_t lost = kept < last + used ? 1 : 0;
    EXPECT_EQ(relogged({cut}).lost, lost) << kept;
    EXPECT_EQ(relogged({"-", "--single-pass"}, 0, cut).lost, lost) << kept;
  }
}

TEST_F(Incomplete, WhatSalvagingStepsOverIsLost) {
  Buffer bytes = samples_trace(Codec::xpress).bytes();
  const std::size_t second = format::load_buffer_header(bytes.data()).buffer_size;
  std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(second + 0x60), 64, std::uint8_t{0x55});
  EXPECT_EQ(relogged({input(bytes), "--salvage"}, 3).lost, 1u);
}

TEST_F(Incomplete, AMergeAddsUpWhatItsInputsLack) {
  Buffer bytes = samples_trace().bytes();
  bytes.resize(bytes.size() - kBufferSize);
  const std::string a = input(bytes);
  bytes.resize(bytes.size() - kBufferSize);
  const std::string b = input(bytes, "b.etl");
  EXPECT_EQ(relogged({a, b}).lost, 3u);
}

TEST_F(Incomplete, AnArchiveOfWhichARelogReadsOnlySomeLacksNothing) {
  SyntheticTrace t({.buffer_size = kBufferSize});
  t.process_rundown({1'000'100}, 100, 4, "one.exe", "x");
  t.thread_rundown({1'000'101}, 104, 100);
  for (int i = 0; i < 400'000; ++i)
    t.sample({2'000'000 + 100 * i}, 104, 0x1000);
  const std::string trace = input(t.bytes()), archive = directory_.file("in.etlz");
  ASSERT_EQ(testing::run_tool({"pack", trace, "-o", archive}).status, 0);
  EXPECT_EQ(relogged({archive, "--from", "3s"}).lost, 0u);
}

TEST_F(Incomplete, AProfileCountsThem) {
  Buffer bytes = samples_trace().bytes();
  bytes.resize(bytes.size() - kBufferSize);
  const testing::ToolRun run = testing::run_tool({"profile", input(bytes)});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_NE(run.out.find("LOST: 0 events, 1 buffers"), std::string::npos) << run.out;
}

} // namespace
} // namespace etwrelog
