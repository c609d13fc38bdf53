// include/etwrelog/archive.hpp: opens what the caller described, does the work, commits.
#include "etwrelog/archive.hpp"

#include "archive/archive.hpp"
#include "base/errors.hpp"
#include "etlz/container.hpp"

namespace etwrelog {
namespace {

pipeline::ArchiveOptions unpacking(bool salvage, const RunOptions &run) {
  pipeline::ArchiveOptions options;
  options.salvage = salvage;
  options.run = run;
  return options;
}

Result<UnpackReport> check_whole(const Input &archive, Result<UnpackReport> report) {
  if (report && report->segments == 0 && report->original == 0 && !report->hash_checked)
    return base::corrupt("holds no whole segment").in(archive.name());
  return report;
}

Result<etlz::ContentHash> content_of(const Input &original, const RunOptions &run) {
  ETWRELOG_TRY_LET(bytes, read::open_plain(original));
  etlz::ContentHasher hasher;
  std::vector<std::uint8_t> piece(4u << 20);
  for (std::uint64_t at = 0;;) {
    if (run.stop.stop_requested()) return base::cancelled().in(original.name());
    ETWRELOG_TRY_LET(got, bytes->read_at(at, piece));
    if (got == 0) return hasher.finish();
    hasher.update(Bytes(piece).first(got));
    at += got;
  }
}

} // namespace

Result<PackReport> pack(const Input &input, const Output &output, const PackOptions &options,
                        const RunOptions &run) {
  ETWRELOG_TRY_LET(bytes, read::open_plain(input)); // the very file, wrapped or not
  if (pipeline::is_archive(*bytes))
    return base::unsupported("is an .etlz archive already").in(input.name()).about(Option::input);
  ETWRELOG_TRY_LET(out, OutputStream::open(output, {&input, 1}));
  pipeline::ArchiveOptions how;
  how.level = options.level;
  how.verify = options.verify;
  how.explain = options.explain;
  how.run = run;
  ETWRELOG_TRY_LET(report, pipeline::pack_file(*bytes, out, how));
  ETWRELOG_TRY(out.commit());
  return report;
}

Result<UnpackReport> unpack(const Input &archive, const Output &output, const UnpackOptions &options,
                            const RunOptions &run) {
  ETWRELOG_TRY_LET(bytes, read::open_input(archive));
  ETWRELOG_TRY_LET(out, OutputStream::open(output, {&archive, 1}));
  Result<UnpackReport> report =
      check_whole(archive, pipeline::unpack_file(*bytes, &out, unpacking(options.salvage, run)));
  if (!report) return report;
  ETWRELOG_TRY(out.commit());
  return report;
}

Result<UnpackReport> verify(const Input &archive, const UnpackOptions &options, const RunOptions &run) {
  ETWRELOG_TRY_LET(bytes, read::open_input(archive));
  return check_whole(archive, pipeline::unpack_file(*bytes, nullptr, unpacking(options.salvage, run)));
}

Result<UnpackReport> verify_against(const Input &archive, const Input &original, const RunOptions &run) {
  ETWRELOG_TRY_LET(bytes, read::open_input(archive));
  ETWRELOG_TRY_LET(footer, pipeline::read_archive_footer(*bytes));
  ETWRELOG_TRY_LET(report, pipeline::unpack_file(*bytes, nullptr, unpacking(false, run)));
  ETWRELOG_TRY_LET(content, content_of(original, run));
  if (content != footer.content)
    return base::corrupt("read back, it differs from the original").in(archive.name());
  return report;
}

Result<ArchiveInfo> read_archive_info(const Input &archive) {
  ETWRELOG_TRY_LET(bytes, read::open_input(archive));
  if (!pipeline::is_archive(*bytes)) return base::unsupported("is not an .etlz archive").in(archive.name());
  std::vector<std::uint8_t> first(etlz::kFileHeaderSize);
  ETWRELOG_TRY_LET(got, bytes->read_at(0, first));
  const Result<etlz::FileHeader> header = etlz::read_file_header(Bytes(first).first(got));
  if (!header) return base::in_file(header.error(), archive.name(), 0);
  ArchiveInfo info;
  info.original = header->original_size;
  info.archived = bytes->size();
  info.is_trace = header->trace;
  return info;
}

} // namespace etwrelog
