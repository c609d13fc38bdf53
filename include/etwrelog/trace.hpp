// Opening traces and walking their events. Level 3: uses everything up to select.hpp.
//
//   Result<Trace> trace = Trace::open("boot.etl"); // or .etlz, .zip, .xz, .zst, .gz, .bz2; several at once
//   trace->events(query)                    // EventCursor: one event after the other, pulled
//   trace->fold<Part>(map, merge, query)    // parallel over batches, merged in order
//
// Both take the events as they are stored (Order::file) or in order of time over all processors and inputs
// (Order::time), all of them or those that a Query asks for. Both give the same events in the same order
// whatever the number of threads. Nothing is allocated, locked or called through a pointer for an event.
//
// Errors are values. What is wrong in an input names file and offset; damage ends a traversal, or with
// OpenOptions::salvage is stepped over and listed in RunReport::skipped.
//
// Time stamps are raw: ticks of Trace::clock(), which turns them into seconds and FILETIME.
#pragma once

#include "etwrelog/codec.hpp"
#include "etwrelog/event.hpp"
#include "etwrelog/io.hpp"
#include "etwrelog/logfile_header.hpp"
#include "etwrelog/run.hpp"
#include "etwrelog/select.hpp"

#include <compare>
#include <concepts>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace etwrelog {

struct OpenOptions {
  bool salvage = false;    // step over damage, listed in the report; never over the header event
  bool file_order = false; // leave a wrapped circular log as it lies; else its oldest buffer comes first
  bool spool = true;       // a stream goes to a nameless temporary file; false: a single-pass trace
  // The inputs are files of one recording: of one boot of one machine, with one clock; else `unsupported`.
  bool one_recording = false;
  // Of one path, whose session may still be writing: a single-pass trace that waits for what is appended,
  // also for the rest of a buffer that is half there, until the session closes the log or `enough` is set.
  // Reading fails where the file becomes shorter than what was read, or is replaced. Circular logs are not
  // followed.
  bool follow = false;
  std::stop_token enough{};
};

// How the buffers of a source are reached.
enum class Access : std::uint8_t {
  random,      // any buffer, at the price of reading it
  archive,     // any buffer, at the price of decoding its segment
  single_pass, // once, in file order
};

// One input of a trace, as it was when it was opened.
struct SourceInfo {
  std::string name; // as the caller gave it, the member of a container behind a colon
  LogfileHeader header;
  Clock clock; // of the events as they are stored
  Access access = Access::random;
  Codec codec = Codec::none; // of its compressed buffers
  // Sources of one boot of one machine (same boot time, clock type and frequency) share the number, and with
  // it process ids, thread ids and addresses. Numbers count up from 0 in the order in which recordings began.
  std::uint32_t machine = 0;
  std::uint64_t stored_bytes = 0, decoded_bytes = 0, buffers = 0; // 0 in a single-pass trace
  std::uint64_t size = 0;            // bytes of the input, unwrapped; 0 in a single-pass trace
  std::uint64_t missing_buffers = 0; // as LogfileHeader::missing_buffers() tells; 0 in a single-pass trace
  std::uint64_t trailing_bytes = 0;  // behind the last buffer, too few for another
  std::uint64_t unwritten_bytes = 0; // zeros at the end of a preallocated or unfinished log
  bool wrapped = false;              // a circular log whose oldest buffer is not the second
};

// Where an event is stored: the input, the buffer in reading order, the offset in the buffer's decoded
// events.
struct Position {
  std::uint32_t source = 0, buffer = 0, offset = 0;
  auto operator<=>(const Position &) const = default;
};

namespace detail {
struct BufferView;
struct Traversal;
struct FoldSteps;
} // namespace detail

// An event where it lies, and where and when that was. Valid until the map of a fold returns or the cursor
// moves; EventCopy outlives that.
class Event : public EventView {
public:
  Event() = default;
  Event(const EventView &view, std::int64_t time, const Position &position, std::uint16_t processor,
        std::uint32_t machine)
      : EventView(view), time_(time), position_(position), machine_(machine), processor_(processor) {}

