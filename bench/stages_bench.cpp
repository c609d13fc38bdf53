// Each stage alone and the whole graph, on a real trace when it is there and on generated ones always. Bytes
// are decoded bytes of the trace; "memory" is the peak of the process, which only ever grows: run one
// benchmark alone
// (--benchmark_filter) to read it.
#include "output/relog.hpp"
#include "tests/support/trace_files.hpp"
#include "tools/etwgen/generate.hpp"
#include "tools/process.hpp"
#include "write/buffers.hpp"

#include <benchmark/benchmark.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>

namespace {

using namespace etwrelog;

struct TraceFile {
  std::string name, path, process; // process: whom to filter for
};

std::string scratch(const std::string &name) {
  return (std::filesystem::temp_directory_path() /
          ("etwrelog_bench_" + std::to_string(base::process_id()) + "_" + name))
      .string();
}

// Written once, removed at the end.
std::string generated(const char *profile) {
  gen::Options options;
  options.profile = gen::find_profile(profile);
  options.size = 24'000'000;
  options.processes = 16;
  gen::MemorySink sink;
  if (!gen::generate(options, sink)) return {};
  const std::string path = scratch(std::string(profile) + ".etl");
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char *>(sink.bytes.data()),
             static_cast<std::streamsize>(sink.bytes.size()));
  return path;
}

Result<pipeline::Trace> open(const TraceFile &input) {
  return pipeline::Trace::open(input.path, {});
}

void set_counters(benchmark::State &state, std::uint64_t bytes, std::uint64_t events) {
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes) * state.iterations());
  if (events != 0)
    state.counters["events/s"] =
        benchmark::Counter(static_cast<double>(events), benchmark::Counter::kIsIterationInvariantRate);
  state.counters["memory"] = static_cast<double>(process::peak_memory_bytes());
}

// All buffers decoded, each in a batch of its own.
std::vector<std::unique_ptr<pipeline::Batch>> load_all(const pipeline::Trace &trace) {
  std::vector<std::unique_ptr<pipeline::Batch>> batches;
  for (std::size_t at = 0; at < trace.buffers().size(); at += 32) {
    auto &batch = batches.emplace_back(std::make_unique<pipeline::Batch>());
    batch->first = at;
    batch->count = std::min<std::size_t>(32, trace.buffers().size() - at);
    trace.load(*batch);
  }
  return batches;
}

void scan(benchmark::State &state, const TraceFile &input) {
  std::uint64_t bytes = 0;
  for (auto _ : state) {
    const auto trace = open(input);
    if (!trace) return state.SkipWithError("cannot be opened");
    bytes = trace->decoded_bytes();
    benchmark::DoNotOptimize(trace->buffers().data());
  }
  set_counters(state, bytes, 0);
}

void load(benchmark::State &state, const TraceFile &input) {
  const auto trace = open(input);
  if (!trace) return state.SkipWithError("cannot be opened");
  pipeline::Batch batch;
  for (auto _ : state)
    for (std::size_t at = 0; at < trace->buffers().size(); at += 32) {
      batch.first = at;
      batch.count = std::min<std::size_t>(32, trace->buffers().size() - at);
      trace->load(batch);
    }
  set_counters(state, trace->decoded_bytes(), 0);
}

void walk(benchmark::State &state, const TraceFile &input) {
  const auto trace = open(input);
  if (!trace) return state.SkipWithError("cannot be opened");
  const auto batches = load_all(*trace);
  std::uint64_t events = 0;
  for (auto _ : state) {
    events = 0;
    for (const auto &batch : batches)
      for (const pipeline::DecodedBuffer &b : batch->buffers)
        for_each_event(b.events, [&](const EventView &, std::int64_t, std::uint32_t) { ++events; });
    benchmark::DoNotOptimize(events);
  }
  set_counters(state, trace->decoded_bytes(), events);
}

void count_types(benchmark::State &state, const TraceFile &input) {
  const auto trace = open(input);
  if (!trace) return state.SkipWithError("cannot be opened");
  const auto batches = load_all(*trace);
  schema::TypeCounts counts;
  std::uint64_t events = 0;
  for (auto _ : state) {
    events = 0;
    counts.clear();
    for (const auto &batch : batches)
      for (const pipeline::DecodedBuffer &b : batch->buffers)
        for_each_event(b.events, [&](const EventView &e, std::int64_t, std::uint32_t) {
          counts.add(e);
          ++events;
        });
  }
  set_counters(state, trace->decoded_bytes(), events);
}

void rechunk_and_seal(benchmark::State &state, const TraceFile &input, Codec codec) {
  constexpr std::uint32_t kNominal = 64 << 10;
  const auto trace = open(input);
  if (!trace) return state.SkipWithError("cannot be opened");
  const auto batches = load_all(*trace);
  Compressor compressor(codec, Level::normal, kNominal);
  base::RawMemory memory;
  std::uint64_t out = 0;
  for (auto _ : state) {
    write::Rechunker rechunker(kNominal, false);
    std::vector<write::OutputBuffer> closed;
    for (const auto &batch : batches)
      for (const pipeline::DecodedBuffer &b : batch->buffers) {
        const write::Run run{0, static_cast<std::uint32_t>(b.events.size()), 0};
        write::Origin origin;
        origin.processor = b.header.processor();
        (void)rechunker.add(origin, b.events, {&run, 1}, closed);
      }
    rechunker.flush(closed);
    out = 0;
    for (write::OutputBuffer &b : closed) {
      write::seal(b, kNominal, codec == Codec::none ? nullptr : &compressor, memory);
      out += b.bytes.size();
    }
  }
  set_counters(state, trace->decoded_bytes(), 0);
  state.counters["ratio"] = static_cast<double>(out) / static_cast<double>(trace->decoded_bytes());
}

