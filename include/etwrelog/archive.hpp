// Archives (.etlz): traces made small that come back byte for byte, and can be opened as traces. Any file can
// be packed; one that is no trace is compressed by zstd alone. The format is stable: every archive written by
// a released version can be read by every later one.
#pragma once

#include "etwrelog/codec.hpp"
#include "etwrelog/io.hpp"
#include "etwrelog/run.hpp"

#include <array>

namespace etwrelog {

// What a column of an event type's payload takes.
struct ColumnCost {
  std::string owner, column; // event type, column
  std::uint64_t events = 0, in = 0, out = 0;
};

struct PackOptions {
  Level level = Level::normal;
  bool verify = true;                         // decode every segment again before it is written
  std::vector<ColumnCost> *explain = nullptr; // gets a row for each column
};

struct PackReport {
  std::uint64_t original = 0, archived = 0; // bytes
  std::uint64_t decoded = 0;                // bytes of the trace's buffers when decompressed
  std::uint64_t segments = 0, events = 0, buffers = 0;
  bool is_trace = true;
};

// The bytes of the input as they are: a wrapped trace (.gz, .zip) is not unwrapped. An archive is not packed
// again. Memory: the segments in flight, within run.memory.
[[nodiscard]] Result<PackReport> pack(const Input &input, const Output &output,
                                      const PackOptions &options = {}, const RunOptions &run = {});

struct UnpackOptions {
  bool salvage = false; // of a damaged archive take every whole segment
};

struct UnpackReport {
  std::uint64_t original = 0, archived = 0, segments = 0; // original: bytes given back
  std::vector<Skipped> missing;                           // with salvage; offsets in the original
  bool hash_checked = false;                              // the content hash of the whole was compared
};

// With salvage the missing stretches are left out: what is written is whole segments, one after the other.
[[nodiscard]] Result<UnpackReport> unpack(const Input &archive, const Output &output,
                                          const UnpackOptions &options = {}, const RunOptions &run = {});
// Decodes everything and compares all checksums; writes nothing.
[[nodiscard]] Result<UnpackReport> verify(const Input &archive, const UnpackOptions &options = {},
                                          const RunOptions &run = {});
// The same, and reads the original again: before it is deleted. ErrorKind::corrupt if they differ.
[[nodiscard]] Result<UnpackReport> verify_against(const Input &archive, const Input &original,
                                                  const RunOptions &run = {});

struct ArchiveInfo {
  std::uint64_t original = 0, archived = 0;
  bool is_trace = true;
};
// Reads the first and last bytes alone. An input that is no archive: ErrorKind::unsupported.
[[nodiscard]] Result<ArchiveInfo> read_archive_info(const Input &archive);

} // namespace etwrelog
