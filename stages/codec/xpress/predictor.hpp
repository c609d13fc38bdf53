// Brings back the XPRESS bytes that Windows wrote, from the decoded content of a buffer and a few
// corrections.
//
// Windows' encoder makes the same choice every time, so its output follows from its input once its rules are
// known. They were inferred from net.4.5.2.x64.etl (359 buffers, 2,752,257 tokens) and hold for all but 50
// tokens there. b0, b1, ... are the bytes at the position looked at; a candidate further back than 8,191
// counts as none; only positions where a token starts enter a table.
//
//   1. Greedy: a match is taken at its full length, a literal only where no candidate has its first three
//   bytes.
//   2. First table, slot b0 + 8*b1 + 2*b2: the latest position. Read, then set to this position, at every
//   token.
//      Its candidate decides alone whether there is a match; one of 6 bytes or more is taken at once.
//   3. Second table, one array for keys of 4, 5 and 6 bytes. While the match is m = 3, 4 or 5 bytes long, the
//   slot for
//      the first m+1 bytes is read; a strictly longer match there replaces the one in hand, and this position
//      takes over the slot. The search ends where the slot holds nothing longer.
//   4. What a position pushes aside goes one level down, to where a later search that matches as much of it
//   as this
//      one did will look: a first candidate that matched m < 6 bytes, and each candidate of the second table
//      that was taken and matched m < 6, is entered under its own first m+1 bytes. A first candidate that did
//      not match is forgotten; colliding keys overwrite each other.
//   5. Slots of the second table (rot is a rotation of one byte to the left, sums inside it are of one byte):
//        4 bytes: b0 + 8*b1 + 2*b2 + b3
//        5 bytes: 8*h + 2*g + b4,  h = rot3(b0) ^ rot2(b1 + b2 + 0x61),  g = rot2(b0 + b3) ^ rot7(b1)
//        6 bytes: 8*g + 2*(b0 + 0xA8) + b5 where b2 = b4 = 0; otherwise unknown, see slot6() in
//        xpress_predictor.cpp
//   6. The search ends for good once a match leaves fewer than 39 bytes, and needs 32 at a position.
//
// Corrections name the tokens that the rules get wrong: varint of the tokens since the last one named, then a
// varint: 0 a literal, 1 the first candidate at its full length, else 2*distance + e, a match at that
// distance, of its full length if e is 0, else of 3 + another varint. None for a buffer that the rules
// explain.
//
// The rules are part of the archive format: a change of any prediction is a new format version.
#pragma once

#include "codec/xpress/reader.hpp"
#include "etwrelog/bytes.hpp"
#include "etwrelog/error.hpp"

#include <array>
#include <vector>

namespace etwrelog::codec {

// Holds the tables; made once a thread and reused. Not thread-safe itself.
class XpressPredictor {
public:
  static constexpr unsigned kApartBits = 12; // slots for the keys whose slot is not known, see slot6()

  // Allocates all it will ever need for buffers of up to `max_decoded` bytes (at most 1 GiB), except that the
  // corrections grow in the caller's vector.
  explicit XpressPredictor(std::size_t max_decoded);

  // Appends to `corrections` what restore() needs beside `decoded` to give `compressed` again. False, and
  // `corrections` as before, if the stream is not of the form that Windows writes or if corrections would
  // cost more than half of it: store the compressed bytes as they are.
  //
  // True is the proof that restore() gives this stream from these bytes and corrections; it need not be
  // called to see that. Both take the same steps by the same tables. Here the next token comes from the
  // stream, and what the rules say of it is compared with it; there it is what the rules say. As long as the
  // two agree, or a correction says that they do not, both are in the same state. And a token has one form in
  // which it is written: the reader takes no other.
  [[nodiscard]] bool encode(Bytes compressed, Bytes decoded, std::vector<std::uint8_t> &corrections);

  // Fills `compressed` exactly, from nothing but the other two. Safe on any input; `corrupt` where the
  // corrections do not fit the content or the result does not fit `compressed`, whose bytes mean nothing
  // then.
  [[nodiscard]] Result<void> restore(Bytes decoded, Bytes corrections, MutableBytes compressed);

  struct Counts {
    std::uint64_t tokens = 0;
    std::uint64_t corrected = 0;
  };
  // Over all successful calls of encode().
  [[nodiscard]] const Counts &counts() const { return counts_; }

private:
  struct Prediction;
  class Noting;
  class Restoring;
  struct Lookup;
  struct Following;
  enum class Stop {
    another,     // it is neither a literal where one is foreseen nor a match with the first candidate
    search_over, // all that follow are foreseen as literals
    wrong,       // the stream is not one of the content
  };
  bool walk(Bytes decoded, Restoring &source);
  Stop follow_first(Following &at);
  bool follow(Following &at, Noting &noting);
  bool confirm_first(const Lookup &here, Bytes decoded, std::size_t pos, std::uint32_t length);
  Prediction search(const std::uint8_t *begin, std::size_t pos, std::size_t size, const Lookup &here);
  XpressToken search_further(const std::uint8_t *at, const std::uint8_t *end, std::uint32_t pos,
                             std::uint64_t key, std::uint64_t first, XpressToken token);

  static constexpr std::size_t kFirstSlots = 255 * (1 + 8 + 2) + 1;
  static constexpr std::size_t kSecondSlots = 3318 + (std::size_t{1} << kApartBits);

  std::size_t max_decoded_;
  using FirstTable = std::array<std::uint64_t, kFirstSlots>;
  FirstTable first_{};                               // as Lookup says
  std::array<std::uint32_t, kSecondSlots> second_{}; // positions; 0 also where there is none
  // Room for the largest stream that any tokens can make, and what its reader looks ahead.
  std::vector<std::uint8_t> stream_;
  Counts counts_;
};

} // namespace etwrelog::codec
