// An input that knows the trace in it without reading it: an archive's index.
#pragma once

#include "base/segment_summary.hpp"
#include "read/input.hpp"

namespace etwrelog::pipeline {

// Bytes of an input of whose buffers there is a summary.
struct SummarizedSegment {
  std::uint64_t begin = 0, end = 0;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> buffers; // begin and size of each, in order
  const SegmentSummary *summary = nullptr;                      // the input's
};

class IndexedInput : public read::Input {
public:
  using read::Input::Input;

  // In order, without overlap.
  [[nodiscard]] virtual std::vector<SummarizedSegment> summarized() const { return {}; }
  // Nobody will ask for these bytes any more, but for buffer headers: no need to have them ready.
  virtual void skip(std::uint64_t /*begin*/, std::uint64_t /*end*/) const {}
  // What is known of the trace as a whole (pipeline::statistics_record); empty if nothing is.
  [[nodiscard]] virtual Bytes facts() const { return {}; }
};

} // namespace etwrelog::pipeline
