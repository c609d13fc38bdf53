// The decoders behind decompress(), one file each. All keep its promises: exact sizes, no access outside the
// spans, the failing token's offset and the valid output prefix on failure.
#pragma once

#include "etwrelog/codec.hpp"

namespace etwrelog::codec {

[[nodiscard]] CodecResult decode_lznt1(Bytes in, MutableBytes out);
[[nodiscard]] CodecResult decode_xpress(Bytes in, MutableBytes out);
[[nodiscard]] CodecResult decode_xpress_huffman(Bytes in, MutableBytes out);

} // namespace etwrelog::codec
