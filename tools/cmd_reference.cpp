// `etwrelog help`, `completion` and, for packages, `manual`: what is made from the other commands'
// descriptions.
#include "tools/commands.hpp"
#include "tools/errors.hpp"
#include "tools/reference.hpp"
#include "tools/topics.hpp"

#include "tools/cli.hpp"

#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>

#include <fmt/chrono.h>
#include <fmt/format.h>

namespace etwrelog::cli {
namespace {

int print_help(const CLI::App &app, const std::string &topic) {
  if (topic.empty()) {
    // app.help() would explain the command that runs, which is this one.
    print_text("{}\nTopics (etwrelog help TOPIC):\n",
               app.get_formatter()->make_help(&app, app.get_name(), CLI::AppFormatMode::Normal));
    for (const Topic &t : topics())
      print_text("  {:<14}{}\n", t.name, t.title);
    return kDone;
  }
  std::vector<std::string> names;
  for (const CLI::App *command : commands_of(app)) {
    if (command->get_name() == topic) {
      print_text("{}", command->help(app.get_name()));
      return kDone;
    }
    names.push_back(command->get_name());
  }
  for (const Topic &t : topics()) {
    if (t.name == topic) {
      print_text("{}\n\n{}\n", t.title, t.text);
      return kDone;
    }
    names.emplace_back(t.name);
  }
  const std::string meant = nearest(topic, names);
  return report(
      usage_error(fmt::format("no command or topic is called \"{}\"{}; \"etwrelog help\" lists them", topic,
                              meant.empty() ? std::string() : fmt::format(", did you mean \"{}\"?", meant))));
}

// Reproducible packages set SOURCE_DATE_EPOCH.
std::string page_date() {
  std::time_t now = std::time(nullptr);
  if (const char *epoch = std::getenv("SOURCE_DATE_EPOCH")) now = static_cast<std::time_t>(std::atoll(epoch));
  return fmt::format("{:%Y-%m-%d}", fmt::gmtime(now));
}

int write_manual(const CLI::App &app, const std::string &folder) {
  auto write = [&](const std::string &name, const std::string &text) {
    std::ofstream file(std::filesystem::path(folder) / name, std::ios::binary);
    file << text;
    return file.flush().good();
  };
  bool good = write(app.get_name() + ".1", man_page(app, ETWRELOG_VERSION, page_date()));
  for (const CLI::App *command : commands_of(app))
    good = good && write(app.get_name() + "-" + command->get_name() + ".1",
                         man_page(*command, ETWRELOG_VERSION, page_date()));
  good = good && write(app.get_name() + ".bash", completion_script(app, Shell::bash));
  good = good && write("_" + app.get_name(), completion_script(app, Shell::zsh));
  good = good && write(app.get_name() + ".fish", completion_script(app, Shell::fish));
  if (good) return kDone;
  return report(io_error(folder, "cannot write the manual pages"));
}

void add_reference_commands(CLI::App &app, int &exit_status) {
  CLI::App *help = app.add_subcommand("help", "Explain a command or a topic");
  auto topic = std::make_shared<std::string>();
  std::string names;
  for (const Topic &t : topics())
    names += fmt::format(", {}", t.name);
  help->add_option("topic", *topic, "A command, or one of the topics" + names);
  help->callback([&app, &exit_status, topic] { exit_status = print_help(app, *topic); });

  CLI::App *completion = app.add_subcommand("completion", "Print a completion script for a shell");
  auto shell = std::make_shared<std::string>();
  completion->add_option("shell", *shell, "Which shell")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  completion->footer("  source <(etwrelog completion bash)\n  etwrelog completion zsh > ~/.zfunc/_etwrelog\n"
                     "  etwrelog completion fish > ~/.config/fish/completions/etwrelog.fish");
  completion->callback([&app, &exit_status, shell] {
    const Shell which = *shell == "bash" ? Shell::bash : *shell == "zsh" ? Shell::zsh : Shell::fish;
    print_text("{}", completion_script(app, which));
    exit_status = kDone;
  });

  // For the build alone, so of no group: neither --help nor the manual lists it.
  CLI::App *manual =
      app.add_subcommand("manual", "Write manual pages and completions into a folder")->group("");
  auto folder = std::make_shared<std::string>();
  manual->add_option("folder", *folder)->required()->check(CLI::ExistingDirectory);
  manual->callback([&app, &exit_status, folder] { exit_status = write_manual(app, *folder); });
}

const Command kReference(1000, add_reference_commands); // last: it describes the others

} // namespace

} // namespace etwrelog::cli
