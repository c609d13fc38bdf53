// Archives and stack databases as released versions wrote them, committed in tests/golden: every later
// version gives back what they hold. README.md there says how a new one is added; none is ever replaced.
#include "tests/golden/facts.hpp"

#include "archive/archive.hpp"
#include "archive/tally.hpp"
#include "base/output_file.hpp"
#include "etwrelog/archive.hpp"
#include "etwrelog/relog.hpp"
#include "tests/support/pace.hpp"
#include "tests/support/pipeline_runs.hpp"
#include "tests/support/trace_files.hpp"

#include <gtest/gtest.h>

namespace etwrelog {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Buffer = std::vector<std::uint8_t>;

fs::path golden(const std::string &name) {
  return testing::project_dir() / "tests/golden" / name;
}

std::vector<std::string> names(std::string_view prefix, std::string_view ending) {
  std::vector<std::string> all;
  for (const auto &file : fs::directory_iterator(golden(""))) {
    const std::string name = file.path().filename().string();
    if (name.starts_with(prefix) && name.ends_with(ending)) all.push_back(name);
  }
  std::sort(all.begin(), all.end());
  return all;
}

Buffer content(const std::string &name) {
  return testing::read_file(golden(name).string());
}
json expected(const std::string &name) {
  const Buffer text = content(name + ".json");
  return json::parse(text.begin(), text.end());
}

class GoldenArchive : public ::testing::TestWithParam<std::string> {};
class GoldenRefused : public ::testing::TestWithParam<std::string> {};

std::string test_name(const ::testing::TestParamInfo<std::string> &info) {
  return testing::test_name(info.param.substr(0, info.param.find('.')));
}
INSTANTIATE_TEST_SUITE_P(Golden, GoldenArchive, ::testing::ValuesIn(names("v", ".etlz")), test_name);
INSTANTIATE_TEST_SUITE_P(Golden, GoldenRefused, ::testing::ValuesIn(names("refused-", ".etlz")), test_name);

TEST_P(GoldenArchive, GivesBackTheOriginal) {
  const json facts = expected(GetParam());
  const testing::TempDir directory;
  const std::string path = directory.file("back");
  Result<base::OutputFile> out = base::OutputFile::create(path, false);
  ASSERT_TRUE(out);
  const auto input = read::memory_input(GetParam(), content(GetParam()));
  const Result<UnpackReport> unpacked = pipeline::unpack_file(*input, &*out, {});
  ASSERT_TRUE(unpacked) << unpacked.error().message();
  EXPECT_TRUE(unpacked->hash_checked);
  ASSERT_TRUE(out->commit());
  const Buffer back = testing::read_file(path);
  EXPECT_EQ(back.size(), facts.at("bytes"));
  EXPECT_EQ(testing::hash_of(back), facts.at("xxh3_128"));
}

// Early archives do not tell, and have the name of their kind.
TEST_P(GoldenArchive, KnowsWhetherItsOriginalWasNamedEtl) {
  const Result<ArchiveInfo> info = read_archive_info(golden(GetParam()).string());
  ASSERT_TRUE(info) << info.error().message();
  EXPECT_EQ(info->etl_name, expected(GetParam()).value("etl_name", info->is_trace && !info->wrapped));
}

// What info and stats print is the same from the trace that comes out, from the archive as an input, and from
// the index where it holds statistics.
TEST_P(GoldenArchive, HoldsTheSameEvents) {
  const json facts = expected(GetParam());
  const Buffer bytes = content(GetParam());
  if (facts.contains("traces")) { // of a wrapped file, each with an index of its own
    auto inside = pipeline::open_archives(read::memory_input(GetParam(), bytes));
    ASSERT_TRUE(inside) << inside.error().message();
    ASSERT_EQ(inside->size(), facts.at("traces").size());
    for (std::size_t i = 0; i < inside->size(); ++i) {
      const Result<pipeline::Trace> trace = pipeline::Trace::open(std::move((*inside)[i]), {});
      ASSERT_TRUE(trace) << trace.error().message();
      const Result<Statistics> counted = pipeline::collect_statistics(*trace, {});
      ASSERT_TRUE(counted) << counted.error().message();
      EXPECT_EQ(testing::facts_of(*counted), facts.at("traces")[i]);
    }
    return;
  }
  Result<pipeline::ArchiveIndex> index = pipeline::read_archive_index(*read::memory_input(GetParam(), bytes));
  ASSERT_TRUE(index) << index.error().message();
  // Of early archives only those that say what is in them are believed.
  const bool believed = facts.contains("statistics_in_index") || facts.contains("tally_in_index") ||
                        index->footer.index_size == 0;
  EXPECT_EQ(pipeline::is_outdated(index->footer.rules, index->facts), !believed);
  pipeline::forget_outdated(*index);
  EXPECT_EQ(index->footer.original_size, facts.at("bytes"));
  const std::string_view record(reinterpret_cast<const char *>(index->facts.data()), index->facts.size());
  const std::optional<Statistics> of_index = pipeline::read_statistics_record(record);
  EXPECT_EQ(of_index.has_value(), facts.contains("statistics_in_index"));
  if (!facts.contains("trace")) return;
  if (of_index) {
    EXPECT_EQ(testing::facts_of(*of_index), facts.at("trace"));
  }
  Result<std::unique_ptr<read::Input>> input = pipeline::open_archive(read::memory_input(GetParam(), bytes));
  ASSERT_TRUE(input) << input.error().message();
  const Result<pipeline::Trace> trace = pipeline::Trace::open(std::move(*input), {});
  ASSERT_TRUE(trace) << trace.error().message();
  const Result<Statistics> counted = pipeline::collect_statistics(*trace, {});
  ASSERT_TRUE(counted) << counted.error().message();
  EXPECT_EQ(testing::facts_of(*counted), facts.at("trace"));
  const std::optional<pipeline::TallyRecord> tally = pipeline::read_tally(index->facts);
  EXPECT_EQ(tally.has_value(), facts.contains("tally_in_index"));
  if (!tally) return;
  EXPECT_EQ(tally->session.name, facts.at("tally_in_index").at("session"));
  ASSERT_EQ(tally->processes.has_value(), facts.at("tally_in_index").contains("processes"));
  if (tally->processes) {
    EXPECT_EQ(tally->processes, by_name(counted->processes, counted->by_instance));
  }
  std::vector<TypeStatistics> types = counted->types;
  std::ranges::sort(types, {}, &TypeStatistics::type);
  ASSERT_EQ(tally->statistics.types.size(), types.size());
  for (std::size_t i = 0; i < types.size(); ++i) {
    EXPECT_EQ(tally->statistics.types[i].type, types[i].type);
    EXPECT_EQ(tally->statistics.types[i].name, types[i].name);
    EXPECT_EQ(tally->statistics.types[i].events, types[i].events);
    EXPECT_EQ(tally->statistics.types[i].bytes, types[i].bytes);
  }
  EXPECT_EQ(tally->statistics.stacks.frames, counted->stacks.frames);
}

// What an index says of events is what today's rules say, or it says that other rules made it: a change of
// filter::is_state() or claim_of() without another etlz::kIndexRules ends here.
TEST_P(GoldenArchive, HasAnIndexThatContradictsNothing) {
  const Result<UnpackReport> checked = verify(golden(GetParam()).string());
  if (GetParam() == "v1-damaged.etlz") { // its writer saw other buffers in the damage: it is said
    ASSERT_FALSE(checked);
    EXPECT_NE(checked.error().message().find("what is in it is right"), std::string::npos);
    return;
  }
  EXPECT_TRUE(checked) << checked.error().message();
}

TEST(Golden, AnIndexOfTodaysRulesSaysWhatEventsTell) {
  for (const std::string name : {"v4-rules-1.etlz", "v4-rules-1-providers.etlz"}) {
    const auto index = pipeline::read_archive_index(*read::memory_input(name, content(name)));
    ASSERT_TRUE(index);
    ASSERT_GE(index->segments.size(), 10u) << name;
    EXPECT_EQ(index->footer.rules, etlz::kIndexRules) << name;
    std::size_t listed = 0;
    for (const etlz::IndexEntry &entry : std::span(index->segments).subspan(1)) { // the first is always read
      EXPECT_TRUE(entry.summary.complete) << name;
      listed += entry.summary.state.size();
    }
    EXPECT_GE(listed, 9u) << name;
  }
}

// A reader that does not check is no proof: one byte less, or another one, and nothing is given back.
TEST_P(GoldenArchive, IsRefusedWithAnyDamage) {
  const Buffer good = content(GetParam());
  const std::size_t step = std::max<std::size_t>(1, good.size() / (testing::kSanitized ? 12 : 40));
  for (std::size_t at = 0; at < good.size(); at += step) {
    Buffer bad = good;
    bad[at] ^= 0x40;
    EXPECT_FALSE(pipeline::unpack_file(*read::memory_input(GetParam(), bad), nullptr, {})) << at;
    bad.resize(at);
    EXPECT_FALSE(pipeline::unpack_file(*read::memory_input(GetParam(), bad), nullptr, {})) << at;
  }
}

TEST_P(GoldenRefused, SaysWhy) {
  const Result<UnpackReport> r =
      pipeline::unpack_file(*read::memory_input(GetParam(), content(GetParam())), nullptr, {});
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().file, GetParam());
  const std::string message = r.error().message();
  const char *why = GetParam().find("older") != std::string::npos   ? "format from before version 1"
                    : GetParam().find("newer") != std::string::npos ? "newer version"
                                                                    : "index: checksum mismatch";
  EXPECT_NE(message.find(why), std::string::npos) << message;
  EXPECT_FALSE(pipeline::open_archive(read::memory_input(GetParam(), content(GetParam()))));
}

