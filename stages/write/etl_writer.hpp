// Lays sealed buffers behind each other and completes the header when all is known. Serial.
#pragma once

#include "base/output_file.hpp"
#include "etwrelog/logfile_header.hpp"
#include "write/buffers.hpp"

namespace etwrelog::write {

class EtlWriter {
public:
  // `header_event`: the logfile header event as it shall stand, but for what finish() completes;
  // `more_events`: the other events of the first buffer, each aligned to 8. header.buffer_size is the nominal
  // size. Writes the first buffer. Fails if the events do not fit it.
  static Result<EtlWriter> create(base::OutputFile file, const LogfileHeader &header, Bytes header_event,
                                  Bytes more_events, bool compressed);

  // Appends a sealed buffer. Its sequence and time stamp were set by stamp().
  [[nodiscard]] Result<void> append(const OutputBuffer &buffer);

  // Another header event of the same size in place of the one that was given, with its header.
  void replace_header(const LogfileHeader &header, Bytes header_event);

  // Marks the last buffer, completes BuffersWritten and EndTime and commits the file. `end_time` 0 keeps the
  // header's own; a header without one, of a log that was never closed, gets it.
  [[nodiscard]] Result<void> finish(std::int64_t end_time);

  [[nodiscard]] std::uint64_t size() const { return file_.size(); }
  [[nodiscard]] std::uint32_t buffers() const { return buffers_; }

private:
  base::OutputFile file_;
  LogfileHeader header_;
  std::vector<std::uint8_t> header_event_;
  std::uint64_t last_buffer_at_ = 0;
  std::uint32_t buffers_ = 0;
};

// Gives closed buffers their sequence numbers and time stamps: the FILETIME of the last event, never
// decreasing along the file. (Windows writes the time of relogging there; this depends on the trace alone, so
// that the same input gives the same bytes.) Called in output order.
class Stamper {
public:
  explicit Stamper(const Clock &clock) : clock_(clock) {}
  void stamp(OutputBuffer &buffer);

private:
  Clock clock_;
  std::int64_t next_sequence_ = 1; // 0 is the header buffer
  std::int64_t latest_ = 0;
};

} // namespace etwrelog::write
