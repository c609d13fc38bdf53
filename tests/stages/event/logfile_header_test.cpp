#include "etwrelog/logfile_header.hpp"

#include <gtest/gtest.h>

#include <memory>

namespace etwrelog {
namespace {

// Central Europe's: the last Sundays, from 2:00 to 3:00 and back.
constexpr TimeChange kEndOfMarch = {0, 3, 0, 5, 2, 0, 0, 0}, kEndOfOctober = {0, 10, 0, 5, 3, 0, 0, 0};

LogfileHeader some_header(std::uint32_t pointer_size) {
  LogfileHeader h;
  h.buffer_size = 65536;
  h.major = 10, h.minor = 1, h.sub_version = 1, h.sub_minor_version = 5;
  h.provider_version = 22631;
  h.processors = 20;
  h.end_time = 132'404'848'206'236'167;
  h.timer_resolution = 156250;
  h.maximum_file_size = 100;
  h.log_file_mode = 0x0801'0001;
  h.buffers_written = 77;
  h.start_buffers = 1;
  h.pointer_size = pointer_size;
  h.events_lost = 3;
  h.cpu_mhz = 2394;
  h.timezone_bias = -60;
  h.daylight = {kEndOfMarch, kEndOfOctober, -60, 0};
  h.boot_time = 132'404'000'000'000'000;
  h.perf_freq = 10'000'000;
  h.start_time = 132'404'848'106'236'167;
  h.clock_type = 3;
  h.buffers_lost = 9;
  h.session_name = "Sitzung \xC3\xBC \xF0\x9F\x98\x80";
  h.file_name = "C:\\a b.etl";
  h.first_stamp = 0x1234'5678'9ABC;
  return h;
}

void expect_equal(const LogfileHeader &a, const LogfileHeader &b) {
  EXPECT_EQ(a.buffer_size, b.buffer_size);
  EXPECT_EQ(a.major, b.major);
  EXPECT_EQ(a.minor, b.minor);
  EXPECT_EQ(a.sub_version, b.sub_version);
  EXPECT_EQ(a.sub_minor_version, b.sub_minor_version);
  EXPECT_EQ(a.provider_version, b.provider_version);
  EXPECT_EQ(a.processors, b.processors);
  EXPECT_EQ(a.end_time, b.end_time);
  EXPECT_EQ(a.timer_resolution, b.timer_resolution);
  EXPECT_EQ(a.maximum_file_size, b.maximum_file_size);
  EXPECT_EQ(a.log_file_mode, b.log_file_mode);
  EXPECT_EQ(a.buffers_written, b.buffers_written);
  EXPECT_EQ(a.start_buffers, b.start_buffers);
  EXPECT_EQ(a.pointer_size, b.pointer_size);
  EXPECT_EQ(a.events_lost, b.events_lost);
  EXPECT_EQ(a.cpu_mhz, b.cpu_mhz);
  EXPECT_EQ(a.timezone_bias, b.timezone_bias);
  EXPECT_EQ(a.daylight, b.daylight);
  EXPECT_EQ(a.boot_time, b.boot_time);
  EXPECT_EQ(a.perf_freq, b.perf_freq);
  EXPECT_EQ(a.start_time, b.start_time);
  EXPECT_EQ(a.clock_type, b.clock_type);
  EXPECT_EQ(a.buffers_lost, b.buffers_lost);
  EXPECT_EQ(a.session_name, b.session_name);
  EXPECT_EQ(a.file_name, b.file_name);
  EXPECT_EQ(a.first_stamp, b.first_stamp);
}

EventView view(const std::vector<std::uint8_t> &event) {
  return {event.data(), static_cast<std::uint32_t>(event.size()), static_cast<format::HeaderType>(event[2])};
}

TEST(LogfileHeader, ReadsWhatItWritesInBothPointerSizes) {
  for (const std::uint32_t size : {4u, 8u}) {
    const LogfileHeader made = some_header(size);
    const std::vector<std::uint8_t> event = make_logfile_header(made, 11, 22);
    EXPECT_EQ(load<std::uint16_t>(&event[4]), event.size());
    EXPECT_EQ(event[2], size == 8 ? 2 : 1);
    EXPECT_EQ(view(event).thread_id(), 11u);
    EXPECT_EQ(view(event).process_id(), 22u);
    const Result<LogfileHeader> read = read_logfile_header(view(event));
    ASSERT_TRUE(read) << read.error().message();
    expect_equal(*read, made);
  }
}

// Offsets as documented, not as the code has them: a slip in format.hpp would otherwise agree with itself.
TEST(LogfileHeader, PutsFieldsWhereWindowsDoes) {
  for (const std::uint32_t size : {4u, 8u}) {
    const LogfileHeader h = some_header(size);
    const std::vector<std::uint8_t> event = make_logfile_header(h, 1, 2);
    const std::uint8_t *p = event.data() + 0x20;
    const bool wide = size == 8;
    EXPECT_EQ(load<std::uint32_t>(p), h.buffer_size);
    EXPECT_EQ(load<std::int64_t>(p + 0x10), h.end_time);
    EXPECT_EQ(load<std::uint32_t>(p + 0x20), h.log_file_mode);
    EXPECT_EQ(load<std::uint32_t>(p + 0x24), h.buffers_written);
    EXPECT_EQ(load<std::uint32_t>(p + 0x2C), size);
    EXPECT_EQ(load<std::int32_t>(p + (wide ? 0x48 : 0x40)), h.timezone_bias);
    EXPECT_EQ(load<std::int64_t>(p + (wide ? 0xF8 : 0xF0)), h.boot_time);
    EXPECT_EQ(load<std::int64_t>(p + (wide ? 0x100 : 0xF8)), h.perf_freq);
    EXPECT_EQ(load<std::int64_t>(p + (wide ? 0x108 : 0x100)), h.start_time);
    EXPECT_EQ(load<std::uint32_t>(p + (wide ? 0x110 : 0x108)), h.clock_type);
    EXPECT_EQ(load<std::uint32_t>(p + (wide ? 0x114 : 0x10C)), h.buffers_lost);
    EXPECT_EQ(load<char16_t>(p + (wide ? 0x118 : 0x110)), u'S');
  }
}

TEST(LogfileHeader, PatchTouchesNothingButItsFields) {
  for (const std::uint32_t size : {4u, 8u}) {
    const std::vector<std::uint8_t> before = make_logfile_header(some_header(size), 1, 2);
    LogfileHeader changed = some_header(size);
    changed.buffer_size = 0x100000;
    changed.sub_version = 2, changed.sub_minor_version = 0;
    changed.end_time = 1;
    changed.log_file_mode = 5;
    changed.buffers_written = 6;
    changed.events_lost = 7;
    changed.buffers_lost = 8;
    LogfileHeader ignored = changed; // what a patch must not write
    ignored.processors = 99;
    ignored.start_time = 98;
    ignored.session_name = "other";
    std::vector<std::uint8_t> after = before;
    patch_logfile_header(after, ignored);
    const Result<LogfileHeader> read = read_logfile_header(view(after));
    ASSERT_TRUE(read);
    expect_equal(*read, changed);
    std::size_t differing = 0;
    for (std::size_t i = 0; i < before.size(); ++i)
      differing += before[i] != after[i] ? 1 : 0;
    EXPECT_LE(differing, 4u + 2 + 8 + 4 + 4 + 4 + 4);
  }
}

std::int64_t at(const char *time) {
  const std::optional<std::int64_t> filetime = parse_filetime(time);
  EXPECT_TRUE(filetime) << time;
  return filetime.value_or(0);
}

TEST(LogfileHeader, LocalTimeIsThatOfTheSeason) {
  const LogfileHeader berlin = some_header(8);
  EXPECT_EQ(berlin.bias_at(at("2021-01-15")), -60);
  EXPECT_EQ(berlin.bias_at(at("2021-03-28 00:59:59.9999999")), -60);
  EXPECT_EQ(berlin.bias_at(at("2021-03-28 01:00:00")), -120);
  EXPECT_EQ(berlin.bias_at(at("2021-10-31 00:59:59.9999999")), -120);
  EXPECT_EQ(berlin.bias_at(at("2021-10-31 01:00:00")), -60);

  LogfileHeader sydney;
  sydney.timezone_bias = -600;
  sydney.daylight = {{0, 10, 0, 1, 2, 0, 0, 0}, {0, 4, 0, 1, 3, 0, 0, 0}, -60, 0};
  EXPECT_EQ(sydney.bias_at(at("2020-12-31 13:30")), -660) << "half an hour into the new year there";
  EXPECT_EQ(sydney.bias_at(at("2021-04-03 15:59:59")), -660);
  EXPECT_EQ(sydney.bias_at(at("2021-04-03 16:00:00")), -600);
  EXPECT_EQ(sydney.bias_at(at("2021-10-02 15:59:59")), -600);
  EXPECT_EQ(sydney.bias_at(at("2021-10-02 16:00:00")), -660);

  LogfileHeader once; // days of one year, and minutes that differ in winter
  once.timezone_bias = 480;
  once.daylight = {{2007, 3, 3, 11, 2, 0, 0, 0}, {2007, 11, 1, 4, 2, 0, 0, 0}, -60, 30};
  EXPECT_EQ(once.bias_at(at("2007-07-01")), 420);
  EXPECT_EQ(once.bias_at(at("2007-01-01 12:00")), 510);
  EXPECT_EQ(once.bias_at(at("2008-07-01")), 510) << "of other years nothing is said";
}

TEST(LogfileHeader, ATimeZoneThatIsNoneGivesNoLocalTime) {
  const std::int64_t july = at("2021-07-01");
  for (const TimeChange &bad :
       {TimeChange{}, TimeChange{0, 13, 0, 1, 0, 0, 0, 0}, TimeChange{0, 3, 7, 1, 0, 0, 0, 0},
        TimeChange{0, 3, 0, 0, 0, 0, 0, 0}, TimeChange{0, 3, 0, 6, 0, 0, 0, 0},
        TimeChange{0, 3, 0, 1, 24, 0, 0, 0}, TimeChange{0, 3, 0, 1, 0, 60, 0, 0},
        TimeChange{0, 3, 0, 1, 0, 0, 60, 0}, TimeChange{0, 3, 0, 1, 0, 0, 0, 1000},
        TimeChange{2021, 2, 0, 30, 0, 0, 0, 0}}) {
    LogfileHeader h = some_header(8);
    h.daylight.begins = bad;
    EXPECT_EQ(h.bias_at(july), -60);
  }
  LogfileHeader h = some_header(8);
  for (const std::int64_t when : {INT64_MIN, INT64_MAX, std::int64_t{-1}, std::int64_t{0}})
    EXPECT_EQ(h.bias_at(when), -60);
  h.daylight.bias = INT32_MAX;
  EXPECT_EQ(h.bias_at(july), -60);
  h.timezone_bias = INT32_MIN;
  EXPECT_EQ(h.bias_at(july), std::nullopt);
}

TEST(LogfileHeader, RefusesWhatIsNone) {
  std::vector<std::uint8_t> event = make_logfile_header(some_header(8), 1, 2);
  auto error_with = [&](std::size_t at, std::uint8_t value) {
    std::vector<std::uint8_t> bad = event;
    bad[at] = value;
    const Result<LogfileHeader> read = read_logfile_header(view(bad));
    EXPECT_FALSE(read) << at;
    return read ? Error{} : read.error();
  };
  EXPECT_EQ(error_with(2, 0x11).offset, 2u);
  EXPECT_EQ(error_with(6, 1).offset, 6u);
  EXPECT_EQ(error_with(0x20 + 0x2C, 5).offset, 0x4Cu) << "pointer size";
  EXPECT_EQ(error_with(0x20 + 3, 0xFF).offset, 0x20u) << "a buffer of 4 GB";
  EXPECT_NE(error_with(0x20 + 0x2C, 5).message().find("expected 4 or 8, found 5"), std::string::npos);
}

// Exact-size allocations: under the address sanitizer a byte read past the end is an error.
TEST(LogfileHeader, NeverReadsPastACutEvent) {
  for (const std::uint32_t size : {4u, 8u}) {
    const std::vector<std::uint8_t> event = make_logfile_header(some_header(size), 1, 2);
    for (std::size_t cut = format::kSystemHeaderSize; cut <= event.size(); ++cut) {
      const std::unique_ptr<std::uint8_t[]> exact(new std::uint8_t[cut]);
      std::copy_n(event.begin(), cut, exact.get());
      const Result<LogfileHeader> read = read_logfile_header(
          EventView(exact.get(), static_cast<std::uint32_t>(cut), static_cast<format::HeaderType>(event[2])));
      EXPECT_EQ(static_cast<bool>(read), cut >= 0x20 + (size == 8 ? 0x118u : 0x110u)) << cut;
    }
  }
}

TEST(LogfileHeader, GivesTheVersionThatWindowsGives) {
  LogfileHeader h = some_header(8);
  auto version = [&](bool compressed) {
    set_log_version(h, compressed);
    return h.sub_version * 10 + h.sub_minor_version;
  };
  EXPECT_EQ(version(false), 15);
  EXPECT_EQ(version(true), 20);
  h.buffer_size = 1 << 20;
  EXPECT_EQ(version(false), 15) << "1 MiB exactly is the old kind";
  h.buffer_size = (1 << 20) + 1;
  EXPECT_EQ(version(false), 20);
  h = some_header(8);
  h.processors = 257;
  EXPECT_EQ(version(false), 20);
}

} // namespace
} // namespace etwrelog
