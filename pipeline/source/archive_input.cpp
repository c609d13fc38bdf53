// Archives as inputs: the original at any offset, segments decoded as they are needed.
#include "source/archive_input.hpp"

#include "base/errors.hpp"
#include "etlz/small/small.hpp"
#include "etwrelog/format.hpp"
#include "source/indexed_input.hpp"
#include "source/segment_reader.hpp"

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <mutex>

#include <fmt/format.h>

namespace etwrelog::pipeline {

namespace {

bool begins(const read::Input &input, bool (*as)(Bytes)) {
  std::uint8_t first[8];
  const Result<std::size_t> got = input.read_at(0, first);
  return got && *got == sizeof first && as(Bytes(first));
}

} // namespace

bool is_archive(const read::Input &input) {
  return begins(input, etlz::is_archive);
}

bool is_part(const read::Input &input) {
  return begins(input, etlz::is_part);
}

namespace {

// What its footer would say if a small archive had one. The index of no size is behind its end.
Result<etlz::Footer> read_small_footer(const read::Input &archive, const etlz::FileHeader &header) {
  if (archive.size() < etlz::kFileHeaderSize + kSmallHash || header.original_size > etlz::kMaxSegment ||
      archive.size() > etlz::kFileHeaderSize + 2 * etlz::kMostSmallContent)
    return damaged(archive.name(), "small archive: impossible size", archive.size());
  ETWRELOG_TRY_LET(hash, read_exactly(archive, etlz::kFileHeaderSize, kSmallHash));
  etlz::Footer footer;
  footer.index_at = archive.size();
  footer.original_size = header.original_size;
  std::ranges::copy(hash, footer.content.begin());
  return footer;
}

} // namespace

std::optional<etlz::FileHeader> read_file_header(const read::Input &archive) {
  std::array<std::uint8_t, etlz::kFileHeaderSize> first{};
  const Result<std::size_t> got = archive.read_at(0, first);
  if (!got || *got != first.size()) return std::nullopt;
  const Result<etlz::FileHeader> header = etlz::read_file_header(first);
  return header ? std::optional(*header) : std::nullopt;
}

bool is_wrapped(const read::Input &archive) {
  const std::optional<etlz::FileHeader> header = read_file_header(archive);
  return header && header->wrapped;
}

namespace {

// Part of an input.
class Slice final : public read::Input {
public:
  Slice(read::InputName name, std::shared_ptr<const read::Input> whole, std::uint64_t at, std::uint64_t size)
      : read::Input(std::move(name)), whole_(std::move(whole)), at_(at), size_(size) {}

  [[nodiscard]] std::uint64_t size() const override { return size_; }
  [[nodiscard]] Result<std::size_t> read_at(std::uint64_t offset, MutableBytes into) const override {
    if (offset >= size_) return std::size_t{0};
    const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(into.size(), size_ - offset));
    return whole_->read_at(at_ + offset, into.first(most));
  }

private:
  std::shared_ptr<const read::Input> whole_;
  std::uint64_t at_, size_;
};

std::unique_ptr<read::Input> slice_of(std::shared_ptr<const read::Input> archive, const WrapperIndex &wrapper,
                                      std::size_t number) {
  std::uint64_t at = etlz::kFileHeaderSize;
  for (std::size_t i = 0; i < number; ++i)
    at += wrapper.traces[i].archive_size;
  const etlz::WrappedTrace &trace = wrapper.traces[number];
  read::InputName name(archive->file(), trace.name);
  return std::make_unique<Slice>(std::move(name), std::move(archive), at, trace.archive_size);
}

} // namespace

std::unique_ptr<read::Input> inner_archive(const read::Input &archive, const WrapperIndex &wrapper,
                                           std::size_t number) {
  return slice_of(std::shared_ptr<const read::Input>(std::shared_ptr<void>(), &archive), wrapper, number);
}