// Sizes of the streams of the first segment that are mixed (spec.md, 2.1).
std::vector<std::size_t> mixed_frames(const std::string &name) {
  const Buffer file = content(name);
  const auto index = pipeline::read_archive_index(*read::memory_input(name, file));
  EXPECT_TRUE(index);
  const etlz::IndexEntry &entry = index->segments[0];
  etlz::InStream in(
      Bytes(file).subspan(entry.archive_at + etlz::kSegmentHeaderSize, entry.header.stored_size));
  std::vector<std::size_t> mixed;
  static_cast<void>(etlz::get_varint(in));
  while (!in.at_end() && !in.overrun()) {
    const unsigned method = in.get();
    const std::uint64_t size = etlz::get_varint(in), stored = method == 0 ? size : etlz::get_varint(in);
    if (method == 2) mixed.push_back(size);
    static_cast<void>(in.get(static_cast<std::size_t>(stored + (method == 2 ? 4 : 0))));
  }
  EXPECT_FALSE(in.overrun());
  return mixed;
}

// An index that knew less of what events tell, and whose they are, decides nothing; of traces that have none
// of these events it is as good as today's.
TEST(Golden, AnIndexOfOlderRulesIsNotBelieved) {
  const std::string archive = golden("v4-older-rules.etlz").string();
  Buffer trace;
  ASSERT_TRUE(unpack(archive, Output::memory(trace)));
  EXPECT_TRUE(verify(archive)) << "it contradicts nothing";
  const testing::TempDir directory;
  const std::string out = directory.file("out.etl");
  const auto relogged = [&out](Input input, const char *process) {
    etwrelog::RelogOptions options;
    options.selection.processes = {process};
    const auto opened = Trace::open(std::move(input));
    EXPECT_TRUE(opened);
    const auto done = relog(*opened, Output(out, Existing::replace), options);
    EXPECT_TRUE(done) << done.error().message();
    return testing::read_file(out);
  };
  for (const char *process : {"child203.exe", "4"})
    EXPECT_TRUE(relogged(archive, process) == relogged(Input::memory("trace", trace), process)) << process;
  const auto tally = pipeline::read_archive_index(*read::memory_input("tally", content("v1-tally.etlz")));
  ASSERT_TRUE(tally);
  EXPECT_FALSE(pipeline::is_outdated(0, tally->facts));
  EXPECT_TRUE(pipeline::is_outdated(etlz::kIndexRules + 1, tally->facts)) << "of a later version";
  EXPECT_TRUE(pipeline::is_outdated(0, {})) << "which does not say what is in the trace";
  const auto matters = [](const EventType &type) {
    pipeline::TallyRecord record;
    record.statistics.types = {{type, "", 1, 64}};
    return pipeline::is_outdated(0, pipeline::write_tally(std::move(record)));
  };
  const Guid process_class = kernel::class_guid(0x0301);
  EXPECT_FALSE(matters({Family::hook, 2, 0x0F2E, {}})) << "samples";
  EXPECT_TRUE(matters({Family::hook, 2, 0x0916, {}})) << "names of registry keys";
  EXPECT_TRUE(matters({Family::classic, 3, 1, process_class})) << "a process, told under a classic header";
  EXPECT_FALSE(matters({Family::classic, 3, 1, make_guid(1, 2, 3, 4, 5)}));
  EXPECT_FALSE(matters({Family::event, 0, 1, make_guid(1, 2, 3, 4, 5)}));
}

