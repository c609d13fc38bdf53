// What is used again and again, for want of it by one thread at a time: lent to one after the other, the one
// that came back last first, as a cache may still hold that. Any thread.
#pragma once

#include "base/raw_memory.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace etwrelog::base {

// Things that are expensive to make: one for each thread that needs one at a time.
template <class T> class Pool {
public:
  // Of these arguments if it has to be made.
  template <class... Arguments> [[nodiscard]] std::unique_ptr<T> take(const Arguments &...arguments) {
    {
      const std::lock_guard lock(using_);
      if (!free_.empty()) {
        std::unique_ptr<T> item = std::move(free_.back());
        free_.pop_back();
        return item;
      }
    }
    return std::make_unique<T>(arguments...);
  }
  void give(std::unique_ptr<T> item) {
    const std::lock_guard lock(using_);
    free_.push_back(std::move(item));
  }

private:
  std::mutex using_;
  std::vector<std::unique_ptr<T>> free_;
};

// Memory of what is done with, for the next: fresh pages cost more than what is done in them.
class BytePool {
public:
  BytePool() = default;
  // Keeps no more than so many bytes.
  explicit BytePool(std::size_t most) : most_(most) {}

  // Whatever there is, of any size.
  [[nodiscard]] Buffer take() {
    const std::lock_guard lock(using_);
    if (free_.empty()) return {};
    Buffer bytes = std::move(free_.back());
    free_.pop_back();
    held_ -= bytes.capacity();
    return bytes;
  }
  // So many, of any value.
  [[nodiscard]] Buffer take(std::size_t size) {
    Buffer bytes = take();
    if (bytes.capacity() < size) bytes = {}; // what it holds need not be copied
    bytes.resize(size);
    return bytes;
  }
  void give(Buffer bytes) {
    const std::lock_guard lock(using_);
    if (bytes.capacity() == 0 || bytes.capacity() > most_ - held_) return;
    held_ += bytes.capacity();
    free_.push_back(std::move(bytes));
  }

private:
  std::mutex using_;
  std::vector<Buffer> free_;
  const std::size_t most_ = SIZE_MAX;
  std::size_t held_ = 0; // capacity of all that is free
};

} // namespace etwrelog::base
