#include "etlz/container.hpp"

#include "base/cpu.hpp"
#include "base/errors.hpp"
#include "etwrelog/format.hpp"

#include <algorithm>
#include <string_view>

#include <xxhash.h>
// The same functions by what the processor has, where the library was built with them: twice as fast.
#if ETWRELOG_X86_DISPATCH && __has_include(<xxh_x86dispatch.h>)
#include <xxh_x86dispatch.h>
#endif

namespace etwrelog::etlz {
namespace {

// Bytes that no text transfer leaves alone, as PNG does it.
constexpr std::uint8_t kFileMagic[8] = {0x89, 'E', 'T', 'L', 'Z', '\r', '\n', 0x1A};
constexpr std::uint8_t kSegmentMagic[8] = {'E', 'T', 'L', 'Z', 's', 'e', 'g', '1'};
constexpr std::uint8_t kFooterMagic[8] = {'E', 'T', 'L', 'Z', 'e', 'n', 'd', '1'};

bool starts_with(Bytes bytes, const std::uint8_t (&magic)[8]) {
  return bytes.size() >= 8 && std::memcmp(bytes.data(), magic, 8) == 0;
}

} // namespace

Error corrupt(const char *what) {
  return base::corrupt(what);
}

bool sealed(Bytes bytes, std::size_t size) {
  return bytes.size() >= size &&
         load<std::uint64_t>(bytes.data() + size - 8) == hash64(bytes.first(size - 8));
}
void seal(std::uint8_t *out, std::size_t size) {
  store(out + size - 8, hash64(Bytes(out, size - 8)));
}

std::uint64_t hash64(Bytes bytes) {
  const std::uint64_t hash = XXH3_64bits(bytes.data(), bytes.size());
  base::clear_upper_halves(); // its code for AVX-512 does not
  return hash;
}

bool is_archive(Bytes first) {
  return starts_with(first, kFileMagic);
}

bool is_part(Bytes first) {
  return first.size() > kPartMagic.size() && std::ranges::equal(first.first(kPartMagic.size()), kPartMagic);
}

void write_file_header(const FileHeader &h, std::uint8_t *out) {
  std::memset(out, 0, kFileHeaderSize);
  std::memcpy(out, kFileMagic, 8);
  const std::uint16_t version = h.small ? kSmallVersion : h.trace ? kTraceVersion : kPlainVersion;
  store(out + 8, version);
  store(out + 10, version);
  store(out + 12, std::uint32_t{(h.trace ? 0u : 1u) | (h.small ? 2u : 0u) | (h.wrapped ? 4u : 0u) |
                                (h.other_name ? 8u : 0u)});
  store(out + 16, h.original_size);
  if (h.small) store(out + 24, h.payload_hash);
  seal(out, kFileHeaderSize);
}

Result<FileHeader> read_file_header(Bytes bytes) {
  if (!is_archive(bytes)) {
    Error e = corrupt(is_part(bytes) ? kIsPart : "no .etlz archive: the first bytes are not its signature");
    e.kind = ErrorKind::unsupported;
    return e;
  }
  if (bytes.size() < kFileHeaderSize) return corrupt("the archive ends inside its header");
  FileHeader h;
  h.version = load<std::uint16_t>(bytes.data() + 8);
  h.reader_version = load<std::uint16_t>(bytes.data() + 10);
  if (!sealed(bytes, kFileHeaderSize)) return corrupt("archive header: checksum mismatch");
  if (h.version == 0 || h.reader_version == 0) {
    Error e = corrupt("the archive is in a format from before version 1, which no release wrote");
    e.kind = ErrorKind::unsupported;
    e.expected = "1.." + std::to_string(kFormatVersion);
    e.found = "0";
    return e;
  }
  if (h.reader_version > kFormatVersion) {
    Error e = corrupt("the archive was written by a newer version of this program");
    e.kind = ErrorKind::unsupported;
    e.advice = Advice::update;
    return e;
  }
  const auto flags = load<std::uint32_t>(bytes.data() + 12);
  h.trace = (flags & 1) == 0;
  h.small = h.reader_version >= kSmallVersion && (flags & 2) != 0;
  h.wrapped = h.reader_version >= kWrappedVersion && !h.small && (flags & 4) != 0;
  h.other_name = (flags & 8) != 0;
  h.payload_hash = load<std::uint64_t>(bytes.data() + 24);
  h.original_size = load<std::uint64_t>(bytes.data() + 16);
  return h;
}

void write_segment_header(const SegmentHeader &h, std::uint8_t *out) {
  std::memset(out, 0, kSegmentHeaderSize);
  std::memcpy(out, kSegmentMagic, 8);
  store(out + 8, static_cast<std::uint32_t>(h.method));
  store(out + 16, h.original_at);
  store(out + 24, h.original_size);
  store(out + 32, h.stored_size);
  store(out + 40, h.stream_bytes);
  store(out + 48, h.scratch_bytes);
  store(out + 56, h.payload_hash);
  store(out + 64, h.content_hash);
  seal(out, kSegmentHeaderSize);
}

std::size_t find_header(Bytes bytes, std::size_t from) {
  static constexpr std::string_view kMark = "ETLZ"; // a segment begins with it, an archive a byte before
  const std::string_view text(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  for (std::size_t at = from; (at = text.find(kMark, at)) != text.npos; ++at) {
    if (at > from && is_archive(bytes.subspan(at - 1))) return at - 1;
    if (starts_with(bytes.subspan(at), kSegmentMagic)) return at;
  }
  return bytes.size();
}

Result<SegmentHeader> read_segment_header(Bytes bytes) {
  if (!starts_with(bytes, kSegmentMagic)) return corrupt("no segment starts here");
  if (!sealed(bytes, kSegmentHeaderSize)) return corrupt("segment header: checksum mismatch");
  SegmentHeader h;
  h.method = static_cast<SegmentMethod>(load<std::uint32_t>(bytes.data() + 8));
  h.original_at = load<std::uint64_t>(bytes.data() + 16);
  h.original_size = load<std::uint64_t>(bytes.data() + 24);
  h.stored_size = load<std::uint64_t>(bytes.data() + 32);
  h.stream_bytes = load<std::uint64_t>(bytes.data() + 40);
  h.scratch_bytes = load<std::uint64_t>(bytes.data() + 48);
  h.payload_hash = load<std::uint64_t>(bytes.data() + 56);
  h.content_hash = load<std::uint64_t>(bytes.data() + 64);
  if (!possible(h)) return corrupt("segment header: impossible sizes");
  return h;
}

bool possible(const SegmentHeader &h) {
  return h.method < SegmentMethod::count_ && h.original_size <= kMaxSegment &&
         h.stored_size <= 2 * kMaxSegment && h.stream_bytes <= 16 * kMaxSegment &&
         h.scratch_bytes <= kMaxSegment && h.original_at <= UINT64_MAX - h.original_size;
}

void write_footer(const Footer &f, std::uint8_t *out) {
  std::memset(out, 0, kFooterSize);
  store(out + 0, f.index_at);
  store(out + 8, f.index_size);
  store(out + 16, f.original_size);
  std::memcpy(out + 24, f.content.data(), 16);
  store(out + 40, f.rules);
  std::memcpy(out + 56, kFooterMagic, 8);
  seal(out, kFooterSize);
}

Result<Footer> read_footer(Bytes bytes) {
  if (bytes.size() != kFooterSize || std::memcmp(bytes.data() + 56, kFooterMagic, 8) != 0)
    return corrupt("the archive has no end: it was cut, or something was appended");
  if (!sealed(bytes, kFooterSize)) return corrupt("end of archive: checksum mismatch");
  Footer f;
  f.index_at = load<std::uint64_t>(bytes.data());
  f.index_size = load<std::uint64_t>(bytes.data() + 8);
  f.original_size = load<std::uint64_t>(bytes.data() + 16);
  std::memcpy(f.content.data(), bytes.data() + 24, 16);
  f.rules = load<std::uint32_t>(bytes.data() + 40);
  return f;
}

ContentHasher::ContentHasher() : state_(XXH3_createState()) {
  XXH3_128bits_reset(static_cast<XXH3_state_t *>(state_));
}
ContentHasher::~ContentHasher() {
  XXH3_freeState(static_cast<XXH3_state_t *>(state_));
}
void ContentHasher::update(Bytes bytes) {
  XXH3_128bits_update(static_cast<XXH3_state_t *>(state_), bytes.data(), bytes.size());
}
ContentHash ContentHasher::finish() const {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(static_cast<const XXH3_state_t *>(state_)));
  ContentHash hash;
  std::memcpy(hash.data(), canonical.digest, 16);
  return hash;
}

} // namespace etwrelog::etlz
