// Damaged and hostile files: what is whole is salvaged, what claims more than it holds costs nothing.
#include "etlz/index.hpp"
#include "tests/support/deflated.hpp"
#include "tests/support/generated.hpp"
#include "tests/support/pipeline_runs.hpp"
#include "tests/support/run_tool.hpp"
#include "tests/support/trace_files.hpp"

#include <filesystem>

#include <gtest/gtest.h>

namespace etwrelog {
namespace {

using testing::run_tool;
using testing::TempDir;
using testing::ToolRun;
using BytesOf = std::vector<std::uint8_t>;

struct FirstBuffer : ::testing::Test {
  FirstBuffer() {
    t.in_first_buffer(true);
    t.process_rundown({1'000'100}, 100, 4, "target.exe");
    t.in_first_buffer(false);
    t.thread_rundown({1'000'101}, 110, 100);
    for (int i = 0; i < 100; ++i)
      t.sample({2'000'000 + i}, 110);
  }
  testing::SyntheticTrace t;
};

TEST_F(FirstBuffer, EveryFlipInItsHeaderIsSalvagedOrRefused) {
  const BytesOf whole = t.bytes();
  std::size_t salvaged = 0, all = 0;
  for (std::size_t bit = 0; bit < 8 * format::kBufferHeaderSize; ++bit) {
    BytesOf bytes = whole;
    bytes[bit / 8] ^= static_cast<std::uint8_t>(1u << bit % 8);
    const testing::Relogged r = testing::relog_bytes(bytes, {}, {.salvage = true});
    if (r.error) continue;
    ++salvaged;
    ASSERT_EQ(r.contents.error, "") << "bit " << bit << ": the output reads back";
    all += r.contents.events.size() == t.count() ? 1u : 0u;
  }
  EXPECT_EQ(salvaged, 8 * format::kBufferHeaderSize) << "the logfile header was there each time";
  EXPECT_GE(all, 8 * format::kBufferHeaderSize - 40) << "and what else the first buffer holds";
}

TEST_F(FirstBuffer, ItsOtherEventsAreKept) {
  BytesOf bytes = t.bytes();
  bytes[3] = 2; // BufferSize: 32 MiB more
  const testing::Relogged r = testing::relog_bytes(bytes, {}, {.salvage = true});
  ASSERT_FALSE(r.error) << r.error->message();
  EXPECT_EQ(r.contents.events.size(), t.count());
  ASSERT_EQ(r.report.skipped.size(), 1u);
  EXPECT_EQ(r.report.skipped[0].offset, 0u);
  EXPECT_EQ(r.report.skipped[0].bytes, format::kBufferHeaderSize);
}

TEST_F(FirstBuffer, WithoutALogfileHeaderThereIsAnError) {
  BytesOf bytes = t.bytes();
  bytes[format::kBufferHeaderSize + 3] = 0;
  const Result<pipeline::Trace> trace = testing::open_trace(bytes, {.salvage = true});
  ASSERT_FALSE(trace);
  EXPECT_NE(trace.error().message().find("logfile header"), std::string::npos) << trace.error().message();
}

// As unpacking does: what reads the archive says the same as what reads that.
TEST(Salvage, AnArchiveIsReadWithoutItsDamagedSegments) {
  const TempDir directory;
  const std::string trace = directory.file("x.etl"), archive = directory.file("x.etlz"),
                    rest = directory.file("rest.etl");
  testing::write_file(trace, testing::generated(36u << 20));
  ASSERT_EQ(run_tool({"pack", trace, "-o", archive, "--level", "fast"}).status, 0);
  BytesOf bytes = testing::read_file(archive);
  bytes[bytes.size() / 2] ^= 1;
  testing::write_file(archive, bytes);
  const std::string sql = "select count(*), sum(timestamp), count(distinct process_id) from events";
  const ToolRun refused = run_tool({"query", archive, sql});
  EXPECT_EQ(refused.status, 1);
  EXPECT_NE(refused.err.find("; --salvage skips what is damaged"), std::string::npos) << refused.err;
  ASSERT_EQ(run_tool({"unpack", "--salvage", archive, "-o", rest}).status, 3);
  const ToolRun answer = run_tool({"query", "--salvage", archive, sql});
  EXPECT_EQ(answer.status, 3);
  EXPECT_NE(answer.err.find("of the archive is damaged"), std::string::npos) << answer.err;
  EXPECT_EQ(answer.out, run_tool({"query", rest, sql}).out);
  for (const char *command : {"info", "stats", "profile", "stacks", "schema"})
    EXPECT_EQ(run_tool({command, "--salvage", archive}).status, 3) << command;
  const std::string cut = directory.file("cut.etl"), again = directory.file("again.etl");
  EXPECT_EQ(run_tool({"relog", "--salvage", archive, "-o", cut}).status, 3);
  EXPECT_EQ(run_tool({"relog", rest, "-o", again}).status, 0);
  EXPECT_EQ(testing::read_file(cut), testing::read_file(again));
}

// What lies beside traces is told from a damaged one.
TEST(OtherFiles, AreCalledByTheirNames) {
  const TempDir directory;
  for (const auto &[begin, said] : std::vector<std::pair<std::string, std::string>>{
           {"ElfFile", "as a Windows event log (.evtx) begins"},
           {{'\x14', 0,   0,   0,   '!', 'F', 'a', 's', 't', 'S', 'e',
             'r',    'i', 'a', 'l', 'i', 'z', 'a', 't', 'i', 'o', 'n'},
            "as PerfView's own file of a trace (.etlx) begins"},
           {"MDMP", "as a crash dump begins"},
           {std::string("MSCF\0\0", 6), "is an archive of a kind that is not read"}}) {
    const std::string name = directory.file("other");
    std::string content = begin;
    content.resize(4096, 'x');
    testing::write_file(name, Bytes(reinterpret_cast<const std::uint8_t *>(content.data()), content.size()));
    for (const char *command : {"info", "export", "profile"}) {
      const ToolRun run = run_tool({command, name});
      EXPECT_EQ(run.status, 1) << command;
      EXPECT_NE(run.err.find(said), std::string::npos) << run.err;
    }
    EXPECT_EQ(run_tool({"pack", name, "-f", "-o", name + ".etlz"}).status, 0) << "any file can be";
    EXPECT_EQ(run_tool({"unpack", "-q", name + ".etlz", "-f", "-o", name + ".back"}).status, 0);
    EXPECT_EQ(testing::read_file(name), testing::read_file(name + ".back"));
  }
}

// Padding may follow a gzip file, of any length; what follows that is an error and nothing worse.
TEST(Unwrapping, WhatFollowsThePaddingOfAGzipFileIsAnError) {
  const TempDir directory;
  const std::string path = directory.file("x.etl.gz");
  testing::write_file(directory.file("x.etl"), testing::generated(1u << 20));
  BytesOf bytes = testing::gzip_of(testing::read_file(directory.file("x.etl")));
  bytes.resize(bytes.size() + (300u << 10));
  testing::write_file(path, bytes);
  EXPECT_EQ(run_tool({"info", path}).status, 0);
  bytes.push_back('x');
  testing::write_file(path, bytes);
  const ToolRun run = run_tool({"info", path});
  EXPECT_EQ(run.status, 1);
  EXPECT_NE(run.err.find("something follows the compressed data"), std::string::npos) << run.err;
}

TEST(HostileIndex, TakesNoMoreMemoryThanAllowed) {
  etlz::IndexEntry many;
  many.parts.assign(3'000'000, {false, 0, 0}); // 24 bytes each in memory, next to nothing in the file
  etlz::IndexEntry ids;
  ids.facts.processes.assign(3'000'000, 7);
  etlz::IndexEntry streams;
  streams.header.stream_bytes = std::uint64_t{1} << 63;
  for (const etlz::IndexEntry &entry : {many, ids, streams}) {
    etlz::IndexWriter writer(true); // which keeps the ids of one that is alone
    writer.add(entry);
    BytesOf bytes;
    writer.finish({}, bytes);
    EXPECT_FALSE(etlz::read_index(bytes, {10u << 20, 1000, 1u << 20}));
  }
  etlz::IndexWriter writer;
  for (int i = 0; i < 100; ++i)
    writer.add({});
  BytesOf bytes;
  writer.finish({}, bytes);
  EXPECT_TRUE(etlz::read_index(bytes, {10u << 20, 100, 0}));
  EXPECT_FALSE(etlz::read_index(bytes, {10u << 20, 99, 0})) << "more segments than the archive has room for";
  EXPECT_FALSE(etlz::read_index(bytes, {10'000, 100, 0})) << "the limit counts";
}

TEST(HostileIndex, BombsFailFastAndInLittleMemory) {
  const auto shared = testing::shared_dir();
  if (!shared || !std::filesystem::exists(*shared / "defects")) GTEST_SKIP() << "no folder of defects";
  for (const char *name : {"bomb-parts.etlz", "bomb-stream.etlz"})
    for (const char *command : {"info", "stats", "verify"}) {
      const ToolRun run = run_tool({command, (*shared / "defects" / name).string()});
      EXPECT_EQ(run.status, 1) << name << ' ' << run.signal;
      EXPECT_LT(run.peak_bytes, 200u << 20) << name << ' ' << command;
    }
}

TEST(Salvage, GivesReadableOutputOfEveryKnownDefect) {
  const auto shared = testing::shared_dir();
  if (!shared || !std::filesystem::exists(*shared / "defects")) GTEST_SKIP() << "no folder of defects";
  const TempDir directory;
  for (const char *name : {"relog-salvage-segv.etl", "ub-05e3ad.etl", "ub-939970.etl",
                           "trace_fuzz-crash-unreadable-output", "pack-assert.etl"}) {
    const std::string in = (*shared / "defects" / name).string(), out = directory.file("out.etl");
    const ToolRun run = run_tool({"relog", "--salvage", in, "-f", "-o", out});
    EXPECT_EQ(run.signal, 0) << name;
    if (run.status == 0 || run.status == 3) {
      EXPECT_EQ(run_tool({"info", out}).status, 0) << name;
    }
    EXPECT_EQ(run_tool({"pack", "-q", "-f", in, "-o", directory.file("p")}).status, 0) << name;
    EXPECT_EQ(run_tool({"unpack", "-q", "-f", directory.file("p"), "-o", directory.file("b")}).status, 0)
        << name;
    EXPECT_TRUE(testing::read_file(in) == testing::read_file(directory.file("b"))) << name;
  }
}

} // namespace
} // namespace etwrelog
