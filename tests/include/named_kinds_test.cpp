// etwrelog/select.hpp: NamedKinds finds kinds by what statistics, schemas and exports call them.
#include "etwrelog/clr_events.hpp"
#include "etwrelog/etwrelog.hpp"
#include "etwrelog/export.hpp"
#include "etwrelog/kernel_events.hpp"
#include "etwrelog/provider_names.hpp"
#include "tests/support/generated.hpp"
#include "tests/support/pipeline_runs.hpp"
#include "tests/support/synthetic_trace.hpp"
#include "tests/support/trace_files.hpp"

#include <gtest/gtest.h>

#include <map>

namespace etwrelog::testing {
namespace {

class NamedKindsTest : public ::testing::Test {
protected:
  void open(Input input) {
    Result<etwrelog::Trace> opened = etwrelog::Trace::open(std::move(input));
    ASSERT_TRUE(opened) << opened.error().message();
    trace.emplace(*std::move(opened));
    Result<SchemaCatalog> collected = collect_schemas(*trace);
    ASSERT_TRUE(collected) << collected.error().message();
    catalog = *std::move(collected);
  }
  [[nodiscard]] std::optional<NamedKinds> named(const std::string &name) const {
    Result<NamedKinds> found = NamedKinds::find({&name, 1}, catalog);
    if (found) return *std::move(found);
    EXPECT_EQ(found.error().kind, ErrorKind::no_match) << name;
    EXPECT_EQ(found.error().option, Option::events) << name;
    return std::nullopt;
  }
  [[nodiscard]] std::uint64_t count(const std::string &name) const {
    const std::optional<NamedKinds> kinds = named(name);
    std::uint64_t events = 0;
    EXPECT_TRUE(kinds) << name;
    if (!kinds) return events;
    EXPECT_TRUE(trace->events().for_each([&](const Event &event) { events += kinds->contains(event); }));
    return events;
  }
  void expect_as_in_statistics() {
    const Result<Statistics> statistics = collect_statistics(*trace);
    ASSERT_TRUE(statistics) << statistics.error().message();
    std::map<std::string, std::uint64_t> wanted;
    for (const TypeStatistics &row : statistics->types)
      wanted[row.name] += row.events;
    std::size_t found = 0;
    for (const TypeStatistics &row : statistics->types) {
      if (row.name.ends_with("/TraceLogging")) continue; // one name stands for several there
      EXPECT_EQ(count(row.name), wanted[row.name]) << row.name;
      ++found;
    }
    EXPECT_GT(found, 0u);
  }

