#include "tests/support/run_tool.hpp"

namespace etwrelog::testing {

std::string tool_path() {
  return ETWRELOG_TOOL;
}

ToolRun run_tool(const std::vector<std::string> &arguments, const ToolOptions &options) {
  const TempDir directory;
  const std::string out = directory.file("out"), err = directory.file("err");
  std::vector<std::string> words{tool_path()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char *> argv;
  for (std::string &word : words)
    argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    auto redirect = [](const char *path, int flags, int to) {
      const int handle = ::open(path, flags, 0600);
      if (handle < 0) ::_exit(126);
      ::dup2(handle, to);
    };
    redirect(options.input.empty() ? "/dev/null" : options.input.c_str(), O_RDONLY, 0);
    redirect((options.output.empty() ? out : options.output).c_str(),
             O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 1);
    redirect((options.error.empty() ? err : options.error).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
             2);
    for (const int stream : options.closed)
      ::close(stream);
    if (!options.directory.empty() && ::chdir(options.directory.c_str()) != 0) ::_exit(126);
    if (!options.temporary.empty()) ::setenv("TMPDIR", options.temporary.c_str(), 1);
    if (options.largest_file != RLIM_INFINITY) {
      const rlimit limit{options.largest_file, options.largest_file};
      ::setrlimit(RLIMIT_FSIZE, &limit);
    }
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  if (options.while_running) options.while_running(child);
  int status = 0;
  rusage usage{};
  while (::wait4(child, &status, 0, &usage) < 0 && errno == EINTR) {
  }
  ToolRun run;
  run.peak_bytes = static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
  if (WIFEXITED(status)) run.status = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) run.signal = WTERMSIG(status);
  auto text = [](const std::string &path) {
    const auto bytes = read_file(path);
    return std::string(bytes.begin(), bytes.end());
  };
  run.out = text(out);
  run.err = text(err);
  return run;
}

} // namespace etwrelog::testing
