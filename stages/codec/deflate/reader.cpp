#include "codec/deflate/reader.hpp"

#include <algorithm>
#include <cstring>

namespace etwrelog::codec::deflate {
namespace {

Fetch behind(Fetch content, std::uint64_t from) {
  return [content = std::move(content), from](std::uint64_t at, MutableBytes into) {
    return content(from + at, into);
  };
}

} // namespace

Reader::Reader(Fetch compressed, std::uint64_t at, Fetch content, std::uint64_t from, std::uint64_t size)
    : bits_(std::move(compressed), at), content_(behind(std::move(content), from), size) {}

Step Reader::next(Unit &unit) {
  if (state_ == State::end) return Step::end;
  unit.head.clear();
  unit.tokens.clear();
  unit.filler = 0;
  unit.flushed = false;
  unit.begins = state_ == State::between;
  const std::uint64_t before = at_;
  if (unit.begins && !begin_block(unit)) return Step::foreign;
  unit.type = type_;
  unit.final = final_;
  if (!(type_ == BlockType::stored ? read_stored(unit) : read_tokens(unit))) return Step::foreign;
  unit.bytes = at_ - before;
  unit.ends = state_ != State::inside;
  if (!unit.ends) return Step::more;
  if (final_) {
    unsigned filler = 0;
    if (!bits_.take(bits_.until_byte(), filler)) return Step::foreign;
    last_filler_ = static_cast<std::uint8_t>(filler);
    state_ = State::end;
  } else {
    unit.flushed = type_ != BlockType::stored && empty_stored_follows();
  }
  return Step::more;
}

bool Reader::begin_block(Unit &unit) {
  unsigned final = 0, type = 0;
  if (!bits_.take(1, final) || !bits_.take(2, type)) return false;
  final_ = final != 0;
  state_ = State::inside;
  switch (type) {
  case 0: type_ = BlockType::stored; return true;
  case 1:
    type_ = BlockType::fixed;
    literal_table_.make(fixed_literals());
    distance_table_.make(fixed_distances());
    return true;
  case 2: type_ = BlockType::dynamic; return read_head(unit);
  default: return false;
  }
}

bool Reader::read_head(Unit &unit) {
  std::vector<std::uint8_t> &head = unit.head;
  auto put = [&](unsigned count) {
    unsigned value = 0;
    if (!bits_.take(count, value)) return false;
    head.push_back(static_cast<std::uint8_t>(value));
    return true;
  };
  if (!put(5) || !put(5) || !put(4)) return false;
  const unsigned wanted = head[0] + 257u + head[1] + 1u, lengths = head[2] + 4u;
  if (lengths > kLengthSymbols) return false;
  Code of_lengths;
  of_lengths.lengths.assign(kLengthSymbols, 0);
  for (unsigned i = 0; i < lengths; ++i) {
    if (!put(3)) return false;
    of_lengths.lengths[kLengthOrder[i]] = head.back();
  }
  if (!of_lengths.make()) return false;
  SymbolTable table;
  table.make(of_lengths);
  for (unsigned said = 0; said < wanted;) {
    unsigned symbol = 0;
    bits_.fill(kLongestCode);
    if (!table.take(bits_, symbol)) return false;
    head.push_back(static_cast<std::uint8_t>(symbol));
    if (symbol >= 16 && !put(repeat_bits(symbol))) return false;
    said += symbol < 16 ? 1u : head.back() + (symbol == 18 ? 11u : 3u);
  }
  Bytes rest(head);
  if (!take_codes(rest, literals_, distances_) || !rest.empty()) return false;
  literal_table_.make(literals_);
  distance_table_.make(distances_);
  return true;
}

bool Reader::read_stored(Unit &unit) {
  unsigned filler = 0, size = 0, inverse = 0;
  if (!bits_.take(bits_.until_byte(), filler) || !bits_.take(16, size) || !bits_.take(16, inverse) ||
      (size ^ inverse) != 0xFFFF || size > content_.size() - at_)
    return false;
  unit.filler = static_cast<std::uint8_t>(filler);
  for (unsigned i = 0; i < size; ++i, ++at_) {
    unsigned byte = 0;
    if (!content_.reach(at_) || !bits_.take(8, byte) || byte != *content_.byte(at_)) return false;
  }
  state_ = State::between;
  return true;
}

bool Reader::read_tokens(Unit &unit) {
  while (unit.tokens.size() < Unit::kMostTokens) {
    unsigned symbol = 0;
    bits_.fill(48); // the most that a match takes
    if (!literal_table_.take(bits_, symbol)) return false;
    if (symbol == kEndOfBlock) {
      state_ = State::between;
      return true;
    }
    if (at_ == content_.size() || !content_.reach(at_)) return false;
    if (symbol < kEndOfBlock) {
      if (symbol != *content_.byte(at_)) return false;
      unit.tokens.push_back({});
      ++at_;
    } else if (!take_match(symbol, unit)) {
      return false;
    }
  }
  return true;
}

bool Reader::take_match(unsigned symbol, Unit &unit) {
  if (symbol >= kLiteralSymbols) return false;
  const Range &range = kLengths[symbol - 257];
  unsigned more = 0, distance_symbol = 0;
  if (!bits_.take(range.bits, more)) return false;
  unsigned length = range.first + more;
  if (length == kLongest && symbol == 284) length = kUnusualLength;
  bits_.fill(28);
  if (!distance_table_.take(bits_, distance_symbol) || distance_symbol >= kDistanceSymbols) return false;
  const Range &back = kDistances[distance_symbol];
  if (!bits_.take(back.bits, more)) return false;
  const Token token{static_cast<std::uint16_t>(length), static_cast<std::uint16_t>(back.first + more)};
  if (token.distance > at_ || token.bytes() > content_.size() - at_) return false;
  const std::uint8_t *here = content_.byte(at_);
  if (std::memcmp(here, here - token.distance, token.bytes()) != 0) return false;
  unit.tokens.push_back(token);
  at_ += token.bytes();
  return true;
}

// The next block, not taken.
bool Reader::empty_stored_follows() {
  bits_.fill(3 + 7 + 32);
  const unsigned filler = (bits_.available() - 3) % 8;
  if (bits_.available() < 3 + filler + 32) return false;
  const std::uint64_t bits = bits_.peek();
  return (bits & 6) == 0 && (bits >> (3 + filler) & 0xFFFF'FFFF) == 0xFFFF'0000;
}

} // namespace etwrelog::codec::deflate
