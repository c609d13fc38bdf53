// The public way to the events: etwrelog/trace.hpp.
#include "etwrelog/archive.hpp"
#include "etwrelog/relog.hpp"
#include "etwrelog/trace.hpp"
#include "tests/support/pipeline_runs.hpp"
#include "tests/support/synthetic_trace.hpp"
#include "tests/support/trace_files.hpp"
#include "tools/etwgen/generate.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

namespace etwrelog::testing {
namespace {

struct Seen {
  std::int64_t time;
  Position position;
  std::uint16_t processor;
  std::uint32_t size;
  auto operator<=>(const Seen &) const = default;
};

std::vector<Seen> walk(const etwrelog::Trace &trace, const Query &query, const RunOptions &run = {}) {
  std::vector<Seen> seen;
  const Result<void> done = trace.events(query, run).for_each([&](const Event &e) {
    seen.push_back({e.time(), e.position(), e.processor(), e.size()});
  });
  EXPECT_TRUE(done) << done.error().message();
  return seen;
}

// What Order::time promises, by sorting all events at once.
void sort_fully(std::vector<Seen> &events) {
  std::ranges::sort(events, {}, [](const Seen &s) {
    return std::tuple(s.time, s.position.source, s.processor, s.position.buffer, s.position.offset);
  });
}

etwrelog::Trace open_memory(std::vector<std::uint8_t> bytes, const OpenOptions &options = {}) {
  Result<etwrelog::Trace> trace = etwrelog::Trace::open(Input::memory("test.etl", std::move(bytes)), options);
  EXPECT_TRUE(trace) << trace.error().message();
  return *std::move(trace);
}

void expect_time_order(const etwrelog::Trace &trace, const std::string &name) {
  std::vector<Seen> sorted = walk(trace, {});
  sort_fully(sorted);
  for (const unsigned threads : {1u, 2u, 8u}) {
    RunReport report;
    const std::vector<Seen> walked =
        walk(trace, {.order = Order::time}, {.threads = threads, .report = &report});
    EXPECT_EQ(report.late_events, 0u) << name;
    EXPECT_TRUE(walked == sorted) << name << " with " << threads << " threads: " << walked.size() << " of "
                                  << sorted.size() << " events";
    if (walked.size() != sorted.size()) continue;
    const auto [is, expected] = std::ranges::mismatch(walked, sorted);
    if (is != walked.end())
      ADD_FAILURE() << "event " << is - walked.begin() << ": time " << is->time << " of source "
                    << is->position.source << ", buffer " << is->position.buffer << "; expected time "
                    << expected->time << " of source " << expected->position.source << ", buffer "
                    << expected->position.buffer;
  }
}

TEST(TraceCursor, GivesTheEventsAsTheyAreStored) {
  SyntheticTrace made;
  for (int i = 0; i < 1000; ++i)
    made.sample({2'000'000 + i, static_cast<std::uint16_t>(i % 3)}, 7);
  const std::vector<std::uint8_t> bytes = made.bytes();
  const Contents expected = contents_of(bytes);
  const etwrelog::Trace trace = open_memory(bytes);
  std::vector<EventBytes> events;
  EventCursor cursor = trace.events({}, {.threads = 1});
  while (const Event *event = cursor.next())
    if (event->position() != Position{}) events.emplace_back(event->bytes().begin(), event->bytes().end());
  EXPECT_TRUE(cursor.status());
  EXPECT_EQ(events, expected.events);
  EXPECT_EQ(cursor.next(), nullptr);
}

TEST(TraceFold, CountsWhatTheCursorSeesWithAnyNumberOfThreads) {
  const auto path = trace_path("Process");
  if (!path) GTEST_SKIP() << "no real traces here";
  Result<etwrelog::Trace> trace = etwrelog::Trace::open(path->string());
  ASSERT_TRUE(trace) << trace.error().message();
  const std::size_t events = walk(*trace, {}).size();
  for (const unsigned threads : {1u, 2u, 8u})
    for (const Order order : {Order::file, Order::time}) {
      const Result<std::uint64_t> count = trace->fold<std::uint64_t>(
          [](std::uint64_t &part, EventBatch &batch) {
            for (const Event &e : batch)
              part += e.size() > 0 ? 1 : 0;
          },
          [](std::uint64_t &total, std::uint64_t &part) { total += part; }, {.order = order},
          {.threads = threads});
      ASSERT_TRUE(count);
      EXPECT_EQ(*count, events);
    }
}

TEST(TraceFold, TurnsWhatItsFunctionsThrowAndReturnIntoErrors) {
  SyntheticTrace made;
  made.sample({2'000'000}, 7);
  const etwrelog::Trace trace = open_memory(made.bytes());
  const auto merge = [](int &total, int &part) { total += part; };
  Result<int> thrown =
      trace.fold<int>([](int &, EventBatch &) { throw std::runtime_error("no more"); }, merge);
  ASSERT_FALSE(thrown);
  EXPECT_EQ(thrown.error().kind, ErrorKind::callback);
  EXPECT_EQ(thrown.error().found, "no more");
  Result<int> refused = trace.fold<int>([](int &, EventBatch &) {},
                                        [](int &, int &) -> Result<void> {
                                          Error error;
                                          error.kind = ErrorKind::no_match;
                                          return error;
                                        });
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::no_match);
}

TEST(TraceOrder, IsThatOfAFullSortOnRealTraces) {
  const auto names = trace_names();
  if (names.empty()) GTEST_SKIP() << "no real traces here";
  for (const std::string &name : names) {
    Result<etwrelog::Trace> trace = etwrelog::Trace::open(trace_path(name)->string());
    if (!trace) continue; // those that are no traces are other tests' matter
    expect_time_order(*trace, name);
  }
}

// Processors that write at very different rates, many events at the same time, buffers that overlap their
// neighbour.
TEST(TraceOrder, IsThatOfAFullSortOnMadeTraces) {
  std::mt19937 random(1);
  for (int round = 0; round < 20; ++round) {
    SyntheticTrace made({.buffer_size = 4096});
    const int processors = 1 + round % 5;
    std::vector<std::int64_t> now(static_cast<std::size_t>(processors), 2'000'000);
    const bool coarse = round % 3 == 0, overlapping = round % 2 == 1;
    std::vector<std::int64_t> behind(now.size(), 0);
    for (int i = 0; i < 3000; ++i) {
      // The last processor hardly writes.
      auto cpu = static_cast<std::uint16_t>(random() % static_cast<unsigned>(processors));
      if (cpu == processors - 1 && random() % 50 != 0) cpu = 0;
      now[cpu] += coarse ? (random() % 200 == 0 ? 1000 : 0) : static_cast<std::int64_t>(random() % 20);
      made.sample({now[cpu] - behind[cpu], cpu}, 7);
      if (random() % 60 == 0) {
        made.end_buffer(cpu);
        // Begins within the one that has just ended, once in a while.
        behind[cpu] = overlapping && behind[cpu] == 0 ? static_cast<std::int64_t>(random() % 40) : 0;
      }
    }
    expect_time_order(open_memory(made.bytes()), "round " + std::to_string(round));
  }
}

TEST(TraceOrder, CountsEventsThatComeLateAndGivesAllOfThem) {
  SyntheticTrace made;
  for (int buffer = 0; buffer < 100; ++buffer) {
    for (int i = 0; i < 1000; ++i)
      made.sample({2'000'000 + buffer * 10'000 + i, 0}, 7);
    made.end_buffer(0);
  }
  made.sample({2'000'000, 0}, 7); // 100 buffers late
  const etwrelog::Trace trace = open_memory(made.bytes());
  RunReport report;
  const std::vector<Seen> walked = walk(trace, {.order = Order::time}, {.threads = 2, .report = &report});
  EXPECT_EQ(report.late_events, 1u);
  EXPECT_EQ(walked.size(), walk(trace, {}).size());
}

// An idle processor's buffers stand at the end of the file and say that they were written late: nothing could
// be delivered before they come. They are fetched when the memory is spent, and the order stays the same.
TEST(TraceOrder, StaysWithinItsMemory) {
  SyntheticTrace made;
  std::vector<std::int64_t> idle;
  for (int buffer = 0; buffer < 400; ++buffer) {
    for (int i = 0; i < 1500; ++i)
      made.sample({2'000'000 + buffer * 10'000 + i, 0}, 7);
    made.end_buffer(0);
    idle.push_back(2'000'000 + buffer * 10'000 + 777);
  }
  for (std::size_t i = 0; i < idle.size(); ++i) {
    made.sample({idle[i], 1}, 7);
    if (i % 100 == 99)
      made.end_buffer(1).tweak = [](format::BufferHeader &header) { header.time_stamp = 1'000'000'000; };
  }
  const etwrelog::Trace trace = open_memory(made.bytes());
  ASSERT_GT(trace.sources()[0].decoded_bytes, 16u << 20);
  std::vector<Seen> sorted = walk(trace, {});
  sort_fully(sorted);
  for (const unsigned threads : {1u, 2u}) {
    RunReport report;
    RunOptions run{.threads = threads, .memory = 8u << 20, .report = &report};
    EXPECT_TRUE(walk(trace, {.order = Order::time}, run) == sorted);
    EXPECT_EQ(report.late_events, 0u);
    EXPECT_GT(report.peak_memory, 0u);
    EXPECT_LE(report.peak_memory, run.memory);
  }
  EventCursor cursor = trace.events({.order = Order::time}, {.memory = 100'000});
  EXPECT_EQ(cursor.next(), nullptr);
  ASSERT_FALSE(cursor.status());
  EXPECT_EQ(cursor.status().error().kind, ErrorKind::limit);
  EXPECT_EQ(cursor.status().error().advice, Advice::raise_memory);
}

TEST(TraceSources, AreReadAsOneInOrderOfTime) {
  SyntheticTrace first({.perf_freq = 10'000'000}), second({.perf_freq = 10'000'000});
  first.header().boot_time = second.header().boot_time = 132'499'000'000'000'000;
  SyntheticTrace other({.perf_freq = 1'000'000, .first_stamp = 500});
  for (int i = 0; i < 2000; ++i) {
    first.sample({2'000'000 + i * 10, 0}, 7);
    second.sample({2'000'005 + i * 10, 1}, 7);
    other.sample({100'502 + i, 0}, 7); // 2'000'020 in the clock of the first
  }
  Result<etwrelog::Trace> trace =
      etwrelog::Trace::open({Input::memory("a", first.bytes()), Input::memory("b", second.bytes()),
                             Input::memory("c", other.bytes())});
  ASSERT_TRUE(trace) << trace.error().message();
  ASSERT_EQ(trace->sources().size(), 3u);
  EXPECT_EQ(trace->sources()[0].machine, 0u);
  EXPECT_EQ(trace->sources()[1].machine, 0u);
  EXPECT_EQ(trace->sources()[2].machine, 1u);
  expect_time_order(*trace, "three sources");
  const std::vector<Seen> walked = walk(*trace, {.order = Order::time});
  EXPECT_EQ(walked.size(), 6003u);
  const auto at = std::ranges::find(walked, Position{2, 1, 0}, &Seen::position);
  ASSERT_NE(at, walked.end());
  EXPECT_EQ(at->time, 2'000'020);
}

TEST(TraceQuery, TakesKindsAndTimes) {
  SyntheticTrace made;
  for (int i = 0; i < 100; ++i) {
    made.sample({2'000'000 + i * 1000}, 7);
    made.tcp_send({2'000'500 + i * 1000}, 4);
  }
  const etwrelog::Trace trace = open_memory(made.bytes());
  EventSet samples;
  samples.add_kernel(0x0F2E);
  for (const Order order : {Order::file, Order::time}) {
    EXPECT_EQ(walk(trace, {.order = order, .kinds = samples}).size(), 100u);
    Query some{.order = order, .kinds = samples};
    some.from = parse_moment("0.1s"); // 1'000'000 ticks behind the header event's 1'000'000
    some.to = parse_moment("0.1009s");
    EXPECT_EQ(walk(trace, some).size(), 10u);
  }
}

// A stretch of time out of an archive: the same events, and what lies outside of it is not even looked at.
TEST(TraceQuery, ATimeOfAnArchiveDecodesOnlyWhatItNeeds) {
  gen::Options options;
  options.profile = gen::find_profile("medium");
  options.size = 60'000'000;
  options.cpus = 4;
  options.processes = 16;
  gen::MemorySink sink;
  ASSERT_TRUE(gen::generate(options, sink));
  const TempDir directory;
  const std::string archive = directory.file("a.etlz");
  const etwrelog::Trace plain = open_memory(sink.bytes);
  ASSERT_TRUE(pack(Input::memory("test.etl", sink.bytes), Output(archive), {.level = Level::fast}));
  std::vector<std::uint8_t> damaged = read_file(archive);
  damaged[damaged.size() * 2 / 5] ^= 0xFF; // of a segment in the middle
  write_file(directory.file("damaged.etlz"), damaged);
  const std::int64_t end = walk(plain, {.order = Order::time}).back().time;
  const double length = static_cast<double>(end - plain.clock().first_stamp) * 1e-7;
  for (const std::string &path : {archive, directory.file("damaged.etlz")})
    for (const Order order : {Order::file, Order::time}) {
      const Result<etwrelog::Trace> packed = etwrelog::Trace::open(path);
      ASSERT_TRUE(packed) << packed.error().message();
      Query late{.order = order};
      late.from = Moment{true, length * 0.9, 0};
      RunReport report;
      const std::vector<Seen> seen = walk(*packed, late, {.report = &report});
      EXPECT_TRUE(seen == walk(plain, late)) << seen.size() << " events";
      EXPECT_GT(seen.size(), 1000u);
      EXPECT_GT(report.buffers_left_out, 100u);
    }
  const Result<etwrelog::Trace> packed = etwrelog::Trace::open(directory.file("damaged.etlz"));
  ASSERT_TRUE(packed);
  EXPECT_FALSE(packed->events({}).for_each([](const Event &) {})) << "all of it meets the damage";
}

// A WPP message may have no time: it has that of its predecessor, at the begin of a buffer its successor's.
TEST(TraceCursor, AnEventInFrontOfAllTimesHasThatOfTheNext) {
  SyntheticTrace made;
  made.process_rundown({1'000'100}, 100, 4, "one.exe");
  made.end_buffer(0);
  std::vector<std::uint8_t> message{16, 0, 0, 0x90, 5, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8};
  made.raw({2'000'000}, message, 16);
  made.sample({2'000'000}, 104);
  const etwrelog::Trace trace = open_memory(made.bytes());
  const std::size_t all = walk(trace, {}).size();
  ASSERT_EQ(all, 4u); // with the logfile header
  Moment early, between;
  between.seconds = 0.05;
  EXPECT_EQ(walk(trace, {.from = early}).size(), all);
  EXPECT_EQ(walk(trace, {.to = between}).size(), 2u);
  for (const bool from : {true, false}) {
    Selection selection;
    (from ? selection.from : selection.to) = from ? early : between;
    const Result<Filter> filter = Filter::prepare(trace, selection);
    ASSERT_TRUE(filter);
    EXPECT_EQ(walk(trace, {.filter = &*filter}).size(), from ? all : 2u);
    const TempDir directory;
    const std::string path = directory.file("out.etl");
    ASSERT_TRUE(etwrelog::relog(trace, path, {.selection = selection}));
    EXPECT_EQ(walk(*etwrelog::Trace::open(path), {}).size(), from ? all : 2u);
  }
}

// Nobody can read what the caller's input no longer has; it is not taken for space that was never written.
TEST(TraceOpen, AnInputThatBecomesShorterIsAnError) {
  class Shorter final : public RandomAccess {
  public:
    explicit Shorter(std::vector<std::uint8_t> bytes) : bytes_(std::move(bytes)) {}
    std::uint64_t size() const override { return bytes_.size() + 1'000'000; }
    Result<std::size_t> read_at(std::uint64_t offset, MutableBytes into) const override {
      if (offset >= bytes_.size()) return std::size_t{0};
      const std::size_t n = std::min<std::size_t>(into.size(), bytes_.size() - offset);
      std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), n, into.begin());
      return n;
    }

  private:
    std::vector<std::uint8_t> bytes_;
  };
  SyntheticTrace made;
  made.sample({2'000'000}, 104);
  for (const bool zeros : {false, true}) {
    std::vector<std::uint8_t> bytes = made.bytes();
    if (zeros) bytes.resize(bytes.size() + 100);
    const auto trace =
        etwrelog::Trace::open(Input::random_access("x.etl", std::make_shared<Shorter>(std::move(bytes))));
    ASSERT_FALSE(trace);
    EXPECT_EQ(trace.error().kind, ErrorKind::io);
    EXPECT_NE(trace.error().message().find("shorter"), std::string::npos) << trace.error().message();
  }
}

TEST(TraceCursor, FailsWhereTheDamageIsAndSalvagesTheRest) {
  SyntheticTrace made;
  for (int i = 0; i < 300; ++i) {
    made.sample({2'000'000 + i}, 7);
    if (i % 100 == 99) made.end_buffer(0);
  }
  made.closed_buffers()[1].events[160] ^= 0xFF; // the Size or marker of an event in the second buffer
  made.closed_buffers()[1].events[163] ^= 0xFF;
  for (const Order order : {Order::file, Order::time}) {
    const etwrelog::Trace trace = open_memory(made.bytes());
    EventCursor cursor = trace.events({.order = order});
    while (cursor.next() != nullptr) {
    }
    ASSERT_FALSE(cursor.status());
    EXPECT_EQ(cursor.status().error().kind, ErrorKind::corrupt);
    EXPECT_TRUE(cursor.status().error().offset);

    RunReport report;
    const etwrelog::Trace salvaged = open_memory(made.bytes(), {.salvage = true});
    const std::vector<Seen> events = walk(salvaged, {.order = order}, {.report = &report});
    EXPECT_GT(events.size(), 200u);
    EXPECT_LT(events.size(), 301u);
    EXPECT_EQ(report.skipped.size(), 1u);
  }
}

TEST(TraceCursor, StopsOnRequest) {
  SyntheticTrace made;
  made.sample({2'000'000}, 7);
  const etwrelog::Trace trace = open_memory(made.bytes());
  std::stop_source stop;
  stop.request_stop();
  RunOptions run;
  run.stop = stop.get_token();
  EventCursor cursor = trace.events({}, run);
  EXPECT_EQ(cursor.next(), nullptr);
  ASSERT_FALSE(cursor.status());
  EXPECT_EQ(cursor.status().error().kind, ErrorKind::cancelled);
}

TEST(EventCopy, OutlivesTheTrace) {
  SyntheticTrace made;
  const std::size_t sample = made.sample({2'000'000, 3}, 7);
  EventCopy copy;
  {
    const etwrelog::Trace trace = open_memory(made.bytes());
    EventCursor cursor = trace.events();
    while (const Event *event = cursor.next())
      copy = EventCopy(*event);
  }
  const Event event = copy.view();
  EXPECT_EQ(EventBytes(event.bytes().begin(), event.bytes().end()), made.event(sample));
  EXPECT_EQ(event.time(), 2'000'000);
  EXPECT_EQ(event.processor(), 3);
}

} // namespace
} // namespace etwrelog::testing
