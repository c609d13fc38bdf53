// Archives of odd files, and what is left of those that were damaged: what is packed can be unpacked, and
// what is salvaged stood in the file.
#include "archive/segments.hpp"
#include "etlz/segment.hpp"
#include "etwrelog/archive.hpp"
#include "tests/support/synthetic_trace.hpp"
#include "write/event_builder.hpp"

#include <random>

#include <gtest/gtest.h>

namespace etwrelog {
namespace {

using Buffer = std::vector<std::uint8_t>;
using testing::SyntheticTrace;

Buffer noise(std::size_t size, std::uint32_t seed) {
  std::mt19937 random(seed);
  Buffer bytes(size);
  std::ranges::generate(bytes, [&] { return static_cast<std::uint8_t>(random()); });
  return bytes;
}

Buffer packed_of(const Buffer &file, PackOptions options = {}) {
  Buffer archive;
  const Result<PackReport> done = pack(Input::memory("file", file), Output::memory(archive), options);
  EXPECT_TRUE(done) << done.error().message();
  return archive;
}

// --- Segments

std::vector<std::size_t> segment_sizes(const Buffer &file, std::size_t target) {
  const auto input = read::memory_input("t.etl", file);
  base::BytePool pool;
  pipeline::SegmentSource source(*input, true, target, pool);
  pipeline::PackJob job;
  std::vector<std::size_t> sizes;
  for (;;) {
    const Result<bool> next = source.next(job);
    EXPECT_TRUE(next);
    if (!next || !*next) return sizes;
    sizes.push_back(job.bytes.size());
    pool.give(std::move(job.bytes));
  }
}

TEST(Segments, AreOfTheirUsualSizeWhateverStandsBehindATrace) {
  constexpr std::size_t kTarget = 1u << 20;
  SyntheticTrace t;
  t.sample({1'000'100}, 4, 0x1000);
  Buffer zeros = t.bytes();
  zeros.resize(40 * kTarget);
  const std::vector<std::size_t> sizes = segment_sizes(zeros, kTarget);
  EXPECT_GE(sizes.size(), 30u);
  for (const std::size_t size : sizes)
    EXPECT_LE(size, 2 * kTarget);
}

TEST(Segments, OfBuffersThatAreMostlyEmptyDoNotGrow) {
  constexpr std::size_t kTarget = 1u << 20, kBuffer = 0x40000;
  SyntheticTrace t({.buffer_size = kBuffer});
  for (int i = 0; i < 200; ++i) {
    t.sample({1'000'100 + i}, 4, 0x1000);
    t.end_buffer(0);
  }
  for (const std::size_t size : segment_sizes(t.bytes(), kTarget))
    EXPECT_LE(size, 4 * kTarget);
}

TEST(Segments, BuffersAreFoundBehindJunkOfAnyLength) {
  SyntheticTrace t({.buffer_size = 0x4000});
  for (int i = 0; i < 2000; ++i)
    t.sample({1'000'100 + i}, 4, 0x1000);
  const Buffer trace = t.bytes();
  for (const std::size_t junk : {1u, 3u, 8u, 13u}) {
    Buffer file = trace;
    file.insert(file.begin() + 0x8000, junk, std::uint8_t{0x55});
    std::vector<etlz::Part> parts;
    EXPECT_EQ(etlz::split_parts(file, true, file.size(), parts), file.size());
    const auto strays = std::ranges::count(parts, false, &etlz::Part::buffer);
    EXPECT_EQ(strays, 1) << junk;
    EXPECT_EQ(parts.size(), trace.size() / 0x4000 + 1) << junk;
  }
}

// Each would have taken a segment of its own, and its tables.
TEST(Archive, OfBuffersThatClaimALotAndHoldNothingIsSmall) {
  SyntheticTrace t;
  t.sample({1'000'100}, 4, 0x1000);
  Buffer trace = t.bytes();
  format::BufferHeader h = format::load_buffer_header(trace.data());
  h.flags |= format::kFlagCompressed;
  h.buffer_size = format::kBufferHeaderSize + 8;
  h.saved_offset = h.current_offset = h.filled_bytes = format::kMaxBufferSize;
  for (int i = 0; i < 100; ++i) {
    const std::size_t at = trace.size();
    trace.resize(at + h.buffer_size);
    format::store_buffer_header(trace.data() + at, h);
  }
  Buffer archive, back;
  const Result<PackReport> packed = pack(Input::memory("t.etl", trace), Output::memory(archive), {});
  ASSERT_TRUE(packed) << packed.error().message();
  EXPECT_EQ(packed->segments, 1u);
  EXPECT_LT(packed->decoded, 1u << 20);
  ASSERT_TRUE(unpack(Input::memory("a", archive), Output::memory(back)));
  EXPECT_TRUE(back == trace);
}

// Each byte of a payload that nobody describes has a stream of its own in its kind.
TEST(Archive, OfMoreStreamsThanADecoderHasCanBeUnpacked) {
  SyntheticTrace t({.buffer_size = 0x10000});
  for (std::uint32_t i = 0; i < 3000; ++i) {
    const Buffer payload = noise(400, i);
    t.manifest_event({1'000'100 + i}, {.provider = make_guid(i, 1, 2, 3, 4), .id = 7}, 4, 8, payload);
  }
  const Buffer trace = t.bytes();
  Buffer back;
  ASSERT_TRUE(unpack(Input::memory("a", packed_of(trace, {.verify = false})), Output::memory(back)));
  EXPECT_TRUE(back == trace);
}

// --- Salvage

class SalvagedArchive : public ::testing::Test {
protected:
  static constexpr std::size_t kSegment = 8u << 20; // of a file that is no trace

