// Where JIT-compiled code lay, from the .NET events: an address in it can mean different methods at different
// times.
#pragma once

#include "etwrelog/event.hpp"

#include <vector>

namespace etwrelog::stacks {

class JitCode {
public:
  // Looks at any event. Not thread-safe: one part a batch.
  void add(const EventView &event, std::int64_t time);
  void append(JitCode &&later);
  void clear();
  // When everything is added: counts reuse and joins the ranges.
  void finish();

  // In a JIT-compiled method of any process, at any time.
  [[nodiscard]] bool contains(std::uint64_t address) const;
  [[nodiscard]] std::uint64_t unloads() const { return unloads_; }
  // Methods loaded where another method of the same process had been.
  [[nodiscard]] std::uint64_t reused() const { return reused_; }

  [[nodiscard]] std::size_t memory() const {
    return methods_.capacity() * sizeof(Method) + ranges_.capacity() * sizeof(ranges_[0]);
  }

private:
  struct Method {
    std::uint32_t process_id;
    std::uint64_t start, end, id;
    std::int64_t time;
  };
  std::vector<Method> methods_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges_; // disjoint, sorted
  std::uint64_t unloads_ = 0, reused_ = 0;
};

} // namespace etwrelog::stacks
