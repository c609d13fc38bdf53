// The main job against a plain copy of the same file: a trace grown to about a gigabyte by repeating its
// buffers, warm cache, one and two threads. TraceLoggingTester.etl when the real traces are there
// (ETWRELOG_SHARED), else a trace that the test support builds. ETWRELOG_BENCH_BYTES changes the size.
//
// Compare within one run only: every row reports its ratio to BM_Copy, whose best time so far it takes.
#include "etwrelog/codec.hpp"
#include "output/relog.hpp"
#include "output/trace_output.hpp"
#include "passes/statistics.hpp"
#include "tests/support/read_file.hpp"
#include "tests/support/synthetic_trace.hpp"
#include "tests/support/trace_files.hpp"
#include "tools/process.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include <benchmark/benchmark.h>
#include <fmt/format.h>

namespace etwrelog {
namespace {

namespace fs = std::filesystem;

std::vector<std::uint8_t> small_trace() {
  if (const auto path = testing::trace_path("TraceLoggingTester")) return testing::read_file(path->string());
  testing::TraceOptions options;
  options.buffer_size = 1u << 20;
  testing::SyntheticTrace trace(options);
  for (std::uint32_t p = 0; p < 64; ++p)
    trace.process_start({2'000'000}, 1000 + 4 * p, 4, fmt::format("p{}.exe", p));
  for (std::uint32_t p = 0; p < 64; ++p)
    trace.thread_start({2'000'001}, 20'000 + 4 * p, 1000 + 4 * p);
  for (std::int64_t i = 0; i < 800'000; ++i)
    trace.sample({2'000'002 + i, static_cast<std::uint16_t>(i % 4)},
                 20'000 + 4 * static_cast<std::uint32_t>(i % 64),
                 0x7FF6'0000'0000 + static_cast<std::uint64_t>(i) * 64);
  return trace.bytes();
}

// The first buffer once, the others over and over.
class GrownTrace {
public:
  GrownTrace()
      : directory_(fs::temp_directory_path() / fmt::format("etwrelog-bench-{}", base::process_id())) {
    fs::create_directories(directory_);
    const std::vector<std::uint8_t> trace = small_trace();
    const std::size_t first = format::load_buffer_header(trace.data()).buffer_size;
    const char *wanted = std::getenv("ETWRELOG_BENCH_BYTES");
    const std::uint64_t bytes = wanted ? std::strtoull(wanted, nullptr, 10) : 1'000'000'000;
    std::ofstream file(path(), std::ios::binary);
    const auto write = [&file](Bytes part) {
      file.write(reinterpret_cast<const char *>(part.data()), static_cast<std::streamsize>(part.size()));
    };
    write(Bytes(trace).first(first));
    for (std::uint64_t size = first; size < bytes; size += trace.size() - first)
      write(Bytes(trace).subspan(first));
  }
  ~GrownTrace() {
    std::error_code ignored;
    fs::remove_all(directory_, ignored);
  }
  [[nodiscard]] std::string path() const { return (directory_ / "in.etl").string(); }
  [[nodiscard]] std::string output() const { return (directory_ / "out.etl").string(); }
  [[nodiscard]] std::uint64_t size() const { return fs::file_size(path()); }

private:
  fs::path directory_;
};

GrownTrace &grown() {
  static GrownTrace trace;
  return trace;
}

// The process with the most events but for idle and system, so that there is something to write.
std::string busiest_process() {
  static const std::string pid = [] {
    auto trace = pipeline::Trace::open(grown().path(), {});
    auto statistics = pipeline::collect_statistics(*trace, {});
    std::size_t best = 0;
    for (std::size_t i = 1; i < statistics->by_instance.size(); ++i)
      if (statistics->processes[i].pid > 4 &&
          statistics->by_instance[i].events > statistics->by_instance[best].events)
        best = i;
    return std::to_string(statistics->processes[best].pid);
  }();
  return pid;
}

double best_copy = 0;
std::map<Level, double> encoder_rates; // bytes/s of one core

void report_rates(benchmark::State &state, double best, std::uint64_t events) {
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) *
                          static_cast<std::int64_t>(grown().size()));
  state.counters["time/cp"] = best_copy > 0 ? best / best_copy : 0;
  state.counters["peak_MB"] = static_cast<double>(process::peak_memory_bytes()) / 1e6;
  if (events != 0)
    state.counters["events/s"] =
        benchmark::Counter(static_cast<double>(events), benchmark::Counter::kIsIterationInvariantRate);
}

// Runs and times one iteration, keeping the best: other work on the machine only ever adds time.
template <class Run> double timed(double best, Run &&run) {
  const auto began = std::chrono::steady_clock::now();
  run();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return best == 0 ? seconds : std::min(best, seconds);
}

// To give back the pages of the last output takes as long as a tenth of a copy, and is not what is measured.
void without_output(benchmark::State &state) {
  state.PauseTiming();
  fs::remove(grown().output());
  state.ResumeTiming();
}

void BM_Copy(benchmark::State &state) {
  double best = 0;
  for (auto _ : state) {
    without_output(state);
    best = timed(best, [] {
      (void)!std::system(fmt::format("cp '{}' '{}'", grown().path(), grown().output()).c_str());
    });
  }
  fs::remove(grown().output());
  best_copy = best;
  report_rates(state, best, 0);
}

void relog(benchmark::State &state, const Selection &selection, std::optional<Codec> codec,
           std::optional<std::uint64_t> candidate_memory = std::nullopt, Level level = Level::fast) {
  double best = 0;
  std::uint64_t events = 0;
  pipeline::RelogReport report;
  for (auto _ : state) {
    without_output(state);
    best = timed(best, [&] {
      auto trace = pipeline::Trace::open(grown().path(), {});
      pipeline::RelogOptions options;
      options.output = grown().output();
      options.replace_output = true;
      options.selection = selection;
      options.codec = codec;
      options.level = level;
      if (candidate_memory) options.candidate_memory = *candidate_memory;
      options.graph.threads = static_cast<unsigned>(state.range(0));
      report = {};
      if (auto done = pipeline::relog(*trace, options, report); !done)
        state.SkipWithError(done.error().message().c_str());
    });
    events = report.events_in;
  }
  fs::remove(grown().output());
  report_rates(state, best, events);
  if (codec == Codec::xpress && encoder_rates.contains(level))
    state.counters["of_encoder"] = static_cast<double>(report.event_bytes_in) / best /
                                   (encoder_rates[level] * static_cast<double>(state.range(0)));
}

// What relogging to XPRESS can come to at most: the encoder alone, one core, events in memory in pieces of
// the size of the buffers that it gets there.
void BM_EncodeXpress(benchmark::State &state, Level level) {
  const std::vector<std::uint8_t> bytes = small_trace();
  auto trace = pipeline::Trace::open(read::memory_input("memory", bytes), {});
  pipeline::Batch batch;
  batch.count = trace->buffers().size();
  trace->load(batch);
  std::vector<std::uint8_t> events;
  for (const pipeline::DecodedBuffer &buffer : batch.buffers)
    events.insert(events.end(), buffer.events.begin(), buffer.events.end());
  const std::size_t piece =
      pipeline::nominal_size(trace->header().buffer_size, {}) - format::kBufferHeaderSize;
  Compressor compressor(Codec::xpress, level, static_cast<std::uint32_t>(piece));
  std::vector<std::uint8_t> out(piece);
  double best = 0;
  for (auto _ : state)
    best = timed(best, [&] {
      for (std::size_t at = 0; at < events.size(); at += piece) {
        const Bytes in = Bytes(events).subspan(at, std::min(piece, events.size() - at));
        benchmark::DoNotOptimize(compressor.compress(in, MutableBytes(out).first(in.size() - 1)));
      }
    });
  encoder_rates[level] = static_cast<double>(events.size()) / best;
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * events.size()));
}

