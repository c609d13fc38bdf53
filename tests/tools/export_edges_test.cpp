// What an export says of events whose schema, stack or time is at an edge: manifests in pieces, stacks in two
// events, times at the ends of a clock.
#include "tests/support/json_lines.hpp"
#include "tests/support/pace.hpp"
#include "tests/support/run_tool.hpp"
#include "tests/support/synthetic_trace.hpp"
#include "tests/support/trace_files.hpp"

#include <limits>
#include <map>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace etwrelog {
namespace {

constexpr Guid kPieced = make_guid(0x5a5a3344, 0x5566, 0x7788, 0x99aa, 0xbbccddeeff00);
constexpr std::int64_t kSoon = 2'000'000;

class ExportEdges : public ::testing::Test {
protected:
  using Json = nlohmann::json;
  static std::string pieced_manifest(const std::string &symbol) {
    return "<instrumentationManifest><provider name=\"Pieced\" "
           "guid=\"{5a5a3344-5566-7788-99aa-bbccddeeff00}\">"
           "<events><event value=\"1\" symbol=\"" +
           symbol +
           "\" template=\"A\"/></events><templates><template tid=\"A\"><data name=\"x\" "
           "inType=\"win:UInt8\"/>"
           "</template></templates></provider></instrumentationManifest>";
  }
  std::string written() {
    const std::string name = directory_.file("x.etl");
    testing::write_file(name, trace_.bytes());
    return name;
  }
  testing::ToolRun asked(const std::vector<std::string> &words) {
    testing::ToolRun run = testing::run_tool(words);
    EXPECT_EQ(run.status, 0) << run.err;
    return run;
  }
  std::vector<Json> lines(const std::vector<std::string> &more) {
    std::vector<std::string> words = {"export", written()};
    words.insert(words.end(), more.begin(), more.end());
    return testing::json_lines(asked(words).out);
  }
  testing::SyntheticTrace trace_;
  testing::TempDir directory_;
};

// The thread moved to another processor, whose buffer stands in front; and before that it wrote another
// manifest, whose pieces stand around.
TEST_F(ExportEdges, ManifestsInPiecesAreReadWhateverTheOrderOfBuffers) {
  const std::string first = pieced_manifest("First"), second = pieced_manifest("Later");
  ASSERT_EQ(first.size(), second.size());
  const std::size_t half = first.size() / 2;
  trace_.manifest({kSoon + 20, 0}, kPieced, 7, 8, std::string_view(first).substr(half), 1, 2);
  trace_.manifest({kSoon + 30, 0}, kPieced, 7, 8, std::string_view(second).substr(0, half), 0, 2);
  trace_.end_buffer(0);
  trace_.manifest({kSoon + 40, 1}, kPieced, 7, 8, std::string_view(second).substr(half), 1, 2);
  trace_.manifest_event({kSoon + 50, 1}, {.provider = kPieced, .id = 1}, 7, 8, std::vector<std::uint8_t>{65});
  trace_.end_buffer(1);
  trace_.manifest({kSoon + 10, 2}, kPieced, 7, 8, std::string_view(first).substr(0, half), 0, 2);
  for (const char *threads : {"1", "4"}) {
    const std::vector<Json> events =
        lines({"--where", "provider = 'Pieced' and id = 1", "--threads", threads});
    ASSERT_EQ(events.size(), 1u);
    EXPECT_EQ(events[0]["event"], "First");
    EXPECT_EQ(events[0]["fields"]["x"], 65);
    EXPECT_NE(asked({"stats", written(), "--threads", threads}).out.find("Pieced/First"), std::string::npos);
  }
  const std::string said = asked({"export", written()}).err;
  EXPECT_EQ(said.find("pieces"), std::string::npos) << said;
  EXPECT_NE(said.find("provider Pieced: its manifests are of several builds"), std::string::npos) << said;
}

// No one record in the trace can say what the events of two builds are: they stay with their manifests.
TEST_F(ExportEdges, BuildsAreToldByTheirProcessAlsoWhereSchemasAreEmbedded) {
  const std::string one = pieced_manifest("One"), other = pieced_manifest("Other");
  trace_.manifest({kSoon}, kPieced, 7, 8, one);
  trace_.manifest({kSoon + 1}, kPieced, 9, 12, other);
  for (std::int64_t i = 2; i < 6; ++i)
    trace_.manifest_event({kSoon + i}, {.provider = kPieced, .id = 1}, 7, i % 2 == 0 ? 8 : 12,
                          std::vector<std::uint8_t>{65});
  const std::string embedded = directory_.file("embedded.etl");
  const testing::ToolRun relog = asked({"relog", written(), "--embed-schemas", "-o", embedded});
  EXPECT_NE(relog.err.find("no schema record can describe Pieced/"), std::string::npos) << relog.err;
  for (const std::string &trace : {written(), embedded}) {
    const testing::ToolRun run = asked({"export", trace, "--where", "provider = 'Pieced' and id = 1"});
    EXPECT_EQ(run.err.find("builds"), std::string::npos) << run.err;
    const std::vector<Json> events = testing::json_lines(run.out);
    ASSERT_EQ(events.size(), 4u);
    for (const Json &event : events)
      EXPECT_EQ(event["event"], event["process_id"] == 8 ? "One" : "Other");
  }
}

TEST_F(ExportEdges, AManifestWithoutAllOfItsPiecesIsAWarning) {
  const std::string whole = pieced_manifest("Torn");
  trace_.manifest({kSoon}, kPieced, 7, 8, std::string_view(whole).substr(0, 100), 0, 2);
  trace_.manifest_event({kSoon + 50}, {.provider = kPieced, .id = 1}, 7, 8, std::vector<std::uint8_t>{65});
  const std::string trace = written();
  for (const testing::ToolRun &run :
       {asked({"export", trace}), asked({"query", trace, "select count(*) from events where id = 1"})})
    EXPECT_NE(run.err.find("manifest of 5a5a3344-5566-7788-99aa-bbccddeeff00: only some of its 2 pieces"),
              std::string::npos)
        << run.err;
}

// A manifest's layout is by id and version: its events may have any opcode, and so may those that nobody
// describes.
TEST_F(ExportEdges, KindsHaveTheOpcodesOfTheirEvents) {
  trace_.manifest({kSoon}, kPieced, 7, 8, pieced_manifest("Any"));
  const auto add = [&](std::int64_t at, std::uint16_t id, std::uint8_t opcode) {
    write::EventFields fields{.provider = kPieced, .id = id};
    fields.opcode = opcode;
    trace_.manifest_event({kSoon + at}, fields, 7, 8, std::vector<std::uint8_t>{65});
  };
  add(1, 1, 7), add(2, 1, 3), add(3, 1, 7), add(4, 2, 0), add(5, 2, 9);
  const auto kinds = Json::parse(asked({"schema", written(), "--json"}).out)["kinds"];
  std::map<std::string, Json> opcodes;
  for (const Json &kind : kinds)
    opcodes[kind["name"]] = kind["opcodes"];
  EXPECT_EQ(opcodes["Pieced/Any"], Json({3, 7}));
  EXPECT_EQ(opcodes["Pieced/EventID(2)"], Json({0, 9}));
  EXPECT_EQ(opcodes["Pieced/ManifestData"], Json::array({254}));
  const std::string text = asked({"schema", written()}).out;
  EXPECT_NE(text.find("Pieced/Any  (id 1, version 0, opcodes 3, 7): event-source, 3 events"),
            std::string::npos)
      << text;
}

// A WPP message has no level in its header: its format has.
TEST_F(ExportEdges, MessagesHaveTheLevelOfTheirFormat) {
  const std::string formats = directory_.file("x.tmf"),
                    text = "5a5a3344-5566-7788-99aa-bbccddeeff00 m // SRC=a.c\n#typev a_c1 1 \"%0bad\" //   "
                           "LEVEL=TRACE_LEVEL_ERROR FLAGS=X\n{\n}\n#typev a_c2 2 \"%0fine\" //   "
                           "LEVEL=TRACE_LEVEL_INFORMATION FLAGS=X\n{\n}\n";
  testing::write_file(formats, std::vector<std::uint8_t>(text.begin(), text.end()));
  for (std::uint16_t number = 1; number <= 3; ++number)
    trace_.emit({kSoon + number},
                [&](write::EventBuilder &e) { e.message(number, kPieced, 8, 7, 8, kSoon + number); });
  const auto of = [&](const std::string &where) {
    return lines(
        {"--schemas", formats, "--where", "provider_id = '" + to_string(kPieced) + "' and " + where});
  };
  const std::vector<Json> all = of("id > 0"), errors = of("level = 2");
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0]["level"], 2);
  EXPECT_EQ(all[1]["level"], 4);
  EXPECT_EQ(all[2]["level"], 0) << "nobody knows it";
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0]["event"], "a_c1");
  EXPECT_EQ(of("level > 0 and event = 'a_c2'").size(), 1u);
  EXPECT_EQ(lines({"--schemas", formats, "--profile", "otel", "--where", "level = 2"})[0]["SeverityText"],
            "ERROR");
  EXPECT_EQ(
      asked({"query", "--schemas", formats, written(),
             "select count(*) from events where provider_id = '" + to_string(kPieced) + "' and level = 4"})
          .out,
      "count(*)\n1\n");
  EXPECT_NE(asked({"export", written(), "--schemas", formats, "--format", "csv"}).out.find(",a_c1,1,0,0,2,"),
            std::string::npos);
}

