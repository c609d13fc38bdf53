// Lists, shares, results, parts and pipes: what many traces on many machines need.
#include "archive/archive.hpp"
#include "base/output_file.hpp"
#include "etwrelog/archive.hpp"
#include "tests/support/generated.hpp"
#include "tests/support/pace.hpp"
#include "tests/support/run_tool.hpp"

#include <chrono>
#include <cstdlib>
#include <set>
#include <thread>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace etwrelog {
namespace {

using nlohmann::json;
using testing::generated;
using testing::run_tool;
using testing::TempDir;
using testing::ToolRun;
using Buffer = std::vector<std::uint8_t>;
namespace fs = std::filesystem;

std::string text_of(const std::string &path) {
  const Buffer bytes = testing::read_file(path);
  return {bytes.begin(), bytes.end()};
}

std::vector<json> lines_of(const std::string &path) {
  std::vector<json> lines;
  const std::string text = text_of(path);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    lines.push_back(json::parse(text.substr(at, end - at)));
    at = end + 1;
  }
  return lines;
}

// A folder of small files of many sizes; most are no traces, which packing takes as well.
class Fleet : public ::testing::Test {
protected:
  Fleet() {
    fs::create_directories(directory.path() / "in" / "deep");
    for (std::size_t i = 0; i < 20; ++i) {
      const std::string name = (i % 3 == 0 ? "in/deep/" : "in/") + std::to_string(i) + ".etl";
      testing::write_file(directory.file(name),
                          Buffer(1000 + 37'000 * (i % 7) * i, static_cast<std::uint8_t>(i)));
    }
    testing::write_file(directory.file("in/trace.etl"), trace);
    list = directory.file("list");
    const ToolRun run = in_folder({"fleet", "list", "in", "-r"});
    EXPECT_EQ(run.status, 0) << run.err;
    testing::write_file(list, Bytes(reinterpret_cast<const std::uint8_t *>(run.out.data()), run.out.size()));
  }
  [[nodiscard]] ToolRun in_folder(const std::vector<std::string> &words) const {
    return run_tool(words, {.directory = directory.path().string()});
  }
  [[nodiscard]] std::size_t archives() const {
    std::size_t count = 0;
    for (const auto &entry : fs::recursive_directory_iterator(directory.path() / "out"))
      count += entry.path().extension() == ".etlz" ? 1u : 0u;
    return count;
  }

  TempDir directory;
  Buffer trace = generated(3'000'000);
  std::string list;
};

TEST_F(Fleet, SharesAreDisjointCompleteAndOfEqualSize) {
  std::set<std::string> seen;
  std::vector<std::uint64_t> sizes;
  for (const char *share : {"1/4", "2/4", "3/4", "4/4"}) {
    const std::string results = directory.file(std::string("results") + share[0]);
    const ToolRun run = in_folder(
        {"pack", "--files-from", list, "--shard", share, "--out-dir", "out", "--results", results, "-q"});
    ASSERT_EQ(run.status, 0) << run.err;
    std::uint64_t size = 0;
    for (const json &line : lines_of(results)) {
      EXPECT_TRUE(seen.insert(line["path"]).second) << line;
      EXPECT_EQ(line["state"], "done");
      EXPECT_EQ(line["hash"].get<std::string>().size(), 32u);
      EXPECT_TRUE(line.contains("seconds"));
      size += line["bytes"].get<std::uint64_t>();
    }
    sizes.push_back(size);
  }
  EXPECT_EQ(seen.size(), 21u);
  EXPECT_TRUE(fs::exists(directory.path() / "out" / "in" / "deep" / "3.etlz"));
  const auto [least, most] = std::ranges::minmax(sizes);
  EXPECT_LT(most - least, 4'000'000u); // no more than the largest file
  EXPECT_EQ(in_folder({"verify", "-r", "out", "-q"}).status, 0);
  const ToolRun report = in_folder(
      {"fleet", "report", "results1", "results2", "results3", "results4", "--files-from", list, "--json"});
  EXPECT_EQ(report.status, 0) << report.err;
  const json all = json::parse(report.out);
  EXPECT_EQ(all["states"]["done"], 21);
  EXPECT_EQ(all["missing"], json::array());
  EXPECT_EQ(all["kinds"]["user"]["files"].get<int>() + all["kinds"]["unknown"]["files"].get<int>() +
                all["kinds"].value("kernel", json{{"files", 0}})["files"].get<int>() +
                all["kinds"].value("merged", json{{"files", 0}})["files"].get<int>(),
            21);
}

// Each of two machines would delete an original, and one of them the other's result before that.
TEST_F(Fleet, NoTwoSharesWriteOneResult) {
  for (const char *folder : {"a", "b"}) {
    fs::create_directory(directory.path() / folder);
    testing::write_file(directory.file(std::string(folder) + "/s.etl"), trace);
  }
  for (const char *share : {"1/2", "2/2"}) {
    const ToolRun run = in_folder(
        {"pack", "-r", "a", "b", "--shard", share, "--out-dir", "o", "--force", "--delete-original"});
    EXPECT_EQ(run.status, 2) << run.err;
    EXPECT_NE(run.err.find("would both become"), std::string::npos) << run.err;
  }
  EXPECT_TRUE(fs::exists(directory.path() / "a" / "s.etl"));
  EXPECT_TRUE(fs::exists(directory.path() / "b" / "s.etl"));
}

TEST_F(Fleet, SharesDoNotDependOnTheOrderOfTheList) {
  std::vector<std::string> lines;
  std::string text = text_of(list);
  for (std::size_t at = 0, end = 0; (end = text.find('\n', at)) != std::string::npos; at = end + 1)
    lines.push_back(text.substr(at, end - at + 1));
  std::ranges::reverse(lines);
  text.clear();
  for (const std::string &line : lines)
    text += line;
  testing::write_file(directory.file("turned"),
                      Bytes(reinterpret_cast<const std::uint8_t *>(text.data()), text.size()));
  auto share = [&](const std::string &of) {
    std::set<std::string> names;
    const ToolRun run = in_folder({"fleet", "list", "--files-from", of, "--shard", "2/3"});
    EXPECT_EQ(run.status, 0) << run.err;
    for (std::size_t at = 0, end = 0; (end = run.out.find('\n', at)) != std::string::npos; at = end + 1)
      names.insert(run.out.substr(at, end - at));
    return names;
  };
  EXPECT_EQ(share(list), share(directory.file("turned")));
  EXPECT_FALSE(share(list).empty());
}

TEST_F(Fleet, RunAgainNothingIsDoneTwiceAndWhatIsNotTheArchiveIsNamed) {
  const std::vector<std::string> pack = {
      "pack", "--files-from", list, "--out-dir", "out", "--skip-existing", "--results", "results", "-q"};
  ASSERT_EQ(in_folder(pack).status, 0);
  fs::remove(directory.path() / "out" / "in" / "trace.etlz");
  ASSERT_EQ(in_folder(pack).status, 0);
  json all = json::parse(in_folder({"fleet", "report", "results", "--json"}).out);
  EXPECT_EQ(all["states"], (json{{"done", 21}}));
  EXPECT_EQ(all["done_again"], 1);
  EXPECT_EQ(archives(), 21u);
  // The same name and size, other bytes: the record in the archive does not fit.
  Buffer changed = testing::read_file(directory.file("in/1.etl"));
  changed[500] ^= 1;
  testing::write_file(directory.file("in/1.etl"), changed);
  const ToolRun run = in_folder(pack);
  EXPECT_EQ(run.status, 1);
  EXPECT_NE(run.err.find("1.etlz: exists, and its record of its original does not fit"), std::string::npos)
      << run.err;
  // A result that is cut is not one that is there.
  Buffer cut = testing::read_file(directory.file("out/in/trace.etlz"));
  cut.resize(cut.size() - 10);
  testing::write_file(directory.file("out/in/trace.etlz"), cut);
  EXPECT_EQ(in_folder(pack).status, 1);
  std::vector<std::string> force = pack;
  force.push_back("--force");
  EXPECT_EQ(in_folder(force).status, 0);
  EXPECT_EQ(in_folder({"verify", "-r", "out", "-q"}).status, 0);
  EXPECT_EQ(in_folder(pack).status, 0);
  // A kill leaves a line without an end, which the next run ends and the report counts.
  std::string text = text_of(directory.file("results")) + R"({"task":"pack","path":"in/2)";
  testing::write_file(directory.file("results"),
                      Bytes(reinterpret_cast<const std::uint8_t *>(text.data()), text.size()));
  ASSERT_EQ(in_folder(pack).status, 0);
  all = json::parse(in_folder({"fleet", "report", "results", "--json"}).out);
  EXPECT_EQ(all["broken_lines"], 1);
  EXPECT_FALSE(all["nodes"].contains("not known")) << "a machine of no cluster has a name, too";
  EXPECT_EQ(all["states"], (json{{"done", 21}}));
}

TEST_F(Fleet, KilledAtAnyTimeAndRunAgainAllIsThereOnce) {
  const std::vector<std::string> pack = {
      "pack", "--files-from", list, "--out-dir", "out", "--skip-existing", "--results", "results", "-q"};
  for (const int delay : {3, 10, 30, 60, 100, 150}) {
    const auto kill_it = [delay](pid_t child) {
      std::this_thread::sleep_for(std::chrono::milliseconds(delay));
      ::kill(child, SIGKILL);
    };
    static_cast<void>(run_tool(pack, {.directory = directory.path().string(), .while_running = kill_it}));
  }
  const ToolRun run = in_folder(pack);
  ASSERT_EQ(run.status, 0) << run.err;
  std::size_t files = 0;
  for (const auto &entry : fs::recursive_directory_iterator(directory.path() / "out"))
    files += entry.is_regular_file() ? 1u : 0u;
  EXPECT_EQ(archives(), 21u);
  EXPECT_EQ(files, 21u); // nothing that is half an archive
  EXPECT_EQ(in_folder({"verify", "-r", "out", "-q"}).status, 0);
  const json all = json::parse(in_folder({"fleet", "report", "results", "--files-from", list, "--json"}).out);
  EXPECT_EQ(all["done_again"], 0);
  EXPECT_EQ(all["missing"], json::array());
  EXPECT_FALSE(all["states"].contains("failed")) << all;
}

TEST_F(Fleet, VerifyLeavesOutWhatItsResultsSayIsGood) {
  ASSERT_EQ(in_folder({"pack", "in", "-r", "--out-dir", "out", "-q"}).status, 0);
  const std::vector<std::string> verify = {"verify",    "out",     "-r", "--skip-existing",
                                           "--results", "results", "-q"};
  ASSERT_EQ(in_folder(verify).status, 0);
  ASSERT_EQ(in_folder(verify).status, 0);
  std::size_t done = 0, skipped = 0;
  for (const json &line : lines_of(directory.file("results")))
    ++(line["state"] == "done" ? done : skipped);
  EXPECT_EQ(done, 21u);
  EXPECT_EQ(skipped, 21u);
}

TEST_F(Fleet, VerifyLooksAgainAtWhatItFoundDamaged) {
  ASSERT_EQ(in_folder({"pack", "in", "-r", "--out-dir", "out", "-q"}).status, 0);
  ASSERT_EQ(in_folder({"verify", "out", "-r", "--results", "results", "-q"}).status, 0);
  const std::string archive = directory.file("out/trace.etlz");
  Buffer bad = testing::read_file(archive);
  ASSERT_GT(bad.size(), 9u);
  bad[9] ^= 1; // in the header, which --salvage does without
  testing::write_file(archive, bad);
  EXPECT_EQ(in_folder({"verify", "out", "-r", "--results", "results", "-q", "--salvage"}).status, 3);
  const ToolRun again = in_folder({"verify", "out", "-r", "--skip-existing", "--results", "results", "-q"});
  EXPECT_EQ(again.status, 1);
  EXPECT_NE(again.err.find("trace.etlz"), std::string::npos) << again.err;
}

TEST_F(Fleet, ExportAndProfileMakeAFileOfEachTrace) {
  fs::create_directories(directory.path() / "other");
  testing::write_file(directory.file("other/b.etl"), generated(1'000'000, 5));
  fs::copy_file(directory.path() / "in" / "trace.etl", directory.path() / "other" / "a.etl");
  const std::vector<std::string> exported = {"export",  "other",          "-r",  "--out-dir",
                                             "ex",      "--format",       "csv", "--results",
                                             "results", "--skip-existing"};
  const ToolRun run = in_folder(exported);
  ASSERT_EQ(run.status, 0) << run.err;
  for (const std::string name : {"a", "b"}) {
    const ToolRun alone = in_folder({"export", "other/" + name + ".etl", "--format", "csv"});
    EXPECT_EQ(text_of(directory.file("ex/" + name + ".csv")), alone.out) << name;
  }
  ASSERT_EQ(in_folder(exported).status, 0);
  const std::vector<json> lines = lines_of(directory.file("results"));
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0]["hash"].get<std::string>().size(), 32u);
  EXPECT_EQ(lines[2]["state"], "skipped");
  EXPECT_EQ(
      in_folder({"profile", "other", "-r", "--out-dir", "pr", "--format", "folded", "--symbols", "none"})
          .status,
      0);
  EXPECT_TRUE(fs::exists(directory.path() / "pr" / "a.folded"));
  EXPECT_EQ(in_folder({"export", "other", "-r"}).status, 2); // one file for all is not what a folder means
  EXPECT_EQ(in_folder({"stats", "other", "-r", "--results", "counted"}).status, 0);
  EXPECT_EQ(lines_of(directory.file("counted")).size(), 2u);
}

