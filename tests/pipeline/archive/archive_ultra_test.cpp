// Coupled segments: all streams in one code, each symbol where the decoder needs it.
#include "archive/archive.hpp"
#include "base/output_file.hpp"
#include "etlz/model/model.hpp"
#include "etlz/segment.hpp"
#include "tests/support/coded_segment.hpp"
#include "tests/support/pace.hpp"
#include "tests/support/pipeline_runs.hpp"
#include "tests/support/recycled.hpp"
#include "tests/support/trace_files.hpp"

#include <gtest/gtest.h>

#include <random>

namespace etwrelog {
namespace {

using Buffer = std::vector<std::uint8_t>;
using etlz::SegmentMethod;

using Coded = testing::CodedSegment;

Coded ultra(const Buffer &trace, etlz::SegmentCoder &coder) {
  return testing::coded_segment(trace, coder, Level::ultra);
}

bool comes_back(const Coded &c, const Buffer &trace, etlz::SegmentCoder &coder) {
  Buffer back(trace.size(), 0x55);
  return coder.decode(c.method, c.bytes, back, c.facts.stream_bytes, c.facts.scratch_bytes) && back == trace;
}

Buffer archive_of(const Buffer &trace, unsigned threads) {
  const testing::TempDir directory;
  pipeline::ArchiveOptions options;
  options.level = Level::ultra;
  options.segment = 1u << 20;
  options.run.threads = threads;
  Result<base::OutputFile> out = base::OutputFile::create(directory.file("a"), false);
  EXPECT_TRUE(out);
  const auto packed = pipeline::pack_file(*read::memory_input("trace", trace), *out, options);
  EXPECT_TRUE(packed) << (packed ? "" : packed.error().message());
  EXPECT_TRUE(out->commit());
  return testing::read_file(directory.file("a"));
}

TEST(Ultra, RealTracesComeBackAndAreSmaller) {
  const std::vector<std::string> traces = testing::trace_names();
  if (traces.empty()) GTEST_SKIP() << "no real traces";
  etlz::SegmentCoder coder;
  for (const std::string &name : traces) {
    const Buffer trace = testing::read_file(testing::trace_path(name)->string());
    if (testing::kSanitized && trace.size() > 2'000'000) continue;
    const Coded c = ultra(trace, coder);
    EXPECT_TRUE(comes_back(c, trace, coder)) << name;
    EXPECT_LE(c.bytes.size(), testing::coded_segment(trace, coder, Level::max).bytes.size()) << name;
  }
}

TEST(Ultra, GeneratedTracesComeBackCompressedOrNot) {
  etlz::SegmentCoder coder;
  for (const Codec codec : {Codec::none, Codec::xpress, Codec::lznt1})
    for (const std::size_t turns : {0u, 3u}) {
      const Buffer trace = testing::trace_in_recycled_memory(codec, testing::kSanitized ? 20 : 60, turns);
      const Coded c = ultra(trace, coder);
      EXPECT_EQ(c.method, SegmentMethod::coupled) << codec_name(codec) << ' ' << turns;
      EXPECT_TRUE(coder.gives(c.method, c.bytes, trace, c.facts.stream_bytes, c.facts.scratch_bytes));
      EXPECT_TRUE(comes_back(c, trace, coder)) << codec_name(codec) << ' ' << turns;
      // Nothing of one segment is left for the next, nor for another coder's.
      EXPECT_EQ(ultra(trace, coder).bytes, c.bytes);
      etlz::SegmentCoder other;
      EXPECT_TRUE(comes_back(c, trace, other));
    }
}

TEST(Ultra, WhatIsNoBufferComesBack) {
  Buffer trace = testing::trace_in_recycled_memory(Codec::none, 20, 3);
  std::mt19937 random(5);
  for (int i = 0; i < 3000; ++i)
    trace.push_back(static_cast<std::uint8_t>(random()));
  for (std::size_t at = trace.size() / 2; at < trace.size() / 2 + 700; ++at)
    trace[at] = static_cast<std::uint8_t>(random());
  etlz::SegmentCoder coder;
  EXPECT_TRUE(comes_back(ultra(trace, coder), trace, coder));
}

TEST(Ultra, ArchivesAreTheSameWhateverTheThreads) {
  const Buffer trace = testing::trace_in_recycled_memory(Codec::none, testing::kSanitized ? 60 : 400, 4);
  const Buffer archive = archive_of(trace, 1);
  EXPECT_EQ(archive_of(trace, 2), archive);
  const auto input = read::memory_input("archive", archive);
  const auto unpacked = pipeline::unpack_file(*input, nullptr, {});
  ASSERT_TRUE(unpacked) << unpacked.error().message();
  EXPECT_TRUE(unpacked->hash_checked);
}

TEST(Ultra, DamageNeitherCrashesNorGoesOnForEver) {
  const Buffer trace = testing::trace_in_recycled_memory(Codec::xpress, 30, 3);
  etlz::SegmentCoder coder;
  const Coded c = ultra(trace, coder);
  ASSERT_EQ(c.method, SegmentMethod::coupled);
  std::mt19937 random(11);
  Buffer back(trace.size());
  for (int round = 0; round < (testing::kSanitized ? 30 : 200); ++round) {
    Coded damaged = c;
    damaged.bytes[random() % c.bytes.size()] ^= static_cast<std::uint8_t>(1 + random() % 255);
    // What a decoder makes of it is for the checksums to find; here it is enough that it ends.
    static_cast<void>(
        coder.decode(c.method, damaged.bytes, back, c.facts.stream_bytes, c.facts.scratch_bytes));
    damaged.bytes.resize(random() % c.bytes.size());
    EXPECT_FALSE(comes_back(damaged, trace, coder));
  }
  Coded longer = c;
  longer.bytes.insert(longer.bytes.end(), 8, 0x35); // a reader may be up to four bytes ahead
  EXPECT_FALSE(comes_back(longer, trace, coder));
  EXPECT_TRUE(comes_back(c, trace, coder)) << "what was damaged before leaves nothing behind";
}

TEST(Ultra, MemoryIsWhatTheHeaderSays) {
  const Buffer trace = testing::trace_in_recycled_memory(Codec::none, 60, 3);
  etlz::SegmentCoder coder;
  const Coded c = ultra(trace, coder);
  Buffer back(trace.size());
  ASSERT_EQ(c.method, SegmentMethod::coupled);
  EXPECT_TRUE(coder.decode(c.method, c.bytes, back, c.facts.stream_bytes, c.facts.scratch_bytes));
  EXPECT_FALSE(coder.decode(c.method, c.bytes, back, c.facts.stream_bytes - 1, c.facts.scratch_bytes));
  EXPECT_FALSE(coder.decode(c.method, c.bytes, back, 0, c.facts.scratch_bytes));
}

} // namespace
} // namespace etwrelog
