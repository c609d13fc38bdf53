// Memory that is taken piece by piece from many threads and given back as a whole.
#pragma once

#include "etwrelog/bytes.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <vector>

namespace etwrelog::base {

class Arena {
public:
  // Not initialised, aligned to 8; valid as long as the arena. Throws std::bad_alloc. Any thread.
  [[nodiscard]] std::uint8_t *take(std::size_t bytes);

private:
  struct Free {
    void operator()(std::uint8_t *memory) const { std::free(memory); }
  };
  std::mutex taking_;
  std::vector<std::unique_ptr<std::uint8_t[], Free>> chunks_;
  std::uint8_t *next_ = nullptr; // in the last chunk
  std::size_t left_ = 0;
};

} // namespace etwrelog::base
