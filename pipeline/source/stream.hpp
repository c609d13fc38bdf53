// A trace that is read once, as it comes. Its first bytes are looked at when it is opened: they tell the
// clock and the size of its buffers.
#pragma once

#include "etwrelog/io.hpp"
#include "etwrelog/logfile_header.hpp"
#include "etwrelog/run.hpp"
#include "read/follow.hpp"

#include <atomic>
#include <stop_token>

namespace etwrelog::pipeline {

class StreamSource final : private ByteStream {
public:
  // Waiting for bytes ends when `stop` is set, also later.
  static Result<std::shared_ptr<StreamSource>> open(const Input &input, const RunOptions &run);
  // A file that may grow; see read::FollowedFile.
  static Result<std::shared_ptr<StreamSource>> follow(const Input &input, const std::stop_token &enough,
                                                      const std::stop_token &stop);

  [[nodiscard]] const std::string &name() const { return name_; }
  [[nodiscard]] const LogfileHeader &header() const { return header_; }
  // Null unless it is followed.
  [[nodiscard]] const read::FollowedFile *followed() const { return followed_.get(); }
  // All bytes from the first on, for the first caller. Any thread.
  [[nodiscard]] Result<ByteStream *> take();

private:
  StreamSource() = default;
  Result<void> read_head(std::size_t least);
  Result<std::size_t> read(MutableBytes into) override;

  std::string name_;
  std::shared_ptr<ByteStream> rest_;
  std::shared_ptr<const read::FollowedFile> followed_; // what rest_ is, if it is one
  std::vector<std::uint8_t> head_;
  std::size_t head_given_ = 0;
  LogfileHeader header_;
  std::atomic<bool> taken_{false};
};

} // namespace etwrelog::pipeline
