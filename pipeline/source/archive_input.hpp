// What an archive says of itself, and the trace in it as an input.
#pragma once

#include "etlz/index.hpp"
#include "etlz/wrapper.hpp"
#include "read/input.hpp"

namespace etwrelog::pipeline {

inline constexpr std::uint64_t kMemoryLimit = 1u << 30; // unless the caller says otherwise

// What the first and last bytes of an archive say, without its index.
[[nodiscard]] Result<etlz::Footer> read_archive_footer(const read::Input &archive);

// Of an archive of wrapped traces, those traces' archives, and where the recipe for the wrapper begins, which
// goes up to the footer's end of the index.
struct WrapperIndex {
  etlz::Footer footer;
  std::vector<etlz::WrappedTrace> traces;
  std::uint64_t recipe_at = 0, recipe_end = 0;
};
// What an archive begins with; nothing where that cannot be read.
[[nodiscard]] std::optional<etlz::FileHeader> read_file_header(const read::Input &archive);
// Whether it is one. An archive that cannot be read is none.
[[nodiscard]] bool is_wrapped(const read::Input &archive);
[[nodiscard]] Result<WrapperIndex> read_wrapper_index(const read::Input &archive);
// The archive of one of the traces, for as long as the whole is there.
[[nodiscard]] std::unique_ptr<read::Input> inner_archive(const read::Input &archive,
                                                         const WrapperIndex &wrapper, std::size_t number);

// What an archive says of itself, without decoding any of it. Not of a wrapped one.
struct ArchiveIndex {
  etlz::Footer footer;
  std::vector<etlz::IndexEntry> segments;
  std::vector<std::uint8_t> facts; // a statistics_record of the whole; empty if the writer left it out
};
[[nodiscard]] Result<ArchiveIndex> read_archive_index(const read::Input &archive,
                                                      std::uint64_t memory_limit = kMemoryLimit);

// The original as an input: read_at decodes the segments it touches, several at a time for several readers,
// and keeps what the memory allows. Of a wrapped one the trace in it, which must be the only one.
[[nodiscard]] Result<std::unique_ptr<read::Input>> open_archive(std::unique_ptr<read::Input> archive,
                                                                std::uint64_t memory_limit = kMemoryLimit);

// The same, but all traces of a wrapped one.
[[nodiscard]] Result<std::vector<std::unique_ptr<read::Input>>>
open_archives(std::unique_ptr<read::Input> archive, std::uint64_t memory_limit = kMemoryLimit);

// Whether an input is an archive, by its first bytes.
[[nodiscard]] bool is_archive(const read::Input &input);
// Or a part of one, as packing one on several machines makes them.
[[nodiscard]] bool is_part(const read::Input &input);

} // namespace etwrelog::pipeline
