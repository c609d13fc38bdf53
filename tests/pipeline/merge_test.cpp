// Several traces into one: nothing lost or changed, each processor in order of time, and no trace of what
// does not belong together.
#include "etwrelog/etwrelog.hpp"
#include "output/several.hpp"
#include "tests/support/pipeline_runs.hpp"
#include "tests/support/run_tool.hpp"
#include "tests/support/trace_files.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace etwrelog {
namespace {

using testing::Contents;
using testing::EventBytes;
using testing::SyntheticTrace;
using Buffer = std::vector<std::uint8_t>;

// A kernel session: two processes, samples and context switches on three processors.
SyntheticTrace kernel_trace(Codec codec = Codec::none) {
  SyntheticTrace t({.buffer_size = 0x4000, .codec = codec, .events_lost = 3});
  for (std::uint32_t pid : {100u, 200u}) {
    t.process_rundown({1'000'100 + pid}, pid, 4, pid == 100 ? "one.exe" : "two.exe");
    t.thread_rundown({1'000'101 + pid}, pid + 4, pid);
  }
  for (int i = 0; i < 3000; ++i) {
    const std::uint32_t tid = i % 3 == 0 ? 104 : 204;
    const auto cpu = static_cast<std::uint16_t>(i % 3);
    t.sample({1'100'000 + 100 * i, cpu}, tid, 0x1000 + static_cast<std::uint64_t>(i));
    if (i % 10 == 0) t.context_switch({1'100'001 + 100 * i, cpu}, tid, 0);
  }
  return t;
}

// A session of its own on the same machine: events of providers, some at the very time of a sample.
SyntheticTrace user_trace(std::uint32_t seed = 0, Codec codec = Codec::none) {
  SyntheticTrace t(
      {.buffer_size = 0x8000, .first_stamp = 1'050'000 + seed, .codec = codec, .events_lost = 4});
  for (int i = 0; i < 1500; ++i) {
    const std::uint32_t pid = i % 2 == 0 ? 100 : 200;
    const std::int64_t now = 1'100'000 + (i % 5 == 0 ? 200 * i : 200 * i + 37 + seed);
    t.trace_logging({now, static_cast<std::uint16_t>(i % 4)}, Guid{seed + 7u, 9}, "Prov",
                    fmt::format("E{}", i % 7), pid + 4, pid);
  }
  return t;
}

struct Merged {
  Buffer bytes;
  pipeline::RelogReport report;
  std::optional<Error> error;
  Contents contents;
};

Merged merged(const std::vector<Buffer> &inputs, pipeline::RelogOptions options = {}) {
  Merged result;
  const testing::TempDir directory;
  std::vector<pipeline::Trace> traces;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    auto trace = pipeline::Trace::open(read::memory_input(fmt::format("in{}.etl", i), inputs[i]), {});
    EXPECT_TRUE(trace) << trace.error().message();
    traces.push_back(*std::move(trace));
  }
  std::vector<const pipeline::Trace *> pointers;
  for (const pipeline::Trace &trace : traces)
    pointers.push_back(&trace);
  options.output = directory.file("out.etl");
  if (Result<void> done = pipeline::relog_several(pointers, options, result.report); !done) {
    result.error = done.error();
    EXPECT_TRUE(directory.names().empty()) << "no half output";
    return result;
  }
  result.bytes = testing::read_file(options.output);
  result.contents = testing::contents_of(result.bytes);
  EXPECT_EQ(result.contents.error, "");
  return result;
}

std::int64_t time_of(const EventBytes &event) {
  std::int64_t result = 0;
  Buffer padded = event;
  padded.resize(align8(padded.size()));
  for_each_event(padded, [&](const EventView &, std::int64_t time, std::uint32_t) { result = time; });
  return result;
}

