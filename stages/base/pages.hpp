// Memory that goes back to the system when it is given up, whatever was taken after it: for large tables that
// are freed in the middle of a job. (platform.cpp holds what it calls.)
#pragma once

#include <cstddef>
#include <utility>

namespace etwrelog::base {

class Pages {
public:
  Pages() = default;
  explicit Pages(std::size_t bytes); // zeroed; throws std::bad_alloc
  ~Pages();
  Pages(Pages &&other) noexcept
      : at_(std::exchange(other.at_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Pages &operator=(Pages &&other) noexcept {
    std::swap(at_, other.at_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  void release() { *this = Pages(); }

  [[nodiscard]] void *data() const { return at_; }

private:
  void *at_ = nullptr;
  std::size_t bytes_ = 0;
};

// Gives freed memory that is kept for later back to the system, where that is possible.
void give_back_memory();

} // namespace etwrelog::base
