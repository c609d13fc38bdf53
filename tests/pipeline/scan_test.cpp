// Finding buffers: every situation that the format notes name, and every damage.
#include "tests/support/pipeline_runs.hpp"
#include "tests/support/synthetic_trace.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

namespace etwrelog::read {
namespace {

using namespace format;
using testing::contents_of;
using testing::SyntheticBuffer;
using testing::SyntheticTrace;
using testing::TraceOptions;

Result<Scan> scan(std::vector<std::uint8_t> bytes, const ScanOptions &options = {}) {
  const auto input = memory_input("x.etl", std::move(bytes));
  return scan_buffers(*input, options);
}

SyntheticTrace three_buffers(TraceOptions options = {}) {
  SyntheticTrace t(options);
  for (std::uint16_t cpu = 0; cpu < 3; ++cpu) {
    t.sample({2'000'000 + cpu, cpu}, 10u + cpu);
    t.sample({2'000'100 + cpu, cpu}, 20u + cpu);
    t.end_buffer(cpu);
  }
  return t;
}

void expect_all_events(const SyntheticTrace &t, std::vector<std::uint8_t> bytes) {
  const testing::Contents c = contents_of(std::move(bytes));
  EXPECT_EQ(c.error, "");
  EXPECT_EQ(c.events.size(), t.count());
  for (std::size_t i = 0; i < t.count(); ++i)
    EXPECT_EQ(c.count(t.event(i)), 1u) << i;
}

TEST(Scan, FindsTheBuffersOfAHealthyTrace) {
  const SyntheticTrace t = three_buffers();
  const Result<Scan> s = scan(t.bytes());
  ASSERT_TRUE(s);
  ASSERT_EQ(s->buffers.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(s->buffers[i].offset, i * 0x10000);
    EXPECT_EQ(s->buffers[i].size, 0x10000u);
    EXPECT_FALSE(s->buffers[i].cut);
  }
  EXPECT_TRUE(s->warnings.empty());
  EXPECT_EQ(s->header.session_name, "Synthetic");
  expect_all_events(t, t.bytes());
}

// Where threads read headers ahead, it is by guessing where they stand.
TEST(Scan, FindsTheSameOnAnyNumberOfThreads) {
  constexpr std::size_t kBuffers = 9000, kSize = 1024;
  SyntheticTrace t({.buffer_size = kSize});
  for (std::size_t i = 0; i + 1 < kBuffers; ++i) {
    t.sample({2'000'000 + static_cast<std::int64_t>(i), static_cast<std::uint16_t>(i % 4)}, 10);
    t.end_buffer(static_cast<std::uint16_t>(i % 4));
  }
  const std::vector<std::uint8_t> sound = t.bytes();
  ASSERT_EQ(sound.size(), kBuffers * kSize);
  const auto expect_the_same = [](const std::vector<std::uint8_t> &bytes, bool salvage, const char *what) {
    ScanOptions options;
    options.salvage = salvage;
    const Result<Scan> one = scan(bytes, options);
    for (const unsigned threads : {2u, 3u, 64u}) {
      options.threads = threads;
      const Result<Scan> several = scan(bytes, options);
      ASSERT_EQ(static_cast<bool>(one), static_cast<bool>(several)) << what;
      if (!one) {
        EXPECT_EQ(one.error().message(), several.error().message()) << what;
        continue;
      }
      EXPECT_EQ(one->warnings, several->warnings) << what;
      EXPECT_EQ(one->skipped.size(), several->skipped.size()) << what;
      const auto as_tuple = [](const BufferSpan &s) {
        return std::tuple(s.offset, s.size, s.decoded, s.cut, s.processor, s.time_stamp);
      };
      EXPECT_TRUE(std::ranges::equal(one->buffers, several->buffers, {}, as_tuple, as_tuple)) << what;
    }
  };
  expect_the_same(sound, false, "sound");
  const auto half = sound.begin() + static_cast<std::ptrdiff_t>(kBuffers / 2 * kSize);
  std::vector<std::uint8_t> damaged = sound;
  std::fill_n(damaged.begin() + (half - sound.begin()), 8, std::uint8_t{0xEE});
  expect_the_same(damaged, false, "damaged");
  expect_the_same(damaged, true, "damaged, salvaged");
  std::vector<std::uint8_t> shifted = sound;
  shifted.erase(shifted.begin() + (half - sound.begin()) + 200,
                shifted.begin() + (half - sound.begin()) + 504);
  expect_the_same(shifted, true, "not where they should stand");
  std::vector<std::uint8_t> cut(sound.begin(), sound.end() - 500);
  expect_the_same(cut, false, "cut");
  std::vector<std::uint8_t> unwritten = sound;
  std::fill(unwritten.begin() + (half - sound.begin()), unwritten.end(), std::uint8_t{0});
  expect_the_same(unwritten, false, "preallocated");
}

// SavedOffset may lie before the padding of the last event.
TEST(Scan, BuffersThatEndBeforeThePaddingOfTheirLastEventAreRelogged) {
  for (const Codec codec : {Codec::none, Codec::xpress, Codec::lznt1}) {
    SyntheticTrace t({.buffer_size = 4096, .codec = codec});
    std::uint32_t padding = 0;
    for (int i = 0; i < 3; ++i) {
      for (int n = 0; n < 20; ++n)
        t.sample({2'000'000 + 100 * i + n}, 10);
      const std::size_t last =
          t.manifest_event({2'000'090 + 100 * i}, {}, 10, 10, std::vector<std::uint8_t>(101, 7));
      padding = static_cast<std::uint32_t>(align8(t.event(last).size()) - t.event(last).size());
      SyntheticBuffer &buffer = t.end_buffer(0);
      buffer.events.erase(buffer.events.end() - padding, buffer.events.end());
    }
    ASSERT_GT(padding, 0u);
    for (const pipeline::StackMode stacks :
         {pipeline::StackMode::keep, pipeline::StackMode::cache, pipeline::StackMode::expand}) {
      pipeline::RelogOptions options;
      options.stacks.mode = stacks;
      options.buffer_size = 1024; // so that runs are split between events
      const testing::Relogged relogged = testing::relog_bytes(t.bytes(), options);
      ASSERT_FALSE(relogged.error) << relogged.error->message();
      EXPECT_EQ(relogged.contents.events.size(), t.count());
      for (std::size_t i = 0; i < t.count(); ++i)
        EXPECT_EQ(relogged.contents.count(t.event(i)), 1u) << i;
    }
  }
}

TEST(Scan, ReadsEveryBufferSizeFrom1KTo16M) {
  for (const std::uint32_t size : {1024u, 4096u, 0x10000u, 0x100000u, 0x1000000u}) {
    const SyntheticTrace t = three_buffers({.buffer_size = size});
    expect_all_events(t, t.bytes());
  }
}

TEST(Scan, ReadsBothPointerSizesAndEveryCodec) {
  for (const unsigned pointers : {4u, 8u})
    for (const Codec codec : {Codec::none, Codec::xpress, Codec::lznt1}) {
      SyntheticTrace t({.pointer_size = pointers, .codec = codec});
      for (int i = 0; i < 2000; ++i)
        t.sample({2'000'000 + i, static_cast<std::uint16_t>(i % 3)}, static_cast<std::uint32_t>(i % 7));
      expect_all_events(t, t.bytes());
    }
}

TEST(Scan, ReadsBuffersOfDifferentCodecsInOneFile) {
  SyntheticTrace t = three_buffers({.codec = Codec::xpress});
  t.closed_buffers()[0].codec = Codec::lznt1;
  t.closed_buffers()[1].codec = Codec::none;
  expect_all_events(t, t.bytes());
}

TEST(Scan, TakesTheLargerOfSavedOffsetAndOffset) {
  for (const bool windows7 : {false, true}) {
    SyntheticTrace t({.windows7 = windows7, .short_saved_offset = !windows7});
    t.in_first_buffer(true);
    t.system({1'000'001}, 0x0042, 0, 1, 2);
    t.system({1'000'002}, 0x0005, 2, 1, 2);
    t.in_first_buffer(false);
    t.sample({2'000'000, 3}, 10);
    expect_all_events(t, t.bytes());
  }
}

TEST(Scan, MasksTheProcessorWithoutTheIndexFlag) {
  SyntheticTrace t({.windows7 = true});
  t.sample({2'000'000, 5}, 10);
  const testing::Contents c = contents_of(t.bytes());
  EXPECT_EQ(c.by_cpu.count(5), 1u) << "not 0x805";
  SyntheticTrace wide;
  wide.end_buffer(300).events.clear();
  wide.sample({2'000'000, 300}, 10);
  EXPECT_EQ(contents_of(wide.bytes()).by_cpu.count(300), 1u);
}

TEST(Scan, ReadsAnOpenLogWithAWarning) {
  const SyntheticTrace t = three_buffers({.closed = false});
  const Result<Scan> s = scan(t.bytes());
  ASSERT_TRUE(s);
  EXPECT_EQ(s->buffers.size(), 4u);
  ASSERT_EQ(s->warnings.size(), 1u);
  EXPECT_NE(s->warnings[0].find("never closed"), std::string::npos);
  expect_all_events(t, t.bytes());
}

TEST(Scan, IgnoresTrailingBytesTooFewForABuffer) {
  for (const std::size_t extra : {1u, 8u, 0x47u}) {
    std::vector<std::uint8_t> bytes = three_buffers().bytes();
    bytes.resize(bytes.size() + extra, 0x5A);
    const Result<Scan> s = scan(bytes);
    ASSERT_TRUE(s);
    EXPECT_EQ(s->trailing_bytes, extra);
    EXPECT_EQ(s->warnings.size(), 1u);
    expect_all_events(three_buffers(), bytes);
  }
}

TEST(Scan, IgnoresATailThatWasNeverWritten) {
  std::vector<std::uint8_t> bytes = three_buffers().bytes();
  bytes.resize(bytes.size() + 3'000'000);
  const Result<Scan> s = scan(bytes);
  ASSERT_TRUE(s);
  EXPECT_EQ(s->unwritten_bytes, 3'000'000u);
  EXPECT_EQ(s->buffers.size(), 4u);
  expect_all_events(three_buffers(), bytes);
}

TEST(Scan, ReadsABufferCutShortToItsLastWholeEvent) {
  const SyntheticTrace t = three_buffers();
  const std::vector<std::uint8_t> whole = t.bytes();
  const std::size_t last = 3 * 0x10000;
  const std::size_t first_event_end = last + kBufferHeaderSize + align8(t.event(4).size());
  for (const std::size_t length :
       {last + kBufferHeaderSize, last + kBufferHeaderSize + 1, first_event_end - 1, first_event_end,
        first_event_end + 7, first_event_end + align8(t.event(5).size()), whole.size() - 1}) {
    const std::vector<std::uint8_t> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
    const Result<Scan> s = scan(cut);
    ASSERT_TRUE(s) << s.error().message();
    ASSERT_EQ(s->buffers.size(), 4u);
    EXPECT_TRUE(s->buffers.back().cut);
    EXPECT_EQ(s->warnings.size(), 1u);
    const testing::Contents c = contents_of(cut);
    EXPECT_EQ(c.error, "");
    const std::size_t whole_events = length < first_event_end                               ? 4u
                                     : length < first_event_end + align8(t.event(5).size()) ? 5u
                                                                                            : 6u;
    EXPECT_EQ(c.events.size(), whole_events) << length - last;
  }
}

TEST(Scan, TellsOfWholeBuffersThatAreMissing) {
  const std::vector<std::uint8_t> whole = three_buffers().bytes();
  EXPECT_TRUE(scan(whole)->warnings.empty());
  std::vector<std::uint8_t> without_end = whole, without_middle = whole;
  without_end.resize(2 * 0x10000);
  without_middle.erase(without_middle.begin() + 0x10000, without_middle.begin() + 3 * 0x10000);
  for (const auto &bytes : {without_end, without_middle}) {
    const Result<Scan> s = scan(bytes);
    ASSERT_TRUE(s);
    ASSERT_EQ(s->warnings.size(), 1u);
    EXPECT_NE(s->warnings[0].find("wrote 4 buffers, and 2 are there"), std::string::npos) << s->warnings[0];
    EXPECT_EQ(s->header.missing_buffers(s->buffers.size()), 2u);
  }
}

// `cat a.etl b.etl`, or a gzip file of several members: whoever does that hardly wants one trace's clock for
// all.
TEST(Scan, TellsWhereAnotherLogBegins) {
  for (const Codec codec : {Codec::none, Codec::xpress}) {
    const std::vector<std::uint8_t> one = three_buffers({.codec = codec}).bytes();
    std::vector<std::uint8_t> both = one;
    both.insert(both.end(), one.begin(), one.end());
    both.insert(both.end(), one.begin(), one.end());
    const Result<Scan> s = scan(both);
    ASSERT_TRUE(s);
    EXPECT_EQ(s->buffers.size(), 12u);
    ASSERT_EQ(s->warnings.size(), 1u);
    EXPECT_NE(s->warnings[0].find(fmt::format("another log begins at 0x{:x}", one.size())), std::string::npos)
        << s->warnings[0];
  }
}

TEST(Scan, ACircularLogMayHaveFewerBuffersThanWereWritten) {
  std::vector<std::uint8_t> bytes = three_buffers({.mode = format::kModeCircular}).bytes();
  bytes.resize(2 * 0x10000);
  const Result<Scan> s = scan(bytes);
  ASSERT_TRUE(s);
  EXPECT_TRUE(s->warnings.empty());
}

TEST(Scan, ReadsEveryCutOfATraceWithoutAnError) {
  for (const Codec codec : {Codec::none, Codec::xpress, Codec::lznt1}) {
    SyntheticTrace t({.buffer_size = 1024, .codec = codec});
    for (int i = 0; i < 60; ++i)
      t.sample({2'000'000 + i, static_cast<std::uint16_t>(i % 2)}, static_cast<std::uint32_t>(i));
    const std::vector<std::uint8_t> whole = t.bytes();
    std::size_t before = 0;
    for (std::size_t length = 1024; length <= whole.size(); ++length) {
      const testing::Contents c =
          contents_of({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)});
      ASSERT_EQ(c.error, "") << length << " of " << whole.size();
      ASSERT_GE(c.events.size(), before) << "a longer file holds no fewer events";
      before = c.events.size();
    }
    EXPECT_EQ(before, t.count());
  }
}

TEST(Scan, RefusesWhatIsNoTrace) {
  EXPECT_NE(scan({}).error().message().find("the file is empty"), std::string::npos);
  EXPECT_FALSE(scan(std::vector<std::uint8_t>(50, 1)));
  EXPECT_FALSE(scan(std::vector<std::uint8_t>(100'000, 0)));
  EXPECT_FALSE(scan(std::vector<std::uint8_t>(100'000, 0xFF)));
  std::vector<std::uint8_t> text(100'000);
  for (std::size_t i = 0; i < text.size(); ++i)
    text[i] = static_cast<std::uint8_t>("plain text\n"[i % 11]);
  const Result<Scan> s = scan(text);
  ASSERT_FALSE(s);
  EXPECT_NE(s.error().message().find("x.etl"), std::string::npos);
  EXPECT_NE(s.error().message().find("is this an ETW trace"), std::string::npos);
  EXPECT_EQ(s.error().message().find('\n'), std::string::npos) << "one line";
}

TEST(Scan, ReportsAnImpossibleSizeWithItsOffset) {
  for (const std::uint32_t size : {0u, 0x47u, 0x7FFF'FFFFu, 0xFFFF'FFFFu}) {
    SyntheticTrace t = three_buffers();
    t.closed_buffers()[1].tweak = [size](BufferHeader &h) { h.buffer_size = size; };
    const Result<Scan> s = scan(t.bytes());
    ASSERT_FALSE(s) << size;
    EXPECT_EQ(s.error().offset, 2u * 0x10000);
    EXPECT_EQ(s.error().kind, ErrorKind::corrupt);
    EXPECT_NE(s.error().what.find("buffer 2: BufferSize"), std::string::npos);
  }
}

TEST(Scan, SalvageFindsTheNextBufferBehindDamage) {
  SyntheticTrace t = three_buffers();
  t.closed_buffers()[1].tweak = [](BufferHeader &h) { h.buffer_size = 0xFFFF'FFFF; };
  const Result<Scan> s = scan(t.bytes(), {.salvage = true});
  ASSERT_TRUE(s);
  ASSERT_EQ(s->buffers.size(), 3u);
  EXPECT_EQ(s->buffers[2].offset, 3u * 0x10000);
  ASSERT_EQ(s->skipped.size(), 1u);
  EXPECT_EQ(s->skipped[0].offset, 2u * 0x10000);
  EXPECT_EQ(s->skipped[0].bytes, 0x10000u);
}

TEST(Scan, SalvageFindsBuffersBehindInsertedGarbage) {
  const std::vector<std::uint8_t> good = three_buffers().bytes();
  std::vector<std::uint8_t> bytes(good.begin(), good.begin() + 0x20000);
  for (int i = 0; i < 12'345; ++i)
    bytes.push_back(static_cast<std::uint8_t>(i * 37 | 0x80));
  bytes.insert(bytes.end(), good.begin() + 0x20000, good.end());
  EXPECT_FALSE(scan(bytes));
  const Result<Scan> s = scan(bytes, {.salvage = true});
  ASSERT_TRUE(s);
  EXPECT_EQ(s->buffers.size(), 4u);
  ASSERT_EQ(s->skipped.size(), 1u);
  EXPECT_EQ(s->skipped[0].bytes, 12'345u);
}

TEST(Scan, SalvageEndsWhereNothingFollows) {
  std::vector<std::uint8_t> bytes = three_buffers().bytes();
  bytes.resize(bytes.size() + 5000, 0x11);
  EXPECT_FALSE(scan(bytes));
  const Result<Scan> s = scan(bytes, {.salvage = true});
  ASSERT_TRUE(s);
  EXPECT_EQ(s->buffers.size(), 4u);
  ASSERT_EQ(s->skipped.size(), 1u);
  EXPECT_EQ(s->skipped[0].bytes, 5000u);
}

// Many small gaps, each far from the next: a megabyte read for each would take minutes.
TEST(Scan, SalvageStaysFastOverManySmallGaps) {
  std::vector<std::uint8_t> bytes = three_buffers().bytes();
  BufferHeader empty;
  empty.saved_offset = empty.filled_bytes = kBufferHeaderSize;
  empty.buffer_size = 0x148;
  constexpr std::size_t kGaps = 20'000, kStep = 0x148 + 40;
  const std::size_t begin = bytes.size();
  bytes.resize(begin + kGaps * kStep, 0xEE);
  for (std::size_t i = 0; i < kGaps; ++i)
    store_buffer_header(&bytes[begin + i * kStep], empty);
  const Result<Scan> s = scan(bytes, {.salvage = true});
  ASSERT_TRUE(s);
  EXPECT_EQ(s->buffers.size(), 4 + kGaps);
  EXPECT_EQ(s->skipped.size(), kGaps - 1);
  EXPECT_EQ(s->trailing_bytes, 40u); // the last gap: nothing follows, and it is too short for a header
}

TEST(Scan, OrdersAWrappedCircularLogBySequence) {
  auto make = [](std::vector<std::int64_t> sequences, std::uint32_t mode) {
    SyntheticTrace t({.mode = mode});
    for (std::size_t i = 0; i < sequences.size(); ++i) {
      t.sample({2'000'000 + sequences[i], 1}, static_cast<std::uint32_t>(sequences[i]));
      t.end_buffer(1).sequence = sequences[i];
    }
    return t.bytes();
  };
  auto order = [](const Scan &s) {
    std::vector<std::uint64_t> offsets;
    for (const BufferSpan &b : s.buffers)
      offsets.push_back(b.offset / 0x10000);
    return offsets;
  };
  const Result<Scan> wrapped = scan(make({8, 9, 5, 6, 7}, kModeCircular));
  ASSERT_TRUE(wrapped);
  EXPECT_TRUE(wrapped->wrapped);
  EXPECT_EQ(order(*wrapped), (std::vector<std::uint64_t>{0, 3, 4, 5, 1, 2}));
  const Result<Scan> as_is = scan(make({8, 9, 5, 6, 7}, kModeCircular), {.file_order = true});
  EXPECT_EQ(order(*as_is), (std::vector<std::uint64_t>{0, 1, 2, 3, 4, 5}));
  const Result<Scan> not_wrapped = scan(make({5, 6, 7, 8}, kModeCircular));
  EXPECT_FALSE(not_wrapped->wrapped);
  const Result<Scan> sequential = scan(make({8, 9, 5, 6, 7}, kModeSequential));
  EXPECT_EQ(order(*sequential), (std::vector<std::uint64_t>{0, 1, 2, 3, 4, 5}));
}

TEST(Scan, ReportsACompressedBufferThatDecodesWithNothing) {
  SyntheticTrace t({.codec = Codec::xpress});
  for (int i = 0; i < 500; ++i)
    t.sample({2'000'000 + i, 0}, static_cast<std::uint32_t>(i % 5));
  t.end_buffer(0);
  for (int i = 0; i < 500; ++i)
    t.sample({3'000'000 + i, 0}, static_cast<std::uint32_t>(i % 5));
  std::vector<std::uint8_t> bytes = t.bytes();
  const std::size_t second = 0x10000;
  for (std::size_t i = 0; i < 40; ++i)
    bytes[second + kBufferHeaderSize + i] = 0xFF;
  const testing::Contents c = contents_of(bytes);
  EXPECT_NE(c.error.find("buffer 1: compressed data"), std::string::npos) << c.error;
  EXPECT_NE(c.error.find("0x10048"), std::string::npos) << c.error;
  const testing::Relogged salvaged = testing::relog_bytes(bytes, {}, {.salvage = true});
  ASSERT_FALSE(salvaged.error) << salvaged.error->message();
  EXPECT_EQ(salvaged.contents.events.size(), 500u);
  EXPECT_EQ(salvaged.report.skipped.size(), 1u);
}

TEST(Scan, ReportsAnEventThatRunsPastItsBuffer) {
  SyntheticTrace t = three_buffers();
  const std::size_t second_event = align8(t.event(2).size());
  store<std::uint16_t>(&t.closed_buffers()[1].events[second_event + 4], 0x4000);
  const testing::Contents c = contents_of(t.bytes());
  EXPECT_NE(c.error.find("buffer 2: event at"), std::string::npos) << c.error;
  const testing::Relogged salvaged = testing::relog_bytes(t.bytes(), {}, {.salvage = true});
  ASSERT_FALSE(salvaged.error);
  EXPECT_EQ(salvaged.contents.events.size(), 5u)
      << "the event before the damage and the buffer behind it stay";
  ASSERT_EQ(salvaged.report.skipped.size(), 1u);
  EXPECT_EQ(salvaged.report.skipped[0].offset, 2 * 0x10000 + kBufferHeaderSize + second_event);
}

// The first buffer carries what a relog copies: damage in it must be an error, or salvaged, never a crash.
TEST(Scan, SurvivesAFirstBufferThatDeniesItsHeaderEvent) {
  for (const std::uint32_t valid : {0u, 0x47u, 0x48u, 0x50u, 0x68u, 0x100u})
    for (const bool salvage : {false, true}) {
      std::vector<std::uint8_t> bytes = three_buffers().bytes();
      store(&bytes[0x04], valid);
      store(&bytes[0x30], valid);
      const testing::Relogged r = testing::relog_bytes(bytes, {}, {.salvage = salvage});
      EXPECT_EQ(r.contents.error, "");
      Selection selection;
      selection.to = Moment{true, 10, 0};
      pipeline::RelogOptions options;
      options.selection = selection;
      (void)testing::relog_bytes(bytes, options, {.salvage = salvage});
    }
}

TEST(Scan, SurvivesAFirstBufferThatCallsItselfCompressed) {
  for (const bool salvage : {false, true}) {
    std::vector<std::uint8_t> bytes = three_buffers().bytes();
    store<std::uint16_t>(&bytes[0x34], kFlagCompressed);
    const testing::Relogged r = testing::relog_bytes(bytes, {}, {.salvage = salvage});
    EXPECT_TRUE(r.error || salvage);
  }
  // Compressed for real, but the compressed bytes look like a header event too: what decodes is something
  // else.
  std::vector<std::uint8_t> bytes = three_buffers().bytes();
  const auto stored = 0x10000u - static_cast<std::uint32_t>(kBufferHeaderSize);
  store<std::uint16_t>(&bytes[0x34], kFlagCompressed);
  for (const std::uint32_t claim : {stored / 2, stored, stored + 500, 2 * stored}) {
    store(&bytes[0x04], claim);
    store(&bytes[0x30], claim);
    for (const bool salvage : {false, true})
      (void)testing::relog_bytes(bytes, {}, {.salvage = salvage});
  }
}

} // namespace
} // namespace etwrelog::read