  // Ticks of Trace::clock(), also for a source with another clock. An event without a time of its own (a WPP
  // message may have none) has that of its predecessor in the buffer; at the begin of a buffer its
  // successor's; in a buffer without any time, that of the source's header event.
  [[nodiscard]] std::int64_t time() const { return time_; }
  // 0 throughout in sessions without buffers per processor (kModeOneStream).
  [[nodiscard]] std::uint16_t processor() const { return processor_; }
  [[nodiscard]] std::uint32_t machine() const { return machine_; } // SourceInfo::machine
  [[nodiscard]] const Position &position() const { return position_; }

private:
  friend class EventBatch;
  std::int64_t time_ = 0;
  Position position_;
  std::uint32_t machine_ = 0;
  std::uint16_t processor_ = 0;
};

// An event that owns its bytes. Any thread.
class EventCopy {
public:
  EventCopy() = default;
  explicit EventCopy(const Event &event)
      : bytes_(event.bytes().begin(), event.bytes().end()), type_(event.type()), time_(event.time()),
        position_(event.position()), machine_(event.machine()), processor_(event.processor()) {}

  // Valid as long as this object is and does not change.
  [[nodiscard]] Event view() const & {
    return {EventView(bytes_.data(), static_cast<std::uint32_t>(bytes_.size()), type_), time_, position_,
            processor_, machine_};
  }
  Event view() && = delete;

private:
  std::vector<std::uint8_t> bytes_;
  format::HeaderType type_{};
  std::int64_t time_ = 0;
  Position position_;
  std::uint32_t machine_ = 0;
  std::uint16_t processor_ = 0;
};

enum class Order : std::uint8_t {
  // As stored: source after source, buffer after buffer. The events of one processor are in order of time,
  // processors interleave by buffer. Costs nothing.
  file,
  // In order of time over all processors and sources; at the same time by source, processor and position.
  // Exact for
  // events that are in order within their processor's buffers or at most one buffer late; what lies
  // further back is delivered as soon as it is met and counted in RunReport::late_events. Not for single-pass
  // traces.
  time,
};

// Which events a traversal gives, and in what order. What is given must all hold.
struct Query {
  Order order = Order::file;
  EventSet kinds{};                   // empty: every kind
  const Filter *filter = nullptr;     // prepared for this trace; needed until the traversal has begun
  std::optional<Moment> from{}, to{}; // events in between, ends included
  // With a time: also events outside it that say what is true inside: processes, threads, images, names of
  // files, stack definitions, schemas, loaded code; and StackWalk events, whatever the time of the event is
  // that they name.
  bool with_state = false;
};

namespace detail {

// One decoded buffer of a batch.
struct BufferView {
  const std::uint8_t *events = nullptr;
  std::uint32_t size = 0; // of the events
  std::uint32_t source = 0, buffer = 0, machine = 0;
  std::uint16_t processor = 0;
  bool begins_timeless = false; // the first event has no time
  std::int64_t first_time = 0;  // then: for events before the first one with a time
};

// One event of a batch whose order or choice is not that of its buffers.
struct EventRef {
  std::int64_t time = 0;
  std::uint32_t offset = 0, buffer = 0; // in the buffer's events; index in the batch
};

// A buffer's events ended early.
struct Damage {
  std::uint32_t buffer = 0; // index in the batch
  WalkEnd end;
};

} // namespace detail

// Some MiB of events in the order that was asked for. Not copied and not kept: it ends with the map that got
// it. One thread at a time.
class EventBatch {
public:
  EventBatch(const EventBatch &) = delete;
  EventBatch &operator=(const EventBatch &) = delete;

  // Input iterator. At damage the buffer's events end: the traversal fails when the batch is done, or notes
  // it.
  class Iterator {
  public:
    using value_type = Event;
    using difference_type = std::ptrdiff_t;
    using iterator_concept = std::input_iterator_tag;

