// Room for bytes that are written before they are read: it is not cleared, and what it holds is lost when it
// grows. (arena.cpp holds what it calls.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

namespace etwrelog::base {

class RawMemory {
public:
  // At least so many bytes, of any value. Throws std::bad_alloc.
  [[nodiscard]] std::uint8_t *room(std::size_t bytes) {
    if (bytes > capacity_) grow(bytes);
    return memory_.get();
  }

private:
  struct Free {
    void operator()(std::uint8_t *memory) const { std::free(memory); }
  };
  void grow(std::size_t bytes);

  std::unique_ptr<std::uint8_t[], Free> memory_;
  std::size_t capacity_ = 0;
};

} // namespace etwrelog::base