void lifetimes(benchmark::State &state, const TraceFile &input) {
  const auto trace = open(input);
  if (!trace) return state.SkipWithError("cannot be opened");
  pipeline::PassOptions options;
  options.threads = static_cast<unsigned>(state.range(0));
  for (auto _ : state) {
    pipeline::PassResult pass;
    if (!pipeline::collect_lifetimes(*trace, options, pass)) return state.SkipWithError("failed");
  }
  set_counters(state, trace->decoded_bytes(), 0);
}

void relog(benchmark::State &state, const TraceFile &input, Codec codec, bool filtered) {
  const auto trace = open(input);
  if (!trace) return state.SkipWithError("cannot be opened");
  pipeline::RelogOptions options;
  options.output = scratch("relogged.etl");
  options.replace_output = true;
  options.codec = codec;
  options.graph.threads = static_cast<unsigned>(state.range(0));
  if (filtered) options.selection.processes = {input.process};
  pipeline::RelogReport report;
  for (auto _ : state) {
    report = {};
    if (const auto done = pipeline::relog(*trace, options, report); !done)
      return state.SkipWithError(done.error().message().c_str());
  }
  set_counters(state, trace->decoded_bytes(), report.events_in);
  state.counters["ratio"] =
      static_cast<double>(report.output_bytes) / static_cast<double>(trace->decoded_bytes());
  std::remove(options.output.c_str());
}

void generate(benchmark::State &state, const char *profile, bool cache) {
  gen::Options options;
  options.profile = gen::find_profile(profile);
  options.size = 200'000'000;
  options.threads = static_cast<unsigned>(state.range(0));
  options.stack_cache = cache;
  std::uint64_t bytes = 0, events = 0;
  for (auto _ : state) {
    gen::NullSink sink;
    const auto made = gen::generate(options, sink);
    if (!made) return state.SkipWithError("failed");
    bytes = made->truth.raw_bytes;
    events = made->truth.events();
  }
  set_counters(state, bytes, events);
}

} // namespace

int main(int argc, char **argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  std::vector<TraceFile> inputs = {{"medium", generated("medium"), "game.exe"},
                                   {"real", generated("real"), "game.exe"}};
  if (const auto path = testing::trace_path("net.4.5.2.x64"))
    inputs.push_back({"net.4.5.2.x64", path->string(), "*"});
  for (const TraceFile &in : inputs) {
    auto add = [&in](const std::string &name, auto &&...rest) {
      return benchmark::RegisterBenchmark((name + "/" + in.name).c_str(), rest..., in)
          ->Unit(benchmark::kMillisecond)
          ->UseRealTime();
    };
    add("scan", [](benchmark::State &s, const TraceFile &i) { scan(s, i); });
    add("load", [](benchmark::State &s, const TraceFile &i) { load(s, i); });
    add("walk", [](benchmark::State &s, const TraceFile &i) { walk(s, i); });
    add("count_types", [](benchmark::State &s, const TraceFile &i) { count_types(s, i); });
    for (const Codec codec : {Codec::none, Codec::xpress, Codec::lznt1})
      add("rechunk_and_seal_" + std::string(codec_name(codec)),
          [codec](benchmark::State &s, const TraceFile &i) { rechunk_and_seal(s, i, codec); });
    add("lifetimes", [](benchmark::State &s, const TraceFile &i) { lifetimes(s, i); })
        ->Arg(1)
        ->Arg(2)
        ->ArgName("threads");
    for (const Codec codec : {Codec::none, Codec::xpress})
      add("relog_" + std::string(codec_name(codec)),
          [codec](benchmark::State &s, const TraceFile &i) { relog(s, i, codec, false); })
          ->Arg(1)
          ->Arg(2)
          ->ArgName("threads");
    add("relog_process_xpress",
        [](benchmark::State &s, const TraceFile &i) { relog(s, i, Codec::xpress, true); })
        ->Arg(1)
        ->Arg(2)
        ->ArgName("threads");
  }
  for (const char *profile : {"medium", "largef"})
    for (const bool cache : {false, true})
      benchmark::RegisterBenchmark(
          (std::string("generate") + (cache ? "_stack_cache/" : "/") + profile).c_str(),
          [profile, cache](benchmark::State &s) { generate(s, profile, cache); })
          ->Arg(1)
          ->Arg(2)
          ->ArgName("threads")
          ->Unit(benchmark::kMillisecond)
          ->UseRealTime();
  benchmark::RunSpecifiedBenchmarks();
  for (const TraceFile &in : inputs)
    if (in.name == "medium" || in.name == "real") std::remove(in.path.c_str());
  return 0;
}
