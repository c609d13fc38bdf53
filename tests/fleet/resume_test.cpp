// What is done again after a run that was stopped, or beside another one: nothing is lost, nothing is done
// twice, and what comes back is what was there, under its name.
#include "etwrelog/archive.hpp"
#include "tests/support/generated.hpp"
#include "tests/support/run_tool.hpp"

#include <algorithm>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <sys/stat.h>

namespace etwrelog {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

class Resume : public ::testing::Test {
protected:
  Resume() {
    fs::create_directory(directory.path() / "t");
    for (const int i : {1, 2, 3})
      testing::write_file(directory.file(name(i)), testing::generated(200'000, static_cast<unsigned>(i)));
  }
  static std::string name(int i) { return "t/" + std::to_string(i) + ".etl"; }
  [[nodiscard]] testing::ToolRun run(const Words &words) const {
    return testing::run_tool(words, {.directory = directory.path().string()});
  }
  void write(const std::string &file, const std::string &text) const {
    testing::write_file(directory.file(file),
                        Bytes(reinterpret_cast<const std::uint8_t *>(text.data()), text.size()));
  }
  [[nodiscard]] std::string read(const std::string &file) const {
    const std::vector<std::uint8_t> bytes = testing::read_file(directory.file(file));
    return {bytes.begin(), bytes.end()};
  }
  [[nodiscard]] bool exists(const std::string &file) const { return fs::exists(directory.file(file)); }
  void list() const { write("list", run({"fleet", "list", "t", "-r"}).out); }
  [[nodiscard]] nlohmann::json report(Words results, bool of_list = true) const {
    results.insert(results.begin(), {"fleet", "report", "--json"});
    if (of_list) results.insert(results.end(), {"--files-from", "list"});
    const testing::ToolRun done = run(results);
    nlohmann::json all = nlohmann::json::parse(done.out, nullptr, false);
    all["status"] = done.status;
    return all;
  }
  // A line of a results file.
  static std::string line(const std::string &task, const std::string &path, const std::string &state,
                          int began) {
    return nlohmann::json{{"task", task}, {"path", path},   {"state", state},
                          {"bytes", 1},   {"seconds", 1.0}, {"began", began}}
               .dump() +
           "\n";
  }

  testing::TempDir directory;
};

TEST_F(Resume, WhatAnEarlierRunDeletedIsDone) {
  list();
  const Words pack = {"pack",      "--files-from",      "list", "--out-dir", "out", "--skip-existing",
                      "--results", "--delete-original", "-q"};
  Words first = pack;
  first.insert(first.begin() + 7, "results");
  ASSERT_EQ(run(first).status, 0);
  EXPECT_FALSE(exists(name(1)));
  const testing::ToolRun again = run(first);
  EXPECT_EQ(again.status, 0) << again.err;
  EXPECT_NE(read("results").find("its original was deleted before"), std::string::npos);
  const nlohmann::json all = report({"results"});
  EXPECT_EQ(all["status"], 0);
  EXPECT_EQ(all["states"], (nlohmann::json{{"done", 3}}));
  // Only with a whole archive, and of the size that the list tells.
  const std::string archive = read("out/t/1.etlz");
  write("out/t/1.etlz", archive.substr(0, archive.size() - 1));
  EXPECT_EQ(run(first).status, 1);
  write("out/t/1.etlz", archive);
  EXPECT_EQ(run(first).status, 0);
  write("list", "199\t" + name(1) + "\n");
  EXPECT_EQ(run(first).status, 1) << "an archive of another file";
  write("list", name(1) + "\n");
  EXPECT_EQ(run(first).status, 0) << "no size is told";
  fs::remove(directory.file("out/t/1.etlz"));
  EXPECT_EQ(run(first).status, 1);
}

TEST_F(Resume, AFolderWhoseOriginalsAreAllDeletedIsDone) {
  const Words pack = {"pack", "-r", "t", "--delete-original", "-q"};
  ASSERT_EQ(run(pack).status, 0);
  EXPECT_EQ(run(pack).status, 1) << "no files, unless existing ones are to be skipped";
  Words again = pack;
  again.emplace_back("--skip-existing");
  EXPECT_EQ(run(again).status, 0);
  fs::create_directory(directory.path() / "empty");
  EXPECT_EQ(run({"pack", "-r", "empty", "--delete-original", "--skip-existing"}).status, 1);
}

TEST_F(Resume, RunsAtOnceOnOneListAllSucceed) {
  for (int i = 4; i < 40; ++i)
    testing::write_file(directory.file(name(i)), testing::generated(100'000, static_cast<unsigned>(i)));
  list();
  std::vector<std::thread> runs;
  std::vector<testing::ToolRun> done(3);
  for (std::size_t i = 0; i < done.size(); ++i)
    runs.emplace_back([&, i] {
      done[i] = run({"pack", "--files-from", "list", "--delete-original", "--skip-existing", "-q",
                     "--results", "results" + std::to_string(i)});
    });
  for (std::thread &one : runs)
    one.join();
  for (const testing::ToolRun &one : done)
    EXPECT_EQ(one.status, 0) << one.err;
  for (int i = 1; i < 40; ++i) {
    EXPECT_FALSE(exists(name(i))) << i;
    EXPECT_TRUE(exists(name(i) + "z")) << i;
  }
  const nlohmann::json all = report({"results0", "results1", "results2"});
  EXPECT_EQ(all["status"], 0) << all;
  EXPECT_EQ(run({"verify", "-r", "t", "-q"}).status, 0);
}

// A logger renames its next trace over the name while the last one is compared with its archive.
TEST_F(Resume, AFileThatTakesTheNameOfAnOriginalIsNeverDeleted) {
  const std::vector<std::uint8_t> old = testing::generated(30'000'000), next = testing::generated(50'000, 9);
  int kept = 0;
  for (const int delay : {0, 5, 20}) {
    fs::remove(directory.file("x.etlz"));
    testing::write_file(directory.file("x.etl"), old);
    testing::write_file(directory.file("next"), next);
    const auto replace = [&](pid_t) {
      for (int i = 0; i < 20'000 && !exists("x.etlz"); ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      std::this_thread::sleep_for(std::chrono::milliseconds(delay));
      fs::rename(directory.file("next"), directory.file("x.etl"));
    };
    const testing::ToolRun done =
        testing::run_tool({"pack", "x.etl", "--delete-original", "-q"},
                          {.directory = directory.path().string(), .while_running = replace});
    ASSERT_TRUE(exists("x.etl"));
    EXPECT_TRUE(testing::read_file(directory.file("x.etl")) == next);
    EXPECT_TRUE(done.status == 4 || done.status == 0) << done.status << done.err;
    kept += done.status == 4 ? 1 : 0;
  }
  EXPECT_GT(kept, 0) << "none came while the files were compared";
}

TEST_F(Resume, ArchivesInAListAreLeftAlone) {
  ASSERT_EQ(run({"pack", "-r", "t", "-q"}).status, 0);
  list(); // of both
  const testing::ToolRun done =
      run({"pack", "--files-from", "list", "--skip-existing", "--results", "results", "-q"});
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_NE(done.err.find("3 of the files listed are results of pack already"), std::string::npos)
      << done.err;
  EXPECT_FALSE(exists("t/1.etlz.etlz"));
  EXPECT_EQ(report({"results"})["states"], (nlohmann::json{{"skipped", 6}}));
  EXPECT_EQ(run({"pack", "t/1.etlz"}).status, 1) << "named, it is an error";
  // What is called so and is no archive is a file like any other, which no result may replace.
  write("t/1.etlz", "text");
  EXPECT_EQ(run({"pack", "--files-from", "list", "--skip-existing", "-q"}).status, 2);
}

TEST_F(Resume, UnpackGivesEachFileItsName) {
  const std::string whole = read(name(1));
  write("t/cut.etl", whole.substr(0, 100));
  write("t/empty.etl", "");
  write("t/text.etl", "text");
  write("t/Text.ETL", "text");
  write("t/trace.bin", whole);
  write("t/trace", whole.substr(0, whole.size() - 1));
  write("t/other.txt", "text");
  Words named;
  for (const auto &entry : fs::directory_iterator(directory.path() / "t"))
    named.push_back("t/" + entry.path().filename().string());
  std::ranges::sort(named);
  Words pack = {"pack", "--delete-original", "-q", "--out-dir", "out"};
  pack.insert(pack.end(), named.begin(), named.end());
  ASSERT_EQ(run(pack).status, 0);
  ASSERT_EQ(run({"unpack", "-r", "out", "--out-dir", "back", "-q"}).status, 0);
  Words back;
  for (const auto &entry : fs::directory_iterator(directory.path() / "back"))
    back.push_back("t/" + entry.path().filename().string());
  std::ranges::sort(back);
  EXPECT_EQ(back, named);
  EXPECT_EQ(read("back/text.etl"), "text");
  // The archive of a part of it knows the name, too.
  write("x", whole);
  for (const char *part : {"1/2", "2/2"})
    ASSERT_EQ(run({"pack", "x", "--part", part, "-o", std::string(1, part[0]), "-q"}).status, 0);
  ASSERT_EQ(run({"pack", "x", "-o", "whole.etlz", "-q"}).status, 0);
  ASSERT_EQ(run({"join", "1", "2", "-o", "joined.etlz", "-q"}).status, 0);
  EXPECT_EQ(read("joined.etlz"), read("whole.etlz"));
  EXPECT_FALSE(read_archive_info(directory.file("joined.etlz"))->etl_name);
}

TEST_F(Resume, ArchivesAndWhatComesBackHaveModeAndTimeOfTheirSource) {
  const fs::file_time_type then = fs::last_write_time(directory.file(name(1))) - std::chrono::hours(500);
  ASSERT_EQ(::chmod(directory.file(name(1)).c_str(), 0600), 0);
  write("t/text.etl", "text");
  ASSERT_EQ(::chmod(directory.file("t/text.etl").c_str(), 0640), 0);
  for (const std::string &file : {name(1), std::string("t/text.etl")})
    fs::last_write_time(directory.file(file), then);
  ASSERT_EQ(run({"pack", "-r", "t", "--out-dir", "out", "-q"}).status, 0);
  ASSERT_EQ(run({"unpack", "-r", "out", "--out-dir", "back", "-q"}).status, 0);
  ASSERT_EQ(run({"pack", name(1), "--delete-original", "-q"}).status, 0); // not in memory meanwhile
  for (const std::string &file : {std::string("out/1.etlz"), std::string("back/1.etl"), name(1) + "z"}) {
    struct stat facts {};
    ASSERT_EQ(::stat(directory.file(file).c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 07777, 0600u) << file;
    EXPECT_EQ(fs::last_write_time(directory.file(file)), then) << file;
  }
  struct stat facts {};
  ASSERT_EQ(::stat(directory.file("back/text.etl").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 07777, 0640u);
}

TEST_F(Resume, FoldersThatGoWhileTheyAreListedAreSteppedOver) {
  for (int i = 0; i < 200; ++i) {
    fs::create_directories(directory.path() / "v" / std::to_string(i) / "s");
    write("v/" + std::to_string(i) + "/s/x.etl", "x");
  }
  write("v/stays.etl", "x");
  std::thread remove([&] {
    for (int i = 0; i < 200; ++i)
      fs::remove_all(directory.path() / "v" / std::to_string(i));
  });
  for (int i = 0; i < 10; ++i) {
    const testing::ToolRun listed = run({"fleet", "list", "v", "-r"});
    EXPECT_EQ(listed.status, 0) << listed.err;
    EXPECT_NE(listed.out.find("v/stays.etl"), std::string::npos);
  }
  remove.join();
}

TEST_F(Resume, AnEmptyListIsAnErrorForEveryShare) {
  write("empty", "");
  for (const char *shard : {"1/2", "2/2"})
    EXPECT_EQ(run({"pack", "--files-from", "empty", "--shard", shard}).status, 1);
  write("one", name(1) + "\n");
  EXPECT_EQ(run({"pack", "--files-from", "one", "--shard", "1/2", "-q"}).status, 0);
  EXPECT_EQ(run({"pack", "--files-from", "one", "--shard", "2/2", "-q"}).status, 0) << "nothing to do";
  write("results", line("pack", "a", "done", 1));
  EXPECT_EQ(run({"fleet", "report", "results", "--files-from", "empty"}).status, 1);
}

TEST_F(Resume, NamesWithLineFeedsFitIntoAListOfZeroBytes) {
  const std::string odd = "t/a\nb.etl";
  write(odd, "x");
  const testing::ToolRun lines = run({"fleet", "list", "t", "-r"});
  EXPECT_EQ(lines.status, 3);
  EXPECT_EQ(std::ranges::count(lines.out, '\n'), 3);
  const testing::ToolRun zeros = run({"fleet", "list", "t", "-r", "-0"});
  EXPECT_EQ(zeros.status, 0);
  EXPECT_EQ(std::ranges::count(zeros.out, '\0'), 4);
  write("list", zeros.out);
  EXPECT_EQ(run({"fleet", "list", "--files-from", "list", "--null"}).out, zeros.out);
  ASSERT_EQ(run({"pack", "--files-from", "list", "--out-dir", "out", "--results", "results", "-q"}).status,
            0);
  EXPECT_TRUE(exists("out/t/a\nb.etlz"));
  EXPECT_EQ(report({"results"})["status"], 0);
  EXPECT_EQ(run({"fleet", "report", "results", "-0"}).status, 2);
}

TEST_F(Resume, AReportDoesNotDependOnTheOrderOfItsFiles) {
  write("1", line("pack", "a", "done", 100));
  write("2", line("pack", "a", "failed", 200));
  write("3", line("pack", "a", "skipped", 300));
  write("4", line("pack", "a", "failed", 400));
  for (const auto &[last, status] : {std::pair("3", 0), {"4", 1}}) {
    Words order = {"1", "2", "3"};
    if (status == 1) order.emplace_back(last);
    do {
      const nlohmann::json all = report(order, false);
      EXPECT_EQ(all["status"], status);
      EXPECT_EQ(all["states"], (nlohmann::json{{status == 0 ? "done" : "failed", 1}}));
    } while (std::ranges::next_permutation(order).found);
  }
}

TEST_F(Resume, AFileNeedsAResultOfEachTaskThatTheListIsOf) {
  write("list", "a\nb\n");
  write("pack", line("pack", "a", "done", 1));
  write("stats", line("stats", "a", "done", 1) + line("stats", "b", "done", 1));
  write("verify", line("verify", "a.etlz", "done", 1));
  EXPECT_EQ(report({"stats", "verify"})["status"], 0) << "archives are in no list of traces";
  const nlohmann::json all = report({"pack", "stats", "verify"});
  EXPECT_EQ(all["status"], 1);
  EXPECT_EQ(all["missing"], (nlohmann::json{"b"}));
  EXPECT_EQ(all["missing_by_task"], (nlohmann::json{{"pack", {"b"}}}));
  EXPECT_EQ(report({"verify"})["missing"], (nlohmann::json{"a", "b"}));
}

TEST_F(Resume, PartsAreResultsOfTheirFile) {
  write("list", "a\n");
  write("1", line("pack", "a#1/2", "done", 1));
  write("2", line("pack", "a#2/2", "done", 2));
  write("failed", line("pack", "a#2/2", "failed", 3));
  write("whole", line("pack", "a", "done", 4));
  nlohmann::json all = report({"2", "1"});
  EXPECT_EQ(all["status"], 0);
  EXPECT_EQ(all["files"], 1);
  EXPECT_EQ(all["states"], (nlohmann::json{{"done", 1}}));
  all = report({"1"});
  EXPECT_EQ(all["status"], 1);
  EXPECT_EQ(all["missing"], (nlohmann::json{"a"}));
  EXPECT_EQ(report({"1"}, false)["status"], 1) << "its name says that there is another";
  EXPECT_EQ(report({"1", "2", "failed"})["states"], (nlohmann::json{{"failed", 1}}));
  EXPECT_EQ(report({"1", "failed", "whole"})["status"], 0) << "packed as a whole after that";
}

TEST_F(Resume, OfAClosedStandardInputNoArchiveIsMade) {
  const testing::ToolRun done = testing::run_tool({"pack", "-", "-o", "a.etlz"},
                                                  {.directory = directory.path().string(), .closed = {0}});
  EXPECT_EQ(done.status, 1);
  EXPECT_NE(done.err.find("standard input: is closed"), std::string::npos) << done.err;
  EXPECT_FALSE(exists("a.etlz"));
}

TEST_F(Resume, AnEmptyFolderIsNoSuccessBecauseOfArchivesElsewhere) {
  ASSERT_EQ(run({"pack", "-r", "t", "--out-dir", "out", "-q"}).status, 0);
  fs::create_directory(directory.path() / "mounted");
  EXPECT_EQ(run({"pack", "-r", "mounted", "--out-dir", "out", "--skip-existing", "--delete-original"}).status,
            1);
}

TEST_F(Resume, ANameThatIsTypedAndMissingIsAnErrorWhateverArchiveIsThere) {
  ASSERT_EQ(run({"pack", name(1), "-q"}).status, 0);
  ASSERT_TRUE(fs::remove(directory.file(name(1))));
  EXPECT_EQ(run({"pack", name(1), "--skip-existing", "--delete-original"}).status, 1);
}

// An archive has the time of its original, also when that was another one before.
TEST_F(Resume, WhatIsMadeOfAnArchiveIsMadeAnewWhenThatIs) {
  const auto days = [](int count) {
    return fs::file_time_type::clock::now() - std::chrono::hours(24 * count);
  };
  fs::last_write_time(directory.file(name(1)), days(3));
  ASSERT_EQ(run({"pack", "t/1.etl", "-q"}).status, 0);
  const Words exported = {"export",   "t/1.etlz", "--out-dir",       "out",
                          "--format", "jsonl",    "--skip-existing", "--force"};
  ASSERT_EQ(run(exported).status, 0);
  const std::string before = read("out/t/1.jsonl") + read("out/1.jsonl");
  fs::copy_file(directory.file(name(2)), directory.file(name(1)), fs::copy_options::overwrite_existing);
  fs::last_write_time(directory.file(name(1)), days(2));
  ASSERT_EQ(run({"pack", "t/1.etl", "-q", "--force"}).status, 0);
  ASSERT_EQ(run(exported).status, 0);
  EXPECT_NE(read("out/t/1.jsonl") + read("out/1.jsonl"), before);
}

TEST_F(Resume, AReportAsksForNoResultThatAFileCannotHave) {
  ASSERT_EQ(run({"pack", "-r", "t", "--results", "results", "-q"}).status, 0);
  ASSERT_EQ(run({"verify", "-r", "t", "--results", "results", "-q"}).status, 0);
  list();
  EXPECT_EQ(report({"results"})["status"], 0);
}

TEST_F(Resume, APipeHasNoNameThatTheArchiveWouldTell) {
  ASSERT_EQ(::mkfifo(directory.file("pipe").c_str(), 0600), 0);
  const std::string trace = read(name(1));
  std::thread writer([&] { std::ofstream(directory.file("pipe"), std::ios::binary) << trace; });
  EXPECT_EQ(run({"pack", "pipe", "-o", "piped.etlz", "-q"}).status, 0);
  writer.join();
  EXPECT_TRUE(read_archive_info(directory.file("piped.etlz"))->etl_name);
}

} // namespace
} // namespace etwrelog
