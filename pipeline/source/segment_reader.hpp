// What reading an archive's segments takes, for those who unpack it and those who read it as a trace.
#pragma once

#include "etlz/index.hpp"
#include "etlz/segment.hpp"
#include "read/input.hpp"

#include <oneapi/tbb/concurrent_queue.h>

namespace etwrelog::pipeline {

using etlz::SegmentHeader;
using etlz::SegmentMethod;

[[nodiscard]] Error problem(ErrorKind kind, const std::string &file, std::string what);
[[nodiscard]] Error damaged(const std::string &archive, const char *what, std::uint64_t at);
// Adds file and offset where the error lacks them.
[[nodiscard]] Error in_file(Error e, const std::string &file,
                            std::optional<std::uint64_t> offset = std::nullopt);

// What coding a segment takes, with memory to decode into.
struct Coder {
  etlz::SegmentCoder coder;
  std::vector<std::uint8_t> scratch;
};

// Coders are expensive to make: one for each thread that needs one at a time.
template <class T> class Pool {
public:
  std::unique_ptr<T> take() {
    std::unique_ptr<T> item;
    if (!free_.try_pop(item)) item = std::make_unique<T>();
    return item;
  }
  void give(std::unique_ptr<T> item) { free_.push(std::move(item)); }

private:
  oneapi::tbb::concurrent_queue<std::unique_ptr<T>> free_;
};
using CoderPool = Pool<Coder>;

// Memory of finished segments for the next ones: fresh pages cost more than what is done in them.
class BytePool {
public:
  std::vector<std::uint8_t> take() {
    std::vector<std::uint8_t> bytes;
    static_cast<void>(free_.try_pop(bytes));
    return bytes;
  }
  // So many, of any value.
  std::vector<std::uint8_t> take(std::size_t size) {
    std::vector<std::uint8_t> bytes = take();
    if (bytes.capacity() < size) bytes = {}; // what it holds need not be copied
    bytes.resize(size);
    return bytes;
  }
  void give(std::vector<std::uint8_t> bytes) { free_.push(std::move(bytes)); }

private:
  oneapi::tbb::concurrent_queue<std::vector<std::uint8_t>> free_;
};

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

// Checks and decodes a segment whose stored bytes are there.
[[nodiscard]] Result<void> decode_segment(const etlz::IndexEntry &entry, Bytes stored, MutableBytes bytes,
                                          CoderPool &pool, const std::string &name);
// Memory that decoding takes, at most.
[[nodiscard]] std::uint64_t decode_memory(const SegmentHeader &header);
// Fails where that is more than `limit`.
[[nodiscard]] Result<void> check_decode_memory(const SegmentHeader &header, std::uint64_t limit,
                                               const std::string &name);

} // namespace etwrelog::pipeline
