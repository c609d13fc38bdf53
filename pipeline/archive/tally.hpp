// Events and bytes by type, events and samples by process of a trace that becomes an archive, for its index:
// a question to many archives then reads nothing else of them. Made of the segments on their way, and cheap:
// it does not say which stacks are the same (collect_statistics does).
#pragma once

#include "archive/owners.hpp"
#include "etlz/segment.hpp"
#include "etwrelog/archive.hpp"
#include "etwrelog/statistics.hpp"
#include "schema/event_names.hpp"
#include "schema/type_counts.hpp"
#include "source/archive_input.hpp"

namespace etwrelog::pipeline {

// What the index keeps of it.
struct TallyRecord {
  // Events and bytes, of all and by type; of stacks walks, references and frames.
  Statistics statistics;
  Session session;
  std::optional<std::vector<NamedProcesses>> processes;
};

struct PackedFile;

// Of one segment, by add(), or of several, merged in their order. Owns scratch memory.
class Tally {
public:
  void clear();
  // `coder`: that has just encoded the segment; null where nothing of it is decoded.
  void add(Bytes segment, std::span<const etlz::Part> parts, const etlz::SegmentCoder *coder);
  // Whether nothing but whole buffers was added.
  [[nodiscard]] bool is_whole() const { return whole_; }
  // Of the segment that add() was given last, where that is so.
  [[nodiscard]] SegmentSummary::Owners owners() { return segment_.told(); }
  void merge(const Tally &later);
  // For the index of the archive of `file`; empty if the trace holds anything but whole buffers: then only
  // reading it tells.
  [[nodiscard]] Result<std::vector<std::uint8_t>> record(const Session &session, const PackedFile &file);

private:
  void count(const EventView &event, std::int64_t time);

  schema::TypeCounts types_;
  schema::EventNames names_;
  StackCounts stacks_;
  SegmentOwners segment_; // the one that add() was given last
  TraceOwners owners_;
  bool whole_ = true;
  std::vector<std::uint8_t> decoded_;
};

// nullopt if it is none. By type, in the order of types.
[[nodiscard]] std::optional<TallyRecord> read_tally(Bytes record);

// Whether an index of these rules (etlz::Footer) may say other things of the trace's events than today's,
// whose record of the whole this is. Then nothing that it says of them is to be used.
[[nodiscard]] bool is_outdated(std::uint32_t rules, Bytes record);
// Forgets what it says, where that is so.
void forget_outdated(ArchiveIndex &index);

// The record itself (tally_record.cpp): names of types only where they are not built in, no sums. Empty if it
// is too large for one.
[[nodiscard]] std::vector<std::uint8_t> write_tally(TallyRecord record);
[[nodiscard]] std::optional<TallyRecord> read_coded_tally(Bytes record);

} // namespace etwrelog::pipeline
