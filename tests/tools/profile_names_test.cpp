// Names in a profile from end to end: a trace with a sample at every address of a program whose PDB clang and
// lld made, and what llvm-symbolizer says of each of these addresses.
#include "etwrelog/symbols.hpp"
#include "tests/support/run_tool.hpp"
#include "tests/support/symbol_files.hpp"
#include "tests/support/synthetic_trace.hpp"
#include "tests/support/zip_files.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <tuple>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace etwrelog {
namespace {

using nlohmann::json;
using namespace test_support;
using testing::run_tool;
using testing::SyntheticTrace;

constexpr std::uint64_t kBase = 0x7FF7'0000'0000;
constexpr std::uint32_t kProcess = 100, kThread = 101;

// The line of demo.cpp that bears the mark "line: NAME".
std::uint32_t marked(const std::string &name) {
  std::ifstream file(demo_pdb()->source);
  std::uint32_t number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (line.ends_with("// line: " + name)) return number;
  }
  return 0;
}

class ProfileNames : public ::testing::Test {
protected:
  void SetUp() override {
    if (!SymbolResolver::reads_pdb()) GTEST_SKIP() << "built without LLVM";
    if (!demo_pdb()) GTEST_SKIP() << "no clang++ and lld-link here to make a PDB with";
    places = symbolizer_answers(*demo_pdb());
    if (places.empty()) GTEST_SKIP() << "no llvm-symbolizer here to judge by";
    plant();
  }

  // A sample at every address that has a name, called from `entry`.
  void plant() {
    SyntheticTrace t;
    t.process_rundown({1'100'000}, kProcess, 4, "demo.exe");
    t.thread_rundown({1'100'001}, kThread, kProcess);
    t.emit({1'100'002}, [](write::EventBuilder &e) {
      e.system(0x030A, 3, 8, kThread, kProcess, 1'100'002);
      e.value(kBase).value(0x10000).value(kProcess).rest(10).text("\\Device\\demo.exe");
    });
    t.emit({1'100'003}, [](write::EventBuilder &e) {
      e.classic(format::kImageIdGuid, 36, 2, 8, kUnknownId, kProcess, 1'100'003);
      e.pointer(kBase).put(kProcess).put(demo_pdb()->guid).put(demo_pdb()->age).astr("C:\\build\\demo.pdb");
    });
    const auto in_entry = std::find_if(places.begin(), places.end(), [](const auto &place) {
      return place.second.size() == 1 && place.second[0].function == "entry";
    });
    ASSERT_NE(in_entry, places.end());
    caller = in_entry->first + 1; // a return address: names are those of the byte before it
    std::int64_t time = 2'000'000;
    for (const auto &[rva, frames] : places) {
      time += 10'000;
      t.context_switch({time - 100}, kThread, 0);
      t.sample({time}, kThread, kBase + rva);
      t.stack_walk({time + 1}, time, kProcess, kThread, {kBase + rva, kBase + caller});
    }
    const std::vector<std::uint8_t> bytes = t.bytes();
    folder = new_folder("names");
    ::setenv("XDG_CACHE_HOME", folder.c_str(), 1); // what another test has found is not known here
    trace = folder + "/demo.etl";
    write_file(trace, std::string(bytes.begin(), bytes.end()));
  }

  json profile(std::vector<std::string> options) {
    options.insert(options.begin(),
                   {"profile", trace, "--symbols", demo_pdb()->folder, "--json", "--top", "0"});
    const testing::ToolRun run = run_tool(options);
    EXPECT_EQ(run.status, 0) << run.err;
    return run.status == 0 ? json::parse(run.out) : json();
  }

  std::map<std::uint32_t, std::vector<Place>> places;
  std::uint32_t caller = 0;
  std::string folder, trace;
};

TEST_F(ProfileNames, FunctionsLinesAndInlineFramesAreThoseOfTheSymbolizer) {
  std::map<std::string, std::uint64_t> stacks;
  std::string caller_name = "demo.exe!" + places[caller - 1].back().function;
  std::size_t inlined = 0;
  for (const auto &[rva, frames] : places) {
    std::string stack = "demo.exe (100);" + caller_name;
    for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame)
      stack += ";demo.exe!" + frame->function + (frame == frames.rbegin() ? "" : "_[i]");
    inlined += frames.size() - 1;
    ++stacks[stack];
  }
  ASSERT_GT(stacks.size(), 5u);
  ASSERT_GT(inlined, 20u);
  const std::string folded = folder + "/x.folded";
  const testing::ToolRun run =
      run_tool({"profile", trace, "--symbols", demo_pdb()->folder, "-o", folded, "--force"});
  ASSERT_EQ(run.status, 0) << run.err;
  std::istringstream lines(read_file(folded));
  std::map<std::string, std::uint64_t> found;
  for (std::string line; std::getline(lines, line);)
    found[line.substr(0, line.rfind(' '))] += std::stoul(line.substr(line.rfind(' ') + 1));
  EXPECT_EQ(found, stacks);
}

