#include "archive/archive.hpp"
#include "archive/entry_check.hpp"
#include "archive/tally.hpp"
#include "archive/wrapper.hpp"

#include "base/errors.hpp"
#include "base/progress_meter.hpp"
#include "etwrelog/format.hpp"
#include "run/runner.hpp"
#include "source/segment_reader.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <zstd.h>

namespace etwrelog::pipeline {
namespace {

// A segment on its way; reused.
struct UnpackJob {
  etlz::IndexEntry entry;
  std::vector<std::uint8_t> stored;
  base::Buffer bytes;
};

// Finds the segments of a damaged archive one by one, searching for the next after each gap.
class SegmentScan {
public:
  SegmentScan(const read::Input &archive, std::uint64_t from, std::uint64_t to, const std::stop_token &stop)
      : archive_(archive), at_(from), end_(to), stop_(stop) {}

  // False at the end, and where another archive begins: its segments are those of another original. (That of
  // a wrapped trace begins right behind the file's own header.)
  Result<bool> next(etlz::IndexEntry &entry) {
    other_at_.reset();
    for (;;) {
      ETWRELOG_TRY_LET(more, seek_mark());
      if (!more) return false;
      const Bytes here = Bytes(window_).subspan(at_ - window_at_);
      if (const Result<SegmentHeader> header = etlz::read_segment_header(here)) {
        entry = {};
        entry.archive_at = at_;
        entry.header = *header;
        return true;
      }
      if (at_ > etlz::kFileHeaderSize && etlz::is_archive(here) && etlz::read_file_header(here)) {
        other_at_ = at_;
        return false;
      }
      ++at_;
    }
  }
  void skip(std::uint64_t bytes) { at_ += bytes; }
  [[nodiscard]] std::optional<std::uint64_t> other_at() const { return other_at_; }

private:
  // Goes on to where what both headers have in their first bytes stands, with a whole header in the window.
  Result<bool> seek_mark() {
    while (at_ + etlz::kSegmentHeaderSize <= end_) {
      if (window_at_ > at_ || at_ + etlz::kSegmentHeaderSize > window_at_ + window_.size()) {
        if (stop_.stop_requested())
          return problem(ErrorKind::cancelled, archive_.name(), "stopped on request");
        const std::uint64_t size = std::min<std::uint64_t>(kWindow, end_ - at_);
        ETWRELOG_TRY_LET(bytes, read_exactly(archive_, at_, size));
        window_ = std::move(bytes);
        window_at_ = at_;
      }
      const std::size_t begin = static_cast<std::size_t>(at_ - window_at_);
      const std::size_t found = etlz::find_header(window_, begin);
      if (found <= window_.size() - etlz::kSegmentHeaderSize) {
        at_ = window_at_ + found;
        return true;
      }
      at_ =
          window_at_ + (window_.size() - etlz::kSegmentHeaderSize) + 1; // what begins there is not all in it
    }
    return false;
  }

  static constexpr std::uint64_t kWindow = 1u << 20;

  const read::Input &archive_;
  std::uint64_t at_, end_, window_at_ = 0;
  std::stop_token stop_;
  std::optional<std::uint64_t> other_at_;
  std::vector<std::uint8_t> window_;
};

bool same(const SegmentHeader &a, const SegmentHeader &b) {
  return a.method == b.method && a.original_at == b.original_at && a.original_size == b.original_size &&
         a.stored_size == b.stored_size && a.stream_bytes == b.stream_bytes &&
         a.scratch_bytes == b.scratch_bytes && a.payload_hash == b.payload_hash &&
         a.content_hash == b.content_hash;
}

Result<void> check_header(Bytes stored, const etlz::IndexEntry &entry, const std::string &name) {
  const Result<SegmentHeader> header = etlz::read_segment_header(stored);
  if (!header) return damaged(name, header.error(), entry.archive_at);
  if (!same(*header, entry.header))
    return damaged(name, "segment header: contradicts the index", entry.archive_at);
  return {};
}

// Takes what is whole of a damaged archive, in order.
class Salvage {
public:
  // `trace`: what was packed is one, as far as is known.
  Salvage(const read::Input &archive, ByteSink *out, const ArchiveOptions &options, bool trace)
      : archive_(archive), out_(out), options_(options), trace_(trace), workspace_(options.workspace),
        progress_(options.run.progress) {
    progress_.begin("unpacking", 0);
    report_.archived = archive.size();
  }

