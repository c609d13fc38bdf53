// What --join adds, checked against the events that it was taken from, as the same export shows them.
#include "tests/support/generated.hpp"
#include "tests/support/json_lines.hpp"
#include "tests/support/pace.hpp"
#include "tests/support/run_tool.hpp"
#include "tests/support/synthetic_trace.hpp"
#include "tests/support/trace_files.hpp"

#include <map>
#include <regex>
#include <set>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sqlite3.h>

namespace etwrelog {
namespace {

using nlohmann::json;
using testing::run_tool;
using testing::TempDir;
using testing::ToolRun;

std::vector<json> exported(const std::string &trace, const std::string &join, const std::string &where) {
  const ToolRun run = run_tool({"export", trace, "--join", join, "--where", where});
  EXPECT_EQ(run.status, 0) << run.err;
  return testing::json_lines(run.out);
}

std::uint64_t number(const json &value) {
  return value.is_string() ? std::stoull(value.get<std::string>(), nullptr, 0) : value.get<std::uint64_t>();
}

class ExportJoin : public ::testing::Test {
protected:
  void SetUp() override {
    const auto found = testing::trace_path("net.4.5.2.x64");
    if (!found) GTEST_SKIP() << "the real traces are not here";
    trace_ = found->string();
  }
  std::string trace_;
};

// Frames as the events of stacks say them, put together here by a simpler rule: halves of the same time and
// thread, of the end of a request those of its beginning; and to kernel frames alone, the user half that the
// thread wrote next, if it names no later event.
TEST_F(ExportJoin, GivesEventsTheirStacks) {
  if (testing::kSanitized) GTEST_SKIP() << "too much for a sanitizer: other joins take the same ways";
  const std::vector<json> events =
      exported(trace_, "stack,owner", "event ~ '^(StackWalk|DiskIo)/' or event = 'PerfInfo/SampleProf'");
  using Frames = std::vector<std::uint64_t>;
  using Key = std::pair<std::int64_t, std::int64_t>; // time and thread
  struct Half {
    std::int64_t written;
    Frames frames;
  };
  const auto frames_of = [](const json &list) {
    Frames frames;
    for (const json &frame : list)
      frames.push_back(number(frame));
    return frames;
  };
  std::map<std::string, std::map<std::int64_t, Frames>> definitions; // of a key
  for (const json &event : events)
    if (const json &f = event["fields"]; f.contains("StackFrame"))
      definitions[f["key"]][event["timestamp"]] = frames_of(f["StackFrame"]);
  std::map<Key, std::vector<Half>> halves;
  std::map<std::int64_t, std::map<std::int64_t, std::pair<std::int64_t, Frames>>>
      user; // by thread: written, since
  const auto is_kernel = [](std::uint64_t address) { return address >> 63 != 0; };
  for (const json &event : events) {
    if (!event["event"].get<std::string>().starts_with("StackWalk/")) continue;
    EXPECT_FALSE(event.contains("stack"));
    const json &f = event["fields"];
    if (!f.contains("EventTimeStamp")) continue;
    Frames frames = frames_of(f.value("Stack", json::array()));
    if (f.contains("StackKey")) { // a key is defined when it is given up
      const auto &of_key = definitions[f["StackKey"]];
      auto at = of_key.lower_bound(event["timestamp"]);
      if (at == of_key.end() && !of_key.empty()) --at;
      if (at != of_key.end()) frames = at->second;
    }
    if (frames.empty()) continue;
    const Key key{f["EventTimeStamp"], f["StackThread"]};
    halves[key].push_back({event["timestamp"], frames});
    if (!is_kernel(frames.front())) user[key.second].insert({event["timestamp"], {key.first, frames}});
  }
  std::size_t with_stack = 0, lent = 0, of_ends = 0;
  std::map<std::uint64_t, Key> begun; // by request, whose end has the stack of its beginning
  for (const json &event : events) {
    const std::string name = event["event"];
    if (name.starts_with("StackWalk/") || !event.contains("owner_thread_id")) continue;
    Key key{event["timestamp"], event["owner_thread_id"]};
    if (name.starts_with("DiskIo/") && name.ends_with("Init")) {
      begun[number(event["fields"]["Irp"])] = key;
    } else if (name.starts_with("DiskIo/")) {
      const auto begin = begun.extract(number(event["fields"]["Irp"]));
      key = begin ? begin.mapped() : Key{};
      of_ends += event.contains("stack") ? 1 : 0;
    }
    const auto found = halves.find(key);
    ASSERT_EQ(found != halves.end(), event.contains("stack")) << event;
    if (found == halves.end()) continue;
    Frames frames, others;
    for (const Half &half : found->second) {
      Frames &part = is_kernel(half.frames.back()) ? frames : others;
      part.insert(part.end(), half.frames.begin(), half.frames.end());
    }
    if (!frames.empty() && others.empty()) {
      const auto &written = user[key.second];
      auto at = written.lower_bound(key.first);
      while (at != written.end() && at->second.first > key.first)
        ++at;
      if (at != written.end()) others = at->second.second, ++lent;
    }
    frames.insert(frames.end(), others.begin(), others.end());
    ASSERT_EQ(event["stack"].size(), frames.size()) << event;
    ++with_stack;
  }
  EXPECT_GT(with_stack, 3'000u);
  EXPECT_GT(of_ends, 50u);
  EXPECT_GT(lent, 100u);
}

// Most of these stacks have frames of compiled code, whose names the runtime tells elsewhere.
TEST_F(ExportJoin, NamesCodeAsAProfileDoes) {
  std::map<std::string, std::size_t> joined, profiled;
  std::size_t named = 0;
  for (const json &event : exported(trace_, "stack", "event = 'GarbageCollection/GCAllocationTick'")) {
    std::string stack;
    for (auto frame = event["stack"].rbegin(); frame != event["stack"].rend(); ++frame) {
      std::string text = *frame;
      if (text.find('!') != std::string::npos) text.resize(text.rfind("+0x")), ++named;
      stack += ";" + text;
    }
    ++joined[stack];
  }
  const ToolRun run =
      run_tool({"profile", trace_, "--event", "GC/AllocationTick", "--format", "folded", "-o", "-"});
  ASSERT_EQ(run.status, 0) << run.err;
  std::istringstream lines(run.out);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t process = line.find(';'), count = line.rfind(' ');
    std::string stack = line.substr(process, count - process);
    for (std::size_t mark; (mark = stack.find("_[j]")) != std::string::npos;)
      stack.erase(mark, 4);
    profiled[stack] += std::stoul(line.substr(count));
  }
  EXPECT_GT(named, 10'000u);
  EXPECT_EQ(joined, profiled);
}

// With some of the names, code would be called as other code that lay there before.
TEST_F(ExportJoin, NamesNoCodeWhereThereIsNoRoomForAllNames) {
  const ToolRun run =
      run_tool({"export", trace_, "--join", "stack", "--event", "GC/AllocationTick", "--memory-limit", "8M"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_NE(run.err.find("more names of code than memory has room for"), std::string::npos) << run.err;
  for (const json &event : testing::json_lines(run.out))
    for (const std::string frame : event["stack"])
      ASSERT_EQ(frame.find('!'), std::string::npos) << frame;
}

TEST_F(ExportJoin, MeasuresRequestsFromTheirBeginning) {
  const std::vector<json> events = exported(trace_, "duration", "event ~ '^DiskIo/'");
  std::map<std::string, std::int64_t> open;
  std::size_t measured = 0;
  for (const json &event : events) {
    const std::string name = event["event"];
    const json &fields = event["fields"];
    if (name.ends_with("Init")) {
      open[fields["Irp"]] = event["timestamp"];
      EXPECT_FALSE(event.contains("duration_ns"));
      continue;
    }
    const auto irp = fields.find("Irp");
    const auto begun = irp == fields.end() ? open.end() : open.find(irp->get<std::string>());
    ASSERT_EQ(begun != open.end(), event.contains("duration_ns")) << event;
    if (begun == open.end()) continue;
    // Ticks of this trace are 100 ns.
    EXPECT_EQ(event["duration_ns"], (event["timestamp"].get<std::int64_t>() - begun->second) * 100) << event;
    open.erase(begun);
    ++measured;
  }
  EXPECT_GT(measured, 1'000u);
}

TEST_F(ExportJoin, NamesFilesAndModulesThatTheTraceNames) {
  if (testing::kSanitized) GTEST_SKIP() << "too much for a sanitizer: other joins take the same ways";
  const std::vector<json> events =
      exported(trace_, "file,module,process",
               "event ~ '^(FileIo|DiskIo|Image)/' or event = 'PerfInfo/SampleProf' or event ~ '^Process/'");
  std::map<std::string, std::set<std::string>> names; // of a file object
  std::map<std::string, std::vector<std::pair<std::uint64_t, std::uint64_t>>> images;
  std::set<std::string> command_lines;
  for (const json &event : events) {
    const json &f = event["fields"];
    const std::string name = event["event"];
    if (f.contains("FileObject") && (f.contains("FileName") || f.contains("OpenPath")))
      names[f["FileObject"]].insert(f.contains("FileName") ? f["FileName"] : f["OpenPath"]);
    if (name.starts_with("Image/") && f.contains("ImageBase") && f.contains("FileName")) {
      const std::string path = f["FileName"];
      images[path.substr(path.find_last_of('\\') + 1)].push_back(
          {number(f["ImageBase"]), number(f["ImageSize"])});
    }
    if (f.contains("CommandLine")) command_lines.insert(f["CommandLine"].get<std::string>());
  }
  std::size_t files = 0, modules = 0, with_command_line = 0;
  for (const json &event : events) {
    const json &f = event["fields"];
    if (event.contains("file")) {
      const auto of = [&](const char *key) {
        return f.contains(key) && names[f[key]].contains(event["file"]);
      };
      EXPECT_TRUE(of("FileObject") || of("FileKey")) << event;
      ++files;
    }
    if (event.contains("modules"))
      for (const auto &[field, text] : event["modules"].items()) {
        const std::string module = text;
        const std::size_t plus = module.rfind('+');
        const std::uint64_t offset = std::stoull(module.substr(plus + 1), nullptr, 16),
                            address = number(f[field]);
        bool found = false;
        for (const auto &[base, size] : images[module.substr(0, plus)])
          found = found || (address - base == offset && offset < size);
        EXPECT_TRUE(found) << event;
        ++modules;
      }
    if (event.contains("command_line")) {
      EXPECT_TRUE(command_lines.contains(event["command_line"])) << event;
      ++with_command_line;
    }
  }
  EXPECT_GT(files, 1'000u);
  EXPECT_GT(modules, 3'000u);
  EXPECT_GT(with_command_line, 1'000u);
}

TEST_F(ExportJoin, IsTheSameInTablesAndWithAnyNumberOfThreads) {
  const std::string where = "event = 'DiskIo/Read'";
  const ToolRun one = run_tool({"export", trace_, "--join", "all", "--where", where, "-t", "1"});
  const ToolRun three = run_tool({"export", trace_, "--join", "all", "--where", where, "-t", "3"});
  EXPECT_EQ(one.out, three.out);
  const TempDir directory;
  const std::string path = directory.file("x.sqlite");
  ASSERT_EQ(run_tool({"export", trace_, "--join", "all", "--where", where, "-o", path}).status, 0);
  sqlite3 *database = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
  sqlite3_stmt *rows = nullptr;
  ASSERT_EQ(sqlite3_prepare_v2(
                database, "SELECT owner_process, file, stack, duration_ns FROM DiskIo_Read ORDER BY rowid",
                -1, &rows, nullptr),
            SQLITE_OK)
      << sqlite3_errmsg(database);
  std::istringstream lines(one.out);
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    ASSERT_EQ(sqlite3_step(rows), SQLITE_ROW);
    const json event = json::parse(line);
    int column = 0;
    for (const char *name : {"owner_process", "file", "stack", "duration_ns"}) {
      const auto *text = reinterpret_cast<const char *>(sqlite3_column_text(rows, column++));
      const json value = event.value(name, json());
      const std::string expected = value.is_string() ? value.get<std::string>()
                                   : value.is_null() ? ""
                                                     : value.dump();
      ASSERT_EQ(text ? text : "", expected) << name << ": " << line;
    }
  }
  EXPECT_EQ(sqlite3_step(rows), SQLITE_DONE);
  sqlite3_finalize(rows);
  sqlite3_close(database);
  EXPECT_GT(count, 1'000u);
}

// Whoever readies a thread or takes memory logs that, though the event names the thread that is readied, or
// no thread at all; their stacks are the first that one looks at for waits and memory.
TEST(ExportJoinOfLoggers, AreWhoRanThere) {
  testing::SyntheticTrace trace;
  trace.process_rundown({1'000'001}, 8, 4, "waker.exe");
  trace.process_rundown({1'000'002}, 9, 4, "sleeper.exe");
  trace.thread_rundown({1'000'003}, 80, 8);
  trace.thread_rundown({1'000'004}, 90, 9);
  constexpr std::uint64_t kBase = 0x7FF6'0000'0000;
  for (const bool waker : {true, false})
    trace.emit({1'000'005}, [&](write::EventBuilder &e) {
      e.perfinfo(0x1403, 3, 8, 1'000'005).value(kBase).value(0x10000).value(waker ? 8u : 9u).rest(10);
      e.text(waker ? "\\Device\\waker.exe" : "\\Device\\sleeper.exe");
    });
  trace.context_switch({2'000'000}, 80, 0);
  trace.ready_thread({2'000'100}, 90);
  trace.stack_walk({2'000'101}, 2'000'100, 8, 80, {0xFFFFF80000001000});
  trace.emit({2'000'200}, [](write::EventBuilder &e) {
    e.perfinfo(0x0262, 2, 8, 2'000'200).put(std::uint64_t{0x10000}).put(std::uint64_t{0x1000});
    e.put(std::uint32_t{8}).put(std::uint32_t{0x3000});
  });
  trace.stack_walk({2'000'201}, 2'000'200, 8, 80, {0xFFFFF80000002000});
  trace.emit({2'000'300}, [](write::EventBuilder &e) { // in another process
    e.perfinfo(0x0262, 2, 8, 2'000'300).put(std::uint64_t{0x10000}).put(std::uint64_t{0x1000});
    e.put(std::uint32_t{9}).put(std::uint32_t{0x3000});
  });
  trace.stack_walk({2'000'301}, 2'000'300, 8, 80, {kBase + 0x20});
  const TempDir directory;
  const std::string path = directory.file("t.etl");
  testing::write_file(path, trace.bytes());
  std::vector<json> events =
      exported(path, "stack,owner", "event = 'Thread/ReadyThread' or event = 'PageFault/VirtualAlloc'");
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[2].value("owner_process", ""), "sleeper.exe") << events[2];
  EXPECT_FALSE(events[2].contains("owner_thread_id")) << "it has no such thread: " << events[2];
  EXPECT_EQ(events[2].value("stack", json::array()), json::array({"waker.exe+0x20"})) << "it ran there";
  events.pop_back();
  for (const json &event : events) {
    EXPECT_EQ(event.value("owner_thread_id", 0), 80) << event;
    EXPECT_EQ(event.value("owner_process", ""), "waker.exe") << event;
    EXPECT_EQ(event.value("stack", json::array()).size(), 1u) << event;
  }
}

// Of events that do not tell who caused them, and of some that do.
void generate_real(const std::string &path) {
  gen::Options options;
  options.profile = gen::find_profile("real");
  options.size = 8'000'000;
  options.cpus = 4, options.processes = 16;
  testing::write_file(path, testing::generated(options));
}

// Outermost frame first; of a named function without the offset.
std::map<std::string, std::size_t> stacks_of_export(const std::string &path, const std::string &kind) {
  std::map<std::string, std::size_t> stacks;
  const ToolRun run = run_tool({"export", path, "--join", "stack", "--event", kind});
  EXPECT_EQ(run.status, 0) << run.err;
  for (const json &event : testing::json_lines(run.out)) {
    std::string stack;
    for (const std::string frame : event.value("stack", json::array())) {
      const std::string name = frame.find('!') != frame.npos ? frame.substr(0, frame.rfind("+0x")) : frame;
      stack = stack.empty() ? name : name + ';' + stack;
    }
    ++stacks[stack];
  }
  return stacks;
}

std::map<std::string, std::size_t> stacks_of_profile(const std::string &path, const std::string &kind) {
  static const std::regex marks(R"(_\[[a-z]\](?=;|$))"),
      notes(R"(^[^;]*(;\[(no stack|user stack missing)\])?;?)");
  std::map<std::string, std::size_t> stacks;
  const ToolRun run = run_tool({"profile", path, "--event", kind, "--format", "folded", "-o", "-"});
  EXPECT_EQ(run.status, 0) << run.err;
  std::istringstream lines(run.out);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t end = line.rfind(' ');
    const std::string stack = std::regex_replace(line.substr(0, end), marks, "");
    stacks[std::regex_replace(stack, notes, "", std::regex_constants::format_first_only)] +=
        std::stoul(line.substr(end + 1));
  }
  return stacks;
}

TEST(ExportJoinOfGenerated, StacksAreThoseOfProfiles) {
  const TempDir directory;
  const std::string path = directory.file("t.etl");
  generate_real(path);
  for (const std::string kind : {"PageFault/*", "DiskIo/*", "Thread/CSwitch", "FileIo/Read"}) {
    const auto stacks = stacks_of_export(path, kind);
    EXPECT_GT(stacks.size(), 20u) << kind;
    EXPECT_TRUE(stacks == stacks_of_profile(path, kind)) << kind;
  }
}

TEST(ExportJoinOfGenerated, OwnersAreWhoProfilesSay) {
  const TempDir directory;
  const std::string path = directory.file("t.etl");
  generate_real(path);
  for (const std::string kind : {"PageFault/VirtualAlloc", "PageFault/DemandZeroFault", "Thread/ReadyThread",
                                 "TcpIp/Recv*", "FileIo/Create", "PerfInfo/DPC"}) {
    SCOPED_TRACE(kind);
    std::map<std::int64_t, std::uint64_t> owners, processes;
    const ToolRun exported = run_tool({"export", path, "--join", "owner", "--event", kind});
    ASSERT_EQ(exported.status, 0) << exported.err;
    for (const json &event : testing::json_lines(exported.out))
      ++owners[event.value("owner_process_id", -1)];
    const ToolRun profile = run_tool({"profile", path, "--event", kind, "-p", "*", "--json"});
    ASSERT_EQ(profile.status, 0) << profile.err;
    const json read = json::parse(profile.out);
    for (const json &process : read["processes"]) {
      const std::string name = process["name"]; // "game.exe (620)"
      processes[std::stoll(name.substr(name.rfind('(') + 1))] += process["total"].get<std::uint64_t>();
    }
    EXPECT_EQ(processes, owners);
    EXPECT_EQ(owners.size() > 3, kind != "PerfInfo/DPC") << "interrupts are of nobody";
  }
}

// A stack names a thread and a time.
TEST(ExportJoinOfOneTime, TheLastEventHasTheStack) {
  constexpr std::uint32_t kPid = 9, kTid = 90, kOther = 91;
  testing::SyntheticTrace trace;
  const auto event = [&](std::int64_t time, std::uint32_t thread, std::uint16_t id) {
    trace.manifest_event({time}, {.provider = make_guid(1, 2, 3, 4, 5), .id = id}, thread, kPid);
  };
  event(2'000'000, kTid, 1);
  event(2'000'000, kOther, 2); // of another thread
  event(2'000'000, kTid, 3);
  trace.stack_walk({2'000'000}, 2'000'000, kPid, kTid, {0x7FF6'0000'1000, 0x7FF6'0000'2000});
  event(2'000'010, kTid, 4);
  trace.stack_walk({2'000'010}, 2'000'010, kPid, kTid, {0x7FF6'0000'3000});
  event(2'000'010, kOther, 5);
  trace.stack_walk({2'000'010}, 2'000'010, kPid, kOther, {0x7FF6'0000'4000});
  const TempDir directory;
  testing::write_file(directory.file("t.etl"), trace.bytes());
  std::map<unsigned, std::size_t> frames;
  for (const json &line : exported(directory.file("t.etl"), "stack", "id <= 5 and id >= 1"))
    if (line["provider"] != "Windows Kernel") frames[line["id"]] = line.value("stack", json::array()).size();
  EXPECT_EQ(frames, (std::map<unsigned, std::size_t>{{1, 0}, {2, 0}, {3, 2}, {4, 1}, {5, 1}}));
}

// What a disk has done is written by whoever runs then.
TEST(ExportJoinOfRequests, TheirEndsHaveTheStacksOfTheirBeginnings) {
  constexpr std::uint32_t kPid = 9, kTid = 90, kOther = 91;
  testing::SyntheticTrace trace;
  trace.thread_rundown({1'500'000}, kTid, kPid);
  trace.emit({2'000'000}, [](write::EventBuilder &e) { // ReadInit
    e.system(0x010C, 3, 8, kTid, kPid, 2'000'000).value(0).value(kTid);
  });
  trace.stack_walk({2'000'001}, 2'000'000, kPid, kTid, {0x7FF6'0000'1000, 0x7FF6'0000'2000});
  trace.context_switch({2'000'010}, kOther, kTid);
  trace.disk_read({2'000'020}, kTid, 0xA0);
  trace.disk_read({2'000'030}, kTid, 0xA0); // which nothing began
  const TempDir directory;
  testing::write_file(directory.file("t.etl"), trace.bytes());
  const std::vector<json> events = exported(directory.file("t.etl"), "stack", "event ~ '^DiskIo/'");
  ASSERT_EQ(events.size(), 3u);
  const json stack{"0x7ff600001000", "0x7ff600002000"};
  EXPECT_EQ(events[0].value("stack", json()), stack) << events[0];
  EXPECT_EQ(events[1].value("stack", json()), stack) << events[1];
  EXPECT_FALSE(events[2].contains("stack")) << events[2];
}

// The first thread of a process is started by another one, and runs code of its own process.
TEST(ExportJoinOfAnother, AddressesAreOfTheProcessThatTheEventIsAbout) {
  constexpr std::uint64_t kBase = 0x7FF6'0000'0000;
  testing::SyntheticTrace trace;
  trace.process_start({2'000'000}, 9, 8, "child.exe");
  trace.image_load({2'000'010}, 9, kBase);
  for (const std::uint32_t pid : {8u, 9u})
    trace.emit({2'000'020}, [&](write::EventBuilder &e) {
      e.system(0x0501, 3, 8, 80, 8, 2'000'020).value(pid).value(90 + pid);
      for (int i = 0; i < 5; ++i) // its stacks, its processors
        e.value(0);
      e.value(kBase + 0x1234).rest();
    });
  const TempDir directory;
  testing::write_file(directory.file("t.etl"), trace.bytes());
  const std::vector<json> threads = exported(directory.file("t.etl"), "module", "event = 'Thread/Start'");
  ASSERT_EQ(threads.size(), 2u);
  EXPECT_FALSE(threads[0].contains("modules")) << "no image of the one that starts it lies there";
  EXPECT_EQ(threads[1]["modules"], (json{{"Win32StartAddr", "a.dll+0x1234"}}));
}

TEST_F(ExportJoin, RefusesWhatItDoesNotKnow) {
  const ToolRun run = run_tool({"export", trace_, "--join", "stack,colour"});
  EXPECT_EQ(run.status, 2);
  EXPECT_NE(run.err.find("'colour'"), std::string::npos) << run.err;
}

// In records of OpenTelemetry it stands beside the fields of events.
TEST_F(ExportJoin, GivesTheSameToRecordsOfOpenTelemetry) {
  const std::string joins = "owner,stack,duration", kind = "event = 'DiskIo/Read'";
  const std::vector<json> plain = exported(trace_, joins, kind);
  const ToolRun run = run_tool({"export", trace_, "--join", joins, "--where", kind, "--profile", "otel"});
  ASSERT_EQ(run.status, 0) << run.err;
  const std::vector<json> records = testing::json_lines(run.out);
  ASSERT_GT(plain.size(), 0u);
  ASSERT_EQ(records.size(), plain.size());
  for (std::size_t i = 0; i < plain.size(); ++i) {
    for (const char *name : {"owner_process_id", "owner_thread_id", "owner_process", "stack", "duration_ns"})
      EXPECT_EQ(records[i]["Attributes"].value(std::string("etw.") + name, json()),
                plain[i].value(name, json()))
          << name;
    for (const auto &[name, value] : records[i].items())
      EXPECT_TRUE(name[0] >= 'A' && name[0] <= 'Z') << name;
  }
}

} // namespace
} // namespace etwrelog
