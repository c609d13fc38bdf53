#include "base/blocks.hpp"

#include "base/platform.hpp"
#include "base/raw_memory.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

namespace etwrelog::base {
namespace {

// Sizes of blocks: 16 kB and all that follow, two to a doubling, then in steps of 128 kB. Each with a cache
// line more, for those who need so much at a place of their own choice.
constexpr std::size_t kLine = 64, kLeast = std::size_t{16} << 10;
constexpr std::size_t kEven = std::size_t{512} << 10, kStep = kEven / 4; // from there on in such steps
constexpr std::size_t kMost = kLargePage - kStep + kLine;

constexpr std::size_t step_at(std::size_t bytes) {
  return bytes < kEven ? std::bit_floor(bytes) / 2 : kStep;
}
// The size that has room for so many bytes.
constexpr std::size_t size_for(std::size_t bytes) {
  const std::size_t even = std::max(bytes, kLeast + kLine) - kLine, step = step_at(even);
  return (even + step - 1) / step * step + kLine;
}
// The largest size that so many bytes, which one is in, have room for.
constexpr std::size_t size_within(std::size_t bytes) {
  const std::size_t even = bytes - kLine;
  return even / step_at(even) * step_at(even) + kLine;
}
// The number of a size.
constexpr std::size_t kind_of(std::size_t size) {
  constexpr int kFirst = std::countr_zero(kLeast), kDoublings = std::countr_zero(kEven) - kFirst;
  const std::size_t even = size - kLine;
  if (even >= kEven) return 2 * kDoublings + (even - kEven) / kStep;
  const auto doublings = static_cast<std::size_t>(static_cast<int>(std::bit_width(even)) - 1 - kFirst);
  return 2 * doublings + (std::has_single_bit(even) ? 0 : 1);
}
constexpr std::size_t kKinds = kind_of(kMost) + 1;

// A sanitizer sees only what is done with memory of the C library.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ETWRELOG_SHARED_BLOCKS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define ETWRELOG_SHARED_BLOCKS 0
#endif
#endif
#ifndef ETWRELOG_SHARED_BLOCKS
#define ETWRELOG_SHARED_BLOCKS 1
#endif

bool is_shared(std::size_t bytes) {
  return ETWRELOG_SHARED_BLOCKS != 0 && bytes >= kLeast && bytes <= kMost;
}

// In large pages, but for what does not come to half of one at the end.
void *take_pages(std::size_t bytes) {
  if (bytes > SIZE_MAX - kLargePage) throw std::bad_alloc();
  const std::size_t pages = (bytes + kLargePage - 1) / kLargePage;
  void *const memory = std::aligned_alloc(kLargePage, pages * kLargePage);
  if (memory == nullptr) throw std::bad_alloc();
  advise_large_pages(memory, (bytes + kLargePage / 2) / kLargePage * kLargePage);
  return memory;
}

// Blocks of each size, cut from large pages as they are asked for.
class SharedPages {
public:
  void *take(std::size_t bytes) {
    const std::lock_guard lock(using_);
    void *&free = free_[kind_of(bytes)];
    void *const block = free != nullptr ? std::exchange(free, next_of(free)) : cut(bytes);
    ++in_use_;
    return block;
  }

  void give(void *block, std::size_t bytes) noexcept {
    const std::lock_guard lock(using_);
    keep(block, bytes);
    if (--in_use_ != 0) return;
    free_ = {};
    for (; pages_.size() > kKept; pages_.pop_back())
      std::free(pages_.back());
    begun_ = left_ = 0;
  }

private:
  static constexpr std::size_t kFirstPages = kLargePage, kMorePages = 4 * kLargePage;
  // How often pages are taken that stay when all blocks were given back, 34 MB: jobs of one trace after the
  // other would take and give them each time.
  static constexpr std::size_t kKept = 5;
  // Bytes that nobody uses: tables that all began at multiples of 4 kB would all begin in the same few sets
  // of the caches (2% of the time of packing).
  static constexpr std::size_t kBetween = 4 * kLine;

  // The bytes of a block that is free begin with where the next one is.
  static void *next_of(const void *block) {
    void *next = nullptr;
    std::memcpy(&next, block, sizeof next);
    return next;
  }
  void keep(void *block, std::size_t bytes) noexcept {
    void *&free = free_[kind_of(bytes)];
    std::memcpy(block, &free, sizeof free);
    free = block;
  }
  void *cut(std::size_t bytes) {
    if (bytes > left_) {
      const std::size_t size = begun_ == 0 ? kFirstPages : kMorePages;
      if (begun_ == pages_.size()) {
        pages_.reserve(begun_ + 1);
        pages_.push_back(take_pages(size));
      }
      // What is left of those before is there for smaller ones.
      while (left_ >= size_for(0)) {
        const std::size_t part = size_within(left_);
        keep(cut_off(part), part);
      }
      at_ = static_cast<std::uint8_t *>(pages_[begun_++]);
      left_ = size;
    }
    return cut_off(bytes);
  }
  void *cut_off(std::size_t bytes) {
    const std::size_t used = std::min(bytes + kBetween, left_);
    left_ -= used;
    return std::exchange(at_, at_ + used);
  }

  std::mutex using_;
  std::array<void *, kKinds> free_{};
  std::vector<void *> pages_;
  std::size_t begun_ = 0;      // of these, from which blocks have been cut
  std::uint8_t *at_ = nullptr; // in the last of them: what has not been cut yet
  std::size_t left_ = 0;
  std::size_t in_use_ = 0; // blocks
};

// Never destroyed: what is may give blocks back.
SharedPages &shared_pages() {
  static auto *const pages = new SharedPages;
  return *pages;
}

} // namespace

std::size_t block_bytes(std::size_t bytes) {
  if (is_shared(bytes)) return size_for(bytes);
  if (bytes <= kMost || bytes > SIZE_MAX - kStep) return bytes;
  return (bytes + kStep - 1) / kStep * kStep;
}

void *take_block(std::size_t bytes) {
  const std::size_t size = block_bytes(bytes);
  if (is_shared(size)) return shared_pages().take(size);
  if (size > kMost) return take_pages(size);
  void *const memory = std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void give_block(void *block, std::size_t bytes) noexcept {
  const std::size_t size = block_bytes(bytes);
  if (block != nullptr && is_shared(size))
    shared_pages().give(block, size);
  else
    std::free(block);
}

void RawMemory::grow(std::size_t bytes) {
  *this = RawMemory();
  if (bytes > kMost && bytes < SIZE_MAX / 2) bytes += bytes / 8; // the next may be a little larger
  const std::size_t capacity = block_bytes(bytes);
  memory_ = static_cast<std::uint8_t *>(take_block(capacity));
  capacity_ = capacity;
}

void RawMemory::grow_keeping(std::size_t bytes, std::size_t kept) {
  RawMemory larger;
  std::uint8_t *const room = larger.room(bytes);
  if (kept != 0) std::memcpy(room, memory_, kept);
  *this = std::move(larger);
}

} // namespace etwrelog::base
