// The segments of an archive in the making: where a file is cut, and what becomes of each piece.
#pragma once

#include "archive/archive.hpp"
#include "archive/tally.hpp"
#include "base/progress_meter.hpp"
#include "etwrelog/logfile_header.hpp"
#include "source/trace.hpp"

#include <functional>

namespace etwrelog::pipeline {

// Decoded bytes of a segment. Larger ones compress better, smaller ones start more threads and seek finer.
[[nodiscard]] constexpr std::size_t segment_target(Level level, bool trace) {
  if (!trace) return std::size_t{8} << 20;
  return level >= Level::max ? std::size_t{64} << 20 : std::size_t{16} << 20;
}

[[nodiscard]] inline std::size_t target_of(const ArchiveOptions &options, bool trace) {
  return options.segment != 0 ? options.segment : segment_target(options.level, trace);
}

// What coding a segment takes, as a multiple of its decoded size: the bytes twice, the model's history and
// streams.
inline constexpr std::uint64_t kMemoryFactor = 7;

// A segment on its way; reused.
struct PackJob {
  std::uint64_t at = 0;
  base::Buffer bytes;
  std::vector<std::uint8_t> payload;
  std::vector<etlz::Part> parts;
  etlz::IndexEntry entry;
  std::vector<ColumnCost> explain;
  Tally tally; // where the file is tallied
  std::uint64_t decoded = 0;
  std::uint64_t stray = 0, first_stray = 0; // as PackReport has them
};

// How much of a file a source brings in.
enum class Reading : std::uint8_t {
  all,
  headers, // of buffers: to see where it is cut. What stands between them is not what the file holds.
};

// Cuts the input into segments; carries over what was read too much. The cuts do not depend on how it reads.
class SegmentSource {
public:
  SegmentSource(const read::Input &input, bool trace, std::size_t target, BytePool &byte_pool)
      : input_(input), trace_(trace), target_(target), byte_pool_(byte_pool) {}

  // False at the end.
  [[nodiscard]] Result<bool> next(PackJob &job, Reading reading = Reading::all);
  [[nodiscard]] std::uint64_t at() const { return at_; } // where the next one begins

private:
  // Brings in bytes from..to of the segment that begins at at_.
  [[nodiscard]] Result<void> fill(MutableBytes bytes, std::size_t from, std::size_t to, Reading reading);
  [[nodiscard]] Result<void> read(MutableBytes bytes, std::size_t from, std::size_t to);
  [[nodiscard]] Result<void> read_headers(MutableBytes bytes, std::size_t from, std::size_t to);

  const read::Input &input_;
  bool trace_;
  std::size_t target_;
  BytePool &byte_pool_;
  std::uint64_t at_ = 0;
  std::size_t last_ = 4u << 20;
  std::vector<std::uint8_t> carry_;
  bool carry_is_hollow_ = false; // read for its headers
  std::uint64_t header_ = 0;     // where the next one stands, while all is buffer after buffer
};

// What all segments of one file share.
struct PackedFile {
  const read::Input &input;
  bool trace = true;
  const ArchiveOptions &options;
  Workspace &workspace;
  bool tallied = false;              // count each segment that is coded
  bool one_stream = false;           // buffers do not tell the processor of an event
  std::uint64_t written_buffers = 0; // as PackReport has them
};

// Codes what a source has brought; checks that it comes back.
[[nodiscard]] Result<void> encode_segment(PackJob &job, const PackedFile &file);

// Of one segment, or of one trace of several, to what was found before it.
template <class From> void add_strays(const From &from, PackReport &report) {
  if (report.stray == 0) report.first_stray = from.first_stray;
  report.stray += from.stray;
}

// Counts a segment that went into the archive, and takes its buffer back.
void add_segment(PackJob &job, const PackedFile &file, PackReport &report);

// All segments that `next` gives, coded in parallel, in their order. The bytes of one live until `take`
// returns.
[[nodiscard]] Result<void> pack_segments(const PackedFile &file,
                                         const std::function<Result<bool>(PackJob &)> &next,
                                         const std::function<Result<void>(PackJob &)> &take,
                                         PackReport &report);

// Whether a file's first buffer looks like one and holds an event.
[[nodiscard]] Result<bool> looks_like_trace(const read::Input &input);
// What the header event says of the session and the streams; nothing known where there is none.
[[nodiscard]] Session read_header(PackedFile &file);

// Bytes of a part that are not slack behind events.
[[nodiscard]] std::uint64_t content_of(const etlz::Part &part, Bytes bytes);
// Content up to which a small archive is tried: coding it takes some microseconds a byte. What is larger
// comes out smaller by the model at default; max may take longer to find out.
[[nodiscard]] constexpr std::size_t small_content(Level level) {
  return level >= Level::max ? std::size_t{256} << 10 : std::size_t{80} << 10;
}
inline constexpr std::uint64_t kMostSmallFile = 64u << 20; // with all slack

// Reports bytes of several passes over a file as bytes of one.
class SharedProgress {
public:
  SharedProgress(const RunOptions &run, std::uint64_t total) : meter_(run.progress) {
    meter_.begin("packing", total);
  }
  void advance(std::uint64_t bytes, double share) {
    exact_ += static_cast<double>(bytes) * share;
    const auto now = static_cast<std::uint64_t>(exact_);
    meter_.advance(now - reported_);
    reported_ = now;
  }

private:
  base::ProgressMeter meter_;
  double exact_ = 0;
  std::uint64_t reported_ = 0;
};

// What `info` and `stats` want to know of a trace; empty for one that does not read without complaint.
[[nodiscard]] Result<std::vector<std::uint8_t>>
count_trace(const read::Input &input, const ArchiveOptions &options, SharedProgress &progress);
// Of the time that packing takes at default.
inline constexpr double kCountingShare = 1.0 / 12;
[[nodiscard]] bool to_be_counted(const read::Input &input, bool trace, const ArchiveOptions &options);
// The file as a trace, read by itself.
[[nodiscard]] Result<Trace> open_again(const read::Input &input);
// What is not counted may be tallied instead.
[[nodiscard]] inline bool to_be_tallied(const read::Input &input, bool trace, const ArchiveOptions &options) {
  return trace && !to_be_counted(input, trace, options);
}

} // namespace etwrelog::pipeline
