// include/etwrelog/archive.hpp: opens what the caller described, does the work, commits.
#include "etwrelog/archive.hpp"

#include "archive/archive.hpp"
#include "archive/tally.hpp"
#include "base/cut_text.hpp"
#include "base/errors.hpp"
#include "base/io.hpp"
#include "etlz/container.hpp"
#include "etwrelog/logfile_header.hpp"
#include "passes/statistics.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace etwrelog {

struct ArchiveWorkspace::State : pipeline::Workspace {};

ArchiveWorkspace::ArchiveWorkspace() : state_(std::make_unique<State>()) {}
ArchiveWorkspace::~ArchiveWorkspace() = default;

struct WorkspaceParts {
  static pipeline::Workspace *of(ArchiveWorkspace *workspace) {
    return workspace == nullptr ? nullptr : workspace->state_.get();
  }
};

namespace {

pipeline::ArchiveOptions packing(const PackOptions &options, const RunOptions &run) {
  pipeline::ArchiveOptions how;
  how.level = options.level;
  how.verify = options.verify;
  how.explain = options.explain;
  how.counts = options.counts;
  how.workspace = WorkspaceParts::of(options.workspace);
  how.run = run;
  return how;
}

pipeline::ArchiveOptions unpacking(const UnpackOptions &given, const RunOptions &run) {
  pipeline::ArchiveOptions options;
  options.salvage = given.salvage;
  options.workspace = WorkspaceParts::of(given.workspace);
  options.run = run;
  return options;
}

// The bytes to pack, which are no archive.
Result<std::unique_ptr<read::Input>> open_original(const Input &input, const RunOptions &run) {
  ETWRELOG_TRY_LET(bytes, read::open_plain(input, run)); // the very file, wrapped or not
  if (pipeline::is_archive(*bytes))
    return base::unsupported("is an .etlz archive already").in(input.name()).about(Option::input);
  return bytes;
}

// For what is made of one file and stands for it. An archive holds what its original holds: not more people
// than could read the one may read the other.
std::optional<base::FileAttributes> attributes_of(const Input &input, const read::Input &bytes) {
  if (const auto opened = bytes.attributes()) return opened;
  return input.kind() == Input::Kind::path ? base::file_attributes(input.name()) : std::nullopt;
}

// What can be done with all of these.
std::optional<base::FileAttributes> attributes_of(std::span<const Input> inputs,
                                                  std::span<const std::unique_ptr<read::Input>> bytes) {
  std::optional<base::FileAttributes> all;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::optional<base::FileAttributes> one = attributes_of(inputs[i], *bytes[i]);
    if (!one) return std::nullopt;
    if (!all) all = one;
    all->mode &= one->mode;
    if (one->owner != all->owner || one->group != all->group) all->mode &= 0700;
    all->written = std::max(all->written, one->written);
  }
  return all;
}

// What packing a file takes, all of it or a part.
struct Packing {
  std::unique_ptr<read::Input> bytes;
  OutputStream out;
  pipeline::ArchiveOptions how;
};

Result<Packing> begin_packing(const Input &input, const Output &output, const PackOptions &options,
                              const RunOptions &run) {
  ETWRELOG_TRY_LET(bytes, open_original(input, run));
  const std::optional<base::FileAttributes> attributes = attributes_of(input, *bytes);
  ETWRELOG_TRY_LET(out, OutputStream::open(OutputParts::with(output, attributes), {&input, 1}));
  pipeline::ArchiveOptions how = packing(options, run);
  // The name of a pipe says nothing.
  if (input.kind() == Input::Kind::path && attributes)
    how.name =
        base::has_ending(input.name(), ".etl") ? pipeline::OriginalName::etl : pipeline::OriginalName::other;
  return Packing{std::move(bytes), std::move(out), std::move(how)};
}

void tell(PackReport &report, const RunOptions &run) {
  if (run.report != nullptr) {
    run.report->stored_bytes += report.original;
    run.report->decoded_bytes += report.decoded;
    run.report->buffers += report.buffers;
    run.report->events += report.events;
  }
  if (report.stray != 0)
    report.warnings.push_back(fmt::format(
        "{} bytes, the first at 0x{:x}, are in no whole buffer: the trace is cut short or damaged; "
        "packed as they are. If there is a whole copy, pack that",
        report.stray, report.first_stray));
  else if (report.written_buffers > report.buffers)
    report.warnings.push_back(fmt::format("the session wrote {} buffers, and {} are there: the trace was cut "
                                          "short, or part of it is missing; packed as it is. If there is a "
                                          "whole copy, pack that",
                                          report.written_buffers, report.buffers));
  else
    return;
  if (run.report != nullptr) run.report->warnings.push_back(report.warnings.back());
}

