// Buffer headers of a long trace, read on other threads than the one that walks from each to the next: where
// all buffers have the nominal size, as in most traces that are not compressed, it is known where they stand.
#pragma once

#include "base/threads.hpp"
#include "read/input.hpp"

#include "etwrelog/format.hpp"

#include <array>
#include <atomic>
#include <memory>

namespace etwrelog::read {

class HeadersAhead {
public:
  using Header = std::array<std::uint8_t, format::kBufferHeaderSize>;

  // `size`: of each buffer, presumably. With one thread, or a short input, nothing is read. `input` must
  // outlive this.
  HeadersAhead(const Input &input, std::uint32_t size, unsigned threads);
  ~HeadersAhead();
  HeadersAhead(const HeadersAhead &) = delete;
  HeadersAhead &operator=(const HeadersAhead &) = delete;

  // Exactly the bytes that stand at the offset of the input; null if they were not read, or not yet.
  [[nodiscard]] const Header *find(std::uint64_t offset) const;
  // The presumption was wrong: nothing more is read.
  void give_up() { given_up_.store(true, std::memory_order_relaxed); }

private:
  struct Stretch {
    std::uint64_t first = 0; // number of a buffer
    std::vector<Header> headers;
    std::atomic<std::size_t> read{0}; // how many of them are there
  };
  void read_stretch(Stretch &stretch) const;

  const Input &input_;
  const std::uint64_t size_;
  std::atomic<bool> given_up_{false};
  std::vector<std::unique_ptr<Stretch>> stretches_; // one for each other thread, in order
  std::atomic<std::size_t> next_{0};
  base::Threads threads_; // is destroyed, and so joined, first
};

} // namespace etwrelog::read
