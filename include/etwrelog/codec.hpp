// The three compression formats of ETL buffers (MS-XCA): LZNT1, plain XPRESS (LZ77) and XPRESS-Huffman.
//
// Plain functions over spans: no allocation in a call, no global state, any thread. The formats carry no
// length and no checksum; the caller knows the decoded size (an ETL buffer header states it). Memory is the
// caller's: nothing is kept of it, and input and output must not overlap. Errors are a CodecStatus and the
// place, no Error: whoever knows file and buffer makes one of it. Decoding is linear in the output; encoding
// at a Level is linear in the input, times a bound on the matches that the level looks at. Sizes are in
// bytes.
#pragma once

#include "etwrelog/bytes.hpp"

#include <memory>
#include <string_view>

namespace etwrelog {

enum class Codec : std::uint8_t { none, lznt1, xpress, xpress_huffman };
// `ultra` is a level of archives; the codecs take it for max.
enum class Level : std::uint8_t { fast, normal, max, ultra };

[[nodiscard]] std::string_view level_name(Level level); // "default" of normal; lives as long as the program

[[nodiscard]] std::string_view codec_name(Codec codec); // "xpress-huffman"; lives as long as the program

enum class CodecStatus : std::uint8_t {
  ok,
  input_truncated,  // the input ends inside a token, a table or a chunk
  bad_distance,     // a match reaches before the start of the output (LZNT1: of the chunk)
  bad_length,       // a long length below the minimum of its escape
  bad_chunk,        // LZNT1: signature or size of a chunk header
  bad_table,        // XPRESS-Huffman: the code lengths form no prefix code
  output_overrun,   // a token would write past the output
  output_short,     // the input ends before the output is full
  trailing_input,   // the output is full and input is left over
  output_too_small, // encoder: the result does not fit the output
};

[[nodiscard]] std::string_view codec_status_text(CodecStatus status);

struct CodecResult {
  CodecStatus status = CodecStatus::ok;
  std::size_t consumed = 0; // bytes of input used; on failure the offset of the token that failed
  std::size_t produced = 0; // bytes of output that are valid; on failure those before the failing token

  explicit operator bool() const { return status == CodecStatus::ok; }
};

// Decodes `in` to exactly out.size() bytes. ok means that the output is full and the whole input was consumed
// (XPRESS: but for the governing-nothing flag word that Windows writes when a stream's token count is a
// multiple of 32). Never reads outside `in` nor writes outside `out`, whatever the bytes.
[[nodiscard]] CodecResult decompress(Codec codec, Bytes in, MutableBytes out);

// An encoder with its tables. Made once per thread and reused; not thread-safe itself.
class Compressor {
public:
  // Allocates all it will ever need for inputs of up to `max_input` bytes; throws std::bad_alloc where it
  // cannot. One that was moved from may only be assigned to or destroyed.
  Compressor(Codec codec, Level level, std::size_t max_input);
  ~Compressor();
  Compressor(Compressor &&) noexcept;
  Compressor &operator=(Compressor &&) noexcept;

  // Encodes in.size() <= max_input bytes. output_too_small when the result does not fit `out`: an ETL writer
  // passes in.size() - 1 bytes and stores the buffer uncompressed then. The same input and level give the
  // same bytes on every machine.
  [[nodiscard]] CodecResult compress(Bytes in, MutableBytes out);

private:
  struct State;
  std::unique_ptr<State> state_;
};

} // namespace etwrelog
