// Room for bytes that are written before they are read: it is not cleared.
#pragma once

#include "base/blocks.hpp"
#include "etwrelog/bytes.hpp"

#include <algorithm>
#include <utility>

namespace etwrelog::base {

class RawMemory {
public:
  RawMemory() = default;
  ~RawMemory() { give_block(memory_, capacity_); }
  RawMemory(RawMemory &&other) noexcept
      : memory_(std::exchange(other.memory_, nullptr)), capacity_(std::exchange(other.capacity_, 0)) {}
  RawMemory &operator=(RawMemory &&other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(capacity_, other.capacity_);
    return *this;
  }

  // At least so many bytes. What it holds is lost when it grows. Throws std::bad_alloc.
  [[nodiscard]] std::uint8_t *room(std::size_t bytes) {
    if (bytes > capacity_) grow(bytes);
    return memory_;
  }
  // Grows to at least so many bytes, of which the first `kept` stay what they are. Throws std::bad_alloc.
  void grow_keeping(std::size_t bytes, std::size_t kept);
  [[nodiscard]] std::uint8_t *data() const { return memory_; }
  // For how many there is room.
  [[nodiscard]] std::size_t capacity() const { return capacity_; }

private:
  void grow(std::size_t bytes);

  std::uint8_t *memory_ = nullptr;
  std::size_t capacity_ = 0;
};

// A vector of bytes, but for those that resize() adds: they are of any value.
class Buffer {
public:
  Buffer() = default;
  Buffer(const Buffer &other) { append(other); }
  Buffer &operator=(const Buffer &other) { return *this = Buffer(other); }
  Buffer(Buffer &&other) noexcept : memory_(std::move(other.memory_)), size_(std::exchange(other.size_, 0)) {}
  Buffer &operator=(Buffer &&other) noexcept {
    memory_ = std::move(other.memory_);
    std::swap(size_, other.size_);
    return *this;
  }

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::size_t capacity() const { return memory_.capacity(); }
  [[nodiscard]] std::uint8_t *data() { return memory_.data(); }
  [[nodiscard]] const std::uint8_t *data() const { return memory_.data(); }
  [[nodiscard]] std::uint8_t &operator[](std::size_t at) { return data()[at]; }
  [[nodiscard]] std::uint8_t operator[](std::size_t at) const { return data()[at]; }
  [[nodiscard]] std::uint8_t *begin() { return data(); }
  [[nodiscard]] std::uint8_t *end() { return data() + size_; }
  [[nodiscard]] const std::uint8_t *begin() const { return data(); }
  [[nodiscard]] const std::uint8_t *end() const { return data() + size_; }

  void clear() { size_ = 0; }
  void reserve(std::size_t size) {
    if (size > capacity()) memory_.grow_keeping(size, size_);
  }
  void resize(std::size_t size) {
    if (size > capacity()) grow(size);
    size_ = size;
  }
  void resize(std::size_t size, std::uint8_t added) {
    const std::size_t before = size_;
    resize(size);
    if (size > before) std::memset(data() + before, added, size - before);
  }
  [[gnu::always_inline]] void append(std::uint8_t byte) {
    if (size_ == capacity()) grow(size_ + 1);
    data()[size_++] = byte;
  }
  void append(Bytes bytes) { // none of its own
    const std::size_t before = size_;
    resize(before + bytes.size());
    if (!bytes.empty()) std::memcpy(data() + before, bytes.data(), bytes.size());
  }

private:
  [[gnu::noinline, gnu::cold]] void grow(std::size_t size) {
    memory_.grow_keeping(std::max({size, size_ + size_ / 2, std::size_t{64}}), size_);
  }

  RawMemory memory_;
  std::size_t size_ = 0;
};

} // namespace etwrelog::base
