// The body of the three decoder targets: two bytes of output size, then the compressed stream.
#pragma once

#include "tests/support/fwnt.hpp"

#include <cstdlib>

namespace etwrelog::testing {

inline void fuzz_decoder(Codec codec, Bytes data) {
  if (data.size() < 2) {
    return;
  }
  const std::size_t size = load<std::uint16_t>(data.data());
  const Bytes in = data.subspan(2);
  const DecodedBothWays both = decode_both_ways(codec, in, size);
  const CodecResult &r = both.decoded.result;
  if (!both.agree || r.consumed > in.size() || r.produced > size ||
      (r.status == CodecStatus::ok && (r.consumed != in.size() || r.produced != size))) {
    std::abort();
  }
  // One direction only: whatever we accept, libfwnt accepts with the same bytes. The other is looser by design; see
  // the differential tests for the cases. Two of its limits are left out: it refuses matches beyond 32784 bytes, and
  // does not know lengths of 32 bits (a 255 and a zero word).
  constexpr std::uint8_t escape[] = {255, 0, 0};
  const bool beyond_it = codec != Codec::lznt1 && (size > 32768 || std::search(in.begin(), in.end(), std::begin(escape),
                                                                               std::end(escape)) != in.end());
  if (r.status == CodecStatus::ok && size != 0 && !beyond_it) {
    const auto theirs = fwnt_decompress(codec, in, size);
    if (!theirs || *theirs != both.decoded.bytes) {
      std::abort();
    }
  }
}

} // namespace etwrelog::testing
