// How fast the events of a trace go by: in file order and in order of time, by cursor and by fold, beside a
// bare for_each_event over buffers read one after the other.
//   walk_bench TRACE [GROWN_BYTES [ROUNDS [NAME]]]
// The trace is written out uncompressed, and repeated with later and later time stamps until it has
// GROWN_BYTES (1 GB unless said otherwise), into a temporary file that is then in the page cache. Every way
// is measured in every round; the best round of each counts, and ratios are between those. Peak memory is
// that of a process of its own.
#include "base/platform.hpp"
#include "etwrelog/trace.hpp"
#include "source/trace.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <limits>

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace etwrelog {
namespace {

int fail(const Error &error) {
  std::fprintf(stderr, "walk_bench: %s\n", error.message().c_str());
  return 1;
}

// The times of all events of a buffer, by so much later.
void shift_times(MutableBytes events, std::int64_t by) {
  for_each_event(events, [&](const EventView &event, std::int64_t, std::uint32_t at) {
    if (event.layout().time_at == format::kNone) return;
    std::uint8_t *const time = events.data() + at + event.layout().time_at;
    store<std::int64_t>(time, load<std::int64_t>(time) + by);
  });
}

Result<void> grow(const std::string &from, const std::string &to, std::uint64_t bytes) {
  Result<pipeline::Trace> trace = pipeline::Trace::open(from, {});
  if (!trace) return std::move(trace).error();
  std::ofstream out(to, std::ios::binary);
  std::uint64_t written = 0;
  std::int64_t first = std::numeric_limits<std::int64_t>::max(), last = 0;
  for (std::int64_t round = 0; written < bytes; ++round) {
    pipeline::Batch batch;
    for (std::size_t i = round == 0 ? 0 : 1; i < trace->buffers().size(); ++i) { // one header
      batch.first = i;
      batch.count = 1;
      trace->load(batch);
      if (batch.error) return *std::move(batch.error);
      for (pipeline::DecodedBuffer &buffer : batch.buffers) {
        if (round == 0)
          for_each_event(buffer.events, [&](const EventView &, std::int64_t time, std::uint32_t) {
            first = std::min(first, time);
            last = std::max(last, time);
          });
        else
          shift_times(buffer.events, round * (last - first + 1));
        format::BufferHeader header = buffer.header;
        header.saved_offset = header.filled_bytes = header.current_offset =
            static_cast<std::uint32_t>(format::kBufferHeaderSize + buffer.events.size());
        header.buffer_size = static_cast<std::uint32_t>(align8(header.saved_offset));
        header.flags &= static_cast<std::uint16_t>(~format::kFlagCompressed);
        header.time_stamp += round * (last - first + 1);
        std::vector<std::uint8_t> stored(header.buffer_size, format::kFillByte);
        format::store_buffer_header(stored.data(), header);
        std::copy(buffer.events.begin(), buffer.events.end(), stored.begin() + format::kBufferHeaderSize);
        out.write(reinterpret_cast<const char *>(stored.data()), static_cast<std::streamsize>(stored.size()));
        written += stored.size();
      }
    }
  }
  if (out.flush()) return {};
  Error error;
  error.kind = ErrorKind::io;
  error.file = to;
  error.what = "cannot be written";
  return error;
}

struct Totals {
  std::uint64_t events = 0, bytes = 0;
};

struct Way {
  const char *name;
  unsigned threads;
  std::function<Result<Totals>(const Trace &)> run;
  double best = 1e9, cpu = 1e9;
};

Result<Totals> bare(const std::string &path) {
  Result<pipeline::Trace> trace = pipeline::Trace::open(path, {});
  if (!trace) return std::move(trace).error();
  Totals sum;
  pipeline::Batch batch;
  for (std::size_t at = 0; at < trace->buffers().size(); at += batch.count) {
    batch.first = at;
    batch.count = std::min<std::size_t>(16, trace->buffers().size() - at);
    trace->load(batch);
    for (const pipeline::DecodedBuffer &buffer : batch.buffers)
      for_each_event(buffer.events, [&](const EventView &event, std::int64_t, std::uint32_t) {
        ++sum.events;
        sum.bytes += event.size();
      });
  }
  return sum;
}

Result<Totals> by_cursor(const Trace &trace, Order order, unsigned threads) {
  Totals sum;
  Result<void> done = trace.events({.order = order}, {.threads = threads}).for_each([&](const Event &event) {
    ++sum.events;
    sum.bytes += event.size();
  });
  if (!done) return std::move(done).error();
  return sum;
}

Result<Totals> by_fold(const Trace &trace, Order order, unsigned threads) {
  return trace.fold<Totals>(
      [](Totals &part, EventBatch &batch) {
        for (const Event &event : batch) {
          ++part.events;
          part.bytes += event.size();
        }
      },
      [](Totals &total, Totals &part) {
        total.events += part.events;
        total.bytes += part.bytes;
      },
      {.order = order}, {.threads = threads});
}

// Of a process that does this and nothing else.
long peak_kib(const std::function<void()> &work) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    work();
    ::_exit(0);
  }
  int status = 0;
  rusage usage{};
  ::wait4(child, &status, 0, &usage);
  return usage.ru_maxrss;
}