TEST_F(Fleet, AReportNamesFailuresAndWhatHasNoResult) {
  fs::remove(directory.path() / "in" / "5.etl");
  const ToolRun run = in_folder(
      {"pack", "--files-from", list, "--shard", "1/2", "--out-dir", "out", "--results", "results", "-q"});
  const ToolRun second = run.status == 0 ? in_folder({"pack", "--files-from", list, "--shard", "2/2",
                                                      "--out-dir", "out", "--results", "results", "-q"})
                                         : run;
  EXPECT_EQ(second.status, 1);
  const ToolRun report = in_folder({"fleet", "report", "results", "--files-from", list});
  EXPECT_EQ(report.status, 1);
  EXPECT_NE(report.out.find("in/5.etl"), std::string::npos) << report.out;
  if (run.status != 0) {
    EXPECT_NE(report.out.find("have no result"), std::string::npos) << report.out;
  }
}

// A file that has changed may be in another share than before: which file of results stands first must not
// matter.
TEST_F(Fleet, AListHasEachFileOnceAndNoneThatIsNotThere) {
  const ToolRun both = in_folder({"fleet", "list", "in", "in/deep", "-r"});
  EXPECT_EQ(both.out, text_of(list));
  const ToolRun spelled = in_folder({"fleet", "list", "in", "in/deep/../deep", "./in", "-r"});
  EXPECT_EQ(spelled.out, text_of(list));
  const ToolRun missing = in_folder({"fleet", "list", "in", "nosuch", "-r"});
  EXPECT_EQ(missing.status, 1);
  EXPECT_EQ(missing.out, "");
  EXPECT_NE(missing.err.find("nosuch"), std::string::npos) << missing.err;
}