Result<WrapperIndex> read_wrapper_index(const read::Input &archive) {
  WrapperIndex wrapper;
  ETWRELOG_TRY_LET(footer, read_archive_footer(archive));
  wrapper.footer = footer;
  const std::uint64_t begin = footer.index_at, end = begin + footer.index_size;
  auto bad = [&](const char *what) { return damaged(archive.name(), what, begin); };
  if (footer.index_size < etlz::kWrapperHeadSize) return bad("head of the wrapper: impossible size");
  ETWRELOG_TRY_LET(fixed, read_exactly(archive, begin, etlz::kWrapperHeadSize));
  const Result<etlz::WrapperHead> head = etlz::read_wrapper_head(fixed);
  if (!head) return damaged(archive.name(), head.error(), begin);
  if (head->list_size > footer.index_size - etlz::kWrapperHeadSize)
    return bad("head of the wrapper: impossible size");
  ETWRELOG_TRY_LET(list, read_exactly(archive, begin + etlz::kWrapperHeadSize, head->list_size));
  Result<std::vector<etlz::WrappedTrace>> traces = etlz::read_wrapper_list(*head, list);
  if (!traces) return damaged(archive.name(), traces.error(), begin);
  std::uint64_t at = etlz::kFileHeaderSize;
  for (const etlz::WrappedTrace &trace : *traces) {
    if (trace.archive_size > begin - at) return bad("list of the wrapped traces: contradicts the archive");
    at += trace.archive_size;
  }
  if (at != begin) return bad("list of the wrapped traces: contradicts the archive");
  wrapper.traces = *std::move(traces);
  wrapper.recipe_at = begin + etlz::kWrapperHeadSize + head->list_size;
  wrapper.recipe_end = end;
  // Archives of traces alone: nothing is wrapped twice.
  for (std::size_t i = 0; i < wrapper.traces.size(); ++i) {
    const std::unique_ptr<read::Input> inner = inner_archive(archive, wrapper, i);
    ETWRELOG_TRY_LET(inside, read_archive_footer(*inner));
    if (is_wrapped(*inner) || inside.original_size != wrapper.traces[i].original_size)
      return bad("list of the wrapped traces: contradicts the archive");
  }
  return wrapper;
}

Result<etlz::Footer> read_archive_footer(const read::Input &archive) {
  const std::uint64_t size = archive.size();
  Result<std::vector<std::uint8_t>> bytes =
      read_exactly(archive, 0, std::min<std::uint64_t>(size, etlz::kFileHeaderSize));
  if (!bytes) return bytes.error();
  const Result<etlz::FileHeader> header = etlz::read_file_header(*bytes);
  if (!header) return damaged(archive.name(), header.error(), 0);
  if (header->small) return read_small_footer(archive, *header);
  if (size < etlz::kFileHeaderSize + etlz::kFooterSize)
    return damaged(archive.name(), "the archive was cut", size);
  const std::uint64_t footer_at = size - etlz::kFooterSize;
  bytes = read_exactly(archive, footer_at, etlz::kFooterSize);
  if (!bytes) return bytes.error();
  Result<etlz::Footer> footer = etlz::read_footer(*bytes);
  if (!footer) return damaged(archive.name(), footer.error(), footer_at);
  if (footer->index_at > footer_at || footer->index_size != footer_at - footer->index_at ||
      footer->original_size != header->original_size)
    return damaged(archive.name(), "end of archive: contradicts the rest", footer_at);
  return footer;
}

Result<ArchiveIndex> read_archive_index(const read::Input &archive, std::uint64_t memory_limit) {
  if (is_wrapped(archive))
    return problem(ErrorKind::unsupported, archive.name(), "an index of a wrapped trace around its own");
  ArchiveIndex index;
  ETWRELOG_TRY_LET(footer, read_archive_footer(archive));
  index.footer = footer;
  if (footer.index_size == 0) { // only a small archive has none
    const std::optional<etlz::FileHeader> header = read_file_header(archive);
    if (!header || !header->small)
      return damaged(archive.name(), "index: checksum mismatch", footer.index_at);
    index.segments.push_back(small_entry(*header, archive.size()));
    return index;
  }
  if (footer.index_size > memory_limit) // stored, it is smaller than what it becomes
    return base::over_limit("the index takes more memory than allowed")
        .in(archive.name())
        .at(footer.index_at)
        .about(Option::memory)
        .expected(fmt::format("more than {} bytes of memory", footer.index_size))
        .found(std::to_string(memory_limit))
        .advise(Advice::raise_memory);
  ETWRELOG_TRY_LET(bytes, read_exactly(archive, footer.index_at, footer.index_size));
  const std::uint64_t segments = footer.index_at / etlz::kSegmentHeaderSize; // each has a header there
  Result<etlz::Index> read = etlz::read_index(bytes, {memory_limit, segments, footer.original_size});
  if (!read) return damaged(archive.name(), read.error(), footer.index_at); // segments are found without it
  // Segments tile both the archive and the original.
  std::uint64_t at = etlz::kFileHeaderSize, original = 0;
  for (const etlz::IndexEntry &e : read->segments) {
    if (e.header.original_at != original || e.header.original_size > etlz::kMaxSegment ||
        e.header.stored_size > footer.index_at - at)
      return damaged(archive.name(), "index: contradicts itself", footer.index_at);
    at += etlz::kSegmentHeaderSize + e.header.stored_size;
    original += e.header.original_size;
  }
  if (at != footer.index_at || original != footer.original_size)
    return damaged(archive.name(), "index: contradicts itself", at);
  index.segments = std::move(read->segments);
  index.facts = std::move(read->facts);
  return index;
}

