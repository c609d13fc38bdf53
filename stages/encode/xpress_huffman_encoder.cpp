#include "stages/encode/encoder.hpp"

namespace etwrelog::codecs {

std::unique_ptr<Encoder> make_xpress_huffman_encoder(Level, std::size_t) { return nullptr; }

} // namespace etwrelog::codecs
