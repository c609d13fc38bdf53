// What an archive says of itself, and the trace in it as an input.
#pragma once

#include "etlz/index.hpp"
#include "read/input.hpp"

namespace etwrelog::pipeline {

inline constexpr std::uint64_t kMemoryLimit = 1u << 30; // unless the caller says otherwise

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
