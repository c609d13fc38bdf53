// What reading an archive's segments takes, for those who unpack it and those who read it as a trace.
#pragma once

#include "base/pool.hpp"
#include "etlz/index.hpp"
#include "etlz/segment.hpp"
#include "read/input.hpp"

namespace etwrelog::pipeline {

using etlz::SegmentHeader;
using etlz::SegmentMethod;

[[nodiscard]] Error problem(ErrorKind kind, const std::string &file, std::string what);
[[nodiscard]] Error damaged(const std::string &archive, const char *what, std::uint64_t at);
// The same of what a reader of headers and indices found; only damage is advised to be salvaged.
[[nodiscard]] Error damaged(const std::string &archive, Error found, std::uint64_t at);
// Adds file and offset where the error lacks them.
[[nodiscard]] Error in_file(Error e, const std::string &file,
                            std::optional<std::uint64_t> offset = std::nullopt);

// What coding a segment takes, with memory to decode into.
struct Coder {
  etlz::SegmentCoder coder;
  std::vector<std::uint8_t> scratch;
};

using base::BytePool;
using CoderPool = base::Pool<Coder>;

// Fails when the input ends before.
[[nodiscard]] Result<std::vector<std::uint8_t>> read_exactly(const read::Input &input, std::uint64_t at,
                                                             std::uint64_t size);
// Where in the archive the bytes of a segment stand.
[[nodiscard]] inline std::uint64_t payload_at(const etlz::IndexEntry &entry) {
  return entry.header.method == SegmentMethod::small ? etlz::kFileHeaderSize
                                                     : entry.archive_at + etlz::kSegmentHeaderSize;
}
// What a small archive's payload begins with: the hash of the original.
inline constexpr std::size_t kSmallHash = sizeof(etlz::ContentHash);
// The one segment of a small archive.
[[nodiscard]] etlz::IndexEntry small_entry(const etlz::FileHeader &header, std::uint64_t archive_size);

// Compares the stored bytes with their checksum. The kind is `corrupt` where they are not there or others.
[[nodiscard]] Result<void> check_stored_segment(const read::Input &archive, const etlz::IndexEntry &entry);
// Checks and decodes a segment whose stored bytes are there. Ends soon once `stop` is requested.
[[nodiscard]] Result<void> decode_segment(const etlz::IndexEntry &entry, Bytes stored, MutableBytes bytes,
                                          CoderPool &pool, const std::string &name,
                                          const std::stop_token &stop = {});
// Memory that decoding takes, at most.
[[nodiscard]] std::uint64_t decode_memory(const SegmentHeader &header);
// Fails where that is more than `limit`.
[[nodiscard]] Result<void> check_decode_memory(const SegmentHeader &header, std::uint64_t limit,
                                               const std::string &name);

} // namespace etwrelog::pipeline
