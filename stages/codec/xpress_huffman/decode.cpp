// XPRESS-Huffman (MS-XCA 2.1/2.2): blocks of 65536 bytes of output, each behind 512 code lengths of four
// bits. Symbols below 256 are literals; the others hold four bits of length and the bit count of the
// distance. Bits come in 16-bit words, upper bit first, two words ahead of their use; long lengths stand as
// plain bytes between.
#include "codec/codecs.hpp"
#include "codec/wild_copy.hpp"
#include "codec/xpress/format.hpp"

#include <algorithm>
#include <array>

namespace etwrelog::codec {
namespace {

constexpr std::size_t kBlockSize = 65536;
constexpr std::size_t kTableBytes = 256;
constexpr std::size_t kMinMatch = kXpressMinMatch;
constexpr unsigned kSymbols = 512;
constexpr unsigned kMaxBits = 15;
constexpr unsigned kEndSymbol =
    256; // the end only where the output is full; a match of three at distance 1 before

constexpr unsigned kFastBits = 11;

// Canonical decoding: one look-up for codes of up to kFastBits; for the longer ones (one token in a hundred)
// the first code of each length and where its symbols start.
class CodeTable {
public:
  // False when the lengths form no complete prefix code.
  [[nodiscard]] bool build(const std::uint8_t *lengths) {
    const auto length_of = [lengths](unsigned s) { return (lengths[s / 2] >> (4 * (s & 1))) & 15u; };
    count_.fill(0);
    for (unsigned i = 0; i < kTableBytes; ++i) {
      ++count_[lengths[i] & 15];
      ++count_[lengths[i] >> 4];
    }
    count_[0] = 0;
    std::uint32_t code = 0;
    std::uint32_t index = 0;
    std::array<std::uint32_t, kMaxBits + 1> next{};
    for (unsigned bits = 1; bits <= kMaxBits; ++bits) {
      code = (code + count_[bits - 1]) << 1;
      first_code_[bits] = code;
      first_index_[bits] = next[bits] = index;
      index += count_[bits];
    }
    if (code + count_[kMaxBits] != 1u << kMaxBits) {
      return false;
    }
    for (unsigned s = 0; s < kSymbols; ++s) {
      if (const unsigned bits = length_of(s); bits != 0) {
        symbols_[next[bits]++] = static_cast<std::uint16_t>(s);
      }
    }
    std::uint16_t *at = fast_.data();
    for (unsigned bits = 1; bits <= kFastBits; ++bits) {
      const std::size_t copies = std::size_t{1} << (kFastBits - bits);
      for (std::uint32_t i = 0; i < count_[bits]; ++i, at += copies) {
        std::fill_n(at, copies, static_cast<std::uint16_t>(symbols_[first_index_[bits] + i] << 4 | bits));
      }
    }
    std::fill(at, fast_.data() + fast_.size(), std::uint16_t{0});
    return true;
  }

  // `window` holds the next bits from the top. Returns symbol << 4 | bits.
  [[nodiscard]] ETWRELOG_ALWAYS_INLINE std::uint32_t decode(std::uint32_t window) const {
    const std::uint32_t entry = fast_[window >> (32 - kFastBits)];
    return entry != 0 ? entry : decode_long(window);
  }

private:
  [[nodiscard]] ETWRELOG_NOINLINE std::uint32_t decode_long(std::uint32_t window) const {
    unsigned bits = kFastBits + 1;
    while (bits < kMaxBits && (window >> (32 - bits)) - first_code_[bits] >= count_[bits]) {
      ++bits;
    }
    return std::uint32_t{symbols_[first_index_[bits] + (window >> (32 - bits)) - first_code_[bits]]} << 4 |
           bits;
  }

  std::array<std::uint16_t, 1 << kFastBits> fast_{};
  std::array<std::uint32_t, kMaxBits + 1> count_{};
  std::array<std::uint32_t, kMaxBits + 1> first_code_{};
  std::array<std::uint32_t, kMaxBits + 1> first_index_{};
  std::array<std::uint16_t, kSymbols> symbols_{};
};

// 16 to 32 bits ahead, in the upper part of `window`; `spare` of them can go before the next word is due.
// Where that word stands depends on the plain bytes read meanwhile, so it must not be read earlier.
struct BitState {
  std::size_t in_pos = 0;
  std::uint32_t window = 0;
  std::int32_t spare = 16;

