#include "etwrelog/codec.hpp"

#include "codec/codecs.hpp"

#include <cstring>

namespace etwrelog {

std::string_view codec_name(Codec codec) {
  switch (codec) {
  case Codec::none: return "none";
  case Codec::lznt1: return "lznt1";
  case Codec::xpress: return "xpress";
  case Codec::xpress_huffman: return "xpress-huffman";
  }
  return "unknown";
}

std::string_view level_name(Level level) {
  switch (level) {
  case Level::fast: return "fast";
  case Level::normal: return "default";
  case Level::max: return "max";
  case Level::ultra: return "ultra";
  }
  return "unknown";
}

std::string_view codec_status_text(CodecStatus status) {
  switch (status) {
  case CodecStatus::ok: return "ok";
  case CodecStatus::input_truncated: return "the input ends inside a token, a table or a chunk";
  case CodecStatus::bad_distance: return "a match reaches before the start of the output";
  case CodecStatus::bad_length: return "a long match length is below the minimum of its escape";
  case CodecStatus::bad_chunk: return "a chunk header has a wrong signature or size";
  case CodecStatus::bad_table: return "the code lengths form no prefix code";
  case CodecStatus::output_overrun: return "a token would write past the declared size";
  case CodecStatus::output_short: return "the input ends before the declared size is reached";
  case CodecStatus::trailing_input: return "input is left over after the declared size";
  case CodecStatus::output_too_small: return "the result does not fit the output";
  }
  return "unknown";
}

CodecResult decompress(Codec codec, Bytes in, MutableBytes out) {
  switch (codec) {
  case Codec::lznt1: return codec::decode_lznt1(in, out);
  case Codec::xpress: return codec::decode_xpress(in, out);
  case Codec::xpress_huffman: return codec::decode_xpress_huffman(in, out);
  case Codec::none: break;
  }
  const std::size_t n = in.size() < out.size() ? in.size() : out.size();
  if (n != 0) {
    std::memcpy(out.data(), in.data(), n);
  }
  if (in.size() < out.size()) {
    return {CodecStatus::output_short, n, n};
  }
  return {in.size() > out.size() ? CodecStatus::trailing_input : CodecStatus::ok, n, n};
}

} // namespace etwrelog
