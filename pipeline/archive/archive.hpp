// Packing a file into an .etlz archive, and back.
//   read segments (serial) -> encode and check (parallel) -> write (serial, in file order)
//   read segments (serial) -> check and decode (parallel) -> write (serial, in file order)
// The archive does not depend on the number of threads.
#pragma once

#include "etwrelog/archive.hpp"
#include "run/runner.hpp"
#include "source/archive_input.hpp"

namespace etwrelog::pipeline {

struct ArchiveOptions {
  Level level = Level::normal;                // fast is no faster: it is taken for normal
  bool verify = true;                         // pack: decode every segment again before it is written
  std::uint64_t count_from = 128u << 20;      // pack: size of a trace whose statistics go into the index
  bool salvage = false;                       // unpack: take what is whole
  RunOptions run;                             // its progress counts bytes of the original
  std::vector<ColumnCost> *explain = nullptr; // pack: bytes in and out per column, summed
};

// Appends the archive to `out`, which the caller commits.
[[nodiscard]] Result<PackReport> pack_file(const read::Input &input, ByteSink &out,
                                           const ArchiveOptions &options);

// Writes the original to `out`, or only checks everything when `out` is null. When salvaging, missing ranges
// are left out of the output: what is written is whole segments, one after the other.
[[nodiscard]] Result<UnpackReport> unpack_file(const read::Input &archive, ByteSink *out,
                                               const ArchiveOptions &options);

} // namespace etwrelog::pipeline
