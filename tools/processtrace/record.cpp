#include "record.hpp"

#include <algorithm>

namespace etwrelog::consumer {
namespace {

using namespace format;

constexpr std::size_t kSystemTimesAt = 0x18, kClassicTimesAt = 0x28, kEventTimesAt = 0x38,
                      kInstanceInfoAt = 0x30;
constexpr std::size_t kInstanceInfoSize = 0x18; // two ids and the parent's class

void put_guid(ETWR_GUID &to, const Guid &guid) {
  std::memcpy(&to, &guid, sizeof to);
}

void put_times(EVENT_HEADER &header, const EventView &event, std::size_t at) {
  header.KernelTime = load<std::uint32_t>(event.bytes().data() + at);
  header.UserTime = load<std::uint32_t>(event.bytes().data() + at + 4);
}

bool is_instance(const EventView &event) {
  return event.type() == HeaderType::instance32 || event.type() == HeaderType::instance64;
}

// The flags that no file holds: Windows adds them when it reads.
std::uint16_t presentation_flags(const EventView &event) {
  std::uint16_t flags =
      event.pointer_size() == 8 ? EVENT_HEADER_FLAG_64_BIT_HEADER : EVENT_HEADER_FLAG_32_BIT_HEADER;
  if (event.is_message()) {
    const std::uint16_t options = load<std::uint16_t>(event.bytes().data() + kMessageOptionsAt);
    if ((options & kMessagePointer32) != 0) flags = EVENT_HEADER_FLAG_32_BIT_HEADER;
    flags |= EVENT_HEADER_FLAG_TRACE_MESSAGE;
  }
  if (!event.is_event()) flags |= EVENT_HEADER_FLAG_CLASSIC_HEADER;
  return flags;
}

void put_event_fields(EVENT_HEADER &header, const EventView &event) {
  const std::uint8_t *at = event.bytes().data();
  header.EventProperty = load<std::uint16_t>(at + 0x06);
  header.Flags |= load<std::uint16_t>(at + kEventFlagsAt);
  // The descriptor is stored as it is handed out.
  std::memcpy(&header.EventDescriptor, at + kEventIdAt, sizeof header.EventDescriptor);
  put_times(header, event, kEventTimesAt);
  put_guid(header.ActivityId, event.activity());
}

void put_kernel_fields(EVENT_HEADER &header, const EventView &event) {
  header.EventDescriptor.Opcode = event.opcode();
  header.EventDescriptor.Version = static_cast<std::uint8_t>(event.version());
  if (event.layout().header_size == kSystemHeaderSize)
    put_times(header, event, kSystemTimesAt);
  else
    header.Flags |= EVENT_HEADER_FLAG_NO_CPUTIME;
}

void put_class_fields(EVENT_HEADER &header, const EventView &event) {
  header.EventDescriptor.Opcode = event.opcode();
  header.EventDescriptor.Version = static_cast<std::uint8_t>(event.version());
  header.EventDescriptor.Level = event.level();
  put_times(header, event, kClassicTimesAt);
}

} // namespace

void RecordMaker::add_item(std::uint16_t type, Bytes data) {
  items_.push_back({0, type, 0, static_cast<std::uint16_t>(data.size()),
                    static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(data.data()))});
}

void RecordMaker::take_stored_items(const EventView &event) {
  ExtendedItems walk = event.items();
  for (ExtendedItem item; walk.next(item);)
    add_item(static_cast<std::uint16_t>(item.type), item.data);
}

void RecordMaker::take_perfinfo_items(const EventView &event) {
  Bytes items = event.perfinfo_items();
  if (items.empty()) return;
  const bool pebs = (event.bytes()[kPerfinfoItemsAt] & kPerfinfoPebsBit) != 0;
  const std::size_t counters =
      std::min<std::size_t>(8u * (event.bytes()[kPerfinfoItemsAt] & kPerfinfoCounterMask), items.size());
  if (counters != 0) add_item(EVENT_HEADER_EXT_TYPE_PMC_COUNTERS, items.first(counters));
  if (pebs && items.size() > counters) add_item(EVENT_HEADER_EXT_TYPE_PEBS_INDEX, items.subspan(counters));
}

