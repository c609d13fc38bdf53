#include "base/threads.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <new>

namespace etwrelog::base {

Threads start_threads(std::size_t count, const std::function<void()> &work) {
  Threads made;
  try {
    made.running.reserve(count);
    while (made.running.size() < count)
      made.running.emplace_back(work);
  } catch (const std::system_error &error) {
    made.refused = error.code();
  } catch (const std::bad_alloc &) {
    made.refused = std::make_error_code(std::errc::not_enough_memory);
  }
  return made;
}

void parallel_for(std::size_t threads, std::size_t count, const std::function<void(std::size_t)> &body) {
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::exception_ptr thrown;
  const auto work = [&] {
    try {
      for (std::size_t i = next++; i < count; i = next++)
        body(i);
    } catch (...) {
      next = count;
      const std::lock_guard lock(mutex);
      thrown = std::current_exception();
    }
  };
  {
    const std::size_t most = std::min(threads, count);
    const Threads others = start_threads(most > 1 ? most - 1 : 0, work);
    work();
  }
  if (thrown) std::rethrow_exception(thrown);
}

} // namespace etwrelog::base
