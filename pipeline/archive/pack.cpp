#include "archive/archive.hpp"

#include "archive/outline.hpp"
#include "etwrelog/format.hpp"
#include "passes/statistics.hpp"
#include "run/runner.hpp"
#include "source/segment_reader.hpp"

#include <algorithm>
#include <functional>

#include <zstd.h>

namespace etwrelog::pipeline {
namespace {

// Decoded bytes of a segment. Larger ones compress better, smaller ones start more threads and seek finer.
std::size_t segment_target(Level level) {
  return level == Level::max ? std::size_t{64} << 20 : std::size_t{16} << 20;
}

constexpr std::size_t kPlainSegment = 8u << 20;

// Content up to which a small archive is tried: coding it takes some microseconds a byte. What is larger
// comes out smaller by the model at default; max may take longer to find out.
constexpr std::size_t small_content(Level level) {
  return level == Level::max ? std::size_t{256} << 10 : std::size_t{80} << 10;
}
constexpr std::uint64_t kMostSmallFile = 64u << 20; // with all slack

struct PackCoder : Coder {
  Outliner outliner;
};

// What coding a segment takes, as a multiple of its decoded size: the bytes twice, the model's history and
// streams.
constexpr std::uint64_t kMemoryFactor = 7;

// A segment on its way; reused.
struct PackJob {
  std::uint64_t at = 0;
  std::vector<std::uint8_t> bytes, payload;
  std::vector<etlz::Part> parts;
  etlz::IndexEntry entry;
  std::vector<ColumnCost> explain;
  std::uint64_t decoded = 0;
};

// Cuts the input into segments; carries over what was read too much.
class SegmentSource {
public:
  SegmentSource(const read::Input &input, bool trace, std::size_t target, Spares &spares)
      : input_(input), trace_(trace), target_(target), spares_(spares) {}

  // False at the end.
  Result<bool> next(PackJob &job) {
    if (at_ >= input_.size()) return false;
    job.entry = {};
    job.parts.clear();
    job.explain.clear();
    job.at = at_;
    std::vector<std::uint8_t> &bytes = job.bytes;
    bytes = spares_.take(); // whatever its size: bytes that will be read need no zeros first
    std::size_t have = carry_.size();
    bytes.resize(std::max(bytes.size(), have));
    std::ranges::copy(carry_, bytes.begin());
    std::size_t want = std::min<std::size_t>(target_, last_ + last_ / 4 + (1u << 20)), target = target_;
    for (;;) {
      const auto goal = static_cast<std::size_t>(std::min<std::uint64_t>(want, input_.size() - at_));
      if (goal > have) {
        if (bytes.size() < goal) bytes.resize(goal);
        const Result<std::size_t> got =
            input_.read_at(at_ + have, MutableBytes(bytes).subspan(have, goal - have));
        if (!got) return got.error();
        if (*got != goal - have)
          return problem(ErrorKind::io, input_.name(), "the file became shorter while it was read");
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
        job.decoded += decoded_size(part, bytes);
        weight += etlz::part_weight(part, bytes);
      }
      // Enough for a segment, or nothing more to come: otherwise read on.
      if (covered > 0 && (final || weight >= target || have >= 3 * target)) {
        const std::uint64_t rest = input_.size() - at_ - covered;
        if (rest != 0 && rest < covered / 4 && target == target_) {
          // A short rest would pay for tables of its own: it goes with this one.
          target += target / 2;
          want = static_cast<std::size_t>(covered + rest);
          continue;
        }
        carry_.assign(bytes.begin() + static_cast<std::ptrdiff_t>(covered),
                      bytes.begin() + static_cast<std::ptrdiff_t>(have));
        bytes.resize(covered);
        at_ += covered;
        last_ = covered;
        return true;
      }
      want = std::max(want * 2, have + (1u << 20));
    }
  }

