// Relogging: from a trace to a smaller or better packed trace, events kept byte for byte.
#pragma once

#include "etwrelog/codec.hpp"
#include "etwrelog/guid.hpp"

#include <optional>
#include <string>
#include <vector>

namespace etwrelog {

// A moment as the user gives it: seconds since the trace began, or a FILETIME (UTC).
struct Moment {
  bool relative = true;
  double seconds = 0;
  std::int64_t filetime = 0;
};
// "12.5s", "250ms", "3m", "1h", plain seconds, or what parse_filetime() takes.
[[nodiscard]] std::optional<Moment> parse_moment(std::string_view text);

struct ProviderSelection {
  bool kernel = false; // all events with a hook id; else by `guid`
  Guid guid;
  std::uint64_t keywords = 0; // 0: any; an event without keywords matches any mask, as in ETW itself
  std::uint8_t level = 0;     // 0: any; else events of this level or more severe
};
// "GUID|name[:keywords[:level]]"; names are those of provider_names.hpp, without regard to case.
[[nodiscard]] std::optional<ProviderSelection> parse_provider(std::string_view text);

// Which events to keep. Everything given must hold; a list means any of its entries.
struct Selection {
  std::vector<std::string> processes{}; // process ids, or image names with * and ?, without regard to case
  bool children = false;                // and their descendants
  std::string command_line{};           // regular expression (RE2) that a target's command line contains
  std::vector<std::string> exclude{};   // as `processes`; wins over them
  std::optional<Moment> from{}, to{};   // inclusive
  std::vector<ProviderSelection> providers{};
  std::vector<std::uint32_t> events{}; // event ids, hook ids of kernel events, opcodes of classic events
  std::vector<std::uint16_t> processors{};
  bool keep_system = false; // events that belong to no process

  [[nodiscard]] bool by_process() const {
    return !processes.empty() || !exclude.empty() || !command_line.empty();
  }
  [[nodiscard]] bool by_kind() const { return !providers.empty() || !events.empty() || !processors.empty(); }
  [[nodiscard]] bool everything() const { return !by_process() && !by_kind() && !from && !to; }
};

} // namespace etwrelog
