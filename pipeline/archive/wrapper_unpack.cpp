#include "archive/wrapper.hpp"

#include "base/errors.hpp"
#include "base/progress_meter.hpp"
#include "codec/correction_bytes.hpp"

#include <algorithm>

namespace etwrelog::pipeline {

using codec::take_number;
using codec::deflate::CorrectionsView;
using codec::deflate::Restorer;

namespace {

// The recipe, chunk by chunk.
class RecipeReader {
public:
  RecipeReader(const read::Input &archive, const WrapperIndex &wrapper)
      : archive_(archive), at_(wrapper.recipe_at), chunk_at_(at_), end_(wrapper.recipe_end) {}

  // The next chunk, if the last one is used up. Units do not cross chunks.
  [[nodiscard]] Result<void> reach() {
    if (!used_up()) return {};
    ETWRELOG_TRY_LET(more, load());
    if (!more || used_up()) return bad();
    return {};
  }
  // At the chunk that says something impossible.
  [[nodiscard]] Error bad() const { return bad("what the wrapper is made of does not fit the traces"); }
  // The same, of one that no writer leaves.
  [[nodiscard]] Error endless() const {
    return bad("making the wrapper again takes longer than any that is packed does");
  }
  [[nodiscard]] bool used_up() const { return view.empty() && kept.empty(); }
  [[nodiscard]] bool at_end() const { return used_up() && at_ == end_; }

  // False at the end. Compares the checksum; `decode` false for no more than that.
  [[nodiscard]] Result<bool> load(bool decode = true) {
    if (at_ == end_) return false;
    chunk_at_ = at_;
    if (end_ - at_ < etlz::kChunkHeadSize) return bad();
    ETWRELOG_TRY_LET(fixed, read_exactly(archive_, at_, etlz::kChunkHeadSize));
    const etlz::ChunkHead head = etlz::read_chunk_head(fixed.data());
    if (head.size > etlz::kMostChunk || head.size > end_ - at_ - etlz::kChunkHeadSize) return bad();
    ETWRELOG_TRY_LET(bytes, read_exactly(archive_, at_ + etlz::kChunkHeadSize, head.size));
    if (etlz::hash64(bytes) != head.hash) return bad("what the wrapper is made of: checksum mismatch");
    at_ += etlz::kChunkHeadSize + head.size;
    if (!decode) return true;
    std::array<Bytes, etlz::kRecipeStreams> streams;
    if (!coder_.unpack(bytes, streams)) return bad();
    view = {streams[0], streams[1], streams[2], streams[3]};
    kept = streams[4];
    return true;
  }

  CorrectionsView view;
  Bytes kept;

private:
  [[nodiscard]] Error bad(const char *what) const { return damaged(archive_.name(), what, chunk_at_); }

  const read::Input &archive_;
  std::uint64_t at_, chunk_at_, end_;
  etlz::ChunkCoder coder_;
};

// The traces in their order, one open at a time.
class TraceReader {
public:
  TraceReader(const read::Input &archive, const WrapperIndex &wrapper, const RecipeReader &recipe,
              const ArchiveOptions &options)
      : archive_(archive), wrapper_(wrapper), recipe_(recipe), options_(options) {}

  // So many bytes more of the traces, which are all in one.
  [[nodiscard]] Result<codec::deflate::Stretch> take(std::uint64_t size) {
    if (trace_ == nullptr || (from_ == trace_->size() && size > 0)) ETWRELOG_TRY(open());
    if (size > trace_->size() - from_) return recipe_.bad();
    codec::deflate::Stretch stretch{fetch_of(*trace_, options_.run.stop), from_, size};
    from_ += size;
    return stretch;
  }
  [[nodiscard]] bool at_end() const {
    return next_ == wrapper_.traces.size() && trace_ != nullptr && from_ == trace_->size();
  }
  [[nodiscard]] std::uint64_t segments() const { return segments_; }

private:
  Result<void> open() {
    if (next_ == wrapper_.traces.size()) return recipe_.bad();
    trace_.reset();
    std::unique_ptr<read::Input> inner = inner_archive(archive_, wrapper_, next_++);
    ETWRELOG_TRY_LET(index, read_archive_index(*inner, options_.run.memory));
    ETWRELOG_TRY(check_segment_headers(*inner, index));
    segments_ += index.segments.size();
    ETWRELOG_TRY_LET(trace, open_archive(std::move(inner), options_.run.memory));
    trace_ = std::move(trace);
    from_ = 0;
    return {};
  }

  const read::Input &archive_;
  const WrapperIndex &wrapper_;
  const RecipeReader &recipe_;
  const ArchiveOptions &options_;
  std::size_t next_ = 0;
  std::unique_ptr<read::Input> trace_;
  std::uint64_t from_ = 0, segments_ = 0;
};

class Unwrapping {
public:
  Unwrapping(const read::Input &archive, const WrapperIndex &wrapper, ByteSink *out,
             const ArchiveOptions &options)
      : archive_(archive), wrapper_(wrapper), options_(options), out_(out), recipe_(archive, wrapper),
        traces_(archive, wrapper, recipe_, options), progress_(options.run.progress) {
    progress_.begin(out != nullptr ? "unpacking" : "verifying", wrapper.footer.original_size);
  }

