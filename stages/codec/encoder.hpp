// What Compressor drives: one object a codec and level, with its tables inside.
#pragma once

#include "etwrelog/codec.hpp"

#include <cstddef>
#include <memory>

namespace etwrelog::codec {

class Encoder {
public:
  virtual ~Encoder() = default;
  // The most that `raw` bytes can become. encode() writes anywhere below it.
  [[nodiscard]] virtual std::size_t bound(std::size_t raw) const = 0;
  // `out` has room for bound(in.size()) bytes. Returns the bytes written; may stop early and return any
  // number above `limit` once the result is known to be larger.
  [[nodiscard]] virtual std::size_t encode(Bytes in, std::uint8_t *out, std::size_t limit) = 0;
};

[[nodiscard]] std::unique_ptr<Encoder> make_lznt1_encoder(Level level, std::size_t max_input);
[[nodiscard]] std::unique_ptr<Encoder> make_xpress_encoder(Level level, std::size_t max_input);
[[nodiscard]] std::unique_ptr<Encoder> make_xpress_huffman_encoder(Level level, std::size_t max_input);

} // namespace etwrelog::codec
