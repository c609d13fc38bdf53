// The flow graph under stress: short runs by the thousand, failures of every kind at random points.
#include "etwrelog/experimental/jobs.hpp"
#include "tests/support/pace.hpp"
#include "tests/support/pipeline_runs.hpp"

#include <gtest/gtest.h>

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <new>
#include <random>
#include <stdexcept>
#include <thread>

namespace etwrelog::pipeline {
namespace {

constexpr int kRounds = testing::kSanitized ? 400 : 3000;

std::uint32_t new_seed() {
  const char *given = std::getenv("ETWRELOG_TEST_SEED"); // NOLINT(concurrency-mt-unsafe)
  return given ? static_cast<std::uint32_t>(std::strtoul(given, nullptr, 10)) : std::random_device{}();
}

// Ends the process with a word when a run hangs: a test that waits for ever says nothing.
class Watchdog {
public:
  explicit Watchdog(std::uint32_t seed, int seconds = 240)
      : thread_([this, seed, seconds] {
          std::unique_lock lock(mutex_);
          if (done_.wait_for(lock, std::chrono::seconds(seconds), [this] { return over_; })) return;
          std::fprintf(stderr, "the graph hangs; seed %u, round %d\n", seed, round.load());
          std::abort();
        }) {}
  ~Watchdog() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    done_.notify_all();
    thread_.join();
  }
  std::atomic<int> round{0};

private:
  std::mutex mutex_;
  std::condition_variable done_;
  bool over_ = false;
  std::thread thread_;
};

Trace tiny_buffers(int count) {
  testing::SyntheticTrace t({.buffer_size = 1024});
  for (int i = 0; i < count; ++i) {
    t.sample({2'000'000 + i, static_cast<std::uint16_t>(i % 3)}, static_cast<std::uint32_t>(i));
    t.end_buffer(static_cast<std::uint16_t>(i % 3));
  }
  return *testing::open_trace(t.bytes());
}

struct NumberedPart {
  std::uint64_t ordinal = 0;
};

enum class Failure { none, error, exception, no_memory, not_an_exception };
enum class Step { work, in_order, finish, last };

struct Plan {
  Failure failure = Failure::none;
  Step step = Step::work;
  std::uint64_t at = 0;
};

Error planned_error(std::uint64_t at) {
  Error error;
  error.what = "planned " + std::to_string(at);
  return error;
}

void fail_here(const Plan &plan) {
  if (plan.failure == Failure::exception) throw std::runtime_error("planned " + std::to_string(plan.at));
  if (plan.failure == Failure::no_memory) throw std::bad_alloc();
  if (plan.failure == Failure::not_an_exception) throw 42;
}

struct Seen {
  std::vector<std::uint64_t> in_order, last;
};

Pass<NumberedPart> make_pass(const Plan &plan, Seen &seen) {
  auto due = [plan](Step step, std::uint64_t ordinal) {
    return plan.failure != Failure::none && plan.step == step && plan.at == ordinal;
  };
  Pass<NumberedPart> pass;
  pass.name = "test";
  pass.work = [=](Batch &batch, NumberedPart &part) {
    part.ordinal = batch.ordinal;
    if (!due(Step::work, batch.ordinal)) return;
    fail_here(plan);
    batch.error = planned_error(plan.at);
  };
  pass.merge = [=, &seen](Batch &batch, NumberedPart &part) -> Result<void> {
    EXPECT_EQ(part.ordinal, batch.ordinal) << "a slot was handed out twice";
    seen.in_order.push_back(batch.ordinal);
    if (!due(Step::in_order, batch.ordinal)) return {};
    fail_here(plan);
    return planned_error(plan.at);
  };
  pass.finish = [=](NumberedPart &part) -> Result<void> {
    if (!due(Step::finish, part.ordinal)) return {};
    fail_here(plan);
    return planned_error(plan.at);
  };
  pass.emit = [=, &seen](NumberedPart &part) -> Result<void> {
    seen.last.push_back(part.ordinal);
    if (!due(Step::last, part.ordinal)) return {};
    fail_here(plan);
    return planned_error(plan.at);
  };
  return pass;
}

void expect_sequence(const std::vector<std::uint64_t> &list) {
  for (std::size_t i = 0; i < list.size(); ++i)
    ASSERT_EQ(list[i], i);
}

TEST(Graph, VisitsEveryBatchInOrderWhateverTheThreads) {
  const Trace trace = tiny_buffers(60);
  for (const unsigned threads : {1u, 2u, 3u, 8u, 33u})
    for (const std::uint64_t batch_bytes : {std::uint64_t{1}, std::uint64_t{200}, std::uint64_t{1} << 30})
      for (const std::uint64_t in_flight : {std::uint64_t{1}, std::uint64_t{1} << 30}) {
        Seen seen;
        PassOptions options;
        options.threads = threads;
        options.batch_bytes = batch_bytes;
        options.in_flight_bytes = in_flight;
        const Result<PassResult> result = run_pass(trace, make_pass({}, seen), options);
        ASSERT_TRUE(result);
        expect_sequence(seen.in_order);
        expect_sequence(seen.last);
        EXPECT_EQ(seen.in_order.size(), result->batches);
        EXPECT_EQ(seen.last.size(), result->batches);
        if (batch_bytes == 1) {
          EXPECT_EQ(result->batches, 61u);
        }
      }
}

TEST(Graph, EndsWithTheErrorOfTheStepThatFailed) {
  const std::uint32_t seed = new_seed();
  std::printf("seed %u\n", seed);
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  Watchdog watchdog(seed);
  constexpr int kBuffers = 24;
  const Trace trace = tiny_buffers(kBuffers - 1);
  for (int round = 0; round < kRounds && !::testing::Test::HasFailure(); ++round) {
    watchdog.round = round;
    const Plan plan{static_cast<Failure>(random() % 5), static_cast<Step>(random() % 4), random() % kBuffers};
    Seen seen;
    PassOptions options;
    options.threads = 1 + random() % 4;
    options.batch_bytes = 1;
    options.in_flight_bytes = random() % 2 == 0 ? 1 : 1 << 20;
    const Result<PassResult> result = run_pass(trace, make_pass(plan, seen), options);
    expect_sequence(seen.in_order);
    expect_sequence(seen.last);
    ASSERT_EQ(static_cast<bool>(result), plan.failure == Failure::none) << round;
    if (result) continue;
    const std::string &what = result.error().what;
    if (plan.failure == Failure::error || plan.failure == Failure::exception) {
      EXPECT_EQ(what, "planned " + std::to_string(plan.at));
    }
    if (plan.failure == Failure::no_memory) {
      EXPECT_EQ(what, "out of memory");
    }
    // What came before the failure was done, nothing behind it.
    if (plan.step == Step::work || plan.step == Step::finish) {
      EXPECT_LE(seen.last.size(), plan.at);
    } else if (plan.step == Step::last) {
      EXPECT_EQ(seen.last.size(), plan.at + 1);
    } else {
      EXPECT_EQ(seen.in_order.size(), plan.at + 1);
    }
  }
}

TEST(Graph, ReportsTheLowestOfManyFailures) {
  const Trace trace = tiny_buffers(40);
  for (int round = 0; round < 100; ++round) {
    Pass<NumberedPart> pass;
    pass.work = [](Batch &batch, NumberedPart &) {
      if (batch.ordinal >= 7) batch.error = planned_error(batch.ordinal);
    };
    PassOptions options;
    options.threads = 4;
    options.batch_bytes = 1;
    const Result<PassResult> result = run_pass(trace, pass, options);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().what, "planned 7");
  }
}

