// One function a command: registers it and sets `exit_status` when it has run.
#pragma once

#include <CLI/CLI.hpp>

namespace etwrelog::cli {

void add_info_command(CLI::App &app, int &exit_status);
void add_stats_command(CLI::App &app, int &exit_status);
void add_relog_command(CLI::App &app, int &exit_status);
void add_stacks_command(CLI::App &app, int &exit_status);
void add_pack_commands(CLI::App &app, int &exit_status);
// Last: describes the others.
void add_reference_commands(CLI::App &app, int &exit_status); // pack, unpack, verify

} // namespace etwrelog::cli
