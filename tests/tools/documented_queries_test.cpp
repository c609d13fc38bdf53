// SQL in docs/events.md answers of a real trace what stands above it there.
#include "tests/support/generated.hpp"
#include "tests/support/read_file.hpp"
#include "tests/support/run_tool.hpp"
#include "tests/support/trace_files.hpp"

#include <algorithm>
#include <map>
#include <regex>
#include <sstream>

#include <gtest/gtest.h>

namespace etwrelog {
namespace {

using testing::run_tool;
using testing::ToolRun;

struct DocumentedQuery {
  std::vector<std::string> options;
  std::string sql;
};

// Of traces of that name there; as a shell takes them: what stands between double quotes, in which two
// backslashes are one.
std::vector<DocumentedQuery> documented_queries(const std::string &trace = "T") {
  const std::vector<std::uint8_t> bytes =
      testing::read_file((testing::project_dir() / "docs/events.md").string());
  const std::string text(bytes.begin(), bytes.end());
  const std::regex command("etwrelog query " + trace + "\\.etl ([^\"\n]*)\"([^\"]*)\"");
  std::vector<DocumentedQuery> queries;
  for (std::sregex_iterator match(text.begin(), text.end(), command); match != std::sregex_iterator();
       ++match) {
    DocumentedQuery &query = queries.emplace_back();
    std::istringstream words((*match)[1].str());
    for (std::string word; words >> word;)
      query.options.push_back(word);
    query.sql = std::regex_replace((*match)[2].str(), std::regex("\\\\\\\\"), "\\");
  }
  return queries;
}

// Lines of the answer, first that of the names.
std::vector<std::string> ask(const std::string &trace, const DocumentedQuery &query) {
  std::vector<std::string> line{"query", trace};
  line.insert(line.end(), query.options.begin(), query.options.end());
  line.push_back(query.sql);
  const ToolRun run = run_tool(line);
  EXPECT_EQ(run.status, 0) << query.sql << run.err;
  std::vector<std::string> rows;
  std::istringstream lines(run.out);
  for (std::string row; std::getline(lines, row);)
    rows.push_back(row);
  return rows;
}

class DocumentedQueries : public ::testing::Test {
protected:
  void SetUp() override {
    const auto found = testing::trace_path("net.4.5.2.x64");
    if (!found) GTEST_SKIP() << "the real traces are not here";
    trace_ = found->string();
  }
  // Lines behind that of the names.
  [[nodiscard]] std::vector<std::string> answer(const std::string &sql,
                                                const std::vector<std::string> &options = {}) const {
    std::vector<std::string> rows = ask(trace_, {options, sql});
    if (!rows.empty()) rows.erase(rows.begin());
    return rows;
  }
  // Of the documented query that has this in it.
  [[nodiscard]] std::vector<std::string> answer_with(const std::string &part) const {
    for (const DocumentedQuery &query : documented_queries())
      if (query.sql.find(part) != std::string::npos) return answer(query.sql, query.options);
    ADD_FAILURE() << "docs/events.md has no query with " << part;
    return {};
  }
  std::string trace_;
};

// Lines that the one query of traces of another name has for this one.
std::vector<std::string> answer_of(const std::string &name, const std::string &path) {
  const std::vector<DocumentedQuery> queries = documented_queries(name);
  EXPECT_EQ(queries.size(), 1u);
  return queries.empty() ? std::vector<std::string>() : ask(path, queries[0]);
}

TEST(DocumentedQueriesOfOthers, TellWhatWasReceivedFromWhere) {
  const auto trace = testing::trace_path("KernelNetwork");
  if (!trace) GTEST_SKIP() << "the real traces are not here";
  const std::vector<std::string> rows = answer_of("N", trace->string());
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[1], "2716\t157.56.244.38\t443\t7968\t15315588");
}

TEST(DocumentedQueriesOfOthers, TellWhichKeysWereChanged) {
  gen::Options options;
  options.profile = gen::find_profile("real");
  options.size = 4'000'000;
  const testing::TempDir directory;
  testing::write_file(directory.file("r.etl"), testing::generated(options));
  const std::vector<std::string> rows = answer_of("R", directory.file("r.etl"));
  ASSERT_EQ(rows.size(), 11u);
  EXPECT_EQ(rows[0], "process\tregistry_key\tvalue\ttimes\tms");
  for (std::size_t i = 1; i < rows.size(); ++i)
    EXPECT_NE(rows[i].find("\t\\REGISTRY\\"), std::string::npos) << rows[i];
}

TEST_F(DocumentedQueries, AllFindSomething) {
  const std::vector<DocumentedQuery> queries = documented_queries();
  EXPECT_GE(queries.size(), 9u);
  for (const DocumentedQuery &query : queries)
    EXPECT_FALSE(answer(query.sql, query.options).empty()) << query.sql;
}

TEST_F(DocumentedQueries, EachCollectionStopsItsProcessOnce) {
  std::map<std::string, std::string> pauses;
  for (const std::string &row : answer_with("GCSuspendEEBegin")) {
    const std::size_t first = row.find('\t'), second = row.find('\t', first + 1);
    pauses[row.substr(0, first)] = row.substr(first + 1, second - first - 1);
  }
  std::map<std::string, std::string> restarts;
  for (const std::string &row : answer(
           "select process, count(*) from Microsoft_Windows_DotNETRuntime_GarbageCollection_GCRestartEEEnd "
           "group by 1"))
    restarts[row.substr(0, row.find('\t'))] = row.substr(row.find('\t') + 1);
  EXPECT_EQ(restarts["Test.x64.exe"], "264");
  EXPECT_EQ(pauses, restarts);
}

// No id was given again in this trace.
TEST_F(DocumentedQueries, TheTreeHasEveryProcess) {
  std::vector<std::string> in_tree;
  for (const std::string &row : answer_with("recursive tree")) {
    const std::size_t first = row.find('\t'), second = row.find('\t', first + 1);
    const std::size_t name = row.find_first_not_of(' ');
    in_tree.push_back(row.substr(name, second - name));
  }
  std::vector<std::string> all = answer("select name, process_id from processes");
  std::ranges::sort(in_tree);
  std::ranges::sort(all);
  EXPECT_EQ(in_tree, all);
}

} // namespace
} // namespace etwrelog
