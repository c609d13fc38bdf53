// The on-disk layouts of an ETL file: the one place where they stand. Readers, writers, the generator and the
// tests all use these. All integers are little-endian; sizes and offsets are in bytes.
//
// An ETL file is a run of buffers: a 0x48-byte header, then events, each starting on an 8-byte boundary
// relative to the buffer. The first event of the first buffer is the logfile header; there is no index and no
// footer. Names are Microsoft's (WMI_BUFFER_HEADER, TRACE_LOGFILE_HEADER, evntrace.h, evntcons.h); what is
// undocumented was checked against real files of Windows 7 to 11.
#pragma once

#include "etwrelog/bytes.hpp"
#include "etwrelog/guid.hpp"

#include <array>
#include <cstddef>

namespace etwrelog::format {

// --- Buffers
// -------------------------------------------------------------------------------------------------

inline constexpr std::size_t kBufferHeaderSize = 0x48;
inline constexpr std::uint32_t kMaxBufferSize = 64u << 20; // Windows stops at 16 MiB; room for what comes
inline constexpr std::uint32_t kEndOfEvents =
    0xFFFF'FFFF; // fill after the last event of an uncompressed buffer
inline constexpr std::uint8_t kFillByte = 0xFF;
inline constexpr std::uint32_t kMaxEventSize = 0xFFFF; // Size is 16 bits in every event header
inline constexpr std::uint32_t kHeaderBufferGranule =
    512; // first buffer of a compressed file, rounded up to this

enum BufferFlag : std::uint16_t {
  kFlagFlushMarker = 0x0001, // exactly the first and the last buffer of a file
  kFlagEventsLost = 0x0002,
  kFlagBufferLost = 0x0004,
  kFlagProcessorIndex = 0x0020, // 0x28 is a 16-bit index; otherwise only its low byte counts
  kFlagCompressed = 0x0040,     // the bytes after the header are compressed
};

enum BufferType : std::uint16_t { kTypeGeneric = 0, kTypeHeader = 4 };
inline constexpr std::uint16_t kMaxBufferType = 7; // DBG_INFO

enum BufferState : std::uint32_t { kStateFree = 0, kStateFlush = 3 };
inline constexpr std::uint32_t kMaxBufferState = 6; // Placeholder

struct BufferHeader {
  std::uint32_t buffer_size = 0;  // 0x00 BufferSize: bytes that the buffer occupies in the file
  std::uint32_t saved_offset = 0; // 0x04 SavedOffset: header + decoded events; 0 in Windows 7 first buffers
  std::uint32_t current_offset =
      0; // 0x08 CurrentOffset: SavedOffset + the reservation that did not fit any more
  std::int32_t reference_count = 0;        // 0x0C
  std::int64_t time_stamp = 0;             // 0x10 flush time; a FILETIME in relogged files
  std::int64_t sequence_number = 0;        // 0x18
  std::uint64_t clock = 0;                 // 0x20 stale pointer or 0
  std::uint16_t client_context = 0;        // 0x28 processor
  std::uint16_t logger_id = 0;             // 0x2A
  std::uint32_t state = 0;                 // 0x2C
  std::uint32_t filled_bytes = 0;          // 0x30 Offset: a second statement of the valid length
  std::uint16_t flags = 0;                 // 0x34 BufferFlag
  std::uint16_t type = 0;                  // 0x36 BufferType
  std::array<std::uint64_t, 2> reserved{}; // 0x38 stale pointers or 0

