// An input that knows the trace in it without reading it: an archive's index.
#pragma once

#include "base/segment_summary.hpp"
#include "etlz/container.hpp"
#include "etwrelog/run.hpp"
#include "read/input.hpp"

#include <algorithm>
#include <stop_token>

namespace etwrelog::pipeline {

// Bytes of an input of whose buffers there is a summary.
struct SummarizedSegment {
  std::uint64_t begin = 0, end = 0;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> buffers; // begin and size of each, in order
  const SegmentSummary *summary = nullptr;                      // the input's

  // Events, and their bytes, that the summary does not list.
  [[nodiscard]] std::uint64_t other_events() const {
    return summary->events - std::min<std::uint64_t>(summary->events, summary->state.size());
  }
  [[nodiscard]] std::uint64_t other_bytes() const {
    return summary->event_bytes - std::min<std::uint64_t>(summary->event_bytes, summary->bytes.size());
  }
};

class IndexedInput : public read::Input {
public:
  using read::Input::Input;

  // In order, without overlap.
  [[nodiscard]] virtual std::vector<SummarizedSegment> summarized() const { return {}; }
  // Nobody is expected to ask for these bytes, but for buffer headers, until the next call: no need to have
  // them ready.
  virtual void skip(std::span<const SummarizedSegment> /*segments*/) const {}
  // Stretches whose bytes cannot be had, by what is stored of them: all is read and nothing decoded.
  [[nodiscard]] virtual Result<std::vector<Skipped>> lost(const std::stop_token & /*stop*/) const {
    return std::vector<Skipped>();
  }
  // By which it says what events are, and whose (etlz::kIndexRules).
  [[nodiscard]] virtual std::uint32_t rules() const { return etlz::kIndexRules; }
  // What is known of the trace as a whole (pipeline::statistics_record); empty if nothing is.
  [[nodiscard]] virtual Bytes facts() const { return {}; }
};

} // namespace etwrelog::pipeline
