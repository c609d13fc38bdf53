// What the tool asks of the operating system.
#include "tools/process.hpp"

#include <csignal>
#include <cstdlib>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

namespace etwrelog {
namespace {

// A request to stop that comes while the program is ending already: it ends, and does not wait for itself.
TEST(StopRequest, WhileTheProgramEndsChangesNothing) {
  const auto end_and_be_asked_to_stop = [] {
    ::alarm(20); // if it waits
    // Runs behind the destructors of all that was made later.
    std::atexit([] {
      // What was freed is something else by now.
      static std::vector<std::vector<unsigned char>> others;
      for (std::size_t size = 1; size < 256; ++size)
        others.emplace_back(size, 2);
      std::raise(SIGTERM);
      ::_exit(3);
    });
    process::catch_stop_requests();
    std::exit(1);
  };
  EXPECT_EXIT(end_and_be_asked_to_stop(), ::testing::ExitedWithCode(3), "");
}

TEST(StopRequest, SetsTheTokenAndTheSecondEndsTheProgram) {
  const auto ask_twice = [] {
    process::catch_stop_requests();
    std::raise(SIGINT);
    if (!process::stop_token().stop_requested()) ::_exit(4);
    std::raise(SIGINT);
    ::_exit(5);
  };
  EXPECT_EXIT(ask_twice(), ::testing::ExitedWithCode(1), "");
}

} // namespace
} // namespace etwrelog
