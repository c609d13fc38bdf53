#include "base/arena.hpp"

#include "base/platform.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace etwrelog::base {

std::uint8_t *Arena::take(std::size_t bytes) {
  constexpr std::size_t kPage = 2u << 20; // a large page; a whole number of them is a chunk
  constexpr std::size_t kSmall = 256u << 10;
  bytes = align8(bytes);
  const std::lock_guard lock(taking_);
  if (bytes > left_) {
    // What little a small trace needs is not worth a large page.
    const bool small = chunks_.empty() && bytes <= kSmall;
    const std::size_t size = small ? kSmall : (std::max(bytes, kPage) + kPage - 1) / kPage * kPage;
    std::unique_ptr<std::uint8_t[], Free> memory(
        static_cast<std::uint8_t *>(small ? std::malloc(size) : std::aligned_alloc(kPage, size)));
    if (!memory) throw std::bad_alloc();
    if (!small) advise_large_pages(memory.get(), size);
    next_ = memory.get();
    chunks_.push_back(std::move(memory));
    left_ = size;
  }
  left_ -= bytes;
  return std::exchange(next_, next_ + bytes);
}

} // namespace etwrelog::base
