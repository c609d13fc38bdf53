// The stack table: repeated look-ups, the scaling of a hit-heavy stream, inserts, and bytes a stack.
#include "stacks/stack_table.hpp"
#include "tests/support/stack_samples.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <thread>

namespace {

using namespace etwrelog;
using stacks::StackTable;

// `count` distinct stacks of exactly 20 frames.
std::vector<test::Stack> stacks_of_20(std::size_t count) {
  test::StackSource source(11);
  StackTable distinct;
  std::vector<test::Stack> stacks;
  while (stacks.size() < count) {
    test::Stack stack = source.next(60);
    if (stack.size() < 20) continue;
    stack.erase(stack.begin(), stack.end() - 20);
    const std::uint32_t before = distinct.size();
    if (distinct.intern(stack, 8) == before) stacks.push_back(std::move(stack));
  }
  return stacks;
}

// Which stack each event has: repeats follow a Zipf-like law, as in real traces.
std::vector<std::uint32_t> popular(std::size_t events, std::size_t stacks) {
  std::mt19937_64 random(5);
  std::vector<std::uint32_t> order(events);
  for (auto &index : order) {
    const double u = double(random() >> 11) / 9007199254740992.0;
    index = static_cast<std::uint32_t>(std::min<double>(double(stacks) - 1, std::pow(double(stacks), u) - 1));
  }
  return order;
}

struct Stream {
  std::vector<std::uint64_t> frames; // 20 an event, one after the other as in a buffer
  StackTable table;
  Stream(std::size_t distinct, std::size_t events) {
    const auto stacks = stacks_of_20(distinct);
    for (const std::uint32_t i : popular(events, distinct))
      frames.insert(frames.end(), stacks[i].begin(), stacks[i].end());
    for (const auto &stack : stacks)
      benchmark::DoNotOptimize(table.intern(stack, 8));
  }
};

void BM_Hit(benchmark::State &state) {
  static std::unique_ptr<Stream> stream;
  if (state.thread_index() == 0)
    stream = std::make_unique<Stream>(static_cast<std::size_t>(state.range(0)),
                                      static_cast<std::size_t>(state.range(1)));
  std::size_t at = static_cast<std::size_t>(state.thread_index()) * 1000;
  stacks::StackId sum = 0;
  for (auto _ : state) {
    const std::size_t events = stream->frames.size() / 20;
    for (std::size_t i = 0; i < 4096; ++i, at = at + 1 == events ? 0 : at + 1)
      sum += stream->table.intern({&stream->frames[at * 20], 20}, 8);
  }
  benchmark::DoNotOptimize(sum);
  state.SetItemsProcessed(state.iterations() * 4096);
  state.counters["lookups/s/core"] =
      benchmark::Counter(double(state.iterations()) * 4096, benchmark::Counter::kAvgThreadsRate);
}
// Events in cache as a decoded batch has them; then from memory.
BENCHMARK(BM_Hit)
    ->Args({1000, 4096})
    ->Args({30000, 4096})
    ->Args({1000, 1 << 17})
    ->Args({30000, 1 << 17})
    ->Args({300000, 1 << 17})
    ->Args({300000, 1 << 20})
    ->Threads(1)
    ->Threads(2)
    ->UseRealTime();

// The same, a buffer's stacks at a time.
void BM_HitMany(benchmark::State &state) {
  static std::unique_ptr<Stream> stream;
  if (state.thread_index() == 0)
    stream = std::make_unique<Stream>(static_cast<std::size_t>(state.range(0)),
                                      static_cast<std::size_t>(state.range(1)));
  constexpr std::size_t kBuffer = 256;
  std::vector<stacks::StackQuery> queries(kBuffer);
  std::vector<stacks::StackId> ids(kBuffer);
  std::size_t at = static_cast<std::size_t>(state.thread_index()) * 1024;
  stacks::StackId sum = 0;
  for (auto _ : state) {
    const std::size_t events = stream->frames.size() / 20;
    for (std::size_t i = 0; i < 4096 / kBuffer; ++i) {
      for (stacks::StackQuery &query : queries) {
        query = {{&stream->frames[at * 20], 20}, 8};
        at = at + 1 == events ? 0 : at + 1;
      }
      stream->table.intern(queries, ids.data());
      sum += ids.back();
    }
  }
  benchmark::DoNotOptimize(sum);
  state.SetItemsProcessed(state.iterations() * 4096);
  state.counters["lookups/s/core"] =
      benchmark::Counter(double(state.iterations()) * 4096, benchmark::Counter::kAvgThreadsRate);
}
BENCHMARK(BM_HitMany)
    ->Args({1000, 4096})
    ->Args({30000, 4096})
    ->Args({1000, 1 << 17})
    ->Args({30000, 1 << 17})
    ->Args({300000, 1 << 17})
    ->Args({300000, 1 << 20})
    ->Threads(1)
    ->Threads(2)
    ->UseRealTime();

// A hit-heavy stream from nothing: 27 uses a stack on average, as in the published traces, over 1 or 2
// threads.
void BM_Stream(benchmark::State &state) {
  const auto stacks = stacks_of_20(40000);
  const auto order = popular(27 * stacks.size(), stacks.size());
  const auto threads = static_cast<std::size_t>(state.range(0));
  for (auto _ : state) {
    StackTable table;
    std::vector<std::thread> workers;
    for (std::size_t t = 0; t < threads; ++t)
      workers.emplace_back([&, t] {
        for (std::size_t i = t; i < order.size(); i += threads)
          benchmark::DoNotOptimize(table.intern(stacks[order[i]], 8));
      });
    for (auto &worker : workers)
      worker.join();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(order.size()));
}
BENCHMARK(BM_Stream)->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond)->UseRealTime();

void BM_Insert(benchmark::State &state) {
  const auto stacks = stacks_of_20(100000);
  for (auto _ : state) {
    auto table = std::make_unique<StackTable>();
    for (const auto &stack : stacks)
      benchmark::DoNotOptimize(table->intern(stack, 8));
    state.counters["bytes/stack"] = double(table->memory().total()) / table->size();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(stacks.size()));
}
BENCHMARK(BM_Insert)->Unit(benchmark::kMillisecond);

} // namespace

BENCHMARK_MAIN();
