// Shortcuts through the pipeline for tests: open a trace from memory, relog it into a temporary directory,
// read the result back as a list of events.
#pragma once

#include "etwrelog/trace.hpp"
#include "output/relog.hpp"
#include "tests/support/read_file.hpp"
#include "tests/support/synthetic_trace.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <stdexcept>

namespace etwrelog::testing {

// A directory of its own, gone with the object.
class TempDir {
public:
  TempDir() {
    std::random_device random;
    do
      path_ = std::filesystem::temp_directory_path() / ("etwrelog-test-" + std::to_string(random()));
    while (!std::filesystem::create_directory(path_));
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir &) = delete;
  TempDir &operator=(const TempDir &) = delete;
  [[nodiscard]] const std::filesystem::path &path() const { return path_; }
  [[nodiscard]] std::string file(const std::string &name) const { return (path_ / name).string(); }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto &entry : std::filesystem::directory_iterator(path_))
      all.push_back(entry.path().filename().string());
    std::sort(all.begin(), all.end());
    return all;
  }

private:
  std::filesystem::path path_;
};

inline void write_file(const std::string &path, Bytes bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char *>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

inline Result<pipeline::Trace> open_trace(std::vector<std::uint8_t> bytes,
                                          const read::ScanOptions &options = {}) {
  return pipeline::Trace::open(read::memory_input("test.etl", std::move(bytes)), options);
}

// Through the public headers; throws where it does not open.
inline etwrelog::Trace opened_trace(const Input &input) {
  Result<etwrelog::Trace> trace = etwrelog::Trace::open(input);
  if (!trace) throw std::runtime_error(trace.error().message());
  return *std::move(trace);
}

using EventBytes = std::vector<std::uint8_t>;

// Every event of a trace, without padding, as it stands in the file; `by_cpu`: by processor.
struct Contents {
  std::vector<EventBytes> events; // without the logfile header
  std::map<std::uint16_t, std::vector<EventBytes>> by_cpu;
  std::vector<format::BufferHeader> buffers;
  std::string error; // empty if all went well

  [[nodiscard]] std::size_t count(const EventBytes &event) const {
    return static_cast<std::size_t>(std::count(events.begin(), events.end(), event));
  }
};

inline Contents contents_of(const pipeline::Trace &trace) {
  Contents contents;
  pipeline::Batch batch;
  for (std::size_t i = 0; i < trace.buffers().size(); ++i) {
    batch.first = i;
    batch.count = 1;
    trace.load(batch);
    for (const pipeline::DecodedBuffer &buffer : batch.buffers) {
      contents.buffers.push_back(buffer.header);
      trace.visit(batch, buffer, [&](const EventView &event, std::int64_t, std::uint32_t) {
        if (event.has_hook() && event.hook() == format::kHookLogfileHeader) return;
        const EventBytes bytes(event.bytes().begin(), event.bytes().end());
        contents.events.push_back(bytes);
        contents.by_cpu[buffer.header.processor()].push_back(bytes);
      });
    }
    if (batch.error && contents.error.empty()) contents.error = batch.error->message();
  }
  return contents;
}

inline Contents contents_of(std::vector<std::uint8_t> bytes) {
  Result<pipeline::Trace> trace = open_trace(std::move(bytes));
  if (trace) return contents_of(*trace);
  Contents contents;
  contents.error = trace.error().message();
  return contents;
}

struct Relogged {
  std::vector<std::uint8_t> bytes; // of the output; empty on failure
  pipeline::RelogReport report;
  std::optional<Error> error;
  Contents contents;
};

inline Relogged relog_bytes(std::vector<std::uint8_t> input, pipeline::RelogOptions options = {},
                            const read::ScanOptions &scan = {}) {
  Relogged result;
  const TempDir directory;
  Result<pipeline::Trace> trace = open_trace(std::move(input), scan);
  if (!trace) {
    result.error = trace.error();
    return result;
  }
  options.output = directory.file("out.etl");
  if (Result<void> done = pipeline::relog(*trace, options, result.report); !done) {
    result.error = done.error();
    return result;
  }
  result.bytes = read_file(options.output);
  result.contents = contents_of(result.bytes);
  return result;
}

inline Relogged relog_selection(const SyntheticTrace &trace, const Selection &selection) {
  pipeline::RelogOptions options;
  options.selection = selection;
  options.graph.threads = 2;
  options.count = true;
  return relog_bytes(trace.bytes(), options);
}

} // namespace etwrelog::testing