  // Takes n <= 16 bits; false when a word is due and the input has none.
  [[nodiscard]] bool skip(Bytes in, unsigned n) {
    window <<= n;
    spare -= static_cast<std::int32_t>(n);
    if (spare < 0) {
      if (in.size() - in_pos < 2) {
        return false;
      }
      window |= std::uint32_t{load<std::uint16_t>(in.data() + in_pos)} << -spare;
      spare += 16;
      in_pos += 2;
    }
    return true;
  }
  // The same without branch, from two readable bytes.
  ETWRELOG_ALWAYS_INLINE void skip_unchecked(const std::uint8_t *&in, unsigned n) {
    window <<= n;
    spare -= static_cast<std::int32_t>(n);
    const std::int32_t due = spare >> 31;
    window |= std::uint32_t{load<std::uint16_t>(in)} << (-spare & 31) & static_cast<std::uint32_t>(due);
    spare += due & 16;
    in += due & 2;
  }
  // n <= 15 bits of what comes next.
  [[nodiscard]] std::uint32_t peek(unsigned n) const { return window >> 1 >> (31 - n); }
};

constexpr std::size_t kRoundIn = 16; // three words, and a length byte between them
constexpr std::size_t kRoundOut = 64 + kCopySlack;

// Tokens while both sides have room, up to block_end. Returns true when the next token is for the careful
// decoder: a length in more than a byte, a bad distance.
ETWRELOG_ALWAYS_INLINE bool fast_tokens(const CodeTable &table, Bytes in_span, MutableBytes out_span,
                                        std::size_t block_end, BitState &state, std::size_t &out_pos) {
  if (in_span.size() < kRoundIn || out_span.size() < kRoundOut) {
    return false;
  }
  const std::uint8_t *in = in_span.data() + state.in_pos;
  const std::uint8_t *const in_safe = in_span.data() + in_span.size() - kRoundIn;
  std::uint8_t *const out_begin = out_span.data();
  std::uint8_t *const out_end = out_begin + out_span.size();
  std::uint8_t *const out_stop = out_begin + std::min(block_end, out_span.size() - kRoundOut);
  std::uint8_t *out = out_begin + out_pos;
  BitState bits = state;
  bool leave_token = false;
  while (in <= in_safe && out < out_stop) {
    const std::uint32_t entry = table.decode(bits.window);
    const BitState before = bits;
    const std::uint8_t *const in_before = in;
    bits.skip_unchecked(in, entry & 15);
    const std::uint32_t symbol = entry >> 4;
    if (symbol < 256) {
      *out++ = static_cast<std::uint8_t>(symbol);
      continue;
    }
    std::size_t length = (symbol & 15) + kMinMatch;
    if (length == 15 + kMinMatch) {
      length += *in;
      ++in;
    }
    const unsigned distance_bits = (symbol >> 4) - 16;
    const std::size_t distance = (std::size_t{1} << distance_bits) + bits.peek(distance_bits);
    bits.skip_unchecked(in, distance_bits);
    if (distance > static_cast<std::size_t>(out - out_begin) ||
        (length > 64 && (length == 15 + 255 + kMinMatch ||
                         static_cast<std::ptrdiff_t>(length + kCopySlack) > out_end - out))) [[unlikely]] {
      bits = before;
      in = in_before;
      leave_token = true;
      break;
    }
    const std::uint8_t *const from = out - distance;
    if (distance < (length < 16 ? length : 16)) [[unlikely]] {
      copy_overlapping(out, distance, length);
    } else {
      copy16(out, from);
      if (length > 16) {
        copy16(out + 16, from + 16);
        copy16(out + 32, from + 32);
        copy16(out + 48, from + 48);
        if (length > 64) [[unlikely]] {
          copy_blocks(out + 64, from + 64, out + length);
        }
      }
    }
    out += length;
  }
  state = bits;
  state.in_pos = static_cast<std::size_t>(in - in_span.data());
  out_pos = static_cast<std::size_t>(out - out_begin);
  return leave_token;
}

using FastTokens = bool(const CodeTable &, Bytes, MutableBytes, std::size_t, BitState &, std::size_t &);
bool tokens_portable(const CodeTable &table, Bytes in, MutableBytes out, std::size_t block_end,
                     BitState &state, std::size_t &out_pos) {
  return fast_tokens(table, in, out, block_end, state, out_pos);
}
#if ETWRELOG_X86_DISPATCH
ETWRELOG_TARGET_V3 bool tokens_v3(const CodeTable &table, Bytes in, MutableBytes out, std::size_t block_end,
                                  BitState &state, std::size_t &out_pos) {
  return fast_tokens(table, in, out, block_end, state, out_pos);
}
#endif

// One token, everything checked; `state` moves only when it is good.
CodecStatus decode_token(const CodeTable &table, Bytes in, MutableBytes out, BitState &state,
                         std::size_t &out_pos) {
  BitState bits = state;
  const std::uint32_t entry = table.decode(bits.window);
  const std::uint32_t symbol = entry >> 4;
  if (!bits.skip(in, entry & 15)) {
    return CodecStatus::input_truncated;
  }
  if (symbol < 256) {
    out[out_pos++] = static_cast<std::uint8_t>(symbol);
    state = bits;
    return CodecStatus::ok;
  }
  const auto has = [&](std::size_t n) { return in.size() - bits.in_pos >= n; };
  const std::uint8_t *const base = in.data();
  std::size_t length = symbol & 15;
  if (length == 15) {
    if (!has(1)) {
      return CodecStatus::input_truncated;
    }
    const std::uint8_t byte = base[bits.in_pos++];
    length += byte;
    if (byte == 255) {
      if (!has(2)) {
        return CodecStatus::input_truncated;
      }
      length = load<std::uint16_t>(base + bits.in_pos);
      bits.in_pos += 2;
      if (length == 0) {
        if (!has(4)) {
          return CodecStatus::input_truncated;
        }
        length = load<std::uint32_t>(base + bits.in_pos);
        bits.in_pos += 4;
      }
      if (length < 15) {
        return CodecStatus::bad_length;
      }
    }
  }
  length += kMinMatch;
  const unsigned distance_bits = (symbol >> 4) - 16;
  const std::size_t distance = (std::size_t{1} << distance_bits) + bits.peek(distance_bits);
  if (!bits.skip(in, distance_bits)) {
    return CodecStatus::input_truncated;
  }
  if (distance > out_pos) {
    return CodecStatus::bad_distance;
  }
  if (length > out.size() - out_pos) {
    return CodecStatus::output_overrun;
  }
  copy_any(out, out_pos, distance, length);
  out_pos += length;
  state = bits;
  return CodecStatus::ok;
}

} // namespace

CodecResult decode_xpress_huffman(Bytes in, MutableBytes out) {
  FastTokens *fast = tokens_portable;
#if ETWRELOG_X86_DISPATCH
  if (base::has_v3()) {
    fast = tokens_v3;
  }
#endif
  BitState state;
  std::size_t out_pos = 0;
  const auto result = [&](CodecStatus status) { return CodecResult{status, state.in_pos, out_pos}; };
  CodeTable table;
  while (out_pos < out.size()) {
    if (in.size() - state.in_pos < kTableBytes + 4) {
      return result(state.in_pos == in.size() ? CodecStatus::output_short : CodecStatus::input_truncated);
    }
    const std::uint8_t *const at = in.data() + state.in_pos;
    if (!table.build(at)) {
      return result(CodecStatus::bad_table);
    }
    state.window = std::uint32_t{load<std::uint16_t>(at + kTableBytes)} << 16 |
                   load<std::uint16_t>(at + kTableBytes + 2);
    state.spare = 16;
    state.in_pos += kTableBytes + 4;
    const std::size_t block_start = out_pos;
    const std::size_t block_end = std::min(out.size(), out_pos + kBlockSize);
    while (out_pos < block_end) {
      const bool one = fast(table, in, out, block_end, state, out_pos);
      while (out_pos < block_end) {
        const CodecStatus status = decode_token(table, in, out, state, out_pos);
        if (status != CodecStatus::ok) {
          return result(status);
        }
        if (one) {
          break;
        }
      }
    }
    if (out_pos == out.size()) {
      BitState end = state;
      const std::uint32_t entry = table.decode(end.window);
      if (end.skip(in, entry & 15) && entry >> 4 == kEndSymbol) {
        state = end;
      } else if (out_pos < block_start + kBlockSize) { // a full block may go without
        return result(state.in_pos == in.size() ? CodecStatus::input_truncated : CodecStatus::trailing_input);
      }
    }
  }
  return result(state.in_pos == in.size() ? CodecStatus::ok : CodecStatus::trailing_input);
}

} // namespace etwrelog::codec
