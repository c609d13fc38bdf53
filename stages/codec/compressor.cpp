#include "base/raw_memory.hpp"
#include "codec/encoder.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace etwrelog {

struct Compressor::State {
  std::unique_ptr<codec::Encoder> encoder; // null for Codec::none
  base::RawMemory scratch;                 // where results go that may not fit the caller's span
  std::size_t max_input = 0;
};

Compressor::Compressor(Codec codec, Level level, std::size_t max_input) : state_(std::make_unique<State>()) {
  state_->max_input = max_input;
  switch (codec) {
  case Codec::none: return;
  case Codec::lznt1: state_->encoder = codec::make_lznt1_encoder(level, max_input); break;
  case Codec::xpress: state_->encoder = codec::make_xpress_encoder(level, max_input); break;
  case Codec::xpress_huffman: state_->encoder = codec::make_xpress_huffman_encoder(level, max_input); break;
  }
  static_cast<void>(state_->scratch.room(state_->encoder->bound(max_input)));
}

Compressor::~Compressor() = default;
Compressor::Compressor(Compressor &&) noexcept = default;
Compressor &Compressor::operator=(Compressor &&) noexcept = default;

CodecResult Compressor::compress(Bytes in, MutableBytes out) {
  assert(in.size() <= state_->max_input);
  const CodecResult too_small{CodecStatus::output_too_small, 0, 0};
  if (!state_->encoder) {
    if (in.size() > out.size()) {
      return too_small;
    }
    std::copy(in.begin(), in.end(), out.begin());
    return {CodecStatus::ok, in.size(), in.size()};
  }
  const bool direct = out.size() >= state_->encoder->bound(in.size());
  std::uint8_t *to = direct ? out.data() : state_->scratch.room(state_->encoder->bound(in.size()));
  const std::size_t size = state_->encoder->encode(in, to, out.size());
  if (size > out.size()) {
    return too_small;
  }
  if (!direct && size != 0) {
    std::memcpy(out.data(), to, size);
  }
  return {CodecStatus::ok, in.size(), size};
}

} // namespace etwrelog
