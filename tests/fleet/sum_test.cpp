// Sums over many archives, which read no more of them than their indexes.
#include "archive/tally.hpp"
#include "etwrelog/archive.hpp"
#include "etwrelog/statistics.hpp"
#include "etwrelog/trace.hpp"
#include "passes/statistics.hpp"
#include "tests/support/generated.hpp"
#include "tests/support/run_tool.hpp"
#include "tests/support/trace_files.hpp"

#include <atomic>
#include <filesystem>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace etwrelog {
namespace {

using nlohmann::json;
using testing::generated;
using testing::run_tool;
using testing::TempDir;
using Buffer = std::vector<std::uint8_t>;
namespace fs = std::filesystem;

class CountedBytes final : public RandomAccess {
public:
  explicit CountedBytes(Buffer bytes) : bytes_(std::move(bytes)) {}
  std::uint64_t size() const override { return bytes_.size(); }
  Result<std::size_t> read_at(std::uint64_t offset, MutableBytes into) const override {
    if (offset >= bytes_.size()) return std::size_t{0};
    const std::size_t count = std::min<std::size_t>(into.size(), bytes_.size() - offset);
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), count, into.begin());
    read_ += count;
    return count;
  }
  std::uint64_t read() const { return read_; }

private:
  Buffer bytes_;
  mutable std::atomic<std::uint64_t> read_{0};
};

TEST(Sum, OfAnArchiveReadsTheIndexAlone) {
  Buffer packed;
  const Buffer trace = generated(20'000'000);
  ASSERT_TRUE(pack(Input::memory("t.etl", trace), Output::memory(packed), {.counts = true}));
  const auto bytes = std::make_shared<CountedBytes>(packed);
  const Result<ArchiveSummary> summary = read_archive_summary(Input::random_access("t.etlz", bytes));
  ASSERT_TRUE(summary) << summary.error().message();
  EXPECT_LT(bytes->read(), packed.size() / 5); // header, index, footer; what wraps an archive is looked for
  const Result<Trace> opened = Trace::open(Input::memory("t.etl", trace));
  ASSERT_TRUE(opened);
  const Result<Statistics> counted = collect_statistics(*opened);
  ASSERT_TRUE(counted && summary->counts);
  EXPECT_EQ(to_json(*summary->counts), to_json(*counted));
  EXPECT_EQ(summary->events, counted->events);
  ASSERT_TRUE(summary->session);
  EXPECT_EQ(summary->session->name, opened->sources().front().header.session_name);
  EXPECT_EQ(summary->original, trace.size());
  const Result<ContentHash> hash = content_hash(Input::memory("t.etl", trace));
  ASSERT_TRUE(hash);
  EXPECT_EQ(summary->content, *hash);
}