    Iterator() = default;
    [[nodiscard]] const Event &operator*() const { return event_; }
    [[nodiscard]] const Event *operator->() const { return &event_; }
    Iterator &operator++() {
      if (next_ref_ != nullptr) {
        take_reference();
      } else {
        at_ += align8(event_.size());
        take_stored();
      }
      return *this;
    }
    void operator++(int) { ++*this; }
    [[nodiscard]] bool operator==(std::default_sentinel_t) const { return batch_ == nullptr; }

  private:
    friend class EventBatch;
    explicit Iterator(EventBatch &batch);
    void take_stored();
    void take_reference();

    Event event_;
    EventBatch *batch_ = nullptr;                       // null at the end
    const std::uint8_t *at_ = nullptr, *end_ = nullptr; // the rest of the buffer
    const detail::EventRef *next_ref_ = nullptr;
    std::size_t next_buffer_ = 0;
  };

  // From the beginning, each time.
  [[nodiscard]] Iterator begin() { return Iterator(*this); }
  [[nodiscard]] std::default_sentinel_t end() const { return {}; }

  // 0, 1, 2, ... along the traversal. Where batches end depends on the data and on RunOptions::memory, never
  // on threads or timing.
  [[nodiscard]] std::uint64_t ordinal() const { return ordinal_; }

private:
  friend struct detail::Traversal;
  friend class EventCursor;
  EventBatch() = default;
  // Notes damage and gives null; called once for a buffer that is damaged.
  void note_damage(std::size_t buffer, WalkEnd::Reason reason, const std::uint8_t *at, std::uint32_t found);

  std::span<const detail::BufferView> buffers_;
  std::span<const detail::EventRef> refs_;
  bool by_reference_ = false;
  std::uint64_t ordinal_ = 0;
  std::vector<detail::Damage> damage_;
};

inline EventBatch::Iterator::Iterator(EventBatch &batch) : batch_(&batch) {
  if (batch.by_reference_) {
    next_ref_ = batch.refs_.data();
    take_reference();
  } else {
    take_stored();
  }
}

// The walk of for_each_event, one step at a time and over several buffers.
inline void EventBatch::Iterator::take_stored() {
  for (;;) {
    if (end_ - at_ >= 8) {
      const std::uint32_t marker = load<std::uint32_t>(at_);
      if (marker != format::kEndOfEvents || !is_fill({at_, end_})) {
        const std::uint8_t family = static_cast<std::uint8_t>(marker >> 24);
        auto type = static_cast<std::uint8_t>(marker >> 16);
        WalkEnd::Reason wrong = WalkEnd::Reason::complete;
        if (family == format::kMarkerMessage)
          type = static_cast<std::uint8_t>(format::HeaderType::message);
        else if (family != format::kMarkerStructured)
          wrong = WalkEnd::Reason::bad_marker;
        const format::HeaderLayout &layout = format::kHeaderLayouts[type];
        const std::uint32_t size = load<std::uint16_t>(at_ + layout.size_at);
        if (size >= layout.header_size && size <= static_cast<std::size_t>(end_ - at_) &&
            wrong == WalkEnd::Reason::complete) [[likely]] {
          static_cast<EventView &>(event_) = EventView(at_, size, static_cast<format::HeaderType>(type));
          if (event_.has_time()) event_.time_ = event_.header_time();
          event_.position_.offset =
              static_cast<std::uint32_t>(at_ - batch_->buffers_[next_buffer_ - 1].events);
          return;
        }
        if (wrong == WalkEnd::Reason::complete)
          wrong = size < layout.header_size ? WalkEnd::Reason::bad_size : WalkEnd::Reason::overrun;
        batch_->note_damage(next_buffer_ - 1, wrong, at_,
                            wrong == WalkEnd::Reason::bad_marker ? marker : size);
      }
    }
    if (next_buffer_ == batch_->buffers_.size()) {
      batch_ = nullptr;
      return;
    }
    const detail::BufferView &buffer = batch_->buffers_[next_buffer_++];
    at_ = buffer.events;
    end_ = at_ + buffer.size;
    event_.time_ = buffer.first_time;
    event_.position_ = {buffer.source, buffer.buffer, 0};
    event_.machine_ = buffer.machine;
    event_.processor_ = buffer.processor;
  }
}