// Every event of the inputs is there once, those of one input and processor in their order, and those of one
// processor in the order of time.
void expect_merged(const std::vector<Buffer> &inputs, const Contents &out) {
  std::map<std::uint16_t, std::vector<EventBytes>> rest = out.by_cpu;
  std::vector<EventBytes> all;
  for (const Buffer &input : inputs) {
    const Contents in = testing::contents_of(input);
    all.insert(all.end(), in.events.begin(), in.events.end());
    for (const auto &[cpu, events] : in.by_cpu) {
      const auto found = rest.find(cpu);
      ASSERT_NE(found, rest.end());
      std::size_t at = 0;
      for (const EventBytes &event : found->second)
        if (at < events.size() && event == events[at]) ++at;
      EXPECT_EQ(at, events.size()) << "processor " << cpu << ": not in their order";
    }
  }
  std::vector<EventBytes> sorted = out.events;
  std::ranges::sort(sorted);
  std::ranges::sort(all);
  EXPECT_TRUE(sorted == all) << sorted.size() << " events of " << all.size();
  for (const auto &[cpu, events] : out.by_cpu)
    EXPECT_TRUE(std::ranges::is_sorted(events, {}, time_of)) << "processor " << cpu;
}

TEST(Merge, KeepsEveryEventInTheOrderOfTime) {
  const std::vector<Buffer> inputs = {kernel_trace(Codec::xpress).bytes(), user_trace().bytes(),
                                      user_trace(11, Codec::lznt1).bytes()};
  const Merged out = merged(inputs);
  ASSERT_FALSE(out.error) << out.error->message();
  expect_merged(inputs, out.contents);
  EXPECT_EQ(out.report.events_in, out.report.events_out);
  EXPECT_EQ(out.report.events_out, out.contents.events.size() + 1);
  // The headers that are not kept are counted nowhere.
  const auto &reasons = out.report.by_reason;
  EXPECT_EQ(reasons[static_cast<std::size_t>(filter::Reason::kept_process)], out.report.events_in);
  EXPECT_EQ(reasons[static_cast<std::size_t>(filter::Reason::kept_always)], 0u);
  EXPECT_TRUE(out.contents.buffers.back().compressed()) << "as the compressed input";
  const Merged again = merged({inputs[2], inputs[0], inputs[1]});
  expect_merged(inputs, again.contents);
}

TEST(Merge, TheHeaderIsThatOfAMergeOnWindows) {
  const std::vector<Buffer> inputs = {user_trace().bytes(), kernel_trace().bytes()};
  const Merged out = merged(inputs);
  ASSERT_FALSE(out.error);
  const auto trace = testing::open_trace(out.bytes);
  ASSERT_TRUE(trace);
  const LogfileHeader &h = trace->header();
  EXPECT_EQ(h.session_name, "Relogger");
  EXPECT_EQ(h.file_name, "[multiple files]");
  EXPECT_EQ(h.events_lost, 7u);
  EXPECT_EQ(h.first_stamp, 1'000'000) << "of the kernel session, which began first";
  EXPECT_EQ(h.buffers_written, out.contents.buffers.size());
  EXPECT_EQ(h.log_file_mode & format::kModeRelog, format::kModeRelog);
  EXPECT_EQ(h.buffer_size, 0x10000u);
  EXPECT_EQ(h.boot_time, kernel_trace().header().boot_time);
}

