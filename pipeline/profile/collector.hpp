// What the events of a trace say about a profile, batch by batch.
#pragma once

#include "base/text_numbers.hpp"
#include "filter/filter.hpp"
#include "filter/later_stacks.hpp"
#include "passes/durations.hpp"
#include "passes/object_names.hpp"
#include "profile_pass/collect.hpp"
#include "profile_pass/event_records.hpp"
#include "schema/event_names.hpp"
#include "schema/type_counts.hpp"
#include "stacks/stack_definitions.hpp"
#include "stacks/stack_events.hpp"

#include <array>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace etwrelog::pipeline {

// Numbers for the kinds of events that a stack may belong to. A hook stands for itself; all else is numbered
// as it comes, which depends on timing, and is known by its name.
class Kinds {
public:
  static constexpr std::uint16_t kFirstOther = 0xE000, kTooMany = profile::Fragment::kOfSubject - 1;

  std::uint16_t number(const schema::EventType &type) {
    const std::scoped_lock lock(mutex_);
    const auto [place, fresh] = numbers_.try_emplace(type, kTooMany);
    if (fresh && kFirstOther + types_.size() < kTooMany) {
      place->second = static_cast<std::uint16_t>(kFirstOther + types_.size());
      types_.push_back(type);
    }
    return place->second;
  }
  [[nodiscard]] std::vector<std::string> names() const {
    const schema::EventNames known;
    std::vector<std::string> names(std::size_t{kTooMany} + 1, "other events");
    for (std::uint32_t hook = 0; hook < kFirstOther; ++hook)
      names[hook] = kernel::find_hook(static_cast<std::uint16_t>(hook)) != nullptr
                        ? known.name({schema::Family::hook, 0, hook, {}})
                        : type_key({schema::Family::hook, 0, hook, {}});
    for (std::size_t i = 0; i < types_.size(); ++i)
      names[kFirstOther + i] = known.name(types_[i]);
    return names;
  }

private:
  std::mutex mutex_;
  std::map<schema::EventType, std::uint16_t> numbers_;
  std::vector<schema::EventType> types_;
};

struct Reference { // a fragment whose frames a later event defines
  std::uint32_t fragment;
  std::optional<bool> kernel; // none: it may be to either part
  std::uint64_t key;
  stacks::Place place;
};

struct LaterPart { // of the stack of an event, or of several
  filter::LaterKey written;
  std::uint32_t fragment;
};

// An event that begins or ends something.
struct EdgeRecord {
  EventEdge edge;
  profile::Instant at;
  std::uint32_t thread = kUnknownId, process = kUnknownId;
  std::uint32_t subject = kNoSubject; // of an end that the profile is about
  std::uint16_t hook = 0;             // of a kernel event
  static constexpr std::uint32_t kNoSubject = 0xFFFF'FFFF;
};

using FileNumbers = std::array<std::uint64_t, 2>; // by which an event calls its file; 0: none

struct BufferMarks { // of one buffer: what to know of its marks when it is put behind the others
  std::uint16_t processor = 0;
  profile::TimeRange times;
};

// What one batch says. Numbers of subjects and fragments are those of the batch.
struct CollectWork {
  std::vector<profile::Subject> subjects;
  std::vector<profile::Mark> marks;
  std::vector<profile::Fragment> fragments;
  std::vector<profile::ReadyRecord> readies;
  std::vector<profile::SwitchRecord> switches;
  std::vector<std::pair<std::uint16_t, profile::WhoRan::Switch>> who_ran; // with their processors
  std::vector<Reference> references;
  std::vector<stacks::KeyDefinition> definitions;
  StateRecords state;
  schema::TypeCounts counts;
  std::uint64_t unreadable = 0, weightless = 0;
  std::vector<std::uint64_t> weights; // of subjects, where a field of theirs is added up
  std::vector<std::uint32_t> leaves;  // and where one is a frame of their stacks
  base::TextNumbers leaf_texts;
  std::vector<std::uint64_t> code_leaves;
  std::string text;
  std::vector<FileNumbers> files; // of subjects, where the frame is the name of a file
  std::vector<ObjectName> file_names;

