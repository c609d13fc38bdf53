// Results of many files as JSON lines: written as each file is done, joined by "etwrelog fleet report".
#pragma once

#include "etwrelog/error.hpp"

#include <cstdio>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace etwrelog::cli {

// What became of one file. A line of a results file has these names.
struct FileResult {
  std::string task;   // "pack"
  std::string path;   // the input, as it was named
  std::string target; // what was written; empty for none
  std::string state;  // "done", "damaged" (done as far as the damage allowed), "skipped", "failed"
  std::string error;  // why it failed
  std::string note;   // what else there is to say
  std::string hash;   // XXH3-128 of the original, of an export of what was written; 32 hexadecimal digits
  std::string session, kind; // of a trace, as far as the task came to know
  std::string node;          // where it was done
  std::uint64_t bytes = 0, result_bytes = 0, decoded = 0;
  double seconds = 0, began = 0; // began: Unix time
};

[[nodiscard]] std::string line_of(const FileResult &result);
// Nothing if the line is no result: cut when a machine went down.
[[nodiscard]] std::optional<FileResult> parse_result(std::string_view line);
// Each line of a file of results, whole or not; an error if it is none.
[[nodiscard]] Result<void> for_each_line(const std::string &path,
                                         const std::function<void(std::string_view)> &take);

// A results file that lines are added to. Runs that follow each other may share one.
class ResultsFile {
public:
  // Ends a line that was cut before.
  [[nodiscard]] static Result<ResultsFile> open(const std::string &path);
  // Any thread. In the file before it returns, so that a kill loses no line but that of a file at work.
  void add(const FileResult &result);
  [[nodiscard]] bool failed() const { return failed_; }

private:
  struct Close {
    void operator()(std::FILE *file) const { std::fclose(file); }
  };
  std::unique_ptr<std::FILE, Close> file_;
  std::unique_ptr<std::mutex> mutex_ = std::make_unique<std::mutex>();
  bool failed_ = false;
};

// What a results file says is done: sizes of inputs by name.
[[nodiscard]] std::unordered_map<std::string, std::uint64_t> done_of(const std::string &results,
                                                                     std::string_view task);

// The name of this machine, if the environment tells it.
[[nodiscard]] std::string node_name();

} // namespace etwrelog::cli