  // As the index has the segments, whatever their headers say. What is not where it has them may stand
  // elsewhere.
  Result<void> by_index(const ArchiveIndex &index) {
    std::optional<std::vector<std::uint64_t>> elsewhere;
    std::size_t moved = 0;
    for (std::size_t i = 0; i < index.segments.size(); ++i) {
      ETWRELOG_TRY_LET(in_place, take(index.segments[i]));
      if (in_place) continue;
      if (!elsewhere) {
        ETWRELOG_TRY_LET(found, find_elsewhere(index, i));
        elsewhere = std::move(found);
      }
      if ((*elsewhere)[i] == 0) continue;
      etlz::IndexEntry entry;
      entry.header = index.segments[i].header;
      entry.archive_at = (*elsewhere)[i];
      ETWRELOG_TRY_LET(taken, take(entry));
      if (taken) ++moved;
    }
    lack(index.footer.original_size);
    if (!report_.missing.empty()) return {};
    if (hasher_.finish() != index.footer.content)
      say(expected_, 0, "the content hash of the whole does not match");
    else if (moved != 0)
      say(expected_, 0,
          fmt::format("{} of {} segments are not where the index has them; they were found elsewhere in the "
                      "archive, and nothing of the original is missing",
                      moved, index.segments.size()));
    else if (Result<void> right = check_segment_headers(archive_, index); !right) {
      if (right.error().kind == ErrorKind::io) return right;
      say(expected_, 0, "the header of a segment is damaged, and nothing of the original is missing");
    }
    return {};
  }

  // As they are found without an index. `header`: the archive's own, if that is whole. False where another
  // archive begins.
  Result<bool> by_scan(const std::optional<etlz::FileHeader> &header) {
    std::optional<std::uint64_t> size; // of the original
    if (header) size = header->original_size;
    SegmentScan scan(archive_, header ? etlz::kFileHeaderSize : 0, archive_.size(), options_.run.stop);
    std::uint64_t other = 0;
    // What was packed may be archives itself. Within a segment that does not decode, what looks like one of
    // ours is not: but the very next one, should bytes be missing in between.
    std::uint64_t within = 0, next = 0; // where that segment ends, and what of the original follows it
    std::uint64_t to_hash = 2 * archive_.size(); // of such: many headers may claim the same bytes
    for (;;) {
      etlz::IndexEntry entry;
      ETWRELOG_TRY_LET(found, scan.next(entry));
      if (!found) {
        other = scan.other_at().value_or(0);
        break;
      }
      const SegmentHeader &h = entry.header;
      if (!size && h.original_at < expected_) { // of one whose header is damaged, too
        other = entry.archive_at;
        break;
      }
      const std::uint64_t begin = entry.archive_at + etlz::kSegmentHeaderSize;
      const bool there = h.stored_size <= archive_.size() - begin;
      const bool inside = entry.archive_at < within;
      bool fits = h.original_at >= expected_ &&
                  (!size || (h.original_at <= *size && h.original_size <= *size - h.original_at));
      if (inside) fits = fits && h.original_at == next && there && h.stored_size <= to_hash;
      if (!fits) {
        scan.skip(1);
        continue;
      }
      if (!there) break; // cut in its middle
      if (inside) to_hash -= h.stored_size;
      ETWRELOG_TRY_LET(taken, take(entry));
      bool done_with = taken;
      if (!taken && !inside) {
        within = begin + h.stored_size;
        next = h.original_at + h.original_size;
        ETWRELOG_TRY_LET(follows, is_followed(entry));
        done_with = follows;
      }
      scan.skip(done_with ? etlz::kSegmentHeaderSize + h.stored_size : 1);
    }
    if (size) lack(*size);
    if (other == 0) return true;
    say(expected_, 0, fmt::format("another archive begins at 0x{:x}, which is not read", other));
    return false;
  }

