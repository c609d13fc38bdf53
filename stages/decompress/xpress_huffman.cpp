// XPRESS-Huffman (MS-XCA 2.1/2.2): blocks of 65536 bytes of output, each behind 512 code lengths of four bits.
// Symbols below 256 are literals; the others hold four bits of length and the bit count of the distance. Bits
// come in 16-bit words, upper bit first, two words ahead of their use; long lengths stand as plain bytes between.
#include "stages/decompress/codecs.hpp"

#include <array>

namespace etwrelog::codecs {
namespace {

constexpr std::size_t kBlockSize = 65536;
constexpr std::size_t kTableBytes = 256;
constexpr std::size_t kMinMatch = 3;
constexpr unsigned kSymbols = 512;
constexpr unsigned kMaxBits = 15;
constexpr unsigned kEndSymbol = 256; // the end only where the output is full; a match of three at distance 1 before

// Canonical decoding: for each length the first code and where its symbols start.
struct CodeTable {
  std::array<std::uint32_t, kMaxBits + 1> count{};
  std::array<std::uint32_t, kMaxBits + 1> first_code{};
  std::array<std::uint32_t, kMaxBits + 1> first_index{};
  std::array<std::uint16_t, kSymbols> symbols{};

  [[nodiscard]] bool build(const std::uint8_t *lengths) {
    const auto length_of = [lengths](unsigned s) { return (lengths[s / 2] >> (4 * (s & 1))) & 15u; };
    count.fill(0);
    for (unsigned s = 0; s < kSymbols; ++s) {
      ++count[length_of(s)];
    }
    count[0] = 0;
    std::uint32_t code = 0;
    std::uint32_t index = 0;
    std::array<std::uint32_t, kMaxBits + 1> next{};
    for (unsigned bits = 1; bits <= kMaxBits; ++bits) {
      code = (code + count[bits - 1]) << 1;
      first_code[bits] = code;
      first_index[bits] = next[bits] = index;
      index += count[bits];
    }
    for (unsigned s = 0; s < kSymbols; ++s) {
      if (length_of(s) != 0) {
        symbols[next[length_of(s)]++] = static_cast<std::uint16_t>(s);
      }
    }
    return code + count[kMaxBits] == 1u << kMaxBits; // complete and not oversubscribed
  }
};

class BitReader {
public:
  BitReader(Bytes in, std::size_t pos) : in_(in), pos_(pos) {}

  [[nodiscard]] bool start() {
    if (in_.size() - pos_ < 4) {
      return false;
    }
    const std::uint32_t high = load<std::uint16_t>(in_.data() + pos_);
    bits_ = high << 16 | load<std::uint16_t>(in_.data() + pos_ + 2);
    pos_ += 4;
    return true;
  }
  [[nodiscard]] std::uint32_t peek(unsigned n) const { return n == 0 ? 0 : bits_ >> (32 - n); }
  [[nodiscard]] bool skip(unsigned n) {
    bits_ <<= n;
    extra_ -= static_cast<int>(n);
    if (extra_ < 0) {
      if (in_.size() - pos_ < 2) {
        return false;
      }
      bits_ |= std::uint32_t{load<std::uint16_t>(in_.data() + pos_)} << -extra_;
      extra_ += 16;
      pos_ += 2;
    }
    return true;
  }
  template <class T> [[nodiscard]] bool plain(T &value) {
    if (in_.size() - pos_ < sizeof(T)) {
      return false;
    }
    value = load<T>(in_.data() + pos_);
    pos_ += sizeof(T);
    return true;
  }
  [[nodiscard]] std::size_t pos() const { return pos_; }

private:
  Bytes in_;
  std::size_t pos_;
  std::uint32_t bits_ = 0;
  int extra_ = 16;
};

bool next_symbol(const CodeTable &table, BitReader &reader, unsigned &symbol) {
  for (unsigned bits = 1; bits <= kMaxBits; ++bits) {
    const std::uint32_t offset = reader.peek(bits) - table.first_code[bits];
    if (offset < table.count[bits]) {
      symbol = table.symbols[table.first_index[bits] + offset];
      return reader.skip(bits);
    }
  }
  return false; // not reached with a complete code
}

} // namespace

CodecResult decode_xpress_huffman(Bytes in, MutableBytes out) {
  std::size_t in_pos = 0;
  std::size_t out_pos = 0;
  const auto fail = [&](CodecStatus status) { return CodecResult{status, in_pos, out_pos}; };
  CodeTable table;
  while (out_pos < out.size()) {
    if (in.size() - in_pos < kTableBytes + 4) {
      return fail(in_pos == in.size() ? CodecStatus::output_short : CodecStatus::input_truncated);
    }
    if (!table.build(in.data() + in_pos)) {
      return fail(CodecStatus::bad_table);
    }
    BitReader reader(in, in_pos + kTableBytes);
    if (!reader.start()) {
      return fail(CodecStatus::input_truncated);
    }
    const std::size_t block_start = out_pos;
    const std::size_t block_end = out.size() - out_pos < kBlockSize ? out.size() : out_pos + kBlockSize;
    while (out_pos < block_end) {
      in_pos = reader.pos();
      unsigned symbol = 0;
      if (!next_symbol(table, reader, symbol)) {
        return fail(CodecStatus::input_truncated);
      }
      if (symbol < 256) {
        out[out_pos++] = static_cast<std::uint8_t>(symbol);
        continue;
      }
      if (symbol == kEndSymbol && reader.pos() == in.size()) {
        return fail(CodecStatus::output_short);
      }
      std::size_t length = symbol & 15;
      if (length == 15) {
        std::uint8_t byte = 0;
        if (!reader.plain(byte)) {
          return fail(CodecStatus::input_truncated);
        }
        length += byte;
        if (byte == 255) {
          std::uint16_t word = 0;
          std::uint32_t dword = 0;
          if (!reader.plain(word) || (word == 0 && !reader.plain(dword))) {
            return fail(CodecStatus::input_truncated);
          }
          length = word != 0 ? word : dword;
          if (length < 15) {
            return fail(CodecStatus::bad_length);
          }
        }
      }
      length += kMinMatch;
      const unsigned distance_bits = (symbol - 256) >> 4;
      const std::size_t distance = (std::size_t{1} << distance_bits) + reader.peek(distance_bits);
      if (!reader.skip(distance_bits)) {
        return fail(CodecStatus::input_truncated);
      }
      if (distance > out_pos) {
        return fail(CodecStatus::bad_distance);
      }
      if (length > out.size() - out_pos) {
        return fail(CodecStatus::output_overrun);
      }
      std::uint8_t *to = out.data() + out_pos;
      for (std::size_t i = 0; i < length; ++i) {
        to[i] = to[i - distance];
      }
      out_pos += length;
    }
    in_pos = reader.pos();
    if (out_pos == out.size()) {
      unsigned symbol = 0;
      if (next_symbol(table, reader, symbol) && symbol == kEndSymbol) {
        in_pos = reader.pos();
      } else if (out_pos < block_start + kBlockSize) { // a full block may go without
        return fail(in_pos == in.size() ? CodecStatus::input_truncated : CodecStatus::trailing_input);
      }
    }
  }
  return fail(in_pos == in.size() ? CodecStatus::ok : CodecStatus::trailing_input);
}

} // namespace etwrelog::codecs
