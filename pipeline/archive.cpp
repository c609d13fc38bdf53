#include "pipeline/archive.hpp"

#include "etwrelog/format.hpp"
#include "pipeline/ordered.hpp"
#include "pipeline/outline.hpp"
#include "pipeline/statistics.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>

#include <oneapi/tbb/concurrent_queue.h>
#include <oneapi/tbb/info.h>
#include <zstd.h>

namespace etwrelog::pipeline {
namespace {

using etlz::SegmentHeader;
using etlz::SegmentMethod;

// Decoded bytes of a segment. Larger ones compress better, smaller ones start more threads and seek finer.
std::size_t segment_target(Level level) {
  return level == Level::max ? std::size_t{64} << 20 : std::size_t{16} << 20;
}

// What coding a segment takes, as a multiple of its decoded size: the bytes twice, the model's history and
// streams.
constexpr std::uint64_t kMemoryFactor = 7;

constexpr std::size_t kPlainSegment = 8u << 20;

Error problem(ErrorKind kind, const std::string &file, std::string what) {
  Error e;
  e.kind = kind;
  e.file = file;
  e.what = std::move(what);
  return e;
}

constexpr const char *kSalvageAdvice = "unpack --salvage gives back what is whole";

Error damaged(const std::string &archive, const char *what, std::uint64_t at) {
  Error e = problem(ErrorKind::corrupt, archive, what);
  e.offset = at;
  e.advice = kSalvageAdvice;
  return e;
}

Error in_file(Error e, const std::string &file, std::optional<std::uint64_t> offset = std::nullopt) {
  if (e.file.empty()) e.file = file;
  if (!e.offset) e.offset = offset;
  return e;
}

// Coders are expensive to make: one for each thread that needs one at a time, with memory to decode into.
struct Coder {
  etlz::SegmentCoder coder;
  std::vector<std::uint8_t> scratch;
  Outliner outliner;
};
class CoderPool {
public:
  std::unique_ptr<Coder> take() {
    std::unique_ptr<Coder> coder;
    if (!free_.try_pop(coder)) coder = std::make_unique<Coder>();
    return coder;
  }
  void give(std::unique_ptr<Coder> coder) { free_.push(std::move(coder)); }

private:
  oneapi::tbb::concurrent_queue<std::unique_ptr<Coder>> free_;
};

// Memory of finished segments for the next ones: fresh pages cost more than what is done in them.
class Spares {
public:
  std::vector<std::uint8_t> take() {
    std::vector<std::uint8_t> bytes;
    static_cast<void>(free_.try_pop(bytes));
    return bytes;
  }
  void give(std::vector<std::uint8_t> bytes) { free_.push(std::move(bytes)); }

private:
  oneapi::tbb::concurrent_queue<std::vector<std::uint8_t>> free_;
};

struct PackJob : OrderedJob {
  std::uint64_t at = 0;
  std::vector<std::uint8_t> bytes, payload;
  std::vector<etlz::Part> parts;
  etlz::IndexEntry entry;
  std::vector<etlz::ColumnCost> explain;
  std::uint64_t decoded = 0;
};

// Cuts the input into segments; carries over what was read too much.
class SegmentSource {
public:
  SegmentSource(const read::Input &input, bool trace, std::size_t target, Spares &spares)
      : input_(input), trace_(trace), target_(target), spares_(spares) {}

