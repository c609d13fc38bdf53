// The promise of an archive's index: a selection by time or process gives the same bytes from the archive as
// from the trace, while what cannot matter is not read.
#include "archive/archive.hpp"
#include "base/output_file.hpp"
#include "passes/collect.hpp"
#include "passes/statistics.hpp"
#include "tests/support/pace.hpp"
#include "tests/support/pipeline_runs.hpp"
#include "tests/support/trace_files.hpp"
#include "tools/etwgen/generate.hpp"

#include <array>
#include <atomic>
#include <random>
#include <thread>

#include <gtest/gtest.h>

namespace etwrelog {
namespace {

using Buffer = std::vector<std::uint8_t>;
using testing::At;
using testing::SyntheticTrace;

Buffer generated(std::uint64_t size, Codec codec, bool stack_cache, bool pid_reuse = false) {
  gen::Options options;
  options.profile = gen::find_profile("medium");
  options.size = size;
  options.cpus = 4;
  options.processes = 16;
  options.codec = codec;
  options.stack_cache = stack_cache;
  options.pid_reuse = pid_reuse;
  options.threads = 1;
  gen::MemorySink sink;
  const auto made = gen::generate(options, sink);
  EXPECT_TRUE(made);
  return std::move(sink.bytes);
}

pipeline::ArchiveOptions test_options() {
  pipeline::ArchiveOptions options;
  options.run.threads = 1; // for the thread sanitizer: see tools/test
  return options;
}

Buffer archive_of(const Buffer &trace, const testing::TempDir &directory,
                  const pipeline::ArchiveOptions &options = test_options()) {
  const std::string path = directory.file("a.etlz");
  Result<base::OutputFile> out = base::OutputFile::create(path, true);
  EXPECT_TRUE(out);
  const auto packed = pipeline::pack_file(*read::memory_input("trace", trace), *out, options);
  EXPECT_TRUE(packed) << (packed ? "" : packed.error().message());
  EXPECT_TRUE(out->commit());
  return testing::read_file(path);
}

struct Relogged {
  Buffer bytes;
  pipeline::RelogReport report;
};

Relogged relog(std::unique_ptr<read::Input> input, const Selection &selection,
               const testing::TempDir &directory) {
  Relogged result;
  Result<pipeline::Trace> trace = pipeline::Trace::open(std::move(input), {});
  EXPECT_TRUE(trace) << (trace ? "" : trace.error().message());
  if (!trace) return result;
  pipeline::RelogOptions options;
  options.output = directory.file("out.etl");
  options.replace_output = true;
  options.selection = selection;
  const Result<void> done = pipeline::relog(*trace, options, result.report);
  EXPECT_TRUE(done) << (done ? "" : done.error().message());
  result.bytes = testing::read_file(options.output);
  return result;
}

Selection between(double from, double to) {
  Selection selection;
  selection.from = Moment{true, from, 0};
  selection.to = Moment{true, to, 0};
  return selection;
}

// Relogs from both and compares; returns how many buffers of the archive were left out.
std::uint64_t expect_same(const Buffer &trace, const Buffer &archive, const Selection &selection) {
  const testing::TempDir directory;
  const Relogged plain = relog(read::memory_input("trace", trace), selection, directory);
  Result<std::unique_ptr<read::Input>> input = pipeline::open_archive(read::memory_input("archive", archive));
  EXPECT_TRUE(input);
  if (!input) return 0;
  const Relogged packed = relog(std::move(*input), selection, directory);
  EXPECT_TRUE(plain.bytes == packed.bytes);
  EXPECT_EQ(plain.report.events_in, packed.report.events_in);
  EXPECT_EQ(plain.report.event_bytes_in, packed.report.event_bytes_in);
  EXPECT_EQ(plain.report.events_out, packed.report.events_out);
  // What is outside the time goes for that reason, also a stack that went for its event's sake or owner's.
  if (!selection.from && !selection.to) {
    EXPECT_EQ(plain.report.by_reason, packed.report.by_reason);
  }
  EXPECT_EQ(plain.report.buffers_left_out, 0u);
  return packed.report.buffers_left_out;
}

TEST(ArchiveSeek, SelectionByTimeGivesTheSameBytesAndReadsLess) {
  const testing::TempDir directory;
  for (const Codec codec : {Codec::none, Codec::xpress}) {
    SCOPED_TRACE(codec_name(codec));
    if (testing::kSanitized && codec != Codec::none) continue;
    const Buffer trace = generated(60'000'000, codec, false);
    const Buffer archive = archive_of(trace, directory);
    const std::uint64_t buffers = testing::open_trace(trace)->buffers().size();
    Selection one_process = between(2.0, 2.1);
    one_process.processes.push_back("game.exe");
    EXPECT_GT(expect_same(trace, archive, one_process), buffers / 2);
    EXPECT_GT(expect_same(trace, archive, between(2.0, 2.1)), 0u);
    EXPECT_GT(expect_same(trace, archive, between(0.0, 0.5)), 0u);
    EXPECT_GT(expect_same(trace, archive, between(30.0, 1000.0)), 0u);
    EXPECT_EQ(expect_same(trace, archive, between(0.0, 1000.0)), 0u);
  }
}

// Every `step`th process of the trace by itself; returns how many buffers were left out in all.
std::uint64_t expect_same_of_each_process(const Buffer &trace, const Buffer &archive, std::size_t step = 1) {
  pipeline::PassResult ignored;
  const auto lifetimes = pipeline::collect_lifetimes(*testing::open_trace(trace), {}, ignored);
  EXPECT_TRUE(lifetimes);
  if (!lifetimes) return 0;
  std::uint64_t left_out = 0;
  for (std::size_t i = 0; i < lifetimes->processes().size(); i += step) {
    Selection selection;
    selection.processes.push_back(std::to_string(lifetimes->processes()[i].pid));
    SCOPED_TRACE(selection.processes.back());
    left_out += expect_same(trace, archive, selection);
  }
  return left_out;
}

// Small ones, so that there are many.
pipeline::ArchiveOptions segments_of(std::size_t bytes) {
  pipeline::ArchiveOptions options = test_options();
  options.segment = bytes;
  return options;
}

TEST(ArchiveSeek, SelectionByProcessGivesTheSameBytesAndReadsLess) {
  const testing::TempDir directory;
  for (const bool stack_cache : {false, true}) {
    SCOPED_TRACE(stack_cache ? "stack cache" : "stack walks");
    const Buffer trace =
        generated(testing::kSanitized ? 8'000'000 : 30'000'000, Codec::none, stack_cache, true);
    const Buffer archive = archive_of(trace, directory, segments_of(1u << 20));
    const std::uint64_t of_each = expect_same_of_each_process(trace, archive, testing::kSanitized ? 9 : 2);
    Selection selection;
    selection.processes = {"cmd.exe"}; // several, that come and go
    const std::uint64_t of_several = expect_same(trace, archive, selection);
    if (!stack_cache) { // whose definitions are more than a summary takes
      EXPECT_GT(of_each, 0u);
      EXPECT_GT(of_several, 0u);
    }
    selection.children = true;
    static_cast<void>(expect_same(trace, archive, selection));
    selection.from = Moment{true, 0.3, 0};
    static_cast<void>(expect_same(trace, archive, selection));
  }
}

// Of a segment without the process the index still gives one sample, because samples without a thread in
// their header matter as such; whose it was is not to be told without the switches before it.
TEST(ArchiveSeek, SamplesBetweenSwitchesOfOthersAreOfOthers) {
  const testing::TempDir directory;
  gen::Options options;
  options.profile = gen::find_profile("medium");
  options.size = 12'000'000;
  options.cpus = 8;
  options.processes = 50;
  options.seed = 5;
  options.clock_jump = true;
  options.buffer_size = 64u << 10;
  options.threads = 1;
  gen::MemorySink sink;
  ASSERT_TRUE(gen::generate(options, sink));
  const Buffer archive = archive_of(sink.bytes, directory, segments_of(700'000));
  EXPECT_GT(expect_same_of_each_process(sink.bytes, archive, testing::kSanitized ? 9 : 3), 0u);
}

// Events of every kind whose owner is told in another way, of few ids that come and go, in no strict order of
// time: what no machine writes, but a selection by process must be right about.
class Turmoil {
public:
  explicit Turmoil(std::uint64_t seed) : random_(seed) {
    for (std::uint32_t process = 0; process < kProcesses; ++process) {
      trace_.process_rundown({time_}, 100 + process, 4, "p" + std::to_string(process) + ".exe");
      for (std::uint32_t tid : {1000 + process, 2000 + process})
        trace_.thread_rundown({time_}, tid, 100 + process);
    }
    for (int stretch = 0; stretch < 14; ++stretch) {
      active_ = {below(kProcesses), below(kProcesses)};
      for (int event = 0; event < 500; ++event)
        add();
    }
  }
  [[nodiscard]] Buffer bytes() const { return trace_.bytes(); }

private:
  static constexpr std::uint32_t kProcesses = 9, kProcessors = 3;
  [[nodiscard]] std::uint32_t below(std::uint32_t end) { return static_cast<std::uint32_t>(random_() % end); }
  [[nodiscard]] bool one_in(std::uint32_t many) { return below(many) == 0; }
  [[nodiscard]] std::uint32_t process() { return active_[below(2)]; }
  [[nodiscard]] std::uint32_t pid() { return one_in(400) ? kUnknownId : 100 + process(); }
  [[nodiscard]] std::uint32_t tid() {
    if (one_in(20)) return 0; // the idle thread
    if (one_in(900)) return one_in(2) ? kUnknownId : 7777;
    return (one_in(2) ? 1000 : 2000) + process();
  }

  void add() {
    time_ += 1 + below(40);
    const auto cpu = static_cast<std::uint16_t>(below(kProcessors));
    At at{time_, cpu};
    if (one_in(20)) at.time -= below(4000);
    if (one_in(40)) trace_.end_buffer(cpu);
    if (one_in(150)) return come_and_go(at);
    const std::uint32_t event_pid = pid(), event_tid = tid();
    switch (below(15)) {
    case 0: trace_.sample(at, event_tid); break;
    case 1: trace_.page_fault(at); break;
    case 2: trace_.syscall(at); break;
    case 3:
    case 4: {
      const std::uint32_t old = one_in(5) ? tid() : running_[cpu];
      running_[cpu] = event_tid;
      trace_.context_switch(at, event_tid, old);
      break;
    }
    case 5: trace_.ready_thread(at, event_tid); break;
    case 6: trace_.disk_read(at, event_tid, 0xF00); break;
    case 7: trace_.tcp_send(at, event_pid); break;
    case 8: trace_.virtual_alloc(at, event_pid, tid(), pid()); break;
    case 9: trace_.disk_init(at, event_tid, tid(), pid()); break;
    case 10:
      if (!recent_.empty()) {
        const auto [time, of_pid, of_tid] = recent_[below(static_cast<std::uint32_t>(recent_.size()))];
        trace_.stack_walk(at, time, of_pid, of_tid, {0x7FF6'0000'1000, 0x7FF6'0000'2000});
      }
      break;
    case 11: one_in(2) ? trace_.dpc(at) : trace_.isr(at); break;
    default: // most of the bytes
      trace_.manifest_event(at, {.provider = kProvider, .id = 7}, event_tid, event_pid,
                            std::vector<std::uint8_t>(900, static_cast<std::uint8_t>(event_pid)));
    }
    recent_.push_back({at.time, event_pid, event_tid});
    if (recent_.size() > 12) recent_.erase(recent_.begin());
  }

  void come_and_go(At at) {
    const std::uint32_t which = process(), tid = (one_in(2) ? 1000 : 2000) + below(kProcesses);
    switch (below(4)) {
    case 0: trace_.process_end(at, 100 + which, "p.exe"); break;
    case 1: trace_.process_start(at, 100 + which, 4, "again.exe"); break;
    case 2: trace_.thread_end(at, tid, 100 + which); break;
    default: trace_.thread_start(at, tid, 100 + which);
    }
  }

  struct Recent {
    std::int64_t time;
    std::uint32_t pid, tid;
  };
  static constexpr Guid kProvider{0x1122, 0x3344};
  std::mt19937_64 random_;
  SyntheticTrace trace_;
  std::int64_t time_ = 2'000'000;
  std::array<std::uint32_t, 2> active_{};
  std::array<std::uint32_t, kProcessors> running_{};
  std::vector<Recent> recent_;
};

TEST(ArchiveSeek, EachProcessOfTurmoilGivesTheSameBytes) {
  const testing::TempDir directory;
  std::uint64_t left_out = 0;
  for (std::uint64_t seed = 1; seed <= (testing::kSanitized ? 1 : 3); ++seed) {
    SCOPED_TRACE(seed);
    const Buffer trace = Turmoil(seed).bytes();
    left_out += expect_same_of_each_process(trace, archive_of(trace, directory, segments_of(100'000)));
  }
  EXPECT_GT(left_out, 0u);
}

TEST(ArchiveSeek, WhoRanWhenABufferBeganIsAskedAtTheTimesOfItsEvents) {
  SyntheticTrace t;
  const auto others = [&](std::int64_t time) {
    for (int i = 0; i < 300; ++i)
      t.manifest_event({time + i, 1}, {.provider = {1, 2}, .id = 7}, 60, 200, Buffer(900, 7));
    t.end_buffer(0);
    t.end_buffer(1);
  };
  t.process_rundown({2'000'000}, 100, 4, "a.exe");
  t.process_rundown({2'000'000}, 200, 4, "b.exe");
  t.thread_rundown({2'000'000}, 50, 100);
  t.thread_rundown({2'000'000}, 60, 200);
  t.context_switch({2'900'000, 0}, 60, 0);
  t.context_switch({2'900'000, 1}, 60, 0);
  t.thread_end({3'000'000}, 50, 100);
  t.thread_start({3'000'500}, 50, 200);
  for (int i = 0; i < 4; ++i)
    others(3'001'000);
  t.context_switch({4'000'000}, 50, 60); // now of the process 200
  t.end_buffer(0);
  t.page_fault({2'500'000}); // the first of a segment is in its summary
  t.page_fault({2'500'000}); // but by its time when it was the process 100's
  t.end_buffer(0);
  for (int i = 0; i < 8; ++i)
    others(4'001'000);
  const testing::TempDir directory;
  Selection selection;
  selection.processes = {"100"};
  EXPECT_GT(expect_same(t.bytes(), archive_of(t.bytes(), directory, segments_of(400'000)), selection), 0u);
}

TEST(ArchiveSeek, WhatProcessesAloneDoNotDecideIsRead) {
  const testing::TempDir directory;
  const Buffer trace = generated(20'000'000, Codec::none, false);
  const Buffer archive = archive_of(trace, directory, segments_of(1u << 20));
  Selection selection;
  selection.processes = {"cmd.exe"};
  EXPECT_GT(expect_same(trace, archive, selection), 0u);
  Selection system = selection, kind = selection, others;
  system.keep_system = true;
  kind.opcodes = {46}; // samples
  others.exclude = {"cmd.exe"};
  for (const Selection &all : {system, kind, others})
    EXPECT_EQ(expect_same(trace, archive, all), 0u);
}

TEST(ArchiveSeek, StackDefinitionsBehindTheTimeAreFound) {
  const testing::TempDir directory;
  const Buffer trace = generated(40'000'000, Codec::none, true);
  Selection one_process = between(1.0, 1.2);
  one_process.processes.push_back("game.exe");
  static_cast<void>(expect_same(trace, archive_of(trace, directory), one_process));
}

TEST(ArchiveSeek, RealTracesGiveTheSameBytes) {
  const std::vector<std::string> names = testing::trace_names();
  if (names.empty()) GTEST_SKIP() << "no ../shared/traces beside the project";
  const testing::TempDir directory;
  for (const std::string &name : names) {
    SCOPED_TRACE(name);
    const std::string path = testing::trace_path(name)->string();
    const Buffer trace = testing::read_file(path);
    if (testing::kSanitized && trace.size() > 1u << 20) continue;
    const Buffer archive = archive_of(trace, directory);
    const Result<pipeline::Trace> opened = pipeline::Trace::open(path, {});
    ASSERT_TRUE(opened);
    if (opened->header().end_time <= opened->header().start_time)
      continue; // never closed: how long it is takes reading
    const double length =
        opened->clock().to_seconds(opened->clock().from_filetime(opened->header().end_time));
    for (const auto &[from, to] : {std::pair(0.4, 0.41), {0.0, 0.05}, {0.9, 1.0}})
      static_cast<void>(expect_same(trace, archive, between(from * length, to * length)));
    const Buffer fine = archive_of(trace, directory, segments_of(512u << 10));
    static_cast<void>(
        expect_same_of_each_process(trace, fine, testing::kSanitized || trace.size() > 3u << 20 ? 9 : 3));
  }
}

// An input whose index lies.
class Lying final : public pipeline::IndexedInput {
public:
  Lying(Buffer bytes, SegmentSummary summary, std::uint64_t begin)
      : IndexedInput("lying"), bytes_(std::move(bytes)), summary_(std::move(summary)), begin_(begin) {}
  [[nodiscard]] std::uint64_t size() const override { return bytes_.size(); }
  [[nodiscard]] Result<std::size_t> read_at(std::uint64_t offset, MutableBytes into) const override {
    const std::size_t n =
        offset >= bytes_.size() ? 0 : std::min<std::size_t>(into.size(), bytes_.size() - offset);
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), n, into.begin());
    return n;
  }
  [[nodiscard]] std::vector<pipeline::SummarizedSegment> summarized() const override {
    return {{begin_, begin_ + 65536, {{begin_, 65536}}, &summary_}};
  }

private:
  Buffer bytes_;
  SegmentSummary summary_;
  std::uint64_t begin_;
};

// Relogs a time without that buffer.
Result<void> relog_without(const Buffer &trace, const SegmentSummary &summary, std::uint64_t begin) {
  const testing::TempDir directory;
  Result<pipeline::Trace> opened = pipeline::Trace::open(std::make_unique<Lying>(trace, summary, begin), {});
  EXPECT_TRUE(opened);
  if (!opened) return opened.error();
  pipeline::RelogOptions options;
  options.output = directory.file("out.etl");
  options.selection = between(0.1, 0.2);
  pipeline::RelogReport report;
  Result<void> done = pipeline::relog(*opened, options, report);
  if (done) {
    EXPECT_EQ(report.buffers_left_out, 1u);
  }
  return done;
}

TEST(ArchiveSeek, AnIndexThatContradictsTheBufferIsAnError) {
  constexpr std::uint64_t kBegin = 10 * 65536;
  const Buffer trace = generated(2'000'000, Codec::none, false);
  SegmentSummary summary;
  summary.complete = true;
  summary.first_time = summary.last_time = 1;
  summary.bytes.resize(100);
  summary.state = {{0, 0, 200, 0}};
  for (const std::uint32_t from : {0u, 90u, 4000u}) {
    summary.state[0].from = from;
    const Result<void> done = relog_without(trace, summary, kBegin);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().kind, ErrorKind::corrupt);
    EXPECT_EQ(done.error().offset, kBegin);
  }
  // Events that are none: the walk finds that out.
  summary.bytes.assign(100, 0xAB);
  summary.state = {{0, 0, 96, 0}};
  EXPECT_FALSE(relog_without(trace, summary, kBegin));
}

// --- Readers side by side

TEST(ArchiveReaders, AllGetTheBytesOfTheTraceWhateverIsKept) {
  const testing::TempDir directory;
  const Buffer trace = generated(56'000'000, Codec::none, false);
  const Buffer archive = archive_of(trace, directory);
  for (const std::uint64_t memory :
       {std::uint64_t{100} << 20, std::uint64_t{1} << 30}) { // drops segments, keeps all
    if (testing::kSanitized && memory > std::uint64_t{100} << 20) continue;
    const auto input = pipeline::open_archive(read::memory_input("archive", archive), memory);
    ASSERT_TRUE(input) << input.error().message();
    std::atomic<std::size_t> next{0}, wrong{0};
    auto read_on = [&] {
      constexpr std::size_t kBlock = 1'000'000;
      std::vector<std::uint8_t> bytes(kBlock);
      const std::size_t blocks = trace.size() / kBlock + 1;
      for (std::size_t i = next++; i < 2 * blocks; i = next++) { // twice from the first to the last
        const std::size_t at = i % blocks * kBlock;
        const auto got = (*input)->read_at(at, bytes);
        const std::size_t expected = std::min(kBlock, trace.size() - at);
        if (!got || *got != expected || std::memcmp(bytes.data(), trace.data() + at, expected) != 0) ++wrong;
      }
    };
    std::vector<std::thread> readers;
    for (int i = 0; i < 4; ++i)
      readers.emplace_back(read_on);
    for (std::thread &reader : readers)
      reader.join();
    EXPECT_EQ(wrong, 0u);
  }
}

TEST(ArchiveReaders, AllLearnOfDamage) {
  const testing::TempDir directory;
  const Buffer trace = generated(40'000'000, Codec::none, false);
  Buffer archive = archive_of(trace, directory);
  const auto index = pipeline::read_archive_index(*read::memory_input("archive", archive));
  ASSERT_TRUE(index);
  ASSERT_GE(index->segments.size(), 2u);
  const etlz::IndexEntry &damaged = index->segments[1];
  archive[damaged.archive_at + 1000] ^= 1;
  const auto input = pipeline::open_archive(read::memory_input("archive", archive));
  ASSERT_TRUE(input);
  std::atomic<int> errors{0};
  std::vector<std::thread> readers;
  for (int i = 0; i < 4; ++i)
    readers.emplace_back([&] {
      std::vector<std::uint8_t> bytes(1000);
      if (!(*input)->read_at(0, bytes)) --errors;
      const auto got = (*input)->read_at(damaged.header.original_at + 500'000, bytes);
      if (!got && got.error().offset == damaged.archive_at) ++errors;
    });
  for (std::thread &reader : readers)
    reader.join();
  EXPECT_EQ(errors, 4);
}

// --- Statistics in the index

// Of everything that is counted.
std::string counted(std::unique_ptr<read::Input> input) {
  const Result<pipeline::Trace> trace = pipeline::Trace::open(std::move(input), {});
  EXPECT_TRUE(trace) << (trace ? "" : trace.error().message());
  if (!trace) return {};
  const Result<Statistics> statistics = pipeline::collect_statistics(*trace, {});
  return statistics ? pipeline::statistics_record(*statistics) : statistics.error().message();
}

std::string counted_in_archive(const Buffer &archive) {
  Result<std::unique_ptr<read::Input>> input = pipeline::open_archive(read::memory_input("archive", archive));
  EXPECT_TRUE(input) << (input ? "" : input.error().message());
  return input ? counted(std::move(*input)) : std::string();
}

TEST(ArchiveStatistics, AreReadFromTheIndexWithoutTheSegments) {
  const testing::TempDir directory;
  const Buffer trace = generated(24'000'000, Codec::xpress, true);
  pipeline::ArchiveOptions options;
  options.count_from = trace.size();
  Buffer archive = archive_of(trace, directory, options);
  const auto index = pipeline::read_archive_index(*read::memory_input("archive", archive));
  ASSERT_TRUE(index);
  ASSERT_GE(index->segments.size(), 2u);
  archive[index->segments[1].archive_at + 1000] ^= 1; // whoever reads the segment fails
  const std::string expected = counted(read::memory_input("trace", trace));
  EXPECT_NE(expected.find("game.exe"), std::string::npos);
  EXPECT_EQ(counted_in_archive(archive), expected);
}

TEST(ArchiveStatistics, AreCountedWhereTheIndexHasNone) {
  const testing::TempDir directory;
  const Buffer trace = generated(2'000'000, Codec::none, false);
  const std::string expected = counted(read::memory_input("trace", trace));
  pipeline::ArchiveOptions options;
  options.count_from = trace.size() + 1;
  const Buffer small = archive_of(trace, directory, options);
  const auto index = pipeline::read_archive_index(*read::memory_input("archive", small));
  ASSERT_TRUE(index);
  const std::string record(index->facts.begin(), index->facts.end());
  EXPECT_FALSE(pipeline::read_statistics_record(record)) << "a tally at most";
  EXPECT_EQ(counted_in_archive(small), expected);
}

TEST(ArchiveStatistics, OfRealTracesAreTheSame) {
  const std::vector<std::string> names = testing::trace_names();
  if (names.empty()) GTEST_SKIP() << "no ../shared/traces beside the project";
  const testing::TempDir directory;
  pipeline::ArchiveOptions options;
  options.count_from = 0;
  options.verify = false;
  for (const std::string &name : names) {
    SCOPED_TRACE(name);
    const Buffer trace = testing::read_file(testing::trace_path(name)->string());
    const Buffer archive = archive_of(trace, directory, options);
    const auto index = pipeline::read_archive_index(*read::memory_input("archive", archive));
    ASSERT_TRUE(index);
    const bool small = index->segments[0].header.method == etlz::SegmentMethod::small; // has no index
    EXPECT_EQ(index->facts.empty(), small);
    EXPECT_EQ(counted_in_archive(archive), counted(read::memory_input("trace", trace)));
  }
}

TEST(ArchiveStatistics, RecordsThatAreNoneAreIgnored) {
  Statistics s;
  s.events = 7;
  s.processes.resize(1);
  s.by_instance.resize(1);
  const std::string record = pipeline::statistics_record(s);
  ASSERT_TRUE(pipeline::read_statistics_record(record));
  EXPECT_EQ(pipeline::read_statistics_record(record)->processes[0].end, kForever);
  for (std::size_t size = 0; size < record.size(); ++size)
    EXPECT_FALSE(pipeline::read_statistics_record(std::string_view(record).substr(0, size))) << size;
  EXPECT_FALSE(pipeline::read_statistics_record("{}"));
  EXPECT_FALSE(pipeline::read_statistics_record(std::string(100'000, '[')));
  std::string fraction = record;
  fraction.replace(fraction.find("\"events\":7"), 10, "\"events\":7e300");
  EXPECT_FALSE(pipeline::read_statistics_record(fraction));
  std::string newer = record; // of a version whose fields mean who knows what
  newer.replace(newer.find("\"record_version\":1"), 18, "\"record_version\":2");
  EXPECT_FALSE(pipeline::read_statistics_record(newer));
  s.by_instance.clear(); // would be read out of bounds
  EXPECT_FALSE(pipeline::read_statistics_record(pipeline::statistics_record(s)));
}

} // namespace
} // namespace etwrelog
