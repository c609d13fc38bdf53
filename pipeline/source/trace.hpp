// An opened trace: its input, header and buffers, and how a batch of buffers is brought into memory, decoded.
#pragma once

#include "base/raw_memory.hpp"
#include "etwrelog/codec.hpp"
#include "etwrelog/event.hpp"
#include "read/scan.hpp"
#include "source/indexed_input.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>

namespace etwrelog::pipeline {

struct DecodedBuffer {
  std::uint32_t index = 0; // in reading order
  std::uint64_t file_offset = 0;
  format::BufferHeader header;
  Codec codec = Codec::none; // what its events were compressed with
  bool cut = false;          // the file ends inside it: a last event that does not fit is no damage
  bool from_index = false;   // `events` are those alone that matter nevertheless: see Trace::without
  bool left_out = false;     // and the buffer has others
  MutableBytes events;       // decoded; in the batch's memory, which has room up to the next multiple of 8
  Bytes stored;              // as it lies in the file, header and all; empty if it was not read from there
};

// Events of a buffer that stand uncompressed in the file: offsets in its events. May end in padding behind
// them.
struct Stretch {
  std::uint32_t begin = 0, end = 0;
};
// In order, none empty.
using Stretches = std::span<const Stretch>;

// Memory for some MiB of consecutive buffers. Reused from batch to batch.
struct Batch {
  std::uint64_t ordinal = 0;
  std::size_t first = 0, count = 0; // in Trace::buffers()
  base::Buffer raw, decoded;        // what `buffers` point into
  std::vector<DecodedBuffer> buffers;
  std::uint64_t events = 0;           // seen by visit()
  std::optional<Error> error;         // the first failure in this batch
  std::vector<read::Skipped> skipped; // when salvaging
  std::vector<std::string> warnings;
};

// Decodes a buffer whose header does not name the codec: the expected one first, then the others; both
// lengths must fit exactly. nullopt if none does.
[[nodiscard]] std::optional<Codec> decode_events(Codec expected, Bytes stored, MutableBytes events);

// A described input, opened: the traces in it, an archive as those that it holds.
struct OpenedInput {
  std::unique_ptr<read::Input> input;
  bool archive = false;
};
[[nodiscard]] Result<std::vector<OpenedInput>> open_sources(const etwrelog::Input &input,
                                                            const RunOptions &run);

inline constexpr std::size_t kCacheLine = 64;

// Fetches ahead of a walk over events that an earlier pass has put into memory and that no cache holds any
// more: the place of the next event stands in the one before, and without this each costs a wait for memory.
class MemoryAhead {
public:
  explicit MemoryAhead(const DecodedBuffer &buffer)
      : events_(buffer.events), size_(buffer.stored.empty() ? events_.size() : 0) {}
  void at(std::size_t offset) {
    for (const std::size_t to = std::min(size_, offset + kFar); fetched_ < to; fetched_ += kCacheLine)
      __builtin_prefetch(events_.data() + fetched_);
  }

private:
  static constexpr std::size_t kFar = 2048;
  Bytes events_;
  std::size_t size_, fetched_ = 0; // 0: what was just read is at hand
};

class Trace {
public:
  // `name` as for read::open_input.
  static Result<Trace> open(const std::string &name, const read::ScanOptions &options);
  static Result<Trace> open(std::unique_ptr<read::Input> input, const read::ScanOptions &options);

  [[nodiscard]] const read::Input &input() const { return *input_; }
  [[nodiscard]] const LogfileHeader &header() const { return scan_.header; }
  [[nodiscard]] const Clock &clock() const { return clock_; }
  [[nodiscard]] const read::Scan &scan() const { return scan_; }
  [[nodiscard]] std::span<const read::BufferSpan> buffers() const { return scan_.buffers; }
  // The codec that the first compressed buffers decode with; none in an uncompressed trace.
  [[nodiscard]] Codec codec() const { return codec_; }
  [[nodiscard]] bool salvage() const { return salvage_; }

