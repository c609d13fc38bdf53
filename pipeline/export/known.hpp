// What a trace says in one place about events in another: names of files, images at addresses, threads that
// ran, stacks, ends of what began. Collected in passes of its own, on request; looked up by any thread.
#pragma once

#include "etwrelog/symbols.hpp"
#include "export/survey.hpp"
#include "filter/filter.hpp"
#include "filter/later_stacks.hpp"
#include "passes/durations.hpp"
#include "passes/registry_keys.hpp"
#include "profile/images.hpp"
#include "profile/methods.hpp"
#include "profile/who_ran.hpp"
#include "stacks/stack_definitions.hpp"

#include <algorithm>
#include <tuple>
#include <unordered_map>

namespace etwrelog::pipeline {

struct KnowledgeWanted {
  bool files = false, keys = false, images = false, running = false, stacks = false, durations = false;
  bool code = false;       // that runtimes made
  bool identities = false; // of images: which PDBs are theirs
  [[nodiscard]] bool anything() const {
    return files || keys || images || running || stacks || durations || code || identities;
  }
};

class Knowledge {
public:
  // `survey` outlives this. With a time in `selection` only what lies in it and what else is true then. What
  // is more than memory has room for is left out and said in `problems`.
  static Result<Knowledge> collect(const etwrelog::Trace &trace, const ExportSurvey &survey,
                                   const KnowledgeWanted &wanted, const RunOptions &run,
                                   const Selection &selection = {});

  // The thread and the process that an event belongs to: what its header says, else what its payload says,
  // else who ran on its processor at that time. kUnknownId: nobody's, or not known.
  struct Owner {
    std::uint32_t process = kUnknownId, thread = kUnknownId;
  };
  [[nodiscard]] Owner owner_of(const Event &event) const;
  // The process in which its stack runs: not the one that the payload names, if that is another. `asked`:
  // from frames_of().
  [[nodiscard]] std::uint32_t process_of_stack(const Event &event, const Owner &owner,
                                               std::uint32_t asked) const;
  // The process in which addresses in its payload lie: the one that the payload names, if it is about one.
  [[nodiscard]] static std::uint32_t process_of_addresses(const Event &event, const Owner &owner);
  // The process that an event names (filter::named_process); null: none, or not known.
  [[nodiscard]] const ProcessInstance *process_of(const Event &event) const;
  // The instance of a process at that time; null: not known.
  [[nodiscard]] const ProcessInstance *process(std::uint32_t machine, std::uint32_t pid,
                                               std::int64_t time) const;
  // The name of a file object or key at that time; empty: not known.
  [[nodiscard]] std::string_view file(std::uint32_t machine, std::uint64_t key, std::int64_t time) const;
  // The whole name of the registry key that an event is about, appended; false: not known.
  bool append_registry_key(const Event &event, std::string &out) const;
  // "ntoskrnl.exe+0x1f0" appended; false: no image holds the address.
  bool append_module(std::uint32_t machine, std::uint32_t pid, std::int64_t time, std::uint64_t address,
                     std::string &out) const;
  // A frame of a stack, with what its address lies in.
  struct Frame {
    std::uint64_t address = 0;
    std::uint32_t machine = 0;
    bool innermost = false;
    std::uint32_t image = profile::Images::kNone, method = profile::Methods::kNone;
    bool operator==(const Frame &) const = default;
  };
  // `innermost`: the first of its stack, or of the user's part. All others are addresses that calls return
  // to, which may lie behind the end of their code.
  [[nodiscard]] Frame frame_at(std::uint32_t machine, std::uint32_t pid, std::int64_t time,
                               std::uint64_t address, bool innermost) const;
  // As append_module() has it; of code that a runtime made, or tells of, with the method's name,
  // "Contoso.dll!Contoso.Program.Main+0x1f0", or else with that of `symbols`, null for none; or the address.
  // `names`: memory of the caller.
  void append_frame(const Frame &frame, const ModuleSymbols *symbols, SymbolNames &names,
                    std::string &out) const;
  [[nodiscard]] const profile::Images::Image &image_of(const Frame &frame) const { // which it has
    return machines_[frame.machine].images[frame.image];
  }
  // Innermost frame first, kernel frames before those of the user; empty: it has none. Of the end of a
  // request to a disk or file they are those of its beginning: then the thread that asked for it; else
  // kUnknownId.
  std::uint32_t frames_of(const Event &event, std::vector<std::uint64_t> &frames) const;
  // Nanoseconds since the event began that this one ends; none if it ends none that the trace holds.
  [[nodiscard]] std::optional<std::int64_t> duration_of(const Event &event) const;