TEST_F(ProfileNames, ThatThereAreNoneForJoinedStacksIsSaid) {
  const testing::TempDir empty;
  for (const bool there : {false, true}) { // in this order: what was found is known without the folder
    for (const std::vector<std::string> &command :
         {std::vector<std::string>{"export", trace},
          {"query", trace, "select stack from PerfInfo_SampleProf"}}) {
      std::vector<std::string> line = command;
      for (const std::string &more : {std::string("--join"), std::string("stack"), std::string("--symbols"),
                                      there ? demo_pdb()->folder : empty.file("")})
        line.push_back(more);
      const testing::ToolRun run = run_tool(line);
      EXPECT_EQ(run.status, 0);
      EXPECT_EQ(run.err.find("no symbols were found") == std::string::npos, there) << run.err;
    }
  }
}

// Of an address inside a call that the compiler put in place, the function that it stands in.
TEST_F(ProfileNames, JoinedStacksHaveThemWhereTheyAreAskedFor) {
  const std::vector<std::string> join = {"--join", "stack", "--symbols", demo_pdb()->folder};
  const auto run = [&](std::vector<std::string> line, const std::vector<std::string> &more) {
    line.insert(line.end(), more.begin(), more.end());
    const testing::ToolRun done = run_tool(line);
    EXPECT_EQ(done.status, 0) << done.err;
    return done.out;
  };
  const std::string caller_name = "demo.exe!" + places[caller - 1].back().function + "+0x";
  std::vector<std::string> found;
  std::istringstream lines(run({"export", trace, "--event", "SampleProf"}, join));
  auto place = places.begin();
  std::map<std::string, std::uint64_t> begins;
  for (std::string line; std::getline(lines, line); ++place) {
    const json stack = json::parse(line)["stack"];
    ASSERT_EQ(stack.size(), 2u);
    ASSERT_NE(place, places.end());
    const std::string frame = stack[0];
    const std::size_t offset = frame.rfind("+0x");
    EXPECT_EQ(frame.substr(0, offset), "demo.exe!" + place->second.back().function);
    // Whatever the address, its function begins where it does.
    const std::uint64_t begin = place->first - std::stoull(frame.substr(offset + 3), nullptr, 16);
    EXPECT_EQ(begins.try_emplace(frame.substr(0, offset), begin).first->second, begin) << frame;
    EXPECT_TRUE(stack[1].get<std::string>().starts_with(caller_name)) << stack;
    found.push_back(stack.dump());
  }
  EXPECT_EQ(place, places.end());
  EXPECT_GT(begins.size(), 2u);
  std::istringstream rows(run({"query", trace, "--json", "select stack from PerfInfo_SampleProf"}, join));
  std::size_t row = 0;
  for (std::string line; std::getline(rows, line); ++row)
    EXPECT_EQ(json::parse(line)["stack"], found.at(row));
  EXPECT_EQ(row, found.size());
  const std::string archive = folder + "/demo.etlz";
  ASSERT_EQ(run_tool({"pack", trace, "-o", archive}).status, 0);
  EXPECT_EQ(run({"export", archive, "--event", "SampleProf"}, join),
            run({"export", trace, "--event", "SampleProf"}, join));
  ::setenv("_NT_SYMBOL_PATH", demo_pdb()->folder.c_str(), 1);
  const std::string unnamed = run({"export", trace, "--event", "SampleProf", "--join", "stack"}, {});
  ::unsetenv("_NT_SYMBOL_PATH");
  EXPECT_EQ(unnamed.find("demo.exe!"), std::string::npos) << "nobody asked for names";
  EXPECT_EQ(run_tool({"export", trace, "--symbols", demo_pdb()->folder}).status, 2);
}

TEST_F(ProfileNames, NoneLooksNowhereInEveryCommand) {
  ::setenv("_NT_SYMBOL_PATH", demo_pdb()->folder.c_str(), 1);
  const auto state = [this](std::vector<std::string> more) {
    more.insert(more.begin(), {"symbols", trace, "--json"});
    return json::parse(run_tool(more).out)["modules"][0]["state"].get<std::string>();
  };
  EXPECT_EQ(state({}), "found");
  EXPECT_EQ(state({"--symbols", "none"}), "not looked for") << "although it is in the cache by now";
  const testing::ToolRun profile = run_tool({"profile", trace, "--symbols", "none", "--json", "--top", "0"});
  ::unsetenv("_NT_SYMBOL_PATH");
  EXPECT_EQ(profile.status, 0) << profile.err;
  EXPECT_EQ(profile.out.find("physics"), std::string::npos);
}