  Result<std::shared_ptr<PackJob>> next() {
    if (at_ >= input_.size()) return std::shared_ptr<PackJob>();
    auto job = std::make_shared<PackJob>();
    job->at = at_;
    std::vector<std::uint8_t> &bytes = job->bytes;
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
        covered = etlz::split_parts(Bytes(bytes).first(have), final, target, job->parts);
      } else {
        covered = std::min(have, target);
        job->parts = {{false, 0, covered}};
      }
      job->decoded = 0;
      for (const etlz::Part &part : job->parts)
        job->decoded += decoded_size(part, bytes);
      // Enough for a segment, or nothing more to come: otherwise read on.
      if (covered > 0 && (final || job->decoded >= target || have >= target)) {
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
        return job;
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

void outline_segment(PackJob &job, Coder &coder) {
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

std::optional<Error> encode_segment(PackJob &job, bool trace, const ArchiveOptions &options, CoderPool &pool,
                                    const std::string &name) {
  SegmentHeader &header = job.entry.header;
  header.original_at = job.at;
  header.original_size = job.bytes.size();
  header.content_hash = etlz::hash64(job.bytes);
  job.payload.resize(etlz::kSegmentHeaderSize);
  if (trace) {
    std::unique_ptr<Coder> coder = pool.take();
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
    const int level = options.level == Level::fast ? 3 : options.level == Level::normal ? 9 : 19;
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
  return std::nullopt;
}

void add_explain(std::vector<etlz::ColumnCost> &sum, const std::vector<etlz::ColumnCost> &more) {
  for (const etlz::ColumnCost &m : more) {
    const auto same = std::find_if(sum.begin(), sum.end(), [&m](const etlz::ColumnCost &s) {
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

// Reports bytes of several passes over a file as bytes of one.
class SharedProgress final : public Progress {
public:
  SharedProgress(const ArchiveOptions &options, double share) : report_(options.progress), share_(share) {}
  void begin(std::string_view, std::uint64_t) override {}
  void advance(std::uint64_t bytes, std::uint64_t) override {
    exact_ += static_cast<double>(bytes) * share_;
    const auto now = static_cast<std::uint64_t>(exact_);
    if (report_) report_(now - reported_);
    reported_ = now;
  }

private:
  const std::function<void(std::uint64_t)> &report_;
  double share_, exact_ = 0;
  std::uint64_t reported_ = 0;
};

constexpr double kCountingShare = 1.0 / 16;   // of the time that packing takes, for each of two passes
constexpr std::size_t kMostStacks = 2u << 20; // of a trace that is counted: some 100 bytes each

// What `info` and `stats` want to know; empty for a trace that does not read without complaint.
Result<std::vector<std::uint8_t>> count_trace(const read::Input &input, const ArchiveOptions &options) {
  const Result<Trace> trace = Trace::open(std::make_unique<Borrowed>(input), {false, true});
  if (!trace) return std::vector<std::uint8_t>();
  SharedProgress progress(options, kCountingShare);
  GraphOptions graph;
  graph.threads = options.threads;
  graph.in_flight_bytes = std::min(graph.in_flight_bytes, options.memory_limit / 4);
  graph.progress = &progress;
  graph.cancel = options.cancel;
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

unsigned thread_count(const ArchiveOptions &options) {
  return options.threads != 0 ? options.threads
                              : static_cast<unsigned>(oneapi::tbb::info::default_concurrency());
}

} // namespace

Result<PackResult> pack_file(const read::Input &input, write::OutputFile &out,
                             const ArchiveOptions &options) {
  const Result<bool> looks = looks_like_trace(input);
  if (!looks) return looks.error();
  PackResult result;
  result.trace = *looks;
  result.original = input.size();

  etlz::FileHeader header;
  header.trace = result.trace;
  header.original_size = input.size();
  std::uint8_t fixed[std::max(etlz::kFileHeaderSize, etlz::kFooterSize)];
  etlz::write_file_header(header, fixed);
  if (Result<void> r = out.append(Bytes(fixed, etlz::kFileHeaderSize)); !r) return r.error();

  std::vector<std::uint8_t> facts;
  if (result.trace && options.level != Level::fast && input.size() >= options.count_from) {
    Result<std::vector<std::uint8_t>> counted = count_trace(input, options);
    if (!counted) return counted.error();
    facts = *std::move(counted);
  }
  SharedProgress progress(options, facts.empty() ? 1 : 1 - 2 * kCountingShare);

  const std::size_t target = result.trace ? segment_target(options.level) : kPlainSegment;
  Spares spares;
  SegmentSource source(input, result.trace, target, spares);
  CoderPool pool;
  etlz::ContentHasher hasher;
  etlz::IndexWriter index;

  OrderedSteps steps;
  steps.next = [&]() -> std::shared_ptr<OrderedJob> {
    Result<std::shared_ptr<PackJob>> job = source.next();
    if (job) return *job;
    auto failed = std::make_shared<PackJob>();
    failed->error = job.error();
    return failed;
  };
  steps.work = [&](OrderedJob &base) {
    return encode_segment(dynamic_cast<PackJob &>(base), result.trace, options, pool, input.name());
  };
  steps.sink = [&](OrderedJob &base) -> std::optional<Error> {
    auto &job = dynamic_cast<PackJob &>(base);
    hasher.update(job.bytes);
    if (Result<void> r = out.append(job.payload); !r) return r.error();
    result.events += job.entry.facts.events;
    result.buffers += job.entry.facts.buffers;
    result.decoded += job.decoded;
    if (options.explain != nullptr) add_explain(*options.explain, job.explain);
    index.add(job.entry);
    ++result.segments;
    progress.advance(job.bytes.size(), 0);
    spares.give(std::move(job.bytes));
    return std::nullopt;
  };
  const unsigned threads = thread_count(options);
  const std::uint64_t each = std::uint64_t{target} * kMemoryFactor;
  const auto in_flight =
      static_cast<std::size_t>(std::clamp<std::uint64_t>(options.memory_limit / each, 1, threads + 2));
  if (std::optional<Error> error = run_ordered(steps, threads, in_flight, options.cancel))
    return in_file(*std::move(error), input.name());

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
  result.content = footer.content;
  return result;
}

// --- Reading
// -------------------------------------------------------------------------------------------------

namespace {

Result<std::vector<std::uint8_t>> read_exactly(const read::Input &input, std::uint64_t at,
                                               std::uint64_t size) {
  std::vector<std::uint8_t> bytes(size);
  const Result<std::size_t> got = input.read_at(at, bytes);
  if (!got) return got.error();
  if (*got == size) return bytes;
  return damaged(input.name(), "the archive ends here", at + *got);
}

struct UnpackJob : OrderedJob {
  etlz::IndexEntry entry;
  std::vector<std::uint8_t> stored, bytes;
};

// Checks and decodes one segment.
std::optional<Error> decode_segment(const etlz::IndexEntry &entry, Bytes stored, MutableBytes bytes,
                                    CoderPool &pool, const std::string &name) {
  auto bad = [&](const char *what) { return damaged(name, what, entry.archive_at); };
  if (etlz::hash64(stored) != entry.header.payload_hash) return bad("segment: checksum mismatch");
  switch (entry.header.method) {
  case SegmentMethod::stored:
    if (stored.size() != bytes.size()) return bad("segment: wrong size");
    std::copy(stored.begin(), stored.end(), bytes.begin());
    break;
  case SegmentMethod::zstd:
    if (ZSTD_decompress(bytes.data(), bytes.size(), stored.data(), stored.size()) != bytes.size())
      return bad("segment: does not decode");
    break;
  default: {
    std::unique_ptr<Coder> coder = pool.take();
    const bool good =
        coder->coder.decode(stored, bytes, entry.header.stream_bytes, entry.header.scratch_bytes);
    pool.give(std::move(coder));
    if (!good) return bad("segment: does not decode");
  }
  }
  if (etlz::hash64(bytes) != entry.header.content_hash) return bad("segment: decodes to something else");
  return std::nullopt;
}

std::uint64_t decode_memory(const SegmentHeader &h) {
  return h.original_size * 3 + h.stream_bytes * 2 + h.scratch_bytes * 2 + h.stored_size;
}

std::optional<Error> over_limit(const SegmentHeader &h, std::uint64_t limit, const std::string &name) {
  if (decode_memory(h) <= limit) return std::nullopt;
  Error e = problem(ErrorKind::unsupported, name, "decoding a segment takes more memory than allowed");
  e.expected = std::to_string(limit) + " bytes";
  e.found = std::to_string(decode_memory(h));
  e.advice = "raise --memory-limit";
  return e;
}

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

Result<UnpackResult> salvage(const read::Input &archive, write::OutputFile *out,
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

bool is_archive(const read::Input &input) {
  std::uint8_t first[8];
  const Result<std::size_t> got = input.read_at(0, first);
  return got && *got == sizeof first && etlz::is_archive(first);
}

Result<etlz::Footer> read_archive_footer(const read::Input &archive) {
  const std::uint64_t size = archive.size();
  Result<std::vector<std::uint8_t>> bytes =
      read_exactly(archive, 0, std::min<std::uint64_t>(size, etlz::kFileHeaderSize));
  if (!bytes) return bytes.error();
  const Result<etlz::FileHeader> header = etlz::read_file_header(*bytes);
  if (!header) return in_file(header.error(), archive.name(), 0);
  if (size < etlz::kFileHeaderSize + etlz::kFooterSize)
    return damaged(archive.name(), "the archive was cut", size);
  const std::uint64_t footer_at = size - etlz::kFooterSize;
  bytes = read_exactly(archive, footer_at, etlz::kFooterSize);
  if (!bytes) return bytes.error();
  Result<etlz::Footer> footer = etlz::read_footer(*bytes);
  if (!footer) {
    Error e = in_file(footer.error(), archive.name(), footer_at);
    e.advice = kSalvageAdvice;
    return e;
  }
  if (footer->index_at > footer_at || footer->index_size != footer_at - footer->index_at ||
      footer->original_size != header->original_size)
    return damaged(archive.name(), "end of archive: contradicts the rest", footer_at);
  return footer;
}

Result<ArchiveIndex> read_archive_index(const read::Input &archive, std::uint64_t memory_limit) {
  ArchiveIndex index;
  const Result<etlz::Footer> footer = read_archive_footer(archive);
  if (!footer) return footer.error();
  index.footer = *footer;
  const Result<std::vector<std::uint8_t>> bytes = read_exactly(archive, footer->index_at, footer->index_size);
  if (!bytes) return bytes.error();
  Result<etlz::Index> read = etlz::read_index(*bytes, memory_limit);
  if (!read) return in_file(read.error(), archive.name(), footer->index_at);
  // Segments tile both the archive and the original.
  std::uint64_t at = etlz::kFileHeaderSize, original = 0;
  for (const etlz::IndexEntry &e : read->segments) {
    if (e.header.original_at != original || e.header.original_size > etlz::kMaxSegment ||
        e.header.stored_size > footer->index_at - at)
      return damaged(archive.name(), "index: contradicts itself", footer->index_at);
    at += etlz::kSegmentHeaderSize + e.header.stored_size;
    original += e.header.original_size;
  }
  if (at != footer->index_at || original != footer->original_size)
    return damaged(archive.name(), "index: contradicts itself", at);
  index.segments = std::move(read->segments);
  index.facts = std::move(read->facts);
  return index;
}

Result<UnpackResult> unpack_file(const read::Input &archive, write::OutputFile *out,
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
  const unsigned threads = thread_count(options);
  const auto in_flight =
      static_cast<std::size_t>(std::clamp<std::uint64_t>(options.memory_limit / largest, 1, threads + 2));
  if (std::optional<Error> error = run_ordered(steps, threads, in_flight, options.cancel))
    return in_file(*std::move(error), archive.name());
  if (hasher.finish() != index->footer.content)
    return problem(ErrorKind::corrupt, archive.name(), "the content hash of the whole does not match");
  result.hash_checked = true;
  return result;
}

// --- As an input
// ---------------------------------------------------------------------------------------------

namespace {

class ArchiveInput final : public read::Input {
public:
  // At least the `window` segments asked for last are kept, and others as long as all come to no more than
  // `budget` bytes.
  ArchiveInput(std::unique_ptr<read::Input> archive, ArchiveIndex index, std::size_t window,
               std::uint64_t budget)
      : read::Input(archive->name()), archive_(std::move(archive)), index_(std::move(index)), window_(window),
        budget_(budget), skipped_(index_.segments.size()) {
    for (const etlz::IndexEntry &e : index_.segments) {
      const std::uint8_t *header = e.buffer_headers.data();
      for (const etlz::Part &part : e.parts) {
        if (!part.buffer) continue;
        headers_.push_back({e.header.original_at + part.at, header});
        header += format::kBufferHeaderSize;
      }
    }
  }

  [[nodiscard]] std::uint64_t size() const override { return index_.footer.original_size; }

  [[nodiscard]] Bytes facts() const override { return index_.facts; }

  [[nodiscard]] std::vector<read::Outlined> outlined() const override {
    std::vector<read::Outlined> all;
    for (const etlz::IndexEntry &e : index_.segments) {
      if (!e.outline.complete) continue;
      read::Outlined &o = all.emplace_back();
      o.begin = e.header.original_at;
      o.end = o.begin + e.header.original_size;
      o.outline = &e.outline;
      for (const etlz::Part &part : e.parts)
        if (part.buffer) o.buffers.emplace_back(o.begin + part.at, part.size);
    }
    return all;
  }

  [[nodiscard]] Result<std::size_t> read_at(std::uint64_t offset, MutableBytes into) const override {
    std::size_t done = 0;
    if (read_header(offset, into)) return into.size();
    while (done < into.size() && offset + done < size()) {
      const std::uint64_t at = offset + done;
      const auto after = std::upper_bound(
          index_.segments.begin(), index_.segments.end(), at,
          [](std::uint64_t value, const etlz::IndexEntry &e) { return value < e.header.original_at; });
      const auto number = static_cast<std::size_t>(after - index_.segments.begin()) - 1;
      const etlz::IndexEntry &entry = index_.segments[number];
      const std::shared_ptr<Kept> kept = slot(number);
      {
        // Several readers may want the same segment. One decodes it; the others see to the next ones before
        // they wait for it.
        std::unique_lock lock(kept->mutex, std::try_to_lock);
        if (!lock) {
          decode_ahead(number);
          lock.lock();
        }
        if (std::optional<Error> e = fill(*kept, entry)) return *e;
      }
      const std::uint64_t within = at - entry.header.original_at;
      const std::size_t n = std::min<std::size_t>(
          into.size() - done, static_cast<std::size_t>(entry.header.original_size - within));
      std::memcpy(into.data() + done, kept->bytes.data() + within, n);
      done += n;
    }
    return done;
  }

  void skip(std::uint64_t begin, std::uint64_t end) override {
    for (std::size_t i = 0; i < index_.segments.size(); ++i) {
      const SegmentHeader &h = index_.segments[i].header;
      if (h.original_at >= begin && h.original_at + h.original_size <= end) skipped_[i] = true;
    }
  }

private:
  struct Kept {
    std::mutex mutex;
    std::vector<std::uint8_t> bytes;
    std::uint64_t used = 0;
  };
  struct Header {
    std::uint64_t at;
    const std::uint8_t *bytes;
  };
  // Buffer headers stand in the index: a walk over them decodes nothing.
  bool read_header(std::uint64_t offset, MutableBytes into) const {
    if (into.size() > format::kBufferHeaderSize) return false;
    const auto after = std::upper_bound(headers_.begin(), headers_.end(), offset,
                                        [](std::uint64_t value, const Header &h) { return value < h.at; });
    if (after == headers_.begin()) return false;
    const Header &header = *(after - 1);
    const std::uint64_t within = offset - header.at;
    if (within + into.size() > format::kBufferHeaderSize) return false;
    if (!into.empty()) std::memcpy(into.data(), header.bytes + within, into.size());
    return true;
  }
  // Decodes a segment that is not there yet. Its mutex is held.
  std::optional<Error> fill(Kept &kept, const etlz::IndexEntry &entry) const {
    if (!kept.bytes.empty()) return std::nullopt;
    const Result<std::vector<std::uint8_t>> stored =
        read_exactly(*archive_, entry.archive_at + etlz::kSegmentHeaderSize, entry.header.stored_size);
    if (!stored) return stored.error();
    std::vector<std::uint8_t> bytes(entry.header.original_size);
    if (std::optional<Error> e = decode_segment(entry, *stored, bytes, pool_, name())) return e;
    kept.bytes = std::move(bytes);
    return std::nullopt;
  }
  // One of the next segments that nobody works on. An error is for whoever comes to need it.
  void decode_ahead(std::size_t number) const {
    for (std::size_t next = number + 1; next < std::min(number + window_, index_.segments.size()); ++next) {
      if (skipped_[next]) continue;
      const std::shared_ptr<Kept> kept = slot(next);
      const std::unique_lock lock(kept->mutex, std::try_to_lock);
      if (!lock || !kept->bytes.empty()) continue;
      static_cast<void>(fill(*kept, index_.segments[next]));
      return;
    }
  }
  std::shared_ptr<Kept> slot(std::size_t number) const {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<Kept> &kept = kept_[number];
    if (!kept) {
      kept = std::make_shared<Kept>();
      kept_bytes_ += index_.segments[number].header.original_size;
    }
    kept->used = ++clock_;
    const std::shared_ptr<Kept> result = kept;
    // Passes read from the first to the last, again and again: what was used long ago comes first in the next
    // one. So the latest goes that is not at work.
    while (kept_bytes_ > budget_ && kept_.size() > window_) {
      std::vector<std::pair<std::uint64_t, std::size_t>> by_use;
      for (const auto &[segment, k] : kept_)
        by_use.emplace_back(k->used, segment);
      std::ranges::sort(by_use, std::greater());
      const std::size_t victim = by_use[window_].second;
      kept_bytes_ -= index_.segments[victim].header.original_size;
      kept_.erase(victim);
    }
    return result;
  }

  std::unique_ptr<read::Input> archive_;
  ArchiveIndex index_;
  std::size_t window_;
  std::uint64_t budget_;
  std::vector<bool> skipped_; // segments that nobody will ask for
  std::vector<Header> headers_;
  mutable CoderPool pool_;
  mutable std::mutex mutex_;
  mutable std::map<std::size_t, std::shared_ptr<Kept>> kept_;
  mutable std::uint64_t clock_ = 0, kept_bytes_ = 0;
};

} // namespace

Result<std::unique_ptr<read::Input>> open_archive(std::unique_ptr<read::Input> archive,
                                                  std::uint64_t memory_limit) {
  Result<ArchiveIndex> index = read_archive_index(*archive, memory_limit);
  if (!index) return index.error();
  std::uint64_t largest = 1;
  for (const etlz::IndexEntry &e : index->segments) {
    if (std::optional<Error> error = over_limit(e.header, memory_limit, archive->name())) return *error;
    largest = std::max(largest, decode_memory(e.header));
  }
  // Half of the memory for what is kept, half for decoding.
  const auto window = static_cast<std::size_t>(std::clamp<std::uint64_t>(memory_limit / 2 / largest, 1, 8));
  return std::unique_ptr<read::Input>(
      std::make_unique<ArchiveInput>(std::move(archive), *std::move(index), window, memory_limit / 2));
}

} // namespace etwrelog::pipeline
