#include "stages/encode/etlz_container.hpp"

#include "etwrelog/format.hpp"

#include <algorithm>

#include <xxhash.h>
#include <zstd.h>

namespace etwrelog::etlz {
namespace {

// Bytes that no text transfer leaves alone, as PNG does it.
constexpr std::uint8_t kFileMagic[8] = {0x89, 'E', 'T', 'L', 'Z', '\r', '\n', 0x1A};
constexpr std::uint8_t kSegmentMagic[8] = {'E', 'T', 'L', 'Z', 's', 'e', 'g', '1'};
constexpr std::uint8_t kIndexMagic[8] = {'E', 'T', 'L', 'Z', 'i', 'd', 'x', '1'};
constexpr std::uint8_t kFooterMagic[8] = {'E', 'T', 'L', 'Z', 'e', 'n', 'd', '1'};

constexpr std::uint64_t kMaxIndex = 256u << 20;
constexpr std::size_t kSmallIndex = 1u << 20;

Error corrupt(const char *what, const char *expected = "") {
  Error e;
  e.kind = ErrorKind::corrupt;
  e.what = what;
  e.expected = expected;
  return e;
}

bool starts_with(Bytes bytes, const std::uint8_t (&magic)[8]) {
  return bytes.size() >= 8 && std::memcmp(bytes.data(), magic, 8) == 0;
}

// Fixed structures end with the hash of what stands before.
bool sealed(Bytes bytes, std::size_t size) {
  return bytes.size() >= size && load<std::uint64_t>(bytes.data() + size - 8) == hash64(bytes.first(size - 8));
}
void seal(std::uint8_t *out, std::size_t size) { store(out + size - 8, hash64(Bytes(out, size - 8))); }

void put_ids(std::vector<std::uint8_t> &out, const std::vector<std::uint32_t> &ids) {
  put_varint(out, ids.size());
  std::uint32_t before = 0;
  for (const std::uint32_t id : ids) {
    put_varint(out, id - before);
    before = id;
  }
}

bool get_ids(InStream &in, std::vector<std::uint32_t> &ids) {
  const std::uint64_t count = get_varint(in);
  if (count > in.rest().size()) return false;
  ids.resize(count);
  std::uint64_t id = 0;
  for (std::uint32_t &slot : ids) {
    id += get_varint(in);
    slot = static_cast<std::uint32_t>(id);
  }
  return id <= 0xFFFF'FFFF;
}

// Parts tile the segment, if there are any.
bool get_parts(InStream &in, IndexEntry &e) {
  const std::uint64_t count = get_varint(in);
  if (count > in.rest().size()) return false;
  e.parts.resize(count);
  std::uint64_t at = 0;
  for (Part &part : e.parts) {
    const std::uint64_t v = get_varint(in);
    part = {(v & 1) != 0, at, v >> 1};
    if (part.size > kMaxSegment || (part.buffer && part.size < format::kBufferHeaderSize)) return false;
    at += part.size;
    if (at > kMaxSegment) return false;
  }
  return !in.overrun() && (count == 0 || at == e.header.original_size);
}

// 0 for none, else 1 and: size of all events; count, then for each its buffer (from the one before), its place in it in
// units of 8, its size. The bytes of the events follow behind all segments.
void put_outline(std::vector<std::uint8_t> &out, const Outline &outline, std::vector<std::uint8_t> &bytes) {
  const bool there = outline.complete && bytes.size() + outline.bytes.size() <= kMaxOutlines;
  out.push_back(there ? 1 : 0);
  if (!there) return;
  put_varint(out, outline.event_bytes);
  put_varint(out, outline.kept.size());
  std::uint32_t buffer = 0;
  for (const Outline::Event &event : outline.kept) {
    put_varint(out, event.buffer - buffer);
    put_varint(out, event.at / 8);
    put_varint(out, event.size);
    buffer = event.buffer;
  }
  bytes.insert(bytes.end(), outline.bytes.begin(), outline.bytes.end());
}

bool get_outline(InStream &in, IndexEntry &e) {
  const std::uint8_t there = in.get();
  if (there == 0) return !in.overrun();
  Outline &o = e.outline;
  o.complete = true;
  o.events = e.facts.events;
  o.first_time = e.facts.first_time;
  o.last_time = e.facts.last_time;
  o.event_bytes = get_varint(in);
  const std::uint64_t count = get_varint(in);
  if (there != 1 || count > in.rest().size()) return false;
  o.kept.resize(count);
  std::uint64_t buffer = 0, bytes = 0;
  for (Outline::Event &event : o.kept) {
    buffer += get_varint(in);
    const std::uint64_t at = get_varint(in), size = get_varint(in);
    if (buffer > kMaxSegment || at > format::kMaxBufferSize / 8 || size < 8 || size > format::kMaxEventSize) return false;
    event = {static_cast<std::uint32_t>(buffer), static_cast<std::uint32_t>(at * 8), static_cast<std::uint32_t>(size),
             static_cast<std::uint32_t>(bytes)};
    bytes += size;
    if (bytes > kMaxOutlines) return false;
  }
  return !in.overrun();
}

} // namespace

std::uint64_t hash64(Bytes bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

bool is_archive(Bytes first) { return starts_with(first, kFileMagic); }

void write_file_header(const FileHeader &h, std::uint8_t *out) {
  std::memset(out, 0, kFileHeaderSize);
  std::memcpy(out, kFileMagic, 8);
  store(out + 8, h.version);
  store(out + 10, h.reader_version);
  store(out + 12, std::uint32_t{h.trace ? 0u : 1u});
  store(out + 16, h.original_size);
  seal(out, kFileHeaderSize);
}

Result<FileHeader> read_file_header(Bytes bytes) {
  if (!is_archive(bytes)) return corrupt("no .etlz archive: the first bytes are not its signature");
  if (bytes.size() < kFileHeaderSize) return corrupt("the archive ends inside its header");
  FileHeader h;
  h.version = load<std::uint16_t>(bytes.data() + 8);
  h.reader_version = load<std::uint16_t>(bytes.data() + 10);
  if (!sealed(bytes, kFileHeaderSize)) return corrupt("archive header: checksum mismatch");
  if (h.reader_version > kFormatVersion) {
    Error e = corrupt("the archive was written by a newer version of this program");
    e.kind = ErrorKind::unsupported;
    e.advice = "update etwrelog";
    return e;
  }
  h.trace = (load<std::uint32_t>(bytes.data() + 12) & 1) == 0;
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
  if (h.method >= SegmentMethod::count_ || h.original_size > kMaxSegment || h.stored_size > 2 * kMaxSegment ||
      h.stream_bytes > 16 * kMaxSegment || h.scratch_bytes > format::kMaxBufferSize || h.original_at > UINT64_MAX - h.original_size)
    return corrupt("segment header: impossible sizes");
  return h;
}

void write_footer(const Footer &f, std::uint8_t *out) {
  std::memset(out, 0, kFooterSize);
  store(out + 0, f.index_at);
  store(out + 8, f.index_size);
  store(out + 16, f.original_size);
  std::memcpy(out + 24, f.content.data(), 16);
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
  return f;
}

void write_index(std::span<const IndexEntry> index, std::vector<std::uint8_t> &out) {
  std::vector<std::uint8_t> list, headers, outlines;
  put_varint(list, index.size());
  for (const IndexEntry &e : index) {
    list.push_back(static_cast<std::uint8_t>(e.header.method));
    for (const std::uint64_t v : {e.archive_at, e.header.original_at, e.header.original_size, e.header.stored_size,
                                  e.header.stream_bytes, e.header.scratch_bytes, e.facts.events, e.facts.buffers,
                                  static_cast<std::uint64_t>(e.facts.first_time),
                                  static_cast<std::uint64_t>(e.facts.last_time)})
      put_varint(list, v);
    list.resize(list.size() + 16);
    store(list.data() + list.size() - 16, e.header.payload_hash);
    store(list.data() + list.size() - 8, e.header.content_hash);
    put_ids(list, e.facts.processes);
    put_ids(list, e.facts.threads);
    put_varint(list, e.parts.size());
    for (const Part &part : e.parts) put_varint(list, part.size << 1 | (part.buffer ? 1u : 0u));
    put_outline(list, e.outline, outlines);
    headers.insert(headers.end(), e.buffer_headers.begin(), e.buffer_headers.end());
  }
  list.insert(list.end(), outlines.begin(), outlines.end());
  // Byte by byte: all first bytes, all second bytes, ...
  const std::size_t count = headers.size() / format::kBufferHeaderSize;
  for (std::size_t b = 0; b < format::kBufferHeaderSize; ++b)
    for (std::size_t i = 0; i < count; ++i) list.push_back(headers[i * format::kBufferHeaderSize + b]);
  const int level = list.size() <= kSmallIndex ? 19 : 12; // the time of the better one grows with the file
  std::vector<std::uint8_t> packed(ZSTD_compressBound(list.size()));
  packed.resize(ZSTD_compress(packed.data(), packed.size(), list.data(), list.size(), level));
  const std::size_t at = out.size();
  out.resize(at + kIndexHeaderSize);
  std::memcpy(out.data() + at, kIndexMagic, 8);
  store(out.data() + at + 8, std::uint64_t{list.size()});
  store(out.data() + at + 16, hash64(packed));
  seal(out.data() + at, kIndexHeaderSize);
  out.insert(out.end(), packed.begin(), packed.end());
}

Result<std::vector<IndexEntry>> read_index(Bytes bytes) {
  if (!starts_with(bytes, kIndexMagic) || !sealed(bytes, kIndexHeaderSize)) return corrupt("index: checksum mismatch");
  const Bytes packed = bytes.subspan(kIndexHeaderSize);
  const std::uint64_t size = load<std::uint64_t>(bytes.data() + 8);
  if (load<std::uint64_t>(bytes.data() + 16) != hash64(packed)) return corrupt("index: checksum mismatch");
  if (size > kMaxIndex) return corrupt("index: impossible size");
  std::vector<std::uint8_t> list(size);
  if (ZSTD_decompress(list.data(), list.size(), packed.data(), packed.size()) != size) return corrupt("index: damaged");
  InStream in{Bytes(list)};
  const std::uint64_t count = get_varint(in);
  if (count > size / 20) return corrupt("index: damaged");
  std::vector<IndexEntry> index(count);
  std::size_t buffers = 0;
  for (IndexEntry &e : index) {
    e.header.method = static_cast<SegmentMethod>(in.get());
    std::uint64_t v[10];
    for (std::uint64_t &x : v) x = get_varint(in);
    e.archive_at = v[0];
    e.header.original_at = v[1], e.header.original_size = v[2], e.header.stored_size = v[3];
    e.header.stream_bytes = v[4], e.header.scratch_bytes = v[5];
    e.facts.events = v[6], e.facts.buffers = v[7];
    e.facts.first_time = static_cast<std::int64_t>(v[8]), e.facts.last_time = static_cast<std::int64_t>(v[9]);
    const Bytes hashes = in.get(std::size_t{16});
    if (hashes.size() != 16 || !get_ids(in, e.facts.processes) || !get_ids(in, e.facts.threads) || !get_parts(in, e) ||
        !get_outline(in, e))
      return corrupt("index: damaged");
    for (const Part &part : e.parts) buffers += part.buffer ? 1 : 0;
    e.header.payload_hash = load<std::uint64_t>(hashes.data());
    e.header.content_hash = load<std::uint64_t>(hashes.data() + 8);
  }
  for (IndexEntry &e : index) {
    std::size_t total = 0;
    for (const Outline::Event &event : e.outline.kept) total += event.size;
    const Bytes kept = in.get(total);
    if (kept.size() != total) return corrupt("index: damaged");
    e.outline.bytes.assign(kept.begin(), kept.end());
  }
  const Bytes planes = in.rest();
  if (in.overrun() || planes.size() != buffers * format::kBufferHeaderSize) return corrupt("index: damaged");
  std::size_t next = 0;
  for (IndexEntry &e : index) {
    const auto here = static_cast<std::size_t>(std::count_if(e.parts.begin(), e.parts.end(), [](const Part &p) { return p.buffer; }));
    e.buffer_headers.resize(here * format::kBufferHeaderSize);
    for (std::size_t b = 0; b < format::kBufferHeaderSize; ++b)
      for (std::size_t i = 0; i < here; ++i)
        e.buffer_headers[i * format::kBufferHeaderSize + b] = planes[b * buffers + next + i];
    next += here;
  }
  return index;
}

ContentHasher::ContentHasher() : state_(XXH3_createState()) { XXH3_128bits_reset(static_cast<XXH3_state_t *>(state_)); }
ContentHasher::~ContentHasher() { XXH3_freeState(static_cast<XXH3_state_t *>(state_)); }
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
