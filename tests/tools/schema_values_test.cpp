// What the generator says of its events' fields, and what an export says of them: value by value, for every
// type of every kind of schema.
#include "tests/support/run_tool.hpp"
#include "tests/support/trace_files.hpp"
#include "tools/etwgen/generate.hpp"

#include <set>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace etwrelog {
namespace {

using Json = nlohmann::ordered_json;
using testing::run_tool;
using testing::TempDir;
using testing::ToolRun;

class SchemaValues : public ::testing::TestWithParam<int> {
protected:
  // A trace with the known events, and its message formats in a folder.
  void make(const TempDir &directory) {
    gen::Options options;
    options.profile = gen::find_profile("real");
    options.size = 256 << 10;
    options.cpus = 2, options.processes = 4;
    options.seed = static_cast<std::uint64_t>(GetParam());
    options.schemas = true;
    gen::MemorySink sink;
    const Result<gen::Generated> made = gen::generate(options, sink);
    ASSERT_TRUE(made) << made.error().message();
    testing::write_file(directory.file("x.etl"), sink.bytes);
    truth = Json::parse(made->truth.json("[]"))["schemas"];
    const std::string tmf = truth["tmf"];
    testing::write_file(directory.file("x.tmf"), std::vector<std::uint8_t>(tmf.begin(), tmf.end()));
  }
  Json truth;
};

// Options that may come again take one value each time.
TEST_P(SchemaValues, OptionsInFrontOfTheTraceLeaveItAlone) {
  const TempDir directory;
  make(directory);
  const std::string trace = directory.file("x.etl"), formats = directory.file("x.tmf");
  for (const std::vector<std::string> &arguments : std::vector<std::vector<std::string>>{
           {"export", "--schemas", formats, trace},
           {"export", "--join", "owner,process", trace},
           {"schema", "--schemas", formats, trace},
           {"query", "--schemas", formats, trace, "select count(*) from events"},
           {"stacks", "--simulate-cache", "--buckets", "256,1021", trace},
           {"stacks", "--simulate-cache", "--cache-size", "4M", trace}}) {
    const ToolRun run = run_tool(arguments);
    EXPECT_EQ(run.status, 0) << arguments[0] << " " << arguments[1] << ": " << run.err;
  }
}

TEST_P(SchemaValues, AreThoseThatWereWritten) {
  const TempDir directory;
  make(directory);
  ASSERT_GT(truth["events"].size(), 50u);
  std::set<std::string> providers;
  for (const Json &event : truth["events"])
    providers.insert(event["provider_id"]);
  const ToolRun run = run_tool({"export", directory.file("x.etl"), "--schemas", directory.file("x.tmf")});
  ASSERT_EQ(run.status, 0) << run.err;
  std::istringstream lines(run.out);
  std::size_t next = 0;
  for (std::string line; std::getline(lines, line);) {
    const Json event = Json::parse(line);
    // Chunks of manifests are events, too.
    if (!providers.contains(event["provider_id"]) || event["id"] == 0xFFFE) continue;
    ASSERT_LT(next, truth["events"].size()) << line;
    const Json &expected = truth["events"][next++];
    ASSERT_EQ(event["provider_id"], expected["provider_id"]) << line;
    ASSERT_EQ(event["event"], expected["event"]) << line;
    EXPECT_FALSE(event.contains("tail") || event.contains("truncated") || event.contains("raw")) << line;
    ASSERT_EQ(event["fields"].size(), expected["fields"].size()) << line;
    auto value = event["fields"].begin();
    for (const auto &[name, shown] : expected["fields"].items()) {
      EXPECT_EQ(value.key(), name) << line;
      EXPECT_EQ(value.value(), shown) << expected["event"] << "." << name;
      ++value;
    }
  }
  EXPECT_EQ(next, truth["events"].size());
}

// Maps of values and of bits, with records in front of the events that refer to them and behind.
TEST_P(SchemaValues, HaveTheNamesOfTheirMapsOnRequest) {
  const TempDir directory;
  make(directory);
  std::vector<Json> named;
  for (const Json &event : truth["events"])
    if (event.contains("named")) named.push_back(event["named"]);
  ASSERT_FALSE(named.empty());
  const ToolRun run = run_tool({"export", directory.file("x.etl"), "--maps", "--where", "event = 'Mapped'"});
  ASSERT_EQ(run.status, 0) << run.err;
  std::istringstream lines(run.out);
  std::size_t next = 0;
  for (std::string line; std::getline(lines, line); ++next) {
    ASSERT_LT(next, named.size());
    EXPECT_EQ(Json::parse(line)["fields"], named[next]) << line;
  }
  EXPECT_EQ(next, named.size());
}

TEST_P(SchemaValues, GiveBackTheirPayloads) {
  const TempDir directory;
  make(directory);
  const ToolRun run = run_tool(
      {"export", directory.file("x.etl"), "--schemas", directory.file("x.tmf"), "--verify", "--json"});
  ASSERT_EQ(run.status, 0) << run.err;
  std::set<std::string> reasons;
  std::uint64_t verified = 0;
  const Json report = Json::parse(run.out);
  for (const Json &kind : report["kinds"]) {
    verified += kind["verified"].get<std::uint64_t>();
    std::uint64_t left_out = 0;
    for (const auto &[why, events] : kind["not_verified"].items()) {
      reasons.insert(why);
      left_out += events.get<std::uint64_t>();
    }
    EXPECT_EQ(kind["verified"].get<std::uint64_t>() + left_out, kind["events"]) << kind;
  }
  EXPECT_GT(verified, truth["events"].size());
  // What no text says: the address in front of the SIDs of the kernel's events.
  for (const std::string &why : reasons)
    EXPECT_TRUE(why == "two addresses in front of a SID" || why == "nobody describes it") << why;
}

// What an EventSource says in its own way, and Windows' tools do not read, they read afterwards.
TEST_P(SchemaValues, OfEventSourceAreTheSameByTheRecordsThatAreEmbedded) {
  const TempDir directory;
  make(directory);
  const std::string with = directory.file("with.etl"), source = "5ce4a003-1111-4222-8333-444455556666";
  const ToolRun relog = run_tool({"relog", directory.file("x.etl"), "--embed-schemas", "-o", with});
  ASSERT_EQ(relog.status, 0) << relog.err;
  const std::string where = "provider_id = '" + source + "' and id = 1";
  const ToolRun before = run_tool({"export", directory.file("x.etl"), "--where", where}),
                after = run_tool({"export", with, "--where", where});
  EXPECT_EQ(before.out, after.out);
  const ToolRun schema = run_tool({"schema", with, "--where", where, "--json"});
  const Json described = Json::parse(schema.out), kinds = described["kinds"];
  ASSERT_EQ(kinds.size(), 1u);
  EXPECT_EQ(kinds[0]["source"], "event-info");
  EXPECT_EQ(kinds[0]["events"], 8);
}

INSTANTIATE_TEST_SUITE_P(Seeds, SchemaValues, ::testing::Values(1, 2, 3));

} // namespace
} // namespace etwrelog
