// All formats of an export say the same, event by event.
#include "etwrelog/export.hpp"
#include "tests/support/generated.hpp"
#include "tests/support/pace.hpp"
#include "tests/support/run_tool.hpp"
#include "tests/support/synthetic_trace.hpp"
#include "tests/support/trace_files.hpp"
#include "tests/support/zip_files.hpp"

#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sqlite3.h>

namespace etwrelog {
namespace {

using nlohmann::json;
using testing::run_tool;
using testing::TempDir;
using testing::ToolOptions;
using testing::ToolRun;

constexpr const char *kCompared[] = {"timestamp", "cpu",         "process_id", "thread_id",
                                     "process",   "provider_id", "event",      "version",
                                     "opcode",    "level",       "keyword"};

// A value as every format can say it: SQLite has neither booleans nor lists.
std::string plain(const json &value) {
  if (value.is_null()) return "";
  if (value.is_boolean()) return value.get<bool>() ? "1" : "0";
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) return fmt::format("{}", value.get<double>()); // 29, also where it is 29.0
  return value.dump();
}

using Events = std::multiset<std::string>;

std::string key_of(const json &common, const json &fields) {
  std::string key;
  for (const char *name : kCompared)
    key += plain(common.value(name, json())) + "|";
  std::map<std::string, std::string> sorted;
  for (const auto &[name, value] : fields.items())
    if (const std::string text = plain(value); !text.empty()) sorted[name] = text;
  for (const auto &[name, text] : sorted)
    key += name + "=" + text + "|";
  return key;
}

Events from_json_lines(const std::string &path) {
  const auto bytes = testing::read_file(path);
  std::istringstream lines(std::string(bytes.begin(), bytes.end()));
  Events events;
  for (std::string line; std::getline(lines, line);) {
    const json event = json::parse(line);
    const json fields = event.at("fields").is_null() ? json::object() : event.at("fields");
    events.insert(key_of(event, fields));
  }
  return events;
}

json cell(sqlite3_stmt *row, int column) {
  switch (sqlite3_column_type(row, column)) {
  case SQLITE_INTEGER: return sqlite3_column_int64(row, column);
  case SQLITE_FLOAT: return sqlite3_column_double(row, column);
  case SQLITE_NULL: return nullptr;
  default: {
    const auto *text = reinterpret_cast<const char *>(sqlite3_column_text(row, column));
    return std::string(text, static_cast<std::size_t>(sqlite3_column_bytes(row, column)));
  }
  }
}

template <class Visit> void for_each_row(sqlite3 *database, const std::string &sql, Visit &&visit) {
  sqlite3_stmt *rows = nullptr;
  ASSERT_EQ(sqlite3_prepare_v2(database, sql.c_str(), -1, &rows, nullptr), SQLITE_OK)
      << sqlite3_errmsg(database);
  while (sqlite3_step(rows) == SQLITE_ROW)
    visit(rows);
  sqlite3_finalize(rows);
}

// A field whose name a column of all events has already ("Version") is called "Version#2" in its table.
std::string field_of(const std::string &column) {
  const std::string name = column.substr(0, column.rfind('#'));
  const bool taken = name == "Version" || name == "level" || name == "id" || name == "time" || name == "Time";
  return taken ? name : column;
}

Events from_sqlite(const std::string &path) {
  sqlite3 *database = nullptr;
  EXPECT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
  std::vector<std::string> tables;
  for_each_row(database, "SELECT name FROM sqlite_master WHERE type = 'table'",
               [&](sqlite3_stmt *row) { tables.push_back(cell(row, 0).get<std::string>()); });
  Events events;
  for (const std::string &table : tables)
    for_each_row(database, "SELECT * FROM \"" + table + "\"", [&](sqlite3_stmt *row) {
      json common, fields = json::object();
      for (int i = 0; i < sqlite3_column_count(row); ++i) {
        const std::string name = sqlite3_column_name(row, i);
        if (i < 16)
          common[name] = cell(row, i);
        else if (i + 2 < sqlite3_column_count(row)) // the last are `raw` and `truncated`
          fields[field_of(name)] = cell(row, i);
      }
      events.insert(key_of(common, fields));
    });
  sqlite3_close(database);
  return events;
}

// RFC 4180, as a reader of its own.
std::vector<std::vector<std::string>> parse_csv(const std::string &path) {
  const auto bytes = testing::read_file(path);
  std::vector<std::vector<std::string>> rows(1, {""});
  bool quoted = false;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const char c = static_cast<char>(bytes[i]);
    if (quoted) {
      if (c != '"')
        rows.back().back() += c;
      else if (i + 1 < bytes.size() && bytes[i + 1] == '"')
        rows.back().back() += '"', ++i;
      else
        quoted = false;
    } else if (c == '"')
      quoted = true;
    else if (c == ',')
      rows.back().emplace_back();
    else if (c == '\n')
      rows.push_back({""});
    else if (c != '\r')
      rows.back().back() += c;
  }
  rows.pop_back();
  return rows;
}

