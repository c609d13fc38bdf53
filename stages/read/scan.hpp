// Finds the buffers of a trace by their headers alone.
#pragma once

#include "etwrelog/logfile_header.hpp"
#include "etwrelog/run.hpp"
#include "read/input.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace etwrelog::read {

struct BufferSpan {
  std::uint64_t offset = 0;  // in the input
  std::uint32_t size = 0;    // bytes that are there, header included
  std::uint32_t decoded = 0; // bytes of its events when decoded, as the header claims
  bool cut = false;          // the input ends before the buffer does
  bool compressed = false;   // as its header says
  std::uint16_t processor = 0;
  std::int64_t time_stamp = 0; // when it was written, raw; a FILETIME in relogged files
  bool rebuilt = false; // when salvaging: the first buffer, whose own header is damaged and means nothing

  // Whether the cut took more than padding.
  [[nodiscard]] bool lost_events() const {
    return cut && (compressed || format::kBufferHeaderSize + decoded > size);
  }
};

using etwrelog::Skipped;

struct ScanOptions {
  bool salvage = false;    // step over damage instead of failing
  bool file_order = false; // leave a wrapped circular log in the order of the file
  unsigned threads = 1;    // that read at a time; where they cannot be had, fewer do
  std::stop_token stop{};
  std::function<void(const Progress &)> progress{};
};

struct Scan {
  LogfileHeader header;
  std::vector<BufferSpan> buffers; // in the order in which they are to be read
  std::vector<std::string> warnings;
  std::vector<Skipped> skipped;
  std::uint64_t trailing_bytes = 0;  // behind the last buffer, too few for another
  std::uint64_t unwritten_bytes = 0; // zeros at the end of a preallocated or unfinished log
  bool wrapped = false;              // a circular log whose oldest buffer is not the second
};

// The logfile header from the first bytes of a trace (64 KiB + 0x48 suffice). The error says why it is no ETL
// trace.
[[nodiscard]] Result<LogfileHeader> read_first_event(Bytes head, const std::string &name);
// The same whatever the header of the first buffer says.
[[nodiscard]] Result<LogfileHeader> salvage_first_event(Bytes head, const std::string &name);

// What makes a buffer header impossible at that offset, if anything. `left`: bytes of the input from there
// on.
[[nodiscard]] Result<void> check_buffer_header(const format::BufferHeader &header, std::uint64_t offset,
                                               std::uint64_t left, std::size_t index,
                                               std::uint32_t nominal_size, const std::string &name);

// Bytes of a buffer's events when decoded, as its header claims.
[[nodiscard]] std::uint32_t decoded_size(const format::BufferHeader &header);

// What to say of a log of which buffers are missing (LogfileHeader::missing_buffers).
[[nodiscard]] std::string missing_buffers_text(const LogfileHeader &header, std::uint64_t there);

// What to say where a buffer that begins a log stands behind others: files that were put one behind the
// other.
[[nodiscard]] std::string another_log_text(std::uint64_t offset);

// What to say of a log without an end (LogfileHeader::closed).
inline constexpr std::string_view kNeverClosedText =
    "the log was never closed: end time and lost counts are unknown";

// A circular log that ran over its size has its oldest buffer somewhere in the middle: the sequence numbers
// of one processor step back there. Takes those of all buffers but the first, which holds the header, in file
// order.
class BufferNumbers {
public:
  // The number before this one of the processor, if this is a lower one.
  [[nodiscard]] std::optional<std::int64_t> stepped_back(std::uint16_t processor, std::int64_t number) {
    const auto [latest, fresh] = latest_.try_emplace(processor, number);
    const std::int64_t before = std::exchange(latest->second, number);
    return number < before ? std::optional(before) : std::nullopt;
  }

private:
  std::unordered_map<std::uint16_t, std::int64_t> latest_;
};

// Reads every buffer header and the logfile header. Fails with the offset when the input is no ETL trace or,
// unless salvaging, when a header is impossible. A last buffer that is cut short is normal after a crash: it
// is kept, with a warning, and so are trailing bytes.
[[nodiscard]] Result<Scan> scan_buffers(const Input &input, const ScanOptions &options);

} // namespace etwrelog::read