namespace {

class ArchiveInput final : public IndexedInput {
public:
  // At least the `window` segments asked for last are kept, and others as long as all come to no more than
  // `budget` bytes.
  ArchiveInput(std::unique_ptr<read::Input> archive, ArchiveIndex index, std::size_t window,
               std::uint64_t budget)
      : IndexedInput(archive->name()), archive_(std::move(archive)), index_(std::move(index)),
        window_(window), budget_(budget), skipped_(index_.segments.size()) {
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
  [[nodiscard]] std::uint32_t rules() const override { return index_.footer.rules; }

  [[nodiscard]] std::vector<SummarizedSegment> summarized() const override {
    std::vector<SummarizedSegment> all;
    for (const etlz::IndexEntry &e : index_.segments) {
      if (!e.summary.complete) continue;
      SummarizedSegment &o = all.emplace_back();
      o.begin = e.header.original_at;
      o.end = o.begin + e.header.original_size;
      o.summary = &e.summary;
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
        ETWRELOG_TRY(fill(*kept, entry));
      }
      const std::uint64_t within = at - entry.header.original_at;
      const std::size_t n = std::min<std::size_t>(
          into.size() - done, static_cast<std::size_t>(entry.header.original_size - within));
      std::memcpy(into.data() + done, kept->bytes.data() + within, n);
      done += n;
    }
    return done;
  }

  void skip(std::span<const SummarizedSegment> segments) const override {
    std::size_t next = 0;
    for (std::size_t i = 0; i < index_.segments.size(); ++i) {
      const bool skipped =
          next < segments.size() && segments[next].begin == index_.segments[i].header.original_at;
      next += skipped ? 1 : 0;
      skipped_[i].store(skipped, std::memory_order_relaxed);
    }
  }

  [[nodiscard]] Result<std::vector<Skipped>> lost(const std::stop_token &stop) const override {
    std::vector<Skipped> all;
    for (const etlz::IndexEntry &entry : index_.segments) {
      if (stop.stop_requested()) return problem(ErrorKind::cancelled, name(), "stopped on request");
      const Result<void> whole = check_stored_segment(*archive_, entry);
      if (whole) continue;
      if (whole.error().kind != ErrorKind::corrupt) return whole.error();
      all.push_back({0, entry.header.original_at, entry.header.original_size,
                     fmt::format("the segment at 0x{:x} of the archive is damaged", entry.archive_at)});
    }
    return all;
  }

private:
  // A decoded segment. Whoever lets go of it last hands its memory on: only that release comes after all that
  // others read of it.
  struct Kept {
    explicit Kept(BytePool &pool) : free(pool) {}
    ~Kept() {
      try {
        free.give(std::move(bytes));
      } catch (const std::bad_alloc &) {
        // Nothing is handed on then.
      }
    }
    Kept(const Kept &) = delete;
    Kept &operator=(const Kept &) = delete;

