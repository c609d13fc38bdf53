// A growing array in chunks: appending never moves what is there and never takes twice the memory.
#pragma once

#include "base/pages.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

namespace etwrelog::profile {

template <class T> class Sequence {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

public:
  static constexpr std::size_t kChunkBits = 16, kChunk = std::size_t{1} << kChunkBits;

  void append(std::span<const T> items) {
    while (!items.empty()) {
      const std::size_t at = size_ & (kChunk - 1);
      if (at == 0) chunks_.emplace_back(kChunk * sizeof(T));
      const std::size_t count = std::min(items.size(), kChunk - at);
      std::uninitialized_copy_n(items.data(), count, of(chunks_.back()) + at);
      size_ += count;
      items = items.subspan(count);
    }
  }
  void push_back(const T &item) { append({&item, 1}); }
  void clear() {
    chunks_.clear();
    chunks_.shrink_to_fit();
    size_ = 0;
  }

  // Gives back the memory of one chunk; nothing of it may be looked at afterwards.
  void release_chunk(std::size_t i) { chunks_[i].release(); }

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  T &operator[](std::size_t i) { return of(chunks_[i >> kChunkBits])[i & (kChunk - 1)]; }
  const T &operator[](std::size_t i) const { return of(chunks_[i >> kChunkBits])[i & (kChunk - 1)]; }

  // The stretches that lie together in memory, for who walks over all.
  [[nodiscard]] std::size_t chunks() const { return chunks_.size(); }
  [[nodiscard]] std::span<T> chunk(std::size_t i) {
    return {of(chunks_[i]), std::min(kChunk, size_ - (i << kChunkBits))};
  }
  [[nodiscard]] std::span<const T> chunk(std::size_t i) const {
    return {of(chunks_[i]), std::min(kChunk, size_ - (i << kChunkBits))};
  }

private:
  static T *of(const base::Pages &chunk) { return static_cast<T *>(chunk.data()); }

  std::vector<base::Pages> chunks_;
  std::size_t size_ = 0;
};

} // namespace etwrelog::profile
