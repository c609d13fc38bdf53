// What the C interface says of processes, fields and counts, and what it writes: against the C++ interface,
// and against truth files where the real traces are there.
#include "etwrelog/archive.hpp"
#include "etwrelog/export.hpp"
#include "etwrelog/relog.hpp"
#include "etwrelog/statistics.hpp"
#include "tests/guests/c_handles.hpp"
#include "tests/support/trace_files.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <map>
#include <set>
#include <sstream>

namespace etwrelog::testing {
namespace {

using nlohmann::json;

std::vector<std::uint8_t> read(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Two processes with samples and stacks, one that starts and ends.
SyntheticTrace game_trace() {
  SyntheticTrace trace;
  trace.process_rundown({1'100'000}, 4, 0, "System");
  trace.process_start({1'200'000}, 100, 4, "game.exe", "game.exe -fast");
  trace.thread_start({1'200'100}, 101, 100);
  trace.process_rundown({1'100'000}, 200, 4, "other.exe", "other.exe \"quoted\"");
  trace.thread_rundown({1'100'100}, 201, 200);
  for (int i = 0; i < 200; ++i) {
    const std::int64_t time = 2'000'000 + 1'000 * i;
    const std::uint32_t tid = i % 3 == 0 ? 201 : 101, pid = i % 3 == 0 ? 200 : 100;
    trace.context_switch({time - 500}, tid, 0);
    trace.sample({time}, tid);
    trace.stack_walk({time + 10}, time, pid, tid, {0x7FF6'0000'1000, 0x7FF6'0000'2000});
  }
  trace.process_end({3'000'000}, 100, "game.exe");
  return trace;
}

struct Fixture : ::testing::Test {
  TracePtr open_trace(const std::string &path) {
    TracePtr trace = open({path}, error);
    EXPECT_TRUE(trace) << text_of(error);
    return trace;
  }
  ProcessesPtr processes_of(const TracePtr &trace) {
    etwr_processes *made = nullptr;
    error.reset(etwr_processes_collect(trace.get(), nullptr, &made));
    EXPECT_FALSE(error) << text_of(error);
    return ProcessesPtr(made);
  }
  DecoderPtr decoder_of(const etwr_trace *trace, SchemasPtr &schemas) {
    etwr_schemas *made = nullptr;
    error.reset(etwr_schemas_collect(trace, nullptr, &made));
    EXPECT_FALSE(error) << text_of(error);
    schemas.reset(made);
    etwr_decoder *decoder = nullptr;
    error.reset(etwr_decoder_new(made, &decoder));
    EXPECT_FALSE(error) << text_of(error);
    return DecoderPtr(decoder);
  }
  CursorPtr cursor_of(const TracePtr &trace, int order = ETWR_ORDER_TIME) {
    etwr_cursor *made = nullptr;
    error.reset(etwr_events(trace.get(), order, nullptr, nullptr, &made));
    EXPECT_FALSE(error) << text_of(error);
    return CursorPtr(made);
  }
  std::uint64_t count(const std::string &path) {
    const TracePtr trace = open_trace(path);
    const CursorPtr cursor = cursor_of(trace);
    const etwr_event *event = nullptr;
    std::uint64_t events = 0;
    while (etwr_next(cursor.get(), &event, nullptr) != 0)
      ++events;
    return events;
  }

  GuestFiles files;
  ErrorPtr error;
};
using COutputs = Fixture;

TEST_F(COutputs, ProcessesHaveNamesParentsAndLives) {
  const TracePtr trace = open_trace(files.write("a.etl", game_trace().bytes()));
  const ProcessesPtr processes = processes_of(trace);
  std::map<std::uint32_t, const etwr_process *> by_id;
  for (std::size_t i = 0; i < etwr_process_count(processes.get()); ++i) {
    const etwr_process *process = etwr_process_at(processes.get(), i);
    EXPECT_EQ(process->struct_size, sizeof(etwr_process));
    by_id[process->process_id] = process;
  }
  EXPECT_EQ(etwr_process_at(processes.get(), etwr_process_count(processes.get())), nullptr);
  ASSERT_EQ(by_id.count(100), 1u);
  EXPECT_STREQ(by_id[100]->image_name, "game.exe");
  EXPECT_STREQ(by_id[100]->command_line, "game.exe -fast");
  EXPECT_EQ(by_id[100]->parent_id, 4u);
  EXPECT_TRUE(by_id[100]->has_start && by_id[100]->has_end);
  EXPECT_EQ(by_id[100]->start, 1'200'000);
  EXPECT_EQ(by_id[100]->end, 3'000'000);
  ASSERT_EQ(by_id.count(200), 1u);
  EXPECT_FALSE(by_id[200]->has_start || by_id[200]->has_end);
  EXPECT_STREQ(by_id[200]->command_line, "other.exe \"quoted\"");
}

TEST_F(COutputs, ProcessesOfSeveralMachinesAreToldApart) {
  TraceOptions slow;
  slow.perf_freq = 1'000'000; // another clock
  SyntheticTrace second(slow);
  second.process_start({1'500'000}, 300, 4, "late.exe");
  const TracePtr trace =
      open({files.write("a.etl", game_trace().bytes()), files.write("b.etl", second.bytes())}, error);
  ASSERT_TRUE(trace) << text_of(error);
  const ProcessesPtr processes = processes_of(trace);
  const etwr_process *late = nullptr;
  for (std::size_t i = 0; i < etwr_process_count(processes.get()); ++i) {
    const etwr_process *process = etwr_process_at(processes.get(), i);
    if (process->process_id == 300) late = process;
    EXPECT_EQ(process->machine, process->process_id == 300 ? 1u : 0u) << process->image_name;
  }
  ASSERT_NE(late, nullptr);
  // 0.5 s after the beginning of both files, in the clock of the first one.
  EXPECT_EQ(late->start, 1'000'000 + 5'000'000);
}

TEST_F(COutputs, NamesAndFieldsAreThoseOfTheSchema) {
  const TracePtr trace = open_trace(files.write("a.etl", game_trace().bytes()));
  SchemasPtr schemas;
  const DecoderPtr decoder = decoder_of(trace.get(), schemas);
  const CursorPtr cursor = cursor_of(trace);
  const etwr_event *event = nullptr;
  while (etwr_next(cursor.get(), &event, nullptr) != 0 && event->id != 0x0301) {
  }
  ASSERT_EQ(event->id, 0x0301);
  char name[64] = "";
  const std::size_t length = etwr_event_name(schemas.get(), event, name, sizeof name);
  EXPECT_STREQ(name, "Windows Kernel/Process/Start");
  EXPECT_EQ(length, std::string(name).size());
  EXPECT_EQ(etwr_event_name(schemas.get(), event, name, 8), length);
  EXPECT_STREQ(name, "Windows");
  const etwr_decoded *decoded = nullptr;
  etwr_error *failed = nullptr;
  ASSERT_EQ(etwr_decode(decoder.get(), event, &decoded, &failed), 1);
  EXPECT_EQ(failed, nullptr);
  EXPECT_EQ(decoded->struct_size, sizeof(etwr_decoded));
  EXPECT_EQ(decoded->origin, ETWR_ORIGIN_BUILTIN);
  EXPECT_EQ(decoded->covered, event->payload_size);
  EXPECT_EQ(decoded->truncated, 0);
  std::map<std::string, std::pair<std::string, std::uint64_t>> fields;
  for (std::size_t i = 0; i < decoded->field_count; ++i) {
    const etwr_field *field = etwr_field_at(decoder.get(), i);
    ASSERT_NE(field, nullptr);
    fields[field->name] = {field->text, field->value == ETWR_VALUE_INTEGER ? field->integer : 0};
  }
  EXPECT_EQ(etwr_field_at(decoder.get(), decoded->field_count), nullptr);
  EXPECT_EQ(fields["ProcessId"].second, 100u);
  EXPECT_EQ(fields["ParentId"].second, 4u);
  EXPECT_EQ(fields["ImageFileName"].first, "game.exe");
  EXPECT_EQ(fields["CommandLine"].first, "game.exe -fast");
  const json all = json::parse(etwr_decoded_json(decoder.get()));
  EXPECT_EQ(all.size(), decoded->field_count);
  EXPECT_EQ(all["CommandLine"], "game.exe -fast");
}

// As process_data_64_v3 has them: class events that a 32-bit program wrote for a 64-bit kernel.
TEST_F(COutputs, APayloadIsReadByTheLayoutThatFits) {
  constexpr Guid kProcess = make_guid(0x3d6fa8d0, 0xfe05, 0x11d0, 0x9dda, 0x00c04fd7ba7c);
  SyntheticTrace made;
  for (const unsigned payload_of : {8u, 4u}) {
    SyntheticTrace of({.pointer_size = payload_of});
    const std::vector<std::uint8_t> &stored =
        of.event(of.process_start({2'000'000}, 100, 4, "game.exe", "game.exe -fast"));
    const Bytes payload = Bytes(stored).subspan(32); // behind a SYSTEM header
    made.emit({2'000'000}, [&](write::EventBuilder &e) {
      e.classic(kProcess, 1, 4, 4, 21, 22, 2'000'000).bytes(payload);
    });
  }
  const TracePtr trace = open_trace(files.write("a.etl", made.bytes()));
  SchemasPtr schemas;
  const DecoderPtr decoder = decoder_of(nullptr, schemas);
  const CursorPtr cursor = cursor_of(trace);
  const etwr_event *event = nullptr;
  int read = 0;
  while (etwr_next(cursor.get(), &event, nullptr) != 0) {
    if (load_guid(event->provider) != kProcess) continue;
    EXPECT_EQ(event->pointer_size, 4);
    const etwr_decoded *decoded = nullptr;
    ASSERT_EQ(etwr_decode(decoder.get(), event, &decoded, nullptr), 1);
    EXPECT_EQ(decoded->covered, event->payload_size);
    const json fields = json::parse(etwr_decoded_json(decoder.get()));
    EXPECT_EQ(fields["ProcessId"], 100);
    EXPECT_EQ(fields["CommandLine"], "game.exe -fast");
    ++read;
  }
  EXPECT_EQ(read, 2);
}

TEST_F(COutputs, AnEventThatNobodyDescribesHasNoFields) {
  SyntheticTrace made;
  made.manifest_event({2'000'000}, {.provider = kProvider, .id = 7}, 21, 22);
  const TracePtr trace = open_trace(files.write("a.etl", made.bytes()));
  SchemasPtr schemas;
  const DecoderPtr decoder = decoder_of(nullptr, schemas);
  const CursorPtr cursor = cursor_of(trace);
  const etwr_event *event = nullptr;
  while (etwr_next(cursor.get(), &event, nullptr) != 0 && event->kind != ETWR_EVENT_MANIFEST) {
  }
  EXPECT_EQ(etwr_decode(decoder.get(), event, nullptr, nullptr), 0);
  EXPECT_EQ(etwr_field_at(decoder.get(), 0), nullptr);
  EXPECT_STREQ(etwr_decoded_json(decoder.get()), "{}");

  // Until a manifest does.
  std::ofstream(files.path("p.man")) << R"(<instrumentationManifest
      xmlns="http://schemas.microsoft.com/win/2004/08/events"><instrumentation><events>
      <provider name="Guest" guid="{11112222-3333-4444-5555-666677778888}" symbol="G">
        <events><event value="7" version="0" template="T" symbol="Seven"/></events>
        <templates><template tid="T"><data name="Text" inType="win:UnicodeString"/></template></templates>
      </provider></events></instrumentation></instrumentationManifest>)";
  EXPECT_EQ(etwr_schemas_add(schemas.get(), files.path("p.man").c_str()), nullptr);
  etwr_decoder *second = nullptr;
  ASSERT_EQ(etwr_decoder_new(schemas.get(), &second), nullptr);
  const DecoderPtr owner(second);
  const etwr_decoded *decoded = nullptr;
  ASSERT_EQ(etwr_decode(second, event, &decoded, nullptr), 1);
  EXPECT_STREQ(decoded->provider, "Guest");
  EXPECT_EQ(decoded->origin, ETWR_ORIGIN_ADDED);
  error.reset(etwr_schemas_add(schemas.get(), files.path("absent.man").c_str()));
  ASSERT_TRUE(error);
  EXPECT_NE(text_of(error).find("absent.man"), std::string::npos);
}

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
  EXPECT_EQ(read(files.path("c.etl")), read(files.path("cpp.etl")));
  EXPECT_EQ(report.events_in, expected->events_in);
  EXPECT_EQ(report.events_out, expected->events_out);
  EXPECT_EQ(report.output_bytes, read(files.path("c.etl")).size());
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
  EXPECT_EQ(read(path), game_trace().bytes());
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
  auto options = sized<etwr_relog_options>();
  options.selection = &selection;
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
  EXPECT_EQ(read(files.path("a.etlz")), read(files.path("cpp.etlz")));
  EXPECT_EQ(packed.original, read(path).size());
  EXPECT_EQ(packed.archived, read(files.path("a.etlz")).size());
  EXPECT_EQ(packed.events, expected->events);
  EXPECT_EQ(packed.is_trace, 1);
  error.reset(etwr_verify(files.path("a.etlz").c_str(), path.c_str(), nullptr, nullptr, &checked));
  EXPECT_FALSE(error) << text_of(error);
  EXPECT_EQ(checked.original, packed.original);
  EXPECT_EQ(checked.hash_checked, 1);
  error.reset(
      etwr_unpack(files.path("a.etlz").c_str(), files.path("b.etl").c_str(), nullptr, nullptr, &back));
  ASSERT_FALSE(error) << text_of(error);
  EXPECT_EQ(read(files.path("b.etl")), read(path));
  EXPECT_EQ(back.original, packed.original);
  EXPECT_EQ(back.missing_bytes, 0u);