// A folder with a file for each kind.
Events from_folder(const std::string &path) {
  Events events;
  for (const auto &file : std::filesystem::directory_iterator(path)) {
    const auto rows = parse_csv(file.path().string());
    EXPECT_GT(rows.size(), 1u) << file.path(); // no table without events
    for (std::size_t i = 1; i < rows.size(); ++i) {
      json common, fields = json::object();
      for (std::size_t c = 0; c + 2 < rows[0].size(); ++c) // the last are `raw` and `truncated`
        if (c < 16)
          common[rows[0][c]] = rows[i][c];
        else
          fields[field_of(rows[0][c])] = rows[i][c] == "true"    ? "1"
                                         : rows[i][c] == "false" ? "0"
                                                                 : rows[i][c];
      events.insert(key_of(common, fields));
    }
  }
  return events;
}

Events from_csv(const std::string &path) {
  const auto rows = parse_csv(path);
  Events events;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    json common, fields = json::object();
    for (std::size_t c = 0; c < rows[0].size(); ++c) {
      if (rows[0][c] == "fields")
        fields = rows[i][c].empty() ? json::object() : json::parse(rows[i][c]);
      else if (rows[0][c] != "raw" && rows[0][c] != "truncated")
        common[rows[0][c]] = rows[i][c];
    }
    events.insert(key_of(common, fields));
  }
  return events;
}

class TableExport : public ::testing::TestWithParam<const char *> {};

TEST_P(TableExport, SaysTheSameInEveryFormat) {
  const auto trace = testing::trace_path(GetParam());
  if (!trace) GTEST_SKIP() << "the real traces are not here";
  if (testing::kSanitized && std::filesystem::file_size(*trace) > 3u << 20)
    GTEST_SKIP() << "too much for a sanitizer: the smaller ones take the same ways";
  const TempDir directory;
  for (const char *format : {"jsonl", "csv", "sqlite"}) {
    const ToolRun run =
        run_tool({"export", trace->string(), "-o", directory.file(std::string("x.") + format)});
    ASSERT_EQ(run.status, 0) << run.err;
  }
  const Events lines = from_json_lines(directory.file("x.jsonl"));
  ASSERT_FALSE(lines.empty());
  EXPECT_EQ(from_csv(directory.file("x.csv")), lines);
  EXPECT_EQ(from_sqlite(directory.file("x.sqlite")), lines);
  const ToolRun folder =
      run_tool({"export", trace->string(), "--by-kind", "--format", "csv", "-o", directory.file("kinds")});
  ASSERT_EQ(folder.status, 0) << folder.err;
  EXPECT_EQ(from_folder(directory.file("kinds")), lines);
}

// What lines say without --numbers and with it: the same, but for texts of hexadecimal numbers, which are
// numbers. How many.
void compare_numbers(const json &texts, const json &numbers, std::size_t &made) {
  ASSERT_EQ(texts.size(), numbers.size());
  if (texts.is_structured()) {
    for (auto text = texts.begin(), number = numbers.begin(); text != texts.end(); ++text, ++number)
      compare_numbers(*text, *number, made);
  } else if (texts.is_string() && numbers.is_number()) {
    EXPECT_EQ(texts.get<std::string>(), fmt::format("0x{:x}", numbers.get<std::uint64_t>()));
    ++made;
  } else {
    EXPECT_EQ(texts, numbers);
  }
}

