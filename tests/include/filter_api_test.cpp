// etwrelog/select.hpp: a Filter in a query gives the events that relog() would write.
#include "etwrelog/etwrelog.hpp"
#include "tests/support/generated.hpp"
#include "tests/support/pace.hpp"
#include "tests/support/pipeline_runs.hpp"
#include "tests/support/trace_files.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace etwrelog::testing {
namespace {

using PublicTrace = etwrelog::Trace;

PublicTrace opened(std::vector<Input> inputs) {
  Result<PublicTrace> trace = PublicTrace::open(std::move(inputs));
  EXPECT_TRUE(trace) << trace.error().message();
  return *std::move(trace);
}

// The events, without the logfile header, which a relog writes anew.
std::vector<std::string> events_of(const PublicTrace &trace, const Query &query = {},
                                   const RunOptions &run = {}) {
  std::vector<std::string> events;
  const Result<void> done = trace.events(query, run).for_each([&](const Event &event) {
    const Guid provider = event.provider();
    if (provider == format::kEventTraceGuid && (event.has_hook() ? event.hook() : event.opcode()) == 0)
      return;
    events.emplace_back(reinterpret_cast<const char *>(event.bytes().data()), event.bytes().size());
  });
  EXPECT_TRUE(done) << done.error().message();
  return events;
}

void expect_as_relogged(const PublicTrace &trace, const Selection &selection, const std::string &what) {
  const TempDir directory;
  const std::string out = directory.file("out.etl");
  Result<Filter> filter = Filter::prepare(trace, selection);
  const Result<RelogReport> report = relog(trace, out, {.selection = selection});
  ASSERT_EQ(bool(filter), bool(report)) << what;
  if (!filter) {
    EXPECT_EQ(filter.error().kind, report.error().kind) << what;
    return;
  }
  std::vector<std::string> written = events_of(opened({Input(out)})), in_order;
  std::ranges::sort(written);
  for (const Order order : {Order::file, Order::time})
    for (const unsigned threads : {1u, 3u}) {
      const std::vector<std::string> given =
          events_of(trace, {.order = order, .filter = &*filter}, {.threads = threads});
      if (threads == 1) in_order = given;
      EXPECT_TRUE(given == in_order) << what << ": not the same whatever the threads";
      std::vector<std::string> sorted = given;
      std::ranges::sort(sorted);
      EXPECT_EQ(sorted.size(), written.size()) << what;
      EXPECT_TRUE(sorted == written) << what;
    }
}

SyntheticTrace two_processes() {
  SyntheticTrace t({.buffer_size = 4096});
  t.process_rundown({1'000'100}, 10, 4, "one.exe", "one --fast");
  t.process_rundown({1'000'101}, 20, 10, "two.exe");
  t.thread_rundown({1'000'102}, 11, 10);
  t.thread_rundown({1'000'103}, 21, 20);
  t.image_rundown({1'000'104}, 10, 0x7FF6'0000'0000);
  for (int i = 0; i < 1500; ++i) {
    const auto cpu = static_cast<std::uint16_t>(i % 3);
    const std::int64_t now = 2'000'000 + 100 * i;
    const std::uint32_t tid = i % 4 == 0 ? 11 : 21;
    t.context_switch({now, cpu}, tid, 0);
    t.page_fault({now + 1, cpu});
    t.sample({now + 2, cpu}, tid);
    t.stack_walk({now + 3, cpu}, now + 2, tid - 1, tid, {1, 2, static_cast<std::uint64_t>(i % 20)});
    if (i % 7 == 0) t.disk_read({now + 4, cpu}, tid, 0x5000u + static_cast<unsigned>(i % 5));
    if (i % 100 == 0) t.end_buffer(cpu);
  }
  for (int i = 0; i < 5; ++i)
    t.file_name({2'000'000 + i, 0}, 0x5000u + static_cast<unsigned>(i), "name");
  for (std::uint16_t i = 0; i < 40; ++i) {
    write::EventFields fields;
    fields.provider = *parse_guid("22fb2cd6-0e7b-422b-a0c7-2fad1fd0e716");
    fields.id = i % 4;
    fields.opcode = static_cast<std::uint8_t>(i % 3);
    fields.task = i % 5;
    fields.channel = static_cast<std::uint8_t>(16 + i % 2);
    t.manifest_event({2'000'050 + i, 1}, fields, 21, 20);
  }
  return t;
}

std::vector<std::pair<std::string, Selection>> selections() {
  const auto provider = parse_provider("22fb2cd6-0e7b-422b-a0c7-2fad1fd0e716");
  EXPECT_TRUE(provider);
  const std::string names[] = {"PageFault/*", "StackWalk/Stack"};
  const Result<NamedKinds> named = NamedKinds::find(names, SchemaCatalog::builtin());
  EXPECT_TRUE(named);
  return {
      {"name", {.processes = {"one.exe"}}},
      {"children", {.processes = {"one.exe"}, .children = true}},
      {"exclude", {.exclude = {"20"}}},
      {"command line", {.command_line = "--fa.t"}},
      {"time", {.from = Moment{true, 0.102, 0}, .to = Moment{true, 0.2, 0}}},
      {"process and time", {.processes = {"two.exe"}, .from = Moment{true, 0.102, 0}}},
      {"provider", {.providers = {*provider}}},
      {"event id", {.events = {2, 0x0F2E}}},
      {"names and stacks", {.events = {0x0424, 0x1820}}},
      {"event name", {.kinds = *named}},
      {"opcode", {.opcodes = {1, 0x2E}}},
      {"channel", {.channels = {17}}},
      {"task", {.tasks = {3}}},
      {"activity", {.activities = {Guid{}}}},
      {"processor", {.processors = {2}}},
      {"nobody", {.processes = {"none.exe"}}},
      {"empty time", {.from = Moment{true, 5, 0}, .to = Moment{true, 4, 0}}},
  };
}

TEST(FilterApi, GivesWhatRelogWrites) {
  const PublicTrace trace = opened({Input::memory("made.etl", two_processes().bytes())});
  for (const auto &[name, selection] : selections())
    expect_as_relogged(trace, selection, name);
}

TEST(FilterApi, GivesWhatRelogWritesOfRealTraces) {
  bool any = false;
  for (const auto &[name, process] : {std::pair("net.4.5.2.x64", "Test.x64*"),
                                      std::pair("diaghub.kernel.1", "dev*"), std::pair("Process", "*.exe")})
    if (const auto path = trace_path(name)) {
      any = true;
      const PublicTrace trace = opened({Input(path->string())});
      expect_as_relogged(trace, {.processes = {process}, .children = true}, name);
      expect_as_relogged(trace, {.events = {0x0F2E}, .processors = {1}}, name);
      expect_as_relogged(trace, {.events = {0x0420, 0x0424, 0x1823, 0x1826}}, name);
    }
  if (!any) GTEST_SKIP() << "no real traces";
}

// Of the archive most is not read for that: process ids mean what they mean there nevertheless.
TEST(FilterApi, OfATimeOfAnArchiveIsThatOfItsTrace) {
  const TempDir directory;
  gen::Options options;
  options.profile = gen::find_profile("medium");
  options.size = 40'000'000;
  options.cpus = 4, options.processes = 16, options.pid_reuse = true;
  const std::string plain = directory.file("x.etl"), packed = directory.file("x.etlz");
  write_file(plain, generated(options));
  ASSERT_TRUE(pack(Input(plain), Output(packed)));
  const PublicTrace trace = opened({Input(plain)}), archive = opened({Input(packed)});
  for (const auto &[from, to] : {std::pair(0.1, 0.3), {5.0, 5.2}, {20.0, 30.0}})
    for (Selection selection : testing::some<Selection>(2, {{.processes = {"game.exe"}},
                                                            {.exclude = {"game.exe"}},
                                                            {.processes = {"s*"}, .children = true},
                                                            {.events = {0x0F2E}}})) {
      selection.from = Moment{true, from, 0}, selection.to = Moment{true, to, 0};
      const Result<Filter> of_trace = Filter::prepare(trace, selection),
                           of_archive = Filter::prepare(archive, selection);
      ASSERT_TRUE(of_trace) << of_trace.error().message();
      ASSERT_TRUE(of_archive) << of_archive.error().message();
      EXPECT_TRUE(std::ranges::equal(of_trace->processes(), of_archive->processes()));
      const std::vector<std::string> expected = events_of(trace, {.filter = &*of_trace});
      EXPECT_GT(expected.size(), 100u) << from;
      EXPECT_TRUE(events_of(archive, {.filter = &*of_archive}) == expected) << from;
    }
}

TEST(FilterApi, KnowsProcessesThatAnotherSourceTellsOf) {
  SyntheticTrace told, user;
  told.process_rundown({1'000'100}, 10, 4, "one.exe");
  told.process_rundown({1'000'101}, 20, 4, "two.exe");
  told.thread_rundown({1'000'102}, 11, 10);
  told.thread_rundown({1'000'103}, 21, 20);
  for (int i = 0; i < 100; ++i)
    user.sample({2'000'000 + i, static_cast<std::uint16_t>(i % 2)}, i % 4 == 0 ? 11 : 21);
  const PublicTrace both =
      opened({Input::memory("kernel.etl", told.bytes()), Input::memory("user.etl", user.bytes())});
  const Result<Lifetimes> lifetimes = Lifetimes::collect(both);
  ASSERT_TRUE(lifetimes) << lifetimes.error().message();
  for (const Lifetimes *known : {static_cast<const Lifetimes *>(nullptr), &*lifetimes}) {
    const Result<Filter> filter = Filter::prepare(both, {.processes = {"one.exe"}}, {}, known);
    ASSERT_TRUE(filter) << filter.error().message();
    ASSERT_EQ(filter->processes().size(), 1u);
    EXPECT_EQ(lifetimes->processes()[filter->processes()[0]].image_name, "one.exe");
    std::uint64_t samples = 0;
    Query query{.filter = &*filter};
    query.kinds.add_kernel(0x0F2E);
    ASSERT_TRUE(both.events(query).for_each([&](const Event &event) {
      EXPECT_EQ(event.position().source, 1u);
      ++samples;
    }));
    EXPECT_EQ(samples, 25u);
  }
}

TEST(FilterApi, IsForTheTraceItWasPreparedFor) {
  const PublicTrace one = opened({Input::memory("one.etl", two_processes().bytes())}),
                    other = opened({Input::memory("other.etl", two_processes().bytes())});
  const Result<Filter> filter = Filter::prepare(one, {.processes = {"one.exe"}});
  ASSERT_TRUE(filter);
  EXPECT_EQ(other.events({.filter = &*filter}).status().error().kind, ErrorKind::usage);
}

// Another trace may lie where the closed one lay.
TEST(FilterApi, OfAClosedTraceIsForNoOther) {
  for (int i = 0; i < 20; ++i) {
    std::optional<PublicTrace> trace = opened({Input::memory("one.etl", two_processes().bytes())});
    const Result<Filter> filter = Filter::prepare(*trace, {.processes = {"one.exe"}});
    ASSERT_TRUE(filter);
    trace.reset();
    const PublicTrace other = opened({Input::memory("other.etl", two_processes().bytes())});
    EXPECT_EQ(other.events({.filter = &*filter}).status().error().kind, ErrorKind::usage);
  }
}

} // namespace
} // namespace etwrelog::testing
