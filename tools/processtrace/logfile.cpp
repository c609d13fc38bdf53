#include "logfile.hpp"

namespace etwrelog::consumer {

std::optional<std::string> utf8_of(const ETWR_WCHAR *text) {
  std::string out;
  for (; *text != 0; ++text) {
    std::uint32_t c = *text;
    if (c >= 0xD800 && c < 0xE000) {
      if (c >= 0xDC00 || text[1] < 0xDC00 || text[1] > 0xDFFF) return std::nullopt;
      c = 0x10000 + ((c - 0xD800) << 10) + (*++text - 0xDC00u);
    }
    const auto put = [&out](std::uint32_t byte) { out.push_back(static_cast<char>(byte)); };
    if (c < 0x80) {
      put(c);
    } else if (c < 0x800) {
      put(0xC0 | c >> 6), put(0x80 | (c & 0x3F));
    } else if (c < 0x10000) {
      put(0xE0 | c >> 12), put(0x80 | (c >> 6 & 0x3F)), put(0x80 | (c & 0x3F));
    } else {
      put(0xF0 | c >> 18), put(0x80 | (c >> 12 & 0x3F)), put(0x80 | (c >> 6 & 0x3F)), put(0x80 | (c & 0x3F));
    }
  }
  return out;
}

bool fill_logfile_header(TRACE_LOGFILE_HEADER &header, const EventView &event) {
  using namespace format;
  if (!event.has_hook() || event.hook() != kHookLogfileHeader) return false;
  const Bytes payload = event.payload();
  const LogfileHeaderLayout &layout = event.pointer_size() == 8 ? kLogfileHeader64 : kLogfileHeader32;
  if (payload.size() < layout.names) return false;
  const std::uint8_t *at = payload.data();
  header = TRACE_LOGFILE_HEADER{};
  header.BufferSize = load<std::uint32_t>(at + kLogBufferSizeAt);
  header.Version = load<std::uint32_t>(at + kLogMajorAt);
  header.ProviderVersion = load<std::uint32_t>(at + kLogProviderVersionAt);
  header.NumberOfProcessors = load<std::uint32_t>(at + kLogProcessorsAt);
  header.EndTime = load<std::int64_t>(at + kLogEndTimeAt);
  header.TimerResolution = load<std::uint32_t>(at + kLogTimerResolutionAt);
  header.MaximumFileSize = load<std::uint32_t>(at + kLogMaximumFileSizeAt);
  header.LogFileMode = load<std::uint32_t>(at + kLogFileModeAt);
  header.BuffersWritten = load<std::uint32_t>(at + kLogBuffersWrittenAt);
  header.StartBuffers = load<std::uint32_t>(at + kLogStartBuffersAt);
  header.PointerSize = load<std::uint32_t>(at + kLogPointerSizeAt);
  header.EventsLost = load<std::uint32_t>(at + kLogEventsLostAt);
  header.CpuSpeedInMHz = load<std::uint32_t>(at + kLogCpuSpeedAt);
  static_assert(sizeof header.TimeZone == kTimeZoneSize);
  std::memcpy(&header.TimeZone, at + layout.bias, sizeof header.TimeZone);
  header.BootTime = load<std::int64_t>(at + layout.boot_time);
  header.PerfFreq = load<std::int64_t>(at + layout.perf_freq);
  header.StartTime = load<std::int64_t>(at + layout.start_time);
  header.ReservedFlags = load<std::uint32_t>(at + layout.clock_type);
  header.BuffersLost = load<std::uint32_t>(at + layout.buffers_lost);
  return true;
}

} // namespace etwrelog::consumer
