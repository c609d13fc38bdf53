// Corrections from anywhere must neither harm nor hang, and what encode() accepts must come back. The input:
// a byte that picks the codec and the target, a little-endian size of the first part, the two parts.
#include "codec/lznt1/predictor.hpp"
#include "codec/xpress/predictor.hpp"
#include "codec/xpress/streams.hpp"

#include <algorithm>
#include <cstdlib>

namespace {

using etwrelog::Bytes;

constexpr std::size_t kMaxDecoded = 1 << 16;

template <class Predictor> void run(Predictor &predictor, bool encode, Bytes decoded, Bytes other) {
  std::vector<std::uint8_t> out;
  if (!encode) {
    out.resize(std::min<std::size_t>(decoded.size(), 1000));
    (void)static_cast<bool>(predictor.restore(decoded, other, out));
    return;
  }
  std::vector<std::uint8_t> corrections;
  if (!predictor.encode(other, decoded, corrections)) {
    return;
  }
  out.resize(other.size());
  if (!predictor.restore(decoded, corrections, out) || !std::ranges::equal(out, other)) {
    std::abort();
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  static etwrelog::codec::XpressPredictor xpress(kMaxDecoded);
  static etwrelog::codec::Lznt1Predictor lznt1(kMaxDecoded);
  static etwrelog::codec::XpressStreams streams = [] {
    etwrelog::codec::XpressStreams empty;
    empty.make_room(kMaxDecoded);
    return empty;
  }();
  if (size < 3) {
    return 0;
  }
  const std::size_t first = std::min<std::size_t>(etwrelog::load<std::uint16_t>(data + 1), size - 3);
  const Bytes decoded(data + 3, first);
  const Bytes other(data + 3 + first, size - 3 - first);
  if ((data[0] & 4) != 0) {
    streams.forget();
    run(streams, (data[0] & 2) != 0, decoded, other);
  } else if ((data[0] & 1) != 0) {
    run(xpress, (data[0] & 2) != 0, decoded, other);
  } else {
    run(lznt1, (data[0] & 2) != 0, decoded, other);
  }
  return 0;
}
