// Manual pages, completions and suggestions come from the commands' own descriptions and say the same.
#include "tests/support/generated.hpp"
#include "tests/support/run_tool.hpp"
#include "tests/support/trace_files.hpp"

#include <cstdlib>
#include <filesystem>
#include <regex>
#include <set>

#include <gtest/gtest.h>

namespace etwrelog {
namespace {

using testing::run_tool;
using testing::TempDir;
using testing::ToolRun;

std::string text_of(const std::string &path) {
  const auto bytes = testing::read_file(path);
  return {bytes.begin(), bytes.end()};
}

// As --help lists them at the beginning of a line.
std::set<std::string> commands() {
  const std::string help = run_tool({"--help"}).out;
  std::set<std::string> names;
  const std::string list = help.substr(help.find("Subcommands:"));
  const std::regex line("\n  ([a-z]+)  ");
  for (std::sregex_iterator i(list.begin(), list.end(), line), end; i != end; ++i)
    names.insert((*i)[1]);
  return names;
}

std::set<std::string> long_options(const std::string &help) {
  std::set<std::string> names;
  const std::regex option("\n  (?:-[A-Za-z],)?--([a-z-]+)");
  for (std::sregex_iterator i(help.begin(), help.end(), option), end; i != end; ++i)
    names.insert((*i)[1]);
  return names;
}

TEST(Reference, ManualPagesNameEveryOptionThatHelpNames) {
  TempDir directory;
  ASSERT_EQ(run_tool({"manual", directory.file("")}).status, 0);
  const std::set<std::string> names = commands();
  ASSERT_GE(names.size(), 8u);
  const std::string main_page = text_of(directory.file("etwrelog.1"));
  for (const std::string &name : names) {
    EXPECT_NE(main_page.find("\\fB" + name + "\\fR"), std::string::npos) << name;
    const std::string page = text_of(directory.file("etwrelog-" + name + ".1"));
    const std::set<std::string> options = long_options(run_tool({name, "--help"}).out);
    EXPECT_FALSE(options.empty()) << name;
    for (const std::string &option : options) {
      const std::string escaped = std::regex_replace(option, std::regex("-"), "\\-");
      EXPECT_NE(page.find("\\fB\\-\\-" + escaped + "\\fR"), std::string::npos) << name << " --" << option;
    }
  }
}

TEST(Reference, ManualPagesSayWhatHelpSaysOfDefaultsNeedsAndTopics) {
  TempDir directory;
  ASSERT_EQ(run_tool({"manual", directory.file("")}).status, 0);
  const auto page = [&](const std::string &name) { return text_of(directory.file(name + ".1")); };
  EXPECT_NE(page("etwrelog-relog").find("(default: 1G)"), std::string::npos);
  EXPECT_NE(page("etwrelog-fleet").find("(default: 10)"), std::string::npos);
  EXPECT_NE(page("etwrelog-info").find("(needs \\-\\-sum)"), std::string::npos);
  EXPECT_NE(page("etwrelog-profile").find("\\fB\\-\\-symbol\\-server\\fR\\fI[=URL]\\fR"), std::string::npos);
  EXPECT_NE(page("etwrelog-pack").find("the folder not synced"), std::string::npos);
  const std::string main_page = page("etwrelog");
  for (const char *topic : {"SELECTION", "INPUTS", "OUTPUTS", "EXIT STATUS", "SIZES"})
    EXPECT_NE(main_page.find(".SH " + std::string(topic) + "\n"), std::string::npos) << topic;
}

TEST(Reference, HelpShowsOptionsAsTheyAreWritten) {
  const std::string profile = run_tool({"profile", "--help"}).out;
  EXPECT_NE(profile.find("--symbol-server[=URL] "), std::string::npos) << profile;
  EXPECT_NE(profile.find("-p,--process TEXT  "), std::string::npos)
      << "one value each: what follows is a trace";
  EXPECT_NE(profile.find("TRACE TEXT ..."), std::string::npos);
  const std::string info = run_tool({"info", "--help"}).out, stats = run_tool({"stats", "--help"}).out;
  EXPECT_NE(info.find("--skip-existing Needs: --sum"), std::string::npos) << info;
  EXPECT_EQ(stats.find("--skip-existing Needs: --sum"), std::string::npos) << stats;
  for (const std::string command :
       {"info", "stats", "profile", "stacks", "symbols", "export", "schema", "query", "relog", "merge"})
    EXPECT_NE(run_tool({command, "--help"}).out.find(".zip, .xz, .zst, .gz or .bz2"), std::string::npos)
        << command;
}

TEST(Reference, CompletionsKnowWhatStandsBehindACommand) {
  TempDir directory;
  const std::string script = directory.file("completion");
  const auto written = [&](const std::string &shell) {
    const ToolRun run = run_tool({"completion", shell});
    testing::write_file(script,
                        Bytes(reinterpret_cast<const std::uint8_t *>(run.out.data()), run.out.size()));
    return std::system(("command -v " + shell + " >/dev/null 2>&1").c_str()) == 0;
  };
  const std::pair<std::string, std::string> cases[] = {{"fleet ", "list report"},
                                                       {"help se", "selection"},
                                                       {"help unp", "unpack"},
                                                       {"completion ", "bash fish zsh"}};
  const bool bash = written("bash");
  for (const auto &[typed, offered] : cases) {
    const std::string command = typed.substr(0, typed.find(' ')), word = typed.substr(typed.find(' ') + 1);
    const std::string ask =
        "source " + script + "; COMP_WORDS=(etwrelog " + command + " \"" + word +
        "\"); COMP_CWORD=2; _etwrelog; test \"$(printf \"%s\\n\" \"${COMPREPLY[@]}\" | sort | xargs)\" = \"" +
        offered + "\"";
    if (bash) {
      EXPECT_EQ(std::system(("bash -c '" + ask + "'").c_str()), 0) << typed;
    }
  }
  const bool fish = written("fish");
  for (const auto &[typed, offered] : cases) {
    const std::string ask = "source " + script + "; test \"$(complete -C \"etwrelog " + typed +
                            "\" | cut -f1 | sort | xargs)\" = \"" + offered + "\"";
    if (fish) {
      EXPECT_EQ(std::system(("fish -c '" + ask + "'").c_str()), 0) << typed;
    }
  }
  EXPECT_NE(run_tool({"completion", "zsh"}).out.find("'1:argument:(list report)'"), std::string::npos);
}

TEST(Reference, CompletionsParseAndKnowEveryCommand) {
  TempDir directory;
  const std::string script = directory.file("completion");
  for (const std::string shell : {"bash", "zsh", "fish"}) {
    const ToolRun run = run_tool({"completion", shell});
    ASSERT_EQ(run.status, 0);
    for (const std::string &name : commands())
      EXPECT_NE(run.out.find(name), std::string::npos) << shell << " " << name;
    testing::write_file(script,
                        Bytes(reinterpret_cast<const std::uint8_t *>(run.out.data()), run.out.size()));
    const bool there = std::system(("command -v " + shell + " >/dev/null 2>&1").c_str()) == 0;
    if (there) {
      EXPECT_EQ(std::system((shell + " -n " + script).c_str()), 0) << shell;
    }
  }
  const std::string ask = "source " + script +
                          "; COMP_WORDS=(etwrelog relog --level m); COMP_CWORD=3; "
                          "_etwrelog; test \"${COMPREPLY[*]}\" = max";
  const ToolRun bash = run_tool({"completion", "bash"});
  testing::write_file(script,
                      Bytes(reinterpret_cast<const std::uint8_t *>(bash.out.data()), bash.out.size()));
  EXPECT_EQ(std::system(("bash -c '" + ask + "'").c_str()), 0);
}

TEST(Reference, SuggestsWhatWasMeant) {
  const ToolRun command = run_tool({"relgo", "x.etl"});
  EXPECT_EQ(command.status, 2);
  EXPECT_NE(command.err.find("did you mean \"relog\"?"), std::string::npos) << command.err;
  const ToolRun option = run_tool({"relog", "x.etl", "--ouput", "y.etl"});
  EXPECT_EQ(option.status, 2);
  EXPECT_NE(option.err.find("did you mean \"--output\"?"), std::string::npos) << option.err;
  const ToolRun far = run_tool({"relog", "x.etl", "--xyzzyplugh"});
  EXPECT_EQ(far.status, 2);
  EXPECT_EQ(far.err.find("did you mean"), std::string::npos) << far.err;
  const ToolRun short_word = run_tool({"pack", "x.etl", "--best"});
  EXPECT_EQ(short_word.status, 2);
  EXPECT_EQ(short_word.err.find("did you mean"), std::string::npos)
      << "--help is no more like it: " << short_word.err;
}

TEST(Reference, KnowsWhatOtherProgramsCallItsCommands) {
  for (const auto &[word, command] :
       {std::pair("filter", "relog"), {"dump", "export"}, {"compress", "pack"}}) {
    const ToolRun run = run_tool({word, "x.etl"});
    EXPECT_EQ(run.status, 2);
    EXPECT_NE(run.err.find(std::string("did you mean \"") + command + "\"?"), std::string::npos) << run.err;
  }
}

TEST(Reference, ANumberBehindADashIsNoFile) {
  const TempDir directory;
  const std::string trace = directory.file("x.etl");
  testing::write_file(trace, testing::generated(1 << 16));
  for (const std::vector<std::string> &line :
       {std::vector<std::string>{"pack", "-9", trace}, {"stats", trace, "-5"}}) {
    const ToolRun run = run_tool(line);
    EXPECT_EQ(run.status, 2) << line[0];
    EXPECT_NE(run.err.find("is no option"), std::string::npos) << run.err;
  }
  EXPECT_FALSE(std::filesystem::exists(directory.file("x.etlz")));
  EXPECT_EQ(run_tool({"relog", trace, "-q", "-o", directory.file("o.etl"), "--from", "-5s"}).status, 0)
      << "the value of an option is one";
}

TEST(Reference, HelpKnowsCommandsAndTopicsAndNothingElse) {
  EXPECT_EQ(run_tool({"help", "relog"}).out, run_tool({"relog", "--help"}).out);
  EXPECT_NE(run_tool({"help"}).out.find("selection"), std::string::npos);
  EXPECT_EQ(run_tool({"help"}).out.find(run_tool({"--help"}).out.substr(0, 1000)), 0u)
      << "all commands first";
  EXPECT_NE(run_tool({"help", "selection"}).out.find("--provider"), std::string::npos);
  const std::string statuses = run_tool({"help", "exit-status"}).out;
  for (const char *status : {"\n0  ", "\n1  ", "\n2  ", "\n3  ", "\n4  "})
    EXPECT_NE(("\n" + statuses).find(status), std::string::npos) << statuses;
  const ToolRun wrong = run_tool({"help", "seletion"});
  EXPECT_EQ(wrong.status, 2);
  EXPECT_NE(wrong.err.find("did you mean \"selection\"?"), std::string::npos) << wrong.err;
}

} // namespace
} // namespace etwrelog