// References were made by a walk that found the event whole.
inline void EventBatch::Iterator::take_reference() {
  const detail::EventRef *const end = batch_->refs_.data() + batch_->refs_.size();
  if (next_ref_ == end) {
    batch_ = nullptr;
    return;
  }
  const detail::EventRef &ref = *next_ref_++;
#if defined(__GNUC__)
  constexpr std::ptrdiff_t kAhead = 8;
  if (end - next_ref_ > kAhead)
    __builtin_prefetch(batch_->buffers_[next_ref_[kAhead].buffer].events + next_ref_[kAhead].offset);
#endif
  const detail::BufferView &buffer = batch_->buffers_[ref.buffer];
  const std::uint8_t *const at = buffer.events + ref.offset;
  const std::uint32_t marker = load<std::uint32_t>(at);
  const std::uint8_t type = static_cast<std::uint8_t>(marker >> 24) == format::kMarkerMessage
                                ? static_cast<std::uint8_t>(format::HeaderType::message)
                                : static_cast<std::uint8_t>(marker >> 16);
  static_cast<EventView &>(event_) =
      EventView(at, load<std::uint16_t>(at + format::kHeaderLayouts[type].size_at),
                static_cast<format::HeaderType>(type));
  event_.time_ = ref.time;
  event_.position_ = {buffer.source, buffer.buffer, ref.offset};
  event_.machine_ = buffer.machine;
  event_.processor_ = buffer.processor;
}

// The events of a trace one by one. Serial: one thread at a time; batches are loaded ahead on up to
// RunOptions::threads - 1 others. Moves invalidate events, and so does the end of the cursor, which stops
// what is under way. Must not outlive its trace.
class EventCursor {
public:
  EventCursor(EventCursor &&) noexcept;
  EventCursor &operator=(EventCursor &&) noexcept;
  ~EventCursor();

  // Null at the end and on failure: status() tells.
  [[nodiscard]] const Event *next() {
    if (at_ != std::default_sentinel) ++at_;
    if (at_ == std::default_sentinel && !next_batch()) return nullptr;
    return &*at_;
  }
  [[nodiscard]] const Result<void> &status() const;

  template <std::invocable<const Event &> Visit> Result<void> for_each(Visit &&visit) && {
    while (const Event *event = next())
      visit(*event);
    return status();
  }

private:
  friend struct detail::Traversal;
  struct Impl;
  explicit EventCursor(std::unique_ptr<Impl> impl);
  bool next_batch(); // to the first event of the next batch that has one

  EventBatch::Iterator at_;
  std::unique_ptr<Impl> impl_;
};

// One or several inputs as one trace. Immutable once open: any thread, any number of traversals at once.
// Memory while it is open: some 60 bytes for each buffer.
class Trace {
public:
  // Reads all buffer headers, or of an archive the index. Wrapped inputs and streams are spooled first. A
  // zip, as PerfView's .etl.zip and Visual Studio's .diagsession are, gives a source for each member that is
  // a trace: every one that is called .etl, and every other that begins as one; the rest of it is left alone.
  static Result<Trace> open(Input input, const OpenOptions &options = {}, const RunOptions &run = {});
  static Result<Trace> open(std::vector<Input> inputs, const OpenOptions &options = {},
                            const RunOptions &run = {});
  // Opened traces as one, as open() of all their inputs would give it: they share what is open, and may go. A
  // single-pass trace is unsupported.
  static Result<Trace> together(std::span<const Trace *const> traces);
  Trace(Trace &&) noexcept;
  Trace &operator=(Trace &&) noexcept;
  ~Trace();