void expect_numbers_in_every_format(const std::string &trace, std::size_t least) {
  const TempDir directory;
  ASSERT_EQ(run_tool({"export", trace, "-o", directory.file("texts.jsonl")}).status, 0);
  for (const char *format : {"jsonl", "csv", "sqlite"}) {
    const ToolRun run =
        run_tool({"export", trace, "--numbers", "-o", directory.file(std::string("x.") + format)});
    ASSERT_EQ(run.status, 0) << run.err;
  }
  std::ifstream texts(directory.file("texts.jsonl")), numbers(directory.file("x.jsonl"));
  std::size_t made = 0;
  for (std::string text, number; std::getline(texts, text);) {
    ASSERT_TRUE(std::getline(numbers, number));
    const json before = json::parse(text), after = json::parse(number);
    ASSERT_NO_FATAL_FAILURE(compare_numbers(before, after, made)) << text << '\n' << number;
    EXPECT_EQ(before.at("keyword"), after.at("keyword")); // of all events
  }
  EXPECT_GE(made, least);
  const Events lines = from_json_lines(directory.file("x.jsonl"));
  EXPECT_EQ(from_csv(directory.file("x.csv")), lines);
  EXPECT_EQ(from_sqlite(directory.file("x.sqlite")), lines);
  const ToolRun folder =
      run_tool({"export", trace, "--numbers", "--by-kind", "--format", "csv", "-o", directory.file("kinds")});
  ASSERT_EQ(folder.status, 0) << folder.err;
  EXPECT_EQ(from_folder(directory.file("kinds")), lines);
}

