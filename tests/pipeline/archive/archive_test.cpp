#include "archive/archive.hpp"
#include "base/output_file.hpp"
#include "tests/support/pace.hpp"
#include "tests/support/pipeline_runs.hpp"
#include "tests/support/trace_files.hpp"

#include "etwrelog/format.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include <gtest/gtest.h>

namespace etwrelog {
namespace {

namespace fs = std::filesystem;
using Buffer = std::vector<std::uint8_t>;

std::string text(const Error &e) {
  return e.message();
}

class Scratch {
public:
  Scratch() : path_(fs::temp_directory_path() / ("etlz_test_" + std::to_string(std::random_device{}()))) {
    fs::create_directories(path_);
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Scratch(const Scratch &) = delete;
  Scratch &operator=(const Scratch &) = delete;
  [[nodiscard]] std::string file(const std::string &name) const { return (path_ / name).string(); }

private:
  fs::path path_;
};

Buffer pack(const Buffer &bytes, pipeline::ArchiveOptions options = {}, PackReport *result = nullptr) {
  const Scratch scratch;
  Result<base::OutputFile> out = base::OutputFile::create(scratch.file("a.etlz"), false);
  EXPECT_TRUE(out) << text(out.error());
  const auto input = read::memory_input("memory", bytes);
  const Result<PackReport> packed = pipeline::pack_file(*input, *out, options);
  EXPECT_TRUE(packed) << (packed ? "" : text(packed.error()));
  if (result != nullptr && packed) *result = *packed;
  EXPECT_TRUE(out->commit());
  return testing::read_file(scratch.file("a.etlz"));
}

struct Unpacked {
  bool good = false;
  std::string error;
  Buffer bytes;
  UnpackReport result;
};

Unpacked unpack(const Buffer &archive, pipeline::ArchiveOptions options = {}) {
  const Scratch scratch;
  Unpacked u;
  Result<base::OutputFile> out = base::OutputFile::create(scratch.file("a.etl"), false);
  EXPECT_TRUE(out);
  const auto input = read::memory_input("memory", archive);
  const Result<UnpackReport> r = pipeline::unpack_file(*input, &*out, options);
  u.good = static_cast<bool>(r);
  if (!r) {
    u.error = text(r.error());
    return u;
  }
  u.result = *r;
  EXPECT_TRUE(out->commit());
  u.bytes = testing::read_file(scratch.file("a.etl"));
  return u;
}

// A trace of made-up events of many kinds: known, unknown, with strings, of all header types, with dirty
// padding.
class TraceMaker {
public:
  explicit TraceMaker(std::uint32_t seed) : rng_(seed) {}

  Buffer make(unsigned buffers, std::uint32_t nominal) {
    Buffer file;
    for (unsigned i = 0; i < buffers; ++i) {
      Buffer b(nominal, format::kFillByte);
      std::size_t at = format::kBufferHeaderSize;
      while (true) {
        const Buffer event = make_event();
        if (at + align8(event.size()) > nominal) break;
        std::copy(event.begin(), event.end(), b.begin() + static_cast<std::ptrdiff_t>(at));
        for (std::size_t p = at + event.size(); p < at + align8(event.size()); ++p)
          b[p] = pick(5) == 0 ? static_cast<std::uint8_t>(rng_()) : std::uint8_t{0};
        at += align8(event.size());
        if (pick(8000) == 0) break;
      }
      format::BufferHeader h;
      h.buffer_size = nominal;
      h.saved_offset = static_cast<std::uint32_t>(at);
      h.filled_bytes = h.saved_offset;
      h.current_offset = h.saved_offset + nominal;
      h.time_stamp = time_;
      h.sequence_number = i;
      h.client_context = static_cast<std::uint16_t>(pick(4));
      h.flags = format::kFlagProcessorIndex;
      h.state = format::kStateFlush;
      h.type = i == 0 ? format::kTypeHeader : format::kTypeGeneric;
      format::store_buffer_header(b.data(), h);
      file.insert(file.end(), b.begin(), b.end());
    }
    return file;
  }

private:
  std::uint32_t pick(std::uint32_t n) { return static_cast<std::uint32_t>(rng_() % n); }
  template <class T> static void put(Buffer &b, T v) {
    b.resize(b.size() + sizeof v);
    store(b.data() + b.size() - sizeof v, v);
  }
  void put_wide(Buffer &b, const std::string &s, bool wide = false) {
    for (const char c : s)
      put(b, static_cast<std::uint16_t>(wide ? 0x4E00 + c : c));
    put(b, std::uint16_t{0});
  }