  [[nodiscard]] static std::uint64_t decoded_size(const etlz::Part &part, Bytes bytes) {
    if (!part.buffer) return part.size;
    const format::BufferHeader h = format::load_buffer_header(bytes.data() + part.at);
    return h.compressed() ? std::max<std::uint64_t>(part.size, h.valid_bytes()) : part.size;
  }

private:
  const read::Input &input_;
  bool trace_;
  std::size_t target_;
  Spares &spares_;
  std::uint64_t at_ = 0;
  std::size_t last_ = 4u << 20;
  std::vector<std::uint8_t> carry_;
};

// A file is taken for a trace when its first buffer looks like one and holds an event.
Result<bool> looks_like_trace(const read::Input &input) {
  std::vector<std::uint8_t> first(format::kBufferHeaderSize + format::kSystemHeaderSize);
  const Result<std::size_t> got = input.read_at(0, first);
  if (!got) return got.error();
  if (*got < first.size()) return false;
  const format::BufferHeader h = format::load_buffer_header(first.data());
  const std::uint32_t marker = load<std::uint32_t>(first.data() + format::kBufferHeaderSize);
  return h.buffer_size >= format::kBufferHeaderSize && h.buffer_size <= format::kMaxBufferSize &&
         h.type <= format::kMaxBufferType && (h.compressed() || (marker >> 24) == format::kMarkerStructured);
}

// Beyond this share of a segment it is cheaper to read the segment itself.
constexpr std::uint64_t kOutlineShare = 64;

void outline_segment(PackJob &job, PackCoder &coder) {
  if (job.at == 0) return; // has the header event: nobody does without
  Outline &outline = job.entry.outline;
  outline = coder.outliner.outline(job.bytes, job.parts, coder.coder,
                                   static_cast<std::size_t>(job.decoded / kOutlineShare));
  if (!outline.complete) return;
  // As whoever reads the outline counts them: every event with the time that a walk hands on.
  job.entry.facts.events = outline.events;
  const bool any = outline.events != 0;
  job.entry.facts.first_time = any ? outline.first_time : 0;
  job.entry.facts.last_time = any ? outline.last_time : 0;
}

Result<void> encode_segment(PackJob &job, bool trace, const ArchiveOptions &options, Pool<PackCoder> &pool,
                            const std::string &name) {
  SegmentHeader &header = job.entry.header;
  header.original_at = job.at;
  header.original_size = job.bytes.size();
  header.content_hash = etlz::hash64(job.bytes);
  job.payload.resize(etlz::kSegmentHeaderSize);
  if (trace) {
    std::unique_ptr<PackCoder> coder = pool.take();
    coder->coder.encode(job.bytes, job.parts, options.level, job.payload, &job.entry.facts,
                        options.explain != nullptr ? &job.explain : nullptr);
    outline_segment(job, *coder);
    header.stream_bytes = job.entry.facts.stream_bytes;
    header.scratch_bytes = job.entry.facts.scratch_bytes;
    if (options.verify) {
      std::vector<std::uint8_t> &again = coder->scratch;
      again.resize(job.bytes.size());
      const Bytes coded = Bytes(job.payload).subspan(etlz::kSegmentHeaderSize);
      if (!coder->coder.decode(coded, again, header.stream_bytes, header.scratch_bytes) || again != job.bytes)
        header.method = SegmentMethod::zstd;
    }
    pool.give(std::move(coder));
  } else {
    header.method = SegmentMethod::zstd;
  }
  if (header.method == SegmentMethod::zstd) {
    // No trace, or (never seen) one that the model does not give back: kept without it.
    const std::size_t bound = ZSTD_compressBound(job.bytes.size());
    job.payload.resize(etlz::kSegmentHeaderSize + bound);
    const int level = options.level == Level::max ? 19 : 9;
    const std::size_t n = ZSTD_compress(job.payload.data() + etlz::kSegmentHeaderSize, bound,
                                        job.bytes.data(), job.bytes.size(), level);
    if (ZSTD_isError(n) != 0) return problem(ErrorKind::io, name, ZSTD_getErrorName(n));
    job.payload.resize(etlz::kSegmentHeaderSize + n);
    header.stream_bytes = header.scratch_bytes = 0;
  }
  const Bytes stored = Bytes(job.payload).subspan(etlz::kSegmentHeaderSize);
  header.stored_size = stored.size();
  header.payload_hash = etlz::hash64(stored);
  etlz::write_segment_header(header, job.payload.data());
  if (trace) {
    for (const etlz::Part &part : job.parts) {
      if (!part.buffer) continue;
      const auto from = job.bytes.begin() + static_cast<std::ptrdiff_t>(part.at);
      job.entry.buffer_headers.insert(job.entry.buffer_headers.end(), from, from + format::kBufferHeaderSize);
    }
    job.entry.parts = std::move(job.parts);
  }
  return {};
}

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

// An input that somebody else owns.
class Borrowed final : public read::Input {
public:
  explicit Borrowed(const read::Input &input) : read::Input(input.name()), input_(input) {}
  [[nodiscard]] std::uint64_t size() const override { return input_.size(); }
  [[nodiscard]] Result<std::size_t> read_at(std::uint64_t offset, MutableBytes into) const override {
    return input_.read_at(offset, into);
  }

private:
  const read::Input &input_;
};

// Knows where in the archive it is.
class CountedSink {
public:
  explicit CountedSink(ByteSink &sink) : sink_(sink) {}
  [[nodiscard]] Result<void> append(Bytes bytes) {
    size_ += bytes.size();
    return sink_.write(bytes);
  }
  [[nodiscard]] std::uint64_t size() const { return size_; }

private:
  ByteSink &sink_;
  std::uint64_t size_ = 0;
};

// Reports bytes of several passes over a file as bytes of one.
class SharedProgress {
public:
  SharedProgress(const RunOptions &run, std::uint64_t total) : meter_(run.progress) {
    meter_.begin("packing", total);
  }
  void advance(std::uint64_t bytes, double share) {
    exact_ += static_cast<double>(bytes) * share;
    const auto now = static_cast<std::uint64_t>(exact_);
    meter_.advance(now - reported_);
    reported_ = now;
  }

private:
  ProgressMeter meter_;
  double exact_ = 0;
  std::uint64_t reported_ = 0;
};

constexpr double kCountingShare = 1.0 / 16;   // of the time that packing takes, for each of two passes
constexpr std::size_t kMostStacks = 2u << 20; // of a trace that is counted: some 100 bytes each

// What `info` and `stats` want to know; empty for a trace that does not read without complaint.
Result<std::vector<std::uint8_t>> count_trace(const read::Input &input, const ArchiveOptions &options,
                                              SharedProgress &progress) {
  const Result<Trace> trace = Trace::open(std::make_unique<Borrowed>(input), {false, true});
  if (!trace) return std::vector<std::uint8_t>();
  PassOptions graph(options.run);
  std::string phase;
  std::uint64_t before = 0;
  graph.progress = [&](const Progress &now) {
    if (phase != now.phase) phase = now.phase, before = 0;
    progress.advance(now.done - before, kCountingShare);
    before = now.done;
  };
  const Result<Statistics> statistics = collect_statistics(*trace, graph, kMostStacks);
  if (!statistics) {
    if (statistics.error().kind == ErrorKind::cancelled || statistics.error().kind == ErrorKind::io)
      return statistics.error();
    return std::vector<std::uint8_t>();
  }
  if (!statistics->skipped.empty() || statistics->warnings != trace->scan().warnings)
    return std::vector<std::uint8_t>();
  const std::string record = statistics_record(*statistics);
  return std::vector<std::uint8_t>(record.begin(), record.end());
}

// Whether segments and index that come to `normal` bytes are far below what zstd makes of the content: then
// no general compressor comes near, and what the slow coder would still save is not worth its time at
// default.
bool far_below_zstd(std::size_t normal, Bytes content) {
  std::vector<std::uint8_t> packed(ZSTD_compressBound(content.size()));
  const std::size_t n = ZSTD_compress(packed.data(), packed.size(), content.data(), content.size(), 9);
  return ZSTD_isError(n) == 0 && normal < n * 3 / 4; // of so little, xz and 7-Zip make 0.81 to 1.02 of it
}

// A trace as a small archive; empty if it is not to be one. `normal` is the size that it has with segments
// and index.
std::vector<std::uint8_t> small_archive(const PackJob &job, std::span<const etlz::Part> parts,
                                        std::size_t normal, const ArchiveOptions &options, PackCoder &coder) {
  std::vector<std::uint8_t> archive(etlz::kFileHeaderSize + kSmallHash);
  auto worth = [&](Bytes content) { return options.level == Level::max || !far_below_zstd(normal, content); };
  if (!coder.coder.encode_small(job.bytes, parts, small_content(options.level), worth, archive) ||
      archive.size() >= normal)
    return {};
  etlz::ContentHasher hasher;
  hasher.update(job.bytes);
  std::ranges::copy(hasher.finish(), archive.begin() + static_cast<std::ptrdiff_t>(etlz::kFileHeaderSize));
  const Bytes payload = Bytes(archive).subspan(etlz::kFileHeaderSize);
  etlz::FileHeader header;
  header.version = header.reader_version = etlz::kSmallVersion;
  header.small = true;
  header.original_size = job.bytes.size();
  header.payload_hash = etlz::hash64(payload);
  etlz::write_file_header(header, archive.data());
  if (options.verify) {
    coder.scratch.resize(job.bytes.size());
    if (!coder.coder.decode_small(payload.subspan(kSmallHash), coder.scratch, kMostSmallFile) ||
        coder.scratch != job.bytes)
      archive.clear(); // never seen; segments are checked, too
  }
  return archive;
}

// Packs all of it as a small archive, if that is smaller. False: it is to be packed as ever.
Result<bool> pack_small(const read::Input &input, CountedSink &out, const ArchiveOptions &options,
                        PackReport &result) {
  if (input.size() > kMostSmallFile || options.explain != nullptr) return false;
  Spares spares;
  SegmentSource source(input, true, etlz::kMaxSegment, spares);
  PackJob job;
  const Result<bool> next = source.next(job);
  if (!next) return next.error();
  if (!*next || job.bytes.size() != input.size()) return false;
  std::uint64_t content = 0;
  for (const etlz::Part &part : job.parts) {
    const std::uint64_t valid =
        part.buffer ? format::load_buffer_header(job.bytes.data() + part.at).valid_bytes() : part.size;
    content += std::min<std::uint64_t>(valid, SegmentSource::decoded_size(part, job.bytes));
  }
  if (content > small_content(options.level)) return false;
  // What the model makes of it, with everything around it.
  Pool<PackCoder> pool;
  const std::vector<etlz::Part> parts = job.parts;
  if (Result<void> r = encode_segment(job, true, options, pool, input.name()); !r) return r.error();
  std::vector<std::uint8_t> index_bytes;
  etlz::IndexWriter index;
  index.add(job.entry);
  index.finish({}, index_bytes);
  const std::size_t normal =
      etlz::kFileHeaderSize + job.payload.size() + index_bytes.size() + etlz::kFooterSize;
  const std::vector<std::uint8_t> small = small_archive(job, parts, normal, options, *pool.take());
  if (small.empty()) return false;
  if (Result<void> r = out.append(small); !r) return r.error();
  result.events = job.entry.facts.events;
  result.buffers = job.entry.facts.buffers;
  result.decoded = job.decoded;
  result.segments = 1;
  result.archived = out.size();
  SharedProgress(options.run, input.size()).advance(input.size(), 1);
  return true;
}

} // namespace

Result<PackReport> pack_file(const read::Input &input, ByteSink &sink, const ArchiveOptions &given) {
  ArchiveOptions options = given;
  if (options.level == Level::fast) options.level = Level::normal;
  const Result<bool> looks = looks_like_trace(input);
  if (!looks) return looks.error();
  PackReport result;
  result.is_trace = *looks;
  CountedSink out(sink);
  result.original = input.size();

  if (result.is_trace) {
    const Result<bool> small = pack_small(input, out, options, result);
    if (!small) return small.error();
    if (*small) return result;
  }

  etlz::FileHeader header;
  header.trace = result.is_trace;
  header.original_size = input.size();
  std::uint8_t fixed[std::max(etlz::kFileHeaderSize, etlz::kFooterSize)];
  etlz::write_file_header(header, fixed);
  if (Result<void> r = out.append(Bytes(fixed, etlz::kFileHeaderSize)); !r) return r.error();

  SharedProgress progress(options.run, input.size());
  std::vector<std::uint8_t> facts;
  if (result.is_trace && input.size() >= options.count_from) {
    Result<std::vector<std::uint8_t>> counted = count_trace(input, options, progress);
    if (!counted) return counted.error();
    facts = *std::move(counted);
  }
  const double share = facts.empty() ? 1 : 1 - 2 * kCountingShare;

  const std::size_t target = result.is_trace ? segment_target(options.level) : kPlainSegment;
  Spares spares;
  SegmentSource source(input, result.is_trace, target, spares);
  Pool<PackCoder> pool;
  etlz::ContentHasher hasher;
  etlz::IndexWriter index;

  Steps<PackJob> steps;
  steps.next = [&](PackJob &job) { return source.next(job); };
  steps.work = [&](PackJob &job) {
    return encode_segment(job, result.is_trace, options, pool, input.name());
  };
  steps.merge = [&](PackJob &job) -> Result<void> {
    hasher.update(job.bytes);
    if (Result<void> r = out.append(job.payload); !r) return r.error();
    result.events += job.entry.facts.events;
    result.buffers += job.entry.facts.buffers;
    result.decoded += job.decoded;
    if (options.explain != nullptr) add_explain(*options.explain, job.explain);
    index.add(job.entry);
    ++result.segments;
    progress.advance(job.bytes.size(), share);
    spares.give(std::move(job.bytes));
    return {};
  };
  const unsigned threads = threads_of(options.run.threads);
  const std::uint64_t each = std::uint64_t{target} * kMemoryFactor;
  const auto in_flight =
      static_cast<std::size_t>(std::clamp<std::uint64_t>(options.run.memory / each, 1, threads + 2));
  std::deque<PackJob> jobs(in_flight + 1);
  if (Result<void> done = run_steps(steps, jobs, {options.run.threads, options.run.stop}); !done)
    return in_file(std::move(done).error(), input.name());

  etlz::Footer footer;
  footer.index_at = out.size();
  footer.original_size = input.size();
  footer.content = hasher.finish();
  std::vector<std::uint8_t> index_bytes;
  index.finish(facts, index_bytes);
  footer.index_size = index_bytes.size();
  if (Result<void> r = out.append(index_bytes); !r) return r.error();
  etlz::write_footer(footer, fixed);
  if (Result<void> r = out.append(Bytes(fixed, etlz::kFooterSize)); !r) return r.error();
  result.archived = out.size();
  return result;
}

} // namespace etwrelog::pipeline
