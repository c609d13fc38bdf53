// Commands register themselves: a file cmd_NAME.cpp ends with
//   const Command kName(40, add_name_command);
// and nothing else has to know of it.
#pragma once

#include <CLI/CLI.hpp>

namespace etwrelog::cli {

// Adds a command (or several) to the program, with a callback that sets `exit_status` when it has run.
using AddCommand = void (*)(CLI::App &app, int &exit_status);

struct Command {
  // `order`: of the commands in --help, the smallest first.
  Command(int order, AddCommand add);
};

void add_commands(CLI::App &app, int &exit_status); // all that are registered

// What the error of an argument such as "-9" says that CLI11 takes for the name of a file.
inline constexpr const char *kTakenForAFile = "is no option; a file of that name";

} // namespace etwrelog::cli
