// Takes an archive apart and puts it together again with right checksums, so that mutations reach what they
// guard.
#pragma once

#include "archive/archive.hpp"
#include "etwrelog/io.hpp"
#include "tests/support/pipeline_runs.hpp"

#include <random>

#include <zstd.h>

namespace etwrelog::testing {

using ArchiveBytes = std::vector<std::uint8_t>;

inline ArchiveBytes packed(const ArchiveBytes &bytes, bool with_index = false) {
  ArchiveBytes archive;
  pipeline::ArchiveOptions options;
  options.counts = with_index;
  options.run.threads = 1;
  options.count_from = 0;
  Result<OutputStream> out = OutputStream::open(Output::memory(archive));
  if (!out || !pipeline::pack_file(*read::memory_input("seed", bytes), *out, options) || !out->commit())
    return {};
  return archive;
}

// Too much for a small archive, which has no index.
inline ArchiveBytes incompressible_trace(Codec codec) {
  TraceOptions options;
  options.buffer_size = 4096;
  options.codec = codec;
  SyntheticTrace t(options);
  t.process_rundown({1'000'100}, 100, 4, "a.exe", "a -x");
  t.thread_rundown({1'000'101}, 110, 100);
  std::mt19937 random(1);
  ArchiveBytes payload(1000);
  for (int i = 0; i < 300; ++i) {
    for (std::uint8_t &byte : payload)
      byte = static_cast<std::uint8_t>(random());
    t.manifest_event({2'000'000 + i * 1000, static_cast<std::uint16_t>(i % 2)}, {}, 110, 100, payload);
  }
  return t.bytes();
}

// Of which a gzip file is worth to be packed as a wrapped trace.
inline ArchiveBytes compressible_trace() {
  SyntheticTrace t;
  std::mt19937 random(1);
  for (int i = 0; i < 1000; ++i) {
    const std::int64_t time = 2'000'000 + i * 100 + static_cast<std::int64_t>(random() % 90);
    t.sample({time, static_cast<std::uint16_t>(i % 2)}, 100);
  }
  return t.bytes();
}

struct ArchiveParts {
  ArchiveBytes front;          // header and segments
  ArchiveBytes entries, facts; // of the index, decoded
  std::uint64_t segments = 0;
  std::uint64_t original = 0;
  etlz::ContentHash content{};
};

// Of a whole archive that this program wrote.
inline ArchiveParts take_apart(const ArchiveBytes &archive) {
  ArchiveParts parts;
  const auto input = read::memory_input("seed", archive);
  const Result<etlz::Footer> footer = pipeline::read_archive_footer(*input);
  if (!footer || footer->index_size == 0) return parts; // the latter is a small archive, without an index
  const Bytes all(archive);
  parts.front.assign(archive.begin(), archive.begin() + static_cast<std::ptrdiff_t>(footer->index_at));
  parts.original = footer->original_size;
  parts.content = footer->content;
  constexpr std::size_t kIndexHeader = 24;
  etlz::InStream in(all.subspan(footer->index_at + kIndexHeader, footer->index_size - kIndexHeader));
  parts.segments = etlz::get_varint(in);
  while (!in.at_end()) {
    const std::uint64_t size = etlz::get_varint(in), stored = etlz::get_varint(in);
    const Bytes frame = in.get(static_cast<std::size_t>(stored));
    parts.entries.insert(parts.entries.end(), parts.facts.begin(), parts.facts.end());
    parts.facts.assign(size, 0); // the last frame
    if (size != 0) ZSTD_decompress(parts.facts.data(), size, frame.data(), frame.size());
  }
  return parts;
}

// An index, sealed, of any content.
inline ArchiveBytes index_of(std::uint64_t segments, Bytes entries, Bytes facts) {
  ArchiveBytes body;
  etlz::put_varint(body, segments);
  for (const Bytes content : {entries, facts}) {
    ArchiveBytes frame;
    if (!content.empty()) {
      frame.resize(ZSTD_compressBound(content.size()));
      frame.resize(ZSTD_compress(frame.data(), frame.size(), content.data(), content.size(), 1));
    }
    etlz::put_varint(body, content.size());
    etlz::put_varint(body, frame.size());
    body.insert(body.end(), frame.begin(), frame.end());
  }
  ArchiveBytes index(24);
  std::memcpy(index.data(), "ETLZidx1", 8);
  store(index.data() + 8, etlz::hash64(body));
  etlz::seal(index.data(), index.size());
  index.insert(index.end(), body.begin(), body.end());
  return index;
}

inline ArchiveBytes put_together(const ArchiveParts &parts, Bytes entries, Bytes facts) {
  ArchiveBytes out = parts.front;
  const ArchiveBytes index = index_of(parts.segments, entries, facts);
  etlz::Footer footer;
  footer.index_at = out.size();
  footer.index_size = index.size();
  footer.original_size = parts.original;
  footer.content = parts.content;
  out.insert(out.end(), index.begin(), index.end());
  std::uint8_t raw[etlz::kFooterSize];
  etlz::write_footer(footer, raw);
  out.insert(out.end(), std::begin(raw), std::end(raw));
  return out;
}

// Any bytes as an archive: signature and checksums of header, segment headers, payloads and footer are made
// right.
inline ArchiveBytes made_plausible(Bytes bytes) {
  ArchiveBytes out(bytes.begin(), bytes.end());
  constexpr std::uint8_t kMagic[] = {0x89, 'E', 'T', 'L', 'Z', '\r', '\n', 0x1A};
  if (out.size() < etlz::kFileHeaderSize + etlz::kFooterSize) return out;
  std::copy(std::begin(kMagic), std::end(kMagic), out.begin());
  etlz::seal(out.data(), etlz::kFileHeaderSize);
  etlz::seal(out.data() + out.size() - etlz::kFooterSize, etlz::kFooterSize);
  constexpr std::string_view kSegment = "ETLZseg1";
  for (auto at = out.begin();;) {
    at = std::search(at, out.end(), kSegment.begin(), kSegment.end());
    if (static_cast<std::size_t>(out.end() - at) < etlz::kSegmentHeaderSize) break;
    std::uint8_t *const header = &*at;
    const std::uint64_t stored = load<std::uint64_t>(header + 32);
    const auto rest = static_cast<std::uint64_t>(out.end() - at) - etlz::kSegmentHeaderSize;
    if (stored <= rest) store(header + 56, etlz::hash64(Bytes(header + etlz::kSegmentHeaderSize, stored)));
    etlz::seal(header, etlz::kSegmentHeaderSize);
    at += static_cast<std::ptrdiff_t>(kSegment.size());
  }
  return out;
}

} // namespace etwrelog::testing
