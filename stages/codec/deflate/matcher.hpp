// Which token a deflate encoder writes next: a search by hash chains, as zlib and gzip do it, under the same
// parameters.
//
// Places are entered under a hash of their three bytes; each place is followed back to the one before with
// the same hash. A search at a place walks at most `chain` of them (a quarter, where the match to beat has
// `good` bytes), takes the longest match, the nearest of equals, and ends at one of `nice` bytes. Greedy
// encoders (levels 1 to 3) write what they find; the places inside of a match of more than `lazy` bytes are
// not entered. Lazy ones (4 to 9) look at the next place as well, unless the match has `lazy` bytes: if the
// match there is longer, they write a literal and go on from there. A match of three bytes more than 4096
// back is none for them, with `filtered` nor is one of up to five bytes. The first byte of all is never
// found. Matches end where the encoder had no more input; one that `forgets` finds nothing of what was before
// that, nor its first byte behind.
//
// The rules are part of the archive format: a change of any prediction is a new format version.
#pragma once

#include "codec/deflate/source.hpp"

namespace etwrelog::codec::deflate {

struct Parameters {
  enum class Kind : std::uint8_t { literals, runs, greedy, lazy, count_ }; // runs: of distance 1 alone

  Kind kind = Kind::lazy;
  std::uint8_t level = 6;        // 1..3 greedy, 4..9 lazy
  std::uint8_t hash_bits = 15;   // 8..16: zlib's memory level and 7
  std::uint8_t window_bits = 15; // 9..15
  bool filtered = false;
  bool forgets = false; // with every flush

  bool operator==(const Parameters &) const = default;
};
inline constexpr std::size_t kParameterBytes = 5;
void put_parameters(const Parameters &parameters, std::vector<std::uint8_t> &out);
// False if there are no such.
[[nodiscard]] bool take_parameters(Bytes &in, Parameters &parameters);

// Holds the tables, for one stream after the other. For each token: predict, then take what it was.
class Matcher {
public:
  Matcher();

  // A stream that decodes to so many bytes.
  void begin(const Parameters &parameters, std::uint64_t size);
  // At `at`, which was reached and is before `end`, up to which the encoder sees.
  [[nodiscard]] Token predict(const Content &content, std::uint64_t at, std::uint64_t end);
  void take(const Content &content, std::uint64_t at, Token predicted, Token token);
  // A byte of a stored block.
  void pass(const Content &content, std::uint64_t at);
  // Candidates that searches have looked at, of this and all streams before.
  [[nodiscard]] std::uint64_t walked() const { return walked_; }
  // Before this place the encoder's input was flushed.
  void cut(std::uint64_t at) {
    if (parameters_.forgets) floor_ = at;
  }

private:
  struct Found {
    unsigned length = 0;
    std::uint32_t distance = 0;
  };
  [[nodiscard]] Found find(const Content &content, std::uint64_t at, unsigned beat, std::uint64_t end) const;
  [[nodiscard]] Found find_lazily(const Content &content, std::uint64_t at, unsigned beat,
                                  std::uint64_t end) const;
  [[nodiscard]] std::uint32_t hash(const std::uint8_t *at) const {
    return (std::uint32_t{at[0]} << 2 * shift_ ^ std::uint32_t{at[1]} << shift_ ^ at[2]) & hash_mask_;
  }
  // Enters all places up to this one that were not yet. Offsets modulo 2^32: what is further back than that
  // is no candidate, and what looks nearer than it is is compared like any other.
  void enter(const Content &content, std::uint64_t upto);

  Parameters parameters_;
  unsigned good_ = 0, lazy_ = 0, nice_ = 0, chain_ = 0;
  unsigned shift_ = 0;
  std::uint32_t hash_mask_ = 0, window_mask_ = 0, most_ = 0;
  std::vector<std::uint32_t> head_, previous_;
  mutable std::uint64_t walked_ = 0;
  // In the tables places are counted on from stream to stream: what is there of earlier ones lies further
  // back than a stream goes, and nothing has to be cleared. Of many streams each is short.
  std::uint64_t base_ = 0;
  std::uint64_t entered_ = 0; // the next place to enter
  std::uint64_t floor_ = 0;   // this place and those before are no candidates
  Found waiting_;             // what was found at `waiting_at_` when it was looked at from the place before
  std::uint64_t waiting_at_ = 0;
};

} // namespace etwrelog::codec::deflate
