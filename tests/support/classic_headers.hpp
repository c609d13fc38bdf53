// Kernel events as programs that consume a session get them and may write them again: with classic headers,
// of the class and the opcode that their hooks stand for.
#pragma once

#include "write/event_builder.hpp"

namespace etwrelog::testing {

inline void add_with_classic_header(write::EventBuilder &builder, const EventView &event) {
  builder
      .classic(kernel::class_guid(event.hook()), event.opcode(), event.version(), event.pointer_size(),
               event.thread_id(), event.process_id(), event.header_time())
      .bytes(event.payload());
}

// An uncompressed trace with all of its kernel events made so, but for the logfile header, in buffers that
// have room for that.
inline std::vector<std::uint8_t> with_classic_headers(Bytes trace) {
  constexpr std::uint32_t kLarger = 4;
  std::vector<std::uint8_t> copy, events;
  while (!trace.empty()) {
    format::BufferHeader header = format::load_buffer_header(trace.data());
    events.clear();
    for_each_event(trace.subspan(format::kBufferHeaderSize, header.valid_bytes() - format::kBufferHeaderSize),
                   [&](const EventView &event, std::int64_t, std::uint32_t at) {
                     const bool first = copy.empty() && at == 0;
                     if (event.has_hook() && !first) {
                       write::EventBuilder builder(events);
                       add_with_classic_header(builder, event);
                       builder.finish();
                       return;
                     }
                     events.insert(events.end(), event.bytes().begin(), event.bytes().end());
                     events.resize(align8(events.size()));
                     if (first)
                       store(events.data() + format::kSystemHeaderSize + format::kLogBufferSizeAt,
                             header.buffer_size * kLarger);
                   });
    trace = trace.subspan(header.buffer_size);
    header.buffer_size *= kLarger;
    header.saved_offset = header.current_offset = header.filled_bytes =
        static_cast<std::uint32_t>(format::kBufferHeaderSize + events.size());
    assert(header.filled_bytes <= header.buffer_size);
    const std::size_t begin = copy.size();
    copy.resize(begin + header.buffer_size, format::kFillByte);
    format::store_buffer_header(copy.data() + begin, header);
    std::ranges::copy(events, copy.begin() + static_cast<std::ptrdiff_t>(begin + format::kBufferHeaderSize));
  }
  return copy;
}

} // namespace etwrelog::testing
