// What stands behind an opened etwrelog::Trace, for the parts of the library that need more than its public
// face.
#pragma once

#include "api/clock_map.hpp"
#include "base/platform.hpp"
#include "etwrelog/trace.hpp"
#include "source/stream.hpp"
#include "source/trace.hpp"

#include <atomic>

namespace etwrelog {

namespace pipeline {

class Walk;

// What tells an opened trace from all others that there ever were.
class Identity {
public:
  Identity() : number_(next_.fetch_add(1, std::memory_order_relaxed)) {}
  bool operator==(const Identity &) const = default;

private:
  inline static std::atomic<std::uint64_t> next_{0};
  std::uint64_t number_;
};

struct OpenedTrace {
  Identity identity;
  std::vector<base::FileId> files; // what it was opened from
  std::vector<std::unique_ptr<const Trace>> sources;
  std::shared_ptr<StreamSource> stream; // of a single-pass trace, which has no sources but an info
  std::vector<SourceInfo> infos;
  Clock first_clock;            // that of the earliest source of machine 0
  Clock clock;                  // of the trace: the same, where it is no coarser than the others
  std::vector<ClockMap> clocks; // of each source, to the trace's
};

} // namespace pipeline

struct Trace::Impl : pipeline::OpenedTrace {};

namespace detail {

// The way behind the public classes.
struct Traversal {
  static const pipeline::OpenedTrace &of(const Trace &trace) { return *trace.impl_; }
  // At least one; none of a stream that was not spooled, which is unsupported.
  static Result<std::vector<const pipeline::Trace *>> all_sources(const Trace &trace);
  // What a call that reads a trace says of its reading.
  static void add_to(RunReport *report, const std::vector<Skipped> &skipped,
                     const std::vector<std::string> &warnings);
  // What there is of the input; added even if reading it fails later.
  static void add_input(RunReport *report, const pipeline::Trace &source);
  // The error for what needs more than one look at a stream.
  static Error needs_spool(const Trace &trace);
  // Of a walk that has begun, or why it could not.
  static EventCursor cursor(Result<std::unique_ptr<pipeline::Walk>> walk);
  static std::unique_ptr<EventBatch> make_batch() { return std::unique_ptr<EventBatch>(new EventBatch); }
  static void set(EventBatch &batch, std::uint64_t ordinal, std::span<const BufferView> buffers,
                  std::span<const EventRef> refs, bool by_reference) {
    batch.ordinal_ = ordinal;
    batch.buffers_ = buffers;
    batch.refs_ = refs;
    batch.by_reference_ = by_reference;
    batch.damage_.clear();
  }
  static std::vector<Damage> &damage(EventBatch &batch) { return batch.damage_; }
};

} // namespace detail
} // namespace etwrelog
