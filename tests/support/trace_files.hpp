// Finds the real traces that stand beside the project, and cuts them into buffers. Nothing of this is needed
// for the tests to pass: without the traces every function here says so with an empty result.
#pragma once

#include "etwrelog/bytes.hpp"
#include "etwrelog/codec.hpp"
#include "etwrelog/format.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace etwrelog::testing {

// Where the sources of the project are.
[[nodiscard]] std::filesystem::path project_dir();

// $ETWRELOG_SHARED, or the directory `shared` beside the source tree or one of its parents.
[[nodiscard]] std::optional<std::filesystem::path> shared_dir();

// Names of the traces there are ("net.4.5.2.x64"), sorted.
[[nodiscard]] std::vector<std::string> trace_names();

// What may stand in the name of a test: every other character becomes an underscore.
[[nodiscard]] std::string test_name(std::string_view trace);

// A trace as a plain .etl file: from $ETWRELOG_TRACES (a directory of unpacked ones), or shared/traces; one
// that is packed there (.etl.xz) is unpacked into the temporary directory once.
[[nodiscard]] std::optional<std::filesystem::path> trace_path(std::string_view name);

struct TraceBuffer {
  format::BufferHeader header;
  Bytes stored; // all BufferSize bytes, header included

  // The bytes after the header: the compressed stream, or the events.
  [[nodiscard]] Bytes payload() const {
    const std::size_t end =
        header.compressed() ? stored.size() : std::min<std::size_t>(stored.size(), header.valid_bytes());
    return stored.subspan(format::kBufferHeaderSize,
                          std::max(end, format::kBufferHeaderSize) - format::kBufferHeaderSize);
  }
  [[nodiscard]] std::size_t decoded_size() const {
    return header.compressed() ? header.saved_offset - format::kBufferHeaderSize : payload().size();
  }
};

struct Trace {
  std::vector<std::uint8_t> bytes;
  std::vector<TraceBuffer> buffers; // in file order; views of `bytes`

  Trace() = default;
  Trace(Trace &&) = default; // a vector's move keeps its bytes in place
  Trace &operator=(Trace &&) = default;
  Trace(const Trace &) = delete;
  Trace &operator=(const Trace &) = delete;
};

// Empty without the trace, or where its buffers do not tile it.
[[nodiscard]] Trace trace_buffers(std::string_view name);

// What stands behind each buffer header, decompressed. `compressed_only` leaves out those stored as they are.
[[nodiscard]] std::vector<std::vector<std::uint8_t>> decoded_payloads(const Trace &trace,
                                                                      bool compressed_only = false);

} // namespace etwrelog::testing
