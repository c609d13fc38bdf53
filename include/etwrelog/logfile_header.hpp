// TRACE_LOGFILE_HEADER: the first event of the first buffer. A value that owns its strings; plain functions,
// any thread.
#pragma once

#include "etwrelog/clock.hpp"
#include "etwrelog/error.hpp"
#include "etwrelog/event.hpp"

#include <optional>
#include <string>
#include <vector>

namespace etwrelog {

// SYSTEMTIME, as TIME_ZONE_INFORMATION has it: when local time changes, told in the local time that ends
// then. In every year on the `day`th such weekday of the month, 5 for the last one; or, where a year is
// given, once, on that day of the month.
struct TimeChange {
  std::uint16_t year = 0, month = 0, weekday = 0, day = 0; // month 0: never; weekday 0: Sunday
  std::uint16_t hour = 0, minute = 0, second = 0, millisecond = 0;
  bool operator==(const TimeChange &) const = default;
};

// Minutes that are added to LogfileHeader::timezone_bias during daylight saving time, and otherwise.
struct DaylightSaving {
  TimeChange begins, ends;
  std::int32_t bias = 0, standard_bias = 0;
  bool operator==(const DaylightSaving &) const = default;
};

struct LogfileHeader {
  std::uint32_t buffer_size = 0; // nominal, in bytes
  std::uint8_t major = 0, minor = 0, sub_version = 0, sub_minor_version = 0;
  std::uint32_t provider_version = 0; // build of Windows
  std::uint32_t processors = 0;
  std::int64_t end_time = 0;           // FILETIME; 0 when the log was never closed
  std::uint32_t timer_resolution = 0;  // 100 ns
  std::uint32_t maximum_file_size = 0; // MB, or KB with kModeKilobytes
  std::uint32_t log_file_mode = 0;
  std::uint32_t buffers_written = 0; // header buffer included; 0 when the log was never closed
  std::uint32_t start_buffers = 1;
  std::uint32_t pointer_size = 8; // of the session; each event has its own
  std::uint32_t events_lost = 0;
  std::uint32_t cpu_mhz = 0;
  std::int32_t timezone_bias = 0; // minutes; UTC = local + bias; without daylight saving
  DaylightSaving daylight;        // of the year in which the log was made
  std::int64_t boot_time = 0;     // FILETIME
  std::int64_t perf_freq = 0;
  std::int64_t start_time = 0; // FILETIME
  std::uint32_t clock_type = 1;
  std::uint32_t buffers_lost = 0;
  std::string session_name, file_name; // UTF-8
  std::int64_t first_stamp = 0;        // raw time of the event itself
  std::uint32_t event_size = 0;        // of the event, padding excluded

  // Whether the session ended and completed the header. Else nothing is known of how much was lost, and when
  // it ended.
  [[nodiscard]] bool closed() const { return end_time != 0 && buffers_written != 0; }
  // How many of the buffers that were written a file with so many lacks: it was cut short, or something was
  // cut out of it. 0 where that cannot be told: of a log that was never closed, and of one that is circular
  // or saved out of memory, which overwrites buffers.
  [[nodiscard]] std::uint64_t missing_buffers(std::uint64_t there) const {
    const bool told = closed() && (log_file_mode & (format::kModeCircular | format::kModeBuffering)) == 0;
    return told && buffers_written > there ? buffers_written - there : 0;
  }
  // Minutes by which UTC was ahead of local time at that moment (FILETIME), at most a day; timezone_bias
  // where the rest makes no sense, and nothing where that does not either.
  [[nodiscard]] std::optional<std::int32_t> bias_at(std::int64_t filetime) const;
  [[nodiscard]] Clock clock() const {
    return {static_cast<format::ClockType>(clock_type), perf_freq, cpu_mhz, first_stamp, start_time};
  }
};

// Reads the event; the error names what is wrong and its offset from the start of the event.
[[nodiscard]] Result<LogfileHeader> read_logfile_header(const EventView &event);

// `event`: a copy of one that read_logfile_header() has read, which the fields that a relogger changes are
// written into, all else stays as it is: BufferSize,
// SubVersion.SubMinorVersion, LogFileMode, BuffersWritten, EndTime, EventsLost, BuffersLost.
void patch_logfile_header(MutableBytes event, const LogfileHeader &header);

// A whole new event: SYSTEM header of the form that pointer_size asks for, fields and names. Not padded.
[[nodiscard]] std::vector<std::uint8_t>
make_logfile_header(const LogfileHeader &header, std::uint32_t thread_id, std::uint32_t process_id);

// SubVersion.SubMinorVersion as Windows writes it: 2.0 for what older systems cannot read, else 1.5.
void set_log_version(LogfileHeader &header, bool compressed);

} // namespace etwrelog
