// Errors as values: what they say, in whose words, and that the library leaves flags to the programs.
#include "base/errors.hpp"
#include "etwrelog/text.hpp"
#include "tests/support/trace_files.hpp"

#include <filesystem>
#include <fstream>
#include <regex>

#include <gtest/gtest.h>

namespace etwrelog {
namespace {

namespace fs = std::filesystem;

std::string_view flag(Option option) {
  return option == Option::from     ? "--from"
         : option == Option::to     ? "--to"
         : option == Option::memory ? "--memory-limit"
                                    : "?";
}

TEST(Error, NamesOptionsInTheWordsOfTheProgram) {
  const Error error =
      base::bad_option(Option::from, "the range is empty").in("a.etl").about(Option::from, Option::to);
  EXPECT_EQ(error.kind, ErrorKind::usage);
  EXPECT_EQ(error.message(), "a.etl: Selection::from and Selection::to: the range is empty");
  EXPECT_EQ(error.message(flag), "a.etl: --from and --to: the range is empty");
  const Error limit = base::over_limit("the index").expected("10 bytes").advise(Advice::raise_memory);
  EXPECT_EQ(limit.message(flag), "the index: expected 10 bytes; raise --memory-limit");
}

// What one name of a program's stands for, several structs of the library have.
TEST(Error, AdviceNamesTheOptionOfTheCallThatItIsAbout) {
  const auto tool = [](Option option) -> std::string_view {
    return option == Option::salvage ? "--salvage" : "--stack-memory";
  };
  EXPECT_EQ(advice_text(Advice::salvage_archive),
            "unpacking it with UnpackOptions::salvage gives back what is whole");
  EXPECT_EQ(advice_text(Advice::salvage_archive, tool),
            "unpacking it with --salvage gives back what is whole");
  EXPECT_EQ(advice_text(Advice::salvage), "OpenOptions::salvage skips what is damaged");
  EXPECT_EQ(advice_text(Advice::more_stack_memory), "allow more memory for stacks");
  EXPECT_EQ(advice_text(Advice::more_stack_memory, tool), "give a larger --stack-memory");
}

TEST(Error, EveryOptionAndAdviceHasWords) {
  for (unsigned i = 1; i < static_cast<unsigned>(Option::count_); ++i)
    EXPECT_FALSE(option_name(static_cast<Option>(i)).empty()) << i;
  for (unsigned i = 1; i < static_cast<unsigned>(Advice::count_); ++i)
    EXPECT_FALSE(advice_text(static_cast<Advice>(i)).empty()) << i;
  EXPECT_EQ(option_name(Option::none), "");
  EXPECT_EQ(advice_text(Advice::none), "");
  EXPECT_EQ(option_name(static_cast<Option>(255)), "");
}

TEST(Error, IsOneLineThatATerminalCanBeGiven) {
  const Error error = base::io_failure("cannot read").in("a\x1b[31m\n\xff\xc3\xa9.etl");
  EXPECT_EQ(error.message(), "a\\x1b[31m\\x0a\\xff\xc3\xa9.etl: cannot read");
  EXPECT_EQ(printable("\xe2\x82\xac \xed\xa0\x80 \xc0\x80 \xc2\x9b \xf0\x9f\x98\x80"),
            "\xe2\x82\xac \\xed\\xa0\\x80 \\xc0\\x80 \\xc2\\x9b \xf0\x9f\x98\x80");
  EXPECT_EQ(printable("\xe2\x82"), "\\xe2\\x82");
  EXPECT_EQ(printable("exe.\u202Eetl \u2066x\u2069 \u2013"),
            "exe.\\xe2\\x80\\xaeetl \\xe2\\x81\\xa6x\\xe2\\x81\\xa9 \u2013");
}

Result<int> half(int n) {
  if (n % 2 != 0) return base::corrupt("odd").at(static_cast<std::uint64_t>(n));
  return n / 2;
}
Result<int> quarter(int n) {
  ETWRELOG_TRY_LET(once, half(n));
  ETWRELOG_TRY_LET(twice, half(once));
  return twice;
}
Result<void> check(int n) {
  ETWRELOG_TRY(quarter(n));
  return {};
}

TEST(Error, IsHandedOnByTry) {
  EXPECT_EQ(*quarter(12), 3);
  EXPECT_EQ(quarter(6).error().offset, 3u);
  EXPECT_TRUE(check(8));
  EXPECT_EQ(check(7).error().what, "odd");
}

// A window or a C program gets the library's texts too: they name no flag of the command line.
TEST(Error, NoTextOfTheLibraryNamesAFlag) {
  const fs::path root = testing::project_dir();
  const std::regex text("\"(?:[^\"\\\\\n]|\\\\.)*--[a-z](?:[^\"\\\\\n]|\\\\.)*\"");
  std::size_t files = 0;
  for (const char *folder : {"stages", "pipeline"})
    for (const fs::directory_entry &entry : fs::recursive_directory_iterator(root / folder)) {
      if (entry.path().extension() != ".cpp" && entry.path().extension() != ".hpp") continue;
      ++files;
      std::ifstream file(entry.path());
      std::size_t number = 0;
      for (std::string line; std::getline(file, line);) {
        ++number;
        if (line.find("--") != std::string::npos) {
          EXPECT_FALSE(std::regex_search(line, text)) << entry.path() << ":" << number << ": " << line;
        }
      }
    }
  EXPECT_GT(files, 80u);
}

} // namespace
} // namespace etwrelog