  // Another file, a damaged archive, an output that is there.
  error.reset(
      etwr_verify(files.path("a.etlz").c_str(), files.path("a.etlz").c_str(), nullptr, nullptr, nullptr));
  EXPECT_TRUE(error);
  std::vector<std::uint8_t> damaged = read(files.path("a.etlz"));
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

TEST_F(COutputs, StatisticsAreThoseOfTheLibrary) {
  const std::string path = files.write("a.etl", game_trace().bytes());
  const TracePtr trace = open_trace(path);
  char *made = nullptr;
  error.reset(etwr_statistics_json(trace.get(), nullptr, &made));
  ASSERT_FALSE(error) << text_of(error);
  const TextPtr text(made);
  const Result<etwrelog::Trace> input = etwrelog::Trace::open(path);
  EXPECT_EQ(json::parse(made), json::parse(to_json(*collect_statistics(*input))));
}

TEST_F(COutputs, OlderReportsAreFilledAsFarAsTheyReach) {
  const TracePtr trace = open_trace(files.write("a.etl", game_trace().bytes()));
  auto report = sized<etwr_relog_report>();
  report.struct_size = offsetof(etwr_relog_report, events_out);
  report.events_out = 77;
  error.reset(etwr_relog(trace.get(), files.path("b.etl").c_str(), nullptr, nullptr, &report));
  ASSERT_FALSE(error) << text_of(error);
  EXPECT_EQ(report.struct_size, offsetof(etwr_relog_report, events_out));
  EXPECT_GT(report.events_in, 400u);
  EXPECT_EQ(report.events_out, 77u);
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
  struct Seen {
    int reports = 0;
    bool stop = false;
    std::string phase;
    std::uint64_t done = 0, total = 0;
  } seen;
  auto run = sized<etwr_run>();
  run.context = &seen;
  run.progress = [](void *context, const char *phase, std::uint64_t done, std::uint64_t total) {
    auto &s = *static_cast<Seen *>(context);
    ++s.reports;
    s.phase = phase;
    s.done = done;
    s.total = total;
  };
  run.stop = [](void *context) { return static_cast<Seen *>(context)->stop ? 1 : 0; };
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

TEST_F(COutputs, WhatWasSteppedOverIsTold) {
  SyntheticTrace more = game_trace();
  for (int i = 0; i < 4'000; ++i)
    more.stack_walk({2'600'000 + i}, 2'600'000 + i, 1, 2, Frames(20, 0x7FF6'0000'0000u));
  std::vector<std::uint8_t> bytes = more.bytes();
  ASSERT_GT(bytes.size(), 0x40000u);
  store(&bytes[0x20000], std::uint32_t{0x11}); // BufferSize of a buffer in the middle
  auto how = sized<etwr_open_options>();
  how.salvage = 1;
  const TracePtr trace = open({files.write("a.etl", bytes)}, error, &how);
  ASSERT_TRUE(trace) << text_of(error);
  std::vector<std::string> told;
  auto run = sized<etwr_run>();
  run.context = &told;
  run.warning = [](void *context, const char *text) {
    static_cast<std::vector<std::string> *>(context)->emplace_back(text);
  };
  auto report = sized<etwr_relog_report>();
  error.reset(etwr_relog(trace.get(), files.path("b.etl").c_str(), nullptr, &run, &report));
  ASSERT_FALSE(error) << text_of(error);
  EXPECT_GE(report.skipped_bytes, 0x10000u);
  // One for each stretch, at the place where it lies.
  EXPECT_TRUE(std::any_of(told.begin(), told.end(), [](const std::string &text) {
    return text.find("bytes skipped at 131072") != std::string::npos;
  })) << (told.empty() ? "nothing told" : told.front());
}

// --- Real traces ---

class OfRealTraces : public Fixture, public ::testing::WithParamInterface<std::string> {};

TEST_P(OfRealTraces, ProcessesCountsAndFieldsAreThoseOfTheCppInterface) {
  const auto path = trace_path(GetParam());
  if (!path) GTEST_SKIP() << "the real traces are not there";
  const TracePtr trace = open_trace(path->string());
  ASSERT_TRUE(trace);
  const Result<etwrelog::Trace> input = etwrelog::Trace::open(path->string());
  ASSERT_TRUE(input);

  std::ifstream truth_file(*shared_dir() / "truth" / (GetParam() + ".json"));
  const json truth = json::parse(truth_file);
  std::set<std::string> expected;
  for (const auto &[id, unused] : truth["processes"].items())
    expected.insert(id);
  const ProcessesPtr processes = processes_of(trace);
  std::set<std::string> found;
  for (std::size_t i = 0; i < etwr_process_count(processes.get()); ++i)
    found.insert(std::to_string(etwr_process_at(processes.get(), i)->process_id));
  for (const std::string &id : expected)
    EXPECT_TRUE(found.contains(id)) << "process " << id;

  // Fields of every event, against the export.
  std::vector<std::uint8_t> exported;
  const Result<ExportReport> done = export_json(*input, Output::memory(exported));
  ASSERT_TRUE(done) << done.error().message();
  std::istringstream lines(std::string(exported.begin(), exported.end()));
  SchemasPtr schemas;
  const DecoderPtr decoder = decoder_of(trace.get(), schemas);
  const CursorPtr cursor = cursor_of(trace);
  const etwr_event *event = nullptr;
  std::uint64_t events = 0, with_fields = 0, differ = 0;
  std::string line;
  while (etwr_next(cursor.get(), &event, nullptr) != 0) {
    ++events;
    ASSERT_TRUE(std::getline(lines, line)) << events;
    etwr_error *failed = nullptr;
    const bool known = etwr_decode(decoder.get(), event, nullptr, &failed) != 0;
    ASSERT_EQ(failed, nullptr);
    if (!known) continue;
    ++with_fields;
    // As text: parsing 179,474 lines would take longer than all else.
    const std::string fields = etwr_decoded_json(decoder.get());
    if (line.find("\"fields\":" + fields) == std::string::npos && ++differ < 5)
      ADD_FAILURE() << "event " << events << ": " << fields << "\n" << line;
  }
  EXPECT_EQ(etwr_cursor_status(cursor.get()), nullptr);
  EXPECT_FALSE(std::getline(lines, line));
  EXPECT_EQ(events, truth["events"]["count"].get<std::uint64_t>());
  EXPECT_EQ(differ, 0u);
  std::uint64_t described = 0;
  for (const ExportKind &kind : done->kinds)
    if (kind.schema != nullptr) described += kind.events;
  EXPECT_EQ(with_fields, described);
}

INSTANTIATE_TEST_SUITE_P(C, OfRealTraces,
                         ::testing::Values("net.4.5.2.x64", "TraceLoggingTester", "HTTP_Server", "diaghub",
                                           "AMSITrace", "KernelNetwork", "process_data_64_v3",
                                           "SelfDescribingSingleEvent"),
                         [](const auto &of) {
                           std::string name = of.param;
                           std::replace(name.begin(), name.end(), '.', '_');
                           return name;
                         });

} // namespace
} // namespace etwrelog::testing
