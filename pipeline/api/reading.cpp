#include "api/reading.hpp"

#include "api/internals.hpp"
#include "base/io.hpp"

namespace etwrelog::pipeline {

Result<void> check_output(const etwrelog::Trace &trace, const Output &output) {
  return base::check_output(output, detail::Traversal::of(trace).files);
}

Result<OutputStream> open_output(const etwrelog::Trace &trace, const Output &output) {
  ETWRELOG_TRY(check_output(trace, output));
  return OutputStream::open(output);
}

std::uint64_t file_offset(const etwrelog::Trace &trace, const Position &position) {
  const OpenedTrace &opened = detail::Traversal::of(trace);
  const read::BufferSpan &buffer = opened.sources[position.source]->buffers()[position.buffer];
  const bool plain = opened.infos[position.source].codec == Codec::none;
  return buffer.offset + (plain ? format::kBufferHeaderSize + position.offset : 0);
}

} // namespace etwrelog::pipeline
