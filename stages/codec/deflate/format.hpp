// What RFC 1951 lays down: tokens, their codes, and prefix codes made of lengths.
#pragma once

#include "etwrelog/bytes.hpp"

#include <array>
#include <vector>

namespace etwrelog::codec::deflate {

inline constexpr std::uint32_t kWindow = 32768; // bytes that a match may lie back
inline constexpr unsigned kShortest = 3, kLongest = 258;
inline constexpr unsigned kLiteralSymbols = 286, kDistanceSymbols = 30, kLengthSymbols = 19;
inline constexpr unsigned kEndOfBlock = 256;
inline constexpr unsigned kLongestCode = 15;

// A literal, or a match. Length 258 has two codes; its unusual one (284 and five bits set) counts as 259.
struct Token {
  std::uint16_t length = 1, distance = 0; // distance 0: a literal
  bool operator==(const Token &) const = default;
  [[nodiscard]] bool literal() const { return distance == 0; }
  [[nodiscard]] unsigned bytes() const { return length > kLongest ? kLongest : length; }
};
inline constexpr unsigned kUnusualLength = 259;

enum class BlockType : std::uint8_t { stored = 0, fixed = 1, dynamic = 2 };

// Length and distance symbols: the first value of each and the bits that follow.
struct Range {
  std::uint16_t first;
  std::uint8_t bits;
};
inline constexpr auto kLengths = [] {
  std::array<Range, 29> table{}; // symbols 257..285
  unsigned value = kShortest;
  for (unsigned i = 0; i < 28; ++i) {
    const unsigned bits = i < 8 ? 0 : (i - 4) / 4;
    table[i] = {static_cast<std::uint16_t>(value), static_cast<std::uint8_t>(bits)};
    value += 1u << bits;
  }
  table[28] = {kLongest, 0};
  return table;
}();
inline constexpr auto kDistances = [] {
  std::array<Range, kDistanceSymbols> table{};
  unsigned value = 1;
  for (unsigned i = 0; i < kDistanceSymbols; ++i) {
    const unsigned bits = i < 4 ? 0 : (i - 2) / 2;
    table[i] = {static_cast<std::uint16_t>(value), static_cast<std::uint8_t>(bits)};
    value += 1u << bits;
  }
  return table;
}();

// The symbol of a length (257..285), and of a distance.
[[nodiscard]] unsigned length_symbol(unsigned length);
[[nodiscard]] unsigned distance_symbol(unsigned distance);

// A prefix code.
struct Code {
  std::vector<std::uint8_t> lengths; // of each symbol's code; 0: it has none
  std::vector<std::uint16_t> bits;   // the code, its first bit lowest
  unsigned longest = 0;

  // False where the lengths leave no room for all codes. Codes may be left unused.
  [[nodiscard]] bool make();
};
// The codes of blocks that bring none.
[[nodiscard]] const Code &fixed_literals();
[[nodiscard]] const Code &fixed_distances();

// The head of a dynamic block as bytes: numbers of literal symbols less 257, distance symbols less 1 and
// lengths of lengths less 4; these; then the symbols that say the lengths, 16 to 18 with the bits behind them
// as one more byte.
//
// Takes such a head off the front of `head`: false where it is none that makes two codes.
[[nodiscard]] bool take_codes(Bytes &head, Code &literals, Code &distances);
// The order in which lengths of lengths stand, and the bits behind 16, 17 and 18.
inline constexpr std::array<std::uint8_t, kLengthSymbols> kLengthOrder = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                                                          11, 4,  12, 3, 13, 2, 14, 1, 15};
[[nodiscard]] constexpr unsigned repeat_bits(unsigned symbol) {
  return symbol == 16 ? 2 : symbol == 17 ? 3 : symbol == 18 ? 7 : 0;
}
inline constexpr std::size_t kMostHead = 3 + kLengthSymbols + 2 * (kLiteralSymbols + kDistanceSymbols);

} // namespace etwrelog::codec::deflate