  Buffer make_event() {
    static constexpr std::uint8_t kTypes[] = {0x01, 0x02, 0x03, 0x04, 0x0A, 0x0B, 0x10,
                                              0x11, 0x12, 0x13, 0x14, 0x15, 0x30};
    static constexpr std::uint16_t kHooks[] = {0x0301, 0x0501, 0x1403, 0x0F2E, 0x0524,
                                               0x1820, 0x1823, 0x0424, 0x7777};
    static constexpr std::uint16_t kIds[] = {82, 144, 150, 10, 1, 2};
    time_ += pick(300);
    const std::uint8_t type = kTypes[pick(std::size(kTypes))];
    const format::HeaderLayout &layout = format::kHeaderLayouts[type];
    Buffer e(layout.header_size, 0);
    for (std::size_t i = 4; i < e.size(); i += 4)
      store(e.data() + i, pick(3) == 0 ? pick(7) : 0u);
    e[2] = type, e[3] = format::kMarkerStructured;
    const std::uint16_t hook = kHooks[pick(std::size(kHooks))];
    if (layout.size_at == 4)
      e[0] = static_cast<std::uint8_t>(1 + pick(4)), e[1] = 0, store(e.data() + 6, hook);
    if (layout.thread_at != format::kNone) {
      store(e.data() + 8, 1000 + 4 * pick(5));
      store(e.data() + 12, 400 + 4 * pick(2));
    }
    if (layout.time_at != format::kNone) store(e.data() + layout.time_at, time_);
    if (type == 0x12 || type == 0x13) {
      store_guid(e.data() + 0x18, pick(3) == 0 ? format::kClrRundownGuid : format::kClrGuid);
      store(e.data() + 0x28, kIds[pick(std::size(kIds))]);
      e[0x2A] = static_cast<std::uint8_t>(pick(4));
      const bool items = pick(4) == 0;
      store(e.data() + 4, std::uint16_t{items ? format::kEventFlagExtended : std::uint16_t{0}});
      if (items) {
        const std::uint16_t data = static_cast<std::uint16_t>(8 + 8 * pick(4));
        put(e, static_cast<std::uint16_t>(data + 8));
        put(e, std::uint16_t{6});
        put(e, std::uint16_t{0});
        put(e, data);
        for (unsigned i = 0; i < data; i += 8)
          put(e, std::uint64_t{0x7FF0'0000'0000} + pick(16));
      }
    } else if (type == 0x0A || type == 0x14) {
      store_guid(e.data() + 0x18, pick(3) == 0 ? format::kMetaDataGuid : format::kImageIdGuid);
      e[4] = static_cast<std::uint8_t>(pick(3) == 0 ? 36 : pick(3) == 0 ? 64 : 0), e[6] = 2, e[7] = 0;
    }
    static const std::string kNames[] = {"kernel32.dll", "\\Device\\HarddiskVolume3\\Windows\\explorer.exe",
                                         "", "System.String"};
    switch (pick(5)) {
    case 0:
      for (unsigned i = pick(12); i > 0; --i)
        put(e, static_cast<std::uint32_t>(rng_()));
      break;
    case 1:
      for (unsigned i = 9; i > 0; --i)
        put(e, pick(50));
      put_wide(e, kNames[pick(4)]);
      put_wide(e, kNames[pick(4)], pick(3) == 0);
      break;
    case 2:
      put(e, std::uint64_t{0x7FFE'0000'0000} + 0x10000u * pick(20));
      put(e, std::uint64_t{0x1000u * pick(9)});
      put(e, 400 + 4 * pick(2));
      for (unsigned i = pick(10); i > 0; --i)
        put(e, pick(3));
      put_wide(e, kNames[pick(4)]);
      break;
    case 3:
      for (unsigned i = pick(20); i > 0; --i)
        put(e, std::uint64_t{0xFFFF'F800'0000'0000} + 64u * pick(30));
      break;
    default:
      for (unsigned i = pick(90); i > 0; --i)
        put(e, static_cast<std::uint8_t>(pick(2) == 0 ? 0 : rng_()));
    }
    store(e.data() + layout.size_at, static_cast<std::uint16_t>(e.size()));
    return e;
  }

  std::mt19937 rng_;
  std::int64_t time_ = 1'000'000'000;
};

// --- Round trips
// -----------------------------------------------------------------------------------------------

TEST(Archive, MadeUpTracesComeBackAtEveryLevel) {
  for (std::uint32_t seed = 1; seed <= (testing::kSanitized ? 1u : 6u); ++seed) {
    const Buffer trace =
        TraceMaker(seed).make(testing::kSanitized ? 3 : 9, testing::kSanitized ? 8192 : 16384);
    for (const Level level : {Level::normal, Level::max, Level::ultra}) {
      pipeline::ArchiveOptions options;
      options.level = level;
      PackReport packed;
      const Buffer archive = pack(trace, options, &packed);
      EXPECT_TRUE(packed.is_trace);
      EXPECT_GT(packed.events, 100u);
      const Unpacked back = unpack(archive);
      ASSERT_TRUE(back.good) << back.error;
      EXPECT_TRUE(back.bytes == trace) << "seed " << seed;
      EXPECT_TRUE(back.result.hash_checked);
    }
  }
}

// The model itself must give events back: pack would silently fall back to zstd for a segment that it does
// not.
TEST(Archive, ModelDecodesWhatItEncoded) {
  for (std::uint32_t seed = 1; seed <= 40; ++seed) {
    const Buffer trace = TraceMaker(seed).make(5, 8192);
    std::vector<etlz::Part> parts;
    ASSERT_EQ(etlz::split_parts(trace, true, SIZE_MAX, parts), trace.size());
    ASSERT_EQ(parts.size(), 5u);
    etlz::SegmentCoder coder;
    Buffer coded;
    etlz::SegmentFacts facts;
    const auto method = coder.encode(trace, parts, Level::normal, coded, &facts);
    Buffer back(trace.size());
    ASSERT_TRUE(coder.decode(method, coded, back, facts.stream_bytes, facts.scratch_bytes))
        << "seed " << seed;
    EXPECT_TRUE(back == trace) << "seed " << seed;
  }
}

// What packing asks before it writes a segment. One coder after the other, as its memory goes from hand to
// hand.
TEST(Archive, ProvesWhatItEncodedByteByByte) {
  std::mt19937 rng(11);
  etlz::SegmentCoder coder;
  constexpr std::uint32_t kSeeds = testing::kSanitized ? 6 : 24;
  for (std::uint32_t seed = 1; seed <= kSeeds; ++seed) {
    const Level level = seed <= kSeeds * 5 / 6 ? Level::normal : Level::ultra;
    const Buffer trace = TraceMaker(seed).make(5, 8192);
    std::vector<etlz::Part> parts;
    ASSERT_EQ(etlz::split_parts(trace, true, SIZE_MAX, parts), trace.size());
    for (int again = 0; again < 2; ++again) {
      Buffer coded, by_another;
      etlz::SegmentFacts facts;
      const auto method = coder.encode(trace, parts, level, coded, &facts);
      etlz::SegmentCoder another;
      another.encode(trace, parts, level, by_another);
      EXPECT_TRUE(coded == by_another) << "seed " << seed;
      auto gives = [&](Bytes code, Bytes bytes) {
        return coder.gives(method, code, bytes, facts.stream_bytes, facts.scratch_bytes);
      };
      EXPECT_TRUE(gives(coded, trace)) << "seed " << seed;
      for (int i = 0; i < 50; ++i) {
        Buffer other = trace;
        other[rng() % other.size()] ^= static_cast<std::uint8_t>(1u << rng() % 8);
        EXPECT_FALSE(gives(coded, other)) << "seed " << seed;
        Buffer damaged = coded;
        damaged[rng() % damaged.size()] ^= static_cast<std::uint8_t>(1u << rng() % 8);
        static_cast<void>(gives(damaged, trace)); // whatever it says, within its bounds
      }
      EXPECT_FALSE(gives(coded, Bytes(trace).first(trace.size() - 8)));
      EXPECT_FALSE(gives(Bytes(coded).first(coded.size() / 2), trace));
    }
  }
}

TEST(Archive, ModelSurvivesDamagedBuffers) {
  std::mt19937 rng(7);
  for (int round = 0; round < 60; ++round) {
    Buffer trace = TraceMaker(static_cast<std::uint32_t>(round)).make(4, 4096);
    for (unsigned hits = 1 + rng() % 20; hits > 0; --hits)
      trace[rng() % trace.size()] = static_cast<std::uint8_t>(rng());
    trace.resize(trace.size() - rng() % 300);
    std::vector<etlz::Part> parts;
    std::size_t done = 0;
    Buffer back;
    while (done < trace.size()) {
      const Bytes rest = Bytes(trace).subspan(done);
      const std::size_t n = etlz::split_parts(rest, true, 6000, parts);
      ASSERT_GT(n, 0u);
      etlz::SegmentCoder coder;
      Buffer coded;
      etlz::SegmentFacts facts;
      const auto method = coder.encode(rest.first(n), parts, Level::normal, coded, &facts);
      Buffer piece(n);
      ASSERT_TRUE(coder.decode(method, coded, piece, facts.stream_bytes, facts.scratch_bytes)) << round;
      back.insert(back.end(), piece.begin(), piece.end());
      done += n;
    }
    EXPECT_TRUE(back == trace) << round;
  }
}

TEST(Archive, AnyFileComesBack) {
  std::mt19937 rng(3);
  Buffer noise(70'000);
  for (std::uint8_t &b : noise)
    b = static_cast<std::uint8_t>(rng());
  Buffer lines;
  for (int i = 0; i < 4000; ++i)
    lines.insert(lines.end(), {'l', 'i', 'n', 'e', '\n'});
  for (const Buffer &file : {Buffer{}, Buffer{1}, Buffer(71, 0), Buffer(5000, 0xFF), noise, lines}) {
    PackReport packed;
    const Buffer archive = pack(file, {}, &packed);
    EXPECT_FALSE(packed.is_trace);
    const Unpacked back = unpack(archive);
    ASSERT_TRUE(back.good) << back.error;
    EXPECT_TRUE(back.bytes == file);
  }
}

// As logs that are given their size in advance have zeros behind them, these count for nothing.
TEST(Archive, SaysWhatIsInNoWholeBuffer) {
  const Buffer whole = TraceMaker(11).make(600, 65536); // several segments
  const std::size_t last = whole.size() - format::load_buffer_header(whole.data()).buffer_size;
  struct Case {
    std::size_t size, zeros;
    std::uint64_t stray, first;
  };
  for (const auto &[size, zeros, stray, first] :
       {Case{whole.size(), 0, 0, 0}, {whole.size(), 100'000, 0, 0}, {last + 1000, 0, 1000, last}}) {
    Buffer trace(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    trace.resize(size + zeros);
    PackReport packed;
    const Unpacked back = unpack(pack(trace, {}, &packed));
    ASSERT_TRUE(back.good) << back.error;
    EXPECT_TRUE(back.bytes == trace);
    EXPECT_EQ(packed.stray, stray);
    EXPECT_EQ(packed.first_stray, first);
  }
}

TEST(Archive, ThreadCountDoesNotChangeTheBytes) {
  const Buffer trace = TraceMaker(11).make(600, 65536); // several segments
  pipeline::ArchiveOptions options;
  options.run.threads = 1;
  PackReport packed;
  const Buffer one = pack(trace, options, &packed);
  EXPECT_GE(packed.segments, 3u);
  options.run.threads = 4;
  EXPECT_TRUE(pack(trace, options) == one);
  const Unpacked back = unpack(one, options);
  ASSERT_TRUE(back.good) << back.error;
  EXPECT_TRUE(back.bytes == trace);
}

TEST(Archive, RealTracesComeBackByTheModel) {
  const std::vector<std::string> names = testing::trace_names();
  if (names.empty()) GTEST_SKIP() << "the real traces are not here";
  for (const std::string &name : names) {
    const auto path = testing::trace_path(name);
    ASSERT_TRUE(path) << name;
    const Buffer trace = testing::read_file(path->string());
    if (testing::kSanitized && trace.size() > (3u << 20)) continue; // other tests pack it there
    PackReport packed;
    const Buffer archive = pack(trace, {}, &packed);
    EXPECT_TRUE(packed.is_trace) << name;
    EXPECT_LT(archive.size(), trace.size()) << name;
    // Its buffers are compressed; kept as they are they would take three times as much.
    if (name == "net.4.5.2.x64") {
      EXPECT_LT(archive.size(), 1'300'000u);
    }
    const auto memory = read::memory_input("memory", archive);
    const Result<pipeline::ArchiveIndex> index = pipeline::read_archive_index(*memory);
    ASSERT_TRUE(index) << text(index.error());
    for (const etlz::IndexEntry &e : index->segments)
      EXPECT_TRUE(e.header.method == etlz::SegmentMethod::model || archive.size() < 10'000) << name;
    const Unpacked back = unpack(archive);
    ASSERT_TRUE(back.good) << name << back.error;
    EXPECT_TRUE(back.bytes == trace) << name;
  }
}

// Buffers that another encoder than Windows' compressed: predicted or kept as they are, beside modelled ones.
TEST(Archive, BuffersOfOtherEncodersComeBack) {
  Buffer trace = TraceMaker(29).make(12, 16384), mixed;
  for (std::size_t at = 0; at < trace.size(); at += 16384) {
    format::BufferHeader h = format::load_buffer_header(trace.data() + at);
    const Bytes events =
        Bytes(trace).subspan(at + format::kBufferHeaderSize, h.saved_offset - format::kBufferHeaderSize);
    const Codec codec = at / 16384 % 3 == 1 ? Codec::xpress : Codec::lznt1;
    Buffer coded(events.size());
    Compressor compressor(codec, Level::normal, events.size());
    const CodecResult r = compressor.compress(events, coded);
    if (at / 16384 % 3 == 0 || !r) {
      mixed.insert(mixed.end(), trace.begin() + static_cast<std::ptrdiff_t>(at),
                   trace.begin() + static_cast<std::ptrdiff_t>(at + 16384));
      continue;
    }
    h.flags |= format::kFlagCompressed;
    h.buffer_size = static_cast<std::uint32_t>(format::kBufferHeaderSize + r.produced);
    const std::size_t to = mixed.size();
    mixed.resize(to + h.buffer_size);
    format::store_buffer_header(mixed.data() + to, h);
    std::copy_n(coded.begin(), r.produced,
                mixed.begin() + static_cast<std::ptrdiff_t>(to + format::kBufferHeaderSize));
  }
  const Buffer archive = pack(mixed);
  const Result<pipeline::ArchiveIndex> index =
      pipeline::read_archive_index(*read::memory_input("memory", archive));
  ASSERT_TRUE(index);
  for (const etlz::IndexEntry &e : index->segments)
    EXPECT_EQ(e.header.method, etlz::SegmentMethod::model);
  const Unpacked back = unpack(archive);
  ASSERT_TRUE(back.good) << back.error;
  EXPECT_TRUE(back.bytes == mixed);
}

// --- Damage
// ----------------------------------------------------------------------------------------------------

TEST(Archive, AnyFlippedByteIsDetected) {
  // One payload, and segments with an index.
  for (const auto &[buffers, size, step] : {std::tuple{3u, 4096u, 1u}, {12u, 16384u, 23u}}) {
    const Buffer archive = pack(TraceMaker(5).make(buffers, size));
    const Result<etlz::FileHeader> header = etlz::read_file_header(archive);
    ASSERT_TRUE(header);
    EXPECT_EQ(header->small, step == 1);
    for (std::size_t i = 0; i < archive.size(); i += i + 400 < archive.size() ? step : 1) {
      Buffer bad = archive;
      bad[i] ^= 0x10;
      const auto input = read::memory_input("memory", bad);
      const Result<UnpackReport> r = pipeline::unpack_file(*input, nullptr, {});
      EXPECT_FALSE(r) << "byte " << i;
    }
  }
}

TEST(Archive, AnyCutIsDetected) {
  const Buffer archive = pack(TraceMaker(5).make(3, 4096));
  for (std::size_t size = 0; size < archive.size(); ++size) {
    const auto input = read::memory_input(
        "memory", Buffer(archive.begin(), archive.begin() + static_cast<std::ptrdiff_t>(size)));
    EXPECT_FALSE(pipeline::unpack_file(*input, nullptr, {})) << size;
  }
  Buffer longer = archive;
  longer.push_back(0);
  EXPECT_FALSE(pipeline::unpack_file(*read::memory_input("memory", longer), nullptr, {}));
}

TEST(Archive, SalvageGivesBackWholeSegmentsOnly) {
  const Buffer trace = TraceMaker(13).make(600, 65536);
  pipeline::ArchiveOptions options;
  const Buffer archive = pack(trace, options);
  const Result<pipeline::ArchiveIndex> index =
      pipeline::read_archive_index(*read::memory_input("memory", archive));
  ASSERT_TRUE(index);
  ASSERT_GE(index->segments.size(), 3u);
  const etlz::SegmentHeader &lost = index->segments[1].header;
  // Damage in the second segment and no end at all.
  Buffer bad(archive.begin(), archive.end() - 200);
  bad[index->segments[1].archive_at + 1000] ^= 1;
  EXPECT_FALSE(unpack(bad).good);
  options.salvage = true;
  const Unpacked back = unpack(bad, options);
  ASSERT_TRUE(back.good) << back.error;
  Buffer expected = trace;
  const auto from = expected.begin() + static_cast<std::ptrdiff_t>(lost.original_at);
  expected.erase(from, from + static_cast<std::ptrdiff_t>(lost.original_size));
  EXPECT_TRUE(back.bytes == expected);
  ASSERT_EQ(back.result.missing.size(), 1u);
  EXPECT_EQ(back.result.missing[0].offset, lost.original_at);
  EXPECT_EQ(back.result.missing[0].bytes, lost.original_size);
}

TEST(Archive, MemoryLimitIsKept) {
  const Buffer archive = pack(TraceMaker(5).make(40, 65536));
  pipeline::ArchiveOptions options;
  options.run.memory = 1u << 20;
  const Unpacked back = unpack(archive, options);
  EXPECT_FALSE(back.good);
  EXPECT_NE(back.error.find("RunOptions::memory"), std::string::npos) << back.error;
}

TEST(Archive, NewerFormatIsRefusedByName) {
  Buffer archive = pack(TraceMaker(5).make(1, 4096));
  store(archive.data() + 10, std::uint16_t{99});
  store(archive.data() + etlz::kFileHeaderSize - 8,
        etlz::hash64(Bytes(archive.data(), etlz::kFileHeaderSize - 8)));
  const Unpacked back = unpack(archive);
  EXPECT_FALSE(back.good);
  EXPECT_NE(back.error.find("newer version"), std::string::npos) << back.error;
}

// --- As an input
// -------------------------------------------------------------------------------------------------

TEST(Archive, ReadsAtAnyOffset) {
  const Buffer trace = TraceMaker(17).make(400, 65536);
  pipeline::ArchiveOptions options;
  Result<std::unique_ptr<read::Input>> input =
      pipeline::open_archive(read::memory_input("memory", pack(trace, options)));
  ASSERT_TRUE(input) << text(input.error());
  ASSERT_EQ((*input)->size(), trace.size());
  std::mt19937 rng(1);
  for (int i = 0; i < 50; ++i) {
    const std::size_t at = rng() % trace.size();
    Buffer piece(rng() % 200'000);
    const Result<std::size_t> got = (*input)->read_at(at, piece);
    ASSERT_TRUE(got);
    ASSERT_EQ(*got, std::min(piece.size(), trace.size() - at));
    EXPECT_TRUE(std::equal(piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(*got),
                           trace.begin() + static_cast<std::ptrdiff_t>(at)));
  }
}

// Counts what is read of the archive.
class CountingInput final : public read::Input {
public:
  CountingInput(Buffer bytes, std::uint64_t &count)
      : read::Input("counted"), bytes_(std::move(bytes)), count_(count) {}
  [[nodiscard]] std::uint64_t size() const override { return bytes_.size(); }
  [[nodiscard]] Result<std::size_t> read_at(std::uint64_t offset, MutableBytes into) const override {
    const std::size_t n =
        offset >= bytes_.size() ? 0 : std::min<std::size_t>(into.size(), bytes_.size() - offset);
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), n, into.begin());
    count_ += n;
    return n;
  }

private:
  Buffer bytes_;
  std::uint64_t &count_;
};

TEST(Archive, WalkOverBufferHeadersDecodesNothing) {
  const Buffer trace = TraceMaker(23).make(600, 65536);
  pipeline::ArchiveOptions options;
  std::uint64_t count = 0;
  const Buffer archive = pack(trace, options);
  Result<std::unique_ptr<read::Input>> input =
      pipeline::open_archive(std::make_unique<CountingInput>(archive, count));
  ASSERT_TRUE(input);
  const std::uint64_t opened = count;
  Buffer header(format::kBufferHeaderSize);
  for (std::size_t at = 0; at < trace.size(); at += 65536) {
    ASSERT_TRUE((*input)->read_at(at, header));
    EXPECT_TRUE(std::equal(header.begin(), header.end(), trace.begin() + static_cast<std::ptrdiff_t>(at)));
  }
  EXPECT_EQ(count, opened);
  // One buffer takes one segment, not all.
  Buffer buffer(65536);
  ASSERT_TRUE((*input)->read_at(300 * 65536, buffer));
  EXPECT_TRUE(std::equal(buffer.begin(), buffer.end(), trace.begin() + 300 * 65536));
  EXPECT_LT(count - opened, archive.size() / 2); // of three segments, two of them whole
}

TEST(Archive, IndexKnowsTimesAndProcesses) {
  pipeline::ArchiveOptions options;
  options.segment = 4 * 16384;
  const Buffer trace = TraceMaker(19).make(8, 16384), archive = pack(trace, options);
  const Result<pipeline::ArchiveIndex> index =
      pipeline::read_archive_index(*read::memory_input("memory", archive));
  ASSERT_TRUE(index);
  ASSERT_EQ(index->segments.size(), 2u);
  const etlz::SegmentFacts &facts = index->segments[0].facts;
  EXPECT_EQ(facts.buffers + index->segments[1].facts.buffers, 8u);
  EXPECT_GE(facts.first_time, 1'000'000'000);
  EXPECT_GT(facts.last_time, facts.first_time);
  for (const std::uint32_t id : {400u, 404u})
    EXPECT_TRUE(std::binary_search(facts.processes.begin(), facts.processes.end(), id)) << id;
  // Of a segment that is alone nobody needs to know.
  const Result<pipeline::ArchiveIndex> alone =
      pipeline::read_archive_index(*read::memory_input("memory", pack(trace)));
  ASSERT_TRUE(alone);
  ASSERT_EQ(alone->segments.size(), 1u);
  EXPECT_TRUE(alone->segments[0].facts.processes.empty() && alone->segments[0].facts.threads.empty());
  EXPECT_EQ(alone->segments[0].facts.last_time, index->segments[1].facts.last_time);
}

} // namespace
} // namespace etwrelog