// JSON holds no such names, and what is shown of two may be the same.
TEST_F(Fleet, FilesAreToldApartWhateverTheirNamesAre) {
  fs::create_directories(directory.path() / "odd");
  for (const char *name : {"odd/a\xff.etl", "odd/a\xfe.etl"})
    testing::write_file(directory.file(name), trace);
  const ToolRun listed = in_folder({"fleet", "list", "odd", "-r"});
  testing::write_file(directory.file("odd.list"),
                      Bytes(reinterpret_cast<const std::uint8_t *>(listed.out.data()), listed.out.size()));
  const std::vector<std::string> pack = {"pack",      "-q", "--files-from", "odd.list",
                                         "--out-dir", "oa", "--results",    "odd.jsonl"};
  EXPECT_EQ(in_folder(pack).status, 0);
  const ToolRun report = in_folder({"fleet", "report", "odd.jsonl", "--files-from", "odd.list"});
  EXPECT_EQ(report.status, 0) << report.out << report.err;
  EXPECT_NE(report.out.find("2 files: 2 done"), std::string::npos) << report.out;
  EXPECT_EQ(report.out.find("more than once"), std::string::npos) << report.out;
}

TEST_F(Fleet, AReportOfWhatIsNoFileOfResultsIsAnError) {
  const ToolRun missing = in_folder({"fleet", "report", "odd.etl"});
  EXPECT_EQ(missing.status, 1);
  EXPECT_NE(missing.err.find("odd.etl: the results cannot be read: No such file"), std::string::npos)
      << missing.err;
  testing::write_file(directory.file("odd.etl"), trace);
  const ToolRun mistaken = in_folder({"fleet", "report", "odd.etl"});
  EXPECT_EQ(mistaken.status, 2);
  EXPECT_TRUE(mistaken.out.empty()) << mistaken.out;
  EXPECT_NE(mistaken.err.find("\"odd.etl\" is no file of results"), std::string::npos) << mistaken.err;
}

