// `etwrelog help`, `completion` and, for packages, `manual`: what is made from the other commands'
// descriptions.
#include "tools/commands.hpp"
#include "tools/errors.hpp"
#include "tools/reference.hpp"

#include "tools/cli.hpp"

#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>

#include <fmt/chrono.h>
#include <fmt/format.h>

namespace etwrelog::cli {
namespace {

struct Topic {
  std::string_view name, title, text;
};

constexpr Topic kTopics[] = {
    {"selection", "Which events a command works on",
     R"(Everything given must hold; an option given several times means any of its values.
  -p NAME|ID        events of processes of that image name (* and ?) or id; ids count by lifetime
  --children        and of their descendants
  --cmdline REGEX   of processes whose command line contains it (RE2)
  --exclude NAME    but not of these
  --from, --to      a time: 12.5s after the start, or UTC such as 2026-01-31T10:00:00; ends included
  --provider P[:KEYWORDS[:LEVEL]]   by name or GUID
  --event ID        event ids, hook ids of kernel events, opcodes of classic events
  --opcode, --task, --channel, --activity   by what the header says of them
  --cpu N           of that processor
  --keep-system     with a process also events of no process: DPC, ISR and others
With a process go the stacks, images, file names and manifests that its events refer to.)"},
    {"inputs", "What is read",
     R"(Traces (.etl) from Windows 7 on, 32 and 64-bit, compressed or not, logs never closed, circular logs and files cut
off by a crash; archives (.etlz) as if they were traces; either inside .zip, .gz, .xz, .zst or .bz2; "-" is standard
input. All traces of a .zip, as PerfView's .etl.zip and Visual Studio's .diagsession are, are one trace. --salvage steps over damage, lists what it skipped, and exits with 3.)"},
    {"outputs", "What is written",
     R"(An output exists whole or not at all. An existing file is replaced only with --force; never an input, never a
file that the same run has made, never anything but a regular file.)"},
    {"exit-status", "What the exit status says",
     R"(0  done
1  failed: what failed left no output (of several files the others are there), or a condition of diff --fail-if
   holds
2  wrong usage
3  done; damage was skipped on request (--salvage)
4  what was asked for is written, whole, but what was to follow could not be done: the original not deleted, the
   report not written, the folder not synced)"},
    {"sizes", "Sizes, times and numbers",
     R"(Sizes take K, M, G, T (powers of 1024). Times take s, ms, us, m, h or a UTC date. Numbers that are printed use
powers of 1000 and say their unit; --json prints exact integers.)"},
};

int print_help(const CLI::App &app, const std::string &topic) {
  if (topic.empty()) {
    // app.help() would explain the command that runs, which is this one.
    fmt::print("{}\nTopics (etwrelog help TOPIC):\n",
               app.get_formatter()->make_help(&app, app.get_name(), CLI::AppFormatMode::Normal));
    for (const Topic &t : kTopics)
      fmt::print("  {:<14}{}\n", t.name, t.title);
    return kDone;
  }
  std::vector<std::string> names;
  for (const CLI::App *command : commands_of(app)) {
    if (command->get_name() == topic) {
      fmt::print("{}", command->help(app.get_name()));
      return kDone;
    }
    names.push_back(command->get_name());
  }
  for (const Topic &t : kTopics) {
    if (t.name == topic) {
      fmt::print("{}\n\n{}\n", t.title, t.text);
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
  help->add_option("topic", *topic, "A command, or selection, inputs, outputs, exit-status, sizes");
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
    fmt::print("{}", completion_script(app, which));
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
