// The file that a trace becomes: sealed buffers behind each other, and a header that is completed when all is
// known. Serial.
#pragma once

#include "base/output_file.hpp"
#include "write/etl_output.hpp"

namespace etwrelog::write {

class EtlWriter final : public TraceSink {
public:
  explicit EtlWriter(base::OutputFile file) : file_(std::move(file)) {}

  // Also fails if the events do not fit the first buffer.
  [[nodiscard]] Result<void> begin(const LogfileHeader &header, const HeaderBuffer &first) override;
  [[nodiscard]] Result<void> append(const OutputBuffer &buffer) override;

  // Another header event of the same size in place of the one that was given, with its header.
  void replace_header(const LogfileHeader &header, Bytes header_event);

  // Marks the last buffer, completes BuffersWritten and EndTime and commits the file. `end_time` 0 keeps the
  // header's own; a header without one, of a log that was never closed, gets it. `more_lost`: buffers that
  // were lost since the header was written, added to BuffersLost.
  [[nodiscard]] Result<void> finish(std::int64_t end_time, std::uint64_t more_lost = 0);

  [[nodiscard]] std::uint64_t size() const { return file_.size(); }
  [[nodiscard]] std::uint32_t buffers() const { return buffers_; }

private:
  base::OutputFile file_;
  LogfileHeader header_;
  std::vector<std::uint8_t> header_event_;
  std::uint64_t last_buffer_at_ = 0;
  std::uint32_t buffers_ = 0;
};

} // namespace etwrelog::write
