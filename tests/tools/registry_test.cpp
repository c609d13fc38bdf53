// Which keys of the registry events are about: what the generator planted, and by hand what cannot be told.
#include "tests/support/generated.hpp"
#include "tests/support/json_lines.hpp"
#include "tests/support/run_tool.hpp"
#include "tests/support/synthetic_trace.hpp"
#include "tests/support/trace_files.hpp"

#include "etwrelog/provider_events.hpp"

#include <map>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace etwrelog {
namespace {

using nlohmann::json;
using testing::run_tool;
using testing::TempDir;
using testing::ToolRun;

std::vector<json> with_keys(const std::string &path, const std::vector<std::string> &more = {}) {
  std::vector<std::string> words = {"export", path, "--join", "registry,duration", "--event", "Registry/*"};
  words.insert(words.end(), more.begin(), more.end());
  const ToolRun run = run_tool(words);
  EXPECT_EQ(run.status, 0) << run.err;
  return testing::json_lines(run.out);
}

class GeneratedRegistry : public ::testing::Test {
protected:
  void SetUp() override {
    gen::Options options;
    options.profile = gen::find_profile("real");
    options.size = 6'000'000;
    options.cpus = 4, options.processes = 16;
    gen::MemorySink sink;
    const Result<gen::Generated> made = gen::generate(options, sink);
    ASSERT_TRUE(made) << made.error().message();
    testing::write_file(path_, sink.bytes);
    truth_ = json::parse(made->truth.json("[]"))["registry_by_key"];
    ASSERT_GT(truth_.size(), 100u);
  }
  TempDir directory_;
  std::string path_ = directory_.file("t.etl");
  json truth_;
};

TEST_F(GeneratedRegistry, KeysAreThoseThatWerePlanted) {
  const std::string archive = directory_.file("t.etlz");
  ASSERT_EQ(run_tool({"pack", path_, "-o", archive}).status, 0);
  for (const std::string &from : {path_, archive}) {
    std::map<std::string, std::uint64_t> found;
    for (const json &event : with_keys(from))
      ++found[event.value("registry_key", "")];
    EXPECT_EQ(json(found), truth_) << from;
  }
}

// Others told the names of some of them, or the end of the trace.
TEST_F(GeneratedRegistry, KeysOfAProcessKeepTheirNamesWhenTheRestGoes) {
  const std::string one = directory_.file("one.etl");
  ASSERT_EQ(run_tool({"relog", "-p", "chrome", path_, "-o", one}).status, 0);
  const auto of_process = [](const std::string &from) {
    std::vector<std::pair<std::int64_t, std::string>> keys;
    for (const json &event : with_keys(from, {"--where", "process = 'chrome.exe'"}))
      keys.emplace_back(event["timestamp"], event.value("registry_key", "none"));
    return keys;
  };
  const auto all = of_process(path_);
  EXPECT_GT(all.size(), 50u);
  EXPECT_EQ(of_process(one), all);
  std::size_t others = 0;
  for (const json &event : with_keys(one))
    if (event["process"] != json("chrome.exe")) {
      EXPECT_TRUE(event["event"].get<std::string>().starts_with("Registry/KCB")) << event;
      ++others;
    }
  EXPECT_GT(others, 0u);
}

class Registry : public ::testing::Test {
protected:
  static constexpr std::uint16_t kOpen = 11, kSetValue = 14, kEnumerateKey = 17, kMake = 22, kDrop = 23,
                                 kRundownEnd = 25;
  void registry(std::int64_t time, std::uint16_t opcode, std::uint64_t key, std::string_view name,
                std::uint8_t version = 2, std::int64_t began = 0) {
    trace_.emit({time}, [&](write::EventBuilder &e) {
      e.system(static_cast<std::uint16_t>(0x0900 | opcode), version, 8, 80, 8, time);
      if (version >= 2)
        e.put(began).put(std::uint32_t{0}).put(std::uint32_t{0}).put(key);
      else
        e.put(std::uint32_t{0}).put(key).put(began).put(std::uint32_t{0});
      e.wstr(name);
    });
  }
  // The keys of all events but those that name one; "" where it is not known.
  std::vector<std::string> keys() {
    testing::write_file(directory_.file("t.etl"), trace_.bytes());
    std::vector<std::string> found;
    for (const json &event : with_keys(directory_.file("t.etl")))
      if (!event["event"].get<std::string>().starts_with("Registry/KCB"))
        found.push_back(event.value("registry_key", ""));
    return found;
  }
  testing::SyntheticTrace trace_;
  TempDir directory_;
};

constexpr std::uint64_t kKey = 0xFFFF'D80F'1000'0000, kOther = kKey + 0xA0;

TEST_F(Registry, NamesBeginAtTheKeyOfTheHandle) {
  registry(2'000'000, kOpen, 0, "\\REGISTRY\\MACHINE");
  registry(2'000'100, kOpen, kKey, "Contoso\\Orders");
  registry(2'000'200, kSetValue, kKey, "Color");
  registry(2'000'300, kEnumerateKey, kKey, "");
  registry(2'000'400, kOpen, kOther, "Contoso"); // which nobody names
  registry(9'000'000, kRundownEnd, kKey, "\\REGISTRY\\USER");
  EXPECT_EQ(keys(), (std::vector<std::string>{"\\REGISTRY\\MACHINE", "\\REGISTRY\\USER\\Contoso\\Orders",
                                              "\\REGISTRY\\USER", "\\REGISTRY\\USER", ""}));
}

// The number of a key is given to another once it is dropped.
TEST_F(Registry, NamesHoldWhileTheKeyIsThere) {
  registry(2'000'000, kSetValue, kKey, "before it is dropped");
  registry(2'000'100, kDrop, kKey, "\\first");
  registry(2'000'200, kSetValue, kKey, "between");
  registry(2'000'300, kMake, kKey, "\\second");
  registry(2'000'400, kSetValue, kKey, "while it is there");
  registry(2'000'500, kDrop, kKey, "\\second");
  registry(2'000'600, kSetValue, kKey, "of one that was made unseen");
  registry(2'000'700, kDrop, kKey, "\\third");
  registry(2'000'800, kSetValue, kKey, "of nobody knows which");
  EXPECT_EQ(keys(), (std::vector<std::string>{"\\first", "", "\\second", "\\third", ""}));
}

TEST_F(Registry, OfEventsBeforeVistaNothingIsTold) {
  registry(2'000'000, kMake, kKey, "\\REGISTRY\\MACHINE", 1);
  registry(2'000'100, kSetValue, kKey, "Color", 1);
  EXPECT_EQ(keys(), std::vector<std::string>{""});
}

TEST_F(Registry, OperationsSayWhenTheyBegan) {
  registry(2'000'100, kSetValue, kKey, "Color", 2, 2'000'040);
  registry(2'000'200, kSetValue, kKey, "Color"); // nothing is said
  registry(2'000'300, kMake, kKey, "\\first", 2, 2'000'290);
  testing::write_file(directory_.file("t.etl"), trace_.bytes());
  const std::vector<json> events = with_keys(directory_.file("t.etl"));
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].value("duration_ns", 0), 6000) << events[0];
  EXPECT_FALSE(events[1].contains("duration_ns")) << events[1];
  EXPECT_FALSE(events[2].contains("duration_ns")) << "it names a key: " << events[2];
}

