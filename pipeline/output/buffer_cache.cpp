#include "output/buffer_cache.hpp"

namespace etwrelog::pipeline {

void BufferCache::add(std::span<const DecodedBuffer> buffers) {
  for (const DecodedBuffer &buffer : buffers) {
    places_[buffer.index] = static_cast<std::uint32_t>(buffers_.size());
    buffers_.push_back(buffer);
  }
}

std::uint64_t BufferCache::missing() const {
  return static_cast<std::uint64_t>(std::ranges::count(places_, kNone));
}

} // namespace etwrelog::pipeline
