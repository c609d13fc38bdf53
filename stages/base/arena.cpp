#include "base/arena.hpp"

#include "base/platform.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace etwrelog::base {

// A chunk is a whole number of large pages.
std::uint8_t *Arena::take(std::size_t bytes) {
  constexpr std::size_t kSmall = 256u << 10;
  bytes = align8(bytes);
  const std::lock_guard lock(taking_);
  if (bytes == 0) return next_;
  if (bytes > left_) {
    // What little a small trace needs is not worth a large page.
    const bool small = chunks_.empty() && bytes <= kSmall;
    const std::size_t size =
        small ? kSmall : (std::max(bytes, kLargePage) + kLargePage - 1) / kLargePage * kLargePage;
    std::unique_ptr<std::uint8_t[], Free> memory(static_cast<std::uint8_t *>(take_block(size)), Free{size});
    next_ = memory.get();
    last_ = &chunks_[next_];
    last_->memory = std::move(memory);
    left_ = size;
  }
  left_ -= bytes;
  last_->in_use += bytes;
  return std::exchange(next_, next_ + bytes);
}

void Arena::give_back(MutableBytes piece) {
  if (piece.empty()) return;
  const std::lock_guard lock(taking_);
  const auto chunk = std::prev(chunks_.upper_bound(piece.data()));
  chunk->second.in_use -= piece.size();
  if (chunk->second.in_use == 0 && &chunk->second != last_) chunks_.erase(chunk);
}

} // namespace etwrelog::base
