#include "archive/segments.hpp"

#include "archive/summary.hpp"
#include "base/errors.hpp"
#include "base/platform.hpp"
#include "base/zeros.hpp"
#include "etwrelog/format.hpp"
#include "etwrelog/logfile_header.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <zstd.h>

namespace etwrelog::pipeline {
namespace {

constexpr std::size_t kReadOn = 256u << 10; // what is read too much is copied twice

} // namespace

Result<bool> SegmentSource::next(PackJob &job, Reading reading) {
  if (at_ >= input_.size()) return false;
  job.entry = {};
  job.parts.clear();
  job.explain.clear();
  job.at = at_;
  // Of the file; `target`: of weight, which is less where there is slack and more where buffers are
  // compressed.
  std::size_t want = std::min(last_ + kReadOn, 3 * target_), target = target_;
  base::Buffer &bytes = job.bytes;
  bytes = byte_pool_.take(); // whatever its size: bytes that will be read need no zeros first
  // As much as there may be (part_weight). What is not touched costs nothing, and to move would cost a lot.
  const auto room = static_cast<std::size_t>(
      std::min<std::uint64_t>(input_.size() - at_, std::max(want, 3 * target_) + kReadOn));
  bytes.clear();
  bytes.reserve(room);
  std::size_t have = carry_.size();
  bytes.resize(have);
  std::ranges::copy(carry_, bytes.begin());
  if (std::exchange(carry_is_hollow_, reading == Reading::headers) && reading == Reading::all)
    ETWRELOG_TRY(read(bytes, 0, have));
  for (;;) {
    const auto goal = static_cast<std::size_t>(std::min<std::uint64_t>(want, input_.size() - at_));
    if (goal > have) {
      if (bytes.size() < goal) bytes.resize(goal);
      ETWRELOG_TRY(fill(bytes, have, goal, reading));
      have = goal;
    }
    const bool final = at_ + have == input_.size();
    std::size_t covered = 0;
    if (trace_) {
      covered = etlz::split_parts(Bytes(bytes).first(have), final, target, job.parts);
    } else {
      covered = std::min(have, target);
      job.parts = {{false, 0, covered}};
    }
    job.decoded = 0;
    std::size_t weight = 0;
    for (const etlz::Part &part : job.parts) {
      job.decoded += etlz::decoded_size(part, bytes);
      weight += etlz::part_weight(part, bytes);
    }
    // Enough for a segment, or nothing more to come: otherwise read on.
    if (covered > 0 && (final || weight >= target || have >= 3 * target)) {
      const std::uint64_t rest = input_.size() - at_ - covered;
      if (rest != 0 && rest < covered / 4 && target == target_ && covered + rest <= etlz::kMaxSegment) {
        // A short rest would pay for tables of its own: it goes with this one.
        target += target / 2;
        want = static_cast<std::size_t>(covered + rest);
        continue;
      }
      carry_.assign(bytes.begin() + covered, bytes.begin() + have);
      bytes.resize(covered);
      at_ += covered;
      last_ = covered;
      return true;
    }
    want = have + std::max(kReadOn, weight < target ? target - weight : 0);
  }
}

Result<void> SegmentSource::read(MutableBytes bytes, std::size_t from, std::size_t to) {
  ETWRELOG_TRY_LET(got, input_.read_at(at_ + from, bytes.subspan(from, to - from)));
  if (got != to - from)
    return problem(ErrorKind::io, input_.name(), "the file became shorter while it was read");
  return {};
}

Result<void> SegmentSource::fill(MutableBytes bytes, std::size_t from, std::size_t to, Reading reading) {
  if (reading == Reading::headers && trace_) return read_headers(bytes, from, to);
  if (reading == Reading::headers) return {}; // no trace is cut by what it holds
  return read(bytes, from, to);
}

// From header to header; where something else stands, all that follows is looked through.
Result<void> SegmentSource::read_headers(MutableBytes bytes, std::size_t from, std::size_t to) {
  while (header_ < at_ + to) {
    // No buffer stood there.
    if (header_ < at_ || header_ + format::kBufferHeaderSize <= at_ + from) return read(bytes, from, to);
    const auto here = static_cast<std::size_t>(header_ - at_);
    const std::size_t end = std::min(here + format::kBufferHeaderSize, to);
    ETWRELOG_TRY(read(bytes, std::max(here, from), end));
    const bool cut = end < here + format::kBufferHeaderSize;
    if (cut && at_ + to < input_.size()) return {}; // it goes on in the next stretch
    const std::uint64_t left = input_.size() - header_;
    if (cut || !etlz::plausible(bytes.data() + here, to - here) ||
        format::load_buffer_header(bytes.data() + here).buffer_size > left)
      return read(bytes, std::max(here, from), to);
    header_ += format::load_buffer_header(bytes.data() + here).buffer_size;
  }
  return {};
}

std::uint64_t content_of(const etlz::Part &part, Bytes bytes) {
  const std::uint64_t valid =
      part.buffer ? format::load_buffer_header(bytes.data() + part.at).valid_bytes() : part.size;
  return std::min<std::uint64_t>(valid, etlz::decoded_size(part, bytes));
}

Result<bool> looks_like_trace(const read::Input &input) {
  std::vector<std::uint8_t> first(format::kBufferHeaderSize + format::kSystemHeaderSize);
  ETWRELOG_TRY_LET(got, input.read_at(0, first));
  if (got < first.size()) return false;
  const format::BufferHeader h = format::load_buffer_header(first.data());
  const std::uint32_t marker = load<std::uint32_t>(first.data() + format::kBufferHeaderSize);
  return h.buffer_size >= format::kBufferHeaderSize && h.buffer_size <= format::kMaxBufferSize &&
         h.type <= format::kMaxBufferType && (h.compressed() || (marker >> 24) == format::kMarkerStructured);
}

Session read_header(PackedFile &file) {
  std::vector<std::uint8_t> first(format::kBufferHeaderSize + format::kMaxEventSize);
  const Result<std::size_t> got = file.input.read_at(0, first);
  if (!got || *got <= format::kBufferHeaderSize) return {};
  std::optional<LogfileHeader> header;
  static_cast<void>(for_each_event(Bytes(first).first(*got).subspan(format::kBufferHeaderSize),
                                   [&](const EventView &event, std::int64_t, std::uint32_t at) {
                                     if (at != 0) return;
                                     if (Result<LogfileHeader> h = read_logfile_header(event); h)
                                       header = *std::move(h);
                                   }));
  if (!header) return {};
  file.one_stream = (header->log_file_mode & format::kModeOneStream) != 0;
  file.written_buffers = header->missing_buffers(0);
  return session_of(*header);
}

namespace {

// Beyond this share of a segment it is cheaper to read the segment itself.
constexpr std::uint64_t kSummaryShare = 64;

// A log that was given its size in advance has zeros behind its buffers.
void find_strays(PackJob &job) {
  job.stray = job.first_stray = 0;
  for (const etlz::Part &part : job.parts) {
    const Bytes bytes = Bytes(job.bytes).subspan(part.at, part.size);
    if (part.buffer || base::all_zero(bytes)) continue;
    if (job.stray == 0) job.first_stray = job.at + part.at;
    job.stray += part.size;
  }
}

void summarize_segment(PackJob &job, PackCoder &coder, bool tallied) {
  if (job.at == 0) return; // has the header event: nobody does without
  SegmentSummary &summary = job.entry.summary;
  // A tally walks over all events for itself.
  summary = coder.summarizer.summarize(job.bytes, job.parts, &coder.coder,
                                       static_cast<std::size_t>(job.decoded / kSummaryShare),
                                       tallied ? nullptr : &coder.owners);
  if (!summary.complete) return;
  // As whoever reads the summary counts them: every event with the time that a walk hands on.
  job.entry.facts.events = summary.events;
  const bool any = summary.events != 0;
  job.entry.facts.first_time = any ? summary.first_time : 0;
  job.entry.facts.last_time = any ? summary.last_time : 0;
}

} // namespace

Result<void> encode_segment(PackJob &job, const PackedFile &file) {
  const ArchiveOptions &options = file.options;
  SegmentHeader &header = job.entry.header;
  header.original_at = job.at;
  header.original_size = job.bytes.size();
  header.content_hash = etlz::hash64(job.bytes);
  job.payload.resize(etlz::kSegmentHeaderSize);
  if (file.trace) {
    find_strays(job);
    const auto go_on = [&]() -> Result<void> {
      if (options.run.stop.stop_requested()) return base::cancelled().in(file.input.name());
      return {};
    };
    std::unique_ptr<PackCoder> coder = file.workspace.packers.take();
    coder->coder.stop_with(options.run.stop);
    header.method = coder->coder.encode(job.bytes, job.parts, options.level, job.payload, &job.entry.facts,
                                        options.explain != nullptr ? &job.explain : nullptr);
    ETWRELOG_TRY(go_on());
    bool tallied = file.tallied;
    if (tallied) {
      job.tally.clear();
      job.tally.add(job.bytes, job.parts, &coder->coder);
      tallied = job.tally.is_whole();
    }
    summarize_segment(job, *coder, tallied);
    if (tallied && job.entry.summary.complete) job.entry.summary.owners = job.tally.owners();
    header.stream_bytes = job.entry.facts.stream_bytes;
    header.scratch_bytes = job.entry.facts.scratch_bytes;
    if (options.verify && header.method != SegmentMethod::zstd) {
      const Bytes coded = Bytes(job.payload).subspan(etlz::kSegmentHeaderSize);
      if (!coder->coder.gives(header.method, coded, job.bytes, header.stream_bytes, header.scratch_bytes))
        header.method = SegmentMethod::zstd;
      ETWRELOG_TRY(go_on());
    }
    file.workspace.packers.give(std::move(coder));
  } else {
    header.method = SegmentMethod::zstd;
  }
  if (header.method == SegmentMethod::zstd) {
    // No trace, or one that the model does not give back or has too many kinds of events for: kept without
    // it.
    const std::size_t bound = ZSTD_compressBound(job.bytes.size());
    job.payload.resize(etlz::kSegmentHeaderSize + bound);
    const int level = options.level >= Level::max ? 19 : 9;
    const std::size_t n = ZSTD_compress(job.payload.data() + etlz::kSegmentHeaderSize, bound,
                                        job.bytes.data(), job.bytes.size(), level);
    if (ZSTD_isError(n) != 0) return problem(ErrorKind::io, file.input.name(), ZSTD_getErrorName(n));
    job.payload.resize(etlz::kSegmentHeaderSize + n);
    header.stream_bytes = header.scratch_bytes = 0;
  }
  const Bytes stored = Bytes(job.payload).subspan(etlz::kSegmentHeaderSize);
  header.stored_size = stored.size();
  header.payload_hash = etlz::hash64(stored);
  if (!etlz::possible(header)) // no reader would take it
    return problem(
        ErrorKind::unsupported, file.input.name(),
        fmt::format("a segment of {} bytes, of which {} are stored: more than an archive can hold in one",
                    header.original_size, header.stored_size));
  etlz::write_segment_header(header, job.payload.data());
  if (file.trace) {
    for (const etlz::Part &part : job.parts) {
      if (!part.buffer) continue;
      const std::uint8_t *const from = job.bytes.begin() + part.at;
      job.entry.buffer_headers.insert(job.entry.buffer_headers.end(), from, from + format::kBufferHeaderSize);
    }
    job.entry.parts = std::move(job.parts);
  }
  return {};
}

namespace {

void add_explain(std::vector<ColumnCost> &sum, const std::vector<ColumnCost> &more) {
  for (const ColumnCost &m : more) {
    const auto same = std::find_if(sum.begin(), sum.end(), [&m](const ColumnCost &s) {
      return s.owner == m.owner && s.column == m.column;
    });
    if (same == sum.end())
      sum.push_back(m);
    else
      same->in += m.in, same->out += m.out, same->events += m.events;
  }
}

} // namespace

Result<ContentHash> hash_of(const read::Input &input, const std::stop_token &stop) {
  etlz::ContentHasher hasher;
  std::vector<std::uint8_t> piece(
      static_cast<std::size_t>(std::min<std::uint64_t>(input.size() + 1, 4u << 20)));
  for (std::uint64_t at = 0;;) {
    if (stop.stop_requested()) return base::cancelled().in(input.name());
    ETWRELOG_TRY_LET(got, input.read_at(at, piece));
    if (got == 0) return hasher.finish();
    hasher.update(Bytes(piece).first(got));
    at += got;
  }
}

void add_segment(PackJob &job, const PackedFile &file, PackReport &report) {
  report.events += job.entry.facts.events;
  report.buffers += job.entry.facts.buffers;
  report.decoded += job.decoded;
  add_strays(job, report);
  ++report.segments;
  if (file.options.explain != nullptr) add_explain(*file.options.explain, job.explain);
  file.workspace.byte_pool.give(std::move(job.bytes));
}

Result<void> pack_segments(const PackedFile &file, const std::function<Result<bool>(PackJob &)> &next,
                           const std::function<Result<void>(PackJob &)> &take, PackReport &report) {
  const ArchiveOptions &options = file.options;
  Steps<PackJob> steps;
  steps.next = next;
  steps.work = [&](PackJob &job) { return encode_segment(job, file); };
  steps.merge = [&](PackJob &job) -> Result<void> {
    ETWRELOG_TRY(take(job));
    add_segment(job, file, report);
    return {};
  };
  const unsigned threads = threads_of(options.run.threads);
  const std::uint64_t each = std::uint64_t{target_of(options, file.trace)} * kMemoryFactor;
  const auto in_flight =
      static_cast<std::size_t>(std::clamp<std::uint64_t>(options.run.memory / each, 1, threads + 2));
  std::deque<PackJob> jobs(in_flight + 1);
  Result<void> done = run_steps(steps, jobs, {options.run.threads, options.run.stop});
  if (!done) return in_file(std::move(done).error(), file.input.name());
  return {};
}

} // namespace etwrelog::pipeline