TEST(Merge, TheSameBytesWhateverTheThreadsAndBatches) {
  const std::vector<Buffer> inputs = {kernel_trace().bytes(), user_trace().bytes(), user_trace(5).bytes()};
  const Merged want = merged(inputs);
  ASSERT_FALSE(want.bytes.empty());
  for (const unsigned threads : {1u, 2u})
    for (const std::uint64_t batch : {std::uint64_t{1}, std::uint64_t{40'000}, std::uint64_t{1} << 20}) {
      pipeline::RelogOptions options;
      options.graph.threads = threads;
      options.graph.batch_bytes = batch;
      EXPECT_TRUE(merged(inputs, options).bytes == want.bytes) << threads << " threads, batches of " << batch;
    }
}

// One buffer that spans what the other trace says in many, and events whose times go back.
TEST(Merge, BuffersThatSpanOthersAndTimesThatGoBack) {
  SyntheticTrace sparse({.buffer_size = 0x4000});
  for (int i = 0; i < 100; ++i)
    sparse.sample({1'100'000 + 3000 * i}, 104, static_cast<std::uint64_t>(i));
  const std::vector<Buffer> inputs = {kernel_trace().bytes(), sparse.bytes()};
  expect_merged(inputs, merged(inputs).contents);

  SyntheticTrace back({.buffer_size = 0x1000});
  for (int i = 0; i < 400; ++i)
    back.sample({1'100'000 + 500 * (i % 50)}, 104, static_cast<std::uint64_t>(i));
  const Buffer kernel = kernel_trace().bytes(), wild = back.bytes();
  const Merged out = merged({kernel, wild});
  ASSERT_FALSE(out.error);
  const Contents in = testing::contents_of(wild);
  std::size_t at = 0;
  for (const EventBytes &event : out.contents.by_cpu.at(0))
    if (at < in.events.size() && event == in.events[at]) ++at;
  EXPECT_EQ(at, in.events.size()) << "they keep their own order";
  EXPECT_EQ(out.contents.events.size(), in.events.size() + testing::contents_of(kernel).events.size());
}

TEST(Merge, OneProcessOfSeveralTraces) {
  pipeline::RelogOptions options;
  options.selection.processes = {"one.exe"}; // which the kernel's trace alone can name
  const Merged out = merged({user_trace().bytes(), kernel_trace().bytes()}, options);
  ASSERT_FALSE(out.error) << out.error->message();
  std::size_t samples = 0, events = 0;
  for (const EventBytes &event : out.contents.events)
    for_each_event(event, [&](const EventView &view, std::int64_t, std::uint32_t) {
      samples += view.has_hook() && view.hook() == kernel::kHookSample ? 1 : 0;
      events += view.is_event() ? 1 : 0;
      EXPECT_TRUE(!view.is_event() || view.process_id() == 100u);
    });
  EXPECT_EQ(samples, 1000u);
  EXPECT_EQ(events, 750u);
  EXPECT_LT(out.report.events_out, out.report.events_in);
  std::uint64_t sum = 0;
  for (const std::uint64_t reason : out.report.by_reason)
    sum += reason;
  EXPECT_EQ(sum, out.report.events_in);
}

// A session that does not tell processors apart takes nothing from one beside it that does.
TEST(Merge, WhatRanOnAProcessorIsEachSessionsOwn) {
  SyntheticTrace kernel = kernel_trace();
  kernel.context_switch({1'500'000, 1}, 104, 0);
  kernel.end_buffer(1);
  const std::size_t fault = kernel.page_fault({1'500'100, 1}); // of whoever runs there
  SyntheticTrace user({.buffer_size = 0x8000,
                       .processors = 1,
                       .first_stamp = 1'050'000,
                       .mode = format::kModeSequential | format::kModeOneStream});
  for (int i = 0; i < 300; ++i)
    user.trace_logging({1'100'000 + 2000 * i}, Guid{7, 9}, "Prov", "E", 204, 200);
  const std::vector<Buffer> inputs = {kernel.bytes(), user.bytes()};
  pipeline::RelogOptions options;
  options.selection.processes = {"one.exe"};
  const auto kept = [&](const EventBytes &event) { return event == kernel.event(fault); };
  EXPECT_EQ(std::ranges::count_if(merged(inputs, options).contents.events, kept), 1);

  const testing::TempDir directory;
  std::vector<std::uint64_t> counts; // of one.exe, in the kernel's trace alone and with the other beside it
  for (const std::size_t files : {1u, 2u}) {
    std::vector<Input> paths;
    for (std::size_t i = 0; i < files; ++i) {
      paths.emplace_back(directory.file(fmt::format("in{}.etl", i)));
      testing::write_file(directory.file(fmt::format("in{}.etl", i)), inputs[i]);
    }
    const Result<etwrelog::Trace> trace = etwrelog::Trace::open(paths);
    ASSERT_TRUE(trace);
    const Result<Statistics> statistics = collect_statistics(*trace);
    ASSERT_TRUE(statistics);
    for (std::size_t i = 0; i < statistics->processes.size(); ++i)
      if (statistics->processes[i].pid == 100) counts.push_back(statistics->by_instance[i].events);
  }
  ASSERT_EQ(counts.size(), 2u);
  EXPECT_EQ(counts[0], counts[1]);
}

TEST(Merge, NamesWhatDoesNotBelongTogether) {
  const Buffer kernel = kernel_trace().bytes();
  SyntheticTrace other_boot = user_trace();
  other_boot.header().boot_time += 10'000'000;
  const Merged boot = merged({kernel, other_boot.bytes()});
  ASSERT_TRUE(boot.error);
  EXPECT_EQ(boot.error->kind, ErrorKind::unsupported);
  EXPECT_NE(boot.error->message().find("in1.etl"), std::string::npos) << boot.error->message();
  EXPECT_NE(boot.error->message().find("time of boot"), std::string::npos) << boot.error->message();
  SyntheticTrace other_clock = user_trace();
  other_clock.header().perf_freq = 3'000'000;
  const Merged clock = merged({kernel, other_clock.bytes()});
  ASSERT_TRUE(clock.error);
  EXPECT_NE(clock.error->message().find("clock frequency"), std::string::npos) << clock.error->message();
  EXPECT_NE(clock.error->message().find("3000000 Hz"), std::string::npos) << clock.error->message();
  SyntheticTrace other_kind = user_trace();
  other_kind.header().clock_type = 2;
  EXPECT_NE(merged({kernel, other_kind.bytes()}).error->message().find("kind of clock"), std::string::npos);
}

TEST(Merge, DamageIsAnErrorOfItsFile) {
  Buffer damaged = user_trace().bytes();
  store(damaged.data() + 0x8000 + format::kBufferHeaderSize, 0x12345678u);
  const Merged out = merged({kernel_trace().bytes(), damaged});
  ASSERT_TRUE(out.error);
  EXPECT_NE(out.error->message().find("in1.etl"), std::string::npos) << out.error->message();
  EXPECT_EQ(out.error->offset, 0x8000u + format::kBufferHeaderSize);
}

TEST(Merge, ByTheTool) {
  const testing::TempDir directory;
  const std::string kernel = directory.file("kernel.etl"), user = directory.file("user.etl"),
                    all = directory.file("all.etl");
  testing::write_file(kernel, kernel_trace().bytes());
  testing::write_file(user, user_trace().bytes());
  const auto run = testing::run_tool({"merge", kernel, user, "-o", all, "--codec", "xpress"});
  ASSERT_EQ(run.status, 0) << run.err;
  expect_merged({testing::read_file(kernel), testing::read_file(user)},
                testing::contents_of(testing::read_file(all)));
  EXPECT_EQ(testing::run_tool({"merge", kernel, user, "-o", all}).status, 1) << "nothing is replaced unasked";
  EXPECT_NE(testing::run_tool({"merge", kernel, user, "-o", user, "-f"}).status, 0) << "never an input";
  EXPECT_NE(testing::run_tool({"merge", kernel, kernel, "-o", directory.file("x.etl")}).status, 0) << "twice";
  EXPECT_EQ(directory.names().size(), 3u);
  const auto one =
      testing::run_tool({"merge", kernel, user, "-o", directory.file("one.etl"), "-p", "one.exe"});
  EXPECT_EQ(one.status, 0) << one.err;
  const Contents kept = testing::contents_of(testing::read_file(directory.file("one.etl")));
  ASSERT_EQ(
      testing::run_tool({"relog", kernel, user, "-o", directory.file("two.etl"), "-p", "one.exe"}).status, 0);
  EXPECT_EQ(testing::read_file(directory.file("two.etl")), testing::read_file(directory.file("one.etl")));
  const std::string whole = directory.file("whole.etl"), again = directory.file("again.etl");
  ASSERT_EQ(testing::run_tool({"merge", kernel, user, "-o", whole, "--keep-buffers"}).status, 0);
  ASSERT_EQ(testing::run_tool({"relog", kernel, user, "-o", again, "--keep-order"}).status, 0);
  EXPECT_EQ(testing::read_file(whole), testing::read_file(again));
  for (const std::vector<std::string> &with :
       {std::vector<std::string>{"--stacks", "cache"}, {"--buffer-size", "1M"}}) {
    std::vector<std::string> words = {"merge", kernel, user, "-o", directory.file("x.etl"), "--keep-buffers"};
    words.insert(words.end(), with.begin(), with.end());
    const auto refused = testing::run_tool(words);
    EXPECT_EQ(refused.status, 2) << refused.err;
    EXPECT_NE(refused.err.find(with.front()), std::string::npos) << refused.err;
  }
  EXPECT_GT(kept.events.size(), 1750u);
  EXPECT_LT(kept.events.size(), 2500u);
}

TEST(Merge, StacksAreRewrittenAsThoseOfTheMergedTrace) {
  SyntheticTrace kernel = kernel_trace(Codec::xpress), user = user_trace();
  for (int i = 0; i < 300; ++i)
    for (SyntheticTrace *t : {&kernel, &user})
      t->stack_walk({1'500'001 + 100 * i, 1}, 1'500'000 + 100 * i, 200, 204,
                    {1, 2, 3, 4, static_cast<std::uint64_t>(i % 7)});
  const std::vector<Buffer> inputs = {kernel.bytes(), user.bytes()};
  const testing::TempDir directory;
  for (const pipeline::StackMode mode : {pipeline::StackMode::cache, pipeline::StackMode::expand}) {
    pipeline::RelogOptions options;
    options.stacks.mode = mode;
    const Merged at_once = merged(inputs, options);
    ASSERT_FALSE(at_once.error) << at_once.error->message();
    options.codec = Codec::xpress;
    const testing::Relogged in_two = testing::relog_bytes(merged(inputs).bytes, options);
    ASSERT_FALSE(in_two.error) << in_two.error->message();
    EXPECT_TRUE(at_once.bytes == in_two.bytes);
    EXPECT_EQ(at_once.report.stacks.walks_in, 600u);
    EXPECT_EQ(at_once.report.stacks.references_out, mode == pipeline::StackMode::cache ? 600u : 0u);
    EXPECT_EQ(at_once.report.events_in, merged(inputs).report.events_in);
    EXPECT_EQ(at_once.report.output_bytes, at_once.bytes.size());
  }
  // With a selection, and what the report says of it.
  pipeline::RelogOptions options;
  options.stacks.mode = pipeline::StackMode::cache;
  options.selection.processes = {"one.exe"};
  options.count = true;
  const Merged one = merged(inputs, options);
  ASSERT_FALSE(one.error) << one.error->message();
  EXPECT_EQ(one.report.stacks.walks_in, 0u) << "the stacks are the other's";
  EXPECT_LT(one.report.events_out, one.report.events_in);
  EXPECT_FALSE(one.report.types.rows().empty());
}

// Parts of a trace hold the definitions that their references need, each a copy: where the kernel gives a key
// up and uses it again at one moment, none may come behind the new use, whose stack it is not.
TEST(Merge, CopiesOfADefinitionGoBeforeANewUseOfTheKeyAtThatMoment) {
  constexpr std::int64_t kNow = 1'200'000;
  constexpr std::uint64_t kKey = 0x1234'5000;
  const testing::Frames before{1, 2, 3}, behind{4, 5};
  SyntheticTrace other, own;
  other.stack_key({kNow - 50, 0}, kNow - 60, 200, 204, kKey);
  other.stack_definition({kNow, 1}, kKey, before);
  own.stack_definition({kNow, 1}, kKey, before);
  own.stack_key({kNow, 1}, kNow - 10, 200, 204, kKey);
  own.sample({kNow, 1}, 204, 0x1000);
  own.stack_definition({kNow + 90, 1}, kKey, behind);
  for (const auto &inputs : {std::vector{own.bytes(), other.bytes()}, {other.bytes(), own.bytes()}}) {
    const Merged out = merged(inputs);
    ASSERT_FALSE(out.error) << out.error->message();
    expect_merged(inputs, out.contents);
    const testing::Relogged expanded = testing::relog_bytes(out.bytes, [] {
      pipeline::RelogOptions options;
      options.stacks.mode = pipeline::StackMode::expand;
      return options;
    }());
    ASSERT_FALSE(expanded.error) << expanded.error->message();
    SyntheticTrace expected;
    expected.stack_walk({kNow - 50, 0}, kNow - 60, 200, 204, before);
    expected.stack_walk({kNow, 1}, kNow - 10, 200, 204, behind);
    expected.sample({kNow, 1}, 204, 0x1000);
    EXPECT_TRUE(expanded.contents.by_cpu == testing::contents_of(expected.bytes()).by_cpu);
  }
}

// The buffers of a trace but the first, without what a place in a file gives them: number, time stamp, flush
// marker, and the fill of a size that all share.
std::vector<Buffer> stored_buffers(const Buffer &file) {
  std::vector<Buffer> all;
  for (std::size_t at = 0; at < file.size();) {
    const format::BufferHeader header = format::load_buffer_header(file.data() + at);
    if (at != 0) {
      const std::size_t size = header.compressed() ? header.buffer_size : header.valid_bytes();
      Buffer &buffer = all.emplace_back(file.begin() + static_cast<std::ptrdiff_t>(at),
                                        file.begin() + static_cast<std::ptrdiff_t>(at + size));
      format::BufferHeader bare = header;
      bare.sequence_number = bare.time_stamp = 0;
      bare.flags &= static_cast<std::uint16_t>(~format::kFlagFlushMarker);
      bare.buffer_size = static_cast<std::uint32_t>(size);
      format::store_buffer_header(buffer.data(), bare);
    }
    at += header.buffer_size;
  }
  return all;
}

pipeline::RelogOptions whole_buffers() {
  pipeline::RelogOptions options;
  options.keep_grouping = true;
  return options;
}

// `first_rest`: first buffers that hold more than the header event, which becomes a buffer of its own.
void expect_whole(const std::vector<Buffer> &inputs, const Merged &out, std::size_t first_rest) {
  ASSERT_FALSE(out.error) << out.error->message();
  std::vector<Buffer> expected, got = stored_buffers(out.bytes);
  std::multiset<EventBytes> in, kept(out.contents.events.begin(), out.contents.events.end());
  for (const Buffer &input : inputs) {
    const std::vector<Buffer> more = stored_buffers(input);
    // Those of one file and processor stay in their order.
    std::map<std::uint16_t, std::vector<Buffer>> of;
    for (const Buffer &buffer : more)
      of[format::load_buffer_header(buffer.data()).processor()].push_back(buffer);
    for (const auto &[processor, buffers] : of) {
      std::size_t at = 0;
      for (const Buffer &buffer : got)
        if (at < buffers.size() && buffer == buffers[at]) ++at;
      EXPECT_EQ(at, buffers.size()) << "processor " << processor;
    }
    expected.insert(expected.end(), more.begin(), more.end());
    const Contents contents = testing::contents_of(input);
    in.insert(contents.events.begin(), contents.events.end());
  }
  EXPECT_TRUE(in == kept);
  ASSERT_EQ(got.size(), expected.size() + first_rest);
  std::ranges::sort(expected);
  std::ranges::sort(got);
  EXPECT_TRUE(std::ranges::includes(got, expected));
}

TEST(Merge, BuffersStayWholeWhereThatIsAskedFor) {
  const std::vector<Buffer> plain = {kernel_trace().bytes(), user_trace().bytes()},
                            packed = {kernel_trace(Codec::xpress).bytes(), user_trace().bytes(),
                                      user_trace(11, Codec::lznt1).bytes()};
  for (const bool compressed : {false, true}) {
    const std::vector<Buffer> &inputs = compressed ? packed : plain;
    const Merged out = merged(inputs, whole_buffers());
    expect_whole(inputs, out, 0);
    EXPECT_EQ(out.report.events_in, out.report.events_out);
    const auto trace = testing::open_trace(out.bytes);
    ASSERT_TRUE(trace);
    EXPECT_EQ(trace->header().buffer_size, 0x8000u) << "the largest, and no larger";
    EXPECT_EQ(trace->header().file_name, "[multiple files]");
    EXPECT_EQ(trace->header().buffers_written, out.contents.buffers.size());
    std::int64_t number = 0, stamp = 0;
    for (const format::BufferHeader &header : out.contents.buffers) {
      EXPECT_EQ(header.sequence_number, number);
      const bool end = number == 0 || header.sequence_number + 1 == trace->header().buffers_written;
      EXPECT_EQ((header.flags & format::kFlagFlushMarker) != 0, end) << number;
      EXPECT_GE(header.time_stamp, stamp);
      EXPECT_TRUE(compressed || header.buffer_size == 0x8000u);
      stamp = header.time_stamp;
      ++number;
    }
    for (const unsigned threads : {1u, 2u})
      for (const std::uint64_t batch : {std::uint64_t{1}, std::uint64_t{40'000}}) {
        pipeline::RelogOptions options = whole_buffers();
        options.graph.threads = threads;
        options.graph.batch_bytes = batch;
        EXPECT_TRUE(merged(inputs, options).bytes == out.bytes) << threads << " threads, " << batch;
      }
  }
}

TEST(Merge, WholeBuffersAreReadInTheOrderOfTime) {
  const testing::TempDir directory;
  const std::string kernel = directory.file("kernel.etl"), user = directory.file("user.etl"),
                    sparse_one = directory.file("sparse.etl");
  testing::write_file(kernel, kernel_trace().bytes());
  testing::write_file(user, user_trace().bytes());
  SyntheticTrace sparse({.buffer_size = 0x4000}); // one buffer over the time of many
  for (int i = 0; i < 100; ++i)
    sparse.sample({1'100'003 + 3000 * i}, 104, static_cast<std::uint64_t>(i));
  testing::write_file(sparse_one, sparse.bytes());
  const std::string anew = directory.file("anew.etl"), whole = directory.file("whole.etl");
  ASSERT_EQ(testing::run_tool({"merge", kernel, user, sparse_one, "-o", anew}).status, 0);
  ASSERT_EQ(testing::run_tool({"merge", kernel, user, sparse_one, "-o", whole, "--keep-buffers"}).status, 0);
  std::size_t behind = 0;
  for (const auto &[cpu, events] : testing::contents_of(testing::read_file(whole)).by_cpu)
    for (std::int64_t latest = 0; const EventBytes &event : events) {
      behind += time_of(event) < latest ? 1 : 0;
      latest = std::max(latest, time_of(event));
    }
  EXPECT_GT(behind, 500u) << "their buffers overlap: otherwise this says nothing";
  const Result<etwrelog::Trace> a = etwrelog::Trace::open(Input(anew)),
                                b = etwrelog::Trace::open(Input(whole));
  ASSERT_TRUE(a && b);
  EventCursor first = a->events({.order = Order::time}), second = b->events({.order = Order::time});
  std::multiset<EventBytes> one, other; // of one time
  std::int64_t now = 0;
  ASSERT_TRUE(first.next() != nullptr && second.next() != nullptr); // the header events, which count buffers
  for (const Event *x = first.next();; x = first.next()) {
    const Event *y = second.next();
    ASSERT_EQ(x == nullptr, y == nullptr);
    if (x == nullptr || x->time() != now) {
      EXPECT_TRUE(one == other) << "at " << now;
      one.clear(), other.clear();
    }
    if (x == nullptr) break;
    ASSERT_EQ(x->time(), y->time());
    now = x->time();
    one.emplace(x->bytes().begin(), x->bytes().end());
    other.emplace(y->bytes().begin(), y->bytes().end());
  }
  for (const std::string command : {"stats", "info"}) {
    nlohmann::json of[2];
    for (const bool kept : {false, true}) {
      const auto run = testing::run_tool({command, kept ? whole : anew, "--json"});
      ASSERT_EQ(run.status, 0) << run.err;
      of[kept ? 1 : 0] = nlohmann::json::parse(run.out, nullptr, false);
    }
    for (const char *field : {"events", "by_type", "processes", "samples", "stacks"})
      EXPECT_EQ(of[0].contains(field) ? of[0][field] : "", of[1].contains(field) ? of[1][field] : "")
          << command << ' ' << field;
  }
}

TEST(Merge, WholeBuffersUnderASelectionOrAnotherCodec) {
  const std::vector<Buffer> inputs = {user_trace().bytes(), kernel_trace().bytes()};
  pipeline::RelogOptions anew, whole = whole_buffers();
  anew.selection.processes = whole.selection.processes = {"one.exe"};
  const Merged a = merged(inputs, anew), b = merged(inputs, whole);
  ASSERT_FALSE(b.error) << b.error->message();
  EXPECT_EQ(a.report.by_reason, b.report.by_reason);
  EXPECT_EQ(std::multiset<EventBytes>(a.contents.events.begin(), a.contents.events.end()),
            std::multiset<EventBytes>(b.contents.events.begin(), b.contents.events.end()));
  whole = whole_buffers();
  whole.codec = Codec::xpress;
  const Merged packed = merged(inputs, whole);
  ASSERT_FALSE(packed.error) << packed.error->message();
  EXPECT_TRUE(packed.contents.buffers.back().compressed());
  EXPECT_EQ(packed.contents.buffers.size(), merged(inputs, whole_buffers()).contents.buffers.size());
  EXPECT_LT(packed.bytes.size(), merged(inputs, whole_buffers()).bytes.size() / 2);
  whole.stacks.mode = pipeline::StackMode::cache;
  const Merged refused = merged(inputs, whole);
  ASSERT_TRUE(refused.error);
  EXPECT_EQ(refused.error->option, Option::stacks);
}

TEST(Merge, WholeBuffersOfOneRecording) {
  const auto user = testing::trace_path("diaghub"), kernel = testing::trace_path("diaghub.kernel.1");
  if (!user || !kernel) GTEST_SKIP() << "no real traces";
  const std::vector<Buffer> inputs = {testing::read_file(user->string()),
                                      testing::read_file(kernel->string())};
  expect_whole(inputs, merged(inputs, whole_buffers()), 0);
}

TEST(Merge, TheFilesOfOneRecording) {
  const auto user = testing::trace_path("diaghub"), kernel = testing::trace_path("diaghub.kernel.1");
  if (!user || !kernel) GTEST_SKIP() << "no real traces";
  const std::vector<Buffer> inputs = {testing::read_file(user->string()),
                                      testing::read_file(kernel->string())};
  const Merged out = merged(inputs);
  ASSERT_FALSE(out.error) << out.error->message();
  std::vector<EventBytes> all;
  for (const Buffer &input : inputs) {
    const Contents in = testing::contents_of(input);
    all.insert(all.end(), in.events.begin(), in.events.end());
  }
  std::vector<EventBytes> sorted = out.contents.events;
  std::ranges::sort(sorted);
  std::ranges::sort(all);
  EXPECT_TRUE(sorted == all);
}

TEST(Merge, WithALogThatWasNeverClosedItEndsBehindItsLastEvent) {
  SyntheticTrace closed, open({.closed = false});
  closed.sample({1'000'010}, 104);
  open.sample({90'000'000}, 104);
  for (const std::vector<Buffer> &inputs :
       {std::vector{closed.bytes(), open.bytes()}, {open.bytes(), closed.bytes()}}) {
    const Merged m = merged(inputs);
    ASSERT_FALSE(m.error) << m.error->message();
    const auto trace = testing::open_trace(m.bytes);
    ASSERT_TRUE(trace);
    EXPECT_EQ(trace->header().end_time, trace->clock().to_filetime(90'000'000));
  }
}

} // namespace
} // namespace etwrelog
