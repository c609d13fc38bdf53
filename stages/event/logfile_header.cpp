#include "etwrelog/logfile_header.hpp"
#include "base/errors.hpp"
#include "base/filetime.hpp"
#include "etwrelog/text.hpp"

#include <fmt/format.h>

namespace etwrelog {

using namespace format;

namespace {

const LogfileHeaderLayout &layout_of(HeaderType type) {
  return type == HeaderType::system64 ? kLogfileHeader64 : kLogfileHeader32;
}

std::string take_wide_string(Bytes &rest) {
  std::size_t end = 0;
  while (end + 2 <= rest.size() && load<std::uint16_t>(rest.data() + end) != 0)
    end += 2;
  std::string text = utf8_from_utf16(rest.first(end));
  rest = rest.subspan(end + 2 <= rest.size() ? end + 2 : rest.size());
  return text;
}

// The fields of a SYSTEMTIME in their order.
constexpr std::uint16_t TimeChange::*const kSystemTime[] = {
    &TimeChange::year, &TimeChange::month,  &TimeChange::weekday, &TimeChange::day,
    &TimeChange::hour, &TimeChange::minute, &TimeChange::second,  &TimeChange::millisecond};

TimeChange load_time_change(const std::uint8_t *at) {
  TimeChange change;
  for (const auto field : kSystemTime) {
    change.*field = load<std::uint16_t>(at);
    at += sizeof(std::uint16_t);
  }
  return change;
}

void store_time_change(std::uint8_t *at, const TimeChange &change) {
  for (const auto field : kSystemTime) {
    store(at, change.*field);
    at += sizeof(std::uint16_t);
  }
}

using base::FiletimeTicks;
using WallTime = std::chrono::sys_time<FiletimeTicks>; // also of local time, as if that were UTC

// Nothing where there is no such moment in that year.
std::optional<WallTime> moment_of(const TimeChange &change, std::chrono::year year) {
  using namespace std::chrono;
  const month in{change.month};
  if (!in.ok() || change.hour > 23 || change.minute > 59 || change.second > 59 || change.millisecond > 999)
    return std::nullopt;
  sys_days day_of{};
  if (change.year != 0) {
    const year_month_day date{std::chrono::year(change.year), in, day(change.day)};
    if (change.year != static_cast<int>(year) || !date.ok()) return std::nullopt;
    day_of = date;
  } else {
    constexpr unsigned kLast = 5;
    if (change.weekday > 6 || change.day < 1 || change.day > kLast) return std::nullopt;
    const weekday on{change.weekday};
    day_of = change.day == kLast ? sys_days(year / in / on[last]) : sys_days(year / in / on[change.day]);
  }
  return day_of + hours(change.hour) + minutes(change.minute) + seconds(change.second) +
         milliseconds(change.millisecond);
}

} // namespace

std::optional<std::int32_t> LogfileHeader::bias_at(std::int64_t filetime) const {
  using namespace std::chrono;
  constexpr std::int64_t kMost = 24 * 60; // what is further from UTC is no time zone
  const auto possible = [](std::int64_t bias) { return -kMost <= bias && bias <= kMost; };
  if (!possible(timezone_bias)) return std::nullopt;
  const std::int64_t standard = std::int64_t{timezone_bias} + daylight.standard_bias,
                     saving = std::int64_t{timezone_bias} + daylight.bias;
  if (!possible(standard) || !possible(saving)) return timezone_bias;
  const auto otherwise = static_cast<std::int32_t>(standard);
  if (filetime < 0) return otherwise;
  const WallTime then = base::kFiletimeEpoch + FiletimeTicks(filetime);
  if (then >= base::kEndOfDates) return otherwise;
  const year local_year = year_month_day(floor<days>(then - minutes(standard))).year();
  std::optional<WallTime> begins = moment_of(daylight.begins, local_year),
                          ends = moment_of(daylight.ends, local_year);
  if (!begins || !ends) return otherwise;
  *begins += minutes(standard);
  *ends += minutes(saving);
  // South of the equator it goes on over the turn of the year.
  const bool saves = *begins < *ends ? *begins <= then && then < *ends : then < *ends || *begins <= then;
  return saves ? static_cast<std::int32_t>(saving) : otherwise;
}

Result<LogfileHeader> read_logfile_header(const EventView &event) {
  auto wrong = [](std::uint64_t at, std::string what, std::string expected, std::string found) {
    return base::corrupt("logfile header: " + std::move(what))
        .at(at)
        .expected(std::move(expected))
        .found(std::move(found));
  };
  if (event.type() != HeaderType::system32 && event.type() != HeaderType::system64)
    return wrong(2, "header type", "1 or 2 (SYSTEM)", fmt::format("{}", static_cast<unsigned>(event.type())));
  if (event.hook() != kHookLogfileHeader)
    return wrong(kHookAt, "hook id", "0x0000", fmt::format("0x{:04x}", event.hook()));
  const LogfileHeaderLayout &at = layout_of(event.type());
  if (event.size() < kSystemHeaderSize + at.names)
    return wrong(4, "Size", fmt::format("at least {}", kSystemHeaderSize + at.names),
                 fmt::format("{}", event.size()));

  const Bytes p = event.payload();
  auto u32 = [p](std::size_t offset) { return load<std::uint32_t>(p.data() + offset); };
  auto i64 = [p](std::size_t offset) { return load<std::int64_t>(p.data() + offset); };
  LogfileHeader h;
  h.buffer_size = u32(kLogBufferSizeAt);
  h.major = p[kLogMajorAt];
  h.minor = p[kLogMinorAt];
  h.sub_version = p[kLogSubVersionAt];
  h.sub_minor_version = p[kLogSubMinorVersionAt];
  h.provider_version = u32(kLogProviderVersionAt);
  h.processors = u32(kLogProcessorsAt);
  h.end_time = i64(kLogEndTimeAt);
  h.timer_resolution = u32(kLogTimerResolutionAt);
  h.maximum_file_size = u32(kLogMaximumFileSizeAt);
  h.log_file_mode = u32(kLogFileModeAt);
  h.buffers_written = u32(kLogBuffersWrittenAt);
  h.start_buffers = u32(kLogStartBuffersAt);
  h.pointer_size = u32(kLogPointerSizeAt);
  h.events_lost = u32(kLogEventsLostAt);
  h.cpu_mhz = u32(kLogCpuSpeedAt);
  const std::uint8_t *const zone = p.data() + at.bias;
  h.timezone_bias = load<std::int32_t>(zone);
  h.daylight = {load_time_change(zone + kDaylightDateAt), load_time_change(zone + kStandardDateAt),
                load<std::int32_t>(zone + kDaylightBiasAt), load<std::int32_t>(zone + kStandardBiasAt)};
  h.boot_time = i64(at.boot_time);
  h.perf_freq = i64(at.perf_freq);
  h.start_time = i64(at.start_time);
  h.clock_type = u32(at.clock_type);
  h.buffers_lost = u32(at.buffers_lost);
  h.first_stamp = event.header_time();
  h.event_size = event.size();
  Bytes names = p.subspan(at.names);
  h.session_name = take_wide_string(names);
  h.file_name = take_wide_string(names);

  if (h.buffer_size < kBufferHeaderSize || h.buffer_size > kMaxBufferSize)
    return wrong(kSystemHeaderSize + kLogBufferSizeAt, "BufferSize",
                 fmt::format("0x{:x}..0x{:x}", kBufferHeaderSize, kMaxBufferSize),
                 fmt::format("0x{:x}", h.buffer_size));
  if (h.pointer_size != 4 && h.pointer_size != 8)
    return wrong(kSystemHeaderSize + kLogPointerSizeAt, "PointerSize", "4 or 8",
                 fmt::format("{}", h.pointer_size));
  return h;
}

void patch_logfile_header(MutableBytes event, const LogfileHeader &h) {
  const LogfileHeaderLayout &at = layout_of(static_cast<HeaderType>(event[2]));
  std::uint8_t *const p = event.data() + kSystemHeaderSize;
  store(p + kLogBufferSizeAt, h.buffer_size);
  p[kLogSubVersionAt] = h.sub_version;
  p[kLogSubMinorVersionAt] = h.sub_minor_version;
  store(p + kLogEndTimeAt, h.end_time);
  store(p + kLogFileModeAt, h.log_file_mode);
  store(p + kLogBuffersWrittenAt, h.buffers_written);
  store(p + kLogEventsLostAt, h.events_lost);
  store(p + at.buffers_lost, h.buffers_lost);
}

std::vector<std::uint8_t> make_logfile_header(const LogfileHeader &h, std::uint32_t thread_id,
                                              std::uint32_t process_id) {
  const HeaderType type = h.pointer_size == 8 ? HeaderType::system64 : HeaderType::system32;
  const LogfileHeaderLayout &at = layout_of(type);
  const std::u16string names[] = {utf16_from_utf8(h.session_name), utf16_from_utf8(h.file_name)};
  std::vector<std::uint8_t> event(kSystemHeaderSize + at.names + 2 * (names[0].size() + names[1].size() + 2));
  constexpr std::uint8_t kMarkerVersion = 2; // since Vista
  event[0] = kMarkerVersion;
  event[2] = static_cast<std::uint8_t>(type);
  event[3] = kMarkerStructured;
  const HeaderLayout &header = kHeaderLayouts[static_cast<std::size_t>(type)];
  store(&event[header.size_at], static_cast<std::uint16_t>(event.size()));
  store(&event[kHookAt], kHookLogfileHeader);
  store(&event[header.thread_at], thread_id);
  store(&event[header.thread_at + 4u], process_id);
  store(&event[header.time_at], h.first_stamp);

  std::uint8_t *const p = event.data() + kSystemHeaderSize;
  p[kLogMajorAt] = h.major;
  p[kLogMinorAt] = h.minor;
  store(p + kLogProviderVersionAt, h.provider_version);
  store(p + kLogProcessorsAt, h.processors);
  store(p + kLogTimerResolutionAt, h.timer_resolution);
  store(p + kLogMaximumFileSizeAt, h.maximum_file_size);
  store(p + kLogStartBuffersAt, h.start_buffers);
  store(p + kLogPointerSizeAt, h.pointer_size);
  store(p + kLogCpuSpeedAt, h.cpu_mhz);
  std::uint8_t *const zone = p + at.bias;
  store(zone, h.timezone_bias);
  store_time_change(zone + kDaylightDateAt, h.daylight.begins);
  store_time_change(zone + kStandardDateAt, h.daylight.ends);
  store(zone + kDaylightBiasAt, h.daylight.bias);
  store(zone + kStandardBiasAt, h.daylight.standard_bias);
  store(p + at.boot_time, h.boot_time);
  store(p + at.perf_freq, h.perf_freq);
  store(p + at.start_time, h.start_time);
  store(p + at.clock_type, h.clock_type);
  patch_logfile_header(event, h);

  std::size_t name_at = kSystemHeaderSize + at.names;
  for (const std::u16string &name : names) {
    for (const char16_t unit : name) {
      store(&event[name_at], static_cast<std::uint16_t>(unit));
      name_at += 2;
    }
    name_at += 2;
  }
  return event;
}

void set_log_version(LogfileHeader &h, bool compressed) {
  const bool modern = compressed || h.buffer_size > (1u << 20) || h.processors > 256;
  h.sub_version = modern ? 2 : 1;
  h.sub_minor_version = modern ? 0 : 5;
}

} // namespace etwrelog