// The files are not only there: they are what their names say.
TEST(Golden, CoversWhatTheFormatHas) {
  const std::vector<std::string> archives = names("v", ".etlz");
  for (const char *name :
       {"v1-kinds-fast.etlz", "v1-kinds-default.etlz", "v1-kinds-max.etlz", "v1-machine-max.etlz",
        "v1-lanes-max.etlz", "v1-statistics.etlz", "v1-segments.etlz", "v1-xpress.etlz", "v1-lznt1.etlz",
        "v1-damaged.etlz", "v1-no-trace.etlz", "v1-empty.etlz"})
    EXPECT_TRUE(std::binary_search(archives.begin(), archives.end(), name)) << name;
  EXPECT_GE(names("refused-", ".etlz").size(), 3u);
  // Decoded and predicted, not kept compressed.
  for (const char *name : {"v1-xpress.etlz", "v1-lznt1.etlz"}) {
    const auto index = pipeline::read_archive_index(*read::memory_input(name, content(name)));
    ASSERT_TRUE(index);
    EXPECT_EQ(index->segments[0].header.method, etlz::SegmentMethod::model) << name;
    EXPECT_GT(index->segments[0].header.scratch_bytes, 0u) << name;
  }
  for (const char *name : {"v2-small.etlz", "v2-small-sparse.etlz", "v2-small-xpress.etlz",
                           "v2-small-lznt1.etlz", "v2-small-damaged.etlz"}) {
    const Result<etlz::FileHeader> header = etlz::read_file_header(content(name));
    ASSERT_TRUE(header);
    EXPECT_TRUE(header->small) << name;
  }
  for (const char *name : {"v3-gzip.etlz", "v3-gzip-members.etlz", "v3-zip.etlz"}) {
    const Result<etlz::FileHeader> header = etlz::read_file_header(content(name));
    ASSERT_TRUE(header);
    EXPECT_TRUE(header->wrapped) << name;
  }
  // Mixed streams in one lane and, from 16,384 bytes, in four.
  const std::vector<std::size_t> one = mixed_frames("v1-machine-max.etlz");
  EXPECT_GE(std::count_if(one.begin(), one.end(), [](std::size_t n) { return n < 16384; }), 3);
  const std::vector<std::size_t> four = mixed_frames("v1-lanes-max.etlz");
  EXPECT_GE(std::count_if(four.begin(), four.end(), [](std::size_t n) { return n >= 16384; }), 3);
  const auto segments =
      pipeline::read_archive_index(*read::memory_input("segments", content("v1-segments.etlz")));
  ASSERT_TRUE(segments);
  ASSERT_GE(segments->segments.size(), 3u);
  EXPECT_TRUE(segments->segments[1].summary.complete);
  EXPECT_FALSE(segments->segments[1].summary.state.empty());
  EXPECT_FALSE(segments->segments[1].summary.owners.complete);
  const auto owners = pipeline::read_archive_index(*read::memory_input("owners", content("v1-owners.etlz")));
  ASSERT_TRUE(owners);
  ASSERT_GE(owners->segments.size(), 3u);
  const SegmentSummary::Owners &told = owners->segments[1].summary.owners;
  EXPECT_TRUE(told.complete);
  EXPECT_FALSE(told.carried);
  EXPECT_EQ(told.of_nobody, 0u);
  ASSERT_EQ(told.threads.size(), 1u); // of all samples
  EXPECT_EQ(told.threads[0].id, 104u);
  EXPECT_EQ(told.threads[0].from, 2'000'000); // the first of them
}

TEST(Golden, StackDatabaseGivesBackItsContent) {
  const std::vector<std::string> all = names("stacks-v", ".zst");
  ASSERT_FALSE(all.empty());
  for (const std::string &name : all) {
    const Buffer file = content(name);
    const Result<stacks::StackDatabase> database = stacks::read_stack_database(file);
    ASSERT_TRUE(database) << database.error().message();
    json facts = expected(name);
    facts.erase("what");
    EXPECT_EQ(testing::facts_of(*database), facts) << name;
    Buffer bad = file;
    for (std::size_t at = 0; at < bad.size(); at += bad.size() / 20) {
      bad[at] ^= 0x40;
      EXPECT_FALSE(stacks::read_stack_database(bad)) << at;
      bad[at] ^= 0x40;
    }
    bad.pop_back();
    EXPECT_FALSE(stacks::read_stack_database(bad));
  }
}

} // namespace
} // namespace etwrelog