// A batch may fail late while one behind it has failed early: the first in order is told, and all before it
// are done.
TEST(Graph, ReportsTheFirstInOrderWhateverStepFails) {
  const Trace trace = tiny_buffers(40);
  for (int round = 0; round < 100; ++round)
    for (const unsigned threads : {1u, 4u}) {
      Seen seen;
      Pass<NumberedPart> pass = make_pass({Failure::error, Step::last, 9}, seen);
      pass.work = [](Batch &batch, NumberedPart &part) {
        part.ordinal = batch.ordinal;
        if (batch.ordinal >= 11) batch.error = planned_error(batch.ordinal);
      };
      PassOptions options;
      options.threads = threads;
      options.batch_bytes = 1;
      const Result<PassResult> result = run_pass(trace, pass, options);
      ASSERT_FALSE(result);
      EXPECT_EQ(result.error().what, "planned 9");
      EXPECT_EQ(seen.last.size(), 10u);
    }
}

TEST(Graph, OneThreadIsTheCallersOwn) {
  const Trace trace = tiny_buffers(20);
  Pass<NumberedPart> pass;
  std::size_t steps = 0;
  auto here = [&, id = std::this_thread::get_id()] {
    EXPECT_EQ(std::this_thread::get_id(), id);
    ++steps;
  };
  pass.work = [&](Batch &, NumberedPart &) { here(); };
  pass.merge = [&](Batch &, NumberedPart &) -> Result<void> { return here(), Result<void>(); };
  pass.finish = [&](NumberedPart &) -> Result<void> { return here(), Result<void>(); };
  pass.emit = [&](NumberedPart &) -> Result<void> { return here(), Result<void>(); };
  PassOptions options;
  options.threads = 1;
  options.batch_bytes = 1;
  ASSERT_TRUE(run_pass(trace, pass, options));
  EXPECT_EQ(steps, 4u * 21);
}