TEST_F(ExportEdges, StacksGetTheirUserPartFromALaterEvent) {
  const auto item = [](std::uint64_t match, const testing::Frames &frames) {
    std::vector<std::uint8_t> data = testing::stack_item(frames);
    store(data.data(), match);
    return testing::SyntheticTrace::Item{format::ItemType::stack_trace64, data};
  };
  const write::EventFields later{.provider = format::kKernelEventTracingGuid, .id = 18, .opcode = 24};
  constexpr std::uint64_t kKernel = 0xFFFF'F800'0000'1000;
  trace_.manifest_event({kSoon + 1, 0}, {.provider = kPieced, .id = 1}, 7, 8, {}, {item(5, {kKernel})});
  trace_.manifest_event({kSoon + 2, 1}, {.provider = kPieced, .id = 2}, 9, 8, {}, {item(5, {kKernel + 1})});
  trace_.manifest_event({kSoon + 3, 0}, later, 7, 8, {}, {item(5, {0x7001})});
  trace_.manifest_event({kSoon + 4, 1}, later, 9, 8, item(5, {0x9001, 0x9002}).second); // as its payload
  // The number is given again; one has no other half; one had it at once.
  trace_.manifest_event({kSoon + 5, 0}, {.provider = kPieced, .id = 3}, 7, 8, {}, {item(5, {kKernel + 2})});
  trace_.manifest_event({kSoon + 6, 0}, later, 7, 8, {}, {item(5, {0x7002})});
  trace_.manifest_event({kSoon + 7, 0}, {.provider = kPieced, .id = 4}, 7, 8, {}, {item(5, {kKernel + 3})});
  trace_.manifest_event({kSoon + 8, 0}, {.provider = kPieced, .id = 5}, 7, 8, {},
                        {item(0, {kKernel, 0x7003})});
  const std::vector<Json> events =
      lines({"--join", "stack", "--where", "provider_id = '" + to_string(kPieced) + "'"});
  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(events[0]["stack"], (Json{"0xfffff80000001000", "0x7001"}));
  EXPECT_EQ(events[1]["stack"], (Json{"0xfffff80000001001", "0x9001", "0x9002"}));
  EXPECT_EQ(events[2]["stack"], (Json{"0xfffff80000001002", "0x7002"}));
  EXPECT_EQ(events[3]["stack"], Json::array({"0xfffff80000001003"}));
  EXPECT_EQ(events[4]["stack"], (Json{"0xfffff80000001000", "0x7003"}));
  for (const Json &event : lines({"--join", "stack", "--where", "id = 18"}))
    if (event.contains("stack")) {
      EXPECT_EQ(event["stack"].size(), 1u) << "its own frames once: " << event;
    }
}

