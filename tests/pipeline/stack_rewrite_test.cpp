// relog --stacks: whatever becomes of references and definitions, every event keeps its stack.
#include "etwrelog/statistics.hpp"
#include "etwrelog/trace.hpp"
#include "output/relog.hpp"
#include "passes/stack_report.hpp"
#include "stacks/stack_cache_sim.hpp"
#include "stacks/stack_events.hpp"
#include "tests/support/classic_headers.hpp"
#include "tests/support/read_file.hpp"
#include "tests/support/stack_samples.hpp"
#include "tests/support/trace_files.hpp"
#include "write/event_builder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <unistd.h>

namespace etwrelog::stack_rewrite_test {
namespace {

using namespace stacks;
using pipeline::StackMode;
using pipeline::Trace;
using test::Stack;

using Bytes8 = std::vector<std::uint8_t>;

// --- A trace with stacks of all kinds
// --------------------------------------------------------------------------

struct Recipe {
  std::uint64_t seed = 1;
  int events = 6000;
  bool plain = true, cached = true; // which stack events there are
  bool rundown = true;              // false: the last references have no definition
  unsigned pointer_size = 8;
  bool classic = false; // kernel events with classic headers
};

class TraceMaker {
public:
  explicit TraceMaker(const Recipe &recipe)
      : recipe_(recipe), random_(recipe.seed), source_(recipe.seed, recipe.pointer_size),
        cache_(tiny_cache(recipe)), streams_(3) {}