bool RecordMaker::fill(EVENT_RECORD &record, const EventView &event, const RecordContext &context) {
  items_.clear();
  record = EVENT_RECORD{};
  EVENT_HEADER &header = record.EventHeader;
  header.Flags = presentation_flags(event);
  put_guid(header.ProviderId, event.provider());
  if (event.is_event()) {
    put_event_fields(header, event);
    if (event.has_items()) take_stored_items(event);
  } else if (event.has_hook()) {
    put_kernel_fields(header, event);
    if (event.is_perfinfo()) take_perfinfo_items(event);
  } else if (event.is_classic()) {
    put_class_fields(header, event);
    if (is_instance(event))
      add_item(EVENT_HEADER_EXT_TYPE_INSTANCE_INFO,
               event.bytes().subspan(kInstanceInfoAt, kInstanceInfoSize));
  } else if (event.is_message()) {
    header.EventDescriptor.Id = event.id();
    header.Flags |= EVENT_HEADER_FLAG_NO_CPUTIME;
  } else {
    return false;
  }
  if (context.private_session) header.Flags |= EVENT_HEADER_FLAG_PRIVATE_SESSION;
  header.Size = static_cast<std::uint16_t>(event.size());
  header.ThreadId = event.thread_id();
  header.ProcessId = event.process_id();
  header.TimeStamp = context.time;
  std::memcpy(&record.BufferContext, &context.processor, sizeof context.processor);

  const Bytes payload = event.payload();
  record.UserDataLength = static_cast<std::uint16_t>(payload.size());
  record.UserData = const_cast<std::uint8_t *>(payload.data()); // Windows' type; nobody writes there
  record.UserContext = context.user_context;
  if (!items_.empty()) {
    for (std::size_t i = 0; i + 1 < items_.size(); ++i)
      items_[i].Linkage = 1;
    record.ExtendedDataCount = static_cast<std::uint16_t>(items_.size());
    record.ExtendedData = items_.data();
    header.Flags |= EVENT_HEADER_FLAG_EXTENDED_INFO;
  } else {
    header.Flags &= static_cast<std::uint16_t>(~EVENT_HEADER_FLAG_EXTENDED_INFO);
  }
  return true;
}

void fill_classic(EVENT_TRACE &trace, const EVENT_RECORD &record, const EventView &event) {
  trace = EVENT_TRACE{};
  const EVENT_HEADER &header = record.EventHeader;
  trace.Header.Size = header.Size;
  trace.Header.HeaderType = static_cast<std::uint8_t>(event.type());
  trace.Header.MarkerFlags = event.is_message() ? kMarkerMessage : kMarkerStructured;
  trace.Header.Class = {header.EventDescriptor.Opcode, header.EventDescriptor.Level, event.version()};
  trace.Header.ThreadId = header.ThreadId;
  trace.Header.ProcessId = header.ProcessId;
  trace.Header.TimeStamp = header.TimeStamp;
  trace.Header.Guid = header.ProviderId;
  trace.Header.KernelTime = header.KernelTime;
  trace.Header.UserTime = header.UserTime;
  if (is_instance(event)) {
    const std::uint8_t *info = event.bytes().data() + kInstanceInfoAt;
    trace.InstanceId = load<std::uint32_t>(info);
    trace.ParentInstanceId = load<std::uint32_t>(info + 4);
    std::memcpy(&trace.ParentGuid, info + 8, sizeof trace.ParentGuid);
  }
  trace.MofData = record.UserData;
  trace.MofLength = record.UserDataLength;
  trace.BufferContext = record.BufferContext;
}

} // namespace etwrelog::consumer