  void say(std::uint64_t at, std::uint64_t bytes, std::string why) {
    report_.missing.push_back({0, at, bytes, std::move(why)});
  }
  [[nodiscard]] bool misses_any() const { return !report_.missing.empty(); }
  [[nodiscard]] std::uint64_t end() const { return expected_; }
  [[nodiscard]] UnpackReport report() && { return std::move(report_); }

private:
  // Where else segments from `first` on stand, which is not in its place; 0 of those that do not. The index
  // says of each where its bytes belong, how many there are, and both hashes: whatever stands around a header
  // that agrees in all of this, what follows it are these bytes, or its hash is another.
  Result<std::vector<std::uint64_t>> find_elsewhere(const ArchiveIndex &index, std::size_t first) {
    std::vector<std::uint64_t> places(index.segments.size());
    SegmentScan scan(archive_, etlz::kFileHeaderSize, index.footer.index_at, options_.run.stop);
    std::uint64_t to_hash = 2 * archive_.size(); // many headers may claim the same bytes
    for (;;) {
      etlz::IndexEntry here;
      ETWRELOG_TRY_LET(found, scan.next(here));
      if (!found && !scan.other_at()) return places;
      const std::optional<std::size_t> i = found ? listed(index, here) : std::nullopt;
      const bool in_place = i && here.archive_at == index.segments[*i].archive_at;
      bool whole = i && *i < first && in_place;
      if (i && (*i > first || (*i == first && !in_place))) {
        if (here.header.stored_size > to_hash) return places;
        to_hash -= here.header.stored_size;
        const Result<void> good = check_stored_segment(archive_, here);
        if (!good && good.error().kind != ErrorKind::corrupt) return good.error();
        whole = static_cast<bool>(good);
        if (whole && !in_place) places[*i] = here.archive_at;
      }
      scan.skip(whole ? etlz::kSegmentHeaderSize + here.header.stored_size : 1);
    }
  }
  // Which of the index's segments a header is of.
  static std::optional<std::size_t> listed(const ArchiveIndex &index, const etlz::IndexEntry &here) {
    const SegmentHeader &h = here.header;
    // The last that begins there: those before it are of no bytes.
    const auto behind = std::upper_bound(
        index.segments.begin(), index.segments.end(), h.original_at,
        [](std::uint64_t at, const etlz::IndexEntry &entry) { return at < entry.header.original_at; });
    if (behind == index.segments.begin() || !same(std::prev(behind)->header, h)) return std::nullopt;
    if (h.stored_size > index.footer.index_at - here.archive_at - etlz::kSegmentHeaderSize)
      return std::nullopt; // cut
    return static_cast<std::size_t>(std::prev(behind) - index.segments.begin());
  }
  // Whether what comes behind a segment stands where its header says: the next one of the original, or the
  // index.
  Result<bool> is_followed(const etlz::IndexEntry &entry) {
    const SegmentHeader &h = entry.header;
    const std::uint64_t end = entry.archive_at + etlz::kSegmentHeaderSize + h.stored_size;
    const std::uint64_t left = archive_.size() - end;
    ETWRELOG_TRY_LET(bytes,
                     read_exactly(archive_, end, std::min<std::uint64_t>(left, etlz::kSegmentHeaderSize)));
    if (etlz::begins_index(bytes)) return true;
    if (bytes.size() < etlz::kSegmentHeaderSize) return false;
    const Result<SegmentHeader> next = etlz::read_segment_header(bytes);
    return next && next->original_at == h.original_at + h.original_size;
  }
  // What is not there up to `to`.
  void lack(std::uint64_t to) {
    if (to <= expected_) return;
    say(expected_, to - expected_,
        expected_ == 0 && trace_ ? "damaged, with the logfile header: nothing reads the rest as a trace"
                                 : "damaged");
  }
  // False: it is damaged.
  Result<bool> take(const etlz::IndexEntry &entry) {
    if (options_.run.stop.stop_requested())
      return problem(ErrorKind::cancelled, archive_.name(), "stopped on request");
    ETWRELOG_TRY(check_decode_memory(entry.header, options_.run.memory, archive_.name()));
    ETWRELOG_TRY_LET(stored, read_exactly(archive_, payload_at(entry), entry.header.stored_size));
    base::Buffer bytes = workspace_->byte_pool.take(entry.header.original_size);
    if (!decode_segment(entry, stored, bytes, workspace_->coders, archive_.name())) {
      workspace_->byte_pool.give(std::move(bytes));
      return false;
    }
    lack(entry.header.original_at);
    if (out_ != nullptr) ETWRELOG_TRY(out_->write(bytes));
    hasher_.update(bytes);
    report_.original += bytes.size();
    ++report_.segments;
    expected_ = entry.header.original_at + bytes.size();
    progress_.advance(bytes.size());
    workspace_->byte_pool.give(std::move(bytes));
    return true;
  }