  Bytes8 make() {
    LogfileHeader header;
    header.buffer_size = kNominal;
    header.major = 10;
    header.processors = static_cast<std::uint32_t>(streams_.size());
    header.log_file_mode = format::kModeSequential;
    header.perf_freq = 10'000'000;
    header.start_time = 133'000'000'000'000'000;
    header.end_time = header.start_time + 100'000'000;
    header.first_stamp = time_;
    header.pointer_size = recipe_.pointer_size;
    set_log_version(header, false);
    Bytes8 event = make_logfile_header(header, 4, 4);
    file_ = write::make_header_buffer({event, {}}, kNominal, false);
    for (const std::uint32_t process : {40u, 44u}) {
      write::EventBuilder e(streams_[0]);
      e.system(0x0303, 4, recipe_.pointer_size, 4, 4, time_)
          .value(0xFFFF'9000'0000'0000ull | process)
          .value(process)
          .rest()
          .finish();
    }
    for (std::uint32_t thread = 100; thread < 120; thread += 4)
      write::EventBuilder(streams_[0])
          .system(0x0503, 3, recipe_.pointer_size, 4, 4, time_)
          .value(process_of(thread))
          .value(thread)
          .rest()
          .finish();
    for (int i = 0; i < recipe_.events; ++i)
      one_event();
    if (recipe_.rundown) {
      tick();
      cache_.run_down(
          [&](std::uint64_t key, stacks::Frames frames) { define(0, kHookKeyRundown, key, frames); });
    }
    for (std::size_t cpu = 0; cpu < streams_.size(); ++cpu)
      flush(cpu);
    return recipe_.classic ? testing::with_classic_headers(file_) : std::move(file_);
  }

private:
  static constexpr std::uint32_t kNominal = 64 << 10;

  static StackCacheSim tiny_cache(const Recipe &recipe) {
    StackCacheSim::Options options;
    options.buckets = 8;
    options.bytes = 40 * StackCacheSim::kPieceBytes;
    options.pointer_size = recipe.pointer_size;
    return StackCacheSim(options);
  }
  static std::uint32_t process_of(std::uint32_t thread) { return thread < 108 ? 40u : 44u; }
  void tick() { time_ += 1 + static_cast<std::int64_t>(random_() % 40); }

  void one_event() {
    const std::size_t cpu = random_() % streams_.size();
    const auto thread = static_cast<std::uint32_t>(100 + random_() % 5 * 4), process = process_of(thread);
    tick();
    write::EventBuilder(streams_[cpu])
        .perfinfo(0x0F2E, 2, recipe_.pointer_size, time_)
        .value(0x1234)
        .value(thread)
        .value(1)
        .finish();
    const std::int64_t sampled = time_;
    const Stack stack = source_.next(50, 12);
    if (random_() % 3 != 0) tick();
    const bool plain = recipe_.plain && (!recipe_.cached || random_() % 2 == 0);
    if (plain || !recipe_.cached) {
      if (recipe_.plain) walk(cpu, sampled, process, thread, stack);
    } else {
      const StackCacheSim::Outcome outcome = cache_.insert(stack);
      if (outcome.evicted) {
        const std::size_t other = random_() % streams_.size();
        tick();
        define(other, kHookKeyDelete, outcome.evicted_key, outcome.evicted_frames);
        tick();
      }
      if (outcome.kind == StackCacheSim::Kind::plain) {
        walk(cpu, sampled, process, thread, stack);
      } else {
        const bool kernel = is_kernel_stack(stack, recipe_.pointer_size);
        write::EventBuilder(streams_[cpu])
            .perfinfo(kernel ? kHookReferenceKernel : kHookReferenceUser, 2, recipe_.pointer_size, time_)
            .value(static_cast<std::uint64_t>(sampled))
            .value(process)
            .value(thread)
            .value(outcome.key)
            .finish();
      }
    }
    if (streams_[cpu].size() > 2000 + random_() % 12000) flush(cpu);
  }

  void walk(std::size_t cpu, std::int64_t sampled, std::uint32_t process, std::uint32_t thread,
            const Stack &stack) {
    write::EventBuilder e(streams_[cpu]);
    const std::uint64_t counters[] = {7, 8};
    e.perfinfo(kHookStackWalk, 2, recipe_.pointer_size, time_,
               random_() % 50 == 0 ? std::span<const std::uint64_t>(counters)
                                   : std::span<const std::uint64_t>());
    e.value(static_cast<std::uint64_t>(sampled)).value(process).value(thread).stack(stack).finish();
  }
  void define(std::size_t cpu, std::uint16_t hook, std::uint64_t key, stacks::Frames frames) {
    write::EventBuilder(streams_[cpu])
        .perfinfo(hook, 2, recipe_.pointer_size, time_)
        .value(key)
        .stack(frames)
        .finish();
  }

  void flush(std::size_t cpu) {
    if (streams_[cpu].empty()) return;
    write::OutputBuffer buffer;
    buffer.processor = static_cast<std::uint16_t>(cpu);
    buffer.bytes.resize(format::kBufferHeaderSize, 0);
    buffer.bytes.append(streams_[cpu]);
    buffer.sequence = sequence_++;
    base::RawMemory scratch;
    write::seal(buffer, kNominal, nullptr, scratch);
    file_.insert(file_.end(), buffer.bytes.begin(), buffer.bytes.end());
    streams_[cpu].clear();
  }

  Recipe recipe_;
  std::mt19937_64 random_;
  test::StackSource source_;
  StackCacheSim cache_;
  std::vector<Bytes8> streams_;
  Bytes8 file_;
  std::int64_t time_ = 1'000'000, sequence_ = 1;
};

// --- A reader that knows nothing but the rules
// -------------------------------------------------------------------

struct StackOfEvent {
  std::uint16_t processor;
  std::int64_t time, event_time;
  std::uint32_t process, thread;
  Stack frames;
  auto operator<=>(const StackOfEvent &) const = default;
};

struct Reading {
  std::vector<StackOfEvent> stacks;       // sorted
  std::map<std::uint16_t, Bytes8> others; // other events by processor, in order; the header event left out
  std::set<std::uint64_t> keys;           // that are defined
  std::size_t walks = 0, references = 0, definitions = 0, unresolved = 0, unused = 0, most_pending = 0;
  std::size_t classic = 0; // walks and references with classic headers
  bool ascending = true, later = true;
};

Trace open_bytes(Bytes8 bytes) {
  Result<Trace> trace = Trace::open(read::memory_input("test.etl", std::move(bytes)), {false, true});
  if (!trace) throw std::runtime_error(trace.error().message());
  return *std::move(trace);
}

Reading read_stacks(Bytes8 bytes) {
  struct Seen {
    std::int64_t time;
    std::size_t order;
    std::uint16_t processor;
    std::uint16_t hook;
    StackFields fields;
    Stack frames;
  };
  const Trace trace = open_bytes(std::move(bytes));
  Reading reading;
  std::vector<Seen> seen;
  std::map<std::uint16_t, std::int64_t> last;
  for (std::size_t i = 0; i < trace.buffers().size(); ++i) {
    pipeline::Batch batch;
    batch.first = i;
    batch.count = 1;
    trace.load(batch);
    if (batch.error) throw std::runtime_error(batch.error->message());
    for (const pipeline::DecodedBuffer &buffer : batch.buffers) {
      const std::uint16_t cpu = buffer.header.processor();
      trace.visit(batch, buffer, [&](const EventView &event, std::int64_t time, std::uint32_t at) {
        if (i == 0 && at == 0) return;
        if (last.contains(cpu) && time < last[cpu]) reading.ascending = false;
        last[cpu] = time;
        const StackEventKind kind = stack_event_kind(event);
        if (kind == StackEventKind::none) {
          Bytes8 &others = reading.others[cpu];
          others.insert(others.end(), event.bytes().begin(), event.bytes().end());
          others.resize(align8(others.size()));
          return;
        }
        Seen &s = seen.emplace_back(Seen{time, seen.size(), cpu, kernel::hook_of(event).value(), {}, {}});
        if (kind != StackEventKind::definition && event.is_classic()) ++reading.classic;
        if (!parse_stack_event(event, kind, s.fields)) throw std::runtime_error("bad stack event");
        load_frames(s.fields.frames, event.pointer_size(), s.frames);
      });
    }
  }
  std::ranges::sort(seen, {}, [](const Seen &s) { return std::pair(s.time, s.order); });
  std::map<std::uint64_t, std::vector<const Seen *>> pending;
  std::size_t waiting = 0;
  for (const Seen &s : seen) {
    if (s.hook == kHookKeyDelete || s.hook == kHookKeyRundown) {
      ++reading.definitions;
      reading.keys.insert(s.fields.key);
      std::vector<const Seen *> &references = pending[s.fields.key];
      if (references.empty()) ++reading.unused;
      for (const Seen *r : references) {
        if (r->time >= s.time && r->processor != s.processor) reading.later = false;
        reading.stacks.push_back({r->processor, r->time, r->fields.event_time, r->fields.process_id,
                                  r->fields.thread_id, s.frames});
      }
      waiting -= references.size();
      references.clear();
      continue;
    }
    if (s.hook == kHookStackWalk) {
      ++reading.walks;
      reading.stacks.push_back(
          {s.processor, s.time, s.fields.event_time, s.fields.process_id, s.fields.thread_id, s.frames});
      continue;
    }
    ++reading.references;
    pending[s.fields.key].push_back(&s);
    reading.most_pending = std::max(reading.most_pending, ++waiting);
  }
  reading.unresolved = waiting;
  std::ranges::sort(reading.stacks);
  return reading;
}

// --- Relogging in a directory of its own
// --------------------------------------------------------------------------

class StackRewrite : public ::testing::Test {
protected:
  StackRewrite()
      : dir_(std::filesystem::temp_directory_path() / ("etwrelog-stacks-" + std::to_string(getpid()))) {
    std::filesystem::create_directories(dir_);
  }
  ~StackRewrite() override {
    std::error_code ignored;
    std::filesystem::remove_all(dir_, ignored);
  }