// Each is of the event before it on its thread.
TEST_F(ExportEdges, EventsOfDotNetGetTheStacksThatItsRuntimeWritesBehindThem) {
  const write::EventFields tick{.provider = format::kClrGuid, .id = 10, .opcode = 11};
  trace_.manifest_event({kSoon + 1, 0}, tick, 7, 8);
  trace_.manifest_event({kSoon + 2, 1}, tick, 9, 8);
  trace_.clr_stack({kSoon + 3, 1}, 7, 8, {0x7001, 0x7002});
  trace_.clr_stack({kSoon + 4, 0}, 9, 8, {0x9001});
  trace_.manifest_event({kSoon + 5, 0}, tick, 7, 8); // whose stack is missing
  trace_.manifest_event({kSoon + 6, 0}, {.provider = format::kClrGuid, .id = 1, .opcode = 1}, 7, 8);
  trace_.clr_stack({kSoon + 7, 0}, 7, 8, {0x7003});
  const std::vector<Json> ticks = lines({"--join", "stack", "--event", "GC/AllocationTick"});
  ASSERT_EQ(ticks.size(), 3u);
  EXPECT_EQ(ticks[0]["stack"], (Json{"0x7001", "0x7002"}));
  EXPECT_EQ(ticks[1]["stack"], Json::array({"0x9001"}));
  EXPECT_FALSE(ticks[2].contains("stack"));
  for (const Json &event : lines({"--join", "stack", "--where", "id = 82"}))
    EXPECT_FALSE(event.contains("stack")) << "it is one";
}