TEST_F(Fleet, TheLaterLineCountsInWhateverFileItStands) {
  auto write = [&](const std::string &name, const std::string &state, int began) {
    const std::string line = json{{"task", "verify"}, {"path", "a.etlz"}, {"state", state},
                                  {"bytes", 1},       {"seconds", 1},     {"began", began}}
                                 .dump() +
                             "\n";
    testing::write_file(directory.file(name),
                        Bytes(reinterpret_cast<const std::uint8_t *>(line.data()), line.size()));
  };
  write("done", "done", 100);
  write("failed", "failed", 200);
  write("mended", "done", 300);
  write("skipped", "skipped", 400);
  EXPECT_EQ(in_folder({"fleet", "report", "done", "failed"}).status, 1);
  EXPECT_EQ(in_folder({"fleet", "report", "failed", "done"}).status, 1);
  EXPECT_EQ(in_folder({"fleet", "report", "failed", "mended", "done"}).status, 0);
  EXPECT_EQ(in_folder({"fleet", "report", "mended", "failed", "done"}).status, 0);
  // What was skipped holds as it was.
  for (const std::vector<std::string> &order :
       {std::vector<std::string>{"mended", "skipped"}, {"skipped", "mended"}}) {
    const ToolRun run = in_folder({"fleet", "report", order[0], order[1], "--json"});
    EXPECT_EQ(json::parse(run.out)["states"], json({{"done", 1}})) << run.out;
  }
}

