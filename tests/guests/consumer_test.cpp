// The consumer functions of Windows, called as a program for Windows calls them.
#include "etwrelog/consumer.h"
#include "etwrelog/format.hpp"
#include "tests/guests/guest_files.hpp"
#include "tests/support/zip_files.hpp"

#include <gtest/gtest.h>

#include <archive.h>
#include <archive_entry.h>
#include <atomic>
#include <cerrno>
#include <functional>
#include <thread>

namespace etwrelog::testing {
namespace {

constexpr Guid kPerfInfo = make_guid(0xce1dbfb4, 0x137e, 0x4da6, 0x87b0, 0x3f59aa102cbc);
constexpr Guid kImage = make_guid(0x2cb15d1d, 0x5fc1, 0x11d2, 0xabe1, 0x00a0c911f518);
constexpr Guid kProcess = make_guid(0x3d6fa8d0, 0xfe05, 0x11d0, 0x9dda, 0x00c04fd7ba7c);
constexpr Guid kProvider = make_guid(0x11112222, 0x3333, 0x4444, 0x5555, 0x666677778888);

// What a test keeps of a record.
struct Seen {
  EVENT_RECORD record;
  std::vector<std::uint8_t> data;
  std::vector<std::pair<std::uint16_t, std::vector<std::uint8_t>>> items;

  [[nodiscard]] Guid provider() const {
    return load_guid(reinterpret_cast<const std::uint8_t *>(&record.EventHeader.ProviderId));
  }
};

// One consumer: opens files, collects what its callbacks get.
struct Consumer {
  std::vector<Seen> seen;
  std::vector<EVENT_TRACE> classic;
  std::vector<std::uint32_t> buffers; // BuffersRead at each buffer callback
  std::uint32_t stop_after_buffers = 0;
  std::string failure; // of run()
  std::function<void()> at_event;
  std::uint32_t mode = PROCESS_TRACE_MODE_EVENT_RECORD | PROCESS_TRACE_MODE_RAW_TIMESTAMP;
  EVENT_TRACE_LOGFILEW logfile{};

  static void on_record(EVENT_RECORD *record) {
    auto &self = *static_cast<Consumer *>(record->UserContext);
    Seen seen{*record, {}, {}};
    const auto *data = static_cast<const std::uint8_t *>(record->UserData);
    seen.data.assign(data, data + record->UserDataLength);
    for (std::uint16_t i = 0; i < record->ExtendedDataCount; ++i) {
      const EVENT_HEADER_EXTENDED_DATA_ITEM &item = record->ExtendedData[i];
      const auto *at = reinterpret_cast<const std::uint8_t *>(static_cast<std::uintptr_t>(item.DataPtr));
      seen.items.emplace_back(item.ExtType, std::vector<std::uint8_t>(at, at + item.DataSize));
    }
    self.seen.push_back(std::move(seen));
    if (self.at_event) self.at_event();
  }
  static Consumer *in_classic; // EVENT_TRACE has no context
  static void on_classic(EVENT_TRACE *event) { in_classic->classic.push_back(*event); }
  static std::uint32_t on_buffer(EVENT_TRACE_LOGFILEW *logfile) {
    auto &self = *static_cast<Consumer *>(logfile->Context);
    self.buffers.push_back(logfile->BuffersRead);
    return self.buffers.size() == self.stop_after_buffers ? 0 : 1;
  }