  Bytes8 relog(const Bytes8 &input, pipeline::RelogOptions options) {
    options.output = (dir_ / "out.etl").string();
    options.replace_output = true;
    options.graph.batch_bytes = 32 << 10; // many batches
    const Trace trace = open_bytes(input);
    report = {};
    const Result<void> done = pipeline::relog(trace, options, report);
    if (!done) throw std::runtime_error(done.error().message());
    return testing::read_file(options.output);
  }
  Bytes8 relog(const Bytes8 &input, StackMode mode) {
    pipeline::RelogOptions options;
    options.stacks.mode = mode;
    return relog(input, options);
  }

  pipeline::RelogReport report;

private:
  std::filesystem::path dir_;
};

void expect_same(const Reading &before, const Reading &after) {
  EXPECT_EQ(before.stacks, after.stacks);
  EXPECT_EQ(before.others, after.others);
  EXPECT_EQ(before.classic, after.classic);
  EXPECT_EQ(after.unresolved, 0u);
  EXPECT_TRUE(after.ascending);
  EXPECT_TRUE(after.later);
}

class StackRewriteOf : public StackRewrite, public ::testing::WithParamInterface<Recipe> {};

TEST_P(StackRewriteOf, KeepsTheStackOfEveryEvent) {
  const Bytes8 trace = TraceMaker(GetParam()).make();
  const Reading original = read_stacks(trace);
  ASSERT_GT(original.stacks.size(), 1000u);
  ASSERT_EQ(original.unresolved, 0u);

  const Bytes8 cached = relog(trace, StackMode::cache);
  const std::uint64_t cached_bytes = report.event_bytes_out;
  const Bytes8 expanded = relog(trace, StackMode::expand);
  EXPECT_LT(cached_bytes, report.event_bytes_out);
  const Reading of_cached = read_stacks(cached), of_expanded = read_stacks(expanded);
  expect_same(original, of_cached);
  EXPECT_GT(of_cached.references, of_cached.walks);
  EXPECT_EQ(of_cached.unused, 0u);
  expect_same(original, of_expanded);
  EXPECT_EQ(of_expanded.references + of_expanded.definitions, 0u);

  expect_same(original, read_stacks(relog(cached, StackMode::expand)));
  const Reading again = read_stacks(relog(expanded, StackMode::cache));
  expect_same(original, again);
  EXPECT_EQ(again.definitions, of_cached.definitions);
  EXPECT_EQ(report.stacks.references_out, again.references);
  EXPECT_EQ(report.stacks.definitions_out, again.definitions);
}

INSTANTIATE_TEST_SUITE_P(
    Recipes, StackRewriteOf,
    ::testing::Values(Recipe{1, 6000, true, true, true, 8}, Recipe{2, 6000, true, false, true, 8},
                      Recipe{3, 6000, false, true, true, 8}, Recipe{4, 6000, true, true, true, 4},
                      Recipe{5, 6000, true, true, true, 8, true}, Recipe{6, 6000, false, true, true, 8, true},
                      Recipe{7, 6000, true, true, true, 4, true}));

TEST_F(StackRewrite, GivesTheSameBytesForAnyNumberOfThreads) {
  const Bytes8 trace = TraceMaker({5, 12000}).make();
  const Reading original = read_stacks(trace);
  for (const bool tight : {false, true}) {
    Bytes8 first;
    for (const unsigned threads : {1u, 2u, 4u, 4u}) {
      pipeline::RelogOptions options;
      options.stacks.mode = StackMode::cache;
      if (tight) {
        options.stacks.window = 100;
        options.stacks.memory = 20'000;
      }
      options.graph.threads = threads;
      const Bytes8 bytes = relog(trace, options);
      if (first.empty()) first = bytes;
      EXPECT_TRUE(bytes == first) << threads;
    }
    EXPECT_EQ(report.stacks.restarts > 0, tight);
    expect_same(original, read_stacks(first));
  }
}

TEST_F(StackRewrite, BoundsTheReferencesThatWait) {
  const Bytes8 trace = TraceMaker({6, 12000, true, false}).make();
  pipeline::RelogOptions options;
  options.stacks.mode = StackMode::cache;
  const Reading wide = read_stacks(relog(trace, options));
  EXPECT_EQ(wide.most_pending, wide.references);
  options.stacks.window = 500;
  const Reading narrow = read_stacks(relog(trace, options));
  // Definitions wait for the next buffer of a processor that has got past the last reference.
  EXPECT_LT(narrow.most_pending, 500u + 1500u);
  EXPECT_GT(narrow.definitions, wide.definitions);
  EXPECT_EQ(narrow.stacks, wide.stacks);
}

TEST_F(StackRewrite, DefinesOnlyStacksOfKeptEvents) {
  const Bytes8 trace = TraceMaker({7, 6000}).make();
  pipeline::RelogOptions options;
  options.selection.processes = {"40"};
  const Reading filtered = read_stacks(relog(trace, options));
  options.stacks.mode = StackMode::cache;
  const Reading cached = read_stacks(relog(trace, options));
  options.stacks.mode = StackMode::expand;
  const Reading expanded = read_stacks(relog(trace, options));
  ASSERT_GT(filtered.stacks.size(), 500u);
  ASSERT_LT(filtered.stacks.size(), 5000u);
  expect_same(filtered, cached);
  expect_same(filtered, expanded);
  EXPECT_EQ(cached.unused, 0u);
}

TEST_F(StackRewrite, TheReportTellsByTypeWhatTheOutputHas) {
  const Bytes8 plain = TraceMaker({12, 3000}).make(),
               cached = TraceMaker({13, 3000, true, true, false}).make(),
               classic = TraceMaker({14, 3000, true, true, true, 8, true}).make();
  for (const Bytes8 &trace : {plain, cached, classic})
    for (const StackMode mode :
         {StackMode::keep, StackMode::cache, StackMode::cache_native, StackMode::expand}) {
      pipeline::RelogOptions options;
      options.stacks.mode = mode;
      options.count = true;
      const Bytes8 out = relog(trace, options);
      const Result<etwrelog::Trace> opened = etwrelog::Trace::open(Input::memory("out.etl", out));
      ASSERT_TRUE(opened);
      const Result<Statistics> counted = collect_statistics(*opened);
      ASSERT_TRUE(counted);
      std::map<EventType, std::pair<std::uint64_t, std::uint64_t>> expected, found;
      for (const TypeStatistics &type : counted->types)
        expected[type.type] = {type.events, type.bytes};
      for (const schema::TypeCount &type : report.types.rows())
        if (type.kept_events != 0) found[type.type] = {type.kept_events, type.kept_bytes};
      EXPECT_EQ(found, expected);
      EXPECT_EQ(report.events_out, counted->events);
      EXPECT_EQ(report.event_bytes_out, counted->event_bytes);
    }
}

TEST_F(StackRewrite, LeavesReferencesWithoutADefinitionAlone) {
  const Bytes8 trace = TraceMaker({8, 3000, true, true, false}).make();
  const Reading original = read_stacks(trace);
  ASSERT_GT(original.unresolved, 0u);
  for (const StackMode mode : {StackMode::cache, StackMode::expand}) {
    const Reading after = read_stacks(relog(trace, mode));
    EXPECT_EQ(after.stacks, original.stacks);
    EXPECT_EQ(after.unresolved, original.unresolved);
    EXPECT_EQ(report.stacks.unresolved, original.unresolved);
    EXPECT_FALSE(report.warnings.empty());
  }
}

// Keys of an earlier run whose definitions were lost mean nothing, and go on doing so.
TEST_F(StackRewrite, GivesNoKeyAgainThatHasLostItsDefinition) {
  pipeline::RelogOptions often;
  often.stacks.mode = StackMode::cache;
  often.stacks.window = 300;
  Bytes8 cut = relog(TraceMaker({10, 6000, true, false}).make(), often);
  const std::vector<read::BufferSpan> buffers = open_bytes(cut).scan().buffers;
  cut.resize(buffers[buffers.size() * 2 / 3].offset);
  const Reading lost = read_stacks(cut);
  ASSERT_GT(lost.unresolved, 50u);
  const Reading after = read_stacks(relog(cut, often));
  EXPECT_EQ(after.stacks, lost.stacks);
  EXPECT_EQ(after.unresolved, lost.unresolved);
}

// They may be taken together as traces of one machine.
TEST_F(StackRewrite, TwoTracesHaveNoKeyInCommon) {
  std::set<std::uint64_t> keys;
  std::size_t definitions = 0;
  for (const unsigned seed : {11u, 12u}) {
    const Reading cached = read_stacks(relog(TraceMaker({seed, 3000, true, false}).make(), StackMode::cache));
    EXPECT_GT(cached.keys.size(), 100u);
    keys.insert(cached.keys.begin(), cached.keys.end());
    definitions += cached.keys.size();
  }
  EXPECT_EQ(keys.size(), definitions);
}

TEST_F(StackRewrite, ChangesNoStackEventWhenStacksAreKept) {
  const Bytes8 trace = TraceMaker({9, 3000}).make();
  const Reading original = read_stacks(trace), kept = read_stacks(relog(trace, StackMode::keep));
  expect_same(original, kept);
  EXPECT_EQ(kept.references, original.references);
  EXPECT_EQ(kept.definitions, original.definitions);
}

TEST_F(StackRewrite, HoldsOnTheRealTrace) {
  const auto path = testing::trace_path("net.4.5.2.x64");
  if (!path) GTEST_SKIP() << "net.4.5.2.x64.etl is not there";
  const Bytes8 trace = testing::read_file(path->string());
  const Reading original = read_stacks(trace);
  EXPECT_EQ(original.references, 9107u);
  EXPECT_EQ(original.definitions, 2921u);
  EXPECT_EQ(original.unresolved, 0u);
  StackTable table; // the real mix, at the default number of shards
  for (const StackOfEvent &stack : original.stacks)
    ASSERT_NE(table.intern(stack.frames, 8), kNoStack);
  EXPECT_EQ(table.size(), 2375u);
  EXPECT_LT(double(table.memory().total()) / table.size(), 100);

  const Bytes8 cached = relog(trace, StackMode::cache), expanded = relog(trace, StackMode::expand);
  expect_same(original, read_stacks(cached));
  expect_same(original, read_stacks(expanded));
  expect_same(original, read_stacks(relog(cached, StackMode::expand)));
  expect_same(original, read_stacks(relog(expanded, StackMode::cache)));
  const Reading native = read_stacks(relog(trace, StackMode::cache_native));
  expect_same(original, native);
  EXPECT_GT(native.walks, 1000u); // Test.x64.exe is a .NET program
  EXPECT_GT(native.references, 1000u);
}

// --- The report
// -----------------------------------------------------------------------------------------------------

TEST(StackReport, CountsTheRealTrace) {
  const auto path = testing::trace_path("net.4.5.2.x64");
  if (!path) GTEST_SKIP() << "net.4.5.2.x64.etl is not there";
  const Result<Trace> trace = Trace::open(path->string(), {false, true});
  ASSERT_TRUE(trace);
  pipeline::StackReportOptions options;
  options.simulate.push_back({});
  const Result<etwrelog::StackReport> report = pipeline::report_stacks(*trace, options, {});
  ASSERT_TRUE(report);
  const auto &kernel = report->kinds[static_cast<std::size_t>(StackKind::reference_kernel)];
  const auto &user = report->kinds[static_cast<std::size_t>(StackKind::reference_user)];
  EXPECT_EQ(kernel.events + user.events, 9107u);
  EXPECT_EQ(kernel.frames + user.frames, 200'525u);
  EXPECT_EQ(kernel.distinct + user.distinct, 2272u);
  EXPECT_EQ(report->definitions, 2921u);
  EXPECT_EQ(report->keys, 1077u);
  EXPECT_EQ(report->unresolved, 0u);
  EXPECT_EQ(report->kernel_stacks.distinct, 2375u);
  EXPECT_EQ(report->kinds[static_cast<std::size_t>(StackKind::item)].events, 655u);
  EXPECT_EQ(report->kinds[static_cast<std::size_t>(StackKind::clr)].events, 14'983u);
  std::uint64_t events = 0;
  for (const auto &[pid, group] : report->processes)
    events += group.events;
  EXPECT_EQ(events, report->all.events);
  // Windows logged 2,921 definitions for 9,107 of the 9,359 stacks; here all of them go through the cache.
  ASSERT_EQ(report->simulations.size(), 1u);
  EXPECT_NEAR(double(report->simulations[0].definitions), 2921, 0.1 * 2921);
}

TEST(StackReport, CountsAMadeTrace) {
  const Bytes8 bytes = TraceMaker({10, 5000}).make();
  const Reading reading = read_stacks(bytes);
  std::map<Stack, std::uint64_t> model;
  std::uint64_t frames = 0;
  for (const StackOfEvent &s : reading.stacks) {
    ++model[s.frames];
    frames += s.frames.size();
  }
  const Trace trace = open_bytes(bytes);
  Bytes8 database;
  StackDatabaseWriter writer(
      [&](Bytes piece) -> Result<void> {
        database.insert(database.end(), piece.begin(), piece.end());
        return {};
      },
      8, 3);
  pipeline::StackReportOptions options;
  options.database = &writer;
  options.top = 1;
  const Result<etwrelog::StackReport> report = pipeline::report_stacks(trace, options, {});
  ASSERT_TRUE(report);
  EXPECT_EQ(report->kernel_stacks.events, reading.stacks.size());
  EXPECT_EQ(report->kernel_stacks.distinct, model.size());
  EXPECT_EQ(report->kernel_stacks.frames, frames);
  const auto most = std::ranges::max_element(model, {}, [](const auto &row) { return row.second; });
  EXPECT_EQ(report->top.at(0).count, most->second);
  std::uint64_t stacks = 0;
  for (const auto &row : report->repeats)
    stacks += row.stacks;
  EXPECT_EQ(stacks, model.size());

  const Result<StackDatabase> back = read_stack_database(database);
  ASSERT_TRUE(back);
  std::map<Stack, std::uint64_t> exported;
  for (const StackReference &r : back->references)
    ++exported[back->stacks[r.stack]];
  EXPECT_EQ(exported, model);
}

} // namespace
} // namespace etwrelog::stack_rewrite_test
