#include "read/follow.hpp"

#include "base/errors.hpp"
#include "base/zeros.hpp"
#include "etwrelog/format.hpp"
#include "read/scan.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <thread>
#include <vector>

namespace etwrelog::read {

using namespace format;

namespace {

// Requests to stop come from signal handlers too, which can wake nobody.
constexpr auto kPause = std::chrono::milliseconds(50);

} // namespace

Result<std::shared_ptr<FollowedFile>> FollowedFile::open(const std::string &path, std::stop_token enough,
                                                         std::stop_token stop) {
  constexpr const char *kNoFile = "is no regular file, and only such can be followed";
  std::error_code failed; // a pipe would be waited for
  const auto kind = std::filesystem::status(path, failed).type();
  if (kind == std::filesystem::file_type::fifo) return base::unsupported(kNoFile).in(path);
  ETWRELOG_TRY_LET(file, base::File::open_read(path, stop));
  if (!file.is_regular()) return base::unsupported(kNoFile).in(path);
  std::shared_ptr<FollowedFile> followed(
      new FollowedFile(path, std::move(file), std::move(enough), std::move(stop)));
  followed->id_ = followed->file_.id();
  ETWRELOG_TRY(followed->wait());
  if (!followed->header_)
    return base::cancelled().in(path).found("before the session had written its first buffer");
  if ((followed->header_->log_file_mode & kModeCircular) != 0)
    return base::unsupported("is a circular log, which begins anew where it was read already").in(path);
  return followed;
}

Result<std::uint64_t> FollowedFile::size() const {
  ETWRELOG_TRY_LET(size, file_.size());
  if (size >= at_) return size;
  return base::io_failure("the file became shorter while it was followed")
      .in(path_)
      .at(size)
      .expected(std::to_string(at_) + " bytes or more")
      .found(std::to_string(size));
}

Error FollowedFile::replaced() const {
  return base::io_failure("was replaced, moved or deleted while it was followed").in(path_);
}

Result<std::vector<std::uint8_t>> FollowedFile::first_buffer() const {
  std::vector<std::uint8_t> bytes(kBufferHeaderSize + kMaxEventSize);
  ETWRELOG_TRY_LET(got, file_.read_at(0, bytes));
  bytes.resize(got);
  return bytes;
}

bool FollowedFile::says_closed() const {
  const Result<std::vector<std::uint8_t>> bytes = first_buffer();
  if (!bytes) return false;
  const Result<LogfileHeader> header = read_first_event(*bytes, path_);
  return header && header->closed();
}

// The header event is completed when the session ends, behind its last buffer.
Result<void> FollowedFile::check_header() {
  if (base::file_id(path_) != id_) return replaced();
  ETWRELOG_TRY_LET(bytes, first_buffer());
  ETWRELOG_TRY_LET(header, read_first_event(bytes, path_));
  if (header_ && (header.first_stamp != header_->first_stamp || header.start_time != header_->start_time ||
                  header.event_size != header_->event_size))
    return replaced();
  closed_ = header.closed();
  header_ = std::move(header);
  return {};
}

Result<bool> FollowedFile::look() {
  torn_at_.reset();
  ETWRELOG_TRY_LET(there, size());
  if (last_) there = std::min(there, *last_);
  if (closed_) {
    end_ = there;
    return true;
  }
  std::array<std::uint8_t, kBufferHeaderSize> raw{};
  if (there - at_ < raw.size()) return false;
  ETWRELOG_TRY_LET(got, file_.read_at(at_, raw));
  // Zeros: a file that is as large as it may become from the start, of which this is not written yet.
  if (got < raw.size() || base::all_zero(raw)) return false;
  const std::uint32_t whole = load_buffer_header(raw.data()).buffer_size;
  const bool possible =
      whole >= kBufferHeaderSize && whole <= kMaxBufferSize; // else the reader says what is wrong
  if (possible && there - at_ < whole) return false;
  if (possible && there - at_ > whole) {
    ETWRELOG_TRY(look_for_tear(whole));
    // The first may be all that a log has.
    if (torn_at_ && at_ == 0 && (last_ || says_closed())) torn_at_.reset();
    if (torn_at_) return false;
  }
  end_ = possible ? at_ + whole : there;
  return true;
}

// Of a buffer that is written in pieces into a file which has its size already, the rest is zeros. So may be
// the end of a whole one; then what follows tells.
Result<void> FollowedFile::look_for_tear(std::uint32_t whole) {
  std::array<std::uint8_t, kBufferHeaderSize> next{};
  ETWRELOG_TRY(file_.read_at(at_ + whole, next));
  if (!base::all_zero(next)) return {};
  std::vector<std::uint8_t> bytes(whole);
  ETWRELOG_TRY_LET(got, file_.read_at(at_, bytes));
  if (got < whole) return {};
  const BufferHeader header = load_buffer_header(bytes.data());
  const std::size_t used = header.compressed() ? whole : std::min<std::size_t>(header.valid_bytes(), whole);
  std::size_t end = whole;
  while (bytes[end - 1] == 0 && end > kBufferHeaderSize)
    --end;
  if (end < used) torn_at_ = at_ + std::min<std::size_t>(align8(end), used);
  return {};
}

Result<void> FollowedFile::wait() {
  while (!over_) {
    if (stop_.stop_requested()) return base::cancelled().in(path_);
    if (!last_ && enough_.stop_requested()) { // what is there by now still counts
      if (header_) ETWRELOG_TRY(check_header());
      ETWRELOG_TRY_LET(there, size());
      last_ = there;
    }
    ETWRELOG_TRY_LET(found, look());
    if (!header_ && found) return check_header();
    if (found) return {};
    if (last_) { // what there is of the next buffer
      if (header_) end_ = torn_at_.value_or(*last_);
      over_ = true;
      return {};
    }
    if (header_) ETWRELOG_TRY(check_header());
    if (!closed_) std::this_thread::sleep_for(kPause);
  }
  return {};
}

Result<std::size_t> FollowedFile::read(MutableBytes into) {
  if (at_ == end_ && !into.empty()) ETWRELOG_TRY(wait());
  const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(into.size(), end_ - at_));
  if (count == 0) return std::size_t{0};
  Result<std::size_t> got = file_.read_at(at_, into.first(count));
  if (!got) return base::in_file(std::move(got).error(), path_);
  at_ += *got;
  return got;
}

} // namespace etwrelog::read
