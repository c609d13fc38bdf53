// Numbers in correction streams: seven bits a byte, lowest first, the top bit set on all but the last.
#pragma once

#include "etwrelog/bytes.hpp"

#include <vector>

namespace etwrelog::codec {

inline void put_number(std::vector<std::uint8_t> &out, std::uint64_t value) {
  while (value >= 0x80) {
    out.push_back(static_cast<std::uint8_t>(value | 0x80));
    value >>= 7;
  }
  out.push_back(static_cast<std::uint8_t>(value));
}

// Takes a number off the front of `in`; false where it does not end, or exceeds 56 bits.
[[nodiscard]] inline bool take_number(Bytes &in, std::uint64_t &value) {
  value = 0;
  for (unsigned n = 0; n < 8 && n < in.size(); ++n) {
    value |= std::uint64_t{in[n] & 0x7Fu} << (7 * n);
    if (in[n] < 0x80) {
      in = in.subspan(n + 1);
      return true;
    }
  }
  return false;
}

} // namespace etwrelog::codec