  const read::Input &archive_;
  ByteSink *const out_;
  const ArchiveOptions &options_;
  const bool trace_;
  const WorkspaceUse workspace_;
  etlz::ContentHasher hasher_;
  base::ProgressMeter progress_;
  UnpackReport report_;
  std::uint64_t expected_ = 0; // of the original: what comes next
};

Result<UnpackReport> salvage_segments(const read::Input &archive, ByteSink *out,
                                      const ArchiveOptions &options) {
  const std::optional<etlz::FileHeader> header = read_file_header(archive);
  Salvage salvage(archive, out, options, header && header->trace);
  const Result<ArchiveIndex> index = read_archive_index(archive, options.run.memory);
  if (index) {
    ETWRELOG_TRY(salvage.by_index(*index));
    return std::move(salvage).report();
  }
  ETWRELOG_TRY_LET(alone, salvage.by_scan(header));
  if (alone && !header)
    salvage.say(salvage.end(), 0, "the header is damaged, and nothing else tells how much followed");
  if (salvage.misses_any()) return std::move(salvage).report();
  if (index.error().advice == Advice::raise_memory) return index.error();
  salvage.say(salvage.end(), 0,
              "the index of the archive is damaged, and nothing of the original is missing");
  return std::move(salvage).report();
}

// What there is of the first trace in a wrapped one. Where its archive ends, the list behind all of them
// tells, or else its header, or the next one's.
Result<UnpackReport> salvage_first(const read::Input &archive, ByteSink *out, const ArchiveOptions &options) {
  Result<UnpackReport> result = UnpackReport();
  if (const Result<WrapperIndex> wrapper = read_wrapper_index(archive)) {
    result = salvage_segments(*inner_archive(archive, *wrapper, 0), out, options);
  } else {
    ETWRELOG_TRY_LET(stored, read_exactly(archive, etlz::kFileHeaderSize, etlz::kFileHeaderSize));
    const Result<etlz::FileHeader> first = etlz::read_file_header(stored);
    Salvage salvage(archive, out, options, true);
    ETWRELOG_TRY(salvage.by_scan(first ? std::optional(*first) : std::nullopt));
    result = std::move(salvage).report();
  }
  if (!result) return result;
  result->archived = archive.size();
  std::uint64_t end = result->original;
  for (const Skipped &gap : result->missing)
    end += gap.bytes;
  result->missing.push_back(
      {0, end, 0,
       "the file around the traces cannot be made again; what there is of its first trace is all"});
  return result;
}

// Of a wrapped trace: the wrapper, if all is whole.
Result<UnpackReport> salvage(const read::Input &archive, ByteSink *out, const ArchiveOptions &options,
                             bool wrapped) {
  if (!wrapped) return salvage_segments(archive, out, options);
  const Result<UnpackReport> whole = unpack_wrapped(archive, nullptr, options);
  if (whole) return unpack_wrapped(archive, out, options);
  const Error &error = whole.error();
  if (error.kind == ErrorKind::cancelled || error.advice == Advice::raise_memory) return whole;
  return salvage_first(archive, out, options);
}

} // namespace

Result<void> check_segment_headers(const read::Input &archive, const ArchiveIndex &index) {
  for (const etlz::IndexEntry &entry : index.segments) {
    if (entry.header.method == SegmentMethod::small) continue; // has none
    ETWRELOG_TRY_LET(stored, read_exactly(archive, entry.archive_at, etlz::kSegmentHeaderSize));
    ETWRELOG_TRY(check_header(stored, entry, archive.name()));
  }
  return {};
}

Result<void> check_stored(const read::Input &archive, const ArchiveIndex &index,
                          const std::stop_token &stop) {
  for (const etlz::IndexEntry &entry : index.segments) {
    if (stop.stop_requested()) return problem(ErrorKind::cancelled, archive.name(), "stopped on request");
    ETWRELOG_TRY(check_stored_segment(archive, entry));
  }
  return {};
}

Result<UnpackReport> unpack_file(const read::Input &archive, ByteSink *out, const ArchiveOptions &options) {
  const std::optional<etlz::FileHeader> header = read_file_header(archive);
  const bool one_piece = header && header->small; // which is whole or not: nothing to salvage
  if (options.salvage && !one_piece) return salvage(archive, out, options, header && header->wrapped);
  if (header && header->wrapped) return unpack_wrapped(archive, out, options);
  ETWRELOG_TRY_LET(index, read_archive_index(archive, options.run.memory));
  forget_outdated(index);
  UnpackReport result;
  result.archived = archive.size();
  std::uint64_t largest = 1;
  for (const etlz::IndexEntry &e : index.segments) {
    ETWRELOG_TRY(check_decode_memory(e.header, options.run.memory, archive.name()));
    largest = std::max(largest, decode_memory(e.header));
  }
  if (options.check_first) ETWRELOG_TRY(check_stored(archive, index, options.run.stop));
  const WorkspaceUse workspace(options.workspace);
  CoderPool &pool = workspace->coders;
  etlz::ContentHasher hasher;
  std::size_t issued = 0;
  base::ProgressMeter progress(options.run.progress);
  progress.begin(out != nullptr ? "unpacking" : "verifying", index.footer.original_size);
  Steps<UnpackJob> steps;
  steps.next = [&](UnpackJob &job) -> Result<bool> {
    if (issued == index.segments.size()) return false;
    job.entry = index.segments[issued++];
    const bool bare = job.entry.header.method == SegmentMethod::small; // without a header of its own
    const std::uint64_t at = bare ? payload_at(job.entry) : job.entry.archive_at;
    const std::uint64_t size = (bare ? 0 : etlz::kSegmentHeaderSize) + job.entry.header.stored_size;
    ETWRELOG_TRY_LET(stored, read_exactly(archive, at, size));
    job.stored = std::move(stored);
    return true;
  };
  BytePool &byte_pool = workspace->byte_pool;
  base::Pool<EntryCheck> checks;
  steps.work = [&](UnpackJob &job) -> Result<void> {
    if (job.entry.header.method == SegmentMethod::small) {
      job.bytes.resize(job.entry.header.original_size);
      return decode_segment(job.entry, job.stored, job.bytes, pool, archive.name());
    }
    ETWRELOG_TRY(check_header(job.stored, job.entry, archive.name()));
    job.bytes = byte_pool.take(job.entry.header.original_size);
    ETWRELOG_TRY(decode_segment(job.entry, Bytes(job.stored).subspan(etlz::kSegmentHeaderSize), job.bytes,
                                pool, archive.name(), options.run.stop));
    if (out != nullptr) return {};
    std::unique_ptr<EntryCheck> checking = checks.take();
    Result<void> right = checking->check(job.bytes, job.entry, archive.name());
    checks.give(std::move(checking));
    return right;
  };
  steps.merge = [&](UnpackJob &job) -> Result<void> {
    hasher.update(job.bytes);
    if (out != nullptr) ETWRELOG_TRY(out->write(job.bytes));
    result.original += job.bytes.size();
    ++result.segments;
    progress.advance(job.bytes.size());
    byte_pool.give(std::move(job.bytes));
    return {};
  };
  const unsigned threads = threads_of(options.run.threads);
  const auto in_flight =
      static_cast<std::size_t>(std::clamp<std::uint64_t>(options.run.memory / largest, 1, threads + 2));
  std::deque<UnpackJob> jobs(in_flight + 1);
  if (Result<void> done = run_steps(steps, jobs, {options.run.threads, options.run.stop}); !done)
    return in_file(std::move(done).error(), archive.name());
  if (hasher.finish() != index.footer.content)
    return base::corrupt("the content hash of the whole does not match")
        .in(archive.name())
        .advise(Advice::salvage_archive);
  result.hash_checked = true;
  result.content = index.footer.content;
  return result;
}

} // namespace etwrelog::pipeline
