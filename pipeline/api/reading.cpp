#include "api/reading.hpp"

#include "api/internals.hpp"

namespace etwrelog::pipeline {

std::vector<Input> input_files(const etwrelog::Trace &trace) {
  std::vector<Input> files;
  for (const auto &source : detail::Traversal::of(trace).sources)
    files.emplace_back(source->input().file());
  return files;
}

std::uint64_t file_offset(const etwrelog::Trace &trace, const Position &position) {
  const OpenedTrace &opened = detail::Traversal::of(trace);
  const read::BufferSpan &buffer = opened.sources[position.source]->buffers()[position.buffer];
  const bool plain = opened.infos[position.source].codec == Codec::none;
  return buffer.offset + (plain ? format::kBufferHeaderSize + position.offset : 0);
}

} // namespace etwrelog::pipeline