Result<UnpackReport> check_whole(const Input &archive, Result<UnpackReport> report, const RunOptions &run) {
  if (report && run.report != nullptr) {
    run.report->stored_bytes += report->archived;
    run.report->decoded_bytes += report->original;
    run.report->skipped.insert(run.report->skipped.end(), report->missing.begin(), report->missing.end());
  }
  if (report && report->segments == 0 && report->original == 0 && !report->hash_checked)
    return base::corrupt("holds no whole segment of an archive: it is none, or nothing of it can be restored")
        .in(archive.name());
  return report;
}

} // namespace

Result<PackReport> pack(const Input &input, const Output &output, const PackOptions &options,
                        const RunOptions &run) {
  ETWRELOG_TRY_LET(begun, begin_packing(input, output, options, run));
  ETWRELOG_TRY_LET(report, pipeline::pack_file(*begun.bytes, begun.out, begun.how));
  ETWRELOG_TRY(begun.out.commit());
  tell(report, run);
  return report;
}

Result<PackReport> pack_part(const Input &input, PartNumber part, const Output &output,
                             const PackOptions &options, const RunOptions &run) {
  if (part.number == 0 || part.number > part.of)
    return base::bad_option(Option::none, "there is no such part")
        .expected("1.." + std::to_string(part.of))
        .found(std::to_string(part.number));
  ETWRELOG_TRY_LET(begun, begin_packing(input, output, options, run));
  ETWRELOG_TRY_LET(report, pipeline::pack_part(*begun.bytes, part, begun.out, begun.how));
  ETWRELOG_TRY(begun.out.commit());
  tell(report, run);
  return report;
}

Result<PackReport> join_parts(std::span<const Input> parts, const Output &output, const RunOptions &run) {
  std::vector<std::unique_ptr<read::Input>> opened;
  for (const Input &part : parts) {
    ETWRELOG_TRY_LET(bytes, read::open_plain(part, run));
    opened.push_back(std::move(bytes));
  }
  ETWRELOG_TRY_LET(out, OutputStream::open(OutputParts::with(output, attributes_of(parts, opened)), parts));
  ETWRELOG_TRY_LET(report, pipeline::join_parts(opened, out, run));
  ETWRELOG_TRY(out.commit());
  return report;
}

Result<UnpackReport> unpack(const Input &archive, const Output &output, const UnpackOptions &options,
                            const RunOptions &run) {
  ETWRELOG_TRY_LET(bytes, read::open_input(archive, run));
  ETWRELOG_TRY_LET(
      out, OutputStream::open(OutputParts::with(output, attributes_of(archive, *bytes)), {&archive, 1}));
  pipeline::ArchiveOptions how = unpacking(options, run);
  how.check_first = output.kind() == Output::Kind::sink; // what was given away cannot be taken back
  Result<UnpackReport> report = check_whole(archive, pipeline::unpack_file(*bytes, &out, how), run);
  if (!report) return report;
  ETWRELOG_TRY(out.commit());
  return report;
}

Result<UnpackReport> verify(const Input &archive, const UnpackOptions &options, const RunOptions &run) {
  ETWRELOG_TRY_LET(bytes, read::open_input(archive, run));
  return check_whole(archive, pipeline::unpack_file(*bytes, nullptr, unpacking(options, run)), run);
}

Result<UnpackReport> verify_against(const Input &archive, const Input &original, const RunOptions &run) {
  ETWRELOG_TRY_LET(bytes, read::open_input(archive, run));
  ETWRELOG_TRY_LET(footer, pipeline::read_archive_footer(*bytes));
  ETWRELOG_TRY_LET(report, pipeline::unpack_file(*bytes, nullptr, unpacking({}, run)));
  ETWRELOG_TRY_LET(content, content_hash(original, run));
  if (content != footer.content)
    return base::corrupt("read back, it differs from the original").in(archive.name());
  return report;
}

Result<ContentHash> content_hash(const Input &input, const RunOptions &run) {
  ETWRELOG_TRY_LET(bytes, read::open_plain(input, run));
  return pipeline::hash_of(*bytes, run.stop);
}

Result<bool> is_archive_of(const Input &archive, const Input &original, const RunOptions &run) {
  ETWRELOG_TRY_LET(info, read_archive_info(archive));
  ETWRELOG_TRY_LET(bytes, read::open_plain(original, run));
  if (bytes->size() != info.original) return false;
  ETWRELOG_TRY_LET(content, content_hash(original, run));
  return content == info.content;
}