  // Whether anything of it can be left out.
  [[nodiscard]] bool has_index() const {
    return index_ != nullptr && !distrusted_ && !salvage_ && !scan_.buffers.empty();
  }
  // IndexedInput::rules; today's without an index.
  [[nodiscard]] std::uint32_t index_rules() const {
    return index_ != nullptr ? index_->rules() : etlz::kIndexRules;
  }
  // From now on nothing is taken from what the index says of events.
  void distrust_index() { distrusted_ = true; }
  // The same trace, but those segments of an archive that `out` picks are not read: of buffers there load()
  // gives only the events that matter nevertheless (filter::is_state), out of the index. Not when salvaging.
  [[nodiscard]] Trace without(const std::function<bool(const SummarizedSegment &)> &out) const;
  // The same trace, which shares its input.
  [[nodiscard]] Trace again() const { return *this; }
  // The same without what lies wholly outside a time.
  [[nodiscard]] Trace within(std::int64_t from, std::int64_t to) const;
  // What an archive knows of the trace as a whole (statistics_record); empty if nothing.
  [[nodiscard]] Bytes facts() const { return index_ != nullptr && !distrusted_ ? index_->facts() : Bytes(); }
  // What was picked, in order.
  [[nodiscard]] std::span<const SummarizedSegment> left_out() const { return summarized_; }
  [[nodiscard]] std::uint64_t buffers_left_out() const;

  // How many of the session's buffers lack, wholly or from a place on, as far as that can be told.
  [[nodiscard]] std::uint64_t incomplete_buffers() const;

  // Bytes of stored buffers, and of headers and decoded events.
  [[nodiscard]] std::uint64_t stored_bytes() const;
  [[nodiscard]] std::uint64_t decoded_bytes() const;

  // Reads and decodes batch.first .. batch.first + batch.count. Failures go to batch.error or, when
  // salvaging, to batch.skipped. Any thread.
  void load(Batch &batch) const;

  // Fills buffer.events with those in the stretches alone, one behind the other, from the file. False on
  // failure, which batch.error says. `room`: room_for(stretches) bytes of the batch's memory.
  [[nodiscard]] bool load_again(Batch &batch, DecodedBuffer &buffer, Stretches stretches,
                                MutableBytes room) const;
  [[nodiscard]] static std::size_t room_for(Stretches stretches);

  // Walks the events of one buffer with visit(event, time, offset) and records damage in the batch, once for
  // each buffer.
  template <class Visit> void visit(Batch &batch, const DecodedBuffer &buffer, Visit &&visit_event) const {
    std::uint64_t events = 0;
    MemoryAhead ahead(buffer);
    const WalkEnd end = for_each_event(
        buffer.events,
        [&](const EventView &event, std::int64_t time, std::uint32_t at) {
          ++events;
          ahead.at(at);
          visit_event(event, time, at);
        },
        header().first_stamp);
    batch.events += events;
    if (!end) note_walk_end(batch, buffer, end);
  }

  // The error for a walk that ended early, as visit() records it.
  [[nodiscard]] Error walk_error(const DecodedBuffer &buffer, const WalkEnd &end) const;

  // Records damage that a walk over a buffer has met, as visit() does.
  void note_walk_end(Batch &batch, const DecodedBuffer &buffer, const WalkEnd &end) const;

  Trace(Trace &&) = default;
  Trace &operator=(Trace &&) = default;

private:
  Trace() = default;
  Trace(const Trace &) = default;
  Result<void> detect_codec();
  // Leaves out the buffers that an index has but no bytes for.
  Result<void> step_over_lost(const std::stop_token &stop);
  void leave_out(const std::function<bool(const SummarizedSegment &)> &out);
  // The stored bytes of the spans, one behind the other; sets batch.error on failure.
  [[nodiscard]] MutableBytes fetch(Batch &batch, std::span<const read::BufferSpan> spans,
                                   std::size_t raw_bytes) const;
  // False on failure, also where there are fewer bytes; batch.error says which.
  [[nodiscard]] bool read_exactly(Batch &batch, std::uint64_t offset, MutableBytes into) const;
  // The stretch that is left out and holds the span; null for one that is read.
  [[nodiscard]] const SummarizedSegment *summarized(const read::BufferSpan &span) const;
  // False if the index contradicts the buffer.
  [[nodiscard]] bool load_summarized(const SummarizedSegment &stretch, const read::BufferSpan &span,
                                     MutableBytes room, DecodedBuffer &buffer) const;
  [[nodiscard]] Error contradiction(const read::BufferSpan &span) const;
  [[nodiscard]] Error undecodable(const read::BufferSpan &span, std::size_t index) const;

  std::shared_ptr<const read::Input> input_;
  const IndexedInput *index_ = nullptr; // the input, where it is one
  read::Scan scan_;
  Clock clock_;
  Codec codec_ = Codec::none;
  bool salvage_ = false, distrusted_ = false;
  std::vector<SummarizedSegment> summarized_; // sorted
};

} // namespace etwrelog::pipeline