// Packed by a run whose results are lost: what the archives are counts all the same, apart.
TEST_F(Fleet, AReportCountsWhatWasThereAlready) {
  const std::vector<std::string> pack = {"pack", "--files-from",    list,       "--out-dir", "out",
                                         "-q",   "--skip-existing", "--results"};
  auto packing = [&](const std::string &results) {
    std::vector<std::string> arguments = pack;
    arguments.push_back(results);
    ASSERT_EQ(in_folder(arguments).status, 0);
  };
  packing("first");
  packing("again");
  const json first = json::parse(in_folder({"fleet", "report", "first", "--json"}).out),
             again = json::parse(in_folder({"fleet", "report", "again", "--json"}).out),
             both = json::parse(in_folder({"fleet", "report", "again", "first", "--json"}).out);
  EXPECT_EQ(first["there_already"]["files"], 0);
  EXPECT_EQ(again["there_already"],
            json({{"files", first["files"]}, {"bytes", first["bytes"]}, {"of_unknown_size", 0}}));
  for (const char *name : {"bytes", "result_bytes"}) {
    EXPECT_EQ(again[name], first[name]) << name;
    EXPECT_EQ(both[name], first[name]) << name;
  }
  EXPECT_EQ(again["seconds"], 0);
  EXPECT_EQ(both["there_already"]["files"], 0) << "the earlier line says more";
  EXPECT_NE(in_folder({"fleet", "report", "again"}).out.find("were there already"), std::string::npos);
}