namespace {

Result<ArchiveInfo> info_of(const read::Input &archive) {
  if (!pipeline::is_archive(archive)) return base::unsupported("is not an .etlz archive").in(archive.name());
  std::vector<std::uint8_t> first(etlz::kFileHeaderSize);
  ETWRELOG_TRY_LET(got, archive.read_at(0, first));
  const Result<etlz::FileHeader> header = etlz::read_file_header(Bytes(first).first(got));
  if (!header) return pipeline::damaged(archive.name(), header.error(), 0);
  ETWRELOG_TRY_LET(footer, pipeline::read_archive_footer(archive));
  ArchiveInfo info;
  info.original = header->original_size;
  info.archived = archive.size();
  info.is_trace = header->trace;
  info.wrapped = header->wrapped;
  info.content = footer.content;
  info.etl_name = (info.is_trace && !info.wrapped) != header->other_name;
  return info;
}

} // namespace

Result<ArchiveInfo> read_archive_info(const Input &archive) {
  ETWRELOG_TRY_LET(bytes, read::open_input(archive));
  return info_of(*bytes);
}

namespace {

Result<ArchiveSummary> with_index(ArchiveSummary summary, const read::Input &archive, std::uint64_t memory) {
  ETWRELOG_TRY_LET(index, pipeline::read_archive_index(archive, memory));
  summary.indexed = index.footer.index_size != 0;
  if (!summary.indexed) return summary;
  summary.segments = index.segments.size();
  for (const etlz::IndexEntry &entry : index.segments) {
    summary.events += entry.facts.events;
    summary.buffers += entry.facts.buffers;
  }
  pipeline::forget_outdated(index);
  const std::string_view record(reinterpret_cast<const char *>(index.facts.data()), index.facts.size());
  if (record.empty()) return summary;
  if (std::optional<Statistics> counts = pipeline::read_statistics_record(record)) {
    summary.session = pipeline::read_session_record(record);
    summary.processes = by_name(counts->processes, counts->by_instance);
    summary.counts = std::make_shared<const Statistics>(*std::move(counts));
  } else if (std::optional<pipeline::TallyRecord> tally = pipeline::read_tally(index.facts)) {
    summary.session = std::move(tally->session);
    summary.tally = std::make_shared<const Statistics>(std::move(tally->statistics));
    summary.processes = std::move(tally->processes);
  }
  return summary;
}

} // namespace

Result<ArchiveSummary> read_archive_summary(const Input &archive, const RunOptions &run) {
  ETWRELOG_TRY_LET(bytes, read::open_input(archive, run));
  ETWRELOG_TRY_LET(info, info_of(*bytes));
  ArchiveSummary summary{info};
  if (!info.wrapped) return with_index(std::move(summary), *bytes, run.memory);
  ETWRELOG_TRY_LET(wrapper, pipeline::read_wrapper_index(*bytes));
  if (wrapper.traces.size() == 1)
    return with_index(std::move(summary), *pipeline::inner_archive(*bytes, wrapper, 0), run.memory);
  for (std::size_t i = 0; i < wrapper.traces.size(); ++i) { // counts of one say nothing of all
    ETWRELOG_TRY_LET(one, with_index({}, *pipeline::inner_archive(*bytes, wrapper, i), run.memory));
    summary.indexed = summary.indexed && one.indexed;
    summary.segments += one.segments;
    summary.events += one.events;
    summary.buffers += one.buffers;
  }
  if (!summary.indexed) summary.segments = summary.events = summary.buffers = 0;
  return summary;
}

Session session_of(const LogfileHeader &header) {
  constexpr std::uint32_t kModePrivate = 0x0000'0800, kModeSystemLogger = 0x0200'0000;
  Session session;
  session.name = header.session_name;
  session.events_lost = header.events_lost;
  session.buffers_lost = header.buffers_lost;
  // Back in these units, the most that 64 bits hold would be one more than they hold: seconds are a double.
  constexpr std::int64_t kMost = 9'000'000'000'000'000'000;
  if (header.end_time > header.start_time && header.start_time > 0)
    session.seconds = static_cast<double>(std::min(header.end_time - header.start_time, kMost)) / 1e7;
  if (header.file_name == "[multiple files]")
    session.kind = SessionKind::merged;
  else if ((header.log_file_mode & kModeSystemLogger) != 0 || header.session_name == "NT Kernel Logger" ||
           header.session_name == "Circular Kernel Context Logger")
    session.kind = SessionKind::kernel;
  else
    session.kind = (header.log_file_mode & kModePrivate) != 0 ? SessionKind::in_process : SessionKind::user;
  return session;
}

std::string to_string(const ContentHash &hash) {
  std::string text;
  for (const std::uint8_t byte : hash)
    for (const unsigned nibble : {static_cast<unsigned>(byte) >> 4, byte & 15u})
      text += "0123456789abcdef"[nibble];
  return text;
}

std::string_view session_kind_name(SessionKind kind) {
  switch (kind) {
  case SessionKind::kernel: return "kernel";
  case SessionKind::user: return "user";
  case SessionKind::in_process: return "in-process";
  case SessionKind::merged: return "merged";
  default: return "unknown";
  }
}

} // namespace etwrelog
