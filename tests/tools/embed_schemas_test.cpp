// Schemas written into a trace decode it without the files that they came from.
#include "etwrelog/export.hpp"
#include "schema/event_info_writer.hpp"
#include "tests/support/real_traces.hpp"
#include "tests/support/run_tool.hpp"
#include "tests/support/trace_files.hpp"

#include <cstdlib>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace etwrelog::testing {
namespace {

using nlohmann::json;

std::vector<std::string> lines_of(const std::string &text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

TEST(EmbedSchemas, DecodesTheEventsOfAManifestWithoutIt) {
  const auto trace = trace_path("HTTP_Server");
  if (!trace) GTEST_SKIP() << "the shared traces are not here";
  const TempDir directory;
  const std::string schemas = (*shared_dir() / "schemas").string(), out = directory.file("with.etl");
  const ToolRun relog =
      run_tool({"relog", "--embed-schemas", "--schemas", schemas, trace->string(), "-o", out, "--json"});
  ASSERT_EQ(relog.status, 0) << relog.err;
  EXPECT_EQ(json::parse(relog.out)["embedded_schemas"]["events"], 2041);
  EXPECT_TRUE(json::parse(relog.out)["embedded_schemas"]["left_out"].empty());
  // What the manifest said about each event, the trace says itself.
  const ToolRun before = run_tool({"export", trace->string(), "--schemas", schemas, "--where", "id != 0"});
  const ToolRun after = run_tool({"export", out, "--where", "id != 0"});
  ASSERT_EQ(after.status, 0) << after.err;
  const auto expected = lines_of(before.out), found = lines_of(after.out);
  ASSERT_EQ(found.size(), expected.size());
  ASSERT_EQ(found.size(), 2041u);
  for (std::size_t i = 0; i < found.size(); ++i) {
    const json a = json::parse(expected[i]), b = json::parse(found[i]);
    ASSERT_FALSE(b["fields"].is_null()) << found[i];
    ASSERT_EQ(a["fields"], b["fields"]) << found[i];
    ASSERT_EQ(a["timestamp"], b["timestamp"]);
  }
  // And the independent decoder reads it so.
  std::ofstream(directory.file("after.jsonl")) << run_tool({"export", out}).out;
  const std::string judged = directory.file("judged.json");
  const std::string judge = "python3 " + (*shared_dir() / "tools" / "etl_decode.py").string() +
                            " --compare " + directory.file("after.jsonl") + " " + out + " > " + judged;
  EXPECT_EQ(std::system(judge.c_str()), 0);
  std::ifstream file(judged);
  const json verdict = json::parse(file);
  EXPECT_EQ(verdict["equal"], verdict["decoded_here"]);
  EXPECT_GE(verdict["decoded_here"], 2041);
  // Again: nothing is left to be done.
  const ToolRun again =
      run_tool({"relog", out, "--embed-schemas", "-o", directory.file("again.etl"), "--json"});
  ASSERT_EQ(again.status, 0) << again.err;
  EXPECT_EQ(json::parse(again.out)["embedded_schemas"]["kinds"], 0);
  ASSERT_EQ(run_tool({"relog", out, "-o", directory.file("plain.etl")}).status, 0);
  EXPECT_TRUE(testing::read_file(directory.file("again.etl")) ==
              testing::read_file(directory.file("plain.etl")));
}

TEST(EmbedSchemas, KeepsEveryEventAndTheMarksOfTheFile) {
  const auto trace = trace_path("net.4.5.2.x64");
  if (!trace) GTEST_SKIP() << "the shared traces are not here";
  const TempDir directory;
  const std::string plain = directory.file("plain.etl"), with = directory.file("with.etl");
  ASSERT_EQ(run_tool({"relog", trace->string(), "-o", plain}).status, 0);
  const std::string counts = directory.file("counts.json");
  ASSERT_EQ(run_tool({"relog", trace->string(), "--embed-schemas", "-o", with, "--report", counts}).status,
            0);
  const auto a = read_file(plain), b = read_file(with);
  ASSERT_GE(b.size(), a.size());
  std::size_t different = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    different += a[i] != b[i] ? 1 : 0;
  EXPECT_LE(different, 8u); // BuffersWritten, and the mark of what was the last buffer
  const ToolRun info = run_tool({"info", with, "--json"});
  EXPECT_EQ(info.status, 0) << info.err;
  // The records are counted, too.
  const json told = json::parse(info.out);
  std::ifstream file(counts);
  const json counted = json::parse(file);
  EXPECT_GT(counted["output"]["events"], counted["input"]["events"]);
  EXPECT_EQ(counted["output"]["events"], told["events"]["count"]);
  EXPECT_EQ(counted["output"]["event_bytes"], told["events"]["bytes"]);
  std::uint64_t events = 0, bytes = 0;
  for (const json &type : counted["by_type"]) {
    events += type["events_out"].get<std::uint64_t>();
    bytes += type["bytes_out"].get<std::uint64_t>();
  }
  EXPECT_EQ(events, told["events"]["count"]);
  EXPECT_EQ(bytes, told["events"]["bytes"]);
}

TEST(EmbedSchemas, ReadsWhatTheTraceIsReadFrom) {
  const auto path = trace_path("net.4.5.2.x64");
  if (!path) GTEST_SKIP() << "the shared traces are not here";
  const std::vector<std::uint8_t> bytes = read_file(path->string());
  // A file of the same name is another trace.
  const TempDir directory;
  const std::string name = directory.file("same");
  write_file(name, std::vector<std::uint8_t>(1000));
  const Result<etwrelog::Trace> trace = etwrelog::Trace::open(Input::memory(name, bytes));
  ASSERT_TRUE(trace) << trace.error().message();
  std::vector<std::uint8_t> out;
  const Result<EmbedReport> embedded = embed_schemas(*trace, Output::memory(out));
  ASSERT_TRUE(embedded) << embedded.error().message();
  ASSERT_GT(out.size(), bytes.size());
  EXPECT_TRUE(std::equal(bytes.begin() + 0x10000, bytes.end() - 0x10000, out.begin() + 0x10000));
}

TEST(EmbedSchemas, SaysWhatItNeeds) {
  const auto trace = trace_path("HTTP_Server");
  if (!trace) GTEST_SKIP() << "the shared traces are not here";
  const TempDir directory;
  const ToolRun alone = run_tool({"relog", trace->string(), "--schemas", "x", "-o", directory.file("x.etl")});
  EXPECT_EQ(alone.status, 2);
  EXPECT_NE(alone.err.find("--embed-schemas"), std::string::npos) << alone.err;
}

TEST(EmbedSchemas, NamesTheOutputAndNotTheFileBetween) {
  const auto trace = trace_path("HTTP_Server");
  if (!trace) GTEST_SKIP() << "the shared traces are not here";
  const TempDir directory;
  ToolOptions full; // the disk, when the trace has been written in part
  full.largest_file = 100'000;
  const ToolRun run =
      run_tool({"relog", trace->string(), "--embed-schemas", "-o", directory.file("x.etl")}, full);
  EXPECT_EQ(run.status, 1);
  EXPECT_NE(run.err.find(directory.file("x.etl")), std::string::npos) << run.err;
  EXPECT_NE(run.err.find("$TMPDIR"), std::string::npos) << run.err;
  EXPECT_EQ(run.err.find(".tmp"), std::string::npos) << run.err;
}

// What the writer says, the reader reads: of every kind in the built-in table of manifest events.
TEST(EmbedSchemas, RecordsReadBackAsTheSameFields) {
  std::size_t written = 0, refused = 0;
  for (const Schema *schema : SchemaCatalog::builtin().all()) {
    schema::EventInfoKey key;
    key.provider = schema->provider, key.id = schema->id, key.opcode = schema->opcode;
    const auto record = schema::write_event_info(*schema, key);
    EXPECT_FALSE(record && schema->classic);
    if (schema->classic) continue;
    ++(record ? written : refused);
    if (!record) continue;
    EXPECT_EQ(load_guid(record->data()), schema->provider);
    EXPECT_EQ(load<std::uint16_t>(record->data() + 0x20), schema->id);
  }
  EXPECT_GT(written, 100u);
  EXPECT_LT(refused, written / 10);
}

} // namespace
} // namespace etwrelog::testing
