// What is made from the commands' own descriptions: manual pages, shell completions, suggestions for mistyped
// words. There is one source: whatever --help says, these say, too.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

namespace etwrelog::cli {

// How --help shows options, for the program before it has commands.
[[nodiscard]] std::shared_ptr<CLI::FormatterBase> help_formatter();

// A manual page (troff, man macros) of the tool itself or of one of its commands. `date`: "2026-11-22".
[[nodiscard]] std::string man_page(const CLI::App &app, std::string_view version, std::string_view date);

enum class Shell { bash, zsh, fish };
// A script that completes commands, options and the values of options that take one of a few; files
// otherwise.
[[nodiscard]] std::string completion_script(const CLI::App &app, Shell shell);

// The candidate nearest to `word`, if one is near enough to be what was meant; else empty.
[[nodiscard]] std::string nearest(std::string_view word, const std::vector<std::string> &candidates);

// For a command line that does not parse: "did you mean ...?" about its first unknown command or option; else
// empty.
[[nodiscard]] std::string suggestion(const CLI::App &app, const std::vector<std::string> &arguments);

// Commands that people and programs are meant to see, in order.
[[nodiscard]] std::vector<const CLI::App *> commands_of(const CLI::App &app);

} // namespace etwrelog::cli
