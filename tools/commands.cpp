#include "tools/commands.hpp"

#include <map>

namespace etwrelog::cli {
namespace {

// Inside a function, so that it is there before the first command, whatever the order of the files.
std::multimap<int, AddCommand> &registered() {
  static std::multimap<int, AddCommand> commands;
  return commands;
}

} // namespace

Command::Command(int order, AddCommand add) {
  registered().emplace(order, add);
}

void add_commands(CLI::App &app, int &exit_status) {
  for (const auto &[order, add] : registered())
    add(app, exit_status);
}

} // namespace etwrelog::cli
