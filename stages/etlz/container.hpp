// The fixed structures of an archive: header, segment headers, footer. See etlz-format.md for the byte
// layout.
#pragma once

#include "etwrelog/bytes.hpp"
#include "etwrelog/error.hpp"

#include <array>

namespace etwrelog::etlz {

inline constexpr std::uint16_t kFormatVersion = 4; // the newest that is read
// What an archive needs of its reader: version 1 if it is of no trace, 2 where there is no index and no
// segment (FileHeader::small), 4 everywhere else. Earlier programs wrote 1 of traces, and 3 where archives of
// traces and what was around these are (FileHeader::wrapped).
inline constexpr std::uint16_t kPlainVersion = 1, kSmallVersion = 2, kWrappedVersion = 3, kTraceVersion = 4;

inline constexpr std::size_t kFileHeaderSize = 40, kSegmentHeaderSize = 80, kFooterSize = 72;
inline constexpr std::uint64_t kMaxSegment = 256u << 20; // original bytes of one segment

using ContentHash = std::array<std::uint8_t, 16>; // XXH3-128 in its canonical (big-endian) form

struct FileHeader {
  std::uint16_t version = 0, reader_version = 0; // of one that was read: its own, and its oldest reader's
  bool trace = true;                             // false: no ETL file, plain zstd
  bool small = false;                            // all that follows is one payload, up to the end
  bool wrapped = false;                          // wrapper.hpp
  // The original was no trace, or wrapped, and named .etl all the same; or a trace and not named so.
  bool other_name = false;
  std::uint64_t original_size = 0;
  std::uint64_t payload_hash = 0; // XXH3-64, of a small one
};

// `small` stands in no segment header: it is what the one payload of a small archive is coded with.
enum class SegmentMethod : std::uint32_t {
  model = 0,
  zstd = 1,
  stored = 2,
  coupled = 3,
  count_,
  small = 0xFF
};

struct SegmentHeader {
  SegmentMethod method = SegmentMethod::model;
  std::uint64_t original_at = 0, original_size = 0;
  std::uint64_t stored_size = 0;                    // of the payload that follows the header
  std::uint64_t stream_bytes = 0;                   // memory that its streams need
  std::uint64_t scratch_bytes = 0;                  // and the largest compressed buffer, decoded
  std::uint64_t payload_hash = 0, content_hash = 0; // XXH3-64
};

// Whether a segment can have these sizes.
[[nodiscard]] bool possible(const SegmentHeader &header);

// By which rules the index says what the events of a segment are (segment_summary.hpp) and whose: what 1
// knows and 0 did not stands in spec.md, section 1.
inline constexpr std::uint32_t kIndexRules = 1;

struct Footer {
  std::uint64_t index_at = 0, index_size = 0;
  std::uint64_t original_size = 0;
  ContentHash content{};
  std::uint32_t rules = kIndexRules;
};

[[nodiscard]] std::uint64_t hash64(Bytes bytes);

// With the version that what it says needs.
void write_file_header(const FileHeader &header, std::uint8_t *out);
void write_segment_header(const SegmentHeader &header, std::uint8_t *out);
void write_footer(const Footer &footer, std::uint8_t *out);

// Each checks the magic, its own checksum and that the values are possible.
[[nodiscard]] Result<FileHeader> read_file_header(Bytes bytes);
[[nodiscard]] Result<SegmentHeader> read_segment_header(Bytes bytes);
[[nodiscard]] Result<Footer> read_footer(Bytes bytes);

// Where the next header of a segment or an archive may begin, by what their first bytes have in common; the
// size of `bytes` if nowhere. `from` is where to begin.
[[nodiscard]] std::size_t find_header(Bytes bytes, std::size_t from);

// For structures that end with the hash of what stands before.
[[nodiscard]] bool sealed(Bytes bytes, std::size_t size);
void seal(std::uint8_t *out, std::size_t size);
[[nodiscard]] Error corrupt(const char *what);

// Whether these first bytes of a file are those of an archive.
[[nodiscard]] bool is_archive(Bytes first);
// Or of a part of one, which is none (pipeline/archive/part.cpp); a byte for its version is behind these.
inline constexpr std::array<std::uint8_t, 7> kPartMagic = {'E', 'T', 'L', 'Z', 'p', 'r', 't'};
[[nodiscard]] bool is_part(Bytes first);
inline constexpr const char *kIsPart = "is one part of an archive: join all parts, and read what that makes";

// The content hash of a stream of bytes.
class ContentHasher {
public:
  ContentHasher();
  ~ContentHasher();
  ContentHasher(const ContentHasher &) = delete;
  ContentHasher &operator=(const ContentHasher &) = delete;
  void update(Bytes bytes);
  [[nodiscard]] ContentHash finish() const;

private:
  void *state_;
};

} // namespace etwrelog::etlz
