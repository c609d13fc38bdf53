// That what the index says of a segment is what is in it: whoever asks an archive for a time or a process
// decodes those segments alone that the index names.
#pragma once

#include "archive/summary.hpp"
#include "etlz/index.hpp"

#include <span>
#include <string>
#include <vector>

namespace etwrelog::pipeline {

// Owns scratch memory: one a thread.
class EntryCheck {
public:
  // `segment`: as it was decoded. An index may name more processes, threads and events than a reader needs,
  // as those of other versions do: what it names must be there, and what a reader needs must be named.
  [[nodiscard]] Result<void> check(Bytes segment, const etlz::IndexEntry &entry, const std::string &archive);

private:
  // Of events that an entry names, in their order, the first that is not in the segment; null if all are.
  [[nodiscard]] const SegmentSummary::Event *find_invented(Bytes segment, const etlz::IndexEntry &entry,
                                                           std::span<const SegmentSummary::Event> named);

  Summarizer summarizer_;
  SegmentOwners owners_;
  std::vector<std::uint8_t> decoded_;
};

} // namespace etwrelog::pipeline
