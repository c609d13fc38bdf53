#include "archive/archive.hpp"

#include "etwrelog/format.hpp"
#include "run/ordered.hpp"
#include "source/segment_reader.hpp"

#include <algorithm>

#include <zstd.h>

namespace etwrelog::pipeline {
namespace {

struct UnpackJob : OrderedJob {
  etlz::IndexEntry entry;
  std::vector<std::uint8_t> stored, bytes;
};

// Finds the segments of a damaged archive one by one, searching for the next after each gap.
class SegmentScan {
public:
  explicit SegmentScan(const read::Input &archive) : archive_(archive) {}

  Result<bool> next(etlz::IndexEntry &entry) {
    while (at_ + etlz::kSegmentHeaderSize <= archive_.size()) {
      if (window_at_ > at_ || at_ + etlz::kSegmentHeaderSize > window_at_ + window_.size()) {
        const std::uint64_t size = std::min<std::uint64_t>(1u << 20, archive_.size() - at_);
        Result<std::vector<std::uint8_t>> bytes = read_exactly(archive_, at_, size);
        if (!bytes) return bytes.error();
        window_ = std::move(*bytes);
        window_at_ = at_;
      }
      const Bytes here = Bytes(window_).subspan(at_ - window_at_);
      const Result<SegmentHeader> header = etlz::read_segment_header(here.first(etlz::kSegmentHeaderSize));
      if (header && header->stored_size <= archive_.size() - at_ - etlz::kSegmentHeaderSize) {
        entry = {};
        entry.archive_at = at_;
        entry.header = *header;
        return true;
      }
      ++at_;
    }
    return false;
  }
  void skip(std::uint64_t bytes) { at_ += bytes; }

private:
  const read::Input &archive_;
  std::uint64_t at_ = etlz::kFileHeaderSize, window_at_ = 0;
  std::vector<std::uint8_t> window_;
};

Result<UnpackResult> salvage(const read::Input &archive, base::OutputFile *out,
                             const ArchiveOptions &options) {
  UnpackResult result;
  result.archived = archive.size();
  SegmentScan scan(archive);
  CoderPool pool;
  std::uint64_t expected = 0;
  for (;;) {
    etlz::IndexEntry entry;
    const Result<bool> found = scan.next(entry);
    if (!found) return found.error();
    if (!*found) break;
    if (over_limit(entry.header, options.memory_limit, archive.name()) ||
        entry.header.original_at < expected) {
      scan.skip(1);
      continue;
    }
    Result<std::vector<std::uint8_t>> stored =
        read_exactly(archive, entry.archive_at + etlz::kSegmentHeaderSize, entry.header.stored_size);
    if (!stored) return stored.error();
    std::vector<std::uint8_t> bytes(entry.header.original_size);
    if (decode_segment(entry, *stored, bytes, pool, archive.name())) {
      scan.skip(1);
      continue;
    }
    if (entry.header.original_at > expected)
      result.missing.push_back({expected, entry.header.original_at - expected});
    if (out != nullptr)
      if (Result<void> r = out->append(bytes); !r) return r.error();
    result.original += bytes.size();
    ++result.segments;
    expected = entry.header.original_at + bytes.size();
    scan.skip(etlz::kSegmentHeaderSize + entry.header.stored_size);
    if (options.progress) options.progress(bytes.size());
    if (options.cancel != nullptr && options.cancel->load())
      return problem(ErrorKind::cancelled, archive.name(), "stopped on request");
  }
  // What is missing at the end, if header or footer still tells the size.
  std::uint64_t size = expected;
  if (archive.size() >= etlz::kFileHeaderSize) {
    const Result<std::vector<std::uint8_t>> first = read_exactly(archive, 0, etlz::kFileHeaderSize);
    if (first)
      if (const Result<etlz::FileHeader> header = etlz::read_file_header(*first))
        size = header->original_size;
  }
  if (size > expected) result.missing.push_back({expected, size - expected});
  return result;
}

} // namespace

Result<UnpackResult> unpack_file(const read::Input &archive, base::OutputFile *out,
                                 const ArchiveOptions &options) {
  if (options.salvage) return salvage(archive, out, options);
  Result<ArchiveIndex> index = read_archive_index(archive, options.memory_limit);
  if (!index) return index.error();
  UnpackResult result;
  result.archived = archive.size();
  std::uint64_t largest = 1;
  for (const etlz::IndexEntry &e : index->segments) {
    if (std::optional<Error> error = over_limit(e.header, options.memory_limit, archive.name()))
      return *error;
    largest = std::max(largest, decode_memory(e.header));
  }
  CoderPool pool;
  etlz::ContentHasher hasher;
  std::size_t issued = 0;
  OrderedSteps steps;
  steps.next = [&]() -> std::shared_ptr<OrderedJob> {
    if (issued == index->segments.size()) return nullptr;
    auto job = std::make_shared<UnpackJob>();
    job->entry = index->segments[issued++];
    const std::uint64_t size = etlz::kSegmentHeaderSize + job->entry.header.stored_size;
    Result<std::vector<std::uint8_t>> stored = read_exactly(archive, job->entry.archive_at, size);
    if (stored)
      job->stored = std::move(*stored);
    else
      job->error = stored.error();
    return job;
  };
  Spares spares;
  steps.work = [&](OrderedJob &base) -> std::optional<Error> {
    auto &job = dynamic_cast<UnpackJob &>(base);
    const Result<SegmentHeader> header = etlz::read_segment_header(job.stored);
    if (!header) return in_file(header.error(), archive.name(), job.entry.archive_at);
    const SegmentHeader &a = *header, &b = job.entry.header;
    if (a.method != b.method || a.original_at != b.original_at || a.original_size != b.original_size ||
        a.stored_size != b.stored_size || a.stream_bytes != b.stream_bytes ||
        a.scratch_bytes != b.scratch_bytes || a.payload_hash != b.payload_hash ||
        a.content_hash != b.content_hash) {
      Error e = problem(ErrorKind::corrupt, archive.name(), "segment header: contradicts the index");
      e.offset = job.entry.archive_at;
      return e;
    }
    job.bytes = spares.take();
    job.bytes.resize(b.original_size);
    return decode_segment(job.entry, Bytes(job.stored).subspan(etlz::kSegmentHeaderSize), job.bytes, pool,
                          archive.name());
  };
  steps.sink = [&](OrderedJob &base) -> std::optional<Error> {
    auto &job = dynamic_cast<UnpackJob &>(base);
    hasher.update(job.bytes);
    if (out != nullptr)
      if (Result<void> r = out->append(job.bytes); !r) return r.error();
    result.original += job.bytes.size();
    ++result.segments;
    if (options.progress) options.progress(job.bytes.size());
    spares.give(std::move(job.bytes));
    return std::nullopt;
  };
  const unsigned threads = threads_of(options);
  const auto in_flight =
      static_cast<std::size_t>(std::clamp<std::uint64_t>(options.memory_limit / largest, 1, threads + 2));
  if (std::optional<Error> error = run_ordered(steps, threads, in_flight, options.cancel))
    return in_file(*std::move(error), archive.name());
  if (hasher.finish() != index->footer.content)
    return problem(ErrorKind::corrupt, archive.name(), "the content hash of the whole does not match");
  result.hash_checked = true;
  return result;
}

} // namespace etwrelog::pipeline