// Microsoft-Windows-Kernel-Registry, whose events say where a key begins when it is opened.
class OpenedKey : public ::testing::Test {
protected:
  static constexpr std::uint16_t kCreate = 1, kOpen = 2, kSetValue = 5, kClose = 13;
  void opens(std::int64_t time, std::uint16_t id, std::uint64_t base, std::uint64_t key,
             std::string_view name, std::uint32_t status = 0) {
    event(time, id, [&](write::EventBuilder &e) {
      e.put(base).put(key).put(status).put(std::uint32_t{2}).wstr("").wstr(name);
    });
  }
  void sets(std::int64_t time, std::uint64_t key) {
    event(time, kSetValue, [&](write::EventBuilder &e) {
      e.put(key).put(std::uint32_t{0}).put(std::uint32_t{4}).put(std::uint32_t{4}).wstr("").wstr("Color");
      e.put(std::uint16_t{4}).put(std::uint32_t{7});
      e.put(std::uint32_t{1}).put(std::uint32_t{2}).put(std::uint16_t{2}).put(std::uint16_t{0x4142});
    });
  }
  void closes(std::int64_t time, std::uint64_t key) {
    event(time, kClose, [&](write::EventBuilder &e) { e.put(key).put(std::uint32_t{0}).wstr(""); });
  }
  std::vector<json> exported() {
    testing::write_file(directory_.file("t.etl"), trace_.bytes());
    const ToolRun run = run_tool({"export", directory_.file("t.etl"), "--join", "registry", "--provider",
                                  "Microsoft-Windows-Kernel-Registry"});
    EXPECT_EQ(run.status, 0) << run.err;
    return testing::json_lines(run.out);
  }
  std::vector<std::string> keys() {
    std::vector<std::string> found;
    for (const json &event : exported())
      found.push_back(event.value("registry_key", ""));
    return found;
  }

private:
  template <class Build> void event(std::int64_t time, std::uint16_t id, Build &&build) {
    trace_.emit({time}, [&](write::EventBuilder &e) {
      e.event({.provider = provider::kKernelRegistry, .id = id}, 8, 80, 8, time);
      build(e);
    });
  }
  testing::SyntheticTrace trace_;
  TempDir directory_;
};

