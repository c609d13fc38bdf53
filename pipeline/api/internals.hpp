// What stands behind an opened etwrelog::Trace, for the parts of the library that need more than its public
// face.
#pragma once

#include "api/clock_map.hpp"
#include "etwrelog/trace.hpp"
#include "source/trace.hpp"

namespace etwrelog {

namespace pipeline {

struct OpenedTrace {
  std::vector<std::unique_ptr<const Trace>> sources;
  std::vector<SourceInfo> infos;
  std::vector<ClockMap> clocks; // to the first source's
};

} // namespace pipeline

struct Trace::Impl : pipeline::OpenedTrace {};

namespace detail {

// The way behind the public classes.
struct Traversal {
  static const pipeline::OpenedTrace &of(const Trace &trace) { return *trace.impl_; }
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
