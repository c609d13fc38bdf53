// Output buffers: events of one processor in order, closed when the next event does not fit, sealed into the
// bytes that go to the file. Only re-chunking needs order; sealing (compression) runs on any thread.
#pragma once

#include "base/pool.hpp"
#include "base/raw_memory.hpp"
#include "etwrelog/codec.hpp"
#include "etwrelog/error.hpp"
#include "etwrelog/event.hpp"

#include <memory>
#include <vector>

namespace etwrelog::write {

// Who makes runs ends one that has become this long: a run that does not fit an output buffer is walked event
// by event, where order allows one thread only.
inline constexpr std::uint32_t kLongRun = 8192;

// A stretch of whole events, aligned to 8, as they follow each other in a decoded buffer.
struct Run {
  std::uint32_t begin = 0, end = 0; // offsets in the buffer's events
  std::int64_t last_time = 0;       // raw time of the last event
};
// What a run covers. The padding of the last event may lie behind `events`, which have room up to the next
// multiple of 8.
[[nodiscard]] inline Bytes bytes_of(const Run &run, Bytes events) {
  return {events.data() + run.begin, run.end - run.begin};
}

struct OutputBuffer {
  base::Buffer bytes; // room for the buffer header, then events; after sealing what goes to the file
  std::uint16_t processor = 0;
  std::uint16_t type = format::kTypeGeneric;
  std::uint16_t lost_flags = 0; // kFlagEventsLost, kFlagBufferLost
  std::uint32_t failed_reservation =
      0;                         // size of the event that did not fit any more; 0 when flushed before full
  std::int64_t last_time = 0;    // raw time of the last event
  std::int64_t time_stamp = 0;   // FILETIME; set in order
  std::int64_t sequence = 0;     // set in order
  std::uint32_t valid_bytes = 0; // header + decoded events; set by sealing
  bool as_stored = false;        // `bytes` are an input's, header and all: sealing numbers it, no more

  [[nodiscard]] bool empty() const { return bytes.size() <= format::kBufferHeaderSize; }
};

// What is known of the input buffer that events come from.
struct Origin {
  std::uint16_t processor = 0;
  std::uint16_t type = format::kTypeGeneric;
  std::uint16_t lost_flags = 0;
  bool whole = false;                   // every event of the input buffer is kept
  std::uint32_t failed_reservation = 0; // of a full input buffer of the same nominal size, else 0
};

// Those of a buffer's flags that say that something was lost before it.
[[nodiscard]] inline std::uint16_t lost_flags(const format::BufferHeader &header) {
  return header.flags & (format::kFlagEventsLost | format::kFlagBufferLost);
}

// The reservation that closed a full buffer, from its header: CurrentOffset - SavedOffset. 0 if the buffer
// was flushed early or the field says nothing plausible.
[[nodiscard]] std::uint32_t failed_reservation(const format::BufferHeader &header,
                                               std::uint32_t nominal_size);

// Fills one open buffer per processor. Serial; the order of calls decides the order of the output.
class Rechunker {
public:
  // keep_grouping: every input buffer becomes one output buffer, in file order.
  Rechunker(std::uint32_t nominal_size, bool keep_grouping) : nominal_(nominal_size), keep_(keep_grouping) {}

  // Copies the runs of one input buffer; buffers that became full are appended to `closed`. A buffer that was
  // full in the input, arrives whole and meets an empty open buffer is closed at once, so that relogging an
  // own output gives the same buffers in the same order. Fails on an event that no buffer of the nominal size
  // can hold.
  [[nodiscard]] Result<void> add(const Origin &origin, Bytes events, std::span<const Run> runs,
                                 std::vector<OutputBuffer> &closed);
  // Closes what is open, by processor.
  void flush(std::vector<OutputBuffer> &closed);
  // Empties `closed`; what is opened next uses the memory, of which little is held for that. Any thread.
  void reuse(std::vector<OutputBuffer> &closed);

private:
  [[nodiscard]] OutputBuffer fresh(const Origin &origin);
  void close(OutputBuffer &open, std::uint32_t failed, std::vector<OutputBuffer> &closed) const;

  std::uint32_t nominal_;
  bool keep_;
  std::vector<OutputBuffer> open_; // by processor
  std::unique_ptr<base::BytePool> written_ = std::make_unique<base::BytePool>(std::size_t{16} << 20);
};

// Writes the buffer header and compresses or fills. With a compressor, a buffer that does not shrink is
// stored uncompressed at its own length, as Windows does; without, it is filled with 0xFF up to the nominal
// size. Of a buffer as it was stored, events and header stay, but for its number, time stamp, flush marker
// and fill. `scratch` is reused between calls.
void seal(OutputBuffer &buffer, std::uint32_t nominal_size, Compressor *compressor, base::RawMemory &scratch);

// The first buffer of a file.
struct HeaderBuffer {
  Bytes header_event, more_events; // the logfile header as it shall stand; the others, each aligned to 8
  std::uint16_t processor = 0;
  std::uint16_t lost_flags = 0; // as of an Origin
  [[nodiscard]] std::size_t size() const {
    return format::kBufferHeaderSize + align8(header_event.size()) + more_events.size();
  }
};
// Never compressed; in a compressed file its size is rounded up to 512, otherwise it is the nominal size.
[[nodiscard]] std::vector<std::uint8_t> make_header_buffer(const HeaderBuffer &first,
                                                           std::uint32_t nominal_size, bool compressed);

} // namespace etwrelog::write
