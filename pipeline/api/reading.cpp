#include "api/reading.hpp"

#include "api/filter.hpp"
#include "api/internals.hpp"

namespace etwrelog::pipeline {

etwrelog::Filter reading_filter(const etwrelog::Trace &trace, std::optional<std::uint16_t> only_processor,
                                bool state_from_index) {
  auto impl = std::make_shared<etwrelog::Filter::Impl>();
  impl->everything = true;
  impl->opened = &detail::Traversal::of(trace);
  impl->only_processor = only_processor;
  impl->state_from_index = state_from_index;
  return FilterParts::make(std::move(impl));
}

std::uint64_t file_offset(const etwrelog::Trace &trace, const Position &position) {
  const OpenedTrace &opened = detail::Traversal::of(trace);
  const read::BufferSpan &buffer = opened.sources[position.source]->buffers()[position.buffer];
  const bool plain = opened.infos[position.source].codec == Codec::none;
  return buffer.offset + (plain ? format::kBufferHeaderSize + position.offset : 0);
}

} // namespace etwrelog::pipeline
