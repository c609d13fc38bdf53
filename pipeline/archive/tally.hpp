// Events and bytes by type of a trace that becomes an archive, for its index: a question to many archives
// then reads nothing else of them. Made of the segments on their way, and cheap: it says nothing of
// processes, and not which stacks are the same (collect_statistics does).
#pragma once

#include "etlz/segment.hpp"
#include "etwrelog/archive.hpp"
#include "etwrelog/statistics.hpp"
#include "schema/event_names.hpp"
#include "schema/type_counts.hpp"

namespace etwrelog::pipeline {

// Smaller files are decoded sooner than their counts would be worth their bytes.
inline constexpr std::uint64_t kTallyFrom = 2u << 20;

// Of one segment, or of several in their order. Owns scratch memory.
class Tally {
public:
  void clear();
  // `coder`: that has just encoded the segment; null where nothing of it is decoded.
  void add(Bytes segment, std::span<const etlz::Part> parts, const etlz::SegmentCoder *coder);
  void merge(const Tally &later);
  // For the index; empty if the trace holds anything but whole buffers: then only reading it tells.
  [[nodiscard]] std::vector<std::uint8_t> record(const Session &session) const;

private:
  void count(const EventView &event);

  schema::TypeCounts types_;
  schema::EventNames names_;
  StackCounts stacks_;
  bool whole_ = true;
  std::vector<std::uint8_t> decoded_;
};

// What such a record says: events and bytes, of all and by type; of stacks walks, references and frames.
// nullopt if it is none.
[[nodiscard]] std::optional<Statistics> read_tally(std::string_view record);

} // namespace etwrelog::pipeline