  std::optional<etwrelog::Trace> trace;
  SchemaCatalog catalog = SchemaCatalog::builtin();
};

TEST_F(NamedKindsTest, NamesOfStatisticsSelectWhatTheyCount) {
  gen::Options options;
  options.profile = gen::find_profile("medium");
  options.size = 1 << 20;
  open(Input::memory("made.etl", generated(options)));
  expect_as_in_statistics();
}

TEST_F(NamedKindsTest, NamesOfStatisticsSelectWhatTheyCountInRealTraces) {
  const std::vector<std::string> names = trace_names();
  if (names.empty()) GTEST_SKIP() << "the real traces are not here";
  for (const char *name : {"net.4.5.2.x64", "TraceLoggingTester", "diaghub.kernel.1", "AMSITrace", "Process",
                           "HTTP_Server", "SelfDescribingSingleEvent"}) {
    SCOPED_TRACE(name);
    const auto path = trace_path(name);
    ASSERT_TRUE(path);
    open(Input(path->string()));
    expect_as_in_statistics();
  }
}

// Whether or not a trace or the built-in table describes it.
TEST_F(NamedKindsTest, WhateverHasABuiltInNameIsFoundByIt) {
  for (const kernel::HookInfo &info : kernel::all_hooks())
    EXPECT_TRUE(named(info.name)) << info.name;
  SyntheticTrace made;
  std::vector<std::string> names;
  for (std::uint16_t id = 0; id < 1000; ++id) {
    const std::string_view name = clr::event_name(format::kClrPrivateGuid, id);
    if (name.empty()) continue;
    made.manifest_event({2'000'000 + id}, {.provider = format::kClrPrivateGuid, .id = id}, 11, 10);
    names.emplace_back("Microsoft-Windows-DotNETRuntimePrivate/" + std::string(name));
  }
  open(Input::memory("made.etl", made.bytes()));
  std::map<std::string, std::uint64_t> wanted;
  for (const std::string &name : names)
    ++wanted[name];
  EXPECT_GT(wanted.size(), 10u);
  for (const auto &[name, events] : wanted)
    EXPECT_EQ(count(name), events) << name;
}

TEST_F(NamedKindsTest, ANameBeginsBehindAnySlashAndMayHoldWildcards) {
  SyntheticTrace made;
  made.sample({2'000'000}, 11);
  made.context_switch({2'000'001}, 11, 0);
  made.context_switch({2'000'002}, 0, 11);
  made.trace_logging({2'000'003}, make_guid(1, 2, 3, 4, 5), "Maker", "Begin/Of Work", 11, 10);
  made.trace_logging({2'000'004}, make_guid(1, 2, 3, 4, 5), "Maker", "EndOfWork", 11, 10);
  made.trace_logging({2'000'005}, make_guid(1, 2, 3, 4, 5), "Maker", "EndOfWork", 11, 10);
  open(Input::memory("made.etl", made.bytes()));
  EXPECT_EQ(count("Windows Kernel/Thread/CSwitch"), 2u);
  EXPECT_EQ(count("Thread/CSwitch"), 2u);
  EXPECT_EQ(count("cswitch"), 2u) << "without regard to case";
  EXPECT_EQ(count("PerfInfo/Sample"), 1u) << "as PerfView calls it";
  EXPECT_EQ(count("PerfInfo/SampleProf"), 1u) << "as Microsoft's documentation calls it";
  EXPECT_EQ(count("CSw?tch"), 2u);
  EXPECT_EQ(count("*f*ork"), 3u);
  EXPECT_EQ(count("Maker/*"), 3u);
  EXPECT_EQ(count("maker/endofwork"), 2u);
  EXPECT_EQ(count("Of Work"), 1u) << "any slash";
  EXPECT_EQ(count("DiskIo/Read"), 0u) << "a kind that the trace has no event of";
  EXPECT_FALSE(named("Switch")) << "not from anywhere";
  EXPECT_FALSE(named("CSwitc"));
  EXPECT_FALSE(named("Thread/"));
  EXPECT_FALSE(named("Maker"));
  EXPECT_FALSE(named(""));
}

// Most traces of providers with a manifest hold no description of their events; these are shown by number.
TEST_F(NamedKindsTest, AKindThatNobodyDescribesIsNamedByItsNumber) {
  const Guid known = *provider_by_name("Microsoft-Windows-Kernel-Disk"), nobody = make_guid(9, 8, 7, 6, 5);
  SyntheticTrace made;
  made.manifest_event({2'000'000}, {.provider = known, .id = 8}, 11, 10);
  made.manifest_event({2'000'001}, {.provider = known, .id = 8, .version = 1}, 11, 10);
  made.manifest_event({2'000'002}, {.provider = known, .id = 9}, 11, 10);
  made.manifest_event({2'000'003}, {.provider = nobody, .id = 8}, 11, 10);
  made.classic({2'000'004}, nobody, 8, 11, 10);
  made.message({2'000'005}, nobody, 11, 10);
  made.trace_logging({2'000'006}, make_guid(1, 2, 3, 4, 5), "Maker", "Begin", 11, 10);
  open(Input::memory("made.etl", made.bytes()));
  EXPECT_EQ(count("Microsoft-Windows-Kernel-Disk/EventID(8)"), 2u);
  EXPECT_EQ(count("microsoft-windows-kernel-disk/eventid(9)"), 1u);
  EXPECT_EQ(count("EventID(8)"), 3u);
  EXPECT_EQ(count(to_string(nobody) + "/EventID(8)"), 1u);
  EXPECT_EQ(count(to_string(nobody) + "/Opcode(8)"), 1u);
  EXPECT_EQ(count("Opcode(8)"), 1u);
  EXPECT_EQ(count("Microsoft-Windows-Kernel-Disk/EventID(*)"), 3u);
  EXPECT_EQ(count("Microsoft-Windows-Kernel-Disk/*"), 3u);
  EXPECT_EQ(count("Microsoft-Windows-Kernel-D*/EventID(?)"), 3u);
  EXPECT_EQ(count("Maker/EventID(0)"), 1u) << "also of one that is described";
  EXPECT_EQ(count("Maker/*"), 1u);
  EXPECT_EQ(count("WPP/*"), 1u);
  EXPECT_EQ(count("Microsoft-Windows-Kernel-Disk/EventID(10)"), 0u) << "no event of it is there";
  EXPECT_FALSE(named("Microsoft-Windows-Kernel-Dysk/EventID(8)")) << "a provider that nobody knows";
  EXPECT_FALSE(named("Microsoft-Windows-Kernel-Dysk/*"));
  EXPECT_FALSE(named("EventID"));
}

TEST_F(NamedKindsTest, NothingIsNamedByNoName) {
  const Result<NamedKinds> none = NamedKinds::find({}, catalog);
  ASSERT_TRUE(none);
  EXPECT_TRUE(none->empty());
  EXPECT_TRUE(Selection{.kinds = *none}.everything());
  const std::string names[] = {"CSwitch", "no such kind"};
  EXPECT_FALSE(NamedKinds::find(names, catalog)) << "each has to fit one";
}

// With ids, and by other conditions.
TEST_F(NamedKindsTest, NamesAndIdsAreOneList) {
  SyntheticTrace made;
  made.process_rundown({1'000'100}, 10, 4, "one.exe");
  made.thread_rundown({1'000'101}, 11, 10);
  made.sample({2'000'000, 0}, 11);
  made.sample({2'000'000, 1}, 11);
  made.context_switch({2'000'001, 0}, 11, 0);
  made.page_fault({2'000'002, 0});
  open(Input::memory("made.etl", made.bytes()));
  const auto kept = [&](const Selection &selection) {
    const TempDir directory;
    const Result<RelogReport> report = relog(*trace, directory.file("o.etl"), {.selection = selection});
    EXPECT_TRUE(report) << report.error().message();
    std::uint64_t events = 0;
    for (const RelogReason &row : report->reasons)
      if (row.name == reason_name(Reason::kept_process)) events += row.events;
    return events;
  };
  const NamedKinds samples = *named("PerfInfo/Sample");
  EXPECT_EQ(kept({.kinds = samples}), 2u);
  EXPECT_EQ(kept({.events = {0x0524}}), 1u);
  EXPECT_EQ(kept({.events = {0x0524}, .kinds = samples}), 3u);
  EXPECT_EQ(kept({.kinds = samples, .processors = {1}}), 1u);
}

} // namespace
} // namespace etwrelog::testing