void BM_RelogOneProcess(benchmark::State &state) {
  Selection selection;
  selection.processes = {busiest_process()};
  relog(state, selection, std::nullopt);
}
// As before the first pass kept what may stay: everything is read three times.
void BM_RelogOneProcessReadingAgain(benchmark::State &state) {
  Selection selection;
  selection.processes = {busiest_process()};
  relog(state, selection, std::nullopt, 0);
}
void BM_RelogEverything(benchmark::State &state) {
  relog(state, {}, Codec::none);
}
void BM_RelogToXpress(benchmark::State &state, Level level) {
  relog(state, {}, Codec::xpress, std::nullopt, level);
}

void BM_Statistics(benchmark::State &state) {
  double best = 0;
  std::uint64_t events = 0;
  for (auto _ : state) {
    best = timed(best, [&] {
      auto trace = pipeline::Trace::open(grown().path(), {});
      pipeline::PassOptions options;
      options.threads = static_cast<unsigned>(state.range(0));
      events = pipeline::collect_statistics(*trace, options)->events;
    });
  }
  report_rates(state, best, events);
}

// Decoding and filtering alone: one core, buffers in memory.
void BM_DecodeAndFilter(benchmark::State &state) {
  const std::vector<std::uint8_t> bytes = small_trace();
  auto trace = pipeline::Trace::open(read::memory_input("memory", bytes), {});
  pipeline::PassResult ignored;
  auto lifetimes = pipeline::collect_lifetimes(*trace, {}, ignored);
  Selection selection;
  selection.processes = {busiest_process()};
  auto filter = filter::Filter::make(selection, *lifetimes, trace->clock());
  filter->set_marks({});
  pipeline::Batch batch;
  batch.count = trace->buffers().size();
  trace->load(batch);
  std::uint64_t kept = 0, events = 0, size = 0;
  for (auto _ : state) {
    events = size = 0;
    for (const pipeline::DecodedBuffer &buffer : batch.buffers) {
      filter::Position position = filter->begin_buffer(buffer.index, buffer.header.processor());
      trace->visit(batch, buffer, [&](const EventView &event, std::int64_t time, std::uint32_t) {
        kept += filter::is_kept(filter->decide(event, time, position)) ? 1 : 0;
        ++events;
      });
      size += buffer.events.size();
    }
  }
  benchmark::DoNotOptimize(kept);
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * size));
  state.counters["events/s"] =
      benchmark::Counter(static_cast<double>(events), benchmark::Counter::kIsIterationInvariantRate);
}

