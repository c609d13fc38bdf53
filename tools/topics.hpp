// What `etwrelog help TOPIC` and the manual pages say of all commands.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace etwrelog::cli {

struct Topic {
  std::string_view name, title;
  std::string text; // lines
};
[[nodiscard]] std::span<const Topic> topics();

struct ExitMeaning {
  int status;
  std::string_view text;
};
[[nodiscard]] std::span<const ExitMeaning> exit_meanings();

} // namespace etwrelog::cli