  // With `images`: when each thread id meant a thread of which process; the extremes where that was not seen.
  struct ThreadSpan {
    std::uint32_t thread, process;
    std::int64_t start = kBeginning, end = kForever;
    std::string name; // the last one that it had
  };
  [[nodiscard]] const std::vector<ThreadSpan> &threads(std::uint32_t machine) const {
    return machines_[machine].threads;
  }
  [[nodiscard]] std::span<const std::string> problems() const { return problems_; }
  [[nodiscard]] const profile::Images &images(std::uint32_t machine) const {
    return machines_[machine].images;
  }

private:
  struct Fragment {
    std::int64_t time; // own_time() of the event that it belongs to
    std::uint32_t thread;
    std::uint32_t stack; // or kByKey, then `key` and when
    std::uint64_t key;
    stacks::Place written;
    std::uint16_t processor;
    std::uint8_t pointer_size;
    bool kernel; // of a key: which of the two of that value
  };
  // A fragment without a kernel part: written when the thread left the kernel, for all that it had done
  // there.
  struct UserHalf {
    std::uint32_t thread;
    std::int64_t written, since; // the first event that it completes
    std::uint32_t fragment;      // index in Machine::fragments
  };
  // Of a stack that begins in an event's header and ends, with the same number, in an event of its own.
  struct LaterPart {
    std::uint64_t match;
    std::int64_t time;
    std::uint32_t thread, stack;
    static filter::LaterKey key(const LaterPart &part) { return {part.match, part.thread, part.time}; }
  };
  // A stack that .NET's runtime wrote behind one of its events.
  struct ClrStack {
    std::uint32_t thread, stack;
    std::int64_t written, event; // event: when that was written
    auto operator<=>(const ClrStack &) const = default;
  };
  struct Machine {
    ObjectNames files;
    RegistryNames keys;
    OpenedKeys opened; // until its names are in `keys`
    std::vector<ThreadSpan> threads;
    profile::Images images;
    profile::Methods methods;
    std::uint64_t method_bytes = 0; // of their names and all
    std::vector<profile::IdentityRecord> identities;
    profile::WhoRan ran;
    std::vector<Fragment> fragments;          // by time, thread, order
    std::vector<stacks::Place> followed;      // sorted: events behind which another has their stacks
    stacks::StackDefinitions definitions;     // with the numbers that stacks have here
    std::vector<UserHalf> user_halves;        // by thread and when they were written
    std::vector<LaterPart> later;             // by LaterPart::key
    std::vector<filter::EventKey> clr_events; // until their stacks are found
    std::vector<ClrStack> clr_stacks;         // by thread and event
    bool clr_full = false;                    // there is no room for them
  };
  struct Ended {
    Position position;
    std::int64_t ns;
  };
  // Of the end of a request, the event that began it.
  struct Asked {
    Position position;
    std::int64_t time;
    std::uint32_t thread;
  };
  static constexpr std::uint32_t kByKey = 0xFFFF'FFFF;
  static constexpr unsigned kOffsetBits = 26; // of an event in its buffer, in Place::order

  struct Part;
  // An event is followed by another of its time, if this thread ran there: one of both does not tell its own.
  struct MaybeFollowed {
    stacks::Place place;
    std::int64_t time;
    std::uint32_t thread;
    std::uint16_t processor;
  };

  // A request to a disk or file begins or ends.
  struct RequestEdge {
    Position position;
    stacks::Place place;
    std::uint32_t thread; // kUnknownId: not told
    EventEdge edge;
  };

  static std::vector<ThreadSpan> spans_of(std::vector<profile::ThreadRecord> records,
                                          std::vector<profile::ThreadName> names);
  class Stacks;
  // profile::Images::kNone: none holds the address.
  [[nodiscard]] std::uint32_t image_at(std::uint32_t machine, std::uint32_t pid, std::int64_t time,
                                       std::uint64_t address) const;
  [[nodiscard]] std::uint32_t running_on(const Event &event) const;
  [[nodiscard]] std::uint32_t logger_of(const Event &event) const; // the thread that its stack is of
  // As far as the event tells: kUnknownId for nobody's; nullopt: whoever ran there.
  [[nodiscard]] static std::optional<std::uint32_t> told_logger(const Event &event);
  [[nodiscard]] static bool may_have_fragments(const Event &event);
  static void read_frames(Bytes data, unsigned pointer_size, std::vector<std::uint64_t> &frames);
  void add_stack(std::uint32_t stack, std::vector<std::uint64_t> &frames) const;
  // In the clock of its own trace, which those of other machines do not have: stack walks say so when their
  // event was.
  static std::int64_t own_time(const Event &event);
  static stacks::Place place_of(const Event &event); // by own_time()
  void collect_user_halves(Machine &machine) const;
  void add_fragments(const Machine &machine, std::int64_t time, std::uint32_t thread,
                     std::vector<std::uint64_t> &frames) const;
  void find_asked(const Machine &machine, std::vector<RequestEdge> edges);
  // What is told of the event in a list that is sorted by position; null: nothing.
  template <class Told> static const Told *told_of(const Event &event, const std::vector<Told> &all) {
    const auto found = std::ranges::lower_bound(all, event.position(), {}, &Told::position);
    return found != all.end() && found->position == event.position() ? &*found : nullptr;
  }
  void add_clr_stack(const Machine &machine, const Event &event, std::vector<std::uint64_t> &frames) const;
  static void find_clr_events(Machine &machine);
  void add_later_part(const Machine &machine, std::uint64_t match, const Event &event,
                      std::vector<std::uint64_t> &frames) const;
  void add_fragment(const Machine &machine, const Fragment &fragment,
                    std::vector<std::uint64_t> &frames) const;
  void add_user_half(const Machine &machine, std::uint32_t thread, std::int64_t time,
                     std::vector<std::uint64_t> &frames) const;
  Result<void> collect_durations(const etwrelog::Trace &trace, const RunOptions &run);
  void problem(std::string text);

  const ExportSurvey *survey_ = nullptr;
  std::vector<Machine> machines_;
  std::vector<std::uint64_t> frames_;       // of all stacks
  std::vector<std::uint64_t> stack_begins_; // and one more
  std::vector<Ended> ended_;                // by position
  std::vector<Asked> asked_;                // by position
  std::vector<std::string> problems_;
};

} // namespace etwrelog::pipeline
