// The sources of a trace as far as a stretch of time needs them.
#pragma once

#include "api/internals.hpp"

#include <optional>

namespace etwrelog::pipeline {

// Of an archive, segments whose events all lie outside the time are not decoded: of their buffers there are
// the events that matter nevertheless, out of the index (Trace::without). Immutable; the opened trace
// outlives it.
class SourcesInTime {
public:
  // All there is.
  explicit SourcesInTime(const OpenedTrace &trace) : trace_(&trace) {}
  // `from` and `to` in ticks of the trace's clock.
  SourcesInTime(const OpenedTrace &trace, std::int64_t from, std::int64_t to) : trace_(&trace) {
    narrowed_.resize(trace.sources.size());
    for (std::size_t s = 0; s < narrowed_.size(); ++s)
      if (trace.infos[s].access == Access::archive && trace.clocks[s].same())
        narrowed_[s] = trace.sources[s]->within(from, to);
  }

  [[nodiscard]] std::size_t size() const { return trace_->sources.size(); }
  [[nodiscard]] const Trace &operator[](std::size_t source) const {
    return narrowed_.empty() || !narrowed_[source] ? *trace_->sources[source] : *narrowed_[source];
  }
  [[nodiscard]] std::uint64_t buffers_left_out() const {
    std::uint64_t sum = 0;
    for (const std::optional<Trace> &source : narrowed_)
      if (source) sum += source->buffers_left_out();
    return sum;
  }

private:
  const OpenedTrace *trace_;
  std::vector<std::optional<Trace>> narrowed_; // by source, or empty
};

} // namespace etwrelog::pipeline
