// The kernel's own manifest providers: hardly any trace describes their events, and tools that watch machines
// record hardly anything else.
#include "tests/support/json_lines.hpp"
#include "tests/support/run_tool.hpp"
#include "tests/support/synthetic_trace.hpp"
#include "tests/support/trace_files.hpp"

#include "etwrelog/provider_events.hpp"

#include <fstream>
#include <map>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace etwrelog {
namespace {

using nlohmann::json;
using testing::run_tool;
using testing::TempDir;
using testing::ToolRun;

std::vector<json> events_of(const char *name) {
  const auto trace = testing::trace_path(name);
  if (!trace) return {};
  const ToolRun run = run_tool({"export", trace->string()});
  EXPECT_EQ(run.status, 0) << run.err;
  return testing::json_lines(run.out);
}

// Every event to its last byte: a layout that is wrong leaves some, or wants more than there are.
TEST(KernelProviders, ProcessesThreadsAndImagesOfARealTraceAreDecoded) {
  const std::vector<json> events = events_of("Process");
  if (events.empty()) GTEST_SKIP() << "the shared traces are not here";
  std::map<std::string, std::size_t> counts;
  std::map<std::uint32_t, std::string> started; // images of processes
  for (const json &event : events) {
    if (event["provider"] != "Microsoft-Windows-Kernel-Process") continue;
    const std::string name = event["event"];
    ++counts[name];
    ASSERT_FALSE(event.contains("raw") || event.contains("tail") || event.contains("truncated")) << event;
    const json &fields = event["fields"];
    if (name == "ImageLoad") {
      EXPECT_TRUE(fields["ImageName"].get<std::string>().starts_with("\\")) << event;
      EXPECT_NE(fields["ImageSize"], "0x0") << event;
      EXPECT_EQ(fields["ProcessID"], event["process_id"]) << "who loads it";
    }
    if (name == "ThreadStop/Stop") {
      EXPECT_EQ(fields["ThreadID"], event["thread_id"]) << event;
    }
    if (name == "ProcessStart/Start") {
      EXPECT_EQ(fields["ParentProcessID"], event["process_id"]) << event;
      started[fields["ProcessID"]] = fields["ImageName"];
    }
    if (name == "ProcessStop/Stop") {
      EXPECT_EQ(fields["ProcessID"], event["process_id"]) << event;
      const auto begun = started.find(fields["ProcessID"]);
      if (begun != started.end()) {
        EXPECT_TRUE(begun->second.ends_with("\\" + fields["ImageName"].get<std::string>())) << event;
      }
    }
  }
  EXPECT_EQ(counts, (std::map<std::string, std::size_t>{{"CpuBasePriorityChange", 810},
                                                        {"CpuPriorityChange", 5088},
                                                        {"ImageLoad", 1115},
                                                        {"ImageUnload", 1153},
                                                        {"IoPriorityChange", 780},
                                                        {"PagePriorityChange", 838},
                                                        {"ProcessStart/Start", 4},
                                                        {"ProcessStop/Stop", 4},
                                                        {"ThreadStart/Start", 287},
                                                        {"ThreadStop/Stop", 264}}));
}

TEST(KernelProviders, ConnectionsOfARealTraceAreDecoded) {
  const std::vector<json> events = events_of("KernelNetwork");
  if (events.empty()) GTEST_SKIP() << "the shared traces are not here";
  std::map<std::string, std::size_t> ports;
  std::size_t decoded = 0;
  for (const json &event : events) {
    if (event["provider"] != "Microsoft-Windows-Kernel-Network") continue;
    ++decoded;
    ASSERT_FALSE(event.contains("raw") || event.contains("truncated")) << event;
    // The kernel writes 8 bytes of connid, of which the manifest has the first four.
    EXPECT_EQ(event.value("tail", ""), "00000000") << event;
    const json &fields = event["fields"];
    EXPECT_LT(fields["size"], 65536) << event;
    ++ports[fields["daddr"].get<std::string>() + " " + std::to_string(fields["dport"].get<unsigned>())];
  }
  EXPECT_EQ(decoded, 8923u);
  EXPECT_GT(ports["157.56.244.38 443"], 1000u) << "where most came from";
}

TEST(KernelProviders, StatisticsCallEventsByTheirNames) {
  const auto trace = testing::trace_path("Process");
  if (!trace) GTEST_SKIP() << "the shared traces are not here";
  const ToolRun run = run_tool({"stats", trace->string()});
  EXPECT_NE(run.out.find("Microsoft-Windows-Kernel-Process/CpuPriorityChange"), std::string::npos) << run.out;
  EXPECT_EQ(run.out.find("EventID("), std::string::npos) << run.out;
}

// What was decoded by the built-in schemas is what another program makes of the records that say so in the
// trace.
TEST(KernelProviders, SchemasThatAreEmbeddedAreUnderstoodElsewhere) {
  for (const auto &[name, provider] : {std::pair("Process", "Microsoft-Windows-Kernel-Process"),
                                       std::pair("KernelNetwork", "Microsoft-Windows-Kernel-Network")}) {
    SCOPED_TRACE(name);
    const auto trace = testing::trace_path(name);
    if (!trace) GTEST_SKIP() << "the shared traces are not here";
    const TempDir directory;
    const std::string lines = directory.file("lines.jsonl"), embedded = directory.file("embedded.etl"),
                      judged = directory.file("judged.json");
    ASSERT_EQ(run_tool({"export", trace->string(), "--provider", provider, "-o", lines}).status, 0);
    ASSERT_EQ(run_tool({"relog", "--embed-schemas", trace->string(), "-o", embedded}).status, 0);
    const std::string judge = "python3 " + (*testing::shared_dir() / "tools" / "etl_decode.py").string() +
                              " --compare " + lines + " " + embedded + " > " + judged;
    static_cast<void>(std::system(judge.c_str())); // it misses the header, which is another one
    std::ifstream file(judged);
    const json said = json::parse(file);
    EXPECT_EQ(said["events_matched"], said["events_there"]);
    EXPECT_GT(said["events_there"], 8'000);
    EXPECT_EQ(said["equal"], said["events_there"]);
  }
}

// Names of files: of their keys, and of what programs open.
TEST(KernelProviders, FilesHaveTheNamesThatTheProviderTold) {
  testing::SyntheticTrace trace;
  const auto event = [&](std::int64_t time, std::uint16_t id, std::uint8_t version,
                         std::initializer_list<std::uint64_t> pointers,
                         std::initializer_list<std::uint32_t> numbers, std::string_view name = "") {
    trace.emit({time}, [&](write::EventBuilder &e) {
      e.event({.provider = provider::kKernelFile, .id = id, .version = version}, 8, 80, 8, time);
      for (const std::uint64_t pointer : pointers)
        e.put(pointer);
      for (const std::uint32_t number : numbers)
        e.put(number);
      if (!name.empty()) e.wstr(name);
    });
  };
  event(2'000'000, 10, 0, {0xA0}, {}, "\\named.txt");                        // NameCreate
  event(2'000'100, 12, 1, {1, 0xB0}, {80, 0, 0, 7}, "\\opened.txt");         // Create
  event(2'000'200, 15, 1, {0, 1, 0xC0, 0xA0}, {80, 512, 0, 0});              // Read
  event(2'000'300, 16, 1, {0, 1, 0xB0, 0xD0}, {80, 512, 0, 0});              // Write
  event(2'000'400, 14, 1, {1, 0xE0, 0xF0}, {80});                            // Close
  event(2'000'500, 12, 9, {1, 0xE0}, {80, 0, 0, 7}, "\\of a later Windows"); // whose layout is not known
  const TempDir directory;
  testing::write_file(directory.file("t.etl"), trace.bytes());
  const ToolRun run = run_tool(
      {"export", directory.file("t.etl"), "--join", "file", "--provider", "Microsoft-Windows-Kernel-File"});
  ASSERT_EQ(run.status, 0) << run.err;
  std::vector<std::string> files;
  for (const json &line : testing::json_lines(run.out))
    files.push_back(line.value("file", ""));
  EXPECT_EQ(files,
            (std::vector<std::string>{"\\named.txt", "\\opened.txt", "\\named.txt", "\\opened.txt", "", ""}));
}

// A trace of that provider alone: its events tell what the kernel logger's do.
class ProcessesOfTheProvider : public ::testing::Test {
protected:
  ProcessesOfTheProvider() {
    starts(2'000'000, 8, 4, "\\Device\\HarddiskVolume2\\Windows\\parent.exe");
    starts(2'000'100, 9, 8, "\\Device\\HarddiskVolume2\\child.exe");
    other(2'000'200, 9);
    other(2'000'300, 8);
    other(2'000'400, 10); // was there before
    stops(2'000'500, 9, "child.exe");
  }
  void starts(std::int64_t time, std::uint32_t pid, std::uint32_t parent, std::string_view image) {
    trace_.emit({time}, [&](write::EventBuilder &e) {
      e.event({.provider = provider::kKernelProcess, .id = 1}, 8, 80, parent, time);
      e.put(pid).put(std::uint64_t{0}).put(parent).put(std::uint32_t{0}).wstr(image);
    });
  }
  void stops(std::int64_t time, std::uint32_t pid, std::string_view image) {
    trace_.emit({time}, [&](write::EventBuilder &e) {
      e.event({.provider = provider::kKernelProcess, .id = 2}, 8, 80, pid, time);
      e.put(pid).put(std::uint64_t{0}).put(std::uint64_t{0});
      for (int i = 0; i < 3; ++i)
        e.put(std::uint32_t{0});
      e.put(std::uint64_t{0}).put(std::uint64_t{0}).astr(image);
    });
  }
  void other(std::int64_t time, std::uint32_t pid) {
    trace_.classic({time}, make_guid(1, 2, 3, 4, 5), 1, 80, pid);
  }
  // By process of events, with the ids of those that are not known.
  std::map<std::string, std::size_t> by_process(const std::vector<std::string> &selection = {}) {
    const std::string path = directory_.file("t.etl"), kept = directory_.file("kept.etl");
    testing::write_file(path, trace_.bytes());
    std::vector<std::string> relog = {"relog", path, "-o", kept, "-f"};
    relog.insert(relog.end(), selection.begin(), selection.end());
    const ToolRun cut = run_tool(relog);
    EXPECT_EQ(cut.status, 0) << cut.err;
    const ToolRun run = run_tool({"export", kept, "--where", "provider != 'Windows Kernel'"});
    EXPECT_EQ(run.status, 0) << run.err;
    std::map<std::string, std::size_t> counts;
    for (const json &event : testing::json_lines(run.out))
      ++counts[event["process"].is_null() ? event["process_id"].dump() : event["process"].get<std::string>()];
    return counts;
  }
  testing::SyntheticTrace trace_;
  TempDir directory_;
};

TEST_F(ProcessesOfTheProvider, HaveNamesAndAreSelectedByThem) {
  using Counts = std::map<std::string, std::size_t>;
  EXPECT_EQ(by_process(), (Counts{{"4", 1}, {"parent.exe", 2}, {"child.exe", 2}, {"10", 1}}));
  EXPECT_EQ(by_process({"-p", "child"}), (Counts{{"8", 1}, {"child.exe", 2}})) << "with its start";
  EXPECT_EQ(by_process({"-p", "parent"}), (Counts{{"4", 1}, {"parent.exe", 2}}));
  EXPECT_EQ(by_process({"-p", "parent", "--children"}),
            (Counts{{"4", 1}, {"parent.exe", 2}, {"child.exe", 2}}));
  EXPECT_EQ(by_process({"-p", "8", "--children"}), by_process({"-p", "parent", "--children"}));
  EXPECT_EQ(by_process({"-p", "10"}), (Counts{{"10", 1}})) << "nothing tells of it but its events";
  EXPECT_EQ(by_process({"--exclude", "10", "--exclude", "parent"}).count("10"), 0u);
}

// Threads and images, too: modules of addresses have names, and stay where their process does.
class StateOfTheProvider : public ProcessesOfTheProvider {
protected:
  StateOfTheProvider() {
    loads(1'900'000, 0, 4, 0xFFFF'F800'0000'0000, "\\SystemRoot\\ntoskrnl.exe");
    loads(2'000'110, 9, 8, 0x7FF6'0000'0000, "\\Device\\HarddiskVolume2\\code.dll");
    runs(2'000'210, 9, 90, 0x7FF6'0000'1234);
    runs(2'000'220, 9, 91, 0x1234);
    loads(2'000'230, 8, 8, 0x7FF6'0000'0000, "\\Device\\HarddiskVolume2\\other.dll");
  }
  // `writer`: the process that the header has.
  void loads(std::int64_t time, std::uint32_t pid, std::uint32_t writer, std::uint64_t base,
             std::string_view path) {
    trace_.emit({time}, [&](write::EventBuilder &e) {
      e.event({.provider = provider::kKernelProcess, .id = 5}, 8, 80, writer, time);
      e.put(base).put(std::uint64_t{0x10000}).put(pid).put(std::uint64_t{0}).put(std::uint64_t{0}).wstr(path);
    });
  }
  void runs(std::int64_t time, std::uint32_t pid, std::uint32_t thread, std::uint64_t code) {
    trace_.emit({time}, [&](write::EventBuilder &e) {
      e.event({.provider = provider::kKernelProcess, .id = 3}, 8, 80, 8, time);
      e.put(pid).put(thread);
      for (int i = 0; i < 4; ++i)
        e.put(std::uint64_t{0xFFFF'8000'0000'0000});
      e.put(code).put(code).put(std::uint64_t{0}).put(std::uint32_t{0});
    });
  }
  void receives(std::int64_t time, std::uint32_t pid, std::uint32_t interrupted, std::uint32_t bytes) {
    trace_.emit({time}, [&](write::EventBuilder &e) {
      e.event({.provider = provider::kKernelNetwork, .id = 11}, 8, 80, interrupted, time);
      e.put(pid).put(bytes);
      for (int i = 0; i < 5; ++i)
        e.put(std::uint32_t{7});
    });
  }
  std::vector<json> lines(std::vector<std::string> arguments) {
    const std::string path = directory_.file("t.etl");
    testing::write_file(path, trace_.bytes());
    arguments.insert(arguments.begin() + 1, path);
    const ToolRun run = run_tool(arguments);
    EXPECT_EQ(run.status, 0) << run.err;
    return testing::json_lines(run.out);
  }
};

TEST_F(StateOfTheProvider, GivesAddressesTheirModules) {
  // At the end of the trace, what its beginning told is known.
  for (const std::vector<std::string> &stretch :
       {std::vector<std::string>{}, {"--from", "0.12", "--to", "0.2"}}) {
    std::vector<std::string> arguments = {"export", "--join", "module", "--where",
                                          "event = 'ThreadStart/Start'"};
    arguments.insert(arguments.end(), stretch.begin(), stretch.end());
    runs(2'400'000, 9, 92, 0x7FF6'0000'4321);
    const std::vector<json> events = lines(arguments);
    ASSERT_FALSE(events.empty());
    EXPECT_EQ(events.back()["modules"],
              (json{{"StartAddr", "code.dll+0x4321"}, {"Win32StartAddr", "code.dll+0x4321"}}));
    if (!stretch.empty()) continue;
    ASSERT_EQ(events.size(), 3u);
    EXPECT_EQ(events[0]["modules"]["StartAddr"], "code.dll+0x1234");
    EXPECT_FALSE(events[1].contains("modules")) << "as of code that was injected";
  }
}

// As of providers that a session enabled with stacks.
TEST_F(StateOfTheProvider, GivesStacksTheirModules) {
  trace_.manifest_event({2'000'300}, {.provider = make_guid(1, 2, 3, 4, 6), .id = 7}, 90, 9, {},
                        {{format::ItemType::stack_trace64,
                          testing::stack_item({0xFFFF'F800'0000'0010, 0x7FF6'0000'0042, 0x1234'5678})}});
  const std::vector<json> events = lines({"export", "--join", "stack", "--where", "id = 7"});
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0]["stack"], (json{"ntoskrnl.exe+0x10", "code.dll+0x42", "0x12345678"}));
  const ToolRun profile =
      run_tool({"profile", directory_.file("t.etl"), "--event", "*/EventID(7)", "--by", "module", "--json"});
  ASSERT_EQ(profile.status, 0) << profile.err;
  const json said = json::parse(profile.out);
  std::map<std::string, std::uint64_t> modules;
  for (const json &row : said["rows"])
    modules[row["name"]] = row["total"];
  EXPECT_EQ(modules, (std::map<std::string, std::uint64_t>{
                         {"code.dll", 1}, {"ntoskrnl.exe", 1}, {"(unknown code)", 1}}));
}

TEST_F(StateOfTheProvider, StaysWithItsProcess) {
  using Counts = std::map<std::string, std::size_t>;
  // Its start, its image, two threads that another one made, its event and its end; and the kernel's image.
  EXPECT_EQ(by_process({"-p", "child"}), (Counts{{"4", 1}, {"8", 4}, {"child.exe", 2}}));
}

TEST_F(StateOfTheProvider, IsNotToldTwice) {
  trace_.process_start({2'000'150}, 9, 8, "child.exe");
  trace_.image_load({2'000'160}, 9, 0x7FF6'0000'0000);
  const std::vector<json> events = lines({"export", "--join", "module", "--event", "*/ThreadStart*"});
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0]["modules"]["StartAddr"], "a.dll+0x1234");
  const ToolRun images =
      run_tool({"query", directory_.file("t.etl"), "--json", "select count(*) as n from images"});
  EXPECT_EQ(json::parse(images.out)["n"], 1) << images.err;
}

// What comes from the network is logged by whoever is interrupted.
TEST_F(StateOfTheProvider, TellsWhoseNetworkTrafficIs) {
  for (int i = 0; i < 5; ++i)
    receives(2'000'250 + i, 9, i % 2 == 0 ? 0 : 8, 1400);
  receives(2'000'260, 8, 9, 60);
  const std::vector<json> owned = lines({"export", "--join", "owner", "--event", "*/Datareceived.*"});
  ASSERT_EQ(owned.size(), 6u);
  for (std::size_t i = 0; i < owned.size(); ++i)
    EXPECT_EQ(owned[i]["owner_process"], i < 5 ? "child.exe" : "parent.exe") << owned[i];
  const std::string path = directory_.file("t.etl");
  const ToolRun kept = run_tool({"relog", path, "-p", "child", "--event", "*/Datareceived.*", "-o",
                                 directory_.file("kept.etl"), "--json"});
  ASSERT_EQ(kept.status, 0) << kept.err;
  const ToolRun there = run_tool({"export", directory_.file("kept.etl"), "--event", "*/Datareceived.*"});
  EXPECT_EQ(testing::json_lines(there.out).size(), 5u);
  const ToolRun profile = run_tool(
      {"profile", path, "--event", "*/Datareceived.*", "--sum", "size", "--by", "process", "--json"});
  ASSERT_EQ(profile.status, 0) << profile.err;
  std::map<std::string, std::uint64_t> bytes;
  const json said = json::parse(profile.out);
  for (const json &process : said["rows"])
    bytes[process["name"]] = process["total"];
  EXPECT_EQ(bytes, (std::map<std::string, std::uint64_t>{{"child.exe (9)", 7000}, {"parent.exe (8)", 60}}));
}

// Both tell of the same processes, at times of their own.
TEST_F(ProcessesOfTheProvider, AreThoseOfTheKernelLoggerIfThatIsThere) {
  trace_.process_start({2'000'050}, 8, 4, "parent.exe");
  trace_.process_start({2'000'150}, 9, 8, "child.exe");
  const std::string path = directory_.file("t.etl");
  testing::write_file(path, trace_.bytes());
  const ToolRun run = run_tool({"info", path, "--json"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(json::parse(run.out)["processes"].size(), 2u) << run.out;
}

} // namespace
} // namespace etwrelog