  // Header + decoded events. The larger of the two fields: some first buffers hold valid events past
  // SavedOffset, others leave it 0.
  [[nodiscard]] std::uint32_t valid_bytes() const {
    return saved_offset > filled_bytes ? saved_offset : filled_bytes;
  }
  [[nodiscard]] bool compressed() const { return (flags & kFlagCompressed) != 0; }
  [[nodiscard]] std::uint16_t processor() const {
    return (flags & kFlagProcessorIndex) != 0 ? client_context
                                              : static_cast<std::uint16_t>(client_context & 0xFF);
  }
};

// Needs kBufferHeaderSize bytes.
[[nodiscard]] inline BufferHeader load_buffer_header(const std::uint8_t *at) {
  BufferHeader h;
  h.buffer_size = load<std::uint32_t>(at + 0x00);
  h.saved_offset = load<std::uint32_t>(at + 0x04);
  h.current_offset = load<std::uint32_t>(at + 0x08);
  h.reference_count = load<std::int32_t>(at + 0x0C);
  h.time_stamp = load<std::int64_t>(at + 0x10);
  h.sequence_number = load<std::int64_t>(at + 0x18);
  h.clock = load<std::uint64_t>(at + 0x20);
  h.client_context = load<std::uint16_t>(at + 0x28);
  h.logger_id = load<std::uint16_t>(at + 0x2A);
  h.state = load<std::uint32_t>(at + 0x2C);
  h.filled_bytes = load<std::uint32_t>(at + 0x30);
  h.flags = load<std::uint16_t>(at + 0x34);
  h.type = load<std::uint16_t>(at + 0x36);
  h.reserved = {load<std::uint64_t>(at + 0x38), load<std::uint64_t>(at + 0x40)};
  return h;
}

inline void store_buffer_header(std::uint8_t *at, const BufferHeader &h) {
  store(at + 0x00, h.buffer_size);
  store(at + 0x04, h.saved_offset);
  store(at + 0x08, h.current_offset);
  store(at + 0x0C, h.reference_count);
  store(at + 0x10, h.time_stamp);
  store(at + 0x18, h.sequence_number);
  store(at + 0x20, h.clock);
  store(at + 0x28, h.client_context);
  store(at + 0x2A, h.logger_id);
  store(at + 0x2C, h.state);
  store(at + 0x30, h.filled_bytes);
  store(at + 0x34, h.flags);
  store(at + 0x36, h.type);
  store(at + 0x38, h.reserved[0]);
  store(at + 0x40, h.reserved[1]);
}

// --- Event headers
// -------------------------------------------------------------------------------------------

inline constexpr std::uint8_t kMarkerStructured = 0xC0; // top byte of the first dword of an event
inline constexpr std::uint8_t kMarkerMessage = 0x90;    // WPP

enum class HeaderType : std::uint8_t {
  system32 = 0x01,
  system64 = 0x02,
  compact32 = 0x03,
  compact64 = 0x04,
  full32 = 0x0A,
  instance32 = 0x0B,
  message = 0x0F,
  perfinfo32 = 0x10,
  perfinfo64 = 0x11,
  event32 = 0x12,
  event64 = 0x13,
  full64 = 0x14,
  instance64 = 0x15,
};

// What a header type has and where. Size and ids at an offset of 0xFF do not exist in that type.
struct HeaderLayout {
  std::uint8_t header_size;  // without PMC/PEBS items, extended items or a message's optional parts
  std::uint8_t size_at;      // u16 Size: the whole event, header included, alignment padding excluded
  std::uint8_t pointer_size; // of the payload
  std::uint8_t thread_at;    // u32 ThreadId; the u32 ProcessId follows it
  std::uint8_t time_at;      // i64 raw time stamp
};
inline constexpr std::uint8_t kNone = 0xFF;

// Indexed by HeaderType. Types not set here (TIMED, ERROR and WNODE, obsolete before Windows 7, and whatever
// is to come) are carried along by their Size, which all of them have in the first word.
inline constexpr std::array<HeaderLayout, 0x100> kHeaderLayouts = [] {
  std::array<HeaderLayout, 0x100> t{};
  t.fill({0x08, 0, 8, kNone, kNone});
  auto set = [&t](HeaderType type, HeaderLayout layout) { t[static_cast<std::size_t>(type)] = layout; };
  set(HeaderType::system32, {0x20, 4, 4, 0x08, 0x10});
  set(HeaderType::system64, {0x20, 4, 8, 0x08, 0x10});
  set(HeaderType::compact32, {0x18, 4, 4, 0x08, 0x10});
  set(HeaderType::compact64, {0x18, 4, 8, 0x08, 0x10});
  set(HeaderType::perfinfo32, {0x10, 4, 4, kNone, 0x08});
  set(HeaderType::perfinfo64, {0x10, 4, 8, kNone, 0x08});
  set(HeaderType::full32, {0x30, 0, 4, 0x08, 0x10});
  set(HeaderType::full64, {0x30, 0, 8, 0x08, 0x10});
  set(HeaderType::instance32, {0x48, 0, 4, 0x08, 0x10});
  set(HeaderType::instance64, {0x48, 0, 8, 0x08, 0x10});
  set(HeaderType::event32, {0x50, 0, 4, 0x08, 0x10});
  set(HeaderType::event64, {0x50, 0, 8, 0x08, 0x10});
  set(HeaderType::message, {0x08, 0, 8, kNone, kNone});
  return t;
}();

// SYSTEM, COMPACT, PERFINFO: u8 payload version at 0, u8 flags at 1, u8 type, u8 0xC0, u16 Size, u16 HookId.
inline constexpr std::size_t kHookAt = 0x06; // group << 8 | opcode
inline constexpr std::size_t kPerfinfoItemsAt = 0x01;
inline constexpr std::uint8_t kPerfinfoCounterMask = 0x07; // number of u64 PMC counters after the header
inline constexpr std::uint8_t kPerfinfoPebsBit = 0x80;     // then one u64 PEBS index

// FULL and INSTANCE (classic).
inline constexpr std::size_t kClassicOpcodeAt = 0x04, kClassicLevelAt = 0x05, kClassicVersionAt = 0x06;
inline constexpr std::size_t kClassicGuidAt = 0x18;

// EVENT_HEADER.
inline constexpr std::size_t kEventFlagsAt = 0x04, kEventProviderAt = 0x18, kEventIdAt = 0x28,
                             kEventVersionAt = 0x2A, kEventChannelAt = 0x2B, kEventLevelAt = 0x2C,
                             kEventOpcodeAt = 0x2D, kEventTaskAt = 0x2E, kEventKeywordAt = 0x30,
                             kEventActivityAt = 0x40;
inline constexpr std::uint16_t kEventFlagExtended = 0x0001;

// MESSAGE (WPP): u16 MessageNumber at 4, u16 OptionFlags at 6, then packed: u32 sequence, u32 component id or
// GUID, u64 time stamp, u32 thread id + u32 process id.
inline constexpr std::size_t kMessageNumberAt = 0x04, kMessageOptionsAt = 0x06;
enum MessageOption : std::uint16_t {
  kMessageSequence = 0x0001,
  kMessageGuid = 0x0002,
  kMessageComponentId = 0x0004, // wins over the GUID
  kMessageTime = 0x0008,
  kMessageTimePerf = 0x0010, // space for a time stamp, which is valid only with 0x0008
  kMessageSystemInfo = 0x0020,
  kMessagePointer32 = 0x0040,
  kMessagePointer64 = 0x0080,
};

// Extended data items of EVENT_HEADER, packed: u16 item size, u16 ExtType, u16 Linkage in bit 0, u16
// DataSize, data.
inline constexpr std::size_t kItemHeaderSize = 8, kItemTypeAt = 2, kItemLinkageAt = 4, kItemDataSizeAt = 6;
enum class ItemType : std::uint16_t {
  related_activity = 0x01, // GUID
  sid = 0x02,
  terminal_session = 0x03,
  instance_info = 0x04,
  stack_trace32 = 0x05, // u64 MatchId, u32 addresses[]
  stack_trace64 = 0x06, // u64 MatchId, u64 addresses[]
  pebs_index = 0x07,
  pmc_counters = 0x08,
  psm_key = 0x09,
  event_key = 0x0A,
  schema_tl = 0x0B,       // TraceLogging event metadata
  provider_traits = 0x0C, // u16 size, provider name, traits
  process_start_key = 0x0D,
  control_guid = 0x0E,
  qpc_delta = 0x0F,
  container_id = 0x10,
  stack_key32 = 0x11, // u64 MatchId, u32 key, u32 padding
  stack_key64 = 0x12, // u64 MatchId, u64 key
};

inline constexpr std::size_t kItemStackKeyAt = 8, kItemStackFramesAt = 8; // behind the MatchId

// --- The logfile header event
// --------------------------------------------------------------------------------

// At offset 0x48 of the file: a SYSTEM header with hook 0x0000, TRACE_LOGFILE_HEADER in the 32- or 64-bit
// form that the header type tells, then two UTF-16 strings: session name and file name.
inline constexpr std::uint16_t kHookLogfileHeader = 0x0000;
inline constexpr std::size_t kSystemHeaderSize = 0x20;
inline constexpr std::size_t kTimeZoneSize = 0xAC;
// Within TIME_ZONE_INFORMATION, behind Bias: two SYSTEMTIMEs (eight u16) and what is added to Bias from then
// on.
inline constexpr std::size_t kStandardDateAt = 0x44, kStandardBiasAt = 0x54, kDaylightDateAt = 0x98,
                             kDaylightBiasAt = 0xA8;

struct LogfileHeaderLayout { // offsets from the start of the payload
  std::size_t names, bias, boot_time, perf_freq, start_time, clock_type, buffers_lost;
};
inline constexpr LogfileHeaderLayout kLogfileHeader32 = {0x110, 0x40, 0xF0, 0xF8, 0x100, 0x108, 0x10C};
inline constexpr LogfileHeaderLayout kLogfileHeader64 = {0x118, 0x48, 0xF8, 0x100, 0x108, 0x110, 0x114};
// Offsets that both forms share.
inline constexpr std::size_t kLogBufferSizeAt = 0x00, kLogMajorAt = 0x04, kLogMinorAt = 0x05,
                             kLogSubVersionAt = 0x06, kLogSubMinorVersionAt = 0x07,
                             kLogProviderVersionAt = 0x08, kLogProcessorsAt = 0x0C, kLogEndTimeAt = 0x10,
                             kLogTimerResolutionAt = 0x18, kLogMaximumFileSizeAt = 0x1C,
                             kLogFileModeAt = 0x20, kLogBuffersWrittenAt = 0x24, kLogStartBuffersAt = 0x28,
                             kLogPointerSizeAt = 0x2C, kLogEventsLostAt = 0x30, kLogCpuSpeedAt = 0x34;

enum LogFileMode : std::uint32_t {
  kModeSequential = 0x0000'0001,
  kModeCircular = 0x0000'0002,
  kModeAppend = 0x0000'0004,
  kModeNewFile = 0x0000'0008,
  kModePreallocate = 0x0000'0020,
  kModeBuffering = 0x0000'0400, // saved on demand, out of memory
  kModeKilobytes = 0x0000'2000, // MaximumFileSize is in KB
  kModeRelog = 0x0001'0000,     // written by a relogger or merge
  kModeCompressed = 0x0400'0000,
  kModeOneStream = 0x1000'0000, // NO_PER_PROCESSOR_BUFFERING
};

enum class ClockType : std::uint32_t { qpc = 1, system_time = 2, cpu_cycles = 3 };

// --- Class GUIDs
// ---------------------------------------------------------------------------------------------

inline constexpr Guid kEventTraceGuid = make_guid(0x68fdd900, 0x4a3e, 0x11d1, 0x84f4, 0x0000f80464e3);
inline constexpr Guid kImageIdGuid = make_guid(0xb3e675d7, 0x2554, 0x4f18, 0x830b, 0x2762732560de);
inline constexpr Guid kMetaDataGuid = make_guid(0xbbccf6c1, 0x6cd1, 0x48c4, 0x80ff, 0x839482e37671);
inline constexpr Guid kSysConfigGuid = make_guid(0x9b79ee91, 0xb5fd, 0x41c0, 0xa243, 0x4248e266e9d0);
inline constexpr Guid kWinSatGuid = make_guid(0xed54dff8, 0xc409, 0x4cf6, 0xbf83, 0x05e1e61a09c4);
inline constexpr Guid kClrGuid = make_guid(0xe13c0d23, 0xccbc, 0x4e12, 0x931b, 0xd9cc2eee27e4);
inline constexpr Guid kClrRundownGuid = make_guid(0xa669021c, 0xc450, 0x4609, 0xa035, 0x5af59af4df18);
inline constexpr Guid kClrPrivateGuid = make_guid(0x763fd754, 0x7086, 0x4dfe, 0x95eb, 0xc01a46faf4ca);
inline constexpr Guid kKernelEventTracingGuid = make_guid(0xb675ec37, 0xbdb6, 0x4648, 0xbc92, 0xf3fdc74d3ca2);

// EventSource manifests travel in this event of their provider.
inline constexpr std::uint16_t kManifestEventId = 65534;
inline constexpr std::uint8_t kManifestOpcode = 0xFE;

// Kernel addresses start here (TraceEvent's rule; user space ends below on every Windows version).
[[nodiscard]] constexpr bool is_kernel_address(std::uint64_t address, unsigned pointer_size) {
  return pointer_size == 8 ? address >= 0xFFFF'0000'0000'0000ull : address >= 0x8000'0000ull;
}

} // namespace etwrelog::format
