#include "archive/archive.hpp"

#include "archive/segments.hpp"
#include "archive/wrapper.hpp"
#include "base/errors.hpp"
#include "etwrelog/format.hpp"

#include <algorithm>
#include <functional>

#include <zstd.h>

namespace etwrelog::pipeline {
namespace {

// Whether segments and index that come to `normal` bytes are far below what zstd makes of the content: then
// no general compressor comes near, and what the slow coder would still save is not worth its time at
// default.
bool far_below_zstd(std::size_t normal, Bytes content) {
  std::vector<std::uint8_t> packed(ZSTD_compressBound(content.size()));
  const std::size_t n = ZSTD_compress(packed.data(), packed.size(), content.data(), content.size(), 9);
  return ZSTD_isError(n) == 0 && normal < n * 4 / 5; // of so little, xz and 7-Zip make 0.81 to 1.02 of it
}

// A trace as a small archive; empty if it is not to be one. `normal` is the size that it has with segments
// and index.
std::vector<std::uint8_t> small_archive(const PackJob &job, std::span<const etlz::Part> parts,
                                        std::size_t normal, const ArchiveOptions &options, PackCoder &coder) {
  std::vector<std::uint8_t> archive(etlz::kFileHeaderSize + kSmallHash);
  auto worth = [&](Bytes content) { return options.level >= Level::max || !far_below_zstd(normal, content); };
  if (!coder.coder.encode_small(job.bytes, parts, small_content(options.level), worth, archive) ||
      archive.size() >= normal)
    return {};
  etlz::ContentHasher hasher;
  hasher.update(job.bytes);
  std::ranges::copy(hasher.finish(), archive.begin() + static_cast<std::ptrdiff_t>(etlz::kFileHeaderSize));
  const Bytes payload = Bytes(archive).subspan(etlz::kFileHeaderSize);
  etlz::FileHeader header;
  header.small = true;
  header.other_name = options.other_name(true);
  header.original_size = job.bytes.size();
  header.payload_hash = etlz::hash64(payload);
  etlz::write_file_header(header, archive.data());
  if (options.verify) {
    coder.scratch.resize(job.bytes.size());
    if (!coder.coder.decode_small(payload.subspan(kSmallHash), coder.scratch, kMostSmallFile) ||
        !std::ranges::equal(coder.scratch, job.bytes))
      archive.clear(); // never seen; segments are checked, too
  }
  return archive;
}

// Whether the buffers may hold so little. Most traces hold more, and their first headers say so: what they
// hold is not read for it.
Result<bool> may_be_small(const read::Input &input, std::size_t most) {
  std::uint8_t header[format::kBufferHeaderSize];
  std::uint64_t content = 0;
  for (std::uint64_t at = 0; content <= most && input.size() - at >= sizeof header;) {
    ETWRELOG_TRY_LET(got, input.read_at(at, header));
    if (got != sizeof header || !etlz::plausible(header, sizeof header))
      return true; // is looked at as a whole
    const std::uint64_t size = format::load_buffer_header(header).buffer_size;
    if (size > input.size() - at) return true;
    content += content_of({true, 0, size}, header);
    at += size;
  }
  return content <= most;
}

enum class Small : std::uint8_t {
  packed, // as a small archive
  coded,  // not that, but the job holds the one segment that the archive is to have
  no,
};

// Packs all of it as a small archive, if that is smaller. `record`: the tally of what is coded otherwise.
Result<Small> pack_small(const PackedFile &file, CountedSink &out, PackJob &job, PackReport &result,
                         std::vector<std::uint8_t> &record) {
  const ArchiveOptions &options = file.options;
  const read::Input &input = file.input;
  if (input.size() > kMostSmallFile || options.explain != nullptr || options.counts) return Small::no;
  ETWRELOG_TRY_LET(may, may_be_small(input, small_content(options.level)));
  if (!may) return Small::no;
  SegmentSource source(input, true, etlz::kMaxSegment, file.workspace.byte_pool);
  ETWRELOG_TRY_LET(next, source.next(job));
  std::uint64_t content = 0, weight = 0;
  for (const etlz::Part &part : job.parts) {
    content += content_of(part, job.bytes);
    weight += etlz::part_weight(part, job.bytes);
  }
  const bool fits = next && job.bytes.size() == input.size() && content <= small_content(options.level);
  if (!fits) {
    file.workspace.byte_pool.give(std::move(job.bytes));
    return Small::no;
  }
  // What the model makes of it, with everything around it.
  const std::vector<etlz::Part> parts = job.parts;
  ETWRELOG_TRY(encode_segment(job, file));
  std::vector<std::uint8_t> index_bytes;
  etlz::IndexWriter index;
  index.add(job.entry);
  Tally tally;
  tally.merge(job.tally);
  ETWRELOG_TRY_LET(made, tally.record(result.session, file));
  record = std::move(made);
  index.finish(record, index_bytes);
  const std::size_t normal =
      etlz::kFileHeaderSize + job.payload.size() + index_bytes.size() + etlz::kFooterSize;
  std::unique_ptr<PackCoder> coder = file.workspace.packers.take();
  const std::vector<std::uint8_t> small = small_archive(job, parts, normal, options, *coder);
  file.workspace.packers.give(std::move(coder));
  if (small.empty()) {
    // Whether segments of their usual size would be this one.
    const std::size_t target = target_of(options, true);
    if (weight < target && job.bytes.size() < 3 * target) return Small::coded;
    file.workspace.byte_pool.give(std::move(job.bytes));
    return Small::no;
  }
  ETWRELOG_TRY(out.append(small));
  std::copy_n(small.begin() + etlz::kFileHeaderSize, result.content.size(), result.content.begin());
  result.events = job.entry.facts.events;
  result.buffers = job.entry.facts.buffers;
  result.decoded = job.decoded;
  add_strays(job, result);
  result.segments = 1;
  result.archived = out.size();
  SharedProgress(options.run, input.size()).advance(input.size(), 1);
  file.workspace.byte_pool.give(std::move(job.bytes));
  return Small::packed;
}

} // namespace

Result<PackReport> pack_file(const read::Input &input, ByteSink &sink, const ArchiveOptions &given) {
  ArchiveOptions options = given;
  if (options.level == Level::fast) options.level = Level::normal;
  ETWRELOG_TRY_LET(wrapped, pack_wrapped(input, sink, options));
  if (wrapped) return *std::move(wrapped);
  ETWRELOG_TRY_LET(looks, looks_like_trace(input));
  const WorkspaceUse workspace(options.workspace);
  PackedFile file{input, looks, options, *workspace};
  PackReport result;
  result.is_trace = file.trace;
  if (file.trace) result.session = read_header(file);
  result.written_buffers = file.written_buffers;
  CountedSink out(sink);
  result.original = input.size();
  file.tallied = to_be_tallied(input, file.trace, options);

  PackJob only;
  std::vector<std::uint8_t> tally_of_only;
  bool coded = false;
  if (file.trace) {
    ETWRELOG_TRY_LET(small, pack_small(file, out, only, result, tally_of_only));
    if (small == Small::packed) return result;
    coded = small == Small::coded;
  }

  etlz::FileHeader header;
  header.trace = file.trace;
  header.other_name = options.other_name(file.trace);
  header.original_size = input.size();
  std::uint8_t fixed[std::max(etlz::kFileHeaderSize, etlz::kFooterSize)];
  etlz::write_file_header(header, fixed);
  ETWRELOG_TRY(out.append(Bytes(fixed, etlz::kFileHeaderSize)));

  SharedProgress progress(options.run, input.size());
  std::vector<std::uint8_t> facts;
  if (to_be_counted(input, file.trace, options)) {
    ETWRELOG_TRY_LET(counted, count_trace(input, options, progress));
    facts = std::move(counted);
  }
  const double share = facts.empty() ? 1 : 1 - kCountingShare;
  Tally tally;

  SegmentSource source(input, file.trace, target_of(options, file.trace), workspace->byte_pool);
  etlz::ContentHasher hasher;
  etlz::IndexWriter index;
  auto take = [&](PackJob &job) -> Result<void> {
    hasher.update(job.bytes);
    ETWRELOG_TRY(out.append(job.payload));
    index.add(job.entry);
    if (file.tallied && !coded) tally.merge(job.tally);
    progress.advance(job.bytes.size(), share);
    return {};
  };
  if (coded) {
    ETWRELOG_TRY(take(only));
    add_segment(only, file, result);
  } else {
    ETWRELOG_TRY(pack_segments(
        file, [&](PackJob &job) { return source.next(job); }, take, result));
  }

  etlz::Footer footer;
  footer.index_at = out.size();
  footer.original_size = input.size();
  footer.content = result.content = hasher.finish();
  std::vector<std::uint8_t> index_bytes;
  if (file.tallied && coded) {
    facts = std::move(tally_of_only);
  } else if (file.tallied) {
    ETWRELOG_TRY_LET(record, tally.record(result.session, file));
    facts = std::move(record);
  }
  index.finish(facts, index_bytes);
  footer.index_size = index_bytes.size();
  ETWRELOG_TRY(out.append(index_bytes));
  etlz::write_footer(footer, fixed);
  ETWRELOG_TRY(out.append(Bytes(fixed, etlz::kFooterSize)));
  result.archived = out.size();
  return result;
}

} // namespace etwrelog::pipeline