  Result<UnpackReport> run() {
    for (;;) {
      ETWRELOG_TRY(recipe_.reach());
      ETWRELOG_TRY_LET(more, step());
      if (!more) break;
    }
    if (!recipe_.at_end() || !traces_.at_end() || made_ != wrapper_.footer.original_size)
      return recipe_.bad();
    if (hasher_.finish() != wrapper_.footer.content)
      return base::corrupt("the content hash of the whole does not match")
          .in(archive_.name())
          .advise(Advice::salvage_archive);
    UnpackReport report;
    report.original = made_;
    report.archived = archive_.size();
    report.segments = traces_.segments();
    report.hash_checked = true;
    report.content = wrapper_.footer.content;
    return report;
  }

private:
  // False behind the last one.
  Result<bool> step() {
    CorrectionsView &in = recipe_.view;
    if (in.shape.empty()) return recipe_.bad();
    const auto what = static_cast<RecipeStep>(in.shape.front());
    in.shape = in.shape.subspan(1);
    if (what == RecipeStep::end) return false;
    std::uint64_t size = 0;
    if (!take_number(in.shape, size)) return recipe_.bad();
    switch (what) {
    case RecipeStep::kept:
      if (size > recipe_.kept.size()) return recipe_.bad();
      ETWRELOG_TRY(give(recipe_.kept.first(static_cast<std::size_t>(size))));
      recipe_.kept = recipe_.kept.subspan(static_cast<std::size_t>(size));
      return true;
    case RecipeStep::copied: ETWRELOG_TRY(copy(size)); return true;
    case RecipeStep::deflated: ETWRELOG_TRY(deflate(size)); return true;
    default: return recipe_.bad();
    }
  }

  Result<void> copy(std::uint64_t size) {
    ETWRELOG_TRY_LET(stretch, traces_.take(size));
    for (std::uint64_t done = 0; done < size;) {
      bytes_.resize(static_cast<std::size_t>(std::min<std::uint64_t>(size - done, kPiece)));
      ETWRELOG_TRY_LET(got, stretch.content(stretch.from + done, bytes_));
      if (got != bytes_.size()) return recipe_.bad();
      ETWRELOG_TRY(give(bytes_));
      done += got;
    }
    return {};
  }

  Result<void> deflate(std::uint64_t size) {
    Parameters parameters;
    if (!codec::deflate::take_parameters(recipe_.view.shape, parameters)) return recipe_.bad();
    if (++streams_ > kMostPieces) return recipe_.bad(); // each takes some time, also an empty one
    ETWRELOG_TRY_LET(stretch, traces_.take(size));
    Restorer restorer(stretch, parameters, following_);
    bytes_.clear();
    for (;;) {
      if (options_.run.stop.stop_requested()) return base::cancelled().in(archive_.name());
      ETWRELOG_TRY(recipe_.reach());
      const Step step = restorer.next(recipe_.view, bytes_);
      if (step == Step::foreign) {
        if (restorer.error()) return *restorer.error();
        return following_.may_restore() ? recipe_.bad() : recipe_.endless();
      }
      if (bytes_.size() >= kPiece || step == Step::end) {
        ETWRELOG_TRY(give(bytes_));
        bytes_.clear();
      }
      if (step == Step::end) return {};
    }
  }

  Result<void> give(Bytes bytes) {
    if (bytes.size() > wrapper_.footer.original_size - made_) return recipe_.bad();
    if (options_.run.stop.stop_requested()) return base::cancelled().in(archive_.name());
    hasher_.update(bytes);
    made_ += bytes.size();
    progress_.advance(bytes.size());
    return out_ != nullptr ? out_->write(bytes) : Result<void>();
  }

  static constexpr std::size_t kPiece = 1u << 20;

  const read::Input &archive_;
  const WrapperIndex &wrapper_;
  const ArchiveOptions &options_;
  ByteSink *out_;
  RecipeReader recipe_;
  TraceReader traces_;
  base::ProgressMeter progress_;
  etlz::ContentHasher hasher_;
  codec::deflate::Following following_;
  std::vector<std::uint8_t> bytes_;
  std::uint64_t made_ = 0;
  std::size_t streams_ = 0;
};

// All that `verify` proves of an archive by itself, of that of each trace: what the wrapper is made from are
// their bytes alone, and not what their indexes say of them.
Result<void> verify_each(const read::Input &archive, const WrapperIndex &wrapper, ArchiveOptions options) {
  options.run.progress = nullptr;
  for (std::size_t i = 0; i < wrapper.traces.size(); ++i)
    ETWRELOG_TRY(unpack_file(*inner_archive(archive, wrapper, i), nullptr, options));
  return {};
}

// As check_stored, of all that is in it.
Result<void> check_wrapped(const read::Input &archive, const WrapperIndex &wrapper,
                           const ArchiveOptions &options) {
  for (std::size_t i = 0; i < wrapper.traces.size(); ++i) {
    const std::unique_ptr<read::Input> inner = inner_archive(archive, wrapper, i);
    ETWRELOG_TRY_LET(index, read_archive_index(*inner, options.run.memory));
    ETWRELOG_TRY(check_stored(*inner, index, options.run.stop));
  }
  RecipeReader recipe(archive, wrapper);
  for (;;) {
    ETWRELOG_TRY_LET(more, recipe.load(false));
    if (!more) return {};
  }
}

} // namespace

Result<UnpackReport> unpack_wrapped(const read::Input &archive, ByteSink *out,
                                    const ArchiveOptions &options) {
  ETWRELOG_TRY_LET(wrapper, read_wrapper_index(archive));
  if (options.check_first) ETWRELOG_TRY(check_wrapped(archive, wrapper, options));
  // Salvage asks for no more than whether the bytes come back.
  if (out == nullptr && !options.salvage) ETWRELOG_TRY(verify_each(archive, wrapper, options));
  return Unwrapping(archive, wrapper, out, options).run();
}

} // namespace etwrelog::pipeline