  std::vector<BufferMarks> buffers;
  std::vector<filter::EventKey> clr_events; // if the profile is of events
  std::vector<std::uint32_t> clr_stacks;    // as fragments
  std::vector<filter::LaterKey> awaited;    // of events
  std::vector<LaterPart> later_parts;
  std::vector<EdgeRecord> edges;

  // Stacks of the buffer at hand, by where they stand in it, and the fragments that wait for their numbers.
  std::vector<stacks::StackQuery> queries;
  std::vector<std::uint32_t> asking;
  std::vector<stacks::StackId> answers;
  std::vector<std::uint64_t> frames;
  schema::EventType last_type;
  std::uint16_t last_kind = Kinds::kTooMany;

  void clear() {
    subjects.clear();
    marks.clear();
    fragments.clear();
    readies.clear();
    switches.clear();
    who_ran.clear();
    references.clear();
    definitions.clear();
    state.clear();
    counts.clear();
    unreadable = weightless = 0;
    weights.clear();
    leaves.clear();
    leaf_texts.clear();
    code_leaves.clear();
    files.clear();
    file_names.clear();
    buffers.clear();
    clr_events.clear();
    clr_stacks.clear();
    awaited.clear();
    later_parts.clear();
    edges.clear();
  }
};

// Looks at every event once; any number of batches at once.
class Collector {
public:
  Collector(const CollectOptions &collect, stacks::StackTable &stacks);

  // All events of a batch; its buffers are numbered behind the `first` of other traces.
  void look_at(const Trace &trace, Batch &batch, std::uint32_t first, CollectWork &work);

  [[nodiscard]] std::vector<std::string> kind_names() const { return kinds_.names(); }
  // Of a stack's scope in the table.
  static std::uint8_t flags_of(std::uint32_t scope) {
    return static_cast<std::uint8_t>(profile::Fragment::kHasFrames |
                                     ((scope & 16) != 0 ? profile::Fragment::kKernel : 0) |
                                     ((scope & 32) != 0 ? profile::Fragment::kUserFirst : 0));
  }

private:
  void look_at(const EventView &event, std::int64_t time, const DecodedBuffer &buffer, std::uint32_t at,
               CollectWork &work);
  void end_buffer(std::size_t marks, std::size_t fragments, CollectWork &work);
  void kernel_event(const EventView &event, std::uint16_t hook, profile::Instant moment,
                    std::uint16_t processor, CollectWork &work);
  void other_event(const EventView &event, profile::Instant moment, std::uint16_t processor,
                   CollectWork &work);
  [[nodiscard]] bool wants_edges(unsigned group) const;
  void selected_event(const EventView &event, std::uint32_t thread, profile::Instant moment,
                      std::uint16_t processor, CollectWork &work);
  void stacks_in_items(const EventView &event, profile::Instant moment, std::uint16_t processor,
                       CollectWork &work);
  void clr_stack(const EventView &event, profile::Instant moment, std::uint16_t processor, CollectWork &work);
  void later_part(const EventView &event, profile::Instant moment, std::uint16_t processor,
                  CollectWork &work);
  void context_switch(const EventView &event, profile::Instant moment, std::uint16_t processor,
                      CollectWork &work);
  void stack_event(const EventView &event, stacks::StackEventKind kind, profile::Instant moment,
                   std::uint16_t processor, CollectWork &work);
  void add_frames(profile::Fragment fragment, Bytes from, unsigned pointer_size, CollectWork &work);
  [[nodiscard]] bool about_switches() const {
    return collect_.kind == ProfileKind::wait || collect_.kind == ProfileKind::ready;
  }
  [[nodiscard]] bool is_selected(const EventView &event) const {
    return collect_.kind == ProfileKind::events && collect_.events.contains(event);
  }

  const CollectOptions &collect_;
  stacks::StackTable &stacks_;
  Kinds kinds_;
  bool ends_of_disks_ = false, ends_of_files_ = false; // requests: are among the events
  bool asks_who_ran_ = false;                          // of some of them
};

} // namespace etwrelog::pipeline
