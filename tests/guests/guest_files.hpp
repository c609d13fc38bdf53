// Files and child processes for tests of what stands on the public interfaces alone.
#pragma once

#include "tests/support/synthetic_trace.hpp"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace etwrelog::testing {

class GuestFiles {
public:
  GuestFiles() {
    std::string name = (std::filesystem::temp_directory_path() / "etwrelog-guest-XXXXXX").string();
    directory_ = ::mkdtemp(name.data());
  }
  ~GuestFiles() {
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }
  GuestFiles(const GuestFiles &) = delete;
  GuestFiles &operator=(const GuestFiles &) = delete;

  [[nodiscard]] std::string path(const std::string &name) const { return directory_ / name; }
  [[nodiscard]] std::string write(const std::string &name, const std::vector<std::uint8_t> &bytes) const {
    std::ofstream file(directory_ / name, std::ios::binary);
    file.write(reinterpret_cast<const char *>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    return directory_ / name;
  }

private:
  std::filesystem::path directory_;
};

// Exit status; the child's standard output goes to a file if one is named.
inline int run_command(std::vector<std::string> words, const std::string &out = "/dev/null") {
  std::vector<char *> argv;
  for (std::string &word : words)
    argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    const int handle = ::open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (handle >= 0) ::dup2(handle, 1);
    ::execvp(argv[0], argv.data());
    ::_exit(127);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

} // namespace etwrelog::testing
