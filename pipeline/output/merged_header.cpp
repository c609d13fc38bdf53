#include "output/merged_header.hpp"

#include "etwrelog/text.hpp"

#include <algorithm>

namespace etwrelog::pipeline {

using namespace format;

namespace {

std::uint32_t sum_of(Traces traces, std::uint32_t LogfileHeader::*field) {
  std::uint64_t sum = 0;
  for (const Trace *trace : traces)
    sum += trace->header().*field;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(sum, UINT32_MAX));
}

} // namespace

LogfileHeader merged_header(Traces traces) {
  LogfileHeader header = traces[earliest(traces)]->header();
  header.session_name = "Relogger";
  header.file_name = "[multiple files]";
  header.events_lost = sum_of(traces, &LogfileHeader::events_lost);
  header.buffers_lost = sum_of(traces, &LogfileHeader::buffers_lost);
  std::uint32_t one_stream = kModeOneStream;
  bool closed = true;
  for (const Trace *trace : traces) {
    const LogfileHeader &h = trace->header();
    header.end_time = std::max(header.end_time, h.end_time);
    closed = closed && h.closed();
    header.processors = std::max(header.processors, h.processors);
    one_stream &= h.log_file_mode;
  }
  if (!closed) header.end_time = 0; // when the last event was is known when it has been written
  // Where one input says of which processor its events are, the index of a buffer means something.
  header.log_file_mode = (header.log_file_mode & ~std::uint32_t{kModeOneStream}) | one_stream;
  return header;
}

std::vector<std::uint8_t> merged_header_event(Bytes event, const LogfileHeader &header) {
  const auto type = static_cast<HeaderType>(event[2]);
  const LogfileHeaderLayout &at = type == HeaderType::system64 ? kLogfileHeader64 : kLogfileHeader32;
  std::vector<std::uint8_t> merged(event.begin(),
                                   event.begin() + static_cast<std::ptrdiff_t>(kSystemHeaderSize + at.names));
  for (const std::string &name : {header.session_name, header.file_name})
    for (const char16_t unit : utf16_from_utf8(name) + u'\0') {
      merged.push_back(static_cast<std::uint8_t>(unit & 0xFF));
      merged.push_back(static_cast<std::uint8_t>(unit >> 8));
    }
  store(&merged[kHeaderLayouts[static_cast<std::size_t>(type)].size_at],
        static_cast<std::uint16_t>(merged.size()));
  store(&merged[kSystemHeaderSize + kLogProcessorsAt], header.processors);
  return merged;
}

} // namespace etwrelog::pipeline
