// Events as Arrow's structures: every value is the export's, and what is handed over is the caller's.
#include "etwrelog/arrow.hpp"
#include "tests/guests/c_handles.hpp"
#include "tests/support/trace_files.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cerrno>
#include <map>
#include <sstream>
#include <tuple>

namespace etwrelog::testing {
namespace {

using nlohmann::json;

// Releases what it holds.
template <class Structure> struct Holder {
  Structure held{};
  Holder() = default;
  Holder(Holder &&other) noexcept : held(std::exchange(other.held, {})) {}
  Holder &operator=(Holder &&other) noexcept {
    std::swap(held, other.held);
    return *this;
  }
  ~Holder() {
    if (held.release != nullptr) held.release(&held);
  }
  Structure *operator->() { return &held; }
  const Structure *operator->() const { return &held; }
};
using Stream = Holder<ArrowArrayStream>;
using Layout = Holder<ArrowSchema>;
using Batch = Holder<ArrowArray>;

template <class T> T at(const ArrowArray &array, int buffer, std::int64_t row) {
  return static_cast<const T *>(array.buffers[buffer])[array.offset + row];
}

bool bit(const ArrowArray &array, int buffer, std::int64_t row) {
  const std::int64_t place = array.offset + row;
  return (at<std::uint8_t>(array, buffer, place / 8 - array.offset) >> (place % 8) & 1) != 0;
}

std::string text_at(const ArrowArray &texts, std::int64_t row) {
  const auto from = at<std::int32_t>(texts, 1, row), to = at<std::int32_t>(texts, 1, row + 1);
  return {static_cast<const char *>(texts.buffers[2]) + from, static_cast<std::size_t>(to - from)};
}

json value_at(const ArrowSchema &column, const ArrowArray &array, std::int64_t row) {
  if (array.buffers[0] != nullptr && !bit(array, 0, row)) return nullptr;
  const std::string format = column.format;
  if (format == "l" || format == "tsn:UTC") return at<std::int64_t>(array, 1, row);
  if (format == "L") return at<std::uint64_t>(array, 1, row);
  if (format == "g") return at<double>(array, 1, row);
  if (format == "b") return bit(array, 1, row);
  if (format == "u") return text_at(array, row);
  if (format == "+l") {
    json list = json::array();
    for (auto i = at<std::int32_t>(array, 1, row); i < at<std::int32_t>(array, 1, row + 1); ++i)
      list.push_back(value_at(*column.children[0], *array.children[0], i));
    return list;
  }
  EXPECT_EQ(format, "i");
  const auto place = at<std::int32_t>(array, 1, row);
  EXPECT_LT(place, array.dictionary->length);
  return text_at(*array.dictionary, place);
}

// Rows as objects of what is not null, and how many each batch had.
struct Table {
  std::vector<json> rows;
  std::vector<std::int64_t> batches;
  std::vector<std::string> columns;
};

Table read(Stream &stream) {
  Table table;
  Layout layout;
  EXPECT_EQ(stream->get_schema(&stream.held, &layout.held), 0);
  EXPECT_STREQ(layout->format, "+s");
  for (std::int64_t i = 0; i < layout->n_children; ++i)
    table.columns.emplace_back(layout->children[i]->name);
  for (;;) {
    Batch batch;
    const int status = stream->get_next(&stream.held, &batch.held);
    EXPECT_EQ(status, 0) << stream->get_last_error(&stream.held);
    if (status != 0 || batch->release == nullptr) return table;
    EXPECT_EQ(batch->n_children, layout->n_children);
    table.batches.push_back(batch->length);
    for (std::int64_t row = 0; row < batch->length; ++row) {
      json &object = table.rows.emplace_back(json::object());
      for (std::int64_t i = 0; i < batch->n_children; ++i) {
        EXPECT_EQ(batch->children[i]->length, batch->length);
        if (json value = value_at(*layout->children[i], *batch->children[i], row); !value.is_null())
          object[layout->children[i]->name] = std::move(value);
      }
    }
  }
}

SyntheticTrace sampled_trace(int samples = 3'000) {
  SyntheticTrace trace;
  trace.process_rundown({1'100'000}, 4, 0, "System");
  trace.process_start({1'200'000}, 100, 4, "game.exe", "game.exe \"\xC3\xBC\"");
  trace.thread_start({1'200'100}, 101, 100);
  for (int i = 0; i < samples; ++i) {
    const std::int64_t time = 2'000'000 + 1'000 * i;
    trace.sample({time, static_cast<std::uint16_t>(i % 4)}, 101);
    if (i % 10 == 0) trace.stack_walk({time + 10}, time, 100, 101, {0x7FF6'0000'1000, 0x7FF6'0000'2000});
  }
  const std::vector<std::uint8_t> payload{1, 2, 0xAB};
  trace.manifest_event({1'900'000}, {.provider = kProvider, .id = 7}, 101, 100, payload);
  trace.process_end({900'000'000}, 100, "game.exe");
  return trace;
}

std::vector<json> exported(const std::string &path, const ExportOptions &options = {}) {
  std::vector<std::uint8_t> bytes;
  const Result<etwrelog::Trace> trace = etwrelog::Trace::open(path);
  const Result<ExportReport> done = export_json(*trace, Output::memory(bytes), options);
  EXPECT_TRUE(done) << done.error().message();
  std::istringstream lines(std::string(bytes.begin(), bytes.end()));
  std::vector<json> events;
  for (std::string line; std::getline(lines, line);)
    events.push_back(json::parse(line));
  return events;
}

// What columns of all events say, against a line of the export.
void expect_common(const json &row, const json &event) {
  for (const char *name :
       {"timestamp", "cpu", "process_id", "thread_id", "process", "provider", "provider_id", "event", "id",
        "version", "opcode", "level", "keyword", "activity", "related_activity", "raw", "truncated"}) {
    const json expected = event.contains(name) ? event.at(name) : json();
    EXPECT_EQ(row.contains(name) ? row.at(name) : json(), expected) << name << " of " << event;
  }
}

struct CTables : ::testing::Test {
  TracePtr open_trace(const std::string &path) {
    TracePtr trace = open({path}, error);
    EXPECT_TRUE(trace) << text_of(error);
    return trace;
  }
  Stream stream_of(const TracePtr &trace, const etwr_table_options *options = nullptr,
                   const etwr_run *run = nullptr) {
    Stream stream;
    error.reset(etwr_events_stream(trace.get(), options, run, &stream.held));
    EXPECT_FALSE(error) << text_of(error);
    return stream;
  }
  std::shared_ptr<etwr_tables> tables_of(const TracePtr &trace, const etwr_table_options *options = nullptr) {
    etwr_tables *made = nullptr;
    error.reset(etwr_tables_open(trace.get(), options, nullptr, &made));
    EXPECT_FALSE(error) << text_of(error);
    return {made, etwr_tables_free};
  }
  Stream stream_of(const std::shared_ptr<etwr_tables> &tables, std::size_t table) {
    Stream stream;
    error.reset(etwr_table_stream(tables.get(), table, &stream.held));
    EXPECT_FALSE(error) << text_of(error);
    return stream;
  }

