// What we write against what Windows wrote: buffer headers and the logfile header, field by field.
#include "tests/support/real_traces.hpp"
#include "write/etl_writer.hpp"

#include <gtest/gtest.h>

#include <set>

namespace etwrelog::write {
namespace {

using namespace format;

struct File {
  std::vector<std::uint8_t> bytes;
  std::vector<BufferHeader> headers;
  std::vector<std::size_t> offsets;
  LogfileHeader log;
};

File load_file(const std::string &path) {
  File f;
  f.bytes = testing::read_file(path);
  for (std::size_t at = 0; at < f.bytes.size(); at += f.headers.back().buffer_size) {
    f.headers.push_back(load_buffer_header(&f.bytes[at]));
    f.offsets.push_back(at);
    if (f.headers.back().buffer_size < kBufferHeaderSize) break;
  }
  const std::uint8_t *event = &f.bytes[kBufferHeaderSize];
  f.log = *read_logfile_header(
      EventView(event, load<std::uint16_t>(event + 4), static_cast<HeaderType>(event[2])));
  return f;
}

// What holds in every file that we write.
void expect_valid(const File &f, bool compressed) {
  const std::size_t n = f.headers.size();
  const auto last = f.offsets.back() + f.headers.back().buffer_size;
  EXPECT_EQ(last, f.bytes.size()) << "the buffers tile the file";
  EXPECT_EQ(f.log.buffers_written, n);
  EXPECT_EQ(f.log.log_file_mode & ~(kModeKilobytes | kModeOneStream),
            kModeSequential | kModeRelog | (compressed ? kModeCompressed : 0u));
  const bool modern = compressed || f.log.buffer_size > 1u << 20 || f.log.processors > 256;
  EXPECT_EQ(f.log.sub_version * 10 + f.log.sub_minor_version, modern ? 20 : 15);
  std::map<std::uint16_t, std::int64_t> sequence;
  std::set<std::int64_t> sequences;
  std::int64_t stamp = 0;
  for (std::size_t i = 0; i < n; ++i) {
    SCOPED_TRACE(i);
    const BufferHeader &h = f.headers[i];
    EXPECT_EQ(h.reference_count, 0);
    EXPECT_EQ(h.logger_id, 0);
    EXPECT_EQ(h.clock, 0u);
    EXPECT_EQ(h.reserved, (std::array<std::uint64_t, 2>{}));
    EXPECT_EQ(h.saved_offset, h.filled_bytes) << "readers of either field find the same end";
    EXPECT_GE(h.time_stamp, stamp);
    stamp = h.time_stamp;
    EXPECT_TRUE(sequences.insert(h.sequence_number).second) << "each sequence number once";
    if (i == 0) {
      EXPECT_EQ(h.time_stamp, 0);
      EXPECT_EQ(h.sequence_number, 0);
      EXPECT_EQ(h.flags, kFlagFlushMarker);
      EXPECT_EQ(h.type, kTypeHeader);
      EXPECT_EQ(h.state, compressed ? std::uint32_t{kStateFlush} : std::uint32_t{kStateFree});
      EXPECT_EQ(h.current_offset, 0u);
      EXPECT_EQ(h.buffer_size, compressed ? (h.saved_offset + 511) / 512 * 512 : f.log.buffer_size);
    } else {
      EXPECT_EQ(h.type, kTypeGeneric);
      EXPECT_EQ(h.state, kStateFlush);
      EXPECT_EQ(h.flags & kFlagFlushMarker, i + 1 == n ? kFlagFlushMarker : 0)
          << "the first and the last buffer only";
      EXPECT_NE(h.flags & kFlagProcessorIndex, 0);
      EXPECT_EQ(h.flags & ~(kFlagFlushMarker | kFlagProcessorIndex | kFlagCompressed), 0);
      EXPECT_LE(h.saved_offset, f.log.buffer_size);
      EXPECT_GT(h.current_offset, f.log.buffer_size) << "SavedOffset and the reservation that failed";
      auto [previous, fresh] = sequence.try_emplace(h.processor(), h.sequence_number);
      EXPECT_TRUE(fresh || previous->second < h.sequence_number) << "ascending along a processor";
      previous->second = h.sequence_number;
      if (!compressed) {
        EXPECT_EQ(h.buffer_size, f.log.buffer_size);
      } else if (!h.compressed()) {
        EXPECT_EQ(h.buffer_size, h.saved_offset) << "what does not shrink is stored at its own length";
      }
    }
    const std::size_t fill_from = f.offsets[i] + (h.compressed() ? h.buffer_size : h.saved_offset);
    for (std::size_t at = fill_from; at < f.offsets[i] + h.buffer_size; ++at)
      ASSERT_EQ(f.bytes[at], 0xFF);
  }
  EXPECT_EQ(*sequences.begin(), 0);
  EXPECT_EQ(*sequences.rbegin(), static_cast<std::int64_t>(n) - 1) << "0..n-1 without a gap";
}

class WrittenByWindows : public ::testing::TestWithParam<const char *> {};
INSTANTIATE_TEST_SUITE_P(Shared, WrittenByWindows,
                         ::testing::Values("net.4.5.2.x64", "SelfDescribingSingleEvent", "diaghub",
                                           "diaghub.kernel.1"),
                         [](const auto &trace) { return testing::test_name(trace.param); });

TEST_P(WrittenByWindows, OurRelogIsOfTheSameMake) {
  const auto path = testing::trace_path(GetParam());
  if (!path) GTEST_SKIP() << "no ../shared/traces beside the project";
  const testing::TempDir directory;
  const std::string output = directory.file("out.etl");
  const Result<pipeline::Trace> trace = pipeline::Trace::open(path->string(), {false, true});
  ASSERT_TRUE(trace);
  pipeline::RelogOptions options;
  options.output = output;
  options.keep_grouping = true;
  pipeline::RelogReport report;
  ASSERT_TRUE(pipeline::relog(*trace, options, report));
  const File theirs = load_file(path->string()), ours = load_file(output);
  const bool compressed = (theirs.log.log_file_mode & kModeCompressed) != 0;
  expect_valid(ours, compressed);

  // The logfile header: BuffersWritten is the same because the grouping is. Deliberately different:
  // - LogFileMode: without ADD_HEADER (0x1000), which tells a controller to write a header, not a reader
  // anything.
  EXPECT_EQ(ours.log.log_file_mode, theirs.log.log_file_mode & ~0x1000u);
  LogfileHeader same = ours.log;
  same.log_file_mode = theirs.log.log_file_mode;
  EXPECT_EQ(make_logfile_header(same, 0, 0), make_logfile_header(theirs.log, 0, 0)) << "all other fields";
  const std::uint32_t size = load<std::uint16_t>(&theirs.bytes[kBufferHeaderSize + 4]);
  for (std::uint32_t i = 0; i < size; ++i) {
    const bool mode = i >= kSystemHeaderSize + kLogFileModeAt && i < kSystemHeaderSize + kLogFileModeAt + 4;
    EXPECT_TRUE(mode || ours.bytes[kBufferHeaderSize + i] == theirs.bytes[kBufferHeaderSize + i])
        << "byte " << i;
  }

  ASSERT_EQ(ours.headers.size(), theirs.headers.size());
  for (std::size_t i = 0; i < ours.headers.size(); ++i) {
    SCOPED_TRACE(i);
    const BufferHeader &a = ours.headers[i], &b = theirs.headers[i];
    EXPECT_EQ(a.reference_count, b.reference_count);
    EXPECT_EQ(a.logger_id, b.logger_id);
    EXPECT_EQ(a.state, b.state);
    EXPECT_EQ(a.flags, b.flags);
    EXPECT_EQ(a.type, b.type);
    EXPECT_EQ(a.processor(), b.processor());
    EXPECT_EQ(a.filled_bytes, b.filled_bytes);
    EXPECT_EQ(a.saved_offset,
              b.filled_bytes); // theirs ends behind the header event in buffer 0, which hides the others
    if (i == 0 || !compressed) {
      EXPECT_EQ(a.buffer_size, b.buffer_size);
    }
    // Deliberately different: CurrentOffset is SavedOffset + nominal size where theirs names the reservation
    // that failed, unless it is known; TimeStamp is the last event's time, not that of relogging, so that the
    // same input gives the same bytes; sequence numbers follow the file; no stale pointers at 0x20 and 0x38.
    const std::uint32_t failed = failed_reservation(b, theirs.log.buffer_size);
    if (i > 0 && failed != 0) {
      EXPECT_EQ(a.current_offset, b.current_offset);
    }
  }
}

TEST(Writer, WritesValidFilesOfEveryKind) {
  testing::SyntheticTrace t({.buffer_size = 4096, .processors = 8});
  t.in_first_buffer(true);
  t.system({1'000'001}, 0x0042, 0, 1, 2);
  t.in_first_buffer(false);
  for (int i = 0; i < 6000; ++i)
    t.sample({2'000'000 + i, static_cast<std::uint16_t>(i * 7 % 5)}, static_cast<std::uint32_t>(i % 11));
  for (const Codec codec : {Codec::none, Codec::xpress, Codec::lznt1})
    for (const std::uint32_t size : {1024u, 4096u, 65536u, 2u << 20})
      for (const bool keep : {false, true}) {
        SCOPED_TRACE(std::string(codec_name(codec)) + ' ' + std::to_string(size) + (keep ? " keep" : ""));
        const testing::TempDir directory;
        const std::string output = directory.file("out.etl");
        const Result<pipeline::Trace> trace = testing::open_trace(t.bytes());
        pipeline::RelogOptions options;
        options.output = output;
        options.codec = codec;
        options.buffer_size = size;
        options.keep_grouping = keep;
        pipeline::RelogReport report;
        ASSERT_TRUE(pipeline::relog(*trace, options, report));
        const File f = load_file(output);
        expect_valid(f, codec != Codec::none);
        EXPECT_EQ(f.log.buffer_size, keep ? 4096u : size);
        EXPECT_EQ(f.headers.size(), report.output_buffers);
        EXPECT_EQ(f.bytes.size(), report.output_bytes);
        EXPECT_EQ(testing::contents_of(f.bytes).by_cpu, testing::contents_of(t.bytes()).by_cpu);
      }
}

TEST(Writer, StoresWhatDoesNotShrinkAsItIs) {
  testing::SyntheticTrace t;
  std::mt19937_64 random(3);
  std::vector<std::uint8_t> noise(30'000);
  for (std::uint8_t &byte : noise)
    byte = static_cast<std::uint8_t>(random());
  t.manifest_event({2'000'000}, {}, 1, 2, noise);
  pipeline::RelogOptions options;
  options.codec = Codec::xpress;
  const testing::Relogged r = testing::relog_bytes(t.bytes(), options);
  ASSERT_FALSE(r.error);
  ASSERT_EQ(r.contents.buffers.size(), 2u);
  EXPECT_FALSE(r.contents.buffers[1].compressed());
  EXPECT_EQ(r.contents.count(t.event(0)), 1u);
  options = {};
  const testing::Relogged again = testing::relog_bytes(r.bytes, options);
  EXPECT_EQ(again.contents.count(t.event(0)), 1u);
}

TEST(Writer, NeverSplitsAnEventOfTheLargestSize) {
  testing::SyntheticTrace t({.buffer_size = 128u << 10});
  std::vector<std::size_t> large;
  for (int i = 0; i < 5; ++i)
    large.push_back(
        t.manifest_event({2'000'000 + i}, {}, 1, 2, std::vector<std::uint8_t>(kMaxEventSize - 0x50 - i, 7)));
  pipeline::RelogOptions options;
  options.buffer_size = 64u << 10;
  const testing::Relogged small = testing::relog_bytes(t.bytes(), options);
  ASSERT_TRUE(small.error);
  EXPECT_EQ(small.error->option, Option::buffer_size) << small.error->message();
  options.buffer_size = 0; // the input's
  const testing::Relogged r = testing::relog_bytes(t.bytes(), options);
  ASSERT_FALSE(r.error) << r.error->message();
  for (const auto event : large)
    EXPECT_EQ(r.contents.count(t.event(event)), 1u);
}

TEST(Writer, ZeroesThePaddingBetweenEvents) {
  testing::SyntheticTrace t;
  for (int i = 0; i < 8; ++i)
    t.manifest_event({2'000'000 + i}, {}, 1, 2, std::vector<std::uint8_t>(static_cast<std::size_t>(i), 0x55));
  {
    testing::SyntheticBuffer &buffer = t.end_buffer(0);
    std::size_t at = 0;
    while (at < buffer.events.size()) {
      const std::size_t size = load<std::uint16_t>(&buffer.events[at]);
      std::fill(buffer.events.begin() + static_cast<std::ptrdiff_t>(at + size),
                buffer.events.begin() + static_cast<std::ptrdiff_t>(align8(at + size)), 0xAB);
      at += align8(size);
    }
  }
  const testing::Relogged r = testing::relog_bytes(t.bytes());
  ASSERT_FALSE(r.error);
  EXPECT_EQ(r.contents.events.size(), 8u);
  const std::size_t data = r.bytes.size() - 0x10000 + kBufferHeaderSize;
  EXPECT_EQ(std::count(r.bytes.begin() + static_cast<std::ptrdiff_t>(data), r.bytes.end(), 0xAB), 0);
}

TEST(Writer, CompletesAnOpenLog) {
  testing::SyntheticTrace t({.closed = false});
  t.sample({21'000'000}, 5); // two seconds in
  const testing::Relogged r = testing::relog_bytes(t.bytes());
  ASSERT_FALSE(r.error);
  const Result<pipeline::Trace> out = testing::open_trace(r.bytes);
  EXPECT_EQ(out->header().buffers_written, 2u);
  EXPECT_EQ(out->header().end_time, t.header().start_time + 2 * kFiletimePerSecond);
  EXPECT_TRUE(out->scan().warnings.empty());
}

TEST(Writer, KeepsLossesOfTheInput) {
  testing::SyntheticTrace t({.events_lost = 41});
  t.sample({2'000'000}, 5);
  t.end_buffer(0).tweak = [](BufferHeader &h) { h.flags |= kFlagEventsLost; };
  const testing::Relogged r = testing::relog_bytes(t.bytes());
  ASSERT_FALSE(r.error);
  EXPECT_EQ(testing::open_trace(r.bytes)->header().events_lost, 41u);
  EXPECT_NE(r.contents.buffers[1].flags & kFlagEventsLost, 0);
}

TEST(Writer, WritesATraceOfNothingButItsHeader) {
  const testing::SyntheticTrace t;
  for (const Codec codec : {Codec::none, Codec::xpress}) {
    pipeline::RelogOptions options;
    options.codec = codec;
    const testing::Relogged r = testing::relog_bytes(t.bytes(), options);
    ASSERT_FALSE(r.error);
    EXPECT_EQ(r.contents.buffers.size(), 1u);
    EXPECT_EQ(r.contents.error, "");
  }
}

} // namespace
} // namespace etwrelog::write
