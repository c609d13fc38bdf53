#include "output/buffer_cache.hpp"

namespace etwrelog::pipeline {

void BufferCache::add(const DecodedBuffer &buffer, std::vector<Stretch> left) {
  places_[buffer.index] = static_cast<std::uint32_t>(kept_.size());
  kept_.push_back({buffer, std::move(left)});
}

std::uint64_t BufferCache::missing() const {
  return static_cast<std::uint64_t>(std::ranges::count(places_, kNone));
}

} // namespace etwrelog::pipeline
