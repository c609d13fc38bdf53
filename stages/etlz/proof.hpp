// What was proven of compressed buffers while a segment was taken apart.
#pragma once

#include "etlz/container.hpp"

#include <cstring>
#include <vector>

namespace etwrelog::etlz {

// That unpacking brings an XPRESS stream back is proven in two halves. The first is what
// XpressStreams::encode (or XpressPredictor::encode) says: restore() gives this stream from these decoded
// bytes and corrections, on which alone it depends. The second is that unpacking gives it these, and is left
// to when the coded segment is decoded: what the model then gives is compared with what encode() saw, by
// hashes. (For the decoded bytes are kept in memory until the model codes them: were they touched in between,
// by a fault of the memory or of the program, it would code what they became, and to compare with them would
// say nothing. The same for the trace itself.)
class StreamProofs {
public:
  void clear() {
    seen_.clear();
    next_ = 0;
  }

  // As encode() of `xpress`, of the part at `at`, which is behind all those before it. `plain` must stay.
  template <class Xpress>
  [[nodiscard]] bool see(Xpress &xpress, std::size_t at, Bytes stream, Bytes plain,
                         std::vector<std::uint8_t> &corrections) {
    const std::size_t before = corrections.size();
    Seen seen{at, plain, Hashes(stream, plain, {})};
    if (!xpress.encode(stream, plain, corrections)) return false;
    seen.hashes.corrections = hash64(Bytes(corrections).subspan(before));
    seen_.push_back(seen);
    return true;
  }

  // Before the parts are decoded, in their order.
  void rewind() { next_ = 0; }

  // Whether restore() gives `stream`, the one in the trace, of the part at `at` from what was decoded.
  [[nodiscard]] bool hold(std::size_t at, Bytes stream, Bytes plain, Bytes corrections) {
    while (next_ < seen_.size() && seen_[next_].at < at)
      ++next_;
    if (next_ == seen_.size() || seen_[next_].at != at) return false;
    return seen_[next_].hashes == Hashes(stream, plain, corrections);
  }

  // The same bytes as `plain`, which was decoded of the part that hold() was asked about last: what encode()
  // saw, which stays, if it still is that.
  [[nodiscard]] Bytes staying(std::size_t at, Bytes plain) const {
    if (next_ == seen_.size() || seen_[next_].at != at) return plain;
    const Bytes seen = seen_[next_].plain;
    const bool same =
        seen.size() == plain.size() && std::memcmp(seen.data(), plain.data(), plain.size()) == 0;
    return same ? seen : plain;
  }

private:
  struct Hashes {
    std::uint64_t stream, plain, corrections;
    Hashes(Bytes s, Bytes p, Bytes c) : stream(hash64(s)), plain(hash64(p)), corrections(hash64(c)) {}
    bool operator==(const Hashes &) const = default;
  };
  struct Seen {
    std::size_t at;
    Bytes plain;
    Hashes hashes;
  };
  std::vector<Seen> seen_;
  std::size_t next_ = 0;
};

} // namespace etwrelog::etlz