    BytePool &free;
    std::mutex mutex;
    base::Buffer bytes;
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
  Result<void> fill(Kept &kept, const etlz::IndexEntry &entry) const {
    if (!kept.bytes.empty()) return {};
    ETWRELOG_TRY_LET(stored, read_exactly(*archive_, payload_at(entry), entry.header.stored_size));
    base::Buffer bytes = free_.take(entry.header.original_size);
    Result<void> decoded = decode_segment(entry, stored, bytes, pool_, name());
    if (!decoded) {
      // Of what lost() names. Nothing can be read of a trace without its beginning.
      if (entry.header.original_at != 0 && etlz::hash64(stored) != entry.header.payload_hash)
        decoded.error().advice = Advice::salvage;
      return decoded;
    }
    kept.bytes = std::move(bytes);
    return {};
  }
  // One of the next segments that nobody works on. An error is for whoever comes to need it.
  void decode_ahead(std::size_t number) const {
    for (std::size_t next = number + 1; next < std::min(number + window_, index_.segments.size()); ++next) {
      if (skipped_[next].load(std::memory_order_relaxed)) continue;
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
      kept = std::make_shared<Kept>(free_);
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
      const auto victim = kept_.find(by_use[window_].second);
      kept_bytes_ -= index_.segments[victim->first].header.original_size;
      kept_.erase(victim);
    }
    return result;
  }

  std::unique_ptr<read::Input> archive_;
  ArchiveIndex index_;
  std::size_t window_;
  std::uint64_t budget_;
  mutable std::vector<std::atomic<bool>> skipped_; // segments that nobody is expected to ask for
  std::vector<Header> headers_;
  mutable CoderPool pool_;
  mutable BytePool free_; // outlives what is kept
  mutable std::mutex mutex_;
  mutable std::map<std::size_t, std::shared_ptr<Kept>> kept_;
  mutable std::uint64_t clock_ = 0, kept_bytes_ = 0;
};

// `share`: how many share the memory.
Result<std::unique_ptr<read::Input>> open_one(std::unique_ptr<read::Input> archive,
                                              std::uint64_t memory_limit, std::size_t share = 1) {
  ETWRELOG_TRY_LET(index, read_archive_index(*archive, memory_limit));
  std::uint64_t largest = 1;
  const etlz::IndexEntry *hardest = nullptr; // its memory does for all others
  for (const etlz::IndexEntry &e : index.segments) {
    if (decode_memory(e.header) < largest) continue;
    largest = decode_memory(e.header);
    hardest = &e;
  }
  if (hardest != nullptr) ETWRELOG_TRY(check_decode_memory(hardest->header, memory_limit, archive->name()));
  // Half of the memory for decoding, a quarter for what is kept: who reads the trace needs some, too.
  const std::uint64_t decoding = memory_limit / 2 / share, kept = memory_limit / 4 / share;
  const auto window = static_cast<std::size_t>(std::clamp<std::uint64_t>(decoding / largest, 1, 8));
  return std::unique_ptr<read::Input>(
      std::make_unique<ArchiveInput>(std::move(archive), std::move(index), window, kept));
}

} // namespace

Result<std::unique_ptr<read::Input>> open_archive(std::unique_ptr<read::Input> archive,
                                                  std::uint64_t memory_limit) {
  ETWRELOG_TRY_LET(traces, open_archives(std::move(archive), memory_limit));
  if (traces.size() != 1)
    return base::unsupported(fmt::format("the archive holds {} traces, where one is taken", traces.size()))
        .in(traces.front()->file())
        .advise(Advice::unpack);
  return std::move(traces.front());
}

Result<std::vector<std::unique_ptr<read::Input>>> open_archives(std::unique_ptr<read::Input> archive,
                                                                std::uint64_t memory_limit) {
  std::vector<std::unique_ptr<read::Input>> traces;
  if (!is_wrapped(*archive)) {
    ETWRELOG_TRY_LET(trace, open_one(std::move(archive), memory_limit));
    traces.push_back(std::move(trace));
    return traces;
  }
  ETWRELOG_TRY_LET(wrapper, read_wrapper_index(*archive));
  const std::shared_ptr<const read::Input> shared = std::move(archive);
  for (std::size_t i = 0; i < wrapper.traces.size(); ++i) {
    ETWRELOG_TRY_LET(trace, open_one(slice_of(shared, wrapper, i), memory_limit, wrapper.traces.size()));
    traces.push_back(std::move(trace));
  }
  return traces;
}

} // namespace etwrelog::pipeline