  // A file that holds an archive in its second segment, whose own segments say that they are of 0, 8 MiB
  // and 16.
  SalvagedArchive() {
    const Buffer inner = packed_of(Buffer(3 * kSegment, 'x'));
    file = noise(3 * kSegment, 1);
    std::fill_n(file.end() - (1 << 20), 1 << 20, std::uint8_t{0}); // the last one is the smallest
    std::ranges::copy(inner, file.begin() + kSegment + 100'000);
    archive = packed_of(file);
    const auto input = read::memory_input("a", archive);
    const Result<pipeline::ArchiveIndex> index = pipeline::read_archive_index(*input);
    EXPECT_TRUE(index && index->segments.size() == 3);
    for (const etlz::IndexEntry &segment : index->segments)
      begins.push_back(segment.archive_at);
    index_at = index->footer.index_at;
  }
  UnpackReport salvaged(const Buffer &damaged) {
    const Result<UnpackReport> report =
        unpack(Input::memory("bad", damaged), Output::memory(back), {.salvage = true});
    EXPECT_TRUE(report) << report.error().message();
    return report ? *report : UnpackReport{};
  }
  [[nodiscard]] Buffer original(std::size_t from, std::size_t to) const {
    return {file.begin() + static_cast<std::ptrdiff_t>(from), file.begin() + static_cast<std::ptrdiff_t>(to)};
  }

  Buffer file, archive, back;
  std::vector<std::uint64_t> begins;
  std::uint64_t index_at = 0;
};

TEST_F(SalvagedArchive, TakesNothingOutOfAnArchiveThatWasPacked) {
  Buffer bad = archive;
  bad[begins[2] - 1000] ^= 1;  // at the end of the second segment
  bad.resize(bad.size() - 10); // and no index
  const UnpackReport report = salvaged(bad);
  ASSERT_EQ(report.missing.size(), 1u);
  EXPECT_EQ(report.missing[0].offset, kSegment);
  EXPECT_EQ(report.missing[0].bytes, kSegment);
  Buffer expected = original(0, kSegment);
  const Buffer rest = original(2 * kSegment, 3 * kSegment);
  expected.insert(expected.end(), rest.begin(), rest.end());
  EXPECT_TRUE(back == expected);
}

TEST_F(SalvagedArchive, OfACutArchiveIsWhatIsWhole) {
  Buffer bad = archive;
  bad.resize(begins[2] - 1000);
  const UnpackReport report = salvaged(bad);
  ASSERT_EQ(report.missing.size(), 1u);
  EXPECT_EQ(report.missing[0].bytes, 2 * kSegment);
  EXPECT_TRUE(back == original(0, kSegment));
}

TEST_F(SalvagedArchive, FindsTheNextSegmentWhereBytesWereLost) {
  Buffer bad = archive;
  const auto at = bad.begin() + static_cast<std::ptrdiff_t>(begins[0] + 5000);
  bad.erase(at, at + 3);
  const UnpackReport report = salvaged(bad);
  ASSERT_EQ(report.missing.size(), 1u);
  EXPECT_EQ(report.missing[0].bytes, kSegment);
  EXPECT_TRUE(back == original(kSegment, 3 * kSegment));
}

TEST_F(SalvagedArchive, FindsSegmentsThatAreNotWhereTheIndexHasThem) {
  const auto part = [&](std::uint64_t from, std::uint64_t to) {
    return Bytes(archive).subspan(from, to - from);
  };
  const Bytes head = part(0, begins[0]), rest = part(index_at, archive.size());
  const Bytes a = part(begins[0], begins[1]), b = part(begins[1], begins[2]), c = part(begins[2], index_at);
  ASSERT_EQ(a.size(), b.size());
  ASSERT_NE(a.size(), c.size());
  for (const std::array<Bytes, 3> &order : {std::array{c, b, a}, {b, a, c}, {b, c, a}, {a, c, b}}) {
    Buffer bad;
    for (const Bytes piece : {head, order[0], order[1], order[2], rest})
      bad.insert(bad.end(), piece.begin(), piece.end());
    EXPECT_FALSE(unpack(Input::memory("bad", bad), Output::memory(back)));
    const UnpackReport report = salvaged(bad);
    EXPECT_TRUE(back == file);
    ASSERT_EQ(report.missing.size(), 1u) << "it is not silent";
    EXPECT_EQ(report.missing[0].bytes, 0u);
    // What is damaged as well is missing, and nothing of the archive in it is taken instead.
    bad[bad.size() - rest.size() - 1000] ^= 1;
    const UnpackReport less = salvaged(bad);
    ASSERT_EQ(less.missing.size(), 1u);
    const std::size_t lost = less.missing[0].offset;
    EXPECT_EQ(lost, order[2].data() == a.data() ? 0 : order[2].data() == b.data() ? kSegment : 2 * kSegment);
    EXPECT_EQ(less.missing[0].bytes, kSegment);
    Buffer expected = original(0, lost);
    const Buffer behind = original(lost + kSegment, file.size());
    expected.insert(expected.end(), behind.begin(), behind.end());
    EXPECT_TRUE(back == expected);
  }
}

// Where two copies of one stand, the other is not there.
TEST_F(SalvagedArchive, GivesNoSegmentTwice) {
  Buffer bad = archive;
  const Bytes first = Bytes(archive).subspan(begins[0], begins[1] - begins[0]);
  ASSERT_EQ(begins[2] - begins[1], first.size());
  std::ranges::copy(first, bad.begin() + static_cast<std::ptrdiff_t>(begins[1]));
  const UnpackReport report = salvaged(bad);
  ASSERT_EQ(report.missing.size(), 1u);
  EXPECT_EQ(report.missing[0].offset, kSegment);
  Buffer expected = original(0, kSegment);
  const Buffer rest = original(2 * kSegment, 3 * kSegment);
  expected.insert(expected.end(), rest.begin(), rest.end());
  EXPECT_TRUE(back == expected);
}

TEST_F(SalvagedArchive, StopsOnRequestWhereNoSegmentIsFound) {
  std::stop_source stop;
  stop.request_stop();
  const Result<UnpackReport> stopped = unpack(Input::memory("bad", noise(3u << 20, 5)), Output::memory(back),
                                              {.salvage = true}, {.stop = stop.get_token()});
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().kind, ErrorKind::cancelled) << stopped.error().message();
}

TEST_F(SalvagedArchive, NeedsNoFileHeader) {
  const Buffer bad(archive.begin() + 20, archive.end());
  EXPECT_EQ(salvaged(bad).missing.size(), 1u) << "it is not silent";
  EXPECT_TRUE(back == file);
}

TEST_F(SalvagedArchive, IsAdvisedWhereItRestoresAll) {
  for (const std::uint64_t at : {std::uint64_t{16}, index_at + 4, index_at + 40}) {
    Buffer bad = archive;
    bad[at] ^= 1;
    const Result<UnpackReport> failed = unpack(Input::memory("bad", bad), Output::memory(back));
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().advice, Advice::salvage_archive) << at << failed.error().message();
    static_cast<void>(salvaged(bad));
    EXPECT_TRUE(back == file) << at;
  }
}

} // namespace
} // namespace etwrelog
