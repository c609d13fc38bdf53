// libfwnt as the second opinion on the decoders.
#pragma once

#include "base/cpu.hpp"
#include "etwrelog/codec.hpp"

#include <libfwnt.h>

#include <algorithm>
#include <optional>
#include <vector>

namespace etwrelog::testing {

// What libfwnt makes of it; nothing when it reports an error. It is given the exact output size, too, but may
// be content with less.
[[nodiscard]] inline std::optional<std::vector<std::uint8_t>> fwnt_decompress(Codec codec, Bytes in,
                                                                              std::size_t size) {
  std::vector<std::uint8_t> out(size);
  std::size_t produced = size;
  // It refuses null pointers and empty spans as arguments.
  if (in.empty() || out.empty()) {
    return std::nullopt;
  }
  const auto decode = codec == Codec::lznt1    ? libfwnt_lznt1_decompress
                      : codec == Codec::xpress ? libfwnt_lzxpress_decompress
                                               : libfwnt_lzxpress_huffman_decompress;
  if (decode(in.data(), in.size(), out.data(), &produced, nullptr) != 1) {
    return std::nullopt;
  }
  out.resize(std::min(produced, size));
  return out;
}

struct Decoded {
  CodecResult result;
  std::vector<std::uint8_t> bytes; // the valid prefix
};

// Both builds of the decoder, on copies of exactly the sizes; `agree` is false when they differ in anything.
struct DecodedBothWays {
  Decoded decoded;
  bool agree = false;
};

[[nodiscard]] inline Decoded decode_exact(Codec codec, Bytes in, std::size_t size) {
  const std::vector<std::uint8_t> input(in.begin(), in.end());
  Decoded decoded{{}, std::vector<std::uint8_t>(size)};
  decoded.result = decompress(codec, input, decoded.bytes);
  decoded.bytes.resize(std::min(decoded.result.produced, size));
  return decoded;
}

[[nodiscard]] inline DecodedBothWays decode_both_ways(Codec codec, Bytes in, std::size_t size) {
  DecodedBothWays both{decode_exact(codec, in, size)};
  base::set_portable_only(true);
  const Decoded portable = decode_exact(codec, in, size);
  base::set_portable_only(false);
  const CodecResult &a = both.decoded.result;
  const CodecResult &b = portable.result;
  both.agree = a.status == b.status && a.consumed == b.consumed && a.produced == b.produced &&
               both.decoded.bytes == portable.bytes;
  return both;
}

} // namespace etwrelog::testing
