// Archives of traces that hold little: one payload, no tables, no index.
#include "archive/archive.hpp"
#include "base/output_file.hpp"
#include "etlz/small/small.hpp"
#include "passes/statistics.hpp"
#include "tests/support/pipeline_runs.hpp"
#include "tests/support/trace_files.hpp"

#include <archive.h>
#include <archive_entry.h>
#include <gtest/gtest.h>

namespace etwrelog {
namespace {

using testing::SyntheticTrace;
using Buffer = std::vector<std::uint8_t>;

Buffer little_trace(std::uint32_t buffer_size, Codec codec = Codec::none) {
  SyntheticTrace t({.buffer_size = buffer_size, .codec = codec});
  t.process_rundown({1'000'100}, 100, 4, "program.exe", "program --fast");
  t.thread_rundown({1'000'101}, 104, 100);
  t.image_rundown({1'000'102}, 100, 0x7FF6'0000'0000);
  for (int i = 0; i < 200; ++i) {
    t.sample({2'000'000 + i * 100}, 104, 0x7FF6'0000'1000 + static_cast<std::uint64_t>(i % 17) * 8);
    if (i % 40 == 39) t.end_buffer(0);
  }
  return t.bytes();
}

Buffer archive_of(const Buffer &trace, Level level = Level::normal) {
  const testing::TempDir directory;
  pipeline::ArchiveOptions options;
  options.level = level;
  Result<base::OutputFile> out = base::OutputFile::create(directory.file("a"), false);
  EXPECT_TRUE(out);
  const auto packed = pipeline::pack_file(*read::memory_input("trace", trace), *out, options);
  EXPECT_TRUE(packed) << (packed ? "" : packed.error().message());
  EXPECT_TRUE(out->commit());
  return testing::read_file(directory.file("a"));
}

bool is_small(const Buffer &archive) {
  const Result<etlz::FileHeader> header = etlz::read_file_header(archive);
  return header && header->small;
}

// What xz -9 makes of it.
std::size_t size_by_xz(const Buffer &bytes) {
  Buffer out(bytes.size() + 4096);
  std::size_t used = 0;
  ::archive *const a = archive_write_new();
  archive_write_set_format_raw(a);
  archive_write_add_filter_xz(a);
  archive_write_set_options(a, "compression-level=9");
  archive_write_set_bytes_per_block(a, 1);
  EXPECT_EQ(archive_write_open_memory(a, out.data(), out.size(), &used), ARCHIVE_OK);
  archive_entry *const entry = archive_entry_new();
  archive_entry_set_filetype(entry, AE_IFREG);
  EXPECT_EQ(archive_write_header(a, entry), ARCHIVE_OK);
  EXPECT_EQ(archive_write_data(a, bytes.data(), bytes.size()), static_cast<la_ssize_t>(bytes.size()));
  archive_entry_free(entry);
  EXPECT_EQ(archive_write_close(a), ARCHIVE_OK);
  archive_write_free(a);
  return used;
}

// As much as spec.md says: their models, and the original.
TEST(SmallArchive, DecodesInItsMemory) {
  const Buffer archive = archive_of(little_trace(65536));
  ASSERT_TRUE(is_small(archive));
  const auto input = read::memory_input("a.etlz", archive);
  pipeline::ArchiveOptions options;
  options.run.memory = 84u << 20;
  EXPECT_TRUE(pipeline::unpack_file(*input, nullptr, options));
  options.run.memory = 64u << 20;
  const auto less = pipeline::unpack_file(*input, nullptr, options);
  ASSERT_FALSE(less);
  EXPECT_EQ(less.error().kind, ErrorKind::limit);
}

TEST(SmallArchive, AnyBytesComeBackFromTheCoder) {
  std::mt19937 random(1);
  for (const std::size_t size : {0, 1, 7, 8, 71, 72, 73, 1000, 9000}) {
    for (int kind = 0; kind < 3; ++kind) {
      Buffer bytes(size), coded;
      for (std::size_t i = 0; i < size; ++i) {
        if (kind == 0) bytes[i] = static_cast<std::uint8_t>(random());
        if (kind == 1)
          bytes[i] = static_cast<std::uint8_t>(i % 24 == 3 ? 0xC0 : random() % 3); // markers everywhere
      }
      etlz::encode_small(bytes, coded);
      EXPECT_LE(coded.size(), size + size / 16 + 8);
      Buffer back(size);
      ASSERT_TRUE(etlz::decode_small(coded, back)) << size;
      EXPECT_TRUE(back == bytes) << size;
      coded.push_back(0);
      if (size != 0) {
        EXPECT_FALSE(etlz::decode_small(Buffer(coded.size() + 9, 0), back)) << size;
      }
    }
  }
}

TEST(SmallArchive, IsWhatLittleTracesBecome) {
  for (const Buffer &trace : {little_trace(0x2000), little_trace(1u << 20),
                              little_trace(0x4000, Codec::xpress), little_trace(0x4000, Codec::lznt1)})
    for (const Level level : {Level::normal, Level::max}) {
      const Buffer archive = archive_of(trace, level);
      EXPECT_TRUE(is_small(archive));
      EXPECT_LT(archive.size(), size_by_xz(trace));
      const auto unpacked = pipeline::unpack_file(*read::memory_input("archive", archive), nullptr, {});
      ASSERT_TRUE(unpacked) << unpacked.error().message();
      EXPECT_EQ(unpacked->original, trace.size());
      EXPECT_TRUE(unpacked->hash_checked);
    }
}

TEST(SmallArchive, RealTracesAreSmallerThanByXz) {
  const std::vector<std::string> traces = testing::trace_names();
  if (traces.empty()) GTEST_SKIP() << "no real traces";
  unsigned small = 0;
  for (const std::string &name : traces) {
    const Buffer trace = testing::read_file(testing::trace_path(name)->string());
    if (trace.size() > 500'000) continue;
    const Buffer archive = archive_of(trace);
    EXPECT_LT(archive.size(), size_by_xz(trace)) << name;
    small += is_small(archive) ? 1 : 0;
  }
  EXPECT_GT(small, 0u);
}

TEST(SmallArchive, IsReadAsTheTrace) {
  const Buffer trace = little_trace(0x8000);
  Result<std::unique_ptr<read::Input>> input =
      pipeline::open_archive(read::memory_input("archive", archive_of(trace)));
  ASSERT_TRUE(input) << input.error().message();
  for (std::size_t at = 0; at < trace.size(); at += 7001) {
    Buffer piece(5000);
    const Result<std::size_t> got = (*input)->read_at(at, piece);
    ASSERT_TRUE(got);
    ASSERT_EQ(*got, std::min(piece.size(), trace.size() - at));
    EXPECT_TRUE(std::equal(piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(*got),
                           trace.begin() + static_cast<std::ptrdiff_t>(at)));
  }
  const Result<pipeline::Trace> a = pipeline::Trace::open(std::move(*input), {}),
                                b = testing::open_trace(trace);
  ASSERT_TRUE(a && b);
  EXPECT_EQ(pipeline::statistics_record(*pipeline::collect_statistics(*a, {})),
            pipeline::statistics_record(*pipeline::collect_statistics(*b, {})));
}

TEST(SmallArchive, IsRefusedWhereItTakesTooMuch) {
  const Buffer good = archive_of(little_trace(0x8000));
  auto error_with = [&good](std::uint64_t original_size, std::uint64_t limit) {
    Buffer bad = good;
    store(bad.data() + 16, original_size);
    etlz::seal(bad.data(), etlz::kFileHeaderSize);
    pipeline::ArchiveOptions options;
    options.run.memory = limit;
    const auto r = pipeline::unpack_file(*read::memory_input("archive", bad), nullptr, options);
    return r ? std::string() : r.error().message();
  };
  EXPECT_NE(error_with(200u << 20, 270u << 20).find("more memory than allowed"), std::string::npos);
  EXPECT_NE(error_with(std::uint64_t{1} << 40, std::uint64_t{1} << 50).find("impossible size"),
            std::string::npos);
  EXPECT_NE(error_with(0x8000, 1u << 30).find("does not decode"), std::string::npos);
  // Nothing of it is whole when something is damaged.
  Buffer bad = good;
  bad[bad.size() / 2] ^= 1;
  pipeline::ArchiveOptions salvage;
  salvage.salvage = true;
  EXPECT_FALSE(pipeline::unpack_file(*read::memory_input("archive", bad), nullptr, salvage));
}

} // namespace
} // namespace etwrelog