  [[nodiscard]] std::span<const SourceInfo> sources() const;
  // The times of all events are given in it: the clock of the source that begins first among those of the
  // machine that began first; or, where a source of another machine counts finer, or this one coarser than
  // FILETIME, a clock as fine that begins at the same moment, at 0. Whatever the clocks, events keep their
  // FILETIMEs, and those of one source their order, but for ticks that share a FILETIME.
  [[nodiscard]] const Clock &clock() const;
  // A stream that was not spooled (OpenOptions::spool), or a file that is followed: one source, read once, by
  // relog() alone so far. What else asks for its events, or a second call, fails as unsupported with
  // Advice::allow_spool.
  [[nodiscard]] bool single_pass() const;

  [[nodiscard]] EventCursor events(const Query &query = {}, const RunOptions &run = {}) const &;
  EventCursor events(const Query & = {},
                     const RunOptions & = {}) const && = delete; // it must not outlive its trace

  // map(Part &, EventBatch &): parallel, a Part for each batch; merge(Part &total, Part &part): serial, in
  // order, maybe not on the caller's thread; may return Result<void>, whose error ends the run. A part is
  // reused afterwards: clear()ed if it can be, else made anew. What either throws becomes
  // ErrorKind::callback.
  template <std::default_initializable Part, class Map, class Merge>
  [[nodiscard]] Result<Part> fold(Map map, Merge merge, const Query &query = {},
                                  const RunOptions &run = {}) const;

private:
  friend struct detail::Traversal;
  struct Impl;
  explicit Trace(std::unique_ptr<const Impl> impl);
  [[nodiscard]] Result<void> run_fold(const detail::FoldSteps &steps, const Query &query,
                                      const RunOptions &run) const;

  std::unique_ptr<const Impl> impl_;
};

namespace detail {

// A fold without its types: one call through a pointer for each batch and step.
struct FoldSteps {
  void *context = nullptr;
  void *(*make)(void *context) = nullptr;
  void (*destroy)(void *context, void *part) = nullptr;
  void (*map)(void *context, void *part, EventBatch &batch) = nullptr;
  Result<void> (*merge)(void *context, void *part) = nullptr;
};

} // namespace detail

namespace detail {

// A fold's functions and what they add up to, called by its steps.
template <class Part, class Map, class Merge> struct Folding {
  static_assert(std::is_invocable_v<Map &, Part &, EventBatch &>, "map(Part &, EventBatch &)");
  static_assert(std::is_invocable_v<Merge &, Part &, Part &>, "merge(Part &total, Part &part)");

  Map &map;
  Merge &merge;
  Part total{};

  // Valid as long as this is where it is.
  [[nodiscard]] FoldSteps steps() {
    FoldSteps steps;
    steps.context = this;
    steps.make = [](void *) -> void * { return new Part{}; };
    steps.destroy = [](void *, void *part) { delete static_cast<Part *>(part); };
    steps.map = [](void *self, void *part, EventBatch &batch) {
      static_cast<Folding *>(self)->map(*static_cast<Part *>(part), batch);
    };
    steps.merge = [](void *self, void *part) {
      return static_cast<Folding *>(self)->add(*static_cast<Part *>(part));
    };
    return steps;
  }

private:
  Result<void> add(Part &part) {
    Result<void> done;
    if constexpr (std::is_same_v<std::invoke_result_t<Merge &, Part &, Part &>, Result<void>>)
      done = merge(total, part);
    else
      static_cast<void>(merge(total, part));
    if constexpr (requires { part.clear(); })
      part.clear();
    else
      part = Part{};
    return done;
  }
};

} // namespace detail

template <std::default_initializable Part, class Map, class Merge>
Result<Part> Trace::fold(Map map, Merge merge, const Query &query, const RunOptions &run) const {
  detail::Folding<Part, Map, Merge> folding{map, merge};
  if (Result<void> done = run_fold(folding.steps(), query, run); !done) return std::move(done).error();
  return std::move(folding.total);
}

} // namespace etwrelog
