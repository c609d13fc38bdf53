#include "archive/segments.hpp"
#include "archive/wrapper.hpp"

#include "base/errors.hpp"
#include "base/spool.hpp"
#include "codec/correction_bytes.hpp"
#include "read/unwrap.hpp"

#include <algorithm>

namespace etwrelog::pipeline {

using codec::put_number;
using codec::deflate::Corrections;
using codec::deflate::Predictor;

namespace {

using Traces = std::vector<std::unique_ptr<read::Input>>;

constexpr std::size_t kChunk = 512u << 10;        // decoded bytes at which one is closed
constexpr unsigned kMostSearches = 8;             // for parameters: of many streams, all will be alike
constexpr std::uint64_t kShareOfRecipe = 2;       // it takes less than one part in so many of the wrapper
constexpr std::uint64_t kWorthOf = 10, kMost = 9; // the archive takes at most 9 tenths of the wrapper
// Of the time that packing takes.
constexpr double kPlanning = 0.2, kPacking = 0.5, kProving = 0.3;

// Writes the recipe, as long as that is worth it.
class RecipeWriter {
public:
  RecipeWriter(base::Spool &out, Level level, std::uint64_t most) : out_(out), level_(level), most_(most) {}

  [[nodiscard]] Result<void> keep(const read::Input &from, std::uint64_t at, std::uint64_t end) {
    while (at < end) {
      const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(end - at, kMostKept));
      ETWRELOG_TRY_LET(bytes, read_exactly(from, at, count));
      begin(RecipeStep::kept, count);
      kept_.insert(kept_.end(), bytes.begin(), bytes.end());
      at += count;
      ETWRELOG_TRY(close(kChunk));
    }
    return {};
  }
  [[nodiscard]] Result<void> copy(std::uint64_t size) {
    begin(RecipeStep::copied, size);
    return close(kChunk);
  }
  // False where the stream is no such, or takes too much.
  [[nodiscard]] Result<bool> deflate(const Fetch &bytes, const WrapperPiece &piece, const Fetch &content) {
    const codec::deflate::Stretch stretch{content, piece.from, piece.size};
    if (searches_ < kMostSearches && following_.may_search()) {
      const auto found = codec::deflate::find_parameters(bytes, piece.at, stretch, parameters_, following_);
      if (!found.explains_all || !(found.parameters == parameters_)) ++searches_;
      parameters_ = found.parameters;
    }
    begin(RecipeStep::deflated, piece.size);
    codec::deflate::put_parameters(parameters_, corrections_.shape);
    Predictor predictor(bytes, piece.at, stretch, parameters_, following_);
    for (;;) {
      const Step step = predictor.next(corrections_);
      if (step == Step::foreign) {
        if (predictor.reader().error()) return *predictor.reader().error();
        return false;
      }
      ETWRELOG_TRY(close(kChunk));
      if (out_.size() > most_) return false;
      if (step == Step::end) return predictor.reader().end() == piece.end;
    }
  }
  [[nodiscard]] Result<void> finish() {
    corrections_.shape.push_back(static_cast<std::uint8_t>(RecipeStep::end));
    return close(0);
  }

private:
  void begin(RecipeStep step, std::uint64_t size) {
    corrections_.shape.push_back(static_cast<std::uint8_t>(step));
    put_number(corrections_.shape, size);
  }
  Result<void> close(std::size_t from) {
    if (corrections_.size() + kept_.size() < from) return {};
    chunk_.clear();
    coder_.pack({corrections_.shape, corrections_.heads, corrections_.places, corrections_.distances, kept_},
                level_, chunk_);
    corrections_.clear();
    kept_.clear();
    return out_.append(chunk_);
  }

  base::Spool &out_;
  Level level_;
  std::uint64_t most_;
  etlz::ChunkCoder coder_;
  Corrections corrections_;
  std::vector<std::uint8_t> kept_, chunk_;
  Parameters parameters_;
  codec::deflate::Following following_;
  unsigned searches_ = 0;
};

class SpoolSink final : public ByteSink {
public:
  explicit SpoolSink(base::Spool &spool) : spool_(spool) {}
  [[nodiscard]] Result<void> write(Bytes bytes) override { return spool_.append(bytes); }

private:
  base::Spool &spool_;
};

// Takes what must be what an input holds.
class ComparingSink final : public ByteSink {
public:
  ComparingSink(const read::Input &input, SharedProgress &progress) : input_(input), progress_(progress) {}

  [[nodiscard]] Result<void> write(Bytes bytes) override {
    there_.resize(bytes.size());
    ETWRELOG_TRY_LET(got, input_.read_at(at_, there_));
    if (got != bytes.size() || !std::ranges::equal(bytes, there_))
      return base::corrupt("read back, it differs").in(input_.name()).at(at_);
    at_ += got;
    progress_.advance(got, kProving);
    return {};
  }
  [[nodiscard]] bool complete() const { return at_ == input_.size(); }

private:
  const read::Input &input_;
  SharedProgress &progress_;
  std::vector<std::uint8_t> there_;
  std::uint64_t at_ = 0;
};

// What must not be taken for a file that cannot be made again.
bool serious(const Error &error) {
  return error.kind == ErrorKind::io || error.kind == ErrorKind::cancelled;
}

class Wrapping {
public:
  Wrapping(const read::Input &input, const ArchiveOptions &options)
      : input_(input), options_(options), progress_(options.run, input.size()) {}