// `only`: ways whose name has it, and the first.
int run(const std::string &path, std::uint64_t bytes, int rounds, const std::string &only) {
  const std::string grown =
      (std::filesystem::temp_directory_path() / fmt::format("walk_bench-{}.etl", ::getpid())).string();
  struct Remove {
    std::string name;
    ~Remove() { std::filesystem::remove(name); }
  } const remove{grown};
  if (Result<void> made = grow(path, grown, bytes); !made) return fail(made.error());
  Result<Trace> trace = Trace::open(grown);
  if (!trace) return fail(trace.error());
  const double size = static_cast<double>(trace->sources()[0].decoded_bytes);

  std::vector<Way> ways{{"for_each_event over buffers", 1, [&](const Trace &) { return bare(grown); }}};
  for (const unsigned threads : {1u, 2u}) {
    ways.push_back(
        {"fold, file order", threads, [=](const Trace &t) { return by_fold(t, Order::file, threads); }});
    ways.push_back(
        {"cursor, file order", threads, [=](const Trace &t) { return by_cursor(t, Order::file, threads); }});
    ways.push_back(
        {"fold, time order", threads, [=](const Trace &t) { return by_fold(t, Order::time, threads); }});
    ways.push_back(
        {"cursor, time order", threads, [=](const Trace &t) { return by_cursor(t, Order::time, threads); }});
  }
  std::erase_if(ways, [&](const Way &way) {
    return &way != ways.data() && std::string(way.name).find(only) == std::string::npos;
  });
  Totals expected;
  for (int round = 0; round < rounds; ++round)
    for (Way &way : ways) {
      const auto began = std::chrono::steady_clock::now();
      const std::clock_t cpu_began = std::clock();
      Result<Totals> totals = way.run(*trace);
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
      const double cpu = static_cast<double>(std::clock() - cpu_began) / CLOCKS_PER_SEC;
      if (!totals) return fail(totals.error());
      way.cpu = std::min(way.cpu, cpu);
      if (expected.events == 0) expected = *totals;
      if (totals->events != expected.events || totals->bytes != expected.bytes) {
        std::fprintf(stderr, "walk_bench: %s sees other events\n", way.name);
        return 1;
      }
      way.best = std::min(way.best, seconds);
    }
  fmt::print("{} events, {:.0f} bytes decoded, {} sources\n", expected.events, size, trace->sources().size());
  // GB/s by the clock; ns, and the events that a second of processor time takes, on all threads together.
  fmt::print("{:<30} {:>7} {:>8} {:>8} {:>10} {:>12} {:>11} {:>8}\n", "", "threads", "GB/s", "ns/event",
             "CPU ns", "M events/s", "x the first", "peak MiB");
  for (const Way &way : ways) {
    const double events = static_cast<double>(expected.events);
    const long peak = peak_kib([&] { static_cast<void>(way.run(*trace)); });
    fmt::print("{:<30} {:>7} {:>8.2f} {:>8.1f} {:>10.1f} {:>12.1f} {:>11.2f} {:>8}\n", way.name, way.threads,
               size / way.best / 1e9, way.best / events * 1e9, way.cpu / events * 1e9, events / way.cpu / 1e6,
               way.cpu / ways[0].cpu, peak / 1024);
  }
  return 0;
}

} // namespace
} // namespace etwrelog

int main(int argc, char **argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: walk_bench TRACE [GROWN_BYTES [ROUNDS [NAME]]]\n");
    return 2;
  }
  return etwrelog::run(argv[1], argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1'000'000'000,
                       argc > 3 ? std::atoi(argv[3]) : 5, argc > 4 ? argv[4] : "");
}