// Without being asked to count, packing a trace of any size leaves its events by type.
TEST(Sum, OfAnArchivePackedPlainlyReadsTheIndexAlone) {
  for (const auto &[codec, size] :
       {std::pair(Codec::none, 20'000'000u), std::pair(Codec::xpress, 20'000'000u),
        std::pair(Codec::none, 400'000u)}) {
    Buffer packed;
    const Buffer trace = generated(size, 3, codec);
    ASSERT_TRUE(pack(Input::memory("t.etl", trace), Output::memory(packed)));
    const auto bytes = std::make_shared<CountedBytes>(packed);
    const Result<ArchiveSummary> summary = read_archive_summary(Input::random_access("t.etlz", bytes));
    ASSERT_TRUE(summary) << summary.error().message();
    EXPECT_LT(bytes->read(), packed.size() / 5 + 2'000);
    ASSERT_TRUE(summary->tally);
    EXPECT_FALSE(summary->counts);
    const Result<Trace> opened = Trace::open(Input::memory("t.etl", trace)),
                        archive = Trace::open(Input::memory("t.etlz", packed));
    ASSERT_TRUE(opened && archive);
    const Result<Statistics> counted = collect_statistics(*opened), of_archive = collect_statistics(*archive);
    ASSERT_TRUE(counted && of_archive);
    EXPECT_EQ(to_json(*of_archive), to_json(*counted)) << "whoever wants more decodes it";
    const Statistics &tally = *summary->tally;
    EXPECT_EQ(tally.events, counted->events);
    EXPECT_EQ(tally.event_bytes, counted->event_bytes);
    EXPECT_EQ(tally.stacks.stack_events(), counted->stacks.stack_events());
    EXPECT_EQ(tally.stacks.frames, counted->stacks.frames);
    EXPECT_EQ(summary->processes, by_name(counted->processes, counted->by_instance));
    ASSERT_EQ(tally.types.size(), counted->types.size());
    std::vector<TypeStatistics> types = counted->types; // of a tally they stand in their own order
    std::ranges::sort(types, {}, &TypeStatistics::type);
    for (std::size_t i = 0; i < tally.types.size(); ++i) {
      EXPECT_EQ(tally.types[i].type, types[i].type);
      EXPECT_EQ(tally.types[i].name, types[i].name);
      EXPECT_EQ(tally.types[i].events, types[i].events) << tally.types[i].name;
      EXPECT_EQ(tally.types[i].bytes, types[i].bytes) << tally.types[i].name;
    }
    ASSERT_TRUE(summary->session);
    EXPECT_EQ(summary->session->name, opened->sources().front().header.session_name);
    Buffer one_thread;
    ASSERT_TRUE(pack(Input::memory("t.etl", trace), Output::memory(one_thread), {}, {.threads = 1}));
    EXPECT_TRUE(one_thread == packed);
  }
}

// Where ids change hands inside a segment, its events cannot be told by what they claim: those buffers are
// read again.
TEST(Sum, OfAnArchiveTellsProcessesApartThatHadTheSameId) {
  gen::Options options;
  options.profile = gen::find_profile("medium");
  options.size = 24'000'000;
  options.cpus = 2, options.processes = 8, options.threads = 1, options.buffer_size = 16u << 10;
  options.pid_reuse = true;
  gen::MemorySink sink;
  ASSERT_TRUE(gen::generate(options, sink));
  const Result<Trace> opened = Trace::open(Input::memory("t.etl", sink.bytes));
  ASSERT_TRUE(opened);
  const Result<Statistics> counted = collect_statistics(*opened);
  ASSERT_TRUE(counted);
  std::map<std::uint32_t, int> instances;
  for (const ProcessInstance &process : counted->processes)
    ++instances[process.pid];
  EXPECT_TRUE(std::ranges::any_of(instances, [](const auto &of) { return of.second > 1; }));
  Buffer packed;
  ASSERT_TRUE(pack(Input::memory("t.etl", sink.bytes), Output::memory(packed)));
  const Result<ArchiveSummary> summary = read_archive_summary(Input::memory("t.etlz", packed));
  ASSERT_TRUE(summary);
  EXPECT_EQ(summary->processes, by_name(counted->processes, counted->by_instance));
}

// All of them, with what real systems do with ids.
TEST(Sum, OfArchivesOfRealTracesSaysOfProcessesWhatCountingSays) {
  for (const char *name : {"net.4.5.2.x64", "TraceLoggingTester", "diaghub", "diaghub.kernel.1",
                           "ShutdownPerfDiagLogger", "KernelNetwork", "Process"}) {
    const auto path = testing::trace_path(name);
    if (!path) GTEST_SKIP() << "the real traces are not here";
    Buffer packed;
    ASSERT_TRUE(pack(path->string(), Output::memory(packed)));
    const Result<ArchiveSummary> summary = read_archive_summary(Input::memory("t.etlz", packed));
    const Result<Trace> opened = Trace::open(path->string());
    ASSERT_TRUE(summary && opened);
    const Result<Statistics> counted = collect_statistics(*opened);
    ASSERT_TRUE(counted);
    ASSERT_TRUE(summary->tally) << name;
    EXPECT_EQ(summary->processes, by_name(counted->processes, counted->by_instance)) << name;
  }
}

TEST(Sum, OfADamagedTraceNothingIsClaimed) {
  Buffer trace = generated(4'000'000), packed;
  std::fill_n(trace.begin() + 1'500'000, 100'000, std::uint8_t{0x5A});
  ASSERT_TRUE(pack(Input::memory("t.etl", trace), Output::memory(packed)));
  const Result<ArchiveSummary> summary = read_archive_summary(Input::memory("t.etlz", packed));
  ASSERT_TRUE(summary);
  EXPECT_FALSE(summary->tally || summary->counts || summary->processes);
}

std::optional<pipeline::TallyRecord> read_tally(std::string_view text) {
  return pipeline::read_tally(Bytes(reinterpret_cast<const std::uint8_t *>(text.data()), text.size()));
}

// What the first version wrote, as JSON.
TEST(Sum, AnEarlierRecordIsReadAndOneThatIsNoneRefused) {
  const std::string good =
      R"({"record_version":2,"stacks":[1,2,3,4],"types":[[0,0,3886,0,7,700],[1,1,9,"00112233-4455-6677-8899-aabbccddeeff",2,99,"P/E"]]})";
  ASSERT_TRUE(read_tally(good));
  EXPECT_EQ(read_tally(good)->statistics.events, 9u);
  EXPECT_EQ(read_tally(good)->statistics.types[1].name, "P/E");
  EXPECT_FALSE(pipeline::read_statistics_record(good)) << "one who knows the other record counts anew";
  for (const auto &[what, instead] : std::initializer_list<std::pair<std::string, std::string>>{
           {"\"record_version\":2", "\"record_version\":3"},
           {"[0,0,3886,0,7,700]", "[9,0,3886,0,7,700]"},
           {"[0,0,3886,0,7,700]", "[0,0,3886,0,7]"},
           {"[0,0,3886,0,7,700]", "[0,0,3886,0,7,1e99]"},
           {"[0,0,3886,0,7,700]", "{}"},
           {"00112233-", "no"},
           {"[1,2,3,4]", "[1,2,3]"},
           {"]}", "]"}}) {
    std::string bad = good;
    bad.replace(bad.find(what), what.size(), instead);
    EXPECT_FALSE(read_tally(bad)) << bad;
  }
}

TypeStatistics row(EventType type, std::string name, std::uint64_t events, std::uint64_t bytes) {
  return {type, std::move(name), events, bytes};
}

TEST(Sum, ARecordComesBackWhateverItHolds) {
  const Guid known = make_guid(0xe13c0d23, 0xccbc, 0x4e12, 0x931b, 0xd9cc2eee27e4),
             other = make_guid(0x00112233, 0x4455, 0x6677, 0x8899, 0xaabbccddeeff);
  pipeline::TallyRecord record;
  record.session = {SessionKind::merged, "A session \xC3\xBC", 12345.6789012, 3, UINT64_MAX};
  Statistics &s = record.statistics;
  s.stacks.walks = 1, s.stacks.kernel_references = UINT64_MAX, s.stacks.user_references = 0,
  s.stacks.frames = 77;
  s.types = {row({Family::hook, 0, 0x0F2E, {}}, "", UINT64_MAX, UINT64_MAX),
             row({Family::hook, 0, 0x0F2D, {}}, "", 3, 3 * 48),
             row({Family::hook, 0, 0xFFFF, {}}, "", 1, 65535),
             row({Family::event, 1, 9, other}, "P/Start", 2, 99),
             row({Family::event, 2, 9, other}, "P/Stop", 1u << 30, (std::uint64_t{1} << 40) + 12345),
             row({Family::event, 0, 65535, known}, "", 5, 1),
             row({Family::classic, 255, 12, {}}, std::string(3000, 'x'), 1, 8),
             row({Family::message, 0, 9, other}, "P/Start", 1, 8),
             row({Family::other, 0, 17, {}}, "", 6, 48)};
  const std::optional<pipeline::TallyRecord> without =
      pipeline::read_coded_tally(pipeline::write_tally(record));
  ASSERT_TRUE(without);
  EXPECT_FALSE(without->processes);
  record.processes = {{"?", 1, 0, 0},
                      {"System", 2, UINT64_MAX, UINT64_MAX},
                      {"svchost.exe", 70, 123'456, 0},
                      {"svchost2.exe", 1, 5, 5},
                      {std::string(2000, 'y'), 1, 1, 1}};
  const Buffer coded = pipeline::write_tally(record);
  const std::optional<pipeline::TallyRecord> again = pipeline::read_coded_tally(coded);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->processes, record.processes);
  EXPECT_EQ(again->session.kind, record.session.kind);
  EXPECT_EQ(again->session.name, record.session.name);
  EXPECT_NEAR(again->session.seconds, record.session.seconds, 1e-7);
  EXPECT_EQ(again->session.events_lost, 3u);
  EXPECT_EQ(again->session.buffers_lost, UINT64_MAX);
  EXPECT_EQ(again->statistics.stacks.walks, 1u);
  EXPECT_EQ(again->statistics.stacks.kernel_references, UINT64_MAX);
  EXPECT_EQ(again->statistics.stacks.frames, 77u);
  std::ranges::sort(s.types, {}, &TypeStatistics::type);
  ASSERT_EQ(again->statistics.types.size(), s.types.size());
  for (std::size_t i = 0; i < s.types.size(); ++i) {
    const TypeStatistics &got = again->statistics.types[i], &want = s.types[i];
    EXPECT_EQ(got.type, want.type) << i;
    EXPECT_EQ(got.name, want.name) << i;
    EXPECT_EQ(got.events, want.events) << i;
    EXPECT_EQ(got.bytes, want.bytes) << i;
  }
  // Readers of JSON, which earlier versions are, take it for none and count anew.
  EXPECT_FALSE(
      pipeline::read_statistics_record({reinterpret_cast<const char *>(coded.data()), coded.size()}));
  EXPECT_TRUE(pipeline::read_coded_tally(pipeline::write_tally({})));
}

TEST(Sum, ADamagedRecordIsRefusedOrHarmless) {
  pipeline::TallyRecord record;
  for (unsigned i = 0; i < 200; ++i)
    record.statistics.types.push_back(row({Family::event, 0, i, make_guid(i / 7, 1, 2, 3, 4)},
                                          "Provider/Event" + std::to_string(i), i + 1, 1000 * i));
  record.processes.emplace();
  for (unsigned i = 0; i < 60; ++i)
    record.processes->push_back({"process" + std::to_string(i) + ".exe", i, 100 * i, i % 3});
  const Buffer good = pipeline::write_tally(record);
  EXPECT_FALSE(pipeline::read_tally({}));
  EXPECT_FALSE(pipeline::read_coded_tally(Bytes(good).first(good.size() / 2)))
      << "more is read than there is";
  Buffer longer = good;
  longer.resize(good.size() + 64, 0x55);
  EXPECT_FALSE(pipeline::read_coded_tally(longer));
  for (std::size_t at = 0; at < good.size(); ++at) {
    Buffer bad = good;
    bad[at] ^= static_cast<std::uint8_t>(1u << at % 8);
    if (const auto read = pipeline::read_tally(bad)) {
      EXPECT_LE(read->statistics.types.size(), 65'536u);
    }
  }
  EXPECT_FALSE(pipeline::read_tally(Buffer(100'000, 0xFF)));
  for (const std::uint8_t first : {3, 4}) {
    Buffer zeros(100'000, 0);
    zeros[0] = first;
    EXPECT_FALSE(pipeline::read_tally(zeros));
  }
}

TEST(Sum, AddsUpArchivesPackedPlainly) {
  TempDir directory;
  std::map<std::string, std::uint64_t> types;
  std::uint64_t events = 0;
  int number = 0;
  for (const std::size_t size : {60'000u, 1'000'000u, 4'000'000u, 6'000'000u}) { // a small archive among them
    const std::string name = directory.file(std::to_string(++number) + ".etl");
    testing::write_file(name, generated(size, static_cast<std::uint64_t>(number)));
    const json one = json::parse(run_tool({"stats", "--json", name}).out);
    events += one["events"]["count"].get<std::uint64_t>();
    for (const json &type : one["by_type"])
      types[type["key"]] += type["events"].get<std::uint64_t>();
    ASSERT_EQ(run_tool({"pack", name, "-q"}).status, 0);
    fs::remove(name);
  }
  const json sum = json::parse(run_tool({"stats", "--sum", "--json", "-r", directory.path().string()}).out);
  EXPECT_EQ(sum["events"], events);
  EXPECT_EQ(sum["counted"]["files"], number);
  EXPECT_EQ(sum["not_counted"]["index_only"], 0);
  std::map<std::string, std::uint64_t> summed;
  for (const json &type : sum["by_type"])
    summed[type["key"]] += type["events"].get<std::uint64_t>();
  EXPECT_EQ(summed, types);
  // And events by process, without decoding any that has an index; of a small archive they are decoded.
  const json info = json::parse(run_tool({"info", "--sum", "--json", "-r", directory.path().string()}).out);
  EXPECT_EQ(info["not_counted"]["index_only"], 0);
  EXPECT_EQ(info["events"], events);
  std::map<std::string, std::uint64_t> processes;
  for (int i = 1; i <= number; ++i) {
    const json one =
        json::parse(run_tool({"info", "--json", directory.file(std::to_string(i) + ".etlz")}).out);
    for (const json &process : one["processes"])
      processes[process["name"]] += process["events"].get<std::uint64_t>();
  }
  std::map<std::string, std::uint64_t> by_process;
  for (const json &process : info["processes"])
    by_process[process["name"]] += process["events"].get<std::uint64_t>();
  EXPECT_EQ(by_process, processes);
}

TEST(Sum, SaysOfAFileThatWasCutWhatInfoSays) {
  TempDir directory;
  Buffer trace = generated(1'000'000);
  const std::string whole = directory.file("whole.etl"), cut = directory.file("cut.etl");
  testing::write_file(whole, trace);
  trace.resize(trace.size() / 2 + 100);
  testing::write_file(cut, trace);
  const testing::ToolRun alone = run_tool({"info", cut});
  EXPECT_EQ(alone.status, 0);
  ASSERT_NE(alone.err.find("cut short"), std::string::npos) << alone.err;
  for (const char *command : {"info", "stats"}) {
    const testing::ToolRun sum = run_tool({command, "--sum", "-r", directory.path().string()});
    EXPECT_EQ(sum.status, 0);
    EXPECT_EQ(sum.err, alone.err + run_tool({"info", whole}).err) << command;
  }
}

TEST(Sum, AddsUpWhatEachHas) {
  TempDir directory;
  std::uint64_t events = 0;
  for (int i = 1; i <= 3; ++i) {
    const std::string name = directory.file(std::to_string(i) + ".etl");
    testing::write_file(name, generated(1'000'000, static_cast<std::uint64_t>(i)));
    events += json::parse(run_tool({"stats", "--json", name}).out)["events"]["count"].get<std::uint64_t>();
  }
  ASSERT_EQ(run_tool({"pack", directory.path().string(), "-r", "--counts", "-q"}).status, 0);
  for (int i = 1; i <= 3; ++i)
    fs::remove(directory.file(std::to_string(i) + ".etl"));
  const json sum = json::parse(run_tool({"stats", "--sum", "--json", "-r", directory.path().string()}).out);
  EXPECT_EQ(sum["events"], events);
  EXPECT_EQ(sum["counted"]["files"], 3);
  std::uint64_t by_type = 0;
  for (const json &type : sum["by_type"])
    by_type += type["events"].get<std::uint64_t>();
  EXPECT_EQ(by_type, events);
  const json info = json::parse(run_tool({"info", "--sum", "--json", "-r", directory.path().string()}).out);
  EXPECT_EQ(info["events"], events);
  EXPECT_FALSE(info["processes"].empty());
}

// A folder in which archives stand beside their originals, as `pack -r` leaves it, has every trace twice.
TEST(Sum, SaysThatATraceIsCountedTwice) {
  TempDir directory;
  const std::string a = directory.file("a.etl"), b = directory.file("b.etl");
  testing::write_file(a, generated(1'000'000, 1));
  testing::write_file(b, generated(1'000'000, 2));
  for (const char *command : {"stats", "info"}) {
    const testing::ToolRun once = run_tool({command, "--sum", "--json", a, b});
    EXPECT_EQ(once.err.find("of these files"), std::string::npos) << command << once.err;
    EXPECT_EQ(json::parse(once.out)["same_content"], 0) << command;
    const testing::ToolRun twice = run_tool({command, "--sum", "--json", a, b, a});
    EXPECT_NE(twice.err.find("warning: 1 of these files"), std::string::npos) << command << twice.err;
    EXPECT_EQ(json::parse(twice.out)["same_content"], 1) << command;
  }
  ASSERT_EQ(run_tool({"pack", directory.path().string(), "-r", "-q"}).status, 0);
  const testing::ToolRun beside = run_tool({"stats", "--sum", "-r", directory.path().string()});
  EXPECT_EQ(beside.status, 0);
  EXPECT_NE(beside.err.find("warning: 2 of these files"), std::string::npos) << beside.err;
}

TEST(Sum, LeavesOutWhatItsResultsSayIsCounted) {
  TempDir directory;
  const std::string folder = directory.file("traces");
  fs::create_directories(folder);
  testing::write_file(folder + "/a.etl", generated(1'000'000));
  ASSERT_EQ(run_tool({"pack", "-q", folder + "/a.etl", "-o", folder + "/b.etlz"}).status, 0);
  const auto files = [&] {
    return json::parse(run_tool({"stats", "--sum", "--json", "-r", folder, "--skip-existing", "--results",
                                 directory.file("results")})
                           .out)["counted"]["files"];
  };
  EXPECT_EQ(files(), 2);
  EXPECT_EQ(files(), 0);
}

} // namespace
} // namespace etwrelog
