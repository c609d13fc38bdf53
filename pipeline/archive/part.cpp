// One archive made by several machines. A part holds some of the segments as the archive is to have them, and
// their entries of its index; joining copies the ones and writes the others anew. What belongs to the whole
// (hashes of the original and of its segments, its counts) is in part 1. Parts are no archives and outlive no
// version of this program:
//
//   header | segments, or of a small file a whole archive | index | trailer; the ends are sealed
#include "archive/archive.hpp"

#include "archive/segments.hpp"
#include "archive/wrapper.hpp"
#include "base/errors.hpp"
#include "base/progress_meter.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <xxhash.h>

namespace etwrelog::pipeline {
namespace {

// Behind etlz::kPartMagic; also the last character of the trailer's.
constexpr std::uint8_t kPartVersion = '4';
constexpr std::uint8_t kTrailerMagic[8] = {'E', 'T', 'L', 'Z', 'p', 'e', 'n', kPartVersion};
constexpr std::uint32_t kMostParts = 1u << 20;
constexpr std::uint64_t kSampled = 1u << 20; // bytes of both ends that tell one original from another

struct PartHeader {
  PartNumber part;
  bool trace = true, whole = false; // whole: the archive as it is, in part 1
  Level level = Level::normal;
  std::uint64_t original_size = 0;
  std::array<std::uint8_t, 16> sample{}; // XXH3-128 of both ends of the original
  bool other_name = false;               // that of part 1 counts
};

struct PartTrailer {
  std::uint64_t begin = 0, end = 0; // in the original
  std::uint64_t index_at = 0, index_size = 0;
  ContentHash content{}, segments{}; // in part 1
};

void write_header(const PartHeader &h, std::uint8_t *out) {
  std::memset(out, 0, kPartEndSize);
  std::ranges::copy(etlz::kPartMagic, out);
  out[etlz::kPartMagic.size()] = kPartVersion;
  store(out + 8, h.part.number);
  store(out + 12, h.part.of);
  store(out + 16, std::uint32_t{(h.trace ? 1u : 0u) | (h.whole ? 2u : 0u) | (h.other_name ? 4u : 0u)});
  store(out + 20, static_cast<std::uint32_t>(h.level));
  store(out + 24, h.original_size);
  std::ranges::copy(h.sample, out + 32);
  etlz::seal(out, kPartEndSize);
}

void write_trailer(const PartTrailer &t, std::uint8_t *out) {
  std::memset(out, 0, kPartEndSize);
  std::memcpy(out, kTrailerMagic, 8);
  store(out + 8, t.begin);
  store(out + 16, t.end);
  store(out + 24, t.index_at);
  store(out + 32, t.index_size);
  std::ranges::copy(t.content, out + 40);
  std::ranges::copy(t.segments, out + 56);
  etlz::seal(out, kPartEndSize);
}

Result<std::array<std::uint8_t, 16>> sample_of(const read::Input &input) {
  etlz::ContentHasher hasher;
  const std::uint64_t size = input.size();
  for (const std::uint64_t at : {std::uint64_t{0}, size - std::min(size, kSampled)}) {
    ETWRELOG_TRY_LET(bytes, read_exactly(input, at, std::min(size, kSampled)));
    hasher.update(bytes);
  }
  return hasher.finish();
}

// --- Packing one
// ---------------------------------------------------------------------------------------------

// Where all segments begin and end, and whether the whole may come out as a small archive.
struct Cuts {
  std::vector<std::uint64_t> at; // of each segment, and the end
  bool perhaps_small = false;
};

Result<Cuts> find_cuts(const PackedFile &file) {
  Cuts cuts;
  SegmentSource source(file.input, file.trace, target_of(file.options, file.trace), file.workspace.byte_pool);
  PackJob job;
  std::uint64_t content = 0;
  for (;;) {
    if (file.options.run.stop.stop_requested()) return base::cancelled().in(file.input.name());
    cuts.at.push_back(source.at());
    ETWRELOG_TRY_LET(more, source.next(job, Reading::headers));
    if (!more) break;
    for (const etlz::Part &part : job.parts)
      content += content_of(part, job.bytes);
    file.workspace.byte_pool.give(std::move(job.bytes));
  }
  cuts.perhaps_small = file.trace && file.input.size() <= kMostSmallFile && !file.options.counts &&
                       content <= small_content(file.options.level);
  return cuts;
}

// Over the hashes of what all segments hold: tells whether parts are of one original.
class SegmentsHasher {
public:
  void add(std::uint64_t content_hash) {
    std::uint8_t bytes[8];
    store(bytes, content_hash);
    hasher_.update(bytes);
  }
  [[nodiscard]] ContentHash finish() const { return hasher_.finish(); }

private:
  etlz::ContentHasher hasher_;
};

Result<void> hash_whole(const read::Input &input, const Cuts &cuts, const std::stop_token &stop,
                        PartTrailer &trailer) {
  etlz::ContentHasher content;
  SegmentsHasher segments;
  for (std::size_t i = 0; i + 1 < cuts.at.size(); ++i) {
    if (stop.stop_requested()) return base::cancelled().in(input.name());
    ETWRELOG_TRY_LET(bytes, read_exactly(input, cuts.at[i], cuts.at[i + 1] - cuts.at[i]));
    content.update(bytes);
    segments.add(etlz::hash64(bytes));
  }
  trailer.content = content.finish();
  trailer.segments = segments.finish();
  return {};
}

// As pack_file tallies, segment by segment.
Result<std::vector<std::uint8_t>> tally_all(const PackedFile &file, const Session &session) {
  SegmentSource source(file.input, file.trace, target_of(file.options, file.trace), file.workspace.byte_pool);
  Tally tally, of_segment;
  PackJob job;
  for (;;) {
    if (file.options.run.stop.stop_requested()) return base::cancelled().in(file.input.name());
    ETWRELOG_TRY_LET(more, source.next(job));
    if (!more) return tally.record(session, file);
    of_segment.clear();
    of_segment.add(job.bytes, job.parts, nullptr);
    tally.merge(of_segment);
    file.workspace.byte_pool.give(std::move(job.bytes));
  }
}

// Bytes of packing that reading all of the trace for its hash, and perhaps its counts, is worth.
std::uint64_t whole_work(const PackedFile &file) {
  const bool counted = to_be_counted(file.input, file.trace, file.options);
  const std::uint64_t share = (counted ? 8 : 64) * (file.options.level >= Level::max ? 12 : 1);
  return file.input.size() / share;
}

// The segments of a part, first and behind the last: stretches that take equal time, all parts in order.
std::pair<std::size_t, std::size_t> stretch(const Cuts &cuts, PartNumber part, std::uint64_t extra) {
  const std::size_t segments = cuts.at.size() - 1;
  const double each = static_cast<double>(cuts.at.back() + extra) / part.of;
  auto part_of = [&](std::size_t i) {
    const double middle = static_cast<double>(extra) +
                          (static_cast<double>(cuts.at[i]) + static_cast<double>(cuts.at[i + 1])) / 2;
    return std::min<std::uint32_t>(static_cast<std::uint32_t>(middle / each) + 1, part.of);
  };
  std::size_t first = 0;
  while (first < segments && part_of(first) < part.number)
    ++first;
  std::size_t last = first;
  while (last < segments && part_of(last) == part.number)
    ++last;
  return {first, last};
}

} // namespace

Result<PackReport> pack_part(const read::Input &input, PartNumber part, ByteSink &sink,
                             const ArchiveOptions &given) {
  ArchiveOptions options = given;
  if (options.level == Level::fast) options.level = Level::normal;
  ETWRELOG_TRY_LET(trace, looks_like_trace(input));
  const WorkspaceUse workspace(options.workspace);
  PackedFile file{input, trace, options, *workspace};
  PackReport report;
  report.is_trace = trace;
  if (trace) report.session = read_header(file);
  report.original = input.size();
  CountedSink out(sink);

  ETWRELOG_TRY_LET(cuts, find_cuts(file));
  const bool whole = cuts.perhaps_small || cuts.at.size() <= 2 || may_be_wrapped(input);
  PartHeader header{part, trace, whole, options.level, input.size(), {}, options.other_name(trace)};
  ETWRELOG_TRY_LET(sample, sample_of(input));
  header.sample = sample;
  std::uint8_t fixed[kPartEndSize];
  write_header(header, fixed);
  ETWRELOG_TRY(out.append(Bytes(fixed, kPartEndSize)));

  PartTrailer trailer;
  std::vector<std::uint8_t> index_bytes;
  if (header.whole) { // too little to be shared out, or made in one piece
    if (part.number == 1) {
      ETWRELOG_TRY_LET(packed, pack_file(input, out, options));
      report = std::move(packed);
      trailer.end = input.size();
    }
  } else {
    SharedProgress progress(options.run, input.size());
    std::vector<std::uint8_t> facts;
    if (part.number == 1) {
      if (to_be_counted(input, trace, options)) {
        ETWRELOG_TRY_LET(counted, count_trace(input, options, progress));
        facts = std::move(counted);
      }
      if (to_be_tallied(input, trace, options)) {
        ETWRELOG_TRY_LET(tallied, tally_all(file, report.session));
        facts = std::move(tallied);
      }
      ETWRELOG_TRY(hash_whole(input, cuts, options.run.stop, trailer));
      report.content = trailer.content;
    }
    const auto [first, last] = stretch(cuts, part, whole_work(file));
    trailer.begin = cuts.at[first];
    trailer.end = cuts.at[last];
    report.original = trailer.end - trailer.begin;
    SegmentSource source(input, trace, target_of(options, trace), workspace->byte_pool);
    std::size_t number = 0;
    auto next = [&, first = first, last = last](PackJob &job) -> Result<bool> {
      for (; number < first; ++number) {
        ETWRELOG_TRY_LET(there, source.next(job, Reading::headers));
        static_cast<void>(there);
        workspace->byte_pool.give(std::move(job.bytes));
      }
      if (number == last) return false;
      Result<bool> more = source.next(job);
      if (more && (!*more || source.at() != cuts.at[number + 1]))
        return problem(ErrorKind::io, input.name(), "the file changed while it was read");
      ++number;
      return more;
    };
    etlz::IndexWriter index(true);
    auto take = [&](PackJob &job) -> Result<void> {
      ETWRELOG_TRY(out.append(job.payload));
      index.add(job.entry);
      progress.advance(job.bytes.size(), 1);
      return {};
    };
    ETWRELOG_TRY(pack_segments(file, next, take, report));
    index.finish(facts, index_bytes);
  }
  trailer.index_at = out.size();
  trailer.index_size = index_bytes.size();
  ETWRELOG_TRY(out.append(index_bytes));
  write_trailer(trailer, fixed);
  ETWRELOG_TRY(out.append(Bytes(fixed, kPartEndSize)));
  report.archived = out.size();
  return report;
}

// --- Joining all
// ---------------------------------------------------------------------------------------------

namespace {

struct Opened {
  const read::Input *input = nullptr;
  PartHeader header;
  PartTrailer trailer;
};

Error broken(const read::Input &part, std::string what, std::uint64_t at) {
  return base::corrupt(std::move(what)).in(part.name()).at(at);
}

Result<Opened> open_part(const read::Input &input) {
  const std::uint64_t size = input.size();
  std::vector<std::uint8_t> bytes(kPartEndSize);
  ETWRELOG_TRY_LET(got, input.read_at(0, bytes));
  if (!etlz::is_part(Bytes(bytes).first(got)))
    return base::unsupported("is no part of an archive, as packing one stretch of a trace makes it")
        .in(input.name())
        .at(0);
  if (bytes[etlz::kPartMagic.size()] != kPartVersion)
    return base::unsupported("is a part that another version of this program made").in(input.name()).at(7);
  if (got < kPartEndSize || size < 2 * kPartEndSize || !etlz::sealed(bytes, kPartEndSize))
    return broken(input, "part header: checksum mismatch, or the part was cut", 0);
  Opened part{&input, {}, {}};
  PartHeader &h = part.header;
  h.part = {load<std::uint32_t>(bytes.data() + 8), load<std::uint32_t>(bytes.data() + 12)};
  const auto flags = load<std::uint32_t>(bytes.data() + 16), level = load<std::uint32_t>(bytes.data() + 20);
  h.trace = (flags & 1) != 0;
  h.whole = (flags & 2) != 0;
  h.other_name = (flags & 4) != 0;
  h.original_size = load<std::uint64_t>(bytes.data() + 24);
  std::copy_n(bytes.begin() + 32, h.sample.size(), h.sample.begin());
  if (h.part.of == 0 || h.part.of > kMostParts || h.part.number == 0 || h.part.number > h.part.of ||
      level > static_cast<std::uint32_t>(Level::ultra))
    return broken(input, "part header: impossible values", 8);
  h.level = static_cast<Level>(level);

  const std::uint64_t trailer_at = size - kPartEndSize;
  ETWRELOG_TRY_LET(end, read_exactly(input, trailer_at, kPartEndSize));
  if (std::memcmp(end.data(), kTrailerMagic, 8) != 0 || !etlz::sealed(end, kPartEndSize))
    return broken(input, "end of part: checksum mismatch, or the part was cut", trailer_at);
  PartTrailer &t = part.trailer;
  t.begin = load<std::uint64_t>(end.data() + 8);
  t.end = load<std::uint64_t>(end.data() + 16);
  t.index_at = load<std::uint64_t>(end.data() + 24);
  t.index_size = load<std::uint64_t>(end.data() + 32);
  std::copy_n(end.begin() + 40, t.content.size(), t.content.begin());
  std::copy_n(end.begin() + 56, t.segments.size(), t.segments.begin());
  if (t.begin > t.end || t.end > h.original_size || t.index_at < kPartEndSize || t.index_at > trailer_at ||
      t.index_size != trailer_at - t.index_at)
    return broken(input, "end of part: contradicts the rest", trailer_at);
  return part;
}

// All parts of one original, each once, in order.
Result<std::vector<Opened>> open_parts(std::span<const std::unique_ptr<read::Input>> inputs) {
  std::vector<Opened> parts;
  for (const std::unique_ptr<read::Input> &input : inputs) {
    ETWRELOG_TRY_LET(part, open_part(*input));
    parts.push_back(part);
  }
  if (parts.empty()) return base::bad_option(Option::input, "there are no parts");
  std::ranges::sort(parts, {}, [](const Opened &p) { return p.header.part.number; });
  const Opened &first = parts.front();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const PartHeader &h = parts[i].header;
    const std::string &name = parts[i].input->name();
    auto differs = [&](const char *what, const auto &expected, const auto &found) {
      return Error(base::bad_option(Option::input, fmt::format("{}, as of \"{}\"", what, first.input->name()))
                       .in(name)
                       .expected(fmt::format("{}", expected))
                       .found(fmt::format("{}", found)));
    };
    if (h.part.of != first.header.part.of) return differs("number of parts", first.header.part.of, h.part.of);
    if (h.original_size != first.header.original_size)
      return differs("bytes of the original", first.header.original_size, h.original_size);
    if (h.sample != first.header.sample)
      return differs("original", to_string(first.header.sample), to_string(h.sample));
    if (h.level != first.header.level)
      return differs("level", level_name(first.header.level), level_name(h.level));
    const auto content = [](const PartHeader &of) {
      return of.whole ? "a whole archive" : of.trace ? "a trace" : "no trace";
    };
    if (h.trace != first.header.trace || h.whole != first.header.whole)
      return differs("what is in it", content(first.header), content(h));
    if (i > 0 && h.part.number == parts[i - 1].header.part.number)
      return Error(
          base::bad_option(Option::input, fmt::format("part {} is given twice", h.part.number)).in(name));
    if (h.part.number != i + 1)
      return Error(
          base::bad_option(Option::input, fmt::format("part {} of {} is missing", i + 1, h.part.of)));
  }
  if (parts.size() != first.header.part.of)
    return base::bad_option(Option::input,
                            fmt::format("part {} of {} is missing", parts.size() + 1, first.header.part.of));
  return parts;
}

// Copies a stretch of a part through `check`.
Result<void> copy(const read::Input &from, std::uint64_t at, std::uint64_t size, CountedSink &out) {
  while (size > 0) {
    const std::uint64_t n = std::min<std::uint64_t>(size, 4u << 20);
    ETWRELOG_TRY_LET(bytes, read_exactly(from, at, n));
    ETWRELOG_TRY(out.append(bytes));
    at += n, size -= n;
  }
  return {};
}

// The segments of a part, each compared with what its header and the index say; their entries go into
// `index`.
Result<void> join_part(const Opened &part, std::uint64_t memory, std::uint64_t &original, CountedSink &out,
                       etlz::IndexWriter &index, SegmentsHasher &hashes, std::vector<std::uint8_t> &facts,
                       PackReport &report) {
  const read::Input &input = *part.input;
  ETWRELOG_TRY_LET(bytes, read_exactly(input, part.trailer.index_at, part.trailer.index_size));
  const std::uint64_t most = part.trailer.index_at / etlz::kSegmentHeaderSize;
  Result<etlz::Index> read = etlz::read_index(bytes, {memory, most, part.header.original_size});
  if (!read) return base::in_file(std::move(read).error(), input.name(), part.trailer.index_at);
  std::uint64_t at = kPartEndSize;
  if (part.trailer.begin != original)
    return broken(input, "the part does not begin where the one before ends", part.trailer.index_at);
  for (const etlz::IndexEntry &entry : read->segments) {
    const std::uint64_t size = etlz::kSegmentHeaderSize + entry.header.stored_size;
    if (entry.header.original_at != original || entry.header.stored_size > part.trailer.index_at ||
        size > part.trailer.index_at - at)
      return broken(input, "index: contradicts the part", part.trailer.index_at);
    ETWRELOG_TRY_LET(segment, read_exactly(input, at, size));
    std::uint8_t expected[etlz::kSegmentHeaderSize];
    etlz::write_segment_header(entry.header, expected);
    if (!std::equal(std::begin(expected), std::end(expected), segment.begin()) ||
        etlz::hash64(Bytes(segment).subspan(etlz::kSegmentHeaderSize)) != entry.header.payload_hash)
      return broken(input, "segment: checksum mismatch", at);
    ETWRELOG_TRY(out.append(segment));
    index.add(entry);
    hashes.add(entry.header.content_hash);
    report.events += entry.facts.events;
    report.buffers += entry.facts.buffers;
    ++report.segments;
    at += size;
    original += entry.header.original_size;
  }
  if (at != part.trailer.index_at || original != part.trailer.end)
    return broken(input, "index: contradicts the part", part.trailer.index_at);
  if (part.header.part.number == 1) facts = std::move(read->facts);
  return {};
}

// Part 1 is the archive.
Result<void> join_whole(const std::vector<Opened> &parts, std::uint64_t memory, CountedSink &out,
                        PackReport &report) {
  const Opened &first = parts.front();
  if (first.trailer.index_at - kPartEndSize > memory)
    return base::over_limit("a part that is a whole archive")
        .in(first.input->name())
        .expected(fmt::format("at most {} bytes", memory))
        .found(fmt::format("{}", first.trailer.index_at - kPartEndSize))
        .advise(Advice::raise_memory);
  ETWRELOG_TRY(copy(*first.input, kPartEndSize, first.trailer.index_at - kPartEndSize, out));
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(out.size()));
  ETWRELOG_TRY_LET(got, first.input->read_at(kPartEndSize, bytes));
  bytes.resize(got);
  const std::unique_ptr<read::Input> archive = read::memory_input(first.input->name(), std::move(bytes));
  ArchiveOptions check;
  check.run.memory = memory;
  ETWRELOG_TRY_LET(whole, unpack_file(*archive, nullptr, check)); // it is small
  report.content = whole.content;
  report.segments = whole.segments;
  return {};
}

} // namespace