TEST(Graph, EndsEarlyWhenNothingMoreIsWanted) {
  const Trace trace = tiny_buffers(200);
  for (const unsigned threads : {1u, 4u}) {
    std::atomic<bool> found{false};
    std::size_t merged = 0;
    Pass<NumberedPart> pass;
    pass.work = [](Batch &, NumberedPart &) {};
    pass.merge = [&](Batch &batch, NumberedPart &) -> Result<void> {
      ++merged;
      found = found || batch.ordinal == 5;
      return {};
    };
    pass.enough = [&] { return found.load(); };
    PassOptions options;
    options.threads = threads;
    options.batch_bytes = 1;
    ASSERT_TRUE(run_pass(trace, pass, options));
    EXPECT_GE(merged, 6u);
    EXPECT_LT(merged, 100u);
  }
}

TEST(Graph, TellsProgressUpToTheEnd) {
  const Trace trace = tiny_buffers(50);
  for (const unsigned threads : {1u, 3u}) {
    std::vector<Progress> told;
    PassOptions options;
    options.threads = threads;
    options.batch_bytes = 1;
    options.progress = [&](const Progress &now) { told.push_back(now); };
    Seen seen;
    ASSERT_TRUE(run_pass(trace, make_pass({}, seen), options));
    ASSERT_FALSE(told.empty());
    EXPECT_EQ(told.back().done, told.back().total);
    EXPECT_EQ(told.back().total, trace.stored_bytes());
    EXPECT_EQ(told.back().phase, "test");
    EXPECT_LE(told.size(), 12u) << "not for every batch";
  }
}

TEST(Jobs, AreDoneInOrderOfSizeAndFailAlone) {
  std::vector<experimental::Job> jobs;
  std::atomic<int> done{0};
  for (int i = 0; i < 20; ++i)
    jobs.push_back({[i, &done](const RunOptions &run) -> Result<void> {
                      ++done;
                      EXPECT_EQ(run.threads == 1, i % 5 != 0) << i;
                      if (run.progress) run.progress({"", 5, 10, 0});
                      if (i == 3) return planned_error(3);
                      if (i == 4) throw std::runtime_error("planned 4");
                      if (i == 5) throw 5;
                      return {};
                    },
                    i % 5 == 0 ? 100u : 10u});
  RunOptions run;
  run.threads = 0;
  std::uint64_t last = 0, total = 0;
  run.progress = [&](const Progress &now) {
    EXPECT_GE(now.done, last);
    last = now.done, total = now.total;
  };
  experimental::JobOptions options;
  options.large = 50;
  const std::vector<Result<void>> results = experimental::run_jobs(jobs, run, options);
  EXPECT_EQ(done, 20);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(static_cast<bool>(results[static_cast<std::size_t>(i)]), i != 3 && i != 4 && i != 5) << i;
  }
  EXPECT_EQ(results[4].error().what, "planned 4");
  EXPECT_EQ(last, 4u * 100 + 16 * 10);
  EXPECT_EQ(total, last);
  std::stop_source stop;
  stop.request_stop();
  run.stop = stop.get_token();
  for (const Result<void> &result : experimental::run_jobs(jobs, run, options))
    EXPECT_EQ(result.error().kind, ErrorKind::cancelled);
}

