#include "tools/commands.hpp"

#include <algorithm>
#include <map>
#include <string>

#include <fmt/format.h>

namespace etwrelog::cli {
namespace {

// Inside a function, so that it is there before the first command, whatever the order of the files.
std::multimap<int, AddCommand> &registered() {
  static std::multimap<int, AddCommand> commands;
  return commands;
}

} // namespace

namespace {

// Numbers are decimal, as people write them: CLI11 takes "010" for 8 and "08" for none.
CLI::Validator without_leading_zeros() {
  return CLI::Validator(
      [](std::string &text) {
        const std::size_t first = text.starts_with('-') ? 1 : 0;
        const bool decimal = text.find_first_not_of("0123456789", first) == std::string::npos;
        if (decimal && text.size() > first)
          text.erase(first, std::min(text.find_first_not_of('0', first), text.size() - 1) - first);
        return std::string();
      },
      "");
}

// CLI11 takes "-9" for a number, and where none is expected for the name of a file.
CLI::Validator no_option() {
  return CLI::Validator(
      [](std::string &text) {
        return text.size() < 2 || text.front() != '-'
                   ? std::string()
                   : fmt::format("\"{}\" {} is ./{}", text, kTakenForAFile, text);
      },
      "");
}

void mend_values(CLI::App &command) {
  for (CLI::Option *option : command.get_options()) {
    if (const std::string type = option->get_type_name(); type.starts_with("UINT") || type.starts_with("INT"))
      option->transform(without_leading_zeros());
    if (option->get_positional()) option->check(no_option());
  }
  for (CLI::App *inner : command.get_subcommands({}))
    mend_values(*inner);
}

} // namespace

Command::Command(int order, AddCommand add) {
  registered().emplace(order, add);
}

void add_commands(CLI::App &app, int &exit_status) {
  for (const auto &[order, add] : registered())
    add(app, exit_status);
  mend_values(app);
}

} // namespace etwrelog::cli
