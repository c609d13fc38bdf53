// Maps of IL offsets to native ones. Included by content.hpp.
#pragma once

#include "etlz/model/model.hpp"

namespace etwrelog::etlz {

// What a value resembles, as one of the hashes of a Hint.
inline std::uint32_t hint_of(std::uint64_t a, std::uint64_t b) {
  return static_cast<std::uint32_t>(
      (a * 0x9E37'79B9'7F4A'7C15ull ^ (b + 1) * 0xC2B2'AE3D'27D4'EB4Full) * 0xD6E8'FEB8'6659'FD93ull >> 32);
}

// A number behind a symbol that says it is none of the usual ones: a byte that tells sign and width, and what
// is below the leading bit.
template <Way kWay>
std::int64_t ModelCore<kWay>::code_escaped(std::uint32_t stream, unsigned symbol, std::int64_t value) {
  hint_ = {hint_of(symbol, 0), 0, 0, 0};
  const bool negative = value < 0;
  const auto magnitude = static_cast<std::uint64_t>(negative ? -value : value);
  const auto given = static_cast<unsigned>(std::bit_width(magnitude)) * 2 + (negative ? 1 : 0);
  const unsigned shape = code_byte(stream, given);
  const unsigned width = shape >> 1;
  if (width > 40) {
    failed_ = true;
    return 0;
  }
  if (width == 0) return 0;
  const std::uint64_t top = std::uint64_t{1} << (width - 1);
  const auto found =
      static_cast<std::int64_t>(top | code_bits(stream, shape, magnitude & (top - 1), width - 1));
  return (shape & 1) != 0 ? -found : found;
}

// Coupled ways: an IL offset is one of the three special ones, or a little above the last, mostly; a native
// offset a little above all before it.
template <Way kWay>
void ModelCore<kWay>::code_map_pairs(std::uint64_t count, Bytes content, std::uint8_t *out) {
  constexpr unsigned kSpecial = 3, kEscape = 255, kFarAbove = 254;
  std::int64_t from = 0, to = 0, top = 0;
  unsigned f1 = 0, f2 = 0, t1 = 0, t2 = 0; // symbols before
  const auto offset = [content](std::uint64_t i) {
    return std::int64_t{static_cast<std::int32_t>(load<std::uint32_t>(content.data() + 4 * i))};
  };
  for (std::uint64_t i = 0; i < count; ++i) {
    std::int64_t next = 0;
    unsigned symbol = 0;
    if constexpr (!kDecode) {
      next = offset(i);
      symbol = next >= -3 && next < 0 ? static_cast<unsigned>(next + 3)
               : next >= from && next - from < kEscape - kSpecial - 2
                   ? static_cast<unsigned>(next - from) + kSpecial
                   : kEscape;
    }
    const bool special = from < 0;
    const std::uint64_t place = std::min<std::uint64_t>(count - i, 3) * 4 + std::min<std::uint64_t>(i, 3);
    const std::uint64_t pair = f1 << 8 | t1, pairs = pair << 16 | f2 << 8 | t2;
    hint_ = {hint_of(place * 2 + (special ? 1 : 0), 1), hint_of(pair, 2), hint_of(pairs, 3),
             hint_of(f1 << 8 | f2, 4 + place)};
    symbol = code_byte(kStreamMapFrom, symbol);
    if (symbol == kEscape)
      from += code_escaped(kStreamMapFrom, 0, next - from);
    else
      from = symbol < kSpecial ? std::int64_t{symbol} - 3 : from + (symbol - kSpecial);
    f2 = f1, f1 = symbol;

    const bool below = to < top;
    if constexpr (!kDecode) {
      next = offset(count + i);
      symbol = next < top ? kEscape : next - top < kFarAbove ? static_cast<unsigned>(next - top) : kFarAbove;
    }
    hint_ = {hint_of(f1 << 2 | (below ? 2u : 0u) | (special ? 1u : 0u), 100), hint_of(f1 << 8 | f2, 101 + t1),
             hint_of(f1 << 8 | t1, 400 + t2),
             hint_of(place * 8 + std::min(f1, kSpecial) * 2 + (below ? 1 : 0), 700)};
    symbol = code_byte(kStreamMapTo, symbol);
    if (symbol == kFarAbove)
      to = top + code_escaped(kStreamMapTo, 1, next - top);
    else if (symbol == kEscape)
      to -= code_escaped(kStreamMapTo, 2, to - next);
    else
      to = top + symbol;
    t2 = t1, t1 = symbol;
    top = std::max(top, to);
    if constexpr (kDecode) {
      store(out + 4 * i, static_cast<std::uint32_t>(from));
      store(out + 4 * (count + i), static_cast<std::uint32_t>(to));
      if (failed_) return;
      from = static_cast<std::int32_t>(from), to = static_cast<std::int32_t>(to);
      top = std::max(top, to);
    }
  }
}

template <Way kWay> Bytes ModelCore<kWay>::code_map(Bytes content) {
  std::uint64_t count = content.size() / 8;
  code_unsigned(kStreamMapCount, count);
  std::uint8_t *out = nullptr;
  if constexpr (kDecode) {
    out = count > 0xFFFF / 8 ? nullptr : arena_.take(count * 8);
    if (out == nullptr) {
      failed_ = true;
      return {};
    }
  }
  if constexpr (kCoupled) {
    code_map_pairs(count, content, out);
    if constexpr (kDecode) return {out, count * 8};
    object_bytes_ += content.size();
    return content;
  }
  std::uint32_t from = 0, to = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    std::uint64_t d_from = 0, d_to = 0;
    if constexpr (!kDecode) {
      const auto next_from = load<std::uint32_t>(content.data() + 4 * i);
      const auto next_to = load<std::uint32_t>(content.data() + 4 * (count + i));
      d_from =
          static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<std::int32_t>(next_from - from)));
      d_to = static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<std::int32_t>(next_to - to)));
      from = next_from, to = next_to;
    }
    code_signed(kStreamMapFrom, d_from);
    code_signed(kStreamMapTo, d_to);
    if constexpr (kDecode) {
      from += static_cast<std::uint32_t>(d_from);
      to += static_cast<std::uint32_t>(d_to);
      store(out + 4 * i, from);
      store(out + 4 * (count + i), to);
    }
  }
  if constexpr (kDecode) return {out, count * 8};
  object_bytes_ += content.size();
  return content;
}

} // namespace etwrelog::etlz
