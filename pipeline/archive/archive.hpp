// Packing a file into an .etlz archive, and back.
//   read segments (serial) -> encode and check (parallel) -> write (serial, in file order)
//   read segments (serial) -> check and decode (parallel) -> write (serial, in file order)
// The archive does not depend on the number of threads.
#pragma once

#include "base/output_file.hpp"
#include "run/graph.hpp"
#include "source/archive_input.hpp"

#include <atomic>
#include <functional>

namespace etwrelog::pipeline {

struct ArchiveOptions {
  Level level = Level::normal;
  unsigned threads = 0; // 0: all that the machine has
  bool verify = true;   // pack: decode every segment again before it is written
  std::uint64_t count_from =
      128u << 20;       // pack: size of a trace whose statistics go into the index; not at fast
  bool salvage = false; // unpack: take what is whole
  std::uint64_t memory_limit = kMemoryLimit;   // of everything that is in flight
  std::function<void(std::uint64_t)> progress; // original bytes done; from one thread at a time
  const std::atomic<bool> *cancel = nullptr;
  std::vector<etlz::ColumnCost> *explain = nullptr; // pack: bytes in and out per column, summed
};

[[nodiscard]] inline unsigned threads_of(const ArchiveOptions &options) {
  return options.threads != 0 ? options.threads : default_threads();
}

struct PackResult {
  std::uint64_t original = 0, archived = 0; // bytes
  std::uint64_t decoded = 0;                // bytes of buffers when decompressed
  std::uint64_t segments = 0, events = 0, buffers = 0;
  bool trace = true; // false: not an ETL file, stored with plain zstd
  etlz::ContentHash content{};
};

// Appends the archive to `out`, which the caller commits.
[[nodiscard]] Result<PackResult> pack_file(const read::Input &input, base::OutputFile &out,
                                           const ArchiveOptions &options);

struct MissingRange {
  std::uint64_t at = 0, size = 0; // in the original
};

struct UnpackResult {
  std::uint64_t original = 0, archived = 0, segments = 0;
  std::vector<MissingRange> missing; // when salvaging: not written; the rest was
  bool hash_checked = false;         // the content hash of the whole was compared
};

// Writes the original to `out`, or only checks everything when `out` is null. When salvaging, missing ranges
// are left out of the output: what is written is whole segments, one after the other.
[[nodiscard]] Result<UnpackResult> unpack_file(const read::Input &archive, base::OutputFile *out,
                                               const ArchiveOptions &options);

} // namespace etwrelog::pipeline
