// Traces in gzip and zip files are packed as traces, and their wrappers come back byte for byte. Whatever
// cannot be made again is packed as any other file, and comes back all the same.
#include "archive/wrapper.hpp"
#include "etwrelog/trace.hpp"
#include "tests/support/deflated.hpp"
#include "tests/support/pace.hpp"
#include "tests/support/pipeline_runs.hpp"
#include "tests/support/zip_files.hpp"

#include <gtest/gtest.h>

#include <random>

#include <zstd.h>

namespace etwrelog {
namespace {

using Buffer = std::vector<std::uint8_t>;
using testing::DeflateWay;
using testing::gzip_of;

Buffer trace_of(unsigned events, unsigned seed = 1) {
  testing::SyntheticTrace t;
  std::mt19937 random(seed);
  for (unsigned i = 0; i < events; ++i) {
    const std::int64_t time = 2'000'000 + i * 100 + static_cast<std::int64_t>(random() % 90);
    t.sample({time, static_cast<std::uint16_t>(i % 2)}, 100 + static_cast<std::uint32_t>(random() % 5));
  }
  return t.bytes();
}

Buffer joined(std::initializer_list<Buffer> parts) {
  Buffer all;
  for (const Buffer &part : parts)
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

struct Packed {
  Buffer archive;
  PackReport report;
};

Packed packed(const Buffer &file, const RunOptions &run = {}) {
  Packed p;
  const Result<PackReport> done = pack(Input::memory("in", file), Output::memory(p.archive), {}, run);
  EXPECT_TRUE(done) << (done ? "" : done.error().message());
  if (done) p.report = *done;
  return p;
}

// Packs, verifies and unpacks.
Packed there_and_back(const Buffer &file, bool wrapped) {
  Packed p = packed(file);
  EXPECT_EQ(p.report.wrapped, wrapped);
  EXPECT_EQ(p.report.original, file.size());
  EXPECT_EQ(p.report.archived, p.archive.size());
  const Input archive = Input::memory("in.etlz", p.archive);
  Buffer back;
  const Result<UnpackReport> done = unpack(archive, Output::memory(back));
  EXPECT_TRUE(done) << (done ? "" : done.error().message());
  EXPECT_TRUE(back == file);
  EXPECT_TRUE(verify(archive));
  EXPECT_TRUE(verify_against(archive, Input::memory("in", file)));
  const Result<ArchiveInfo> info = read_archive_info(archive);
  EXPECT_TRUE(info && info->wrapped == wrapped && info->original == file.size());
  EXPECT_EQ(*is_archive_of(archive, Input::memory("in", file)), true);
  return p;
}

std::vector<Buffer> traces_in(const Buffer &archive) {
  std::vector<Buffer> traces;
  auto opened = pipeline::open_sources(Input::memory("in.etlz", archive), {});
  EXPECT_TRUE(opened) << (opened ? "" : opened.error().message());
  if (!opened) return traces;
  for (const pipeline::OpenedInput &one : *opened) {
    EXPECT_TRUE(one.archive);
    Buffer bytes(static_cast<std::size_t>(one.input->size()));
    EXPECT_TRUE(one.input->read_at(0, bytes));
    traces.push_back(std::move(bytes));
  }
  return traces;
}

TEST(WrappedArchive, HoldsTheTraceOfAGzipFile) {
  const Buffer trace = trace_of(4000);
  for (const int level : {1, 6, 9}) {
    const Buffer file = gzip_of(trace, {.level = level});
    const Packed p = there_and_back(file, true);
    EXPECT_LT(p.archive.size(), file.size() * 9 / 10);
    EXPECT_LT(p.archive.size(), packed(trace).archive.size() + 400);
    EXPECT_EQ(p.report.events, packed(trace).report.events);
    const std::vector<Buffer> inside = traces_in(p.archive);
    ASSERT_EQ(inside.size(), 1u);
    EXPECT_TRUE(inside[0] == trace);
  }
}

TEST(WrappedArchive, TakesAllKindsOfGzipFiles) {
  const Buffer trace = trace_of(3000);
  there_and_back(gzip_of(trace, {.memory_level = 9}), true);
  there_and_back(gzip_of(trace, {.strategy = Z_FIXED}), true);
  there_and_back(gzip_of(trace, {.flush = Z_SYNC_FLUSH, .every = 5000}), true);
  there_and_back(gzip_of(trace, {.flush = Z_FULL_FLUSH, .every = 5000}), true);
  // Several members, an empty one among them, and zeros behind.
  const auto middle = trace.begin() + 10'001;
  const Buffer members = joined({gzip_of(Buffer(trace.begin(), middle)), gzip_of({}),
                                 gzip_of(Buffer(middle, trace.end()), {.level = 9}), Buffer(100, 0)});
  const Packed p = there_and_back(members, true);
  EXPECT_TRUE(traces_in(p.archive) == std::vector<Buffer>{trace});
  // A header with all that it can have.
  Buffer full = gzip_of(trace);
  full[3] |= 4 | 16 | 2;
  const Buffer extra = {3, 0, 'a', 'b', 'c'};
  const Buffer comment = {'h', 'i', 0, 0x12, 0x34}; // and a checksum that zlib would have to refuse
  Buffer odd(full.begin(), full.begin() + 10);
  odd.insert(odd.end(), extra.begin(), extra.end());
  const auto name_end = full.begin() + 10 + 10;
  odd.insert(odd.end(), full.begin() + 10, name_end);
  odd.insert(odd.end(), comment.begin(), comment.end());
  odd.insert(odd.end(), name_end, full.end());
  there_and_back(odd, false);
  const auto check = static_cast<std::uint16_t>(crc32(0, odd.data(), static_cast<uInt>(10 + 5 + 10 + 3)));
  store(odd.data() + 10 + 5 + 10 + 3, check);
  there_and_back(odd, true);
}

TEST(WrappedArchive, HoldsAllTracesOfAZip) {
  const Buffer a = trace_of(2500, 1), b = trace_of(3000, 2);
  const Buffer notes(5000, 'n');
  const Buffer file = testing::zip_of({{"x/a.etl", a}, {"notes.txt", notes}, {"b.ETL", b}});
  const Packed p = there_and_back(file, true);
  EXPECT_TRUE((traces_in(p.archive) == std::vector<Buffer>{a, b}));
  auto opened = pipeline::open_sources(Input::memory("in.etlz", p.archive), {});
  ASSERT_TRUE(opened);
  EXPECT_EQ((*opened)[0].input->name(), "in.etlz:x/a.etl");
  const Result<ArchiveSummary> summary = read_archive_summary(Input::memory("in.etlz", p.archive));
  ASSERT_TRUE(summary);
  EXPECT_FALSE(summary->counts);
  // Only one of both is asked for: as of the zip itself.
  const auto one = pipeline::open_archive(read::memory_input("in.etlz", p.archive));
  ASSERT_FALSE(one);
  EXPECT_NE(one.error().message().find("2 traces"), std::string::npos) << one.error().message();
}

TEST(WrappedArchive, HoldsTracesWithNamesOutsideAscii) {
  constexpr unsigned kUtf8 = 0x800;
  const std::string name = "k\xC3\xA4se.etl";
  const Buffer trace = trace_of(2500);
  const testing::StoredZip zip{.members = {{name, trace}}, .flags = kUtf8};
  const Packed p = there_and_back(zip.bytes(), true);
  auto opened = pipeline::open_sources(Input::memory("in.etlz", p.archive), {});
  ASSERT_TRUE(opened);
  EXPECT_EQ(opened->front().input->name(), "in.etlz:" + name);
}

TEST(WrappedArchive, IsNoneWhereTheWrapperCannotBeMadeAgain) {
  const Buffer trace = trace_of(3000), text(3000, 't');
  there_and_back(gzip_of(text), false);
  there_and_back(joined({gzip_of(trace), text}), false);
  there_and_back(testing::zip_of({{"a.txt", text}}), false);
  there_and_back(joined({testing::zip_of({{"a.etl", trace}}), text}), false);
  Buffer cut = gzip_of(trace);
  cut.resize(cut.size() / 2);
  there_and_back(cut, false);
  // Nothing is gained: the wrapper is hardly larger than its archive would be.
  there_and_back(gzip_of(trace_of(1)), false);
}

// Whatever stands in a damaged wrapper comes back as it is.
TEST(WrappedArchive, GivesBackAnyDamagedWrapper) {
  const Buffer trace = trace_of(150);
  for (const Buffer &good : {gzip_of(trace), testing::zip_of({{"a.etl", trace}})})
    for (std::size_t i = 0; i < 24; i += testing::kSanitized ? 5 : 1) {
      Buffer bad = good;
      const std::size_t at = i < 12 ? i : i * good.size() / 24;
      bad[at] ^= static_cast<std::uint8_t>(1u << i % 8);
      const Packed p = packed(bad);
      Buffer back;
      ASSERT_TRUE(unpack(Input::memory("in.etlz", p.archive), Output::memory(back))) << at;
      ASSERT_TRUE(back == bad) << at;
    }
}

TEST(WrappedArchive, IsTheSameForAnyNumberOfThreads) {
  const Buffer file = testing::zip_of({{"a.etl", trace_of(9000, 1)}, {"b.etl", trace_of(9000, 2)}});
  RunOptions one, four;
  one.threads = 1;
  four.threads = 4;
  EXPECT_TRUE(packed(file, one).archive == packed(file, four).archive);
}

TEST(WrappedArchive, NoticesAnyDamage) {
  const Packed p = packed(testing::zip_of({{"a.etl", trace_of(400)}, {"n.txt", Buffer(50, 'n')}}));
  ASSERT_TRUE(p.report.wrapped);
  for (std::size_t at = 0; at < p.archive.size(); at += testing::kSanitized ? 20 : 3) {
    Buffer bad = p.archive;
    bad[at] ^= 0x10;
    EXPECT_FALSE(verify(Input::memory("bad", bad))) << at;
    Buffer out;
    EXPECT_FALSE(unpack(Input::memory("bad", bad), Output::memory(out))) << at;
    EXPECT_TRUE(out.empty());
    bad.resize(at);
    EXPECT_FALSE(verify(Input::memory("bad", bad))) << at;
  }
}

class Collecting final : public ByteSink {
public:
  Result<void> write(Bytes bytes) override {
    all.insert(all.end(), bytes.begin(), bytes.end());
    return {};
  }
  Buffer all;
};

// What was given to a pipe cannot be taken back: nothing is, before all that is stored was compared.
TEST(WrappedArchive, GivesNothingOfADamagedOneToAPipe) {
  const Buffer file = gzip_of(trace_of(400));
  Packed p = packed(file);
  const auto sink = std::make_shared<Collecting>();
  ASSERT_TRUE(unpack(Input::memory("good", p.archive), Output::sink("pipe", sink)));
  EXPECT_TRUE(sink->all == file);
  sink->all.clear();
  p.archive[p.archive.size() - 80] ^= 1; // in the recipe
  EXPECT_FALSE(unpack(Input::memory("bad", p.archive), Output::sink("pipe", sink)));
  EXPECT_TRUE(sink->all.empty());
}

TEST(WrappedArchive, SalvagesTheTraceWhereTheWrapperIsDamaged) {
  for (const unsigned events : {400u, 12'000u}) {
    const Buffer trace = trace_of(events), file = gzip_of(trace);
    const Packed p = packed(file);
    ASSERT_TRUE(p.report.wrapped);
    const Result<ArchiveSummary> summary = read_archive_summary(Input::memory("good", p.archive));
    ASSERT_TRUE(summary && summary->indexed == (events > 400))
        << "a small archive of the trace, then segments";
    Buffer out;
    const UnpackOptions salvage{.salvage = true};
    ASSERT_TRUE(unpack(Input::memory("good", p.archive), Output::memory(out), salvage));
    EXPECT_TRUE(out == file);
    Buffer bad = p.archive;
    bad[bad.size() - 80] ^= 1;
    const Result<UnpackReport> report = unpack(Input::memory("bad", bad), Output::memory(out), salvage);
    ASSERT_TRUE(report) << events << report.error().message();
    EXPECT_TRUE(out == trace) << events;
  }
}

TEST(WrappedArchive, WhateverIsDamagedTheAdviceIsToSalvage) {
  const Buffer archive = packed(gzip_of(trace_of(12'000))).archive;
  ASSERT_TRUE(pipeline::read_wrapper_index(*read::memory_input("a", archive)));
  for (std::size_t at = 8; at < archive.size(); at += at + 600 < archive.size() ? 101 : 1) {
    Buffer bad = archive, out;
    bad[at] ^= 0x10;
    const Result<UnpackReport> failed = unpack(Input::memory("bad", bad), Output::memory(out));
    ASSERT_FALSE(failed) << at;
    if (failed.error().kind != ErrorKind::corrupt) continue; // of another version, by what it says
    EXPECT_EQ(failed.error().advice, Advice::salvage_archive) << at << failed.error().message();
  }
  Buffer headless = archive;
  headless[20] ^= 1;
  const Result<ArchiveInfo> info = read_archive_info(Input::memory("bad", headless));
  ASSERT_FALSE(info);
  EXPECT_EQ(info.error().advice, Advice::salvage_archive) << info.error().message();
}

// Whatever is damaged, no event of the second comes out as one of the first.
TEST(WrappedArchive, SalvagesTheFirstOfTwoTracesAlone) {
  const Buffer first = trace_of(12'000), second = trace_of(40'000, 2);
  const Packed p = packed(testing::zip_of({{"a.etl", first}, {"b.etl", second}}));
  ASSERT_TRUE(p.report.wrapped);
  const auto magic = Bytes(p.archive).first(8);
  const auto inner =
      std::search(p.archive.begin() + etlz::kFileHeaderSize + 8, p.archive.end(), magic.begin(), magic.end());
  ASSERT_NE(inner, p.archive.end());
  const auto at = static_cast<std::size_t>(inner - p.archive.begin());
  for (const std::vector<std::size_t> &flips : std::vector<std::vector<std::size_t>>{
           {at}, {at + 20}, {at + 100}, {at, p.archive.size() - 100}, {at, 60, p.archive.size() - 100}}) {
    Buffer bad = p.archive, out;
    for (const std::size_t flip : flips)
      bad[flip] ^= 0x10;
    const Result<UnpackReport> report =
        unpack(Input::memory("bad", bad), Output::memory(out), {.salvage = true});
    ASSERT_TRUE(report) << flips.back() << report.error().message();
    EXPECT_TRUE(out == first) << flips.back();
    EXPECT_FALSE(report->missing.empty());
  }
}

// An archive in a zip is the traces in it, beside others.
TEST(WrappedArchive, ArchivesInAZipAreRead) {
  const Buffer first = trace_of(3000), second = trace_of(1000, 2);
  const Buffer zip = testing::zip_of({{"a.etl", first}, {"b.etlz", packed(second).archive}});
  const Result<Trace> trace = Trace::open(Input::memory("in.zip", zip));
  ASSERT_TRUE(trace) << trace.error().message();
  EXPECT_EQ(trace->sources().size(), 2u);
  std::size_t events = 0;
  ASSERT_TRUE(trace->events().for_each([&events](const Event &) { ++events; }));
  EXPECT_EQ(events, 4002u);
  // And what was packed comes back.
  const Packed whole = packed(zip);
  Buffer out;
  ASSERT_TRUE(unpack(Input::memory("in.etlz", whole.archive), Output::memory(out)));
  EXPECT_TRUE(out == zip);
}

// Every command takes an archive for what was packed, whether or not its wrapper could be made again.
TEST(WrappedArchive, ReadsAsTheTraceInAFileThatIsKeptAsItIs) {
  const Buffer trace = trace_of(3000);
  Buffer file(ZSTD_compressBound(trace.size()));
  file.resize(ZSTD_compress(file.data(), file.size(), trace.data(), trace.size(), 3));
  const Packed p = packed(file);
  EXPECT_FALSE(p.report.wrapped);
  const Result<Trace> of_file = Trace::open(Input::memory("t.etl.zst", file)),
                      of_archive = Trace::open(Input::memory("t.etl.zst.etlz", p.archive));
  ASSERT_TRUE(of_file && of_archive) << of_archive.error().message();
  EXPECT_EQ(of_archive->sources()[0].decoded_bytes, of_file->sources()[0].decoded_bytes);
  EXPECT_EQ(of_archive->sources()[0].name, "t.etl.zst.etlz");
}

// An archive in parts is the one that the whole makes.
TEST(WrappedArchive, IsJoinedOfPartsToTheSame) {
  const Buffer file = gzip_of(trace_of(3000));
  std::vector<Buffer> parts(2);
  std::vector<Input> inputs;
  for (std::uint32_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(pack_part(Input::memory("in", file), {i + 1, 2}, Output::memory(parts[i])));
    inputs.push_back(Input::memory("part", parts[i]));
  }
  Buffer whole;
  ASSERT_TRUE(join_parts(inputs, Output::memory(whole)));
  EXPECT_TRUE(whole == packed(file).archive);
}

} // namespace
} // namespace etwrelog
