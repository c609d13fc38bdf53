// A trace that a session is still writing, as a stream that waits for what is appended.
#pragma once

#include "base/platform.hpp"
#include "etwrelog/io.hpp"
#include "etwrelog/logfile_header.hpp"

#include <memory>
#include <optional>

namespace etwrelog::read {

// A buffer is given when all of it is there: in a file that has its size from the start, when it does not end
// in zeros in front of where its events do, or the next one has begun. The end comes when the header says
// that the log is closed and all is read, or when `enough` is set; then also what there is of a buffer that
// is not whole.
//
// Fails as cancelled when `stop` is set, and when the file becomes shorter than what was read, or another
// file, or the log of another session.
class FollowedFile final : public ByteStream {
public:
  // Waits for the first buffer.
  static Result<std::shared_ptr<FollowedFile>> open(const std::string &path, std::stop_token enough,
                                                    std::stop_token stop);

  Result<std::size_t> read(MutableBytes into) override;
  // As far as it is there, at most what holds any header event: what the session left of it at the end.
  [[nodiscard]] Result<std::vector<std::uint8_t>> first_buffer() const;
  [[nodiscard]] bool closed() const { return closed_; }

private:
  FollowedFile(std::string path, base::File file, std::stop_token enough, std::stop_token stop)
      : path_(std::move(path)), file_(std::move(file)), enough_(std::move(enough)), stop_(std::move(stop)) {}

  // Whether a buffer is there, whole, from `at_` on, or all of a closed log; then it can be read.
  Result<bool> look();
  Result<void> look_for_tear(std::uint32_t whole);
  // Until look() finds something or there is nothing to wait for.
  Result<void> wait();
  Result<void> check_header();
  [[nodiscard]] bool says_closed() const; // the first buffer, whether or not it is known yet
  [[nodiscard]] Result<std::uint64_t> size() const;
  [[nodiscard]] Error replaced() const;

  std::string path_;
  base::File file_;
  std::stop_token enough_, stop_;
  std::optional<base::FileId> id_;
  std::optional<LogfileHeader> header_;  // once the first buffer is there
  std::uint64_t at_ = 0, end_ = 0;       // what can be read without waiting
  std::optional<std::uint64_t> torn_at_; // where the buffer at `at_` ends so far, of which space is there
  std::optional<std::uint64_t> last_;    // since `enough` was set: how much of the file counts
  bool closed_ = false, over_ = false;
};

} // namespace etwrelog::read
