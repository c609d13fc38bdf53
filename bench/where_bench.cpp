// How fast an export says that no event fulfils a condition, beside the walk that any pass needs.
//   where_bench TRACE [ROUNDS]
// CPU time of one thread. A pass over schemas and processes comes before every export; it is shown apart.
#include "etwrelog/export.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>

#include <fmt/format.h>

namespace etwrelog {
namespace {

int run(const char *path, int rounds) {
  const RunOptions one{.threads = 1};
  const Result<Trace> trace = Trace::open(path, {}, one);
  if (!trace) return std::fprintf(stderr, "where_bench: %s\n", trace.error().message().c_str()), 1;
  struct Count {
    std::uint64_t events = 0;
  };
  std::uint64_t events = 0;
  auto walk = [&] {
    const auto counted = trace->fold<Count>(
        [](Count &part, EventBatch &batch) {
          for (const Event &event : batch)
            part.events += event.size() != 0 ? 1 : 0;
        },
        [](Count &total, Count &part) { total.events += part.events; }, {}, one);
    events = counted ? counted->events : 0;
  };
  auto exported = [&](const char *where) {
    return [&trace, where, one] {
      ExportOptions options;
      options.where = where;
      std::vector<std::uint8_t> lines;
      const auto report = export_json(*trace, Output::memory(lines), options, one);
      if (!report || report->events != 0)
        std::fprintf(stderr, "where_bench: %s\n",
                     report ? "something fits" : report.error().message().c_str());
    };
  };
  const std::pair<const char *, std::function<void()>> ways[] = {
      {"walk in file order", walk},
      {"schemas and processes", [&] { static_cast<void>(collect_schemas(*trace, {}, one)); }},
      {"no kind has the fields", exported("IoSize = 1 and FrameCount = 2 and connid = 3")},
      {"a kind that is not here", exported("event = 'DiskIo/Flush' and IrpFlags = 0xFFFFFFF1")},
      {"a number of many events",
       exported("Irql = 77 or OldThreadWaitReason = 99 or NewThreadId = 4294967294")},
      {"a regular expression", exported("FileName ~ 'no such file$'")},
      {"a column of all events", exported("cpu = 65535")},
  };
  for (const auto &[name, way] : ways) {
    double best = 1e9;
    for (int i = 0; i < rounds; ++i) {
      const std::clock_t began = std::clock();
      way();
      best = std::min(best, static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC);
    }
    fmt::print("{:<26} {:>8.1f} ms {:>8.1f} M events/s\n", name, best * 1e3,
               static_cast<double>(events) / best / 1e6);
  }
  return 0;
}

} // namespace
} // namespace etwrelog

int main(int argc, char **argv) {
  if (argc < 2) return std::fprintf(stderr, "usage: where_bench TRACE [ROUNDS]\n"), 2;
  return etwrelog::run(argv[1], argc > 2 ? std::atoi(argv[2]) : 3);
}
