// What it costs to write events out, and to ask them in SQL, beside the walk in order of time that both need.
//   export_bench TRACE [ROUNDS]
// CPU time of one thread, the least of all rounds; the ways take turns. What is written is counted and thrown
// away.
#include "etwrelog/export.hpp"
#include "etwrelog/query.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <memory>

#include <fmt/format.h>

namespace etwrelog {
namespace {

struct Counted {
  std::uint64_t events = 0, bytes = 0; // bytes: written
};

class Counter final : public ByteSink {
public:
  Result<void> write(Bytes bytes) override {
    bytes_ += bytes.size();
    return {};
  }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

private:
  std::uint64_t bytes_ = 0;
};

struct Way {
  const char *name;
  std::function<Result<Counted>()> run;
  double best = 1e9;
  Counted counted{};
};

Result<Counted> walk(const Trace &trace, const RunOptions &run) {
  return trace.fold<Counted>(
      [](Counted &part, EventBatch &batch) {
        for (const Event &event : batch)
          part.events += event.size() != 0 ? 1 : 0;
      },
      [](Counted &total, Counted &part) { total.events += part.events; }, {.order = Order::time}, run);
}

Result<Counted> exported(const Trace &trace, std::optional<TableFormat> table, const ExportJoins &joins,
                         const RunOptions &run) {
  ExportOptions options;
  options.joins = joins;
  const auto counter = std::make_shared<Counter>();
  const Output output = Output::sink("nowhere", counter);
  const Result<ExportReport> done =
      table ? export_table(trace, output, *table, options, run) : export_json(trace, output, options, run);
  if (!done) return done.error();
  return Counted{done->events, counter->bytes()};
}

// `column`: of the view of all events. With what it takes to open the trace for SQL.
Result<Counted> asked(const Trace &trace, const char *column, const ExportJoins &joins,
                      const RunOptions &run) {
  ExportOptions options;
  options.joins = joins;
  Result<TraceQuery> query = TraceQuery::open(trace, options, run);
  if (!query) return std::move(query).error();
  Counted counted;
  TraceQuery::Visitor visitor;
  visitor.row = [&counted](TraceQuery::Row row) {
    counted.events = std::strtoull(std::string(row[0].text).c_str(), nullptr, 10);
  };
  const Result<void> done = query->run(fmt::format("select count(*), max({}) from events", column), visitor);
  if (!done) return done.error();
  return counted;
}

int run(const char *path, int rounds) {
  const RunOptions one{.threads = 1};
  const Result<Trace> trace = Trace::open(path, {}, one);
  if (!trace) return std::fprintf(stderr, "export_bench: %s\n", trace.error().message().c_str()), 1;
  const ExportJoins none, stack{.stack = true}, others{.owner = true, .file = true, .duration = true};
  const auto lines = [&](const ExportJoins &joins) {
    return [&] { return exported(*trace, std::nullopt, joins, one); };
  };
  const auto table = [&](TableFormat format) {
    return [&trace, &none, format, one] { return exported(*trace, format, none, one); };
  };
  const auto sql = [&](const char *column, const ExportJoins &joins) {
    return [&trace, &joins, column, one] { return asked(*trace, column, joins, one); };
  };
  Way ways[] = {
      {"walk in order of time", [&] { return walk(*trace, one); }},
      {"JSON lines", lines(none)},
      {"JSON lines, owners, files, durations", lines(others)},
      {"JSON lines, stacks", lines(stack)},
      {"CSV", table(TableFormat::csv)},
      {"Arrow", table(TableFormat::arrow)},
      {"SQLite", table(TableFormat::sqlite)},
      {"SQL, a column that all events have", sql("cpu", none)},
      {"SQL, all fields", sql("fields", none)},
      {"SQL, stacks", sql("stack", stack)},
  };
  for (int round = 0; round < rounds; ++round)
    for (Way &way : ways) {
      const std::clock_t began = std::clock();
      const Result<Counted> counted = way.run();
      way.best = std::min(way.best, static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC);
      if (!counted)
        return std::fprintf(stderr, "export_bench: %s: %s\n", way.name, counted.error().message().c_str()), 1;
      way.counted = *counted;
      if (counted->events != ways[0].counted.events)
        return std::fprintf(stderr, "export_bench: %s has other events\n", way.name), 1;
    }
  fmt::print("{} events\n{:<38} {:>9} {:>9} {:>11} {:>12}\n", ways[0].counted.events, "", "CPU ms",
             "ns/event", "written MB", "x the first");
  for (const Way &way : ways)
    fmt::print("{:<38} {:>9.1f} {:>9.1f} {:>11.1f} {:>12.2f}\n", way.name, way.best * 1e3,
               way.best * 1e9 / static_cast<double>(std::max<std::uint64_t>(1, way.counted.events)),
               static_cast<double>(way.counted.bytes) / 1e6, way.best / ways[0].best);
  return 0;
}

} // namespace
} // namespace etwrelog

int main(int argc, char **argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: export_bench TRACE [ROUNDS]\n");
    return 2;
  }
  return etwrelog::run(argv[1], argc > 2 ? std::atoi(argv[2]) : 5);
}
