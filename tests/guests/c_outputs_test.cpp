// What the C interface writes: against the C++ interface.
#include "etwrelog/archive.hpp"
#include "etwrelog/relog.hpp"
#include "etwrelog/statistics.hpp"
#include "etwrelog/trace.hpp"
#include "tests/guests/c_outputs.hpp"
#include "tests/support/trace_files.hpp"

#include <nlohmann/json.hpp>

#include <map>
#include <set>

namespace etwrelog::testing {
namespace {

using nlohmann::json;

TEST_F(COutputs, ASelectionIsRelogged) {
  const std::string path = files.write("a.etl", game_trace().bytes());
  const TracePtr trace = open_trace(path);
  const char *const processes[] = {"GAME*"};
  auto selection = sized<etwr_selection>();
  selection.processes = processes;
  selection.process_count = 1;
  auto options = sized<etwr_relog_options>();
  options.selection = &selection;
  options.codec = ETWR_CODEC_XPRESS_HUFFMAN;
  options.stacks = ETWR_STACKS_CACHE;
  auto report = sized<etwr_relog_report>();
  error.reset(etwr_relog(trace.get(), files.path("c.etl").c_str(), &options, nullptr, &report));
  ASSERT_FALSE(error) << text_of(error);

  RelogOptions same;
  same.selection.processes = {"GAME*"};
  same.codec = Codec::xpress_huffman;
  same.stacks = StackMode::cache;
  const Result<etwrelog::Trace> input = etwrelog::Trace::open(path);
  const Result<RelogReport> expected = relog(*input, files.path("cpp.etl"), same);
  ASSERT_TRUE(expected) << expected.error().message();
  EXPECT_EQ(read_file(files.path("c.etl")), read_file(files.path("cpp.etl")));
  EXPECT_EQ(report.events_in, expected->events_in);
  EXPECT_EQ(report.events_out, expected->events_out);
  EXPECT_EQ(report.output_bytes, read_file(files.path("c.etl")).size());
  EXPECT_LT(report.events_out, report.events_in);

  // Not twice to the same place, unless asked to; never over the input.
  error.reset(etwr_relog(trace.get(), files.path("c.etl").c_str(), &options, nullptr, nullptr));
  ASSERT_TRUE(error);
  EXPECT_EQ(etwr_error_file(error.get()), files.path("c.etl"));
  options.replace = 1;
  error.reset(etwr_relog(trace.get(), files.path("c.etl").c_str(), &options, nullptr, nullptr));
  EXPECT_FALSE(error) << text_of(error);
  error.reset(etwr_relog(trace.get(), path.c_str(), &options, nullptr, nullptr));
  ASSERT_TRUE(error);
  EXPECT_EQ(read_file(path), game_trace().bytes());
}

// The events of a selection, without writing them: those that relogging keeps, in order of time.
TEST_F(COutputs, ASelectionIsWalked) {
  const TracePtr trace = open_trace(files.write("a.etl", game_trace().bytes()));
  const char *const processes[] = {"game.exe"};
  auto selection = sized<etwr_selection>();
  selection.processes = processes;
  selection.process_count = 1;
  auto query = sized<etwr_query>();
  query.selection = &selection;
  auto options = sized<etwr_relog_options>();
  options.selection = &selection;
  ASSERT_EQ(etwr_relog(trace.get(), files.path("b.etl").c_str(), &options, nullptr, nullptr), nullptr);
  const TracePtr written = open_trace(files.path("b.etl"));
  auto walk = [&](const TracePtr &of, const etwr_query *asked) {
    etwr_cursor *made = nullptr;
    error.reset(etwr_events(of.get(), ETWR_ORDER_TIME, asked, nullptr, &made));
    EXPECT_FALSE(error) << text_of(error);
    const CursorPtr cursor(made);
    const etwr_event *event = nullptr;
    std::vector<std::pair<std::int64_t, std::uint16_t>> seen;
    while (cursor && etwr_next(cursor.get(), &event, nullptr) != 0)
      seen.emplace_back(event->time, event->id);
    return seen;
  };
  const auto all = walk(trace, nullptr), selected = walk(trace, &query);
  EXPECT_EQ(selected, walk(written, nullptr));
  EXPECT_LT(selected.size(), all.size());
  EXPECT_GT(selected.size(), 200u);
  const char *const nobody[] = {"nobody.exe"};
  selection.processes = nobody;
  etwr_cursor *none = nullptr;
  error.reset(etwr_events(trace.get(), ETWR_ORDER_TIME, &query, nullptr, &none));
  ASSERT_TRUE(error);
  EXPECT_EQ(etwr_error_kind(error.get()), ETWR_ERROR_NO_MATCH);
}

TEST_F(COutputs, EveryListOfASelectionArrives) {
  SyntheticTrace made = game_trace();
  for (std::uint16_t i = 0; i < 8; ++i)
    made.manifest_event({2'500'000 + i},
                        {.provider = kProvider,
                         .id = i,
                         .channel = static_cast<std::uint8_t>(i % 2),
                         .level = static_cast<std::uint8_t>(i),
                         .opcode = static_cast<std::uint8_t>(i / 2),
                         .task = static_cast<std::uint16_t>(i / 4),
                         .keyword = std::uint64_t{1} << i},
                        101, 100);
  const TracePtr trace = open_trace(files.write("a.etl", made.bytes()));
  int number = 0;
  // Ids of our provider's events in what is left.
  auto kept = [&](const etwr_selection &selection) {
    auto options = sized<etwr_relog_options>();
    options.selection = &selection;
    const std::string path = files.path(std::to_string(number++) + ".etl");
    error.reset(etwr_relog(trace.get(), path.c_str(), &options, nullptr, nullptr));
    EXPECT_FALSE(error) << text_of(error);
    const TracePtr output = open_trace(path);
    const CursorPtr cursor = cursor_of(output);
    const etwr_event *event = nullptr;
    std::set<int> ids;
    while (etwr_next(cursor.get(), &event, nullptr) != 0)
      if (load_guid(event->provider) == kProvider) ids.insert(event->id);
    return ids;
  };
  const std::set<int> all{0, 1, 2, 3, 4, 5, 6, 7};
  EXPECT_EQ(kept(sized<etwr_selection>()), all);
  const char *const with_keyword[] = {"{11112222-3333-4444-5555-666677778888}:0xF0:5"};
  auto selection = sized<etwr_selection>();
  selection.providers = with_keyword;
  selection.provider_count = 1;
  EXPECT_EQ(kept(selection), (std::set<int>{4, 5}));
  const char *const other[] = {"200"};
  selection = sized<etwr_selection>();
  selection.exclude = other;
  selection.exclude_count = 1;
  EXPECT_EQ(kept(selection), all);
  selection.processes = other;
  selection.process_count = 1;
  selection.exclude = nullptr;
  selection.exclude_count = 0;
  EXPECT_EQ(kept(selection), std::set<int>{});
  selection = sized<etwr_selection>();
  selection.command_line = "^game";
  EXPECT_EQ(kept(selection), all);
  const std::uint32_t events[] = {1, 7};
  selection = sized<etwr_selection>();
  selection.events = events;
  selection.event_count = 2;
  EXPECT_EQ(kept(selection), (std::set<int>{1, 7}));
  // The built-in table has no names of it; a manifest has.
  const char *const names[] = {"Maker/Fifth", "second"};
  selection.event_names = names;
  selection.event_name_count = 2;
  auto options = sized<etwr_relog_options>();
  options.selection = &selection;
  error.reset(etwr_relog(trace.get(), files.path("none.etl").c_str(), &options, nullptr, nullptr));
  ASSERT_TRUE(error);
  EXPECT_EQ(etwr_error_kind(error.get()), ETWR_ERROR_NO_MATCH);
  etwr_schemas *described = nullptr;
  error.reset(etwr_schemas_collect(nullptr, nullptr, &described));
  ASSERT_FALSE(error) << text_of(error);
  const SchemasPtr schemas(described);
  const std::string manifest =
      R"(<provider name="Maker" guid="{11112222-3333-4444-5555-666677778888}"><events>
      <event value="2" version="0" symbol="Second"/><event value="5" version="0" symbol="Fifth"/>
    </events></provider>)";
  error.reset(
      etwr_schemas_add(schemas.get(), files.write("maker.man", {manifest.begin(), manifest.end()}).c_str()));
  ASSERT_FALSE(error) << text_of(error);
  selection.schemas = schemas.get();
  EXPECT_EQ(kept(selection), (std::set<int>{1, 2, 5, 7}));
  const std::uint8_t one = 1;
  selection = sized<etwr_selection>();
  selection.channels = &one;
  selection.channel_count = 1;
  EXPECT_EQ(kept(selection), (std::set<int>{1, 3, 5, 7}));
  const std::uint16_t task = 1;
  selection.tasks = &task;
  selection.task_count = 1;
  EXPECT_EQ(kept(selection), (std::set<int>{5, 7}));
  const std::uint8_t opcode = 3;
  selection.opcodes = &opcode;
  selection.opcode_count = 1;
  EXPECT_EQ(kept(selection), (std::set<int>{7}));
  selection = sized<etwr_selection>();
  selection.to = "0.1s";
  EXPECT_EQ(kept(selection), std::set<int>{});
  const char *const bad[] = {"no such provider"};
  selection.providers = bad;
  selection.provider_count = 1;
  error.reset(etwr_relog(trace.get(), files.path("bad.etl").c_str(), &options, nullptr, nullptr));
  ASSERT_TRUE(error);
  EXPECT_EQ(etwr_error_kind(error.get()), ETWR_ERROR_USAGE);
  EXPECT_STREQ(etwr_error_found(error.get()), "no such provider");
  selection.providers = nullptr;
  error.reset(etwr_relog(trace.get(), files.path("bad.etl").c_str(), &options, nullptr, nullptr));
  ASSERT_TRUE(error);
  EXPECT_EQ(etwr_error_kind(error.get()), ETWR_ERROR_USAGE);
}

TEST_F(COutputs, APackedFileComesBack) {
  const std::string path = files.write("a.etl", game_trace().bytes());
  auto packed = sized<etwr_archive_report>(), checked = sized<etwr_archive_report>(),
       back = sized<etwr_archive_report>();
  error.reset(etwr_pack(path.c_str(), files.path("a.etlz").c_str(), nullptr, nullptr, &packed));
  ASSERT_FALSE(error) << text_of(error);
  const Result<PackReport> expected = pack(path, files.path("cpp.etlz"));
  ASSERT_TRUE(expected);
  EXPECT_EQ(read_file(files.path("a.etlz")), read_file(files.path("cpp.etlz")));
  EXPECT_EQ(packed.original, read_file(path).size());
  EXPECT_EQ(packed.archived, read_file(files.path("a.etlz")).size());
  EXPECT_EQ(packed.events, expected->events);
  EXPECT_EQ(packed.is_trace, 1);
  error.reset(etwr_verify(files.path("a.etlz").c_str(), path.c_str(), nullptr, nullptr, &checked));
  EXPECT_FALSE(error) << text_of(error);
  EXPECT_EQ(checked.original, packed.original);
  EXPECT_EQ(checked.hash_checked, 1);
  error.reset(
      etwr_unpack(files.path("a.etlz").c_str(), files.path("b.etl").c_str(), nullptr, nullptr, &back));
  ASSERT_FALSE(error) << text_of(error);
  EXPECT_EQ(read_file(files.path("b.etl")), read_file(path));
  EXPECT_EQ(back.original, packed.original);
  EXPECT_EQ(back.missing_bytes, 0u);

  // Another file, a damaged archive, an output that is there.
  error.reset(
      etwr_verify(files.path("a.etlz").c_str(), files.path("a.etlz").c_str(), nullptr, nullptr, nullptr));
  EXPECT_TRUE(error);
  std::vector<std::uint8_t> damaged = read_file(files.path("a.etlz"));
  damaged[damaged.size() / 2] ^= 0x40;
  const std::string broken = files.write("broken.etlz", damaged);
  error.reset(etwr_verify(broken.c_str(), nullptr, nullptr, nullptr, nullptr));
  ASSERT_TRUE(error);
  EXPECT_EQ(etwr_error_kind(error.get()), ETWR_ERROR_CORRUPT);
  EXPECT_EQ(etwr_error_file(error.get()), broken);
  error.reset(etwr_unpack(broken.c_str(), files.path("none.etl").c_str(), nullptr, nullptr, nullptr));
  EXPECT_TRUE(error);
  EXPECT_FALSE(std::filesystem::exists(files.path("none.etl")));
  error.reset(etwr_pack(path.c_str(), files.path("a.etlz").c_str(), nullptr, nullptr, nullptr));
  EXPECT_TRUE(error);
  auto options = sized<etwr_archive_options>();
  options.level = ETWR_LEVEL_FAST;
  error.reset(etwr_pack(path.c_str(), files.path("f.etlz").c_str(), &options, nullptr, nullptr));
  ASSERT_TRUE(error);
  EXPECT_EQ(etwr_error_kind(error.get()), ETWR_ERROR_USAGE);
}

// Every call that reads can be stopped, leaves nothing then, and says how far it is.
TEST_F(COutputs, CallsReportProgressAndStop) {
  SyntheticTrace made;
  for (int i = 0; i < 20'000; ++i)
    made.stack_walk({2'000'000 + i}, 2'000'000 + i, 1, 2,
                    Frames(40, 0x7FF6'0000'0000u + 97u * static_cast<unsigned>(i)));
  const std::string path = files.write("a.etl", made.bytes());
  const TracePtr trace = open_trace(path);
  error.reset(etwr_pack(path.c_str(), files.path("in.etlz").c_str(), nullptr, nullptr, nullptr));
  ASSERT_FALSE(error) << text_of(error);
  struct Reports {
    int reports = 0;
    bool stop = false;
    std::string phase;
    std::uint64_t done = 0, total = 0;
  } seen;
  auto run = sized<etwr_run>();
  run.context = &seen;
  run.progress = [](void *context, const char *phase, std::uint64_t done, std::uint64_t total) {
    auto &s = *static_cast<Reports *>(context);
    ++s.reports;
    s.phase = phase;
    s.done = done;
    s.total = total;
  };
  run.stop = [](void *context) { return static_cast<Reports *>(context)->stop ? 1 : 0; };
  const std::string etl = files.path("out.etl"), etlz = files.path("out.etlz"),
                    archive = files.path("in.etlz");
  etwr_processes *processes = nullptr;
  etwr_schemas *schemas = nullptr;
  char *text = nullptr;
  const std::vector<std::pair<const char *, std::function<etwr_error *()>>> calls{
      {"relog", [&] { return etwr_relog(trace.get(), etl.c_str(), nullptr, &run, nullptr); }},
      {"pack", [&] { return etwr_pack(path.c_str(), etlz.c_str(), nullptr, &run, nullptr); }},
      {"unpack", [&] { return etwr_unpack(archive.c_str(), etl.c_str(), nullptr, &run, nullptr); }},
      {"verify", [&] { return etwr_verify(archive.c_str(), nullptr, nullptr, &run, nullptr); }},
      {"statistics", [&] { return etwr_statistics_json(trace.get(), &run, &text); }},
      {"processes", [&] { return etwr_processes_collect(trace.get(), &run, &processes); }},
      {"schemas", [&] { return etwr_schemas_collect(trace.get(), &run, &schemas); }},
  };
  for (const auto &[name, call] : calls) {
    seen = {};
    error.reset(call());
    EXPECT_FALSE(error) << name << ": " << text_of(error);
    EXPECT_GT(seen.reports, 0) << name;
    EXPECT_NE(seen.phase, "") << name;
    EXPECT_LE(seen.done, seen.total == 0 ? seen.done : seen.total) << name;
    std::filesystem::remove(etl);
    std::filesystem::remove(etlz);
    seen = {};
    seen.stop = true;
    error.reset(call());
    ASSERT_TRUE(error) << name;
    EXPECT_EQ(etwr_error_kind(error.get()), ETWR_ERROR_CANCELLED) << name << ": " << text_of(error);
    EXPECT_FALSE(std::filesystem::exists(etl) || std::filesystem::exists(etlz)) << name;
  }
  etwr_processes_free(processes);
  etwr_schemas_free(schemas);
  etwr_string_free(text);
}

// A run that keeps its warnings there.
etwr_run telling(std::vector<std::string> &told) {
  auto run = sized<etwr_run>();
  run.context = &told;
  run.warning = [](void *context, const char *text) {
    static_cast<std::vector<std::string> *>(context)->emplace_back(text);
  };
  return run;
}

TEST_F(COutputs, WhatWasSteppedOverIsTold) {
  std::vector<std::uint8_t> bytes = long_trace();
  ASSERT_GT(bytes.size(), 0x40000u);
  store(&bytes[0x20000], std::uint32_t{0x11}); // BufferSize of a buffer in the middle
  auto how = sized<etwr_open_options>();
  how.salvage = 1;
  const TracePtr trace = open({files.write("a.etl", bytes)}, error, &how);
  ASSERT_TRUE(trace) << text_of(error);
  std::vector<std::string> told;
  const etwr_run run = telling(told);
  auto report = sized<etwr_relog_report>();
  error.reset(etwr_relog(trace.get(), files.path("b.etl").c_str(), nullptr, &run, &report));
  ASSERT_FALSE(error) << text_of(error);
  EXPECT_GE(report.skipped_bytes, 0x10000u);
  // One for each stretch, at the place where it lies.
  EXPECT_TRUE(std::any_of(told.begin(), told.end(), [](const std::string &text) {
    return text.find("bytes skipped at 131072") != std::string::npos;
  })) << (told.empty() ? "nothing told" : told.front());
}

TEST_F(COutputs, PackingATraceThatIsCutShortIsTold) {
  std::vector<std::uint8_t> bytes = game_trace().bytes();
  bytes.resize(bytes.size() - 100);
  std::vector<std::string> told;
  const etwr_run run = telling(told);
  auto report = sized<etwr_archive_report>();
  error.reset(etwr_pack(files.write("cut.etl", bytes).c_str(), files.path("cut.etlz").c_str(), nullptr, &run,
                        &report));
  ASSERT_FALSE(error) << text_of(error);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_NE(told[0].find("are in no whole buffer"), std::string::npos) << told[0];
}

} // namespace
} // namespace etwrelog::testing