  TRACEHANDLE open(const std::string &path) {
    std::vector<ETWR_WCHAR> name(path.begin(), path.end());
    name.push_back(0);
    logfile = {};
    logfile.LogFileName = name.data();
    logfile.Mode.ProcessTraceMode = mode;
    logfile.BufferCallback = on_buffer;
    if ((mode & PROCESS_TRACE_MODE_EVENT_RECORD) != 0)
      logfile.Callback.EventRecordCallback = on_record;
    else
      logfile.Callback.EventCallback = on_classic;
    logfile.Context = this;
    return OpenTraceW(&logfile);
  }
  std::uint32_t run(const std::string &path, const std::int64_t *from = nullptr,
                    const std::int64_t *to = nullptr) {
    TRACEHANDLE handle = open(path);
    if (handle == INVALID_PROCESSTRACE_HANDLE) return static_cast<std::uint32_t>(errno);
    const std::uint32_t status = ProcessTrace(&handle, 1, from, to);
    failure = etwr_consumer_last_error(); // which closing clears
    CloseTrace(handle);
    return status;
  }
};
Consumer *Consumer::in_classic = nullptr;

TEST(Consumer, FillsTheHeaderAndDeliversItsEventFirst) {
  SyntheticTrace trace;
  trace.sample({2'000'000, 1}, 7);
  const GuestFiles files;
  const std::string path = files.write("a.etl", trace.bytes());
  Consumer consumer;
  ASSERT_EQ(consumer.run(path), ERROR_SUCCESS) << etwr_consumer_last_error();
  const TRACE_LOGFILE_HEADER &header = consumer.logfile.LogfileHeader;
  EXPECT_EQ(header.BufferSize, 0x10000u);
  EXPECT_EQ(header.NumberOfProcessors, 4u);
  EXPECT_EQ(header.PerfFreq, 10'000'000);
  EXPECT_EQ(header.StartTime, 132'500'000'000'000'000);
  EXPECT_EQ(header.PointerSize, 8u);
  EXPECT_EQ(header.ReservedFlags, 1u);
  EXPECT_EQ(consumer.logfile.BufferSize, 0x10000u);
  ASSERT_EQ(consumer.seen.size(), 2u);
  EXPECT_EQ(consumer.seen[0].provider(), format::kEventTraceGuid);
  EXPECT_EQ(consumer.seen[0].record.EventHeader.EventDescriptor.Opcode, 0);
  EXPECT_EQ(consumer.seen[0].record.EventHeader.TimeStamp, 1'000'000);
  EXPECT_GE(consumer.seen[0].data.size(), sizeof(TRACE_LOGFILE_HEADER));
}

TEST(Consumer, The32BitHeaderIsWidened) {
  TraceOptions options;
  options.pointer_size = 4;
  SyntheticTrace trace(options);
  const GuestFiles files;
  Consumer consumer;
  ASSERT_EQ(consumer.run(files.write("a.etl", trace.bytes())), ERROR_SUCCESS);
  EXPECT_EQ(consumer.logfile.LogfileHeader.StartTime, 132'500'000'000'000'000);
  EXPECT_EQ(consumer.logfile.LogfileHeader.PerfFreq, 10'000'000);
  EXPECT_EQ(consumer.logfile.LogfileHeader.PointerSize, 4u);
  EXPECT_EQ(consumer.logfile.LogfileHeader.ReservedFlags, 1u);
  EXPECT_NE(consumer.seen.at(0).record.EventHeader.Flags & EVENT_HEADER_FLAG_32_BIT_HEADER, 0);
}

TEST(Consumer, KernelEventsBecomeClassicRecords) {
  SyntheticTrace trace;
  trace.process_start({2'000'000, 0}, 100, 4, "game.exe", "", 11);
  trace.image_load({2'100'000, 0}, 100, 0x7FF600000000, 12);
  trace.image_load({2'200'000, 0}, 100, 0x7FF600000000, 12, true);
  const std::size_t sample = trace.sample({2'300'000, 3}, 77);
  const GuestFiles files;
  Consumer consumer;
  ASSERT_EQ(consumer.run(files.write("a.etl", trace.bytes())), ERROR_SUCCESS);
  ASSERT_EQ(consumer.seen.size(), 5u);
  for (const Seen &seen : consumer.seen) {
    EXPECT_NE(seen.record.EventHeader.Flags & EVENT_HEADER_FLAG_CLASSIC_HEADER, 0);
    EXPECT_NE(seen.record.EventHeader.Flags & EVENT_HEADER_FLAG_64_BIT_HEADER, 0);
    EXPECT_EQ(seen.record.EventHeader.HeaderType, 0);
    EXPECT_EQ(seen.record.EventHeader.EventDescriptor.Id, 0);
  }
  EXPECT_EQ(consumer.seen[1].provider(), kProcess);
  EXPECT_EQ(consumer.seen[1].record.EventHeader.EventDescriptor.Opcode, 1);
  EXPECT_EQ(consumer.seen[1].record.EventHeader.ThreadId, 11u);
  EXPECT_EQ(consumer.seen[2].provider(), kImage) << "hook 0x030A belongs to the image class";
  EXPECT_EQ(consumer.seen[2].record.EventHeader.EventDescriptor.Opcode, 10);
  EXPECT_EQ(consumer.seen[3].provider(), kImage);
  EXPECT_EQ(consumer.seen[3].record.EventHeader.EventDescriptor.Opcode, 2);
  const EVENT_HEADER &header = consumer.seen[4].record.EventHeader;
  EXPECT_EQ(consumer.seen[4].provider(), kPerfInfo);
  EXPECT_EQ(header.EventDescriptor.Opcode, 0x2E);
  EXPECT_EQ(header.ThreadId, 0xFFFF'FFFFu);
  EXPECT_EQ(header.ProcessId, 0xFFFF'FFFFu);
  EXPECT_NE(header.Flags & EVENT_HEADER_FLAG_NO_CPUTIME, 0);
  EXPECT_EQ(consumer.seen[4].record.BufferContext.ProcessorNumber, 3);
  const std::vector<std::uint8_t> &stored = trace.event(sample);
  EXPECT_EQ(consumer.seen[4].data, std::vector<std::uint8_t>(stored.begin() + 0x10, stored.end()));
}

TEST(Consumer, PerformanceCountersBecomeExtendedItems) {
  SyntheticTrace trace;
  std::vector<std::uint8_t> event(0x10 + 3 * 8 + 4);
  event[0] = 2;                            // version
  event[1] = 2 | format::kPerfinfoPebsBit; // two counters, one PEBS index
  event[2] = 0x11;
  event[3] = format::kMarkerStructured;
  store(&event[4], static_cast<std::uint16_t>(event.size()));
  store(&event[6], std::uint16_t{0x0524});
  store(&event[8], std::int64_t{2'000'000});
  store(&event[0x10], std::uint64_t{41});
  store(&event[0x18], std::uint64_t{42});
  store(&event[0x20], std::uint64_t{43});
  const auto size = static_cast<std::uint32_t>(event.size());
  trace.raw({2'000'000, 0}, std::move(event), size);
  const GuestFiles files;
  Consumer consumer;
  ASSERT_EQ(consumer.run(files.write("a.etl", trace.bytes())), ERROR_SUCCESS);
  ASSERT_EQ(consumer.seen.size(), 2u);
  const auto &items = consumer.seen[1].items;
  ASSERT_EQ(items.size(), 2u);
  EXPECT_EQ(items[0].first, EVENT_HEADER_EXT_TYPE_PMC_COUNTERS);
  ASSERT_EQ(items[0].second.size(), 16u);
  EXPECT_EQ(load<std::uint64_t>(&items[0].second[8]), 42u);
  EXPECT_EQ(items[1].first, EVENT_HEADER_EXT_TYPE_PEBS_INDEX);
  EXPECT_EQ(load<std::uint64_t>(items[1].second.data()), 43u);
  EXPECT_EQ(consumer.seen[1].data.size(), 4u);
}

TEST(Consumer, ManifestEventsKeepDescriptorItemsAndData) {
  SyntheticTrace trace;
  const std::vector<std::uint8_t> payload{1, 2, 3, 4, 5};
  trace.manifest_event({2'000'000, 0},
                       {.provider = kProvider,
                        .id = 7,
                        .version = 2,
                        .channel = 16,
                        .level = 4,
                        .opcode = 1,
                        .task = 9,
                        .keyword = 0x8000000000000010},
                       21, 22, payload, {{format::ItemType::stack_trace64, stack_item({0x1000, 0x2000})}});
  const GuestFiles files;
  Consumer consumer;
  ASSERT_EQ(consumer.run(files.write("a.etl", trace.bytes())), ERROR_SUCCESS);
  ASSERT_EQ(consumer.seen.size(), 2u);
  const Seen &seen = consumer.seen[1];
  const EVENT_DESCRIPTOR &descriptor = seen.record.EventHeader.EventDescriptor;
  EXPECT_EQ(seen.provider(), kProvider);
  EXPECT_EQ(descriptor.Id, 7);
  EXPECT_EQ(descriptor.Version, 2);
  EXPECT_EQ(descriptor.Channel, 16);
  EXPECT_EQ(descriptor.Level, 4);
  EXPECT_EQ(descriptor.Opcode, 1);
  EXPECT_EQ(descriptor.Task, 9);
  EXPECT_EQ(descriptor.Keyword, 0x8000000000000010u);
  EXPECT_EQ(seen.record.EventHeader.ThreadId, 21u);
  EXPECT_EQ(seen.record.EventHeader.ProcessId, 22u);
  EXPECT_EQ(seen.record.EventHeader.Flags, EVENT_HEADER_FLAG_EXTENDED_INFO | EVENT_HEADER_FLAG_64_BIT_HEADER);
  EXPECT_EQ(seen.data, payload);
  ASSERT_EQ(seen.items.size(), 1u);
  EXPECT_EQ(seen.items[0].first, EVENT_HEADER_EXT_TYPE_STACK_TRACE64);
  EXPECT_EQ(seen.items[0].second, stack_item({0x1000, 0x2000}));
}

TEST(Consumer, TimesAreRawOrFiletimes) {
  TraceOptions options;
  options.perf_freq = 2'500'000;
  SyntheticTrace trace(options);
  trace.sample({1'000'000 + 2'500'000, 0}, 7); // one second in
  const GuestFiles files;
  const std::string path = files.write("a.etl", trace.bytes());
  Consumer raw;
  ASSERT_EQ(raw.run(path), ERROR_SUCCESS);
  EXPECT_EQ(raw.seen.at(1).record.EventHeader.TimeStamp, 3'500'000);
  Consumer converted;
  converted.mode = PROCESS_TRACE_MODE_EVENT_RECORD;
  ASSERT_EQ(converted.run(path), ERROR_SUCCESS);
  EXPECT_EQ(converted.seen.at(1).record.EventHeader.TimeStamp, 132'500'000'010'000'000);
  EXPECT_EQ(converted.seen.at(0).record.EventHeader.TimeStamp, 132'500'000'000'000'000);
}

TEST(Consumer, EventsOfAllProcessorsAndFilesComeInOrderOfTime) {
  SyntheticTrace one, two;
  for (std::uint16_t i = 0; i < 40; ++i) {
    one.sample({2'000'000 + 7'000 * i, static_cast<std::uint16_t>(i % 4)}, 1);
    two.sample({2'000'500 + 5'000 * i, static_cast<std::uint16_t>(i % 3)}, 2);
    if (i % 10 == 9) one.end_buffer(1);
  }
  const GuestFiles files;
  Consumer a, b;
  const TRACEHANDLE first = a.open(files.write("one.etl", one.bytes()));
  const TRACEHANDLE second = b.open(files.write("two.etl", two.bytes()));
  std::vector<std::int64_t> times;
  a.at_event = [&] { times.push_back(a.seen.back().record.EventHeader.TimeStamp); };
  b.at_event = [&] { times.push_back(b.seen.back().record.EventHeader.TimeStamp); };
  TRACEHANDLE handles[] = {first, second};
  ASSERT_EQ(ProcessTrace(handles, 2, nullptr, nullptr), ERROR_SUCCESS) << etwr_consumer_last_error();
  EXPECT_EQ(a.seen.size(), 41u);
  EXPECT_EQ(b.seen.size(), 41u);
  EXPECT_TRUE(std::is_sorted(times.begin(), times.end()));
  EXPECT_EQ(CloseTrace(first), ERROR_SUCCESS);
  EXPECT_EQ(CloseTrace(second), ERROR_SUCCESS);
  EXPECT_EQ(CloseTrace(second), ERROR_INVALID_HANDLE);
}

// As a single one is: whatever takes the name of a file since.
TEST(Consumer, SeveralHandlesAreTheFilesThatWereOpened) {
  SyntheticTrace one, two, other;
  for (int i = 0; i < 5; ++i) {
    one.sample({2'000'000 + 1'000 * i, 0}, 1);
    two.sample({2'000'500 + 1'000 * i, 0}, 2);
  }
  for (int i = 0; i < 50; ++i)
    other.sample({2'000'000 + 1'000 * i, 0}, 3);
  const GuestFiles files;
  const std::string first = files.write("one.etl", one.bytes()), second = files.write("two.etl", two.bytes());
  Consumer a, b;
  TRACEHANDLE handles[] = {a.open(first), b.open(second)};
  std::filesystem::rename(files.write("other.etl", other.bytes()), first);
  std::filesystem::remove(second);
  ASSERT_EQ(ProcessTrace(handles, 2, nullptr, nullptr), ERROR_SUCCESS) << etwr_consumer_last_error();
  EXPECT_EQ(a.seen.size(), 6u);
  EXPECT_EQ(b.seen.size(), 6u);
  for (const TRACEHANDLE handle : handles)
    EXPECT_EQ(CloseTrace(handle), ERROR_SUCCESS);
}

TEST(Consumer, StartAndEndTimesBoundTheEvents) {
  SyntheticTrace trace;
  for (int i = 0; i < 10; ++i)
    trace.sample({1'000'000 + 10'000'000 * std::int64_t{i}, 0}, 7);
  const GuestFiles files;
  const std::string path = files.write("a.etl", trace.bytes());
  const std::int64_t from = 132'500'000'000'000'000 + 2 * 10'000'000, to = from + 3 * 10'000'000;
  Consumer consumer;
  ASSERT_EQ(consumer.run(path, &from, &to), ERROR_SUCCESS);
  ASSERT_EQ(consumer.seen.size(), 4u);
  EXPECT_EQ(consumer.seen[0].record.EventHeader.TimeStamp, 21'000'000);
  EXPECT_EQ(consumer.seen[3].record.EventHeader.TimeStamp, 51'000'000);
  EXPECT_EQ(consumer.run(path, &to, &from), ERROR_INVALID_TIME);
}

TEST(Consumer, EveryBufferIsTold) {
  SyntheticTrace trace;
  for (int i = 0; i < 12; ++i) {
    trace.sample({2'000'000 + i, static_cast<std::uint16_t>(i % 2)}, 7);
    if (i % 4 == 3) trace.end_buffer(1);
  }
  const GuestFiles files;
  const std::string path = files.write("a.etl", trace.bytes());
  Consumer all;
  ASSERT_EQ(all.run(path), ERROR_SUCCESS);
  EXPECT_EQ(all.seen.size(), 13u);
  // The header's buffer, one of processor 0 and three of processor 1.
  EXPECT_EQ(all.buffers, (std::vector<std::uint32_t>{1, 2, 3, 4, 5}));
  Consumer some;
  some.stop_after_buffers = 2;
  EXPECT_EQ(some.run(path), ERROR_CANCELLED);
  EXPECT_EQ(some.buffers.size(), 2u);
  EXPECT_LT(some.seen.size(), 13u);
}

TEST(Consumer, ClosingFromACallbackEndsTheCall) {
  SyntheticTrace trace;
  for (int i = 0; i < 10; ++i)
    trace.sample({2'000'000 + i, 0}, 7);
  const GuestFiles files;
  Consumer consumer;
  TRACEHANDLE handle = consumer.open(files.write("a.etl", trace.bytes()));
  std::uint32_t closed = 0, busy = 0;
  consumer.at_event = [&] {
    if (consumer.seen.size() != 3) return;
    std::thread([&] { busy = ProcessTrace(&handle, 1, nullptr, nullptr); }).join();
    closed = CloseTrace(handle);
  };
  EXPECT_EQ(ProcessTrace(&handle, 1, nullptr, nullptr), ERROR_SUCCESS);
  EXPECT_EQ(consumer.seen.size(), 3u);
  EXPECT_EQ(busy, ERROR_BUSY);
  EXPECT_EQ(closed, ERROR_CTX_CLOSE_PENDING);
  EXPECT_EQ(ProcessTrace(&handle, 1, nullptr, nullptr), ERROR_INVALID_HANDLE);
}

TEST(Consumer, TheOlderCallbackGetsTheSameEvents) {
  SyntheticTrace trace;
  trace.process_start({2'000'000, 0}, 100, 4, "game.exe", "", 11);
  trace.manifest_event({2'100'000, 1},
                       {.provider = kProvider, .id = 7, .version = 2, .level = 4, .opcode = 1}, 21, 22);
  const GuestFiles files;
  Consumer consumer;
  consumer.mode = PROCESS_TRACE_MODE_RAW_TIMESTAMP;
  Consumer::in_classic = &consumer;
  ASSERT_EQ(consumer.run(files.write("a.etl", trace.bytes())), ERROR_SUCCESS);
  ASSERT_EQ(consumer.classic.size(), 3u);
  const EVENT_TRACE &process = consumer.classic[1];
  EXPECT_EQ(load_guid(reinterpret_cast<const std::uint8_t *>(&process.Header.Guid)), kProcess);
  EXPECT_EQ(process.Header.Class.Type, 1);
  EXPECT_EQ(process.Header.ThreadId, 11u);
  EXPECT_EQ(process.Header.TimeStamp, 2'000'000);
  EXPECT_GT(process.MofLength, 0u);
  EXPECT_EQ(consumer.classic[2].Header.Class.Level, 4);
  EXPECT_EQ(consumer.classic[2].Header.ProcessId, 22u);
}

TEST(Consumer, MessagesComeUnderTheirGuidAndNumber) {
  SyntheticTrace trace;
  trace.message({2'000'000, 0}, kProvider, 21, 22);
  const GuestFiles files;
  Consumer consumer;
  ASSERT_EQ(consumer.run(files.write("a.etl", trace.bytes())), ERROR_SUCCESS);
  ASSERT_EQ(consumer.seen.size(), 2u);
  const Seen &seen = consumer.seen[1];
  EXPECT_EQ(seen.provider(), kProvider);
  EXPECT_NE(seen.record.EventHeader.Flags & EVENT_HEADER_FLAG_TRACE_MESSAGE, 0);
  EXPECT_EQ(seen.record.EventHeader.EventDescriptor.Opcode, 0);
  EXPECT_EQ(seen.record.EventHeader.ThreadId, 21u);
  EXPECT_EQ(seen.record.EventHeader.ProcessId, 22u);
}

TEST(Consumer, CompressedTracesAndArchivesReadTheSame) {
  TraceOptions options;
  SyntheticTrace plain(options);
  options.codec = Codec::xpress;
  SyntheticTrace packed(options);
  for (int i = 0; i < 500; ++i) {
    const At at{2'000'000 + i, static_cast<std::uint16_t>(i % 4)};
    plain.sample(at, 7);
    packed.sample(at, 7);
  }
  const GuestFiles files;
  const std::string a = files.write("plain.etl", plain.bytes()),
                    b = files.write("xpress.etl", packed.bytes());
  const std::string archive = files.path("plain.etlz");
  ASSERT_EQ(run_command({ETWRELOG_TOOL, "pack", a, "-o", archive}), 0);
  Consumer first;
  ASSERT_EQ(first.run(a), ERROR_SUCCESS);
  ASSERT_EQ(first.seen.size(), 501u);
  for (const std::string &path : {b, archive}) {
    Consumer other;
    ASSERT_EQ(other.run(path), ERROR_SUCCESS) << path << etwr_consumer_last_error();
    ASSERT_EQ(other.seen.size(), first.seen.size()) << path;
    for (std::size_t i = 1; i < other.seen.size(); ++i)
      ASSERT_EQ(other.seen[i].data, first.seen[i].data);
  }
}

// In a .zip under a name, or as the one content of a .gz, .xz or .zst file.
std::vector<std::uint8_t> wrapped(const std::vector<std::uint8_t> &bytes, const std::string &extension) {
  std::vector<std::uint8_t> out(bytes.size() + 65'536);
  std::size_t used = 0;
  ::archive *const a = archive_write_new();
  if (extension == "zip")
    archive_write_set_format_zip(a);
  else
    archive_write_set_format_raw(a);
  if (extension == "gz") archive_write_add_filter_gzip(a);
  if (extension == "xz") archive_write_add_filter_xz(a);
  if (extension == "zst") archive_write_add_filter_zstd(a);
  EXPECT_EQ(archive_write_open_memory(a, out.data(), out.size(), &used), ARCHIVE_OK);
  archive_entry *const entry = archive_entry_new();
  archive_entry_set_pathname(entry, "folder/inside.etl");
  archive_entry_set_filetype(entry, AE_IFREG);
  archive_entry_set_size(entry, static_cast<la_int64_t>(bytes.size()));
  EXPECT_EQ(archive_write_header(a, entry), ARCHIVE_OK);
  EXPECT_EQ(archive_write_data(a, bytes.data(), bytes.size()), static_cast<la_ssize_t>(bytes.size()));
  archive_entry_free(entry);
  EXPECT_EQ(archive_write_close(a), ARCHIVE_OK);
  archive_write_free(a);
  out.resize(used);
  return out;
}

TEST(Consumer, TracesInsideOtherFilesReadTheSame) {
  SyntheticTrace plain;
  for (int i = 0; i < 500; ++i)
    plain.sample({2'000'000 + i, static_cast<std::uint16_t>(i % 4)}, 7);
  const std::vector<std::uint8_t> bytes = plain.bytes();
  const GuestFiles files;
  Consumer first;
  ASSERT_EQ(first.run(files.write("plain.etl", bytes)), ERROR_SUCCESS);
  ASSERT_EQ(first.seen.size(), 501u);
  for (const char *const extension : {"zip", "gz", "xz", "zst"}) {
    Consumer other;
    const std::string path = files.write(std::string("a.etl.") + extension, wrapped(bytes, extension));
    ASSERT_EQ(other.run(path), ERROR_SUCCESS) << path << ": " << etwr_consumer_last_error();
    ASSERT_EQ(other.seen.size(), first.seen.size()) << path;
    for (std::size_t i = 0; i < other.seen.size(); ++i) {
      ASSERT_EQ(other.seen[i].data, first.seen[i].data) << path;
      ASSERT_EQ(other.seen[i].record.EventHeader.TimeStamp, first.seen[i].record.EventHeader.TimeStamp);
    }
  }
  // Two of them in one call: opened anew together.
  Consumer a, b;
  TRACEHANDLE handles[] = {a.open(files.path("a.etl.zip")), b.open(files.path("a.etl.xz"))};
  EXPECT_EQ(ProcessTrace(handles, 2, nullptr, nullptr), ERROR_SUCCESS) << etwr_consumer_last_error();
  EXPECT_EQ(a.seen.size(), 501u);
  EXPECT_EQ(b.seen.size(), 501u);
  for (const TRACEHANDLE handle : handles)
    EXPECT_EQ(CloseTrace(handle), ERROR_SUCCESS);
}

TEST(Consumer, AZipOfSeveralTracesIsOneLogfile) {
  SyntheticTrace kernel, user({.first_stamp = 1'500'000});
  for (int i = 0; i < 300; ++i) {
    kernel.sample({2'000'000 + 10 * i, static_cast<std::uint16_t>(i % 4)}, 7);
    user.sample({2'000'005 + 10 * i, static_cast<std::uint16_t>(i % 2)}, 9);
  }
  const GuestFiles files;
  const std::string zip =
      files.write("x.etl.zip", zip_of({{"x.kernel.etl", kernel.bytes()}, {"x.etl", user.bytes()}}));
  Consumer all;
  ASSERT_EQ(all.run(zip), ERROR_SUCCESS) << etwr_consumer_last_error();
  EXPECT_EQ(all.seen.size(), 602u);
  EXPECT_TRUE(std::ranges::is_sorted(all.seen, {},
                                     [](const Seen &seen) { return seen.record.EventHeader.TimeStamp; }));
  // Beside another file, each handle gets its own.
  Consumer a, b;
  TRACEHANDLE handles[] = {a.open(zip), b.open(files.write("plain.etl", kernel.bytes()))};
  EXPECT_EQ(ProcessTrace(handles, 2, nullptr, nullptr), ERROR_SUCCESS) << etwr_consumer_last_error();
  EXPECT_EQ(a.seen.size(), 602u);
  EXPECT_EQ(b.seen.size(), 301u);
  for (const TRACEHANDLE handle : handles)
    EXPECT_EQ(CloseTrace(handle), ERROR_SUCCESS);
}

TEST(Consumer, NarrowNamesAreTakenAsTheyAre) {
  SyntheticTrace trace;
  trace.sample({2'000'000, 1}, 7);
  const GuestFiles files;
  std::string path = files.write("\xC3\xA4.etl", trace.bytes());
  static int records;
  static std::string told;
  records = 0;
  told.clear();
  EVENT_TRACE_LOGFILEA logfile{};
  logfile.LogFileName = path.data();
  logfile.Mode.ProcessTraceMode = PROCESS_TRACE_MODE_EVENT_RECORD;
  logfile.Callback.EventRecordCallback = [](EVENT_RECORD *) { ++records; };
  logfile.BufferCallback = [](EVENT_TRACE_LOGFILEA *file) -> std::uint32_t {
    told = file->LogFileName;
    return 1;
  };
  TRACEHANDLE handle = OpenTraceA(&logfile);
  ASSERT_NE(handle, INVALID_PROCESSTRACE_HANDLE) << etwr_consumer_last_error();
  EXPECT_EQ(logfile.LogFileName, path.data());
  EXPECT_EQ(logfile.LogfileHeader.NumberOfProcessors, 4u);
  EXPECT_EQ(ProcessTrace(&handle, 1, nullptr, nullptr), ERROR_SUCCESS);
  EXPECT_EQ(records, 2);
  EXPECT_EQ(told, path);
  EXPECT_EQ(CloseTrace(handle), ERROR_SUCCESS);
  std::string absent = files.path("absent.etl");
  logfile.LogFileName = absent.data();
  EXPECT_EQ(OpenTraceA(&logfile), INVALID_PROCESSTRACE_HANDLE);
  EXPECT_EQ(errno, static_cast<int>(ERROR_FILE_NOT_FOUND));
  logfile.LogFileName = nullptr;
  EXPECT_EQ(OpenTraceA(&logfile), INVALID_PROCESSTRACE_HANDLE);
  EXPECT_EQ(errno, static_cast<int>(ERROR_BAD_PATHNAME));
}

TEST(Consumer, AnotherThreadEndsTheCall) {
  SyntheticTrace trace;
  for (int i = 0; i < 5'000; ++i)
    trace.sample({2'000'000 + i, 0}, 7);
  const GuestFiles files;
  Consumer consumer;
  TRACEHANDLE handle = consumer.open(files.write("a.etl", trace.bytes()));
  std::thread other;
  std::atomic<std::uint32_t> closed = 0;
  consumer.at_event = [&] { // the call cannot end before the other thread has closed the handle
    if (consumer.seen.size() != 100) return;
    other = std::thread([&] { closed = CloseTrace(handle); });
    other.join();
  };
  EXPECT_EQ(ProcessTrace(&handle, 1, nullptr, nullptr), ERROR_SUCCESS);
  EXPECT_EQ(closed, ERROR_CTX_CLOSE_PENDING);
  EXPECT_EQ(consumer.seen.size(), 100u);
  EXPECT_EQ(CloseTrace(handle), ERROR_INVALID_HANDLE);
}

TEST(Consumer, FailuresHaveWindowsNumbersAndOurWords) {
  const GuestFiles files;
  Consumer consumer;
  EXPECT_EQ(consumer.run(files.path("absent.etl")), ERROR_FILE_NOT_FOUND);
  EXPECT_NE(std::string(etwr_consumer_last_error()).find("absent.etl"), std::string::npos);
  EXPECT_EQ(consumer.run(files.write("text.etl", std::vector<std::uint8_t>(4096, 'x'))), ERROR_FILE_CORRUPT);
  EXPECT_NE(std::string(etwr_consumer_last_error()).find("text.etl"), std::string::npos);
  EXPECT_EQ(OpenTraceW(nullptr), INVALID_PROCESSTRACE_HANDLE);
  EXPECT_EQ(errno, static_cast<int>(ERROR_INVALID_PARAMETER));
  EXPECT_EQ(consumer.run(""), ERROR_BAD_PATHNAME);
  consumer.mode |= PROCESS_TRACE_MODE_REAL_TIME;
  EXPECT_EQ(consumer.run(files.path("absent.etl")), ERROR_NOT_SUPPORTED);
  TRACEHANDLE none = 12345;
  EXPECT_EQ(ProcessTrace(&none, 1, nullptr, nullptr), ERROR_INVALID_HANDLE);
  EXPECT_EQ(ProcessTrace(&none, 0, nullptr, nullptr), ERROR_BAD_LENGTH);
  EXPECT_EQ(ProcessTrace(nullptr, 1, nullptr, nullptr), ERROR_INVALID_PARAMETER);
  EXPECT_EQ(CloseTrace(none), ERROR_INVALID_HANDLE);
}

TEST(Consumer, DamageEndsTheCallWithTheEventsBeforeIt) {
  SyntheticTrace trace;
  for (int i = 0; i < 10; ++i)
    trace.sample({2'000'000 + i, 0}, 7);
  std::vector<std::uint8_t> bytes = trace.bytes();
  const std::size_t second = 0x10000; // the first buffer is whole
  bytes[second + 0x48 + 3 * 0x20] = 0x7F;
  bytes[second + 0x48 + 3 * 0x20 + 3] = 0x00; // no marker of an event
  const GuestFiles files;
  Consumer consumer;
  EXPECT_EQ(consumer.run(files.write("a.etl", bytes)), ERROR_FILE_CORRUPT);
  EXPECT_NE(consumer.failure.find("a.etl"), std::string::npos);
  EXPECT_LT(consumer.seen.size(), 11u);
}

// Only as far as readers rely on it: names and types of the fields are TraceEvent's to judge (tools/test
// traceevent).
TEST(Consumer, TraceLoggingEventsAreDescribedOnRequest) {
  SyntheticTrace trace;
  trace.trace_logging({2'000'000, 0}, kProvider, "My.Provider", "First", 21, 22);
  trace.trace_logging({2'100'000, 1}, kProvider, "My.Provider", "Second", 21, 22);
  trace.trace_logging({2'200'000, 0}, kProvider, "My.Provider", "First", 21, 22);
  const GuestFiles files;
  const std::string path = files.write("a.etl", trace.bytes());
  Consumer without;
  ASSERT_EQ(without.run(path), ERROR_SUCCESS);
  EXPECT_EQ(without.seen.size(), 4u);
  etwr_consumer_describe_tracelogging(1);
  Consumer with;
  ASSERT_EQ(with.run(path), ERROR_SUCCESS);
  etwr_consumer_describe_tracelogging(0);
  ASSERT_EQ(with.seen.size(), 6u);
  const Seen &info = with.seen[1];
  EXPECT_EQ(info.provider(), format::kMetaDataGuid);
  EXPECT_EQ(info.record.EventHeader.EventDescriptor.Opcode, 32);
  EXPECT_EQ(info.record.EventHeader.TimeStamp, 2'000'000);
  EXPECT_EQ(info.record.EventHeader.ProcessId, 22u);
  ASSERT_GE(info.data.size(), 0x70u);
  EXPECT_EQ(load_guid(info.data.data()), kProvider);
  EXPECT_EQ(load<std::uint16_t>(&info.data[0x20]), 0xFEFF);
  EXPECT_EQ(with.seen[2].provider(), kProvider);
  EXPECT_EQ(with.seen[3].provider(), format::kMetaDataGuid);
  EXPECT_EQ(load<std::uint16_t>(&with.seen[3].data[0x20]), 0xFEFE);
  EXPECT_EQ(with.seen[5].provider(), kProvider);
  // Each reader of a call needs them.
  etwr_consumer_describe_tracelogging(1);
  Consumer one, other;
  TRACEHANDLE handles[] = {one.open(path), other.open(path)};
  etwr_consumer_describe_tracelogging(0);
  ASSERT_EQ(ProcessTrace(handles, 2, nullptr, nullptr), ERROR_SUCCESS);
  EXPECT_EQ(one.seen.size(), 6u);
  EXPECT_EQ(other.seen.size(), 6u);
  for (const TRACEHANDLE handle : handles)
    CloseTrace(handle);
}

} // namespace
} // namespace etwrelog::testing
