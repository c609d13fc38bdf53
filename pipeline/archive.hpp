// Packing a file into an .etlz archive, and back.
//   read segments (serial) -> encode and check (parallel) -> write (serial, in file order)
//   read segments (serial) -> check and decode (parallel) -> write (serial, in file order)
// The archive does not depend on the number of threads.
#pragma once

#include "stages/encode/etlz_index.hpp"
#include "stages/read/input.hpp"
#include "stages/write/output_file.hpp"

#include <atomic>
#include <functional>

namespace etwrelog::pipeline {

inline constexpr std::uint64_t kMemoryLimit = 1u << 30; // unless the caller says otherwise

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

struct PackResult {
  std::uint64_t original = 0, archived = 0; // bytes
  std::uint64_t decoded = 0;                // bytes of buffers when decompressed
  std::uint64_t segments = 0, events = 0, buffers = 0;
  bool trace = true; // false: not an ETL file, stored with plain zstd
  etlz::ContentHash content{};
};

// Appends the archive to `out`, which the caller commits.
[[nodiscard]] Result<PackResult> pack_file(const read::Input &input, write::OutputFile &out,
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
[[nodiscard]] Result<UnpackResult> unpack_file(const read::Input &archive, write::OutputFile *out,
                                               const ArchiveOptions &options);

// What the first and last bytes of an archive say, without its index.
[[nodiscard]] Result<etlz::Footer> read_archive_footer(const read::Input &archive);

// What an archive says of itself, without decoding any of it.
struct ArchiveIndex {
  etlz::Footer footer;
  std::vector<etlz::IndexEntry> segments;
  std::vector<std::uint8_t> facts; // a statistics_record of the whole; empty if the writer left it out
};
[[nodiscard]] Result<ArchiveIndex> read_archive_index(const read::Input &archive,
                                                      std::uint64_t memory_limit = kMemoryLimit);

// The original as an input: read_at decodes the segments it touches, several at a time for several readers,
// and keeps what the memory allows.
[[nodiscard]] Result<std::unique_ptr<read::Input>> open_archive(std::unique_ptr<read::Input> archive,
                                                                std::uint64_t memory_limit = kMemoryLimit);

// Whether an input is an archive, by its first bytes.
[[nodiscard]] bool is_archive(const read::Input &input);

} // namespace etwrelog::pipeline
