// Which events: by process, time, kind and processor (Selection, as a user words it), or by what the header
// of an event says alone (EventSet, a few nanoseconds an event).
#pragma once

#include "etwrelog/event.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
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
  // Of what the header has: kernel, classic and WPP events have neither channel, task nor activity, and are
  // left out where one of these is asked for.
  std::vector<std::uint8_t> channels{};
  std::vector<std::uint16_t> tasks{};
  std::vector<std::uint8_t> opcodes{}; // of kernel events the low byte of the hook id
  std::vector<Guid> activities{};
  bool keep_system = false; // events that belong to no process

  [[nodiscard]] bool by_process() const {
    return !processes.empty() || !exclude.empty() || !command_line.empty();
  }
  [[nodiscard]] bool by_kind() const {
    return !providers.empty() || !events.empty() || !processors.empty() || !channels.empty() ||
           !tasks.empty() || !opcodes.empty() || !activities.empty();
  }
  [[nodiscard]] bool everything() const { return !by_process() && !by_kind() && !from && !to; }
};

// A set of kinds of events, told by the header alone. Empty: every event. Any thread may ask while none adds.
class EventSet {
public:
  EventSet &add_kernel(std::uint16_t hook);
  // Every event of a provider; of a class of kernel events (whose GUID follows from the hook) too.
  EventSet &add_provider(const Guid &provider);
  // `id`: of classic events the opcode.
  EventSet &add_event(const Guid &provider, std::uint16_t id);

  [[nodiscard]] bool empty() const { return hooks_.empty() && providers_.empty(); }
  [[nodiscard]] bool contains(const EventView &event) const {
    if (event.has_hook())
      return hooks_.empty() ? providers_.empty()
                            : (hooks_[event.hook() >> 6] >> (event.hook() & 63) & 1) != 0;
    return providers_.empty() ? hooks_.empty() : contains_provider(event);
  }

private:
  [[nodiscard]] bool contains_provider(const EventView &event) const;

  std::vector<std::uint64_t> hooks_;                               // a bit each; none: no hook
  std::unordered_map<Guid, std::vector<std::uint16_t>> providers_; // sorted ids; none: all of the provider's
};

} // namespace etwrelog
