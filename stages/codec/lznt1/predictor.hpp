// Brings back the LZNT1 bytes that an encoder wrote, from the decoded content of a buffer and corrections.
//
// No trace with LZNT1 buffers is known, so the rules are guesses, both greedy with matches of full length and
// every compressed chunk starting afresh; encode() takes the one that costs less:
//   0  one candidate: the latest token start with the same hash of four bytes
//   1  the longest match in the chunk, the latest of equals, of the last 32 positions with the same hash of
//   three bytes
//
// Corrections: a byte (bit 0 the rule, bit 1 a list of stored chunks follows, bit 2 the stream ends in a zero
// header); the list, as varints of the chunks between stored ones, after their count; then for each token
// that the rule gets wrong the varint of the tokens of compressed chunks since the last such one, and a
// varint: 0 a literal, else 2*distance + e, a match of its full length if e is 0, else of 3 + another varint.
//
// The rules are part of the archive format: a change of any prediction is a new format version.
#pragma once

#include "etwrelog/bytes.hpp"
#include "etwrelog/error.hpp"

#include <array>
#include <optional>
#include <vector>

namespace etwrelog::codec {

// Holds the tables; made once a thread and reused. Not thread-safe itself.
class Lznt1Predictor {
public:
  // Allocates all it will ever need for buffers of up to `max_decoded` bytes (at most 1 GiB), except that the
  // corrections grow in the caller's vector.
  explicit Lznt1Predictor(std::size_t max_decoded);

  // As XpressPredictor::encode: appends what restore() needs, verified; or false, and `corrections` as
  // before, if the stream has another form or corrections would cost more than half of it.
  [[nodiscard]] bool encode(Bytes compressed, Bytes decoded, std::vector<std::uint8_t> &corrections);

  // As XpressPredictor::restore.
  [[nodiscard]] Result<void> restore(Bytes decoded, Bytes corrections, MutableBytes compressed);

private:
  struct Token {
    std::uint32_t distance = 0; // 0: a literal
    std::uint32_t length = 1;
    bool operator==(const Token &) const = default;
  };
  class Comparing;
  class Restoring;
  template <class Source> bool walk(Bytes decoded, bool longest, Source &source);
  template <class Source> bool walk_chunk(Bytes chunk, bool longest, Source &source);
  [[nodiscard]] Token predict_one(Bytes chunk, std::uint32_t pos);
  [[nodiscard]] Token predict_longest(Bytes chunk, std::uint32_t pos);
  [[nodiscard]] bool encode_by(bool longest, Bytes compressed, Bytes decoded,
                               std::vector<std::uint8_t> &corrections);
  [[nodiscard]] std::optional<std::size_t> write(Bytes decoded, Bytes corrections); // to stream_

  std::size_t max_decoded_;
  std::array<std::uint16_t, 4096> head_{};     // position in the chunk + 1
  std::array<std::uint16_t, 4096> previous_{}; // the position before with the same hash, + 1
  std::uint32_t entered_ = 0;                  // positions of the chunk entered so far
  std::vector<std::uint8_t> stream_;
};

} // namespace etwrelog::codec