TEST_F(ProfileNames, ByLineCountsWhereTheSamplesAre) {
  std::map<std::uint32_t, std::uint64_t> expected, found; // by line, self
  const std::uint32_t weight = marked("weight"), inner = marked("inner");
  for (const auto &[rva, frames] : places) {
    const std::uint32_t line = frames.front().line;
    ++expected[frames.front().function == "game::inner" ? inner : line];
  }
  ASSERT_GT(expected[weight], 20u);
  ASSERT_GT(expected[inner], 20u);
  const json report = profile({"--by", "line"});
  for (const json &row : report["rows"]) {
    const std::string name = row["name"]; // "demo.exe!game::physics (.../demo.cpp:22)"
    const std::size_t at = name.rfind("demo.cpp:");
    ASSERT_NE(at, std::string::npos) << name;
    const auto line =
        static_cast<std::uint32_t>(std::stoul(name.substr(at + std::string("demo.cpp:").size())));
    const bool of_inner = name.starts_with("demo.exe!game::inner (");
    if (of_inner) {
      EXPECT_TRUE(line == inner || line == inner + 1) << name;
    }
    if (row["self"].get<std::uint64_t>() != 0)
      found[of_inner ? inner : line] += row["self"].get<std::uint64_t>();
  }
  EXPECT_EQ(found, expected) << report["rows"].dump(1);
}

// Exported without the PDB, named with it: the same stacks as named at once.
TEST_F(ProfileNames, AnExportIsNamedLater) {
  const std::string at_once = folder + "/once.folded";
  ASSERT_EQ(run_tool({"profile", trace, "--symbols", demo_pdb()->folder, "-o", at_once}).status, 0);
  const auto lines = [](const std::string &path) { // marks of the kind of code are not in every format
    std::map<std::string, std::uint64_t> found;
    std::istringstream text(read_file(path));
    for (std::string line; std::getline(text, line);) {
      std::string stack = line.substr(0, line.rfind(' '));
      for (std::size_t mark; (mark = stack.find("_[i]")) != std::string::npos;)
        stack.erase(mark, 4);
      found[stack] += std::stoul(line.substr(line.rfind(' ') + 1));
    }
    return found;
  };
  for (const std::string ending : {"firefox.json.gz", "speedscope.json", "pb.gz"}) {
    const std::string bare = folder + "/x." + ending, named = folder + "/x." + ending + ".folded";
    ASSERT_EQ(run_tool({"profile", trace, "--symbols", folder, "-o", bare}).status, 0);
    const std::string before = read_file(bare);
    const testing::ToolRun run =
        run_tool({"symbols", "--apply", bare, "--symbols", demo_pdb()->folder, "-o", named});
    ASSERT_EQ(run.status, 0) << run.err;
    EXPECT_EQ(lines(named), lines(at_once)) << ending;
    ASSERT_EQ(run_tool({"symbols", "--apply", bare, "--symbols", demo_pdb()->folder}).status, 0);
    EXPECT_TRUE(std::filesystem::exists(folder + "/x.named." + ending));
    EXPECT_EQ(read_file(bare), before);
    EXPECT_EQ(run_tool({"symbols", "--apply", bare}).status, 1) << "the output is there already";
    EXPECT_EQ(run_tool({"symbols", "--apply", bare, "-o", bare, "--force"}).status, 2)
        << "no input is replaced";
  }
  EXPECT_EQ(run_tool({"symbols", "--apply", trace}).status, 1);
  const testing::ToolRun wrong =
      run_tool({"symbols", "--apply", folder + "/x.pb.gz", "-o", folder + "/x.xyz"});
  EXPECT_EQ(wrong.status, 2);
  EXPECT_NE(wrong.err.find("no ending that tells a format"), std::string::npos) << wrong.err;
  EXPECT_FALSE(std::filesystem::exists(folder + "/x.xyz"));
}

TEST_F(ProfileNames, DifferencesHaveThem) {
  const std::string name = "demo.exe!" + places[caller - 1].back().function;
  const auto named = [&](const std::string &symbols) {
    const std::string output = folder + "/diff.folded";
    EXPECT_EQ(run_tool({"diff", trace, "--new", trace, "--symbols", symbols, "-f", "-o", output}).status, 0);
    return read_file(output).find(name) != std::string::npos;
  };
  EXPECT_TRUE(named(demo_pdb()->folder));
  EXPECT_FALSE(named("none"));
  // Of another build there is no PDB: what has names on one side alone is told.
  std::string other = read_file(trace);
  const auto *const id = reinterpret_cast<const char *>(&demo_pdb()->guid);
  const std::size_t at = other.find(std::string(id, sizeof demo_pdb()->guid));
  ASSERT_NE(at, std::string::npos);
  other[at] = static_cast<char>(other[at] + 1);
  write_file(folder + "/other.etl", other);
  for (const auto &[before, after, which] :
       {std::tuple("other", "demo", "old"), std::tuple("demo", "other", "new")}) {
    const testing::ToolRun run = run_tool({"diff", folder + "/" + before + ".etl", "--new",
                                           folder + "/" + after + ".etl", "--symbols", demo_pdb()->folder});
    EXPECT_EQ(run.status, 0) << run.err;
    EXPECT_NE(run.err.find("demo.exe has no names on the " + std::string(which) + " side alone"),
              std::string::npos)
        << run.err;
  }
}