TEST_F(ExportEdges, TimesAtTheEndsOfAClockAreFoundByConditions) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const auto times =
      testing::some<std::int64_t>(2, {-kMost - 1, -kMost, -1, 0, 1, 2'000'000, kMost / 2, kMost - 1, kMost});
  struct ClockCase {
    format::ClockType type;
    std::int64_t frequency;
  };
  for (const ClockCase &clock : testing::some<ClockCase>(3, {{format::ClockType::qpc, 10'000'000},
                                                             {format::ClockType::qpc, 1},
                                                             {format::ClockType::qpc, 0},
                                                             {format::ClockType::system_time, 10'000'000},
                                                             {format::ClockType::cpu_cycles, 10'000'000}})) {
    trace_ = testing::SyntheticTrace({.clock = clock.type, .perf_freq = clock.frequency});
    for (const std::int64_t time : times)
      trace_.manifest_event({time}, {.provider = kPieced, .id = 1}, 7, 8);
    const std::string name = written();
    const auto count = [&](const std::string &condition) {
      return testing::json_lines(asked({"export", name, "--where", "id = 1 and " + condition}).out).size();
    };
    for (std::size_t i = 0; i < times.size(); ++i) {
      const std::string at = std::to_string(times[i]);
      EXPECT_EQ(count("timestamp = " + at), 1u) << at;
      EXPECT_EQ(count("timestamp >= " + at), times.size() - i) << at;
      EXPECT_EQ(count("timestamp <= " + at), i + 1) << at;
    }
    for (const char *ns : {"-2956159618427387900", "0", "1605563200000000000", "9223372036854775806"})
      EXPECT_EQ(count(std::string("time >= ") + ns), count(std::string("not (time < ") + ns + ")")) << ns;
    EXPECT_NE(
        asked({"query", name,
               "select count(*) from events where id = 1 and timestamp >= -9223372036854775808", "--json"})
            .out.find(":" + std::to_string(times.size())),
        std::string::npos);
  }
}

} // namespace
} // namespace etwrelog
