// The promises, on real traces of Windows 7 to 11: figures equal an independent reader's, relogging keeps
// every byte of every event. Skipped where ../shared is not there.
#include "tests/support/pace.hpp"
#include "tests/support/real_traces.hpp"
#include "tests/support/run_tool.hpp"

#include <gtest/gtest.h>

#include <regex>

namespace etwrelog {
namespace {

using nlohmann::json;
using testing::fingerprint;
using testing::Fingerprint;
using testing::run_tool;
using testing::TempDir;
using testing::ToolRun;

class RealTrace : public ::testing::TestWithParam<std::string> {
protected:
  void SetUp() override {
    if (GetParam() == "none") GTEST_SKIP() << "no ../shared/traces beside the project";
    path_ = testing::trace_path(GetParam())->string();
    if (testing::kSanitized && std::filesystem::file_size(path_) > 8u << 20)
      GTEST_SKIP() << "too large for a sanitizer's pace";
  }
  void relog(const std::string &output, pipeline::RelogOptions options) {
    const Result<pipeline::Trace> trace = pipeline::Trace::open(path_, {false, options.keep_grouping});
    ASSERT_TRUE(trace) << trace.error().message();
    options.output = output;
    pipeline::RelogReport report;
    const Result<void> done = pipeline::relog(*trace, options, report);
    ASSERT_TRUE(done) << done.error().message();
  }
  std::string path_;
};

std::vector<std::string> names_or_none() {
  std::vector<std::string> names = testing::trace_names();
  if (names.empty()) names.push_back("none");
  return names;
}
INSTANTIATE_TEST_SUITE_P(Shared, RealTrace, ::testing::ValuesIn(names_or_none()),
                         [](const auto &trace) { return testing::test_name(trace.param); });

TEST_P(RealTrace, FiguresEqualTheIndependentReaders) {
  const json truth = testing::truth(GetParam());
  if (truth.is_null()) GTEST_SKIP() << "no truth file";
  const ToolRun info_run = run_tool({"info", "--json", path_}),
                stats_run = run_tool({"stats", "--json", path_});
  ASSERT_EQ(info_run.status, 0) << info_run.err;
  ASSERT_EQ(stats_run.status, 0) << stats_run.err;
  const json info = json::parse(info_run.out), stats = json::parse(stats_run.out);
  for (const auto &[key, value] : truth["header"].items())
    EXPECT_EQ(info["header"][key], value) << key;
  for (const auto &[key, value] : truth["buffers"].items())
    EXPECT_EQ(info["buffers"][key], value) << key;
  EXPECT_EQ(info["events"]["count"], truth["events"]["count"]);
  EXPECT_EQ(info["events"]["bytes"], truth["events"]["bytes"]);
  // The truth gives a thread's id to nobody once the thread has ended; we give it to the thread's process
  // until it is started anew.
  std::uint64_t ours = 0, theirs = 0;
  for (const auto &[pid, samples] : truth["samples_by_pid"].items()) {
    theirs += samples.get<std::uint64_t>();
    if (pid != "None") {
      EXPECT_GE(info["samples_by_pid"].value(pid, 0), samples) << pid;
    }
  }
  for (const auto &[pid, samples] : info["samples_by_pid"].items())
    ours += samples.get<std::uint64_t>();
  EXPECT_EQ(ours, theirs);
  if (!truth["samples_by_pid"].contains("None")) {
    EXPECT_EQ(info["samples_by_pid"], truth["samples_by_pid"]);
  }
  EXPECT_EQ(info["images_by_pid"], truth["images_by_pid"]);
  for (const auto &[pid, count] : truth["events_by_header_pid"].items())
    EXPECT_EQ(info["events_by_header_pid"][pid], count) << pid;
  json types = json::object();
  for (const json &row : stats["by_type"])
    types[row["key"].get<std::string>()] = {row["events"], row["bytes"]};
  EXPECT_EQ(types, truth["events"]["by_type"]);
  for (const auto &[key, value] : truth["stacks"].items())
    EXPECT_EQ(stats["stacks"].value(key, 0), value) << key;
  std::map<std::string, std::uint32_t> parents;
  for (const json &process : info["processes"])
    parents.try_emplace(std::to_string(process["pid"].get<std::uint32_t>()), process["parent"]);
  // The truth has those that the kernel logger tells; where there is none, a provider tells of some.
  const std::size_t of_provider = std::string(GetParam()) == "Process" ? 6 : 0;
  EXPECT_EQ(parents.size(), truth["processes"].size() + of_provider);
  for (const auto &[pid, process] : truth["processes"].items())
    EXPECT_EQ(parents[pid], process["parent"]) << pid;
}

// Windows names what its services log by the local time at which they began.
TEST(RealTraces, LocalTimeIsThatOfTheNameThatWindowsGave) {
  static const std::regex by_time(R"(\.(\d{4})(\d\d)(\d\d)\.(\d\d)(\d\d)(\d\d)\.)");
  bool any = false;
  for (const std::string &name : testing::trace_names()) {
    std::smatch n;
    if (!std::regex_search(name, n, by_time)) continue;
    any = true;
    const ToolRun run = run_tool({"info", testing::trace_path(name)->string()});
    ASSERT_EQ(run.status, 0) << run.err;
    EXPECT_NE(run.out.find(n.format("($1-$2-$3 $4:$5:$6 local, UTC")), std::string::npos) << run.out;
  }
  if (!any) GTEST_SKIP() << "no trace named by a time in ../shared/traces beside the project";
}

TEST_P(RealTrace, RelogKeepsEveryProcessorsStream) {
  const Fingerprint before = fingerprint(path_);
  ASSERT_EQ(before.error, "");
  const TempDir directory;
  for (const Codec codec : {Codec::none, Codec::xpress, Codec::lznt1})
    for (const std::uint32_t size : {64u << 10, 1u << 20}) {
      if (testing::kSanitized && size == 64u << 10 && codec == Codec::lznt1) continue;
      const std::string output =
          directory.file(std::to_string(static_cast<int>(codec)) + "-" + std::to_string(size));
      pipeline::RelogOptions options;
      options.codec = codec;
      options.buffer_size = size;
      options.level = Level::fast;
      relog(output, options);
      const Fingerprint after = fingerprint(output);
      EXPECT_EQ(after.error, "");
      EXPECT_EQ(after.by_cpu, before.by_cpu) << codec_name(codec) << ' ' << size;
      std::filesystem::remove(output);
    }
}

TEST_P(RealTrace, KeepOrderKeepsFileOrderAndGrouping) {
  const Fingerprint before = fingerprint(path_);
  const TempDir directory;
  for (const Codec codec : {Codec::none, Codec::xpress}) {
    const std::string output = directory.file("out");
    pipeline::RelogOptions options;
    options.codec = codec;
    options.keep_grouping = true;
    options.replace_output = true;
    options.level = Level::fast;
    relog(output, options);
    EXPECT_EQ(fingerprint(output), before) << codec_name(codec);
    const Result<pipeline::Trace> in = pipeline::Trace::open(path_, {}),
                                  out = pipeline::Trace::open(output, {});
    EXPECT_EQ(out->buffers().size(), in->buffers().size());
  }
}

TEST_P(RealTrace, RelogOfAnOwnOutputChangesNothing) {
  const TempDir directory;
  for (const bool keep : {false, true}) {
    pipeline::RelogOptions options;
    options.keep_grouping = keep;
    options.replace_output = true;
    relog(directory.file("1"), options);
    const Result<pipeline::Trace> first = pipeline::Trace::open(directory.file("1"), {false, keep});
    ASSERT_TRUE(first);
    options.output = directory.file("2");
    pipeline::RelogReport report;
    ASSERT_TRUE(pipeline::relog(*first, options, report));
    EXPECT_TRUE(testing::read_file(directory.file("1")) == testing::read_file(directory.file("2"))) << keep;
  }
}

TEST_P(RealTrace, BytesDoNotDependOnThreads) {
  const TempDir directory;
  std::vector<std::uint8_t> first;
  for (const unsigned threads : {1u, 2u, 8u}) {
    pipeline::RelogOptions options;
    options.graph.threads = threads;
    options.replace_output = true;
    options.selection.to = Moment{true, 1e9, 0}; // all three passes
    relog(directory.file("out"), options);
    const std::vector<std::uint8_t> bytes = testing::read_file(directory.file("out"));
    if (first.empty()) first = bytes;
    EXPECT_TRUE(bytes == first) << threads;
  }
}

TEST_P(RealTrace, TheOracleFindsTheSameEventsAndNothingForeign) {
  const auto oracle = *testing::shared_dir() / "tools" / "etl_oracle.py";
  if (testing::kSanitized && std::filesystem::file_size(path_) > 2u << 20)
    GTEST_SKIP() << "takes seconds; the build without sanitizers runs it";
  static const bool has_python = std::system("python3 -c '' >/dev/null 2>&1") == 0;
  if (!has_python || !std::filesystem::exists(oracle)) GTEST_SKIP() << "no oracle or no python3";
  const TempDir directory;
  auto ask = [&](const std::string &how, const std::string &a, const std::string &b) {
    const std::string command = "python3 '" + oracle.string() + "' " + how + " '" + a + "' '" + b + "' > '" +
                                directory.file("said") + "' 2>&1";
    const int status = std::system(command.c_str());
    const auto said = testing::read_file(directory.file("said"));
    EXPECT_EQ(status, 0) << std::string(said.begin(), said.end());
  };
  ASSERT_EQ(run_tool({"relog", path_, "-o", directory.file("a"), "--keep-order"}).status, 0);
  ask("--compare", path_, directory.file("a"));
  ASSERT_EQ(run_tool({"relog", path_, "-o", directory.file("b"), "--codec", "lznt1", "--to", "1s"}).status,
            0);
  ask("--subset", directory.file("b"), path_);
}

// --- The figures of the issue.

class NetTrace : public ::testing::Test {
protected:
  void SetUp() override {
    const auto path = testing::trace_path("net.4.5.2.x64");
    if (!path) GTEST_SKIP() << "no ../shared/traces beside the project";
    path_ = path->string();
  }
  std::string path_;
};

TEST_F(NetTrace, CountsEqualPerfViews) {
  const json expected = testing::truth("net.4.5.2.x64.perfview")["counts"];
  const ToolRun run = run_tool({"stats", "--json", path_});
  ASSERT_EQ(run.status, 0);
  std::map<std::string, std::uint64_t> ours;
  const json stats = json::parse(run.out);
  for (const json &row : stats["by_type"])
    ours[row["name"]] += row["events"].get<std::uint64_t>();
  // PerfView drops the idle process's samples and merges stack events into the events they belong to.
  const auto dropped = [](const std::string &name) {
    return name.find("PerfInfo/Sample") != std::string::npos || name.find("StackWalk/") != std::string::npos;
  };
  for (const auto &[name, count] : expected.items()) {
    if (!dropped(name)) {
      EXPECT_EQ(ours[name], count) << name;
    }
  }
}

struct Figures {
  std::uint32_t pid;
  std::uint64_t samples, user, kernel, definitions, walks, images, kernel_images, threads, processes,
      by_header;
};

// Three samples of thread 3680 (at 2024631164, 2024641449, 2024651163) and one of thread 3848 (1957485335)
// were taken behind that thread's end event. Their stacks' payloads name the process that the thread had
// belonged to: they are its own, and so are the definitions that only they use.
TEST_F(NetTrace, FilteringReachesTheFiguresOfTheIssue) {
  for (const Figures &f : {Figures{3676, 5129, 5085, 282, 1846, 124, 62, 282, 8, 2, 34465},
                           Figures{3988, 356, 326, 156, 334, 35, 234, 282, 64, 2, 34079},
                           Figures{1632, 283, 1308, 1142, 315, 17, 94, 282, 78, 2, 522}}) {
    SCOPED_TRACE(f.pid);
    const TempDir directory;
    const Result<pipeline::Trace> in = pipeline::Trace::open(path_, {});
    pipeline::RelogOptions options;
    options.output = directory.file("out.etl");
    options.selection.processes = {std::to_string(f.pid)};
    pipeline::RelogReport report;
    ASSERT_TRUE(pipeline::relog(*in, options, report));
    const Result<pipeline::Trace> out = pipeline::Trace::open(options.output, {});
    ASSERT_TRUE(out);
    Figures seen{f.pid, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    pipeline::Batch batch;
    for (std::size_t i = 0; i < out->buffers().size(); ++i) {
      batch.first = i;
      batch.count = 1;
      out->load(batch);
      for (const pipeline::DecodedBuffer &buffer : batch.buffers)
        out->visit(batch, buffer, [&](const EventView &event, std::int64_t, std::uint32_t) {
          if (!event.has_hook()) {
            if (event.process_id() == f.pid) ++seen.by_header; // FULL (image identity too) and EVENT_HEADER
            return;
          }
          const std::uint16_t hook = event.hook();
          const filter::FieldOffsets &at =
              filter::rule_for(hook, event.version()).offsets(event.pointer_size());
          const auto pid = filter::FieldOffsets::u32(event.payload(), at.process_id);
          if (hook == 0x0F2E) ++seen.samples;
          if (hook == 0x1826) ++seen.user;
          if (hook == 0x1825) {
            ++seen.kernel;
          }
          if (hook == 0x1823 || hook == 0x1824) ++seen.definitions;
          if (hook == 0x1820) ++seen.walks;
          const kernel::Scope scope = kernel::scope_of(hook);
          if (scope == kernel::Scope::image) {
            const auto base =
                filter::FieldOffsets::pointer(event.payload(), at.image_base, event.pointer_size());
            if (pid == f.pid)
              ++seen.images;
            else if (format::is_kernel_address(*base, event.pointer_size()))
              ++seen.kernel_images;
            else
              ADD_FAILURE() << "an image of process " << *pid;
          }
          if (scope == kernel::Scope::thread && pid == f.pid) ++seen.threads;
          if (scope == kernel::Scope::process && pid == f.pid) ++seen.processes;
          if ((scope == kernel::Scope::thread || scope == kernel::Scope::process) && pid != f.pid) {
            EXPECT_TRUE(pid == 0u || pid == 4u) << *pid;
          }
        });
    }
    EXPECT_EQ(seen.samples, f.samples);
    EXPECT_EQ(seen.user, f.user);
    EXPECT_EQ(seen.kernel, f.kernel);
    EXPECT_EQ(seen.definitions, f.definitions);
    EXPECT_EQ(seen.walks, f.walks);
    EXPECT_EQ(seen.images, f.images);
    EXPECT_EQ(seen.kernel_images, f.kernel_images);
    EXPECT_EQ(seen.threads, f.threads);
    EXPECT_EQ(seen.processes, f.processes);
    EXPECT_EQ(seen.by_header, f.by_header);
    EXPECT_EQ(json::parse(run_tool({"stats", "--json", options.output}).out)["stacks"]["keys_never_defined"],
              0)
        << "every kept stack resolves";
  }
}

} // namespace
} // namespace etwrelog