// No folder with the PDB: every frame keeps module and offset, and the reason is there with its cost.
TEST_F(ProfileNames, WithoutThePdbItsCostIsTold) {
  const testing::ToolRun run = run_tool({"profile", trace, "--symbols", folder, "--json"});
  ASSERT_EQ(run.status, 0) << run.err;
  const json unresolved = json::parse(run.out)["unresolved"]["modules"];
  ASSERT_EQ(unresolved.size(), 1u);
  EXPECT_EQ(unresolved[0]["module"], "demo.exe");
  EXPECT_EQ(unresolved[0]["reason"], "PDB not found");
  EXPECT_EQ(unresolved[0]["self"], places.size());
}

// libcurl is loaded when a server is to be asked: without it all else goes on, and the reason is told.
TEST_F(ProfileNames, AServerThatNothingCanAskIsToldWithItsReason) {
  if (!SymbolResolver::has_network()) GTEST_SKIP() << "built without libcurl, or none here";
  const std::string none = folder + "/no-libraries";
  for (const char *name : {"/libcurl.so.4", "/libcurl-gnutls.so.4"})
    write_file(none + name, "");
  ::setenv("LD_LIBRARY_PATH", none.c_str(), 1);
  ::setenv("XDG_CACHE_HOME", folder.c_str(), 1);
  const testing::ToolRun run =
      run_tool({"profile", trace, "--symbols", folder, "--symbol-server=http://127.0.0.1:9", "--json"});
  ::unsetenv("LD_LIBRARY_PATH");
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(json::parse(run.out)["unresolved"]["modules"].size(), 1u);
  EXPECT_NE(run.err.find("install libcurl4"), std::string::npos) << run.err;
}

// PerfView's .etl.zip: the PDBs of the trace lie beside it in the layout of a store, whatever other builds
// are.
TEST_F(ProfileNames, PdbsInsideTheZipOfTheTraceAreFound) {
  const auto bytes = [](const std::string &text) {
    return std::vector<std::uint8_t>(text.begin(), text.end());
  };
  const std::vector<std::uint8_t> pdb = bytes(read_file(demo_pdb()->folder + "/demo.pdb"));
  const testing::ZipMember inside{"demo.etl", bytes(read_file(trace))};
  std::string key = to_string(demo_pdb()->guid);
  std::erase(key, '-');
  key += std::to_string(demo_pdb()->age);
  std::vector<testing::ZipMember> store{inside};
  for (int i = 0; i < 20; ++i)
    store.emplace_back("symbols/demo.pdb/" + std::to_string(i) + "/demo.pdb", bytes("another build"));
  store.emplace_back("symbols/Demo.pdb/" + key + "/Demo.pdb", pdb);
  const std::vector<testing::ZipMember> flat{inside, {"demo.etl.NGENPDB/demo.pdb", pdb}};
  const std::vector<testing::ZipMember> none{inside, store[1]};
  // Names in UTF-8, as Windows' own programs mark them where they are not ASCII.
  constexpr unsigned kUtf8 = 0x800;
  const testing::StoredZip abroad{.members = {inside,
                                              {"Prüfstand/notes.txt", bytes("of a lab")},
                                              {"Prüfstand/symbols/demo.pdb/" + key + "/demo.pdb", pdb}},
                                  .flags = kUtf8};
  const auto functions = [&](const std::string &name, const std::vector<std::uint8_t> &zipped) {
    const std::string zip = folder + "/" + name + "/demo.etl.zip";
    write_file(zip, std::string(zipped.begin(), zipped.end()));
    ::setenv("XDG_CACHE_HOME", (folder + "/" + name).c_str(), 1);
    const testing::ToolRun run = run_tool({"profile", zip, "--json", "--top", "0"});
    EXPECT_EQ(run.status, 0) << run.err;
    return run.status == 0 ? json::parse(run.out)["rows"] : json();
  };
  const json expected = profile({})["rows"];
  EXPECT_EQ(functions("store", testing::zip_of(store)), expected);
  EXPECT_EQ(functions("flat", testing::zip_of(flat)), expected);
  EXPECT_EQ(functions("abroad", abroad.bytes()), expected);
  EXPECT_NE(functions("none", testing::zip_of(none)), expected);
}

} // namespace
} // namespace etwrelog
