// The codes that zlib and gzip make for a block, from how often each symbol occurs in it.
//
// Huffman's algorithm with a binary heap, in which of two equally frequent trees the less deep one comes
// first. Codes that come out too long are shortened from the longest on, at the cost of the next shorter
// ones. No code has fewer than two symbols. Lengths are said by runs, literals and distances apart.
//
// Part of the archive format, as the matcher's rules are.
#pragma once

#include "codec/deflate/format.hpp"

namespace etwrelog::codec::deflate {

// How often symbols occur in a block.
struct Frequencies {
  std::array<std::uint32_t, kLiteralSymbols> literals{};
  std::array<std::uint32_t, kDistanceSymbols> distances{};

  void clear() { literals.fill(0), distances.fill(0); }
  void count_literal(std::uint8_t byte) { ++literals[byte]; }
  void count_match(Token token) {
    ++literals[length_symbol(token.length)];
    ++distances[distance_symbol(token.distance)];
  }
};

// The head (format.hpp) of a block of these and an end.
void predict_head(const Frequencies &block, std::vector<std::uint8_t> &head);

} // namespace etwrelog::codec::deflate