TEST_F(Fleet, TheShareComesFromSlurmOrKubernetes) {
  auto share = [&](const std::vector<std::pair<const char *, const char *>> &variables) {
    for (const auto &[name, value] : variables)
      ::setenv(name, value, 1);
    const ToolRun run = in_folder({"fleet", "list", "--files-from", list, "--shard", "auto"});
    for (const auto &[name, value] : variables)
      ::unsetenv(name);
    return run;
  };
  const std::string second = in_folder({"fleet", "list", "--files-from", list, "--shard", "2/3"}).out;
  EXPECT_EQ(share({{"SLURM_ARRAY_TASK_ID", "12"},
                   {"SLURM_ARRAY_TASK_MIN", "10"},
                   {"SLURM_ARRAY_TASK_MAX", "14"},
                   {"SLURM_ARRAY_TASK_STEP", "2"},
                   {"SLURM_ARRAY_TASK_COUNT", "3"}})
                .out,
            second);
  EXPECT_EQ(share({{"SLURM_ARRAY_TASK_ID", "1"}, {"ETWRELOG_SHARDS", "3"}}).out, second);
  EXPECT_EQ(share({{"JOB_COMPLETION_INDEX", "1"}, {"ETWRELOG_SHARDS", "3"}}).out, second);
  EXPECT_EQ(share({{"JOB_COMPLETION_INDEX", "1"}}).status, 2);
  EXPECT_EQ(share({}).status, 2);
  EXPECT_NE(share({{"SLURM_ARRAY_TASK_ID", "x"}, {"ETWRELOG_SHARDS", "3"}}).err.find("no number"),
            std::string::npos);
  EXPECT_EQ(share({{"SLURM_ARRAY_TASK_ID", "3"}, {"ETWRELOG_SHARDS", "3"}}).status, 2);
  // Tasks 1, 3 and 7: no share can be told.
  EXPECT_EQ(share({{"SLURM_ARRAY_TASK_ID", "3"},
                   {"SLURM_ARRAY_TASK_MIN", "1"},
                   {"SLURM_ARRAY_TASK_MAX", "7"},
                   {"SLURM_ARRAY_TASK_STEP", "1"},
                   {"SLURM_ARRAY_TASK_COUNT", "3"}})
                .status,
            2);
  // Far more shares than files: all but the first are empty, and none takes memory for the others.
  EXPECT_EQ(in_folder({"fleet", "list", "--files-from", list, "--shard", "4294967295/4294967295"}).out, "");
  for (const char *bad : {"0/3", "4/3", "3", "a/b", "1/", "/"})
    EXPECT_EQ(in_folder({"fleet", "list", "--files-from", list, "--shard", bad}).status, 2) << bad;
}

// --- Parts
// ---------------------------------------------------------------------------------------------------

Buffer packed_whole(const read::Input &input, const pipeline::ArchiveOptions &options) {
  Buffer bytes;
  Result<OutputStream> out = OutputStream::open(Output::memory(bytes));
  EXPECT_TRUE(out && pipeline::pack_file(input, *out, options) && out->commit());
  return bytes;
}

std::vector<Buffer> packed_parts(const read::Input &input, std::uint32_t of,
                                 const pipeline::ArchiveOptions &options) {
  std::vector<Buffer> parts(of);
  for (std::uint32_t i = 1; i <= of; ++i) {
    Result<OutputStream> out = OutputStream::open(Output::memory(parts[i - 1]));
    const Result<PackReport> done = pipeline::pack_part(input, {i, of}, *out, options);
    EXPECT_TRUE(done) << done.error().message();
    EXPECT_TRUE(out->commit());
  }
  return parts;
}

