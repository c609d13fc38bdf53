#include "source/stream.hpp"

#include "base/errors.hpp"
#include "etlz/container.hpp"
#include "etwrelog/format.hpp"
#include "read/scan.hpp"

#include <algorithm>

namespace etwrelog::pipeline {

namespace {

constexpr std::size_t kHead = (64u << 10) + format::kBufferHeaderSize; // holds any header event

} // namespace

Result<std::shared_ptr<StreamSource>> StreamSource::open(const Input &input, const RunOptions &run) {
  std::shared_ptr<StreamSource> source(new StreamSource);
  source->name_ = input.name();
  ETWRELOG_TRY_LET(rest, read::open_stream(input, run));
  source->rest_ = std::move(rest);
  ETWRELOG_TRY(source->read_head(kHead));
  return source;
}

Result<std::shared_ptr<StreamSource>> StreamSource::follow(const Input &input, const std::stop_token &enough,
                                                           const std::stop_token &stop) {
  std::shared_ptr<StreamSource> source(new StreamSource);
  source->name_ = input.name();
  ETWRELOG_TRY_LET(followed, read::FollowedFile::open(input.name(), enough, stop));
  source->rest_ = followed;
  source->followed_ = std::move(followed);
  // The first buffer is there; the second may not come for long.
  ETWRELOG_TRY(source->read_head(1));
  return source;
}

// At least so many bytes, if there are so many.
Result<void> StreamSource::read_head(std::size_t least) {
  head_.resize(kHead);
  std::size_t there = 0;
  while (there < least) {
    Result<std::size_t> got = rest_->read(MutableBytes(head_).subspan(there));
    if (!got) return base::in_file(std::move(got).error(), name_);
    if (*got == 0) break;
    there += *got;
  }
  head_.resize(there);
  if (etlz::is_part(head_)) return base::unsupported(etlz::kIsPart).in(name_);
  ETWRELOG_TRY_LET(header, read::read_first_event(head_, name_));
  header_ = std::move(header);
  return {};
}

Result<ByteStream *> StreamSource::take() {
  if (taken_.exchange(true))
    return base::unsupported("reading a stream for the second time").in(name_).advise(Advice::allow_spool);
  return static_cast<ByteStream *>(this);
}

Result<std::size_t> StreamSource::read(MutableBytes into) {
  if (head_given_ == head_.size()) return rest_->read(into);
  const std::size_t count = std::min(into.size(), head_.size() - head_given_);
  std::copy_n(head_.begin() + static_cast<std::ptrdiff_t>(head_given_), count, into.begin());
  head_given_ += count;
  return count;
}

} // namespace etwrelog::pipeline
