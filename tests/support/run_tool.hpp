// Runs the real etwrelog binary as a child process. Tests only; POSIX.
#pragma once

#include "tests/support/pipeline_runs.hpp"

#include <csignal>
#include <functional>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace etwrelog::testing {

struct ToolRun {
  int status = -1; // exit status; -1 if it died by a signal
  int signal = 0;
  std::string out, err;
  std::uint64_t peak_bytes = 0; // resident
};

struct ToolOptions {
  std::string input{};                        // file for standard input; /dev/null if empty
  std::string directory{};                    // to run in
  rlim_t largest_file = RLIM_INFINITY;        // as a full disk would
  std::function<void(pid_t)> while_running{}; // called in the parent once the child runs
  std::string output{}, error{}; // files for standard output and error, instead of collecting them
  std::string temporary{};       // $TMPDIR of the tool; the test's if empty
  std::vector<int> closed{};     // standard streams that the tool finds closed
};

[[nodiscard]] std::string tool_path();
[[nodiscard]] ToolRun run_tool(const std::vector<std::string> &arguments, const ToolOptions &options = {});

} // namespace etwrelog::testing
