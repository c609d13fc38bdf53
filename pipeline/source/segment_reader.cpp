#include "source/segment_reader.hpp"

#include "base/errors.hpp"

#include <algorithm>

#include <zstd.h>

namespace etwrelog::pipeline {

// That decoding a small archive takes besides its original: content, and what it is predicted from.
constexpr std::uint64_t kSmallMemory = 80u << 20;

Error problem(ErrorKind kind, const std::string &file, std::string what) {
  return base::ErrorBuilder(kind, std::move(what)).in(file);
}

Error damaged(const std::string &archive, const char *what, std::uint64_t at) {
  Error e = problem(ErrorKind::corrupt, archive, what);
  e.offset = at;
  e.advice = Advice::salvage_archive;
  return e;
}

Error damaged(const std::string &archive, Error found, std::uint64_t at) {
  Error e = in_file(std::move(found), archive, at);
  if (e.kind == ErrorKind::corrupt) e.advice = Advice::salvage_archive;
  return e;
}

Error in_file(Error e, const std::string &file, std::optional<std::uint64_t> offset) {
  if (e.file.empty()) e.file = file;
  if (!e.offset) e.offset = offset;
  return e;
}

Result<std::vector<std::uint8_t>> read_exactly(const read::Input &input, std::uint64_t at,
                                               std::uint64_t size) {
  std::vector<std::uint8_t> bytes(size);
  ETWRELOG_TRY_LET(got, input.read_at(at, bytes));
  if (got == size) return bytes;
  return damaged(input.name(), "the archive ends here", at + got);
}

etlz::IndexEntry small_entry(const etlz::FileHeader &header, std::uint64_t archive_size) {
  etlz::IndexEntry entry;
  entry.header.method = SegmentMethod::small;
  entry.header.original_size = header.original_size;
  entry.header.stored_size = archive_size - etlz::kFileHeaderSize;
  entry.header.payload_hash = header.payload_hash;
  return entry;
}

Result<void> check_stored_segment(const read::Input &archive, const etlz::IndexEntry &entry) {
  ETWRELOG_TRY_LET(stored, read_exactly(archive, payload_at(entry), entry.header.stored_size));
  if (etlz::hash64(stored) == entry.header.payload_hash) return {};
  return damaged(archive.name(), "segment: checksum mismatch", entry.archive_at);
}

// Checks and decodes one segment.
Result<void> decode_segment(const etlz::IndexEntry &entry, Bytes stored, MutableBytes bytes, CoderPool &pool,
                            const std::string &name, const std::stop_token &stop) {
  auto bad = [&](const char *what) {
    Error e = damaged(name, what, entry.archive_at);
    if (entry.header.method == SegmentMethod::small)
      e.advice = Advice::none; // there is nothing that could be whole
    return e;
  };
  if (etlz::hash64(stored) != entry.header.payload_hash) return bad("segment: checksum mismatch");
  switch (entry.header.method) {
  case SegmentMethod::small: {
    if (stored.size() < kSmallHash) return bad("the archive was cut");
    std::unique_ptr<Coder> coder = pool.take();
    const bool good = coder->coder.decode_small(stored.subspan(kSmallHash), bytes, kSmallMemory);
    pool.give(std::move(coder));
    if (!good) return bad("does not decode");
    etlz::ContentHasher hasher;
    hasher.update(bytes);
    const etlz::ContentHash hash = hasher.finish();
    if (!std::equal(hash.begin(), hash.end(), stored.begin())) return bad("decodes to something else");
    return {};
  }
  case SegmentMethod::stored:
    if (stored.size() != bytes.size()) return bad("segment: wrong size");
    std::copy(stored.begin(), stored.end(), bytes.begin());
    break;
  case SegmentMethod::zstd:
    if (ZSTD_decompress(bytes.data(), bytes.size(), stored.data(), stored.size()) != bytes.size())
      return bad("segment: does not decode");
    break;
  default: {
    std::unique_ptr<Coder> coder = pool.take();
    coder->coder.stop_with(stop);
    const bool good = coder->coder.decode(entry.header.method, stored, bytes, entry.header.stream_bytes,
                                          entry.header.scratch_bytes);
    pool.give(std::move(coder));
    if (!good && stop.stop_requested()) return base::cancelled().in(name);
    if (!good) return bad("segment: does not decode");
  }
  }
  if (etlz::hash64(bytes) != entry.header.content_hash) return bad("segment: decodes to something else");
  return {};
}

std::uint64_t decode_memory(const SegmentHeader &h) {
  if (h.method == SegmentMethod::small) return h.original_size + h.stored_size + kSmallMemory;
  return h.original_size * 3 + h.stream_bytes * 2 + h.scratch_bytes * 2 + h.stored_size;
}

Result<void> check_decode_memory(const SegmentHeader &h, std::uint64_t limit, const std::string &name) {
  if (decode_memory(h) <= limit) return {};
  return base::over_limit("decoding a segment takes more memory than allowed")
      .in(name)
      .about(Option::memory)
      .expected(std::to_string(decode_memory(h)) + " bytes of memory or more")
      .found(std::to_string(limit))
      .advise(Advice::raise_memory);
}

} // namespace etwrelog::pipeline