TEST(Graph, StopsWhenCancelledAtAnyPoint) {
  const std::uint32_t seed = new_seed();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  Watchdog watchdog(seed);
  const Trace trace = tiny_buffers(30);
  int cancelled = 0;
  for (int round = 0; round < kRounds / 3; ++round) {
    watchdog.round = round;
    std::stop_source cancel;
    Seen seen;
    Pass<NumberedPart> pass = make_pass({}, seen);
    const std::uint64_t at = random() % 40;
    const auto step = static_cast<Step>(random() % 4);
    auto wrap = [&cancel, at](std::uint64_t ordinal) {
      if (ordinal == at) cancel.request_stop();
    };
    if (step == Step::work)
      pass.work = [inner = pass.work, wrap](Batch &b, NumberedPart &w) { wrap(b.ordinal), inner(b, w); };
    if (step == Step::in_order)
      pass.merge = [inner = pass.merge, wrap](Batch &b, NumberedPart &w) {
        return wrap(b.ordinal), inner(b, w);
      };
    if (step == Step::finish)
      pass.finish = [inner = pass.finish, wrap](NumberedPart &w) { return wrap(w.ordinal), inner(w); };
    if (step == Step::last)
      pass.emit = [inner = pass.emit, wrap](NumberedPart &w) { return wrap(w.ordinal), inner(w); };
    PassOptions options;
    options.threads = 1 + random() % 4;
    options.batch_bytes = 1;
    options.stop = cancel.get_token();
    const Result<PassResult> result = run_pass(trace, pass, options);
    expect_sequence(seen.in_order);
    if (!result) {
      EXPECT_EQ(result.error().kind, ErrorKind::cancelled);
      ++cancelled;
    } else {
      EXPECT_EQ(seen.last.size(), 31u) << "either all or an error";
    }
  }
  EXPECT_GT(cancelled, 0);
}

TEST(Graph, RunsSeveralPassesAtOnce) {
  const Trace trace = tiny_buffers(50);
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int round = 0; round < 20; ++round) {
        Seen seen;
        PassOptions options;
        options.threads = 2;
        options.batch_bytes = 1;
        if (run_pass(trace, make_pass({}, seen), options)) good += seen.last.size() == 51 ? 1 : 0;
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(good, 80);
}

// A relog that fails anywhere leaves no file behind.
TEST(Graph, ACancelledRelogLeavesNothing) {
  testing::SyntheticTrace t({.buffer_size = 1024});
  for (int i = 0; i < 3000; ++i)
    t.sample({2'000'000 + i, 0}, 5);
  const Trace trace = *testing::open_trace(t.bytes());
  for (const bool compressed : {false, true}) {
    const testing::TempDir directory;
    std::stop_source cancel;
    cancel.request_stop();
    RelogOptions options;
    options.output = directory.file("out.etl");
    options.codec = compressed ? Codec::xpress : Codec::none;
    options.graph.stop = cancel.get_token();
    RelogReport report;
    const Result<void> done = relog(trace, options, report);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().kind, ErrorKind::cancelled);
    EXPECT_TRUE(directory.names().empty());
  }
}

TEST(Graph, GivesTheSameBytesWhateverThreadsAndBatches) {
  testing::SyntheticTrace t({.buffer_size = 4096, .codec = Codec::xpress});
  std::mt19937 random(5);
  for (int i = 0; i < 5000; ++i)
    t.sample({2'000'000 + i, static_cast<std::uint16_t>(random() % 5)}, random() % 9, random());
  for (const bool keep : {false, true}) {
    std::vector<std::uint8_t> first;
    for (const unsigned threads : {1u, 2u, 8u})
      for (const std::uint64_t batch : {std::uint64_t{1}, std::uint64_t{9000}, std::uint64_t{2} << 20}) {
        RelogOptions options;
        options.keep_grouping = keep;
        options.graph.threads = threads;
        options.graph.batch_bytes = batch;
        const testing::Relogged r = testing::relog_bytes(t.bytes(), options);
        ASSERT_FALSE(r.error);
        if (first.empty()) first = r.bytes;
        ASSERT_EQ(r.bytes, first) << threads << " threads, batches of " << batch;
      }
  }
}

} // namespace
} // namespace etwrelog::pipeline
