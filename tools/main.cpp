#include "tools/cli.hpp"
#include "tools/commands.hpp"
#include "tools/process.hpp"
#include "tools/reference.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>

namespace {

namespace cli = etwrelog::cli;

// What is empty and may not be: a variable that a script believes to be set. Its option would be taken for
// one that was not given, and all of a trace for what was asked for.
std::optional<std::string> empty_argument(const std::vector<std::string> &arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string &argument = arguments[i];
    if (argument.starts_with("--") && argument.ends_with('=') && argument.find('=') + 1 == argument.size())
      return argument.substr(0, argument.size() - 1) + ": the value is empty; give one, or leave it out";
    if (!argument.empty()) continue;
    const bool behind_option = i != 0 && arguments[i - 1].size() > 1 && arguments[i - 1].starts_with('-') &&
                               arguments[i - 1] != "--";
    return (behind_option ? "the argument behind " + arguments[i - 1] : "argument " + std::to_string(i + 1)) +
           " is empty; give a value, or leave it out";
  }
  return std::nullopt;
}

// The command that was given; null: none, but help or the version.
const CLI::App *chosen(const CLI::App &app) {
  const std::vector<const CLI::App *> all = app.get_subcommands(nullptr);
  const auto parsed = std::ranges::find_if(all, [](const CLI::App *c) { return c->parsed(); });
  return parsed == all.end() ? nullptr : *parsed;
}

bool is_one_of(const CLI::App &command, std::span<const std::string_view> names) {
  return std::ranges::find(names, command.get_name()) != names.end();
}

bool is_given(const CLI::App &command, const char *name) {
  const CLI::Option *const option = command.get_option_no_throw(name);
  return option != nullptr && option->count() != 0;
}

bool writes_files(const CLI::App &command) {
  constexpr std::string_view kWriters[] = {"relog", "merge", "export", "pack", "unpack", "join"};
  return is_one_of(command, kWriters) || is_given(command, "--output") || is_given(command, "--export");
}

// Where CLI11's say little.
std::string in_our_words(const std::string &what, const std::vector<std::string> &arguments) {
  constexpr std::string_view kNoNumber = "Could not convert: ", kIs = " = ",
                             kNoCommand = "A subcommand is required",
                             kTooMuch = "The following argument was not expected: ";
  if (what.starts_with(kNoNumber))
    if (const std::size_t is = what.find(kIs); is != std::string::npos)
      return fmt::format("{}: expected a number that it can have, found \"{}\"",
                         what.substr(kNoNumber.size(), is - kNoNumber.size()), what.substr(is + kIs.size()));
  if (what.starts_with(kTooMuch)) {
    const std::string argument = what.substr(kTooMuch.size());
    return fmt::format("\"{}\" is {}", argument,
                       argument.starts_with('-') ? "no option" : "one argument too many");
  }
  if (what.find(cli::kTakenForAFile) != std::string::npos)
    return what.substr(what.find('"')); // behind the name of the positional argument
  if (what == kNoCommand && !arguments.empty() && arguments.front().starts_with('-'))
    return fmt::format("\"{}\" stands where a command should", arguments.front());
  if (what == kNoCommand) return "no command is given";
  return what;
}

// Whether what a command says is what it was called for, and lost where nobody can read it. One that writes
// files says on standard output no more than how that went.
bool result_is_text(const CLI::App *command) {
  constexpr std::string_view kChecks[] = {"verify"}; // its status says it all
  if (command == nullptr || is_given(*command, "--json") || is_given(*command, "--help")) return true;
  return !writes_files(*command) && !is_one_of(*command, kChecks);
}

// Of a command whose words could not be written: its files may be there all the same.
int status_without_words(const CLI::App *command, int status) {
  const bool written =
      status != cli::kFailed && command != nullptr && writes_files(*command) && !is_given(*command, "--help");
  return written ? cli::kIncomplete : cli::kFailed;
}

} // namespace

int main(int argc, char **argv) {
  using namespace etwrelog;
  process::open_standard_streams();
  process::catch_stop_requests();
  CLI::App app("etwrelog: reads, filters, relogs and archives ETW traces (.etl), on any platform");
  app.name("etwrelog");
  app.set_version_flag("--version", "etwrelog " ETWRELOG_VERSION);
  app.require_subcommand(1);
  app.formatter(cli::help_formatter()); // that of its commands, too
  const std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  app.failure_message([&](const CLI::App *, const CLI::Error &error) {
    const std::string meant = cli::suggestion(app, arguments);
    const CLI::App *const command = chosen(app);
    return fmt::format("etwrelog: error: {}; \"etwrelog {}--help\" lists {}options\n",
                       printable(meant.empty() ? in_our_words(error.what(), arguments) : meant),
                       command != nullptr ? command->get_name() + " " : std::string(),
                       command != nullptr ? "its " : "commands and ");
  });
  if (const std::optional<std::string> empty = empty_argument(arguments)) {
    process::print_message(fmt::format("etwrelog: error: {}\n", *empty));
    return cli::kUsage;
  }
  int exit_status = cli::kDone;
  cli::add_commands(app, exit_status);
  // "diff BASE... -- NEW...": CLI11 drops the "--", which tells the two apart.
  std::vector<char *> words(argv, argv + argc);
  static char kNew[] = "--new";
  if (argc > 2 && std::string_view(argv[1]) == "diff")
    for (char *&word : words)
      if (std::string_view(word) == "--") word = kNew;
  try {
    app.parse(argc, words.data());
  } catch (const CLI::ParseError &error) {
    if (app.exit(error) != 0) return cli::kUsage;
  } catch (const std::system_error &error) {
    // Whoever read our output has seen enough ("| head"); that is no failure to talk about.
    if (error.code() == std::errc::broken_pipe) return cli::kFailed;
    const std::string what = std::ferror(stdout) != 0
                                 ? "cannot write to standard output: " + error.code().message()
                                 : error.what();
    process::print_message(fmt::format("etwrelog: error: {}\n", what));
    return std::ferror(stdout) != 0 ? status_without_words(chosen(app), exit_status) : cli::kFailed;
  } catch (const std::bad_alloc &) {
    process::print_message("etwrelog: error: out of memory; use fewer --threads\n");
    return cli::kFailed;
  } catch (const std::exception &error) {
    process::print_message(fmt::format("etwrelog: error: {}\n", error.what()));
    return cli::kFailed;
  }
  if (process::standard_output_was_closed() && exit_status != cli::kFailed && exit_status != cli::kUsage &&
      result_is_text(chosen(app))) {
    process::print_message("etwrelog: error: standard output is closed: nobody can read the result\n");
    return status_without_words(chosen(app), exit_status);
  }
  const bool flushed = std::fflush(stdout) == 0;
  const int reason = errno; // where it was flushed, of what failed last
  if (!flushed || std::ferror(stdout) != 0) {
    // A command that has failed has said so, and more.
    if (reason != EPIPE && exit_status != cli::kFailed)
      process::print_message(
          fmt::format("etwrelog: error: cannot write to standard output{}\n",
                      flushed ? std::string() : ": " + std::generic_category().message(reason)));
    return status_without_words(chosen(app), exit_status);
  }
  return exit_status;
}