Result<Buffer> joined(const std::vector<Buffer> &parts) {
  std::vector<Input> inputs;
  for (const Buffer &part : parts)
    inputs.push_back(Input::memory("part " + std::to_string(inputs.size() + 1), part));
  Buffer bytes;
  const Result<PackReport> done = join_parts(inputs, Output::memory(bytes));
  if (!done) return done.error();
  return bytes;
}

TEST(Parts, JoinedTheyAreTheArchiveThatOneMachineMakes) {
  const Buffer plain = generated(3'000'000), compressed = generated(2'000'000, 2, Codec::xpress);
  Buffer damaged = plain;
  std::fill_n(damaged.begin() + 1'500'000, 100'000, std::uint8_t{0x5A});
  damaged.resize(damaged.size() - 12'345);
  const Buffer text(1'500'000, 'x');
  for (const Buffer *original : std::initializer_list<const Buffer *>{&plain, &compressed, &damaged, &text})
    for (const Level level : {Level::normal, Level::max}) {
      if (level == Level::max && original != &compressed) continue; // slow
      for (const bool counts : {false, true}) {
        const auto input = read::memory_input("t.etl", *original);
        pipeline::ArchiveOptions options;
        options.level = level;
        options.segment = 1u << 18;
        options.counts = counts;
        const Buffer whole = packed_whole(*input, options);
        for (const std::uint32_t of : testing::some<std::uint32_t>(2, {1, 2, 3, 9})) {
          if (of > 3 && counts) continue;
          std::vector<Buffer> parts = packed_parts(*input, of, options);
          std::ranges::reverse(parts);
          const Result<Buffer> all = joined(parts);
          ASSERT_TRUE(all) << all.error().message();
          EXPECT_TRUE(*all == whole) << of << " parts, " << original->size() << " bytes";
        }
      }
    }
}

TEST(Parts, OfASmallTraceTheFirstIsAll) {
  TempDir directory;
  const std::string trace = directory.file("t.etl");
  testing::write_file(trace, generated(100'000));
  ASSERT_EQ(run_tool({"pack", trace, "-q"}).status, 0);
  std::vector<std::string> join = {"join", "-o", directory.file("joined.etlz"), "-q"};
  for (const char *part : {"1/2", "2/2"}) {
    ASSERT_EQ(
        run_tool({"pack", trace, "--part", part, "-q", "-o", directory.file(std::string(1, part[0]))}).status,
        0);
    join.push_back(directory.file(std::string(1, part[0])));
  }
  const ToolRun run = run_tool(join);
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(testing::read_file(directory.file("joined.etlz")), testing::read_file(directory.file("t.etlz")));
}

TEST(Parts, ThatDoNotBelongTogetherAreNamed) {
  pipeline::ArchiveOptions options;
  options.segment = 1u << 20;
  const Buffer first = generated(4'000'000), second = generated(4'000'000, 9);
  const auto a = read::memory_input("a", first), b = read::memory_input("b", second);
  const std::vector<Buffer> parts = packed_parts(*a, 3, options), others = packed_parts(*b, 3, options);
  auto error = [](const std::vector<Buffer> &given) {
    const Result<Buffer> all = joined(given);
    return all ? std::string("joined") : all.error().message();
  };
  EXPECT_NE(error({parts[0], parts[2]}).find("part 2 of 3 is missing"), std::string::npos);
  EXPECT_NE(error({parts[0], parts[1]}).find("part 3 of 3 is missing"), std::string::npos);
  EXPECT_NE(error({parts[0], parts[1], parts[1], parts[2]}).find("part 2 is given twice"), std::string::npos);
  EXPECT_NE(error({parts[0], others[1], parts[2]}).find("original"), std::string::npos);
  EXPECT_NE(error({parts[0], packed_parts(*a, 2, options)[1], parts[2]}).find("number of parts"),
            std::string::npos);
  EXPECT_NE(error({first}).find("is no part"), std::string::npos);
  Buffer changed = first; // in the middle: its ends and its size are those of the first
  changed[changed.size() / 2 + 100] ^= 1;
  const std::vector<Buffer> of_changed = packed_parts(*read::memory_input("a", changed), 3, options);
  EXPECT_NE(error({parts[0], of_changed[1], parts[2]}).find("differs from this one's"), std::string::npos);
  EXPECT_NE(error({of_changed[0], parts[1], parts[2]}).find("differs from this one's"), std::string::npos);
  options.level = Level::max;
  const std::string levels = error({parts[0], packed_parts(*a, 3, options)[1], parts[2]});
  EXPECT_NE(levels.find("level, as of"), std::string::npos) << levels;
  EXPECT_NE(levels.find("expected default, found max"), std::string::npos) << levels;
}

TEST(Parts, NoDamageGoesUnseen) {
  pipeline::ArchiveOptions options;
  options.segment = 1u << 20;
  const Buffer trace = generated(3'000'000);
  const auto input = read::memory_input("a", trace);
  const std::vector<Buffer> parts = packed_parts(*input, 2, options);
  for (std::size_t which = 0; which < 2; ++which) {
    const std::size_t size = parts[which].size();
    for (std::size_t at = 0; at < size; at += at < 200 || at + 200 > size ? 7 : size / 40) {
      std::vector<Buffer> broken = parts;
      broken[which][at] ^= 0x10;
      EXPECT_FALSE(joined(broken)) << which << " at " << at;
      broken = parts;
      broken[which].resize(at);
      EXPECT_FALSE(joined(broken)) << which << " cut at " << at;
    }
  }
}

// --- Pipes
// ---------------------------------------------------------------------------------------------------

TEST(Pipes, PackAndUnpackRoundTrip) {
  TempDir directory;
  const Buffer trace = generated(5'000'000);
  testing::write_file(directory.file("t.etl"), trace);
  const ToolRun packed = run_tool({"pack", "-", "-o", "-", "-q"},
                                  {.input = directory.file("t.etl"), .output = directory.file("piped.etlz")});
  ASSERT_EQ(packed.status, 0) << packed.err;
  ASSERT_EQ(run_tool({"pack", directory.file("t.etl"), "-q"}).status, 0);
  EXPECT_EQ(testing::read_file(directory.file("piped.etlz")), testing::read_file(directory.file("t.etlz")));
  const ToolRun unpacked =
      run_tool({"unpack", "-", "-o", "-", "-q"},
               {.input = directory.file("piped.etlz"), .output = directory.file("piped.etl")});
  ASSERT_EQ(unpacked.status, 0) << unpacked.err;
  EXPECT_EQ(testing::read_file(directory.file("piped.etl")), trace);
  EXPECT_EQ(run_tool({"verify", "-", "-q"}, {.input = directory.file("piped.etlz")}).status, 0);
}

TEST(Pipes, OfADamagedArchiveNothingIsWritten) {
  TempDir directory;
  Buffer archive;
  ASSERT_TRUE(pack(Input::memory("t", generated(3'000'000)), Output::memory(archive)));
  for (const std::size_t at : {archive.size() / 2, archive.size() - 100, std::size_t{30}}) {
    Buffer broken = archive;
    broken[at] ^= 1;
    testing::write_file(directory.file("broken"), broken);
    const ToolRun run = run_tool({"unpack", "-", "-o", "-"}, {.input = directory.file("broken")});
    EXPECT_EQ(run.status, 1);
    EXPECT_TRUE(run.out.empty()) << at;
    broken = archive;
    broken.resize(at);
    testing::write_file(directory.file("broken"), broken);
    const ToolRun cut = run_tool({"unpack", "-", "-o", "-"}, {.input = directory.file("broken")});
    EXPECT_EQ(cut.status, 1);
    EXPECT_TRUE(cut.out.empty()) << at;
  }
  // An archive that was cut on its way out is refused by whoever gets it.
  const ToolRun without = run_tool({"pack", "-"}, {.input = directory.file("broken")});
  EXPECT_EQ(without.status, 2);
}

} // namespace
} // namespace etwrelog