TEST(TableExport, NumbersAreNumbersInEveryFormatIfAskedFor) {
  const TempDir directory;
  testing::write_file(directory.file("t.etl"), testing::generated(200'000));
  expect_numbers_in_every_format(directory.file("t.etl"), 1'000);
}

TEST_P(TableExport, NumbersSayTheSameAsTheirTexts) {
  const auto trace = testing::trace_path(GetParam());
  if (!trace) GTEST_SKIP() << "the real traces are not here";
  if (testing::kSanitized && std::filesystem::file_size(*trace) > 3u << 20)
    GTEST_SKIP() << "too much for a sanitizer: the smaller ones take the same ways";
  expect_numbers_in_every_format(trace->string(), 0);
}

// SQL over a trace has row for row what an exported database has.
void expect_query_like_a_database(const std::string &trace, const std::vector<std::string> &options) {
  const TempDir directory;
  const std::string path = directory.file("x.sqlite");
  std::vector<std::string> line = {"export", trace, "-o", path};
  line.insert(line.end(), options.begin(), options.end());
  ASSERT_EQ(run_tool(line).status, 0);
  sqlite3 *database = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
  std::multiset<std::string> expected, found;
  std::string sql;
  std::vector<std::string> tables;
  for_each_row(database, "SELECT name FROM sqlite_master WHERE type = 'table' AND name <> 'undescribed'",
               [&](sqlite3_stmt *row) { tables.push_back(cell(row, 0).get<std::string>()); });
  for (const std::string &table : tables) {
    sql += fmt::format("select '{0}' as the_table, * from \"{0}\";", table);
    for_each_row(database, fmt::format("select '{0}' as the_table, * from \"{0}\"", table),
                 [&](sqlite3_stmt *row) {
                   json cells = json::array();
                   for (int i = 0; i < sqlite3_column_count(row); ++i)
                     cells.push_back({sqlite3_column_name(row, i), cell(row, i)});
                   expected.insert(cells.dump());
                 });
  }
  sqlite3_close(database);
  line = {"query", trace, sql, "--json"};
  line.insert(line.end(), options.begin(), options.end());
  const ToolRun run = run_tool(line);
  ASSERT_EQ(run.status, 0) << run.err;
  std::istringstream rows(run.out);
  for (std::string row; std::getline(rows, row);) {
    json cells = json::array();
    const auto object = nlohmann::ordered_json::parse(row);
    for (const auto &[name, value] : object.items())
      cells.push_back({name, json(value)});
    found.insert(cells.dump());
  }
  EXPECT_GT(expected.size(), 100u);
  EXPECT_EQ(found, expected);
}

TEST(TableExport, SqlOverATraceIsSqlOverItsDatabase) {
  const TempDir directory;
  testing::write_file(directory.file("t.etl"), testing::generated(200'000));
  for (const std::vector<std::string> &options :
       {std::vector<std::string>{}, {"--numbers"}, {"--join", "all"}})
    expect_query_like_a_database(directory.file("t.etl"), options);
  const auto trace = testing::trace_path("diaghub.kernel.1");
  if (trace && !testing::kSanitized)
    expect_query_like_a_database(trace->string(), {"--numbers", "--join", "all"});
}

TEST(TableExport, AColumnOfNumbersCanBeAddedUp) {
  const auto trace = testing::trace_path("net.4.5.2.x64");
  if (!trace) GTEST_SKIP() << "the real traces are not here";
  const TempDir directory;
  const std::string out = directory.file("x.sqlite");
  ASSERT_EQ(
      run_tool({"export", trace->string(), "--event", "GC/AllocationTick", "--numbers", "-o", out}).status,
      0);
  sqlite3 *database = nullptr;
  ASSERT_EQ(sqlite3_open(out.c_str(), &database), SQLITE_OK);
  std::int64_t sum = 0;
  for_each_row(database,
               "SELECT sum(AllocationAmount64) FROM "
               "Microsoft_Windows_DotNETRuntime_GarbageCollection_GCAllocationTick",
               [&](sqlite3_stmt *row) { sum = sqlite3_column_int64(row, 0); });
  sqlite3_close(database);
  EXPECT_EQ(sum, 1'108'915'440);
}

INSTANTIATE_TEST_SUITE_P(Shared, TableExport,
                         ::testing::Values("SelfDescribingSingleEvent", "AMSITrace",
                                           "SIH.20230422.034724.362.1", "HTTP_Server", "diaghub.kernel.1"));

// Payloads of one kind that end early or late among whole ones: a table by kind says of each what lines say.
TEST(TableExport, TablesByKindHoldWhatPayloadsOfOtherSizesHold) {
  testing::SyntheticTrace trace;
  std::int64_t time = 2'000'000;
  const auto resized = [&](std::size_t number, int more) {
    std::vector<std::uint8_t> event = trace.event(number);
    const auto size = static_cast<std::uint16_t>(static_cast<int>(event.size()) + more);
    event.resize(size, 0xA5);
    const auto type = static_cast<format::HeaderType>(event[2]);
    store(event.data() + format::kHeaderLayouts[static_cast<std::size_t>(type)].size_at, size);
    store(event.data() + format::kHeaderLayouts[static_cast<std::size_t>(type)].time_at, time += 10);
    trace.raw({time}, std::move(event), size);
  };
  trace.process_rundown({time}, 8, 4, "a.exe");
  for (std::uint32_t i = 0; i < 700; ++i) { // more than are made into rows at a time
    const std::size_t jump = trace.context_switch({time += 10}, 100 + i, 200 + i);
    const std::int64_t of = std::exchange(time, time + 10);
    const std::size_t walk = trace.stack_walk({time}, of, 8, 100 + i, {i, i + 1, i + 2});
    const std::size_t sample = trace.sample({time += 10}, 100 + i);
    if (i % 7 != 0) continue;
    resized(jump, static_cast<int>(i % 5) - 3);
    resized(walk, -static_cast<int>(i % 11));
    resized(sample, i % 2 == 0 ? -9 : 4);
  }
  const TempDir directory;
  const std::string file = directory.file("t.etl");
  testing::write_file(file, trace.bytes());
  ASSERT_EQ(run_tool({"export", file, "-o", directory.file("x.jsonl")}).status, 0);
  ASSERT_EQ(run_tool({"export", file, "-o", directory.file("x.csv")}).status, 0);
  ASSERT_EQ(run_tool({"export", file, "--by-kind", "--format", "csv", "-o", directory.file("kinds")}).status,
            0);
  const Events lines = from_json_lines(directory.file("x.jsonl"));
  EXPECT_GT(lines.size(), 2'300u);
  EXPECT_EQ(from_csv(directory.file("x.csv")), lines);
  EXPECT_EQ(from_folder(directory.file("kinds")), lines);
  // And what no field covers, and whether one is cut, by time stamp.
  using Rest = std::pair<std::string, std::string>;
  const auto rest = [](const std::string &path, std::map<std::string, Rest> &by_time) {
    const auto rows = parse_csv(path);
    for (std::size_t i = 1; i < rows.size(); ++i)
      by_time[rows[i][1]] = {rows[i].end()[-2], rows[i].back()};
  };
  std::map<std::string, Rest> in_lines, in_one, by_kind;
  std::ifstream text(directory.file("x.jsonl"));
  for (std::string line; std::getline(text, line);) {
    const json event = json::parse(line);
    in_lines[event.at("timestamp").dump()] = {event.value("raw", event.value("tail", "")),
                                              event.value("truncated", false) ? "true" : ""};
  }
  rest(directory.file("x.csv"), in_one);
  for (const auto &table : std::filesystem::directory_iterator(directory.file("kinds")))
    rest(table.path().string(), by_kind);
  EXPECT_EQ(in_one, in_lines);
  EXPECT_EQ(by_kind, in_lines);
  EXPECT_GT(std::ranges::count_if(in_lines, [](const auto &row) { return !row.second.first.empty(); }), 100);
  const auto cut =
      std::ranges::count_if(in_lines, [](const auto &row) { return row.second.second == "true"; });
  EXPECT_GT(cut, 100);
  EXPECT_EQ(run_tool({"query", file, "select count(truncated) as n from events where truncated"}).out,
            "n\n" + std::to_string(cut) + "\n");
  ASSERT_EQ(run_tool({"export", file, "-o", directory.file("x.sqlite")}).status, 0);
  sqlite3 *database = nullptr;
  ASSERT_EQ(sqlite3_open(directory.file("x.sqlite").c_str(), &database), SQLITE_OK);
  std::int64_t in_tables = 0;
  for (const char *table : {"Thread_CSwitch", "StackWalk_Stack", "PerfInfo_SampleProf"})
    for_each_row(database, std::string("SELECT sum(truncated) FROM ") + table,
                 [&](sqlite3_stmt *row) { in_tables += sqlite3_column_int64(row, 0); });
  EXPECT_EQ(in_tables, cut);
  sqlite3_close(database);
}

// Names and contents of all files of a folder.
std::map<std::string, std::vector<std::uint8_t>> contents(const std::string &folder) {
  std::map<std::string, std::vector<std::uint8_t>> all;
  for (const auto &file : std::filesystem::directory_iterator(folder))
    all[file.path().filename().string()] = testing::read_file(file.path().string());
  return all;
}

TEST(TableExport, AFolderOfTablesIsTheSameForAnyNumberOfThreadsAndWholeOrNotThere) {
  const auto trace = testing::trace_path("diaghub.kernel.1");
  if (!trace) GTEST_SKIP() << "the real traces are not here";
  const TempDir directory;
  const auto folder = [&](const char *name, std::vector<std::string> more) {
    std::vector<std::string> arguments = {"export", trace->string(),      "--by-kind",
                                          "-o",     directory.file(name), "--format"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_tool(arguments);
  };
  ASSERT_EQ(folder("one", {"arrow", "-t", "1"}).status, 0);
  ASSERT_EQ(folder("three", {"arrow", "-t", "3"}).status, 0);
  const auto one = contents(directory.file("one"));
  EXPECT_GT(one.size(), 5u);
  EXPECT_EQ(one, contents(directory.file("three")));
  // A folder is never replaced, and nothing is left of one that could not be made.
  EXPECT_EQ(folder("one", {"arrow", "--force"}).status, 1);
  EXPECT_EQ(one, contents(directory.file("one")));
  EXPECT_EQ(folder("two", {"sqlite"}).status, 2);
  EXPECT_EQ(run_tool({"export", trace->string(), "--by-kind"}).status, 2);
  EXPECT_EQ(directory.names(), (std::vector<std::string>{"one", "three"}));
}

TEST(TableExport, AFolderRemovesWhatAProcessThatWasKilledLeftOfAnother) {
  const auto trace = testing::trace_path("AMSITrace");
  if (!trace) GTEST_SKIP() << "the real traces are not here";
  const TempDir directory;
  const std::string dead = directory.file(".etwrelog-0123456789abcdef.tmp"),
                    alive = directory.file(".etwrelog-fedcba9876543210.tmp");
  for (const std::string &folder : {dead, alive}) {
    std::filesystem::create_directory(folder);
    testing::write_file(folder + "/Process_Start.csv", std::vector<std::uint8_t>{1, 2, 3});
  }
  const int lock = ::open(alive.c_str(), O_RDONLY | O_DIRECTORY);
  ASSERT_EQ(::flock(lock, LOCK_EX | LOCK_NB), 0);
  const ToolRun run =
      run_tool({"export", trace->string(), "--by-kind", "--format", "csv", "-o", directory.file("kinds")});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_FALSE(std::filesystem::exists(dead));
  EXPECT_TRUE(std::filesystem::exists(alive + "/Process_Start.csv")) << "its owner lives";
  ::close(lock);
}

// A trace in a container is called by the member; the container must not be replaced all the same.
TEST(TableExport, DoesNotReplaceTheContainerOfItsTrace) {
  const auto trace = testing::trace_path("SelfDescribingSingleEvent");
  if (!trace) GTEST_SKIP() << "the real traces are not here";
  const TempDir directory;
  const std::string zip = directory.file("x.zip");
  const auto bytes = testing::zip_of({{"x.etl", testing::read_file(trace->string())}});
  testing::write_file(zip, bytes);
  Result<Trace> opened = Trace::open(zip);
  ASSERT_TRUE(opened) << opened.error().message();
  const Output output(zip, Existing::replace);
  for (const Result<ExportReport> &report :
       {export_table(*opened, output, TableFormat::csv), export_json(*opened, output)}) {
    ASSERT_FALSE(report);
    EXPECT_EQ(report.error().kind, ErrorKind::usage);
  }
  EXPECT_EQ(testing::read_file(zip), bytes);
}

// A database is written here and there: into the output itself, or into a file that no name leads to.
TEST(TableExport, ADatabaseIsTheSameInAFileAndInMemoryAndWholeOrNotThere) {
  const TempDir directory, temporary;
  const std::string path = directory.file("x.etl");
  testing::write_file(path, testing::generated(2'000'000));
  const std::string out = directory.file("x.sqlite");
  ToolOptions full; // the disk, when the database has been written in part
  full.largest_file = 100'000;
  full.temporary = temporary.path().string();
  const ToolRun run = run_tool({"export", path, "-o", out}, full);
  EXPECT_EQ(run.status, 1);
  EXPECT_NE(run.err.find(out), std::string::npos) << run.err;
  EXPECT_EQ(directory.names(), std::vector<std::string>{"x.etl"});
  EXPECT_TRUE(temporary.names().empty());

  Result<Trace> trace = Trace::open(path);
  ASSERT_TRUE(trace) << trace.error().message();
  std::vector<std::uint8_t> memory;
  const auto in_memory = export_table(*trace, Output::memory(memory), TableFormat::sqlite);
  ASSERT_TRUE(in_memory) << in_memory.error().message();
  const auto in_file = export_table(*trace, Output(out), TableFormat::sqlite);
  ASSERT_TRUE(in_file) << in_file.error().message();
  EXPECT_EQ(in_file->bytes, memory.size());
  EXPECT_EQ(testing::read_file(out), memory);
  EXPECT_EQ(from_sqlite(out).size(), in_file->events);
}

TEST(TableExport, RefusesAnExistingFileAndWritesNothing) {
  const TempDir directory;
  const auto trace = testing::trace_path("AMSITrace");
  if (!trace) GTEST_SKIP() << "the real traces are not here";
  const std::string out = directory.file("x.sqlite");
  testing::write_file(out, {});
  EXPECT_NE(run_tool({"export", trace->string(), "-o", out}).status, 0);
  EXPECT_TRUE(testing::read_file(out).empty());
  // Parquet needs DuckDB's library, and says so.
  ASSERT_EQ(::setenv("ETWRELOG_DUCKDB", directory.file("libduckdb.so").c_str(), 1), 0);
  const ToolRun parquet = run_tool({"export", trace->string(), "-o", directory.file("x.parquet")});
  const ToolRun folder = run_tool(
      {"export", trace->string(), "--by-kind", "--format", "parquet", "-o", directory.file("kinds")});
  ::unsetenv("ETWRELOG_DUCKDB");
  for (const ToolRun *without : {&parquet, &folder}) {
    EXPECT_EQ(without->status, 1);
    EXPECT_NE(without->err.find("$ETWRELOG_DUCKDB"), std::string::npos) << without->err;
  }
  EXPECT_EQ(directory.names(), std::vector<std::string>{"x.sqlite"});
}

} // namespace
} // namespace etwrelog
