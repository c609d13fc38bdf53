// What was proven of compressed buffers while a segment was taken apart.
#pragma once

#include "codec/xpress/predictor.hpp"
#include "etlz/container.hpp"

#include <algorithm>
#include <vector>

namespace etwrelog::etlz {

// Most streams that Windows wrote follow from the decoded bytes alone. Whether one does is found out by
// running restore(), as unpacking will, and comparing. That is half of the proof that the stream comes back:
// restore() depends on nothing but its arguments. The other half is that unpacking gives it the same
// arguments, and is left to when the coded segment is decoded: there, the bytes that the model gives are
// compared with those that restore() ran on, and it need not run again.
//
// The bytes that it ran on are not read from the trace again but kept, as those that the model coded. Were
// they touched in between (a fault of the memory, or of the program), the model would code what they became,
// and the comparison would say nothing: hence their hash from before restore() ran. The same for the trace
// itself.
class StreamProofs {
public:
  void clear() {
    seen_.clear();
    next_ = 0;
  }

  // Whether the stream of the part at `at`, which is behind all those before it, follows from `plain` alone.
  // `plain` stays where it is until clear().
  [[nodiscard]] bool see(codec::XpressPredictor &xpress, std::size_t at, Bytes stream, Bytes plain) {
    const Seen seen{at, plain, hash64(plain), hash64(stream)};
    if (!xpress.explains(stream, plain)) return false;
    seen_.push_back(seen);
    return true;
  }

  // Before the parts are decoded, in their order.
  void rewind() { next_ = 0; }

  // Whether restore(), without corrections, gives `stream`, the one in the trace, of the part at `at` from
  // `plain`, which was decoded.
  [[nodiscard]] bool hold(std::size_t at, Bytes stream, Bytes plain) {
    while (next_ < seen_.size() && seen_[next_].at < at)
      ++next_;
    if (next_ == seen_.size() || seen_[next_].at != at) return false;
    const Seen &seen = seen_[next_];
    return std::ranges::equal(plain, seen.plain) && hash64(plain) == seen.plain_hash &&
           hash64(stream) == seen.stream_hash;
  }

private:
  struct Seen {
    std::size_t at;
    Bytes plain;
    std::uint64_t plain_hash, stream_hash;
  };
  std::vector<Seen> seen_;
  std::size_t next_ = 0;
};

} // namespace etwrelog::etlz
