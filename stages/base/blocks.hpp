// Blocks of memory of 16 kB to 2 MB, for buffers and for tables that a job makes and grows by the hundred.
// They lie in large pages together, whichever thread takes them: on small pages the first touch of each 4 kB
// goes to the system, which took a fifth of the time of relogging 40 MB and a tenth of that of packing them.
// What is given back is there for the next of the same size; when all of it has been, it goes back to the
// system but for some 30 MB.
//
// Smaller and larger ones are the C library's, larger ones in large pages of their own. Where the system
// gives large pages to nobody or to everybody, nothing is gained and nothing lost.
#pragma once

#include <cstddef>
#include <limits>
#include <new>
#include <vector>

namespace etwrelog::base {

// What a block of so many bytes has: at least as many. The same for what it says.
[[nodiscard]] std::size_t block_bytes(std::size_t bytes);

// So many bytes and all that block_bytes() says, not initialised, aligned to 16. Throws std::bad_alloc. Any
// thread.
[[nodiscard]] void *take_block(std::size_t bytes);

// A block that was taken for so many bytes, or for as many as block_bytes() made of them. Any thread.
void give_block(void *block, std::size_t bytes) noexcept;

template <class T> struct BlockAllocator {
  static_assert(alignof(T) <= 16);
  using value_type = T;

  BlockAllocator() = default;
  template <class U> BlockAllocator(const BlockAllocator<U> &) {}

  [[nodiscard]] T *allocate(std::size_t count) {
    if (count > std::numeric_limits<std::size_t>::max() / sizeof(T)) throw std::bad_array_new_length();
    return static_cast<T *>(take_block(count * sizeof(T)));
  }
  void deallocate(T *at, std::size_t count) noexcept { give_block(at, count * sizeof(T)); }

  friend bool operator==(const BlockAllocator &, const BlockAllocator &) { return true; }
};

template <class T> using BlockVector = std::vector<T, BlockAllocator<T>>;

} // namespace etwrelog::base