  // False where it is packed as any other file.
  Result<bool> run(ByteSink &out) {
    Result<Traces> traces = read::unwrap(input_, options_.run);
    if (!traces) return other(traces.error());
    for (const std::unique_ptr<read::Input> &trace : *traces) {
      ETWRELOG_TRY_LET(looks, looks_like_trace(*trace));
      if (!looks) return false;
    }
    ETWRELOG_TRY_LET(plan, plan_wrapper(input_, *traces, options_.run.stop));
    if (!plan) return false;
    ETWRELOG_TRY_LET(recipe, write_recipe(*plan, *traces));
    if (!recipe) return false;
    ETWRELOG_TRY_LET(archive, write_archive(*plan, *traces, *recipe));
    if (archive->size() / kMost >= input_.size() / kWorthOf) return false;
    ETWRELOG_TRY_LET(good, proven(*archive));
    if (!good) return false;
    return copy(*archive, out);
  }
  [[nodiscard]] PackReport &report() { return report_; }

private:
  static Result<bool> other(const Error &error) {
    if (serious(error)) return error;
    return false;
  }

  // Null where it is not worth it.
  Result<std::unique_ptr<read::Input>> write_recipe(const WrapperPlan &plan, const Traces &traces) {
    std::unique_ptr<read::Input> none;
    ETWRELOG_TRY_LET(spool, base::Spool::create());
    const std::uint64_t most = input_.size() / kShareOfRecipe;
    RecipeWriter writer(spool, options_.level, most);
    const Fetch bytes = fetch_of(input_, options_.run.stop);
    std::uint64_t at = 0;
    for (const WrapperPiece &piece : plan.pieces) {
      ETWRELOG_TRY(writer.keep(input_, at, piece.at));
      if (piece.deflated) {
        ETWRELOG_TRY_LET(done,
                         writer.deflate(bytes, piece, fetch_of(*traces[piece.trace], options_.run.stop)));
        if (!done) return none;
      } else {
        ETWRELOG_TRY(writer.copy(piece.size));
      }
      progress_.advance(piece.end - at, kPlanning);
      at = piece.end;
      if (spool.size() > input_.size()) return none;
    }
    ETWRELOG_TRY(writer.keep(input_, at, input_.size()));
    ETWRELOG_TRY(writer.finish());
    return std::move(spool).finish(input_.name());
  }

  Result<std::unique_ptr<read::Input>> write_archive(const WrapperPlan &plan, const Traces &traces,
                                                     const read::Input &recipe) {
    ETWRELOG_TRY_LET(spool, base::Spool::create());
    SpoolSink sink(spool);
    std::uint8_t fixed[std::max(etlz::kFileHeaderSize, etlz::kFooterSize)];
    etlz::FileHeader header;
    header.wrapped = true;
    header.other_name = options_.other_name(false);
    header.original_size = input_.size();
    etlz::write_file_header(header, fixed);
    ETWRELOG_TRY(spool.append(Bytes(fixed, etlz::kFileHeaderSize)));

    std::vector<etlz::WrappedTrace> wrapped;
    ArchiveOptions inner = options_;
    inner.run.progress = {};
    inner.name = OriginalName::unknown; // that of the wrapper
    for (const std::size_t number : plan.order) {
      const read::Input &trace = *traces[number];
      const std::uint64_t before = spool.size();
      ETWRELOG_TRY_LET(packed, pack_file(trace, sink, inner));
      if (wrapped.empty()) report_.session = packed.session;
      wrapped.push_back({trace.member(), spool.size() - before, trace.size()});
      report_.decoded += packed.decoded;
      report_.segments += packed.segments;
      report_.events += packed.events;
      report_.buffers += packed.buffers;
      add_strays(packed, report_);
    }
    progress_.advance(input_.size(), kPacking);

    etlz::Footer footer;
    footer.index_at = spool.size();
    std::vector<std::uint8_t> head;
    etlz::write_wrapper_head(wrapped, head);
    ETWRELOG_TRY(spool.append(head));
    ETWRELOG_TRY(copy(recipe, sink));
    footer.index_size = spool.size() - footer.index_at;
    footer.original_size = input_.size();
    ETWRELOG_TRY_LET(content, hash_of(input_, options_.run.stop));
    footer.content = report_.content = content;
    etlz::write_footer(footer, fixed);
    ETWRELOG_TRY(spool.append(Bytes(fixed, etlz::kFooterSize)));
    report_.original = input_.size();
    report_.archived = spool.size();
    report_.wrapped = true;
    return std::move(spool).finish(input_.name());
  }

  // Whether the archive makes the very file again.
  Result<bool> proven(const read::Input &archive) {
    ComparingSink same(input_, progress_);
    ArchiveOptions how;
    how.run = options_.run;
    how.run.progress = {};
    const Result<UnpackReport> unpacked = unpack_wrapped(archive, &same, how);
    if (!unpacked) return other(unpacked.error());
    return same.complete();
  }

  static Result<bool> copy(const read::Input &from, ByteSink &out) {
    constexpr std::uint64_t kPiece = 1u << 20;
    for (std::uint64_t at = 0; at < from.size();) {
      ETWRELOG_TRY_LET(bytes, read_exactly(from, at, std::min(kPiece, from.size() - at)));
      ETWRELOG_TRY(out.write(bytes));
      at += bytes.size();
    }
    return true;
  }

  const read::Input &input_;
  const ArchiveOptions &options_;
  SharedProgress progress_;
  PackReport report_;
};

} // namespace

Result<std::optional<PackReport>> pack_wrapped(const read::Input &input, ByteSink &out,
                                               const ArchiveOptions &options) {
  if (!may_be_wrapped(input)) return std::optional<PackReport>();
  Wrapping wrapping(input, options);
  ETWRELOG_TRY_LET(packed, wrapping.run(out));
  if (!packed) return std::optional<PackReport>();
  return std::optional<PackReport>(std::move(wrapping.report()));
}

} // namespace etwrelog::pipeline
