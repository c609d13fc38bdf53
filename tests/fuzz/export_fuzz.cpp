// Events of any content that tell of each other, exported with all that others say of each: what lines have,
// SQL over the same trace has.
#include "etwrelog/export.hpp"
#include "etwrelog/query.hpp"
#include "tests/fuzz/any_events.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <nlohmann/json.hpp>

namespace {

using namespace etwrelog;

constexpr std::array<const char *, 9> kJoined = {
    "command_line", "owner_process_id", "owner_thread_id", "owner_process", "file",
    "registry_key", "modules",          "stack",           "duration_ns"};
using Counts = std::array<std::uint64_t, kJoined.size() + 1>; // of events, and of those that have each

[[noreturn]] void fail(const char *what) {
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

Counts count_lines(const std::vector<std::uint8_t> &bytes) {
  Counts counts{};
  for (auto begin = bytes.begin(); begin != bytes.end();) {
    const auto end = std::find(begin, bytes.end(), '\n');
    if (end == bytes.end()) fail("a line has no end");
    const auto line = nlohmann::json::parse(begin, end, nullptr, false);
    if (!line.is_object()) fail("a line is no object");
    ++counts[0];
    for (std::size_t i = 0; i < kJoined.size(); ++i)
      if (line.contains(kJoined[i])) ++counts[i + 1];
    begin = end + 1;
  }
  return counts;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  if (size < 1) return 0;
  const Result<Trace> trace =
      Trace::open(Input::memory("fuzz.etl", fuzz::trace_of(Bytes(data, size).subspan(1))));
  if (!trace) return 0;
  RunOptions run;
  run.threads = 1;
  ExportOptions options;
  options.joins = {.process = true,
                   .owner = true,
                   .file = true,
                   .registry = true,
                   .module = true,
                   .stack = true,
                   .duration = true};
  options.numbers = (data[0] & 1) != 0;
  std::vector<std::uint8_t> lines;
  const Result<ExportReport> done = export_json(*trace, Output::memory(lines), options, run);
  Result<TraceQuery> query = TraceQuery::open(*trace, options, run);
  if (!done != !query) fail("lines or SQL, but not both");
  if (!done) return 0;
  const Counts expected = count_lines(lines);
  if (expected[0] != done->events) fail("not as many lines as events");
  std::string sql = "select count(*)";
  for (const char *column : kJoined)
    sql += std::string(", count(") + column + ")";
  Counts found{};
  TraceQuery::Visitor visitor;
  visitor.row = [&found](TraceQuery::Row row) {
    for (std::size_t i = 0; i < row.size(); ++i)
      found[i] = std::stoull(std::string(row[i].text));
  };
  if (const Result<void> asked = query->run(sql + " from events", visitor); !asked) fail("SQL failed");
  if (found != expected) fail("SQL has not what lines have");
  return 0;
}