  GuestFiles files;
  ErrorPtr error;
};

TEST_F(CTables, AllEventsAreTheRowsOfTheExport) {
  const std::string path = files.write("a.etl", sampled_trace().bytes());
  const TracePtr trace = open_trace(path);
  Stream stream = stream_of(trace);
  const Table table = read(stream);
  const std::vector<json> events = exported(path);
  ASSERT_EQ(table.rows.size(), events.size());
  for (std::size_t i = 0; i < events.size(); ++i) {
    const json &row = table.rows[i];
    expect_common(row, events[i]);
    EXPECT_EQ(row.contains("fields") ? json::parse(row.at("fields").get<std::string>()) : json(),
              events[i].at("fields"));
    EXPECT_EQ(row.at("time").get<std::int64_t>() / 100 + 116'444'736'000'000'000,
              etwr_filetime(trace.get(), row.at("timestamp").get<std::int64_t>()));
  }
  // Behind the end there is nothing more.
  Batch batch;
  EXPECT_EQ(stream->get_next(&stream.held, &batch.held), 0);
  EXPECT_EQ(batch->release, nullptr);
}

TEST_F(CTables, EachKindHasAColumnForEachField) {
  const std::string path = files.write("a.etl", sampled_trace().bytes());
  const TracePtr trace = open_trace(path);
  const auto tables = tables_of(trace);
  const std::vector<json> events = exported(path);
  std::map<std::string, std::vector<json>> by_name;
  for (const json &event : events)
    by_name[event.at("fields").is_null() ? "undescribed" : event.at("event").get<std::string>()].push_back(
        event);
  EXPECT_EQ(etwr_table_count(tables.get()), by_name.size());
  EXPECT_EQ(etwr_table_at(tables.get(), by_name.size()), nullptr);
  std::size_t rows = 0;
  for (std::size_t i = 0; i < etwr_table_count(tables.get()); ++i) {
    const etwr_table *described = etwr_table_at(tables.get(), i);
    Stream stream = stream_of(tables, i);
    const Table table = read(stream);
    ASSERT_FALSE(table.rows.empty());
    EXPECT_EQ(table.rows.size(), described->events) << described->name;
    rows += table.rows.size();
    const bool undescribed = std::string(described->name) == "undescribed";
    const std::vector<json> &of =
        by_name[undescribed ? "undescribed" : table.rows[0].at("event").get<std::string>()];
    ASSERT_EQ(table.rows.size(), of.size()) << described->name;
    for (std::size_t r = 0; r < of.size(); ++r) {
      expect_common(table.rows[r], of[r]);
      if (undescribed) continue;
      for (const auto &[name, value] : of[r].at("fields").items()) {
        // A field that is called like a column has a number.
        const json &row = table.rows[r];
        const json &found = row.contains(name + "#2") ? row.at(name + "#2") : row.at(name);
        EXPECT_EQ(found.is_string() && !value.is_string() ? json::parse(found.get<std::string>()) : found,
                  value)
            << described->name << "." << name;
      }
    }
  }
  EXPECT_EQ(rows, events.size());
}

TEST_F(CTables, AddressesAreNumbersAndStacksListsIfAskedFor) {
  const TracePtr trace = open_trace(files.write("a.etl", sampled_trace().bytes()));
  auto options = sized<etwr_table_options>();
  options.where = "event = \"StackWalk/Stack\"";
  options.flags = ETWR_TABLE_NUMBERS;
  const auto tables = tables_of(trace, &options);
  ASSERT_EQ(etwr_table_count(tables.get()), 1u);
  Stream of_kind = stream_of(tables, 0);
  const Table table = read(of_kind);
  ASSERT_EQ(table.rows.size(), 300u);
  const json stack = {0x7FF6'0000'1000, 0x7FF6'0000'2000};
  EXPECT_EQ(table.rows.back().at("Stack"), stack);
  Stream all = stream_of(trace, &options);
  EXPECT_EQ(json::parse(read(all).rows.back().at("fields").get<std::string>()).at("Stack"), stack);
  options.flags = 0;
  Stream texts = stream_of(trace, &options);
  EXPECT_EQ(json::parse(read(texts).rows.back().at("fields").get<std::string>()).at("Stack"),
            json({"0x7ff600001000", "0x7ff600002000"}));
  options.flags = 2;
  Stream bad;
  error.reset(etwr_events_stream(trace.get(), &options, nullptr, &bad.held));
  ASSERT_TRUE(error);
  EXPECT_EQ(etwr_error_kind(error.get()), ETWR_ERROR_USAGE);
}

TEST_F(CTables, WhatIsHandedOverOutlivesWhereItCameFrom) {
  TracePtr trace = open_trace(files.write("a.etl", sampled_trace(40'000).bytes()));
  auto tables = tables_of(trace);
  std::size_t sample = 0;
  while (std::string(etwr_table_at(tables.get(), sample)->name) != "PerfInfo_SampleProf")
    ++sample;
  Layout layout;
  Batch batch;
  ArrowArray column{}, dictionary{};
  {
    Stream stream = stream_of(tables, sample);
    tables.reset();
    trace.reset();
    ASSERT_EQ(stream->get_schema(&stream.held, &layout.held), 0);
    ASSERT_EQ(stream->get_next(&stream.held, &batch.held), 0);
    ASSERT_GT(batch->length, 1'000);
    ASSERT_LT(batch->length, 40'000); // there is more, which nobody reads
  }
  ASSERT_STREQ(layout->children[8]->name, "event");
  EXPECT_EQ(value_at(*layout->children[8], *batch->children[8], 7), "PerfInfo/SampleProf");
  // Moved out, as Arrow allows: the old place is marked, the rest is released.
  column = *batch->children[8];
  batch->children[8]->release = nullptr;
  batch = Batch();
  ASSERT_NE(column.release, nullptr);
  EXPECT_EQ(value_at(*layout->children[8], column, 7), "PerfInfo/SampleProf");
  dictionary = *column.dictionary;
  column.dictionary->release = nullptr;
  column.release(&column);
  EXPECT_EQ(column.release, nullptr);
  EXPECT_EQ(text_at(dictionary, 0), "PerfInfo/SampleProf");
  dictionary.release(&dictionary);
}

TEST_F(CTables, BatchesAreTheSameWhateverTheThreads) {
  const TracePtr trace = open_trace(files.write("a.etl", sampled_trace(40'000).bytes()));
  auto run = sized<etwr_run>();
  run.threads = 1;
  Stream one = stream_of(trace, nullptr, &run);
  const Table serial = read(one);
  run.threads = 4;
  Stream several = stream_of(trace, nullptr, &run);
  const Table parallel = read(several);
  EXPECT_GT(serial.batches.size(), 1u);
  EXPECT_EQ(serial.batches, parallel.batches);
  EXPECT_EQ(serial.rows, parallel.rows);
}

TEST_F(CTables, OptionsAreThoseOfTheExport) {
  const std::string path = files.write("a.etl", sampled_trace().bytes());
  const TracePtr trace = open_trace(path);
  const char *const processes[] = {"game.exe"};
  auto selection = sized<etwr_selection>();
  selection.processes = processes;
  selection.process_count = 1;
  auto options = sized<etwr_table_options>();
  options.selection = &selection;
  options.where = "event = \"PerfInfo/SampleProf\" and cpu = 2";
  options.joins = ETWR_JOIN_OWNER | ETWR_JOIN_STACK;
  ExportOptions same;
  same.selection.processes = {"game.exe"};
  same.where = options.where;
  same.joins.owner = same.joins.stack = true;
  Stream stream = stream_of(trace, &options);
  const Table table = read(stream);
  const std::vector<json> events = exported(path, same);
  ASSERT_EQ(table.rows.size(), 750u);
  ASSERT_EQ(events.size(), 750u);
  for (std::size_t i = 0; i < events.size(); ++i) {
    EXPECT_EQ(table.rows[i].at("owner_process"), events[i].at("owner_process"));
    EXPECT_EQ(table.rows[i].contains("stack"), events[i].contains("stack"));
  }
  // Of kinds: only those that are left.
  const auto tables = tables_of(trace, &options);
  ASSERT_EQ(etwr_table_count(tables.get()), 1u);
  EXPECT_STREQ(etwr_table_at(tables.get(), 0)->name, "PerfInfo_SampleProf");
  EXPECT_EQ(etwr_table_at(tables.get(), 0)->events, 750u);
  Stream of_kind = stream_of(tables, 0);
  EXPECT_EQ(read(of_kind).rows.size(), 750u);

  // A condition that nothing fulfils gives an empty table; one that does not read, an error.
  options.where = "cpu = 200 and cpu = 3";
  Stream nothing = stream_of(trace, &options);
  const Table empty = read(nothing);
  EXPECT_TRUE(empty.rows.empty());
  EXPECT_EQ(empty.columns.front(), "time");
  options.where = "cpu ==";
  Stream bad;
  error.reset(etwr_events_stream(trace.get(), &options, nullptr, &bad.held));
  ASSERT_TRUE(error);
  EXPECT_EQ(etwr_error_kind(error.get()), ETWR_ERROR_USAGE);
  EXPECT_EQ(bad->release, nullptr);
  options.where = nullptr;
  options.joins = 128;
  error.reset(etwr_events_stream(trace.get(), &options, nullptr, &bad.held));
  EXPECT_TRUE(error);
  error.reset(etwr_table_stream(tables.get(), 1, &bad.held));
  EXPECT_TRUE(error);
  EXPECT_EQ(bad->release, nullptr);
}

TEST_F(CTables, ErrorsAreNumbersWithAMessage) {
  const std::string path = files.write("a.etl", sampled_trace(40'000).bytes());
  const TracePtr trace = open_trace(path);
  Stream stream = stream_of(trace);
  EXPECT_EQ(stream->get_last_error(&stream.held), nullptr);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
  Batch batch;
  int status = 0;
  while ((status = stream->get_next(&stream.held, &batch.held)) == 0 && batch->release != nullptr)
    batch = Batch();
  EXPECT_EQ(status, EIO);
  ASSERT_NE(stream->get_last_error(&stream.held), nullptr);
  EXPECT_NE(std::string(stream->get_last_error(&stream.held)).find("a.etl"), std::string::npos);
  // It has ended.
  EXPECT_EQ(stream->get_next(&stream.held, &batch.held), 0);
  EXPECT_EQ(batch->release, nullptr);
}

TEST_F(CTables, AStopCallbackCancels) {
  const TracePtr trace = open_trace(files.write("a.etl", sampled_trace(40'000).bytes()));
  int stop = 0;
  auto run = sized<etwr_run>();
  run.context = &stop;
  run.stop = [](void *context) { return *static_cast<int *>(context); };
  run.progress = [](void *, const char *, std::uint64_t, std::uint64_t) {};
  Stream stream = stream_of(trace, nullptr, &run);
  stop = 1;
  int status = 0;
  for (int i = 0; i < 1'000 && status == 0; ++i) {
    Batch batch;
    status = stream->get_next(&stream.held, &batch.held);
    if (batch->release == nullptr) break;
  }
  EXPECT_EQ(status, ECANCELED);
  error.reset(etwr_events_stream(trace.get(), nullptr, &run, &stream.held));
  ASSERT_TRUE(error);
  EXPECT_EQ(etwr_error_kind(error.get()), ETWR_ERROR_CANCELLED);
}

// Row by row against the export: the fields as text, the tables by their sum.
class TablesOfRealTraces : public ::testing::TestWithParam<const char *> {
protected:
  GuestFiles files;
  ErrorPtr error;
};

TEST_P(TablesOfRealTraces, SayWhatTheExportSays) {
  const auto file = trace_path(GetParam());
  if (!file) GTEST_SKIP() << "no shared traces here";
  const TracePtr trace = open({file->string()}, error);
  ASSERT_TRUE(trace) << text_of(error);
  std::vector<std::uint8_t> bytes;
  const Result<etwrelog::Trace> input = etwrelog::Trace::open(file->string());
  ASSERT_TRUE(export_json(*input, Output::memory(bytes)));
  std::istringstream lines(std::string(bytes.begin(), bytes.end()));
  Stream stream;
  error.reset(etwr_events_stream(trace.get(), nullptr, nullptr, &stream.held));
  ASSERT_FALSE(error) << text_of(error);
  Layout layout;
  ASSERT_EQ(stream->get_schema(&stream.held, &layout.held), 0);
  ASSERT_STREQ(layout->children[16]->name, "fields");
  std::uint64_t rows = 0, differ = 0;
  std::string line;
  for (;;) {
    Batch batch;
    ASSERT_EQ(stream->get_next(&stream.held, &batch.held), 0) << stream->get_last_error(&stream.held);
    if (batch->release == nullptr) break;
    for (std::int64_t row = 0; row < batch->length; ++row, ++rows) {
      ASSERT_TRUE(std::getline(lines, line));
      const json fields = value_at(*layout->children[16], *batch->children[16], row);
      const std::string expected = "\"fields\":" + (fields.is_null() ? "null" : fields.get<std::string>());
      const std::string stamp =
          "\"timestamp\":" + std::to_string(at<std::int64_t>(*batch->children[1], 1, row)) + ",";
      if ((line.find(expected) == std::string::npos || line.find(stamp) == std::string::npos) && ++differ < 5)
        ADD_FAILURE() << stamp << expected << "\n" << line;
    }
  }
  EXPECT_FALSE(std::getline(lines, line));
  EXPECT_EQ(differ, 0u);
  etwr_tables *made = nullptr;
  error.reset(etwr_tables_open(trace.get(), nullptr, nullptr, &made));
  ASSERT_FALSE(error) << text_of(error);
  const std::shared_ptr<etwr_tables> tables(made, etwr_tables_free);
  std::uint64_t in_tables = 0;
  for (std::size_t i = 0; i < etwr_table_count(made); ++i)
    in_tables += etwr_table_at(made, i)->events;
  EXPECT_EQ(in_tables, rows);
}

INSTANTIATE_TEST_SUITE_P(C, TablesOfRealTraces,
                         ::testing::Values("net.4.5.2.x64", "TraceLoggingTester", "HTTP_Server", "diaghub",
                                           "KernelNetwork", "process_data_64_v3",
                                           "SelfDescribingSingleEvent"),
                         [](const auto &trace) { return testing::test_name(trace.param); });

} // namespace
} // namespace etwrelog::testing
