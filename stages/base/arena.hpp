// Memory that is taken piece by piece from many threads, and goes back to the system chunk by chunk or as a
// whole.
#pragma once

#include "base/blocks.hpp"
#include "etwrelog/bytes.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

namespace etwrelog::base {

class Arena {
public:
  // Not initialised, aligned to 8; valid as long as the arena. Throws std::bad_alloc. Any thread.
  [[nodiscard]] std::uint8_t *take(std::size_t bytes);

  // Who has taken this, or a part of it that is a multiple of 8 bytes, does not need it any more. A chunk
  // that has been given back whole is free at once, but for the one that pieces are still taken from. Any
  // thread.
  void give_back(MutableBytes piece);

private:
  struct Free {
    std::size_t bytes; // that were taken
    void operator()(std::uint8_t *memory) const { give_block(memory, bytes); }
  };
  struct Chunk {
    std::unique_ptr<std::uint8_t[], Free> memory;
    std::size_t in_use = 0; // bytes that were taken and have not been given back
  };
  std::mutex taking_;
  std::map<const std::uint8_t *, Chunk> chunks_; // by where they begin
  Chunk *last_ = nullptr;                        // that pieces are taken from
  std::uint8_t *next_ = nullptr;                 // in it
  std::size_t left_ = 0;
};

} // namespace etwrelog::base