Result<PackReport> join_parts(std::span<const std::unique_ptr<read::Input>> inputs, ByteSink &sink,
                              const RunOptions &run) {
  ETWRELOG_TRY_LET(parts, open_parts(inputs));
  const Opened &first = parts.front();
  CountedSink out(sink);
  PackReport report;
  report.original = first.header.original_size;
  report.is_trace = first.header.trace;
  report.content = first.trailer.content;
  if (first.header.whole) {
    ETWRELOG_TRY(join_whole(parts, run.memory, out, report));
    report.archived = out.size();
    return report;
  }
  etlz::FileHeader header;
  header.trace = first.header.trace;
  header.other_name = first.header.other_name;
  header.original_size = first.header.original_size;
  std::uint8_t fixed[std::max(etlz::kFileHeaderSize, etlz::kFooterSize)];
  etlz::write_file_header(header, fixed);
  ETWRELOG_TRY(out.append(Bytes(fixed, etlz::kFileHeaderSize)));
  etlz::IndexWriter index;
  std::vector<std::uint8_t> facts;
  std::uint64_t original = 0;
  SegmentsHasher hashes;
  base::ProgressMeter progress(run.progress);
  progress.begin("joining", first.header.original_size);
  for (const Opened &part : parts) {
    if (run.stop.stop_requested()) return base::cancelled();
    ETWRELOG_TRY(join_part(part, run.memory, original, out, index, hashes, facts, report));
    progress.advance(part.trailer.end - part.trailer.begin);
  }
  if (original != first.header.original_size)
    return broken(*parts.back().input, "the parts do not cover the original", 0);
  if (hashes.finish() != first.trailer.segments)
    return Error(
        base::bad_option(Option::input, "another part was made of a file that differs from this one's")
            .in(first.input->name()));
  etlz::Footer footer;
  footer.index_at = out.size();
  footer.original_size = first.header.original_size;
  footer.content = first.trailer.content;
  std::vector<std::uint8_t> index_bytes;
  index.finish(facts, index_bytes);
  footer.index_size = index_bytes.size();
  ETWRELOG_TRY(out.append(index_bytes));
  etlz::write_footer(footer, fixed);
  ETWRELOG_TRY(out.append(Bytes(fixed, etlz::kFooterSize)));
  report.archived = out.size();
  return report;
}

} // namespace etwrelog::pipeline
