// Which events: by process, time, kind and processor (Selection, as a user words it; Filter, the same made
// ready for one trace), or by what the header of an event says alone (EventSet, a few nanoseconds an event).
//
//   Result<Filter> filter = Filter::prepare(*trace, {.processes = {"game*.exe"}, .children = true});
//   trace->events({.order = Order::time, .filter = &*filter})
#pragma once

#include "etwrelog/clock.hpp"
#include "etwrelog/event.hpp"
#include "etwrelog/run.hpp"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace etwrelog {

// A moment as the user gives it: seconds since the trace began, or a FILETIME (UTC). Several traces
// begin with the earliest of them (Trace::clock()).
struct Moment {
  bool relative = true;
  double seconds = 0;
  std::int64_t filetime = 0;

  // As FILETIME, of a trace with this clock.
  [[nodiscard]] std::int64_t of(const Clock &clock) const {
    return relative ? clock.filetime_after(seconds) : filetime;
  }
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

class SchemaCatalog;
struct Schema;

// Kinds of events, by what they are called. Immutable, cheap to copy; any thread.
class NamedKinds {
public:
  NamedKinds() = default; // none
  // All kinds in the catalog that a name fits: "Microsoft-Windows-DotNETRuntime/GC/AllocationTick", or what
  // stands behind any slash of it: "GC/AllocationTick", "AllocationTick"; with * and ?, without regard to
  // case. Both what statistics call a kind and what SchemaCatalog::append_name() does; also by number, as
  // these do where nobody describes a kind: "Provider/EventID(8)". Error: no_match for a name that fits none,
  // and can fit none that is not described.
  [[nodiscard]] static Result<NamedKinds> find(std::span<const std::string> names,
                                               const SchemaCatalog &catalog);

  [[nodiscard]] bool empty() const { return impl_ == nullptr; }
  [[nodiscard]] std::span<const std::string> names() const; // that were given
  // A look-up of the event's schema; of what has none, its name is made of its header.
  [[nodiscard]] bool contains(const EventView &event) const noexcept;
  // The catalog that they were found in, and whether a kind of it is one of them.
  [[nodiscard]] SchemaCatalog catalog() const;
  [[nodiscard]] bool contains(const Schema &kind) const noexcept;

private:
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

// Which events to keep. Everything given must hold; a list means any of its entries.
struct Selection {
  // Process ids, or image names with * and ?, without regard to case; "game" is game.exe, too.
  std::vector<std::string> processes{};
  bool children = false;              // and their descendants
  std::string command_line{};         // regular expression (RE2) that a target's command line contains
  std::vector<std::string> exclude{}; // as `processes`; wins over them
  std::optional<Moment> from{}, to{}; // inclusive
  std::vector<ProviderSelection> providers{};
  std::vector<std::uint32_t> events{}; // event ids, hook ids of kernel events, opcodes of classic events
  NamedKinds kinds{};                  // with `events`: what is in either
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
  [[nodiscard]] bool names_kinds() const { // and not only processors
    return !providers.empty() || !events.empty() || !kinds.empty() || !channels.empty() || !tasks.empty() ||
           !opcodes.empty() || !activities.empty();
  }
  [[nodiscard]] bool by_kind() const { return names_kinds() || !processors.empty(); }
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

// Why an event stays or goes; the rows of a relog's report. Numbers are stable.
enum class Reason : std::uint8_t {
  kept_always,          // describes the trace or the machine
  kept_process,         // belongs to a selected process
  kept_context,         // idle and system process, kernel images
  kept_stack,           // a stack of a kept event
  kept_reference,       // a stack definition, file name or manifest that a kept event needs
  kept_system,          // belongs to no process, kept on request
  dropped_process,      // belongs to another process
  dropped_system,       // belongs to no process
  dropped_unknown,      // whose it is cannot be told: its thread has no known process
  dropped_stack,        // a stack of a dropped event
  dropped_unreferenced, // a definition, file name or manifest that no kept event needs
  dropped_kind,         // not of the selected providers, events or processors
  dropped_time,         // outside the selected time
  kept_state,           // process, thread, image or code, outside the selected time and kinds
  count_,
};
inline constexpr std::size_t kReasons = static_cast<std::size_t>(Reason::count_);
[[nodiscard]] constexpr bool is_kept(Reason reason) {
  return reason <= Reason::kept_system || reason == Reason::kept_state;
}
[[nodiscard]] std::string_view reason_name(Reason reason); // "kept: selected process"

class Trace;
class Lifetimes;

// A selection made ready for one trace: the events that relog() would keep, as a part of a Query. An event
// belongs to the process that its payload, its thread at that time, its header or the processor's running
// thread names; with the events of the selected processes go what gives them their meaning: stacks and their
// definitions, processes, threads, images, names of files, schemas. What goes with others stays for itself,
// too, where providers, events and the like name its kind, and creations and deletions of files in the time
// and on the processors asked for do. Sources of one machine are one: a process that one of them tells of
// owns the events in the others. Immutable, cheap to copy, any thread.
class Filter {
public:
  // Reads the trace for processes and threads (not if `known`, of the same trace, is given) and once more for
  // what the kept events refer to, of an archive only where the selection's time is; not at all for a
  // selection of everything. Errors: no_match where a name or id fits no process of the trace, usage for a
  // regular expression that is none or a time that ends before it begins, unsupported of a single-pass trace;
  // those of reading. Memory: 24 bytes for each definition of a stack and each reference to one; where kinds
  // are named 32 for each event of them with a thread, and 16 for each of .NET's runtime that writes stacks.
  [[nodiscard]] static Result<Filter> prepare(const Trace &trace, const Selection &selection,
                                              const RunOptions &run = {}, const Lifetimes *known = nullptr);

  // The selected processes, as indices in Lifetimes::processes(), ascending. Empty when the selection is not
  // by process.
  [[nodiscard]] std::span<const std::uint32_t> processes() const;

  struct Impl;

private:
  friend struct FilterParts; // for the library
  Filter() = default;
  std::shared_ptr<const Impl> impl_;
};

} // namespace etwrelog