BENCHMARK(BM_Copy)->Unit(benchmark::kMillisecond)->Iterations(7)->UseRealTime();
BENCHMARK(BM_RelogOneProcess)->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond)->Iterations(7)->UseRealTime();
BENCHMARK(BM_RelogOneProcessReadingAgain)
    ->Arg(1)
    ->Arg(2)
    ->Unit(benchmark::kMillisecond)
    ->Iterations(7)
    ->UseRealTime();
BENCHMARK(BM_RelogEverything)->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond)->Iterations(3)->UseRealTime();
// "normal" is what the tool takes unless told otherwise.
BENCHMARK_CAPTURE(BM_EncodeXpress, normal, Level::normal)
    ->Unit(benchmark::kMillisecond)
    ->Iterations(3)
    ->UseRealTime();
BENCHMARK_CAPTURE(BM_EncodeXpress, fast, Level::fast)
    ->Unit(benchmark::kMillisecond)
    ->Iterations(9)
    ->UseRealTime();
BENCHMARK_CAPTURE(BM_RelogToXpress, normal, Level::normal)
    ->Arg(1)
    ->Arg(2)
    ->Unit(benchmark::kMillisecond)
    ->Iterations(2)
    ->UseRealTime();
BENCHMARK_CAPTURE(BM_RelogToXpress, fast, Level::fast)
    ->Arg(1)
    ->Arg(2)
    ->Unit(benchmark::kMillisecond)
    ->Iterations(2)
    ->UseRealTime();
BENCHMARK(BM_Statistics)->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond)->Iterations(3)->UseRealTime();
BENCHMARK(BM_DecodeAndFilter)->Unit(benchmark::kMillisecond);

} // namespace
} // namespace etwrelog

BENCHMARK_MAIN();
