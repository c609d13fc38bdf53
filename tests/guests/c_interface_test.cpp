// The C interface, as a program in C calls it.
#include "tests/guests/c_handles.hpp"
#include "tests/support/zip_files.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace etwrelog::testing {
namespace {

struct Walk {
  std::vector<std::int64_t> times;
  std::vector<std::uint32_t> sources;
  ErrorPtr error;
};

Walk walk(const TracePtr &trace, int order, const etwr_query *query = nullptr,
          const etwr_run *run = nullptr) {
  Walk result;
  etwr_cursor *made = nullptr;
  result.error.reset(etwr_events(trace.get(), order, query, run, &made));
  const CursorPtr cursor(made);
  const etwr_event *event = nullptr;
  etwr_error *error = nullptr;
  while (cursor && etwr_next(cursor.get(), &event, &error) != 0) {
    result.times.push_back(event->time);
    result.sources.push_back(event->source);
  }
  if (error != nullptr) result.error.reset(error);
  return result;
}

SyntheticTrace busy_trace(int events = 40) {
  SyntheticTrace trace;
  for (int i = 0; i < events; ++i)
    trace.sample({2'000'000 + 1'000 * i, static_cast<std::uint16_t>(i % 4)}, 7);
  return trace;
}

TEST(CInterface, TellsWhatTheHeaderSays) {
  const GuestFiles files;
  const std::string path = files.write("a.etl", busy_trace().bytes());
  ErrorPtr error;
  const TracePtr trace = open({path}, error);
  ASSERT_TRUE(trace) << etwr_error_message(error.get());
  ASSERT_EQ(etwr_source_count(trace.get()), 1u);
  const etwr_source *source = etwr_source_at(trace.get(), 0);
  ASSERT_NE(source, nullptr);
  EXPECT_EQ(etwr_source_at(trace.get(), 1), nullptr);
  EXPECT_EQ(source->struct_size, sizeof(etwr_source));
  EXPECT_EQ(source->name, path);
  EXPECT_EQ(source->processors, 4u);
  EXPECT_EQ(source->perf_freq, 10'000'000);
  EXPECT_EQ(source->start_time, 132'500'000'000'000'000);
  EXPECT_DOUBLE_EQ(etwr_seconds(trace.get(), source->first_stamp + 10'000'000), 1.0);
  EXPECT_EQ(etwr_filetime(trace.get(), source->first_stamp), source->start_time);
  EXPECT_EQ(source->missing_buffers, 0u);
}

// Central Europe: an hour more from the last Sunday of March to that of October.
TEST(CInterface, TellsTheLocalTimeOfTheSeason) {
  const GuestFiles files;
  constexpr std::int64_t kJuly = 132'380'352'000'000'000, kNovember = 132'500'000'000'000'000; // of 2020
  for (const std::int64_t start : {kJuly, kNovember, std::int64_t{0}}) {
    std::vector<std::uint8_t> bytes = busy_trace().bytes();
    std::uint8_t *header = &bytes[format::kBufferHeaderSize + format::kSystemHeaderSize];
    store(header + format::kLogfileHeader64.start_time, start);
    std::uint8_t *zone = header + format::kLogfileHeader64.bias;
    const auto change = [&](std::size_t date, std::uint16_t month, std::uint16_t hour) {
      store(zone + date + 2, month);
      store(zone + date + 6, std::uint16_t{5}); // the last of the month
      store(zone + date + 8, hour);
    };
    store(zone, std::int32_t{-60});
    change(format::kDaylightDateAt, 3, 2);
    store(zone + format::kDaylightBiasAt, std::int32_t{-60});
    change(format::kStandardDateAt, 10, 3);
    ErrorPtr error;
    const TracePtr trace = open({files.write("zone.etl", bytes)}, error);
    ASSERT_TRUE(trace) << etwr_error_message(error.get());
    const etwr_source *source = etwr_source_at(trace.get(), 0);
    EXPECT_EQ(source->timezone_bias, -60);
    EXPECT_EQ(source->timezone_bias_at_start, start == kJuly ? -120 : -60) << start;
  }
}

TEST(CInterface, TellsOfBuffersThatAreMissing) {
  const GuestFiles files;
  std::vector<std::uint8_t> bytes = busy_trace().bytes();
  const auto open_cut = [&] {
    ErrorPtr error;
    TracePtr trace = open({files.write("cut.etl", bytes)}, error);
    EXPECT_TRUE(trace) << etwr_error_message(error.get());
    return trace;
  };
  const TracePtr whole = open_cut();
  const etwr_source *const all = etwr_source_at(whole.get(), 0);
  ASSERT_GE(all->buffers, 3u);
  bytes.erase(bytes.end() - 2 * std::ptrdiff_t{all->buffer_size}, bytes.end());
  const TracePtr cut = open_cut();
  const etwr_source *const rest = etwr_source_at(cut.get(), 0);
  EXPECT_EQ(rest->buffers, all->buffers - 2);
  EXPECT_EQ(rest->missing_buffers, 2u);
}

TEST(CInterface, EventsComeAsStoredOrInOrderOfTime) {
  const GuestFiles files;
  ErrorPtr error;
  const TracePtr trace =
      open({files.write("a.etl", busy_trace().bytes()), files.write("b.etl", busy_trace(10).bytes())}, error);
  ASSERT_TRUE(trace) << etwr_error_message(error.get());
  const Walk stored = walk(trace, ETWR_ORDER_FILE), timed = walk(trace, ETWR_ORDER_TIME);
  EXPECT_FALSE(stored.error);
  EXPECT_EQ(stored.times.size(), 52u);
  EXPECT_TRUE(std::is_sorted(stored.sources.begin(), stored.sources.end()));
  EXPECT_FALSE(std::is_sorted(stored.times.begin(), stored.times.end()));
  EXPECT_EQ(timed.times.size(), 52u);
  EXPECT_TRUE(std::is_sorted(timed.times.begin(), timed.times.end()));
}

TEST(CInterface, AnEventIsAllThatItsHeaderSays) {
  SyntheticTrace made;
  const std::vector<std::uint8_t> payload{1, 2, 3, 4, 5}, stack = stack_item({0x1000, 0x2000});
  made.manifest_event(
      {2'000'000, 2},
      {.provider = kProvider,
       .id = 7,
       .version = 2,
       .channel = 16,
       .level = 4,
       .opcode = 1,
       .task = 9,
       .keyword = 0x10},
      21, 22, payload,
      {{format::ItemType::stack_trace64, stack}, {format::ItemType::event_key, {1, 0, 0, 0, 0, 0, 0, 0}}});
  const GuestFiles files;
  ErrorPtr error;
  const TracePtr trace = open({files.write("a.etl", made.bytes())}, error);
  etwr_cursor *cursor = nullptr;
  ASSERT_EQ(etwr_events(trace.get(), ETWR_ORDER_FILE, nullptr, nullptr, &cursor), nullptr);
  const CursorPtr owner(cursor);
  const etwr_event *event = nullptr;
  ASSERT_EQ(etwr_next(cursor, &event, nullptr), 1);
  EXPECT_EQ(event->kind, ETWR_EVENT_KERNEL);
  ASSERT_EQ(etwr_next(cursor, &event, nullptr), 1);
  EXPECT_EQ(event->struct_size, sizeof(etwr_event));
  EXPECT_EQ(event->kind, ETWR_EVENT_MANIFEST);
  EXPECT_EQ(event->time, 2'000'000);
  EXPECT_EQ(load_guid(event->provider), kProvider);
  EXPECT_EQ(event->id, 7);
  EXPECT_EQ(event->version, 2);
  EXPECT_EQ(event->channel, 16);
  EXPECT_EQ(event->level, 4);
  EXPECT_EQ(event->opcode, 1);
  EXPECT_EQ(event->task, 9);
  EXPECT_EQ(event->keyword, 0x10u);
  EXPECT_EQ(event->thread_id, 21u);
  EXPECT_EQ(event->process_id, 22u);
  EXPECT_EQ(event->processor, 2);
  EXPECT_EQ(event->pointer_size, 8);
  EXPECT_EQ(std::vector<std::uint8_t>(event->payload, event->payload + event->payload_size), payload);
  std::size_t at = 0, size = 0;
  std::uint16_t type = 0;
  const std::uint8_t *data = nullptr;
  ASSERT_EQ(etwr_event_item(event, &at, &type, &data, &size), 1);
  EXPECT_EQ(type, 6);
  EXPECT_EQ(std::vector<std::uint8_t>(data, data + size), stack);
  ASSERT_EQ(etwr_event_item(event, &at, &type, &data, &size), 1);
  EXPECT_EQ(type, 10);
  EXPECT_EQ(etwr_event_item(event, &at, &type, &data, &size), 0);
  EXPECT_EQ(etwr_event_item(event, &at, &type, &data, &size), 0);
  EXPECT_EQ(etwr_next(cursor, &event, nullptr), 0);
  EXPECT_EQ(etwr_next(cursor, &event, nullptr), 0);
  EXPECT_EQ(etwr_cursor_status(cursor), nullptr);
}

TEST(CInterface, ACursorThatIsNoneHasAnErrorAsItsStatus) {
  etwr_error *const error = etwr_cursor_status(nullptr);
  ASSERT_NE(error, nullptr);
  EXPECT_EQ(etwr_error_kind(error), ETWR_ERROR_USAGE);
  etwr_error_free(error);
}

TEST(CInterface, AQueryNarrowsTheWalk) {
  SyntheticTrace made = busy_trace();
  made.manifest_event({3'000'000, 0}, {.provider = kProvider, .id = 7}, 21, 22);
  made.manifest_event({3'100'000, 0}, {.provider = kProvider, .id = 8}, 21, 22);
  const GuestFiles files;
  ErrorPtr error;
  const TracePtr trace = open({files.write("a.etl", made.bytes())}, error);
  std::uint8_t guid[16];
  store_guid(guid, kProvider);
  etwr_query query{};
  query.struct_size = sizeof query;
  query.providers = guid;
  query.provider_count = 1;
  EXPECT_EQ(walk(trace, ETWR_ORDER_TIME, &query).times, (std::vector<std::int64_t>{3'000'000, 3'100'000}));
  const std::uint16_t hook = 0;
  query.hooks = &hook; // and the header event
  query.hook_count = 1;
  EXPECT_EQ(walk(trace, ETWR_ORDER_TIME, &query).times.size(), 3u);
  query = {};
  query.struct_size = sizeof query;
  query.from = "0.2s";
  EXPECT_EQ(walk(trace, ETWR_ORDER_TIME, &query).times, (std::vector<std::int64_t>{3'000'000, 3'100'000}));
  query.from = "soon";
  const Walk bad = walk(trace, ETWR_ORDER_TIME, &query);
  ASSERT_TRUE(bad.error);
  EXPECT_EQ(etwr_error_kind(bad.error.get()), ETWR_ERROR_USAGE);
  EXPECT_STREQ(etwr_error_found(bad.error.get()), "soon");
}

TEST(CInterface, ErrorsHaveFileOffsetExpectedAndFound) {
  std::vector<std::uint8_t> bytes = busy_trace().bytes();
  store(&bytes[0x10000], std::uint32_t{0x11}); // BufferSize of the second buffer
  const GuestFiles files;
  const std::string path = files.write("damaged.etl", bytes);
  ErrorPtr error;
  const TracePtr trace = open({path}, error);
  ASSERT_FALSE(trace);
  ASSERT_TRUE(error);
  EXPECT_EQ(etwr_error_kind(error.get()), ETWR_ERROR_CORRUPT);
  EXPECT_EQ(etwr_error_file(error.get()), path);
  std::uint64_t offset = 0;
  EXPECT_EQ(etwr_error_offset(error.get(), &offset), 1);
  EXPECT_GE(offset, 0x10000u);
  EXPECT_LT(offset, 0x10048u);
  EXPECT_STRNE(etwr_error_expected(error.get()), "");
  EXPECT_STRNE(etwr_error_found(error.get()), "");
  EXPECT_NE(std::string(etwr_error_message(error.get())).find("damaged.etl"), std::string::npos);

  etwr_open_options salvage{};
  salvage.struct_size = sizeof salvage;
  salvage.salvage = 1;
  EXPECT_TRUE(open({path}, error, &salvage)) << etwr_error_message(error.get());
  EXPECT_FALSE(open({files.path("absent.etl")}, error));
  EXPECT_EQ(etwr_error_kind(error.get()), ETWR_ERROR_IO);
  EXPECT_FALSE(open({}, error));
  EXPECT_EQ(etwr_error_kind(error.get()), ETWR_ERROR_USAGE);
}

TEST(CInterface, AStopCallbackCancels) {
  const GuestFiles files;
  ErrorPtr error;
  const TracePtr trace = open({files.write("a.etl", busy_trace().bytes())}, error);
  int asked = 0;
  etwr_run run{};
  run.struct_size = sizeof run;
  run.threads = 1;
  run.context = &asked;
  run.stop = [](void *context) { return ++*static_cast<int *>(context); };
  const Walk stopped = walk(trace, ETWR_ORDER_FILE, nullptr, &run);
  ASSERT_TRUE(stopped.error);
  EXPECT_EQ(etwr_error_kind(stopped.error.get()), ETWR_ERROR_CANCELLED);
  EXPECT_GT(asked, 0);
}

// Of an older program: fields behind struct_size are not looked at.
TEST(CInterface, OlderStructuresAreRead) {
  const GuestFiles files;
  ErrorPtr error;
  const TracePtr trace = open({files.write("a.etl", busy_trace().bytes())}, error);
  etwr_query query{};
  query.struct_size = offsetof(etwr_query, from);
  query.from = "not a time";
  const Walk all = walk(trace, ETWR_ORDER_FILE, &query);
  EXPECT_FALSE(all.error);
  EXPECT_EQ(all.times.size(), 41u);
}

// What was asked for would be left out without a word.
TEST(CInterface, AStructureWithoutItsSizeAndOneWithUnknownFieldsAreRefused) {
  const GuestFiles files;
  ErrorPtr error;
  const TracePtr trace = open({files.write("a.etl", busy_trace().bytes())}, error);
  etwr_query query{};
  for (const std::size_t size : {std::size_t{0}, sizeof query.struct_size, std::size_t{12}, SIZE_MAX}) {
    query.struct_size = size;
    const Walk none = walk(trace, ETWR_ORDER_FILE, &query);
    ASSERT_TRUE(none.error) << size;
    EXPECT_EQ(etwr_error_kind(none.error.get()), ETWR_ERROR_USAGE);
    EXPECT_NE(text_of(none.error).find("struct_size"), std::string::npos);
  }
  struct Later {
    etwr_query query;
    std::uint64_t more;
  } later{};
  later.query.struct_size = sizeof later;
  EXPECT_FALSE(walk(trace, ETWR_ORDER_FILE, &later.query).error);
  later.more = 1;
  EXPECT_TRUE(walk(trace, ETWR_ORDER_FILE, &later.query).error);
}

// As files, or as the members of a .zip.
TEST(CInterface, StatisticsOfSeveralTracesAreTheTotals) {
  const GuestFiles files;
  const std::vector<std::uint8_t> first = busy_trace(40).bytes(), second = busy_trace(7).bytes();
  const std::string a = files.write("a.etl", first), b = files.write("b.etl", second),
                    zip = files.write("c.etl.zip",
                                      zip_of({{"a.etl", first}, {"readme", {1}}, {"b.etl", second}}));
  for (const std::vector<std::string> &paths : {std::vector<std::string>{a, b}, {zip}}) {
    ErrorPtr error;
    const TracePtr trace = open(paths, error);
    ASSERT_TRUE(trace) << text_of(error);
    EXPECT_EQ(etwr_source_count(trace.get()), 2u);
    char *made = nullptr;
    error.reset(etwr_statistics_json(trace.get(), nullptr, &made));
    ASSERT_FALSE(error) << text_of(error);
    const TextPtr text(made);
    EXPECT_EQ(nlohmann::json::parse(made)["events"], 41 + 8);
  }
}

TEST(CInterface, SaysItsVersion) {
  EXPECT_EQ(etwr_abi_version(), ETWR_ABI_VERSION);
  EXPECT_GE(std::string(etwr_version()).size(), 5u);
}

} // namespace
} // namespace etwrelog::testing