TEST_F(OpenedKey, HasTheNameThatItWasOpenedBy) {
  opens(2'000'000, kOpen, 0, 0xA0, "\\REGISTRY\\MACHINE");
  opens(2'000'100, kCreate, 0xA0, 0xB0, "Contoso\\Orders");
  sets(2'000'200, 0xB0);
  opens(2'000'300, kOpen, 0xA0, 0, "Missing", 0xC000'0034);
  opens(2'000'400, kOpen, 0xC0, 0xD0, "Below"); // one that was opened before the trace
  sets(2'000'500, 0xD0);
  sets(2'000'600, 0xE0);
  EXPECT_EQ(keys(), (std::vector<std::string>{"\\REGISTRY\\MACHINE", "\\REGISTRY\\MACHINE\\Contoso\\Orders",
                                              "\\REGISTRY\\MACHINE\\Contoso\\Orders",
                                              "\\REGISTRY\\MACHINE\\Missing", "", "", ""}));
}

TEST_F(OpenedKey, HasNoNameWhenItIsClosed) {
  opens(2'000'000, kOpen, 0, 0xA0, "\\first");
  closes(2'000'100, 0xA0);
  sets(2'000'200, 0xA0);
  opens(2'000'300, kOpen, 0, 0xA0, "\\second");
  sets(2'000'400, 0xA0);
  EXPECT_EQ(keys(), (std::vector<std::string>{"\\first", "\\first", "", "\\second", "\\second"}));
}

// A key that begins at itself would have a name of any length.
TEST_F(OpenedKey, NamesHaveAnEnd) {
  const std::string long_name(30'000, 'x');
  opens(2'000'000, kOpen, 0, 0xA0, "\\first");
  for (int i = 0; i < 5; ++i)
    opens(2'000'100 + i, kOpen, 0xA0, 0xA0, long_name);
  sets(2'000'200, 0xA0);
  const std::vector<std::string> found = keys();
  EXPECT_EQ(found[2].size(), 6u + 2 * 30'001u);
  EXPECT_EQ(found.back(), "");
}

// No trace describes these events.
TEST_F(OpenedKey, EventsAreDecodedWithoutAManifest) {
  sets(2'000'000, 0xA0);
  const std::vector<json> events = exported();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0]["event"], "SetValueKey");
  EXPECT_EQ(events[0]["fields"], json({{"KeyObject", "0xa0"},
                                       {"Status", 0},
                                       {"Type", 4},
                                       {"DataSize", 4},
                                       {"KeyName", ""},
                                       {"ValueName", "Color"},
                                       {"CapturedDataSize", 4},
                                       {"CapturedData", "07000000"},
                                       {"PreviousDataType", 1},
                                       {"PreviousDataSize", 2},
                                       {"PreviousDataCapturedSize", 2},
                                       {"PreviousData", "4241"}}));
  EXPECT_FALSE(events[0].contains("tail")) << events[0];
}

} // namespace
} // namespace etwrelog
