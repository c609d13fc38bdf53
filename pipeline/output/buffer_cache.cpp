#include "output/buffer_cache.hpp"

namespace etwrelog::pipeline {

void BufferCache::add(std::unique_ptr<std::uint8_t[]> memory, std::span<const DecodedBuffer> buffers) {
  for (const DecodedBuffer &buffer : buffers) {
    places_[buffer.index] = static_cast<std::uint32_t>(buffers_.size());
    buffers_.push_back(buffer);
  }
  if (memory) memory_.push_back(std::move(memory));
}

std::uint64_t BufferCache::missing() const {
  return static_cast<std::uint64_t>(std::ranges::count(places_, kNone));
}

bool CachedBatches::next(Batch &batch) {
  const std::span<const read::BufferSpan> buffers = trace_.buffers();
  if (next_buffer_ >= buffers.size()) return false;
  batch.first = next_buffer_;
  batch.count = 0;
  const bool cached = find(next_buffer_) != nullptr;
  std::uint64_t bytes = 0;
  for (; next_buffer_ < buffers.size(); ++next_buffer_, ++batch.count) {
    const DecodedBuffer *buffer = find(next_buffer_);
    if ((buffer != nullptr) != cached) break;
    const read::BufferSpan &span = buffers[next_buffer_];
    const std::uint64_t more =
        buffer ? sizeof(DecodedBuffer) + buffer->events.size() : std::max(span.decoded, span.size);
    if (batch.count > 0 && bytes + more > batch_bytes_) break;
    bytes += more;
  }
  return true;
}

void CachedBatches::load(Batch &batch) const {
  batch.events = 0;
  if (!find(batch.first)) return trace_.load(batch);
  batch.buffers.clear();
  batch.error.reset();
  batch.skipped.clear();
  batch.warnings.clear();
  for (std::size_t i = 0; i < batch.count; ++i)
    batch.buffers.push_back(*find(batch.first + i));
}

} // namespace etwrelog::pipeline
