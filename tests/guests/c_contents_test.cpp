// What the C interface says of processes, fields and counts: against the C++ interface, and against truth
// files where the real traces are there.
#include "etwrelog/export.hpp"
#include "etwrelog/statistics.hpp"
#include "tests/guests/c_outputs.hpp"
#include "tests/support/trace_files.hpp"

#include <nlohmann/json.hpp>

#include <map>
#include <set>
#include <sstream>

namespace etwrelog::testing {
namespace {

using nlohmann::json;

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
  const etwr_field *const first = etwr_field_at(decoder.get(), 0), *const second =
                                                                       etwr_field_at(decoder.get(), 1);
  ASSERT_NE(second, nullptr);
  EXPECT_STRNE(first->name, second->name) << "each lives until the next event";
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
  constexpr Guid kProcessClass = make_guid(0x3d6fa8d0, 0xfe05, 0x11d0, 0x9dda, 0x00c04fd7ba7c);
  SyntheticTrace made;
  for (const unsigned payload_of : {8u, 4u}) {
    SyntheticTrace of({.pointer_size = payload_of});
    const std::vector<std::uint8_t> &stored =
        of.event(of.process_start({2'000'000}, 100, 4, "game.exe", "game.exe -fast"));
    const Bytes payload = Bytes(stored).subspan(32); // behind a SYSTEM header
    made.emit({2'000'000}, [&](write::EventBuilder &e) {
      e.classic(kProcessClass, 1, 4, 4, 21, 22, 2'000'000).bytes(payload);
    });
  }
  const TracePtr trace = open_trace(files.write("a.etl", made.bytes()));
  SchemasPtr schemas;
  const DecoderPtr decoder = decoder_of(nullptr, schemas);
  const CursorPtr cursor = cursor_of(trace);
  const etwr_event *event = nullptr;
  int read = 0;
  while (etwr_next(cursor.get(), &event, nullptr) != 0) {
    if (load_guid(event->provider) != kProcessClass) continue;
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
                         [](const auto &trace) { return testing::test_name(trace.param); });

} // namespace
} // namespace etwrelog::testing
