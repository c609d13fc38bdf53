// Threads of our own, besides those of oneTBB: where they cannot be had, fewer do the work.
#pragma once

#include <cstddef>
#include <functional>
#include <system_error>
#include <thread>
#include <vector>

namespace etwrelog::base {

// Joined when they are destroyed.
struct Threads {
  std::vector<std::jthread> running;
  std::error_code refused{}; // why they are fewer than were asked for: no more threads, or no memory for them
};

// At most `count` threads that call `work`, which must not throw.
[[nodiscard]] Threads start_threads(std::size_t count, const std::function<void()> &work);

// Runs body(0) .. body(count - 1) on the caller's thread and as many others as make `threads`. What a body
// throws ends the others' work, and is thrown when they are done.
void parallel_for(std::size_t threads, std::size_t count, const std::function<void(std::size_t)> &body);

} // namespace etwrelog::base
