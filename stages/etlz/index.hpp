// The index of an archive: what a reader needs to plan without touching segments. See etlz-format.md.
#pragma once

#include "base/segment_summary.hpp"
#include "etlz/container.hpp"
#include "etlz/segment.hpp"

namespace etwrelog::etlz {

// Event bytes in the summaries of one archive; segments behind have none.
inline constexpr std::uint64_t kMaxSummaries = 64u << 20;
inline constexpr std::uint64_t kMaxFacts = 16u << 20; // larger ones are not written

struct IndexEntry {
  std::uint64_t archive_at = 0; // of the segment's header; not stored, because segments tile the archive
  SegmentHeader header;
  SegmentFacts facts;
  // The original's parts in this segment, and the headers of those that are buffers, so that a reader finds
  // its way through the trace without decoding it.
  std::vector<Part> parts;
  std::vector<std::uint8_t> buffer_headers; // 72 bytes each
  SegmentSummary summary;
};

struct Index {
  std::vector<IndexEntry> segments;
  std::vector<std::uint8_t> facts; // of the whole trace: what the reader makes of it; may be empty
};

// Collects entries in the order of the segments. Holds them compressed: little, however large the archive.
// Process and thread ids are there to tell segments apart: of one that is alone they are left out, unless it
// is `part` of an archive that others hold the rest of.
class IndexWriter {
public:
  explicit IndexWriter(bool part = false) : part_(part) {}
  void add(const IndexEntry &entry);
  // Appends the index to `out`.
  void finish(Bytes facts, std::vector<std::uint8_t> &out);

private:
  bool part_;
  std::vector<std::uint8_t> list_, frames_; // entries that wait for a frame; frames
  std::size_t ids_at_ = 0, ids_size_ = 0;   // of the first entry, in list_
  std::size_t count_ = 0;
  std::uint64_t summaries_ = 0; // bytes of events in them
};

// Whether an index, by its header, stands there.
[[nodiscard]] bool begins_index(Bytes bytes);
// Appends the entries of one decoded frame. False if they are damaged or take more than `memory`.
[[nodiscard]] bool read_index_entries(Bytes frame, std::vector<IndexEntry> &entries, std::uint64_t memory);

struct IndexLimits {
  std::uint64_t memory = 0;   // for all that the index becomes
  std::uint64_t segments = 0; // that the archive has room for
  std::uint64_t original = 0; // bytes, as header and footer have it
};
// Checks that the values are possible. Takes no memory that the limits do not allow.
[[nodiscard]] Result<Index> read_index(Bytes bytes, const IndexLimits &limits);

} // namespace etwrelog::etlz
