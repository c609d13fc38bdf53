// The first pass of a relog keeps in memory what may stay: the output is the one of reading everything again,
// whatever memory there is, also where what was thought on the way turns out to be wrong.
#include "tests/support/pace.hpp"
#include "tests/support/pipeline_runs.hpp"
#include "tests/support/trace_files.hpp"
#include "tools/etwgen/generate.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace etwrelog {
namespace {

using testing::Relogged;
using testing::SyntheticTrace;
using Buffer = std::vector<std::uint8_t>;

constexpr std::uint64_t kAll = std::uint64_t{256} << 20;

Relogged relogged(const Buffer &trace, const Selection &selection, std::uint64_t memory, unsigned threads = 2,
                  bool salvage = false) {
  pipeline::RelogOptions options;
  options.selection = selection;
  options.candidate_memory = memory;
  options.graph.threads = threads;
  options.graph.batch_bytes = 64u << 10; // several batches, so that something is learnt on the way
  return testing::relog_bytes(trace, options, {.salvage = salvage});
}

// With no memory everything is read again: what the others must equal. Returns the run with all memory.
Relogged expect_same(const Buffer &trace, const Selection &selection, const std::string &what,
                     bool salvage = false) {
  const Relogged want = relogged(trace, selection, 0, 1, salvage);
  Relogged all;
  for (const std::uint64_t memory : {std::uint64_t{20'000}, std::uint64_t{300'000}, kAll})
    for (const unsigned threads : {1u, 2u}) {
      Relogged got = relogged(trace, selection, memory, threads, salvage);
      EXPECT_EQ(got.error.has_value(), want.error.has_value()) << what;
      if (got.error && want.error) {
        EXPECT_EQ(got.error->message(), want.error->message()) << what;
      }
      EXPECT_TRUE(got.bytes == want.bytes) << what << ", memory " << memory << ": " << got.bytes.size()
                                           << " and " << want.bytes.size() << " bytes";
      EXPECT_EQ(got.report.by_reason, want.report.by_reason) << what << ", memory " << memory;
      EXPECT_EQ(got.report.events_in, want.report.events_in) << what;
      EXPECT_EQ(got.report.event_bytes_in, want.report.event_bytes_in) << what;
      EXPECT_EQ(got.report.events_out, want.report.events_out) << what;
      EXPECT_EQ(got.report.skipped.size(), want.report.skipped.size()) << what;
      EXPECT_EQ(got.report.warnings, want.report.warnings) << what;
      EXPECT_LE(got.report.buffers_read_again, want.report.buffers_read_again) << what;
      if (memory == kAll) all = std::move(got);
    }
  return all;
}

Selection process(const std::string &pattern) {
  Selection selection;
  selection.processes = {pattern};
  return selection;
}

std::vector<Selection> selections(const std::string &name, const std::string &id) {
  std::vector<Selection> all = {process(name), process(id), process("*")};
  all.push_back(process(name));
  all.back().children = true;
  all.back().keep_system = true;
  all.push_back({});
  all.back().exclude = {name};
  all.push_back(process(name));
  all.back().from = Moment{true, 0.002, 0};
  all.back().to = Moment{true, 0.02, 0};
  all.push_back({});
  all.back().from = Moment{true, 0.001, 0};
  all.back().to = Moment{true, 0.01, 0};
  all.push_back(process(name));
  all.back().providers.emplace_back().kernel = true;
  all.push_back(process(id));
  all.back().processors = {1};
  all.push_back({});
  all.back().command_line = "worker";
  return all;
}

struct Shape {
  bool rundown_at_end = false, threads_known = true;
  // Ids of others come to mean p1.exe, and a thread moves to it: said where it happens, or behind all else.
  enum class Reuse : std::uint8_t { none, said, said_late } reuse = Reuse::none;
};

// Eight processes on three processors, with everything that a filter has a rule of its own for.
SyntheticTrace busy(const Shape &shape) {
  SyntheticTrace t({.buffer_size = 0x4000});
  auto pid_of = [](int i) { return static_cast<std::uint32_t>(100 + 100 * i); };
  auto rundown = [&](std::int64_t now, bool at_end) {
    for (int i = 0; i < 8; ++i) {
      t.process_rundown({now, 0}, pid_of(i), i == 7 ? 200u : 4u, fmt::format("p{}.exe", i),
                        i % 2 == 0 ? "worker" : "", at_end);
      if (shape.threads_known) t.thread_rundown({now, 0}, pid_of(i) + 4, pid_of(i), at_end);
      t.image_rundown({now, 0}, pid_of(i), 0x7FF6'0000'0000, at_end);
    }
  };
  auto reuse = [&](std::int64_t now, std::uint16_t cpu) {
    t.process_end({now, cpu}, pid_of(5), "p5.exe");
    t.process_start({now + 1, cpu}, pid_of(5), 4, "p1.exe");
    t.thread_end({now + 2, cpu}, pid_of(6) + 4, pid_of(6));
    t.thread_start({now + 3, cpu}, pid_of(6) + 4, pid_of(1));
  };
  if (!shape.rundown_at_end) rundown(1'000'100, false);
  t.end_buffer(0);
  for (int i = 0; i < 6000; ++i) {
    const std::int64_t now = 1'010'000 + 50 * i;
    const auto cpu = static_cast<std::uint16_t>(i % 3);
    const std::uint32_t pid = pid_of(i % 8), tid = pid + 4, other = pid_of((i + 3) % 8) + 4;
    const auto object = 0xFFFF'8000'0000'0000 + static_cast<std::uint64_t>(i % 40) * 64;
    t.sample({now, cpu}, tid, 0x7FF6'0000'1000 + static_cast<std::uint64_t>(i % 50));
    if (i % 3 == 0) t.stack_walk({now + 1, cpu}, now, pid, tid, {1, 2, static_cast<std::uint64_t>(i % 9)});
    if (i % 3 == 1) t.stack_key({now + 1, cpu}, now, pid, tid, 0x1000 + static_cast<std::uint64_t>(i % 30));
    if (i % 4 == 0) t.context_switch({now + 2, cpu}, other, tid);
    if (i % 5 == 0) t.page_fault({now + 3, cpu});
    if (i % 7 == 0) t.ready_thread({now + 4, cpu}, tid);
    if (i % 11 == 0) t.syscall({now + 5, cpu});
    if (i % 13 == 0) t.dpc({now + 6, cpu});
    if (i % 17 == 0) t.file_read({now + 7, cpu}, tid, object, object + 8);
    if (i % 19 == 0) t.disk_read({now + 8, cpu}, tid, object);
    if (i % 23 == 0)
      t.trace_logging({now + 9, cpu}, Guid{0x1234u + static_cast<std::uint64_t>(i % 5), 1}, "Prov", "E", tid,
                      pid);
    if (i % 29 == 0) t.image_load({now + 10, cpu}, pid, 0x7FF7'0000'0000, tid);
    if (i % 31 == 0) t.image_pdb({now + 10, cpu}, pid, 0x7FF7'0000'0000);
    if (i % 37 == 0) t.virtual_alloc({now + 11, cpu}, pid, other, pid_of((i + 3) % 8));
    if (i % 41 == 0) t.sample({now + 12, cpu}, 99'999); // of a thread that nothing names
    if (i % 43 == 0) t.clr_method_load({now + 13, cpu}, tid, pid);
    if (i % 97 == 0)
      t.stack_definition({now + 14, cpu}, 0x1000 + static_cast<std::uint64_t>(i % 30), {5, 6, 7});
    if (shape.reuse == Shape::Reuse::said && i == 4000) reuse(now + 15, cpu);
  }
  if (shape.reuse == Shape::Reuse::said_late) reuse(1'010'000 + 50 * 4000 + 15, 1);
  for (int i = 0; i < 40; ++i)
    t.file_name({1'500'000, 2}, 0xFFFF'8000'0000'0000 + static_cast<std::uint64_t>(i) * 64,
                fmt::format("f{}", i));
  for (std::uint64_t k = 0; k < 30; ++k)
    t.stack_definition({1'500'001, 2}, 0x1000 + k, {k, k + 1});
  for (std::uint32_t g = 0; g < 5; ++g)
    t.manifest({1'500'002, 1}, Guid{0x1234u + g, 1}, 104, 100, "<m/>");
  if (shape.rundown_at_end) rundown(1'500'003, true);
  return t;
}

TEST(RelogCandidates, TheMemoryForThemChangesNothing) {
  for (const Shape &shape : {Shape{}, Shape{.rundown_at_end = true}, Shape{.threads_known = false}}) {
    const Buffer trace = busy(shape).bytes();
    int number = 0;
    for (const Selection &selection : selections("p1.exe", "300"))
      expect_same(trace, selection, fmt::format("selection {}", number++));
  }
}

TEST(RelogCandidates, NothingButTheFirstBufferIsReadAgain) {
  const Buffer trace = busy({}).bytes();
  const Relogged one = expect_same(trace, process("p1.exe"), "one process");
  ASSERT_FALSE(one.error);
  EXPECT_EQ(one.report.buffers_read_again, 1u);
  EXPECT_GT(one.report.input_buffers, 20u);
  EXPECT_EQ(relogged(trace, process("p1.exe"), 0).report.buffers_read_again, one.report.input_buffers);
  const std::uint64_t some = relogged(trace, process("p1.exe"), 100'000).report.buffers_read_again;
  EXPECT_GT(some, 1u) << "memory for a part of it";
  EXPECT_LT(some, one.report.input_buffers);
}

// An id that meant another process for most of the trace comes to mean a selected one. What was dropped by it
// before stays dropped, what follows is looked at with that in mind, also where the work had begun.
TEST(RelogCandidates, AnIdThatChangesHandsCostsNoFurtherReading) {
  const Buffer trace = busy({.reuse = Shape::Reuse::said}).bytes();
  const Relogged reused = expect_same(trace, process("p1.exe"), "reused ids");
  EXPECT_EQ(reused.report.buffers_read_again, 1u);
  int number = 0;
  for (const Selection &selection : selections("p1.exe", "600"))
    expect_same(trace, selection, fmt::format("reused, selection {}", number++));
}

// The buffer that says so was written last: what had been dropped meanwhile is read again, and not more.
TEST(RelogCandidates, WhatWasThoughtTooEarlyIsReadAgain) {
  const Buffer trace = busy({.reuse = Shape::Reuse::said_late}).bytes();
  const Relogged reused = expect_same(trace, process("p1.exe"), "reused ids");
  EXPECT_GT(reused.report.buffers_read_again, 1u);
  EXPECT_LT(reused.report.buffers_read_again, reused.report.input_buffers / 2);
  int number = 0;
  for (const Selection &selection : selections("p1.exe", "600"))
    expect_same(trace, selection, fmt::format("reused, selection {}", number++));
}

TEST(RelogCandidates, DamageIsReportedOnce) {
  Buffer trace = busy({}).bytes();
  store(trace.data() + 5 * 0x4000 + format::kBufferHeaderSize, 0x12345678u); // no event's header
  const Relogged salvaged = expect_same(trace, process("p1.exe"), "salvaged", true);
  EXPECT_EQ(salvaged.report.skipped.size(), 1u);
  const Relogged refused = expect_same(trace, process("p1.exe"), "refused");
  EXPECT_TRUE(refused.error);
}

// Long stretches of one process, as a rundown writes them, with little in between.
SyntheticTrace in_turns(std::uint32_t buffer_size) {
  SyntheticTrace t({.buffer_size = buffer_size});
  for (std::uint32_t i = 0; i < 4; ++i) {
    t.process_rundown({1'000'100, 0}, 100 + 100 * i, 4, fmt::format("p{}.exe", i), "", false);
    t.thread_rundown({1'000'100, 0}, 104 + 100 * i, 100 + 100 * i, false);
  }
  t.end_buffer(0);
  for (int i = 0; i < 20'000; ++i) {
    const std::int64_t now = 1'010'000 + 50 * i;
    const std::uint32_t pid = 100 + 100 * (static_cast<std::uint32_t>(i / 700) % 4), tid = pid + 4;
    t.trace_logging({now, 0}, Guid{0x1234, 1}, "Prov", std::string(static_cast<std::size_t>(i % 9), 'E'), tid,
                    pid);
    if (i % 300 == 0) t.sample({now + 1, 0}, 304, 0x7FF6'0000'1000); // in the midst of all of them
    if (i % 350 == 0) t.image_load({now + 2, 0}, pid, 0x7FF7'0000'0000, tid);
  }
  return t;
}

TEST(RelogCandidates, LongStretchesNeedNoMemory) {
  for (const std::uint32_t buffer_size : {0x10000u, 0x40000u}) {
    Buffer trace = in_turns(buffer_size).bytes();
    for (const char *id : {"200", "300", "*"}) {
      const Relogged all = expect_same(trace, process(id), id);
      ASSERT_FALSE(all.error);
      EXPECT_GT(all.report.events_out, 4000u);
    }
    // Room for less than half of what stays.
    const Relogged little = relogged(trace, process("200"), 200'000, 1);
    EXPECT_GT(little.report.event_bytes_out, 500'000u);
    EXPECT_EQ(little.report.buffers_read_again, 1u);
    // A buffer that ends within an event, and one that the file ends in.
    std::uint8_t *const second = trace.data() + 2 * std::size_t{buffer_size};
    format::BufferHeader header = format::load_buffer_header(second);
    header.saved_offset = header.filled_bytes = header.valid_bytes() - 3;
    format::store_buffer_header(second, header);
    expect_same(trace, process("*"), "an end within padding", true);
    trace.erase(trace.end() - buffer_size / 2, trace.end());
    expect_same(trace, process("200"), "cut", true);
    expect_same(trace, process("*"), "cut", true);
  }
}

// Without stacks some buffers speak for others that need the same providers: also where what they hold goes.
TEST(RelogCandidates, AProviderIsNeededByWhoeverStays) {
  const Guid shared{0x1234, 1}, others{0x1235, 1};
  SyntheticTrace t({.buffer_size = 0x4000});
  t.end_buffer(0);
  auto burst = [&](std::int64_t now, const Guid &provider, std::uint32_t pid) {
    for (int i = 0; i < 300; ++i)
      t.trace_logging({now + i, 0}, provider, "Prov", "E", pid + 4, pid);
    t.end_buffer(0);
  };
  burst(1'010'000, shared, 200);
  burst(1'020'000, others, 300);
  burst(1'030'000, shared, 300);
  const std::size_t of_shared = t.manifest({1'040'000, 0}, shared, 304, 300, "<m/>");
  const std::size_t of_others = t.manifest({1'040'001, 0}, others, 304, 300, "<m/>");
  for (const std::uint32_t pid : {200u, 300u}) { // so late that all had to be kept until here
    t.process_rundown({1'050'000, 0}, pid, 4, pid == 200 ? "p1.exe" : "p2.exe", "", true);
    t.thread_rundown({1'050'000, 0}, pid + 4, pid, true);
  }
  const Relogged one = expect_same(t.bytes(), process("p1.exe"), "one of two users");
  ASSERT_FALSE(one.error);
  EXPECT_EQ(one.contents.count(t.event(of_shared)), 1u);
  EXPECT_EQ(one.contents.count(t.event(of_others)), 0u);
}

TEST(RelogCandidates, GeneratedMachines) {
  for (const bool cache : {false, true}) {
    gen::Options options;
    options.profile = gen::find_profile("medium");
    options.size = 3'000'000;
    options.cpus = 4;
    options.processes = 16;
    options.stack_cache = cache;
    options.codec = cache ? Codec::xpress : Codec::none;
    options.pid_reuse = true;
    options.threads = 1;
    gen::MemorySink sink;
    ASSERT_TRUE(gen::generate(options, sink));
    for (const char *pattern : {"game.exe", "chrome.exe", "svchost.exe", "0"})
      expect_same(sink.bytes, process(pattern), pattern);
  }
}

TEST(RelogCandidates, RealTraces) {
  if (testing::trace_names().empty()) GTEST_SKIP() << "no real traces";
  for (const char *name : {"net.4.5.2.x64", "diaghub", "Process", "ShutdownPerfDiagLogger", "AMSITrace"}) {
    const auto path = testing::trace_path(name);
    if (!path) continue;
    const Buffer trace = testing::read_file(path->string());
    if (testing::kSanitized && trace.size() > 3u << 20) continue;
    for (const char *pattern : {"*s*.exe", "4", "3676"})
      expect_same(trace, process(pattern), fmt::format("{} {}", name, pattern));
    Selection time;
    time.from = Moment{true, 0.1, 0};
    time.to = Moment{true, 0.7, 0};
    expect_same(trace, time, fmt::format("{} by time", name));
    time.events = {10}; // allocations of .NET, with the stacks behind them and the names of code
    expect_same(trace, time, fmt::format("{} by kind", name));
  }
}

} // namespace
} // namespace etwrelog
